/* random.h: a small reproducible generator (splitmix64) and the two settings that every random test takes.
 *
 * TA_TEST_SEED repeats a run, TA_TEST_OPERATIONS sets its length; both are printed by the tests that use them. */
#ifndef TA_TESTS_RANDOM_H
#define TA_TESTS_RANDOM_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* 0 … limit-1; the slight bias of the remainder does not matter here. */
static inline uint64_t random_below(uint64_t *state, uint64_t limit)
{
    return random_next(state) % limit;
}

static inline uint64_t setting_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? strtoull(text, NULL, 0) : otherwise;
}

static inline uint64_t random_seed(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return setting_number("TA_TEST_SEED", (uint64_t)now.tv_nsec * 1000003u + (uint64_t)now.tv_sec);
}

#endif
