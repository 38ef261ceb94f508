/* merge.c: one snapshot of several, such as those of all processes of a run. Public face: tracealloc/snapshot.h.
 *
 * What is the same in two of them is one in the result: modules by path and build id, wherever they were loaded; frames by
 * place in their module; stacks. Each trace keeps the process that it is of, as a row of the table of threads that says so
 * (TA__THREAD_IS_PROCESS). One snapshot at a time is looked at, and may be freed then. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/memory.h"
#include "snapshot/format/handle.h"
#include "snapshot/read/loaded.h"
#include "snapshot/read/read.h"

enum { NAME_MOST = 40 /* bytes of a process's command */ };

struct ta_merge {
    struct ta__loaded *loaded;
    struct ta__index strings, modules, frames, contexts;
    struct ta__buffer gone;         /* traces that hold nothing; behind the others in the end */
    struct ta__buffer map_modules;  /* scratch, by number in the snapshot that is added: uint32_t + 1 */
    struct ta__buffer map_frames;   /* the same: uint32_t */
    struct ta__buffer map_contexts; /* the same */
    size_t count;
    int has_symbols;
};

static int no_memory(void)
{
    errno = ENOMEM;
    return ta__error_set("no memory to merge snapshots", NULL);
}

/* ---- rows that are found by their content; while they grow, texts and build ids are offsets ---- */

static int is_same_string(const void *table, uint32_t id, const void *wanted)
{
    const struct ta__loaded *loaded = table;
    const struct ta__view_string *row = &TA__ROWS(const struct ta__view_string, loaded->strings)[id], *other = wanted;
    return row->length == other->length && memcmp(ta__loaded_text(loaded, row), other->text, row->length) == 0;
}

static int put_string(struct ta_merge *merge, const struct ta__view_string *text, uint32_t *id)
{
    struct ta__loaded *loaded = merge->loaded;
    uint32_t count = TA__ROW_COUNT(struct ta__view_string, loaded->strings);
    if (ta__index_reserve(&merge->strings, count, ta__loaded_string_hash, loaded) != 0)
        return -1;
    uint32_t *slot =
        ta__index_find(&merge->strings, ta__hash_bytes(text->text, text->length), is_same_string, loaded, text);
    if (*slot == 0) {
        struct ta__view_string row = {(const char *)loaded->string_bytes.length, text->length};
        if (ta__buffer_put(&loaded->string_bytes, text->text, text->length) != 0 ||
            ta__buffer_put(&loaded->string_bytes, "", 1) != 0 ||
            ta__buffer_put(&loaded->strings, &row, sizeof row) != 0)
            return -1;
        *slot = count + 1;
    }
    *id = *slot - 1;
    return 0;
}

struct wanted_module {
    uint32_t path;
    const uint8_t *build_id;
    uint32_t length;
};

static uint64_t hash_of_module(uint32_t path, const uint8_t *build_id, uint32_t length)
{
    return ta__hash_word(path) ^ ta__hash_bytes(build_id, length);
}

static const uint8_t *build_id_of(const struct ta__loaded *loaded, const struct ta__view_module *row)
{
    return loaded->build_ids.bytes + (uintptr_t)row->build_id;
}

static uint64_t module_hash(const void *table, uint32_t id)
{
    const struct ta__loaded *loaded = table;
    const struct ta__view_module *row = &TA__ROWS(const struct ta__view_module, loaded->modules)[id];
    return hash_of_module(row->path, build_id_of(loaded, row), row->build_id_length);
}

static int is_same_module(const void *table, uint32_t id, const void *wanted)
{
    const struct ta__loaded *loaded = table;
    const struct ta__view_module *row = &TA__ROWS(const struct ta__view_module, loaded->modules)[id];
    const struct wanted_module *other = wanted;
    return row->path == other->path && row->build_id_length == other->length &&
           (other->length == 0 || memcmp(build_id_of(loaded, row), other->build_id, other->length) == 0);
}

static uint64_t hash_of_frame(const struct ta__view_frame *row)
{
    return ta__hash_word(row->address ^ (uint64_t)row->module << 48) ^
           ta__hash_word((uint64_t)row->file << 32 | row->line) ^ row->kind;
}

static uint64_t frame_hash(const void *table, uint32_t id)
{
    return hash_of_frame(&TA__ROWS(const struct ta__view_frame, ((const struct ta__loaded *)table)->frames)[id]);
}

static int is_same_frame(const void *table, uint32_t id, const void *wanted)
{
    const struct ta__view_frame *row =
        &TA__ROWS(const struct ta__view_frame, ((const struct ta__loaded *)table)->frames)[id];
    const struct ta__view_frame *other = wanted;
    return row->address == other->address && row->module == other->module && row->file == other->file &&
           row->line == other->line && row->kind == other->kind;
}

static uint64_t context_hash(const void *table, uint32_t id)
{
    const struct ta__view_context *row =
        &TA__ROWS(const struct ta__view_context, ((const struct ta__loaded *)table)->contexts)[id];
    return ta__hash_word((uint64_t)row->parent << 32 | row->frame);
}

static int is_same_context(const void *table, uint32_t id, const void *wanted)
{
    const struct ta__view_context *row =
        &TA__ROWS(const struct ta__view_context, ((const struct ta__loaded *)table)->contexts)[id];
    const struct ta__view_context *other = wanted;
    return id != 0 && row->parent == other->parent && row->frame == other->frame; /* 0: the root has no frame */
}

/* ---- the tables of one snapshot ---- */

static uint32_t *map_of(struct ta__buffer *map, uint32_t count)
{
    map->length = 0;
    if (ta__buffer_reserve(map, ((size_t)count + 1) * sizeof(uint32_t)) != 0)
        return NULL;
    return TA__ROWS(uint32_t, *map);
}

static int add_modules(struct ta_merge *merge, const struct ta__view *view)
{
    struct ta__loaded *loaded = merge->loaded;
    uint32_t *map = map_of(&merge->map_modules, view->module_count);
    for (uint32_t i = 0; map != NULL && i < view->module_count; i++) {
        struct ta__view_module row = view->modules[i];
        uint32_t count = TA__ROW_COUNT(struct ta__view_module, loaded->modules);
        if (put_string(merge, &view->strings[row.path], &row.path) != 0 ||
            ta__index_reserve(&merge->modules, count, module_hash, loaded) != 0)
            return -1;
        const struct wanted_module wanted = {row.path, row.build_id, row.build_id_length};
        uint32_t *slot = ta__index_find(&merge->modules, hash_of_module(row.path, row.build_id, row.build_id_length),
                                        is_same_module, loaded, &wanted);
        if (*slot == 0) {
            const uint8_t *build_id = row.build_id;
            row.build_id = (const uint8_t *)loaded->build_ids.length;
            if (ta__buffer_put(&loaded->build_ids, build_id, row.build_id_length) != 0 ||
                ta__buffer_put(&loaded->modules, &row, sizeof row) != 0)
                return -1;
            *slot = count + 1;
        }
        map[i] = *slot;
    }
    return map == NULL ? -1 : 0;
}

static uint32_t moved_string(struct ta_merge *merge, const struct ta__view *view, uint32_t id, int *failed)
{
    uint32_t moved = 0;
    *failed |= put_string(merge, &view->strings[id], &moved) != 0;
    return moved;
}

/* The symbols of a frame that is new in the result. */
static int add_symbols(struct ta_merge *merge, const struct ta__view *view, uint32_t frame)
{
    struct ta__loaded *loaded = merge->loaded;
    const struct ta__view_symbol_range range = view->symbol_ranges[frame];
    struct ta__view_symbol_range moved = {TA__ROW_COUNT(struct ta__view_symbol, loaded->symbols), range.count};
    int failed = 0;
    for (uint32_t i = 0; i < range.count && !failed; i++) {
        struct ta__view_symbol row = view->symbols[range.first + i];
        row.file = moved_string(merge, view, row.file, &failed);
        row.function = moved_string(merge, view, row.function, &failed);
        row.raw_name = moved_string(merge, view, row.raw_name, &failed);
        failed |= ta__buffer_put(&loaded->symbols, &row, sizeof row) != 0;
    }
    return failed ? -1 : ta__buffer_put(&loaded->symbol_ranges, &moved, sizeof moved);
}

static int add_frames(struct ta_merge *merge, const struct ta__view *view)
{
    struct ta__loaded *loaded = merge->loaded;
    const uint32_t *modules = TA__ROWS(const uint32_t, merge->map_modules);
    uint32_t *map = map_of(&merge->map_frames, view->frame_count);
    int failed = map == NULL;
    for (uint32_t i = 0; !failed && i < view->frame_count; i++) {
        struct ta__view_frame row = view->frames[i];
        uint32_t count = TA__ROW_COUNT(struct ta__view_frame, loaded->frames);
        if (row.kind == TA__FRAME_ADDRESS && row.module != 0) {
            uint32_t module = modules[row.module - 1];
            row.address += TA__ROWS(const struct ta__view_module, loaded->modules)[module - 1].load_base -
                           view->modules[row.module - 1].load_base;
            row.module = module;
        }
        row.file = moved_string(merge, view, row.file, &failed);
        if (failed || ta__index_reserve(&merge->frames, count, frame_hash, loaded) != 0)
            return -1;
        uint32_t *slot = ta__index_find(&merge->frames, hash_of_frame(&row), is_same_frame, loaded, &row);
        if (*slot == 0) {
            if (ta__buffer_put(&loaded->frames, &row, sizeof row) != 0 ||
                (merge->has_symbols && add_symbols(merge, view, i) != 0))
                return -1;
            *slot = count + 1;
        }
        map[i] = *slot - 1;
    }
    return failed ? -1 : 0;
}

static int add_contexts(struct ta_merge *merge, const struct ta__view *view)
{
    struct ta__loaded *loaded = merge->loaded;
    const uint32_t *frames = TA__ROWS(const uint32_t, merge->map_frames);
    uint32_t *map = map_of(&merge->map_contexts, view->context_count);
    if (map == NULL)
        return -1;
    map[0] = 0;
    for (uint32_t i = 1; i < view->context_count; i++) {
        struct ta__view_context row = {map[view->contexts[i].parent], frames[view->contexts[i].frame]};
        uint32_t count = TA__ROW_COUNT(struct ta__view_context, loaded->contexts);
        if (ta__index_reserve(&merge->contexts, count, context_hash, loaded) != 0)
            return -1;
        uint32_t *slot = ta__index_find(&merge->contexts, ta__hash_word((uint64_t)row.parent << 32 | row.frame),
                                        is_same_context, loaded, &row);
        if (*slot == 0) {
            if (ta__buffer_put(&loaded->contexts, &row, sizeof row) != 0)
                return -1;
            *slot = count + 1;
        }
        map[i] = *slot - 1;
    }
    return 0;
}

static int add_domains(struct ta_merge *merge, const struct ta__view *view)
{
    struct ta__loaded *loaded = merge->loaded;
    for (uint32_t i = 0; i < view->domain_count; i++) {
        struct ta__view_domain row = view->domains[i];
        struct ta__view_domain *rows = TA__ROWS(struct ta__view_domain, loaded->domains);
        uint32_t count = TA__ROW_COUNT(struct ta__view_domain, loaded->domains), at = 0;
        if (put_string(merge, &view->strings[row.name], &row.name) != 0)
            return -1;
        while (at < count && rows[at].number != row.number)
            at++;
        if (at == count) {
            if (ta__buffer_put(&loaded->domains, &row, sizeof row) != 0)
                return -1;
            continue;
        }
        rows[at].name = rows[at].name != 0 ? rows[at].name : row.name;
        rows[at].live_bytes += row.live_bytes;
        rows[at].live_blocks += row.live_blocks;
        rows[at].peak_bytes += row.peak_bytes;
        rows[at].allocated_bytes += row.allocated_bytes;
        rows[at].allocated_blocks += row.allocated_blocks;
    }
    return 0;
}

static int add_traces(struct ta_merge *merge, const struct ta__view *view, uint32_t process)
{
    const uint32_t *contexts = TA__ROWS(const uint32_t, merge->map_contexts);
    uint64_t count = (uint64_t)view->trace_count + view->gone_trace_count;
    for (uint64_t i = 0; i < count; i++) {
        struct ta__view_trace row = view->traces[i];
        row.context = contexts[row.context];
        row.thread = process;
        if (ta__buffer_put(i < view->trace_count ? &merge->loaded->traces : &merge->gone, &row, sizeof row) != 0)
            return -1;
    }
    return 0;
}

/* ---- the process ---- */

static struct ta__view_string string_of(const char *text)
{
    return (struct ta__view_string){text, strlen(text)};
}

/* "make -j2" of "/usr/bin/make -j2": the command without the folder, else the program. */
static int add_process(struct ta_merge *merge, const struct ta_snapshot *snapshot, const struct ta__view *view,
                       uint32_t *number)
{
    const char *name = ta_snapshot_metadata(snapshot, "process.command");
    if (name == NULL || *name == '\0')
        name = view->strings[view->program].text;
    for (const char *at = name; *at != '\0' && *at != ' '; at++)
        if (*at == '/')
            name = at + 1;
    struct ta__view_string text = string_of(name);
    struct ta__view_thread row = {.tid = view->pid, .flags = TA__THREAD_IS_PROCESS};
    text.length = text.length < NAME_MOST ? text.length : NAME_MOST;
    if (put_string(merge, &text, &row.name) != 0 || ta__buffer_put(&merge->loaded->threads, &row, sizeof row) != 0)
        return -1;
    *number = TA__ROW_COUNT(struct ta__view_thread, merge->loaded->threads);
    return 0;
}

static int add_facts(struct ta_merge *merge, const struct ta__view *view)
{
    struct ta__view *all = &merge->loaded->view;
    int failed = 0;
    if (merge->count == 0) {
        all->pid = view->pid;
        all->program = moved_string(merge, view, view->program, &failed);
        all->host = moved_string(merge, view, view->host, &failed);
        all->start_time_ns = view->start_time_ns;
    }
#define LARGER(member)  all->member = view->member > all->member ? view->member : all->member
#define SMALLER(member) all->member = view->member < all->member ? view->member : all->member
    LARGER(traceback_limit);
    LARGER(time_ns);
    LARGER(sample_bytes);
    SMALLER(start_time_ns);
    all->current_bytes += view->current_bytes;
    all->peak_bytes += view->peak_bytes;
    all->lost += view->lost;
    all->overflowed += view->overflowed;
    all->cut_short += view->cut_short;
    all->foreign_frees += view->foreign_frees;
    all->invalid_frees += view->invalid_frees;
    all->snapshot_errors += view->snapshot_errors;
    return failed ? -1 : 0;
}

/* ---- the public face ---- */

struct ta_merge *ta_merge_begin(void)
{
    struct ta_merge *merge = ta__memory_map(sizeof *merge);
    struct ta__view_string empty = {"", 0};
    uint32_t id;
    if (merge != NULL)
        merge->loaded = ta__loaded_create();
    if (merge == NULL || merge->loaded == NULL || put_string(merge, &empty, &id) != 0 ||
        ta__buffer_add(&merge->loaded->contexts, sizeof(struct ta__view_context)) == NULL) {
        no_memory();
        ta_merge_abandon(merge);
        return NULL;
    }
    return merge;
}

int ta_merge_add(struct ta_merge *merge, struct ta_snapshot *snapshot)
{
    const struct ta__view *view = snapshot == NULL ? NULL : ta__snapshot_view(snapshot);
    uint32_t process;
    if (view == NULL)
        return -1;
    if (merge->count == 0)
        merge->has_symbols = view->symbol_ranges != NULL;
    if (merge->has_symbols != (view->symbol_ranges != NULL)) {
        errno = EINVAL;
        return ta__error_set("some of the snapshots carry symbols and some do not: symbolize all of them, or none",
                             NULL);
    }
    if (add_facts(merge, view) != 0 || add_process(merge, snapshot, view, &process) != 0 ||
        add_modules(merge, view) != 0 || add_frames(merge, view) != 0 || add_contexts(merge, view) != 0 ||
        add_domains(merge, view) != 0 || add_traces(merge, view, process) != 0)
        return no_memory();
    merge->count++;
    return 0;
}

static void release(struct ta_merge *merge)
{
    struct ta__index *const indexes[] = {&merge->strings, &merge->modules, &merge->frames, &merge->contexts};
    struct ta__buffer *const buffers[] = {&merge->gone, &merge->map_modules, &merge->map_frames, &merge->map_contexts};
    for (size_t i = 0; i < sizeof indexes / sizeof *indexes; i++)
        ta__index_free(indexes[i]);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        ta__buffer_free(buffers[i]);
    ta__memory_unmap(merge, sizeof *merge);
}

void ta_merge_abandon(struct ta_merge *merge)
{
    if (merge == NULL)
        return;
    if (merge->loaded != NULL)
        ta__loaded_destroy(merge->loaded);
    release(merge);
}

struct ta_snapshot *ta_merge_end(struct ta_merge *merge)
{
    struct ta__loaded *loaded = merge->loaded;
    struct ta__view *view = &loaded->view;
    view->trace_count = TA__ROW_COUNT(struct ta__view_trace, loaded->traces);
    view->gone_trace_count = TA__ROW_COUNT(struct ta__view_trace, merge->gone);
    if (ta__buffer_put(&loaded->traces, merge->gone.bytes, merge->gone.length) != 0) {
        no_memory();
        ta_merge_abandon(merge);
        return NULL;
    }
    release(merge);
    ta__loaded_finish(loaded);
    return ta__snapshot_wrap(loaded);
}
