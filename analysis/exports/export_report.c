/* export_report.c: a snapshot in words for people: totals, the largest rows by own line, domains, and what was not
 * traced. For logs, mails, and pages that a program serves; the program tracealloc has larger ones. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "analysis/model.h"
#include "analysis/size_text.h"
#include "analysis/text_output.h"
#include "tracealloc/export.h"

enum { SIZE_COLUMNS = 11 };

/* Right-aligned. */
static void add_size(struct ta__text *text, uint64_t size)
{
    struct ta__text field = {0};
    ta__size_text_add(&field, (double)size, 0);
    if (!field.failed)
        ta__text_add_format(text, "%*s", SIZE_COLUMNS, field.bytes);
    text->failed |= field.failed;
    ta__text_free(&field);
}

static void add_share(struct ta__text *text, uint64_t part, uint64_t whole)
{
    uint64_t promille = whole > 0 ? (uint64_t)(1000 * (double)part / (double)whole + 0.5) : 0;
    ta__text_add_format(text, "%3" PRIu64 ".%" PRIu64 "%%", promille / 10, promille % 10);
}

/* A name may have anything in it: what would move the cursor becomes '?'. */
static void add_name(struct ta__text *text, const char *name)
{
    for (; *name != '\0'; name++)
        ta__text_add(text, (unsigned char)*name < 0x20 || *name == 0x7F ? "?" : name, 1);
}

static void add_head(struct ta__text *text, const struct ta__view *view, const struct ta_statistic *total)
{
    char when[64] = "";
    time_t seconds = (time_t)(view->time_ns / 1000000000);
    struct tm parts;
    if (view->time_ns != 0 && gmtime_r(&seconds, &parts) != NULL)
        strftime(when, sizeof when, ", %Y-%m-%d %H:%M:%S UTC", &parts);
    add_name(text, *view->strings[view->program].text != '\0' ? view->strings[view->program].text : "a program");
    ta__text_add_format(text, " (process %u)%s\n", view->pid, when);
    ta__size_text_add(text, (double)total->size, 0);
    ta__text_add_format(text, " live in %" PRIu64 " block%s, peak ", total->count, ta__s(total->count));
    ta__size_text_add(text, (double)(view->peak_bytes > total->size ? view->peak_bytes : total->size), 0);
    if (view->sample_bytes > 1)
        ta__text_add_format(text, "; estimates: one sample in %" PRIu64 " bytes", view->sample_bytes);
    ta__text_add(text, "\n", 1);
}

static void add_own_rows(struct ta__output *output, const struct ta_statistics *statistics, size_t rows, uint64_t whole)
{
    struct ta__text *text = &output->pending;
    size_t count = ta_statistics_count(statistics);
    ta__output_add_string(output, "\n       LIVE  SHARE    BLOCKS  WHERE\n");
    for (size_t i = 0; i < count && i < rows; i++) {
        struct ta_statistic row;
        struct ta_frame frame = {.filename = "", .function = ""};
        char function[512] = "";
        if (ta_statistics_get(statistics, i, &row) != 0 || row.size == 0)
            break;
        ta_traceback_frame(row.traceback, -1, &frame);
        ta_function_text(frame.function, function, sizeof function);
        add_size(text, row.size);
        ta__text_add(text, " ", 1);
        add_share(text, row.size, whole);
        ta__text_add_format(text, " %9" PRIu64 "  ", row.count);
        add_name(text, frame.filename);
        if (frame.lineno > 0)
            ta__text_add_format(text, ":%u", frame.lineno);
        ta__text_add_string(text, *function != '\0' ? "  " : "");
        add_name(text, function);
        ta__output_add_string(output, "\n");
    }
    if (count > rows)
        ta__text_add_format(text, "%*s… and %zu more\n", SIZE_COLUMNS + 1, "", count - rows);
}

static void add_domains(struct ta__output *output, const struct ta__view *view)
{
    struct ta__text *text = &output->pending;
    if (view->domain_count < 2)
        return;
    ta__output_add_string(output, "\n       LIVE       PEAK      LIMIT    BLOCKS  DOMAIN\n");
    for (uint32_t i = 0; i < view->domain_count; i++) {
        const struct ta__view_domain *domain = &view->domains[i];
        if (domain->live_blocks == 0 && view->strings[domain->name].length == 0)
            continue; /* an arena that came and went */
        add_size(text, domain->live_bytes);
        add_size(text, domain->peak_bytes);
        if (domain->limit_bytes != 0 && domain->limit_bytes != UINT64_MAX)
            add_size(text, domain->limit_bytes);
        else
            ta__text_add_format(text, "%*s", SIZE_COLUMNS, "-");
        ta__text_add_format(text, " %9" PRIu64 "  %u ", domain->live_blocks, domain->number);
        add_name(text, view->strings[domain->name].text);
        ta__output_add_string(output, "\n");
    }
}

static void add_gaps(struct ta__output *output, const struct ta__view *view)
{
    const struct {
        uint64_t count;
        const char *one, *many;
    } gaps[] = {
        {view->lost, "allocation could not be traced: no memory for tables",
         "allocations could not be traced: no memory for tables"},
        {view->overflowed, "allocation stands under <overflow>: too many stacks",
         "allocations stand under <overflow>: too many stacks"},
        {view->cut_short, "stack ended before its outermost call", "stacks ended before their outermost call"},
        {view->foreign_frees, "free of a block that is not ours", "frees of blocks that are not ours"},
        {view->invalid_frees, "double free or damaged block", "double frees or damaged blocks"},
    };
    for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++)
        if (gaps[i].count > 0)
            ta__text_add_format(&output->pending, "note: %" PRIu64 " %s\n", gaps[i].count,
                                gaps[i].count == 1 ? gaps[i].one : gaps[i].many);
}

int ta_snapshot_export_text(const struct ta_snapshot *snapshot, size_t rows, ta_write_function write, void *user)
{
    const struct ta__model *model = ta__model_of(snapshot);
    struct ta__output output = {.write = write, .user = user};
    if (model == NULL)
        return -1;
    struct ta_statistics *statistics = ta_group_by_own(snapshot, 0);
    if (statistics == NULL)
        return -1;
    struct ta_statistic total;
    ta_statistics_total(statistics, &total);
    add_head(&output.pending, model->view, &total);
    add_own_rows(&output, statistics, rows, total.size);
    add_domains(&output, model->view);
    add_gaps(&output, model->view);
    ta_statistics_free(statistics);
    return ta__output_finish(&output);
}
