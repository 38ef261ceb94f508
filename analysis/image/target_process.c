/* target_process.c: a live process as a target: what /proc says of it, and its memory by process_vm_readv. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "analysis/failure.h"
#include "analysis/image/target.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Of a mapping that is as its file: how many of the bytes from `address` on are all there in memory, or all are not. */
static size_t alike(struct ta__target *target, uint64_t address, size_t bytes, int *is_there)
{
    enum { PAGES_MOST = 64, THERE = TA__PAGE_PRESENT | TA__PAGE_SWAPPED };
    uint8_t states[PAGES_MOST];
    size_t within = address % TA__TARGET_PAGE, pages = (within + bytes + TA__TARGET_PAGE - 1) / TA__TARGET_PAGE,
           same = 1;
    pages = pages < PAGES_MOST ? pages : PAGES_MOST;
    ta__target_pages(target, address - within, pages, states);
    *is_there = (states[0] & THERE) != 0;
    while (same < pages && ((states[same] & THERE) != 0) == *is_there)
        same++;
    size_t length = same * TA__TARGET_PAGE - within;
    return length < bytes ? length : bytes;
}

/* Looking makes nothing resident: of files, what is not there is read from the file. Their pages that were written to once
 * are there, or swapped. */
static size_t read_memory(struct ta__target *target, uint64_t address, void *buffer, size_t bytes)
{
    enum { AS_ITS_FILE = TA__REGION_FILE, ELSE = TA__REGION_WRITE | TA__REGION_SPECIAL | TA__REGION_DELETED };
    const struct ta__region *region = ta__target_region(target, address);
    int is_there = 1;
    if (region != NULL && (region->flags & (AS_ITS_FILE | ELSE)) == AS_ITS_FILE && bytes > 0) {
        bytes = alike(target, address, bytes, &is_there);
        size_t got = is_there ? 0 : ta__target_read_file(target, region, address, buffer, bytes);
        if (got > 0)
            return got;
    }
    struct iovec local = {buffer, bytes}, remote = {(void *)(uintptr_t)address, bytes};
    ssize_t done = process_vm_readv((pid_t)target->pid, &local, 1, &remote, 1, 0);
    if (done > 0)
        return (size_t)done;
    if (target->memory_descriptor < 0 || address > INT64_MAX)
        return 0;
    done = pread(target->memory_descriptor, buffer, bytes, (off_t)address); /* also what only a debugger may read */
    return done > 0 ? (size_t)done : 0;
}

static const struct ta__target_operations operations = {read_memory};

static uint8_t state_of(uint64_t entry)
{
    unsigned state = (entry >> 63 & 1) != 0 ? TA__PAGE_PRESENT : 0u;
    state |= (entry >> 62 & 1) != 0 ? TA__PAGE_SWAPPED : 0u;
    state |= (entry >> 61 & 1) != 0 ? TA__PAGE_FILE : 0u;
    state |= (entry >> 56 & 1) != 0 ? TA__PAGE_ALONE : 0u;
    return (uint8_t)state;
}

static void core_pages(struct ta__target *target, uint64_t address, size_t count, uint8_t *states)
{
    uint64_t end = address + count * TA__TARGET_PAGE;
    memset(states, 0, count);
    for (size_t i = ta__target_region_from(target, address); i < target->region_count; i++) {
        const struct ta__region *region = &target->regions[i];
        uint64_t from = region->start > address ? region->start : address, to = region->start + region->stored_bytes;
        if (region->start >= end)
            return;
        for (to = to < end ? to : end; from < to; from += TA__TARGET_PAGE)
            states[(from - address) / TA__TARGET_PAGE] = TA__PAGE_PRESENT;
    }
}

static void read_states(struct ta__target *target, uint64_t page, size_t count, uint8_t *states)
{
    enum { AT_ONCE = 1024 };
    uint64_t entries[AT_ONCE];
    for (size_t done = 0; done < count;) {
        size_t now = count - done < AT_ONCE ? count - done : AT_ONCE;
        off_t offset = (off_t)((page + done) * sizeof *entries);
        ssize_t got = target->pagemap_descriptor < 0
                          ? -1
                          : pread(target->pagemap_descriptor, entries, now * sizeof *entries, offset);
        size_t known = got > 0 ? (size_t)got / sizeof *entries : 0;
        const uint8_t unknown = (uint8_t)(target->pagemap_descriptor < 0 ? TA__PAGE_PRESENT : 0);
        for (size_t i = 0; i < now; i++)
            states[done + i] = i < known ? state_of(entries[i]) : unknown;
        done += now;
    }
}

static void read_copied_states(struct ta__target *target, uint64_t page, size_t count, uint8_t *states)
{
    int is_known;
    for (size_t done = 0, now; done < count; done += now) {
        now = ta__target_copied_pages(target, (page + done) * TA__TARGET_PAGE, count - done, states + done, &is_known);
        if (!is_known)
            read_states(target, page + done, now, states + done);
    }
}

/* Questions go through memory from its beginning to its end, some pages at a time: of a process that stands still, the
 * system is asked for more at once. */
void ta__target_pages(struct ta__target *target, uint64_t address, size_t count, uint8_t *states)
{
    struct ta__page_states *known = &target->states;
    uint64_t page = address / TA__TARGET_PAGE;
    if (target->is_core) {
        core_pages(target, address, count, states);
        return;
    }
    if (target->is_copied) {
        read_copied_states(target, page, count, states);
        return;
    }
    if (!target->is_held || count > TA__STATES_AHEAD / 4) {
        read_states(target, page, count, states);
        return;
    }
    if (known->count == 0 || page < known->first || page + count > known->first + known->count) {
        known->first = page;
        known->count = TA__STATES_AHEAD;
        read_states(target, page, known->count, known->states);
    }
    memcpy(states, known->states + (page - known->first), count);
}

/* ---- files of /proc ---------------------------------------------------------------------------------------------- */

static FILE *open_proc(const struct ta__target *target, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/%s", target->pid, name);
    return fopen(path, "re");
}

static uint32_t keep_link(struct ta__target *target, const char *name)
{
    char path[64], link[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%u/%s", target->pid, name);
    ssize_t length = readlink(path, link, sizeof link);
    return length > 0 ? ta__target_keep(target, link, (size_t)length) : 0;
}

static uint32_t flags_of(const char *rights)
{
    uint32_t flags = rights[0] == 'r' ? TA__REGION_READ : 0;
    flags |= rights[1] == 'w' ? TA__REGION_WRITE : 0;
    flags |= rights[2] == 'x' ? TA__REGION_EXECUTE : 0;
    flags |= rights[3] == 's' ? TA__REGION_SHARED : 0;
    return flags;
}

static int is_device(const char *path)
{
    return strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0 && strcmp(path, "/dev/zero") != 0;
}

/* A line of maps. 1 when it was one. */
static int add_mapping(struct ta__target *target, const char *line)
{
    unsigned long start, end, offset, inode;
    unsigned major, minor;
    char rights[8];
    int path = 0;
    if (sscanf(line, "%lx-%lx %7s %lx %x:%x %lu %n", &start, &end, rights, &offset, &major, &minor, &inode, &path) <
            7 ||
        path == 0 || end <= start)
        return 0;
    struct ta__region *region = ta__target_add_region(target);
    if (region == NULL)
        return 0;
    size_t length = strcspn(line + path, "\n");
    static const char deleted[] = " (deleted)";
    int is_deleted = length > sizeof deleted &&
                     strncmp(line + path + length - (sizeof deleted - 1), deleted, sizeof deleted - 1) == 0;
    length -= is_deleted ? sizeof deleted - 1 : 0;
    *region = (struct ta__region){.start = start, .end = end, .file_offset = offset, .flags = flags_of(rights)};
    uint32_t text = ta__target_keep(target, line + path, length);
    region = &target->regions[target->region_count - 1];
    if (inode != 0 || line[path] == '/') {
        region->path = text;
        region->flags |= TA__REGION_FILE | (is_device(ta__target_string(target, text)) ? TA__REGION_SPECIAL : 0);
        region->flags |= is_deleted ? TA__REGION_DELETED : 0;
    } else {
        region->name = text;
        const char *name = ta__target_string(target, text);
        region->flags |= strcmp(name, "[stack]") == 0 ? TA__REGION_STACK : 0;
        region->flags |= strcmp(name, "[heap]") == 0 ? TA__REGION_BRK : 0;
        if (strncmp(name, "[vvar", 5) == 0 || strcmp(name, "[vsyscall]") == 0)
            region->flags |= TA__REGION_SPECIAL;
    }
    return 1;
}

static void take_size(struct ta__region *region, const char *line)
{
    unsigned long number;
    if (sscanf(line, "Rss: %lu kB", &number) == 1)
        region->rss = (uint64_t)number * 1024;
    else if (sscanf(line, "Pss: %lu kB", &number) == 1)
        region->pss = (uint64_t)number * 1024;
    else if (sscanf(line, "Swap: %lu kB", &number) == 1)
        region->swap = (uint64_t)number * 1024;
    else if (strncmp(line, "VmFlags:", 8) == 0 && (strstr(line, " io") != NULL || strstr(line, " pf") != NULL))
        region->flags |= TA__REGION_SPECIAL; /* of a device */
}

int ta__target_refresh(struct ta__target *target, int with_sizes)
{
    char *line = NULL;
    size_t room = 0;
    FILE *file = open_proc(target, with_sizes ? "smaps" : "maps");
    if (file == NULL)
        return ta__fail("process %u: %s", target->pid, errno == ENOENT ? "there is no such process" : strerror(errno));
    target->region_count = 0;
    while (getline(&line, &room, file) > 0)
        if (!add_mapping(target, line) && with_sizes && target->region_count > 0)
            take_size(&target->regions[target->region_count - 1], line);
    int failed = ferror(file);
    free(line);
    fclose(file);
    if (failed || target->region_count == 0)
        return ta__fail(
            "process %u has no memory, or it may not be looked at (same user, or root, and ptrace allowed?)",
            target->pid);
    return 0;
}

static void read_status(struct ta__target *target)
{
    char *line = NULL;
    size_t room = 0;
    FILE *file = open_proc(target, "status");
    unsigned long number;
    if (file == NULL)
        return;
    target->inner = target->pid;
    while (getline(&line, &room, file) > 0) {
        if (sscanf(line, "VmPTE: %lu kB", &number) == 1)
            target->page_table_bytes = (uint64_t)number * 1024;
        if (sscanf(line, "VmSwap: %lu kB", &number) == 1)
            target->status_swap = (uint64_t)number * 1024;
        if (strncmp(line, "NSpid:", 6) == 0) {
            const char *last = strrchr(line, '\t');
            target->inner = last != NULL ? (uint32_t)atoi(last + 1) : target->pid;
        }
    }
    free(line);
    fclose(file);
}

static void read_auxiliary(struct ta__target *target)
{
    uint64_t words[128];
    FILE *file = open_proc(target, "auxv");
    if (file == NULL)
        return;
    ta__target_set_auxiliary(target, words, fread(words, sizeof *words, 128, file));
    fclose(file);
}

static void read_command(struct ta__target *target)
{
    char command[4096];
    FILE *file = open_proc(target, "cmdline");
    if (file == NULL)
        return;
    size_t length = fread(command, 1, sizeof command, file);
    fclose(file);
    while (length > 0 && command[length - 1] == '\0')
        length--;
    for (size_t i = 0; i < length; i++)
        command[i] = command[i] == '\0' ? ' ' : command[i];
    target->command = ta__target_keep(target, command, length);
}

/* Where another root is in force, paths of the process mean other files. */
static void find_root(struct ta__target *target)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/root", target->pid);
    if (access(path, X_OK) == 0)
        memcpy(target->root, path, sizeof path);
}

int ta__target_open_process(struct ta__target *target, pid_t process)
{
    char path[64];
    target->operations = &operations;
    target->pid = (uint32_t)process;
    if (process == getpid())
        return ta__fail("process %d is this program itself", process);
    snprintf(path, sizeof path, "/proc/%d/mem", process);
    target->memory_descriptor = open(path, O_RDONLY | O_CLOEXEC);
    int error = errno;
    if (target->memory_descriptor < 0 && error == ENOENT)
        return ta__fail("process %d: there is no such process", process);
    if (target->memory_descriptor < 0 && ta__target_has_ended(target, process))
        return ta__fail("process %d has ended, or its main thread has, by which it is looked at", process);
    if (target->memory_descriptor < 0)
        return ta__fail("process %d may not be looked at: %s (the same user or root may, where ptrace is allowed: "
                        "/proc/sys/kernel/yama/ptrace_scope)",
                        process, strerror(error));
    snprintf(path, sizeof path, "/proc/%d/pagemap", process);
    target->pagemap_descriptor = open(path, O_RDONLY | O_CLOEXEC);
    find_root(target);
    read_status(target);
    read_auxiliary(target);
    read_command(target);
    target->program = keep_link(target, "exe");
    return ta__target_refresh(target, 0);
}
