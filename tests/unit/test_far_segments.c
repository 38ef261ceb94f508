/* test_far_segments.c: a program whose segments are not mapped side by side, as its linker was told to think of pages of
 * 2 MiB (hugepages), or as lld lays some out. libc then knows of the text alone; stacks are whole nevertheless. */
#include <execinfo.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include <unity.h>

#include "tracealloc.h"

#define NOINLINE __attribute__((noinline, noclone))
enum { CALLS = 6, FRAMES = 64 };

void setUp(void)
{
}

void tearDown(void)
{
    ta_stop();
}

static void *backtrace_frames[FRAMES];
static int backtrace_count;

static NOINLINE void *deep(int more)
{
    void *block;
    if (more > 0) {
        block = deep(more - 1);
    } else {
        backtrace_count = backtrace(backtrace_frames, FRAMES);
        block = ta_malloc(1234);
    }
    __asm__ volatile("" : "+r"(block));
    return block;
}

/* Is there a page between two segments that is neither's? */
static int has_a_gap(void)
{
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    uintptr_t end = 0;
    for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++) {
        if (segments[i].p_type != PT_LOAD)
            continue;
        if (end != 0 && (segments[i].p_vaddr & ~(uintptr_t)4095) > ((end + 4095) & ~(uintptr_t)4095))
            return 1;
        end = segments[i].p_vaddr + segments[i].p_memsz;
    }
    return 0;
}

static void test_stacks_are_whole(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    TEST_IGNORE_MESSAGE("the sanitizer's backtrace has frames of its own");
#endif
    TEST_ASSERT_TRUE_MESSAGE(has_a_gap(), "the linker has put the segments side by side");
    free(malloc(1));
    (void)backtrace(backtrace_frames, FRAMES); /* it allocates the first time */
    TEST_ASSERT_EQUAL_INT(0, ta_start(FRAMES));
    void *block = deep(CALLS), *frames[FRAMES];
    size_t total;
    size_t count = ta_get_object_traceback(block, frames, FRAMES, &total);
    TEST_ASSERT_EQUAL_size_t(count, total);
    TEST_ASSERT_EQUAL_size_t((size_t)backtrace_count, count);
    for (size_t i = 1; i < count; i++)
        TEST_ASSERT_EQUAL_PTR(backtrace_frames[i], frames[i]);
    struct ta_health health;
    ta_get_health(&health, sizeof health);
    TEST_ASSERT_EQUAL_UINT64(0, health.cut_short);
    ta_free(block);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_stacks_are_whole);
    return UNITY_END();
}
