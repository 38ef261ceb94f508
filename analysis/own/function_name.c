/* function_name.c: see function_name.h. Also how names are shortened for people: library types by their usual names,
 * template arguments one level deep, no result, no parameters. */
#include "analysis/own/function_name.h"

#include <stdio.h>
#include <string.h>

#include "tracealloc/analysis.h"

#define ARGUMENTS_MOST         4 /* of a template */
#define STARTS(at, left, word) ((left) >= sizeof(word) - 1 && memcmp(at, word, sizeof(word) - 1) == 0)

static int is_name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_' || byte == '$' || (unsigned char)byte >= 0x80;
}

/* How many bytes the word "operator" and its symbol take; 0 where there is none. */
static size_t operator_length(const char *text, size_t left)
{
    size_t at = sizeof "operator" - 1;
    if (!STARTS(text, left, "operator") || (at < left && is_name_byte(text[at])))
        return 0;
    if (STARTS(text + at, left - at, "()"))
        return at + 2;
    if (at < left && text[at] == ' ') { /* new, delete, or a type */
        while (at < left && text[at] != '(' && text[at] != '<')
            at++;
        return at;
    }
    static const char *const symbols[] = {
        "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",   "++",
        "--",  "->",  "+=",  "-=",  "*=", "/=", "%=", "^=", "&=", "|=", "[]", "\"\"", "<",
        ">",   "=",   "!",   "+",   "-",  "*",  "/",  "%",  "^",  "&",  "|",  "~",    ","};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) /* the longest first: what follows are arguments */
        if (left - at >= strlen(symbols[i]) && memcmp(text + at, symbols[i], strlen(symbols[i])) == 0)
            return at + strlen(symbols[i]);
    return at;
}

/* The length of what a bracket at `text` opens, with the closing one; all that is left when nothing closes it. A '>'
 * inside of parentheses compares. */
static size_t bracketed(const char *text, size_t left)
{
    enum { DEPTH_MAX = 256 };
    static const char openings[] = "<({[", closings[] = ">)}]";
    char open[DEPTH_MAX];
    size_t depth = 0;
    for (size_t at = 0; at < left; at++) {
        size_t skipped = (at == 0 || !is_name_byte(text[at - 1])) ? operator_length(text + at, left - at) : 0;
        const char *opening = memchr(openings, text[at], 4), *closing = memchr(closings, text[at], 4);
        if (skipped > 0)
            at += skipped - 1;
        else if (opening != NULL && depth < DEPTH_MAX)
            open[depth++] = closings[opening - openings];
        else if (closing != NULL && depth > 0 && open[depth - 1] == *closing &&
                 !(*closing == '>' && text[at - 1] == '-') && --depth == 0)
            return at + 1;
    }
    return left;
}

struct ta__span ta__function_name(const char *function, size_t length)
{
    size_t start = 0, at = 0;
    while (at < length) {
        size_t left = length - at, skipped;
        char byte = function[at];
        if ((at == 0 || !is_name_byte(function[at - 1])) && (skipped = operator_length(function + at, left)) > 0) {
            at += skipped;
            at += STARTS(function + at, length - at, " <") ? 1 : 0;
        } else if (byte == ' ') {
            if (STARTS(function + at, left, " [clone") || STARTS(function + at, left, " const"))
                break;
            start = ++at;
        } else if (byte == '(') {
            skipped = bracketed(function + at, left);
            int is_inside = at + skipped + 1 < length && function[at + skipped] == ':';
            if (!is_inside && at > start && !STARTS(function + start, length - start, "decltype"))
                break; /* the parameters */
            at += skipped;
            if (STARTS(function + at, length - at, " const::"))
                at += sizeof " const" - 1;
        } else if (byte == '<' || byte == '{' || byte == '[') {
            at += bracketed(function + at, left);
        } else {
            at++;
        }
    }
    while (start < at && (function[start] == '*' || function[start] == '&'))
        start++;
    return start < at ? (struct ta__span){function + start, at - start} : (struct ta__span){function, length};
}

/* Suffixes that compilers add to copies of a C function: ".isra.0", ".constprop.0", ".part.3", ".cold". */
static size_t without_clone(struct ta__span name)
{
    static const char *const marks[] = {".isra.", ".constprop.", ".part.", ".cold", ".lto_priv.", "[abi:"};
    size_t length = name.length;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *mark = memmem(name.text, length, marks[i], strlen(marks[i]));
        if (mark != NULL && mark > name.text)
            length = (size_t)(mark - name.text);
    }
    return length;
}

/* A namespace that only says which version of a library it is, such as "__cxx11::" after "std::"; 0 = none. */
static size_t version_length(const char *at, size_t left, const char *begin)
{
    static const char *const starts[] = {"__cxx11::", "__1::", "__ndk1::", "json_abi_", "lts_", "v"};
    size_t length = 0, which = 0;
    if (at - begin < 2 || at[-1] != ':')
        return 0;
    while (which < sizeof starts / sizeof *starts &&
           (left < strlen(starts[which]) || strncmp(at, starts[which], strlen(starts[which]))))
        which++;
    while (length < left && is_name_byte(at[length]))
        length++;
    if (which == sizeof starts / sizeof *starts || left - length < 2 || at[length] != ':' || at[length + 1] != ':')
        return 0;
    int is_short = strcmp(starts[which], "v") == 0;
    if (is_short && (at - begin < 5 || memcmp(at - 5, "fmt::", 5) != 0))
        return 0;
    return length + 2;
}

void ta__function_plain(struct ta__text *text, struct ta__span name)
{
    size_t length = without_clone(name);
    for (size_t at = 0; at < length;) {
        const char *here = name.text + at;
        size_t left = length - at;
        size_t skipped = at == 0 || !is_name_byte(here[-1]) ? operator_length(here, left) : 0;
        if (skipped > 0) {
            ta__text_add(text, here, skipped);
            at += skipped;
        } else if (*here == '<' && at > 0 && here[-1] != ':') { /* Rust begins names with '<' */
            at += bracketed(here, left);
        } else if ((skipped = version_length(here, left, name.text)) > 0) {
            at += skipped;
        } else {
            ta__text_add(text, here, 1);
            at++;
        }
    }
}

/* ---- for people ---- */

/* Arguments that the library adds by itself say nothing. */
static int is_usual_argument(const char *text, size_t length)
{
    static const char *const usual[] = {"std::allocator<",
                                        "std::char_traits<",
                                        "std::less<",
                                        "std::hash<",
                                        "std::equal_to<",
                                        "std::default_delete<",
                                        "std::__allocated_ptr<",
                                        "(__gnu_cxx::_Lock_policy)"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (length >= strlen(usual[i]) && memcmp(text, usual[i], strlen(usual[i])) == 0)
            return 1;
    return 0;
}

static size_t argument_length(const char *text, size_t left)
{
    size_t at = 0;
    while (at < left && text[at] != ',' && text[at] != '>')
        at += memchr("<({[", text[at], 4) != NULL ? bracketed(text + at, left - at) : 1;
    return at;
}

static void shorten(struct ta__text *text, const char *name, size_t length, int depth);

/* "<Order, std::allocator<Order> >" as "<Order>"; below the first level "<…>". */
static void shorten_arguments(struct ta__text *text, const char *list, size_t length, int depth)
{
    if (depth >= 1) {
        ta__text_add_string(text, "<…>");
        return;
    }
    size_t at = 1, shown = 0;
    ta__text_add_string(text, "<");
    while (at + 1 < length) {
        while (at < length && (list[at] == ' ' || list[at] == ','))
            at++;
        size_t argument = argument_length(list + at, length - at);
        if (argument == 0)
            break;
        while (argument > 1 && list[at + argument - 1] == ' ')
            argument--;
        if (shown == ARGUMENTS_MOST) {
            ta__text_add_string(text, ", …");
            break;
        }
        int is_policy = list[at] == '(' && is_usual_argument(list + at, argument);
        if (!is_policy && (shown == 0 || !is_usual_argument(list + at, argument))) {
            ta__text_add_string(text, shown > 0 ? ", " : "");
            if (shown > 0 && argument > 48)
                ta__text_add_string(text, "…");
            else
                shorten(text, list + at, argument, depth + 1);
            shown++;
        }
        at += argument_length(list + at, length - at);
    }
    ta__text_add_string(text, ">");
}

/* What is written instead of what; the longest first. */
static const struct {
    const char *from, *to;
} usual_names[] = {
    {"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"},
    {"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>", "std::string"},
    {"std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"},
    {"std::basic_string<char, std::char_traits<char>, std::allocator<char>>", "std::string"},
    {"std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char>>", "std::string"},
    {"std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >", "std::string"},
    {"std::basic_string<char>", "std::string"},
    {"std::__cxx11::basic_string<char>", "std::string"},
    {"std::basic_string_view<char, std::char_traits<char> >", "std::string_view"},
    {"(anonymous namespace)::", ""},
    {"_GLOBAL__N_1::", ""},
};

/* One replacement at `text`: how much of it is done with; 0 = none. */
static size_t replace(struct ta__text *text, const char *at, size_t left, int depth)
{
    for (size_t i = 0; i < sizeof usual_names / sizeof *usual_names; i++) {
        size_t length = strlen(usual_names[i].from);
        if (left < length || memcmp(at, usual_names[i].from, length) != 0)
            continue;
        const char *to = usual_names[i].to;
        ta__text_add_string(text, depth > 0 && strncmp(to, "std::", 5) == 0 ? to + 5 : to);
        return length;
    }
    return 0;
}

/* "{lambda(int)#1}" and what DWARF or other compilers call it, as gdb says it: "<lambda(int)>"; 0 = there is none. */
static size_t lambda_at(struct ta__text *text, const char *at, size_t left)
{
    if (STARTS(at, left, "{lambda")) {
        size_t whole = bracketed(at, left), mark = whole;
        while (mark > 0 && at[mark - 1] != '#')
            mark--;
        size_t end = mark > 8 ? mark - 1 : whole - 1;
        ta__text_add_string(text, "<");
        if (end > 40)
            ta__text_add_string(text, "lambda(…)");
        else
            ta__text_add(text, at + 1, end - 1);
        ta__text_add_string(text, ">");
        at += whole;
        left -= whole;
        return whole + (STARTS(at, left, "::operator()") ? sizeof "::operator()" - 1 : 0);
    }
    if (STARTS(at, left, "'lambda"))
        return ta__text_add_string(text, "<lambda>"), (size_t)((const char *)memchr(at + 1, '\'', left - 1) - at) + 1;
    return 0;
}

static void shorten(struct ta__text *text, const char *name, size_t length, int depth)
{
    for (size_t at = 0; at < length;) {
        const char *here = name + at;
        size_t left = length - at, done = 0;
        int is_start = at == 0 || !is_name_byte(here[-1]);
        if (is_start && (done = operator_length(here, left)) > 0)
            ta__text_add(text, here, done);
        else if (is_start && (done = replace(text, here, left, depth)) > 0)
            ;
        else if ((done = lambda_at(text, here, left)) > 0)
            ;
        else if (is_start && depth > 0 && STARTS(here, left, "std::"))
            done = 5;
        else if ((done = version_length(here, left, name)) > 0)
            ;
        else if (is_start && STARTS(here, left, "basic_json<"))
            ta__text_add_string(text, "json"), done = 10 + bracketed(here + 10, left - 10);
        else if (*here == '<' && at > 0 && here[-1] != ':')
            shorten_arguments(text, here, done = bracketed(here, left), depth);
        else if (*here == '(' && at > 0 && depth == 0)
            done = bracketed(here, left); /* parameters of the function around */
        else
            ta__text_add(text, here, done = 1);
        at += done;
    }
}

/* Without the template arguments of the function itself: what was asked for stands in its class. */
static size_t without_own_arguments(struct ta__span name, size_t length)
{
    size_t at = 0, last = length;
    while (at < length) {
        size_t skipped = at == 0 || !is_name_byte(name.text[at - 1]) ? operator_length(name.text + at, length - at) : 0;
        if (skipped > 0) {
            at += skipped;
        } else if (memchr("<({[", name.text[at], 4) != NULL) {
            size_t whole = bracketed(name.text + at, length - at);
            if (name.text[at] == '<' && at + whole == length && at > 0 && name.text[at - 1] != ':')
                last = at;
            at += whole;
        } else {
            at++;
        }
    }
    return last > 0 && name.text[last - 1] == ' ' ? last - 1 : last;
}

size_t ta_function_text(const char *function, char *out, size_t size)
{
    struct ta__text text = {0};
    if (strncmp(function, "__GI_", 5) == 0 && function[5] != '\0') /* what glibc calls it inside */
        function += 5;
    struct ta__span name = ta__function_name(function, strlen(function));
    size_t length = without_clone(name);
    length = without_own_arguments(name, length);
    ta__text_add(&text, "", 0);
    shorten(&text, name.text, length, 0);
    if (text.failed) { /* the name as it is, rather than a piece of it */
        ta__text_free(&text);
        return (size_t)snprintf(out, size, "%s", function);
    }
    if (text.length == 0)
        ta__text_add_string(&text, function);
    return ta__text_deliver(&text, out, size);
}
