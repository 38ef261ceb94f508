/* truth.c: loaded into programs beside tracealloc. Allocates and frees from a function named `ours` whenever the program
 * reads, writes or waits, and writes down what of that lives in a file that it shares with the test: one row for each
 * program that a process is. A row is written after the call it is about, so that it may be one block behind. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ROWS = 60000, KEPT = 300 };
struct row {
    int64_t pid, bytes, blocks, is_forked;
    char program[32];
};
static struct page {
    int64_t count;
    struct row rows[ROWS];
} * page;
static struct row *mine;
static struct row own; /* of this process: what a child begins with */
static struct {
    void *block;
    size_t size;
} kept[KEPT];
static unsigned seed = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline, visibility("default"))) void *ours(size_t size)
{
    void *volatile block = malloc(size);
    return block;
}

static void claim(int is_forked)
{
    int64_t at = __atomic_fetch_add(&page->count, 1, __ATOMIC_SEQ_CST);
    if (at >= ROWS)
        abort();
    own.pid = getpid();
    own.is_forked = is_forked;
    page->rows[at] = own;
    mine = &page->rows[at];
    seed += (unsigned)at * 7919;
}

static void step(unsigned rounds)
{
    int saved_errno = errno;
    if (page == NULL || pthread_mutex_trylock(&lock) != 0)
        return;
    for (unsigned i = 0; i < rounds; i++) {
        seed = seed * 1103515245u + 12345u;
        unsigned slot = (seed >> 16) % KEPT;
        if (kept[slot].block != NULL) {
            free(kept[slot].block);
            kept[slot].block = NULL;
            own.bytes -= (int64_t)kept[slot].size;
            own.blocks--;
        } else {
            kept[slot].size = 1 + (seed >> 8) % 2000;
            kept[slot].block = ours(kept[slot].size);
            own.bytes += (int64_t)kept[slot].size;
            own.blocks++;
        }
        mine->bytes = own.bytes;
        mine->blocks = own.blocks;
    }
    pthread_mutex_unlock(&lock);
    errno = saved_errno;
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    claim(1);
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("TRUTH");
    int file = name == NULL ? -1 : open(name, O_RDWR | O_CLOEXEC);
    if (file < 0 || strcmp(program_invocation_short_name, "tracealloc") == 0)
        return;
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    strncpy(own.program, program_invocation_short_name, sizeof own.program - 1); /* now: nginx writes over it */
    claim(0);
    pthread_atfork(before_fork, after_fork, in_child);
    step(100);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t read(int file, void *bytes, size_t count)
{
    static __typeof__(&read) next;
    next = next != NULL ? next : NEXT(read);
    step(3);
    return next(file, bytes, count);
}

ssize_t write(int file, const void *bytes, size_t count)
{
    static __typeof__(&write) next;
    next = next != NULL ? next : NEXT(write);
    step(3);
    return next(file, bytes, count);
}

ssize_t recv(int file, void *bytes, size_t count, int flags)
{
    static __typeof__(&recv) next;
    next = next != NULL ? next : NEXT(recv);
    step(3);
    return next(file, bytes, count, flags);
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
    static __typeof__(&writev) next;
    next = next != NULL ? next : NEXT(writev);
    step(3);
    return next(file, parts, count);
}

int epoll_wait(int file, struct epoll_event *events, int most, int timeout)
{
    static __typeof__(&epoll_wait) next;
    next = next != NULL ? next : NEXT(epoll_wait);
    step(3);
    return next(file, events, most, timeout);
}
