/* cmd_rules.c: tracealloc rules — what the rules for domains name in a program, and the same as ranges of addresses, so that
 * the program needs no debug information to follow them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tracealloc/rules.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/run_rules.h"
#include "analysis/cli/table.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/whole_file.h"

struct hit {
    size_t rule;
    char *function, *file;
    uint32_t line;
    uint64_t places, inlined; /* how often in the code, and how many of them within other functions */
};

struct hits {
    struct hit *rows;
    size_t count, capacity;
};

/* ---- check ---- */

static int take_hit(void *user, const struct ta_rule_match *match)
{
    struct hits *hits = user;
    if (hits->count == hits->capacity) {
        hits->capacity = hits->capacity * 2 + 256;
        hits->rows = cli_enlarge(hits->rows, hits->capacity, sizeof *hits->rows);
    }
    hits->rows[hits->count++] = (struct hit){.rule = match->rule_index,
                                             .function = cli_text("%s", match->function),
                                             .file = cli_text("%s", match->file),
                                             .line = match->lineno,
                                             .places = 1,
                                             .inlined = (uint64_t)match->inlined};
    return 0;
}

static int compare_hits(const void *a, const void *b)
{
    const struct hit *x = a, *y = b;
    if (x->rule != y->rule)
        return x->rule < y->rule ? -1 : 1;
    int order = strcmp(x->file, y->file);
    if (order == 0)
        order = x->line < y->line ? -1 : x->line > y->line;
    return order != 0 ? order : strcmp(x->function, y->function);
}

/* Each function once. */
static void join(struct hits *hits)
{
    size_t kept = 0;
    if (hits->count > 0)
        qsort(hits->rows, hits->count, sizeof *hits->rows, compare_hits);
    for (size_t i = 0; i < hits->count; i++) {
        if (kept > 0 && compare_hits(&hits->rows[kept - 1], &hits->rows[i]) == 0) {
            hits->rows[kept - 1].places += hits->rows[i].places;
            hits->rows[kept - 1].inlined += hits->rows[i].inlined;
            free(hits->rows[i].function);
            free(hits->rows[i].file);
        } else {
            hits->rows[kept++] = hits->rows[i];
        }
    }
    hits->count = kept;
}

static void print_function(const struct hit *hit)
{
    char name[512], path[4096];
    ta_function_text(hit->function, name, sizeof name);
    cli_short_path(hit->file, path, sizeof path);
    printf("    %s", name);
    if (*path != '\0')
        printf("  %s:%u", path, hit->line);
    if (hit->inlined > 0)
        printf("  (inlined %" PRIu64 " time%s)", hit->inlined, cli_s(hit->inlined));
    putchar('\n');
}

/* The rule's line and what it names; answers how many functions that are. */
static size_t print_rule(const struct ta_rule *rule, const struct hits *hits, size_t index, const char *file,
                         size_t rows)
{
    size_t first = 0, count = 0;
    while (first < hits->count && hits->rows[first].rule < index)
        first++;
    while (first + count < hits->count && hits->rows[first + count].rule == index)
        count++;
    printf("%s%s:%u%s  %u %s: ", cli_style(CLI_BOLD), file, rule->line, cli_style(CLI_PLAIN), rule->domain, rule->name);
    if (count == 0)
        printf("%s%s%s\n", cli_style(CLI_RED), index > 0 ? "nothing that the rules above leave" : "nothing",
               cli_style(CLI_PLAIN));
    else
        printf("%zu function%s\n", count, cli_s(count));
    for (size_t i = 0; i < count && i < rows; i++)
        print_function(&hits->rows[first + i]);
    if (count > rows)
        printf("    … and %zu more (-n 0 lists all)\n", count - rows);
    return count;
}

static const struct cli_column columns[] = {
    {"rule", "", CLI_NUMBER, 0},        {"line", "", CLI_NUMBER, 0},   {"domain", "", CLI_NUMBER, 0},
    {"name", "", CLI_TEXT, 0},          {"function", "", CLI_TEXT, 0}, {"file", "", CLI_TEXT, 0},
    {"source_line", "", CLI_NUMBER, 0}, {"places", "", CLI_NUMBER, 0}, {"inlined", "", CLI_NUMBER, 0},
};
#define COLUMNS (sizeof columns / sizeof *columns)

static void print_table(const char *file, const struct hits *hits, const struct cli_options *options)
{
    struct cli_table *table = cli_table_new(columns, COLUMNS);
    for (size_t i = 0; i < hits->count; i++) {
        const struct hit *hit = &hits->rows[i];
        struct ta_rule rule = {.name = ""};
        ta_rules_get(file, hit->rule, &rule, sizeof rule);
        cli_table_add(table, (struct cli_cell[COLUMNS]){{.number = hit->rule + 1},
                                                        {.number = rule.line},
                                                        {.number = rule.domain},
                                                        {.text = rule.name},
                                                        {.text = hit->function},
                                                        {.text = hit->file},
                                                        {.number = hit->line},
                                                        {.number = hit->places},
                                                        {.number = hit->inlined}});
    }
    cli_table_print(table, options);
    cli_table_free(table);
}

/* CLI_NO when a rule names nothing in any of the programs: it is a mistake, or of other programs. */
static int check(const char *file, const struct cli_options *options)
{
    struct hits hits = {0};
    int status = CLI_OK;
    if (ta_rules_check(file, "", NULL, NULL) != 0)
        return cli_error("%s", ta_error_text());
    for (int i = 2; status == CLI_OK && i < options->operand_count; i++) {
        cli_progress_begin("reading the functions");
        if (ta_rules_check(file, options->operands[i], take_hit, &hits) != 0)
            status = cli_error("%s", ta_error_text());
        cli_progress_end();
    }
    join(&hits);
    struct ta_rule rule;
    if (status == CLI_OK && (options->json || options->csv))
        print_table(file, &hits, options);
    for (size_t i = 0; status != CLI_TROUBLE && ta_rules_get(file, i, &rule, sizeof rule) == 0; i++) {
        size_t rows = options->limit == SIZE_MAX ? 10 : options->limit == 0 ? SIZE_MAX : options->limit;
        size_t count = options->json || options->csv ? 1 : print_rule(&rule, &hits, i, file, rows);
        if (count == 0 && rule.wants_code)
            status = CLI_NO;
    }
    for (size_t i = 0; i < hits.count; i++) {
        free(hits.rows[i].function);
        free(hits.rows[i].file);
    }
    free(hits.rows);
    return cli_finish_output() != CLI_OK ? CLI_TROUBLE : status;
}

/* ---- compile ---- */

static int compile(const char *file, const struct cli_options *options)
{
    struct cli_output output;
    if (cli_output_open(&output, options->output) != CLI_OK)
        return CLI_TROUBLE;
    int status = CLI_OK;
    cli_progress_begin("reading the functions");
    if (ta_rules_compile(file, (const char *const *)(options->operands + 2), (size_t)options->operand_count - 2,
                         cli_rules_note, NULL, cli_output_write, &output) != 0 &&
        !ferror(output.file))
        status = cli_error("%s", ta_error_text());
    cli_progress_end();
    return cli_output_close(&output, status);
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_rules, CLI_OUTPUT | CLI_LIMIT | CLI_FORMATS, 3, 1 << 20, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    const char *verb = options.operands[0], *file = options.operands[1];
    if (strcmp(verb, "check") == 0)
        return check(file, &options);
    if (strcmp(verb, "compile") == 0)
        return compile(file, &options);
    return cli_error("rules: unknown '%s': check or compile", verb);
}

const struct cli_command cli_rules = {
    .name = "rules",
    .arguments = "(check | compile) RULES PROGRAM… [-n N] [-o OUT] [--json | --csv]",
    .summary = "show which functions the rules for domains name, or compile them",
    .help =
        "  check            list the functions that each rule names in the programs and libraries given; exit status "
        "1\n"
        "                   when a rule names none\n"
        "  compile          write the rules with the addresses of that code, by build id: the program then follows\n"
        "                   rules by source files (file=), and needs neither symbols nor debug information\n"
        "  -n N             functions listed for each rule: 10 unless given, 0 = all\n"
        "  -o FILE          the compiled rules; standard output unless given\n"
        "  --json, --csv    the functions for other programs\n"
        "  --color WHEN     auto (default), always or never\n"
        "\n"
        "docs/domains.md has the language of the rules. tracealloc run --rules compiles by itself.\n"
        "\n"
        "  tracealloc rules check rules.txt build/server\n",
    .run = run,
};
