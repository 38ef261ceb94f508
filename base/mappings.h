/* mappings.h: who mapped which memory: our tables, the allocator, or the program itself (snapshot/triggers/mmap_names.c).
 *
 * What the kernel lists is memory without an owner, and neighbours become one. Who maps says so here, without a lock and
 * in any state of the process; who describes the process later (snapshot/triggers/memory_kinds.c) compares the two lists. A
 * part that is unmapped from the middle is not noticed here: the kernel's list says what is there, this one whose it is.
 * When there are too many, some have no owner. A child after fork has its own copy. */
#ifndef TA_BASE_MAPPINGS_H
#define TA_BASE_MAPPINGS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/attributes.h"

enum { TA__MAPPED_BY_NOBODY, TA__MAPPED_FOR_TABLES, TA__MAPPED_FOR_BLOCKS, TA__MAPPED_BY_PROGRAM /* plus a site */ };

struct ta__mapping {
    uintptr_t start;
    size_t length;
    uint32_t who;
};

void ta__mapping_note(const void *start, size_t length, uint32_t who);
void ta__mapping_forget(const void *start, size_t length);
/* At most `most` of them, by address; answers how many were stored. */
size_t ta__mappings_list(struct ta__mapping *list, size_t most);

/* The kernel's own calls: libc's names may be the library's (mmap_names.c), which are for the program. errno as libc.
 * ThreadSanitizer must see what is mapped: in its build they are the names, and the library has none. */
TA_INLINE void *ta__system_mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
#if defined(__SANITIZE_THREAD__)
    return mmap(address, length, protection, flags, file, offset);
#else
    return (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
#endif
}

TA_INLINE int ta__system_munmap(void *address, size_t length)
{
#if defined(__SANITIZE_THREAD__)
    return munmap(address, length);
#else
    return (int)syscall(SYS_munmap, address, length);
#endif
}

TA_INLINE void *ta__system_mremap(void *address, size_t old_length, size_t length, int flags, void *to)
{
    return (void *)syscall(SYS_mremap, address, old_length, length, flags, to);
}

/* The same, noted. */
void *ta__mapping_make(void *address, size_t length, int protection, int flags, int file, off_t offset, uint32_t who);
int ta__mapping_drop(void *address, size_t length);
/* Of a mapping of `length` bytes only the first `kept`, whole pages, stay. */
void ta__mapping_cut(void *address, size_t kept, size_t length);

#endif
