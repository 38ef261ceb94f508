/* made_memory.h: the memory of a process, made by a test: mappings with words in them, as a target that is looked at. What
 * was not put anywhere reads as zero; parts can be taken away again, so that they cannot be read. */
#ifndef TA_TESTS_MADE_MEMORY_H
#define TA_TESTS_MADE_MEMORY_H

#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "analysis/image/memory_image.h"

enum { MADE_MOST = 64 };

static struct ta_image made_image;
static struct ta__target *const made = &made_image.target;
static uint8_t *made_contents[MADE_MOST]; /* by mapping, in the order in which they were made */
static uint64_t made_starts[MADE_MOST], made_bytes[MADE_MOST];
static size_t made_count;
static uint64_t made_broken, made_broken_end; /* reading fails from the first address on, up to the second */

static inline size_t made_read(struct ta__target *target, uint64_t address, void *buffer, size_t bytes)
{
    (void)target;
    if (address >= made_broken && address < made_broken_end)
        return 0;
    for (size_t i = 0; i < made_count; i++) {
        if (address < made_starts[i] || address - made_starts[i] >= made_bytes[i])
            continue;
        uint64_t left = made_bytes[i] - (address - made_starts[i]);
        if (address < made_broken && made_broken - address < left)
            left = made_broken - address;
        size_t length = bytes < left ? bytes : (size_t)left;
        memcpy(buffer, made_contents[i] + (address - made_starts[i]), length);
        return length;
    }
    return 0;
}

/* A mapping of `bytes`, the first `stored` of which can be read. In ascending order, please. Answers its number. */
static inline size_t made_map(uint64_t start, uint64_t bytes, uint64_t stored, uint32_t flags)
{
    TEST_ASSERT_TRUE(made_count < MADE_MOST);
    struct ta__region *region = ta__target_add_region(made);
    TEST_ASSERT_NOT_NULL(region);
    *region = (struct ta__region){
        .start = start, .end = start + bytes, .stored_bytes = stored, .flags = TA__REGION_READ | flags};
    made_starts[made_count] = start;
    made_bytes[made_count] = stored;
    made_contents[made_count] = calloc(stored + 1, 1);
    TEST_ASSERT_NOT_NULL(made_contents[made_count]);
    return made_count++;
}

static inline void made_put(uint64_t address, const void *bytes, size_t length)
{
    for (size_t i = 0; i < made_count; i++)
        if (address >= made_starts[i] && address - made_starts[i] + length <= made_bytes[i]) {
            memcpy(made_contents[i] + (address - made_starts[i]), bytes, length);
            ta__target_forget(made);
            return;
        }
    TEST_FAIL_MESSAGE("the place is not mapped");
}

static inline void made_word(uint64_t address, uint64_t word)
{
    made_put(address, &word, sizeof word);
}

static inline void made_half(uint64_t address, uint32_t half)
{
    made_put(address, &half, sizeof half);
}

static inline void made_text(uint64_t address, const char *text)
{
    made_put(address, text, strlen(text) + 1);
}

/* Nothing there can be read any more; 0, 0: everything can. */
static inline void made_break(uint64_t start, uint64_t end)
{
    made_broken = start;
    made_broken_end = end;
    ta__target_forget(made);
}

static inline void made_begin(void)
{
    static const struct ta__target_operations operations = {made_read};
    made_image = (struct ta_image){0};
    made->operations = &operations;
    made->is_core = 1;
    made->memory_descriptor = made->pagemap_descriptor = -1;
}

static inline void made_end(void)
{
    ta__target_close(made);
    for (size_t i = 0; i < made_count; i++)
        free(made_contents[i]);
    made_count = 0;
    made_broken = made_broken_end = 0;
}

#endif
