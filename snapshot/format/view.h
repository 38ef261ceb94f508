/* view.h: one loaded snapshot as plain validated tables — what the reader hands to analysis.
 *
 * Everything in it was checked: ids are in range, parents come before children, strings end inside their table. It is
 * immutable and owned by the struct ta_snapshot that it was taken from. Index 0 of strings is "". */
#ifndef TA_SNAPSHOT_FORMAT_VIEW_H
#define TA_SNAPSHOT_FORMAT_VIEW_H

#include <stddef.h>
#include <stdint.h>

/* Bytes as they were recorded: not always UTF-8, may contain anything but is length-counted; also NUL-terminated. */
struct ta__view_string {
    const char *text;
    size_t length;
};

struct ta__view_module {
    uint32_t path; /* string */
    uint32_t flags;
    const uint8_t *build_id;
    uint32_t build_id_length;
    uint64_t load_base, start, end;
};

/* A frame as recorded: either an address in a module or, in snapshots built from data, a line of a file. */
struct ta__view_frame {
    uint64_t address; /* kind ADDRESS: address in the process (a return address) */
    uint32_t module;  /* kind ADDRESS: index + 1, 0 = in no module */
    uint32_t file;    /* kind SOURCE: string */
    uint32_t line;    /* kind SOURCE */
    uint32_t kind;
};
enum { TA__FRAME_ADDRESS = 0, TA__FRAME_SOURCE = 1, TA__FRAME_OVERFLOW = 2 };

/* A node of the calling-context tree; node 0 is the root and has no frame. parent < index. */
struct ta__view_context {
    uint32_t parent;
    uint32_t frame;
};

/* What symbolising made of a frame of kind ADDRESS: `count` logical frames from `first` in the table of symbols,
 * innermost inlined call first; count 0 = not symbolised. */
struct ta__view_symbol_range {
    uint32_t first;
    uint32_t count;
};
struct ta__view_symbol {
    uint32_t file; /* string; for frames without line information the path of the module, line 0 */
    uint32_t line;
    uint32_t function; /* demangled name, string; 0 = unknown */
    uint32_t raw_name; /* as in the symbol table */
    uint64_t offset;   /* from the start of the function */
    uint32_t flags;
};
enum { TA__SYMBOL_INLINED = 1, TA__SYMBOL_NO_LINES = 2 };

/* `count` live blocks of one domain and stack, and what happened at that stack since tracing began. */
struct ta__view_trace {
    uint32_t context;
    uint32_t domain; /* public number */
    uint32_t thread; /* index into threads + 1, 0 = not kept apart */
    uint32_t flags;
    int32_t total_nframe; /* -1 = unknown */
    uint64_t size;        /* bytes in live blocks, all `count` together */
    uint64_t count;
    uint64_t allocated_bytes, allocated_blocks; /* running totals; 0 in snapshots built from data */
    uint64_t peak_bytes;                        /* size at the moment of the recorded peak, 0 when unknown */
};
enum { TA__TRACE_CUT_SHORT = 1, TA__TRACE_OVERFLOW = 2, TA__TRACE_EACH = 4 /* every block has size/count bytes */ };

/* A live block. Ascending by address. 16 bytes: there may be many. */
struct ta__view_block {
    uint64_t address : 48;
    uint64_t size_high : 16; /* size = size_high << 32 | size_low */
    uint32_t size_low;
    uint32_t trace; /* index into traces; TA__BLOCK_UNTRACED = none */
};
#define TA__BLOCK_UNTRACED UINT32_MAX

struct ta__view_domain {
    uint32_t number, name, flags;
    uint64_t live_bytes, live_blocks, peak_bytes, allocated_bytes, allocated_blocks, limit_bytes;
};
struct ta__view_thread {
    uint32_t tid, name, flags;
};
enum { TA__THREAD_IS_PROCESS = 2 /* in a merged snapshot: traces name the process that they are of */ };
struct ta__view_pair {
    uint32_t key, value;
};

#define TA__VIEW_BLOCK_BITS 48 /* of addresses and sizes */
static inline struct ta__view_block ta__view_block(uint64_t address, uint64_t size, uint32_t trace)
{
    return (struct ta__view_block){.address = address & ((UINT64_C(1) << TA__VIEW_BLOCK_BITS) - 1),
                                   .size_high = (size >> 32) & 0xFFFF,
                                   .size_low = (uint32_t)size,
                                   .trace = trace};
}
static inline uint64_t ta__view_block_size(const struct ta__view_block *block)
{
    return (uint64_t)block->size_high << 32 | block->size_low;
}

struct ta__view {
    const struct ta__view_string *strings;
    const struct ta__view_module *modules;
    const struct ta__view_frame *frames;
    const struct ta__view_context *contexts;
    const struct ta__view_symbol_range *symbol_ranges; /* one per frame; NULL when nothing is symbolised */
    const struct ta__view_symbol *symbols;
    const struct ta__view_trace *traces; /* live ones first, then gone_trace_count with count 0 */
    const struct ta__view_block *blocks; /* single blocks, where the entry has them: block_count, may be 0 */
    const struct ta__view_domain *domains;
    const struct ta__view_thread *threads;
    const struct ta__view_pair *metadata; /* strings: added by users */
    const struct ta__view_pair *options;  /* strings: how the program was traced */
    uint32_t string_count, module_count, frame_count, context_count, symbol_count, trace_count, domain_count,
        gone_trace_count, thread_count, metadata_count, option_count, block_count;
    uint32_t has_blocks; /* every live block of every trace is in `blocks` */

    uint32_t traceback_limit;
    uint32_t pid;
    uint32_t program, host, reason; /* strings; reason = what asked for the snapshot */
    uint64_t time_ns;               /* since 1970, of this entry */
    uint64_t start_time_ns;         /* when tracing began */
    uint64_t epoch;
    uint64_t current_bytes, peak_bytes, sample_bytes;
    uint64_t lost, overflowed, cut_short, foreign_frees, invalid_frees, snapshot_errors;
};

#endif
