/* test_entry_points.c: every C entry point of the allocator and the rule it follows, seen from outside.
 *
 * Built twice: against the replaced names and, with TEST_TA_NAMES, against the ta_ names. The rules are those of glibc
 * (errno, realloc to zero, overflow, alignment), so the same source linked with libc alone proves the test itself. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "unity.h"
#include "tests/support/names.h"

#if !defined(TEST_TA_NAMES)
/* Newer than the libc of some systems we build on. */
extern void free_sized(void *block, size_t size) __attribute__((weak));
extern void free_aligned_sized(void *block, size_t alignment, size_t size) __attribute__((weak));
extern void cfree(void *block) __attribute__((weak));
#endif

enum { ERRNO_MARK = 4242, PAGE = 4096 };

static const size_t typical_sizes[] = {0,        1,        2,        7,     8,      9,      15,       16,
                                       17,       24,       31,       32,    33,     63,     64,       100,
                                       127,      128,      1000,     1024,  4000,   4080,   4081,     4096,
                                       8192,     10000,    32752,    65536, 100000, 131056, 1u << 17, (1u << 17) + 1,
                                       1u << 20, 3u << 20, 17u << 20};
#define SIZE_COUNT (sizeof typical_sizes / sizeof *typical_sizes)

void setUp(void)
{
    errno = ERRNO_MARK;
}

void tearDown(void)
{
}

static bool is_aligned(const void *block, size_t alignment)
{
    return ((uintptr_t)block & (alignment - 1)) == 0;
}

static bool holds_only(const unsigned char *bytes, unsigned char value, size_t length)
{
    return length == 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, length - 1) == 0);
}

/* A block of `size` bytes must be aligned, report at least the size, and be writable up to what it reports. */
static void check_block(void *block, size_t size, size_t alignment)
{
    TEST_ASSERT_NOT_NULL(block);
    TEST_ASSERT_TRUE_MESSAGE(is_aligned(block, alignment), "misaligned block");
    size_t usable = malloc_usable_size(block);
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(size, usable);
    memset(opaque_pointer(block), 0xA5, usable);
    TEST_ASSERT_TRUE(holds_only(block, 0xA5, usable));
}

static void expect_no_memory(void *block)
{
    int error = errno;
    TEST_ASSERT_NULL(block);
    TEST_ASSERT_EQUAL_INT(ENOMEM, error);
    errno = ERRNO_MARK;
}

/* ---- malloc, free ------------------------------------------------------------------------------------------------ */

static void test_malloc_of_typical_sizes_returns_aligned_writable_blocks(void)
{
    void *blocks[SIZE_COUNT];
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        blocks[i] = malloc(typical_sizes[i]);
        check_block(blocks[i], typical_sizes[i], 16);
    }
    for (size_t i = 0; i < SIZE_COUNT; i++)
        free(blocks[i]);
}

static void test_malloc_of_every_small_size_gives_disjoint_blocks(void)
{
    enum { COUNT = 2100 };
    static unsigned char *blocks[COUNT];
    for (size_t size = 0; size < COUNT; size++) {
        blocks[size] = malloc(size);
        check_block(blocks[size], size, 16);
        memset(blocks[size], (int)(size % 251), malloc_usable_size(blocks[size]));
    }
    for (size_t size = 0; size < COUNT; size++)
        TEST_ASSERT_TRUE(holds_only(blocks[size], (unsigned char)(size % 251), malloc_usable_size(blocks[size])));
    for (size_t size = 0; size < COUNT; size++)
        free(blocks[size]);
}

static void test_malloc_of_zero_returns_unique_pointers(void)
{
    void *blocks[100];
    for (size_t i = 0; i < 100; i++) {
        blocks[i] = malloc(opaque(0));
        TEST_ASSERT_NOT_NULL(blocks[i]);
        for (size_t k = 0; k < i; k++)
            TEST_ASSERT_TRUE(blocks[i] != blocks[k]);
    }
    for (size_t i = 0; i < 100; i++)
        free(blocks[i]);
}

static void test_malloc_that_succeeds_keeps_errno(void)
{
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        void *block = malloc(typical_sizes[i]);
        TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);
        free(block);
        TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);
    }
}

static void test_many_blocks_that_grow_the_heap_keep_errno(void)
{
    enum { COUNT = 20000 };
    static void *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = malloc(64 + (i % 50) * 97);
        TEST_ASSERT_NOT_NULL(blocks[i]);
        TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);
    }
    for (size_t i = 0; i < COUNT; i++) {
        free(blocks[i]);
        TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);
    }
}

static void test_free_of_null_does_nothing(void)
{
    free(opaque_pointer(NULL));

    TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);
}

static void test_malloc_beyond_ptrdiff_max_fails_with_enomem(void)
{
    expect_no_memory(malloc(opaque(SIZE_MAX)));
    expect_no_memory(malloc(opaque(SIZE_MAX - 15)));
    expect_no_memory(malloc(opaque(SIZE_MAX - 16)));
    expect_no_memory(malloc(opaque(SIZE_MAX - 4095)));
    expect_no_memory(malloc(opaque((size_t)PTRDIFF_MAX + 1)));
    expect_no_memory(malloc(opaque((size_t)PTRDIFF_MAX)));
    expect_no_memory(malloc(opaque((size_t)PTRDIFF_MAX - 4096)));
}

/* What the kernel would refuse to libc's malloc must not be promised by a lazily committing one. */
/* The lowest descriptor that is free. */
static int next_descriptor(void)
{
    int descriptor = dup(STDIN_FILENO);
    if (descriptor < 0)
        descriptor = open("/dev/null", O_RDONLY);
    close(descriptor);
    return descriptor;
}

static void test_refused_requests_leave_no_descriptor_open(void)
{
    int before = next_descriptor();
    for (int i = 0; i < 20; i++) {
        free(malloc(opaque((size_t)1 << 46)));
        free(memalign(opaque(64), opaque((size_t)1 << 45)));
        free(malloc(opaque(SIZE_MAX - 4096)));
    }
    TEST_ASSERT_EQUAL_INT(before, next_descriptor());
}

/* In pages; 0: it cannot be told. */
static unsigned long address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return pages;
}

static void test_large_requests_leave_no_mapping(void)
{
    enum { TIMES = 20, KEPT = 4 };
    const size_t size = opaque((size_t)2 << 30);
    unsigned long before = address_space();
    for (int i = 0; i < TIMES; i++)
        free(malloc(size));
    TEST_ASSERT_LESS_THAN_UINT64(before + KEPT * (size / PAGE), address_space());
}

static void test_malloc_of_more_than_any_machine_has_fails_with_enomem(void)
{
    FILE *file = fopen("/proc/sys/vm/overcommit_memory", "r");
    int policy = file != NULL ? fgetc(file) : '0';
    if (file != NULL)
        fclose(file);
    if (policy == '1')
        TEST_IGNORE_MESSAGE("the kernel of this machine promises any size");
    errno = ERRNO_MARK;

    expect_no_memory(malloc(opaque((size_t)1 << 46)));
    expect_no_memory(calloc(opaque((size_t)1 << 23), opaque((size_t)1 << 23)));
    expect_no_memory(realloc(NULL, opaque((size_t)1 << 46)));
    expect_no_memory(memalign(opaque(64), opaque((size_t)1 << 46)));
}

static void test_malloc_of_many_mebibytes_is_wholly_usable(void)
{
    size_t size = opaque((size_t)200 << 20);
    unsigned char *block = opaque_pointer(malloc(size));
    TEST_ASSERT_NOT_NULL(block);
    TEST_ASSERT_TRUE(is_aligned(block, 16));
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(size, malloc_usable_size(block));
    for (size_t i = 0; i < size; i += PAGE)
        block[i] = (unsigned char)(i / PAGE);
    block[size - 1] = 1;
    size_t wrong = 0;
    for (size_t i = 0; i + 1 < size; i += PAGE)
        wrong += block[i] != (unsigned char)(i / PAGE);
    TEST_ASSERT_EQUAL_size_t(0, wrong);
    free(block);
}

/* ---- calloc -------------------------------------------------------------------------------------------------------
 */

static uint64_t distance(const void *one, const void *other)
{
    return (uintptr_t)one > (uintptr_t)other ? (uintptr_t)one - (uintptr_t)other : (uintptr_t)other - (uintptr_t)one;
}

static void test_blocks_on_both_sides_of_gibibytes_are_told_apart_and_freed(void)
{
    enum { FAR_BLOCKS = 2 };
    static const size_t gap = (size_t)9 << 30;
    static const size_t large = (size_t)160 << 20;
    unsigned char *near = malloc(100);
    unsigned char *far[FAR_BLOCKS];
    void *between = malloc(gap); /* never touched: it takes addresses and no memory */
    if (between == NULL) {
        free(near);
        TEST_IGNORE_MESSAGE("there is no room for 9 GiB of addresses");
    }
    uint64_t farthest = 0;
    for (int i = 0; i < FAR_BLOCKS; i++) {
        far[i] = malloc(large);
        TEST_ASSERT_NOT_NULL(far[i]);
        TEST_ASSERT_GREATER_OR_EQUAL_size_t(large, malloc_usable_size(far[i]));
        far[i][0] = far[i][large - 1] = (unsigned char)i;
        if (distance(near, far[i]) > farthest)
            farthest = distance(near, far[i]);
    }
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(gap, malloc_usable_size(between));
    for (int i = 0; i < FAR_BLOCKS; i++) {
        unsigned char *grown = realloc(far[i], large + 4096);
        TEST_ASSERT_NOT_NULL(grown);
        TEST_ASSERT_EQUAL_UINT8(i, grown[0]);
        TEST_ASSERT_EQUAL_UINT8(i, grown[large - 1]);
        free(grown);
    }
    free(between);
    free(near);
    if (farthest <= UINT32_MAX)
        TEST_IGNORE_MESSAGE("the system put all blocks within 4 GiB");
}

static void test_calloc_after_dirty_frees_returns_zeroed_blocks(void)
{
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < SIZE_COUNT; i++) {
            size_t size = typical_sizes[i];
            unsigned char *dirty = malloc(size);
            TEST_ASSERT_NOT_NULL(dirty);
            memset(opaque_pointer(dirty), 0xFF, malloc_usable_size(dirty));
            free(dirty);

            unsigned char *block = calloc(1, size);

            TEST_ASSERT_NOT_NULL(block);
            TEST_ASSERT_TRUE(is_aligned(block, 16));
            TEST_ASSERT_TRUE_MESSAGE(holds_only(block, 0, size), "calloc returned a dirty block");
            free(block);
        }
    }
    TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);
}

static void test_calloc_multiplies_count_and_size(void)
{
    unsigned char *block = calloc(opaque(1000), opaque(37));
    TEST_ASSERT_NOT_NULL(block);
    TEST_ASSERT_TRUE(holds_only(block, 0, 37000));
    check_block(block, 37000, 16);
    free(block);

    void *none = calloc(opaque(0), opaque(10));
    void *empty = calloc(opaque(10), opaque(0));
    TEST_ASSERT_NOT_NULL(none);
    TEST_ASSERT_NOT_NULL(empty);
    TEST_ASSERT_TRUE(none != empty);
    free(none);
    free(empty);
}

static void test_calloc_whose_product_overflows_fails_with_enomem(void)
{
    expect_no_memory(calloc(opaque(SIZE_MAX), opaque(2)));
    expect_no_memory(calloc(opaque(2), opaque(SIZE_MAX)));
    expect_no_memory(calloc(opaque((size_t)1 << 32), opaque((size_t)1 << 32)));
    expect_no_memory(calloc(opaque(((size_t)1 << 32) + 1), opaque((size_t)1 << 32)));
    expect_no_memory(calloc(opaque(SIZE_MAX / 16 + 2), opaque(16)));
    expect_no_memory(calloc(opaque(1), opaque(SIZE_MAX)));
}

/* ---- realloc, reallocarray --------------------------------------------------------------------------------------- */

static void test_realloc_of_null_is_malloc(void)
{
    void *block = realloc(opaque_pointer(NULL), 100);
    check_block(block, 100, 16);
    TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);
    free(block);

    void *empty = realloc(opaque_pointer(NULL), opaque(0));
    TEST_ASSERT_NOT_NULL(empty);
    free(empty);
}

static void test_realloc_to_zero_frees_and_returns_null(void)
{
    void *block = malloc(100);

    void *result = realloc(block, opaque(0));

    TEST_ASSERT_NULL(result);
    TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);
}

static void test_realloc_between_all_pairs_of_sizes_keeps_the_contents(void)
{
    for (size_t from = 0; from < SIZE_COUNT; from++) {
        for (size_t to = 0; to < SIZE_COUNT; to++) {
            size_t old_size = typical_sizes[from];
            size_t new_size = typical_sizes[to];
            if (new_size == 0)
                continue;
            unsigned char *block = malloc(old_size);
            TEST_ASSERT_NOT_NULL(block);
            memset(opaque_pointer(block), 0x5A, old_size);

            unsigned char *moved = realloc(block, new_size);

            TEST_ASSERT_NOT_NULL(moved);
            TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);
            TEST_ASSERT_TRUE(holds_only(moved, 0x5A, old_size < new_size ? old_size : new_size));
            TEST_ASSERT_TRUE(is_aligned(moved, 16));
            TEST_ASSERT_GREATER_OR_EQUAL_size_t(new_size, malloc_usable_size(moved));
            free(moved);
        }
    }
}

static void test_realloc_step_by_step_keeps_every_byte(void)
{
    unsigned char *block = NULL;
    for (size_t size = 1; size <= 70000; size += 1 + size / 40) {
        block = realloc(block, size);
        TEST_ASSERT_NOT_NULL(block);
        block[size - 1] = (unsigned char)(size * 31);
        for (size_t s = 1; s <= size; s += 1 + s / 40)
            TEST_ASSERT_EQUAL_UINT8((unsigned char)(s * 31), block[s - 1]);
    }
    free(block);
}

static void test_realloc_that_fails_leaves_the_block_alone(void)
{
    char *block = malloc(100);
    strcpy(block, "still here");

    expect_no_memory(realloc(block, opaque(SIZE_MAX)));
    expect_no_memory(realloc(block, opaque((size_t)PTRDIFF_MAX)));

    TEST_ASSERT_EQUAL_STRING("still here", block);
    check_block(block, 100, 16);
    free(block);
}

static void test_realloc_of_aligned_blocks_keeps_the_contents(void)
{
    for (size_t alignment = 16; alignment <= (1u << 20); alignment *= 4) {
        unsigned char *block = memalign(alignment, 5000);
        TEST_ASSERT_NOT_NULL(block);
        memset(block, 0x3C, 5000);
        block = realloc(block, 50000);
        TEST_ASSERT_NOT_NULL(block);
        TEST_ASSERT_TRUE(holds_only(block, 0x3C, 5000));
        memset(block, 0x3D, 50000);
        block = realloc(block, 10);
        TEST_ASSERT_NOT_NULL(block);
        TEST_ASSERT_TRUE(holds_only(block, 0x3D, 10));
        free(block);
    }
}

static void test_reallocarray_multiplies_and_refuses_overflow(void)
{
    char *block = reallocarray(NULL, opaque(10), opaque(20));
    check_block(block, 200, 16);
    strcpy(block, "kept");
    block = reallocarray(block, opaque(100), opaque(30));
    TEST_ASSERT_NOT_NULL(block);
    TEST_ASSERT_EQUAL_STRING("kept", block);
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(3000, malloc_usable_size(block));
    TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);

    expect_no_memory(reallocarray(block, opaque((size_t)1 << 33), opaque((size_t)1 << 33)));
    expect_no_memory(reallocarray(block, opaque(SIZE_MAX / 8), opaque(9)));

    TEST_ASSERT_EQUAL_STRING("kept", block);
    TEST_ASSERT_NULL(reallocarray(block, opaque(0), opaque(8)));
}

/* ---- alignment --------------------------------------------------------------------------------------------------- */

static void test_posix_memalign_gives_every_power_of_two(void)
{
    static const size_t sizes[] = {0, 1, 8, 24, 100, 4096, 5000, 70000, 1u << 21};
    for (size_t alignment = sizeof(void *); alignment <= (4u << 20); alignment *= 2) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            void *block = NULL;
            TEST_ASSERT_EQUAL_INT(0, posix_memalign(&block, alignment, sizes[i]));
            check_block(block, sizes[i], alignment);
            free(block);
        }
    }
    TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);
}

static void test_posix_memalign_refuses_bad_alignments_with_einval(void)
{
    static const size_t bad[] = {0, 1, 2, 3, 4, 7, 12, 24, 48, 100, 4097, SIZE_MAX, SIZE_MAX / 2};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        void *untouched = &untouched;
        TEST_ASSERT_EQUAL_INT(EINVAL, posix_memalign(&untouched, opaque(bad[i]), 100));
        TEST_ASSERT_EQUAL_PTR(&untouched, untouched);
        TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);
    }
}

static void test_posix_memalign_without_memory_returns_enomem_and_keeps_errno(void)
{
    void *untouched = &untouched;
    errno = ERRNO_MARK;
    TEST_ASSERT_EQUAL_INT(ENOMEM, posix_memalign(&untouched, 64, opaque(SIZE_MAX - 100)));
    TEST_ASSERT_EQUAL_INT(ENOMEM, posix_memalign(&untouched, 4096, opaque((size_t)PTRDIFF_MAX)));
    TEST_ASSERT_EQUAL_INT(EINVAL, posix_memalign(&untouched, 24, 100));
    TEST_ASSERT_EQUAL_PTR(&untouched, untouched);
    TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);
}

static void test_aligned_alloc_and_memalign_give_every_power_of_two(void)
{
    for (size_t alignment = 1; alignment <= (1u << 20); alignment *= 2) {
        for (size_t size = 1; size <= 300000; size *= 7) {
            void *first = aligned_alloc(alignment, size);
            void *second = memalign(alignment, size);
            check_block(first, size, alignment);
            check_block(second, size, alignment);
            TEST_ASSERT_TRUE(holds_only(first, 0xA5, size));
            free(first);
            free(second);
        }
    }
    TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);
}

static void test_alignments_of_many_mebibytes_are_kept(void)
{
    for (size_t alignment = 2u << 20; alignment <= (256u << 20); alignment *= 2) {
        void *block = memalign(opaque(alignment), 100000);
        check_block(block, 100000, alignment);
        free(block);
    }
}

static void test_many_aligned_blocks_live_together_without_overlap(void)
{
    enum { COUNT = 600 };
    static unsigned char *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        size_t alignment = (size_t)32 << (i % 9);
        blocks[i] = memalign(alignment, 40 + i);
        TEST_ASSERT_NOT_NULL(blocks[i]);
        TEST_ASSERT_TRUE(is_aligned(blocks[i], alignment));
        memset(blocks[i], (int)(i % 253), malloc_usable_size(blocks[i]));
    }
    for (size_t i = 0; i < COUNT; i++)
        TEST_ASSERT_TRUE(holds_only(blocks[i], (unsigned char)(i % 253), malloc_usable_size(blocks[i])));
    for (size_t i = 0; i < COUNT; i++)
        free(blocks[i]);
}

/* As glibc up to 2.37 does for both: rounded up to a power of two, refused only where there is none. */
static void test_memalign_and_aligned_alloc_round_the_alignment_up(void)
{
    static const struct {
        size_t asked, given;
    } pairs[] = {{0, 16}, {3, 16}, {17, 32}, {24, 32}, {100, 128}, {5000, 8192}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        void *first = memalign(opaque(pairs[i].asked), 77);
        void *second = OURS ? aligned_alloc(opaque(pairs[i].asked), 77) : memalign(pairs[i].asked, 77);
        check_block(first, 77, pairs[i].given);
        check_block(second, 77, pairs[i].given);
        free(first);
        free(second);
    }
    errno = ERRNO_MARK;
    TEST_ASSERT_NULL(memalign(opaque(SIZE_MAX), 10));
    TEST_ASSERT_EQUAL_INT(EINVAL, errno);
    errno = ERRNO_MARK;
    TEST_ASSERT_NULL(aligned_alloc(opaque(SIZE_MAX), 10));
    TEST_ASSERT_EQUAL_INT(EINVAL, errno);
}

static void test_aligned_requests_whose_sum_overflows_fail_with_enomem(void)
{
    expect_no_memory(memalign(opaque(4096), opaque(SIZE_MAX - 4096)));
    expect_no_memory(aligned_alloc(opaque(64), opaque(SIZE_MAX - 63)));
    expect_no_memory(memalign(opaque((size_t)1 << 62), opaque(1)));
    expect_no_memory(valloc(opaque(SIZE_MAX - 100)));
    expect_no_memory(pvalloc(opaque(SIZE_MAX - 100)));
    expect_no_memory(pvalloc(opaque(SIZE_MAX)));
}

static void test_valloc_and_pvalloc_give_whole_pages(void)
{
    static const size_t sizes[] = {0, 1, 100, 4095, 4096, 4097, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *plain = valloc(sizes[i]);
        check_block(plain, sizes[i], PAGE);
        free(plain);
        void *padded = pvalloc(sizes[i]);
        check_block(padded, (sizes[i] + PAGE - 1) / PAGE * PAGE, PAGE);
        free(padded);
    }
    TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);
}

/* ---- what a block tells ------------------------------------------------------------------------------------------ */

static void test_malloc_usable_size_of_null_is_zero(void)
{
    TEST_ASSERT_EQUAL_size_t(0, malloc_usable_size(opaque_pointer(NULL)));
    TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);
}

static void test_malloc_usable_size_of_what_is_no_block_is_zero(void)
{
    static const size_t sizes[] = {24, 100, 1000, 5000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *block = malloc(sizes[i]);
        TEST_ASSERT_GREATER_OR_EQUAL_size_t(sizes[i], malloc_usable_size(block));
        memset(block, 0, sizes[i]);
        for (size_t inside = 8; inside < sizes[i]; inside += 8)
            TEST_ASSERT_EQUAL_size_t(0, malloc_usable_size(opaque_pointer(block + inside)));
        free(block);
    }
}

static void test_realloc_within_the_usable_size_keeps_everything_written_there(void)
{
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        unsigned char *block = malloc(typical_sizes[i]);
        size_t usable = malloc_usable_size(block);
        memset(opaque_pointer(block), 0x77, usable);

        block = realloc(block, usable + 1000);

        TEST_ASSERT_NOT_NULL(block);
        TEST_ASSERT_TRUE(holds_only(block, 0x77, usable));
        free(block);
    }
}

/* ---- little memory ------------------------------------------------------------------------------------------------
 */

static size_t address_space_used(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu", &pages) != 1)
        _exit(3);
    fclose(file);
    return (size_t)pages * PAGE;
}

/* In a child: the limit cannot be lifted again by everybody. */
static void exhaust_address_space(void *unused)
{
    (void)unused;
    enum { COUNT = 4096, MEBIBYTE = 1 << 20 };
    static void *blocks[COUNT];
    free(malloc(100));
    size_t limit_bytes = address_space_used() + 512ul * MEBIBYTE;
    struct rlimit limit = {limit_bytes, limit_bytes};
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        _exit(4);

    errno = 0;
    if (malloc(opaque(2048ul * MEBIBYTE)) != NULL || errno != ENOMEM)
        _exit(5);
    size_t held = 0;
    errno = ERRNO_MARK;
    while (held < COUNT) {
        static const size_t sizes[] = {MEBIBYTE, 4 * MEBIBYTE, 100, 40000, MEBIBYTE / 2};
        size_t size = sizes[held % 5];
        blocks[held] = held % 3 == 0 ? calloc(1, opaque(size)) : malloc(opaque(size));
        if (blocks[held] == NULL)
            break;
        if (OURS && errno != ERRNO_MARK) /* what the system refused on the way is nobody's business */
            _exit(11);
        errno = ERRNO_MARK;
        memset(blocks[held++], 1, size < PAGE ? size : PAGE);
    }
    if (held == COUNT)
        _exit(6);
    if (errno != ENOMEM)
        _exit(7);
    if (held < 32)
        _exit(8);
    for (size_t i = 0; i < held; i++)
        free(blocks[i]);
    for (size_t i = 0; i < 32; i++)
        if ((blocks[i] = malloc(MEBIBYTE)) == NULL)
            _exit(9);
    void *small = malloc(100);
    _exit(small != NULL ? 0 : 10);
}

static void test_malloc_under_an_address_space_limit_fails_and_recovers(void)
{
#if defined(TEST_TA_NAMES)
    TEST_IGNORE_MESSAGE("sanitizers need the whole address space");
#endif
    struct child_result result;
    child_run(&result, exhaust_address_space, NULL);

    TEST_ASSERT_EQUAL_STRING("", result.text);
    TEST_ASSERT_EQUAL_INT(0, result.signal);
    TEST_ASSERT_EQUAL_INT(0, result.exit_status);
}

#if !defined(TEST_TA_NAMES)

/* ---- names without a ta_ twin -------------------------------------------------------------------------------------
 */

static void test_names_newer_or_older_than_libc_are_defined_and_free(void)
{
    if (!OURS)
        TEST_IGNORE_MESSAGE("libc alone need not have them");
    TEST_ASSERT_TRUE(free_sized != NULL);
    TEST_ASSERT_TRUE(free_aligned_sized != NULL);
    TEST_ASSERT_TRUE(cfree != NULL);

    errno = ERRNO_MARK;
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        free_sized(malloc(typical_sizes[i]), typical_sizes[i]);
        free_aligned_sized(aligned_alloc(256, typical_sizes[i]), 256, typical_sizes[i]);
        cfree(malloc(typical_sizes[i]));
    }
    free_sized(NULL, 0);
    free_aligned_sized(NULL, 64, 0);
    cfree(NULL);
    TEST_ASSERT_EQUAL_INT(ERRNO_MARK, errno);
}

static void test_functions_of_libc_that_allocate_return_blocks_that_free_takes(void)
{
    char *copy = strdup("a text");
    TEST_ASSERT_EQUAL_STRING("a text", copy);
    copy = realloc(copy, 1000);
    TEST_ASSERT_EQUAL_STRING("a text", copy);
    free(copy);

    char *printed = NULL;
    TEST_ASSERT_EQUAL_INT(3, asprintf(&printed, "%d", 123));
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(4, malloc_usable_size(printed));
    free(printed);

    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen("/proc/self/status", "r");
    TEST_ASSERT_NOT_NULL(file);
    TEST_ASSERT_GREATER_THAN_INT(0, (int)getline(&line, &room, file));
    free(line);
    fclose(file);

    char *path = realpath("/proc/self/exe", NULL);
    TEST_ASSERT_NOT_NULL(path);
    free(path);

    if (OURS) {
        struct ta_health health;
        ta_get_health(&health, sizeof health);
        TEST_ASSERT_EQUAL_UINT64(0, health.foreign_frees);
        TEST_ASSERT_EQUAL_UINT64(0, health.invalid_frees);
    }
}

static void test_mallopt_and_malloc_trim_answer_without_harm(void)
{
    TEST_ASSERT_EQUAL_INT(1, mallopt(M_MMAP_THRESHOLD, 1 << 20));
    void *block = malloc(1 << 20);
    free(block);
    int trimmed = malloc_trim(0);
    TEST_ASSERT_TRUE(OURS ? trimmed == 1 : trimmed == 0 || trimmed == 1);
    void *again = malloc(1 << 20);
    check_block(again, 1 << 20, 16);
    free(again);
}

static void test_mallinfo_tells_of_bytes_held(void)
{
    enum { COUNT = 64, EACH = 1 << 20 };
    static void *blocks[COUNT];
    struct mallinfo2 before = mallinfo2();
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = malloc(EACH);
        TEST_ASSERT_NOT_NULL(blocks[i]);
        memset(blocks[i], 1, EACH);
    }
    struct mallinfo2 after = mallinfo2();
    size_t grown = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
    TEST_ASSERT_GREATER_OR_EQUAL_size_t((size_t)COUNT * EACH * 9 / 10, grown);
    TEST_ASSERT_LESS_OR_EQUAL_size_t((size_t)COUNT * EACH * 2, grown);
    for (size_t i = 0; i < COUNT; i++)
        free(blocks[i]);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct mallinfo narrow = mallinfo();
#pragma GCC diagnostic pop
    TEST_ASSERT_GREATER_OR_EQUAL_INT(0, narrow.uordblks);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void test_mallinfo_has_the_same_as_far_as_an_int_can_say(void)
{
    if (!OURS)
        TEST_IGNORE_MESSAGE("libc's own has other rules");
    free(malloc(1000));
    struct mallinfo2 wide = mallinfo2();
    struct mallinfo narrow = mallinfo();
    TEST_ASSERT_GREATER_THAN_size_t(0, wide.uordblks);
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(wide.uordblks, wide.arena);
    TEST_ASSERT_EQUAL_size_t(wide.arena - wide.uordblks, wide.fordblks);
    TEST_ASSERT_EQUAL_size_t(wide.arena, narrow.arena);
    TEST_ASSERT_EQUAL_size_t(wide.uordblks, narrow.uordblks);
    TEST_ASSERT_EQUAL_size_t(wide.fordblks, narrow.fordblks);
    void *large = malloc(opaque((size_t)3 << 30)); /* never touched */
    if (large == NULL)
        TEST_IGNORE_MESSAGE("there is no room for 3 GiB of addresses");
    narrow = mallinfo();
    free(large);
    TEST_ASSERT_EQUAL_INT(INT32_MAX, narrow.uordblks);
    TEST_ASSERT_EQUAL_INT(INT32_MAX, narrow.arena);
    TEST_ASSERT_GREATER_OR_EQUAL_INT(0, narrow.fordblks);
}
#pragma GCC diagnostic pop

static void print_stats(void *unused)
{
    (void)unused;
    ta_stop();
    free(malloc(1000));
    malloc_stats();
}

/* 300 KiB live now, 500 KiB at the most. */
static void print_stats_of_traces(void *unused)
{
    (void)unused;
    ta_stop();
    if (ta_start(1) != 0)
        _exit(1);
    void *volatile kept = malloc(300 << 10);
    void *volatile gone = malloc(200 << 10);
    (void)kept;
    free(gone);
    malloc_stats();
}

static void test_malloc_stats_writes_to_standard_error(void)
{
    struct child_result result;
    if (!OURS)
        TEST_IGNORE_MESSAGE("libc's own says other things");
    child_run(&result, print_stats, NULL);
    TEST_ASSERT_EQUAL_INT(0, result.exit_status);
    TEST_ASSERT_EQUAL_size_t(1, result.lines);
    double committed = 0;
    char unit[8] = "", end = 0;
    TEST_ASSERT_EQUAL_INT_MESSAGE(
        3, sscanf(result.text, "tracealloc: committed %lf %7[A-Za-z]%c", &committed, unit, &end), result.text);
    TEST_ASSERT_EQUAL_STRING("MiB", unit);
    TEST_ASSERT_EQUAL_CHAR('\n', end);
    double said = (double)mallinfo2().arena / (1 << 20); /* of the parent, which has not much more or less */
    TEST_ASSERT_TRUE_MESSAGE(committed > said / 4 && committed < said * 4 + 64, result.text);

    child_run(&result, print_stats_of_traces, NULL);
    TEST_ASSERT_EQUAL_INT(0, result.exit_status);
    TEST_ASSERT_EQUAL_size_t(1, result.lines);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(result.text, "iB, traced 300 KiB, peak 500 KiB\n"), result.text);
}

static void test_malloc_info_writes_one_xml_element(void)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    TEST_ASSERT_NOT_NULL(stream);

    TEST_ASSERT_EQUAL_INT(0, malloc_info(0, stream));

    fclose(stream);
    TEST_ASSERT_EQUAL_STRING_LEN("<malloc version=\"", text, 17);
    TEST_ASSERT_NOT_NULL(strstr(text, "</malloc>"));
    size_t committed = 0;
    const char *size = strstr(text, "size=\"");
    TEST_ASSERT_TRUE(!OURS || (size != NULL && sscanf(size, "size=\"%zu\"", &committed) == 1));
    TEST_ASSERT_TRUE_MESSAGE(!OURS || (committed > 4096 && committed < (size_t)1 << 40), text);
    free(text);
}

static void test_malloc_info_that_cannot_be_written_is_an_error(void)
{
    FILE *full = fopen("/dev/full", "w");
    if (!OURS || full == NULL)
        TEST_IGNORE_MESSAGE("there is no device that is full");
    setvbuf(full, NULL, _IONBF, 0);
    TEST_ASSERT_EQUAL_INT(-1, malloc_info(0, full));
    fclose(full);
}

static void test_malloc_info_with_options_is_refused(void)
{
    errno = 0;
    TEST_ASSERT_TRUE(malloc_info(1, stderr) != 0);
    TEST_ASSERT_TRUE(!OURS || errno == EINVAL);
}

#endif

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_malloc_of_typical_sizes_returns_aligned_writable_blocks);
    RUN_TEST(test_malloc_of_every_small_size_gives_disjoint_blocks);
    RUN_TEST(test_malloc_of_zero_returns_unique_pointers);
    RUN_TEST(test_malloc_that_succeeds_keeps_errno);
    RUN_TEST(test_many_blocks_that_grow_the_heap_keep_errno);
    RUN_TEST(test_free_of_null_does_nothing);
    RUN_TEST(test_malloc_beyond_ptrdiff_max_fails_with_enomem);
    RUN_TEST(test_refused_requests_leave_no_descriptor_open);
    RUN_TEST(test_large_requests_leave_no_mapping);
    RUN_TEST(test_malloc_of_more_than_any_machine_has_fails_with_enomem);
    RUN_TEST(test_malloc_of_many_mebibytes_is_wholly_usable);
    RUN_TEST(test_calloc_after_dirty_frees_returns_zeroed_blocks);
    RUN_TEST(test_calloc_multiplies_count_and_size);
    RUN_TEST(test_calloc_whose_product_overflows_fails_with_enomem);
    RUN_TEST(test_realloc_of_null_is_malloc);
    RUN_TEST(test_blocks_on_both_sides_of_gibibytes_are_told_apart_and_freed);
    RUN_TEST(test_realloc_to_zero_frees_and_returns_null);
    RUN_TEST(test_realloc_between_all_pairs_of_sizes_keeps_the_contents);
    RUN_TEST(test_realloc_step_by_step_keeps_every_byte);
    RUN_TEST(test_realloc_that_fails_leaves_the_block_alone);
    RUN_TEST(test_realloc_of_aligned_blocks_keeps_the_contents);
    RUN_TEST(test_reallocarray_multiplies_and_refuses_overflow);
    RUN_TEST(test_posix_memalign_gives_every_power_of_two);
    RUN_TEST(test_posix_memalign_refuses_bad_alignments_with_einval);
    RUN_TEST(test_posix_memalign_without_memory_returns_enomem_and_keeps_errno);
    RUN_TEST(test_aligned_alloc_and_memalign_give_every_power_of_two);
    RUN_TEST(test_alignments_of_many_mebibytes_are_kept);
    RUN_TEST(test_many_aligned_blocks_live_together_without_overlap);
    RUN_TEST(test_memalign_and_aligned_alloc_round_the_alignment_up);
    RUN_TEST(test_aligned_requests_whose_sum_overflows_fail_with_enomem);
    RUN_TEST(test_valloc_and_pvalloc_give_whole_pages);
    RUN_TEST(test_malloc_usable_size_of_null_is_zero);
    RUN_TEST(test_malloc_usable_size_of_what_is_no_block_is_zero);
    RUN_TEST(test_realloc_within_the_usable_size_keeps_everything_written_there);
    RUN_TEST(test_malloc_under_an_address_space_limit_fails_and_recovers);
#if !defined(TEST_TA_NAMES)
    RUN_TEST(test_names_newer_or_older_than_libc_are_defined_and_free);
    RUN_TEST(test_functions_of_libc_that_allocate_return_blocks_that_free_takes);
    RUN_TEST(test_mallopt_and_malloc_trim_answer_without_harm);
    RUN_TEST(test_mallinfo_tells_of_bytes_held);
    RUN_TEST(test_mallinfo_has_the_same_as_far_as_an_int_can_say);
    RUN_TEST(test_malloc_stats_writes_to_standard_error);
    RUN_TEST(test_malloc_info_writes_one_xml_element);
    RUN_TEST(test_malloc_info_that_cannot_be_written_is_an_error);
    RUN_TEST(test_malloc_info_with_options_is_refused);
#endif
    return UNITY_END();
}
