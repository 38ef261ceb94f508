/* target_copy.c: a live process's memory, copied while it is held, so that it can go on while one looks.
 *
 * Room is made before the process is held: the first touch of a page costs several times what copying into it does. What
 * is there is copied, mapping by mapping, with what each page was. What a private mapping of a file has as the file has
 * it is read from the process when it is asked for. Where the machine has no room, or the process grew too much in
 * between, there is no copy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "analysis/arrays.h"
#include "analysis/image/target.h"

/* Of a mapping; NULL, NULL: nothing is known. Pages that were never there take next to nothing. */
struct piece {
    uint32_t *slots; /* by page: where in the room it was copied to, plus one; 0 = it was not */
    uint8_t *states; /* TA__PAGE_… */
};

struct ta__target_copy {
    const struct ta__target_operations *live;
    uint8_t *room;
    size_t slots, used;
    struct piece *pieces; /* by number of the mapping */
    size_t count;
};

static size_t pages_of(const struct ta__region *region)
{
    return (size_t)((region->end - region->start) / TA__TARGET_PAGE);
}

static int is_wanted(const struct ta__region *region)
{
    return (region->flags & TA__REGION_READ) != 0 && (region->flags & TA__REGION_SPECIAL) == 0 &&
           (region->flags & (TA__REGION_SHARED | TA__REGION_WRITE)) != TA__REGION_SHARED &&
           (region->rss > 0 || region->swap > 0);
}

static int is_private_file(const struct ta__region *region)
{
    return (region->flags & TA__REGION_FILE) != 0 && (region->flags & TA__REGION_SHARED) == 0;
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

static uint64_t number_in(const char *path, const char *format)
{
    unsigned long long number = UINT64_MAX;
    char line[128];
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return UINT64_MAX;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, format, &number) == 1)
            break;
    fclose(file);
    return number;
}

/* Half of what the machine has left, and of what the container has. */
static uint64_t room_left(void)
{
    uint64_t machine = number_in("/proc/meminfo", "MemAvailable: %llu kB");
    uint64_t most = number_in("/sys/fs/cgroup/memory.max", "%llu");
    uint64_t used = number_in("/sys/fs/cgroup/memory.current", "%llu");
    uint64_t left = most == UINT64_MAX || used == UINT64_MAX ? UINT64_MAX : used < most ? most - used : 0;
    machine = machine < UINT64_MAX / 1024 ? machine * 1024 : 0;
    return (machine < left ? machine : left) / 2;
}

/* ---- copying ----------------------------------------------------------------------------------------------------- */

static void *map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Pages `from` to `to` are there: as far as they can be read. -1: no more room. */
static int copy_run(struct ta__target *target, const struct ta__region *region, struct piece *piece, size_t from,
                    size_t to)
{
    struct ta__target_copy *copy = target->copy;
    if (to - from > copy->slots - copy->used)
        return -1;
    while (from < to) {
        size_t done =
            target->operations->read(target, region->start + from * TA__TARGET_PAGE,
                                     copy->room + copy->used * TA__TARGET_PAGE, (to - from) * TA__TARGET_PAGE) /
            TA__TARGET_PAGE;
        for (size_t i = 0; i < done; i++)
            piece->slots[from + i] = (uint32_t)++copy->used;
        from += done > 0 ? done : 1;
    }
    return 0;
}

static int copy_region(struct ta__target *target, const struct ta__region *region, struct piece *piece)
{
    size_t pages = pages_of(region);
    piece->slots = map(pages * sizeof *piece->slots);
    piece->states = map(pages);
    if (piece->slots == NULL || piece->states == NULL)
        return -1;
    for (size_t first = 0, now; first < pages; first += now) {
        uint8_t states[TA__STATES_AHEAD];
        now = pages - first < TA__STATES_AHEAD ? pages - first : TA__STATES_AHEAD;
        ta__target_pages(target, region->start + first * TA__TARGET_PAGE, now, states);
        for (size_t i = 0, run; i < now; i += run) {
            int is_file = is_private_file(region) && (states[i] & TA__PAGE_FILE) != 0;
            for (run = 1; i + run < now && states[i + run] == states[i];)
                run++;
            if (states[i] == 0)
                continue;
            memset(piece->states + first + i, states[i], run);
            if (!is_file && copy_run(target, region, piece, first + i, first + i + run) != 0)
                return -1;
        }
    }
    return 0;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static size_t read_copy(struct ta__target *target, uint64_t address, void *buffer, size_t bytes)
{
    const struct ta__target_copy *copy = target->copy;
    size_t index = ta__target_region_from(target, address);
    const struct ta__region *region = &target->regions[index];
    if (index >= copy->count || region->start > address)
        return copy->live->read(target, address, buffer, bytes);
    const struct piece *piece = &copy->pieces[index];
    uint64_t offset = address - region->start, left = region->end - address;
    bytes = bytes < left ? bytes : (size_t)left;
    if (piece->states == NULL)
        return copy->live->read(target, address, buffer, bytes);
    size_t first = (size_t)(offset / TA__TARGET_PAGE), end = (size_t)((offset + bytes - 1) / TA__TARGET_PAGE), run = 1;
    uint32_t slot = piece->slots[first];
    while (first + run <= end && piece->slots[first + run] == (slot != 0 ? slot + run : 0) &&
           (piece->states[first + run] == 0) == (piece->states[first] == 0))
        run++;
    size_t length = (size_t)((first + run) * TA__TARGET_PAGE - offset);
    length = length < bytes ? length : bytes;
    if (slot != 0)
        memcpy(buffer, copy->room + (size_t)(slot - 1) * TA__TARGET_PAGE + offset % TA__TARGET_PAGE, length);
    else if (piece->states[first] == 0 && (region->flags & (TA__REGION_FILE | TA__REGION_SHARED)) == 0)
        memset(buffer, 0, length); /* never touched */
    else
        return copy->live->read(target, address, buffer, length);
    return length;
}

static const struct ta__target_operations operations = {read_copy};

size_t ta__target_copied_pages(const struct ta__target *target, uint64_t address, size_t count, uint8_t *states,
                               int *is_known)
{
    const struct ta__target_copy *copy = target->copy;
    size_t index = ta__target_region_from(target, address);
    *is_known = 0;
    if (index >= copy->count)
        return count;
    const struct ta__region *region = &target->regions[index];
    uint64_t end = address < region->start ? region->start : region->end;
    count = (end - address) / TA__TARGET_PAGE < count ? (size_t)((end - address) / TA__TARGET_PAGE) : count;
    if (address < region->start || copy->pieces[index].states == NULL)
        return count;
    const uint8_t *known = copy->pieces[index].states + (address - region->start) / TA__TARGET_PAGE;
    memcpy(states, known, count);
    *is_known = 1;
    return count;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

void ta__target_make_room(struct ta__target *target)
{
    enum { SPARE = 4096 };
    uint64_t bytes = 0;
    for (size_t i = 0; i < target->region_count; i++)
        if (is_wanted(&target->regions[i]))
            bytes += target->regions[i].rss + target->regions[i].swap;
    size_t slots = (size_t)((bytes + bytes / 16) / TA__TARGET_PAGE) + SPARE; /* it may grow until it is held */
    if (target->is_core || target->copy != NULL || slots > UINT32_MAX - 1 || slots * TA__TARGET_PAGE > room_left())
        return;
    struct ta__target_copy *copy = calloc(1, sizeof *copy);
    uint8_t *room = map(slots * TA__TARGET_PAGE);
    if (copy == NULL || room == NULL) {
        free(copy);
        if (room != NULL)
            munmap(room, slots * TA__TARGET_PAGE);
        return;
    }
    madvise(room, slots * TA__TARGET_PAGE, MADV_HUGEPAGE);
    for (size_t i = 0; i < slots; i++)
        ((volatile uint8_t *)room)[i * TA__TARGET_PAGE] = 0;
    *copy = (struct ta__target_copy){.room = room, .slots = slots};
    target->copy = copy;
}

int ta__target_copy(struct ta__target *target)
{
    struct ta__target_copy *copy = target->copy;
    int result = 0;
    if (copy == NULL || (copy->pieces = calloc(target->region_count, sizeof *copy->pieces)) == NULL)
        return 0;
    copy->count = target->region_count;
    for (size_t i = 0; i < copy->count && result == 0; i++)
        if (is_wanted(&target->regions[i]))
            result = copy_region(target, &target->regions[i], &copy->pieces[i]);
    if (result != 0) {
        ta__target_drop_copy(target);
        return 0;
    }
    copy->live = target->operations;
    target->operations = &operations;
    target->is_copied = 1;
    return 1;
}

void ta__target_drop_copy(struct ta__target *target)
{
    struct ta__target_copy *copy = target->copy;
    if (copy == NULL)
        return;
    for (size_t i = 0; i < copy->count; i++) {
        size_t pages = pages_of(&target->regions[i]);
        if (copy->pieces[i].slots != NULL)
            munmap(copy->pieces[i].slots, pages * sizeof *copy->pieces[i].slots);
        if (copy->pieces[i].states != NULL)
            munmap(copy->pieces[i].states, pages);
    }
    munmap(copy->room, copy->slots * TA__TARGET_PAGE);
    if (target->is_copied)
        target->operations = copy->live;
    target->is_copied = 0;
    target->copy = NULL;
    free(copy->pieces);
    free(copy);
    ta__target_forget(target);
}
