/* test_target_copy.c: what is read of a process that was copied is what was there when it was held, whatever the process
 * does since. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/image/target.h"
#include "unity.h"

enum { PAGES = 64, BYTES = PAGES * TA__TARGET_PAGE, LARGE_PAGES = 2100, GROWN_PAGES = 6000 };

/* At the same places in the child. */
static uint8_t *memory, *other, *large, *grown, *of_file, *shared;
static char path[] = "/tmp/ta_copied.XXXXXX";
static pid_t child;
static int to_child[2], to_parent[2];
static struct ta__target target;
static volatile int will_grow;

static void say(int descriptor)
{
    TEST_ASSERT_EQUAL_INT(1, write(descriptor, "x", 1));
}

static void hear(int descriptor)
{
    char byte;
    TEST_ASSERT_EQUAL_INT(1, read(descriptor, &byte, 1));
}

static uint8_t *map_file(size_t bytes, int flags, int file)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    TEST_ASSERT_TRUE(at != MAP_FAILED);
    madvise(at, bytes, MADV_NOHUGEPAGE);
    return at;
}

static uint8_t *map(void)
{
    return map_file(BYTES, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* Of a file that says 'f' everywhere. */
static uint8_t *map_private_file(void)
{
    static uint8_t text[BYTES];
    memset(text, 'f', sizeof text);
    memcpy(path + strlen(path) - 6, "XXXXXX", 6);
    int file = mkstemp(path);
    TEST_ASSERT_TRUE(file >= 0);
    TEST_ASSERT_EQUAL_INT(BYTES, (int)write(file, text, BYTES));
    uint8_t *at = map_file(BYTES, MAP_PRIVATE, file);
    close(file);
    unlink(path);
    return at;
}

/* Page 0 and 3 have bytes, 1 and 2 are not there; then all is different. */
static void be_child(void)
{
    memset(memory, 'a', TA__TARGET_PAGE);
    memset(memory + 3 * TA__TARGET_PAGE, 'd', TA__TARGET_PAGE);
    memset(other, 'o', BYTES);
    for (size_t i = 0; i < LARGE_PAGES; i++)
        if (i % 700 != 3)
            memset(large + i * TA__TARGET_PAGE, (int)(i % 251), TA__TARGET_PAGE);
    of_file[0] = *(volatile uint8_t *)&of_file[TA__TARGET_PAGE]; /* one page is written, the next one read */
    memset(of_file, 'p', TA__TARGET_PAGE);
    memset(shared, 's', TA__TARGET_PAGE);
    say(to_parent[1]);
    hear(to_child[0]);
    if (will_grow) {
        memset(grown, 'g', GROWN_PAGES * TA__TARGET_PAGE);
        say(to_parent[1]);
        hear(to_child[0]);
    }
    memset(large, 'z', 10 * TA__TARGET_PAGE);
    memset(of_file, 'q', 3 * TA__TARGET_PAGE);
    memset(shared, 't', TA__TARGET_PAGE);
    memset(memory, 'z', 2 * TA__TARGET_PAGE);
    madvise(memory + 3 * TA__TARGET_PAGE, TA__TARGET_PAGE, MADV_DONTNEED);
    munmap(other, BYTES);
    say(to_parent[1]);
    pause();
}

/* A sanitizer has mappings without end: to copy them would take long. */
static void look_at_sizes(void)
{
    uint8_t *const ours[] = {memory, other, large, grown, of_file, shared};
    size_t kept = 0;
    TEST_ASSERT_EQUAL_INT(0, ta__target_refresh(&target, 1));
    for (size_t i = 0; i < target.region_count; i++)
        for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
            if (target.regions[i].start <= (uintptr_t)ours[k] && (uintptr_t)ours[k] < target.regions[i].end &&
                (kept == 0 || target.regions[kept - 1].start != target.regions[i].start))
                target.regions[kept++] = target.regions[i];
    target.region_count = kept;
}

void setUp(void)
{
    char number[16];
    memory = map();
    other = map();
    large = map_file(LARGE_PAGES * TA__TARGET_PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    grown = map_file(GROWN_PAGES * TA__TARGET_PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    of_file = map_private_file();
    shared = map_file(BYTES, MAP_SHARED | MAP_ANONYMOUS, -1);
    TEST_ASSERT_EQUAL_INT(0, pipe(to_child) | pipe(to_parent));
    child = fork();
    if (child == 0) {
        be_child();
        _exit(0);
    }
    hear(to_parent[0]);
    snprintf(number, sizeof number, "%d", child);
    TEST_ASSERT_EQUAL_INT(0, ta__target_open(&target, number));
    look_at_sizes();
}

void tearDown(void)
{
    ta__target_close(&target);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    munmap(memory, BYTES);
    munmap(other, BYTES);
    munmap(large, LARGE_PAGES * TA__TARGET_PAGE);
    munmap(grown, GROWN_PAGES * TA__TARGET_PAGE);
    munmap(of_file, BYTES);
    munmap(shared, BYTES);
    for (size_t i = 0; i < 2; i++) {
        close(to_child[i]);
        close(to_parent[i]);
    }
}

static void copy_and_let_go(void)
{
    ta__target_make_room(&target);
    TEST_ASSERT_EQUAL_INT(0, ta__target_hold(&target));
    TEST_ASSERT_EQUAL_INT(1, ta__target_copy(&target));
    ta__target_release(&target);
    say(to_child[1]);
    hear(to_parent[0]);
}

static void expect_page(const uint8_t *page, int byte)
{
    uint8_t expected[TA__TARGET_PAGE], bytes[TA__TARGET_PAGE];
    memset(expected, byte, sizeof expected);
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(&target, (uintptr_t)page, bytes, sizeof bytes));
    TEST_ASSERT_EQUAL_MEMORY(expected, bytes, sizeof bytes);
}

static void test_copy_is_of_the_moment_it_was_held(void)
{
    uint8_t across[3 * TA__TARGET_PAGE], word = 0;
    copy_and_let_go();
    expect_page(memory, 'a');
    expect_page(memory + TA__TARGET_PAGE, 0);
    expect_page(memory + 3 * TA__TARGET_PAGE, 'd');
    expect_page(other + BYTES - TA__TARGET_PAGE, 'o');
    TEST_ASSERT_EQUAL_INT(0, ta__target_peek(&target, (uintptr_t)memory + 5, &word, 1));
    TEST_ASSERT_EQUAL_INT('a', word);
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(&target, (uintptr_t)memory + TA__TARGET_PAGE + 7, across, sizeof across));
    TEST_ASSERT_EQUAL_INT(0, across[2 * TA__TARGET_PAGE - 8]);
    TEST_ASSERT_EQUAL_INT('d', across[2 * TA__TARGET_PAGE - 7]);
    TEST_ASSERT_EQUAL_INT('d', across[3 * TA__TARGET_PAGE - 8]);
    TEST_ASSERT_EQUAL_INT(0, across[3 * TA__TARGET_PAGE - 7]);
    ta__target_drop_copy(&target);
    expect_page(memory, 'z');
    expect_page(memory + 3 * TA__TARGET_PAGE, 0);
}

static void test_pages_are_what_they_were(void)
{
    uint8_t states[4];
    copy_and_let_go();
    ta__target_pages(&target, (uintptr_t)memory, 4, states);
    TEST_ASSERT_TRUE((states[0] & TA__PAGE_PRESENT) != 0 && (states[3] & TA__PAGE_PRESENT) != 0);
    TEST_ASSERT_EQUAL_INT(0, states[1] | states[2]);
    ta__target_drop_copy(&target);
    ta__target_pages(&target, (uintptr_t)memory, 4, states);
    TEST_ASSERT_TRUE((states[0] & TA__PAGE_PRESENT) != 0 && (states[1] & TA__PAGE_PRESENT) != 0);
    TEST_ASSERT_EQUAL_INT(0, states[3]);
}

static void test_without_room_there_is_no_copy(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta__target_hold(&target));
    TEST_ASSERT_EQUAL_INT(0, ta__target_copy(&target));
    expect_page(memory, 'a');
    TEST_ASSERT_EQUAL_INT(1, target.is_held);
    ta__target_release(&target);
}

static void test_copy_of_a_large_mapping_has_every_page(void)
{
    uint8_t states[LARGE_PAGES];
    static uint8_t bytes[LARGE_PAGES * TA__TARGET_PAGE];
    copy_and_let_go();
    ta__target_pages(&target, (uintptr_t)large, LARGE_PAGES, states);
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(&target, (uintptr_t)large, bytes, sizeof bytes));
    for (size_t i = 0; i < LARGE_PAGES; i++) {
        TEST_ASSERT_EQUAL_INT(i % 700 != 3, (states[i] & TA__PAGE_PRESENT) != 0);
        TEST_ASSERT_EQUAL_HEX8(i % 700 != 3 ? i % 251 : 0, bytes[i * TA__TARGET_PAGE]);
        TEST_ASSERT_EQUAL_HEX8(i % 700 != 3 ? i % 251 : 0, bytes[(i + 1) * TA__TARGET_PAGE - 1]);
    }
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(&target, (uintptr_t)large + 5000, bytes, 20));
    TEST_ASSERT_EACH_EQUAL_HEX8(1, bytes, 20);
}

/* What a private mapping of a file has as the file has it, and what others may change, is read when it is asked for. */
static void test_copy_of_a_file_has_what_was_written(void)
{
    uint8_t bytes[2 * TA__TARGET_PAGE], states[4];
    copy_and_let_go();
    expect_page(of_file, 'p');
    expect_page(of_file + 3 * TA__TARGET_PAGE, 'f');
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(&target, (uintptr_t)of_file + TA__TARGET_PAGE, bytes, 1));
    TEST_ASSERT_EQUAL_INT('q', bytes[0]); /* since then it was written */
    ta__target_pages(&target, (uintptr_t)of_file, 4, states);
    TEST_ASSERT_EQUAL_INT(0, states[0] & TA__PAGE_FILE);
    TEST_ASSERT_EQUAL_INT(TA__PAGE_FILE, states[1] & TA__PAGE_FILE);
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(&target, (uintptr_t)of_file + TA__TARGET_PAGE - 4, bytes, 8));
    TEST_ASSERT_EQUAL_MEMORY("ppppqqqq", bytes, 8);
    expect_page(shared, 's');
}

static void test_process_that_grew_too_much_is_not_copied(void)
{
    will_grow = 1;
    tearDown();
    setUp();
    ta__target_make_room(&target);
    say(to_child[1]);
    hear(to_parent[0]);
    TEST_ASSERT_EQUAL_INT(0, ta__target_hold(&target));
    look_at_sizes();
    TEST_ASSERT_EQUAL_INT(0, ta__target_copy(&target));
    TEST_ASSERT_NULL(target.copy);
    TEST_ASSERT_EQUAL_INT(0, target.is_copied);
    expect_page(memory, 'a');
    expect_page(grown, 'g');
    ta__target_make_room(&target); /* there is room for it as it is now */
    TEST_ASSERT_EQUAL_INT(1, ta__target_copy(&target));
    ta__target_release(&target);
    expect_page(grown + (GROWN_PAGES - 1) * TA__TARGET_PAGE, 'g');
    will_grow = 0;
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_copy_is_of_the_moment_it_was_held);
    RUN_TEST(test_pages_are_what_they_were);
    RUN_TEST(test_without_room_there_is_no_copy);
    RUN_TEST(test_copy_of_a_large_mapping_has_every_page);
    RUN_TEST(test_copy_of_a_file_has_what_was_written);
    RUN_TEST(test_process_that_grew_too_much_is_not_copied);
    return UNITY_END();
}
