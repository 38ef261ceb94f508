/* memory_kinds.c: see memory_kinds.h. No malloc, no stdio. */
#include "snapshot/triggers/memory_kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "alloc/alloc.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/small_file.h"
#include "snapshot/triggers/stack_step.h"

static const char *const kind_names[TA__MEMORY_KINDS] = {"malloc",    "tracing", "mapped", "stacks",
                                                         "libraries", "files",   "shared"};

enum { LIST_MOST = 40000, SITES_SHOWN = 6, COST_SHARE = 500 /* beside what entries may cost (pace.c) */ };
#define FIRST_NS UINT64_C(400000) /* what the first look is taken to cost */
#define GIB      (UINT64_C(1) << 30)

/* ---- the kernel's list, line by line ---- */

struct lines {
    int file;
    size_t at, length;
    char text[8192];
};

/* The next line without its end, which stays until the next call; NULL at the end. Longer ones come in pieces. */
static char *next_line(struct lines *lines)
{
    for (;;) {
        char *start = lines->text + lines->at, *end = memchr(start, '\n', lines->length - lines->at);
        if (end != NULL || (lines->at == 0 && lines->length == sizeof lines->text - 1)) {
            if (end == NULL)
                end = lines->text + lines->length;
            *end = '\0';
            lines->at = (size_t)(end - lines->text) + (end < lines->text + lines->length);
            return start;
        }
        lines->length -= lines->at;
        memmove(lines->text, start, lines->length);
        lines->at = 0;
        ssize_t got = read(lines->file, lines->text + lines->length, sizeof lines->text - 1 - lines->length);
        if (got <= 0)
            return NULL;
        lines->length += (size_t)got;
    }
}

struct area {
    uint64_t start, end, resident;
    int reads_or_writes, executes;
    char name[64]; /* the beginning is enough */
};

static const char *take_hex(const char *at, uint64_t *number)
{
    for (*number = 0;; at++)
        if (*at >= '0' && *at <= '9')
            *number = *number * 16 + (uint64_t)(*at - '0');
        else if (*at >= 'a' && *at <= 'f')
            *number = *number * 16 + (uint64_t)(*at - 'a' + 10);
        else
            return at;
}

/* "7f8b7b41e000-7f8b7b427000 r--p 00000000 fe:00 332835                     /usr/lib/…"; 0 when it is another line. */
static int parse_area(const char *line, struct area *area)
{
    const char *at = take_hex(line, &area->start);
    if (at == line || *at != '-')
        return 0;
    at = take_hex(at + 1, &area->end);
    if (strlen(at) < 6)
        return 0;
    area->reads_or_writes = at[1] == 'r' || at[2] == 'w';
    area->executes = at[3] == 'x';
    area->resident = 0;
    at += 6;
    for (int field = 0; field < 3; field++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    strncpy(area->name, at, sizeof area->name - 1);
    area->name[sizeof area->name - 1] = '\0';
    return 1;
}

/* ---- whose it is ---- */

struct reader {
    struct ta__memory_sums *sums;
    const struct ta__mapping *owners;
    size_t owner_count, next_owner;
    uint64_t last_end;
    int last_was_guard;
    struct { /* of one file, until the next one comes: code makes it a library */
        char name[64];
        uint64_t resident, size, end;
        int executes;
    } file;
};

static void add(struct ta__memory_sums *sums, enum ta__memory_kind kind, uint64_t size, uint64_t resident)
{
    sums->size[kind] += size;
    sums->resident[kind] += resident;
}

static void end_file(struct reader *reader)
{
    add(reader->sums, reader->file.executes ? TA__MEMORY_LIBRARIES : TA__MEMORY_FILES, reader->file.size,
        reader->file.resident);
    memset(&reader->file, 0, sizeof reader->file);
}

static void add_file(struct reader *reader, const struct area *area)
{
    if (strcmp(reader->file.name, area->name) != 0) {
        end_file(reader);
        memcpy(reader->file.name, area->name, sizeof area->name);
    }
    reader->file.size += area->end - area->start;
    reader->file.resident += area->resident;
    reader->file.executes |= area->executes;
    reader->file.end = area->end;
}

static int is_shared_memory(const char *name)
{
    static const char *const beginnings[] = {
        "/dev/zero", "/dev/shm/", "/memfd:", "/SYSV", "[anon_shmem", "/anon_hugepage"};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return 1;
    return 0;
}

static void add_owned(struct ta__memory_sums *sums, uint32_t who, uint64_t size, uint64_t resident)
{
    if (who == TA__MAPPED_FOR_BLOCKS || who == TA__MAPPED_FOR_TABLES) {
        add(sums, who == TA__MAPPED_FOR_BLOCKS ? TA__MEMORY_BLOCKS : TA__MEMORY_TRACING, size, resident);
        return;
    }
    add(sums, TA__MEMORY_MAPPED, size, resident);
    uint32_t site = who >= TA__MAPPED_BY_PROGRAM ? who - TA__MAPPED_BY_PROGRAM : 0;
    sums->sites[site < TA__SITES_MOST ? site : 0] += resident;
}

/* Neighbours are one area to the kernel: each owner has its share by size. What is left was mapped by libc or without it:
 * behind a guard a thread's stack. */
static void add_anonymous(struct reader *reader, const struct area *area)
{
    uint64_t size = area->end - area->start, rest = size, rest_resident = area->resident;
    while (reader->next_owner < reader->owner_count &&
           reader->owners[reader->next_owner].start + reader->owners[reader->next_owner].length <= area->start)
        reader->next_owner++;
    for (size_t i = reader->next_owner; i < reader->owner_count && reader->owners[i].start < area->end; i++) {
        const struct ta__mapping *owner = &reader->owners[i];
        uint64_t from = owner->start > area->start ? owner->start : area->start;
        uint64_t to = owner->start + owner->length < area->end ? owner->start + owner->length : area->end;
        if (to <= from || to - from > rest)
            continue;
        uint64_t share = (uint64_t)((double)area->resident * (double)(to - from) / (double)size);
        share = share < rest_resident ? share : rest_resident;
        add_owned(reader->sums, owner->who, to - from, share);
        rest -= to - from;
        rest_resident -= share;
    }
    if (rest == 0)
        return;
    if (strncmp(area->name, "[stack", 6) == 0 || (reader->last_was_guard && reader->last_end == area->start))
        add(reader->sums, TA__MEMORY_STACKS, rest, rest_resident);
    else if (reader->file.executes && reader->file.end == area->start)
        add(reader->sums, TA__MEMORY_LIBRARIES, rest, rest_resident); /* variables that begin as 0 */
    else
        add_owned(reader->sums, TA__MAPPED_BY_NOBODY, rest, rest_resident);
}

static void add_area(struct reader *reader, const struct area *area)
{
    enum { GUARD_MOST = 64 << 10 };
    if (!area->reads_or_writes) {
        reader->last_was_guard = area->end - area->start <= GUARD_MOST;
        reader->last_end = area->end;
        return;
    }
    if (is_shared_memory(area->name))
        add(reader->sums, TA__MEMORY_SHARED, area->end - area->start, area->resident);
    else if (*area->name == '/')
        add_file(reader, area);
    else if (strncmp(area->name, "[v", 2) != 0)
        add_anonymous(reader, area);
    reader->last_was_guard = 0;
    reader->last_end = area->end;
}

static int read_areas(struct reader *reader, const char *path)
{
    struct lines lines = {.file = open(path, O_RDONLY | O_CLOEXEC)};
    struct area area = {.end = 0};
    int is_open = 0;
    if (lines.file < 0)
        return 0;
    for (char *line; (line = next_line(&lines)) != NULL;)
        if (*line < 'A' || *line > 'Z') {
            struct area next;
            if (!parse_area(line, &next))
                continue;
            if (is_open)
                add_area(reader, &area);
            area = next;
            is_open = 1;
        } else if (strncmp(line, "Rss:", 4) == 0) {
            area.resident = ta__decimal_at(line + 4) * 1024;
        }
    if (is_open)
        add_area(reader, &area);
    end_file(reader);
    close(lines.file);
    return 1;
}

int ta__memory_sums_of(const char *path, const struct ta__mapping *owners, size_t count, struct ta__memory_sums *sums)
{
    struct reader reader = {.sums = sums, .owners = owners, .owner_count = count};
    memset(sums, 0, sizeof *sums);
    return read_areas(&reader, path);
}

/* 0 when it cannot be found out. */
static int read_sums(struct ta__memory_sums *sums, int with_resident)
{
    struct ta__mapping *owners = ta__memory_map(LIST_MOST * sizeof *owners);
    if (owners == NULL)
        return 0;
    int result = ta__memory_sums_of(with_resident ? "/proc/self/smaps" : "/proc/self/maps", owners,
                                    ta__mappings_list(owners, LIST_MOST), sums);
    ta__memory_unmap(owners, LIST_MOST * sizeof *owners);
    return result;
}

/* ---- the highest so far ---- */

static struct {
    uint64_t resident;          /* of the process, when `sums` were looked at */
    uint64_t spent_ns, last_ns; /* by all looks, by the last one */
    struct ta__memory_sums sums;
} highest;

void ta__memory_kinds_forget(void)
{
    memset(&highest, 0, sizeof highest);
}

static uint64_t resident_now(void)
{
    char text[128];
    ta__small_file("/proc/self/statm", text, sizeof text);
    const char *at = strchr(text, ' ');
    return at == NULL ? 0 : ta__decimal_at(at) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t processor_ns(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void look(uint64_t resident)
{
    static struct ta__memory_sums found; /* one helper at a time */
    uint64_t before = processor_ns();
    if (!read_sums(&found, 1))
        return;
    highest.last_ns = processor_ns() - before;
    highest.spent_ns += highest.last_ns;
    highest.resident = resident;
    highest.sums = found;
}

void ta__memory_kinds_watch(uint64_t busy_ns)
{
    int saved_errno = errno;
    uint64_t next_ns = highest.last_ns != 0 ? highest.last_ns : FIRST_NS;
    uint64_t resident = highest.spent_ns + next_ns <= busy_ns / COST_SHARE ? resident_now() : 0;
    if (resident > highest.resident + highest.resident / 10 && resident < GIB)
        look(resident);
    errno = saved_errno;
}

/* ---- words ---- */

static void add_sums(struct ta__pairs *pairs, const char *prefix, const uint64_t *values)
{
    for (int i = 0; i < TA__MEMORY_KINDS; i++) {
        char key[48];
        strcpy(stpcpy(key, prefix), kind_names[i]);
        if (values[i] != 0)
            ta__pairs_add_keyed(pairs, key, values[i]);
    }
}

static void add_site(struct ta__pairs *pairs, int row, uint32_t site, const struct ta__memory_sums *now)
{
    char prefix[64] = "memory.site.";
    char *end = ta__put_decimal(prefix + strlen(prefix), (uint64_t)row);
    const struct ta__mmap_site *frames = ta__mmap_site(site);
    ta__pairs_add_keyed(pairs, prefix, now->sites[site]);
    strcpy(end, ".peak");
    ta__pairs_add_keyed(pairs, prefix, highest.sums.sites[site]);
    strcpy(end, ".frame.");
    for (int i = 0; frames != NULL && i < TA__SITE_FRAMES && frames->frames[i] != 0; i++) {
        struct ta__message message;
        ta__place_text(&message, frames->frames[i] - 1);
        ta__pairs_add_row(pairs, prefix, (uint64_t)i, message.text);
    }
}

static uint64_t worth(const struct ta__memory_sums *now, uint32_t site)
{
    return now->sites[site] > highest.sums.sites[site] ? now->sites[site] : highest.sums.sites[site];
}

/* Those that have most, now or then. */
static void add_sites(struct ta__pairs *pairs, const struct ta__memory_sums *now)
{
    static uint8_t is_shown[TA__SITES_MOST];
    memset(is_shown, 0, sizeof is_shown);
    for (int row = 0; row < SITES_SHOWN; row++) {
        uint32_t best = TA__SITES_MOST;
        for (uint32_t site = 0; site < TA__SITES_MOST; site++)
            if (!is_shown[site] && worth(now, site) > 0 &&
                (best == TA__SITES_MOST || worth(now, site) > worth(now, best)))
                best = site;
        if (best == TA__SITES_MOST)
            return;
        is_shown[best] = 1;
        add_site(pairs, row, best, now);
    }
}

void ta__memory_kinds_describe(struct ta__pairs *pairs, int all)
{
    static struct ta__memory_sums now;
    int saved_errno = errno;
    uint64_t resident = all ? resident_now() : 0;
    if (read_sums(&now, all)) {
        now.size[TA__MEMORY_BLOCKS] = now.size[TA__MEMORY_LIBRARIES] = now.size[TA__MEMORY_TRACING] =
            0; /* of no interest: reserved, mostly */
        add_sums(pairs, "memory.size.", now.size);
        if (all) {
            if (resident >= highest.resident) {
                highest.resident = resident;
                highest.sums = now;
            }
            add_sums(pairs, "memory.kind.", now.resident);
            ta__pairs_add_number(pairs, "memory.peak.resident", highest.resident);
            add_sums(pairs, "memory.peak.kind.", highest.sums.resident);
            add_sites(pairs, &now);
        }
    }
    errno = saved_errno;
}
