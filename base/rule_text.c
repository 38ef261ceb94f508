/* rule_text.c: see rule_text.h. Words are ended in place: the text is the memory of all names and patterns. */
#include "base/rule_text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/readable_name.h"

enum { FILE_MAX_BYTES = 1 << 20, COMPILED_MAX_BYTES = 1 << 28, NAME_MAX_BYTES = 255 };
static const char compiled_mark[] = "# tracealloc compiled rules 1\n";

/* ---- saying what is wrong ---------------------------------------------------------------------------------------- */

static int refuse_at(struct ta__rule_text *reader, size_t at, const char *what, const char *subject)
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

static int refuse_file(struct ta__rule_text *reader, const char *what)
{
    ta__message_begin_plain(&reader->error);
    ta__message_text(&reader->error, reader->path);
    ta__message_text(&reader->error, ": ");
    ta__message_text(&reader->error, what);
    return 0;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static int is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* The next word of the line, ended in place; NULL at its end. *start is where it begins. Blanks within quotes are part of
 * the word. */
static char *next_word(struct ta__rule_text *reader, size_t line_end, size_t *start)
{
    while (reader->at < line_end && is_blank(reader->text[reader->at]))
        reader->at++;
    *start = reader->at;
    if (reader->at == line_end || reader->text[reader->at] == '#')
        return NULL;
    int is_quoted = 0;
    while (reader->at < line_end && (is_quoted || !is_blank(reader->text[reader->at]))) {
        is_quoted ^= reader->text[reader->at] == '"';
        reader->at++;
    }
    reader->text[reader->at] = '\0';
    reader->at += reader->at < line_end;
    return reader->text + *start;
}

static int read_number(struct ta__rule_text *reader, const char *word, size_t start, uint32_t *number)
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

/* The pattern at `at`, without its quotes; *rest is what stands behind it. NULL for a quote without an end. */
static char *take_pattern(char *at, char **rest)
{
    if (*at != '"') {
        *rest = at + strcspn(at, ",");
        return at;
    }
    char *end = strchr(at + 1, '"');
    if (end == NULL)
        return NULL;
    *end = '\0';
    *rest = end + 1;
    return at + 1;
}

static int read_patterns(struct ta__rule_text *reader, char *text, size_t start, const char **patterns)
{
    if (patterns[0] != NULL)
        return refuse_at(reader, start, "given twice in one rule", NULL);
    char *at = text, *rest;
    for (int count = 0;; count++) {
        size_t column = start + (size_t)(at - text);
        char *pattern = take_pattern(at, &rest);
        if (pattern == NULL)
            return refuse_at(reader, column, "the quote has no end", NULL);
        if (pattern == rest || *pattern == '\0')
            return refuse_at(reader, column, "expected a pattern", NULL);
        if (count == TA__PATTERNS_MAX)
            return refuse_at(reader, column, "more than 16 patterns in one list", NULL);
        patterns[count] = pattern;
        if (*rest == '\0')
            return 1;
        if (*rest != ',')
            return refuse_at(reader, start + (size_t)(rest - text), "expected a comma behind the quote", NULL);
        *rest = '\0';
        at = rest + 1;
    }
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static int read_word(struct ta__rule_text *reader, struct ta__rule *rule, char *word, size_t start, int *has_order)
{
    static const struct {
        const char *text;
        size_t length;
    } keys[] = {{"module=", 7}, {"function=", 9}, {"file=", 5}};
    const char **lists[] = {rule->modules, rule->functions, rule->files};
    for (size_t i = 0; i < 3; i++)
        if (strncmp(word, keys[i].text, keys[i].length) == 0)
            return read_patterns(reader, word + keys[i].length, start + keys[i].length, lists[i]);
    rule->outermost = strcmp(word, "outermost") == 0;
    if (!rule->outermost && strcmp(word, "innermost") != 0)
        return refuse_at(reader, start, "expected module=, function=, file=, innermost or outermost, found", word);
    if (*has_order)
        return refuse_at(reader, start, "only one of innermost and outermost can hold, found also", word);
    *has_order = 1;
    return 1;
}

/* Each number has one name, each name one number. */
static int check_name(struct ta__rule_text *reader, const struct ta__rule *rule, size_t number_at, size_t name_at)
{
    for (uint32_t i = 0; i < reader->rule_count; i++) {
        const struct ta__rule *other = &reader->rules[i];
        int same_number = other->number == rule->number;
        int same_name = strcmp(other->name, rule->name) == 0;
        if (same_number && !same_name)
            return refuse_at(reader, name_at, "the domain has another name already:", other->name);
        if (same_name && !same_number)
            return refuse_at(reader, number_at, "another domain has the name already:", rule->name);
    }
    return 1;
}

static int read_rule(struct ta__rule_text *reader, char *word, size_t number_at, size_t line_end)
{
    size_t name_at, at;
    if (reader->rule_count == TA__RULES_MAX)
        return refuse_at(reader, number_at, "more than 1024 rules", NULL);
    struct ta__rule *rule = &reader->rules[reader->rule_count];
    memset(rule, 0, sizeof *rule);
    rule->line = reader->line_number;
    if (!read_number(reader, word, number_at, &rule->number))
        return 0;
    word = next_word(reader, line_end, &name_at);
    if (word == NULL || strchr(word, '=') != NULL)
        return refuse_at(reader, name_at, "expected the name of the domain", NULL);
    if (strlen(word) > NAME_MAX_BYTES)
        return refuse_at(reader, name_at, "the name of a domain has at most 255 bytes", NULL);
    rule->name = word;
    if (!check_name(reader, rule, number_at, name_at))
        return 0;
    int has_order = 0;
    while ((word = next_word(reader, line_end, &at)) != NULL)
        if (!read_word(reader, rule, word, at, &has_order))
            return 0;
    if (rule->modules[0] == NULL && rule->functions[0] == NULL && rule->files[0] == NULL)
        return refuse_at(reader, at, "expected module=, function= or file=", NULL);
    reader->wants_files |= rule->files[0] != NULL;
    reader->rule_count++;
    return 1;
}

/* ---- what was compiled ------------------------------------------------------------------------------------------- */

static int digit_of(char byte)
{
    return byte >= '0' && byte <= '9' ? byte - '0' : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static int read_build_id(const char *word, struct ta__rule_object *object)
{
    size_t length = strlen(word);
    if (length % 2 != 0 || length < 2 || length / 2 > TA__RULE_BUILD_ID_MAX)
        return 0;
    for (size_t i = 0; i < length / 2; i++) {
        int high = digit_of(word[2 * i]), low = digit_of(word[2 * i + 1]);
        if (high < 0 || low < 0)
            return 0;
        object->build_id[i] = (uint8_t)(high << 4 | low);
    }
    object->build_id_length = (uint32_t)(length / 2);
    return 1;
}

static int read_object(struct ta__rule_text *reader, size_t line_end)
{
    size_t at;
    struct ta__rule_object *object = &reader->objects[reader->object_count];
    char *word = next_word(reader, line_end, &at);
    if (word == NULL || !read_build_id(word, object))
        return refuse_at(reader, at, "expected a build id", NULL);
    word = next_word(reader, line_end, &at);
    object->path = word != NULL ? word : "";
    object->first = reader->range_count;
    object->count = 0;
    reader->object_count++;
    return 1;
}

static int read_hex(struct ta__rule_text *reader, size_t line_end, uint64_t *number)
{
    size_t at;
    const char *word = next_word(reader, line_end, &at);
    if (word == NULL || strlen(word) > 16)
        return refuse_at(reader, at, "expected a number", NULL);
    *number = 0;
    for (; *word != '\0'; word++) {
        int digit = digit_of(*word);
        if (digit < 0)
            return refuse_at(reader, at, "expected a number", NULL);
        *number = *number << 4 | (uint64_t)digit;
    }
    return 1;
}

static int read_range(struct ta__rule_text *reader, size_t line_end)
{
    uint64_t rule, start, end;
    size_t at = reader->at;
    if (reader->object_count == 0)
        return refuse_at(reader, reader->line_start, "a range before the first object", NULL);
    if (!read_hex(reader, line_end, &rule) || !read_hex(reader, line_end, &start) || !read_hex(reader, line_end, &end))
        return 0;
    struct ta__rule_object *object = &reader->objects[reader->object_count - 1];
    if (rule == 0 || rule > reader->rule_count || start >= end ||
        (object->count > 0 && start < reader->ranges[reader->range_count - 1].start))
        return refuse_at(reader, at, "not a range of a rule, or not in order", NULL);
    reader->ranges[reader->range_count++] = (struct ta__rule_range){start, end, (uint32_t)rule - 1};
    object->count++;
    return 1;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int read_line(struct ta__rule_text *reader, size_t line_end)
{
    size_t at;
    char *word = next_word(reader, line_end, &at);
    if (word == NULL)
        return 1;
    if (strcmp(word, "@object") == 0)
        return read_object(reader, line_end);
    if (strcmp(word, "@range") == 0)
        return read_range(reader, line_end);
    return read_rule(reader, word, at, line_end);
}

static int read_lines(struct ta__rule_text *reader)
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

/* As much as there is, up to what the memory holds. */
static int read_all(struct ta__rule_text *reader, int descriptor)
{
    while (reader->length < reader->text_bytes - 1) {
        ssize_t got = read(descriptor, reader->text + reader->length, reader->text_bytes - 1 - reader->length);
        if (got < 0 && errno != EINTR)
            return refuse_file(reader, ta__errno_text(errno));
        if (got == 0)
            break;
        if (got > 0)
            reader->length += (size_t)got;
    }
    reader->is_compiled = reader->length >= sizeof compiled_mark - 1 &&
                          memcmp(reader->text, compiled_mark, sizeof compiled_mark - 1) == 0;
    if (reader->length > COMPILED_MAX_BYTES)
        return refuse_file(reader, "longer than 256 MiB");
    if (reader->length > FILE_MAX_BYTES && !reader->is_compiled)
        return refuse_file(reader, "longer than 1 MiB");
    return 1;
}

static int read_file(struct ta__rule_text *reader)
{
    struct stat status;
    int descriptor = open(reader->path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return refuse_file(reader, ta__errno_text(errno));
    int result = 0;
    if (fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
        refuse_file(reader, ta__errno_text(EISDIR));
    } else {
        size_t expected =
            S_ISREG(status.st_mode) && status.st_size > FILE_MAX_BYTES ? (size_t)status.st_size : FILE_MAX_BYTES;
        reader->text_bytes = (expected < COMPILED_MAX_BYTES ? expected : COMPILED_MAX_BYTES) + 4096;
        reader->text = ta__memory_map(reader->text_bytes);
        result = reader->text != NULL ? read_all(reader, descriptor) : refuse_file(reader, "no memory to read it");
    }
    close(descriptor);
    return result;
}

static uint32_t count_lines(const struct ta__rule_text *reader, const char *word)
{
    uint32_t count = 1;
    size_t length = strlen(word);
    for (const char *at = reader->text; (at = memchr(at, '@', reader->length - (size_t)(at - reader->text))) != NULL;
         at++)
        count += strncmp(at, word, length) == 0;
    return count;
}

static int make_tables(struct ta__rule_text *reader)
{
    reader->rules_bytes = TA__RULES_MAX * sizeof *reader->rules;
    reader->objects_bytes = count_lines(reader, "@object") * sizeof *reader->objects;
    reader->ranges_bytes = count_lines(reader, "@range") * sizeof *reader->ranges;
    reader->rules = ta__memory_map(reader->rules_bytes);
    reader->objects = ta__memory_map(reader->objects_bytes);
    reader->ranges = ta__memory_map(reader->ranges_bytes);
    return (reader->rules != NULL && reader->objects != NULL && reader->ranges != NULL) ||
           refuse_file(reader, "no memory to read it");
}

int ta__rule_text_read(struct ta__rule_text *rules, const char *path)
{
    memset(rules, 0, sizeof *rules);
    rules->path = path;
    return read_file(rules) && make_tables(rules) && read_lines(rules);
}

void ta__rule_text_close(struct ta__rule_text *rules)
{
    ta__memory_unmap(rules->text, rules->text_bytes);
    ta__memory_unmap(rules->rules, rules->rules_bytes);
    ta__memory_unmap(rules->objects, rules->objects_bytes);
    ta__memory_unmap(rules->ranges, rules->ranges_bytes);
    rules->text = NULL;
    rules->rules = NULL;
    rules->objects = NULL;
    rules->ranges = NULL;
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

int ta__rule_matches(const char *pattern, const char *text)
{
    const char *star = NULL;
    const char *retry = NULL;
    while (*text != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            retry = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star;
            text = ++retry;
        } else {
            return 0;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

int ta__rule_names_module(const struct ta__rule *rule, const char *path)
{
    if (rule->modules[0] == NULL)
        return 1;
    const char *slash = strrchr(path, '/');
    for (int i = 0; rule->modules[i] != NULL; i++)
        if (ta__rule_matches(rule->modules[i],
                             slash != NULL && strchr(rule->modules[i], '/') == NULL ? slash + 1 : path))
            return 1;
    return 0;
}

int ta__rule_names_file(const struct ta__rule *rule, const char *path)
{
    for (int i = 0; rule->files[i] != NULL; i++) {
        if (ta__rule_matches(rule->files[i], path))
            return 1;
        for (const char *slash = strchr(path, '/'); slash != NULL && rule->files[i][0] != '/';
             slash = strchr(slash + 1, '/'))
            if (ta__rule_matches(rule->files[i], slash + 1))
                return 1;
    }
    return 0;
}

/* Every literal run of letters in front of template arguments and parameters stands in the mangled name, too, but for
 * what the mangling has abbreviations for. So most names need not be made readable at all. */
static int may_match(const char *pattern, const char *mangled)
{
    static const char abbreviated[] = "std string basic_string allocator istream ostream iostream basic_istream "
                                      "basic_ostream basic_iostream char_traits anonymous namespace lambda";
    char longest[64] = "";
    size_t most = 0;
    for (const char *at = pattern; *at != '\0' && *at != '<' && *at != '(';) {
        size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
        if (length > most && length < sizeof longest) {
            char run[64];
            memcpy(run, at, length);
            run[length] = '\0';
            if (strstr(abbreviated, run) == NULL) {
                memcpy(longest, run, length + 1);
                most = length;
            }
        }
        at += length > 0 ? length : 1;
    }
    return most < 3 || strstr(pattern, "operator") != NULL || strstr(mangled, longest) != NULL;
}

static int names_readable(const char *pattern, const char *name, char *scratch, size_t room)
{
    int whole = strchr(pattern, '(') != NULL;
    return may_match(pattern, name) && ta__readable_name(name, whole, scratch, room) != 0 &&
           ta__rule_matches(pattern, scratch);
}

int ta__rule_names_function(const struct ta__rule *rule, const char *name, char *scratch, size_t room)
{
    for (int i = 0; rule->functions[i] != NULL; i++)
        if (ta__rule_matches(rule->functions[i], name) ||
            (scratch != NULL && names_readable(rule->functions[i], name, scratch, room)))
            return 1;
    return 0;
}
