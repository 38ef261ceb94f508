/* shared_blocks.c: see shared_blocks.h. */
#include "alloc/domains/shared_blocks.h"

#include <string.h>

#include "base/lock.h"
#include "base/memory.h"

struct node {
    void *user;
    uint32_t next, previous; /* numbers; 0 = none. A free node has only next. */
};

enum { FIRST_NODES = 4096, NODES_MAX = 1 << 30 };

static struct {
    struct ta__lock lock; /* guards everything here and first_block of every domain; taken inside an operation */
    struct node *nodes;   /* [0] is never used */
    uint32_t size, used;
    uint32_t free;
} list = {.lock = {.rank = TA__RANK_SHARED}};

/* Under the lock: the number of an unused node; 0: no memory. */
static uint32_t take_node(void)
{
    uint32_t number = list.free;
    if (number != 0) {
        list.free = list.nodes[number].next;
        return number;
    }
    if (list.used + 1 >= list.size) {
        uint32_t size = list.size == 0 ? FIRST_NODES : list.size * 2;
        if (size > NODES_MAX)
            return 0;
        size_t old_bytes = list.size * sizeof *list.nodes;
        struct node *nodes = list.nodes == NULL ? ta__memory_map(size * sizeof *nodes)
                                                : ta__memory_grow(list.nodes, old_bytes, size * sizeof *nodes);
        if (nodes == NULL)
            return 0;
        list.nodes = nodes;
        list.size = size;
    }
    return ++list.used;
}

/* The place for the number need not be aligned. */
static uint32_t number_behind(const void *user, size_t size)
{
    uint32_t number;
    memcpy(&number, (const char *)user + size, sizeof number);
    return number;
}

static void put_behind(void *user, size_t size, uint32_t number)
{
    memcpy((char *)user + size, &number, sizeof number);
}

void ta__shared_list(uint32_t index, void *user, size_t size)
{
    struct ta__domain *domain = ta__domain_at(index);
    ta__lock_acquire(&list.lock);
    uint32_t number = take_node();
    if (number != 0) {
        uint32_t next = domain->first_block;
        list.nodes[number] = (struct node){.user = user, .next = next};
        if (next != 0)
            list.nodes[next].previous = number;
        domain->first_block = number;
    }
    ta__lock_release(&list.lock);
    put_behind(user, size, number);
}

void ta__shared_unlist(uint32_t index, void *user, size_t size)
{
    struct ta__domain *domain = ta__domain_at(index);
    uint32_t number = number_behind(user, size);
    ta__lock_acquire(&list.lock);
    if (number != 0 && number <= list.used && list.nodes[number].user == user) {
        struct node *node = &list.nodes[number];
        if (node->next != 0)
            list.nodes[node->next].previous = node->previous;
        if (node->previous != 0)
            list.nodes[node->previous].next = node->next;
        else
            domain->first_block = node->next;
        *node = (struct node){.next = list.free};
        list.free = number;
    }
    ta__lock_release(&list.lock);
}

void ta__shared_move(uint32_t index, void *user, size_t old_size, size_t size)
{
    if (ta__shared_extra(index) != 0)
        put_behind(user, size, number_behind(user, old_size));
}

void *ta__shared_take(uint32_t *first)
{
    ta__lock_acquire(&list.lock);
    uint32_t number = *first;
    void *user = NULL;
    if (number != 0) {
        struct node *node = &list.nodes[number];
        user = node->user;
        *first = node->next;
        *node = (struct node){.next = list.free};
        list.free = number;
    }
    ta__lock_release(&list.lock);
    return user;
}

void ta__shared_after_fork(void)
{
    ta__lock_after_fork(&list.lock);
}
