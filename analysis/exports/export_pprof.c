/* export_pprof.c: a snapshot as a profile for pprof (github.com/google/pprof, proto/profile.proto): live and total,
 * blocks and bytes, by address with inlined calls. Values of sampled recordings are estimates already, so nothing is
 * scaled here.
 *
 * The profile is written as it is made: each text, function and place goes out when a stack first needs it, and only
 * their numbers stay. A frame of the view is one place: its number + 2; place 1 is a stack without frames. */
#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/code_points.h"
#include "analysis/exports/gzip.h"
#include "analysis/exports/protobuf.h"
#include "analysis/failure.h"
#include "analysis/model.h"
#include "analysis/own/own_keys.h"
#include "base/hash.h"
#include "base/index.h"
#include "tracealloc/export.h"

enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_MAPPING = 3, PROFILE_LOCATION = 4, PROFILE_FUNCTION = 5 };
enum { PROFILE_STRING = 6, PROFILE_TIME = 9, PROFILE_DURATION = 10, PROFILE_PERIOD_TYPE = 11, PROFILE_PERIOD = 12 };
enum { PROFILE_DEFAULT_SAMPLE_TYPE = 14 };
enum { TYPE_NAME = 1, TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3, LABEL_KEY = 1, LABEL_TEXT = 2 };
enum { MAPPING_ID = 1, MAPPING_START = 2, MAPPING_LIMIT = 3, MAPPING_FILE = 5, MAPPING_BUILD_ID = 6 };
enum { MAPPING_HAS_FUNCTIONS = 7, MAPPING_HAS_INLINED = 10 };
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };

struct function {
    uint32_t name, raw_name, file; /* names of the model */
};

struct profile {
    const struct ta__model *model;
    struct ta__own *own;
    uint32_t *string_of_own; /* by key: number + 1; 0 = not written yet */
    struct ta__gzip gzip;
    struct ta__text message, inner, line; /* under construction; failed = no memory */
    uint32_t *string_of_name;             /* number + 1; 0 = not written yet */
    uint32_t string_count;
    unsigned char *written; /* by place */
    struct function *functions;
    size_t function_count, function_capacity;
    struct ta__index function_index;
    uint64_t *places; /* of one stack */
    size_t place_capacity;
};

/* ---- texts ---- */

static void send(struct profile *profile, unsigned field, const void *bytes, size_t length)
{
    struct ta__text *message = &profile->message;
    ta__protobuf_bytes(message, field, bytes, length);
    if (!message->failed)
        ta__gzip_add(&profile->gzip, message->bytes, message->length);
    message->length = 0;
}

/* The message made in `inner`. */
static void send_inner(struct profile *profile, unsigned field)
{
    if (profile->inner.failed)
        profile->message.failed = 1;
    send(profile, field, profile->inner.bytes, profile->inner.length);
    profile->inner.length = 0;
}

/* Texts must be UTF-8: other bytes are written as \xNN. */
static uint32_t new_string(struct profile *profile, const char *text, size_t length)
{
    if (ta__name_is_utf8(text, length)) {
        send(profile, PROFILE_STRING, text, length);
        return profile->string_count++;
    }
    struct ta__text sound = {0};
    for (const char *at = text, *end = text + length; at < end;) {
        const char *point = at;
        ta__next_code_point(&at, end);
        if (at == point + 1 && (unsigned char)*point >= 0x80)
            ta__text_add_format(&sound, "\\x%02x", (unsigned char)*point);
        else
            ta__text_add(&sound, point, (size_t)(at - point));
    }
    if (sound.failed)
        profile->message.failed = 1;
    send(profile, PROFILE_STRING, sound.bytes, sound.length);
    ta__text_free(&sound);
    return profile->string_count++;
}

static uint32_t new_text(struct profile *profile, const char *text)
{
    return new_string(profile, text, strlen(text));
}

static uint32_t string_of_name(struct profile *profile, uint32_t name)
{
    if (profile->string_of_name[name] == 0)
        profile->string_of_name[name] =
            new_string(profile, profile->model->names[name].text, profile->model->names[name].length) + 1;
    return profile->string_of_name[name] - 1;
}

/* ---- functions ---- */

static uint64_t hash_function(const struct function *function)
{
    return ta__hash_word(ta__hash_roll((uint64_t)function->name << 32 | function->file, function->raw_name));
}

static uint64_t hash_of_function(const void *profile, uint32_t row)
{
    return hash_function(&((const struct profile *)profile)->functions[row]);
}

static int is_same_function(const void *profile, uint32_t row, const void *wanted)
{
    return memcmp(&((const struct profile *)profile)->functions[row], wanted, sizeof(struct function)) == 0;
}

/* Its number, from 1. Where the function is not known its module stands for it, or else the file. */
static uint64_t function_of(struct profile *profile, const struct ta__logical *logical)
{
    uint32_t file = profile->model->locations[logical->location].name;
    const struct function wanted = {.name = logical->function != 0 ? logical->function
                                            : logical->module != 0 ? logical->module
                                                                   : file,
                                    .raw_name = logical->raw_name,
                                    .file = file};
    if (ta__index_reserve(&profile->function_index, profile->function_count, hash_of_function, profile) != 0 ||
        ta__grow(&profile->functions, &profile->function_capacity, profile->function_count + 1,
                 sizeof *profile->functions) != 0) {
        profile->message.failed = 1;
        return 0;
    }
    uint32_t *slot =
        ta__index_find(&profile->function_index, hash_function(&wanted), is_same_function, profile, &wanted);
    if (*slot != 0)
        return *slot;
    profile->functions[profile->function_count++] = wanted;
    *slot = (uint32_t)profile->function_count;
    uint32_t name = string_of_name(profile, wanted.name), file_name = string_of_name(profile, wanted.file);
    uint32_t system_name = wanted.raw_name != 0 ? string_of_name(profile, wanted.raw_name) : name;
    struct ta__text function = {0};
    ta__protobuf_number(&function, FUNCTION_ID, *slot);
    ta__protobuf_number(&function, FUNCTION_NAME, name);
    ta__protobuf_number(&function, FUNCTION_SYSTEM_NAME, system_name);
    ta__protobuf_number(&function, FUNCTION_FILE, file_name);
    if (function.failed)
        profile->message.failed = 1;
    send(profile, PROFILE_FUNCTION, function.bytes, function.length);
    ta__text_free(&function);
    return *slot;
}

/* ---- places ---- */

static void write_place(struct profile *profile, uint64_t place, uint32_t context)
{
    const struct ta__model *model = profile->model;
    struct ta__logical_range range = ta__model_range(model, context);
    const struct ta__logical *outer = &model->logicals[range.first + range.count - 1];
    const struct ta__view_frame *frame =
        context == 0 ? NULL : &model->view->frames[model->view->contexts[context].frame];
    ta__protobuf_number(&profile->inner, LOCATION_ID, place);
    ta__protobuf_number(&profile->inner, LOCATION_MAPPING,
                        frame != NULL && frame->kind == TA__FRAME_ADDRESS ? frame->module : 0);
    ta__protobuf_number(&profile->inner, LOCATION_ADDRESS, outer->address);
    for (uint32_t i = 0; i < range.count; i++) { /* innermost first */
        const struct ta__logical *logical = &model->logicals[range.first + i];
        ta__protobuf_number(&profile->line, LINE_FUNCTION, function_of(profile, logical));
        ta__protobuf_number(&profile->line, LINE_NUMBER, model->locations[logical->location].line);
        ta__protobuf_message(&profile->inner, LOCATION_LINE, &profile->line);
    }
    send_inner(profile, PROFILE_LOCATION);
}

static uint64_t place_of(struct profile *profile, uint32_t context)
{
    uint64_t place = context == 0 ? 1 : (uint64_t)profile->model->view->contexts[context].frame + 2;
    if (!profile->written[place]) {
        profile->written[place] = 1;
        write_place(profile, place, context);
    }
    return place;
}

/* ---- modules ---- */

static void write_module(struct profile *profile, uint32_t index)
{
    const struct ta__view_module *module = &profile->model->view->modules[index];
    const struct ta__view_string *path = &profile->model->view->strings[module->path];
    char id[2 * 64 + 1] = "";
    for (uint32_t i = 0; i < module->build_id_length && i < 64; i++) {
        id[2 * i] = "0123456789abcdef"[module->build_id[i] >> 4];
        id[2 * i + 1] = "0123456789abcdef"[module->build_id[i] & 15];
    }
    uint32_t file = new_string(profile, path->text, path->length), build_id = new_text(profile, id);
    ta__protobuf_number(&profile->inner, MAPPING_ID, index + UINT64_C(1));
    ta__protobuf_number(&profile->inner, MAPPING_START, module->start);
    ta__protobuf_number(&profile->inner, MAPPING_LIMIT, module->end);
    ta__protobuf_number(&profile->inner, MAPPING_FILE, file);
    ta__protobuf_number(&profile->inner, MAPPING_BUILD_ID, build_id);
    for (unsigned has = MAPPING_HAS_FUNCTIONS; has <= MAPPING_HAS_INLINED; has++)
        ta__protobuf_number(&profile->inner, has, 1);
    send_inner(profile, PROFILE_MAPPING);
}

/* The program itself first: pprof takes the first one for it. */
static void write_modules(struct profile *profile)
{
    const struct ta__view *view = profile->model->view;
    for (int others = 0; others < 2; others++)
        for (uint32_t i = 0; i < view->module_count; i++)
            if ((strcmp(view->strings[view->modules[i].path].text, view->strings[view->program].text) != 0) == others)
                write_module(profile, i);
}

/* ---- samples ---- */

static void add_label(struct profile *profile, uint32_t key, uint32_t text)
{
    ta__protobuf_number(&profile->line, LABEL_KEY, key);
    ta__protobuf_number(&profile->line, LABEL_TEXT, text);
    ta__protobuf_message(&profile->inner, SAMPLE_LABEL, &profile->line);
}

struct labels {
    uint32_t domain, thread, own; /* the keys */
};

/* The row of top that the stack belongs to. */
static uint32_t string_of_own(struct profile *profile, uint32_t context)
{
    uint32_t key = profile->own->contexts[context].key;
    struct ta__text label = {0};
    if (profile->string_of_own[key] == 0) {
        ta__own_add_label(&label, profile->own, key);
        profile->message.failed |= label.failed;
        profile->string_of_own[key] = new_string(profile, label.bytes != NULL ? label.bytes : "", label.length) + 1;
        ta__text_free(&label);
    }
    return profile->string_of_own[key] - 1;
}

static int write_sample(struct profile *profile, const struct ta__view_trace *trace, struct labels keys)
{
    const struct ta__model *model = profile->model;
    size_t count = 0;
    for (uint32_t context = trace->context;;) {
        if (ta__grow(&profile->places, &profile->place_capacity, count + 1, sizeof *profile->places) != 0)
            return -1;
        profile->places[count++] = place_of(profile, context);
        context = context == 0 ? 0 : model->view->contexts[context].parent;
        if (context == 0)
            break;
    }
    uint32_t domain = string_of_name(profile, model->domain_names[ta__model_domain(model, trace->domain)]);
    uint32_t thread = trace->thread == 0 ? 0 : string_of_name(profile, model->thread_names[trace->thread]);
    uint32_t own = string_of_own(profile, trace->context);
    const uint64_t values[] = {trace->allocated_blocks > trace->count ? trace->allocated_blocks : trace->count,
                               trace->allocated_bytes > trace->size ? trace->allocated_bytes : trace->size,
                               trace->count, trace->size};
    ta__protobuf_list(&profile->inner, SAMPLE_LOCATION, profile->places, count);
    ta__protobuf_list(&profile->inner, SAMPLE_VALUE, values, 4);
    add_label(profile, keys.domain, domain);
    if (thread != 0)
        add_label(profile, keys.thread, thread);
    add_label(profile, keys.own, own);
    send_inner(profile, PROFILE_SAMPLE);
    return 0;
}

static int write_samples(struct profile *profile)
{
    const struct ta__view *view = profile->model->view;
    const struct labels keys = {new_text(profile, "domain"), new_text(profile, "thread"), new_text(profile, "own")};
    uint32_t count = view->trace_count + view->gone_trace_count;
    for (uint32_t i = 0; i < count && !profile->gzip.failed && !profile->message.failed; i++)
        if (write_sample(profile, &view->traces[i], keys) != 0)
            return -1;
    return 0;
}

/* ---- the whole ---- */

static void write_type(struct profile *profile, unsigned field, uint32_t name, uint32_t unit)
{
    ta__protobuf_number(&profile->inner, TYPE_NAME, name);
    ta__protobuf_number(&profile->inner, TYPE_UNIT, unit);
    send_inner(profile, field);
}

static void write_head(struct profile *profile)
{
    static const char *const types[] = {"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"};
    const struct ta__view *view = profile->model->view;
    uint32_t name = new_text(profile, ""); /* must be the first */
    uint32_t count = new_text(profile, "count"), bytes = new_text(profile, "bytes");
    for (unsigned i = 0; i < 4; i++) {
        name = new_text(profile, types[i]);
        write_type(profile, PROFILE_SAMPLE_TYPE, name, i % 2 == 0 ? count : bytes);
    }
    write_type(profile, PROFILE_PERIOD_TYPE, new_text(profile, "space"), bytes);
    struct ta__text *message = &profile->message; /* the next message brings these along */
    ta__protobuf_number(message, PROFILE_DEFAULT_SAMPLE_TYPE, name);
    ta__protobuf_number(message, PROFILE_TIME, view->time_ns);
    ta__protobuf_number(
        message, PROFILE_DURATION,
        view->start_time_ns != 0 && view->time_ns > view->start_time_ns ? view->time_ns - view->start_time_ns : 0);
    ta__protobuf_number(message, PROFILE_PERIOD, view->sample_bytes > 1 ? view->sample_bytes : 1);
}

static int prepare_own(struct profile *profile)
{
    struct ta__own *tables[2];
    if (ta__own_build(&profile->model, 1, 0, tables) != 0)
        return -1;
    profile->own = tables[0];
    profile->string_of_own = ta__new_array(profile->own->key_count, sizeof *profile->string_of_own);
    return profile->string_of_own == NULL ? -1 : 0;
}

int ta_snapshot_export_pprof(const struct ta_snapshot *snapshot, ta_write_function write, void *user)
{
    struct profile profile = {.model = ta__model_of(snapshot)};
    if (profile.model == NULL)
        return -1;
    profile.string_of_name = ta__new_array(profile.model->name_count, sizeof *profile.string_of_name);
    profile.written = ta__new_array((size_t)profile.model->view->frame_count + 2, 1);
    int status = profile.string_of_name == NULL || profile.written == NULL ? -1 : prepare_own(&profile);
    if (status == 0)
        status = ta__gzip_open(&profile.gzip, write, user);
    if (status == 0) {
        write_head(&profile);
        write_modules(&profile);
        status = write_samples(&profile);
    }
    if (status == 0 && profile.message.failed)
        status = ta__fail_memory();
    if (ta__gzip_finish(&profile.gzip) != 0)
        status = -1;
    ta__text_free(&profile.message);
    ta__text_free(&profile.inner);
    ta__text_free(&profile.line);
    ta__index_free(&profile.function_index);
    free(profile.functions);
    free(profile.string_of_name);
    free(profile.string_of_own);
    ta__own_release(profile.own);
    free(profile.written);
    free(profile.places);
    return status;
}
