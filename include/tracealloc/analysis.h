/* analysis.h: what people read of a snapshot — statistics, differences, filters, tracebacks, texts, interchange.
 *
 * Needs no runtime: link libtracealloc-analysis and load a recording, or analyse a snapshot of the running process.
 * Behaviour, orders and texts are those of Python's tracemalloc; docs/api-analysis.md lists what goes beyond.
 *
 * Failure is NULL or -1; ta_error_text says why. Results borrow from the snapshots they were made of: free a result
 * before its snapshot. A snapshot that is NULL, as after a failed load, is refused like any other bad argument. Several
 * threads may ask about one snapshot; a result belongs to one thread at a time.
 * In a program that runs under tracealloc, what analysis itself allocates is in the domain TA_ANALYSIS_DOMAIN.
 * File names are bytes: usually UTF-8, always NUL-terminated, possibly with anything else in them. */
#ifndef TRACEALLOC_ANALYSIS_H
#define TRACEALLOC_ANALYSIS_H

#include <stddef.h>
#include <stdint.h>

#include <tracealloc/snapshot.h>

#if defined(__cplusplus)
extern "C" {
#endif

#define TA_ANALYSIS_DOMAIN 0xFFFFFF00u

/* ---- frames and tracebacks -------------------------------------------------------------------------------------- */

/* One line of a stack. Equality and order look at file name and line only. */
struct ta_frame {
    const char *filename;
    size_t filename_length;
    uint32_t lineno;
    uint32_t flags;
    const char *function; /* "" when unknown */
    const char *raw_name; /* as the symbol table has it, "" when unknown */
    const char *module;   /* path of the loaded object, "" when unknown */
    uint64_t offset;      /* from the start of the function */
    uint64_t address;     /* as it was in the process, 0 when unknown */
};
enum { TA_FRAME_INLINED = 1, TA_FRAME_NO_LINES = 2 };

/* By file name (code points), then line number: negative, zero, positive. */
TA_API int ta_frame_compare(const struct ta_frame *a, const struct ta_frame *b);
TA_API int ta_frame_equal(const struct ta_frame *a, const struct ta_frame *b);
TA_API uint64_t ta_frame_hash(const struct ta_frame *frame);
/* "FILE:LINE". Texts are written like snprintf does: at most `size` bytes with the NUL; the whole length is returned.
 */
TA_API size_t ta_frame_text(const struct ta_frame *frame, char *text, size_t size);

/* A sequence of frames, OLDEST FIRST: frame 0 is the oldest one stored, frame -1 asked for the memory.
 * A small value to be copied freely; it borrows from the snapshot (or the frames) that it came from. */
struct ta_traceback {
    int64_t total_nframe; /* depth of the whole stack; -1 = not known, as in every statistic */
    const void *owner;
    uint32_t kind;
    uint32_t index;
};

/* A traceback of the caller's own frames, oldest first; `frames` must outlive it. */
TA_API struct ta_traceback ta_traceback_of(const struct ta_frame *frames, size_t count, int64_t total_nframe);
TA_API size_t ta_traceback_length(struct ta_traceback traceback);
/* Frame number `index`, oldest first; negative counts from the most recent (-1). 0, or -1 when there is none. */
TA_API int ta_traceback_frame(struct ta_traceback traceback, int64_t index, struct ta_frame *frame);
/* Copies at most `max` frames, oldest first (cut at the most recent end); returns the length of the traceback. */
TA_API size_t ta_traceback_frames(struct ta_traceback traceback, struct ta_frame *frames, size_t max);
/* Frame by frame from the oldest; a prefix is smaller. total_nframe takes no part in equality, order and hash. */
TA_API int ta_traceback_compare(struct ta_traceback a, struct ta_traceback b);
TA_API int ta_traceback_equal(struct ta_traceback a, struct ta_traceback b);
TA_API uint64_t ta_traceback_hash(struct ta_traceback traceback);
/* The text of the oldest frame. */
TA_API size_t ta_traceback_text(struct ta_traceback traceback, char *text, size_t size);

/* For "all frames" in ta_traceback_format. */
#define TA_FORMAT_ALL INT64_MAX
/* The lines `  File "NAME", line N`, each followed by its source line indented by four where it can be read. limit > 0:
 * the `limit` most recent frames; 0: none; < 0: all but the |limit| most recent ones. Oldest first unless
 * `most_recent_first`. A list of strings that ends with NULL, in one piece for free(); NULL when out of memory. */
TA_API char **ta_traceback_format(struct ta_traceback traceback, int64_t limit, int most_recent_first);

/* "12.3 MiB": 10240 and 100 are the borders, from B to TiB. With `sign` always a sign. */
TA_API size_t ta_size_text(double size, int sign, char *text, size_t capacity);

/* ---- traces ------------------------------------------------------------------------------------------------------ */

/* The symbolised stack of a trace (ta_snapshot_trace has its numbers), with total_nframe. Empty beyond the last. */
TA_API struct ta_traceback ta_snapshot_trace_traceback(const struct ta_snapshot *snapshot, size_t index);
/* Domain, size, count, frames and total_nframe. */
TA_API int ta_snapshot_trace_equal(const struct ta_snapshot *a, size_t a_index, const struct ta_snapshot *b,
                                   size_t b_index);
/* "OLDEST:LINE: SIZE" */
TA_API size_t ta_snapshot_trace_text(const struct ta_snapshot *snapshot, size_t index, char *text, size_t size);

/* ---- statistics -------------------------------------------------------------------------------------------------- */

/* Values saturate at their largest number; texts and JSON are exact beyond. */
struct ta_statistic {
    struct ta_traceback traceback; /* keys function, module, domain, thread: one frame whose file name is the key */
    uint64_t size;                 /* bytes in live blocks */
    uint64_t count;                /* live blocks */
    uint64_t allocated_size;       /* bytes of all blocks since tracing began (churn); 0 when not known */
    uint64_t allocated_count;
    uint64_t peak_size;     /* bytes at the recorded peak; 0 when not known */
    double temporary_share; /* of the blocks allocated since tracing began, how many are gone: 0 … 1 */
};

struct ta_statistics;

/* Groups the traces: key "traceback", "lineno", "filename", or "function", "module", "domain", "thread".
 * cumulative (lineno, filename, function, module): every frame of a trace adds the trace to its group, a frame that
 * occurs twice adds it twice. Order: size, count, traceback, all descending. */
TA_API struct ta_statistics *ta_snapshot_statistics(const struct ta_snapshot *snapshot, const char *key_type,
                                                    int cumulative);
/* The same with the groups that have no live block any more but allocated since tracing began: for orders by churn,
 * calls, temporaries and peak. */
TA_API struct ta_statistics *ta_snapshot_churn(const struct ta_snapshot *snapshot, const char *key_type,
                                               int cumulative);
/* 0 for NULL, so that a loop over the rows of what was refused ends at once. */
TA_API size_t ta_statistics_count(const struct ta_statistics *statistics);
TA_API int ta_statistics_get(const struct ta_statistics *statistics, size_t index, struct ta_statistic *statistic);
/* "FILE:LINE: size=SIZE, count=N, average=SIZE"; no average when the count is 0. */
TA_API size_t ta_statistics_text(const struct ta_statistics *statistics, size_t index, char *text, size_t size);
/* The sum over all traces: {size, count, …} with an empty traceback. */
TA_API void ta_statistics_total(const struct ta_statistics *statistics, struct ta_statistic *total);

/* Another order for the same rows; equal values keep their place. */
enum ta_order {
    TA_ORDER_DEFAULT = 0,     /* as computed */
    TA_ORDER_COUNT,           /* live blocks */
    TA_ORDER_ALLOCATED_SIZE,  /* churn in bytes */
    TA_ORDER_ALLOCATED_COUNT, /* churn in calls */
    TA_ORDER_TEMPORARY,       /* blocks that came and went */
    TA_ORDER_PEAK,
    TA_ORDER_GROWTH,  /* differences only: signed size_diff, largest growth first */
    TA_ORDER_RELEASED /* differences only: signed size_diff, largest release first */
};
TA_API int ta_statistics_sort(struct ta_statistics *statistics, enum ta_order order);
TA_API void ta_statistics_free(struct ta_statistics *statistics);

/* ---- differences ------------------------------------------------------------------------------------------------- */

struct ta_statistic_diff {
    struct ta_traceback traceback;
    uint64_t size, count;
    int64_t size_diff, count_diff;
    uint64_t allocated_size, allocated_count;
    int64_t allocated_size_diff, allocated_count_diff;
};

struct ta_differences;

/* new - old for every group of either, unchanged ones included.
 * Order: |size_diff|, size, |count_diff|, count, traceback, all descending. */
TA_API struct ta_differences *ta_snapshot_compare_to(const struct ta_snapshot *snapshot,
                                                     const struct ta_snapshot *old_snapshot, const char *key_type,
                                                     int cumulative);
/* 0 for NULL. */
TA_API size_t ta_differences_count(const struct ta_differences *differences);
TA_API int ta_differences_get(const struct ta_differences *differences, size_t index, struct ta_statistic_diff *diff);
/* "FILE:LINE: size=SIZE (±SIZE), count=N (±N), average=SIZE" */
TA_API size_t ta_differences_text(const struct ta_differences *differences, size_t index, char *text, size_t size);
TA_API int ta_differences_sort(struct ta_differences *differences, enum ta_order order);
TA_API void ta_differences_free(struct ta_differences *differences);

/* ---- filters ----------------------------------------------------------------------------------------------------- */

enum ta_filter_type {
    TA_FILTER_FILENAME = 0, /* tracemalloc's Filter */
    TA_FILTER_DOMAIN,       /* tracemalloc's DomainFilter: `domain` */
    TA_FILTER_FUNCTION,     /* `pattern` against the function's name */
    TA_FILTER_MODULE,       /* `pattern` against the path of the loaded object */
    TA_FILTER_SIZE,         /* min_size ≤ bytes of one block ≤ max_size (the average where only a sum is known) */
};

/* A plain value. A trace is kept when no exclusive filter hits it and, if there are inclusive ones, one of them does.
 */
struct ta_filter {
    enum ta_filter_type type;
    int inclusive;
    const char *pattern;   /* shell style: * ? [set] [!set]; the whole name must match; see docs/filters.md */
    size_t pattern_length; /* 0 = strlen(pattern) */
    int has_lineno;        /* FILENAME: the same frame must have this line; 0 is a line */
    int64_t lineno;
    int all_frames; /* FILENAME, FUNCTION, MODULE: any stored frame, not only the most recent one */
    int has_domain; /* FILENAME, FUNCTION, MODULE, SIZE: the trace must also be of this domain; 0 is a domain */
    int64_t domain;
    uint64_t min_size, max_size;
};

/* A new snapshot with the kept traces in their order and the same limit; the original stays as it is. */
TA_API struct ta_snapshot *ta_snapshot_filter_traces(const struct ta_snapshot *snapshot,
                                                     const struct ta_filter *filters, size_t count);
/* The same with a condition in words, such as "file:*.c and not function:*_init": see docs/filters.md.
 * A bad expression is refused; ta_error_text then names the column. */
TA_API struct ta_snapshot *ta_snapshot_filter_expression(const struct ta_snapshot *snapshot, const char *expression);
/* Whether a name matches a pattern as filters see it (a final ".pyc" counts as ".py" in both). */
TA_API int ta_pattern_matches(const char *pattern, size_t pattern_length, const char *name, size_t name_length);

/* ---- symbols ----------------------------------------------------------------------------------------------------- */

/* Addresses become lines when something is asked for the first time. This is told now and then how far it is, on the
 * thread that asked, with done == total at the end. For the whole process; set it before asking. NULL = nobody. */
typedef void (*ta_progress_function)(void *user, size_t done, size_t total);
TA_API void ta_symbols_set_progress(ta_progress_function progress, void *user);

/* A new snapshot that carries its symbols: dumped, it can be read where the binaries are not. Symbols that were stored
 * before are kept. */
TA_API struct ta_snapshot *ta_snapshot_symbolize(const struct ta_snapshot *snapshot);

/* What was found for a loaded object of the traced program. */
enum ta_module_state {
    TA_MODULE_UNUSED,     /* no frame is in it */
    TA_MODULE_LINES,      /* lines from its debug information */
    TA_MODULE_NAMES_ONLY, /* no debug information: function names at best */
    TA_MODULE_ABSENT,     /* the file is gone or unreadable */
    TA_MODULE_DIFFERS,    /* the file on disk is another build: not used */
    TA_MODULE_UNREADABLE, /* no ELF file */
    TA_MODULE_STORED      /* the snapshot came with its symbols */
};
struct ta_module_symbols {
    const char *path;
    enum ta_module_state state;
    const char *reason; /* why there are no lines, in words; "" when there are */
};
/* 0, or -1 beyond the last module. */
TA_API int ta_snapshot_module_symbols(const struct ta_snapshot *snapshot, size_t index,
                                      struct ta_module_symbols *module);

/* ---- interchange ------------------------------------------------------------------------------------------------- */

/* Where text goes: called with consecutive pieces; anything but 0 stops the writing. */
typedef int (*ta_write_function)(void *user, const char *text, size_t length);
/* A ta_write_function for a file descriptor: user = pointer to int. */
TA_API int ta_write_to_descriptor(void *user, const char *text, size_t length);

/* docs/api-analysis.md describes the formats. Names that are not UTF-8 travel as lone surrogates U+DC80 + byte - 0x80.
 */
TA_API struct ta_snapshot *ta_snapshot_import_json(const char *text, size_t length);
TA_API int ta_snapshot_export_json(const struct ta_snapshot *snapshot, ta_write_function write, void *user);
/* A file for Python's tracemalloc.Snapshot.load. */
TA_API int ta_snapshot_export_python(const struct ta_snapshot *snapshot, ta_write_function write, void *user);
/* `limit` rows at most; SIZE_MAX = all. */
TA_API int ta_statistics_export_json(const struct ta_statistics *statistics, size_t limit, ta_write_function write,
                                     void *user);
TA_API int ta_differences_export_json(const struct ta_differences *differences, size_t limit, ta_write_function write,
                                      void *user);
/* Filters from a JSON list of {"type": "filter" | "domain", …}. *filters is one piece of memory for free(). */
TA_API int ta_filters_from_json(const char *text, size_t length, struct ta_filter **filters, size_t *count);

#if defined(__cplusplus)
}
#endif

#endif
