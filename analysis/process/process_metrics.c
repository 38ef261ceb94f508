/* process_metrics.c: the running process as metrics in Prometheus' text format (version 0.0.4): what is traced, what the
 * tracer itself takes, each domain with its limits, and what went wrong. Nothing is stopped and no stack is looked at. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/code_points.h"
#include "analysis/failure.h"
#include "analysis/text_output.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"
#include "tracealloc/export.h"

/* The runtime's, where there is one: analysis needs none. */
extern __typeof__(ta_is_tracing) ta_is_tracing __attribute__((weak));
extern __typeof__(ta_get_traced_memory) ta_get_traced_memory __attribute__((weak));
extern __typeof__(ta_get_tracer_memory) ta_get_tracer_memory __attribute__((weak));
extern __typeof__(ta_get_health) ta_get_health __attribute__((weak));
extern __typeof__(ta_domain_list) ta_domain_list __attribute__((weak));
extern __typeof__(ta_domain_get_stats) ta_domain_get_stats __attribute__((weak));
extern __typeof__(ta_domain_name) ta_domain_name __attribute__((weak));

static void add_family(struct ta__output *output, const char *name, const char *type, const char *help)
{
    const char *const pieces[] = {"# HELP tracealloc_", name, " ", help, "\n# TYPE tracealloc_", name, " ", type, "\n"};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        ta__output_add_string(output, pieces[i]);
}

static void add_single(struct ta__output *output, const char *name, const char *type, const char *help, uint64_t value)
{
    add_family(output, name, type, help);
    ta__text_add_string(&output->pending, "tracealloc_");
    ta__text_add_string(&output->pending, name);
    ta__text_add_format(&output->pending, " %" PRIu64 "\n", value);
}

/* ---- domains ---- */

struct domain_row {
    struct ta_domain_stats stats;
    const char *name; /* NULL: all arenas without a name together */
};

struct domain_rows {
    struct domain_row *items;
    size_t count;
};

static void add_stats(struct ta_domain_stats *sum, const struct ta_domain_stats *other)
{
    sum->live_bytes += other->live_bytes;
    sum->live_blocks += other->live_blocks;
    sum->peak_bytes += other->peak_bytes;
    sum->allocated_bytes += other->allocated_bytes;
    sum->allocated_blocks += other->allocated_blocks;
    sum->freed_bytes += other->freed_bytes;
    sum->freed_blocks += other->freed_blocks;
    sum->crossings += other->crossings;
}

/* Arenas come and go by the thousand: those without a name are one row, which is the first. */
static int collect(struct domain_rows *rows)
{
    size_t room = ta_domain_list(NULL, 0) + 64;
    uint32_t *numbers = ta__new_array(room, sizeof *numbers);
    rows->items = ta__new_array(room + 1, sizeof *rows->items);
    if (numbers == NULL || rows->items == NULL) {
        free(numbers);
        return -1;
    }
    size_t count = ta_domain_list(numbers, room);
    rows->count = 1;
    for (size_t i = 0; i < count && i < room; i++) {
        struct ta_domain_stats stats;
        const char *name = ta_domain_name(numbers[i]);
        if (ta_domain_get_stats(numbers[i], &stats, sizeof stats) != 0)
            continue; /* destroyed meanwhile */
        if (stats.is_arena && *name == '\0') {
            add_stats(&rows->items[0].stats, &stats);
            rows->items[0].stats.is_arena = 1;
        } else {
            rows->items[rows->count++] = (struct domain_row){stats, name};
        }
    }
    free(numbers);
    return 0;
}

/* Within the quotes of a label: backslash, quote and line end are escaped; what is not UTF-8 becomes '?'. */
static void add_label_text(struct ta__text *text, const char *name)
{
    for (const char *at = name, *end = name + strlen(name); at < end;) {
        const char *point = at;
        uint32_t value = ta__next_code_point(&at, end);
        if (value == '\n')
            ta__text_add(text, "\\n", 2);
        else if (value == '"' || value == '\\')
            ta__text_add_format(text, "\\%c", (int)value);
        else if (value >= 0xDC80 && value <= 0xDCFF)
            ta__text_add(text, "?", 1);
        else
            ta__text_add(text, point, (size_t)(at - point));
    }
}

static void add_domain_value(struct ta__text *text, const char *metric, const struct domain_row *row, uint64_t value)
{
    ta__text_add_string(text, "tracealloc_");
    ta__text_add_string(text, metric);
    if (row->name == NULL)
        ta__text_add_string(text, "{domain=\"arenas\",name=\"");
    else
        ta__text_add_format(text, "{domain=\"%" PRIu32 "\",name=\"", row->stats.domain);
    add_label_text(text, row->name == NULL ? "" : row->name);
    ta__text_add_format(text, "\"} %" PRIu64 "\n", value);
}

static const struct domain_metric {
    const char *name, *type, *help;
    size_t at;
    int where_set; /* a limit: no row where there is none */
} domain_metrics[] = {
#define AT(field) offsetof(struct ta_domain_stats, field)
    {"domain_live_bytes", "gauge", "Bytes in blocks of the domain.", AT(live_bytes), 0},
    {"domain_live_blocks", "gauge", "Blocks of the domain.", AT(live_blocks), 0},
    {"domain_peak_bytes", "gauge", "Most bytes in blocks of the domain so far.", AT(peak_bytes), 0},
    {"domain_allocated_bytes_total", "counter", "Bytes allocated in the domain.", AT(allocated_bytes), 0},
    {"domain_allocated_blocks_total", "counter", "Blocks allocated in the domain.", AT(allocated_blocks), 0},
    {"domain_freed_bytes_total", "counter", "Bytes freed in the domain.", AT(freed_bytes), 0},
    {"domain_freed_blocks_total", "counter", "Blocks freed in the domain.", AT(freed_blocks), 0},
    {"domain_soft_limit_bytes", "gauge", "Bytes at which the domain warns.", AT(soft_limit), 1},
    {"domain_hard_limit_bytes", "gauge", "Bytes beyond which the domain refuses.", AT(hard_limit), 1},
    {"domain_limit_crossings_total", "counter", "How often the domain crossed its soft limit.", AT(crossings), 0},
#undef AT
};

static void add_domains(struct ta__output *output, const struct domain_rows *rows)
{
    for (size_t m = 0; m < sizeof domain_metrics / sizeof *domain_metrics; m++) {
        const struct domain_metric *metric = &domain_metrics[m];
        int is_begun = 0;
        for (size_t i = rows->items[0].stats.is_arena ? 0 : 1; i < rows->count; i++) {
            uint64_t value;
            memcpy(&value, (const char *)&rows->items[i].stats + metric->at, sizeof value);
            if (metric->where_set && value == 0)
                continue;
            if (!is_begun)
                add_family(output, metric->name, metric->type, metric->help);
            is_begun = 1;
            add_domain_value(&output->pending, metric->name, &rows->items[i], value);
        }
        ta__output_add_string(output, "");
    }
}

/* ---- the process ---- */

static void add_process(struct ta__output *output)
{
    size_t current, peak;
    struct ta_health health = {0};
    ta_get_traced_memory(&current, &peak);
    ta_get_health(&health, sizeof health);
    add_single(output, "tracing", "gauge", "Whether allocations are traced.", (uint64_t)ta_is_tracing());
    add_single(output, "traced_bytes", "gauge", "Bytes in traced blocks of all domains.", current);
    add_single(output, "traced_peak_bytes", "gauge", "Most bytes in traced blocks so far.", peak);
    add_single(output, "tracer_bytes", "gauge", "Bytes that the tracer itself uses.", ta_get_tracer_memory());
    add_single(output, "contexts", "gauge", "Nodes in the tree of calling contexts.", health.contexts);
    add_single(output, "lost_allocations_total", "counter", "Allocations that could not be traced.", health.lost);
    add_single(output, "overflowed_allocations_total", "counter", "Allocations beyond the cap on contexts.",
               health.overflowed);
    add_single(output, "cut_stacks_total", "counter", "Stacks that ended before the outermost call.", health.cut_short);
    add_single(output, "foreign_frees_total", "counter", "Frees of pointers of other allocators.",
               health.foreign_frees);
    add_single(output, "invalid_frees_total", "counter", "Double frees and damaged blocks.", health.invalid_frees);
    add_single(output, "snapshot_errors_total", "counter", "Snapshots that could not be written.",
               health.snapshot_errors);
}

int ta_export_metrics(ta_write_function write, void *user)
{
    if (ta_is_tracing == NULL || ta_get_traced_memory == NULL || ta_get_tracer_memory == NULL ||
        ta_get_health == NULL || ta_domain_list == NULL || ta_domain_get_stats == NULL || ta_domain_name == NULL)
        return ta__fail("this process does not run under tracealloc");
    struct ta__output output = {.write = write, .user = user};
    struct domain_rows rows = {0};
    if (collect(&rows) != 0) {
        free(rows.items);
        return -1;
    }
    add_process(&output);
    add_domains(&output, &rows);
    free(rows.items);
    return ta__output_finish(&output);
}
