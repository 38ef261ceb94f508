/* test_base_memory.c: tables' memory is zeroed, counted, given back, and its failures do no harm. */
#include "base/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <unity.h>

#include "base/mappings.h"

static size_t page;

void setUp(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
}

static void test_map_answers_zeroed_memory_that_is_counted_until_unmapped(void)
{
    size_t before = ta__memory_mapped();

    unsigned char *memory = ta__memory_map(3 * page);

    TEST_ASSERT_NOT_NULL(memory);
    TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)memory % page);
    TEST_ASSERT_EACH_EQUAL_HEX8(0, memory, 3 * page);
    TEST_ASSERT_EQUAL_size_t(before + 3 * page, ta__memory_mapped());
    memset(memory, 0xaa, 3 * page);
    ta__memory_unmap(memory, 3 * page);
    TEST_ASSERT_EQUAL_size_t(before, ta__memory_mapped());
}

static void test_advice_that_the_kernel_refuses_keeps_errno(void)
{
    errno = 77;
    ta__memory_populate((void *)1, page);
    TEST_ASSERT_EQUAL_INT(77, errno);
    ta__memory_reset((void *)1, page);
    TEST_ASSERT_EQUAL_INT(77, errno);
    ta__memory_unmap((void *)1, 0);
    TEST_ASSERT_EQUAL_INT(77, errno);
    TEST_ASSERT_EQUAL_size_t(0, ta__memory_resident((void *)page, page)); /* nobody's */
    TEST_ASSERT_EQUAL_INT(77, errno);
}

static void test_map_impossible_size_answers_null_and_keeps_errno(void)
{
    size_t before = ta__memory_mapped();
    errno = 77;

    TEST_ASSERT_NULL(ta__memory_map(SIZE_MAX - page));

    TEST_ASSERT_EQUAL_INT(77, errno);
    TEST_ASSERT_EQUAL_size_t(before, ta__memory_mapped());
}

static void test_unmap_null_does_nothing(void)
{
    size_t before = ta__memory_mapped();

    ta__memory_unmap(NULL, page);

    TEST_ASSERT_EQUAL_size_t(before, ta__memory_mapped());
}

/* Whoever runs the tests may have set limits. */
static void ignore_where_there_are_limits(void)
{
    struct rlimit space, writable;
    TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_AS, &space));
    TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_DATA, &writable));
    if (space.rlim_cur != RLIM_INFINITY || writable.rlim_cur != RLIM_INFINITY)
        TEST_IGNORE_MESSAGE("the test itself is limited");
}

static size_t left_with(int resource, rlim_t limit)
{
    struct rlimit before, now;
    TEST_ASSERT_EQUAL_INT(0, getrlimit(resource, &before));
    now = before;
    now.rlim_cur = limit;
    TEST_ASSERT_EQUAL_INT(0, setrlimit(resource, &now));
    size_t left = ta__memory_left();
    TEST_ASSERT_EQUAL_INT(0, setrlimit(resource, &before));
    return left;
}

static void test_left_is_what_a_limit_allows_beyond_what_is_mapped(void)
{
    const size_t limit = (size_t)1 << 46; /* more than a sanitizer maps */
    ignore_where_there_are_limits();

    TEST_ASSERT_EQUAL_size_t(SIZE_MAX, ta__memory_left());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they map on the way */
    TEST_ASSERT_EQUAL_size_t(0, left_with(RLIMIT_DATA, 4096));
    TEST_ASSERT_EQUAL_size_t(0, left_with(RLIMIT_AS, 4096));
#endif
    size_t before = left_with(RLIMIT_DATA, limit);
    TEST_ASSERT_LESS_THAN_size_t(limit, before);
    TEST_ASSERT_LESS_THAN_size_t(before, left_with(RLIMIT_AS, limit));
    void *memory = ta__memory_map(64 << 20);
    TEST_ASSERT_LESS_OR_EQUAL_size_t(before - (64 << 20), left_with(RLIMIT_DATA, limit));
    ta__memory_unmap(memory, 64 << 20);
}

static int is_limited_with(int resource, rlim_t limit, size_t bytes)
{
    struct rlimit before, now;
    TEST_ASSERT_EQUAL_INT(0, getrlimit(resource, &before));
    now = before;
    now.rlim_cur = limit;
    TEST_ASSERT_EQUAL_INT(0, setrlimit(resource, &now));
    int is_limited = ta__memory_is_limited_to(bytes);
    TEST_ASSERT_EQUAL_INT(0, setrlimit(resource, &before));
    return is_limited;
}

static void test_a_limit_of_either_kind_is_one(void)
{
    static const int kinds[] = {RLIMIT_AS, RLIMIT_DATA};
    const size_t limit = (size_t)1 << 46;
    ignore_where_there_are_limits();

    TEST_ASSERT_EQUAL_INT(0, ta__memory_is_limited_to(SIZE_MAX));
    for (int i = 0; i < 2; i++) {
        TEST_ASSERT_EQUAL_INT(1, is_limited_with(kinds[i], limit, limit + 1));
        TEST_ASSERT_EQUAL_INT(0, is_limited_with(kinds[i], limit, limit));
    }
    TEST_ASSERT_EQUAL_size_t(0, left_with(RLIMIT_AS, limit) % 1024); /* used memory is told in KiB */
}

static const char *file_of(const char *text)
{
    static char paths[2][32];
    static int which;
    char *path = paths[which++ % 2];
    strcpy(path, "/tmp/ta-memory-XXXXXX");
    int descriptor = mkstemp(path);
    TEST_ASSERT_TRUE(descriptor >= 0);
    TEST_ASSERT_EQUAL_INT((int)strlen(text), (int)write(descriptor, text, strlen(text)));
    close(descriptor);
    return path;
}

static size_t promised(const char *overcommit, const char *meminfo)
{
    const char *overcommit_path = file_of(overcommit);
    const char *meminfo_path = file_of(meminfo);
    size_t result = ta__memory_promised(overcommit_path, meminfo_path);
    unlink(overcommit_path);
    unlink(meminfo_path);
    return result;
}

static void test_promised_is_a_share_of_what_is_left_only_where_nothing_is_promised_twice(void)
{
    const char *meminfo =
        "MemTotal: 24684096 kB\nCommitLimit:    12342048 kB\nCommitted_AS:      42048 kB\nVmalloc: 1 kB\n";

    TEST_ASSERT_EQUAL_size_t(SIZE_MAX, promised("0\n", meminfo));
    TEST_ASSERT_EQUAL_size_t(SIZE_MAX, promised("1\n", meminfo));
    TEST_ASSERT_EQUAL_size_t((size_t)12300000 / 16 * 1024, promised("2\n", meminfo));
}

static void test_promised_is_nothing_when_all_is_promised(void)
{
    TEST_ASSERT_EQUAL_size_t(0, promised("2\n", "CommitLimit: 1000 kB\nCommitted_AS: 1500 kB\n"));
}

static void test_promised_where_proc_is_missing_sets_no_limit(void)
{
    TEST_ASSERT_EQUAL_size_t(SIZE_MAX, ta__memory_promised("/nowhere/overcommit", "/nowhere/meminfo"));
}

static void test_map_keeps_tables_out_of_huge_pages(void)
{
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0)
        TEST_IGNORE_MESSAGE("this kernel has no huge pages");
    enum { BYTES = 8 << 20 };
    char *memory = ta__memory_map(BYTES);
    FILE *maps = fopen("/proc/self/smaps", "r");
    TEST_ASSERT_NOT_NULL(maps);
    char line[512], flags[512] = "";
    int is_here = 0;

    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long low, high;
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
            is_here = low <= (uintptr_t)memory && (uintptr_t)memory < high;
        else if (is_here && strncmp(line, "VmFlags:", 8) == 0)
            strcpy(flags, line);
    }
    fclose(maps);

    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(flags, " nh"), flags);
    ta__memory_unmap(memory, BYTES);
}

static void test_resident_follows_touching_and_reset(void)
{
    size_t bytes = 64 * page;
    unsigned char *memory = ta__memory_map(bytes);
    TEST_ASSERT_NOT_NULL(memory);

    TEST_ASSERT_EQUAL_size_t(0, ta__memory_resident(memory, bytes));
    memory[0] = 1;
    memory[10 * page] = 1;
    size_t touched = ta__memory_resident(memory, bytes);
    ta__memory_reset(memory, bytes);

    TEST_ASSERT_GREATER_OR_EQUAL_size_t(2 * page, touched);
    TEST_ASSERT_EQUAL_size_t(0, ta__memory_resident(memory, bytes));
    TEST_ASSERT_EQUAL_HEX8(0, memory[0]);
    TEST_ASSERT_EQUAL_HEX8(0, memory[10 * page]);
    ta__memory_unmap(memory, bytes);
}

/* What a program locks that locks all of its memory. */
static void test_locked_memory_comes_as_it_is_touched_and_goes_back(void)
{
    size_t bytes = 256 * page;
    if (mlockall(MCL_FUTURE) != 0)
        TEST_IGNORE_MESSAGE("memory cannot be locked here");
    unsigned char *memory = ta__memory_map(bytes);
    int is_locked = memory != NULL && mlock(memory, 4 * page) == 0;
    munlockall();
    if (!is_locked)
        TEST_IGNORE_MESSAGE("little memory can be locked here");
    mlock(memory, 4 * page);
    size_t resident = ta__memory_resident(memory, bytes);
    memset(memory, 1, 8 * page);
    ta__memory_zero(memory + 1, 8 * page - 1);
    TEST_ASSERT_LESS_OR_EQUAL_size_t(4 * page, resident);
    TEST_ASSERT_EQUAL_HEX8(1, memory[0]);
    TEST_ASSERT_EACH_EQUAL_HEX8(0, memory + 1, 8 * page - 1);
    memory[page] = 1;
    ta__memory_reset(memory, bytes);
    size_t left = ta__memory_resident(memory, bytes);
    TEST_ASSERT_EQUAL_HEX8(0, memory[page]);
    TEST_ASSERT_EQUAL_size_t(0, left);
    ta__memory_unmap(memory, bytes);
}

/* The kernel is asked for some thousand pages at a time. */
static void test_resident_counts_every_page_of_a_large_table(void)
{
    size_t pages = 2 * 4096 + 3;
    static const size_t touched[] = {3, 4095, 4096, 5000, 4096 + 4095, 2 * 4096 + 2};
    unsigned char *memory = ta__memory_map(pages * page);
    TEST_ASSERT_NOT_NULL(memory);

    for (size_t i = 0; i < sizeof touched / sizeof *touched; i++)
        memory[touched[i] * page] = 1;

    TEST_ASSERT_EQUAL_size_t(6 * page, ta__memory_resident(memory, pages * page));
    TEST_ASSERT_EQUAL_size_t(4 * page, ta__memory_resident(memory + 4096 * page, (pages - 4096) * page));
    TEST_ASSERT_EQUAL_size_t(page, ta__memory_resident(memory + (pages - 1) * page, 1));
    ta__memory_unmap(memory, pages * page);
}

static void test_populated_pages_are_there_before_they_are_touched(void)
{
    enum { POPULATE_WRITE = 23 };
    unsigned char *memory = ta__memory_map(16 * page);
    TEST_ASSERT_NOT_NULL(memory);
    int is_known = madvise(memory, page, POPULATE_WRITE) == 0;

    ta__memory_populate(memory + 8 * page, 4 * page);

    size_t resident = ta__memory_resident(memory + 8 * page, 8 * page);
    ta__memory_unmap(memory, 16 * page);
    if (!is_known)
        TEST_IGNORE_MESSAGE("this kernel does not populate");
    TEST_ASSERT_EQUAL_size_t(4 * page, resident);
}

/* From any byte to any other: those are zero, those around them as they were, and whole pages between go back. */
static void test_zero_is_exact_to_the_byte_and_gives_pages_back(void)
{
    enum { PAGES = 8 };
    size_t bytes = PAGES * page;
    unsigned char *memory = ta__memory_map(bytes);
    TEST_ASSERT_NOT_NULL(memory);
    const size_t ends[] = {0,        1,         page - 1, page, page + 1, 3 * page - 8, 3 * page, 5 * page + 100,
                           6 * page, bytes - 1, bytes};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        for (size_t k = i; k < sizeof ends / sizeof *ends; k++) {
            memset(memory, 0xA5, bytes);
            ta__memory_zero(memory + ends[i], ends[k] - ends[i]);
            size_t whole = (ends[i] + page - 1) / page, whole_end = ends[k] / page;
            size_t gone = whole < whole_end ? whole_end - whole : 0;
            TEST_ASSERT_EQUAL_size_t(bytes - gone * page, ta__memory_resident(memory, bytes));
            for (size_t at = 0; at < bytes; at++)
                if (memory[at] != (at >= ends[i] && at < ends[k] ? 0 : 0xA5))
                    TEST_ASSERT_EQUAL_size_t(SIZE_MAX, at);
        }
    ta__memory_unmap(memory, bytes);
}

static void test_injected_failure_hits_the_nth_mapping_only(void)
{
    ta__memory_inject_failure(2, 0);

    void *first = ta__memory_map(page);
    void *second = ta__memory_map(page);
    void *third = ta__memory_map(page);

    TEST_ASSERT_NOT_NULL(first);
    TEST_ASSERT_NULL(second);
    TEST_ASSERT_NOT_NULL(third);
    ta__memory_unmap(first, page);
    ta__memory_unmap(third, page);
}

static void test_injected_failure_that_sticks_hits_every_later_mapping(void)
{
    ta__memory_inject_failure(1, 1);

    TEST_ASSERT_NULL(ta__memory_map(page));
    TEST_ASSERT_NULL(ta__memory_map(page));
    ta__memory_inject_failure(0, 0);
    void *after = ta__memory_map(page);
    TEST_ASSERT_NOT_NULL(after);
    ta__memory_unmap(after, page);
}

static void *map_and_unmap(void *unused)
{
    for (int i = 0; i < 500; i++) {
        unsigned char *memory = ta__memory_map(page);
        if (memory == NULL)
            return "a mapping failed";
        memory[0] = 1;
        ta__memory_unmap(memory, page);
    }
    return unused;
}

static void test_mapped_count_with_many_threads_comes_back_to_where_it_was(void)
{
    enum { THREADS = 4 };
    size_t before = ta__memory_mapped();
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, map_and_unmap, NULL));
    for (int i = 0; i < THREADS; i++) {
        void *complaint;
        TEST_ASSERT_EQUAL_INT(0, pthread_join(threads[i], &complaint));
        TEST_ASSERT_NULL(complaint);
    }

    TEST_ASSERT_EQUAL_size_t(before, ta__memory_mapped());
}

static uint64_t fact(const char *name)
{
    for (const struct ta__fact *at = ta__facts_memory; at->name[0] != '\0'; at++)
        if (strcmp(at->name, name) == 0)
            return at->value;
    TEST_FAIL_MESSAGE(name);
    return 0;
}

/* How often a mapping is in the list of mappings, as a reader from outside goes through it. */
static int listed(const void *address, size_t bytes)
{
    int found = 0;
    uint32_t used = *(const uint32_t *)(uintptr_t)fact("regions.used");
    for (uint32_t i = 0; i < used; i++) {
        const char *const *chunks = (const char *const *)(uintptr_t)fact("regions.chunks");
        const char *row = chunks[i / fact("regions.chunk")] + i % fact("regions.chunk") * fact("region.bytes");
        found += *(const uint64_t *)(row + fact("region.address")) == (uintptr_t)address &&
                 *(const uint64_t *)(row + fact("region.size")) == bytes;
    }
    return found;
}

static size_t noted_length(const void *start)
{
    static struct ta__mapping list[1024];
    size_t count = ta__mappings_list(list, 1024);
    for (size_t i = 0; i < count; i++)
        if (list[i].start == (uintptr_t)start)
            return list[i].length;
    return 0;
}

static void test_a_mapping_that_shrinks_keeps_its_beginning(void)
{
    const size_t bytes = 256 * page;
    size_t mapped = ta__memory_mapped();
    char *memory = ta__memory_map(bytes);
    TEST_ASSERT_NOT_NULL(memory);
    memset(memory, 7, bytes);
    ta__memory_shrink(memory, bytes, bytes);
    ta__memory_shrink(NULL, bytes, page);
    TEST_ASSERT_EQUAL_size_t(mapped + bytes, ta__memory_mapped());
    TEST_ASSERT_EQUAL_size_t(bytes, noted_length(memory));
    errno = 77;
    ta__memory_shrink(memory, bytes, 3 * page + 1);
    TEST_ASSERT_EQUAL_INT(77, errno);
    TEST_ASSERT_EACH_EQUAL_CHAR(7, memory, 4 * page);
    TEST_ASSERT_EQUAL_size_t(mapped + 4 * page, ta__memory_mapped());
    TEST_ASSERT_EQUAL_size_t(4 * page, noted_length(memory));
    unsigned char residence;
    TEST_ASSERT_EQUAL_INT(-1, mincore(memory + 4 * page, page, &residence));
    TEST_ASSERT_EQUAL_INT(ENOMEM, errno);
    TEST_ASSERT_EQUAL_INT(1, listed(memory, 4 * page));
    ta__memory_unmap(memory, 4 * page);
    TEST_ASSERT_EQUAL_size_t(mapped, ta__memory_mapped());
    TEST_ASSERT_EQUAL_size_t(0, noted_length(memory));
}

static void test_every_mapping_is_listed_for_readers_from_outside(void)
{
    enum { MANY = 1000 };
    static void *mapped[MANY];
    for (size_t i = 0; i < MANY; i++)
        mapped[i] = ta__memory_map(4096 * (i % 3 + 1));
    for (size_t i = 0; i < MANY; i++)
        TEST_ASSERT_EQUAL(1, listed(mapped[i], 4096 * (i % 3 + 1)));
    mapped[0] = ta__memory_grow(mapped[0], 4096, 40960);
    TEST_ASSERT_EQUAL(1, listed(mapped[0], 40960));
    ta__memory_unmap(mapped[0], 40960);
    for (size_t i = 1; i < MANY; i++) {
        ta__memory_unmap(mapped[i], 4096 * (i % 3 + 1));
        TEST_ASSERT_EQUAL(0, listed(mapped[i], 4096 * (i % 3 + 1)));
        if (i + 1 < MANY)
            TEST_ASSERT_EQUAL(1, listed(mapped[i + 1], 4096 * ((i + 1) % 3 + 1)));
    }
}

/* What stands behind it is taken, so that it moves. */
static void test_what_grows_is_counted_and_known_at_its_new_place_alone(void)
{
    static struct ta__mapping known[4096];
    size_t before = ta__memory_mapped();
    char *memory = ta__memory_map(2 * page);
    TEST_ASSERT_NOT_NULL(memory);
    void *behind = mmap(memory + 2 * page, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    memory[page] = 7;
    errno = 77;

    char *grown = ta__memory_grow(memory, 2 * page, 9 * page);

    TEST_ASSERT_NOT_NULL(grown);
    TEST_ASSERT_EQUAL_INT(77, errno);
    TEST_ASSERT_EQUAL_HEX8(7, grown[page]);
    TEST_ASSERT_EQUAL_size_t(before + 9 * page, ta__memory_mapped());
    TEST_ASSERT_EQUAL_INT(1, listed(grown, 9 * page));
    TEST_ASSERT_EQUAL_INT(0, listed(memory, 2 * page));
    size_t count = ta__mappings_list(known, sizeof known / sizeof *known);
    for (size_t i = 0; i < count; i++)
        TEST_ASSERT_FALSE(known[i].start == (uintptr_t)memory && known[i].length == 2 * page);
    ta__memory_unmap(grown, 9 * page);
    if (behind != MAP_FAILED)
        munmap(behind, page);
    TEST_ASSERT_EQUAL_size_t(before, ta__memory_mapped());
}

static void test_what_cannot_grow_stays_as_it_was(void)
{
    size_t before = ta__memory_mapped();
    char *memory = ta__memory_map(2 * page);
    TEST_ASSERT_NOT_NULL(memory);
    memory[page] = 7;
    errno = 77;

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) /* they end who asks for that much */
    TEST_ASSERT_NULL(ta__memory_grow(memory, 2 * page, SIZE_MAX / 2 / page * page));
#endif
    ta__memory_inject_failure(1, 0);
    TEST_ASSERT_NULL(ta__memory_grow(memory, 2 * page, 9 * page));

    TEST_ASSERT_EQUAL_INT(77, errno);
    TEST_ASSERT_EQUAL_HEX8(7, memory[page]);
    TEST_ASSERT_EQUAL_INT(1, listed(memory, 2 * page));
    TEST_ASSERT_EQUAL_size_t(before + 2 * page, ta__memory_mapped());
    ta__memory_unmap(memory, 2 * page);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_map_answers_zeroed_memory_that_is_counted_until_unmapped);
    RUN_TEST(test_map_impossible_size_answers_null_and_keeps_errno);
    RUN_TEST(test_advice_that_the_kernel_refuses_keeps_errno);
    RUN_TEST(test_unmap_null_does_nothing);
    RUN_TEST(test_left_is_what_a_limit_allows_beyond_what_is_mapped);
    RUN_TEST(test_promised_is_a_share_of_what_is_left_only_where_nothing_is_promised_twice);
    RUN_TEST(test_promised_is_nothing_when_all_is_promised);
    RUN_TEST(test_promised_where_proc_is_missing_sets_no_limit);
    RUN_TEST(test_map_keeps_tables_out_of_huge_pages);
    RUN_TEST(test_resident_follows_touching_and_reset);
    RUN_TEST(test_locked_memory_comes_as_it_is_touched_and_goes_back);
    RUN_TEST(test_zero_is_exact_to_the_byte_and_gives_pages_back);
    RUN_TEST(test_injected_failure_hits_the_nth_mapping_only);
    RUN_TEST(test_injected_failure_that_sticks_hits_every_later_mapping);
    RUN_TEST(test_mapped_count_with_many_threads_comes_back_to_where_it_was);
    RUN_TEST(test_a_mapping_that_shrinks_keeps_its_beginning);
    RUN_TEST(test_a_limit_of_either_kind_is_one);
    RUN_TEST(test_resident_counts_every_page_of_a_large_table);
    RUN_TEST(test_populated_pages_are_there_before_they_are_touched);
    RUN_TEST(test_what_grows_is_counted_and_known_at_its_new_place_alone);
    RUN_TEST(test_what_cannot_grow_stays_as_it_was);
    RUN_TEST(test_every_mapping_is_listed_for_readers_from_outside);
    return UNITY_END();
}
