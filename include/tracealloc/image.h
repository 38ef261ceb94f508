/* image.h: the memory of another process, live or dead, seen from outside: its blocks, where its memory goes, what is
 * lost, who points to whom. Part of libtracealloc-analysis; needs no runtime.
 *
 * An image is opened for the questions that it is to answer: a live process is held still only while what they need is
 * copied, and goes on before anything is answered. Only what ptrace permits can be opened. Contents of the program's
 * memory are looked at and never kept: addresses, sizes and counts are.
 *
 * Failure is NULL or -1; ta_error_text says why. Results borrow from their image: free them before it. One thread at a
 * time. docs/inside.md says what the figures mean. */
#ifndef TRACEALLOC_IMAGE_H
#define TRACEALLOC_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include <tracealloc/analysis.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* What is to be asked. */
enum ta_image_wants {
    TA_IMAGE_SNAPSHOT = 0, /* always: stacks, modules, domains, counters */
    TA_IMAGE_BLOCKS = 1,   /* the snapshot has each live block: ta_image_snapshot */
    TA_IMAGE_MEMORY = 2,   /* what every resident page is: ta_image_memory */
    TA_IMAGE_POINTERS = 4, /* who points to whom: ta_image_leaks, ta_image_retained */
    TA_IMAGE_PATHS = 8,    /* the same with the places of pointers: ta_image_why */
};

enum ta_image_flags {
    TA_IMAGE_NO_PAUSE = 1,  /* read while the process runs: figures may be a moment apart, registers are not known */
    TA_IMAGE_TAGGED = 2,    /* the upper 16 bits of pointers may be anything */
    TA_IMAGE_EXACT = 8,     /* pointers into the middle of a block do not count as pointers to it */
    TA_IMAGE_UNALIGNED = 4, /* pointers may stand anywhere, not only at multiples of 8 */
};

struct ta_image_options {
    unsigned wants, flags;
    uint64_t about; /* with TA_IMAGE_PATHS: the address that will be asked about; all pointers to its block are kept */
    /* Registers of threads where the caller holds the process, such as a debugger: "TID=SP,IP,TLS,REGISTER,…;…" in
     * hexadecimal; TLS is the thread pointer. The process is then not held once more. */
    const char *registers;
};

struct ta_image;
/* `what`: the number of a process, or the path of a core file (also compressed by gzip, zstd or lz4). `options` may be
 * NULL; `size` is theirs. */
TA_API struct ta_image *ta_image_open(const char *what, const struct ta_image_options *options, size_t size);
TA_API void ta_image_close(struct ta_image *image); /* NULL is allowed */

struct ta_image_info {
    uint32_t pid;
    int is_core;
    int can_trace;  /* the library in it has stacks and headers */
    int is_tracing; /* ... and traces now */
    const char *program, *command;
    const char *library; /* version of tracealloc in it */
    uint64_t threads;
    uint64_t blocks, bytes;                   /* live: all that were found, traced or not */
    uint64_t untraced_blocks, untraced_bytes; /* without a stack: from before tracing began, or not sampled */
    uint64_t held_ns;                         /* how long it was held still */
    uint32_t signal;                          /* core: what ended it */
    uint64_t fault_address;                   /* core: the address that it failed at, … */
    int has_fault_address;                    /* … where the signal says one, which may be 0 */
};
TA_API int ta_image_get_info(const struct ta_image *image, struct ta_image_info *info, size_t size);
/* What is missing or could not be believed, in words; NULL beyond the last. */
TA_API const char *ta_image_warning(const struct ta_image *image, size_t index);

/* ---- where its memory goes (TA_IMAGE_MEMORY) --------------------------------------------------------------------- */

/* One kind of resident memory. All that are in Rss add up to the Rss of the process. */
struct ta_memory_part {
    const char
        *name; /* for machines: "asked", "rounding", "headers", "free", "kept", "tables", "stacks", "code", "data",
                          "files", "shared", "other"; not in Rss: "page_tables", "swap" */
    const char *words; /* for people */
    uint64_t bytes;
    int is_in_rss;
};
/* Copies at most `max` parts and answers how many there are; 0 when the image was not opened for that. */
TA_API size_t ta_image_memory_parts(const struct ta_image *image, struct ta_memory_part *parts, size_t max);

/* A mapping: what the kernel says is resident of it, and what the parts have of it. */
struct ta_memory_mapping {
    uint64_t start, end, rss, explained, swap;
    const char *path; /* file, or name such as [stack]; "" = none */
    const char *part; /* name of the part that most of it is */
    char rights[5];   /* "rw-p" */
};
TA_API size_t ta_image_memory_mappings(const struct ta_image *image, struct ta_memory_mapping *mappings, size_t max);

/* What the live blocks of some stacks take. */
struct ta_memory_figures {
    uint64_t blocks;
    uint64_t asked;    /* bytes */
    uint64_t occupied; /* with rounding and headers */
    uint64_t resident; /* of these, in memory: pages that were never touched are not */
    uint64_t
        pinned; /* free bytes beside them that cannot go back to the system: those of a page of the allocator in equal
                          parts to its blocks */
    uint64_t back; /* what would go back if they went: resident pages of the allocator in which no other blocks are */
};
enum ta_memory_measure { TA_MEMORY_ASKED, TA_MEMORY_OCCUPIED, TA_MEMORY_RESIDENT, TA_MEMORY_PINNED, TA_MEMORY_BACK };
/* Of each row of `statistics`, which must be of the image's snapshot, by one of the keys and not cumulative, in its present
 * order: `figures` has room for as many and one more, which is for blocks without a stack. 0 or -1. */
TA_API int ta_image_memory_rows(struct ta_image *image, const struct ta_statistics *statistics,
                                struct ta_memory_figures *figures);
/* The image's snapshot with another measure in place of the bytes of each trace, for flame graphs and calling trees. For
 * ta_snapshot_free. */
TA_API struct ta_snapshot *ta_image_memory_snapshot(struct ta_image *image, enum ta_memory_measure measure);

/* ---- what is lost (TA_IMAGE_POINTERS) ---------------------------------------------------------------------------- */

/* Blocks that nothing of the program reaches: not from registers, stacks, thread-local storage, data, nor from mappings
 * that are not malloc's. Pointers into blocks count as pointers to them. */
struct ta_leaks;

/* Leaks that are known: a text with lines "leak:PATTERN" as LeakSanitizer reads them; # begins a remark. A pattern is looked
 * for in the names of functions, files and modules of the stack; * is anything, ^ and $ are beginning and end. NULL with
 * the line in the error. */
struct ta_suppressions;
TA_API struct ta_suppressions *ta_suppressions_parse(const char *text, size_t length);
TA_API void ta_suppressions_free(struct ta_suppressions *suppressions); /* NULL is allowed */
/* The first pattern that hits the stack, or -1. */
TA_API long ta_suppressions_match(const struct ta_suppressions *suppressions, struct ta_traceback traceback);
/* Counts for a pattern what it hit. */
TA_API void ta_suppressions_note(struct ta_suppressions *suppressions, size_t index, uint64_t blocks, uint64_t bytes);
/* The pattern, and what was counted for it; NULL beyond the last. */
TA_API const char *ta_suppressions_get(const struct ta_suppressions *suppressions, size_t index, uint64_t *blocks,
                                       uint64_t *bytes);

/* `suppressions` may be NULL; what they suppress is counted in them. */
TA_API struct ta_leaks *ta_image_leaks(struct ta_image *image, struct ta_suppressions *suppressions);
TA_API void ta_leaks_free(struct ta_leaks *leaks); /* before its image; NULL is allowed */

struct ta_leak_totals {
    uint64_t rows;                            /* that are not suppressed; of these all but the last three: */
    uint64_t direct_blocks, direct_bytes;     /* nothing points to them; of a circle, one block */
    uint64_t indirect_blocks, indirect_bytes; /* went with those */
    uint64_t cycles;                          /* circles among the direct ones */
    uint64_t suppressed_blocks, suppressed_bytes;
    uint64_t reachable_blocks;
    uint64_t inner_blocks, inner_bytes; /* of these, reached only by pointers into the middle of blocks */
};
TA_API void ta_leaks_totals(const struct ta_leaks *leaks, struct ta_leak_totals *totals, size_t size);

/* What was lost of one stack, by itself or as part of circles. Those that are suppressed come last; else the row that
 * holds most comes first. */
struct ta_leak {
    long trace; /* of the image's snapshot; -1 = without a stack */
    int is_cycle;
    long suppression;                 /* the pattern that hits it, or -1 */
    uint64_t blocks, bytes;           /* lost directly; of each circle one block */
    uint64_t held_blocks, held_bytes; /* that went with them: lost indirectly, and the other members of circles */
    uint64_t address;                 /* of the block that holds most */
    uint64_t largest_bytes;           /* of that block with what it holds */
};
TA_API size_t ta_leaks_count(const struct ta_leaks *leaks);
TA_API int ta_leaks_get(const struct ta_leaks *leaks, size_t index, struct ta_leak *leak, size_t size);
/* For a row of circles: the members of the largest, each pointing to the next and the last to the first. Copies at most
 * `max` and answers how many there are. */
TA_API size_t ta_leaks_cycle(const struct ta_leaks *leaks, size_t index, struct ta_block *blocks, size_t max);

/* ---- what an address is, and who points there (TA_IMAGE_PATHS) --------------------------------------------------- */

enum ta_place_kind {
    TA_PLACE_NOTHING,   /* not mapped */
    TA_PLACE_BLOCK,     /* a live block: the user's bytes */
    TA_PLACE_BEHIND,    /* behind them, up to where the next block begins */
    TA_PLACE_HEADER,    /* in front of them */
    TA_PLACE_FREE,      /* a block that is free: it was never used, or was given back */
    TA_PLACE_DAMAGED,   /* a block in use whose header does not verify: it was overwritten */
    TA_PLACE_ALLOCATOR, /* the allocator's, but no block */
    TA_PLACE_TABLES,    /* tracealloc's own */
    TA_PLACE_REGISTER,  /* of a thread: `address` is its number */
    TA_PLACE_STACK,     /* of a thread */
    TA_PLACE_DATA,      /* of the program or a library */
    TA_PLACE_CODE,
    TA_PLACE_MAPPING, /* anything else that is mapped */
};
struct ta_place {
    enum ta_place_kind kind;
    uint64_t address;
    uint64_t start, size; /* of the block (the user's bytes; of a free one all), or of the mapping */
    uint64_t offset;      /* address - start */
    long trace;           /* of a block: who asked for it; -1 = not known */
    uint32_t thread;      /* of a register or a stack: its id */
    char name[256];       /* variable, function, file or kind of mapping; "" when there is nothing to say */
    char type[256];       /* of an object of C++ with virtual functions, "" when not known */
};

struct ta_why;
/* What the address is, which blocks and roots point to that block, and the shortest ways from roots to it. */
TA_API struct ta_why *ta_image_why(struct ta_image *image, uint64_t address);
TA_API void ta_why_free(struct ta_why *why); /* before its image; NULL is allowed */
TA_API void ta_why_place(const struct ta_why *why, struct ta_place *place);
/* The blocks in front of it (-1) and behind it (1) in memory, live or damaged, where the address is the allocator's; 0, or
 * -1 when there is none. */
TA_API int ta_why_neighbour(const struct ta_why *why, int side, struct ta_place *place);
/* Who points to the block: how many pointers there are, and each of them as far as they are kept (the first thousand). */
TA_API uint64_t ta_why_referrer_count(const struct ta_why *why);
TA_API int ta_why_referrer(const struct ta_why *why, size_t index, struct ta_place *place);
/* Whether anything leads to it from outside of malloc's blocks; and ways that do, shortest first. The steps of a way are the
 * root, then blocks; `address` and `offset` say where the pointer to the next one stands; the last is the block itself.
 * Copies at most `max` and answers how many steps there are; 0 beyond the last way. */
TA_API int ta_why_is_reached(const struct ta_why *why);
TA_API size_t ta_why_path(const struct ta_why *why, size_t index, struct ta_place *steps, size_t max);

/* ---- what holds what (TA_IMAGE_POINTERS) ------------------------------------------------------------------------- */

/* What would go if all blocks of a row went: they, and all that only they hold. Blocks that are lost already are in none. */
struct ta_retained_row {
    uint64_t blocks, bytes; /* of the row itself */
    uint64_t retained;      /* with what goes with them */
    int is_exact;           /* 0: at least so much; rows that hold little are not looked at more closely */
};
/* Of each row of `statistics`, as ta_image_memory_rows; one more for blocks without a stack. */
TA_API int ta_image_retained_rows(struct ta_image *image, const struct ta_statistics *statistics,
                                  struct ta_retained_row *rows);
/* The single blocks that hold most, of those that no other single block holds; `retained` bytes go with each. Copies at most
 * `max` and answers how many there are; -1 with the error set. */
struct ta_retained_block {
    struct ta_block block;
    uint64_t retained;
    char type[256]; /* of an object of C++ with virtual functions, "" when not known */
};
TA_API long ta_image_retained_blocks(struct ta_image *image, struct ta_retained_block *blocks, size_t max);

/* The snapshot that the program itself would take now. It belongs to the image. */
TA_API struct ta_snapshot *ta_image_snapshot(struct ta_image *image);

#if defined(__cplusplus)
}
#endif

#endif
