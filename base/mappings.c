/* mappings.c: see mappings.h. Two tables: a small one for every process, a large one for who maps a lot. */
#include "base/mappings.h"

#include <errno.h>

#include "base/atomics.h"
#include "base/hash.h"

enum { SMALL = 512, LARGE = 32768, PROBES = 32, PAGE_SHIFT = 12 };
/* Addresses are multiples of a page; these are none. */
enum { FREE = 0, WAS_USED = 1, CHANGING = 2 };

struct slot {
    uintptr_t start; /* release: the rest is whole */
    size_t length;
    uint32_t who;
};

static struct slot small[SMALL];
static struct slot *large; /* NULL = not needed yet */

static struct slot *larger_table(void)
{
    struct slot *table = ta__load_acquire(&large), *none = NULL;
    if (table != NULL)
        return table;
    int saved_errno = errno;
    table = ta__system_mmap(NULL, LARGE * sizeof *table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved_errno;
    if (table == MAP_FAILED)
        return NULL;
    if (!ta__cas_acq_rel(&large, &none, table)) {
        ta__system_munmap(table, LARGE * sizeof *table);
        return none;
    }
    return table;
}

/* The slot of that start; else, when asked for, a free one that now is CHANGING. */
static struct slot *find(struct slot *table, size_t count, uintptr_t start, int takes_free)
{
    size_t at = (size_t)ta__hash_word(start >> PAGE_SHIFT);
    for (size_t i = 0; i < PROBES; i++) {
        struct slot *slot = &table[(at + i) & (count - 1)];
        uintptr_t present = ta__load_acquire(&slot->start);
        if (present == start)
            return slot;
        if (present == FREE)
            break;
    }
    for (size_t i = 0; takes_free && i < PROBES; i++) {
        struct slot *slot = &table[(at + i) & (count - 1)];
        uintptr_t present = ta__load_relaxed(&slot->start);
        if ((present == FREE || present == WAS_USED) && ta__cas_acq_rel(&slot->start, &present, (uintptr_t)CHANGING))
            return slot;
    }
    return NULL;
}

void ta__mapping_note(const void *address, size_t length, uint32_t who)
{
    uintptr_t start = (uintptr_t)address;
    struct slot *slot = find(small, SMALL, start, 1);
    if (slot == NULL) {
        struct slot *table = larger_table();
        slot = table == NULL ? NULL : find(table, LARGE, start, 1);
    }
    if (slot == NULL)
        return;
    ta__store_relaxed(&slot->length, length);
    ta__store_relaxed(&slot->who, who);
    ta__store_release(&slot->start, start);
}

static struct slot *slot_of(const void *address)
{
    struct slot *table = ta__load_acquire(&large);
    struct slot *slot = find(small, SMALL, (uintptr_t)address, 0);
    return slot == NULL && table != NULL ? find(table, LARGE, (uintptr_t)address, 0) : slot;
}

void ta__mapping_forget(const void *address, size_t length)
{
    struct slot *slot = slot_of(address);
    if (slot == NULL)
        return;
    size_t had = ta__load_relaxed(&slot->length);
    uint32_t who = ta__load_relaxed(&slot->who);
    ta__store_release(&slot->start, (uintptr_t)WAS_USED);
    if (had > length)
        ta__mapping_note((const char *)address + length, had - length, who);
}

void *ta__mapping_make(void *address, size_t length, int protection, int flags, int file, off_t offset, uint32_t who)
{
    void *made = ta__system_mmap(address, length, protection, flags, file, offset);
    if (made != MAP_FAILED)
        ta__mapping_note(made, length, who);
    return made;
}

int ta__mapping_drop(void *address, size_t length)
{
    ta__mapping_forget(address, length); /* before: another thread may be given the same address */
    return ta__system_munmap(address, length);
}

void ta__mapping_cut(void *address, size_t kept, size_t length)
{
    struct slot *slot = slot_of(address);
    if (slot != NULL && ta__load_relaxed(&slot->length) > kept)
        ta__store_relaxed(&slot->length, kept); /* before: another thread may be given the addresses behind */
    (void)ta__system_munmap((char *)address + kept, length - kept);
}

/* ---- the list ---- */

static size_t copy(const struct slot *table, size_t count, struct ta__mapping *list, size_t used, size_t most)
{
    for (size_t i = 0; table != NULL && i < count && used < most; i++) {
        uintptr_t start = ta__load_acquire(&table[i].start);
        if (start > CHANGING)
            list[used++] =
                (struct ta__mapping){start, ta__load_relaxed(&table[i].length), ta__load_relaxed(&table[i].who)};
    }
    return used;
}

/* A heap of the largest address first, from `at` downwards. */
static void sink(struct ta__mapping *list, size_t at, size_t count)
{
    struct ta__mapping moved = list[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && list[child + 1].start > list[child].start)
            child++;
        if (list[child].start <= moved.start)
            break;
        list[at] = list[child];
    }
    list[at] = moved;
}

size_t ta__mappings_list(struct ta__mapping *list, size_t most)
{
    size_t count = copy(ta__load_acquire(&large), LARGE, list, copy(small, SMALL, list, 0, most), most);
    for (size_t i = count / 2; i-- > 0;)
        sink(list, i, count);
    for (size_t i = count; i-- > 1;) {
        struct ta__mapping largest = list[0];
        list[0] = list[i];
        list[i] = largest;
        sink(list, 0, i);
    }
    return count;
}
