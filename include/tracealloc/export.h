/* export.h: a snapshot for other programs and for the eye: the calling tree, pictures, and the formats of pprof, flame
 * graph tools, speedscope and spreadsheets.
 *
 * Needs libtracealloc-analysis. Everything is written to a ta_write_function (tracealloc/analysis.h): one's own, or one
 * of those below for a descriptor, a stream or a buffer in memory. Failure is NULL or -1; ta_error_text says why. A
 * writer that answers anything but 0 stops the export, which then fails; the text of the error is the writer's to set.
 *
 *      struct ta_buffer profile = {0};
 *      struct ta_snapshot *now = ta_take_snapshot();
 *      if (ta_snapshot_export_pprof(now, ta_write_to_buffer, &profile) == 0)
 *          send(client, profile.bytes, profile.length, 0);
 *      free(profile.bytes);
 *      ta_snapshot_free(now); */
#ifndef TRACEALLOC_EXPORT_H
#define TRACEALLOC_EXPORT_H

#include <stddef.h>
#include <stdint.h>

#include <tracealloc/analysis.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- where it goes ----------------------------------------------------------------------------------------------- */

/* Memory that grows with what is written to it. Begins zeroed. `bytes` is NULL as long as nothing was written, ends with
 * a NUL behind its `length`, and is for free(). */
struct ta_buffer {
    char *bytes;
    size_t length, capacity;
};
/* ta_write_functions, as ta_write_to_descriptor is one: user = pointer to struct ta_buffer; user = FILE *. */
TA_API int ta_write_to_buffer(void *user, const char *text, size_t length);
TA_API int ta_write_to_stream(void *user, const char *text, size_t length);

/* ---- formats by name --------------------------------------------------------------------------------------------- */

/* One way to write a snapshot. Texts are constants. */
struct ta_export_format {
    const char *name;         /* "pprof", "folded", … */
    const char *suffix;       /* of a file's name, with its dot: ".pb.gz" */
    const char *content_type; /* for HTTP and mail */
    const char *summary;      /* one line */
    int takes_order;          /* ta_snapshot_export looks at `order` */
};
/* 0, or -1 beyond the last. Pass sizeof *format, so that old callers meet newer libraries. */
TA_API int ta_export_format_get(size_t index, struct ta_export_format *format, size_t size);
/* Writes the snapshot in the format of that name. `order` says what one value per stack is, where there can be one only:
 * TA_ORDER_DEFAULT = live bytes. An unknown name is refused. */
TA_API int ta_snapshot_export(const struct ta_snapshot *snapshot, const char *format, enum ta_order order,
                              ta_write_function write, void *user);

/* A profile for pprof, compressed with gzip: live and total, blocks and bytes, by address with inlined calls. Values of
 * sampled recordings are estimates already. */
TA_API int ta_snapshot_export_pprof(const struct ta_snapshot *snapshot, ta_write_function write, void *user);
/* One line per stack with its numbers. */
TA_API int ta_snapshot_export_csv(const struct ta_snapshot *snapshot, ta_write_function write, void *user);
TA_API int ta_snapshot_export_jsonl(const struct ta_snapshot *snapshot, ta_write_function write, void *user);
/* A report in words for people: totals, the `rows` largest rows by own line (ta_group_by_own), domains, and what was not
 * traced. */
TA_API int ta_snapshot_export_text(const struct ta_snapshot *snapshot, size_t rows, ta_write_function write,
                                   void *user);

/* ---- the running process ----------------------------------------------------------------------------------------- */

/* Metrics of a program that runs under tracealloc, in Prometheus' text format: what is traced, what the tracer takes,
 * each domain with its limits (arenas without a name together), and what went wrong. Cheap enough for every scrape. */
TA_API int ta_export_metrics(ta_write_function write, void *user);

/* ---- the calling tree -------------------------------------------------------------------------------------------- */

/* All stacks of a snapshot as one tree of functions; of two snapshots, as one tree with two values. It needs its
 * snapshots no more once they were added, and belongs to one thread at a time. */
struct ta_calltree;

enum {
    TA_CALLTREE_FROM_LEAVES = 1, /* begins with the functions that asked for the memory, callers below */
    TA_CALLTREE_FOLD = 2,        /* recursion is one node; what only starts programs and threads is none */
    TA_CALLTREE_OWN = 4,         /* one's own functions only (tracealloc/analysis.h), and what they called for it */
};

/* `order` says what the value of a node is: live bytes (TA_ORDER_DEFAULT), live blocks, bytes or blocks ever allocated,
 * blocks that came and went, bytes at the peak. */
TA_API struct ta_calltree *ta_calltree_create(enum ta_order order, unsigned flags);
/* Adds all stacks; `is_old`: to the second value, for differences. */
TA_API int ta_calltree_add(struct ta_calltree *tree, const struct ta_snapshot *snapshot, int is_old);
TA_API void ta_calltree_free(struct ta_calltree *tree);

struct ta_calltree_node {
    const char *name;   /* function; where it is not known the module's name, or file and line. Equal names of one tree
                           are one pointer. */
    const char *file;   /* of one frame of this node, "" when not known */
    const char *module; /* "" when not known */
    uint32_t line;
    uint32_t depth;                  /* 0 = the root, which is named "all" */
    uint32_t parent, child, sibling; /* other nodes; 0 = none. The first child holds most. */
    int64_t value, old_value;        /* with all below */
    uint64_t count;                  /* live blocks, with all below */
    uint32_t times;                  /* FOLD: how often in a row a stack came here, at most; 1 = no recursion */
    uint32_t circle;                 /* how many calls came each time; they end with this node */
    const char *domain;              /* of all below; "" = several. Equal ones are one pointer. */
    int has_other_lines;             /* `line` is one of several from which it went on */
};
/* Nodes come in the order of the drawing: a node, then all that is below it, children with the larger value first. Their
 * numbers hold until the next add. */
TA_API size_t ta_calltree_count(const struct ta_calltree *tree);
TA_API int ta_calltree_get(const struct ta_calltree *tree, size_t index, struct ta_calltree_node *node, size_t size);

/* "outermost;…;innermost VALUE", a line per stack, as flame graph tools read them. */
TA_API int ta_calltree_export_folded(const struct ta_calltree *tree, ta_write_function write, void *user);
/* JSON for speedscope. */
TA_API int ta_calltree_export_speedscope(const struct ta_calltree *tree, ta_write_function write, void *user);

struct ta_flame_options {
    const char *title; /* NULL = what the widths are, and their sum */
    double
        minimum; /* share of the whole below which nothing is drawn: 0 … 1; 0 = a quarter of a pixel, < 0 = everything is */
    const struct ta_calltree *folded; /* of the same stacks, with TA_CALLTREE_FOLD: shown first; a click unfolds */
};
/* A flame graph (SVG) for any browser: zoom, search, no network. With a second snapshot in the tree the colours tell
 * what grew and what shrank. `options` may be NULL; pass sizeof *options. */
TA_API int ta_calltree_export_flame(const struct ta_calltree *tree, const struct ta_flame_options *options, size_t size,
                                    ta_write_function write, void *user);

/* ---- a page to look at ------------------------------------------------------------------------------------------- */

/* One recording of a report, or one entry of it ("path@2"). */
struct ta_report_file {
    const char *path;
    const char *name;         /* what people call the process; NULL = its program */
    uint32_t process, parent; /* 0 = as the recording says */
    const char *end;          /* how it ended: a status, a signal; NULL = not known */
};
struct ta_report_options {
    const char *title;          /* NULL = made from the program */
    int compares;               /* there are two files: the first one is compared with the second */
    int without_sources;        /* no lines of source files */
    struct ta_own_rules *rules; /* whose code is whose; NULL = the usual rules, learned from all files */
    size_t most_bytes;          /* of the page; 0 = 2 MB. Points of time are taken together until it fits, if it can */
};
/* A page of HTML that needs nothing else: sizes over time, who holds the memory, flame graph, sources. Several files are
 * the processes of one run, unless `options` says that they are compared. `options` may be NULL; pass sizeof *options. */
TA_API int ta_report_write(const struct ta_report_file *files, size_t count, const struct ta_report_options *options,
                           size_t size, ta_write_function write, void *user);

#if defined(__cplusplus)
}
#endif

#endif
