/* emergency.c: memory for requests that nothing else may serve — a signal handler that interrupted the allocator, the
 * set-up of process or thread, a thread for which no structure could be had.
 *
 * A region of address space, handed out once from below and never taken back: no lock, no list, nothing to corrupt.
 * What is leaked here is bounded by its size, and such requests are rare. Each block has its size in front. */
#include "alloc/alloc.h"

#include "base/atomics.h"
#include "base/memory.h"

enum { REGION_BYTES = 64 << 20 };

static struct {
    uintptr_t start; /* 0 = not yet mapped */
    size_t used;     /* any thread, atomic */
} region;

static uintptr_t region_start(void)
{
    uintptr_t start = ta__load_acquire(&region.start);
    if (start != 0)
        return start;
    void *fresh = ta__memory_map(REGION_BYTES);
    if (fresh == NULL)
        return 0;
    uintptr_t none = 0;
    if (ta__cas_acq_rel(&region.start, &none, (uintptr_t)fresh))
        return (uintptr_t)fresh;
    ta__memory_unmap(fresh, REGION_BYTES);
    return none;
}

void *ta__emergency_allocate(size_t size, size_t alignment)
{
    uintptr_t start = region_start();
    if (alignment < 16)
        alignment = 16;
    if (start == 0 || size > REGION_BYTES / 2 || alignment > REGION_BYTES / 2)
        return NULL;
    size_t bytes = (size + 15 + 16 + alignment) & ~(size_t)15;
    size_t offset = ta__load_relaxed(&region.used);
    do {
        if (bytes > REGION_BYTES - offset)
            return NULL;
    } while (!ta__cas_relaxed(&region.used, &offset, offset + bytes));
    uintptr_t user = (start + offset + 16 + alignment - 1) & ~(alignment - 1);
    ((uint64_t *)user)[-1] = size;
    return (void *)user;
}

int ta__emergency_owns(const void *user)
{
    uintptr_t start = ta__load_relaxed(&region.start);
    return start != 0 && (uintptr_t)user - start < REGION_BYTES;
}

size_t ta__emergency_size(const void *user)
{
    return ((const uint64_t *)user)[-1];
}
