/* test_program_texts.c: what the program's parts make of options, texts, widths, tables, members and sites, against
 * program_texts.txt. Nothing is read but a few files made here; what is printed goes to a file and is noted.
 *
 *     test_program_texts TEXTS.txt [--write]        --write: what is said now is right
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <unity.h>

#include <tracealloc/image.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/end_words.h"
#include "analysis/cli/family.h"
#include "analysis/cli/file_opener.h"
#include "analysis/cli/inside.h"
#include "analysis/cli/markup.h"
#include "analysis/cli/members.h"
#include "analysis/cli/places.h"
#include "analysis/cli/project.h"
#include "analysis/cli/recordings.h"
#include "analysis/cli/row_text.h"
#include "analysis/cli/sites.h"
#include "analysis/cli/table.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/whole_file.h"
#include "tests/support/written.h"

static const char *texts_path;
static int writes;
static char folder[] = "/tmp/test-texts-XXXXXX";

void setUp(void)
{
}

void tearDown(void)
{
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Everything from here on is printed; standard error too. */
static void say(const char *title)
{
    printf("\n== %s\n", title);
    fflush(stdout);
}

/* Standard error is not buffered: what was printed before comes first. */
#define SAY(...) (printf(__VA_ARGS__), fflush(stdout))

/* ---- options ---- */

static const struct cli_command command = {
    .name = "some", .arguments = "[OPTION] FILE", .summary = "does it.", .help = "  -x   nothing\n"};
static const struct cli_command short_command = {.name = "short", .arguments = "", .summary = "is short.", .help = ""};

static void print_options(const struct cli_options *o)
{
    printf("key %s output %s spec %s where %s format %s title %s source %s sort %s order %d\n", o->key, o->output,
           o->spec, o->where, o->format, o->title, o->source, o->sort, (int)o->order);
    printf("limit %zd depth %zd minimum %g rows %zd\n", (ssize_t)o->limit, (ssize_t)o->depth, o->minimum,
           (ssize_t)cli_rows(o, 10));
    const int flags[] = {o->cumulative, o->json,      o->csv,      o->python,   o->grown, o->released,
                         o->bottom_up,  o->histogram, o->callers,  o->says_key, o->full,  o->collapse,
                         o->open,       o->no_source, o->together, o->blocks,   o->help};
    for (size_t i = 0; i < COUNT(flags); i++)
        putchar(flags[i] ? '1' : '0');
    printf(" operands %d %s\nrules %s\n", o->operand_count, o->operand_count > 0 ? o->operands[0] : "-",
           o->rules != NULL ? o->rules : "-");
}

/* Words apart by blanks. */
static int split(char *line, char **words)
{
    int count = 0;
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " "))
        words[count++] = word;
    words[count] = NULL;
    return count;
}

static void try_options(const char *line, unsigned allowed, int least, int most)
{
    char copy[300], *words[20];
    struct cli_options options;
    strcpy(copy, line);
    int count = split(copy, words);
    SAY("-- %s\n", line);
    int answer = cli_parse(&options, &command, allowed, least, most, count, words);
    SAY("%d\n", answer);
    if (answer == 0 && !options.help)
        print_options(&options);
    free(options.rules);
    cli_places_set_full(0);
    cli_set_color("auto");
}

static void tell_options(void)
{
    static const char *const lines[] = {
        "some a",
        "some",
        "some a b c",
        "some a b",
        "some --json --csv a",
        "some --json -n 3 a",
        "some -n 0 a",
        "some --json a",
        "some --csv a",
        "some --csv -n 0 a",
        "some --limit 18446744073709551615 a",
        "some -n 18446744073709551616 a",
        "some -n 1x a",
        "some -n -1 a",
        "some -n / a",
        "some -n : a",
        "some -n 9 a",
        "some --depth 0 a",
        "some --depth x a",
        "some --min 0 a",
        "some --min 100% a",
        "some --min 100.5 a",
        "some --min -1 a",
        "some --min x a",
        "some --min 5x a",
        "some --min nan a",
        "some --key traceback a",
        "some --by traceback a",
        "some --key stack a",
        "some --by file a",
        "some --by filename a",
        "some --key bogus a",
        "some --by bogus a",
        "some --sort live a",
        "some --sort peak a",
        "some --sort bogus a",
        "some --skip a* --own b --no-skip --skip c a",
        "some --color never a",
        "some --color pink a",
        "some --full-names a",
        "some -o x --spec s --where w --format f --title t --source p a",
        "some --cumulative --python --grown --released --bottom-up --callers --collapse --histogram --open --no-source "
        "--together --blocks a",
        "some --help",
        "some -h",
        "some -o",
        "some --output",
        "some -n",
        "some --key",
        "some --by",
        "some --bogus a",
        "some -x a",
        "some a --sort count",
    };
    say("options");
    for (size_t i = 0; i < COUNT(lines); i++)
        try_options(lines[i], ~0u, 1, 2);
    say("options that are not allowed");
    try_options("some --json a", CLI_CSV, 0, 1);
    try_options("some -o x", CLI_CSV, 0, 1);
    try_options("some -o", CLI_CSV, 0, 1);
    try_options("some -o", CLI_OUTPUT, 0, 1);
    try_options("some -n", CLI_OUTPUT, 0, 1);
    try_options("some -n", CLI_LIMIT, 0, 1);
    try_options("some --key own", CLI_CSV, 0, 1);
    try_options("some --key own", CLI_KEY, 0, 1);
    try_options("some --key", CLI_KEY, 0, 1);
    try_options("some --key", CLI_CSV, 0, 1);
    try_options("some", CLI_CSV, 0, 1);
    struct cli_options options;
    char *words[] = {(char[]){"short"}, (char[]){"--help"}, NULL};
    SAY("%d\n", cli_parse(&options, &short_command, 0, 0, 0, 2, words));
}

static void try_inside(const char *line, const int *allowed)
{
    char copy[300], *words[20];
    struct cli_inside inside;
    strcpy(copy, line);
    int count = split(copy, words);
    SAY("-- %s\n", line);
    int answer = cli_inside_parse(&inside, &command, allowed, 1, 2, count, words);
    SAY("%d\n", answer);
    if (answer != 0 || inside.help)
        return;
    printf("output %s key %s sort %s flame %s suppressions %s format %s at %s history %s registers %s\n", inside.output,
           cli_inside_key(&inside), inside.sort, inside.flame, inside.suppressions, inside.format, inside.at,
           inside.history, inside.image.registers);
    printf("limit %zd rows %zd json %d quiet %d no_blocks %d mappings %d blocks %d brief %d flags %x operands %d %s\n",
           (ssize_t)inside.limit, (ssize_t)cli_inside_rows(&inside, 10), inside.json, inside.quiet, inside.no_blocks,
           inside.mappings, inside.blocks, inside.brief, inside.image.flags, inside.operand_count, inside.operands[0]);
    cli_set_color("auto");
}

static void tell_inside(void)
{
    static const int all[] = {INSIDE_OUTPUT,       INSIDE_LIMIT,
                              INSIDE_QUIET,        INSIDE_JSON,
                              INSIDE_COLOR,        INSIDE_NO_PAUSE,
                              INSIDE_NO_BLOCKS,    INSIDE_KEY,
                              INSIDE_SORT,         INSIDE_MAPPINGS,
                              INSIDE_FLAME,        INSIDE_TAGGED,
                              INSIDE_UNALIGNED,    INSIDE_EXACT,
                              INSIDE_SUPPRESSIONS, INSIDE_FORMAT,
                              INSIDE_REGISTERS,    INSIDE_AT,
                              INSIDE_BLOCKS,       INSIDE_BRIEF,
                              INSIDE_HISTORY,      0};
    static const int few[] = {INSIDE_LIMIT, INSIDE_JSON, 0};
    static const char *const lines[] = {
        "some a",
        "some",
        "some a b",
        "some a b c",
        "some -n 0 a",
        "some -n 7 a",
        "some --json a",
        "some --json -n 7 a",
        "some -n 7x a",
        "some -n x7 a",
        "some -n / a",
        "some -n : a",
        "some -n 9 a",
        "some -n 18446744073709551616 a",
        "some --limit 12 a",
        "some -q --brief --blocks --mappings --no-blocks a",
        "some --no-pause a",
        "some --tagged a",
        "some --unaligned --exact a",
        "some --by line a",
        "some --by file a",
        "some --key stack a",
        "some --by own a",
        "some -o x --sort s --flame f --suppressions u --format j --registers r --at t --history h a",
        "some --color always a",
        "some --color pink a",
        "some --help",
        "some -h",
        "some --bogus a",
        "some -n",
        "some --by",
        "some -x a",
    };
    say("inside");
    for (size_t i = 0; i < COUNT(lines); i++)
        try_inside(lines[i], all);
    say("inside, some options");
    try_inside("some -n 1 --json a", few);
    try_inside("some -q a", few);
    try_inside("some -n", few);
    try_inside("some -o", few);
    try_inside("some --brief a", few);
    try_inside("some --help", few);
}

static void tell_amounts(void)
{
    static const char *const texts[] = {"0", "1000", "64KiB", "1.5 MiB", "2GiB", "7B",  "7 B", "7  KiB", "x",
                                        "",  "-1",   "1e17",  "1e18",    "1KB",  "KiB", "5%",  "1 KiB "};
    say("amounts");
    for (size_t i = 0; i < COUNT(texts); i++) {
        uint64_t amount = 12345;
        SAY("'%s': ", texts[i]);
        int answer = cli_parse_amount("some", "--max", texts[i], &amount);
        SAY("%d %" PRIu64 "\n", answer, amount);
    }
}

static void tell_values(void)
{
    const struct ta_statistic statistic = {
        .size = 1, .count = 2, .allocated_size = 3, .allocated_count = 7, .peak_size = 5};
    const struct ta_statistic odd = {.size = 1, .count = 8, .allocated_size = 3, .allocated_count = 7, .peak_size = 5};
    say("values");
    for (int order = 0; order < 8; order++)
        printf("%d: %" PRIu64 " %" PRIu64 " %d\n", order, cli_value(&statistic, (enum ta_order)order),
               cli_value(&odd, (enum ta_order)order), cli_order_wants_gone((enum ta_order)order));
}

/* ---- text ---- */

static void tell_utf8(void)
{
    static const char *const texts[] = {"a",
                                        "\x7f",
                                        "\x80",
                                        "\xbf",
                                        "\xc1\x80",
                                        "\xc2\x80",
                                        "\xdf\xbf",
                                        "\xc2",
                                        "\xc2"
                                        "a",
                                        "\xe0\x9f\xbf",
                                        "\xe0\xa0\x80",
                                        "\xe1\x80\x80",
                                        "\xe1\x80",
                                        "\xe1\x80"
                                        "a",
                                        "\xed\x9f\xbf",
                                        "\xed\xa0\x80",
                                        "\xef\xbf\xbf",
                                        "\xf0\x8f\xbf\xbf",
                                        "\xf0\x90\x80\x80",
                                        "\xf4\x8f\xbf\xbf",
                                        "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80",
                                        "\xf1\x80\x80",
                                        "\xf1\x80\x80"
                                        "a",
                                        "\xff",
                                        "a\"b\\c\n\x1f\x7f\xc3\xa9\xff\xe2\x82\xac\xe2\x82"};
    say("sequences");
    for (size_t i = 0; i < COUNT(texts); i++) {
        printf("%zu of %zu: ", cli_utf8_length((const unsigned char *)texts[i], strlen(texts[i])), strlen(texts[i]));
        cli_print_json_string(stdout, texts[i], strlen(texts[i]));
        putchar('\n');
    }
    static const char *const paths[] = {"a", "/a/b", "/a/b/", "/", "a/"};
    for (size_t i = 0; i < COUNT(paths); i++)
        printf("%s -> %s\n", paths[i], cli_base_name(paths[i]));
    cli_print_line("a\x01\x1f\x7f b", 6);
    cli_print_xml("a<b>&\"c\"\x01\x1f '\n");
    cli_print_workflow("50%\na\rb\x01 ");
    putchar('\n');
    cli_set_color("always");
    cli_print_line("a\x01\x1f\x7f b", 6);
    cli_set_color("auto");
}

static const char *const names[] = {
    "f",
    "main",
    "std::vector<int, std::allocator<int> >::push_back",
    "a::b::c::D::method(int)",
    "operator<",
    "operator<<",
    "std::operator<< <char>",
    "T::operator-><int>",
    "f(std::map<int, int> const&)",
    "(anonymous namespace)::f<x>()",
    "a->b<c->d>::e",
    "x::y",
    "very_long_function_name_without_any_colon",
    "x: <y>",
    "äöü::ß<é>::ñ",
    "a::b c::d::e::f",
    "n::operator<=><int>",
};

static void tell_names(void)
{
    static const size_t widths[] = {3, 4, 6, 10, 14, 20, 30, 60, SIZE_MAX};
    say("names");
    for (size_t i = 0; i < COUNT(names); i++) {
        char *plain = cli_without_arguments(names[i]), *core = cli_class_and_function(names[i]);
        printf("-- %s (%zu): %s, %s\n", names[i], cli_text_width(names[i]), plain, core);
        free(plain);
        free(core);
        for (size_t w = 0; w < COUNT(widths); w++) {
            cli_print_name(names[i], widths[w]);
            printf("|");
            cli_print_fitted(names[i], widths[w], CLI_CUT_RIGHT);
            printf("|");
            cli_print_fitted(names[i], widths[w], CLI_CUT_LEFT);
            printf("|\n");
        }
    }
    say("paths");
    static const char *const paths[] = {"/usr/include/c++/12/bits/vector.h", "src/net/http.c:12", "a/b", "one",
                                        "/x/yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy/z"};
    for (size_t i = 0; i < COUNT(paths); i++)
        for (size_t w = 0; w < COUNT(widths); w++) {
            cli_print_fitted(paths[i], widths[w], CLI_CUT_LEFT);
            printf("|");
            size_t left = cli_print_path(paths[i], widths[w]);
            printf("| %zd\n", (ssize_t)left);
        }
}

static void tell_graphs(void)
{
    const double values[] = {0, -1, 1, 12.5, 12.6, 25, 50, 75, 87.6, 99.9, 100};
    char text[100];
    say("graphs");
    cli_graph_text(values, COUNT(values), text, sizeof text);
    printf("|%s|\n", text);
    cli_graph_text(values, 2, text, sizeof text);
    printf("|%s|\n", text);
    cli_graph_text(values, 0, text, sizeof text);
    printf("|%s|\n", text);
    cli_graph_text(values, COUNT(values), text, 6);
    printf("|%s|\n", text);
    cli_set_color("always");
    cli_graph_text(values, COUNT(values), text, sizeof text);
    printf("|%s|\n", text);
    const double shares[] = {-1, 0, 0.01, 0.02, 0.124, 0.125, 0.126, 0.5, 0.99, 1, 2};
    for (size_t i = 0; i < COUNT(shares); i++) {
        cli_print_bar(shares[i], 8);
        printf("|\n");
    }
    printf("%d styles %s%s%s\n", cli_has_bars(), cli_style(CLI_BOLD), cli_style(CLI_CYAN), cli_style(CLI_PLAIN));
    static const char *const columns[] = {"0", "-5", "39", "40", "41", "99", "100", "x"};
    for (size_t i = 0; i < COUNT(columns); i++) {
        setenv("COLUMNS", columns[i], 1);
        printf("COLUMNS=%s: %zu %d\n", columns[i], cli_width(), cli_has_bars());
    }
    unsetenv("COLUMNS");
    cli_set_color("auto");
    printf("%zd %d '%s' %d\n", (ssize_t)cli_width(), cli_has_bars(), cli_style(CLI_BOLD), cli_set_color("sometimes"));
}

static void tell_wrapped(void)
{
    static const char text[] =
        "one, two, three (four, five), six  seven  eight nine, ten\n"
        "  indented, with [brackets, that stay] together, and <more, of> them, to the end, of it\n"
        "short\n\n  a_very_long_word_that_cannot_be_broken_anywhere_at_all_whatever_it_takes, b\nlast, line";
    static const char *const columns[] = {"40", "44", "50", "200"};
    say("wrapped");
    cli_print_wrapped(text);
    cli_set_color("always");
    for (size_t i = 0; i < COUNT(columns); i++) {
        setenv("COLUMNS", columns[i], 1);
        printf("-- %s\n", columns[i]);
        cli_print_wrapped(text);
    }
    unsetenv("COLUMNS");
    cli_set_color("auto");
}

/* ---- tables ---- */

static const struct cli_column columns[] = {
    {"bytes", "BYTES", CLI_BYTES, CLI_STRONG},
    {"change", "CHANGE", CLI_BYTES_CHANGE, 0},
    {"number", "N", CLI_NUMBER, 0},
    {"more", "±", CLI_NUMBER_CHANGE, 0},
    {"share", "SHARE", CLI_SHARE, CLI_WITH_BAR},
    {"time", "", CLI_TIME, CLI_MACHINES_ONLY},
    {"text", "TEXT", CLI_TEXT, 0},
    {"json", "", CLI_JSON_TEXT, CLI_MACHINES_ONLY},
    {"place", "WHERE", CLI_PLACE, CLI_PEOPLE_ONLY},
};
static const struct cli_column named[] = {
    {"bytes", "", CLI_BYTES, 0}, {"time", "", CLI_TIME, 0}, {"place", "", CLI_PLACE, CLI_NAME_FIRST | CLI_PEOPLE_ONLY}};
static const struct cli_column paths[] = {{"bytes", "B", CLI_BYTES, 0}, {"path", "PATH", CLI_TEXT, CLI_PATH}};

static void add_cells(struct cli_table *table, uint64_t n, const char *text, const char *place, const char *function,
                      const char *via)
{
    const struct cli_cell cells[] = {{.number = n},
                                     {.change = (int64_t)n - 50},
                                     {.number = n / 3},
                                     {.change = 5 - (int64_t)n},
                                     {.share = (double)n / 2000},
                                     {.number = n * UINT64_C(1000000000000000)},
                                     {.text = text},
                                     {.text = n % 2 ? "[1, 2]" : NULL, .more = n % 2 ? "1;2" : NULL},
                                     {.text = place, .more = function, .via = via}};
    cli_table_add(table, cells);
}

static struct cli_table *make_table(void)
{
    struct cli_table *table = cli_table_new(columns, COUNT(columns));
    add_cells(table, 50, "plain", "src/file.c:12", "function_one", "via strdup");
    add_cells(table, 1999, "with, comma", "src/some/folder/deeper/other.c:34",
              "std::vector<int, std::allocator<int> >::push_back", NULL);
    cli_table_note(table, "a note of row %d", 2);
    cli_table_note(table, "%s",
                   "another note, which is so long that it does not fit into a narrow window at all, not at all");
    add_cells(table, 0, "with \"quotes\"\nand end", "src/file.c:99", "2 functions: f 60%, g 40%", "via a, b");
    add_cells(table, 7, "", "", "only_a_function", "");
    add_cells(table, 12345678, "ä€", "libc.so.6+0x123", "", "via realloc");
    return table;
}

static struct cli_table *make_named(void)
{
    struct cli_table *table = cli_table_new(named, COUNT(named));
    static const char *const rows[][3] = {
        {"std::map<int, int>::insert", "/usr/include/c++/12/bits/stl_map.h:556", "map::insert"},
        {"main", "src/main.c:3", NULL},
        {"nothing", "", NULL},
        {"a::b::c::function_with_a_long_name", "lib/very/deep/folder/a.cc", "c::function_with_a_long_name"},
        {"nowhere", NULL, NULL}};
    for (size_t i = 0; i < COUNT(rows); i++)
        cli_table_add(table, (struct cli_cell[]){{.number = i * 1000},
                                                 {.number = UINT64_C(1715000000) * 1000000000 + i},
                                                 {.text = rows[i][0], .more = rows[i][1], .via = rows[i][2]}});
    return table;
}

static void print_all(const struct cli_table *table)
{
    static const char *const widths[] = {"40", "60", "72", "80", "99", "100", "120", "160"};
    cli_table_print_text(table);
    cli_set_color("always");
    for (size_t i = 0; i < COUNT(widths); i++) {
        setenv("COLUMNS", widths[i], 1);
        printf("-- %s columns\n", widths[i]);
        cli_table_print_text(table);
    }
    unsetenv("COLUMNS");
    cli_set_color("auto");
}

static void tell_tables(void)
{
    struct cli_options options = {.json = 1};
    say("a table");
    struct cli_table *table = make_table();
    printf("%zu rows\n", cli_table_count(table));
    print_all(table);
    cli_table_print(table, &options);
    options = (struct cli_options){.csv = 1};
    cli_table_print(table, &options);
    cli_table_free(table);
    say("names first");
    table = make_named();
    print_all(table);
    cli_table_free(table);
    say("paths");
    table = cli_table_new(paths, COUNT(paths));
    for (uint64_t i = 0; i < 40; i++) /* more than there is room for at first */
        cli_table_add(table,
                      (struct cli_cell[]){{.number = i * i},
                                          {.text = i % 20 == 3 ? "/a/folder/and/another/one/with/a/file.c" : "x"}});
    setenv("COLUMNS", "40", 1);
    cli_set_color("always");
    options = (struct cli_options){.csv = 0};
    cli_table_print(table, &options);
    cli_set_color("auto");
    unsetenv("COLUMNS");
    cli_table_free(table);
    table = cli_table_new(columns, COUNT(columns));
    cli_table_print_text(table);
    cli_table_print_json(table);
    cli_table_print_csv(table);
    cli_table_free(table);
    cli_table_free(NULL);
    char text[64], few[8];
    const uint64_t times[] = {0, 999999999, 1000000000, UINT64_C(1715000000123456789)};
    for (size_t i = 0; i < COUNT(times); i++) {
        cli_time_text(times[i], text, sizeof text);
        cli_time_text(times[i], few, sizeof few);
        printf("%s %s\n", text, few);
    }
}

/* ---- members ---- */

#define FRAME(file, name, object, at)                                                                                  \
    {                                                                                                                  \
        .filename = (file), .function = (name), .module = (object), .lineno = (at), .raw_name = (name)                 \
    }

static void tell_members_of(struct cli_member *items, size_t count, uint64_t total)
{
    const struct cli_members members = {.items = items, .count = count, .total = total};
    char *functions = cli_members_functions(&members), *via = cli_members_via(&members);
    char *json = cli_members_json(&members), *plain = cli_members_plain(&members);
    printf("-- %zu of %" PRIu64 "\n%s\n%s\n%s\n%s\n", count, total, functions, via, json, plain);
    free(functions);
    free(via);
    free(json);
    free(plain);
    struct cli_table *table = cli_table_new(paths, COUNT(paths));
    cli_table_add(table, (struct cli_cell[]){{.number = 1}, {.text = "callers"}});
    cli_members_note_callers(table, &members);
    cli_table_print_text(table);
    cli_table_free(table);
}

static void tell_members(void)
{
    static char a[] = "alpha", b[] = "beta", c[] = "gamma", d[] = "delta", e[] = "", f[] = "eta", g[] = "iota";
    struct cli_member items[] = {
        {FRAME("a.c", "alpha", "/bin/p", 1), a, 500, 500, 5, 500, 1},
        {FRAME("b.c", "beta", "/bin/p", 2), b, 300, 300, 3, 300, 2},
        {FRAME("c.c", "gamma", "/bin/p", 3), c, 150, 150, 2, 150, 1},
        {FRAME("d.c", "delta", "/bin/p", 0), d, 40, 40, 1, 40, 1},
        {FRAME("", "", "", 0), e, 9, 9, 1, 9, 1},
        {FRAME("p", "p+0x12", "/bin/p", 0), f, 1, 1, 1, 1, 1},
        {FRAME("i.c", "iota", "/bin/p", 7), g, 0, 0, 1, 0, 1},
    };
    say("members");
    for (size_t count = 0; count <= COUNT(items); count++)
        tell_members_of(items, count, 1000);
    tell_members_of(items, 3, 500);
    tell_members_of(items, 3, 505);
    tell_members_of(items, 3, 506);
    tell_members_of(items, 2, 0);
    items[0].instances = 3;
    tell_members_of(items, 1, 500);
    tell_members_of(items + 4, 1, 500);
    tell_members_of(items + 4, 3, 100);
    items[4].value = items[3].value; /* half of it was asked for directly */
    tell_members_of(items + 3, 2, 80);
    items[4].value--;
    tell_members_of(items + 3, 2, 79);
    items[4].allocated_size = items[3].allocated_size; /* nothing is left of it */
    tell_members_of(items + 3, 2, 0);
    items[4].allocated_size--;
    tell_members_of(items + 3, 2, 0);
}

/* ---- places ---- */

static void tell_place(const struct ta_frame *frame)
{
    char text[200], few[6];
    cli_place_text(frame, text, sizeof text);
    cli_place_text(frame, few, sizeof few);
    char *name = cli_frame_name(frame);
    printf("'%s' '%s' '%s' %d\n", text, few, name, cli_frame_is_unnamed(frame));
    free(name);
}

static void tell_places(void)
{
    char inside[300], beside[300];
    sprintf(inside, "%s/src/a.c", folder);
    sprintf(beside, "%sx/src/a.c", folder);
    const struct ta_frame frames[] = {
        FRAME("/src/a.c", "f", "/bin/p", 12),
        FRAME(inside, "f<int>(x)", "/bin/p", 12),
        FRAME(beside, "f", "/bin/p", 1),
        FRAME("/home/of/one/b.c", "f", "/bin/p", 3),
        FRAME("/bin/p", "p+0x12", "/bin/p", 0),
        FRAME("/bin/p", "p+0x12", "/bin/p", 5),
        FRAME("/bin/p", "p+1x12", "/bin/p", 0),
        FRAME("/bin/p", "q+0x12", "/bin/p", 0),
        FRAME("/bin/p", "f", "/bin/p", 0),
        FRAME("/other/place", "f", "/bin/p", 0),
        FRAME("", "", "", 0),
        FRAME("/usr/lib/", "", "/usr/lib/", 0),
    };
    setenv("HOME", "/home/of/one", 1);
    static const char *const modes[] = {"as people see it", "in full", "on a terminal"};
    for (size_t mode = 0; mode < COUNT(modes); mode++) {
        say(modes[mode]);
        cli_places_set_full(mode == 1);
        cli_set_color(mode == 2 ? "always" : "auto");
        for (size_t i = 0; i < COUNT(frames); i++)
            tell_place(&frames[i]);
    }
    cli_set_color("auto");
    setenv("HOME", "/nonexistent", 1);
    static const char *const commands[] = {"nginx: worker", "./a b", "plain", ""};
    for (size_t i = 0; i < COUNT(commands); i++)
        printf("%d\n", cli_called_length(commands[i]));
    static const char *const keys[] = {"own", "line", "lineno", "stack", "traceback", "function"};
    for (size_t i = 0; i < COUNT(keys); i++)
        printf("%s %d %d\n", keys[i], cli_key_has_members(keys[i]), cli_key_is_stack(keys[i]));
}

/* ---- files ---- */

static void put(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    TEST_ASSERT_NOT_NULL(file);
    fputs(text, file);
    fclose(file);
}

/* Sizes beside those at which there is no room any more. */
static void tell_files(void)
{
    static const size_t sizes[] = {0,     1,     4095,  61438, 61439,  61440,  61441,
                                   65534, 65535, 65536, 65537, 131071, 131072, 300000};
    say("files");
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char *bytes = cli_allocate(sizes[i] + 1, 1);
        for (size_t at = 0; at < sizes[i]; at++)
            bytes[at] = (char)('a' + (at * 7 + at / 251) % 26);
        put("sized", bytes);
        size_t length = 1;
        char *text = cli_read_file("sized", &length);
        printf("%zu: %zu %d %d\n", sizes[i], length, memcmp(text, bytes, sizes[i] + 1) == 0, text[length]);
        free(text);
        free(bytes);
    }
    size_t length;
    SAY("%d\n", cli_read_file("missing", &length) == NULL);
    SAY("%d\n", cli_read_file(".", &length) == NULL);
    struct cli_output output;
    SAY("%d\n", cli_output_open(&output, "missing/file"));
    for (int status = CLI_OK; status <= CLI_TROUBLE; status++) {
        put("written", "before\n");
        int opened = cli_output_open(&output, "written");
        int done = cli_output_write(&output, "after\n", 6), closed = cli_output_close(&output, status);
        char *text = cli_read_file("written", &length);
        SAY("%d %d %d %s", opened, done, closed, text);
        free(text);
    }
    int opened = cli_output_open(&output, "-");
    cli_output_write(&output, "to standard output\n", 19);
    SAY("%d %d\n", opened, cli_output_close(&output, CLI_OK));
    opened = cli_output_open(&output, NULL);
    SAY("%d %d\n", opened, cli_output_close(&output, CLI_NO));
    opened = cli_output_open(&output, "/dev/full");
    int done = cli_output_write(&output, "nowhere", 7);
    SAY("%d %d\n", opened, done);
    SAY("%d\n", cli_output_close(&output, CLI_OK));
    opened = cli_output_open(&output, "/dev/full");
    cli_output_write(&output, "nowhere", 7);
    SAY("%d %d\n", opened, cli_output_close(&output, CLI_NO));
    unlink("sized");
    unlink("written");
}

/* Interruptions wait only while the file is written. */
static void tell_snapshots(void)
{
    static const char text[] = "{\"traceback_limit\": 1, \"traces\": [{\"size\": 5, \"frames\": [[\"a.c\", 1]]}]}";
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t blocked;
    say("snapshots");
    struct ta_snapshot *snapshot = ta_snapshot_import_json(text, sizeof text - 1);
    SAY("%d\n", cli_write_snapshot(snapshot, "written"));
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (size_t i = 0; i < COUNT(ends); i++)
        printf("%d", sigismember(&blocked, ends[i]));
    SAY("\n%d\n", cli_put_snapshot(snapshot, "written"));
    SAY("%d\n", cli_put_snapshot(ta_snapshot_import_json(text, sizeof text - 1), "missing/written"));
    snapshot = cli_load("written");
    SAY("%ld\n", ta_snapshot_trace_count(snapshot));
    ta_snapshot_free(snapshot);
    SAY("%d\n", cli_load("missing") == NULL);
    unlink("written");
}

static void tell_sites_of(const char *text)
{
    struct cli_sites sites;
    put("sites", text);
    fflush(stdout);
    int status = cli_sites_load(&sites, "sites", "own");
    SAY("%d, %zu rows\n", status, sites.count);
    if (status == CLI_OK)
        cli_sites_write(&sites, stdout);
    fflush(stdout);
    cli_sites_free(&sites);
    unlink("sites");
}

static void tell_sites(void)
{
    say("baselines");
    tell_sites_of("# tracealloc baseline 1\n# words\n100 2 300 40 (all)\n60 1 200 30 src/b.c f\n40 1 100 10 a.c\n");
    tell_sites_of("# tracealloc baseline 1\n\n40 1 100 10 z\n40 1 100 10 y y y");
    tell_sites_of("# tracealloc baseline 1\n");
    tell_sites_of("# tracealloc baseline 1\n1 2 3 4 twice\n5 6 7 8 other\n1 2 3 4 twice\n");
    tell_sites_of("# tracealloc baseline 1\n1 2 3 4 a\n1 2 3 a\n");
    tell_sites_of("# tracealloc baseline 1\n1 2 3 4");
    tell_sites_of("# tracealloc baseline 2\n");
    tell_sites_of("");
    char many[20000] = "# tracealloc baseline 1\n";
    for (int i = 0; i < 200; i++)
        sprintf(many + strlen(many), "%d %d %d %d site-%03d\n", i, i + 1, i + 2, i + 3, 199 - i);
    tell_sites_of(many);
}

static void tell_recordings(void)
{
    static const char *const patterns[] = {"a.ta", "a.%p.ta", "%%a%x.ta", "*[?]\\.ta", "a%", "%p"};
    say("patterns");
    for (size_t i = 0; i < COUNT(patterns); i++)
        for (pid_t process = 0; process <= 17; process += 17) {
            char *glob = cli_recordings_glob(patterns[i], process);
            char *of_pattern = cli_family_folder_of(patterns[i], process), *of_name = cli_family_folder(patterns[i]);
            printf("%s %d: %s %s %s\n", patterns[i], (int)process, glob, of_pattern, of_name);
            free(glob);
            free(of_pattern);
            free(of_name);
        }
    static const char *const files[] = {"17.ta", "17.ta.1", "17.ta.",   "17.ta.1x", "17.tb",
                                        ".ta",   "x17.ta",  "17.ta.12", "17.tax"};
    for (size_t i = 0; i < COUNT(files); i++)
        printf("%s %d\n", files[i], cli_family_is_recording(files[i]));
    char below[300], beside[300];
    sprintf(below, "%s/x.ta", folder);
    sprintf(beside, "%sx.ta", folder);
    printf("%s %d\n", cli_relative_path(below), cli_relative_path(beside) == beside);
    printf("%d%d%d%d\n", cli_is_nearly_gone(0, 65535), cli_is_nearly_gone(0, 65536), cli_is_nearly_gone(16384, 65536),
           cli_is_nearly_gone(16383, 65536));
}

/* ---- what is said at the end of a run ---- */

static void tell_end(struct cli_recordings *found, const char *index, const char *how)
{
    SAY("-- %s\n", how);
    for (int wish = 0; wish < 8; wish++) {
        SAY("%d: ", wish);
        cli_recordings_tell(found, index, wish & 1, wish & 2, wish & 4);
    }
}

static void tell_ends(void)
{
    struct written written;
    say("ends");
    written_open(&written);
    uint32_t app = fake_module(&written.fake, "/nonexistent/app", 0x1000, 0x2000);
    uint32_t leaf = fake_leaf(&written.fake, fake_context(&written.fake, 0, 0x1100, app), 0, 0, 1);
    const uint64_t sizes[] = {1000, 70000, 5000, 70000, 900};
    for (size_t i = 0, live = 0; i < COUNT(sizes);
         live = sizes[i++]) { /* by one block: the last of the highest is asked for */
        fake_malloc(&written.fake, leaf, 1, sizes[i]);
        if (i > 0)
            fake_free(&written.fake, leaf, 1, live);
        written_entry(&written);
    }
    char series[300], plain[300], odd[300], dash[300], index[300], *text;
    size_t length;
    sprintf(series, "%s/series.ta", folder);
    sprintf(plain, "%s/plain.ta", folder);
    sprintf(odd, "%s/-it's.ta", folder);
    sprintf(dash, "%s/-dash.ta", folder);
    sprintf(index, "%s/series run", folder);
    text = cli_read_file(written_file(&written), &length);
    for (int i = 0; i < 3; i++) {
        FILE *file = fopen((char *[]){series, plain, odd}[i], "w");
        fwrite(text, 1, length, file);
        fclose(file);
    }
    free(text);
    written_close(&written);
    struct cli_recording rows[] = {{series, 17, 5, 900, 70000}, {plain, 18, 1, 2000, 70000}, {odd, 19, 3, 3000, 4000}};
    struct cli_recordings found = {.rows = rows, .count = 1, .first = rows, .largest = rows};
    tell_end(&found, NULL, "a series");
    rows[0].entries = 4;
    cli_recordings_tell(&found, NULL, 0, 1, 0);
    rows[0].entries = 3;
    cli_recordings_tell(&found, NULL, 0, 1, 0);
    found.count = 2;
    tell_end(&found, index, "of two processes");
    found.count = 3;
    found.largest = &rows[2];
    tell_end(&found, NULL, "of three, the last is the largest");
    found.count = 1;
    found.first = found.largest = &rows[1];
    tell_end(&found, NULL, "one entry, nearly gone");
    rows[1].live = 60000;
    cli_recordings_tell(&found, NULL, 0, 0, 0);
    rows[1].path = dash;
    cli_recordings_tell(&found, NULL, 0, 0, 0);
    static char forty[] = "forty letters of a command, and no more.",
                more[] = "forty letters of a command, and one more.", path[] = "x.ta", odd_path[] = "x y.ta",
                segv[] = "SIGSEGV", term[] = "SIGTERM", sys[] = "SIGSYS", zero[] = "0";
    const struct cli_process processes[] = {
        {.process = 1, .path = path, .end = segv},
        {.process = 2, .path = path, .end = term},
        {.process = 3, .path = path, .end = zero},
        {.process = 4, .path = path},
        {.process = 5, .end = segv},
        {.process = 6, .path = path, .end = segv, .command = forty},
        {.process = 7, .path = odd_path, .end = sys, .command = more},
        {.process = 8, .path = path, .end = segv},
        {.process = 9, .path = path, .end = segv},
        {.process = 10, .path = path, .end = segv},
    };
    say("crashed");
    for (size_t count = 8; count <= COUNT(processes); count++)
        cli_recordings_tell_crashed(processes, count, 1);
    cli_recordings_tell_none("none", 1, 0, 0);
    cli_recordings_tell_none("none", 1, 11, 0);
    for (int i = 0; i < 3; i++)
        unlink((char *[]){series, plain, odd}[i]);
}

/* ---- all of it ---- */

static void tell_all(void)
{
    put(".tracealloc", ""); /* here a project begins, whatever is above */
    tell_options();
    tell_inside();
    tell_amounts();
    tell_values();
    tell_utf8();
    tell_names();
    tell_graphs();
    tell_wrapped();
    tell_tables();
    tell_members();
    tell_places();
    tell_files();
    tell_snapshots();
    tell_sites();
    tell_recordings();
    tell_ends();
    unlink(".tracealloc");
}

static void without_folder(char *line)
{
    for (char *at; (at = strstr(line, folder)) != NULL;) {
        memcpy(at, "FOLDER", 6);
        memmove(at + 6, at + strlen(folder), strlen(at + strlen(folder)) + 1);
    }
}

static void test_texts_are_what_they_were(void)
{
    char said[] = "/tmp/test-said-XXXXXX", was[4096], is[4096], where[32];
    int to = mkstemp(said);
    TEST_ASSERT_NOT_NULL(mkdtemp(folder));
    TEST_ASSERT_EQUAL(0, chdir(folder));
    fflush(stdout);
    int out = dup(STDOUT_FILENO), error = dup(STDERR_FILENO);
    fcntl(to, F_SETFL, fcntl(to, F_GETFL) | O_APPEND);
    dup2(to, STDOUT_FILENO);
    dup2(to, STDERR_FILENO);
    tell_all();
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    TEST_ASSERT_EQUAL(0, chdir("/"));
    TEST_ASSERT_EQUAL_MESSAGE(0, rmdir(folder), "a file was left");
    FILE *now = fopen(said, "r"), *before = fopen(texts_path, writes ? "w+" : "r");
    unlink(said);
    TEST_ASSERT_NOT_NULL_MESSAGE(before, texts_path);
    for (size_t number = 1; fgets(is, sizeof is, now) != NULL; number++) {
        without_folder(is);
        if (writes) {
            fputs(is, before);
            continue;
        }
        sprintf(where, "line %zu", number);
        TEST_ASSERT_NOT_NULL_MESSAGE(fgets(was, sizeof was, before), is);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(was, is, where);
    }
    TEST_ASSERT_TRUE_MESSAGE(writes || fgets(was, sizeof was, before) == NULL, was);
    fclose(now);
    fclose(before);
}

int main(int argc, char **argv)
{
    texts_path = argc > 1 ? argv[1] : "program_texts.txt";
    writes = argc > 2;
    setenv("HOME", "/nonexistent", 1);
    unsetenv("COLUMNS");
    unsetenv("NO_COLOR");
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* in turn with standard error */
    if (setlocale(LC_ALL, "C.UTF-8") == NULL) {
        puts("there is no such locale here");
        return 77;
    }
    setenv("LC_ALL", "C.UTF-8", 1);
    UNITY_BEGIN();
    RUN_TEST(test_texts_are_what_they_were);
    return UNITY_END();
}
