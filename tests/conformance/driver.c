/* driver.c: answers questions about snapshots, one after another, so that thousands of cases need one process.
 *
 * Each line of standard input is a command; texts that follow one are announced by their length in bytes.
 *
 *     import SLOT LENGTH (document)            filter SLOT FROM LENGTH (list of filters)
 *     words SLOT FROM LENGTH (expression)      match LENGTH LENGTH (pattern, name)
 *
 *     statistics SLOT KEY CUMULATIVE           difference NEW OLD KEY CUMULATIVE
 *     traces SLOT                              compare SLOT INDEX SLOT INDEX
 *     json SLOT                                python SLOT
 *     format SLOT INDEX LIMIT|all MOST_RECENT_FIRST
 *     size VALUE SIGN
 *
 * Every answer is one line "LENGTH\n" and as many bytes; a failure is answered with "error TEXT". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracealloc/analysis.h>

#define SLOTS 8

static struct ta_snapshot *slots[SLOTS];

struct answer {
    char *bytes;
    size_t length, capacity;
};

static int collect(void *user, const char *text, size_t length)
{
    struct answer *answer = user;
    if (answer->length + length > answer->capacity) {
        answer->capacity = (answer->length + length) * 2;
        answer->bytes = realloc(answer->bytes, answer->capacity);
        if (answer->bytes == NULL)
            exit(3);
    }
    memcpy(answer->bytes + answer->length, text, length);
    answer->length += length;
    return 0;
}

static void collect_text(struct answer *answer, const char *text)
{
    collect(answer, text, strlen(text));
}

static void send_answer(struct answer *answer, int status)
{
    if (status != 0) {
        answer->length = 0;
        collect_text(answer, "error ");
        collect_text(answer, ta_error_text());
    }
    printf("%zu\n", answer->length);
    if (answer->length > 0)
        fwrite(answer->bytes, 1, answer->length, stdout);
    answer->length = 0;
}

static char *read_bytes(size_t length)
{
    char *bytes = malloc(length + 1);
    if (bytes == NULL || fread(bytes, 1, length, stdin) != length)
        exit(3);
    bytes[length] = '\0';
    return bytes;
}

static struct ta_snapshot *slot(const char *word)
{
    size_t number = (size_t)strtoul(word, NULL, 10);
    if (number >= SLOTS || slots[number] == NULL) {
        fprintf(stderr, "no snapshot in slot %s\n", word);
        exit(3);
    }
    return slots[number];
}

static int store(const char *word, struct ta_snapshot *snapshot)
{
    size_t number = (size_t)strtoul(word, NULL, 10);
    if (snapshot == NULL)
        return -1;
    ta_snapshot_free(slots[number % SLOTS]);
    slots[number % SLOTS] = snapshot;
    return 0;
}

static int answer_import(char **words, struct answer *answer)
{
    size_t length = (size_t)strtoul(words[2], NULL, 10);
    char *text = read_bytes(length);
    int status = store(words[1], ta_snapshot_import_json(text, length));
    (void)answer;
    free(text);
    return status;
}

static int answer_filter(char **words, struct answer *answer)
{
    size_t length = (size_t)strtoul(words[3], NULL, 10), count;
    char *text = read_bytes(length);
    struct ta_filter *filters;
    int status = ta_filters_from_json(text, length, &filters, &count);
    (void)answer;
    if (status == 0) {
        status = store(words[1], ta_snapshot_filter_traces(slot(words[2]), filters, count));
        free(filters);
    }
    free(text);
    return status;
}

static int answer_words(char **words, struct answer *answer)
{
    char *text = read_bytes((size_t)strtoul(words[3], NULL, 10));
    int status = store(words[1], ta_snapshot_filter_expression(slot(words[2]), text));
    (void)answer;
    free(text);
    return status;
}

static int answer_statistics(char **words, struct answer *answer)
{
    struct ta_statistics *statistics = ta_snapshot_statistics(slot(words[1]), words[2], atoi(words[3]));
    if (statistics == NULL)
        return -1;
    int status = ta_statistics_export_json(statistics, SIZE_MAX, collect, answer);
    ta_statistics_free(statistics);
    return status;
}

static int answer_difference(char **words, struct answer *answer)
{
    struct ta_differences *differences =
        ta_snapshot_compare_to(slot(words[1]), slot(words[2]), words[3], atoi(words[4]));
    if (differences == NULL)
        return -1;
    int status = ta_differences_export_json(differences, SIZE_MAX, collect, answer);
    ta_differences_free(differences);
    return status;
}

static int answer_json(char **words, struct answer *answer)
{
    return ta_snapshot_export_json(slot(words[1]), collect, answer);
}

static int answer_python(char **words, struct answer *answer)
{
    return ta_snapshot_export_python(slot(words[1]), collect, answer);
}

/* The texts of all traces, a NUL behind each. */
static int answer_traces(char **words, struct answer *answer)
{
    struct ta_snapshot *snapshot = slot(words[1]);
    long count = ta_snapshot_trace_count(snapshot);
    for (long i = 0; i < count; i++) {
        char text[8192];
        size_t length = ta_snapshot_trace_text(snapshot, (size_t)i, text, sizeof text);
        collect(answer, text, length + 1);
    }
    return 0;
}

static int answer_format(char **words, struct answer *answer)
{
    struct ta_traceback traceback = ta_snapshot_trace_traceback(slot(words[1]), (size_t)atol(words[2]));
    int64_t limit = strcmp(words[3], "all") == 0 ? TA_FORMAT_ALL : strtoll(words[3], NULL, 10);
    char **lines = ta_traceback_format(traceback, limit, atoi(words[4]));
    if (lines == NULL)
        return -1;
    for (size_t i = 0; lines[i] != NULL; i++)
        collect(answer, lines[i], strlen(lines[i]) + 1);
    free(lines);
    return 0;
}

static int answer_size(char **words, struct answer *answer)
{
    char text[400];
    ta_size_text(strtod(words[1], NULL), atoi(words[2]), text, sizeof text);
    collect_text(answer, text);
    return 0;
}

/* "<", "=" or ">" for the tracebacks, then whether tracebacks, their hashes and the traces are equal. */
static int answer_compare(char **words, struct answer *answer)
{
    struct ta_snapshot *a = slot(words[1]), *b = slot(words[3]);
    size_t i = (size_t)atol(words[2]), j = (size_t)atol(words[4]);
    struct ta_traceback x = ta_snapshot_trace_traceback(a, i), y = ta_snapshot_trace_traceback(b, j);
    int order = ta_traceback_compare(x, y);
    collect_text(answer, order < 0 ? "<" : order > 0 ? ">" : "=");
    collect_text(answer, ta_traceback_equal(x, y) ? " 1" : " 0");
    collect_text(answer, ta_traceback_hash(x) == ta_traceback_hash(y) ? " 1" : " 0");
    collect_text(answer, ta_snapshot_trace_equal(a, i, b, j) ? " 1" : " 0");
    return 0;
}

static int answer_match(char **words, struct answer *answer)
{
    size_t pattern_length = (size_t)strtoul(words[1], NULL, 10), name_length = (size_t)strtoul(words[2], NULL, 10);
    char *bytes = read_bytes(pattern_length + name_length);
    int matches = ta_pattern_matches(bytes, pattern_length, bytes + pattern_length, name_length);
    free(bytes);
    collect_text(answer, matches == 1 ? "1" : "0");
    return matches < 0 ? -1 : 0;
}

static const struct {
    const char *name;
    int word_count;
    int (*answer)(char **words, struct answer *answer);
} commands[] = {
    {"import", 3, answer_import}, {"filter", 4, answer_filter},
    {"words", 4, answer_words},   {"statistics", 4, answer_statistics},
    {"traces", 2, answer_traces}, {"difference", 5, answer_difference},
    {"json", 2, answer_json},     {"size", 3, answer_size},
    {"python", 2, answer_python}, {"format", 5, answer_format},
    {"match", 3, answer_match},   {"compare", 5, answer_compare},
};

int main(void)
{
    char line[512];
    struct answer answer = {0};
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *words[8] = {0}, *rest = NULL;
        int count = 0;
        for (char *word = strtok_r(line, " \n", &rest); word != NULL && count < 8; word = strtok_r(NULL, " \n", &rest))
            words[count++] = word;
        size_t found = 0, known = sizeof commands / sizeof *commands;
        while (found < known && (count == 0 || strcmp(words[0], commands[found].name) != 0))
            found++;
        if (found == known || count != commands[found].word_count) {
            fprintf(stderr, "bad command\n");
            return 2;
        }
        send_answer(&answer, commands[found].answer(words, &answer));
        fflush(stdout);
    }
    for (size_t i = 0; i < SLOTS; i++)
        ta_snapshot_free(slots[i]);
    free(answer.bytes);
    return 0;
}
