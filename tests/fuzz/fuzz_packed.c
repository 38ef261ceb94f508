/* fuzz_packed.c: what of a core is read before anything is asked of it: its packing, headers, segments and notes. Whole
 * questions are fuzz_image.c's, some tens a second; this is some hundreds. libFuzzer's entry; fuzz_replay.c runs the corpus
 * without libFuzzer.
 *
 * The input is the file: packed by gzip, zstd or lz4, or as it is. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tracealloc/analysis.h>

#include "analysis/image/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

/* Mappings in order, without overlap, and their contents in the file. */
static void check(struct ta__target *target)
{
    uint64_t end = 0;
    uint8_t byte;
    for (size_t i = 0; i < target->region_count; i++) {
        const struct ta__region *region = &target->regions[i];
        MUST(region->start >= end && region->start < region->end);
        MUST(region->stored_bytes <= region->end - region->start);
        end = region->end;
        if (region->stored_bytes > 0)
            MUST(ta__target_read(target, region->start + region->stored_bytes - 1, &byte, 1) == 0);
        MUST(strlen(ta__target_string(target, region->path)) < target->text_capacity + 1);
    }
    for (size_t i = 0; i < target->thread_count; i++)
        MUST(target->threads[i].register_count <= TA__REGISTERS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int file = -1;
    char path[64];
    if (file < 0)
        file = memfd_create("core", MFD_CLOEXEC);
    MUST(file >= 0 && ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    struct ta__target target;
    if (ta__target_open(&target, path) != 0) {
        MUST(*ta_error_text() != '\0');
        return 0;
    }
    check(&target);
    if (ta__target_find_objects(&target) == 0)
        for (size_t i = 0; i < target.object_count; i++)
            MUST(target.objects[i].start < target.objects[i].end);
    ta__target_close(&target);
    return 0;
}
