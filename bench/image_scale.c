/* image_scale.c: a program that is large to look at from outside: a table of keys and values that point to each other.
 *
 *     image_scale BLOCKS BYTES     so many blocks, of so many bytes on average; says "ready" and waits for its input's end
 *     image_scale copy PID         only copies what that process has in memory: the yardstick for how long it is held;
 *                                  says bytes, nanoseconds of the processor, nanoseconds of the clock
 *
 * Half of the blocks are entries of 64 bytes, which point to the next one of their list and to their value, as a cache's
 * do; a hundredth of the entries is forgotten, that is, lost with their values. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct entry {
    struct entry *next;
    char *value;
    uint64_t key, room[5];
};

__attribute__((noinline)) static struct entry *new_entry(void)
{
    struct entry *entry = malloc(sizeof *entry);
    __asm__ volatile("" : "+r"(entry));
    return entry;
}

__attribute__((noinline)) static char *new_value(size_t size)
{
    char *value = malloc(size);
    __asm__ volatile("" : "+r"(value));
    return value;
}

static struct entry **open_cache(size_t lists)
{
    return calloc(lists, sizeof(struct entry *));
}

static uint64_t nanoseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What is in memory of a mapping, in runs of pages. Answers the bytes. */
static uint64_t copy_mapping(pid_t pid, int pagemap, uint64_t start, uint64_t end)
{
    enum { AT_ONCE = 256, PAGE = 4096 };
    static char bytes[AT_ONCE * PAGE];
    uint64_t entries[AT_ONCE], copied = 0;
    for (uint64_t at = start; at < end; at += sizeof bytes) {
        ssize_t got = pread(pagemap, entries, sizeof entries, (off_t)(at / PAGE * 8));
        size_t known = got > 0 ? (size_t)got / 8 : 0, run;
        for (size_t i = 0; i < known && at + i * PAGE < end; i += run) {
            for (run = 1; i + run < known && at + (i + run) * PAGE < end && entries[i + run] >> 63 == entries[i] >> 63;)
                run++;
            struct iovec to = {bytes, run * PAGE}, from = {(void *)(uintptr_t)(at + i * PAGE), run * PAGE};
            ssize_t done = entries[i] >> 63 != 0 ? process_vm_readv(pid, &to, 1, &from, 1, 0) : 0;
            copied += done > 0 ? (uint64_t)done : 0;
        }
    }
    return copied;
}

static int copy(pid_t pid)
{
    char path[64], line[512], rights[8];
    unsigned long start, end;
    snprintf(path, sizeof path, "/proc/%d/pagemap", (int)pid);
    int pagemap = open(path, O_RDONLY);
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "r");
    if (pagemap < 0 || maps == NULL)
        return 3;
    uint64_t processor = nanoseconds(CLOCK_PROCESS_CPUTIME_ID), clock = nanoseconds(CLOCK_MONOTONIC), bytes = 0;
    while (fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 && rights[0] == 'r' && rights[1] == 'w')
            bytes += copy_mapping(pid, pagemap, start, end);
    printf("%llu %llu %llu\n", (unsigned long long)bytes,
           (unsigned long long)(nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - processor),
           (unsigned long long)(nanoseconds(CLOCK_MONOTONIC) - clock));
    return bytes > 0 ? 0 : 3;
}

int main(int count, char **words)
{
    if (count > 2 && strcmp(words[1], "copy") == 0)
        return copy((pid_t)atoi(words[2]));
    size_t entries = count > 2 ? strtoul(words[1], NULL, 10) / 2 : 1000;
    size_t average = count > 2 ? strtoul(words[2], NULL, 10) : 200;
    size_t lists = entries / 4 + 1, least = sizeof(struct entry), most = 2 * (2 * average - least) - least;
    struct entry **cache = open_cache(lists);
    uint64_t state = 88172645463325252u;
    if (cache == NULL || 2 * average < 2 * least)
        return 3;
    for (size_t i = 0; i < entries; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        size_t size = least + state % (most - least + 1);
        struct entry *entry = new_entry();
        char *value = entry != NULL ? new_value(size) : NULL;
        if (value == NULL)
            return 3;
        memset(value, 'v', size);
        *entry = (struct entry){.value = value, .key = i};
        if (i % 100 == 99)
            continue;
        entry->next = cache[state % lists];
        cache[state % lists] = entry;
    }
    char byte;
    return write(STDOUT_FILENO, "ready\n", 6) == 6 && read(STDIN_FILENO, &byte, 1) == 0 ? 0 : 3;
}
