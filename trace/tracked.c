/* tracked.c: see tracked.h. */
#include "trace/tracked.h"

#include <string.h>

#include "base/atomics.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/memory.h"

enum { SHARDS = 64, FIRST_SIZE = 256 };

enum { EMPTY = 0, DELETED = 1, USED = 2 };

struct cell {
    struct ta__tracked entry;
    uint64_t state;
};

struct shard {
    _Alignas(TA_CACHE_LINE) struct ta__lock lock;
    uint64_t size; /* a power of two; 0 = not yet made */
    uint64_t used; /* cells that are not EMPTY */
    uint64_t count;
    struct cell *cells;
};

static struct shard shards[SHARDS] = {[0 ... SHARDS - 1] = {.lock = {.rank = TA__RANK_TRACKED}}};

static uint64_t key_hash(uint32_t domain, uint64_t address)
{
    return ta__hash_word(address ^ (uint64_t)domain * TA__GOLDEN);
}

static struct shard *shard_of(uint64_t hash)
{
    return &shards[hash >> 58];
}

/* The cell of the key, or NULL; *vacant is where it would go. */
static struct cell *find(const struct shard *shard, uint64_t hash, uint32_t domain, uint64_t address,
                         struct cell **vacant)
{
    struct cell *first_free = NULL;
    if (shard->size == 0)
        return NULL;
    for (uint64_t at = hash & (shard->size - 1);; at = (at + 1) & (shard->size - 1)) {
        struct cell *cell = &shard->cells[at];
        if (cell->state == USED && cell->entry.address == address && cell->entry.domain == domain)
            return cell;
        if (cell->state != USED && first_free == NULL)
            first_free = cell;
        if (cell->state == EMPTY)
            break;
    }
    if (vacant != NULL)
        *vacant = first_free;
    return NULL;
}

static int make_room(struct shard *shard)
{
    if (shard->size != 0 && shard->used * 4 < shard->size * 3)
        return 1;
    uint64_t size = shard->size == 0 ? FIRST_SIZE : shard->count * 2 >= shard->size ? shard->size * 2 : shard->size;
    struct cell *cells = ta__memory_map(size * sizeof *cells);
    if (cells == NULL)
        return shard->size != 0 && shard->used + 1 < shard->size;
    for (uint64_t i = 0; i < shard->size; i++) {
        if (shard->cells[i].state != USED)
            continue;
        const struct ta__tracked *entry = &shard->cells[i].entry;
        uint64_t at = key_hash(entry->domain, entry->address) & (size - 1);
        while (cells[at].state != EMPTY)
            at = (at + 1) & (size - 1);
        cells[at] = shard->cells[i];
    }
    ta__memory_unmap(shard->cells, shard->size * sizeof *cells);
    shard->cells = cells;
    shard->size = size;
    shard->used = shard->count;
    return 1;
}

int ta__tracked_put(const struct ta__tracked *entry, struct ta__tracked *old)
{
    uint64_t hash = key_hash(entry->domain, entry->address);
    struct shard *shard = shard_of(hash);
    memset(old, 0, sizeof *old);
    ta__lock_acquire(&shard->lock);
    struct cell *vacant = NULL;
    struct cell *cell = find(shard, hash, entry->domain, entry->address, NULL);
    int stored = 1;
    if (cell != NULL) {
        *old = cell->entry;
        cell->entry = *entry;
    } else if (make_room(shard)) {
        find(shard, hash, entry->domain, entry->address, &vacant);
        shard->used += vacant->state == EMPTY;
        shard->count++;
        vacant->entry = *entry;
        vacant->state = USED;
    } else {
        stored = 0;
    }
    ta__lock_release(&shard->lock);
    return stored;
}

int ta__tracked_take(uint32_t domain, uint64_t address, struct ta__tracked *old)
{
    uint64_t hash = key_hash(domain, address);
    struct shard *shard = shard_of(hash);
    ta__lock_acquire(&shard->lock);
    struct cell *cell = find(shard, hash, domain, address, NULL);
    if (cell != NULL) {
        *old = cell->entry;
        cell->state = DELETED;
        shard->count--;
    }
    ta__lock_release(&shard->lock);
    return cell != NULL;
}

int ta__tracked_find(uint32_t domain, uint64_t address, struct ta__tracked *found)
{
    uint64_t hash = key_hash(domain, address);
    struct shard *shard = shard_of(hash);
    ta__lock_acquire(&shard->lock);
    struct cell *cell = find(shard, hash, domain, address, NULL);
    if (cell != NULL)
        *found = cell->entry;
    ta__lock_release(&shard->lock);
    return cell != NULL;
}

void ta__tracked_visit(int (*visit)(const struct ta__tracked *entry, void *context), void *context)
{
    int go_on = 1;
    for (int s = 0; s < SHARDS && go_on; s++) {
        struct shard *shard = &shards[s];
        ta__lock_acquire(&shard->lock);
        for (uint64_t i = 0; i < shard->size && go_on; i++)
            if (shard->cells[i].state == USED)
                go_on = visit(&shard->cells[i].entry, context);
        ta__lock_release(&shard->lock);
    }
}

void ta__tracked_take_domain(uint32_t domain, void (*taken)(const struct ta__tracked *entry, void *context),
                             void *context)
{
    for (int s = 0; s < SHARDS; s++) {
        struct shard *shard = &shards[s];
        ta__lock_acquire(&shard->lock);
        for (uint64_t i = 0; i < shard->size; i++) {
            struct cell *cell = &shard->cells[i];
            if (cell->state != USED || cell->entry.domain != domain)
                continue;
            cell->state = DELETED;
            shard->count--;
            taken(&cell->entry, context);
        }
        ta__lock_release(&shard->lock);
    }
}

void ta__tracked_clear(void (*dropped)(uint32_t domain, size_t size))
{
    for (int s = 0; s < SHARDS; s++) {
        struct shard *shard = &shards[s];
        ta__lock_acquire(&shard->lock);
        for (uint64_t i = 0; i < shard->size; i++)
            if (shard->cells[i].state == USED)
                dropped(shard->cells[i].entry.domain, shard->cells[i].entry.size);
        ta__memory_unmap(shard->cells, shard->size * sizeof *shard->cells);
        shard->cells = NULL;
        shard->size = shard->used = shard->count = 0;
        ta__lock_release(&shard->lock);
    }
}

uint64_t ta__tracked_count(void)
{
    uint64_t count = 0;
    for (int s = 0; s < SHARDS; s++)
        count += ta__load_relaxed(&shards[s].count);
    return count;
}

void ta__tracked_after_fork(void)
{
    for (int s = 0; s < SHARDS; s++)
        ta__lock_after_fork(&shards[s].lock);
}

struct ta__fact ta__facts_tracked[] = {
    TA__FACT_AT("tracked.shards", shards),
    TA__FACT("tracked.shard_count", SHARDS),
    TA__FACT("tracked.shard_bytes", sizeof(struct shard)),
    TA__FACT_FIELD("tracked.size", struct shard, size),
    TA__FACT_FIELD("tracked.cells", struct shard, cells),
    TA__FACT("tracked.cell_bytes", sizeof(struct cell)),
    TA__FACT_FIELD("tracked.state", struct cell, state),
    TA__FACT_FIELD("tracked.address", struct cell, entry.address),
    TA__FACT_FIELD("tracked.bytes", struct cell, entry.size),
    TA__FACT_FIELD("tracked.domain", struct cell, entry.domain),
    TA__FACT_FIELD("tracked.leaf", struct cell, entry.leaf),
    TA__FACT("tracked.used", USED),
    TA__FACTS_END,
};
