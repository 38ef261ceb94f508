/* cmd_annotate.c: tracealloc annotate — source lines with what was allocated there beside them; for editors as JSON. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/project.h"
#include "analysis/cli/terminal.h"

/* A line of a source: asked for memory itself, and everything that was asked for through it. */
struct line {
    const char *file;
    uint32_t number;
    uint64_t live, peak, calls; /* its own: the innermost frame that is one's own */
    uint64_t through, through_peak, through_calls;
};

struct lines {
    struct line *rows; /* in the order of files and numbers */
    size_t count, capacity;
};

static void add_rows(struct lines *lines, const struct ta_statistics *statistics, int is_through)
{
    for (size_t i = 0; i < ta_statistics_count(statistics); i++) {
        struct ta_statistic row;
        struct ta_frame frame;
        ta_statistics_get(statistics, i, &row);
        if (ta_traceback_frame(row.traceback, -1, &frame) != 0 || frame.lineno == 0)
            continue;
        if (lines->count == lines->capacity) {
            lines->capacity = lines->capacity * 2 + 256;
            lines->rows = cli_enlarge(lines->rows, lines->capacity, sizeof *lines->rows);
        }
        struct line *line = &lines->rows[lines->count++];
        *line = (struct line){.file = frame.filename, .number = frame.lineno};
        *(is_through ? &line->through : &line->live) = row.size;
        *(is_through ? &line->through_peak : &line->peak) = row.peak_size;
        *(is_through ? &line->through_calls : &line->calls) = row.allocated_count;
    }
}

static int compare_lines(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    int order = strcmp(x->file, y->file);
    return order != 0 ? order : x->number < y->number ? -1 : x->number > y->number;
}

static void join(struct lines *lines)
{
    size_t kept = 0;
    if (lines->count > 0)
        qsort(lines->rows, lines->count, sizeof *lines->rows, compare_lines);
    for (size_t i = 0; i < lines->count; i++) {
        struct line *last = kept > 0 ? &lines->rows[kept - 1] : NULL, *row = &lines->rows[i];
        if (last == NULL || compare_lines(last, row) != 0) {
            lines->rows[kept++] = *row;
            continue;
        }
        last->live += row->live;
        last->peak += row->peak;
        last->calls += row->calls;
        last->through += row->through;
        last->through_peak += row->through_peak;
        last->through_calls += row->through_calls;
    }
    lines->count = kept;
}

/* ---- one source ---- */

/* How many of the last parts of two paths agree: 0 when the files' own names differ. */
static size_t agreement(const char *a, const char *b)
{
    const char *a_end = a + strlen(a), *b_end = b + strlen(b);
    size_t parts = 0;
    for (;;) {
        const char *x = a_end, *y = b_end;
        while (x > a && x[-1] != '/')
            x--;
        while (y > b && y[-1] != '/')
            y--;
        if (a_end - x != b_end - y || memcmp(x, y, (size_t)(a_end - x)) != 0)
            return parts;
        parts++;
        if (x == a || y == b)
            return parts;
        a_end = x - 1;
        b_end = y - 1;
    }
}

/* The recorded file that is meant: the one whose path agrees in most parts. */
static const char *find_file(const struct lines *lines, const char *source)
{
    const char *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < lines->count; i++) {
        size_t parts = agreement(lines->rows[i].file, source);
        if (parts > most) {
            most = parts;
            best = lines->rows[i].file;
        }
    }
    return best;
}

static void size_cell(uint64_t size, char *text, size_t room)
{
    if (size == 0)
        *text = '\0';
    else
        ta_size_text((double)size, 0, text, room);
}

/* Columns of the figures; and what of the source is shown in any window. */
enum { FIGURES = 48, SOURCE_LEAST = 12 };

static void print_source_line(const struct line *line, uint32_t number, const char *text, size_t length)
{
    char live[32] = "", peak[32] = "", through[32] = "", calls[32] = "";
    if (line != NULL) {
        size_cell(line->live, live, sizeof live);
        size_cell(line->peak, peak, sizeof peak);
        size_cell(line->through, through, sizeof through);
        if (line->calls > 0)
            snprintf(calls, sizeof calls, "%" PRIu64, line->calls);
    }
    printf("%9s %9s %9s %9s %s%6" PRIu32 "%s  ", live, peak, calls, through, cli_style(CLI_DIM), number,
           cli_style(CLI_PLAIN));
    if (cli_width() == SIZE_MAX) {
        cli_print_line(text, length);
        return;
    }
    char *whole = cli_text("%.*s", (int)length, text);
    cli_print_fitted(whole, cli_width() > FIGURES + SOURCE_LEAST ? cli_width() - FIGURES : SOURCE_LEAST, CLI_CUT_RIGHT);
    putchar('\n');
    free(whole);
}

/* Lines with figures, and `context` ones around each; SIZE_MAX = all. */
static void print_source(const struct line *rows, size_t count, const char *text, size_t context)
{
    size_t next = 0, shown = 0;
    uint32_t number = 1;
    printf("%s%9s %9s %9s %9s %6s%s\n", cli_style(CLI_DIM), "LIVE", "PEAK", "CALLS", "THROUGH", "LINE",
           cli_style(CLI_PLAIN));
    for (const char *at = text; *at != '\0'; number++) {
        size_t length = strcspn(at, "\n");
        while (next < count && rows[next].number < number)
            next++;
        int has_figures = next < count && rows[next].number == number;
        int is_near = context == SIZE_MAX || (next < count && rows[next].number - number <= context) ||
                      (next > 0 && number - rows[next - 1].number <= context);
        if (is_near) {
            if (shown > 0 && shown + 1 != number)
                printf("%46s%s…%s\n", "", cli_style(CLI_DIM), cli_style(CLI_PLAIN));
            print_source_line(has_figures ? &rows[next] : NULL, number, at, length);
            shown = number;
        }
        at += length + (at[length] == '\n');
    }
    if (count > 0 && rows[count - 1].number >= number)
        cli_warning("the source has %" PRIu32 " line%s, the recording names line %" PRIu32 ": another version?",
                    number - 1, cli_s(number - 1), rows[count - 1].number);
}

static int annotate(const struct lines *lines, const struct cli_options *options)
{
    const char *file = find_file(lines, options->source);
    size_t first = 0, end, length;
    if (file == NULL)
        return cli_error("annotate: no line of %s is in the recording (annotate FILE lists the sources)",
                         options->source);
    while (strcmp(lines->rows[first].file, file) != 0)
        first++;
    for (end = first; end < lines->count && strcmp(lines->rows[end].file, file) == 0; end++)
        continue;
    FILE *given = fopen(options->source, "re");
    if (given != NULL)
        fclose(given);
    char *text = cli_read_file(given != NULL ? options->source : file, &length);
    if (text == NULL)
        return CLI_TROUBLE;
    size_t context = options->limit == SIZE_MAX ? 3 : options->limit == 0 ? SIZE_MAX : options->limit;
    printf("%s\n", file);
    print_source(lines->rows + first, end - first, text, context);
    free(text);
    return cli_finish_output();
}

/* ---- all sources ---- */

static void print_json(const struct lines *lines, const char *only)
{
    const char *file = NULL;
    putchar('{');
    for (size_t i = 0; i < lines->count; i++) {
        const struct line *line = &lines->rows[i];
        if (only != NULL && strcmp(line->file, only) != 0)
            continue;
        if (file == NULL || strcmp(file, line->file) != 0) {
            fputs(file != NULL ? "},\n" : "\n", stdout);
            cli_print_json_string(stdout, line->file, strlen(line->file));
            fputs(": {", stdout);
        } else {
            putchar(',');
        }
        file = line->file;
        printf("\n \"%" PRIu32 "\": {\"live\": %" PRIu64 ", \"peak\": %" PRIu64 ", \"calls\": %" PRIu64
               ", \"through\": %" PRIu64 ", \"through_peak\": %" PRIu64 ", \"through_calls\": %" PRIu64 "}",
               line->number, line->live, line->peak, line->calls, line->through, line->through_peak,
               line->through_calls);
    }
    puts(file != NULL ? "}\n}" : "}");
}

/* ---- all sources ---- */

struct source {
    const char *file;
    uint64_t live, calls;
};

static int compare_sources(const void *a, const void *b)
{
    const struct source *x = a, *y = b;
    if (x->live != y->live)
        return x->live > y->live ? -1 : 1;
    if (x->calls != y->calls)
        return x->calls > y->calls ? -1 : 1;
    return strcmp(x->file, y->file);
}

/* Those that asked for memory by a line of one's own, the largest first; the others only were on the way. */
static int list_sources(const struct lines *lines)
{
    char live[32];
    size_t count = 0;
    struct source *sources = cli_allocate(lines->count, sizeof *sources);
    for (size_t i = 0, end; i < lines->count; i = end) {
        struct source source = {.file = lines->rows[i].file};
        for (end = i; end < lines->count && strcmp(lines->rows[end].file, source.file) == 0; end++) {
            source.live += lines->rows[end].live;
            source.calls += lines->rows[end].calls;
        }
        if (source.live > 0 || source.calls > 0)
            sources[count++] = source;
    }
    qsort(sources, count, sizeof *sources, compare_sources);
    for (size_t i = 0; i < count; i++) {
        ta_size_text((double)sources[i].live, 0, live, sizeof live);
        printf("%9s  ", live);
        cli_print_line(sources[i].file, strlen(sources[i].file));
    }
    free(sources);
    if (count == 0)
        return cli_error("annotate: no line of one's own is known; tracealloc top names functions, too");
    return cli_finish_output();
}

static int tell(const struct lines *lines, const struct cli_options *options)
{
    if (!options->json)
        return options->source != NULL ? annotate(lines, options) : list_sources(lines);
    const char *only = options->source != NULL ? find_file(lines, options->source) : NULL;
    if (options->source != NULL && only == NULL)
        return cli_error("annotate: no line of %s is in the recording", options->source);
    print_json(lines, only);
    return cli_finish_output();
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    struct lines lines = {0};
    if (cli_parse(&options, &cli_annotate, CLI_SOURCE | CLI_JSON | CLI_LIMIT | CLI_FILTERS | CLI_COLOR | CLI_OWN, 1, 1,
                  argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    struct ta_snapshot *snapshot = cli_load_filtered(options.operands[0], &options);
    if (snapshot == NULL || cli_use_rules(&options, snapshot, NULL) != CLI_OK) {
        ta_snapshot_free(snapshot);
        return CLI_TROUBLE;
    }
    cli_progress_begin("grouping");
    struct ta_statistics *own = ta_snapshot_churn(snapshot, "own", 0);
    struct ta_statistics *through = ta_snapshot_churn(snapshot, "lineno", TA_CUMULATIVE_ONCE);
    cli_progress_end();
    int status = own == NULL || through == NULL ? cli_library_error(options.operands[0]) : CLI_OK;
    if (status == CLI_OK) {
        add_rows(&lines, own, 0);
        add_rows(&lines, through, 1);
        join(&lines);
        status = tell(&lines, &options);
    }
    free(lines.rows);
    ta_statistics_free(own);
    ta_statistics_free(through);
    ta_snapshot_free(snapshot);
    return status;
}

const struct cli_command cli_annotate = {
    .name = "annotate",
    .arguments = "FILE[@ENTRY] [--source PATH] [-n N] [--where FILTER] [--json]",
    .summary = "show a source with what its lines hold",
    .help =
        "  --source PATH    the source; a part of its path is enough. Without it the sources are listed\n"
        "  -n N             lines around each line with figures: 3 unless given; 0 = the whole source\n" CLI_HELP_OWN
            CLI_HELP_FILTERS
        "  --json           for editors: {file: {line: {live, peak, calls, through, through_peak, through_calls}}}\n"
        "  --color WHEN     auto (default), always or never\n"
        "\n"
        "LIVE, PEAK (bytes at the recorded peak) and CALLS belong to the line as the innermost one of one's own; "
        "THROUGH\n"
        "is what lives of all that was asked for on its way, whoever asked.\n"
        "\n"
        "  tracealloc annotate server.ta --source server.c\n",
    .run = run,
};
