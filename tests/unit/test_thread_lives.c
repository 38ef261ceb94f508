/* test_thread_lives.c: a thread's structure from its first request to its last — what it says of its thread, what the next
 * thread finds in it, what happens where there is none, and threads that never get one. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <unity.h>

#include "alloc/alloc.h"
#include "base/memory.h"
#include "base/safepoint.h"
#include "tests/support/child.h"
#include "tests/support/traced_now.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

void setUp(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(5));
    ta_free(ta_malloc(1));
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
    ta_stop();
}

static void run(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    void *complaint;
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, body, argument));
    TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, &complaint));
    TEST_ASSERT_NULL_MESSAGE(complaint, (const char *)complaint);
}

/* ---- what it says of its thread ----------------------------------------------------------------------------------- */

struct said {
    const char *name;
    struct ta__thread *structure;
    int32_t number, tid;
    int is_main, slot;
    size_t room;
};

static void *look_at_own(void *argument)
{
    struct said *said = argument;
    char text[17] = "";
    if (ta__self != &ta__thread_none)
        return "a thread has a structure before it asks for anything";
    pthread_setname_np(pthread_self(), said->name);
    void *block = ta_malloc(100);
    const struct ta__thread *self = ta__self;
    if (self == &ta__thread_none || !self->is_ready)
        return "a thread that asked has none";
    memcpy(text, self->name, 16);
    if (strcmp(text, said->name) != 0)
        return "the name is another";
    if (ta_get_object_traceback(block, NULL, 0, NULL) == 0)
        return "its first block is not traced";
    uintptr_t here = (uintptr_t)__builtin_frame_address(0); /* variables may be elsewhere: address sanitizer */
    if (here < self->own_low || here >= self->own_high)
        return "its stack is another's";
    *said = (struct said){said->name, ta__self, self->number, self->tid, self->is_main, self->slot, 0};
    if (said->tid != (int32_t)syscall(SYS_gettid) || ta__safepoint_member(said->slot) != &self->safepoint ||
        !ta__safepoint_is_present(said->slot))
        return "it is registered as another";
    ta_free(block);
    return NULL;
}

static void test_a_structure_says_whose_it_is_and_goes_to_the_next_thread(void)
{
    struct said first = {.name = "first"}, second = {.name = "fifteen letters"};
    run(look_at_own, &first);
    TEST_ASSERT_FALSE(ta__safepoint_is_present(first.slot));
    first.structure->no_trace = 1; /* whatever the former thread had */
    first.structure->foreign_high = UINTPTR_MAX;
    run(look_at_own, &second);
    TEST_ASSERT_EQUAL_PTR(first.structure, second.structure);
    TEST_ASSERT_EQUAL_INT32(first.number + 1, second.number);
    TEST_ASSERT_EQUAL_INT(0, first.is_main + second.is_main);
    TEST_ASSERT_EQUAL_INT(1, ta__self->is_main);
    TEST_ASSERT_EQUAL_UINT64(0, second.structure->foreign_low + second.structure->foreign_high);
    TEST_ASSERT_EQUAL_UINT32(0, second.structure->no_trace);
}

static void *is_there_twice(void *other)
{
    void *block = ta_malloc(1);
    struct ta__thread *own = ta__self;
    run(look_at_own, other);
    ta_free(block);
    return own == ((struct said *)other)->structure ? "two threads have one structure" : NULL;
}

static void test_threads_that_are_there_at_once_have_structures_of_their_own(void)
{
    struct said other = {.name = "other"};
    run(is_there_twice, &other);
    TEST_ASSERT_NOT_EQUAL(ta__self, other.structure);
}

/* ---- its end ------------------------------------------------------------------------------------------------------ */

static void *block_of_another;

/* A handler frees inside the allocator, and then the thread asks for nothing any more. */
static void *ends_with_what_a_handler_freed(void *unused)
{
    ta_free(ta_malloc(10));
    uint32_t view = ta__self->safepoint.view;
    ta__self->safepoint.view = 0;
    ta_free(block_of_another);
    ta__self->safepoint.view = view;
    return unused;
}

static void test_what_a_handler_freed_is_freed_at_the_latest_when_its_thread_ends(void)
{
    block_of_another = ta_malloc(70000);
    size_t with = current();
    run(ends_with_what_a_handler_freed, NULL);
    TEST_ASSERT_LESS_OR_EQUAL_size_t(with - 70000 + 4096, current()); /* libc keeps something for threads */
    ta_stop();
    TEST_ASSERT_EQUAL_INT(0, ta_start(5));
    block_of_another = ta_domain_malloc(3, 100);
    run(ends_with_what_a_handler_freed, NULL);
    struct ta_domain_stats stats;
    TEST_ASSERT_EQUAL_INT(0, ta_domain_get_stats(3, &stats, sizeof stats));
    TEST_ASSERT_EQUAL_UINT64(0, stats.live_blocks);
}

static void *leaves_scopes_open(void *unused)
{
    ta_domain_push(4);
    ta_domain_push(5);
    ta_free(ta_malloc(10));
    return unused;
}

static void *has_no_scope(void *unused)
{
    uint32_t home = 99;
    void *block = ta_malloc(10);
    if (ta_domain_current() != 0)
        return "a thread begins in the scope of one that ended";
    if (!ta_domain_of(block, &home) || home != 0)
        return "a thread begins in the domain of one that ended";
    ta_domain_push(5); /* what the stack of scopes remembers is another thread's */
    void *of_5 = ta_malloc(10);
    if (!ta_domain_of(of_5, &home) || home != 5)
        return "a scope is another's";
    ta_domain_pop();
    ta_free(block), ta_free(of_5);
    return unused;
}

static void test_scopes_end_with_their_thread(void)
{
    run(leaves_scopes_open, NULL);
    run(has_no_scope, NULL);
}

/* ---- without a structure ------------------------------------------------------------------------------------------ */

static void *does_without_for_a_while(void *unused)
{
    ta__thread_do_without(1);
    void *block = ta_malloc(100);
    if (block == NULL || !ta__emergency_owns(block) || ta_usable_size(block) != 100)
        return "who does without has no emergency memory";
    if (ta__self != &ta__thread_none)
        return "who does without has a structure";
    block = ta_realloc(block, 300);
    if (block == NULL || !ta__emergency_owns(block) || ta_usable_size(block) != 300)
        return "who does without cannot change a block";
    if (ta_track(1, 1, 1) != -1 || ta_untrack(1, 1) != 0)
        return "who does without tracks";
    void *volatile traced = block_of_another;
    if (ta_usable_size(traced) != 50)
        return "who does without does not know a block's size";
    ta_free(traced); /* a leak is better than a guess */
    ta__thread_do_without(-1);
    void *own = ta_malloc(100);
    if (ta__self == &ta__thread_none || ta__emergency_owns(own))
        return "who did without still does";
    ta_free(own);
    ta_free(block); /* what it had is freed as any other */
    if (ta_usable_size(block) != 0)
        return "emergency memory stays";
    return unused;
}

static void test_a_thread_that_does_without_has_emergency_memory(void)
{
    block_of_another = ta_malloc(50);
    run(does_without_for_a_while, NULL);
    TEST_ASSERT_EQUAL_size_t(50, ta_usable_size(block_of_another));
    ta_free(block_of_another);
    ta_stop();
    TEST_ASSERT_EQUAL_INT(-2, ta_track(1, 1, 1));
    TEST_ASSERT_EQUAL_INT(-2, ta_untrack(1, 1));
}

/* One of the library's own, which the program knows nothing of. */
static void *stays_outside(void *kept)
{
    size_t before = current();
    ta__thread_may_stop(1); /* of a usual thread: nothing */
    ta__thread_stays_outside();
    void *block = ta_malloc(100);
    if (block == NULL || !ta__emergency_owns(block))
        return "a thread outside has memory of the program's";
    ta_free(block);
    if (current() != before)
        return "a thread outside is traced";
    ta_clear_traces();
    if (current() != before)
        return "a thread outside stops the others";
    ta__thread_may_stop(1);
    ta_clear_traces();
    ta__thread_may_stop(0);
    if (current() != 0 || ta_get_object_traceback(kept, NULL, 0, NULL) != 0)
        return "a thread outside that may stop the others does not";
    block = ta_malloc(100);
    if (block == NULL || !ta__emergency_owns(block))
        return "a thread outside has memory of the program's afterwards";
    ta_free(block);
    return NULL;
}

static void test_a_thread_of_the_librarys_own_stays_outside(void)
{
    void *kept = ta_malloc(100);
    struct ta__safepoint_member *own = &ta__self->safepoint;
    uint32_t view = own->view;
    ta__thread_may_stop(1);
    TEST_ASSERT_EQUAL_UINT32(view, own->view);
    ta__thread_may_stop(0);
    TEST_ASSERT_EQUAL_UINT32(view, own->view);
    run(stays_outside, kept);
    ta_free(kept);
}

static void test_helpers_of_the_library_are_not_traced(void)
{
    struct ta_health before, after;
    ta_get_health(&before, sizeof before);
    size_t traced = current();
    ta__self->no_trace = 1;
    ta__self->safepoint.view = TA__VIEW_STALE;
    void *blocks[] = {ta_malloc(100), ta_calloc(3, 1000), ta_aligned_alloc(64, 200), ta_domain_malloc(3, 300),
                      ta_realloc(ta_malloc(10), 5000)};
    size_t with = current();
    ta__self->no_trace = 0;
    ta__self->safepoint.view = TA__VIEW_STALE;
    ta_get_health(&after, sizeof after);
    TEST_ASSERT_EQUAL_size_t(traced, with);
    TEST_ASSERT_EQUAL_UINT64(before.lost, after.lost); /* that is meant so */
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        TEST_ASSERT_EQUAL_size_t(0, ta_get_object_traceback(blocks[i], NULL, 0, NULL));
        ta_free(blocks[i]);
    }
    TEST_ASSERT_EQUAL_size_t(traced, current());
}

/* ---- no memory for structures ------------------------------------------------------------------------------------- */

enum { RESERVE = 64, MANY = 90, NO_THREADS = 77 };
static pthread_barrier_t all_there, may_go;
static int have_structure, have_emergency;

static void *asks_without_memory(void *unused)
{
    char *block = ta_malloc(100);
    if (ta__self != &ta__thread_none)
        __atomic_add_fetch(&have_structure, 1, __ATOMIC_RELAXED);
    if (ta__emergency_owns(block))
        __atomic_add_fetch(&have_emergency, 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&may_go);
    if (block == NULL || ta_usable_size(block) < 100)
        return "a thread without memory for its structure got no block";
    memset(block, 1, 100);
    ta_free(block);
    return unused;
}

/* So many structures are there for threads that no memory is found for; the others have emergency memory. */
static void ask_in_many_threads(void *unused)
{
    (void)unused;
    pthread_t threads[MANY];
    pthread_attr_t small;
    pthread_barrier_init(&all_there, NULL, MANY + 1);
    pthread_barrier_init(&may_go, NULL, MANY + 1);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    ta__memory_inject_failure(0, 0);
    ta_free(ta__emergency_allocate(1, 0, 0)); /* its region is mapped */
    ta__memory_inject_failure(1, 1);
    for (int i = 0; i < MANY; i++)
        if (pthread_create(&threads[i], &small, asks_without_memory, NULL) != 0)
            _exit(NO_THREADS);
    pthread_barrier_wait(&all_there);
    ta__memory_inject_failure(0, 0);
    pthread_barrier_wait(&may_go);
    int result = 0;
    for (int i = 0; i < MANY; i++) {
        void *complaint;
        if (pthread_join(threads[i], &complaint) != 0 || complaint != NULL)
            result = 3;
    }
    if (have_structure != RESERVE || have_emergency != MANY - RESERVE)
        result = 4;
    _exit(result);
}

static void test_a_few_threads_get_structures_without_memory(void)
{
#if defined(__SANITIZE_THREAD__)
    TEST_IGNORE_MESSAGE("this sanitizer wants no threads in children");
#endif
    struct child_result result;
    child_run(&result, ask_in_many_threads, NULL);
    if (result.exit_status == NO_THREADS)
        TEST_IGNORE_MESSAGE("so many threads cannot be here");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, result.signal, result.text);
    TEST_ASSERT_EQUAL_INT(0, result.exit_status);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_a_few_threads_get_structures_without_memory); /* first: no structure waits for a thread */
    RUN_TEST(test_a_structure_says_whose_it_is_and_goes_to_the_next_thread);
    RUN_TEST(test_threads_that_are_there_at_once_have_structures_of_their_own);
    RUN_TEST(test_what_a_handler_freed_is_freed_at_the_latest_when_its_thread_ends);
    RUN_TEST(test_scopes_end_with_their_thread);
    RUN_TEST(test_a_thread_that_does_without_has_emergency_memory);
    RUN_TEST(test_a_thread_of_the_librarys_own_stays_outside);
    RUN_TEST(test_helpers_of_the_library_are_not_traced);
    return UNITY_END();
}
