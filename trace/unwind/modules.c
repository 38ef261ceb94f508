/* modules.c: see modules.h. The table of modules, and how it learns that one is gone.
 *
 * Writers hold a lock that they only try for: a signal handler that interrupts a writer answers without storing. */
#include "trace/unwind/modules.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/safepoint.h"
#include "trace/unwind/loaded_objects.h"
#include "trace/unwind/rule_cache.h"

enum {
    CAPACITY = 1 << 14,
    RECENT = 64,
    CAPACITY_SHORT = 1 << 10, /* where address space is limited */
    CAPACITY_LEAST = 1 << 8,
    PATH_BYTES_EACH = 256, /* on the average */
    AMPLE_ROOM = 1 << 30,
    LITTLE_ROOM = 1 << 27,
    PATH_MAX_BYTES = 4096,
    PAGE_BYTES = 4096,
    MAX_SEGMENTS = 128,
    MAX_NOTE_BYTES = 64 << 10,
    MAX_HASHED_BYTES = 64 << 10, /* per segment, of modules without a build id */
    LOCK_ATTEMPTS = 10000,
};

/* One mapping, for so many modules as there was room for. */
struct table {
    struct ta__module *modules;
    uint32_t *by_start; /* open addressing; index + 1 of the latest module with this start */
    char *paths;
    char *found; /* where a path is worked out, because the thread's stack may be too small for it */
    uint32_t capacity, buckets, path_bytes;
};

static struct {
    struct table *table; /* NULL: not mapped */
    uint32_t count;      /* release: publishes the module; pairs with acquire in readers */
    uint32_t path_bytes; /* under the lock */
    uint32_t lock;
    uint32_t doubt;          /* the present doubt-period: ta__modules_begin opens a new one */
    uint32_t map_failed;     /* do not try again before the next ta__modules_begin */
    uint32_t recent[RECENT]; /* by address: the number of the module found there last, or 0; raced for harmlessly */
    uintptr_t foreign_page;  /* the last page asked for that no object has; a hint, raced for harmlessly */
} modules;
static struct table the_table; /* filled in before modules.table leads to it */

uint64_t ta__modules_generation;
struct ta__loader_range ta__loader_range;

extern struct r_debug _r_debug __attribute__((weak));

/* ---- what an object says about itself ---- */

struct segments {
    const ElfW(Phdr) * at;
    unsigned count;
};

/* The program headers in memory: the kernel tells the program's; other objects begin with their ELF header. */
static struct segments segments_of(const struct ta__object *object)
{
    struct segments none = {NULL, 0};
    if (object->name[0] == '\0') {
        struct segments program = {(const ElfW(Phdr) *)getauxval(AT_PHDR), (unsigned)getauxval(AT_PHNUM)};
        if ((uintptr_t)program.at >= object->start && (uintptr_t)program.at < object->end)
            return program;
    }
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)object->start;
    if (object->end - object->start < PAGE_BYTES || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(ElfW(Phdr)) ||
        header->e_phnum > MAX_SEGMENTS || header->e_phoff > PAGE_BYTES ||
        header->e_phoff + header->e_phnum * sizeof(ElfW(Phdr)) > PAGE_BYTES || header->e_phoff % 8 != 0)
        return none;
    struct segments found = {(const ElfW(Phdr) *)(object->start + header->e_phoff), header->e_phnum};
    return found;
}

/* The readable segment that holds an address. Where the headers are unknown, the whole mapping stands in for it. */
static struct ta__cfi_span span_around(const struct ta__object *object, const struct segments *segments,
                                       const void *address)
{
    struct ta__cfi_span span = {(const uint8_t *)object->start, (const uint8_t *)object->end};
    if (segments->count == 0)
        return span;
    span.high = span.low; /* nothing */
    for (unsigned i = 0; i < segments->count; i++) {
        const ElfW(Phdr) *segment = &segments->at[i];
        uintptr_t low = object->bias + segment->p_vaddr;
        uintptr_t high = low + segment->p_memsz;
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_R) != 0 && low >= object->start &&
            high <= object->end && low <= (uintptr_t)address && (uintptr_t)address < high) {
            span.low = (const uint8_t *)low;
            span.high = (const uint8_t *)high;
        }
    }
    return span;
}

static struct ta__cfi_tables tables_of(const struct ta__object *object, const struct segments *segments)
{
    struct ta__cfi_tables tables = {object->eh_frame_hdr, {NULL, NULL}, {NULL, NULL}};
    if (tables.header == NULL)
        return tables;
    tables.header_span = span_around(object, segments, tables.header);
    tables.frame_span = span_around(object, segments, ta__cfi_frames(&tables));
    return tables;
}

static void read_build_id(struct ta__module *module, const struct ta__cfi_span *notes)
{
    const uint8_t *at = notes->low;
    while (notes->high - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        at += sizeof note;
        uint64_t name_bytes = ((uint64_t)note.n_namesz + 3) & ~3ull;
        uint64_t value_bytes = ((uint64_t)note.n_descsz + 3) & ~3ull;
        if (name_bytes + value_bytes > (uint64_t)(notes->high - at))
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(at, "GNU", 4) == 0 &&
            note.n_descsz <= TA__BUILD_ID_MAX) {
            memcpy(module->build_id, at + name_bytes, note.n_descsz);
            module->build_id_bytes = (uint8_t)note.n_descsz;
            return;
        }
        at += name_bytes + value_bytes;
    }
}

static void read_identity(struct ta__module *module, const struct ta__object *object, const struct segments *segments)
{
    module->content = ta__hash_bytes(segments->at, segments->count * sizeof(ElfW(Phdr)));
    for (unsigned i = 0; i < segments->count && module->build_id_bytes == 0; i++) {
        const ElfW(Phdr) *segment = &segments->at[i];
        uintptr_t low = object->bias + segment->p_vaddr;
        if (segment->p_type != PT_NOTE || segment->p_memsz > MAX_NOTE_BYTES)
            continue;
        struct ta__cfi_span notes = span_around(object, segments, (const void *)low);
        if ((const uint8_t *)low < notes.low || (uintptr_t)notes.high - low < segment->p_memsz)
            continue;
        notes.low = (const uint8_t *)low;
        notes.high = notes.low + segment->p_memsz;
        read_build_id(module, &notes);
    }
    for (unsigned i = 0; i < segments->count && module->build_id_bytes == 0; i++) {
        const ElfW(Phdr) *segment = &segments->at[i];
        uintptr_t low = object->bias + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || (segment->p_flags & (PF_R | PF_W)) != PF_R || low < object->start ||
            low >= object->end || segment->p_memsz > object->end - low)
            continue;
        size_t bytes = segment->p_memsz < MAX_HASHED_BYTES ? segment->p_memsz : MAX_HASHED_BYTES;
        module->content = ta__hash_roll(module->content, ta__hash_bytes((const void *)low, bytes));
    }
}

/* Fills in what the object itself says. The table adds id, salt and a path of its own. */
static void describe(struct ta__module *module, const struct ta__object *object)
{
    struct segments segments = segments_of(object);
    memset(module, 0, sizeof *module);
    module->start = object->start;
    module->end = object->end;
    module->bias = object->bias;
    module->link_map = object->link_map;
    module->path = object->name;
    module->tables = tables_of(object, &segments);
    module->is_loader = &_r_debug != NULL && _r_debug.r_ldbase != 0 && object->bias == _r_debug.r_ldbase;
    module->verified = ta__load_relaxed(&modules.doubt);
    read_identity(module, object, &segments);
}

/* Makes a path whole that dlopen was given relative to the working directory, which is most likely still the same. */
static const char *whole_path(const char *name, char buffer[PATH_MAX_BYTES])
{
    size_t bytes = strlen(name) + 1;
    long length = syscall(SYS_getcwd, buffer, PATH_MAX_BYTES); /* with its NUL */
    if (length <= 0 || (size_t)length + bytes > PATH_MAX_BYTES)
        return name;
    buffer[length - 1] = '/';
    memcpy(buffer + length, name, bytes);
    return access(buffer, F_OK) == 0 ? buffer : name;
}

/* Whole path of the object; the buffer is used when the loader's name does not say it. */
static const char *path_of(const struct ta__object *object, char buffer[PATH_MAX_BYTES])
{
    int saved_errno = errno;
    const char *path = object->name;
    if (object->start == getauxval(AT_SYSINFO_EHDR)) {
        path = "[vdso]";
    } else if (path[0] == '\0' || strcmp(path, "/proc/self/exe") == 0) { /* musl's word for it */
        ssize_t length = readlink("/proc/self/exe", buffer, PATH_MAX_BYTES - 1);
        buffer[length > 0 ? length : 0] = '\0';
        path = buffer;
    } else if (path[0] != '/' && strchr(path, '/') != NULL) {
        path = whole_path(path, buffer);
    }
    errno = saved_errno;
    return path;
}

/* ---- the table ---- */

static int try_lock(void)
{
    for (int i = 0; i < LOCK_ATTEMPTS; i++) {
        if (ta__load_relaxed(&modules.lock) == 0 && ta__exchange_acq_rel(&modules.lock, 1) == 0)
            return 1;
        ta__cpu_pause();
    }
    return 0;
}

static void unlock(void)
{
    ta__store_release(&modules.lock, 0);
}

static uint32_t *bucket_of(struct table *table, uintptr_t start)
{
    uint64_t at = ta__hash_word(start) % table->buckets;
    for (;;) { /* ends: there are twice as many buckets as modules */
        uint32_t index = ta__load_acquire(&table->by_start[at]);
        if (index == 0 || table->modules[index - 1].start == start)
            return &table->by_start[at];
        at = (at + 1) % table->buckets;
    }
}

static struct ta__module *latest_at(struct table *table, uintptr_t start)
{
    uint32_t index = ta__load_acquire(bucket_of(table, start));
    return index == 0 ? NULL : &table->modules[index - 1];
}

static int is_live(const struct ta__module *module)
{
    return ta__load_relaxed(&module->is_gone) == 0;
}

/* Marks the module as gone. Nothing that was computed from it may be used again. */
static void retire(struct ta__module *module)
{
    if (__atomic_exchange_n(&module->is_gone, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    ta__add_acq_rel(&ta__modules_generation, 1);
    ta__rules_forget();
    ta__gate_change(0, 0); /* a new generation of the gate: every thread forgets its stack before its next operation */
}

static int is_loaded_as(const struct ta__module *module, const struct ta__object *object)
{
    return is_live(module) && ta__load_relaxed(&module->link_map) == object->link_map && module->end == object->end &&
           module->bias == object->bias && module->tables.header == object->eh_frame_hdr;
}

static int is_same_file(const struct ta__module *a, const struct ta__module *b, const char *path)
{
    return a->start == b->start && a->end == b->end && a->bias == b->bias && a->content == b->content &&
           a->tables.header == b->tables.header && a->build_id_bytes == b->build_id_bytes &&
           memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0 && strcmp(a->path, path) == 0;
}

/* One more than the largest salt among modules that had any of these addresses; 0 for the first. */
static uint32_t salt_for(const struct table *table, const struct ta__module *fresh)
{
    uint32_t salt = 0;
    uint32_t count = ta__load_acquire(&modules.count);
    for (uint32_t i = 0; i < count; i++) {
        const struct ta__module *other = &table->modules[i];
        if (other->start < fresh->end && fresh->start < other->end && other->salt >= salt)
            salt = other->salt + 1u;
    }
    return salt;
}

/* Marks modules as gone whose addresses this object has now: they were unloaded unseen. */
static void retire_overlapped(struct table *table, const struct ta__module *fresh)
{
    for (uint32_t i = 0; i < modules.count; i++) {
        struct ta__module *other = &table->modules[i];
        if (other->start < fresh->end && fresh->start < other->end && is_live(other))
            retire(other);
    }
}

static const char *keep_path(struct table *table, const char *path)
{
    size_t bytes = strlen(path) + 1;
    if (bytes > table->path_bytes - modules.path_bytes)
        return "";
    char *copy = table->paths + modules.path_bytes;
    memcpy(copy, path, bytes);
    modules.path_bytes += (uint32_t)bytes;
    return copy;
}

static uint32_t capacity_for_room(void)
{
    if (ta__memory_is_limited_to(LITTLE_ROOM))
        return CAPACITY_LEAST;
    return ta__memory_is_limited_to(AMPLE_ROOM) ? CAPACITY_SHORT : CAPACITY;
}

static int map_table(struct table *table, uint32_t capacity)
{
    uint32_t buckets = 2 * capacity, path_bytes = PATH_BYTES_EACH * capacity;
    size_t modules_bytes = capacity * sizeof *table->modules, buckets_bytes = buckets * sizeof *table->by_start;
    char *memory = ta__memory_map(modules_bytes + buckets_bytes + path_bytes + PATH_MAX_BYTES);
    if (memory == NULL)
        return 0;
    char *paths = memory + modules_bytes + buckets_bytes;
    *table = (struct table){.modules = (struct ta__module *)(void *)memory,
                            .by_start = (uint32_t *)(void *)(memory + modules_bytes),
                            .paths = paths,
                            .found = paths + path_bytes,
                            .capacity = capacity,
                            .buckets = buckets,
                            .path_bytes = path_bytes};
    return 1;
}

static struct table *table_for_writing(void)
{
    if (modules.table == NULL && !modules.map_failed) {
        if (map_table(&the_table, capacity_for_room()))
            ta__store_release(&modules.table, &the_table);
        modules.map_failed = modules.table == NULL;
    }
    return modules.table;
}

/* The module of the table that is the same as `fresh`, entered when it is new; NULL when it cannot be kept. The caller
 * holds the lock. */
static struct ta__module *enter(const struct ta__module *fresh, const struct ta__object *object)
{
    struct table *table = table_for_writing();
    if (table == NULL)
        return NULL;
    const char *path = path_of(object, table->found);
    uint32_t *bucket = bucket_of(table, fresh->start);
    struct ta__module *latest = *bucket == 0 ? NULL : &table->modules[*bucket - 1];
    if (latest != NULL && is_loaded_as(latest, object) && is_same_file(latest, fresh, path)) {
        ta__store_release(&latest->verified, fresh->verified);
        return latest;
    }

    ta__store_relaxed(&modules.foreign_page, 0); /* pages of this object are no longer foreign */
    retire_overlapped(table, fresh);
    for (uint32_t i = 0; i < modules.count; i++) {
        struct ta__module *known = &table->modules[i];
        if (is_same_file(known, fresh, path)) { /* loaded again where it was: the same module, under its old salt */
            ta__store_relaxed(&known->link_map, fresh->link_map);
            ta__store_relaxed(&known->verified, fresh->verified);
            ta__store_release(&known->is_gone, 0);
            ta__store_release(bucket, known->id.v);
            return known;
        }
    }

    uint32_t salt = salt_for(table, fresh);
    if (modules.count == table->capacity || salt > TA__RULE_SALT_MAX)
        return NULL;
    struct ta__module *added = &table->modules[modules.count];
    *added = *fresh;
    added->path = keep_path(table, path);
    added->salt = (uint16_t)salt;
    added->id.v = modules.count + 1;
    if (added->is_loader) {
        ta__store_relaxed(&ta__loader_range.start, added->start);
        ta__store_release(&ta__loader_range.size, added->end - added->start);
    }
    ta__store_release(&modules.count, added->id.v);
    ta__store_release(bucket, added->id.v);
    return added;
}

/* No object is at this address. A module that the table still has there was unloaded without an allocation by ld.so,
 * and is marked as gone now. Each page is asked about once. */
static void retire_foreign(uintptr_t address)
{
    struct table *table = ta__load_acquire(&modules.table);
    uintptr_t page = address & ~(uintptr_t)(PAGE_BYTES - 1);
    if (table == NULL || page == ta__load_relaxed(&modules.foreign_page))
        return;
    uint32_t count = ta__load_acquire(&modules.count);
    for (uint32_t i = 0; i < count; i++) {
        struct ta__module *module = &table->modules[i];
        if (address >= module->start && address < module->end && is_live(module))
            retire(module);
    }
    ta__store_relaxed(&modules.foreign_page, page);
}

const struct ta__module *ta__module_describe(uintptr_t address, struct ta__module *scratch)
{
    struct ta__object object;
    if (!ta__object_find(address, &object)) {
        retire_foreign(address);
        return NULL;
    }
    struct table *table = ta__load_acquire(&modules.table);
    if (TA_LIKELY(table != NULL)) {
        struct ta__module *latest = latest_at(table, object.start);
        if (TA_LIKELY(latest != NULL && is_loaded_as(latest, &object) &&
                      ta__load_relaxed(&latest->verified) == ta__load_relaxed(&modules.doubt)))
            return latest;
    }

    int saved_errno = errno;
    describe(scratch, &object);
    struct ta__module *entered = NULL;
    if (try_lock()) {
        entered = enter(scratch, &object);
        unlock();
    }
    errno = saved_errno;
    return entered != NULL ? entered : scratch;
}

/* ---- what is gone ---- */

void ta__modules_check(void)
{
    ta__objects_refresh();
    struct table *table = ta__load_acquire(&modules.table);
    if (table == NULL)
        return;
    uint32_t count = ta__load_acquire(&modules.count);
    for (uint32_t i = 0; i < count; i++) {
        struct ta__module *module = &table->modules[i];
        struct ta__object object;
        if (is_live(module) && !(ta__object_find(module->start, &object) && is_loaded_as(module, &object)))
            retire(module);
    }
}

void ta__modules_begin(void)
{
    int saved_errno = errno;
    ta__objects_refresh();
    if (try_lock()) {
        modules.map_failed = 0;
        unlock();
    }
    ta__add_acq_rel(&modules.doubt, 1);
    ta__add_acq_rel(&ta__modules_generation, 1);
    ta__rules_forget();

    /* The loader's range is wanted before any stack has passed through it; what the program's file is called, while it may be
     * asked: it may forbid itself system calls. */
    struct ta__module scratch;
    ta__module_describe(getauxval(AT_PHDR), &scratch);
    if (&_r_debug != NULL && _r_debug.r_ldbase != 0)
        ta__module_describe(_r_debug.r_ldbase, &scratch);
    errno = saved_errno;
}

void ta__modules_after_fork(void)
{
    ta__objects_after_fork();
    ta__cfi_after_fork();
    unlock(); /* what a vanished writer left unfinished was not published */
}

/* ---- readers ---- */

static int covers(const struct ta__module *module, uintptr_t address)
{
    return address >= module->start && address < module->end;
}

ta__module_id ta__module_find(uintptr_t address)
{
    const struct table *table = ta__load_acquire(&modules.table);
    ta__module_id found = {0};
    if (table == NULL)
        return found;
    for (uint32_t i = ta__load_acquire(&modules.count); i > 0; i--)
        if (covers(&table->modules[i - 1], address) && is_live(&table->modules[i - 1]))
            return table->modules[i - 1].id;
    return found;
}

ta__module_id ta__module_find_salted(uintptr_t address, unsigned salt)
{
    const struct table *table = ta__load_acquire(&modules.table);
    ta__module_id found = {0};
    if (table == NULL)
        return found;
    /* No two modules have both the address and the salt. */
    uint32_t *recent = &modules.recent[address >> 16 & (RECENT - 1)];
    uint32_t i = ta__load_acquire(recent);
    if (TA_LIKELY(i != 0 && table->modules[i - 1].salt == salt && covers(&table->modules[i - 1], address)))
        return table->modules[i - 1].id;
    for (i = ta__load_acquire(&modules.count); i > 0; i--)
        if (covers(&table->modules[i - 1], address) && table->modules[i - 1].salt == salt) {
            ta__store_release(recent, i);
            return table->modules[i - 1].id;
        }
    return found;
}

uint32_t ta__modules_count(void)
{
    return ta__load_acquire(&modules.count);
}

const struct ta__module *ta__module_at(ta__module_id id)
{
    const struct table *table = ta__load_acquire(&modules.table);
    return table == NULL || id.v == 0 || id.v > ta__modules_count() ? NULL : &table->modules[id.v - 1];
}

/* ---- for readers from outside ---- */

struct ta__fact ta__facts_modules[] = {
    TA__FACT_AT("modules.table", the_table.modules),
    TA__FACT_AT("modules.count", modules.count),
    TA__FACT("modules.first", 0),
    TA__FACT("module.bytes", sizeof(struct ta__module)),
    TA__FACT_FIELD("module.start", struct ta__module, start),
    TA__FACT_FIELD("module.end", struct ta__module, end),
    TA__FACT_FIELD("module.bias", struct ta__module, bias),
    TA__FACT_FIELD("module.path", struct ta__module, path),
    TA__FACT_FIELD("module.gone", struct ta__module, is_gone),
    TA__FACT_FIELD("module.id_bytes", struct ta__module, build_id_bytes),
    TA__FACT_FIELD("module.id", struct ta__module, build_id),
    TA__FACTS_END,
};
