/* table_snapshot.c: the library's tables in another process become the snapshot that the process itself would take.
 *
 * The order is that of snapshot/write/write.c: leaves by number, each with the contexts it needs; so that both give the
 * same rows. Every number is checked before it is used: the tables may be damaged, or of a moment in which they changed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/image/memory_image.h"
#include "snapshot/format/buffer.h"
#include "snapshot/read/read.h"

enum {
    ROWS_MOST = 1 << 28,
    THREADS_MOST = 1 << 16,
    DOMAINS_MOST = 1 << 17,
    MODULES_MOST = 1 << 14,
    SUMS_MOST = 1 << 28,
    AT_ONCE = 1 << 16
};

struct counts {
    uint64_t in_blocks, in_bytes, out_blocks, out_bytes;
};

struct domain_row {
    uint32_t number, flags, trace; /* trace: of its untraced blocks */
    uint64_t untraced_blocks, untraced_bytes;
};

struct ta__table_reading {
    struct ta_image *image;
    struct ta__snapshot_builder *builder;
    uint8_t *contexts, *leaves; /* as they stand in the process */
    struct counts *counts;      /* by leaf */
    uint64_t *peaks;            /* by leaf; NULL = not known */
    uint32_t context_count, leaf_first, leaf_count, module_count, member_count;
    uint32_t *context_map; /* by number in the process: that in the snapshot, 0 = it has none yet */
    uint32_t *path;
    struct domain_row *domains;
    uint32_t domain_count;
    uint64_t *members; /* addresses of thread structures */
    uint64_t sample_bytes, lost;
    int is_tracing, peak_is_now;
    uint32_t forgotten_context, overflow_context;
    uint64_t tracked_count, own_block_count; /* rows of what ta_track recorded; of the program's own blocks */
    uint32_t trace_count;
    uint32_t untraced_traces; /* where nothing is traced: one for each domain that has blocks */
};

/* ---- words ------------------------------------------------------------------------------------------------------- */

static uint64_t word_at(struct ta_image *image, uint64_t address)
{
    uint64_t word = 0;
    return address != 0 && ta__target_word(&image->target, address, &word) == 0 ? word : 0;
}

static uint32_t half_at(struct ta_image *image, uint64_t address)
{
    uint32_t half = 0;
    return address != 0 && ta__target_half(&image->target, address, &half) == 0 ? half : 0;
}

static uint64_t word_in(const uint8_t *row, uint64_t place)
{
    uint64_t word;
    memcpy(&word, row + place, sizeof word);
    return word;
}

static uint32_t half_in(const uint8_t *row, uint64_t place)
{
    uint32_t half;
    memcpy(&half, row + place, sizeof half);
    return half;
}

static uint16_t short_in(const uint8_t *row, uint64_t place)
{
    uint16_t number;
    memcpy(&number, row + place, sizeof number);
    return number;
}

static int name_at(struct ta__table_reading *reading, uint64_t address, uint32_t *name)
{
    char text[4096] = "";
    if (address != 0 && ta__target_text(&reading->image->target, address, text, sizeof text) != 0)
        text[0] = '\0';
    return ta__snapshot_builder_name(reading->builder, text, strlen(text), name);
}

/* ---- copies of the tables ---------------------------------------------------------------------------------------- */

/* `count` rows of `bytes` each from where the word at `place` leads to; fewer where they are not all at hand. */
static uint8_t *copy_rows(struct ta_image *image, uint64_t place, uint32_t *count, uint64_t bytes, const char *what)
{
    uint64_t start = word_at(image, place), there = ta__target_extent(&image->target, start) / bytes;
    if (*count > ROWS_MOST || *count > there) {
        ta__image_warn(image, "%u %s, of which %llu can be read", *count, what,
                       (unsigned long long)(there < ROWS_MOST ? there : 0));
        *count = *count > ROWS_MOST ? 0 : (uint32_t)there;
    }
    uint8_t *rows = ta__new_array((size_t)*count + 1, bytes);
    if (rows != NULL && *count > 0 && ta__target_read_sparse(&image->target, start, rows, *count * bytes) != 0) {
        ta__image_warn(image, "the table of %s cannot be read", what);
        *count = 0;
    }
    return rows;
}

static int fits(uint64_t bytes, uint64_t least, uint64_t most, const uint64_t *places, size_t count, size_t width)
{
    if (bytes < least || bytes > most)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (places[i] > bytes - width)
            return 0;
    return 1;
}

static int check_shapes(const struct ta__layout *layout)
{
    const uint64_t context[] = {layout->context_parent, layout->context_module};
    const uint64_t leaf[] = {layout->leaf_context, layout->leaf_domain};
    const uint64_t short_leaf[] = {layout->leaf_depth, layout->leaf_flags};
    const uint64_t counts[] = {layout->counts_in_blocks, layout->counts_in_bytes, layout->counts_out_blocks,
                               layout->counts_out_bytes};
    const uint64_t former[] = {layout->former_blocks, layout->former_size};
    if (fits(layout->context_bytes, 16, 64, context, 2, 4) &&
        fits(layout->context_bytes, 16, 64, &layout->context_address, 1, 8) &&
        fits(layout->leaf_bytes, 8, 64, leaf, 2, 4) && fits(layout->leaf_bytes, 8, 64, short_leaf, 2, 2) &&
        fits(layout->counts_bytes, 32, 64, counts, 4, 8) && fits(layout->former_bytes, 16, 64, former, 2, 8))
        return 0;
    return ta__fail("the library's tables are of a shape that cannot be");
}

/* Adds, or takes away, the rows of one array of counters. */
static int add_counts(struct ta__table_reading *reading, uint64_t array, uint8_t *rows, int is_former)
{
    struct ta_image *image = reading->image;
    const struct ta__layout *layout = &image->layout;
    uint64_t bytes = is_former ? layout->former_bytes : layout->counts_bytes;
    if (array == 0)
        return 0;
    for (uint32_t first = reading->leaf_first; first < reading->leaf_count; first += AT_ONCE) {
        uint32_t now = reading->leaf_count - first < AT_ONCE ? reading->leaf_count - first : AT_ONCE;
        uint64_t start = array + first * bytes, there = ta__target_extent(&image->target, start) / bytes;
        now = there < now ? (uint32_t)there : now;
        if (now == 0 || ta__target_read_sparse(&image->target, start, rows, now * bytes) != 0) {
            ta__image_warn(image, "the counters of a thread cannot be read");
            return 0;
        }
        for (uint32_t i = 0; i < now; i++) {
            const uint8_t *row = rows + i * bytes;
            struct counts *counts = &reading->counts[first + i];
            if (is_former) {
                counts->in_blocks -= word_in(row, layout->former_blocks);
                counts->out_blocks -= word_in(row, layout->former_blocks);
                counts->in_bytes -= word_in(row, layout->former_size);
                counts->out_bytes -= word_in(row, layout->former_size);
            } else {
                counts->in_blocks += word_in(row, layout->counts_in_blocks);
                counts->in_bytes += word_in(row, layout->counts_in_bytes);
                counts->out_blocks += word_in(row, layout->counts_out_blocks);
                counts->out_bytes += word_in(row, layout->counts_out_bytes);
            }
        }
    }
    return 0;
}

/* As trace/counters.c sums them. */
static int fold_counts(struct ta__table_reading *reading)
{
    struct ta_image *image = reading->image;
    const struct ta__layout *layout = &image->layout;
    uint8_t *rows = ta__new_array(AT_ONCE, 64);
    if (rows == NULL)
        return -1;
    int result = add_counts(reading, word_at(image, layout->counts_shared), rows, 0);
    for (uint32_t i = 0; i < reading->member_count && result == 0; i++)
        result = add_counts(reading, word_at(image, reading->members[i] + layout->thread_counts), rows, 0);
    if (result == 0)
        result = add_counts(reading, word_at(image, layout->counts_former), rows, 1);
    free(rows);
    uint64_t unit = layout->sample_unit;
    for (uint32_t leaf = 0; leaf < reading->leaf_count && reading->sample_bytes != 0 && unit != 0; leaf++) {
        reading->counts[leaf].in_blocks = (reading->counts[leaf].in_blocks + unit / 2) / unit;
        reading->counts[leaf].out_blocks = (reading->counts[leaf].out_blocks + unit / 2) / unit;
    }
    return result;
}

static int read_members(struct ta__table_reading *reading)
{
    struct ta_image *image = reading->image;
    const struct ta__layout *layout = &image->layout;
    uint32_t used = half_at(image, layout->members_used);
    if (used > THREADS_MOST || used > layout->members_most)
        used = 0;
    reading->members = ta__new_array((size_t)used + 1, sizeof *reading->members);
    if (reading->members == NULL)
        return -1;
    for (uint32_t i = 0; i < used; i++)
        reading->members[i] = word_at(image, layout->members + i * 8);
    reading->member_count = used;
    return 0;
}

/* ---- current and peak, as trace/counters.c and trace/peak.c ------------------------------------------------------ */

static void read_totals(struct ta__table_reading *reading, struct ta__view *view)
{
    struct ta_image *image = reading->image;
    const struct ta__layout *layout = &image->layout;
    int64_t flushed = (int64_t)word_at(image, layout->counts_flushed), now = flushed, most = flushed;
    int64_t peak = (int64_t)word_at(image, layout->counts_peak);
    for (uint32_t i = 0; i < reading->member_count; i++) {
        uint64_t thread = reading->members[i];
        int64_t high = (int64_t)word_at(image, thread + layout->thread_high);
        int64_t headroom = (int64_t)word_at(image, thread + layout->thread_headroom);
        now += high - (headroom > 0 ? headroom : 0); /* at most `most` */
        most += high;
        reading->lost += word_at(image, thread + layout->thread_lost);
    }
    view->current_bytes = (uint64_t)(now > 0 ? now : 0);
    view->peak_bytes = (uint64_t)(peak > most ? peak : most);
}

/* What the leaves held at the peak. The program itself would write the list anew where enough has come to it since. */
static int read_peaks(struct ta__table_reading *reading, uint64_t current)
{
    enum { STEP_LEAST = 1024 };
    struct ta_image *image = reading->image;
    const struct ta__layout *layout = &image->layout;
    uint32_t count = half_at(image, layout->peak_count);
    uint64_t recorded = word_at(image, layout->peak_current), list = word_at(image, layout->peak_list);
    int is_whole = list != 0 && count != 0 && (int32_t)half_at(image, layout->peak_users) >= 0 &&
                   word_at(image, layout->peak_epoch) == word_at(image, layout->control_epochs_begun);
    reading->peak_is_now = current >= (is_whole ? recorded : STEP_LEAST);
    if (reading->peak_is_now || !is_whole)
        return 0;
    count = count < reading->leaf_count ? count : reading->leaf_count;
    reading->peaks = ta__new_array((size_t)reading->leaf_count + 1, sizeof *reading->peaks);
    if (reading->peaks == NULL)
        return -1;
    if (ta__target_extent(&image->target, list) < count * UINT64_C(8) ||
        ta__target_read_sparse(&image->target, list, reading->peaks, count * UINT64_C(8)) != 0)
        memset(reading->peaks, 0, count * sizeof *reading->peaks);
    return 0;
}

/* ---- rows of the snapshot ---------------------------------------------------------------------------------------- */

static int add_modules(struct ta__table_reading *reading)
{
    struct ta_image *image = reading->image;
    const struct ta__layout *layout = &image->layout;
    uint64_t table = word_at(image, layout->modules_table);
    uint32_t count = table != 0 ? half_at(image, layout->modules_count) : 0;
    count = count <= MODULES_MOST ? count : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t row = table + layout->modules_first + i * layout->module_bytes;
        uint8_t length = 0, gone = 0, id[64] = {0};
        struct ta__view_module module = {.start = word_at(image, row + layout->module_start),
                                         .end = word_at(image, row + layout->module_end),
                                         .load_base = word_at(image, row + layout->module_bias),
                                         .build_id = id};
        if (ta__target_peek(&image->target, row + layout->module_id_bytes, &length, 1) != 0 || length > sizeof id ||
            ta__target_peek(&image->target, row + layout->module_id, id, length) != 0 ||
            ta__target_peek(&image->target, row + layout->module_gone, &gone, 1) != 0)
            length = 0;
        module.build_id_length = length;
        module.flags = gone != 0;
        if (name_at(reading, word_at(image, row + layout->module_path), &module.path) != 0 ||
            ta__snapshot_builder_module(reading->builder, &module) != 0)
            return -1;
    }
    reading->module_count = count;
    return 0;
}

static int add_threads(struct ta__table_reading *reading)
{
    struct ta_image *image = reading->image;
    const struct ta__layout *layout = &image->layout;
    for (uint32_t i = 0; i < reading->member_count; i++) {
        char name[17] = "";
        uint8_t present = 0;
        struct ta__view_thread row = {.tid = half_at(image, reading->members[i] + layout->thread_tid)};
        if (ta__target_peek(&image->target, reading->members[i] + layout->thread_name, name, 16) != 0)
            name[0] = '\0';
        if (ta__target_peek(&image->target, layout->members_present + i, &present, 1) != 0)
            present = 1;
        row.flags = present == 0;
        if (ta__snapshot_builder_name(reading->builder, name, strlen(name), &row.name) != 0 ||
            ta__snapshot_builder_thread(reading->builder, &row) != 0)
            return -1;
    }
    return 0;
}

/* As ta__domain_sum does. */
static void sum_domain(struct ta__table_reading *reading, uint32_t index, uint64_t domain, struct ta__view_domain *row)
{
    struct ta_image *image = reading->image;
    const struct ta__layout *layout = &image->layout;
    struct counts sum = {
        word_at(image, domain + layout->domain_in_blocks), word_at(image, domain + layout->domain_in_bytes),
        word_at(image, domain + layout->domain_out_blocks), word_at(image, domain + layout->domain_out_bytes)};
    int64_t highest = (int64_t)word_at(image, domain + layout->domain_current), high = 0;
    for (uint32_t i = 0; i < reading->member_count; i++) {
        uint64_t parts = word_at(image, reading->members[i] + layout->thread_domains);
        uint64_t slot = parts + layout->slots + index * layout->slot_bytes;
        uint32_t cold = parts != 0 ? half_at(image, slot + layout->slot_cold) : 0;
        if (cold == 0 || cold >= DOMAINS_MOST)
            continue;
        sum.in_blocks += word_at(image, slot + layout->slot_in_blocks);
        sum.in_bytes += word_at(image, slot + layout->slot_in_bytes);
        sum.out_blocks += word_at(image, slot + layout->slot_out_blocks);
        sum.out_bytes += word_at(image, slot + layout->slot_out_bytes);
        int64_t own = (int64_t)word_at(image, parts + layout->colds + cold * layout->cold_bytes + layout->cold_high);
        high = own > high ? own : high;
    }
    int64_t peak = (int64_t)word_at(image, domain + layout->domain_peak),
            live = (int64_t)(sum.in_bytes - sum.out_bytes);
    highest = highest + high > peak ? highest + high : peak;
    highest = highest > live ? highest : live;
    row->peak_bytes = (uint64_t)(highest > 0 ? highest : 0);
    row->allocated_bytes = sum.in_bytes;
    row->allocated_blocks = sum.in_blocks;
    row->live_bytes = sum.in_bytes > sum.out_bytes ? sum.in_bytes - sum.out_bytes : 0;
    row->live_blocks = sum.in_blocks > sum.out_blocks ? sum.in_blocks - sum.out_blocks : 0;
}

static uint64_t domain_at(struct ta_image *image, uint32_t index)
{
    const struct ta__layout *layout = &image->layout;
    if (layout->domains_chunk == 0)
        return 0;
    uint64_t chunk = word_at(image, layout->domains_chunks + index / layout->domains_chunk * 8);
    return chunk == 0 ? 0 : chunk + index % layout->domains_chunk * layout->domain_bytes;
}

static int add_domains(struct ta__table_reading *reading)
{
    struct ta_image *image = reading->image;
    const struct ta__layout *layout = &image->layout;
    uint32_t count = layout->can_trace ? half_at(image, layout->domains_count) : 1;
    count = count > DOMAINS_MOST || count == 0 ? 1 : count;
    reading->domains = ta__new_array(count, sizeof *reading->domains);
    if (reading->domains == NULL)
        return -1;
    reading->domain_count = count;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t domain = layout->can_trace ? domain_at(image, i) : 0;
        struct ta__view_domain row = {.number = half_at(image, domain != 0 ? domain + layout->domain_number : 0),
                                      .flags = half_at(image, domain != 0 ? domain + layout->domain_flags : 0)};
        uint64_t hard = word_at(image, domain != 0 ? domain + layout->domain_hard : 0);
        row.limit_bytes = hard != 0 ? hard : word_at(image, domain != 0 ? domain + layout->domain_soft : 0);
        if (domain != 0 && i != 0 && (row.flags & layout->domain_destroyed) == 0 &&
            (uint64_t)count * reading->member_count < SUMS_MOST)
            sum_domain(reading, i, domain, &row);
        reading->domains[i] = (struct domain_row){row.number, row.flags, TA__NO_TRACE, 0, 0};
        if (name_at(reading, word_at(image, domain != 0 ? domain + layout->domain_name : 0), &row.name) != 0 ||
            ta__snapshot_builder_domain(reading->builder, &row) != 0)
            return -1;
    }
    return 0;
}

static int add_options(struct ta__table_reading *reading)
{
    char text[4096] = "";
    struct ta__view_pair row;
    const struct ta__layout *layout = &reading->image->layout;
    size_t room = layout->options_room < sizeof text ? layout->options_room : sizeof text;
    if (!layout->can_trace || room == 0 || ta__target_text(&reading->image->target, layout->options, text, room) != 0 ||
        text[0] == '\0')
        return 0;
    return ta__snapshot_builder_name(reading->builder, "options", 7, &row.key) != 0 ||
                   ta__snapshot_builder_name(reading->builder, text, strlen(text), &row.value) != 0 ||
                   ta__snapshot_builder_option(reading->builder, &row) != 0
               ? -1
               : 0;
}

/* ---- stacks ------------------------------------------------------------------------------------------------------ */

/* Parents have smaller depths, but not smaller numbers: a circle is found by its length. */
static int context_of(struct ta__table_reading *reading, uint32_t id, uint32_t *result)
{
    const struct ta__layout *layout = &reading->image->layout;
    uint32_t length = 0;
    for (; id != 0 && id < reading->context_count && reading->context_map[id] == 0; length++) {
        if (length >= reading->context_count)
            return *result = 0, 0;
        reading->path[length] = id;
        id = half_in(reading->contexts + id * layout->context_bytes, layout->context_parent);
    }
    uint32_t context = id != 0 && id < reading->context_count ? reading->context_map[id] : 0;
    while (length-- > 0) {
        const uint8_t *row = reading->contexts + reading->path[length] * layout->context_bytes;
        uint32_t module = half_in(row, layout->context_module), frame;
        if (ta__snapshot_builder_address(reading->builder, word_in(row, layout->context_address),
                                         module <= reading->module_count ? module : 0, &frame) != 0 ||
            ta__snapshot_builder_context(reading->builder, context, frame, &context) != 0)
            return -1;
        reading->context_map[reading->path[length]] = context;
    }
    *result = context;
    return 0;
}

static int special_context(struct ta__table_reading *reading, int is_overflow, uint32_t *context)
{
    uint32_t *known = is_overflow ? &reading->overflow_context : &reading->forgotten_context, frame, name;
    if (*known == 0) {
        int failed = is_overflow ? ta__snapshot_builder_overflow(reading->builder, &frame)
                                 : ta__snapshot_builder_name(reading->builder, "<forgotten>", 11, &name) != 0 ||
                                       ta__snapshot_builder_frame(reading->builder, name, 0, &frame) != 0;
        if (failed || ta__snapshot_builder_context(reading->builder, 0, frame, known) != 0)
            return -1;
    }
    *context = *known;
    return 0;
}

/* The trace of a leaf, as decode.c of the reading side makes it of what the program would have written. 1, 0 = none. */
static int trace_of(struct ta__table_reading *reading, uint32_t id, struct ta__view_trace *trace)
{
    const struct ta__layout *layout = &reading->image->layout;
    const uint8_t *leaf = reading->leaves + id * layout->leaf_bytes;
    const struct counts *counts = &reading->counts[id];
    uint32_t flags = short_in(leaf, layout->leaf_flags), domain = half_in(leaf, layout->leaf_domain);
    int64_t blocks = (int64_t)(counts->in_blocks - counts->out_blocks);
    int64_t bytes = (int64_t)(counts->in_bytes - counts->out_bytes);
    uint64_t peak = reading->peak_is_now     ? (uint64_t)(bytes > 0 ? bytes : 0)
                    : reading->peaks != NULL ? reading->peaks[id]
                                             : 0;
    if ((flags & (layout->leaf_untraced | layout->leaf_freed)) != 0 || (counts->in_blocks == 0 && peak == 0) ||
        domain >= reading->domain_count)
        return 0;
    int is_forgotten = (flags & layout->leaf_forgotten) != 0, is_overflow = (flags & layout->leaf_overflow) != 0;
    uint32_t depth = is_forgotten ? 1 : short_in(leaf, layout->leaf_depth),
             context = half_in(leaf, layout->leaf_context);
    *trace = (struct ta__view_trace){
        .context = context,
        .domain = reading->domains[domain].number,
        .flags = ((flags & layout->leaf_cut_short) != 0 ? TA__TRACE_CUT_SHORT : 0u) |
                 (is_overflow ? TA__TRACE_OVERFLOW : 0u),
        .total_nframe = depth != 0                     ? (int32_t)depth
                        : context == 0 && !is_overflow ? 1
                                                       : -1,
        .count = blocks > 0 ? (uint64_t)blocks : 0,
        .size = blocks > 0 && bytes > 0 ? (uint64_t)bytes : 0,
        .allocated_bytes = counts->in_bytes,
        .allocated_blocks = counts->in_blocks,
        .peak_bytes = peak,
    };
    return 1;
}

/* Answers 1 when the leaf has a trace of the kind: with live blocks, or without. */
static int add_trace(struct ta__table_reading *reading, uint32_t id, int gone, int *is_added)
{
    const struct ta__layout *layout = &reading->image->layout;
    struct ta__view_trace trace;
    *is_added = 0;
    if (!trace_of(reading, id, &trace) || (trace.count == 0) != gone)
        return 0;
    uint32_t flags = short_in(reading->leaves + id * layout->leaf_bytes, layout->leaf_flags);
    int is_overflow = (trace.flags & TA__TRACE_OVERFLOW) != 0;
    int result = (flags & layout->leaf_forgotten) != 0 || (is_overflow && trace.context == 0)
                     ? special_context(reading, is_overflow, &trace.context)
                     : context_of(reading, trace.context, &trace.context);
    *is_added = result == 0;
    return result == 0 ? ta__snapshot_builder_trace(reading->builder, &trace) : -1;
}

static uint32_t next_leaf(const struct ta__table_reading *reading, uint32_t id)
{
    return id + 1 < reading->leaf_first ? reading->leaf_first : id + 1;
}

/* Those with live blocks first: their number is the trace's. */
static int add_traces(struct ta__table_reading *reading, uint32_t *traces)
{
    struct ta_image *image = reading->image;
    uint32_t gone_traces = 0;
    *traces = 0;
    for (int gone = 0; gone <= 1; gone++)
        for (uint32_t id = 0; id < reading->leaf_count; id = next_leaf(reading, id)) {
            int is_added;
            if (add_trace(reading, id, gone, &is_added) != 0)
                return -1;
            if (is_added)
                image->trace_of_leaf[id] = (*traces)++;
            gone_traces += is_added && gone;
        }
    ta__snapshot_builder_view(reading->builder)->gone_trace_count = gone_traces;
    return 0;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int make_maps(struct ta__table_reading *reading)
{
    struct ta_image *image = reading->image;
    const struct ta__layout *layout = &image->layout;
    image->leaf_count = reading->leaf_count;
    image->trace_of_leaf = ta__new_array((size_t)reading->leaf_count + 1, sizeof *image->trace_of_leaf);
    image->domain_of_leaf = ta__new_array((size_t)reading->leaf_count + 1, sizeof *image->domain_of_leaf);
    reading->context_map = ta__new_array((size_t)reading->context_count + 1, sizeof *reading->context_map);
    reading->path = ta__new_array((size_t)reading->context_count + 1, sizeof *reading->path);
    reading->counts = ta__new_array((size_t)reading->leaf_count + 1, sizeof *reading->counts);
    if (image->trace_of_leaf == NULL || image->domain_of_leaf == NULL || reading->context_map == NULL ||
        reading->path == NULL || reading->counts == NULL)
        return -1;
    memset(image->trace_of_leaf, 0xFF, ((size_t)reading->leaf_count + 1) * sizeof *image->trace_of_leaf);
    for (uint32_t i = 0; i < reading->leaf_count; i++)
        image->domain_of_leaf[i] = half_in(reading->leaves + i * layout->leaf_bytes, layout->leaf_domain);
    return 0;
}

static int read_trace_tables(struct ta__table_reading *reading)
{
    struct ta_image *image = reading->image;
    const struct ta__layout *layout = &image->layout;
    reading->context_count = half_at(image, layout->contexts_count);
    reading->leaf_count = half_at(image, layout->leaves_count);
    reading->leaf_first = half_at(image, layout->leaves_first);
    reading->sample_bytes = word_at(image, layout->control_sample_bytes);
    reading->is_tracing = image->marks.is_tracing;
    if (check_shapes(layout) != 0)
        return -1;
    reading->contexts =
        copy_rows(image, layout->contexts, &reading->context_count, layout->context_bytes, "stack frames");
    reading->leaves = copy_rows(image, layout->leaves, &reading->leaf_count, layout->leaf_bytes, "stacks");
    if (reading->contexts == NULL || reading->leaves == NULL || read_members(reading) != 0 || make_maps(reading) != 0)
        return -1;
    return fold_counts(reading);
}

static void describe_entry(struct ta__table_reading *reading)
{
    struct ta_image *image = reading->image;
    struct ta__view *view = ta__snapshot_builder_view(reading->builder);
    struct ta__target *target = &image->target;
    struct utsname system = {0};
    struct timespec now = {0, 0};
    const char *reason = target->is_core ? "core" : "take";
    clock_gettime(CLOCK_REALTIME, &now);
    if (!target->is_core)
        uname(&system);
    view->time_ns = target->is_core ? target->time_ns : (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    view->pid = target->inner;
    const char *program = ta__target_string(target, target->program);
    if (ta__snapshot_builder_name(reading->builder, program, strlen(program), &view->program) != 0 ||
        ta__snapshot_builder_name(reading->builder, system.nodename, strlen(system.nodename), &view->host) != 0 ||
        ta__snapshot_builder_name(reading->builder, reason, strlen(reason), &view->reason) != 0)
        view->program = view->host = view->reason = 0;
}

static void describe_tracing(struct ta__table_reading *reading)
{
    struct ta_image *image = reading->image;
    const struct ta__layout *layout = &image->layout;
    struct ta__view *view = ta__snapshot_builder_view(reading->builder);
    view->traceback_limit = half_at(image, layout->control_limit);
    view->epoch = word_at(image, layout->control_epochs_begun);
    view->sample_bytes = reading->sample_bytes;
    view->lost = word_at(image, layout->events_lost) + reading->lost;
    view->foreign_frees = word_at(image, layout->events_foreign_frees);
    view->invalid_frees = word_at(image, layout->events_invalid_frees);
    view->snapshot_errors = word_at(image, layout->events_snapshots);
    for (uint32_t id = reading->leaf_first; id < reading->leaf_count; id++) {
        uint32_t flags = short_in(reading->leaves + id * layout->leaf_bytes, layout->leaf_flags);
        if ((flags & layout->leaf_overflow) != 0)
            view->overflowed += reading->counts[id].in_blocks;
        else if ((flags & layout->leaf_cut_short) != 0)
            view->cut_short += reading->counts[id].in_blocks;
    }
}

static int read_all(struct ta__table_reading *reading)
{
    struct ta_image *image = reading->image;
    struct ta__view *view = ta__snapshot_builder_view(reading->builder);
    describe_entry(reading);
    if (!image->layout.can_trace)
        return add_domains(reading);
    if (read_trace_tables(reading) != 0 || add_modules(reading) != 0 || add_domains(reading) != 0 ||
        add_threads(reading) != 0 || add_options(reading) != 0)
        return -1;
    if (!reading->is_tracing)
        return 0;
    read_totals(reading, view);
    if (read_peaks(reading, view->current_bytes) != 0 || add_traces(reading, &reading->trace_count) != 0)
        return -1;
    describe_tracing(reading);
    return 0;
}

int ta__table_read(struct ta_image *image, struct ta__table_reading **result)
{
    struct ta__table_reading *reading = ta__new_array(1, sizeof *reading);
    *result = reading;
    if (reading == NULL)
        return -1;
    reading->image = image;
    reading->builder = ta__snapshot_builder_create();
    return reading->builder != NULL ? read_all(reading) : -1;
}

void ta__table_free(struct ta__table_reading *reading)
{
    if (reading == NULL)
        return;
    ta__snapshot_builder_destroy(reading->builder);
    free(reading->contexts);
    free(reading->leaves);
    free(reading->counts);
    free(reading->peaks);
    free(reading->context_map);
    free(reading->path);
    free(reading->domains);
    free(reading->members);
    free(reading);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

uint32_t ta__table_count(struct ta__table_reading *reading, const struct ta__page_block *block, uint32_t domain)
{
    struct ta_image *image = reading->image;
    image->blocks++;
    image->bytes += block->size;
    uint32_t trace =
        block->has_trace && block->leaf < image->leaf_count ? image->trace_of_leaf[block->leaf] : TA__NO_TRACE;
    if (trace != TA__NO_TRACE)
        return trace;
    image->untraced_blocks++;
    image->untraced_bytes += block->size;
    if (reading->is_tracing)
        return TA__NO_TRACE;
    struct domain_row *row = &reading->domains[domain < reading->domain_count ? domain : 0];
    if (row->trace == TA__NO_TRACE)
        row->trace = reading->untraced_traces++; /* there are no others */
    row->untraced_blocks++;
    row->untraced_bytes += block->size;
    return row->trace;
}

uint32_t ta__table_traces(const struct ta__table_reading *reading)
{
    return reading->is_tracing ? reading->trace_count : reading->domain_count;
}

int ta__table_add(struct ta__table_reading *reading, uint64_t address, uint64_t size, uint32_t trace)
{
    struct ta__view_block row = ta__view_block(address, size, trace == TA__NO_TRACE ? TA__BLOCK_UNTRACED : trace);
    struct ta__buffer *blocks = ta__snapshot_builder_blocks(reading->builder);
    return ta__buffer_put(blocks, &row, sizeof row) != 0 ? ta__fail_memory() : 0;
}

static int compare_blocks(const void *a, const void *b)
{
    const struct ta__view_block *left = a, *right = b;
    return left->address < right->address ? -1 : left->address > right->address;
}

/* What ta_track recorded is a block of its own; but in domain 0, of the address of a block, it is that block's trace. */
static int add_tracked_cell(struct ta__table_reading *reading, struct ta__view_block tracked, int may_be_a_block)
{
    struct ta_image *image = reading->image;
    struct ta__buffer *blocks = ta__snapshot_builder_blocks(reading->builder);
    struct ta__view_block *same =
        may_be_a_block && reading->own_block_count != 0
            ? bsearch(&tracked, blocks->bytes, reading->own_block_count, sizeof tracked, compare_blocks)
            : NULL;
    if (same == NULL || same->trace != TA__BLOCK_UNTRACED)
        return ta__buffer_put(blocks, &tracked, sizeof tracked) != 0 ? ta__fail_memory() : 0;
    image->untraced_blocks--;
    image->untraced_bytes -= ta__view_block_size(same);
    *same = tracked;
    return 0;
}

static int add_tracked_shard(struct ta__table_reading *reading, uint64_t shard)
{
    enum { CELL_MOST = 1024 };
    struct ta_image *image = reading->image;
    const struct ta__layout *layout = &image->layout;
    uint64_t size = word_at(image, shard + layout->tracked_size), cells = word_at(image, shard + layout->tracked_cells);
    if (layout->tracked_cell_bytes == 0 || layout->tracked_cell_bytes > CELL_MOST ||
        size > ta__target_extent(&image->target, cells) / layout->tracked_cell_bytes)
        return 0;
    for (uint64_t i = 0; i < size; i++) {
        uint64_t cell = cells + i * layout->tracked_cell_bytes;
        uint32_t leaf = half_at(image, cell + layout->tracked_leaf);
        if (word_at(image, cell + layout->tracked_state) != layout->tracked_used || leaf >= image->leaf_count)
            continue;
        uint32_t trace = image->trace_of_leaf[leaf];
        const struct ta__view_block tracked =
            ta__view_block(word_at(image, cell + layout->tracked_address), word_at(image, cell + layout->tracked_bytes),
                           trace == TA__NO_TRACE ? TA__BLOCK_UNTRACED : trace);
        if (add_tracked_cell(reading, tracked, image->domain_of_leaf[leaf] == 0) != 0)
            return -1;
        reading->tracked_count++;
    }
    return 0;
}

static int add_tracked(struct ta__table_reading *reading)
{
    const struct ta__layout *layout = &reading->image->layout;
    struct ta__buffer *blocks = ta__snapshot_builder_blocks(reading->builder);
    if (!reading->is_tracing || layout->tracked_shards == 0 || layout->tracked_shard_count > 4096)
        return 0;
    reading->own_block_count = TA__ROW_COUNT(struct ta__view_block, *blocks);
    for (uint64_t i = 0; i < layout->tracked_shard_count; i++)
        if (add_tracked_shard(reading, layout->tracked_shards + i * layout->tracked_shard_bytes) != 0)
            return -1;
    if (reading->tracked_count == 0)
        return 0;
    return ta__sort(blocks->bytes, TA__ROW_COUNT(struct ta__view_block, *blocks), sizeof(struct ta__view_block),
                    compare_blocks);
}

/* Nothing is traced: a trace for all blocks of a domain, without a stack. */
static int add_untraced(struct ta__table_reading *reading)
{
    for (uint32_t wanted = 0; wanted < reading->untraced_traces; wanted++)
        for (uint32_t i = 0; i < reading->domain_count; i++) {
            const struct domain_row *row = &reading->domains[i];
            if (row->trace != wanted)
                continue;
            const struct ta__view_trace trace = {
                .domain = row->number, .total_nframe = -1, .count = row->untraced_blocks, .size = row->untraced_bytes};
            if (ta__snapshot_builder_trace(reading->builder, &trace) != 0)
                return -1;
            break;
        }
    ta__snapshot_builder_view(reading->builder)->current_bytes = reading->image->bytes;
    return 0;
}

int ta__table_finish(struct ta__table_reading *reading)
{
    struct ta_image *image = reading->image;
    int wants_blocks = (image->options.wants & TA_IMAGE_BLOCKS) != 0, result = 0;
    if (!reading->is_tracing)
        result = add_untraced(reading);
    else if (wants_blocks)
        result = add_tracked(reading);
    if (result == 0) {
        ta__snapshot_builder_view(reading->builder)->has_blocks = (uint32_t)wants_blocks;
        image->snapshot = ta__snapshot_builder_finish_live(reading->builder);
        reading->builder = NULL;
        result = image->snapshot != NULL ? 0 : -1;
    }
    ta__table_free(reading);
    return result;
}
