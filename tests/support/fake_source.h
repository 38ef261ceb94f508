/* fake_source.h: a running program made of arrays, for tests of what snapshots are made from.
 *
 * Deterministic: the same calls make the same tables. Grows like the real one: contexts and leaves are only appended.
 */
#ifndef TA_TESTS_FAKE_SOURCE_H
#define TA_TESTS_FAKE_SOURCE_H

#include "trace/source.h"
#include "snapshot/write/write.h"

struct fake_source {
    struct ta__source source;
    struct ta__source_context *contexts;
    struct ta__source_leaf *leaves;
    struct ta__source_counts *counts;
    struct ta__source_module *modules;
    struct ta__source_domain *domains;
    struct ta__source_thread *threads;
    uint32_t context_room, leaf_room, module_room, domain_room, thread_room;
    uint64_t random;
};

void fake_open(struct fake_source *fake);
void fake_close(struct fake_source *fake);
uint64_t fake_random(struct fake_source *fake, uint64_t below);

/* All answer the id. Module and thread ids are index + 1, as contexts and leaves name them. */
uint32_t fake_module(struct fake_source *fake, const char *path, uint64_t start, uint64_t end);
uint32_t fake_domain(struct fake_source *fake, uint32_t number, const char *name);
uint32_t fake_thread(struct fake_source *fake, uint32_t tid, const char *name);
uint32_t fake_context(struct fake_source *fake, uint32_t parent, uint64_t address, uint32_t module);
uint32_t fake_leaf(struct fake_source *fake, uint32_t context, uint32_t domain_index, uint32_t thread, uint16_t total);
void fake_malloc(struct fake_source *fake, uint32_t leaf, uint64_t blocks, uint64_t size_each);
void fake_free(struct fake_source *fake, uint32_t leaf, uint64_t blocks, uint64_t size_each);

/* A program of `functions` functions that call each other: about `contexts` nodes, a leaf for each third of them. */
void fake_program(struct fake_source *fake, uint32_t contexts, uint32_t functions);
/* Something allocates and frees at every `step`-th leaf. */
void fake_activity(struct fake_source *fake, uint32_t step);

/* A time, a pid and names that never change. */
struct ta__facts fake_facts(uint64_t time_ns);

#endif
