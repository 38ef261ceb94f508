/* model.h: a loaded snapshot made ready for questions.
 *
 * Between the reader's tables (snapshot/format/view.h) and everything people see. The model adds to the view what grouping
 * needs: logical frames (inlined calls expanded, addresses turned into lines) with numbers for their names and places.
 * It never expands stacks: all of it is in proportion to frames and contexts, not to traces times depth.
 *
 *     view: trace ─► context ─► parent …            names      every file, function and module name once
 *                       │                           locations  every (file name, line) once
 *                       └─► frame ─► logical[first … first + count), innermost inlined call first
 *
 * A model is built on the first question and lives as long as its snapshot. */
#ifndef TA_ANALYSIS_MODEL_H
#define TA_ANALYSIS_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "snapshot/format/view.h"
#include "tracealloc/analysis.h"

struct ta__name {
    const char *text;
    size_t length;
};

/* A place in a source: what tracemalloc calls a frame. */
struct ta__location {
    uint32_t name;
    uint32_t line;
};

/* One function activation; several may come from one recorded address. */
struct ta__logical {
    uint32_t location;
    uint32_t function; /* name; 0 = unknown */
    uint32_t raw_name; /* name; 0 = unknown */
    uint32_t module;   /* name; 0 = unknown */
    uint64_t offset;
    uint64_t address;
    uint32_t flags; /* TA_FRAME_… */
};

struct ta__logical_range {
    uint32_t first, count;
};

struct ta__model {
    const struct ta__view *view;
    struct ta__name *names; /* 0 = "", others distinct */
    struct ta__location *locations;
    struct ta__logical *logicals;     /* 0 = <unknown>:0, for a trace without frames */
    struct ta__logical_range *frames; /* one per frame of the view */
    uint32_t unknown_name;            /* "<unknown>" */
    size_t name_count, name_capacity, location_count, location_capacity, logical_count, logical_capacity;

    uint32_t *domain_numbers; /* of all traces, ascending, distinct */
    uint32_t *domain_names;   /* name: what people call it */
    uint32_t *thread_names;   /* name, by thread + 1 of the view; [0] = not kept apart */
    uint32_t *process_names;  /* the same where they are processes; [0] = the snapshot's own */
    int has_processes;
    size_t domain_count;
    char **labels; /* texts that belong to the model itself */
    size_t label_count, label_capacity;
    struct ta_own_rules *own_rules;    /* whose code is one's own; NULL = the usual rules */
    struct ta__symbolized *symbolized; /* what it was built from, unless the view has symbols of its own */
};

/* What symbolising made of the frames of kind ADDRESS, in the shape of the view's own tables. */
struct ta__model_symbols {
    const struct ta__view_symbol_range *ranges; /* one per frame; NULL = nothing is symbolised */
    const struct ta__view_symbol *symbols;
    const struct ta__view_string *strings;
    uint32_t string_count;
};

/* Both must outlive the model. NULL with the error set when out of memory. */
struct ta__model *ta__model_build(const struct ta__view *view, const struct ta__model_symbols *symbols);
void ta__model_free(struct ta__model *model);

/* The model of a snapshot, built when it is first asked for; NULL with the error set. */
struct ta__model *ta__model_of(const struct ta_snapshot *snapshot);

/* The logical frames of a context's own frame, innermost first: never empty. */
static inline struct ta__logical_range ta__model_range(const struct ta__model *model, uint32_t context)
{
    return context == 0 ? (struct ta__logical_range){0, 1} : model->frames[model->view->contexts[context].frame];
}

/* Index in domain_numbers of a domain that occurs in a trace. */
size_t ta__model_domain(const struct ta__model *model, uint32_t number);

/* The most recent logical frame of a context. */
static inline const struct ta__logical *ta__model_innermost(const struct ta__model *model, uint32_t context)
{
    return &model->logicals[ta__model_range(model, context).first];
}

void ta__model_frame(const struct ta__model *model, uint32_t logical, struct ta_frame *frame);

/* What a trace is for formats that know single blocks only: where only a sum is known, blocks as equal as can be, so
 * that count and sum stay exact. Returns how many kinds there are: 0, 1 or 2. */
struct ta__blocks {
    uint64_t size, count;
};
static inline int ta__trace_blocks(const struct ta__view_trace *trace, struct ta__blocks blocks[2])
{
    if (trace->count == 0)
        return 0;
    uint64_t size = trace->size / trace->count, larger = trace->size % trace->count;
    blocks[0] = (struct ta__blocks){size, trace->count - larger};
    blocks[1] = (struct ta__blocks){size + 1, larger};
    return larger > 0 ? 2 : 1;
}

/* ---- tracebacks (traceback.c) ---- */

enum ta__traceback_kind {
    TA__TRACEBACK_EMPTY = 0,
    TA__TRACEBACK_FRAMES,   /* owner = struct ta_frame[], index = their number */
    TA__TRACEBACK_OWNED,    /* the same, in memory of its own: ta_traceback_free */
    TA__TRACEBACK_CONTEXT,  /* owner = model, index = context: the whole stored stack */
    TA__TRACEBACK_LOCATION, /* owner = model, index = location: one frame */
    TA__TRACEBACK_NAME,     /* owner = model, index = name: one frame of line 0 */
    TA__TRACEBACK_LOGICAL,  /* owner = model, index = logical: one frame with all that is known of it */
    TA__TRACEBACK_FUNCTION, /* owner = model, index = logical: its module, line 0, and its function */
    TA__TRACEBACK_MODULE,   /* owner = model, index = logical: its module, line 0 */
    TA__TRACEBACK_KNOWN,    /* owner = model, index = ta__own_known_name: one frame of line 0 */
};

static inline struct ta_traceback ta__traceback(const struct ta__model *model, enum ta__traceback_kind kind,
                                                uint32_t index)
{
    return (struct ta_traceback){.total_nframe = -1, .owner = model, .kind = kind, .index = index};
}

static inline int ta__traceback_has_frames(struct ta_traceback traceback)
{
    return traceback.kind == TA__TRACEBACK_FRAMES || traceback.kind == TA__TRACEBACK_OWNED;
}

/* All frames, oldest first, in new memory; NULL when there is none. */
struct ta_frame *ta__traceback_expand(struct ta_traceback traceback, size_t *count);

#endif
