/* fuzz_reader.c: the reader against any bytes. libFuzzer's entry; fuzz_replay.c runs the corpus without libFuzzer.
 *
 * The first byte chooses what the rest is:
 *     0  a file as it stands: header, checksums, zstd frames
 *     1  a list of sections, which get the right headers and checksums here, so that the decoder itself is reached:
 *            kind (1 byte; 200 = END, 201 = INDEX, 202 = TRAILER) · flags (1) · length (2) · payload
 *        Payloads are plain. END is filled in here, so that entries count as whole.
 * What loads must obey view.h, and writing it must give a recording that loads the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "snapshot/read/encode.h"
#include "snapshot/format/format.h"
#include "snapshot/read/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

static void check_view(const struct ta__view *view)
{
    size_t sum = 0;
    MUST(view->string_count > 0 && view->strings[0].length == 0);
    for (uint32_t i = 0; i < view->string_count; i++) {
        MUST(view->strings[i].text[view->strings[i].length] == '\0');
        sum += view->strings[i].length;
    }
    for (uint32_t i = 0; i < view->module_count; i++) {
        MUST(view->modules[i].path < view->string_count);
        for (uint32_t b = 0; b < view->modules[i].build_id_length; b++)
            sum += view->modules[i].build_id[b];
    }
    for (uint32_t i = 0; i < view->frame_count; i++) {
        MUST(view->frames[i].module <= view->module_count && view->frames[i].file < view->string_count);
        MUST(view->frames[i].kind <= TA__FRAME_OVERFLOW);
        if (view->symbol_ranges != NULL)
            MUST((uint64_t)view->symbol_ranges[i].first + view->symbol_ranges[i].count <= view->symbol_count);
    }
    MUST(view->context_count > 0);
    for (uint32_t i = 1; i < view->context_count; i++)
        MUST(view->contexts[i].parent < i && view->contexts[i].frame < view->frame_count);
    for (uint32_t i = 0; i < view->symbol_count; i++)
        MUST(view->symbols[i].file < view->string_count && view->symbols[i].function < view->string_count &&
             view->symbols[i].raw_name < view->string_count);
    for (uint32_t i = 0; i < view->trace_count + view->gone_trace_count; i++) {
        MUST(view->traces[i].context < view->context_count && view->traces[i].thread <= view->thread_count);
        MUST((view->traces[i].count == 0) == (i >= view->trace_count) && view->traces[i].total_nframe >= -1);
    }
    for (uint32_t i = 0; i < view->domain_count; i++)
        MUST(view->domains[i].name < view->string_count);
    for (uint32_t i = 0; i < view->thread_count; i++)
        MUST(view->threads[i].name < view->string_count);
    for (uint32_t i = 0; i < view->option_count; i++)
        MUST(view->options[i].key < view->string_count && view->options[i].value < view->string_count);
    for (uint32_t i = 0; i < view->metadata_count; i++)
        MUST(view->metadata[i].key < view->string_count && view->metadata[i].value < view->string_count);
    MUST(view->program < view->string_count && view->host < view->string_count && view->reason < view->string_count);
    MUST(sum != SIZE_MAX);
}

static int same_trace(const struct ta__view_trace *a, const struct ta__view_trace *b)
{
    return a->context == b->context && a->domain == b->domain && a->thread == b->thread && a->flags == b->flags &&
           a->total_nframe == b->total_nframe && a->size == b->size && a->count == b->count &&
           a->allocated_bytes == b->allocated_bytes && a->allocated_blocks == b->allocated_blocks &&
           a->peak_bytes == b->peak_bytes;
}

static void check_writing(struct ta_snapshot *snapshot)
{
    const struct ta__view *view = ta__snapshot_view(snapshot);
    struct ta__sink sink;
    ta__sink_memory(&sink);
    if (snapshot->operations->encode(snapshot, &sink) == 0) {
        struct ta_snapshot *again = ta_snapshot_load_memory(sink.memory.bytes, sink.memory.length, 0);
        if (again == NULL) {
            MUST(strstr(ta__error_text(), "limit") != NULL);
        } else {
            const struct ta__view *copy = ta__snapshot_view(again);
            size_t traces = (size_t)view->trace_count + view->gone_trace_count;
            MUST(copy->trace_count == view->trace_count && copy->gone_trace_count == view->gone_trace_count);
            for (size_t i = 0; i < traces; i++)
                MUST(same_trace(&copy->traces[i], &view->traces[i]));
            MUST(copy->context_count == view->context_count && copy->frame_count == view->frame_count);
            MUST(memcmp(copy->contexts, view->contexts, view->context_count * sizeof *view->contexts) == 0);
            MUST(view->frame_count == 0 ||
                 memcmp(copy->frames, view->frames, view->frame_count * sizeof *view->frames) == 0);
            ta_snapshot_free(again);
        }
    }
    ta__buffer_free(&sink.memory);
}

static void load(const uint8_t *bytes, size_t length, long entry)
{
    ta__error_clear();
    struct ta_snapshot *snapshot = ta_snapshot_load_memory(bytes, length, entry);
    if (snapshot == NULL) {
        MUST(ta__error_text()[0] != '\0');
        return;
    }
    check_view(ta__snapshot_view(snapshot));
    check_writing(snapshot);
    ta_snapshot_free(snapshot);
}

/* ---- mode 1 ---------------------------------------------------------------------------------------------------------
 */

struct out {
    uint8_t *bytes;
    size_t length;
    uint32_t entry, count;
    uint64_t digest;
};

static void put_chunk(struct out *out, uint32_t kind, uint32_t flags, const uint8_t *payload, size_t length)
{
    uint8_t *header = out->bytes + out->length;
    ta__put_u32(header, TA__CHUNK_MAGIC);
    ta__put_u16(header + 4, (uint16_t)kind);
    ta__put_u16(header + 6, (uint16_t)(flags | TA__CHUNK_PLAIN));
    ta__put_u32(header + 8, out->entry);
    ta__put_u32(header + 12, (uint32_t)length);
    ta__put_u32(header + 16, (uint32_t)length);
    ta__put_u32(header + 20, 0);
    ta__put_u32(header + 24, (uint32_t)ta__hash_bytes(payload, length));
    uint64_t hash = ta__hash_bytes(header, 28);
    ta__put_u32(header + 28, (uint32_t)hash);
    if (length > 0)
        memcpy(header + 32, payload, length);
    out->length += 32 + length;
    out->count++;
    out->digest = ta__hash_roll(out->digest, hash);
}

static void craft(const uint8_t *data, size_t size)
{
    struct out out = {.bytes = malloc(64 + size * 24)};
    MUST(out.bytes != NULL);
    memcpy(out.bytes, TA__FILE_MAGIC, 8);
    memset(out.bytes + 8, 0, 24);
    ta__put_u16(out.bytes + 8, TA__FILE_VERSION);
    ta__put_u16(out.bytes + 10, TA__FILE_HEADER_LENGTH);
    ta__put_u32(out.bytes + 28, (uint32_t)ta__hash_bytes(out.bytes, 28));
    out.length = 32;
    for (size_t at = 0; at + 4 <= size;) {
        uint32_t kind = data[at], flags = data[at + 1];
        size_t length = (size_t)data[at + 2] | (size_t)data[at + 3] << 8;
        at += 4;
        if (length > size - at)
            length = size - at;
        if (kind == 200) {
            uint8_t end[28], *to = ta__put_u64(end, out.digest);
            to = ta__put_varint(ta__put_varint(to, out.count), 0);
            put_chunk(&out, TA__KIND_END, flags & 3, end, (size_t)(to - end));
            out.entry++;
            out.count = 0;
            out.digest = 0;
        } else {
            put_chunk(&out, kind > 200 ? kind - 200 + TA__KIND_END : kind, flags & 3, data + at, length);
        }
        at += length;
    }
    uint8_t *exact = malloc(out.length);
    MUST(exact != NULL);
    memcpy(exact, out.bytes, out.length);
    free(out.bytes);
    load(exact, out.length, -1);
    load(exact, out.length, 0);
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ta_snapshot_set_load_limit((size_t)64 << 20);
    if (size == 0)
        return 0;
    if (data[0] == 1) {
        craft(data + 1, size - 1);
        return 0;
    }
    load(data + 1, size - 1, -1);
    load(data + 1, size - 1, 0);
    return 0;
}
