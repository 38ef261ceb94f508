/* format.h: version 1 of the recording format — the only place with its numbers. docs/format.md explains them.
 *
 * A recording is a log. Nothing in it is ever rewritten; what a kill leaves behind is readable up to the last END.
 *
 *     ┌────────┬───────────────────────────────┬───────────────────────────────┬─────┬───────┬─────────┐
 *     │ header │ entry 0                       │ entry 1: what is new, changed │  …  │ INDEX │ TRAILER │
 *     └────────┴───────────────────────────────┴───────────────────────────────┴─────┴───────┴─────────┘
 *              ENTRY STRINGS MODULES … END       ENTRY COUNTERS END               optional: only when closed
 *
 * File header, 32 bytes, all numbers little-endian:
 *     0   8  magic 89 54 41 52 0D 0A 1A 0A
 *     8   2  version
 *    10   2  length of this header
 *    12   4  required features: a reader refuses bits that it does not know
 *    16   4  optional features: unknown bits are ignored
 *    20   8  reserved, zero
 *    28   4  check: low half of ta__hash_bytes(bytes 0 … 27)
 *
 * Chunk = 32 bytes of header + payload:
 *     0   4  magic "TAch"
 *     4   2  kind
 *     6   2  flags
 *     8   4  entry that it belongs to
 *    12   4  length of the payload in the file
 *    16   4  length of the payload after decompression
 *    20   4  reserved, zero
 *    24   4  check of the payload as it stands in the file: low half of ta__hash_bytes
 *    28   4  check: low half of ta__hash_bytes(bytes 0 … 27)
 * The payload is one zstd frame with content size and checksum, or plain bytes (flag PLAIN). */
#ifndef TA_SNAPSHOT_FORMAT_FORMAT_H
#define TA_SNAPSHOT_FORMAT_FORMAT_H

#include <stdint.h>

#define TA__MARK               "mark: " /* begins the reason of an entry that somebody set as a mark */
#define TA__FILE_MAGIC         "\x89TAR\r\n\x1a\n"
#define TA__FILE_MAGIC_LENGTH  8
#define TA__FILE_VERSION       1
#define TA__FILE_HEADER_LENGTH 32

/* No feature is required yet; bit 0 of the optional ones says that some entry carries symbols. */
#define TA__REQUIRED_FEATURES_KNOWN 0u
#define TA__FEATURE_SYMBOLS         1u

#define TA__CHUNK_MAGIC         0x68634154u /* "TAch" */
#define TA__CHUNK_HEADER_LENGTH 32
#define TA__CHUNK_RAW_MAX       (16u << 20)
#define TA__CHUNK_STORED_MAX    (TA__CHUNK_RAW_MAX + (64u << 10))
#define TA__STRING_MAX          (8u << 20)
#define TA__ROWS_PER_CHUNK      65536u

enum ta__chunk_flag {
    TA__CHUNK_REQUIRED = 1, /* a reader that does not know the kind refuses the file */
    TA__CHUNK_RESET = 2,    /* on ENTRY: all tables begin anew, earlier entries are not needed */
    TA__CHUNK_PLAIN = 4,    /* payload not compressed */
};
#define TA__CHUNK_FLAGS_KNOWN 7u

/* In the order in which they appear within an entry. */
enum ta__chunk_kind {
    TA__KIND_ENTRY = 1,    /* fields, see ta__field */
    TA__KIND_STRINGS = 2,  /* first id, count, lengths, bytes */
    TA__KIND_MODULES = 3,  /* rows by index, new or changed */
    TA__KIND_FRAMES = 4,   /* first id, count, tag, address or file, line */
    TA__KIND_CONTEXTS = 5, /* first id, count, parents, frames by rank */
    TA__KIND_DOMAINS = 6,  /* rows by index, new or changed */
    TA__KIND_THREADS = 7,  /* rows by index, new or changed */
    TA__KIND_LEAVES = 8,   /* first id, count, context, domain, thread, depth, flags */
    TA__KIND_COUNTERS = 9, /* changed leaves: differences */
    TA__KIND_PEAK = 10,    /* leaves at the recorded peak: bytes */
    TA__KIND_TRACES = 11,  /* traces from data, or of a filtered snapshot */
    TA__KIND_OPTIONS = 12, /* key and value strings; replaces the former ones */
    TA__KIND_METADATA = 13,
    TA__KIND_SYMBOLS = 14,       /* what frames became in the source */
    TA__KIND_SYMBOL_RANGES = 15, /* which symbols belong to which frame */
    TA__KIND_BLOCKS = 16,        /* one row per live block */
    TA__KIND_END = 0x100,        /* the entry is whole */
    TA__KIND_INDEX = 0x101,      /* where the entries are */
    TA__KIND_TRAILER = 0x102,    /* where the index is; the last 48 bytes of a closed file */
};

/* TRAILER payload, plain: u64 offset of INDEX, u64 length of the file. */
#define TA__TRAILER_PAYLOAD 16
#define TA__TRAILER_LENGTH  (TA__CHUNK_HEADER_LENGTH + TA__TRAILER_PAYLOAD)

/* ENTRY payload: pairs of varints (field, value) up to its end; unknown fields are ignored, none may come twice. */
enum ta__field {
    TA__FIELD_TIME_NS = 1,
    TA__FIELD_START_TIME_NS = 2,
    TA__FIELD_EPOCH = 3,
    TA__FIELD_COUNTERS_RESTART = 4, /* 1: every counter and peak value is zero before this entry's chunks */
    TA__FIELD_TRACEBACK_LIMIT = 5,
    TA__FIELD_PID = 6,
    TA__FIELD_PROGRAM = 7, /* string */
    TA__FIELD_HOST = 8,    /* string */
    TA__FIELD_REASON = 9,  /* string */
    TA__FIELD_CURRENT_BYTES = 10,
    TA__FIELD_PEAK_BYTES = 11,
    TA__FIELD_SAMPLE_BYTES = 12,
    TA__FIELD_LOST = 13,
    TA__FIELD_OVERFLOWED = 14,
    TA__FIELD_CUT_SHORT = 15,
    TA__FIELD_FOREIGN_FREES = 16,
    TA__FIELD_INVALID_FREES = 17,
    TA__FIELD_SNAPSHOT_ERRORS = 18,
    TA__FIELD_PEAK_IS_NOW = 19, /* 1: no PEAK, its values are the live bytes of this entry */
    TA__FIELD_LAST = 19,
};

/* The fields that a view keeps, each with the member of struct ta__view that has it. */
#define TA__VIEW_FIELDS(F)                                                                                             \
    F(TIME_NS, time_ns)                                                                                                \
    F(START_TIME_NS, start_time_ns)                                                                                    \
    F(EPOCH, epoch)                                                                                                    \
    F(TRACEBACK_LIMIT, traceback_limit)                                                                                \
    F(PID, pid)                                                                                                        \
    F(PROGRAM, program)                                                                                                \
    F(HOST, host)                                                                                                      \
    F(REASON, reason)                                                                                                  \
    F(CURRENT_BYTES, current_bytes)                                                                                    \
    F(PEAK_BYTES, peak_bytes)                                                                                          \
    F(SAMPLE_BYTES, sample_bytes)                                                                                      \
    F(LOST, lost)                                                                                                      \
    F(OVERFLOWED, overflowed)                                                                                          \
    F(CUT_SHORT, cut_short)                                                                                            \
    F(FOREIGN_FREES, foreign_frees)                                                                                    \
    F(INVALID_FREES, invalid_frees)                                                                                    \
    F(SNAPSHOT_ERRORS, snapshot_errors)

/* Tags of rows in FRAMES. */
enum { TA__TAG_NO_MODULE = 0, TA__TAG_SOURCE = 1, TA__TAG_OVERFLOW = 2, TA__TAG_FIRST_MODULE = 3 };

/* Flags of rows in LEAVES. */
enum { TA__FILE_LEAF_CUT_SHORT = 1, TA__FILE_LEAF_OVERFLOW = 2, TA__FILE_LEAF_UNTRACED = 4 };

/* Codes of frames in CONTEXTS: a rank below TA__PREDICT_WAYS among the frames that followed the parent's frame most
 * recently, or one of these. */
#define TA__PREDICT_WAYS 16u
enum {
    TA__CODE_OTHER = TA__PREDICT_WAYS, /* the frame's id is in the next column */
    TA__CODE_NEXT,                     /* the lowest frame id that no context used yet */
};

#endif
