/* fuzz_image.c: cores that were damaged: whatever they hold, questions get answers or errors. libFuzzer's entry;
 * fuzz_replay.c runs the corpus without libFuzzer.
 *
 * The first byte chooses what the rest is:
 *
 *     e  edits of a sound core (tests/fuzz/image.core.zst): place (3 bytes), length (1 byte), so many bytes; …
 *     c  a core as it is, perhaps compressed
 *     s  suppressions
 *     r  registers, as --registers reads them */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <tracealloc/image.h>

#include "analysis/image/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

static uint8_t *base;
static size_t base_size;
static int base_file;

static void ask_memory(struct ta_image *image, const struct ta_statistics *statistics)
{
    struct ta_memory_part parts[64];
    size_t count = ta_image_memory_parts(image, parts, 64), rows = ta_statistics_count(statistics) + 1;
    struct ta_memory_figures *figures = calloc(rows, sizeof *figures);
    struct ta_retained_row *retained = calloc(rows, sizeof *retained);
    MUST(count > 0 && figures != NULL && retained != NULL);
    MUST(ta_image_memory_rows(image, statistics, figures) == 0 || *ta_error_text() != '\0');
    MUST(ta_image_retained_rows(image, statistics, retained) == 0 || *ta_error_text() != '\0');
    free(figures);
    free(retained);
    size_t mappings = ta_image_memory_mappings(image, NULL, 0);
    struct ta_memory_mapping *mapping = calloc(mappings + 1, sizeof *mapping);
    MUST(mapping != NULL);
    ta_image_memory_mappings(image, mapping, mappings);
    free(mapping);
}

static void ask_why(struct ta_image *image, uint64_t address)
{
    struct ta_place place, steps[20];
    struct ta_why *why = ta_image_why(image, address);
    if (why == NULL)
        return;
    ta_why_place(why, &place);
    ta_why_neighbour(why, -1, &place);
    ta_why_neighbour(why, 1, &place);
    for (size_t i = 0; i < 20 && ta_why_referrer(why, i, &place) == 0; i++)
        continue;
    for (size_t i = 0; i < 5; i++)
        ta_why_path(why, i, steps, 20);
    ta_why_free(why);
}

static void ask_leaks(struct ta_image *image)
{
    struct ta_leak leak;
    struct ta_block blocks[8];
    struct ta_leaks *leaks = ta_image_leaks(image, NULL);
    MUST(leaks != NULL || *ta_error_text() != '\0');
    for (size_t i = 0; leaks != NULL && i < ta_leaks_count(leaks); i++) {
        MUST(ta_leaks_get(leaks, i, &leak, sizeof leak) == 0);
        ta_leaks_cycle(leaks, i, blocks, 8);
    }
    ta_leaks_free(leaks);
}

/* Answers whether there was anything to ask. */
static int ask(const char *path)
{
    const struct ta_image_options options = {
        .wants = TA_IMAGE_BLOCKS | TA_IMAGE_MEMORY | TA_IMAGE_POINTERS | TA_IMAGE_PATHS, .about = 0x1000};
    struct ta_image *image = ta_image_open(path, &options, sizeof options);
    if (image == NULL) {
        MUST(*ta_error_text() != '\0');
        return 0;
    }
    struct ta_snapshot *snapshot = ta_image_snapshot(image);
    struct ta_statistics *statistics = ta_snapshot_statistics(snapshot, "traceback", 0);
    struct ta_retained_block largest[4];
    if (statistics != NULL)
        ask_memory(image, statistics);
    ask_leaks(image);
    ta_image_retained_blocks(image, largest, 4);
    long count = ta_snapshot_block_count(snapshot);
    for (long i = 0; i < count && i < 300; i += 37) {
        struct ta_block block;
        MUST(ta_snapshot_block(snapshot, (size_t)i, &block) == 0);
        ask_why(image, block.address);
        ask_why(image, block.address + block.size + 3);
    }
    ask_why(image, 0);
    ask_why(image, UINT64_MAX);
    ta_statistics_free(statistics);
    ta_image_close(image);
    return count > 0;
}

static int core_of(const uint8_t *bytes, size_t size)
{
    int file = memfd_create("core", MFD_CLOEXEC);
    MUST(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    return file;
}

static int ask_core(int file)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return ask(path);
}

static void load_base(void)
{
    static uint8_t packed[1 << 20];
    FILE *file = fopen(TA_BASE_CORE, "rb");
    MUST(file != NULL);
    size_t length = fread(packed, 1, sizeof packed, file);
    fclose(file);
    unsigned long long raw = ZSTD_getFrameContentSize(packed, length);
    MUST(raw > 0 && raw < 1 << 24);
    base = malloc(raw);
    MUST(base != NULL);
    base_size = ZSTD_decompress(base, raw, packed, length);
    MUST(base_size == raw);
    base_file = core_of(base, base_size);
    MUST(ask_core(base_file)); /* else make_core.py must be run again */
}

/* The file is the same for all inputs: after the questions it is put right. */
static void each_edit(const uint8_t *edits, size_t size, int is_undone)
{
    for (size_t at = 0; at + 4 <= size;) {
        size_t place = (size_t)edits[at] | (size_t)edits[at + 1] << 8 | (size_t)edits[at + 2] << 16;
        size_t length = edits[at + 3];
        at += 4;
        length = length < size - at ? length : size - at;
        place %= base_size;
        size_t room = length < base_size - place ? length : base_size - place;
        const uint8_t *bytes = is_undone ? base + place : edits + at;
        MUST(pwrite(base_file, bytes, room, (off_t)place) == (ssize_t)room);
        at += length;
    }
}

static void ask_edited(const uint8_t *edits, size_t size)
{
    if (base == NULL)
        load_base();
    each_edit(edits, size, 0);
    ask_core(base_file);
    each_edit(edits, size, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = malloc(size);
    MUST(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (*data == 'e')
        ask_edited(data + 1, size - 1);
    else if (*data == 's')
        ta_suppressions_free(ta_suppressions_parse(text, size - 1));
    else if (*data == 'r') {
        struct ta__target target = {.memory_descriptor = -1, .pagemap_descriptor = -1};
        if (ta__target_give_registers(&target, text) != 0)
            MUST(*ta_error_text() != '\0');
        ta__target_close(&target);
    } else {
        int file = core_of(data + 1, size - 1);
        ask_core(file);
        close(file);
    }
    free(text);
    return 0;
}
