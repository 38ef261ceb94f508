/* memory.c: see memory.h. The only file that maps memory for our own tables. */
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/atomics.h"

static struct {
    size_t mapped;       /* bytes reserved now; any thread, relaxed */
    long fail_countdown; /* tests only: 0 = off */
    int fail_sticky;
} memory;

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

void *ta__memory_map(size_t bytes)
{
    if (failure_injected())
        return NULL;
    int saved_errno = errno;
    void *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    /* Tables are large and touched here and there: where the system makes every page it can a huge one, each thread's
     * would cost two MiB apiece. */
    if (address != MAP_FAILED)
        madvise(address, bytes, MADV_NOHUGEPAGE);
    errno = saved_errno;
    if (address == MAP_FAILED)
        return NULL;
    ta__add_relaxed(&memory.mapped, bytes);
    return address;
}

void ta__memory_unmap(void *address, size_t bytes)
{
    if (address == NULL)
        return;
    int saved_errno = errno;
    munmap(address, bytes);
    errno = saved_errno;
    __atomic_sub_fetch(&memory.mapped, bytes, __ATOMIC_RELAXED);
}

void *ta__memory_grow(void *address, size_t old_bytes, size_t new_bytes)
{
    if (failure_injected())
        return NULL;
    int saved_errno = errno;
    void *grown = mremap(address, old_bytes, new_bytes, MREMAP_MAYMOVE);
    errno = saved_errno;
    if (grown == MAP_FAILED)
        return NULL;
    ta__add_relaxed(&memory.mapped, new_bytes - old_bytes);
    return grown;
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
    madvise(address, bytes, MADV_DONTNEED);
    errno = saved_errno;
}

/* The number that follows `label` in a file of /proc; 0 when it cannot be read. */
static size_t number_in(const char *path, const char *label)
{
    char text[4096];
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return 0;
    ssize_t length = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    text[length > 0 ? length : 0] = '\0';
    const char *at = strstr(text, label);
    if (at == NULL)
        return 0;
    size_t number = 0;
    for (at += strlen(label); *at == ' ' || *at == '\t'; at++)
        ;
    for (; *at >= '0' && *at <= '9'; at++)
        number = number * 10 + (size_t)(*at - '0');
    return number;
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

/* What is left of a limit; `used` in KiB as /proc/self/status says it. */
static size_t left_of(int resource, const char *used)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    size_t bytes = number_in("/proc/self/status", used) * 1024;
    return limit.rlim_cur > bytes ? limit.rlim_cur - bytes : 0;
}

TA_INLINE size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t ta__memory_left(void)
{
    int saved_errno = errno;
    size_t space = left_of(RLIMIT_AS, "VmSize:");
    size_t writable = left_of(RLIMIT_DATA, "VmData:"); /* since Linux 4.7 not the heap alone */
    errno = saved_errno;
    return smaller(space, writable);
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
