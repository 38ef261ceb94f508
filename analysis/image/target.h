/* target.h: the memory of another process, live or dead, as one address space to read from.
 *
 *     live process   /proc/PID: maps, pagemap, process_vm_readv; held still by ptrace     target_process.c, hold.c
 *     core file      ELF segments and notes, unpacked where they are compressed           target_core.c, unpack.c
 *
 * Bottom of analysis/image: knows nothing of allocators. Whatever is read may be anything: addresses, lengths and counts
 * that come out of it are checked before they are used, and what cannot be read is an error, never a crash. */
#ifndef TA_ANALYSIS_IMAGE_TARGET_H
#define TA_ANALYSIS_IMAGE_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attributes.h"

enum { TA__TARGET_PAGE = 4096 };
/* Addresses of programs are below. */
#define TA__ADDRESS_END (UINT64_C(1) << 57)

enum ta__region_flags {
    TA__REGION_READ = 1,
    TA__REGION_WRITE = 2,
    TA__REGION_EXECUTE = 4,
    TA__REGION_SHARED = 8,
    TA__REGION_FILE = 16,     /* of a file, or of a device */
    TA__REGION_MISSING = 32,  /* core: the contents are not in it */
    TA__REGION_SPECIAL = 64,  /* [vvar], devices: never read */
    TA__REGION_STACK = 128,   /* [stack] */
    TA__REGION_BRK = 256,     /* [heap] */
    TA__REGION_DELETED = 512, /* live: of a file that is not there under its name any more */
};

/* A mapping. Sorted by address, without overlap. */
struct ta__region {
    uint64_t start, end;
    uint64_t file_offset; /* of `start` in the file that is mapped */
    uint64_t stored;      /* core: where the contents begin in the core; bytes of them */
    uint64_t stored_bytes;
    uint32_t flags;
    uint32_t path;           /* offset into target->texts, 0 = "" */
    uint32_t name;           /* the same: what else the mapping is called, such as [stack] */
    uint64_t rss, swap, pss; /* live: as smaps says; bytes */
};

/* General registers: as many words as could hold a pointer. */
enum { TA__REGISTERS = 34 };
struct ta__target_thread {
    uint32_t tid;
    uint32_t register_count; /* 0: not known */
    uint64_t sp, ip, tls;    /* tls: the thread pointer; 0 = not known */
    uint64_t registers[TA__REGISTERS];
    char name[16];
};

/* A loaded object: what is mapped of one file, from its ELF header on. */
struct ta__object_file {
    uint64_t start, end, bias; /* bias: run-time address minus address in the file */
    uint64_t phdr;             /* address of the program headers; 0 = not found */
    uint32_t phdr_count;
    uint32_t path; /* text */
    uint32_t build_id_bytes;
    uint8_t build_id[64];
};

struct ta__target;
struct ta__target_operations {
    /* Reads up to `bytes` from `address` on, as far as they are there in one go: how many; 0 = nothing is there. */
    size_t (*read)(struct ta__target *target, uint64_t address, void *buffer, size_t bytes);
};

/* What was found out of pages ahead of a question (ta__target_pages), by number of the page. */
enum { TA__STATES_AHEAD = 1024 };
struct ta__page_states {
    uint64_t first;
    size_t count;
    uint8_t states[TA__STATES_AHEAD];
};

struct ta__target {
    const struct ta__target_operations *operations;
    int is_core;
    uint32_t pid;   /* as the reader sees it */
    uint32_t inner; /* as the process sees itself: another number in a container */
    char *texts;
    size_t text_length, text_capacity;
    struct ta__region *regions;
    size_t region_count, region_capacity;
    struct ta__target_thread *threads;
    size_t thread_count, thread_capacity;
    struct ta__object_file *objects;
    size_t object_count, object_capacity;
    uint32_t program;                      /* text: the executable's path */
    uint32_t command;                      /* text */
    uint64_t entry_phdr, entry_phdr_count; /* auxiliary vector: the program's headers */
    uint64_t on_first_stack;               /* … and an address on the stack that the kernel gave it; 0 = not known */
    uint32_t signal;                       /* core: what ended it; 0 = not known */
    int has_fault_address;                 /* an access failed there: 0 is an address, too */
    uint64_t fault_address;
    uint64_t file_bytes, expected_bytes; /* core: as it is, and as its headers say it should be */
    uint64_t time_ns;                    /* core: when it was written */
    uint64_t page_table_bytes, status_swap;
    uint64_t held_ns;

    int memory_descriptor;  /* live: /proc/PID/mem; core: the file */
    int pagemap_descriptor; /* live; -1 = not to be had */
    int is_held;
    void *hold;                   /* hold.c */
    struct ta__target_copy *copy; /* target_copy.c: room for one, or NULL */
    int is_copied;                /* what is read is read from it */
    struct ta__page_cache *cache;
    struct ta__page_states states;
    char root[64]; /* live: "/proc/PID/root", where paths of the process begin; "" = the reader's own */
};

/* "1234" or a path. 0, or -1 with the error set. */
TA_NODISCARD int ta__target_open(struct ta__target *target, const char *what);
void ta__target_close(struct ta__target *target);
/* The parts: for a number, and for a file. */
TA_NODISCARD int ta__target_open_process(struct ta__target *target, pid_t process);
TA_NODISCARD int ta__target_open_core(struct ta__target *target, const char *path);
/* Finds the loaded objects by their ELF headers; after the regions are known. */
TA_NODISCARD int ta__target_find_objects(struct ta__target *target);
/* Live: the mappings as they are now. */
TA_NODISCARD int ta__target_refresh(struct ta__target *target, int with_sizes);

/* ---- hold.c: live processes held still --------------------------------------------------------------------------- */

/* Stops every thread and reads their registers. 0, or -1 with the error set; then none is held. */
TA_NODISCARD int ta__target_hold(struct ta__target *target);
/* Threads as whoever holds the process says them: given_registers.c. */
TA_NODISCARD int ta__target_give_registers(struct ta__target *target, const char *text);
/* Lets one thread go on for a moment while the others are held: it may come out of what it is in. 0 when it stands still
 * again, with fresh registers. */
TA_NODISCARD int ta__target_nudge(struct ta__target *target, size_t thread, unsigned microseconds);
void ta__target_release(struct ta__target *target);
/* Is the thread gone? A main thread that ended before the others stays as a shell, and is. */
int ta__target_has_ended(const struct ta__target *target, pid_t tid);

/* ---- target_copy.c: the memory of a process that is held, copied ------------------------------------------------- */

/* Before it is held, and where the sizes of its mappings are known (ta__target_refresh): room for a copy, at most half of
 * what the machine has left. */
void ta__target_make_room(struct ta__target *target);
/* 1: from now on all is read from the copy, the process may go on. 0: there is no room for it, nothing changed. */
int ta__target_copy(struct ta__target *target);
void ta__target_drop_copy(struct ta__target *target);
/* For ta__target_pages: how many of the pages from `address` on are in one mapping, or in none; and whether the copy knew
 * what they were. */
size_t ta__target_copied_pages(const struct ta__target *target, uint64_t address, size_t count, uint8_t *states,
                               int *is_known);

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* All of it, or -1 (no error is set: callers know what it was for). */
TA_NODISCARD int ta__target_read(struct ta__target *target, uint64_t address, void *buffer, size_t bytes);
/* The same for anonymous memory, part of which was never touched: that reads as zero and is left untouched, so that
 * looking costs the process nothing. */
TA_NODISCARD int ta__target_read_sparse(struct ta__target *target, uint64_t address, void *buffer, size_t bytes);
/* Through a small cache: for single words and texts, here and there. */
TA_NODISCARD int ta__target_peek(struct ta__target *target, uint64_t address, void *buffer, size_t bytes);
TA_NODISCARD int ta__target_word(struct ta__target *target, uint64_t address, uint64_t *word);
TA_NODISCARD int ta__target_half(struct ta__target *target, uint64_t address, uint32_t *half);
/* A text of at most `room` - 1 bytes; -1 when it cannot be read. */
TA_NODISCARD int ta__target_text(struct ta__target *target, uint64_t address, char *text, size_t room);
/* How many bytes from an address on are there in one piece; core: are in it. */
uint64_t ta__target_extent(const struct ta__target *target, uint64_t address);
/* Is all of it mapped, whether or not it can be read? */
int ta__target_is_mapped(const struct ta__target *target, uint64_t start, uint64_t end);
/* How many bytes of it can be read; live: all. */
uint64_t ta__target_stored(const struct ta__target *target, uint64_t start, uint64_t end);
/* What was read may be of the past. */
void ta__target_forget(struct ta__target *target);

/* What a page is, for `count` pages from `address` on. Core: PRESENT for all that it holds. */
enum { TA__PAGE_PRESENT = 1, TA__PAGE_SWAPPED = 2, TA__PAGE_FILE = 4, TA__PAGE_ALONE = 8 /* nobody else maps it */ };
void ta__target_pages(struct ta__target *target, uint64_t address, size_t count, uint8_t *states);

/* The mapping of an address, or NULL; and the first that ends above it: an index, region_count when there is none. */
const struct ta__region *ta__target_region(const struct ta__target *target, uint64_t address);
size_t ta__target_region_from(const struct ta__target *target, uint64_t address);
const struct ta__object_file *ta__target_object(const struct ta__target *target, uint64_t address);

/* ---- for the two kinds of target --------------------------------------------------------------------------------- */

const char *ta__target_string(const struct ta__target *target, uint32_t text);
/* The text's place; 0 for "" and without memory, where the text is lost and nothing else. */
uint32_t ta__target_keep(struct ta__target *target, const char *text, size_t length);
struct ta__region *ta__target_add_region(struct ta__target *target);
struct ta__target_thread *ta__target_add_thread(struct ta__target *target);
/* From the words of the kernel's structure for the machine: registers, sp, ip, tls. */
void ta__target_set_registers(struct ta__target_thread *thread, const void *registers, size_t bytes);
void ta__target_set_auxiliary(struct ta__target *target, const uint64_t *words, size_t count);
/* A file that the process has mapped, opened where the process would find it; -1 when it is gone. */
int ta__target_open_file(const struct ta__target *target, const char *path);
/* Of a mapping, from the file that is mapped: how many bytes there were. */
size_t ta__target_read_file(const struct ta__target *target, const struct ta__region *region, uint64_t address,
                            void *buffer, size_t bytes);

#endif
