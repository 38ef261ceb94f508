/* tracealloc/snapshot.h: snapshots of what is allocated, and recordings (files) that hold them.
 *
 * Calls marked [runtime] are in libtracealloc, those marked [analysis] in libtracealloc-analysis, the others in both. A
 * snapshot taken by the runtime may be handed to any call of the analysis library in the same process.
 *
 * Failing calls answer NULL or -1 and leave a text in ta_error_text. A snapshot may be read by several threads at once;
 * adding metadata and freeing need it alone. */
#ifndef TRACEALLOC_SNAPSHOT_H
#define TRACEALLOC_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

#include <tracealloc.h>

#if defined(__cplusplus)
extern "C" {
#endif

struct ta_snapshot;

/* ---- taking and writing ------------------------------------------------------------------------------------------ */

/* [runtime] All traces of all domains, as they are now; later events do not change it. Other threads go on allocating
 * meanwhile. NULL when the program is not being traced, or without memory. */
TA_API struct ta_snapshot *ta_take_snapshot(void);

/* Writes the snapshot as a recording of one entry. A file of that name is replaced only when the new one is whole: it
 * is written under a temporary name beside it, synced and renamed. Devices and pipes are written directly. */
TA_API int ta_snapshot_dump(const struct ta_snapshot *snapshot, const char *path);

/* NULL is allowed. */
TA_API void ta_snapshot_free(struct ta_snapshot *snapshot);

/* ---- a series of snapshots in one file --------------------------------------------------------------------------- */

struct ta_record;
enum {
    TA_RECORD_SYNC = 1, /* every entry is on the disk when append returns */
};

/* [runtime] Begins a new file (replacing one of that name), empty as yet. */
TA_API struct ta_record *ta_record_open(const char *path, unsigned flags);
/* [runtime] Takes a snapshot and appends what is new or changed since the entry before. After a failure (a full disk,
 * say) the file holds the former entries, and a later append may succeed. Only the process that opened it may append;
 * `reason`, which may be NULL, is kept with the entry. Any thread. */
TA_API int ta_record_append(struct ta_record *record, const char *reason);
/* [runtime] From here on the file stays about as long as that: when it is longer, a shorter one takes its place, in which
 * the entries of the last minutes are all there and older ones fewer and fewer, but the first. So the numbers of entries
 * change. A file that holds five entries that repeat everything may always be that long. 0 = no limit. Any thread. */
TA_API void ta_record_set_limit(struct ta_record *record, uint64_t bytes);
/* [runtime] Writes the index and closes. A file without this is readable all the same. NULL is allowed. */
TA_API int ta_record_close(struct ta_record *record);

/* ---- one snapshot of several -------------------------------------------------------------------------------------- */

/* [analysis] Of several processes, say: the same modules, frames and stacks are one, each trace keeps whose it is (by "process"
 * in statistics), totals are sums. A snapshot may be freed once it is added. All of them carry symbols or none does. */
struct ta_merge;
TA_API struct ta_merge *ta_merge_begin(void);
TA_API int ta_merge_add(struct ta_merge *merge, struct ta_snapshot *snapshot);
/* Ends it, whatever it answers. */
TA_API struct ta_snapshot *ta_merge_end(struct ta_merge *merge);
TA_API void ta_merge_abandon(struct ta_merge *merge); /* NULL is allowed */

/* ---- metadata: texts of yours that travel with a snapshot -------------------------------------------------------- */

/* Sets, replaces, or (value NULL) removes. Written by the next ta_snapshot_dump. */
TA_API int ta_snapshot_set_metadata(struct ta_snapshot *snapshot, const char *key, const char *value);
/* NULL when there is none of that name. Valid until the metadata change. */
TA_API const char *ta_snapshot_metadata(const struct ta_snapshot *snapshot, const char *key);
TA_API size_t ta_snapshot_metadata_count(const struct ta_snapshot *snapshot);
/* In the order in which they were added. 0, or -1 beyond the last. Any of the four may be NULL. */
TA_API int ta_snapshot_metadata_at(const struct ta_snapshot *snapshot, size_t index, const char **key,
                                   size_t *key_length, const char **value, size_t *value_length);

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* [analysis] Loads "path", or one entry of it: "path@2" the third, "path@-1" the last, which is also what "path" means;
 * "path@before the load" the last one with that mark.
 * A file that really has such a name comes first. Nothing in the file is trusted, and nothing of it is executed. A
 * series that was cut off, as by a kill, loads up to its last whole entry; ta_snapshot_warning says what was missing.
 */
TA_API struct ta_snapshot *ta_snapshot_load(const char *path);
/* [analysis] The same for a recording in memory; entry 0 … or -1 …; the bytes are not needed afterwards. */
TA_API struct ta_snapshot *ta_snapshot_load_memory(const void *bytes, size_t length, long entry);
/* [analysis] "" when the file was sound. */
TA_API const char *ta_snapshot_warning(const struct ta_snapshot *snapshot);
/* [analysis] The most memory that one load may take, 1 GiB unless set: guards against files made to exhaust it. */
TA_API void ta_snapshot_set_load_limit(size_t bytes);

/* [analysis] A frame as recorded, before symbolising. */
struct ta_raw_frame {
    uint64_t address; /* return address in the recorded process; 0 in snapshots built from data */
    const char *file; /* snapshots built from data: the file; otherwise the module's path, or NULL in no module */
    size_t file_length;
    uint32_t line;   /* 0 unless built from data */
    uint32_t module; /* index + 1; 0 = none */
};

/* `count` live blocks of one domain and stack. Entries built from data keep their own size each; in a snapshot of a
 * program blocks of different sizes that share a stack are one entry with their sum. */
struct ta_trace {
    uint32_t domain;
    uint32_t flags;
    uint64_t size; /* bytes of all `count` blocks */
    uint64_t count;
    int64_t total_nframe;                       /* depth of the whole stack, -1 = unknown */
    size_t nframe;                              /* frames stored */
    uint64_t allocated_bytes, allocated_blocks; /* since tracing began, freed ones included; 0 = not recorded */
    uint64_t peak_bytes;                        /* live bytes when the recorded peak was reached; 0 = not recorded */
    uint32_t thread;                            /* the thread's number (tid); 0 = threads are not kept apart */
};
enum {
    TA_TRACE_CUT_SHORT = 1, /* the walk ended before the outermost frame */
    TA_TRACE_OVERFLOW = 2,  /* stands for all stacks beyond the cap on contexts */
    TA_TRACE_EACH = 4,      /* every one of the `count` blocks has size / count bytes */
};

/* [analysis] Number of traces; -1 when the snapshot cannot be decoded. */
TA_API long ta_snapshot_trace_count(const struct ta_snapshot *snapshot);
/* [analysis] Traces of which only the history is left: no live block, but allocated since tracing began. Their indices
 * follow those of the others. */
TA_API long ta_snapshot_gone_trace_count(const struct ta_snapshot *snapshot);
/* [analysis] 0, or -1 beyond the last. */
TA_API int ta_snapshot_trace(const struct ta_snapshot *snapshot, size_t index, struct ta_trace *trace);
/* [analysis] Single blocks, where the snapshot has them (the option blocks=yes; tracealloc take): ascending by address,
 * those without a trace too, and what ta_track recorded. Two may have one address: a block, and what ta_track recorded
 * of that address in another domain, which the domains of their traces tell apart. */
struct ta_block {
    uint64_t address, size;
    long trace; /* index; -1 = without one: from before tracing began, or not sampled */
};
/* [analysis] How many; -1 when the snapshot has none of them. */
TA_API long ta_snapshot_block_count(const struct ta_snapshot *snapshot);
/* [analysis] 0, or -1 beyond the last. */
TA_API int ta_snapshot_block(const struct ta_snapshot *snapshot, size_t index, struct ta_block *block);
/* [analysis] Stores up to `max` frames, most recent first; answers how many the trace has. */
TA_API size_t ta_snapshot_trace_frames(const struct ta_snapshot *snapshot, size_t index, struct ta_raw_frame *frames,
                                       size_t max);
/* [analysis] The limit in force when the snapshot was taken; -1 when it cannot be decoded. */
TA_API int ta_snapshot_traceback_limit(const struct ta_snapshot *snapshot);

/* [analysis] What else the snapshot says. Texts belong to the snapshot and are "" when unknown. */
struct ta_snapshot_info {
    const char *program, *host, *reason;
    uint32_t pid;
    uint64_t time_ns, start_time_ns; /* since 1970 */
    uint64_t current_bytes, peak_bytes;
    uint64_t sample_bytes; /* mean bytes between samples; 0 = every allocation was traced */
    uint64_t lost, overflowed, cut_short, foreign_frees, invalid_frees, snapshot_errors;
    uint64_t traces, contexts, frames, modules, domains, threads;
    uint64_t epoch; /* another one when all traces were forgotten since: by stop, start or clear */
};
#pragma GCC diagnostic push
#if defined(__cplusplus)
#pragma GCC diagnostic ignored "-Wshadow" /* a function and a struct of one name are two things in C */
#endif
TA_API int ta_snapshot_info(const struct ta_snapshot *snapshot, struct ta_snapshot_info *info, size_t size);
#pragma GCC diagnostic pop

/* [analysis] A loaded object of the program. */
struct ta_module_info {
    const char *path;
    const uint8_t *build_id;
    size_t build_id_length;
    uint64_t load_base, start, end; /* what the loader added to the file's addresses; where it was in the process */
};
/* [analysis] 0, or -1 beyond the last (struct ta_snapshot_info says how many there are). Pass sizeof *info, so that old
 * callers meet newer libraries. Texts belong to the snapshot. */
TA_API int ta_snapshot_module(const struct ta_snapshot *snapshot, size_t index, struct ta_module_info *info,
                              size_t size);

/* [analysis] A domain of the program, as it was at the snapshot. */
struct ta_domain_info {
    uint32_t number;
    const char *name; /* "" when it has none */
    uint64_t live_bytes, live_blocks, peak_bytes, allocated_bytes, allocated_blocks, limit_bytes;
};
TA_API int ta_snapshot_domain(const struct ta_snapshot *snapshot, size_t index, struct ta_domain_info *info,
                              size_t size);

/* [analysis] How the program was traced: pairs of texts. 0, or -1 beyond the last. */
TA_API int ta_snapshot_option(const struct ta_snapshot *snapshot, size_t index, const char **key, const char **value);

/* ---- building from data ------------------------------------------------------------------------------------------ */

#define TA_NUL_TERMINATED ((size_t)-1)

struct ta_frame_data {
    const char *file;   /* any bytes */
    size_t file_length; /* or TA_NUL_TERMINATED */
    uint32_t line;
};
struct ta_trace_data {
    uint32_t domain;
    uint64_t size;
    uint64_t count;                     /* 0 means 1 */
    int64_t total_nframe;               /* -1 = unknown */
    const struct ta_frame_data *frames; /* most recent first */
    size_t nframe;
};
/* [analysis] A snapshot with these traces in this order, none of them merged; tracing is not needed. */
TA_API struct ta_snapshot *ta_snapshot_from_traces(const struct ta_trace_data *traces, size_t count,
                                                   uint32_t traceback_limit);

/* ---- looking into a recording without loading it ----------------------------------------------------------------- */

struct ta_recording;
struct ta_entry_info {
    uint64_t time_ns, current_bytes, peak_bytes, traces;
    uint64_t offset, length; /* where it is in the file */
};
/* [analysis] NULL when the file is no recording. */
TA_API struct ta_recording *ta_recording_open(const char *path);
TA_API size_t ta_recording_entry_count(const struct ta_recording *recording);
TA_API int ta_recording_entry(struct ta_recording *recording, size_t index, struct ta_entry_info *info);
/* Why the entry was taken: "pace", "exit", "mark: …"; "" when that cannot be read. Stays valid until the next call. */
TA_API const char *ta_recording_reason(struct ta_recording *recording, size_t index);
/* What could not be read; "" when the file is sound. */
TA_API const char *ta_recording_warning(const struct ta_recording *recording);
TA_API void ta_recording_close(struct ta_recording *recording);

enum { TA_CHECK_NOTE = 0, TA_CHECK_WARNING = 1, TA_CHECK_ERROR = 2 };
/* [analysis] Reads everything, trusts nothing, and tells `report` what is wrong and where: severity, offset in the
 * file, name of the section ("" for the file as a whole), one sentence. Answers the number of warnings and errors, or
 * -1 when the file cannot be read at all. `report` may be NULL. */
TA_API long ta_recording_check(const char *path,
                               void (*report)(void *user, int severity, uint64_t offset, const char *section,
                                              const char *text),
                               void *user);

#if defined(__cplusplus)
}
#endif

#endif
