/* test_describe.c: ta_describe says whose memory an address is, in any place: a live block, one that was freed, stacks,
 * variables, functions, and what nobody knows; in a signal handler; in too small a buffer. The program runs itself with
 * the options that make blocks known, because they are read before main. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "tracealloc/domain.h"
#include "tests/support/child.h"
#include "unity.h"
#include "tests/support/names.h"

static char text[8192];
int described_variable[16] = {1};

void setUp(void)
{
}

void tearDown(void)
{
}

static const char *describe(const void *pointer)
{
    errno = 77;
    size_t length = ta_describe(pointer, text, sizeof text);
    TEST_ASSERT_EQUAL_INT(77, errno);
    TEST_ASSERT_EQUAL_size_t(strlen(text), length);
    TEST_ASSERT_EQUAL_CHAR('\n', text[length - 1]);
    return text;
}

static void expect(const void *pointer, const char *within)
{
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(describe(pointer), within), text);
}

__attribute__((noipa)) static char *allocates_for_describe(size_t size)
{
    return opaque_pointer(malloc(opaque(size)));
}

__attribute__((noipa)) static void frees_for_describe(void *block)
{
    free(block);
    __asm__ volatile("" ::: "memory");
}

static void test_a_live_block_is_told_with_its_stack(void)
{
    char *block = allocates_for_describe(300);
    expect(block, ": a block of 300 bytes\nAllocated at (most recent call first):\n  allocates_for_describe ");
    expect(block, "test_describe.c:");
    expect(block + 17, ": 17 bytes inside a block of 300 bytes\nAllocated at");
    free(block);
    char *large = allocates_for_describe(5 << 20);
    expect(large + 1000000, ": 1000000 bytes inside a block of 5242880 bytes\nAllocated at");
    free(large);
    char *one = allocates_for_describe(1);
    expect(one, ": a block of 1 byte\n");
    free(one);
}

static void test_the_domain_of_a_block_is_named(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_domain_set_name(5, "parser"));
    char *block = ta_domain_malloc(5, 10);
    expect(block + 1, ": 1 byte inside a block of 10 bytes of domain parser\nAllocated at");
    free(block);
}

static void test_a_freed_block_is_told_with_both_stacks(void)
{
    char *block = allocates_for_describe(120);
    frees_for_describe(block);
    char start[64];
    snprintf(start, sizeof start, ": 3 bytes inside a block of 120 bytes, which thread %d freed\n", (int)getpid());
    expect(block + 3, start);
    expect(block, "\nFreed at (most recent call first):\n  frees_for_describe ");
    expect(block, "\nAllocated at (most recent call first):\n  allocates_for_describe ");
}

static void *describe_of_another(void *address)
{
    free(malloc(100)); /* so that the thread is known */
    char mine[512];
    ta_describe(address, mine, sizeof mine);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(mine, ": on the stack of thread "), mine);
    expect(mine, ": on the stack of thread ");
    return NULL;
}

static void test_stacks_variables_and_functions_are_told(void)
{
    int local = 0;
    char start[64];
    snprintf(start, sizeof start, ": on the stack of thread %d\n", (int)getpid());
    expect(&local, start);
    pthread_t thread;
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, describe_of_another, &local));
    pthread_join(thread, NULL);
    expect(&described_variable[0], ": described_variable (");
    expect(&described_variable[3], ": described_variable+0xc (");
    expect((const void *)(uintptr_t)allocates_for_describe, ": allocates_for_describe (");
}

/* The allocator has reserved more than it has made pages of. */
static void test_memory_of_the_allocator_without_a_block_is_told(void)
{
    char *block = malloc(4 << 20);
    expect(block + (40 << 20), ": in memory of the allocator, but in no live block: it was freed, or is a header\n");
    free(block);
}

/* ---- with other options: in a process of its own ---- */

__attribute__((noipa)) static char *freed_here(size_t size)
{
    char *block = malloc(opaque(size));
    free(block);
    return opaque_pointer(block);
}

/* Blocks have headers, and nobody knows who asked for them. */
static void describe_untraced(void *unused)
{
    (void)unused;
    char *block = malloc(opaque(300)), *gone = freed_here(400);
    fputs(describe(block + 299), stderr);
    fputs(describe(gone), stderr);
    fputs(describe(gone + 399), stderr);
    fputs(describe(freed_here(0)), stderr);
    free(block);
}

/* The name of a domain is told of a block that was freed, too. */
static void describe_freed_in_a_domain(void *unused)
{
    (void)unused;
    ta_domain_set_name(9, "texts");
    char *block = ta_domain_malloc(9, 50);
    free(block);
    fputs(describe(opaque_pointer(block + 1)), stderr);
}

/* Without headers, pages are all that is known. */
static void describe_plain(void *unused)
{
    (void)unused;
    char *block = malloc(opaque(1000)), *large = malloc(opaque(3 << 20));
    size_t room = malloc_usable_size(block), large_room = malloc_usable_size(large);
    fputs(describe(block), stderr);
    fputs(describe(block + 999), stderr);
    fputs(describe(large + (2 << 20)), stderr);
    fprintf(stderr, "%zu %zu\n", room, large_room);
    free(block);
    free(large);
}

static const struct scenario {
    const char *name;
    void (*run)(void *);
    const char *frames, *options;
} scenarios[] = {
    {"untraced", describe_untraced, "TRACEALLOC=0", "TRACEALLOC_OPTIONS=remember_frees=10"},
    {"domain", describe_freed_in_a_domain, "TRACEALLOC=1", "TRACEALLOC_OPTIONS=remember_frees=10"},
    {"plain", describe_plain, "TRACEALLOC=0", "TRACEALLOC_OPTIONS="},
};

static void run_scenario(struct child_result *result, size_t at)
{
    const char *const settings[] = {scenarios[at].frames, scenarios[at].options, NULL};
    child_run_self(result, scenarios[at].name, settings);
    if (result->exit_status == 99 && strstr(result->text, strerror(ENOEXEC)) != NULL)
        TEST_IGNORE_MESSAGE("under an emulator a program does not execute itself");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, result->exit_status, result->text);
}

static void test_blocks_that_nobody_traced_are_told_without_stacks(void)
{
    struct child_result result;
    run_scenario(&result, 0);
    const char *live = strstr(result.text, ": 299 bytes inside a block of 300 bytes, which was not traced\n");
    TEST_ASSERT_NOT_NULL_MESSAGE(live, result.text);
    TEST_ASSERT_NULL_MESSAGE(strstr(result.text, "Allocated at"), result.text);
    const char *freed = strstr(live, ": a block of 400 bytes, which thread ");
    TEST_ASSERT_NOT_NULL_MESSAGE(freed, result.text);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(freed, "\nFreed at (most recent call first):\n  freed_here "), result.text);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(freed, ": 399 bytes inside a block of 400 bytes, which thread "), result.text);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(freed, ": a block of 0 bytes, which thread "), result.text);
}

static void test_the_domain_of_a_freed_block_is_named(void)
{
    struct child_result result;
    run_scenario(&result, 1);
    TEST_ASSERT_NOT_NULL_MESSAGE(
        strstr(result.text, ": 1 byte inside a block of 50 bytes of domain texts, which thread "), result.text);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(result.text, "\nAllocated at (most recent call first):\n"), result.text);
}

static void test_blocks_without_headers_are_told_by_their_pages(void)
{
    struct child_result result;
    size_t room, large_room;
    run_scenario(&result, 2);
    TEST_ASSERT_EQUAL_size_t(4, result.lines);
    const char *line = result.text;
    for (int i = 0; i < 3; i++)
        line = strchr(line, '\n') + 1;
    TEST_ASSERT_EQUAL_INT(2, sscanf(line, "%zu %zu", &room, &large_room));
    char small_text[128], large_text[128];
    snprintf(small_text, sizeof small_text, ": in a block of at most %zu bytes, which was not traced and may be free\n",
             room);
    snprintf(large_text, sizeof large_text, ": in a block of at most %zu bytes, which was not traced and may be free\n",
             large_room);
    const char *first = strstr(result.text, small_text);
    TEST_ASSERT_NOT_NULL_MESSAGE(first, result.text);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(first + 1, small_text), result.text);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(result.text, large_text), result.text);
}

static void test_what_nobody_knows_is_told_as_such(void)
{
    expect(NULL, "0x0: the null pointer\n");
    expect((const void *)0x1234, "0x1234: in no memory that is known\n");
    expect((const void *)UINTPTR_MAX, "0xffffffffffffffff: in no memory that is known\n");
    expect((const void *)(UINTPTR_MAX / 2), "0x7fffffffffffffff: in no memory that is known\n");
}

static void test_a_small_buffer_gets_what_fits_and_the_length_of_all(void)
{
    char *block = allocates_for_describe(300), small[32];
    size_t length = strlen(describe(block));
    memset(small, 'x', sizeof small);
    TEST_ASSERT_EQUAL_size_t(length, ta_describe(block, small, 20));
    TEST_ASSERT_EQUAL_CHAR('\0', small[19]);
    TEST_ASSERT_EQUAL_CHAR('x', small[20]);
    TEST_ASSERT_EQUAL_STRING_LEN(text, small, 19);
    TEST_ASSERT_EQUAL_size_t(length, ta_describe(block, NULL, 0));
    free(block);
}

static const void *asked_in_handler;

/* Once more, a moment of the program's own time after the answer: however long that takes, the program goes on. */
static void signal_soon(long microseconds)
{
    TEST_ASSERT_EQUAL_INT(0, setitimer(ITIMER_PROF, &(struct itimerval){{0, 0}, {0, microseconds}}, NULL));
}

static void on_signal(int number)
{
    (void)number;
    ta_describe(asked_in_handler, text, sizeof text);
    signal_soon(1000);
}

/* Also while the thread is anywhere in the allocator, on a stack with little room. */
static void test_signal_handlers_are_answered(void)
{
    static char stack[16384];
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    TEST_ASSERT_EQUAL_INT(0, sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL));
    TEST_ASSERT_EQUAL_INT(0, sigaction(SIGPROF, &action, NULL));
    asked_in_handler = allocates_for_describe(300);
    signal_soon(1000);
    for (int i = 0; i < 300000; i++)
        free(opaque_pointer(malloc(opaque((size_t)(i % 3000)))));
    raise(SIGPROF);
    signal_soon(0);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(text, ": a block of 300 bytes\nAllocated at"), text);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(text, "  allocates_for_describe "), text);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof scenarios / sizeof *scenarios; i++)
        if (strcmp(argv[1], scenarios[i].name) == 0)
            return scenarios[i].run(NULL), 0;
    const char *options = getenv("TRACEALLOC_OPTIONS");
    if (options == NULL || strstr(options, "remember_frees") == NULL) {
        setenv("TRACEALLOC", "20", 1);
        setenv("TRACEALLOC_OPTIONS", "remember_frees=1000", 1);
        execv("/proc/self/exe", argv);
    }
    UNITY_BEGIN();
    RUN_TEST(test_a_live_block_is_told_with_its_stack);
    RUN_TEST(test_the_domain_of_a_block_is_named);
    RUN_TEST(test_a_freed_block_is_told_with_both_stacks);
    RUN_TEST(test_stacks_variables_and_functions_are_told);
    RUN_TEST(test_memory_of_the_allocator_without_a_block_is_told);
    RUN_TEST(test_blocks_that_nobody_traced_are_told_without_stacks);
    RUN_TEST(test_the_domain_of_a_freed_block_is_named);
    RUN_TEST(test_blocks_without_headers_are_told_by_their_pages);
    RUN_TEST(test_what_nobody_knows_is_told_as_such);
    RUN_TEST(test_a_small_buffer_gets_what_fits_and_the_length_of_all);
    RUN_TEST(test_signal_handlers_are_answered);
    return UNITY_END();
}
