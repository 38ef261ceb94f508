/* test_random_shadow.c: random operations of several threads, checked against shadow books.
 *
 * Each thread keeps a book of its blocks (address, size, alignment, pattern) in memory of its own; every operation
 * checks what it touches: alignment, usable size, zeroes of calloc, contents kept by realloc, no byte changed by
 * anybody else. Through a shared board blocks change hands, so that many are resized and freed by a thread that did not
 * allocate them. TA_TEST_SEED repeats the choices (with several threads not their interleaving),
 * TA_TEST_OPERATIONS sets how many operations there are in all, TA_TEST_THREADS how many threads. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/support/random.h"
#include "unity.h"
#include "tests/support/names.h"

enum { BOOK_LINES = 3000, BOARD_PLACES = 256, THREADS_MAX = 64, WHOLE_CHECK_MAX = 2048 };
#define LIVE_BYTES_MAX ((size_t)48 << 20)

struct line {
    unsigned char *block; /* NULL: the line is empty */
    size_t size;
    size_t alignment;
    uint64_t pattern;
};

struct thread_book {
    struct line *lines;
    uint64_t random;
    uint64_t operations;
    size_t live_bytes;
    pthread_t thread;
    const char *wrong; /* the first rule seen broken, NULL for none; written by the owner, read after join */
    struct line wrong_line;
    size_t wrong_at;
};

/* A place of the board holds a whole line, handed over by exchange of the pointer: the line lives in a pool. */
static _Atomic(struct line *) board[BOARD_PLACES];
static struct thread_book books[THREADS_MAX];
static atomic_bool stop;

void setUp(void)
{
}

void tearDown(void)
{
}

static void *map_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT_TRUE(memory != MAP_FAILED);
    return memory;
}

/* ---- patterns ------------------------------------------------------------------------------------------------------
 */

static unsigned char pattern_byte(uint64_t pattern, size_t at)
{
    return (unsigned char)((pattern >> (at % 8 * 8)) + at / 8 * 7);
}

/* Small blocks are written and checked to the last byte; of large ones both ends and one word in every page. */
static size_t next_checked(size_t at, size_t size)
{
    if (size <= WHOLE_CHECK_MAX || at < 64 || at + 64 >= size || at % 4096 < 8)
        return at;
    size_t page = (at | 4095) + 1;
    return page < size - 64 ? page : size - 64;
}

static void write_pattern(const struct line *line)
{
    for (size_t at = 0; at < line->size; at = next_checked(at + 1, line->size))
        line->block[at] = pattern_byte(line->pattern, at);
}

/* The first wrong byte of the first `length`, or `length`. */
static size_t find_damage(const struct line *line, size_t length)
{
    for (size_t at = 0; at < length; at = next_checked(at + 1, line->size))
        if (line->block[at] != pattern_byte(line->pattern, at))
            return at;
    return length;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static void report(struct thread_book *book, const char *what, const struct line *line, size_t at)
{
    if (book->wrong == NULL) {
        book->wrong = what;
        book->wrong_line = *line;
        book->wrong_at = at;
    }
    atomic_store(&stop, true);
}

/* Mostly small, sometimes some pages, seldom huge: every path of the allocator below. */
static size_t random_size(uint64_t *random)
{
    uint64_t kind = random_below(random, 1000);
    if (kind < 700)
        return random_below(random, 257);
    if (kind < 900)
        return random_below(random, 2049);
    if (kind < 985)
        return random_below(random, 20000);
    if (kind < 998)
        return random_below(random, 200000);
    return random_below(random, 5u << 20);
}

static void check_fresh(struct thread_book *book, struct line *line)
{
    if (((uintptr_t)line->block & (line->alignment - 1)) != 0)
        report(book, "misaligned", line, 0);
    if (malloc_usable_size(line->block) < line->size)
        report(book, "usable size below the size asked for", line, malloc_usable_size(line->block));
}

static void obtain(struct thread_book *book, struct line *line)
{
    size_t size = random_size(&book->random);
    if (book->live_bytes + size > LIVE_BYTES_MAX)
        return;
    struct line fresh = {NULL, size, 16, random_next(&book->random)};
    uint64_t kind = random_below(&book->random, 16);
    if (kind < 10) {
        fresh.block = malloc(size);
    } else if (kind < 13) {
        fresh.block = calloc(size % 2 == 0 ? size / 2 : size, size % 2 == 0 ? 2 : 1);
        for (size_t at = 0; fresh.block != NULL && at < size; at = next_checked(at + 1, size))
            if (fresh.block[at] != 0)
                report(book, "calloc not zero", &fresh, at);
    } else if (kind < 14) {
        fresh.block = realloc(NULL, size);
    } else {
        fresh.alignment = (size_t)16 << random_below(&book->random, kind == 14 ? 5 : 13);
        fresh.block = kind == 14 ? memalign(fresh.alignment, size) : NULL;
        void *aligned = NULL;
        if (kind == 15 && posix_memalign(&aligned, fresh.alignment, size) == 0)
            fresh.block = aligned;
    }
    if (fresh.block == NULL) {
        report(book, "NULL without need", &fresh, 0);
        return;
    }
    check_fresh(book, &fresh);
    write_pattern(&fresh);
    book->live_bytes += size;
    *line = fresh;
}

static void check(struct thread_book *book, const struct line *line)
{
    size_t at = find_damage(line, line->size);
    if (at != line->size)
        report(book, "contents changed", line, at);
}

static void release(struct thread_book *book, struct line *line)
{
    check(book, line);
    book->live_bytes -= line->size;
    free(line->block);
    line->block = NULL;
}

static void resize(struct thread_book *book, struct line *line)
{
    size_t size = random_size(&book->random) + 1;
    if (book->live_bytes + size > LIVE_BYTES_MAX)
        return;
    check(book, line);
    struct line grown = {realloc(line->block, size), size, 16, line->pattern};
    if (grown.block == NULL) {
        report(book, "realloc NULL without need", line, size);
        return;
    }
    /* What was written in the old block is checked with the old block's choice of bytes. */
    struct line old = {grown.block, line->size, line->alignment, line->pattern};
    size_t kept = size < line->size ? size : line->size;
    size_t at = find_damage(&old, kept);
    if (at < kept)
        report(book, "realloc lost contents", &old, at);
    check_fresh(book, &grown);
    book->live_bytes += size - line->size;
    grown.pattern = random_next(&book->random);
    write_pattern(&grown);
    *line = grown;
}

/* Puts the line on the board and takes what lay there: blocks of other threads, most of the time. */
static void exchange(struct thread_book *book, struct line *line)
{
    struct line *parcel = malloc(sizeof *parcel);
    if (parcel == NULL) {
        report(book, "NULL without need", line, 0);
        return;
    }
    *parcel = *line;
    book->live_bytes -= line->size;
    line->block = NULL;
    struct line *taken = atomic_exchange(&board[random_below(&book->random, BOARD_PLACES)], parcel);
    if (taken == NULL)
        return;
    *line = *taken;
    free(taken);
    book->live_bytes += line->size;
    check(book, line);
}

static void *work(void *argument)
{
    struct thread_book *book = argument;
    for (uint64_t i = 0; i < book->operations && !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
        struct line *line = &book->lines[random_below(&book->random, BOOK_LINES)];
        uint64_t kind = random_below(&book->random, 16);
        if (line->block == NULL)
            obtain(book, line);
        else if (kind < 9)
            release(book, line);
        else if (kind < 12)
            resize(book, line);
        else if (kind < 14)
            exchange(book, line);
        else
            check(book, line);
    }
    for (size_t i = 0; i < BOOK_LINES; i++)
        if (book->lines[i].block != NULL && !atomic_load_explicit(&stop, memory_order_relaxed))
            release(book, &book->lines[i]);
    return NULL;
}

static void clear_board(struct thread_book *book)
{
    for (size_t i = 0; i < BOARD_PLACES; i++) {
        struct line *parcel = atomic_exchange(&board[i], NULL);
        if (parcel == NULL)
            continue;
        release(book, parcel);
        free(parcel);
    }
}

/* ---- tests ----------------------------------------------------------------------------------------------------------
 */

static void expect_right(const struct thread_book *book, uint64_t seed)
{
    if (book->wrong == NULL)
        return;
    char text[256];
    snprintf(text, sizeof text, "%s: block %p of %zu bytes aligned to %zu, at %zu (TA_TEST_SEED=%" PRIu64 ")",
             book->wrong, (void *)book->wrong_line.block, book->wrong_line.size, book->wrong_line.alignment,
             book->wrong_at, seed);
    TEST_FAIL_MESSAGE(text);
}

static void run_threads(size_t threads, uint64_t operations, uint64_t seed)
{
    printf("seed %" PRIu64 ", %zu threads, %" PRIu64 " operations\n", seed, threads, operations);
    atomic_store(&stop, false);
    for (size_t i = 0; i < threads; i++) {
        struct line *lines = books[i].lines != NULL ? books[i].lines : map_memory(BOOK_LINES * sizeof *lines);
        memset(lines, 0, BOOK_LINES * sizeof *lines);
        books[i] = (struct thread_book){.lines = lines, .random = seed + i * 7919, .operations = operations / threads};
    }
    for (size_t i = 0; i < threads; i++)
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&books[i].thread, NULL, work, &books[i]));
    for (size_t i = 0; i < threads; i++)
        pthread_join(books[i].thread, NULL);
    for (size_t i = 0; i < threads; i++)
        expect_right(&books[i], seed);
    clear_board(&books[0]);
    expect_right(&books[0], seed);
}

static uint64_t seed;

static void test_random_operations_of_one_thread_agree_with_the_book(void)
{
    run_threads(1, setting_number("TA_TEST_OPERATIONS", 2000000) / 4, seed);
}

static void test_random_operations_of_several_threads_agree_with_their_books(void)
{
    size_t threads = setting_number("TA_TEST_THREADS", 4);
    if (threads < 1 || threads > THREADS_MAX)
        TEST_FAIL_MESSAGE("TA_TEST_THREADS: 1 to 64");
    run_threads(threads, setting_number("TA_TEST_OPERATIONS", 2000000), seed + 1);
}

/* Threads that end while others hold their blocks: short lives, many of them. */
static void test_blocks_outlive_the_threads_that_made_them(void)
{
    uint64_t operations = setting_number("TA_TEST_OPERATIONS", 2000000) / 8;
    for (uint64_t round = 0; round < 10; round++)
        run_threads(8, operations / 10, seed + 2 + round);
}

static void test_no_pointer_was_taken_for_foreign_or_damaged(void)
{
    if (!OURS)
        TEST_IGNORE_MESSAGE("libc does not count");
    struct ta_health health;
    ta_get_health(&health, sizeof health);
    TEST_ASSERT_EQUAL_UINT64(0, health.foreign_frees);
    TEST_ASSERT_EQUAL_UINT64(0, health.invalid_frees);
}

int main(void)
{
    seed = random_seed();
    UNITY_BEGIN();
    RUN_TEST(test_random_operations_of_one_thread_agree_with_the_book);
    RUN_TEST(test_random_operations_of_several_threads_agree_with_their_books);
    RUN_TEST(test_blocks_outlive_the_threads_that_made_them);
    RUN_TEST(test_no_pointer_was_taken_for_foreign_or_damaged);
    return UNITY_END();
}
