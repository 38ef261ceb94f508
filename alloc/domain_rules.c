/* domain_rules.c: reads a file of rules (docs/domains.md has the grammar) and puts them in force.
 *
 *      file      = { line }
 *      line      = [ number name { word } ] [ "#" … ]
 *      word      = "module=" patterns | "function=" patterns | "innermost" | "outermost"
 *      patterns  = pattern { "," pattern }
 *
 * Nothing changes before the whole file has been read and found right; what is wrong is named by file, line and column.
 * May run before main, at the first allocation: no malloc, no stdio. Rules stay in memory for ever, because frames are
 * matched with them at any time; a file that is loaded again leaves its former rules behind. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc/alloc.h"
#include "alloc/domain_table.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/memory.h"
#include "trace/attribution.h"
#include "tracealloc/domain.h"

enum { FILE_MAX_BYTES = 1 << 20, RULES_MAX = 1024, NAME_MAX_BYTES = 255 };

/* A rule before its domain is made. */
struct line {
    uint32_t number;
    const char *name; /* NULL: none given */
    struct ta__attribution_rule rule;
};

struct reader {
    const char *path;
    char *text; /* NUL behind it; words are ended in place */
    size_t length;
    size_t at;
    uint32_t line_number;
    size_t line_start;
    struct line *lines;
    uint32_t count;
    struct ta__message error;
};

/* ---- saying what is wrong ---------------------------------------------------------------------------------------- */

static int refuse_at(struct reader *reader, size_t at, const char *what, const char *subject)
{
    struct ta__message *message = &reader->error;
    ta__message_begin_plain(message);
    ta__message_text(message, reader->path);
    ta__message_text(message, ":");
    ta__message_number(message, reader->line_number);
    ta__message_text(message, ":");
    ta__message_number(message, at - reader->line_start + 1);
    ta__message_text(message, ": ");
    ta__message_text(message, what);
    if (subject != NULL) {
        ta__message_text(message, " '");
        ta__message_text(message, subject);
        ta__message_text(message, "'");
    }
    return 0;
}

static int refuse_file(struct reader *reader, const char *what)
{
    ta__message_begin_plain(&reader->error);
    ta__message_text(&reader->error, reader->path);
    ta__message_text(&reader->error, ": ");
    ta__message_text(&reader->error, what);
    return 0;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* The next word of the line, ended in place; NULL at its end. *start is where it begins. */
static char *next_word(struct reader *reader, size_t line_end, size_t *start)
{
    while (reader->at < line_end && is_blank(reader->text[reader->at]))
        reader->at++;
    *start = reader->at;
    if (reader->at == line_end || reader->text[reader->at] == '#')
        return NULL;
    while (reader->at < line_end && !is_blank(reader->text[reader->at]))
        reader->at++;
    reader->text[reader->at] = '\0';
    reader->at += reader->at < line_end;
    return reader->text + *start;
}

static int read_number(struct reader *reader, const char *word, size_t start, uint32_t *number)
{
    uint64_t value = 0;
    for (const char *digit = word; *digit != '\0'; digit++) {
        if (*digit < '0' || *digit > '9')
            return refuse_at(reader, start + (size_t)(digit - word), "expected the number of a domain, found", word);
        value = value * 10 + (uint64_t)(*digit - '0');
        if (value > UINT32_MAX)
            return refuse_at(reader, start, "the number of a domain is at most 4294967295, found", word);
    }
    *number = (uint32_t)value;
    return 1;
}

static int read_patterns(struct reader *reader, char *text, size_t start, const char **patterns)
{
    if (patterns[0] != NULL)
        return refuse_at(reader, start, "given twice in one rule", NULL);
    char *at = text;
    for (int count = 0;; count++) {
        size_t length = strcspn(at, ",");
        size_t column = start + (size_t)(at - text);
        if (length == 0)
            return refuse_at(reader, column, "expected a pattern", NULL);
        if (count == TA__PATTERNS_MAX)
            return refuse_at(reader, column, "more than 16 patterns in one list", NULL);
        patterns[count] = at;
        if (at[length] == '\0')
            return 1;
        at[length] = '\0';
        at += length + 1;
    }
}

static int read_word(struct reader *reader, struct line *line, char *word, size_t start, int *has_order)
{
    static const char module[] = "module=";
    static const char function[] = "function=";
    if (strncmp(word, module, sizeof module - 1) == 0)
        return read_patterns(reader, word + sizeof module - 1, start + sizeof module - 1, line->rule.modules);
    if (strncmp(word, function, sizeof function - 1) == 0)
        return read_patterns(reader, word + sizeof function - 1, start + sizeof function - 1, line->rule.functions);
    line->rule.outermost = strcmp(word, "outermost") == 0;
    if (!line->rule.outermost && strcmp(word, "innermost") != 0)
        return refuse_at(reader, start, "expected module=, function=, innermost or outermost, found", word);
    if (*has_order)
        return refuse_at(reader, start, "only one of innermost and outermost can hold, found also", word);
    *has_order = 1;
    return 1;
}

/* Each number has one name, each name one number: in the file and with what the program has said. */
static int check_name(struct reader *reader, const struct line *line, size_t number_at, size_t name_at)
{
    for (uint32_t i = 0; i < reader->count; i++) {
        const struct line *other = &reader->lines[i];
        int same_number = other->number == line->number;
        int same_name = strcmp(other->name, line->name) == 0;
        if (same_number && !same_name)
            return refuse_at(reader, name_at, "the domain has another name already:", other->name);
        if (same_name && !same_number)
            return refuse_at(reader, number_at, "another domain has the name already:", line->name);
    }
    uint32_t holder;
    if (ta_domain_find(line->name, &holder) && holder != line->number)
        return refuse_at(reader, number_at, "another domain of the program has the name already:", line->name);
    return 1;
}

static int read_line(struct reader *reader, size_t line_end)
{
    size_t number_at, name_at, at;
    char *word = next_word(reader, line_end, &number_at);
    if (word == NULL)
        return 1;
    if (reader->count == RULES_MAX)
        return refuse_at(reader, number_at, "more than 1024 rules", NULL);
    struct line *line = &reader->lines[reader->count];
    memset(line, 0, sizeof *line);
    if (!read_number(reader, word, number_at, &line->number))
        return 0;
    word = next_word(reader, line_end, &name_at);
    if (word == NULL || strchr(word, '=') != NULL)
        return refuse_at(reader, name_at, "expected the name of the domain", NULL);
    if (strlen(word) > NAME_MAX_BYTES)
        return refuse_at(reader, name_at, "the name of a domain has at most 255 bytes", NULL);
    line->name = word;
    if (!check_name(reader, line, number_at, name_at))
        return 0;
    int has_order = 0;
    while ((word = next_word(reader, line_end, &at)) != NULL)
        if (!read_word(reader, line, word, at, &has_order))
            return 0;
    if (line->rule.modules[0] == NULL && line->rule.functions[0] == NULL)
        return refuse_at(reader, at, "expected module= or function=", NULL);
    reader->count++;
    return 1;
}

static int read_lines(struct reader *reader)
{
    while (reader->at < reader->length) {
        reader->line_number++;
        reader->line_start = reader->at;
        char *end = memchr(reader->text + reader->at, '\n', reader->length - reader->at);
        size_t line_end = end != NULL ? (size_t)(end - reader->text) : reader->length;
        const char *zero = memchr(reader->text + reader->at, '\0', line_end - reader->at);
        if (zero != NULL)
            return refuse_at(reader, (size_t)(zero - reader->text), "a zero byte: this is no text", NULL);
        if (!read_line(reader, line_end))
            return 0;
        reader->at = line_end + 1;
    }
    return 1;
}

static int read_file(struct reader *reader)
{
    int descriptor = open(reader->path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return refuse_file(reader, ta__errno_text(errno));
    int error = 0;
    struct stat status;
    if (fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode))
        error = EISDIR;
    while (error == 0 && reader->length <= FILE_MAX_BYTES) {
        ssize_t got = read(descriptor, reader->text + reader->length, FILE_MAX_BYTES + 1 - reader->length);
        if (got < 0 && errno != EINTR)
            error = errno;
        if (got == 0)
            break;
        if (got > 0)
            reader->length += (size_t)got;
    }
    close(descriptor);
    if (error != 0)
        return refuse_file(reader, ta__errno_text(error));
    if (reader->length > FILE_MAX_BYTES)
        return refuse_file(reader, "longer than 1 MiB");
    return 1;
}

/* ---- in force ---------------------------------------------------------------------------------------------------- */

static struct ta__lock one_at_a_time;

static int put_in_force(struct reader *reader)
{
    static const char no_memory[] = "no memory for the rules";
    struct ta__attribution_rule *rules = ta__memory_map((reader->count + 1) * sizeof *rules);
    uint32_t gate;
    if (rules == NULL)
        return refuse_file(reader, no_memory);
    for (uint32_t i = 0; i < reader->count; i++)
        if (ta_domain_set_name(reader->lines[i].number, reader->lines[i].name) != 0)
            return refuse_file(reader, ta__error_text());
    struct ta__thread *self = ta__begin(&gate);
    if (self == NULL)
        return refuse_file(reader, "not from inside the allocator");
    int result = ta__trace_tables_ready();
    for (uint32_t i = 0; i < reader->count && result; i++) {
        int index = ta__domain_index(reader->lines[i].number);
        rules[i] = reader->lines[i].rule;
        rules[i].domain = (uint32_t)index;
        result = index >= 0;
    }
    result = result && ta__attribution_set(rules, reader->count);
    for (uint32_t index = 1; index < ta__domain_count() && result; index++)
        ta__store_relaxed(&ta__domain_at(index)->is_ruled, 0u);
    for (uint32_t i = 0; i < reader->count && result; i++)
        ta__store_relaxed(&ta__domain_at(rules[i].domain)->is_ruled, 1u);
    ta__gate_change(TA__GATE_DOMAINS, 0); /* every thread learns of the rules */
    ta__end(self, gate);
    return result ? 1 : refuse_file(reader, no_memory);
}

TA_API int ta_domain_load_rules(const char *path)
{
    if (ta__thread_get() == NULL) {
        errno = EAGAIN;
        return ta__error_set("not from inside the allocator", NULL);
    }
    struct reader reader = {.path = path};
    size_t lines_bytes = RULES_MAX * sizeof *reader.lines;
    reader.text = ta__memory_map(FILE_MAX_BYTES + 4096);
    reader.lines = ta__memory_map(lines_bytes);
    int result = 0;
    if (reader.text == NULL || reader.lines == NULL) {
        refuse_file(&reader, "no memory to read it");
    } else {
        ta__lock_acquire(&one_at_a_time);
        result = read_file(&reader) && read_lines(&reader) && put_in_force(&reader);
        ta__lock_release(&one_at_a_time);
    }
    ta__memory_unmap(reader.lines, reader.lines != NULL ? lines_bytes : 0);
    if (result)
        return 0;
    ta__memory_unmap(reader.text, reader.text != NULL ? FILE_MAX_BYTES + 4096 : 0);
    errno = EINVAL;
    return ta__error_take(&reader.error);
}

void ta__domain_rules_after_fork(void)
{
    one_at_a_time.state = 0;
}
