/* way.h: what every program of this folder shares: "am I served by tracealloc, and is it content?"
 *
 * The programs print their results with write(2) alone. They run first on libc, then in each way into the library
 * (preloaded, linked shared, linked static, all static); the output must be the same. EXPECT_OURS=1 in the environment
 * says that tracealloc must be the one who answers. */
#ifndef TA_TESTS_WAY_H
#define TA_TESTS_WAY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracealloc.h"

#pragma weak ta_version
#pragma weak ta_get_health

static inline void say(const char *text)
{
    char line[256];
    size_t length = strlen(text);
    length = length < sizeof line - 1 ? length : sizeof line - 1;
    memcpy(line, text, length);
    line[length] = '\n';
    if (write(1, line, length + 1) < 0)
        _exit(111);
}

static inline void say_wrong(const char *text)
{
    say(text);
    _exit(112);
}

static inline void expect(int condition, const char *text)
{
    if (!condition)
        say_wrong(text);
}

/* The compiler must not remove a pair of malloc and free. */
static inline void *hold(void *block)
{
    __asm__ volatile("" : "+r"(block) : : "memory");
    return block;
}

/* A block filled with a byte of its own. */
static inline unsigned char *make_block(size_t size)
{
    unsigned char *block = (unsigned char *)hold(malloc(size));
    expect(block != NULL, "WRONG: malloc returned NULL");
    memset(block, (int)(size % 251), size);
    return block;
}

static inline void drop_block(unsigned char *block, size_t size)
{
    for (size_t i = 0; i < size; i++)
        expect(block[i] == (unsigned char)(size % 251), "WRONG: a block changed");
    free(hold(block));
}

static inline void use_memory(size_t rounds)
{
    for (size_t i = 0; i < rounds; i++) {
        size_t size = 1 + i * 37 % 3000;
        drop_block(make_block(size), size);
    }
}

static inline void expect_ours(void)
{
    if (getenv("EXPECT_OURS") != NULL)
        expect(ta_version != NULL && ta_get_health != NULL, "WRONG: tracealloc does not answer here");
}

static inline void expect_content(void)
{
    if (ta_get_health == NULL)
        return;
    struct ta_health health;
    ta_get_health(&health, sizeof health);
    expect(health.foreign_frees == 0, "WRONG: a pointer was taken for foreign");
    expect(health.invalid_frees == 0, "WRONG: a pointer was taken for damaged");
}

#endif
