/* memory.c: see memory.h. The only file that maps memory for our own tables. */
#include "base/memory.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/mappings.h"
#include "base/small_file.h"

static struct {
    size_t mapped;       /* bytes reserved now; any thread, relaxed */
    long fail_countdown; /* tests only: 0 = off */
    int fail_sticky;
} memory;

/* Every mapping, so that a reader from outside can tell our tables from the program's memory. An entry is taken by its
 * address and completed by its size; 0 = free. Few are needed by most programs: further chunks are mapped when they are. */
enum { REGIONS_AT_ONCE = 256, CHUNKS_MOST = 256 };
struct region {
    uintptr_t address;
    size_t bytes;
};
static struct region first_regions[REGIONS_AT_ONCE];
static struct region *region_chunks[CHUNKS_MOST] = {first_regions}; /* any thread; release after the chunk */
static uint32_t regions_used;                                       /* entries ever used; relaxed */

static struct region *region_at(uint32_t index)
{
    struct region *chunk = ta__load_acquire(&region_chunks[index / REGIONS_AT_ONCE]);
    return chunk == NULL ? NULL : &chunk[index % REGIONS_AT_ONCE];
}

static void add_chunk(uint32_t chunk)
{
    struct region *none = NULL;
    size_t bytes = REGIONS_AT_ONCE * sizeof *none;
    void *fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return;
    *(struct region *)fresh = (struct region){(uintptr_t)fresh, bytes}; /* it is one itself */
    if (!ta__cas_acq_rel(&region_chunks[chunk], &none, (struct region *)fresh))
        munmap(fresh, bytes);
}

static void region_put(uintptr_t address, size_t bytes)
{
    for (uint32_t i = 0; i < REGIONS_AT_ONCE * CHUNKS_MOST; i++) {
        uintptr_t none = 0;
        if (region_at(i) == NULL)
            add_chunk(i / REGIONS_AT_ONCE);
        struct region *region = region_at(i);
        if (region == NULL)
            return;
        if (ta__load_relaxed(&region->address) != 0 || !ta__cas_relaxed(&region->address, &none, address))
            continue;
        ta__store_relaxed(&region->bytes, bytes);
        uint32_t used = ta__load_relaxed(&regions_used);
        while (used <= i && !ta__cas_relaxed(&regions_used, &used, i + 1))
            ;
        return;
    }
}

static struct region *region_of(uintptr_t address)
{
    uint32_t used = ta__load_relaxed(&regions_used);
    for (uint32_t i = 0; i < used; i++) {
        struct region *region = region_at(i);
        if (region != NULL && ta__load_relaxed(&region->address) == address)
            return region;
    }
    return NULL;
}

static void region_take(uintptr_t address)
{
    struct region *region = region_of(address);
    if (region == NULL)
        return;
    ta__store_relaxed(&region->bytes, (size_t)0);
    ta__store_release(&region->address, (uintptr_t)0);
}

struct ta__fact ta__facts_memory[] = {
    TA__FACT_AT("regions.chunks", region_chunks),
    TA__FACT("regions.chunk", REGIONS_AT_ONCE),
    TA__FACT_AT("regions.used", regions_used),
    TA__FACT("region.bytes", sizeof(struct region)),
    TA__FACT_FIELD("region.address", struct region, address),
    TA__FACT_FIELD("region.size", struct region, bytes),
    TA__FACTS_END,
};

static int failure_injected(void)
{
    if (TA_LIKELY(ta__load_relaxed(&memory.fail_countdown) == 0))
        return 0;
    if (ta__load_relaxed(&memory.fail_countdown) > 1) {
        __atomic_sub_fetch(&memory.fail_countdown, 1, __ATOMIC_RELAXED);
        return 0;
    }
    if (!memory.fail_sticky)
        ta__store_relaxed(&memory.fail_countdown, 0);
    return 1;
}

/* The pages go, those of a program that locked all of its memory (mlockall), too: of tables they need not be locked. */
static void drop_pages(void *address, size_t bytes)
{
    if (madvise(address, bytes, MADV_DONTNEED) != 0 && errno == EINVAL && syscall(SYS_munlock, address, bytes) == 0)
        madvise(address, bytes, MADV_DONTNEED);
}

/* Nobody may use it at first: where the program locks what is mapped from now on, all of it would come at once. Tables are
 * large and touched here and there: where the system makes every page it can a huge one, each thread's would cost two MiB
 * apiece. */
static void *reserve(size_t bytes)
{
    void *address = ta__mapping_make(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0,
                                     TA__MAPPED_FOR_TABLES);
    if (address == MAP_FAILED)
        return NULL;
    drop_pages(address, bytes);
    madvise(address, bytes, MADV_NOHUGEPAGE);
    if (mprotect(address, bytes, PROT_READ | PROT_WRITE) == 0)
        return address;
    (void)ta__mapping_drop(address, bytes);
    return NULL;
}

void *ta__memory_map(size_t bytes)
{
    if (failure_injected())
        return NULL;
    int saved_errno = errno;
    void *address = reserve(bytes);
    errno = saved_errno;
    if (address == NULL)
        return NULL;
    ta__add_relaxed(&memory.mapped, bytes);
    region_put((uintptr_t)address, bytes);
    return address;
}

void ta__memory_unmap(void *address, size_t bytes)
{
    if (address == NULL)
        return;
    int saved_errno = errno;
    region_take((uintptr_t)address); /* before another mapping can have the place */
    (void)ta__mapping_drop(address, bytes);
    errno = saved_errno;
    __atomic_sub_fetch(&memory.mapped, bytes, __ATOMIC_RELAXED);
}

/* ThreadSanitizer follows mmap and munmap, but no mremap: where memory moved, it takes the old place's next owner for a
 * race with its first. Its build moves memory by hand. */
static void *remap(void *address, size_t old_bytes, size_t new_bytes)
{
#if defined(__SANITIZE_THREAD__)
    void *moved = mmap(NULL, new_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (moved != MAP_FAILED) {
        memcpy(moved, address, old_bytes);
        munmap(address, old_bytes);
    }
    return moved;
#else
    return ta__system_mremap(address, old_bytes, new_bytes, MREMAP_MAYMOVE, NULL);
#endif
}

void *ta__memory_grow(void *address, size_t old_bytes, size_t new_bytes)
{
    if (failure_injected())
        return NULL;
    int saved_errno = errno;
    region_take((uintptr_t)address);
    void *grown = remap(address, old_bytes, new_bytes);
    errno = saved_errno;
    region_put((uintptr_t)(grown != MAP_FAILED ? grown : address), grown != MAP_FAILED ? new_bytes : old_bytes);
    if (grown == MAP_FAILED)
        return NULL;
    ta__mapping_forget(address, old_bytes);
    ta__mapping_note(grown, new_bytes, TA__MAPPED_FOR_TABLES);
    ta__add_relaxed(&memory.mapped, new_bytes - old_bytes);
    return grown;
}

void ta__memory_shrink(void *address, size_t old_bytes, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t kept = (bytes + page - 1) & ~(page - 1);
    if (address == NULL || kept >= old_bytes)
        return;
    int saved_errno = errno;
    struct region *region = region_of((uintptr_t)address);
    if (region != NULL)
        ta__store_relaxed(&region->bytes, kept);
    ta__mapping_cut(address, kept, old_bytes);
    errno = saved_errno;
    __atomic_sub_fetch(&memory.mapped, old_bytes - kept, __ATOMIC_RELAXED);
}

void ta__memory_populate(void *address, size_t bytes)
{
    enum { POPULATE_WRITE = 23 }; /* MADV_POPULATE_WRITE, which older headers lack */
    int saved_errno = errno;
    madvise(address, bytes, POPULATE_WRITE);
    errno = saved_errno;
}

void ta__memory_reset(void *address, size_t bytes)
{
    int saved_errno = errno;
    drop_pages(address, bytes);
    errno = saved_errno;
}

void ta__memory_zero(void *address, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)address, end = begin + bytes;
    uintptr_t whole = (begin + page - 1) & ~(page - 1), whole_end = end & ~(page - 1);
    if (whole >= whole_end) {
        memset(address, 0, bytes);
        return;
    }
    memset(address, 0, whole - begin);
    ta__memory_reset((void *)whole, whole_end - whole);
    memset((void *)whole_end, 0, end - whole_end);
}

/* The number that follows `label` in a file of /proc; 0 when it cannot be read. */
static size_t number_in(const char *path, const char *label)
{
    char text[4096];
    ta__small_file(path, text, sizeof text);
    const char *at = ta__behind(text, label);
    return at == NULL ? 0 : ta__decimal_at(at);
}

size_t ta__memory_promised(const char *overcommit, const char *meminfo)
{
    enum { NEVER = 2, SHARE = 16 };
    if (number_in(overcommit, "") != NEVER)
        return SIZE_MAX;
    size_t limit = number_in(meminfo, "CommitLimit:");
    size_t promised = number_in(meminfo, "Committed_AS:");
    return limit > promised ? (limit - promised) / SHARE * 1024 : 0;
}

size_t ta__memory_used(int resource)
{
    int saved_errno = errno;
    /* Since Linux 4.7 all private writable memory counts as data, not the heap alone. */
    size_t kibibytes = number_in("/proc/self/status", resource == RLIMIT_AS ? "VmSize:" : "VmData:");
    errno = saved_errno;
    return kibibytes * 1024;
}

static size_t left_of(int resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    size_t used = ta__memory_used(resource);
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

TA_INLINE size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t ta__memory_left(void)
{
    int saved_errno = errno;
    size_t space = left_of(RLIMIT_AS);
    size_t writable = left_of(RLIMIT_DATA);
    errno = saved_errno;
    return smaller(space, writable);
}

static int is_limit_below(int resource, size_t bytes)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur < bytes; /* none is the largest number */
}

int ta__memory_is_limited_to(size_t bytes)
{
    int saved_errno = errno;
    int is_limited = is_limit_below(RLIMIT_AS, bytes) || is_limit_below(RLIMIT_DATA, bytes);
    errno = saved_errno;
    return is_limited;
}

size_t ta__memory_room(void)
{
    int saved_errno = errno;
    size_t promised = ta__memory_promised("/proc/sys/vm/overcommit_memory", "/proc/meminfo");
    errno = saved_errno;
    return smaller(ta__memory_left(), promised);
}

size_t ta__memory_mapped(void)
{
    return ta__load_relaxed(&memory.mapped);
}

size_t ta__memory_resident(const void *address, size_t bytes)
{
    enum { CHUNK_PAGES = 4096 };
    unsigned char residence[CHUNK_PAGES];
    int saved_errno = errno;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t resident = 0;
    const char *at = address;
    const char *end = at + bytes;
    while (at < end) {
        size_t length = (size_t)(end - at);
        if (length > CHUNK_PAGES * page)
            length = CHUNK_PAGES * page;
        if (mincore((void *)(uintptr_t)at, length, residence) != 0)
            break;
        for (size_t i = 0; i < (length + page - 1) / page; i++)
            resident += (residence[i] & 1) ? page : 0;
        at += length;
    }
    errno = saved_errno;
    return resident;
}

void ta__memory_inject_failure(long nth, int sticky)
{
    memory.fail_sticky = sticky;
    ta__store_relaxed(&memory.fail_countdown, nth);
}
