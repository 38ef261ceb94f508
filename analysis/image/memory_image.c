/* memory_image.c: opens an image: holds the process, copies what the questions need, lets it go. See memory_image.h. */
#include "analysis/image/memory_image.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/image/roots.h"
#include "base/bytes.h"

void ta__image_warn(struct ta_image *image, const char *format, ...)
{
    va_list arguments;
    if (image->warning_count == TA__WARNINGS_MOST)
        return;
    va_start(arguments, format);
    if (vasprintf(&image->warnings[image->warning_count], format, arguments) >= 0)
        image->warning_count++;
    va_end(arguments);
}

/* ---- standing still ---------------------------------------------------------------------------------------------- */

/* Inside the allocator the tables are in the middle of a change: a thread that is there goes on for some moments. */
static int is_inside(struct ta_image *image, uint32_t slot)
{
    const struct ta__layout *layout = &image->layout;
    uint64_t member = 0;
    uint32_t in_op = 0;
    uint8_t present = 0;
    return ta__target_word(&image->target, layout->members + slot * 8, &member) == 0 && member != 0 &&
           ta__target_peek(&image->target, layout->members_present + slot, &present, 1) == 0 && present != 0 &&
           ta__target_half(&image->target, member + layout->member_in_op, &in_op) == 0 && in_op != 0;
}

static size_t thread_of(const struct ta__target *target, uint32_t tid)
{
    for (size_t i = 0; i < target->thread_count; i++)
        if (target->threads[i].tid == tid)
            return i;
    return SIZE_MAX;
}

static void settle(struct ta_image *image)
{
    enum { TRIES = 50, MOST = 1 << 16 };
    const struct ta__layout *layout = &image->layout;
    uint32_t used = 0, inside = 0;
    if (!layout->can_trace || ta__target_half(&image->target, layout->members_used, &used) != 0 || used > MOST)
        return;
    for (uint32_t slot = 0; slot < used; slot++) {
        uint32_t tid = 0;
        if (!is_inside(image, slot))
            continue;
        if (!image->target.is_held || ta__target_half(&image->target, layout->members_tids + slot * 4, &tid) != 0) {
            inside++;
            continue;
        }
        size_t thread = thread_of(&image->target, tid);
        int is_out = 0;
        for (unsigned i = 0; i < TRIES && thread != SIZE_MAX && !is_out; i++)
            is_out = ta__target_nudge(&image->target, thread, 20 << (i / 5)) == 0 && !is_inside(image, slot);
        inside += !is_out;
    }
    if (inside > 0)
        ta__image_warn(image, "%u thread%s inside the allocator: a block or two may be counted wrongly", inside,
                       inside == 1 ? " was" : "s were");
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static uint32_t domain_of(const struct ta_image *image, const struct ta__page_block *block)
{
    return block->leaf != 0 && block->leaf < image->leaf_count ? image->domain_of_leaf[block->leaf] : block->domain;
}

/* Everything that the questions need of a page is taken while it is at hand. */
static int take_page(struct ta_image *image, struct ta__table_reading *reading, const struct ta__page_walk *walk,
                     const struct ta__heap_page *page, uint32_t *traces)
{
    for (uint32_t i = 0; i < walk->block_count; i++) {
        const struct ta__page_block *block = &walk->blocks[i];
        traces[i] = ta__table_count(reading, block, domain_of(image, block));
        if ((image->options.wants & TA_IMAGE_BLOCKS) != 0 &&
            ta__table_add(reading, ta__page_block_address(page, block), block->size, traces[i]) != 0)
            return -1;
    }
    if (image->graph != NULL &&
        ta__graph_add_page(image->graph, &image->target, (size_t)(page - image->pages.items), walk->blocks, traces,
                           walk->block_count, walk->is_whole ? walk->bytes : NULL) != 0)
        return -1;
    if (image->memory != NULL &&
        ta__memory_add_page(image->memory, image, page, walk->blocks, traces, walk->block_count) != 0)
        return -1;
    return 0;
}

static int walk_pages(struct ta_image *image, struct ta__table_reading *reading)
{
    struct ta__page_walk walk;
    size_t damaged = image->pages.damaged;
    uint32_t *traces = ta__new_array(TA__PAGE_BLOCKS_MOST, sizeof *traces);
    int result = traces == NULL ? -1 : 0;
    if (result == 0 && ta__page_walk_open(&walk, &image->target, &image->marks) == 0) {
        for (size_t i = 0; i < image->pages.count && result == 0; i++) {
            result = ta__page_walk(&walk, &image->pages.items[i]);
            if (result == 0)
                result = take_page(image, reading, &walk, &image->pages.items[i], traces);
            damaged += (size_t)walk.is_damaged;
        }
        ta__page_walk_close(&walk);
    } else {
        result = -1;
    }
    free(traces);
    if (damaged > 0)
        ta__image_warn(image, "%zu of the allocator's pages could not be believed: damaged, or changing", damaged);
    return result;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static void warn_of_missing(struct ta_image *image)
{
    const struct ta__target *target = &image->target;
    if (!target->is_core)
        return;
    if (target->file_bytes < target->expected_bytes)
        ta__image_warn(image, "the core is incomplete: %llu of %llu bytes are there",
                       (unsigned long long)target->file_bytes, (unsigned long long)target->expected_bytes);
    uint64_t missing = 0;
    for (size_t i = 0; i < target->region_count; i++) {
        const struct ta__region *region = &target->regions[i];
        if ((region->flags & TA__REGION_MISSING) != 0 && (region->flags & TA__REGION_WRITE) != 0 &&
            target->file_bytes >= target->expected_bytes)
            missing += region->end - region->start - region->stored_bytes;
    }
    if (missing > 0)
        ta__image_warn(image, "%llu bytes of writable memory were left out of the core (/proc/PID/coredump_filter)",
                       (unsigned long long)missing);
}

static int look_at_memory(struct ta_image *image)
{
    image->memory = ta__new_array(1, sizeof *image->memory);
    return image->memory == NULL ? -1 : ta__memory_look(image->memory, image);
}

static int open_graph(struct ta_image *image)
{
    image->graph = ta__new_array(1, sizeof *image->graph);
    int keeps_places = (image->options.wants & TA_IMAGE_PATHS) != 0;
    if (image->graph == NULL || ta__graph_open(image->graph, &image->pages, image->options.flags, keeps_places) != 0)
        return -1;
    if (keeps_places)
        image->graph->asked_slot = ta__graph_slot(image->graph, image->options.about);
    image->names = ta__new_array(1, sizeof *image->names);
    return image->names == NULL ? -1 : ta__names_open(image->names, &image->target, keeps_places);
}

/* What entries that a program writes itself say of it, as far as it is known from outside. */
static int note(struct ta_image *image, const char *key, const char *format, ...) TA_PRINTF(3, 4);
static int note(struct ta_image *image, const char *key, const char *format, ...)
{
    char value[4200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    return ta_snapshot_set_metadata(image->snapshot, key, value);
}

static int note_process(struct ta_image *image)
{
    const struct ta__target *target = &image->target;
    uint64_t rss = 0;
    int result = note(image, "process.command", "%s", ta__target_string(target, target->command));
    for (size_t i = 0; i < target->region_count; i++)
        rss += target->regions[i].rss;
    if (result == 0 && target->thread_count > 0)
        result = note(image, "process.threads", "%zu", target->thread_count);
    if (result == 0 && !target->is_core && rss > 0)
        result = note(image, "memory.resident", "%llu", (unsigned long long)rss);
    if (result == 0 && target->signal != 0)
        result = note(image, "crash.signal", "SIG%s",
                      sigabbrev_np((int)target->signal) != NULL ? sigabbrev_np((int)target->signal) : "?");
    if (result == 0 && target->has_fault_address)
        result = note(image, "crash.address", "0x%llx", (unsigned long long)target->fault_address);
    return result;
}

static int looks_for_pointers(const struct ta_image *image)
{
    return (image->options.wants & (TA_IMAGE_POINTERS | TA_IMAGE_PATHS)) != 0;
}

static int gather(struct ta_image *image)
{
    struct ta__table_reading *reading = NULL;
    if ((image->options.wants & TA_IMAGE_MEMORY) != 0 && look_at_memory(image) != 0)
        return -1;
    if (ta__target_find_objects(&image->target) != 0 || ta__layout_read(&image->layout, &image->target) != 0)
        return -1;
    settle(image);
    if (image->target.is_held && looks_for_pointers(image) && ta__target_copy(&image->target))
        ta__target_release(&image->target);
    int result = ta__marks_read(&image->marks, &image->target, &image->layout);
    if (result == 0)
        result = ta__heap_pages_read(&image->pages, &image->target, &image->layout);
    if (result == 0)
        result = ta__table_read(image, &reading);
    if (result == 0 && image->memory != NULL)
        result = ta__memory_open(image->memory, image, ta__table_traces(reading));
    if (result == 0 && looks_for_pointers(image))
        result = open_graph(image);
    if (result == 0)
        result = walk_pages(image, reading);
    if (result == 0 && image->graph != NULL)
        result = ta__roots_add(image->graph, image) != 0 || ta__graph_finish(image->graph) != 0 ? -1 : 0;
    if (result == 0 && image->memory != NULL)
        result = ta__memory_finish(image->memory, image);
    if (result == 0) {
        warn_of_missing(image);
        return ta__table_finish(reading) != 0 ? -1 : note_process(image);
    }
    ta__table_free(reading);
    return -1;
}

/* Looking for pointers takes longer than copying: that is done on a copy, where there is room for one. */
static int hold(struct ta_image *image)
{
    struct ta__target *target = &image->target;
    if (!target->is_core && looks_for_pointers(image) && ta__target_refresh(target, 1) == 0)
        ta__target_make_room(target);
    return ta__target_hold(target);
}

struct ta_image *ta_image_open(const char *what, const struct ta_image_options *options, size_t size)
{
    struct ta_image *image = ta__new_array(1, sizeof *image);
    if (image == NULL)
        return NULL;
    if (options != NULL)
        ta__fill(&image->options, sizeof image->options, options, size);
    int result = ta__target_open(&image->target, what);
    if (result == 0 && image->options.registers != NULL && !image->target.is_core)
        result = ta__target_give_registers(&image->target, image->options.registers);
    else if (result == 0 && (image->options.flags & TA_IMAGE_NO_PAUSE) == 0)
        result = hold(image);
    if (result == 0 && !image->target.is_core)
        result = ta__target_refresh(&image->target, (image->options.wants & ~(unsigned)TA_IMAGE_BLOCKS) != 0);
    if (result == 0)
        result = gather(image);
    ta__target_release(&image->target);
    ta__target_drop_copy(&image->target);
    if (result == 0)
        return image;
    ta_image_close(image);
    return NULL;
}

void ta_image_close(struct ta_image *image)
{
    if (image == NULL)
        return;
    ta_snapshot_free(image->snapshot);
    free(image->trace_of_leaf);
    free(image->domain_of_leaf);
    for (size_t i = 0; i < image->warning_count; i++)
        free(image->warnings[i]);
    if (image->memory != NULL)
        ta__memory_free(image->memory);
    free(image->memory);
    if (image->graph != NULL)
        ta__graph_free(image->graph);
    free(image->graph);
    if (image->dominators != NULL)
        ta__dominators_free(image->dominators);
    free(image->dominators);
    if (image->names != NULL)
        ta__names_close(image->names);
    free(image->names);
    ta__heap_pages_free(&image->pages);
    ta__target_close(&image->target);
    free(image);
}

int ta_image_get_info(const struct ta_image *image, struct ta_image_info *info, size_t size)
{
    const struct ta__target *target = &image->target;
    const struct ta_image_info all = {
        .pid = target->pid,
        .is_core = target->is_core,
        .can_trace = image->layout.can_trace,
        .is_tracing = image->marks.is_tracing,
        .program = ta__target_string(target, target->program),
        .command = ta__target_string(target, target->command),
        .library = image->layout.library,
        .threads = target->thread_count,
        .blocks = image->blocks,
        .bytes = image->bytes,
        .untraced_blocks = image->untraced_blocks,
        .untraced_bytes = image->untraced_bytes,
        .held_ns = target->held_ns,
        .signal = target->signal,
        .fault_address = target->fault_address,
        .has_fault_address = target->has_fault_address,
    };
    memcpy(info, &all, size < sizeof all ? size : sizeof all);
    return 0;
}

const char *ta_image_warning(const struct ta_image *image, size_t index)
{
    return index < image->warning_count ? image->warnings[index] : NULL;
}

struct ta_snapshot *ta_image_snapshot(struct ta_image *image)
{
    return image->snapshot;
}
