/* test_target_copy.c: what is read of a process that was copied is what was there when it was held, whatever the process
 * does since. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/image/target.h"
#include "unity.h"

enum { PAGES = 64, BYTES = PAGES * TA__TARGET_PAGE };

static uint8_t *memory, *other; /* at the same place in the child */
static pid_t child;
static int to_child[2], to_parent[2];
static struct ta__target target;

static void say(int descriptor)
{
    TEST_ASSERT_EQUAL_INT(1, write(descriptor, "x", 1));
}

static void hear(int descriptor)
{
    char byte;
    TEST_ASSERT_EQUAL_INT(1, read(descriptor, &byte, 1));
}

static uint8_t *map(void)
{
    void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT_TRUE(at != MAP_FAILED);
    madvise(at, BYTES, MADV_NOHUGEPAGE);
    return at;
}

/* Page 0 and 3 have bytes, 1 and 2 are not there; then all is different. */
static void be_child(void)
{
    memset(memory, 'a', TA__TARGET_PAGE);
    memset(memory + 3 * TA__TARGET_PAGE, 'd', TA__TARGET_PAGE);
    memset(other, 'o', BYTES);
    say(to_parent[1]);
    hear(to_child[0]);
    memset(memory, 'z', 2 * TA__TARGET_PAGE);
    madvise(memory + 3 * TA__TARGET_PAGE, TA__TARGET_PAGE, MADV_DONTNEED);
    munmap(other, BYTES);
    say(to_parent[1]);
    pause();
}

void setUp(void)
{
    char number[16];
    memory = map();
    other = map();
    TEST_ASSERT_EQUAL_INT(0, pipe(to_child) | pipe(to_parent));
    child = fork();
    if (child == 0) {
        be_child();
        _exit(0);
    }
    hear(to_parent[0]);
    snprintf(number, sizeof number, "%d", child);
    TEST_ASSERT_EQUAL_INT(0, ta__target_open(&target, number));
    TEST_ASSERT_EQUAL_INT(0, ta__target_refresh(&target, 1));
}

void tearDown(void)
{
    ta__target_close(&target);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    munmap(memory, BYTES);
    munmap(other, BYTES);
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

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_copy_is_of_the_moment_it_was_held);
    RUN_TEST(test_pages_are_what_they_were);
    RUN_TEST(test_without_room_there_is_no_copy);
    return UNITY_END();
}
