/* target.c: what live processes and cores have in common. See target.h. */
#include "analysis/image/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/user.h>
#include <unistd.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"

/* ---- life -------------------------------------------------------------------------------------------------------- */

static int is_number(const char *text)
{
    if (*text == '\0' || strlen(text) > 9)
        return 0;
    return text[strspn(text, "0123456789")] == '\0';
}

int ta__target_open(struct ta__target *target, const char *what)
{
    memset(target, 0, sizeof *target);
    target->memory_descriptor = target->pagemap_descriptor = -1;
    int result =
        is_number(what) ? ta__target_open_process(target, (pid_t)atoi(what)) : ta__target_open_core(target, what);
    if (result != 0)
        ta__target_close(target);
    return result;
}

void ta__target_close(struct ta__target *target)
{
    ta__target_drop_copy(target);
    if (target->is_held)
        ta__target_release(target);
    if (target->memory_descriptor >= 0)
        close(target->memory_descriptor);
    if (target->pagemap_descriptor >= 0)
        close(target->pagemap_descriptor);
    free(target->texts);
    free(target->regions);
    free(target->threads);
    free(target->objects);
    free(target->cache);
    memset(target, 0, sizeof *target);
    target->memory_descriptor = target->pagemap_descriptor = -1;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

const char *ta__target_string(const struct ta__target *target, uint32_t text)
{
    return text == 0 || target->texts == NULL ? "" : target->texts + text;
}

uint32_t ta__target_keep(struct ta__target *target, const char *text, size_t length)
{
    size_t place = target->text_length == 0 ? 1 : target->text_length; /* 0 is "" */
    if (length == 0 || place + length + 1 > UINT32_MAX ||
        ta__grow(&target->texts, &target->text_capacity, place + length + 1, 1) != 0)
        return 0;
    target->texts[0] = '\0';
    memcpy(target->texts + place, text, length);
    target->texts[place + length] = '\0';
    target->text_length = place + length + 1;
    return (uint32_t)place;
}

struct ta__region *ta__target_add_region(struct ta__target *target)
{
    if (ta__grow(&target->regions, &target->region_capacity, target->region_count + 1, sizeof *target->regions) != 0)
        return NULL;
    struct ta__region *region = &target->regions[target->region_count++];
    memset(region, 0, sizeof *region);
    return region;
}

struct ta__target_thread *ta__target_add_thread(struct ta__target *target)
{
    if (ta__grow(&target->threads, &target->thread_capacity, target->thread_count + 1, sizeof *target->threads) != 0)
        return NULL;
    struct ta__target_thread *thread = &target->threads[target->thread_count++];
    memset(thread, 0, sizeof *thread);
    return thread;
}

size_t ta__target_region_from(const struct ta__target *target, uint64_t address)
{
    size_t low = 0, high = target->region_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (target->regions[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct ta__region *ta__target_region(const struct ta__target *target, uint64_t address)
{
    size_t at = ta__target_region_from(target, address);
    return at < target->region_count && target->regions[at].start <= address ? &target->regions[at] : NULL;
}

const struct ta__object_file *ta__target_object(const struct ta__target *target, uint64_t address)
{
    for (size_t i = 0; i < target->object_count; i++)
        if (address >= target->objects[i].start && address < target->objects[i].end)
            return &target->objects[i];
    return NULL;
}

/* ---- what the kernel says of a thread and of the program --------------------------------------------------------- */

void ta__target_set_registers(struct ta__target_thread *thread, const void *registers, size_t bytes)
{
    uint64_t words[TA__REGISTERS] = {0};
    size_t count = bytes / sizeof *words < TA__REGISTERS ? bytes / sizeof *words : TA__REGISTERS;
    memcpy(words, registers, count * sizeof *words);
#if defined(__x86_64__)
    enum { WORDS = sizeof(struct user_regs_struct) / 8 };
    if (count < WORDS)
        return;
    thread->sp = words[offsetof(struct user_regs_struct, rsp) / 8];
    thread->ip = words[offsetof(struct user_regs_struct, rip) / 8];
    thread->tls = words[offsetof(struct user_regs_struct, fs_base) / 8];
    thread->register_count = offsetof(struct user_regs_struct, rip) / 8; /* behind it: flags and selectors */
#elif defined(__aarch64__)
    if (count < 33)
        return;
    thread->sp = words[31];
    thread->ip = words[32];
    thread->register_count = 31;
#else
    return;
#endif
    memcpy(thread->registers, words, thread->register_count * sizeof *words);
}

void ta__target_set_auxiliary(struct ta__target *target, const uint64_t *words, size_t count)
{
    for (size_t i = 0; i + 1 < count && words[i] != AT_NULL; i += 2) {
        if (words[i] == AT_PHDR)
            target->entry_phdr = words[i + 1];
        if (words[i] == AT_PHNUM)
            target->entry_phdr_count = words[i + 1];
        if (words[i] == AT_RANDOM)
            target->on_first_stack = words[i + 1];
    }
}

int ta__target_open_file(const struct ta__target *target, const char *path)
{
    char whole[PATH_MAX + sizeof target->root];
    if (*path != '/')
        return -1;
    snprintf(whole, sizeof whole, "%s%s", target->root, path);
    int descriptor = open(whole, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return descriptor >= 0 || target->root[0] == '\0' ? descriptor
                                                      : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

size_t ta__target_read_file(const struct ta__target *target, const struct ta__region *region, uint64_t address,
                            void *buffer, size_t bytes)
{
    int file = region->path != 0 ? ta__target_open_file(target, ta__target_string(target, region->path)) : -1;
    if (file < 0)
        return 0;
    uint64_t room = region->end - address;
    off_t offset = (off_t)(region->file_offset + (address - region->start));
    ssize_t got = pread(file, buffer, bytes < room ? bytes : (size_t)room, offset);
    close(file);
    return got > 0 ? (size_t)got : 0;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

int ta__target_read(struct ta__target *target, uint64_t address, void *buffer, size_t bytes)
{
    char *to = buffer;
    if (address + bytes < address)
        return -1;
    while (bytes > 0) {
        size_t done = target->operations->read(target, address, to, bytes);
        if (done == 0 || done > bytes)
            return -1;
        to += done;
        address += done;
        bytes -= done;
    }
    return 0;
}

/* Runs of pages that are there are read at once; between them nothing is. */
int ta__target_read_sparse(struct ta__target *target, uint64_t address, void *buffer, size_t bytes)
{
    enum { AT_ONCE = 512 };
    uint8_t states[AT_ONCE];
    char *to = buffer;
    if (address + bytes < address)
        return -1;
    while (bytes > 0) {
        uint64_t first = address / TA__TARGET_PAGE;
        size_t pages = (size_t)((address + bytes - 1) / TA__TARGET_PAGE - first) + 1;
        pages = pages < AT_ONCE ? pages : AT_ONCE;
        ta__target_pages(target, first * TA__TARGET_PAGE, pages, states);
        for (size_t i = 0, run; i < pages && bytes > 0; i += run) {
            int is_there = states[i] != 0;
            for (run = 1; i + run < pages && (states[i + run] != 0) == is_there;)
                run++;
            uint64_t end = (first + i + run) * TA__TARGET_PAGE;
            size_t length = end - address < bytes ? (size_t)(end - address) : bytes;
            if (!is_there)
                memset(to, 0, length);
            else if (ta__target_read(target, address, to, length) != 0)
                return -1;
            to += length;
            address += length;
            bytes -= length;
        }
    }
    return 0;
}

/* One page in each place: the last that was asked for there. */
enum { CACHED_PAGES = 256 };
struct ta__page_cache {
    uint64_t pages[CACHED_PAGES]; /* number of the page + 1; 0 = none */
    uint8_t bytes[CACHED_PAGES][TA__TARGET_PAGE];
};

static const uint8_t *cached_page(struct ta__target *target, uint64_t page)
{
    if (target->cache == NULL)
        target->cache = calloc(1, sizeof *target->cache);
    struct ta__page_cache *cache = target->cache;
    if (cache == NULL)
        return NULL;
    size_t place = page % CACHED_PAGES;
    if (cache->pages[place] == page + 1)
        return cache->bytes[place];
    cache->pages[place] = 0;
    if (ta__target_read(target, page * TA__TARGET_PAGE, cache->bytes[place], TA__TARGET_PAGE) != 0)
        return NULL;
    cache->pages[place] = page + 1;
    return cache->bytes[place];
}

int ta__target_peek(struct ta__target *target, uint64_t address, void *buffer, size_t bytes)
{
    char *to = buffer;
    if (address + bytes < address)
        return -1;
    while (bytes > 0) {
        size_t offset = address % TA__TARGET_PAGE;
        size_t length = TA__TARGET_PAGE - offset < bytes ? TA__TARGET_PAGE - offset : bytes;
        const uint8_t *page = cached_page(target, address / TA__TARGET_PAGE);
        if (page == NULL)
            return -1;
        memcpy(to, page + offset, length);
        to += length;
        address += length;
        bytes -= length;
    }
    return 0;
}

int ta__target_word(struct ta__target *target, uint64_t address, uint64_t *word)
{
    return ta__target_peek(target, address, word, sizeof *word);
}

int ta__target_half(struct ta__target *target, uint64_t address, uint32_t *half)
{
    return ta__target_peek(target, address, half, sizeof *half);
}

int ta__target_text(struct ta__target *target, uint64_t address, char *text, size_t room)
{
    for (size_t i = 0; i + 1 < room; i++) {
        if (ta__target_peek(target, address + i, &text[i], 1) != 0)
            return -1;
        if (text[i] == '\0')
            return 0;
    }
    text[room - 1] = '\0';
    return 0;
}

uint64_t ta__target_extent(const struct ta__target *target, uint64_t address)
{
    uint64_t at = address;
    for (size_t i = ta__target_region_from(target, address); i < target->region_count; i++) {
        const struct ta__region *region = &target->regions[i];
        uint64_t end = target->is_core ? region->start + region->stored_bytes : region->end;
        if (region->start > at || end <= at)
            break;
        at = end;
        if (end < region->end)
            break;
    }
    return at - address;
}

int ta__target_is_mapped(const struct ta__target *target, uint64_t start, uint64_t end)
{
    for (size_t i = ta__target_region_from(target, start); start < end; i++) {
        if (i == target->region_count || target->regions[i].start > start)
            return 0;
        start = target->regions[i].end;
    }
    return 1;
}

uint64_t ta__target_stored(const struct ta__target *target, uint64_t start, uint64_t end)
{
    uint64_t sum = 0;
    if (!target->is_core)
        return end - start;
    for (size_t i = ta__target_region_from(target, start); i < target->region_count; i++) {
        const struct ta__region *region = &target->regions[i];
        uint64_t from = region->start > start ? region->start : start, to = region->start + region->stored_bytes;
        if (region->start >= end)
            break;
        to = to < end ? to : end;
        sum += to > from ? to - from : 0;
    }
    return sum;
}

void ta__target_forget(struct ta__target *target)
{
    target->states.count = 0;
    if (target->cache != NULL)
        memset(target->cache->pages, 0, sizeof target->cache->pages);
}
