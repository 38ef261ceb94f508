/* export_pprof.c: a snapshot as a profile for pprof: live and total, blocks and bytes, by address with inlined calls.
 * The message is built as protobuf-c wants it, packed, and compressed with gzip. Values of sampled recordings are
 * estimates already, so nothing is scaled here. */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/exports.h"
#include "analysis/cli/names.h"
#include "analysis/cli/profile.pb-c.h"

/* From pairs of numbers to small ones, in the order in which they were first seen. */
struct table {
    struct slot {
        uint64_t a, b;
        uint32_t number; /* + 1 */
    } * slots;
    size_t capacity;
    uint32_t count;
};

static size_t place_of(const struct table *table, uint64_t a, uint64_t b)
{
    uint64_t hash = (a ^ (b << 32 | b >> 32)) * UINT64_C(0x9E3779B97F4A7C15);
    size_t at = (size_t)(hash ^ hash >> 31) % table->capacity;
    while (table->slots[at].number != 0 && (table->slots[at].a != a || table->slots[at].b != b))
        at = (at + 1) % table->capacity;
    return at;
}

/* The pair's number; *is_new tells whether it got one just now. */
static uint32_t number_of(struct table *table, uint64_t a, uint64_t b, int *is_new)
{
    if (2 * (size_t)table->count >= table->capacity) {
        struct table larger = {.capacity = table->capacity * 2 + 1024, .count = table->count};
        larger.slots = cli_allocate(larger.capacity, sizeof *larger.slots);
        for (size_t i = 0; i < table->capacity; i++)
            if (table->slots[i].number != 0)
                larger.slots[place_of(&larger, table->slots[i].a, table->slots[i].b)] = table->slots[i];
        free(table->slots);
        *table = larger;
    }
    struct slot *slot = &table->slots[place_of(table, a, b)];
    *is_new = slot->number == 0;
    if (*is_new)
        *slot = (struct slot){a, b, ++table->count};
    return slot->number - 1;
}

struct profile {
    Pprof__Profile message;
    struct ta_snapshot *snapshot;
    struct cli_names *names;
    struct table strings, functions, locations, modules;
    size_t string_room, function_room, location_room;
};

/* ---- the tables ---- */

static void make_room(void *array, size_t *room, size_t needed, size_t size)
{
    if (needed < *room)
        return;
    *room = *room * 2 + 1024;
    void **pointer = array;
    *pointer = cli_enlarge(*pointer, *room, size);
}

static int64_t string(struct profile *profile, const char *text)
{
    int is_new;
    const char *own = cli_intern(profile->names, text);
    uint32_t number = number_of(&profile->strings, (uintptr_t)own, 0, &is_new);
    if (is_new) {
        make_room(&profile->message.string_table, &profile->string_room, number, sizeof(char *));
        profile->message.string_table[number] = (char *)(uintptr_t)own;
        profile->message.n_string_table = number + 1;
    }
    return number;
}

static uint64_t function(struct profile *profile, const struct ta_frame *frame)
{
    int is_new;
    const char *name = *frame->function != '\0' ? frame->function : frame->module;
    int64_t name_number = string(profile, *name != '\0' ? name : frame->filename);
    int64_t file_number = string(profile, frame->filename);
    uint32_t number = number_of(&profile->functions, (uint64_t)name_number, (uint64_t)file_number, &is_new);
    if (is_new) {
        Pprof__Function *row = cli_allocate(1, sizeof *row);
        pprof__function__init(row);
        row->id = number + 1;
        row->name = name_number;
        row->system_name = *frame->raw_name != '\0' ? string(profile, frame->raw_name) : name_number;
        row->filename = file_number;
        make_room(&profile->message.function, &profile->function_room, number, sizeof row);
        profile->message.function[number] = row;
        profile->message.n_function = number + 1;
    }
    return number + 1;
}

/* One address: `count` frames, the innermost inlined call first. */
static uint64_t location(struct profile *profile, const struct ta_frame *const *frames, size_t count)
{
    int is_new;
    const struct ta_frame *outer = frames[count - 1];
    uint64_t key = outer->address, other = 0;
    if (key == 0) {
        key = (uint64_t)string(profile, outer->filename) << 32 | outer->lineno;
        other = 1 + (uint64_t)string(profile, outer->function);
    }
    uint32_t number = number_of(&profile->locations, key, other, &is_new);
    if (!is_new)
        return number + 1;
    Pprof__Location *row = cli_allocate(1, sizeof *row);
    pprof__location__init(row);
    row->id = number + 1;
    row->address = outer->address;
    if (outer->address != 0 && *outer->module != '\0') {
        uint32_t module = number_of(&profile->modules, (uint64_t)string(profile, outer->module), 0, &is_new);
        row->mapping_id = module < profile->message.n_mapping ? module + 1 : 0;
    }
    row->n_line = count;
    row->line = cli_allocate(count, sizeof *row->line);
    for (size_t i = 0; i < count; i++) {
        row->line[i] = cli_allocate(1, sizeof **row->line);
        pprof__line__init(row->line[i]);
        row->line[i]->function_id = function(profile, frames[i]);
        row->line[i]->line = frames[i]->lineno;
    }
    make_room(&profile->message.location, &profile->location_room, number, sizeof row);
    profile->message.location[number] = row;
    profile->message.n_location = number + 1;
    return number + 1;
}

static void add_module(struct profile *profile, const struct ta_module_info *module)
{
    char id[2 * 64 + 1] = "";
    int is_new;
    /* Of two loaded objects with one path the first is named; numbers stay those of the table. */
    number_of(&profile->modules, (uint64_t)string(profile, module->path), 0, &is_new);
    if (!is_new)
        return;
    for (size_t b = 0; b < module->build_id_length && b < 64; b++)
        snprintf(id + 2 * b, 3, "%02x", module->build_id[b]);
    Pprof__Mapping *row = cli_allocate(1, sizeof *row);
    pprof__mapping__init(row);
    row->id = profile->message.n_mapping + 1;
    row->memory_start = module->start;
    row->memory_limit = module->end;
    row->filename = string(profile, module->path);
    cli_names_forget_sources(profile->names); /* `id` is a new text at the old place */
    row->build_id = string(profile, id);
    cli_names_forget_sources(profile->names);
    row->has_functions = row->has_filenames = row->has_line_numbers = row->has_inline_frames = 1;
    profile->message.mapping[profile->message.n_mapping++] = row;
}

/* The program itself first: pprof takes the first one for it. */
static void add_modules(struct profile *profile, const char *program)
{
    struct ta_module_info module;
    size_t count = 0;
    while (ta_snapshot_module(profile->snapshot, count, &module, sizeof module) == 0)
        count++;
    profile->message.mapping = cli_allocate(count, sizeof(Pprof__Mapping *));
    for (int others = 0; others < 2; others++)
        for (size_t i = 0; i < count; i++)
            if (ta_snapshot_module(profile->snapshot, i, &module, sizeof module) == 0 &&
                (strcmp(module.path, program) != 0) == others)
                add_module(profile, &module);
}

static Pprof__ValueType *value_type(struct profile *profile, const char *type, const char *unit)
{
    Pprof__ValueType *row = cli_allocate(1, sizeof *row);
    pprof__value_type__init(row);
    row->type = string(profile, type);
    row->unit = string(profile, unit);
    return row;
}

/* ---- samples ---- */

static Pprof__Label *label(struct profile *profile, const char *key, uint32_t number)
{
    Pprof__Label *row = cli_allocate(1, sizeof *row);
    pprof__label__init(row);
    row->key = string(profile, key);
    row->num = number;
    return row;
}

static Pprof__Sample *sample(struct profile *profile, const struct ta_trace *trace, const struct ta_frame *frames,
                             size_t count)
{
    Pprof__Sample *row = cli_allocate(1, sizeof *row);
    pprof__sample__init(row);
    row->location_id = cli_allocate(count, sizeof *row->location_id);
    const struct ta_frame **run = cli_allocate(count, sizeof *run);
    size_t inlined = 0;
    for (size_t i = count; i-- > 0;) { /* frames are oldest first */
        run[inlined++] = &frames[i];
        if ((frames[i].flags & TA_FRAME_INLINED) && i > 0)
            continue;
        row->location_id[row->n_location_id++] = location(profile, run, inlined);
        inlined = 0;
    }
    free(run);
    row->n_value = 4;
    row->value = cli_allocate(4, sizeof *row->value);
    uint64_t blocks = trace->allocated_blocks > trace->count ? trace->allocated_blocks : trace->count;
    uint64_t bytes = trace->allocated_bytes > trace->size ? trace->allocated_bytes : trace->size;
    row->value[0] = (int64_t)blocks;
    row->value[1] = (int64_t)bytes;
    row->value[2] = (int64_t)trace->count;
    row->value[3] = (int64_t)trace->size;
    row->label = cli_allocate(2, sizeof *row->label);
    row->label[row->n_label++] = label(profile, "domain", trace->domain);
    if (trace->thread != 0)
        row->label[row->n_label++] = label(profile, "thread", trace->thread);
    return row;
}

static int add_samples(struct profile *profile)
{
    long count = ta_snapshot_trace_count(profile->snapshot);
    if (count < 0)
        return -1;
    count += ta_snapshot_gone_trace_count(profile->snapshot);
    struct ta_frame *frames = NULL;
    size_t room = 0;
    profile->message.sample = cli_allocate((size_t)count, sizeof(Pprof__Sample *));
    for (long i = 0; i < count; i++) {
        struct ta_trace trace;
        struct ta_traceback traceback = ta_snapshot_trace_traceback(profile->snapshot, (size_t)i);
        size_t length = cli_frames(traceback, &frames, &room);
        if (ta_snapshot_trace(profile->snapshot, (size_t)i, &trace) == 0)
            profile->message.sample[profile->message.n_sample++] = sample(profile, &trace, frames, length);
    }
    free(frames);
    return 0;
}

static int write_gzip(const Pprof__Profile *message, FILE *file)
{
    size_t length = pprof__profile__get_packed_size(message);
    uint8_t *bytes = cli_allocate(length, 1);
    pprof__profile__pack(message, bytes);
    z_stream stream = {.next_in = bytes};
    int result = deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK ? 0 : -1;
    uint8_t out[65536];
    int state = Z_OK;
    for (size_t left = length; result == 0 && state != Z_STREAM_END;) {
        if (stream.avail_in == 0 && left > 0) {
            stream.avail_in = left > 1u << 30 ? 1u << 30 : (uInt)left;
            left -= stream.avail_in;
        }
        stream.next_out = out;
        stream.avail_out = sizeof out;
        state = deflate(&stream, left == 0 ? Z_FINISH : Z_NO_FLUSH);
        size_t got = sizeof out - stream.avail_out;
        if (state == Z_STREAM_ERROR || fwrite(out, 1, got, file) != got)
            result = -1;
    }
    deflateEnd(&stream);
    free(bytes);
    return result;
}

static void free_all(struct profile *profile)
{
    Pprof__Profile *message = &profile->message;
    for (size_t i = 0; i < message->n_sample; i++) {
        for (size_t l = 0; l < message->sample[i]->n_label; l++)
            free(message->sample[i]->label[l]);
        free(message->sample[i]->label);
        free(message->sample[i]->location_id);
        free(message->sample[i]->value);
        free(message->sample[i]);
    }
    for (size_t i = 0; i < message->n_location; i++) {
        for (size_t l = 0; l < message->location[i]->n_line; l++)
            free(message->location[i]->line[l]);
        free(message->location[i]->line);
        free(message->location[i]);
    }
    for (size_t i = 0; i < message->n_function; i++)
        free(message->function[i]);
    for (size_t i = 0; i < message->n_mapping; i++)
        free(message->mapping[i]);
    for (size_t i = 0; i < message->n_sample_type; i++)
        free(message->sample_type[i]);
    free(message->period_type);
    free(message->sample);
    free(message->location);
    free(message->function);
    free(message->mapping);
    free(message->string_table);
    free(profile->strings.slots);
    free(profile->functions.slots);
    free(profile->locations.slots);
    free(profile->modules.slots);
    cli_names_free(profile->names);
}

int cli_export_pprof(struct ta_snapshot *snapshot, FILE *file)
{
    struct profile profile = {.snapshot = snapshot, .names = cli_names_new()};
    struct ta_snapshot_info info;
    int result = ta_snapshot_info(snapshot, &info, sizeof info);
    pprof__profile__init(&profile.message);
    string(&profile, ""); /* must be the first */
    Pprof__ValueType *types[] = {
        value_type(&profile, "alloc_objects", "count"), value_type(&profile, "alloc_space", "bytes"),
        value_type(&profile, "inuse_objects", "count"), value_type(&profile, "inuse_space", "bytes")};
    profile.message.sample_type = types;
    profile.message.n_sample_type = 4;
    profile.message.default_sample_type = types[3]->type;
    profile.message.period_type = value_type(&profile, "space", "bytes");
    if (result == 0) {
        add_modules(&profile, info.program);
        profile.message.time_nanos = (int64_t)info.time_ns;
        profile.message.period = info.sample_bytes > 1 ? (int64_t)info.sample_bytes : 1;
        result = add_samples(&profile);
    }
    if (result == 0)
        result = write_gzip(&profile.message, file);
    free_all(&profile);
    return result;
}
