/* tracked_pool.c: memory that tracealloc did not allocate, in accounts of its own: a pool carved out of one mmap, and
 * buffers on a device that have handles, not addresses.
 *
 *      cc tracked_pool.c -ltracealloc -o tracked_pool && ./tracked_pool
 *
 * ta_track says "so many bytes at this address, asked for by my caller", ta_untrack takes it back. The address may be
 * any number that is unique in its domain. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include <tracealloc.h>
#include <tracealloc/domain.h>

enum { POOL = 10, DEVICE = 11 };

/* ---- a pool: one mapping, pieces of one size --------------------------------------------------------------------- */

enum { PIECE = 4096, PIECES = 64 };

static struct {
    char *memory;
    void *free_pieces[PIECES];
    int free_count;
} pool;

static int pool_open(void)
{
    pool.memory = mmap(NULL, PIECE * PIECES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pool.memory == MAP_FAILED)
        return -1;
    for (int i = 0; i < PIECES; i++)
        pool.free_pieces[pool.free_count++] = pool.memory + i * PIECE;
    return 0;
}

static void *pool_take(void)
{
    if (pool.free_count == 0)
        return NULL;
    void *piece = pool.free_pieces[--pool.free_count];
    ta_track(POOL, (uintptr_t)piece, PIECE);
    return piece;
}

static void pool_give(void *piece)
{
    ta_untrack(POOL, (uintptr_t)piece);
    pool.free_pieces[pool.free_count++] = piece;
}

/* ---- a device: handles count up ---------------------------------------------------------------------------------- */

static uint32_t next_handle = 1;

static uint32_t device_buffer(size_t size)
{
    uint32_t handle = next_handle++;
    ta_track(DEVICE, handle, size);
    return handle;
}

static void device_release(uint32_t handle)
{
    ta_untrack(DEVICE, handle);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static void report(uint32_t domain)
{
    struct ta_domain_stats stats;
    if (ta_domain_get_stats(domain, &stats, sizeof stats) == 0)
        printf("%-7s %9llu bytes in %llu pieces, at most %llu bytes\n", ta_domain_name(domain),
               (unsigned long long)stats.live_bytes, (unsigned long long)stats.live_blocks,
               (unsigned long long)stats.peak_bytes);
}

int main(void)
{
    if (ta_start(16) != 0 || pool_open() != 0)
        return 1;
    ta_domain_set_name(POOL, "pool");
    ta_domain_set_name(DEVICE, "device");

    void *pieces[10];
    for (int i = 0; i < 10; i++)
        pieces[i] = pool_take();
    for (int i = 0; i < 7; i++)
        pool_give(pieces[i]);

    uint32_t texture = device_buffer(8 << 20);
    uint32_t scratch = device_buffer(1 << 20);
    device_release(scratch);

    report(POOL);
    report(DEVICE);
    printf("the texture was asked for by a stack of %zu frames\n", ta_get_traceback(DEVICE, texture, NULL, 0, NULL));
    return 0;
}
