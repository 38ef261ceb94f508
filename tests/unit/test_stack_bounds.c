/* test_stack_bounds.c: which stack is a thread's own (trace/unwind/stack_bounds.c). Another one right below it, in the same
 * mapping as the kernel sees it, is not: it may be unmapped while the thread lives. */
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <unity.h>

#include "alloc/alloc.h"
#include "trace/unwind/stack_bounds.h"
#include "tracealloc.h"

enum { BYTES = 1 << 20 };

/* Two halves of one mapping: the upper one is a thread's stack. */
static char *region;
static struct bounds {
    uintptr_t low, high;
} own, below, deeper;
static ucontext_t back, other;

static struct bounds bounds_at(uintptr_t sp)
{
    struct ta__thread *self = ta__self;
    TEST_ASSERT_TRUE(ta__stack_select(self, sp));
    return (struct bounds){self->stack_low, self->stack_high};
}

static void on_the_other_stack(void)
{
    ta_free(ta_malloc(100));
    below = bounds_at((uintptr_t)__builtin_frame_address(0));
}

static void *look(void *unused)
{
    ta_free(ta_malloc(100));
    own = bounds_at((uintptr_t)__builtin_frame_address(0));
    getcontext(&other);
    other.uc_stack.ss_sp = region;
    other.uc_stack.ss_size = BYTES;
    other.uc_link = &back;
    makecontext(&other, on_the_other_stack, 0);
    swapcontext(&back, &other);
    deeper = bounds_at((uintptr_t)region + BYTES + BYTES / 4); /* where no frame ever was */
    return unused;
}

static void test_a_stack_right_below_is_another_one(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    region = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT_TRUE(region != MAP_FAILED);
    TEST_ASSERT_EQUAL(0, pthread_attr_init(&attributes));
    TEST_ASSERT_EQUAL(0, pthread_attr_setstack(&attributes, region + BYTES, BYTES));
    TEST_ASSERT_EQUAL(0, pthread_create(&thread, &attributes, look, NULL));
    TEST_ASSERT_EQUAL(0, pthread_join(thread, NULL));
    pthread_attr_destroy(&attributes);
#if !defined(__x86_64__) || !defined(__GLIBC__) || defined(__SANITIZE_THREAD__)
    TEST_IGNORE_MESSAGE("a control block of another kind");
#endif
    TEST_ASSERT_EQUAL_HEX64((uintptr_t)region + BYTES, own.low);
    TEST_ASSERT_TRUE(own.high > own.low && own.high < (uintptr_t)region + 2 * BYTES);
    TEST_ASSERT_EQUAL_HEX64(own.low, deeper.low);
    TEST_ASSERT_EQUAL_HEX64(own.high, deeper.high);
    TEST_ASSERT_EQUAL_HEX64_MESSAGE(below.low, below.high, "another stack is none to be remembered");
    munmap(region, 2 * BYTES);
}

void setUp(void)
{
}

void tearDown(void)
{
}

int main(void)
{
    UNITY_BEGIN();
    ta_free(ta_malloc(1));
    RUN_TEST(test_a_stack_right_below_is_another_one);
    return UNITY_END();
}
