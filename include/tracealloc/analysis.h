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

/* Frames `first` to `first + length * times`, oldest first: `length` calls that came `times` times in a row. */
struct ta_fold {
    size_t first, length, times;
};
/* A stack as people read it: recursion (also of functions that call each other in a circle) is one item, and frames that
 * only start the program or a thread are in none. Writes at most `max` items, oldest first, and answers how many there
 * are, which is no more than frames; 0 also without memory. */
TA_API size_t ta_traceback_fold(struct ta_traceback traceback, struct ta_fold *items, size_t max);

/* For "all frames" in ta_traceback_format. */
#define TA_FORMAT_ALL INT64_MAX
/* The lines `  File "NAME", line N`, each followed by its source line indented by four where it can be read. limit > 0:
 * the `limit` most recent frames; 0: none; < 0: all but the |limit| most recent ones. Oldest first unless
 * `most_recent_first`. A list of strings that ends with NULL, in one piece for free(); NULL when out of memory. */
TA_API char **ta_traceback_format(struct ta_traceback traceback, int64_t limit, int most_recent_first);

/* A function as people read it: without result, parameters and the template arguments that only the library needs.
 * Where there is no memory, the name as it is. */
TA_API size_t ta_function_text(const char *function, char *text, size_t size);

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

#define TA_CUMULATIVE_ONCE 2

/* Groups the traces: key "traceback", "lineno", "filename", or "function", "module", "domain", "thread", "own" (below), or
 * "line": the innermost line as lineno, and where there is none the function, never a whole module; "stack": tracebacks of these.
 * cumulative (lineno, filename, function, module, own, line): every frame of a trace adds the trace to its group; with 1 a
 * frame that occurs twice adds it twice, as in tracemalloc, with TA_CUMULATIVE_ONCE once. Order: size, count, traceback, all descending. */
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
/* The row that a trace of the snapshot is in, at its present place; -1 when it is in none, and for cumulative statistics. */
TA_API long ta_statistics_row_of(const struct ta_statistics *statistics, size_t trace);
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

/* ---- whose code it is --------------------------------------------------------------------------------------------- */

/* The key "own" groups by the innermost frame that is one's own: not of the libraries of the language or the system, and
 * no allocator by name or by structure (docs/own.md). Every block is in exactly one row. A row is a line; where there is
 * none, a function (its module as file name, line 0); or what a library keeps for itself, under a name. */

/* What is skipped, beyond what is built in. For one thread at a time until it is given to a snapshot; then it must not
 * change any more. */
struct ta_own_rules;
TA_API struct ta_own_rules *ta_own_rules_create(void);
/* Lines "skip PATTERN", "own PATTERN", "# …"; PATTERN may begin with function:, file: or module:. A later line decides.
 * -1 for the first line that is none, with its number. */
TA_API int ta_own_rules_add(struct ta_own_rules *rules, const char *text);
/* Finds the allocators of this snapshot by structure. Snapshots that are to be compared want rules that learned from all
 * of them; without, each question looks for itself. */
TA_API int ta_own_rules_learn(struct ta_own_rules *rules, const struct ta_snapshot *snapshot);
TA_API void ta_own_rules_free(struct ta_own_rules *rules); /* snapshots keep theirs */
/* From now on for everything that asks whose code it is; not while another thread asks. NULL = the usual rules. */
TA_API int ta_snapshot_set_own_rules(struct ta_snapshot *snapshot, struct ta_own_rules *rules);
/* Statistics by the key "own"; `with_gone` as ta_snapshot_churn. */
TA_API struct ta_statistics *ta_group_by_own(const struct ta_snapshot *snapshot, int with_gone);

/* What a row is made of. */
enum ta_member {
    TA_MEMBER_FUNCTION, /* functions of the row's own frames, or of the innermost frames for other keys */
    TA_MEMBER_VIA,      /* what the own frame called on the way to the allocator; "" = the allocator itself */
    TA_MEMBER_CALLER    /* the next own frame outwards */
};
struct ta_row_member {
    struct ta_frame frame; /* without names where there is none */
    uint64_t size, count, allocated_size, allocated_count;
};
/* Copies at most `max` members, largest first (size, then what was allocated, then name), and returns how many there
 * are. 0 for cumulative statistics, and where there is no memory. */
TA_API size_t ta_statistics_members(struct ta_statistics *statistics, size_t index, enum ta_member what,
                                    struct ta_row_member *members, size_t max);
/* The whole stack that holds most of a row. */
TA_API struct ta_traceback ta_statistics_largest(struct ta_statistics *statistics, size_t index);

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
/* The members of the newer snapshot; of the older one for a row that is only there. */
TA_API size_t ta_differences_members(struct ta_differences *differences, size_t index, enum ta_member what,
                                     struct ta_row_member *members, size_t max);
TA_API struct ta_traceback ta_differences_largest(struct ta_differences *differences, size_t index);
TA_API int ta_differences_sort(struct ta_differences *differences, enum ta_order order);
TA_API void ta_differences_free(struct ta_differences *differences);

/* ---- sizes over time --------------------------------------------------------------------------------------------- */

/* The course of every group over all entries of a recording, and what it looks like (docs/growth.md has the rules). */
struct ta_series;

/* Groups by `key_type`: "own", "line", "lineno", "filename", "function", "module", "domain" or "thread". `rules` says whose code
 * is whose for "own"; NULL = the usual rules, learned from the last entry. */
TA_API struct ta_series *ta_series_load(const char *path, const char *key_type, struct ta_own_rules *rules);
TA_API void ta_series_free(struct ta_series *series); /* NULL is allowed */

/* One point of time. Of more than 2000 entries neighbours are taken together: the last one's values count. */
struct ta_series_entry {
    uint64_t index; /* of the last entry in it */
    uint64_t time_ns;
    uint64_t size, count;     /* live, all groups */
    uint64_t allocated_count; /* since tracing began or was cleared */
    int restarts;             /* the traces were cleared: courses begin anew here */
    const char *reason;       /* what asked for the entry */
    uint64_t resident;        /* bytes of the whole process in memory; 0 = not known */
};
TA_API size_t ta_series_entry_count(const struct ta_series *series);
TA_API int ta_series_get_entry(const struct ta_series *series, size_t index, struct ta_series_entry *entry,
                               size_t size);

enum ta_growth {
    TA_GROWTH_STEADY,   /* grows on and on */
    TA_GROWTH_SLOWING,  /* grows, less and less */
    TA_GROWTH_UNSURE,   /* larger than it was; too few entries to say more */
    TA_GROWTH_ONE_OFF,  /* one step, flat before and after */
    TA_GROWTH_PLATEAU,  /* grew, and stopped growing: a cache that is full, a pool */
    TA_GROWTH_SAWTOOTH, /* comes and goes */
    TA_GROWTH_START,    /* there from the first moments */
    TA_GROWTH_FREED,    /* was there, is gone */
    TA_GROWTH_CHURN,    /* allocated and freed between the entries, next to nothing stays */
    TA_GROWTH_UNKNOWN   /* a single entry tells no course */
};
TA_API const char *ta_growth_name(enum ta_growth growth);

/* How large blocks are, and how long they live, by powers of two. Where a stack asks for several sizes its blocks count
 * with their mean. A lifetime is counted in entries, as if of one stack's blocks the youngest were freed first. */
enum { TA_SIZE_CLASSES = 64, TA_LIFE_CLASSES = 16 };
struct ta_series_row {
    struct ta_frame frame; /* the key, as in statistics; belongs to the series */
    enum ta_growth growth;
    double certainty;                         /* 0 … 1 */
    double bytes_per_minute;                  /* of the growth; 0: none, or in less than 5 s */
    double bytes_per_call;                    /* what a call leaves behind in the mean */
    uint64_t size, count;                     /* in the last entry */
    uint64_t peak_size;                       /* of all entries */
    uint64_t grown_size;                      /* since it began to grow */
    uint64_t allocated_size, allocated_count; /* in the last entry */
    char reason[160];                         /* why it is taken for what it is */
    uint64_t by_size[TA_SIZE_CLASSES];        /* blocks allocated: [0] of 0 bytes, [n] of 2^(n-1) to 2^n - 1 */
    uint64_t by_life[TA_LIFE_CLASSES]; /* [0] freed before the next entry, [n] after 2^(n-1) to 2^n - 1 entries */
    uint64_t still_live;               /* blocks that never were freed */
};
/* Rows come with the most leak-like first. */
TA_API size_t ta_series_row_count(const struct ta_series *series);
TA_API int ta_series_get_row(const struct ta_series *series, size_t index, struct ta_series_row *row, size_t size);
/* Its live bytes (and blocks, unless `counts` is NULL) at every point; at most `max`. Answers how many points there are. */
TA_API size_t ta_series_course(const struct ta_series *series, size_t index, uint64_t *sizes, uint64_t *counts,
                               size_t max);

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

/* Places in code that travel as metadata PREFIX0, PREFIX1 … (docs/format.md), such as "crash.frame." or
 * "crash.block.frame.", as frames, most recent first, inlined calls expanded. No frame when there is none of that name. */
struct ta_places;
TA_API struct ta_places *ta_snapshot_places(const struct ta_snapshot *snapshot, const char *prefix);
TA_API size_t ta_places_count(const struct ta_places *places);
/* `number`, unless NULL: of the place, from 0; frames of inlined calls share it. 0, or -1 beyond the last. */
TA_API int ta_places_get(const struct ta_places *places, size_t index, struct ta_frame *frame, size_t *number);
TA_API void ta_places_free(struct ta_places *places); /* NULL is allowed */

/* ---- the running process ----------------------------------------------------------------------------------------- */

/* Return addresses of this process, most recent first (as ta_get_object_traceback, backtrace() and most unwinders give
 * them), as frames with files, lines, functions and inlined calls. Empty when there is no memory. Every call reads the
 * debug information anew: ask for many addresses at once. Free it with ta_traceback_free. */
TA_API struct ta_traceback ta_symbolize(void *const *addresses, size_t count);
/* Who allocated a live block, in a program that runs under tracealloc and traces: as tracemalloc's
 * get_object_traceback. Empty, with the reason in ta_error_text, when nobody knows. */
TA_API struct ta_traceback ta_object_traceback(const void *block);
/* For the two above; others need not be freed, and nothing happens to them. */
TA_API void ta_traceback_free(struct ta_traceback traceback);
/* The same in one call: get_object_traceback(block).format(limit, most_recent_first). NULL when nobody knows; as
 * ta_traceback_format otherwise. */
TA_API char **ta_format_object_traceback(const void *block, int64_t limit, int most_recent_first);
/* One return address in a line: "FUNCTION at FILE:LINE, inlined into FUNCTION at FILE:LINE". */
TA_API size_t ta_address_text(const void *address, char *text, size_t size);

/* ---- interchange ------------------------------------------------------------------------------------------------- */

/* Where text goes: called with consecutive pieces; anything but 0 stops the writing. */
typedef int (*ta_write_function)(void *user, const char *text, size_t length);
/* A ta_write_function for a file descriptor: user = pointer to int. */
TA_API int ta_write_to_descriptor(void *user, const char *text, size_t length);

/* docs/api-analysis.md describes the formats. Names that are not UTF-8 travel as lone surrogates U+DC80 + byte - 0x80.
 */
TA_API struct ta_snapshot *ta_snapshot_import_json(const char *text, size_t length);
/* Where text comes from: stores at most `size` bytes and answers how many, 0 at the end, -1 (with errno) on failure. */
typedef long (*ta_read_function)(void *user, char *bytes, size_t size);
/* The same, read piece by piece: the text as a whole is never in memory. */
TA_API struct ta_snapshot *ta_snapshot_import_json_from(ta_read_function read, void *user);
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
