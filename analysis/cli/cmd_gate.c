/* cmd_gate.c: tracealloc gate — whether memory has grown, or is beyond what was allowed: for machines that say no. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/gate.h"
#include "analysis/cli/markup.h"
#include "analysis/cli/sites.h"
#include "analysis/cli/whole_file.h"

struct gate {
    const char *new_path, *old_path, *key, *format, *output, *growth_text;
    enum cli_measure measure;
    double share;                   /* a site has grown when it did so by more than both: of what it was, */
    uint64_t amount;                /* and bytes or calls */
    uint64_t maximum[CLI_MEASURES]; /* of all sites together; UINT64_MAX = any */
    uint64_t leak;                  /* bytes that may live at the end in one site; UINT64_MAX = any */
    char *suppressions;
    struct cli_sites new_sites, old_sites;
    struct finding {
        const struct cli_site *site;
        uint64_t old_value, new_value, allowed;
        const char *what;
    } * findings;
    size_t count, compared;
};

static void find(struct gate *gate, const struct cli_site *site, const char *what, uint64_t old_value,
                 uint64_t new_value, uint64_t allowed)
{
    gate->findings = cli_enlarge(gate->findings, gate->count + 1, sizeof *gate->findings);
    gate->findings[gate->count++] = (struct finding){site, old_value, new_value, allowed, what};
}

/* ---- judging ---- */

static void compare_site(struct gate *gate, const struct cli_site *new_site, const struct cli_site *old_site)
{
    uint64_t now = new_site->values[gate->measure], was = old_site == NULL ? 0 : old_site->values[gate->measure];
    double allowed = (double)was * (1 + gate->share), least = (double)was + (double)gate->amount;
    allowed = least > allowed ? least : allowed;
    gate->compared++;
    if (now > was && (double)now > allowed)
        find(gate, new_site, "grew", was, now, (uint64_t)allowed);
}

static void compare_all(struct gate *gate)
{
    size_t old = 0;
    compare_site(gate, &gate->new_sites.total, &gate->old_sites.total);
    for (size_t i = 0; i < gate->new_sites.count; i++) {
        const struct cli_site *site = &gate->new_sites.rows[i];
        while (old < gate->old_sites.count && strcmp(gate->old_sites.rows[old].name, site->name) < 0)
            old++;
        int is_there = old < gate->old_sites.count && strcmp(gate->old_sites.rows[old].name, site->name) == 0;
        compare_site(gate, site, is_there ? &gate->old_sites.rows[old] : NULL);
    }
}

/* Lines "leak:PART" as other tools have them, or patterns of whole names; "#" begins a remark. */
static int is_suppressed(const struct gate *gate, const struct cli_site *site)
{
    for (const char *line = gate->suppressions; line != NULL && *line != '\0';
         line += strcspn(line, "\n"), line += *line == '\n') {
        char pattern[512];
        size_t length = strcspn(line, "\r\n");
        if (length == 0 || *line == '#' || length >= sizeof pattern)
            continue;
        memcpy(pattern, line, length);
        pattern[length] = '\0';
        const char *function = strrchr(site->name, ' ');
        if (strncmp(pattern, "leak:", 5) == 0
                ? strstr(site->name, pattern + 5) != NULL
                : ta_pattern_matches(pattern, length, site->name, strlen(site->name)) ||
                      (function != NULL && ta_pattern_matches(pattern, length, function + 1, strlen(function + 1))))
            return 1;
    }
    return 0;
}

static void check_limits(struct gate *gate)
{
    static const char *const names[] = {"more is live than allowed", "the peak is higher than allowed",
                                        "more allocations than allowed"};
    const struct cli_site *total = &gate->new_sites.total;
    for (int m = 0; m < CLI_MEASURES; m++)
        if (total->values[m] > gate->maximum[m])
            find(gate, total, names[m], 0, total->values[m], gate->maximum[m]);
    for (size_t i = 0; gate->leak != UINT64_MAX && i < gate->new_sites.count; i++) {
        const struct cli_site *site = &gate->new_sites.rows[i];
        gate->compared++;
        if (site->is_own && site->blocks > 0 && site->values[CLI_LIVE] > gate->leak && !is_suppressed(gate, site))
            find(gate, site, "lives at the end", 0, site->values[CLI_LIVE], gate->leak);
    }
}

/* ---- telling ---- */

static void amount_text(const struct gate *gate, const struct finding *finding, uint64_t value, char *text, size_t size)
{
    int is_calls = finding->old_value > 0 || strcmp(finding->what, "grew") == 0
                       ? gate->measure == CLI_CALLS
                       : strstr(finding->what, "allocations") != NULL;
    if (is_calls)
        snprintf(text, size, "%" PRIu64 " call%s", value, cli_s(value));
    else
        ta_size_text((double)value, 0, text, size);
}

static char *sentence(const struct gate *gate, const struct finding *finding)
{
    char now[48], was[48], allowed[48];
    amount_text(gate, finding, finding->new_value, now, sizeof now);
    amount_text(gate, finding, finding->old_value, was, sizeof was);
    amount_text(gate, finding, finding->allowed, allowed, sizeof allowed);
    if (strcmp(finding->what, "grew") == 0)
        return cli_text("%s grew from %s to %s (allowed: %s)", finding->site->name, was, now, allowed);
    return cli_text("%s: %s: %s (allowed: %s)", finding->site->name, finding->what, now, allowed);
}

static void print_junit(const struct gate *gate)
{
    printf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"tracealloc gate\" "
           "tests=\"%zu\" failures=\"%zu\">\n",
           gate->count > 0 ? gate->count : 1, gate->count);
    for (size_t i = 0; i < gate->count; i++) {
        char *text = sentence(gate, &gate->findings[i]);
        printf("<testcase classname=\"tracealloc\" name=\"");
        cli_print_xml(gate->findings[i].site->name);
        printf("\"><failure message=\"");
        cli_print_xml(text);
        printf("\"/></testcase>\n");
        free(text);
    }
    if (gate->count == 0)
        printf("<testcase classname=\"tracealloc\" name=\"memory\"/>\n");
    printf("</testsuite>\n</testsuites>\n");
}

static void print_github(const struct gate *gate)
{
    for (size_t i = 0; i < gate->count; i++) {
        const struct finding *finding = &gate->findings[i];
        char *text = sentence(gate, finding);
        printf("::error ");
        if (finding->site->line > 0) {
            printf("file=");
            cli_print_workflow(finding->site->file);
            printf(",line=%" PRIu32 ",", finding->site->line);
        }
        printf("title=tracealloc::");
        cli_print_workflow(text);
        putchar('\n');
        free(text);
    }
}

static void print_json(const struct gate *gate)
{
    printf("{\"holds\": %s, \"compared\": %zu, \"findings\": [", gate->count == 0 ? "true" : "false", gate->compared);
    for (size_t i = 0; i < gate->count; i++) {
        const struct finding *finding = &gate->findings[i];
        printf("%s\n {\"site\": ", i > 0 ? "," : "");
        cli_print_json_string(stdout, finding->site->name, strlen(finding->site->name));
        printf(", \"file\": ");
        const char *file = finding->site->file != NULL ? finding->site->file : "";
        cli_print_json_string(stdout, file, strlen(file));
        printf(", \"line\": %" PRIu32 ", \"what\": \"%s\", \"old\": %" PRIu64 ", \"new\": %" PRIu64
               ", \"allowed\": %" PRIu64 "}",
               finding->site->line, finding->what, finding->old_value, finding->new_value, finding->allowed);
    }
    printf("%s]}\n", gate->count > 0 ? "\n" : "");
}

static void print_text(const struct gate *gate)
{
    for (size_t i = 0; i < gate->count; i++) {
        char *text = sentence(gate, &gate->findings[i]);
        cli_print_line(text, strlen(text));
        if (gate->findings[i].site->line > 0)
            printf("    at %s:%" PRIu32 "\n", gate->findings[i].site->file, gate->findings[i].site->line);
        free(text);
    }
    if (gate->count == 0)
        printf("holds: %zu site%s\n", gate->new_sites.count, cli_s(gate->new_sites.count));
}

static int tell(const struct gate *gate)
{
    if (strcmp(gate->format, "json") == 0)
        print_json(gate);
    else if (strcmp(gate->format, "junit") == 0)
        print_junit(gate);
    else if (strcmp(gate->format, "github") == 0)
        print_github(gate);
    else
        print_text(gate);
    int status = cli_finish_output();
    return status != CLI_OK ? status : gate->count > 0 ? CLI_NO : CLI_OK;
}

/* ---- what was asked ---- */

static int parse_amount(const char *option, const char *text, uint64_t *amount)
{
    return cli_parse_amount("gate", option, text, amount);
}

/* "5%", "1MiB", or both: "5%,64KiB". */
static int parse_growth(struct gate *gate, const char *text)
{
    char first[64], *end;
    const char *comma = strchr(text, ',');
    size_t length = comma != NULL ? (size_t)(comma - text) : strlen(text);
    gate->share = 0;
    gate->amount = 0;
    if (length >= sizeof first)
        return cli_error("gate: --max-growth: expected 5%%, 1MiB or 5%%,64KiB, not '%s'", text), -1;
    memcpy(first, text, length);
    first[length] = '\0';
    double share = strtod(first, &end);
    if (end != first && strcmp(end, "%") == 0 && share >= 0) {
        gate->share = share / 100;
        return comma == NULL ? 0 : parse_amount("--max-growth", comma + 1, &gate->amount);
    }
    return comma == NULL ? parse_amount("--max-growth", first, &gate->amount)
                         : (cli_error("gate: --max-growth: expected 5%%, 1MiB or 5%%,64KiB, not '%s'", text), -1);
}

enum {
    BASELINE = 1,
    GROWTH,
    BY,
    PEAK,
    ALLOCATIONS,
    MAX_LIVE,
    MAX_PEAK,
    MAX_ALLOCATIONS,
    NO_LEAKS,
    SUPPRESSIONS,
    JSON,
    FORMAT
};

static const struct option long_options[] = {
    {"baseline", required_argument, NULL, BASELINE},
    {"max-growth", required_argument, NULL, GROWTH},
    {"by", required_argument, NULL, BY},
    {"key", required_argument, NULL, BY},
    {"peak", no_argument, NULL, PEAK},
    {"allocations", no_argument, NULL, ALLOCATIONS},
    {"max-live", required_argument, NULL, MAX_LIVE},
    {"max-peak", required_argument, NULL, MAX_PEAK},
    {"max-allocations", required_argument, NULL, MAX_ALLOCATIONS},
    {"no-leaks", optional_argument, NULL, NO_LEAKS},
    {"suppressions", required_argument, NULL, SUPPRESSIONS},
    {"json", no_argument, NULL, JSON},
    {"format", required_argument, NULL, FORMAT},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int take_limit(struct gate *gate, int option)
{
    switch (option) {
    case MAX_LIVE:
        return parse_amount("--max-live", optarg, &gate->maximum[CLI_LIVE]);
    case MAX_PEAK:
        return parse_amount("--max-peak", optarg, &gate->maximum[CLI_PEAK]);
    case MAX_ALLOCATIONS:
        return parse_amount("--max-allocations", optarg, &gate->maximum[CLI_CALLS]);
    case NO_LEAKS:
        gate->leak = 0;
        return optarg == NULL ? 0 : parse_amount("--no-leaks", optarg, &gate->leak);
    default:
        return -1;
    }
}

static int take_option(struct gate *gate, int option)
{
    size_t length;
    switch (option) {
    case BASELINE:
        gate->old_path = optarg;
        return 0;
    case GROWTH:
        return parse_growth(gate, optarg);
    case BY:
        gate->key = optarg;
        return strcmp(optarg, "own") == 0 || strcmp(optarg, "domain") == 0
                   ? 0
                   : (cli_error("gate: --by: expected own or domain, not '%s'", optarg), -1);
    case PEAK:
        gate->measure = CLI_PEAK;
        return 0;
    case ALLOCATIONS:
        gate->measure = CLI_CALLS;
        return 0;
    case SUPPRESSIONS:
        gate->suppressions = cli_read_file(optarg, &length);
        return gate->suppressions == NULL ? -1 : 0;
    case JSON:
        gate->format = "json";
        return 0;
    case FORMAT:
        gate->format = optarg;
        return strcmp(optarg, "text") == 0 || strcmp(optarg, "json") == 0 || strcmp(optarg, "junit") == 0 ||
                       strcmp(optarg, "github") == 0
                   ? 0
                   : (cli_error("gate: --format: expected text, json, junit or github, not '%s'", optarg), -1);
    case 'o':
        gate->output = optarg;
        return 0;
    default:
        return take_limit(gate, option);
    }
}

/* 0, or 1 when help was printed, or -1 after a message. */
static int parse(struct gate *gate, int argc, char **argv)
{
    int option;
    optind = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":o:h", long_options, NULL)) != -1) {
        const char *given = argv[optind > 0 ? optind - 1 : 0];
        if (option == 'h') {
            printf("usage: tracealloc gate %s\n%s\n\n%s", cli_gate.arguments, cli_gate.summary, cli_gate.help);
            return 1;
        }
        if (option == ':')
            return cli_error("gate: %s wants a value", given), -1;
        if (option == '?')
            return cli_error("gate: unknown option '%s' (see tracealloc gate --help)", given), -1;
        if (take_option(gate, option) != 0)
            return -1;
    }
    if (argc - optind == 2 && gate->old_path == NULL)
        gate->old_path = argv[optind + 1];
    else if (argc - optind != 1)
        return cli_error("usage: tracealloc gate %s", cli_gate.arguments), -1;
    gate->new_path = argv[optind];
    return 0;
}

static int write_baseline(const struct gate *gate)
{
    struct cli_output output;
    int status = cli_output_open(&output, gate->output);
    if (status != CLI_OK)
        return status;
    cli_sites_write(&gate->new_sites, output.file);
    return cli_output_close(&output, CLI_OK);
}

static int judge(struct gate *gate)
{
    int has_limits = gate->leak != UINT64_MAX;
    for (int m = 0; m < CLI_MEASURES; m++)
        has_limits |= gate->maximum[m] != UINT64_MAX;
    if (gate->old_path == NULL && !has_limits && gate->output == NULL)
        return cli_error("gate: nothing to hold it to: name an OLD recording, a --baseline, or limits");
    if (cli_sites_load(&gate->new_sites, gate->new_path, gate->key) != CLI_OK)
        return CLI_TROUBLE;
    if (gate->old_path != NULL && cli_sites_load(&gate->old_sites, gate->old_path, gate->key) != CLI_OK)
        return CLI_TROUBLE;
    if (gate->output != NULL && write_baseline(gate) != CLI_OK)
        return CLI_TROUBLE;
    if (gate->old_path != NULL)
        compare_all(gate);
    check_limits(gate);
    return gate->old_path == NULL && !has_limits ? CLI_OK : tell(gate);
}

static void forget(struct gate *gate)
{
    cli_sites_free(&gate->new_sites);
    cli_sites_free(&gate->old_sites);
    free(gate->findings);
}

int cli_gate_leaks(const char *path, uint64_t bytes, char *suppressions)
{
    struct gate gate = {.leak = bytes, .suppressions = suppressions, .maximum = {UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    int status = cli_sites_load(&gate.new_sites, path, "own");
    if (status == CLI_OK)
        check_limits(&gate);
    for (size_t i = 0; i < gate.count; i++) {
        char *text = sentence(&gate, &gate.findings[i]);
        fprintf(stderr, "tracealloc: leak: %s", text);
        if (gate.findings[i].site->line > 0)
            fprintf(stderr, " at %s:%" PRIu32, gate.findings[i].site->file, gate.findings[i].site->line);
        fputc('\n', stderr);
        free(text);
    }
    if (gate.count > 0)
        status = CLI_NO;
    forget(&gate);
    return status;
}

static int run(int argc, char **argv)
{
    struct gate gate = {.key = "own",
                        .format = "text",
                        .share = 0.05,
                        .amount = 1024,
                        .leak = UINT64_MAX,
                        .maximum = {UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    int parsed = parse(&gate, argc, argv);
    int status = parsed < 0 ? CLI_TROUBLE : parsed > 0 ? cli_finish_output() : judge(&gate);
    forget(&gate);
    free(gate.suppressions);
    return status;
}

const struct cli_command cli_gate = {
    .name = "gate",
    .arguments = "NEW [OLD | --baseline FILE] [--max-growth 5%|1MiB|5%,1KiB] [--peak | --allocations] [LIMIT …]",
    .summary = "say no when memory has grown, or is beyond what is allowed",
    .help = "  OLD, --baseline FILE   a recording, or the text that -o writes: live bytes are compared function by "
            "function\n"
            "  --max-growth GROWTH    what a site may grow: a share, an amount, or both, of which the larger counts\n"
            "                         (5%,1KiB unless given)\n"
            "  --by KEY               own (default) or domain\n"
            "  --peak                 compare the bytes that were live at the peak\n"
            "  --allocations          compare how often each site allocated\n"
            "  --max-live BYTES       limits for the whole program\n"
            "  --max-peak BYTES\n"
            "  --max-allocations N\n"
            "  --no-leaks[=BYTES]     no function of one's own may hold memory (more than BYTES) in the last entry\n"
            "  --suppressions FILE    leaks that are known: lines of leak:PART, or patterns of functions\n"
            "  --format FORMAT        text (default), json, junit or github\n"
            "  --json                 the same as --format json\n"
            "  -o FILE                write the baseline of NEW: text that a repository can keep\n"
            "\n"
            "The exit status is 0 when it holds, 1 when it does not, 2 when that cannot be told.\n"
            "\n"
            "  tracealloc gate new.ta -o memory.baseline\n"
            "  tracealloc gate new.ta --baseline memory.baseline --max-growth 5%,64KiB\n",
    .run = run,
};
