/* tracealloc/expect.h: what a piece of a program allocates, for its tests: plain C, GoogleTest, Catch2 or anything else.
 *
 *      struct ta_scope scope = ta_scope_begin();
 *      parse(text);
 *      struct ta_scope_counts counts = ta_scope_count(&scope);
 *      assert(counts.allocations <= 3 && counts.live_bytes == 0);
 *
 *      TA_EXPECT_NO_GROWTH({ parse(text); });                  what the block allocates it frees
 *      TA_EXPECT_ALLOCATIONS(3, { parse(text); });             at most three allocations
 *
 * An expectation that does not hold calls TA_EXPECT_FAIL(text), which is ADD_FAILURE under GoogleTest, FAIL_CHECK under
 * Catch2, and otherwise a line on standard error and abort; define it before including this to have it your way.
 *
 * Counted is the whole process, in all threads and domains: let other threads rest. The program must be linked with
 * tracealloc or run under it. The first scope starts tracing with one frame unless tracing is on already. Measuring
 * allocates nothing. */
#ifndef TRACEALLOC_EXPECT_H
#define TRACEALLOC_EXPECT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tracealloc.h>
#include <tracealloc/domain.h>

struct ta_scope_counts {
    uint64_t allocations, allocated_bytes; /* since the scope began */
    uint64_t frees, freed_bytes;           /* of whatever was allocated while tracing */
    int64_t live_blocks, live_bytes;       /* what is left of them: allocated less freed */
};

struct ta_scope {
    struct ta_scope_counts begin;
};

static inline struct ta_scope_counts ta_scope_now(void)
{
    struct ta_scope_counts sum = {0, 0, 0, 0, 0, 0};
    uint32_t domains[64];
    size_t count = ta_domain_list(domains, sizeof domains / sizeof *domains);
    if (count > sizeof domains / sizeof *domains)
        count = sizeof domains / sizeof *domains;
    for (size_t i = 0; i < count; i++) {
        struct ta_domain_stats stats;
        if (ta_domain_get_stats(domains[i], &stats, sizeof stats) != 0)
            continue;
        sum.allocations += stats.allocated_blocks;
        sum.allocated_bytes += stats.allocated_bytes;
        sum.frees += stats.freed_blocks;
        sum.freed_bytes += stats.freed_bytes;
    }
    return sum;
}

static inline struct ta_scope ta_scope_begin(void)
{
    struct ta_scope scope;
    if (!ta_is_tracing())
        ta_start(1);
    scope.begin = ta_scope_now();
    return scope;
}

static inline struct ta_scope_counts ta_scope_count(const struct ta_scope *scope)
{
    struct ta_scope_counts now = ta_scope_now();
    now.allocations -= scope->begin.allocations;
    now.allocated_bytes -= scope->begin.allocated_bytes;
    now.frees -= scope->begin.frees;
    now.freed_bytes -= scope->begin.freed_bytes;
    now.live_blocks = (int64_t)(now.allocations - now.frees);
    now.live_bytes = (int64_t)(now.allocated_bytes - now.freed_bytes);
    return now;
}

#if !defined(TA_EXPECT_FAIL)
#if defined(ADD_FAILURE)
#define TA_EXPECT_FAIL(text) ADD_FAILURE() << (text)
#elif defined(FAIL_CHECK)
#define TA_EXPECT_FAIL(text) FAIL_CHECK(text)
#else
#define TA_EXPECT_FAIL(text) (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, (text)), abort())
#endif
#endif

#define TA_EXPECT_NO_GROWTH(...)                                                                                       \
    do {                                                                                                               \
        const struct ta_scope ta_expect_scope = ta_scope_begin();                                                      \
        __VA_ARGS__                                                                                                    \
        const struct ta_scope_counts ta_expect_counts = ta_scope_count(&ta_expect_scope);                              \
        if (ta_expect_counts.live_blocks > 0 || ta_expect_counts.live_bytes > 0) {                                     \
            char ta_expect_text[128];                                                                                  \
            snprintf(ta_expect_text, sizeof ta_expect_text, "memory grew by %lld bytes in %lld blocks",                \
                     (long long)ta_expect_counts.live_bytes, (long long)ta_expect_counts.live_blocks);                 \
            TA_EXPECT_FAIL(ta_expect_text);                                                                            \
        }                                                                                                              \
    } while (0)

#define TA_EXPECT_ALLOCATIONS(most, ...)                                                                               \
    do {                                                                                                               \
        const struct ta_scope ta_expect_scope = ta_scope_begin();                                                      \
        __VA_ARGS__                                                                                                    \
        const struct ta_scope_counts ta_expect_counts = ta_scope_count(&ta_expect_scope);                              \
        if (ta_expect_counts.allocations > (uint64_t)(most)) {                                                         \
            char ta_expect_text[128];                                                                                  \
            snprintf(ta_expect_text, sizeof ta_expect_text, "%llu allocations, expected at most %llu",                 \
                     (unsigned long long)ta_expect_counts.allocations, (unsigned long long)(most));                    \
            TA_EXPECT_FAIL(ta_expect_text);                                                                            \
        }                                                                                                              \
    } while (0)

#endif
