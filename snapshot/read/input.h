/* input.h: the bytes of a recording, and the headers of its chunks. Reading side; needs no runtime.
 *
 * Files are read with pread into a window, never mapped: a file that shrinks while it is read is a short read, not a
 * SIGBUS. */
#ifndef TA_SNAPSHOT_READ_INPUT_H
#define TA_SNAPSHOT_READ_INPUT_H

#include "base/message.h"
#include "snapshot/format/buffer.h"
#include "snapshot/format/format.h"

struct ta__input {
    const uint8_t *memory; /* or NULL: descriptor */
    int descriptor;
    uint64_t length;
    struct ta__buffer window;
    uint64_t window_offset;
    int lacks_memory; /* what was asked for last could not be read for that alone */
};

/* 0, or -1 with ta__error_set. */
TA_NODISCARD int ta__input_open(struct ta__input *input, const char *path);
void ta__input_memory(struct ta__input *input, const void *bytes, size_t length);
void ta__input_close(struct ta__input *input);
/* `length` bytes at `offset`, valid until the next call; NULL beyond the end or when reading fails. */
const uint8_t *ta__input_at(struct ta__input *input, uint64_t offset, size_t length);
/* Why that was NULL: `text`, unless it was for lack of memory. */
const char *ta__input_why(const struct ta__input *input, const char *text);

struct ta__chunk_header {
    uint64_t offset; /* of the header in the file */
    uint64_t hash;   /* of the header: goes into the digest of the entry */
    uint32_t kind, flags, entry, stored, raw, check;
};
/* "counters", "strings", …; "unknown section" for others. */
const char *ta__section_name(uint32_t kind);

/* What is wrong, and where. */
struct ta__problem {
    uint64_t offset;
    const char *section; /* "" = the file as a whole */
    struct ta__message text;
};
/* Starts a problem's text; the caller adds to problem->text. Answers -1. */
int ta__problem_begin(struct ta__problem *problem, const char *section, uint64_t offset, const char *text);
/* "NAME: section counters at offset 96: text" into ta__error_set; answers -1. */
int ta__problem_to_error(const struct ta__problem *problem, const char *name);
void ta__problem_to_message(const struct ta__problem *problem, struct ta__message *message);

/* Checks magic, version and features. 0, or -1 with *problem. *features: the optional ones. */
TA_NODISCARD int ta__input_header(struct ta__input *input, uint32_t *features, struct ta__problem *problem);
/* The header at `offset`. 0, or -1 with *problem. The payload lies within the file. */
TA_NODISCARD int ta__input_chunk(struct ta__input *input, uint64_t offset, struct ta__chunk_header *header,
                                 struct ta__problem *problem);

#endif
