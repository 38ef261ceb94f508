/* test_kept_stacks.c: stacks that are met again and again are answered from what was kept of them (trace/kept_stacks.h) — and never
 * when a word of them has changed. The same call sites with the same registers are reached by ways that differ only
 * further out, in every order. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <unity.h>

#include "alloc/alloc.h"
#include "alloc/header.h"
#include "base/memory.h"
#include "trace/kept_stacks.h"
#include "tracealloc.h"

#define NOINLINE __attribute__((noinline, noclone))
#define KEEP(p)  __asm__ volatile("" : : "r"(p) : "memory")

enum { SITES = 4, WAYS = 5, FRAMES = 64 };

struct request {
    int site, way;
    void *block;
    void *inner_return, *outer_return; /* where two of its frames return to */
};

NOINLINE static void site(struct request *request)
{
    switch (request->site) {
    case 0:
        request->block = ta_malloc(10);
        break;
    case 1:
        request->block = ta_malloc(200);
        break;
    case 2:
        request->block = ta_calloc(3, 7);
        break;
    default:
        request->block = ta_malloc(33);
        break;
    }
    request->inner_return = __builtin_return_address(0);
    KEEP(request);
}

NOINLINE static void middle(struct request *request)
{
    site(request);
    request->outer_return = __builtin_return_address(0);
    KEEP(request);
}

/* The same frame, whichever call is taken: only a return address tells. */
#define WAY(number, text)                                                                                              \
    case number:                                                                                                       \
        middle(request);                                                                                               \
        __asm__ volatile("nop # " text ::: "memory");                                                                  \
        break

NOINLINE static void outer(struct request *request)
{
    switch (request->way) {
        WAY(0, "way 0");
        WAY(1, "way 1");
        WAY(2, "way 2");
        WAY(3, "way 3");
        WAY(4, "way 4");
    }
    KEEP(request);
}

static int is_true(const struct request *request)
{
    void *frames[FRAMES];
    size_t count = ta_get_object_traceback(request->block, frames, FRAMES, NULL);
    size_t at = 0;
    while (at < count && frames[at] != request->inner_return)
        at++;
    return at + 1 < count && frames[at + 1] == request->outer_return;
}

void setUp(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta_start(TA_NFRAME_MAX));
}

void tearDown(void)
{
    ta_stop();
}

static const char *run_in_every_order(unsigned rounds)
{
    unsigned random = 7;
    for (unsigned round = 0; round < rounds; round++) {
        /* First in turn, so that all are kept; then at random. */
        random = random * 1103515245u + 12345u;
        unsigned chosen = round < rounds / 2 ? round : random >> 16;
        struct request request = {.site = (int)(chosen % SITES), .way = (int)(chosen / SITES % WAYS)};
        outer(&request);
        int right = is_true(&request);
        ta_free(request.block);
        if (!right)
            return "a stack of another way";
    }
    return NULL;
}

static void test_the_ways_differ_in_nothing_but_a_return_address(void)
{
    void *returns[WAYS];
    for (int way = 0; way < WAYS; way++) {
        struct request request = {.way = way};
        outer(&request);
        ta_free(request.block);
        returns[way] = request.outer_return;
        for (int other = 0; other < way; other++)
            TEST_ASSERT_TRUE(returns[other] != returns[way]);
    }
}

static void test_a_kept_stack_with_a_changed_word_further_out_is_walked_again(void)
{
    const char *complaint = run_in_every_order(20000);
    TEST_ASSERT_NULL_MESSAGE(complaint, complaint);
}

static void *in_thread(void *unused)
{
    (void)unused;
    return (void *)(uintptr_t)run_in_every_order(20000);
}

static void test_threads_keep_stacks_of_their_own(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, in_thread, NULL));
    for (int i = 0; i < 4; i++) {
        void *complaint;
        TEST_ASSERT_EQUAL_INT(0, pthread_join(threads[i], &complaint));
        TEST_ASSERT_NULL_MESSAGE(complaint, complaint);
    }
}

static int kept_now(void)
{
    return (int)ta__self->near->paths_used - 1;
}

static void test_stacks_met_in_turn_are_kept_after_the_second_time(void)
{
    struct request first = {.site = 0}; /* what ended with the threads of other tests is noticed now */
    outer(&first);
    ta_free(first.block);
    int before = kept_now();
    for (int round = 0; round < 4; round++)
        for (int number = 0; number < SITES; number++) {
            struct request request = {.site = number};
            outer(&request);
            ta_free(request.block);
        }
    TEST_ASSERT_GREATER_OR_EQUAL_INT(before + SITES, kept_now());
    TEST_ASSERT_LESS_OR_EQUAL_INT(before + 2 * SITES - 1, kept_now()); /* forks are counted too */
}

static void test_another_limit_forgets_what_was_kept(void)
{
    struct request request = {.site = 1, .way = 2};
    for (int i = 0; i < 8; i++) {
        request.site = i % 2;
        outer(&request);
        ta_free(request.block);
    }
    TEST_ASSERT_GREATER_THAN_INT(0, kept_now());
    ta_stop();
    TEST_ASSERT_EQUAL_INT(0, ta_start(3));
    for (int i = 0; i < 8; i++) {
        request.site = i % 2;
        outer(&request);
        size_t total;
        void *frames[FRAMES];
        TEST_ASSERT_EQUAL_size_t(3, ta_get_object_traceback(request.block, frames, FRAMES, &total));
        TEST_ASSERT_GREATER_THAN_size_t(3, total);
        ta_free(request.block);
    }
}

/* ---- what follows, and where a search begins ---- */

static const struct ta__kept_chunk *words_of(const struct ta__kept_path *path)
{
    return (const struct ta__kept_chunk *)(const void *)(path->chunks_end + path->chunks_begin) + path->is_odd;
}

/* Does the path differ from the one it branches off from where it says so, and no earlier? */
static int is_branch_of(const struct ta__kept_path *path, const struct ta__kept_path *other)
{
    const struct ta__kept_chunk *words = words_of(path), *its = words_of(other);
    uint32_t chunk = path->number / sizeof *words, number = path->number % sizeof *words;
    return path->ip == other->ip && path->sp == other->sp && path->room == other->room &&
           (other->parent == 0 || other->number < path->number) && memcmp(words, its, chunk * sizeof *words) == 0 &&
           memcmp(words[chunk].values, its[chunk].values, number * sizeof(uint64_t)) == 0 &&
           words[chunk].values[number] != its[chunk].values[number] &&
           words[chunk].offsets[number] == its[chunk].offsets[number];
}

static uint32_t expected_of(const struct ta__kept_head *head)
{
    return head->expected / (uint32_t)sizeof(struct ta__kept_path);
}

/* What a head expects is the path found last or, where that moves, its follower. */
static int is_head_in_order(const struct ta__near *near, const struct ta__kept_head *head)
{
    const struct ta__kept_path *last = &near->paths[head->last];
    int moves = (last->turns & TA__KEPT_MOVES) != 0;
    return head->last < near->paths_used && expected_of(head) == (moves ? last->follower : head->last) &&
           (!moves || (near->paths[last->follower].turns & TA__KEPT_EXPECTED) != 0 || last->follower == head->last);
}

/* Numbers of paths are of what is kept now, and followers of the same head. */
static int is_kept_in_order(void)
{
    const struct ta__near *near = ta__self->near;
    for (uint32_t i = 0; i < TA__KEPT_HEADS; i++)
        if (!is_head_in_order(near, &near->heads[i]))
            return 0;
    for (uint32_t i = 0; i < near->paths_used; i++) {
        const struct ta__kept_path *path = &near->paths[i];
        if (path->follower >= near->paths_used || path->parent >= near->paths_used)
            return 0;
        const struct ta__kept_path *next = &near->paths[path->follower];
        if (path->follower == i ? i != 0 : (path->turns & TA__KEPT_MOVES) != 0 && path->follower == 0)
            return 0;
        if (path->follower != 0 && ta__kept_head_of(path->ip, path->sp) != ta__kept_head_of(next->ip, next->sp))
            return 0;
        if (path->parent != 0 && !is_branch_of(path, &near->paths[path->parent]))
            return 0;
    }
    return 1;
}

NOINLINE static size_t deep(int depth, struct request *request)
{
    if (depth == 0) {
        outer(request);
        return (size_t)is_true(request);
    }
    size_t right = deep(depth - 1, request);
    KEEP(&right);
    return right;
}

static void test_more_stacks_than_there_is_room_for_are_still_told_apart(void)
{
    for (int round = 0; round < 12; round++)
        for (int depth = 0; depth < 400; depth++) {
            struct request request = {.site = (depth + round) % SITES, .way = depth % WAYS};
            TEST_ASSERT_EQUAL_size_t(1, deep(depth, &request));
            ta_free(request.block);
            TEST_ASSERT_TRUE(depth % 16 != 0 || is_kept_in_order());
        }
}

enum { LEVELS = 6, CHOICES = 1 << LEVELS };

/* One of 64 stacks: each frame calls the next from one of two places. */
NOINLINE static void *choose(int levels, unsigned which)
{
    void *block;
    if (levels == 0) {
        block = ta_malloc(10);
        KEEP(block);
    } else if ((which & 1) != 0) {
        block = choose(levels - 1, which >> 1);
        __asm__ volatile("nop # one place" ::: "memory");
    } else {
        block = choose(levels - 1, which >> 1);
        __asm__ volatile("nop # the other place" ::: "memory");
    }
    KEEP(block);
    return block;
}

/* The stacks as they were when each was first met: walked. */
struct chosen {
    void *frames[CHOICES][FRAMES];
    size_t counts[CHOICES];
};

static int is_as_before(struct chosen *known, unsigned which, const void *block)
{
    void *frames[FRAMES];
    size_t count = ta_get_object_traceback(block, frames, FRAMES, NULL);
    if (known->counts[which] == 0) {
        known->counts[which] = count;
        memcpy(known->frames[which], frames, count * sizeof *frames);
    }
    return count > LEVELS + 1 && count == known->counts[which] &&
           memcmp(known->frames[which], frames, count * sizeof *frames) == 0;
}

/* All stacks in one order after another, and many times in one; one call for all, so that they are the same stacks. */
NOINLINE static const char *run_orders(struct chosen *known, unsigned orders)
{
    static const unsigned steps[] = {1, CHOICES - 1, 29, 3};
    const char *complaint = NULL;
    for (unsigned i = 0; i < orders * 3 * CHOICES; i++) {
        unsigned which = i * steps[i / 3 / CHOICES % 4] % CHOICES;
        void *block = choose(LEVELS, which);
        if (!is_as_before(known, which, block))
            complaint = "another stack";
        ta_free(block);
    }
    KEEP(known);
    return complaint;
}

static const char *chosen_are_told_apart(const struct chosen *known)
{
    for (unsigned one = 0; one < CHOICES; one++)
        for (unsigned other = 0; other < one; other++)
            if (memcmp(known->frames[one], known->frames[other], sizeof known->frames[one]) == 0)
                return "two stacks are one";
    return is_kept_in_order() ? NULL : "what is kept does not hang together";
}

static void expect_no_complaint(const char *complaint, int line)
{
    if (complaint != NULL)
        UNITY_TEST_FAIL((UNITY_LINE_TYPE)line, complaint);
}
#define EXPECT_NO_COMPLAINT(complaint) expect_no_complaint(complaint, __LINE__)

/* A guess may be wrong; what is kept is found wherever the search begins, and so is never kept again. */
static void test_stacks_are_found_in_any_order_and_kept_once(void)
{
#if defined(__SANITIZE_THREAD__)
    TEST_IGNORE_MESSAGE("this sanitizer leaves no jumps to other functions: the return address is one of ours");
#endif
    static struct chosen known;
    struct request first = {.site = 0};
    outer(&first); /* the thread adapts */
    ta_free(first.block);
    for (int round = 0; round < 3; round++) {
        int before = kept_now();
        EXPECT_NO_COMPLAINT(run_orders(&known, 4));
        TEST_ASSERT_EQUAL_INT(round == 0 ? before + CHOICES : before, kept_now());
        EXPECT_NO_COMPLAINT(chosen_are_told_apart(&known));
    }
}

/* A kept stack by its leaf, of which there is one. */
static uint32_t path_of(const void *block)
{
    const struct ta__near *near = ta__self->near;
    uint32_t leaf = ta__mark_leaf(ta__mark_of(block)), path = near->paths_used - 1;
    while (path > 0 && near->paths[path].leaf != leaf)
        path--;
    return path;
}

NOINLINE static void run_sequence(const unsigned *sequence, size_t length, uint32_t *paths)
{
    for (size_t i = 0; i < length; i++) {
        void *block = choose(LEVELS, sequence[i]);
        paths[sequence[i]] = path_of(block);
        ta_free(block);
    }
    KEEP(paths);
}

static uint32_t follower_of(uint32_t path)
{
    return ta__self->near->paths[path].follower;
}

static void test_the_follower_is_what_came_next_last_time(void)
{
    static const unsigned sequence[] = {7, 3, 7, 3, 7, 3, 5, 7, 7, 5, 7, 5};
    uint32_t paths[CHOICES];
    run_sequence(sequence, 5, paths);
    TEST_ASSERT_TRUE(paths[7] != 0 && paths[3] != 0 && paths[3] != paths[7]);
    run_sequence(sequence, 2, paths);
    TEST_ASSERT_EQUAL_UINT32(paths[3], follower_of(paths[7]));
    TEST_ASSERT_EQUAL_UINT32(paths[7], follower_of(paths[3]));
    run_sequence(sequence, sizeof sequence / sizeof *sequence, paths);
    TEST_ASSERT_EQUAL_UINT32(paths[5], follower_of(paths[7])); /* the same one twice is none that follows */
    TEST_ASSERT_EQUAL_UINT32(paths[7], follower_of(paths[5]));
    TEST_ASSERT_TRUE(is_kept_in_order());
}

static const struct ta__kept_head *head_of(uint32_t path)
{
    const struct ta__near *near = ta__self->near;
    return &near->heads[ta__kept_head_of(near->paths[path].ip, near->paths[path].sp)];
}

/* Two in turn are each expected behind the other; who comes twice is expected again, until the other one comes. */
static void test_what_is_expected_is_what_came_last_time(void)
{
#if defined(__SANITIZE_THREAD__)
    TEST_IGNORE_MESSAGE("this sanitizer leaves no jumps to other functions: the return address is one of ours");
#endif
    enum { ONE = 9, OTHER = 4, PLACES = 12, KNOWN = 6 };
    static const unsigned sequence[PLACES] = {ONE, OTHER, ONE, OTHER, ONE, OTHER, ONE, OTHER, ONE, ONE, ONE, OTHER};
    static const unsigned expected[PLACES] = {[KNOWN] = OTHER, ONE, OTHER, ONE, ONE, ONE};
    uint32_t paths[CHOICES], told[PLACES], last[PLACES];
    memset(paths, 0, sizeof paths);
    for (volatile int i = 0; i < PLACES; i++) { /* one call for all */
        void *block = choose(LEVELS, sequence[i]);
        uint32_t path = path_of(block);
        ta_free(block);
        paths[sequence[i]] = path;
        told[i] = expected_of(head_of(path));
        last[i] = head_of(path)->last;
    }
    TEST_ASSERT_TRUE(paths[ONE] != 0 && paths[OTHER] != 0 && paths[ONE] != paths[OTHER]);
    for (int i = KNOWN; i < PLACES; i++) {
        TEST_ASSERT_EQUAL_UINT32(paths[sequence[i]], last[i]);
        TEST_ASSERT_EQUAL_UINT32(paths[expected[i]], told[i]);
    }
    TEST_ASSERT_TRUE(is_kept_in_order());
}

static void *run_other_orders(void *known)
{
    memset(known, 0, sizeof(struct chosen));
    const char *complaint = run_orders(known, 2);
    return (void *)(uintptr_t)(complaint != NULL ? complaint : chosen_are_told_apart(known));
}

/* Followers are numbers of what is kept: none of them is left when that is forgotten, or is another thread's. */
static void test_followers_end_with_what_was_kept(void)
{
#if defined(__SANITIZE_THREAD__)
    TEST_IGNORE_MESSAGE("this sanitizer leaves no jumps to other functions: the return address is one of ours");
#endif
    static struct chosen known;
    for (int round = 0; round < 6; round++) {
        static const unsigned few[] = {1, 2, 1, 2, 1, 2};
        uint32_t paths[CHOICES];
        pthread_t thread;
        void *complaint;
        memset(&known, 0, sizeof known);
        EXPECT_NO_COMPLAINT(run_orders(&known, 4));
        switch (round % 3) {
        case 0:
            ta__kept_forget(ta__self); /* as when there is no more room */
            break;
        case 1:
            ta_clear_traces();
            break;
        default:
            ta_stop();
            TEST_ASSERT_EQUAL_INT(0, ta_start(TA_NFRAME_MAX));
        }
        run_sequence(few, sizeof few / sizeof *few, paths); /* fewer than before */
        TEST_ASSERT_TRUE(is_kept_in_order());
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, run_other_orders, &known));
        TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, &complaint)); /* the next one has its memory */
        TEST_ASSERT_NULL(complaint);
    }
}

/* ---- room ---- */

enum { DEPTHS = 400, MORE_DEPTHS = 700, MANY_ROUNDS = 12 };

/* Stacks of so many depths, from one call. 0: one was taken for another. */
NOINLINE static int go_down(volatile int depths, volatile int rounds)
{
    int right = 1;
    while (rounds-- > 0)
        for (volatile int depth = 0; depth < depths; depth++) {
            struct request request = {.way = depth % WAYS};
            right &= (int)deep(depth, &request);
            ta_free(request.block);
        }
    KEEP(&right);
    return right;
}

static size_t grown_by(uint32_t room)
{
    return ta__near_bytes(room) - ta__near_bytes(0);
}

/* Twice is enough for DEPTHS, where a sanitizer's frames have no more words. */
static int has_grown_enough(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return ta__self->kept_room == 3;
#else
    return ta__self->kept_room == 2;
#endif
}

static void test_room_grows_until_what_comes_again_is_kept(void)
{
    TEST_ASSERT_TRUE(go_down(1, 1));
    TEST_ASSERT_EQUAL_UINT32(0, ta__self->kept_room);
    for (volatile int part = 0; part < 2; part++) { /* some rounds, and some in which all are found; from one call */
        int before = kept_now();
        TEST_ASSERT_TRUE(go_down(DEPTHS, MANY_ROUNDS));
        TEST_ASSERT_TRUE(part == 0 || kept_now() == before);
        TEST_ASSERT_TRUE(has_grown_enough());
        TEST_ASSERT_TRUE(is_kept_in_order());
    }
    size_t mapped = ta__memory_mapped(), grown = grown_by(ta__self->kept_room);
    ta_stop();
    TEST_ASSERT_EQUAL_UINT32(0, ta__self->kept_room);
    TEST_ASSERT_TRUE(ta__memory_mapped() + grown <= mapped + (size_t)sysconf(_SC_PAGESIZE));
    TEST_ASSERT_EQUAL_INT(0, ta_start(TA_NFRAME_MAX));
    TEST_ASSERT_TRUE(go_down(DEPTHS, 3) && is_kept_in_order());
}

/* Each comes twice, and is kept for nothing. */
static void test_room_does_not_grow_for_what_does_not_come_again(void)
{
    for (volatile int depth = 0; depth < MORE_DEPTHS; depth++)
        for (volatile int time = 0; time < 2; time++) {
            struct request request = {.way = depth % WAYS};
            TEST_ASSERT_EQUAL_size_t(1, deep(depth, &request));
            ta_free(request.block);
        }
    TEST_ASSERT_EQUAL_UINT32(0, ta__self->kept_room);
}

/* One stack, met so many times. */
NOINLINE static int go_to(int depth, int number, volatile int times)
{
    int right = 1;
    while (times-- > 0) {
        struct request request = {.site = number % SITES, .way = number / SITES % WAYS};
        right &= (int)deep(depth, &request);
        ta_free(request.block);
    }
    KEEP(&right);
    return right;
}

static void test_room_does_not_grow_where_little_comes_again(void)
{
    enum { AGAIN = 60, NEW = 100 };
    int right = 1;
    for (int number = 0; number < SITES * WAYS; number++)
        for (int depth = 0; depth < AGAIN + NEW; depth++)
            right &= depth < AGAIN ? go_to(depth, 0, 2) : go_to(depth, number, 2);
    TEST_ASSERT_TRUE(right);
    TEST_ASSERT_EQUAL_UINT32(0, ta__self->kept_room);
}

static void test_without_memory_there_is_the_room_that_there_was(void)
{
    TEST_ASSERT_TRUE(go_down(DEPTHS, 2));
    ta__memory_inject_failure(1, 1);
    int right = go_down(DEPTHS, 2 * MANY_ROUNDS);
    ta__memory_inject_failure(0, 0);
    TEST_ASSERT_TRUE(right && is_kept_in_order());
    TEST_ASSERT_EQUAL_UINT32(0, ta__self->kept_room);
    TEST_ASSERT_TRUE(go_down(DEPTHS, MANY_ROUNDS));
    TEST_ASSERT_TRUE(has_grown_enough());
}

enum { GROWING = 3 };
static pthread_barrier_t all_have_grown;
static size_t grown[GROWING];

static void *grow(void *member)
{
    int right = go_down(MORE_DEPTHS, MANY_ROUNDS);
    grown[(uintptr_t)member] = grown_by(ta__self->kept_room);
    pthread_barrier_wait(&all_have_grown);
    return (void *)(uintptr_t)right;
}

static void test_room_of_all_threads_together_is_bounded(void)
{
    enum { TOGETHER = 8 << 20 };
    pthread_t threads[GROWING];
    size_t sum = 0;
    pthread_barrier_init(&all_have_grown, NULL, GROWING);
    for (uintptr_t i = 0; i < GROWING; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, grow, (void *)i));
    for (int i = 0; i < GROWING; i++) {
        void *right;
        TEST_ASSERT_EQUAL_INT(0, pthread_join(threads[i], &right));
        TEST_ASSERT_TRUE(right != NULL);
        sum += grown[i];
    }
    pthread_barrier_destroy(&all_have_grown);
    TEST_ASSERT_TRUE(sum <= TOGETHER && sum > TOGETHER / 2);
    ta_stop();
    TEST_ASSERT_EQUAL_INT(0, ta_start(TA_NFRAME_MAX));
    TEST_ASSERT_TRUE(go_down(DEPTHS, MANY_ROUNDS));
    TEST_ASSERT_TRUE(has_grown_enough()); /* all of it was given back */
}

/* ---- frames that are found by the frame pointer -------------------------------------------------------------------
 * The function with a block of changing size on its stack is found from its frame pointer. Its caller makes room where
 * the other call's frame was, and leaves what stands there: the stack pointer and every word that was looked at are the
 * same for both, and only the frame pointer says that the return address is another one. */

enum { ROOM = 512 };

NOINLINE static void innermost(struct request *request)
{
    request->block = ta_malloc(24);
    KEEP(request);
}

NOINLINE static void found_by_frame_pointer(struct request *request, size_t room)
{
    char *block = __builtin_alloca(room);
    KEEP(block);
    innermost(request);
    request->outer_return = __builtin_return_address(0);
    KEEP(block);
}

NOINLINE static void of_two_calls(struct request *request, size_t room)
{
    char *block = __builtin_alloca(room);
    KEEP(block);
    if (request->way == 0) {
        found_by_frame_pointer(request, ROOM);
        __asm__ volatile("nop # one call" ::: "memory");
    } else {
        found_by_frame_pointer(request, 0);
        __asm__ volatile("nop # the other call" ::: "memory");
    }
    KEEP(block);
}

static int is_in_traceback(const struct request *request, const void *address)
{
    void *frames[FRAMES];
    size_t count = ta_get_object_traceback(request->block, frames, FRAMES, NULL), at = 0;
    while (at < count && frames[at] != address)
        at++;
    return at < count;
}

/* After `times` calls of one kind, one of the other, all from one place. */
NOINLINE static void compare_calls(int times, int way)
{
    struct request requests[2] = {{.way = way}, {.way = 1 - way}};
    for (int i = 0; i <= times; i++) {
        struct request *request = &requests[i == times];
        of_two_calls(request, request->way == 0 ? 0 : ROOM);
        if (i + 1 < times)
            ta_free(request->block);
    }
    TEST_ASSERT_TRUE(requests[0].outer_return != requests[1].outer_return);
    for (int i = 0; i < 2; i++) {
        TEST_ASSERT_TRUE(is_in_traceback(&requests[i], requests[i].outer_return));
        TEST_ASSERT_FALSE(is_in_traceback(&requests[i], requests[1 - i].outer_return));
        ta_free(requests[i].block);
    }
}

static void test_a_stack_that_only_the_frame_pointer_tells_apart_is_another_one(void)
{
    for (int times = 1; times < 8; times++)
        for (int way = 0; way < 2; way++)
            compare_calls(times, way);
}

/* ---- a memo that is corrected in place (trace/capture.c) ---- */

NOINLINE static void *through(size_t size)
{
    void *block = ta_malloc(size);
    KEEP(block);
    return block;
}

enum { TURNS = 3 };

/* All from one call, the first and the last from one frame further in. */
NOINLINE static void from_one_call(struct request *requests)
{
    static void *(*const allocate[TURNS])(size_t) = {through, ta_malloc, through};
    for (int i = 0; i < TURNS; i++) {
        void *(*volatile chosen)(size_t) = allocate[i];
        requests[i].block = chosen(10);
        requests[i].outer_return = __builtin_return_address(0);
    }
    KEEP(requests);
}

NOINLINE static void by_a_way(int way, struct request *requests)
{
    if (way == 0) {
        from_one_call(requests);
        __asm__ volatile("nop # one way" ::: "memory");
    } else {
        from_one_call(requests);
        __asm__ volatile("nop # the other way" ::: "memory");
    }
    KEEP(requests);
}

static void test_a_change_further_out_changes_the_stacks_of_all_frames_further_in(void)
{
    struct request requests[2][TURNS];
    for (int way = 0; way < 2; way++)
        by_a_way(way, requests[way]);
    TEST_ASSERT_TRUE(requests[0][0].outer_return != requests[1][0].outer_return);
    for (int way = 0; way < 2; way++)
        for (int i = 0; i < TURNS; i++) {
            TEST_ASSERT_TRUE(is_in_traceback(&requests[way][i], requests[way][i].outer_return));
            TEST_ASSERT_FALSE(is_in_traceback(&requests[way][i], requests[1 - way][i].outer_return));
            ta_free(requests[way][i].block);
        }
}

enum { LARGER = 256, SPARE = 1024 };

NOINLINE static void place(struct request *request)
{
    char mark;
    request->inner_return = &mark; /* how deep the stack is */
    request->block = ta_malloc(10);
    KEEP(&mark);
}

NOINLINE static void in_small_frame(struct request *request)
{
    place(request);
    request->outer_return = __builtin_return_address(0);
    KEEP(request);
}

/* What a smaller frame left there stands in this one. */
NOINLINE static void in_large_frame(struct request *request)
{
    char room[LARGER];
    KEEP(room);
    place(request);
    request->outer_return = __builtin_return_address(0);
    KEEP(request);
}

NOINLINE static void in_a_frame(struct request *request, size_t above)
{
    char *room = __builtin_alloca(above);
    KEEP(room);
    if (request->way == 0)
        in_small_frame(request);
    else
        in_large_frame(request);
    KEEP(room);
}

static void test_a_return_address_of_another_frame_is_not_taken_for_one_of_the_same(void)
{
    struct request requests[2] = {{.way = 0}, {.way = 1}};
#if defined(__SANITIZE_ADDRESS__)
    TEST_IGNORE_MESSAGE("the sanitizer lays the stack out anew");
#endif
    for (int way = 0; way < 2; way++) {
        in_a_frame(&requests[way], SPARE);
        ta_free(requests[way].block);
    }
    size_t more = (size_t)((char *)requests[0].inner_return - (char *)requests[1].inner_return);
    in_a_frame(&requests[0], SPARE);
    in_a_frame(&requests[1], SPARE - more);
    TEST_ASSERT_EQUAL_PTR(requests[0].inner_return, requests[1].inner_return);
    TEST_ASSERT_TRUE(requests[0].outer_return != requests[1].outer_return);
    for (int way = 0; way < 2; way++) {
        TEST_ASSERT_TRUE(is_in_traceback(&requests[way], requests[way].outer_return));
        TEST_ASSERT_FALSE(is_in_traceback(&requests[way], requests[1 - way].outer_return));
        ta_free(requests[way].block);
    }
}

/* So far apart that walking costs nothing, samples need no memory for kept stacks. */
static void test_samples_keep_stacks_only_where_they_are_many(void)
{
    static const uint64_t intervals[] = {1, 64 << 10};
    for (int way = 0; way < 2; way++) {
        ta_stop();
        ta__trace_configure(&(struct ta__trace_config){.sample_bytes = intervals[way]});
        TEST_ASSERT_EQUAL_INT(0, ta_start(TA_NFRAME_MAX));
        struct request first = {.site = 0};
        outer(&first); /* the thread adapts */
        int before = kept_now();
        for (int i = 0; i < 200; i++) {
            void *block = ta_malloc(1 << 20);
            KEEP(&block);
            ta_free(block);
            outer(&first);
        }
        if (way == 0)
            TEST_ASSERT_GREATER_THAN_INT(before, kept_now());
        else
            TEST_ASSERT_EQUAL_INT(0, kept_now());
    }
    ta_stop();
    ta__trace_configure(&(struct ta__trace_config){.sample_bytes = 0});
    TEST_ASSERT_EQUAL_INT(0, ta_start(TA_NFRAME_MAX));
}

int main(void)
{
    static char output[1 << 16];
    setvbuf(stdout, output, _IOFBF, sizeof output);
    ta__process_ready();
    UNITY_BEGIN();
    RUN_TEST(test_the_ways_differ_in_nothing_but_a_return_address);
    RUN_TEST(test_a_kept_stack_with_a_changed_word_further_out_is_walked_again);
    RUN_TEST(test_threads_keep_stacks_of_their_own);
    RUN_TEST(test_stacks_met_in_turn_are_kept_after_the_second_time);
    RUN_TEST(test_another_limit_forgets_what_was_kept);
    RUN_TEST(test_more_stacks_than_there_is_room_for_are_still_told_apart);
    RUN_TEST(test_stacks_are_found_in_any_order_and_kept_once);
    RUN_TEST(test_the_follower_is_what_came_next_last_time);
    RUN_TEST(test_what_is_expected_is_what_came_last_time);
    RUN_TEST(test_followers_end_with_what_was_kept);
    RUN_TEST(test_room_grows_until_what_comes_again_is_kept);
    RUN_TEST(test_room_does_not_grow_for_what_does_not_come_again);
    RUN_TEST(test_room_does_not_grow_where_little_comes_again);
    RUN_TEST(test_without_memory_there_is_the_room_that_there_was);
    RUN_TEST(test_room_of_all_threads_together_is_bounded);
    RUN_TEST(test_a_stack_that_only_the_frame_pointer_tells_apart_is_another_one);
    RUN_TEST(test_a_change_further_out_changes_the_stacks_of_all_frames_further_in);
    RUN_TEST(test_a_return_address_of_another_frame_is_not_taken_for_one_of_the_same);
    RUN_TEST(test_samples_keep_stacks_only_where_they_are_many);
    return UNITY_END();
}
