/* mmap_names.c: mmap, munmap and mremap as names of the library: who maps anonymous memory is noted (base/mappings.h), with
 * a few frames of the stack. Everything else is the kernel's: addresses, flags, errors.
 *
 * A call costs some hundred instructions more, beside the thousands of the system call and of the pages that it brings. No
 * lock, no memory, any thread, any signal handler, also before the library is set up and in a child of vfork. What libc maps for itself
 * (stacks of threads, libraries) does not come here; nor does what a program asks the kernel for without libc. */
#include "snapshot/triggers/mmap_names.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

#include "alloc/alloc.h"
#include "alloc/entry.h"
#include "base/atomics.h"
#include "base/hash.h"
#include "base/mappings.h"
#include "snapshot/triggers/stack_step.h"
#include "tracealloc.h"

static struct {
    uint64_t hash; /* 0 = free; whose frames follow, once is_whole */
    uint32_t is_whole;
    struct ta__mmap_site site;
} sites[TA__SITES_MOST];

const struct ta__mmap_site *ta__mmap_site(uint32_t site)
{
    return site > 0 && site < TA__SITES_MOST && ta__load_acquire(&sites[site].is_whole) ? &sites[site].site : NULL;
}

#if TRACEALLOC_OVERRIDE && !defined(__SANITIZE_THREAD__)

/* The thread's own stack, and of it only what lies above the calling frame: nothing else is looked at. */
static int word_of_own_stack(uint64_t address, uint64_t *word)
{
    const struct ta__thread *self = ta__self;
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    if (self == NULL || self == &ta__thread_none || address < here || address < self->own_low ||
        address + 8 > self->own_high || (address & 7) != 0)
        return 0;
    *word = *(const uint64_t *)(uintptr_t)address;
    return 1;
}

/* The number of the stack; 0 when there are too many. */
static uint32_t site_of(struct ta__caller caller)
{
    struct ta__mmap_site site = {.frames = {caller.ip}};
    struct ta__place place = {.ip = caller.ip, .sp = caller.sp, .fp = caller.fp};
    for (unsigned i = 1; i < TA__SITE_FRAMES && ta__place_step(&place, word_of_own_stack); i++)
        site.frames[i] = place.ip;
    uint64_t hash = ta__hash_bytes(&site, sizeof site) | 1;
    for (uint32_t tries = 0; tries < 16; tries++) {
        uint32_t at = (uint32_t)((hash >> 32) + tries) % TA__SITES_MOST;
        uint64_t present = ta__load_relaxed(&sites[at].hash);
        if (at == 0)
            continue;
        if (present == 0 && ta__cas_acq_rel(&sites[at].hash, &present, hash)) {
            sites[at].site = site;
            ta__store_release(&sites[at].is_whole, 1u);
            return at;
        }
        if (present == hash)
            return at;
    }
    return 0;
}

/* A look at the rules of frames may come to places that ask for memory; then mmap is called again from here. */
static TA_THREAD_LOCAL int is_noting;

static void note(void *made, size_t length, struct ta__caller caller)
{
    int saved_errno = errno;
    uint32_t site = 0;
    if (!is_noting && ta__process_is_ready()) {
        is_noting = 1;
        site = site_of(caller);
        is_noting = 0;
    }
    ta__mapping_note(made, length, TA__MAPPED_BY_PROGRAM + site);
    errno = saved_errno;
}

TA_ENTRY void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    struct ta__caller caller = TA__CALLER();
    void *made = ta__system_mmap(address, length, protection, flags, file, offset);
    if (made != MAP_FAILED && (flags & MAP_ANONYMOUS) != 0)
        note(made, length, caller);
    return made;
}

#if defined(__GLIBC__) /* musl has one name for both */
TA_API void *mmap64(void *address, size_t length, int protection, int flags, int file, off64_t offset)
    __attribute__((alias("mmap"), nothrow));
#endif

TA_API int munmap(void *address, size_t length)
{
    return ta__mapping_drop(address, length);
}

TA_ENTRY void *mremap(void *address, size_t old_length, size_t length, int flags, ...)
{
    struct ta__caller caller = TA__CALLER();
    va_list rest;
    va_start(rest, flags);
    void *to = (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0 ? va_arg(rest, void *) : NULL;
    va_end(rest);
    void *moved = ta__system_mremap(address, old_length, length, flags, to);
    if (moved == MAP_FAILED)
        return moved;
    if (old_length != 0 && (flags & MREMAP_DONTUNMAP) == 0)
        ta__mapping_forget(address, old_length);
    note(moved, length, caller);
    return moved;
}

#endif
