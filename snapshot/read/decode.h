/* decode.h: from the entries of a recording to a view. Reading side; needs no runtime.
 *
 * The decoder replays entries one after another; the tables grow and the counters move as they did in the program.
 * sections.h reads one section; this file strings them together and makes the view of what they left. */
#ifndef TA_SNAPSHOT_READ_DECODE_H
#define TA_SNAPSHOT_READ_DECODE_H

#include "snapshot/format/codec.h"
#include "snapshot/format/predict.h"
#include "snapshot/read/entry_list.h"
#include "snapshot/read/loaded.h"

struct ta_snapshot;

struct ta__decoder {
    struct ta__input *input;
    struct ta__budget budget;
    struct ta__coder coder;
    struct ta__buffer raw;
    uint64_t raw_total; /* decompressed so far: bounded too */
    struct ta__problem problem;

    struct ta__loaded *tables; /* grows; becomes the result */
    struct ta__predict predict;
    struct ta__buffer module_last, depths, leaves, counts, peaks, data_traces, block_sizes;
    uint32_t last_file, last_line, last_leaf_context;
    uint64_t fields[TA__FIELD_LAST + 1];

    /* Within one entry. */
    uint64_t digest;
    uint32_t chunk_count;
    uint32_t next_counter, next_peak;
    uint64_t last_address, last_owner; /* of BLOCKS */
    uint32_t seen;                     /* bit per kind: sections that may come only once */
    struct ta__buffer *touched; /* NULL, or who wants to know: receives the leaves whose counters move (uint32_t) */
};

TA_NODISCARD int ta__decoder_open(struct ta__decoder *decoder, struct ta__input *input, size_t memory_limit);
void ta__decoder_close(struct ta__decoder *decoder);
/* Replays one entry. 0, or -1 with decoder->problem. */
TA_NODISCARD int ta__decoder_entry(struct ta__decoder *decoder, const struct ta__entry_place *place);
/* The state after the last entry; the decoder is of no use afterwards. NULL with decoder->problem. */
TA_NODISCARD struct ta__loaded *ta__decoder_finish(struct ta__decoder *decoder);

/* What a leaf becomes in the view: 1, or 0 when it becomes nothing. */
int ta__decoder_trace(const struct ta__decoder *decoder, uint32_t leaf, struct ta__view_trace *trace);

/* The texts of an entry, and nothing else of it: of entries one after another, from one that begins the tables anew. 0, or
 * -1 with decoder->problem. */
TA_NODISCARD int ta__decoder_strings(struct ta__decoder *decoder, const struct ta__entry_place *place);
/* The text of that number; "" when there is none. Stays until more texts are read. */
const char *ta__decoder_string(const struct ta__decoder *decoder, uint64_t id);

/* Only what ENTRY and END say: decoder->fields, and the number of live traces. 0, or -1 with decoder->problem. */
TA_NODISCARD int ta__decoder_summary(struct ta__decoder *decoder, const struct ta__entry_place *place,
                                     uint64_t *traces);

/* A snapshot of what was loaded, which it owns from then on, also on failure: NULL with the error set. */
struct ta_snapshot *ta__snapshot_adopt(struct ta__loaded *loaded, uint32_t entry);

/* The payload of any chunk, decompressed and checked; NULL with *problem. Valid until the next call. */
const uint8_t *ta__decoder_payload(struct ta__decoder *decoder, const struct ta__chunk_header *header);

#endif
