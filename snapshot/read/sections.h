/* sections.h: one section of a recording into the decoder's tables. The mirror of tables.c, write.c and encode.c.
 *
 * Every number is checked before it is used: a row may only name rows that are already there. */
#ifndef TA_SNAPSHOT_READ_SECTIONS_H
#define TA_SNAPSHOT_READ_SECTIONS_H

#include "base/bytes.h"
#include "snapshot/read/decode.h"

/* A leaf as it stands in the file. */
struct ta__decoded_leaf {
    uint32_t context, domain, thread;
    int32_t total_nframe;
    uint32_t flags;
};

/* Its counters: live = allocated - freed. */
struct ta__decoded_counts {
    uint64_t allocated_blocks, allocated_bytes, freed_blocks, freed_bytes;
};

/* The section being decoded. */
struct ta__section {
    const struct ta__chunk_header *header;
    struct ta__cursor at;
};

/* Reads the section's rows; what an unknown one holds is passed over. All: 0, or -1 with decoder->problem. */
TA_NODISCARD int ta__section_decode(struct ta__decoder *decoder, const struct ta__chunk_header *header);
/* Of an ENTRY: decoder->fields. */
TA_NODISCARD int ta__section_fields(struct ta__decoder *decoder, const struct ta__chunk_header *header);
/* Of an END: the number of live traces that it states, unchecked. */
TA_NODISCARD int ta__section_end_traces(struct ta__decoder *decoder, const struct ta__chunk_header *header,
                                        uint64_t *traces);
/* Of an INDEX: its rows, struct ta__index_row, are added to `rows`. */
TA_NODISCARD int ta__section_index(struct ta__decoder *decoder, const struct ta__chunk_header *header,
                                   struct ta__buffer *rows);

/* Begins the text of decoder->problem, which names the section and its place. Answers -1. */
TA_COLD int ta__section_bad(struct ta__decoder *decoder, const struct ta__chunk_header *header, const char *text);
TA_COLD int ta__section_no_memory(struct ta__decoder *decoder, const struct ta__chunk_header *header);

#endif
