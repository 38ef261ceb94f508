/* decode.h: from the chunks of a recording to a view. Reading side; needs no runtime.
 *
 * The decoder replays entries one after another; the tables grow and the counters move as they did in the program.
 * Every number is checked before it is used: a table row may only name rows that are already there. */
#ifndef TA_SNAPSHOT_DECODE_H
#define TA_SNAPSHOT_DECODE_H

#include "snapshot/codec.h"
#include "snapshot/input.h"
#include "snapshot/predict.h"
#include "snapshot/view.h"

/* A view with the memory behind it. */
struct ta__loaded {
    struct ta__view view;
    struct ta__buffer strings, string_bytes, modules, build_ids, frames, contexts, domains, threads, traces, options,
        metadata, symbols, symbol_ranges;
};
TA_NODISCARD struct ta__loaded *ta__loaded_create(void);
void ta__loaded_destroy(struct ta__loaded *loaded);
/* Points the view at the buffers. Strings hold offsets until then. */
void ta__loaded_finish(struct ta__loaded *loaded);

struct ta__decoder {
    struct ta__input *input;
    struct ta__budget budget;
    struct ta__coder coder;
    struct ta__buffer raw;
    uint64_t raw_total; /* decompressed so far: bounded too */
    struct ta__problem problem;

    struct ta__loaded *tables; /* grows; becomes the result */
    struct ta__predict predict;
    struct ta__buffer module_last, depths, leaves, counts, peaks, data_traces;
    uint32_t last_file, last_line, last_leaf_context;
    uint64_t fields[TA__FIELD_LAST + 1];

    /* Within one entry. */
    uint64_t digest;
    uint32_t chunk_count;
    uint32_t next_counter, next_peak;
    uint32_t seen; /* bit per kind: sections that may come only once */
};

TA_NODISCARD int ta__decoder_open(struct ta__decoder *decoder, struct ta__input *input, size_t memory_limit);
void ta__decoder_close(struct ta__decoder *decoder);
/* Replays one entry. 0, or -1 with decoder->problem. */
TA_NODISCARD int ta__decoder_entry(struct ta__decoder *decoder, const struct ta__entry_place *place);
/* The state after the last entry; the decoder is of no use afterwards. NULL with decoder->problem. */
TA_NODISCARD struct ta__loaded *ta__decoder_finish(struct ta__decoder *decoder);

/* Only what ENTRY and END say: decoder->fields, and the number of live traces. 0, or -1 with decoder->problem. */
TA_NODISCARD int ta__decoder_summary(struct ta__decoder *decoder, const struct ta__entry_place *place,
                                     uint64_t *traces);
/* The rows of an INDEX chunk, into `rows` (of struct ta__index_row). 0, or -1 with decoder->problem. */
TA_NODISCARD int ta__decoder_index(struct ta__decoder *decoder, const struct ta__chunk_header *header,
                                   struct ta__buffer *rows);

/* The payload of any chunk, decompressed and checked; NULL with *problem. Valid until the next call. */
const uint8_t *ta__decoder_payload(struct ta__decoder *decoder, const struct ta__chunk_header *header);

#endif
