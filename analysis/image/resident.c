/* resident.c: see resident.h. Rss counts what is mapped and present, but not the page of zeros that all processes share
 * where memory was read and never written. New kernels tell that page (PAGEMAP_SCAN); else it is found by what it is. */
#include "analysis/image/resident.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "analysis/arrays.h"

static int add_run(struct ta__resident *resident, uint64_t start, uint64_t end)
{
    if (resident->count > 0 && resident->runs[resident->count - 1].end == start) {
        resident->runs[resident->count - 1].end = end;
        return 0;
    }
    if (ta__grow(&resident->runs, &resident->capacity, resident->count + 1, sizeof *resident->runs) != 0)
        return -1;
    resident->runs[resident->count++] = (struct ta__range){start, end};
    return 0;
}

/* ---- by the kernel's scan (Linux 6.7 and later) ------------------------------------------------------------------ */

struct scan_region {
    uint64_t start, end, categories;
};
struct scan_request {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
enum { SCAN_PRESENT = 1 << 3, SCAN_ZERO = 1 << 5 };

/* 1: done. 0: the kernel knows no such call. -1: no memory. */
static int scan(struct ta__resident *resident, struct ta__target *target, const struct ta__region *region)
{
    enum { AT_ONCE = 512 };
    struct scan_region found[AT_ONCE];
    for (uint64_t at = region->start; at < region->end;) {
        struct scan_request request = {.size = sizeof request,
                                       .start = at,
                                       .end = region->end,
                                       .vec = (uint64_t)(uintptr_t)found,
                                       .vec_len = AT_ONCE,
                                       .category_inverted = SCAN_ZERO,
                                       .category_mask = SCAN_PRESENT | SCAN_ZERO,
                                       .return_mask = SCAN_PRESENT};
        long count = ioctl(target->pagemap_descriptor, _IOWR('f', 16, struct scan_request), &request);
        if (count < 0)
            return at == region->start ? 0 : 1;
        for (long i = 0; i < count; i++)
            if (add_run(resident, found[i].start, found[i].end) != 0)
                return -1;
        if (request.walk_end <= at)
            return 1;
        at = request.walk_end;
    }
    return 1;
}

/* ---- page by page ------------------------------------------------------------------------------------------------ */

static int is_zero(const uint8_t *bytes, size_t length)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

/* Of a page that is present, neither of a file nor this process's alone, it depends on the contents. */
static int is_shared_zero(struct ta__target *target, uint64_t address, uint8_t state)
{
    uint8_t bytes[TA__TARGET_PAGE];
    if ((state & (TA__PAGE_FILE | TA__PAGE_ALONE)) != 0)
        return 0;
    return ta__target_read(target, address, bytes, sizeof bytes) == 0 && is_zero(bytes, sizeof bytes);
}

static int look(struct ta__resident *resident, struct ta__target *target, const struct ta__region *region)
{
    enum { AT_ONCE = 1024 };
    uint8_t states[AT_ONCE];
    int result = 0;
    for (uint64_t at = region->start; at < region->end && result == 0; at += AT_ONCE * TA__TARGET_PAGE) {
        size_t pages = (size_t)((region->end - at) / TA__TARGET_PAGE);
        pages = pages < AT_ONCE ? pages : AT_ONCE;
        ta__target_pages(target, at, pages, states);
        for (size_t i = 0; i < pages && result == 0; i++) {
            uint64_t page = at + i * TA__TARGET_PAGE;
            if ((states[i] & TA__PAGE_PRESENT) == 0 || is_shared_zero(target, page, states[i]))
                continue;
            result = add_run(resident, page, page + TA__TARGET_PAGE);
        }
    }
    return result;
}

static int read_process(struct ta__resident *resident, struct ta__target *target)
{
    int can_scan = target->pagemap_descriptor >= 0;
    for (size_t i = 0; i < target->region_count; i++) {
        const struct ta__region *region = &target->regions[i];
        if (region->rss == 0)
            continue;
        int done = can_scan ? scan(resident, target, region) : 0;
        if (done < 0 || (done == 0 && look(resident, target, region) != 0))
            return -1;
        can_scan = done > 0;
    }
    return 0;
}

/* A kernel writes pages that were never touched as holes. */
static int read_core(struct ta__resident *resident, struct ta__target *target)
{
    enum { AT_ONCE = 1 << 18 };
    uint8_t *bytes = ta__new_array(AT_ONCE, 1);
    int result = bytes == NULL ? -1 : 0;
    resident->is_guess = 1;
    for (size_t i = 0; i < target->region_count && result == 0; i++) {
        struct ta__region *region = &target->regions[i];
        uint64_t end = region->start + region->stored_bytes;
        region->rss = 0;
        for (uint64_t at = region->start; at < end && result == 0; at += AT_ONCE) {
            size_t length = end - at < AT_ONCE ? (size_t)(end - at) : AT_ONCE;
            if (ta__target_read(target, at, bytes, length) != 0)
                break;
            for (size_t k = 0; k + TA__TARGET_PAGE <= length && result == 0; k += TA__TARGET_PAGE)
                if (!is_zero(bytes + k, TA__TARGET_PAGE)) {
                    result = add_run(resident, at + k, at + k + TA__TARGET_PAGE);
                    region->rss += TA__TARGET_PAGE;
                }
        }
    }
    free(bytes);
    return result;
}

int ta__resident_read(struct ta__resident *resident, struct ta__target *target)
{
    memset(resident, 0, sizeof *resident);
    return target->is_core ? read_core(resident, target) : read_process(resident, target);
}

void ta__resident_free(struct ta__resident *resident)
{
    free(resident->runs);
    memset(resident, 0, sizeof *resident);
}

uint64_t ta__resident_bytes(struct ta__resident *resident, uint64_t start, uint64_t end)
{
    size_t at = resident->hint;
    if (at >= resident->count || resident->runs[at].start > start || (at > 0 && resident->runs[at - 1].end > start))
        at = ta__range_from(resident->runs, resident->count, start);
    while (at < resident->count && resident->runs[at].end <= start)
        at++;
    resident->hint = at;
    uint64_t bytes = 0;
    for (; at < resident->count && resident->runs[at].start < end; at++) {
        uint64_t from = resident->runs[at].start > start ? resident->runs[at].start : start;
        uint64_t to = resident->runs[at].end < end ? resident->runs[at].end : end;
        bytes += to - from;
    }
    return bytes;
}
