/* test_capture_property.c: random trees of calls through frames of every kind; each captured stack is what the calls
 * themselves wrote down, and what glibc's backtrace() says.
 *
 * Every function notes its return address on entry and takes it back on return: the truth by construction. Where libc
 * stands between (callbacks), its frames are known to backtrace() only. */
#include <alloca.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unity.h>

#include "tracealloc.h"

#define NOINLINE __attribute__((noinline, noclone))
#define KEEP(p)  __asm__ volatile("" : : "r"(p) : "memory")

/* Instrumented entry points call where the real ones jump: frames of ours come first. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

enum { FRAMES = 512, NOTES = 256 };

struct walker {
    unsigned random;
    void *notes[NOTES]; /* return addresses, outermost first */
    int count;
    int foreign; /* frames of libc lie between */
    int signals; /* handlers that run now */
    int with_signals;
    long checked;
    const char *complaint;
};

static __thread struct walker *me; /* for callbacks, which have no room for it */

void setUp(void)
{
}

void tearDown(void)
{
    ta_stop();
}

static unsigned some(struct walker *walker, unsigned below)
{
    walker->random = walker->random * 1103515245 + 12345;
    return (walker->random >> 16) % below;
}

/* Where a signal interrupted a frame, that frame's address is given as if it had called: one more than backtrace() says.
 * How many such frames there are between the stacks; -1: they differ in another way. */
static int interrupted_between(void **frames, void **seen, size_t count)
{
    int found = 0;
    for (size_t i = 1; i < count; i++)
        if ((char *)frames[i] == (char *)seen[i] + 1)
            found++;
        else if (frames[i] != seen[i])
            return -1;
    return found;
}

NOINLINE static void check(struct walker *walker, const void *block, void **seen, int seen_count)
{
    void *frames[FRAMES];
    size_t total;
    size_t count = ta_get_object_traceback(block, frames, FRAMES, &total);
    walker->checked++;
    if (count != total)
        walker->complaint = "not all frames are stored";
    /* backtrace() was called by the function that called malloc: all but the first must agree. glibc may say one more, a frame without a name behind the outermost. */
    size_t others = (size_t)seen_count;
    if (!SANITIZED && others != count && others != count + 1)
        walker->complaint = "backtrace() sees a stack of another depth";
    if (!SANITIZED && (others == count || others == count + 1) &&
        interrupted_between(frames, seen, count) != walker->signals)
        walker->complaint = "backtrace() sees another stack";
    /* frames[0] is the call of malloc; then come the notes, most recent first. */
    size_t at = 1;
    for (int i = walker->count - 1; i >= 0; i--) {
        if (walker->foreign || SANITIZED)
            while (at < count && frames[at] != walker->notes[i])
                at++;
        if (at >= count || frames[at] != walker->notes[i]) {
            walker->complaint = "the stack is not that of the calls";
            return;
        }
        at++;
    }
}

/* malloc and backtrace() from the same frame. */
#define ALLOCATE(walker, expression)                                                                                   \
    do {                                                                                                               \
        void *seen[FRAMES];                                                                                            \
        void *block = (expression);                                                                                    \
        int seen_count = backtrace(seen, FRAMES);                                                                      \
        check((walker), block, seen, seen_count);                                                                      \
        ta_free(block);                                                                                                \
    } while (0)

#define ENTER(walker) ((walker)->notes[(walker)->count++] = __builtin_return_address(0))
#define LEAVE(walker) ((walker)->count--)

NOINLINE static void go(struct walker *walker, int depth);

NOINLINE static void plain(struct walker *walker, int depth)
{
    ENTER(walker);
    ALLOCATE(walker, ta_malloc(1 + some(walker, 900)));
    go(walker, depth);
    LEAVE(walker);
}

NOINLINE static void with_alloca(struct walker *walker, int depth)
{
    ENTER(walker);
    char *room = alloca(8 + some(walker, 3000));
    KEEP(room);
    go(walker, depth);
    ALLOCATE(walker, ta_calloc(3, 1 + some(walker, 50)));
    KEEP(room);
    LEAVE(walker);
}

NOINLINE static void aligned(struct walker *walker, int depth)
{
    ENTER(walker);
    _Alignas(64) char room[256];
    KEEP(room);
    ALLOCATE(walker, ta_malloc(40));
    go(walker, depth);
    KEEP(room);
    LEAVE(walker);
}

NOINLINE static void aligned_alloca(struct walker *walker, int depth)
{
    ENTER(walker);
    _Alignas(128) char room[128];
    char *more = alloca(8 + some(walker, 500));
    KEEP(room);
    KEEP(more);
    go(walker, depth);
    ALLOCATE(walker, ta_aligned_alloc(64, 100));
    KEEP(room);
    LEAVE(walker);
}

__attribute__((noinline, noclone, optimize("no-omit-frame-pointer"))) static void framed(struct walker *walker,
                                                                                         int depth)
{
    ENTER(walker);
    go(walker, depth);
    ALLOCATE(walker, ta_realloc(ta_malloc(10), 5000));
    LEAVE(walker);
}

NOINLINE static void large(struct walker *walker, int depth)
{
    ENTER(walker);
    volatile char room[9000];
    room[depth] = 1;
    ALLOCATE(walker, ta_malloc(33));
    go(walker, depth);
    room[0] = room[depth];
    LEAVE(walker);
}

/* All callee-saved registers in use, also the one that elsewhere points to frames. */
NOINLINE static long busy(struct walker *walker, int depth)
{
    ENTER(walker);
    long a = some(walker, 9), b = some(walker, 9), c = some(walker, 9), d = some(walker, 9), e = some(walker, 9),
         f = some(walker, 9);
    go(walker, depth);
    ALLOCATE(walker, ta_malloc((size_t)(a + b)));
    go(walker, depth / 2);
    KEEP(a ^ b ^ c ^ d ^ e ^ f);
    LEAVE(walker);
    return a + b * c + d * e + f;
}

static int callback(const void *a, const void *b)
{
    struct walker *walker = me;
    ENTER(walker);
    (void)a, (void)b;
    ALLOCATE(walker, ta_malloc(60));
    go(walker, *(const int *)a);
    LEAVE(walker);
    return 0;
}

NOINLINE static void through_libc(struct walker *walker, int depth)
{
    ENTER(walker);
    int values[2] = {depth, depth};
    walker->foreign++;
    qsort(values, 2, sizeof values[0], callback);
    (void)bsearch(values, values, 1, sizeof values[0], callback);
    walker->foreign--;
    ALLOCATE(walker, ta_malloc(5));
    LEAVE(walker);
}

static int depth_of_signal;

static void on_signal(int number)
{
    struct walker *walker = me;
    ENTER(walker);
    (void)number;
    walker->signals++;
    ALLOCATE(walker, ta_malloc(70));
    go(walker, depth_of_signal);
    walker->signals--;
    LEAVE(walker);
}

/* Through the handler, on this stack or on another. */
NOINLINE static void through_signal(struct walker *walker, int depth)
{
    ENTER(walker);
    if (me == walker && walker->signals == 0 && walker->with_signals) {
        walker->foreign++;
        depth_of_signal = depth / 2;
        raise(some(walker, 2) ? SIGUSR1 : SIGUSR2);
        walker->foreign--;
    }
    ALLOCATE(walker, ta_malloc(6));
    LEAVE(walker);
}

NOINLINE static void go(struct walker *walker, int depth)
{
    static void (*const kinds[])(struct walker *, int) = {plain,  with_alloca, aligned,      aligned_alloca,
                                                          framed, large,       through_libc, through_signal};
    ENTER(walker);
    if (depth > 0 && walker->complaint == NULL && walker->count < NOTES - 4) {
        for (unsigned i = 0, n = 1 + (some(walker, 3) == 0); i < n; i++) {
            unsigned kind = some(walker, 9);
            if (kind == 8)
                KEEP(busy(walker, depth - 1));
            else
                kinds[kind](walker, depth - 1);
        }
    } else {
        ALLOCATE(walker, ta_malloc(1 + some(walker, 2000)));
    }
    if (some(walker, 4) == 0)
        ALLOCATE(walker, ta_malloc(16));
    LEAVE(walker);
}

#if defined(__SANITIZE_THREAD__) /* looks at each call */
static int trees = 40;
#else
static int trees = 120;
#endif

static void *walk(void *argument)
{
    struct walker *walker = argument;
    me = walker;
    for (int i = 0; i < trees && walker->complaint == NULL; i++)
        go(walker, 1 + (int)some(walker, 12));
    return NULL;
}

static void test_stacks_of_random_trees_are_those_of_their_calls(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(FRAMES));
    for (unsigned seed = 1; seed <= 8; seed++) {
        struct walker walker = {.random = seed};
        walk(&walker);
        TEST_ASSERT_NULL_MESSAGE(walker.complaint, walker.complaint);
        TEST_ASSERT_GREATER_THAN_INT(300, (int)walker.checked);
    }
}

static void test_stacks_of_random_trees_in_threads_are_those_of_their_calls(void)
{
    enum { THREADS = 4 };
    static struct walker walkers[THREADS];
    pthread_t threads[THREADS];
    TEST_ASSERT_EQUAL_INT(0, ta_start(FRAMES));
    for (unsigned i = 0; i < THREADS; i++) {
        walkers[i] = (struct walker){.random = 100 + i};
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, walk, &walkers[i]));
    }
    for (unsigned i = 0; i < THREADS; i++) {
        TEST_ASSERT_EQUAL_INT(0, pthread_join(threads[i], NULL));
    }
    for (unsigned i = 0; i < THREADS; i++) {
        TEST_ASSERT_NULL_MESSAGE(walkers[i].complaint, walkers[i].complaint);
        TEST_ASSERT_GREATER_THAN_INT(100, (int)walkers[i].checked);
    }
}

static void test_stacks_through_signal_frames_are_those_of_their_calls(void)
{
    static char alternate[256 << 10];
    struct sigaction here = {.sa_handler = on_signal};
    struct sigaction elsewhere = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    TEST_ASSERT_EQUAL_INT(0, sigaltstack(&(stack_t){.ss_sp = alternate, .ss_size = sizeof alternate}, NULL));
    TEST_ASSERT_EQUAL_INT(0, sigaction(SIGUSR1, &here, NULL));
    TEST_ASSERT_EQUAL_INT(0, sigaction(SIGUSR2, &elsewhere, NULL));
    TEST_ASSERT_EQUAL_INT(0, ta_start(FRAMES));
    for (unsigned seed = 50; seed < 54; seed++) {
        struct walker walker = {.random = seed, .with_signals = 1};
        walk(&walker);
        TEST_ASSERT_NULL_MESSAGE(walker.complaint, walker.complaint);
        TEST_ASSERT_GREATER_THAN_INT(300, (int)walker.checked);
    }
    TEST_ASSERT_EQUAL_INT(0, sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL));
}

/* With an argument, fewer and without signals: emulators are slow, and their signal frames have no unwind tables. */
int main(int count, char **words)
{
    static char output[1 << 16];
    void *first[4];
    (void)words;
    if (count > 1)
        trees = 30;
    setvbuf(stdout, output, _IOFBF, sizeof output);
    backtrace(first, 4); /* loads what it needs */
    UNITY_BEGIN();
    RUN_TEST(test_stacks_of_random_trees_are_those_of_their_calls);
    RUN_TEST(test_stacks_of_random_trees_in_threads_are_those_of_their_calls);
    if (count == 1)
        RUN_TEST(test_stacks_through_signal_frames_are_those_of_their_calls);
    return UNITY_END();
}
