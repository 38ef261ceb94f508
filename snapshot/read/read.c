/* read.c: loads snapshots and answers what they hold. See read.h and tracealloc/snapshot.h. */
#include "snapshot/read/read.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/bytes.h"
#include "base/error.h"
#include "snapshot/read/decode.h"
#include "snapshot/read/encode.h"
#include "snapshot/format/handle.h"

static size_t load_limit = (size_t)1 << 30; /* any thread, relaxed */

size_t ta__snapshot_load_limit(void)
{
    return ta__load_relaxed(&load_limit);
}

void ta_snapshot_set_load_limit(size_t bytes)
{
    ta__store_relaxed(&load_limit, bytes);
}

/* ---- loading ---- */

struct ta_snapshot *ta__snapshot_adopt(struct ta__loaded *loaded, uint32_t entry)
{
    struct ta_snapshot *snapshot = ta__object_create();
    if (snapshot == NULL) {
        ta__loaded_destroy(loaded);
        return NULL;
    }
    snapshot->loaded = loaded;
    snapshot->operations = &ta__view_operations;
    snapshot->entry = entry;
    const struct ta__view *view = &loaded->view;
    for (uint32_t i = 0; i < view->metadata_count; i++) {
        const struct ta__view_string *key = &view->strings[view->metadata[i].key];
        const struct ta__view_string *value = &view->strings[view->metadata[i].value];
        if (ta__object_add_metadata(snapshot, key->text, key->length, value->text, value->length) != 0) {
            ta_snapshot_free(snapshot);
            return NULL;
        }
    }
    return snapshot;
}

static void set_warning(struct ta_snapshot *snapshot, const struct ta__problem *problem, uint32_t entries)
{
    struct ta__message message;
    ta__message_begin_plain(&message);
    ta__problem_to_message(problem, &message);
    ta__message_text(&message, "; ");
    ta__message_number(&message, entries);
    ta__message_text(&message, entries == 1 ? " whole entry before it" : " whole entries before it");
    size_t length = message.length < sizeof snapshot->warning ? message.length : sizeof snapshot->warning - 1;
    memcpy(snapshot->warning, message.text, length);
}

/* The number of the entry that is asked for; negative ones count from the end. -1 with the error set when there is
 * none. */
static long choose(long wanted, uint32_t entries, const struct ta__entry_list *list, const char *name)
{
    if (entries == 0) {
        struct ta__problem none;
        ta__problem_begin(&none, "", 0, "the recording holds no whole entry");
        if (list->torn) {
            ta__message_text(&none.text, ": ");
            ta__problem_to_message(&list->tail, &none.text);
        }
        return ta__problem_to_error(&none, name);
    }
    long index = wanted < 0 ? wanted + (long)entries : wanted;
    if (index >= 0 && index < (long)entries)
        return index;
    struct ta__problem none;
    ta__problem_begin(&none, "", 0, "there is no entry ");
    ta__message_signed(&none.text, wanted);
    ta__message_text(&none.text, "; the recording has ");
    ta__message_number(&none.text, entries);
    return ta__problem_to_error(&none, name);
}

/* Replays the entries up to `last`. A file that was not closed may be damaged in what was not yet synced: then the
 * answer is NULL, and `whole` receives the number of entries that can be read. */
static struct ta__loaded *replay(struct ta__input *input, const struct ta__entry_list *list, uint32_t last,
                                 size_t limit, uint32_t *whole, struct ta__problem *problem)
{
    const struct ta__entry_place *places = TA__ROWS(const struct ta__entry_place, list->entries);
    uint32_t first = last;
    while (!places[first].reset)
        first--;
    struct ta__decoder decoder;
    struct ta__loaded *loaded = NULL;
    int failed = ta__decoder_open(&decoder, input, limit) != 0;
    *whole = last + 1;
    for (uint32_t i = first; i <= last && !failed; i++) {
        failed = ta__decoder_entry(&decoder, &places[i]) != 0;
        if (failed)
            *whole = i;
    }
    if (!failed)
        loaded = ta__decoder_finish(&decoder);
    if (loaded == NULL)
        *problem = decoder.problem;
    ta__decoder_close(&decoder);
    return loaded;
}

static struct ta_snapshot *load(struct ta__input *input, const char *name, long wanted)
{
    struct ta__entry_list list;
    struct ta__problem problem, damage;
    size_t limit = ta__snapshot_load_limit();
    struct ta__budget budget = {.limit = limit};
    struct ta_snapshot *snapshot = NULL;
    if (ta__entry_list_read(&list, input, &budget, &problem) != 0) {
        ta__problem_to_error(&problem, name);
        ta__buffer_free(&list.entries);
        return NULL;
    }
    uint32_t entries = TA__ROW_COUNT(struct ta__entry_place, list.entries);
    long index = choose(wanted, entries, &list, name);
    if (index >= 0) {
        uint32_t whole;
        int damaged = 0;
        struct ta__loaded *loaded = replay(input, &list, (uint32_t)index, limit, &whole, &damage);
        if (loaded == NULL && !list.closed && wanted == -1 && whole > 0 && whole <= (uint32_t)index) {
            index = whole - 1;
            damaged = 1;
            loaded = replay(input, &list, (uint32_t)index, limit, &whole, &problem);
        }
        if (loaded == NULL)
            ta__problem_to_error(&damage, name);
        else
            snapshot = ta__snapshot_adopt(loaded, (uint32_t)index);
        if (snapshot != NULL && damaged)
            set_warning(snapshot, &damage, (uint32_t)index + 1);
        else if (snapshot != NULL && list.torn)
            set_warning(snapshot, &list.tail, entries);
    }
    ta__buffer_free(&list.entries);
    return snapshot;
}

/* "path@-2" → the length of "path" and -2; 0 when there is no such suffix. */
static size_t entry_suffix(const char *path, long *entry)
{
    const char *at = strrchr(path, '@');
    if (at == NULL || at == path || at[1] == '\0')
        return 0;
    const char *digit = at + 1 + (at[1] == '-');
    long value = 0;
    if (*digit == '\0')
        return 0;
    for (; *digit != '\0'; digit++) {
        if (*digit < '0' || *digit > '9' || value > INT_MAX / 10)
            return 0;
        value = value * 10 + (*digit - '0');
    }
    *entry = at[1] == '-' ? -value : value;
    return (size_t)(at - path);
}

/* "path@before the load" → the length of "path", a file, and the entry with that mark; *entry is -1 without one. 0 when
 * there is no such suffix. */
static size_t mark_suffix(const char *path, long *entry)
{
    char file[PATH_MAX];
    for (const char *at = strchr(path, '@'); at != NULL; at = strchr(at + 1, '@')) {
        size_t length = (size_t)(at - path);
        if (length == 0 || length >= sizeof file || at[1] == '\0')
            continue;
        memcpy(file, path, length);
        file[length] = '\0';
        if (access(file, F_OK) != 0)
            continue;
        *entry = ta__recording_find(file, at + 1);
        return length;
    }
    return 0;
}

struct ta_snapshot *ta_snapshot_load(const char *path)
{
    char shorter[PATH_MAX];
    long entry = -1;
    if (path == NULL) {
        ta__error_set("there is no path: NULL", NULL);
        return NULL;
    }
    size_t length = access(path, F_OK) == 0 ? 0 : entry_suffix(path, &entry);
    if (length == 0 && access(path, F_OK) != 0 && (length = mark_suffix(path, &entry)) != 0 && entry < 0)
        return NULL;
    const char *file = path;
    if (length != 0 && length < sizeof shorter) {
        memcpy(shorter, path, length);
        shorter[length] = '\0';
        file = shorter;
    }
    struct ta__input input;
    if (ta__input_open(&input, file) != 0)
        return NULL;
    struct ta_snapshot *snapshot = load(&input, file, entry);
    ta__input_close(&input);
    return snapshot;
}

struct ta_snapshot *ta_snapshot_load_memory(const void *bytes, size_t length, long entry)
{
    struct ta__input input;
    ta__input_memory(&input, bytes, length);
    struct ta_snapshot *snapshot = load(&input, "recording in memory", entry);
    ta__input_close(&input);
    return snapshot;
}

const char *ta_snapshot_warning(const struct ta_snapshot *snapshot)
{
    return snapshot->warning;
}

/* ---- the view ---- */

/* A taken snapshot goes through the same bytes and the same checks as a file. */
static struct ta__loaded *decode_image(struct ta_snapshot *snapshot)
{
    struct ta__sink sink;
    struct ta__input input;
    struct ta__entry_list list;
    struct ta__problem problem;
    struct ta__budget budget = {.limit = SIZE_MAX / 32};
    ta__sink_memory(&sink);
    if (ta__object_seal_image(snapshot, &sink) != 0) {
        ta__buffer_free(&sink.memory);
        ta__error_set("no memory to decode the snapshot", NULL);
        return NULL;
    }
    ta__input_memory(&input, sink.memory.bytes, sink.memory.length);
    struct ta__loaded *loaded = NULL;
    uint32_t whole;
    if (ta__entry_list_read(&list, &input, &budget, &problem) == 0)
        loaded = replay(&input, &list, 0, budget.limit, &whole, &problem);
    if (loaded == NULL)
        ta__problem_to_error(&problem, "snapshot");
    ta__buffer_free(&list.entries);
    ta__input_close(&input);
    ta__buffer_free(&sink.memory);
    return loaded;
}

const struct ta__view *ta__snapshot_view(const struct ta_snapshot *asked)
{
    struct ta_snapshot *snapshot = (struct ta_snapshot *)(uintptr_t)asked; /* a cache, not a change */
    if (snapshot == NULL) {
        ta__error_set("there is no snapshot: NULL", NULL);
        return NULL;
    }
    struct ta__loaded *loaded = ta__load_acquire(&snapshot->loaded);
    if (loaded != NULL)
        return &loaded->view;
    if (snapshot->object_version != TA__OBJECT_VERSION) {
        ta__error_set("the snapshot comes from another version of the library", NULL);
        return NULL;
    }
    struct ta__loaded *decoded = decode_image(snapshot);
    if (decoded == NULL)
        return NULL;
    ta__store_relaxed(&snapshot->operations, &ta__view_operations);
    if (!ta__cas_acq_rel(&snapshot->loaded, &loaded, decoded)) {
        ta__loaded_destroy(decoded); /* another thread was first */
        return &loaded->view;
    }
    return &decoded->view;
}

/* ---- public accessors ---- */

long ta_snapshot_trace_count(const struct ta_snapshot *snapshot)
{
    const struct ta__view *view = ta__snapshot_view(snapshot);
    return view == NULL ? -1 : (long)view->trace_count;
}

long ta_snapshot_gone_trace_count(const struct ta_snapshot *snapshot)
{
    const struct ta__view *view = ta__snapshot_view(snapshot);
    return view == NULL ? -1 : (long)view->gone_trace_count;
}

int ta_snapshot_traceback_limit(const struct ta_snapshot *snapshot)
{
    const struct ta__view *view = ta__snapshot_view(snapshot);
    return view == NULL ? -1 : (int)view->traceback_limit;
}

static const struct ta__view_trace *trace_at(const struct ta_snapshot *snapshot, size_t index)
{
    const struct ta__view *view = ta__snapshot_view(snapshot);
    if (view == NULL)
        return NULL;
    if (index < (size_t)view->trace_count + view->gone_trace_count)
        return &view->traces[index];
    ta__error_set("there is no trace of that index", NULL);
    return NULL;
}

int ta_snapshot_trace(const struct ta_snapshot *snapshot, size_t index, struct ta_trace *trace)
{
    const struct ta__view_trace *row = trace_at(snapshot, index);
    if (row == NULL)
        return -1;
    const struct ta__view *view = ta__snapshot_view(snapshot);
    *trace = (struct ta_trace){
        .domain = row->domain,
        .flags = row->flags,
        .size = row->size,
        .count = row->count,
        .total_nframe = row->total_nframe,
        .allocated_bytes = row->allocated_bytes,
        .allocated_blocks = row->allocated_blocks,
        .peak_bytes = row->peak_bytes,
        .thread = row->thread == 0 ? 0 : view->threads[row->thread - 1].tid,
    };
    for (uint32_t context = row->context; context != 0; context = view->contexts[context].parent)
        trace->nframe++;
    return 0;
}

long ta_snapshot_block_count(const struct ta_snapshot *snapshot)
{
    const struct ta__view *view = ta__snapshot_view(snapshot);
    if (view != NULL && view->has_blocks)
        return (long)view->block_count;
    if (view != NULL)
        ta__error_set("the snapshot does not have single blocks: take it with blocks=yes, or by tracealloc take", NULL);
    return -1;
}

int ta_snapshot_block(const struct ta_snapshot *snapshot, size_t index, struct ta_block *block)
{
    const struct ta__view *view = ta__snapshot_view(snapshot);
    if (view == NULL || index >= view->block_count)
        return view == NULL ? -1 : ta__error_set("there is no block of that index", NULL);
    const struct ta__view_block *row = &view->blocks[index];
    *block = (struct ta_block){row->address, ta__view_block_size(row),
                               row->trace < view->trace_count ? (long)row->trace : -1};
    return 0;
}

static void frame_of(const struct ta__view *view, const struct ta__view_frame *frame, struct ta_raw_frame *raw)
{
    *raw = (struct ta_raw_frame){.address = frame->address, .line = frame->line, .module = frame->module};
    uint32_t text = frame->file;
    if (frame->kind == TA__FRAME_OVERFLOW) {
        raw->file = "<overflow>";
        raw->file_length = strlen(raw->file);
        return;
    }
    if (frame->kind == TA__FRAME_ADDRESS && frame->module == 0)
        return;
    if (frame->kind == TA__FRAME_ADDRESS)
        text = view->modules[frame->module - 1].path;
    raw->file = view->strings[text].text;
    raw->file_length = view->strings[text].length;
}

size_t ta_snapshot_trace_frames(const struct ta_snapshot *snapshot, size_t index, struct ta_raw_frame *frames,
                                size_t max)
{
    const struct ta__view_trace *row = trace_at(snapshot, index);
    if (row == NULL)
        return 0;
    const struct ta__view *view = ta__snapshot_view(snapshot);
    size_t count = 0;
    for (uint32_t context = row->context; context != 0; context = view->contexts[context].parent, count++)
        if (count < max)
            frame_of(view, &view->frames[view->contexts[context].frame], &frames[count]);
    return count;
}

int ta_snapshot_info(const struct ta_snapshot *snapshot, struct ta_snapshot_info *info, size_t size)
{
    const struct ta__view *view = ta__snapshot_view(snapshot);
    if (view == NULL)
        return -1;
    const struct ta_snapshot_info all = {
        .program = view->strings[view->program].text,
        .host = view->strings[view->host].text,
        .reason = view->strings[view->reason].text,
        .pid = view->pid,
        .time_ns = view->time_ns,
        .start_time_ns = view->start_time_ns,
        .current_bytes = view->current_bytes,
        .peak_bytes = view->peak_bytes,
        .sample_bytes = view->sample_bytes,
        .lost = view->lost,
        .overflowed = view->overflowed,
        .cut_short = view->cut_short,
        .foreign_frees = view->foreign_frees,
        .invalid_frees = view->invalid_frees,
        .snapshot_errors = view->snapshot_errors,
        .traces = view->trace_count,
        .contexts = view->context_count,
        .frames = view->frame_count,
        .modules = view->module_count,
        .domains = view->domain_count,
        .threads = view->thread_count,
        .epoch = view->epoch,
    };
    ta__fill(info, size, &all, sizeof all);
    return 0;
}

/* The view, when it has a row of that index in the table whose row count stands at `count_offset`. */
static const struct ta__view *view_with_row(const struct ta_snapshot *snapshot, size_t index, size_t count_offset,
                                            const char *table)
{
    const struct ta__view *view = ta__snapshot_view(snapshot);
    uint32_t count;
    if (view == NULL)
        return NULL;
    memcpy(&count, (const char *)view + count_offset, sizeof count);
    if (index < count)
        return view;
    ta__error_set("there is no ", table, " of that index", NULL);
    return NULL;
}

int ta_snapshot_module(const struct ta_snapshot *snapshot, size_t index, struct ta_module_info *info, size_t size)
{
    const struct ta__view *view = view_with_row(snapshot, index, offsetof(struct ta__view, module_count), "module");
    if (view == NULL)
        return -1;
    const struct ta__view_module *module = &view->modules[index];
    const struct ta_module_info all = {
        .path = view->strings[module->path].text,
        .build_id = module->build_id,
        .build_id_length = module->build_id_length,
        .load_base = module->load_base,
        .start = module->start,
        .end = module->end,
    };
    ta__fill(info, size, &all, sizeof all);
    return 0;
}

int ta_snapshot_domain(const struct ta_snapshot *snapshot, size_t index, struct ta_domain_info *info, size_t size)
{
    const struct ta__view *view = view_with_row(snapshot, index, offsetof(struct ta__view, domain_count), "domain");
    if (view == NULL)
        return -1;
    const struct ta__view_domain *domain = &view->domains[index];
    const struct ta_domain_info all = {
        .number = domain->number,
        .name = view->strings[domain->name].text,
        .live_bytes = domain->live_bytes,
        .live_blocks = domain->live_blocks,
        .peak_bytes = domain->peak_bytes,
        .allocated_bytes = domain->allocated_bytes,
        .allocated_blocks = domain->allocated_blocks,
        .limit_bytes = domain->limit_bytes,
    };
    ta__fill(info, size, &all, sizeof all);
    return 0;
}

int ta_snapshot_option(const struct ta_snapshot *snapshot, size_t index, const char **key, const char **value)
{
    const struct ta__view *view = view_with_row(snapshot, index, offsetof(struct ta__view, option_count), "option");
    if (view == NULL)
        return -1;
    *key = view->strings[view->options[index].key].text;
    *value = view->strings[view->options[index].value].text;
    return 0;
}
