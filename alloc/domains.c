/* domains.c: see domains.h. */
#include "alloc/domains.h"

#include "alloc/heap.h"
#include "base/atomics.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/memory.h"
#include "trace/trace.h"

static struct {
    struct ta__lock lock;       /* guards growth; readers need none */
    struct ta__domain *domains; /* reserved for the maximum */
    uint32_t *by_number;        /* open addressing: index + 1, newest life of a number; 0 = empty */
    uint32_t count;             /* release after the entry */
} table;

enum { INDEX_SIZE = 2 * TA__DOMAINS_MAX };

int ta__domains_init(void)
{
    if (table.domains != NULL)
        return 1;
    table.by_number = ta__memory_map(INDEX_SIZE * sizeof *table.by_number);
    table.domains = ta__memory_map(TA__DOMAINS_MAX * sizeof *table.domains);
    if (table.domains == NULL || table.by_number == NULL)
        return 0;
    table.domains[0].heap = ta__heap_new();
    table.by_number[ta__hash_word(0) & (INDEX_SIZE - 1)] = 1;
    table.count = 1;
    return table.domains[0].heap != NULL;
}

static uint32_t *find_cell(uint32_t number)
{
    uint64_t at = ta__hash_word(number) & (INDEX_SIZE - 1);
    for (;; at = (at + 1) & (INDEX_SIZE - 1)) {
        uint32_t found = ta__load_acquire(&table.by_number[at]);
        if (found == 0 || table.domains[found - 1].number == number)
            return &table.by_number[at];
    }
}

int ta__domain_known(uint32_t number)
{
    if (number == 0)
        return 0;
    return (int)ta__load_acquire(find_cell(number)) - 1;
}

int ta__domain_index(uint32_t number)
{
    int known = ta__domain_known(number);
    if (known >= 0)
        return known;
    ta__lock_acquire(&table.lock);
    uint32_t *cell = find_cell(number);
    if (*cell == 0 && table.count < TA__DOMAINS_MAX) {
        uint32_t index = table.count;
        table.domains[index].number = number;
        table.domains[index].heap_index = index;
        ta__store_release(&table.count, index + 1);
        ta__store_release(cell, index + 1);
    }
    known = (int)*cell - 1;
    ta__lock_release(&table.lock);
    return known;
}

uint32_t ta__domain_count(void)
{
    return ta__load_acquire(&table.count);
}

struct ta__domain *ta__domain_at(uint32_t index)
{
    return &table.domains[index];
}

void *ta__domain_part(struct ta__thread *self, uint32_t index)
{
    if (self->domains == NULL)
        self->domains = ta__memory_map(TA__DOMAINS_MAX * sizeof(void *));
    void **parts = self->domains;
    if (parts == NULL)
        return NULL;
    if (parts[index] == NULL) {
        struct ta__domain *domain = ta__domain_at(index);
        if (ta__load_acquire(&domain->heap) == NULL) {
            ta__lock_acquire(&table.lock);
            if (domain->heap == NULL)
                ta__store_release(&domain->heap, ta__heap_new());
            ta__lock_release(&table.lock);
            if (domain->heap == NULL)
                return NULL;
        }
        parts[index] = ta__heap_part(domain->heap);
    }
    return parts[index];
}

void ta__domains_after_fork(void)
{
    table.lock.state = 0;
}
