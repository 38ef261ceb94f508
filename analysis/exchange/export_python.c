/* export_python.c: a snapshot as a file for Python's tracemalloc.Snapshot.load.
 *
 * Such a file is a pickle of the Snapshot object. A pickle is a program for a small stack machine; this is the whole of
 * what we emit (protocol 4, without frames and checks, both of which are optional):
 *
 *     PROTO 4
 *     "tracemalloc" "Snapshot" STACK_GLOBAL () NEWOBJ         a Snapshot without calling __init__
 *     { MARK "traceback_limit" N
 *            "traces" "tracemalloc" "_Traces" STACK_GLOBAL () NEWOBJ
 *                { MARK "_traces" [ MARK trace … APPENDS … ] SETITEMS } BUILD
 *       SETITEMS } BUILD STOP
 *
 *     trace     = MARK domain size frames total_nframe TUPLE
 *     frames    = MARK frame … TUPLE, most recent first      frame = "name" line TUPLE2
 *
 * Names, frames, stacks and traces that occur again are fetched from the memo, so the file and the memory of the
 * process that loads it stay in proportion to distinct stacks. Integers are written as they come: the names of classes
 * are the only thing here that depends on Python's version (3.9 to 3.13 load these files). */
#include <stdlib.h>
#include <string.h>

#include "analysis/block_sizes.h"
#include "analysis/model.h"
#include "analysis/code_points.h"
#include "analysis/text_output.h"
#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"
#include "base/bytes.h"

#define BLOCKS_MAX (1u << 30)

enum opcode {
    MARK = '(',
    STOP = '.',
    BININT = 'J',
    BININT1 = 'K',
    BININT2 = 'M',
    NONE = 'N',
    BINUNICODE = 'X',
    EMPTY_LIST = ']',
    EMPTY_TUPLE = ')',
    EMPTY_DICT = '}',
    APPENDS = 'e',
    SETITEMS = 'u',
    BUILD = 'b',
    TUPLE = 't',
    LONG_BINGET = 'j',
    PROTO = 0x80,
    NEWOBJ = 0x81,
    TUPLE2 = 0x86,
    LONG1 = 0x8a,
    STACK_GLOBAL = 0x93,
    MEMOIZE = 0x94
};

/* The unpickler numbers memo entries in the order of MEMOIZE; 0 below = not memoized yet, else number + 1. */
struct pickler {
    struct ta__output output;
    const struct ta__model *model;
    struct ta__block_sizes sizes;
    uint32_t memo_count;
    uint32_t *names, *locations, *contexts; /* memo by number in the model */
};

static void put_op(struct pickler *pickler, enum opcode opcode)
{
    char byte = (char)opcode;
    ta__output_add(&pickler->output, &byte, 1);
}

static void put_bytes(struct pickler *pickler, enum opcode opcode, const void *bytes, size_t length)
{
    put_op(pickler, opcode);
    ta__output_add(&pickler->output, bytes, length);
}

static void put_integer(struct pickler *pickler, uint64_t value)
{
    uint8_t bytes[10] = {0};
    if (value <= UINT8_MAX) {
        bytes[0] = (uint8_t)value;
        put_bytes(pickler, BININT1, bytes, 1);
    } else if (value <= UINT16_MAX) {
        ta__put_u16(bytes, (uint16_t)value);
        put_bytes(pickler, BININT2, bytes, 2);
    } else if (value <= INT32_MAX) {
        ta__put_u32(bytes, (uint32_t)value);
        put_bytes(pickler, BININT, bytes, 4);
    } else {
        bytes[0] = 9; /* little-endian two's complement: the ninth byte keeps it positive */
        ta__put_u64(bytes + 1, value);
        put_bytes(pickler, LONG1, bytes, 10);
    }
}

static void memoize(struct pickler *pickler, uint32_t *slot)
{
    put_op(pickler, MEMOIZE);
    *slot = ++pickler->memo_count;
}

/* Fetches what was memoized; 0 when it was not. */
static int get(struct pickler *pickler, uint32_t slot)
{
    uint8_t bytes[4];
    if (slot == 0)
        return 0;
    ta__put_u32(bytes, slot - 1);
    put_bytes(pickler, LONG_BINGET, bytes, 4);
    return 1;
}

/* UTF-8, in which Python allows surrogates: a byte that is not UTF-8 becomes U+DC00 + byte, as in file names. */
static void put_string(struct pickler *pickler, const char *text, size_t length)
{
    uint8_t header[4];
    struct ta__text encoded = {0};
    const char *at = text, *end = text + length;
    while (at < end) {
        const char *start = at;
        uint32_t code_point = ta__next_code_point(&at, end);
        char surrogate[3] = {(char)0xED, (char)(0x80 | (code_point >> 6 & 0x3F)), (char)(0x80 | (code_point & 0x3F))};
        int is_byte = code_point >= 0xDC80 && code_point <= 0xDCFF;
        ta__text_add(&encoded, is_byte ? surrogate : start, is_byte ? 3 : (size_t)(at - start));
    }
    if (encoded.failed || encoded.length > UINT32_MAX)
        pickler->output.failed = 1;
    ta__put_u32(header, (uint32_t)encoded.length);
    put_bytes(pickler, BINUNICODE, header, 4);
    ta__output_add(&pickler->output, encoded.length > 0 ? encoded.bytes : "", encoded.length);
    ta__text_free(&encoded);
}

static void put_word(struct pickler *pickler, const char *word)
{
    put_string(pickler, word, strlen(word));
}

static void put_object(struct pickler *pickler, const char *class_name)
{
    put_word(pickler, "tracemalloc");
    put_word(pickler, class_name);
    put_op(pickler, STACK_GLOBAL);
    put_op(pickler, EMPTY_TUPLE);
    put_op(pickler, NEWOBJ);
}

static void put_location(struct pickler *pickler, uint32_t index)
{
    const struct ta__location *location = &pickler->model->locations[index];
    const struct ta__name *name = &pickler->model->names[location->name];
    if (get(pickler, pickler->locations[index]))
        return;
    if (!get(pickler, pickler->names[location->name])) {
        put_string(pickler, name->text, name->length);
        memoize(pickler, &pickler->names[location->name]);
    }
    put_integer(pickler, location->line);
    put_op(pickler, TUPLE2);
    memoize(pickler, &pickler->locations[index]);
}

static void put_frames(struct pickler *pickler, uint32_t context)
{
    const struct ta__model *model = pickler->model;
    if (get(pickler, pickler->contexts[context]))
        return;
    put_op(pickler, MARK);
    uint32_t at = context;
    do {
        struct ta__logical_range range = ta__model_range(model, at);
        for (uint32_t i = 0; i < range.count; i++)
            put_location(pickler, model->logicals[range.first + i].location);
        at = model->view->contexts[at].parent;
    } while (at != 0);
    put_op(pickler, TUPLE);
    memoize(pickler, &pickler->contexts[context]);
}

/* `count` equal blocks: one tuple, fetched again and again. */
static void put_blocks(struct pickler *pickler, const struct ta__view_trace *trace, uint64_t size, uint64_t count)
{
    uint32_t slot = 0;
    for (uint64_t i = 0; i < count && !pickler->output.failed; i++) {
        if (get(pickler, slot))
            continue;
        put_op(pickler, MARK);
        put_integer(pickler, trace->domain);
        put_integer(pickler, size);
        put_frames(pickler, trace->context);
        if (trace->total_nframe >= 0)
            put_integer(pickler, (uint64_t)trace->total_nframe);
        else
            put_op(pickler, NONE);
        put_op(pickler, TUPLE);
        if (count > 1)
            memoize(pickler, &slot);
    }
}

static void put_traces(struct pickler *pickler)
{
    const struct ta__view *view = pickler->model->view;
    put_op(pickler, EMPTY_LIST);
    for (uint32_t i = 0; i < view->trace_count && !pickler->output.failed; i++) {
        const struct ta__blocks *blocks;
        size_t kinds = ta__block_sizes_of(&pickler->sizes, i, &blocks);
        put_op(pickler, MARK);
        for (size_t k = 0; k < kinds; k++)
            put_blocks(pickler, &view->traces[i], blocks[k].size, blocks[k].count);
        put_op(pickler, APPENDS);
    }
}

static void put_snapshot(struct pickler *pickler)
{
    static const uint8_t version = 4;
    put_bytes(pickler, PROTO, &version, 1);
    put_object(pickler, "Snapshot");
    put_op(pickler, EMPTY_DICT);
    put_op(pickler, MARK);
    put_word(pickler, "traceback_limit");
    put_integer(pickler, pickler->model->view->traceback_limit);
    put_word(pickler, "traces");
    put_object(pickler, "_Traces");
    put_op(pickler, EMPTY_DICT);
    put_op(pickler, MARK);
    put_word(pickler, "_traces");
    put_traces(pickler);
    put_op(pickler, SETITEMS);
    put_op(pickler, BUILD);
    put_op(pickler, SETITEMS);
    put_op(pickler, BUILD);
    put_op(pickler, STOP);
}

/* Python has one object per block, we have a count. */
static int check_block_count(const struct ta__view *view)
{
    ta__wide blocks = 0;
    for (uint32_t i = 0; i < view->trace_count; i++)
        blocks += view->traces[i].count;
    return blocks <= BLOCKS_MAX ? 0 : ta__fail("more than %u blocks: too many for Python to hold", BLOCKS_MAX);
}

int ta_snapshot_export_python(const struct ta_snapshot *snapshot, ta_write_function write, void *user)
{
    const struct ta__model *model = ta__model_of(snapshot);
    if (model == NULL || check_block_count(model->view) != 0)
        return -1;
    struct pickler pickler = {.output = {.write = write, .user = user}, .model = model};
    pickler.names = ta__new_array(model->name_count, sizeof *pickler.names);
    pickler.locations = ta__new_array(model->location_count, sizeof *pickler.locations);
    pickler.contexts = ta__new_array((size_t)model->view->context_count + 1, sizeof *pickler.contexts);
    int status = pickler.names == NULL || pickler.locations == NULL || pickler.contexts == NULL ||
                         ta__block_sizes_open(&pickler.sizes, model->view) != 0
                     ? -1
                     : 0;
    if (status == 0) {
        put_snapshot(&pickler);
        status = ta__output_finish(&pickler.output);
    }
    free(pickler.names);
    free(pickler.locations);
    free(pickler.contexts);
    ta__block_sizes_close(&pickler.sizes);
    return status;
}
