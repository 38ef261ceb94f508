/* filter_language.c: conditions in words, for command lines.
 *
 *     expression = term { "or" term }            term = factor { ["and"] factor }
 *     factor     = "not" factor | "(" expression ")" | ["any."] field operator value
 *
 * A value ends at a blank or at a parenthesis that it did not open; "…" quotes, with \" and \\ inside. docs/filters.md
 * is the description for users. Errors name the column, counted from 1 in bytes. */
#include <stdlib.h>
#include <string.h>

#include "analysis/filter/condition.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"

#define NESTING_MAX    200
#define CONDITIONS_MAX 10000 /* a tree this deep is still searched safely */

struct parser {
    const char *text, *at;
    int nesting, conditions;
};

static struct ta__condition *parse_expression(struct parser *parser);

static struct ta__condition *error_at(const struct parser *parser, const char *where, const char *message)
{
    ta__fail("filter, column %zu: %s", (size_t)(where - parser->text) + 1, message);
    return NULL;
}

static void skip_blanks(struct parser *parser)
{
    while (*parser->at == ' ' || *parser->at == '\t' || *parser->at == '\n' || *parser->at == '\r')
        parser->at++;
}

static int is_word_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_' || byte == '.';
}

static size_t word_length(const char *at)
{
    size_t length = 0;
    while (is_word_byte(at[length]))
        length++;
    return length;
}

static int take_word(struct parser *parser, const char *word)
{
    skip_blanks(parser);
    size_t length = strlen(word);
    if (word_length(parser->at) != length || strncmp(parser->at, word, length) != 0)
        return 0;
    parser->at += length;
    return 1;
}

/* ---- values ---- */

/* In new memory. */
static char *take_quoted(struct parser *parser, size_t *length)
{
    const char *start = parser->at++;
    struct ta__text value = {0};
    ta__text_add(&value, "", 0);
    while (*parser->at != '"' && *parser->at != '\0') {
        if (*parser->at == '\\' && (parser->at[1] == '"' || parser->at[1] == '\\'))
            parser->at++;
        ta__text_add(&value, parser->at++, 1);
    }
    if (*parser->at == '\0') {
        ta__text_free(&value);
        error_at(parser, start, "a quotation that does not end");
        return NULL;
    }
    parser->at++;
    if (value.failed) {
        ta__text_free(&value);
        return NULL;
    }
    *length = value.length;
    return value.bytes;
}

static char *take_value(struct parser *parser, size_t *length)
{
    if (*parser->at == '"')
        return take_quoted(parser, length);
    const char *start = parser->at;
    int open = 0;
    for (; *parser->at != '\0' && !strchr(" \t\n\r", *parser->at); parser->at++) {
        open += *parser->at == '(';
        if (*parser->at == ')' && open-- == 0)
            break;
    }
    *length = (size_t)(parser->at - start);
    if (*length == 0) {
        error_at(parser, start, "a value is missing");
        return NULL;
    }
    char *value = strndup(start, *length);
    if (value == NULL)
        ta__fail_memory();
    return value;
}

/* Digits and, for sizes, a unit: K, M, G, T with or without "iB". Moves *at behind it; 0, or -1 when it is no number.
 */
static int take_number(const char **at, int with_unit, uint64_t *number)
{
    static const char units[] = "BKMGT";
    const char *digit = *at;
    *number = 0;
    for (; *digit >= '0' && *digit <= '9'; digit++) {
        if (__builtin_mul_overflow(*number, 10u, number) ||
            __builtin_add_overflow(*number, (uint64_t)(*digit - '0'), number))
            return -1;
    }
    if (digit == *at)
        return -1;
    const char *unit = with_unit && *digit != '\0' ? strchr(units, *digit) : NULL;
    if (unit != NULL) {
        unsigned shift = 10 * (unsigned)(unit - units);
        if (*number > UINT64_MAX >> shift)
            return -1;
        *number <<= shift;
        digit += 1 + (shift > 0 && strncmp(digit + 1, "iB", 2) == 0 ? 2 : 0);
    }
    *at = digit;
    return 0;
}

/* N or N-M. */
static int take_range(const char *value, int with_unit, uint64_t *min, uint64_t *max)
{
    if (take_number(&value, with_unit, min) != 0)
        return -1;
    *max = *min;
    if (*value == '-') {
        value++;
        if (take_number(&value, with_unit, max) != 0)
            return -1;
    }
    return *value == '\0' ? 0 : -1;
}

/* ---- one predicate ---- */

enum operator{ IS, IS_NOT, LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL, NO_OPERATOR };

static enum operator take_operator(struct parser *parser)
{
    static const struct {
        const char *text;
        enum operator operator;
    } operators[] = {
        {"!=", IS_NOT}, {"<=", LESS_OR_EQUAL}, {">=", GREATER_OR_EQUAL}, {"<", LESS}, {">", GREATER}, {":", IS},
        {"=", IS},
    };
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strncmp(parser->at, operators[i].text, strlen(operators[i].text)) == 0) {
            parser->at += strlen(operators[i].text);
            return operators[i].operator;
        }
    return NO_OPERATOR;
}

static const struct {
    const char *name;
    enum ta__field field;
    int is_text, has_unit, at_frame;
} fields[] = {
    {"file", TA__FIELD_FILE, 1, 0, 1},     {"function", TA__FIELD_FUNCTION, 1, 0, 1},
    {"module", TA__FIELD_MODULE, 1, 0, 1}, {"at", TA__FIELD_FILE, 1, 0, 1},
    {"own", TA__FIELD_OWN, 1, 0, 0},       {"line", TA__FIELD_LINE, 0, 0, 1},
    {"domain", TA__FIELD_DOMAIN, 0, 0, 0}, {"thread", TA__FIELD_THREAD, 0, 0, 0},
    {"size", TA__FIELD_SIZE, 0, 1, 0},     {"total", TA__FIELD_TOTAL, 0, 1, 0},
    {"count", TA__FIELD_COUNT, 0, 0, 0},   {"depth", TA__FIELD_DEPTH, 0, 0, 0},
};
#define FIELD_COUNT (sizeof fields / sizeof *fields)

static size_t find_field(const char *name, size_t length)
{
    size_t found = 0;
    while (found < FIELD_COUNT &&
           (strlen(fields[found].name) != length || strncmp(fields[found].name, name, length) != 0))
        found++;
    return found;
}

/* "at:FILE:LINE": both on the same frame. */
static struct ta__condition *make_place(const struct parser *parser, const char *where, const char *value,
                                        size_t length, int any_frame)
{
    const char *colon = strrchr(value, ':');
    uint64_t min, max;
    if (colon == NULL || strlen(value) != length || take_range(colon + 1, 0, &min, &max) != 0)
        return error_at(parser, where, "\"at\" wants FILE:LINE");
    struct ta__condition *condition = ta__condition_frame(TA__FIELD_FILE, value, (size_t)(colon - value), any_frame);
    if (condition != NULL) {
        condition->min = min;
        condition->max = max;
    }
    return condition;
}

static struct ta__condition *make_number(const struct parser *parser, const char *where, size_t field,
                                         enum operator operator, const char * value, int any_frame)
{
    uint64_t min = 0, max = 0;
    if (take_range(value, fields[field].has_unit, &min, &max) != 0)
        return error_at(parser, where,
                        fields[field].has_unit ? "expected a size such as 4096, 64K or 1MiB" : "expected a number");
    if (operator!= IS && operator!= IS_NOT && min != max)
        return error_at(parser, where, "a range goes with \":\" only");
    if ((operator== LESS && min == 0) || (operator== GREATER && min == UINT64_MAX)) {
        min = 1; /* the empty range: nothing is below 0 */
        max = 0;
    } else if (operator== LESS || operator== LESS_OR_EQUAL) {
        max = operator== LESS ? min - 1 : min;
        min = 0;
    } else if (operator== GREATER || operator== GREATER_OR_EQUAL) {
        min = operator== GREATER ? min + 1 : min;
        max = UINT64_MAX;
    }
    if (fields[field].field != TA__FIELD_LINE)
        return ta__condition_number(fields[field].field, min, max);
    struct ta__condition *condition = ta__condition_frame(TA__FIELD_LINE, "*", 1, any_frame);
    if (condition != NULL) {
        condition->min = min;
        condition->max = max;
    }
    return condition;
}

static struct ta__condition *parse_predicate(struct parser *parser)
{
    const char *start = parser->at;
    size_t length = word_length(start);
    if (++parser->conditions > CONDITIONS_MAX)
        return error_at(parser, start, "too many conditions");
    int any_frame = length > 4 && strncmp(start, "any.", 4) == 0;
    size_t field = find_field(start + (any_frame ? 4 : 0), length - (any_frame ? 4 : 0));
    if (length == 0)
        return error_at(parser, start, *start == '\0' ? "a condition is missing" : "expected a condition");
    if (field == FIELD_COUNT) {
        ta__fail(
            "filter, column %zu: unknown field '%.*s' (own, file, function, module, at, line, domain, thread, size, "
            "total, count, depth)",
            (size_t)(start - parser->text) + 1, length > 40 ? 40 : (int)length, start);
        return NULL;
    }
    if (any_frame && !fields[field].at_frame)
        return error_at(parser, start, "\"any.\" goes with file, function, module, at and line only");

    parser->at += length;
    const char *operator_at = parser->at;
    enum operator operator= take_operator(parser);
    if (operator== NO_OPERATOR)
        return error_at(parser, operator_at, "expected one of : = != < <= > >= after the field");
    if (fields[field].is_text && operator!= IS && operator!= IS_NOT)
        return error_at(parser, operator_at, "names are compared with : = or !=");

    const char *value_at = parser->at;
    size_t value_length;
    char *value = take_value(parser, &value_length);
    if (value == NULL)
        return NULL;
    struct ta__condition *condition;
    if (strcmp(fields[field].name, "at") == 0)
        condition = make_place(parser, value_at, value, value_length, any_frame);
    else if (fields[field].field == TA__FIELD_OWN)
        condition = ta__condition_own(value, value_length);
    else if (fields[field].is_text)
        condition = ta__condition_frame(fields[field].field, value, value_length, any_frame);
    else if (fields[field].field == TA__FIELD_DOMAIN && !(*value >= '0' && *value <= '9') && operator<= IS_NOT)
        condition = ta__condition_domain_name(value, value_length);
    else
        condition = make_number(parser, value_at, field, operator, value, any_frame);
    free(value);
    return operator== IS_NOT ? ta__condition_not(condition) : condition;
}

/* ---- the grammar ---- */

static struct ta__condition *parse_factor(struct parser *parser)
{
    skip_blanks(parser);
    const char *start = parser->at;
    if (++parser->nesting > NESTING_MAX)
        return error_at(parser, start, "nested too deeply");

    struct ta__condition *condition;
    if (take_word(parser, "not")) {
        condition = ta__condition_not(parse_factor(parser));
    } else if (*parser->at == '(') {
        parser->at++;
        condition = parse_expression(parser);
        skip_blanks(parser);
        if (condition != NULL && *parser->at != ')') {
            ta__condition_free(condition);
            return error_at(parser, start, "a parenthesis that is not closed");
        }
        parser->at += condition != NULL;
    } else {
        condition = parse_predicate(parser);
    }
    parser->nesting--;
    return condition;
}

static int at_end_of_term(struct parser *parser)
{
    skip_blanks(parser);
    return *parser->at == '\0' || *parser->at == ')' ||
           (word_length(parser->at) == 2 && strncmp(parser->at, "or", 2) == 0);
}

static struct ta__condition *parse_term(struct parser *parser)
{
    struct ta__condition *condition = parse_factor(parser);
    while (condition != NULL && !at_end_of_term(parser)) {
        take_word(parser, "and");
        condition = ta__condition_join(TA__CONDITION_AND, condition, parse_factor(parser));
    }
    return condition;
}

static struct ta__condition *parse_expression(struct parser *parser)
{
    struct ta__condition *condition = parse_term(parser);
    while (condition != NULL && take_word(parser, "or"))
        condition = ta__condition_join(TA__CONDITION_OR, condition, parse_term(parser));
    return condition;
}

struct ta__condition *ta__condition_parse(const char *expression)
{
    struct parser parser = {.text = expression, .at = expression};
    struct ta__condition *condition = parse_expression(&parser);
    skip_blanks(&parser);
    if (condition != NULL && *parser.at != '\0') {
        ta__condition_free(condition);
        return error_at(&parser, parser.at, "a parenthesis that was not opened");
    }
    return condition;
}
