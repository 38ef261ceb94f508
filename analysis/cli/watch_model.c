/* watch_model.c: snapshots one after another become rows with rates, courses and growth since a mark. See watch.h. */
#include "analysis/cli/watch.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/places.h"
#include "analysis/cli/project.h"

static void push(struct cli_course *course, double value)
{
    if (course->count == CLI_COURSE) {
        memmove(course->values, course->values + 1, (CLI_COURSE - 1) * sizeof *course->values);
        course->count--;
    }
    course->values[course->count++] = value;
}

static double rate(uint64_t now, uint64_t before, double seconds)
{
    return seconds > 0 && now > before ? (double)(now - before) / seconds : 0;
}

/* ---- rows ---- */

static int same_place(const struct ta_frame *a, const struct ta_frame *b)
{
    return ta_frame_equal(a, b) && (a->lineno > 0 || strcmp(a->function, b->function) == 0);
}

static size_t slot_of(const struct cli_watch *watch, const struct ta_frame *frame)
{
    uint64_t hash = ta_frame_hash(frame);
    for (const char *at = frame->function; frame->lineno == 0 && *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001B3);
    size_t at = (hash ^ (hash >> 32)) & (watch->slot_count - 1);
    while (watch->slots[at] != 0 && !same_place(&watch->rows[watch->slots[at] - 1].frame, frame))
        at = (at + 1) & (watch->slot_count - 1);
    return at;
}

static void reserve(struct cli_watch *watch)
{
    if (watch->count == watch->capacity) {
        watch->capacity = watch->capacity * 2 + 256;
        watch->rows = cli_enlarge(watch->rows, watch->capacity, sizeof *watch->rows);
    }
    if ((watch->count + 1) * 2 <= watch->slot_count)
        return;
    free(watch->slots);
    watch->slot_count = watch->slot_count == 0 ? 1024 : watch->slot_count * 2;
    watch->slots = cli_allocate(watch->slot_count, sizeof *watch->slots);
    for (size_t i = 0; i < watch->count; i++)
        watch->slots[slot_of(watch, &watch->rows[i].frame)] = (uint32_t)i + 1;
}

/* The row of a place; a new one has its own copies of the texts, and was nothing before. */
static struct cli_watch_row *row_of(struct cli_watch *watch, const struct ta_frame *frame)
{
    reserve(watch);
    size_t slot = slot_of(watch, frame);
    if (watch->slots[slot] != 0)
        return &watch->rows[watch->slots[slot] - 1];
    struct cli_watch_row *row = &watch->rows[watch->count];
    *row = (struct cli_watch_row){.frame = *frame};
    row->frame.filename = cli_text("%s", frame->filename);
    row->frame.filename_length = strlen(row->frame.filename);
    row->frame.function = cli_text("%s", frame->function);
    row->frame.module = cli_text("%s", frame->module);
    row->frame.raw_name = "";
    for (size_t i = 0; i < watch->live.count; i++)
        push(&row->course, 0);
    watch->slots[slot] = (uint32_t)++watch->count;
    return row;
}

static void take_row(struct cli_watch *watch, const struct ta_statistic *statistic, double seconds)
{
    struct ta_frame frame = {.filename = "", .function = "", .module = ""};
    ta_traceback_frame(statistic->traceback, -1, &frame);
    struct cli_watch_row *row = row_of(watch, &frame);
    if (row->generation == 0 && watch->has_learned)
        row->mark_size = statistic->size;
    row->calls_per_second = rate(statistic->allocated_count, row->calls, seconds);
    row->size = statistic->size;
    row->count = statistic->count;
    row->calls = statistic->allocated_count;
    row->bytes = statistic->allocated_size;
    row->generation = watch->generation;
    push(&row->course, (double)row->size);
}

static int take_rows(struct cli_watch *watch, struct ta_snapshot *snapshot, double seconds)
{
    struct ta_statistics *statistics = ta_group_by_own(snapshot, 1);
    struct ta_statistic statistic;
    for (size_t i = 0; ta_statistics_get(statistics, i, &statistic) == 0; i++)
        take_row(watch, &statistic, seconds);
    for (size_t i = 0; statistics != NULL && i < watch->count; i++)
        if (watch->rows[i].generation != watch->generation) { /* all of it is gone */
            watch->rows[i].size = watch->rows[i].count = 0;
            watch->rows[i].calls_per_second = 0;
            push(&watch->rows[i].course, 0);
        }
    ta_statistics_total(statistics, &statistic);
    watch->size = statistic.size;
    watch->blocks = statistic.count;
    watch->calls = statistic.allocated_count;
    watch->bytes = statistic.allocated_size;
    ta_statistics_free(statistics);
    return statistics == NULL ? CLI_TROUBLE : CLI_OK;
}

/* ---- domains ---- */

static struct cli_watch_domain *add_domain(struct cli_watch *watch, uint32_t number)
{
    for (size_t i = 0; i < watch->domain_count; i++)
        if (watch->domains[i].number == number)
            return &watch->domains[i];
    watch->domains = cli_enlarge(watch->domains, watch->domain_count + 1, sizeof *watch->domains);
    watch->domains[watch->domain_count] = (struct cli_watch_domain){.number = number};
    return &watch->domains[watch->domain_count++];
}

static int compare_domains(const void *a, const void *b)
{
    const struct cli_watch_domain *x = a, *y = b;
    return x->size != y->size ? (x->size > y->size ? -1 : 1) : x->number < y->number ? -1 : x->number > y->number;
}

static void take_domains(struct cli_watch *watch, struct ta_snapshot *snapshot)
{
    struct ta_domain_info info;
    struct ta_trace trace;
    long count = ta_snapshot_trace_count(snapshot) + ta_snapshot_gone_trace_count(snapshot);
    watch->domain_count = 0;
    for (size_t i = 0; ta_snapshot_domain(snapshot, i, &info, sizeof info) == 0; i++) {
        struct cli_watch_domain *domain = add_domain(watch, info.number);
        snprintf(domain->name, sizeof domain->name, "%s", info.name);
        domain->peak = info.peak_bytes;
        domain->limit = info.limit_bytes;
    }
    for (long i = 0; i < count; i++) {
        if (ta_snapshot_trace(snapshot, (size_t)i, &trace) != 0)
            continue;
        struct cli_watch_domain *domain = add_domain(watch, trace.domain);
        domain->size += trace.size;
        domain->count += trace.count;
        domain->calls += trace.allocated_blocks;
    }
    qsort(watch->domains, watch->domain_count, sizeof *watch->domains, compare_domains);
}

/* ---- samples ---- */

/* Whose code is whose stays what it is, so that rows do; but of a program that has just begun little can be learned. */
static int set_rules(struct cli_watch *watch, struct ta_snapshot *snapshot)
{
    long traces = ta_snapshot_trace_count(snapshot) + ta_snapshot_gone_trace_count(snapshot);
    watch->has_learned = watch->rules == NULL || traces > 4 * watch->learned_from;
    if (watch->has_learned) {
        const struct cli_options options = {.command = &cli_watch};
        ta_own_rules_free(watch->rules);
        watch->rules = NULL;
        watch->learned_from = traces;
        if (cli_project_rules(&options, &watch->rules) != CLI_OK)
            return CLI_TROUBLE;
        if (watch->rules == NULL)
            watch->rules = ta_own_rules_create();
        if (watch->rules == NULL || ta_own_rules_learn(watch->rules, snapshot) != 0)
            return CLI_TROUBLE;
    }
    return ta_snapshot_set_own_rules(snapshot, watch->rules) == 0 ? CLI_OK : CLI_TROUBLE;
}

static int take_tree(struct cli_watch *watch, struct ta_snapshot *snapshot)
{
    struct ta_calltree *tree = ta_calltree_create(TA_ORDER_DEFAULT, 0);
    if (tree == NULL || ta_calltree_add(tree, snapshot, 0) != 0) {
        ta_calltree_free(tree);
        return CLI_TROUBLE;
    }
    ta_calltree_free(watch->tree);
    watch->tree = tree;
    return CLI_OK;
}

int cli_watch_take(struct cli_watch *watch, struct ta_snapshot *snapshot, uint64_t resident)
{
    struct ta_snapshot_info info;
    uint64_t size = watch->size, calls = watch->calls, bytes = watch->bytes;
    if (ta_snapshot_info(snapshot, &info, sizeof info) != 0 || set_rules(watch, snapshot) != CLI_OK) {
        ta_snapshot_free(snapshot);
        return CLI_TROUBLE;
    }
    int is_first = watch->generation++ == 0;
    if (is_first)
        cli_places_set_program(snapshot);
    int begins = is_first || info.epoch != watch->epoch; /* what was before is of no account */
    double seconds = begins || info.time_ns <= watch->time ? 0 : (double)(info.time_ns - watch->time) / 1e9;
    int status = take_rows(watch, snapshot, seconds);
    if (status == CLI_OK)
        status = take_tree(watch, snapshot);
    take_domains(watch, snapshot);
    watch->time = info.time_ns;
    watch->epoch = info.epoch;
    watch->peak = info.peak_bytes > watch->size ? info.peak_bytes : watch->size;
    watch->sampled = info.sample_bytes;
    const char *fact = ta_snapshot_metadata(snapshot, "memory.resident");
    watch->resident = resident > 0 ? resident : fact != NULL ? strtoull(fact, NULL, 10) : 0;
    watch->calls_per_second = rate(watch->calls, calls, seconds);
    watch->bytes_per_second = rate(watch->bytes, bytes, seconds);
    watch->growth_per_second = seconds > 0 ? ((double)watch->size - (double)size) / seconds : 0;
    push(&watch->live, (double)watch->size);
    ta_snapshot_free(snapshot);
    if (begins)
        cli_watch_mark(watch);
    cli_watch_arrange(watch);
    return status;
}

void cli_watch_rest(struct cli_watch *watch)
{
    watch->calls_per_second = watch->bytes_per_second = watch->growth_per_second = 0;
    for (size_t i = 0; i < watch->count; i++)
        watch->rows[i].calls_per_second = 0;
    cli_watch_arrange(watch);
}

/* Rows that are there at once, with the courses that they had. */
static void recall_rows(struct cli_watch *watch, const char *path)
{
    struct ta_series *series = ta_series_load(path, "own", watch->rules);
    size_t points = ta_series_entry_count(series);
    uint64_t *sizes = cli_allocate(points, sizeof *sizes);
    size_t first = points > CLI_COURSE ? points - CLI_COURSE : 0;
    for (size_t i = 0; i < ta_series_row_count(series); i++) {
        struct ta_series_row told;
        ta_series_get_row(series, i, &told, sizeof told);
        ta_series_course(series, i, sizes, NULL, points);
        struct cli_watch_row *row = row_of(watch, &told.frame);
        row->course.count = 0;
        for (size_t p = first; p + 1 < points; p++)
            push(&row->course, (double)sizes[p]);
    }
    free(sizes);
    ta_series_free(series);
}

void cli_watch_recall(struct cli_watch *watch, const char *path)
{
    struct ta_recording *recording = ta_recording_open(path);
    struct ta_entry_info info;
    size_t count = recording == NULL ? 0 : ta_recording_entry_count(recording);
    struct ta_snapshot *last = count > 1 ? ta_snapshot_load(path) : NULL;
    if (last != NULL && set_rules(watch, last) == CLI_OK) {
        for (size_t i = count > CLI_COURSE ? count - CLI_COURSE : 0; i + 1 < count; i++)
            if (ta_recording_entry(recording, i, &info) == 0)
                push(&watch->live, (double)info.current_bytes);
        recall_rows(watch, path);
    }
    ta_snapshot_free(last);
    ta_recording_close(recording);
}

void cli_watch_mark(struct cli_watch *watch)
{
    watch->mark_time = watch->time;
    watch->mark_size = watch->size;
    watch->mark_calls = watch->calls;
    for (size_t i = 0; i < watch->count; i++) {
        watch->rows[i].mark_size = watch->rows[i].size;
        watch->rows[i].mark_calls = watch->rows[i].calls;
    }
    cli_watch_arrange(watch);
}

/* ---- order and filter ---- */

static const struct cli_watch *arranged;

static int compare_numbers(double a, double b)
{
    return a > b ? -1 : a < b;
}

static int compare_rows(const void *a, const void *b)
{
    const struct cli_watch_row *x = &arranged->rows[*(const uint32_t *)a], *y = &arranged->rows[*(const uint32_t *)b];
    int order = 0;
    if (arranged->order == CLI_BY_GROWTH)
        order = compare_numbers((double)x->size - (double)x->mark_size, (double)y->size - (double)y->mark_size);
    else if (arranged->order == CLI_BY_RATE)
        order = compare_numbers(x->calls_per_second, y->calls_per_second);
    else if (arranged->order == CLI_BY_CALLS)
        order = compare_numbers((double)x->calls, (double)y->calls);
    if (order == 0)
        order = compare_numbers((double)x->size, (double)y->size);
    return order != 0 ? order : ta_frame_compare(&x->frame, &y->frame);
}

static int is_kept(const struct cli_watch *watch, const struct cli_watch_row *row)
{
    if (watch->filter[0] == '\0')
        return row->size > 0 || row->mark_size > 0 || watch->order >= CLI_BY_RATE;
    return strcasestr(row->frame.function, watch->filter) != NULL ||
           strcasestr(row->frame.filename, watch->filter) != NULL ||
           strcasestr(row->frame.module, watch->filter) != NULL;
}

void cli_watch_arrange(struct cli_watch *watch)
{
    watch->shown = cli_enlarge(watch->shown, watch->count + 1, sizeof *watch->shown);
    watch->shown_count = 0;
    for (size_t i = 0; i < watch->count; i++)
        if (is_kept(watch, &watch->rows[i]))
            watch->shown[watch->shown_count++] = (uint32_t)i;
    arranged = watch;
    qsort(watch->shown, watch->shown_count, sizeof *watch->shown, compare_rows);
}

void cli_watch_free(struct cli_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        free((char *)(uintptr_t)watch->rows[i].frame.filename);
        free((char *)(uintptr_t)watch->rows[i].frame.function);
        free((char *)(uintptr_t)watch->rows[i].frame.module);
    }
    free(watch->rows);
    free(watch->slots);
    free(watch->shown);
    free(watch->domains);
    ta_calltree_free(watch->tree);
    ta_own_rules_free(watch->rules);
}
