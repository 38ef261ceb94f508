/* write.h: turns a source into entries of a recording. Runs inside the traced process: no malloc, no lock, errno kept.
 *
 * A writer remembers what its recording already says, so that a later entry holds only what is new or changed. The
 * caller serialises the calls on one writer. */
#ifndef TA_SNAPSHOT_WRITE_WRITE_H
#define TA_SNAPSHOT_WRITE_WRITE_H

#include "snapshot/format/chunks.h"
#include "snapshot/format/handle.h"
#include "trace/source.h"
#include "snapshot/format/tables.h"

struct ta__fact_pair {
    const char *key, *value;
};

/* What an entry says besides the tables. Texts may be NULL. */
struct ta__facts {
    uint64_t time_ns;
    uint32_t pid;
    const char *program, *host, *reason;
    const struct ta__fact_pair *pairs; /* its metadata */
    uint32_t pair_count;
};

struct ta__writer {
    struct ta__chunks chunks;
    struct ta__tables tables;
    int stays;        /* the next entry is one that thinning leaves */
    int reset;        /* the next entry repeats everything: nothing before it is relied upon */
    int is_under_way; /* an entry has begun and not ended */

    struct ta__buffer strings, string_bytes, string_slots; /* rows of ta__view_string; text = offset while building */
    struct ta__buffer frames, frame_slots;                 /* rows of ta__view_frame; open addressing, id + 1 */
    struct ta__buffer contexts, depths;                    /* rows of ta__view_context; uint32_t */
    struct ta__buffer counts;                              /* per leaf: struct ta__source_counts as last written */
    struct ta__buffer module_hashes, domain_hashes, thread_hashes; /* uint64_t per row as last written */
    struct ta__buffer changed_rows, changed_indices;               /* scratch */
    struct ta__buffer fold;                                        /* scratch: struct ta__source_counts */
    struct ta__buffer blocks;                                      /* scratch: struct ta__view_block */
    struct ta__buffer build_ids;                                   /* scratch: their bytes */
    struct ta__buffer path;                                        /* scratch: source contexts, inside out */
    struct ta__buffer context_map;  /* by number in the source: that in the recording; 0 = it has none */
    struct ta__buffer leaf_map;     /* the same for leaves, plus one */
    struct ta__buffer leaf_sources; /* by number of a leaf in the recording: that in the source */
    uint32_t strings_written, frames_written, contexts_written, leaves_written;
    uint32_t last_leaf_context, forgotten_context;
    uint64_t epoch, generation, peak_hash, options_hash;
    struct ta__index_row row; /* of the entry written last */
};

/* 0, or -1 with ta__error_set. The sink is taken over as by ta__chunks_open. */
TA_NODISCARD int ta__writer_open(struct ta__writer *writer, const struct ta__sink *sink);
/* Appends one entry. On failure the entry is taken back (the file is cut to its former length) and the next one will
 * repeat everything. */
TA_NODISCARD int ta__writer_entry(struct ta__writer *writer, const struct ta__source *source,
                                  const struct ta__facts *facts);
/* The same for an entry that was given up in its middle, for whatever reason. */
void ta__writer_take_back(struct ta__writer *writer);
/* The one entry of a snapshot kept in memory, without its END, so that metadata can still be added (handle.h). */
TA_NODISCARD int ta__writer_image(struct ta__writer *writer, const struct ta__source *source,
                                  const struct ta__facts *facts, struct ta__image *image);
TA_NODISCARD int ta__writer_seal(struct ta__writer *writer);
/* Frees the tables; a memory sink's bytes belong to the caller. */
void ta__writer_close(struct ta__writer *writer);

#endif
