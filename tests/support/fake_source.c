/* fake_source.c: see fake_source.h. */
#include "tests/support/fake_source.h"

#include <stdlib.h>
#include <string.h>

#define GROW(fake, array, room, count)                                                                                 \
    do {                                                                                                               \
        if ((count) == (fake)->room) {                                                                                 \
            (fake)->room = (fake)->room == 0 ? 64 : (fake)->room * 2;                                                  \
            (fake)->array = realloc((fake)->array, (fake)->room * sizeof *(fake)->array);                              \
            if ((fake)->array == NULL)                                                                                 \
                abort();                                                                                               \
        }                                                                                                              \
    } while (0)

static void fold(const struct ta__source *source, uint32_t first, uint32_t n, struct ta__source_counts *counts)
{
    const struct fake_source *fake = source->user;
    memcpy(counts, fake->counts + first, n * sizeof *counts);
}

static int module(const struct ta__source *source, uint32_t index, struct ta__source_module *row)
{
    const struct fake_source *fake = source->user;
    *row = fake->modules[index];
    return 1;
}

static int domain(const struct ta__source *source, uint32_t index, struct ta__source_domain *row)
{
    const struct fake_source *fake = source->user;
    *row = fake->domains[index];
    return 1;
}

static int thread(const struct ta__source *source, uint32_t index, struct ta__source_thread *row)
{
    const struct fake_source *fake = source->user;
    *row = fake->threads[index];
    return 1;
}

void fake_open(struct fake_source *fake)
{
    memset(fake, 0, sizeof *fake);
    fake->random = 0x1234567;
    fake->source = (struct ta__source){
        .user = fake,
        .fold = fold,
        .module = module,
        .domain = domain,
        .thread = thread,
        .traceback_limit = 64,
        .epoch = 1,
        .options = "nframe=64",
        .start_time_ns = 1000000000,
    };
    fake_context(fake, 0, 0, 0);
    fake_domain(fake, 0, "");
    fake_leaf(fake, 0, 0, 0, 0);
    fake->leaves[0].flags = TA__LEAF_UNTRACED;
}

void fake_close(struct fake_source *fake)
{
    free(fake->contexts);
    free(fake->leaves);
    free(fake->counts);
    free(fake->modules);
    free(fake->domains);
    free(fake->threads);
}

uint64_t fake_random(struct fake_source *fake, uint64_t below)
{
    fake->random ^= fake->random << 13;
    fake->random ^= fake->random >> 7;
    fake->random ^= fake->random << 17;
    return fake->random % below;
}

uint32_t fake_module(struct fake_source *fake, const char *path, uint64_t start, uint64_t end)
{
    static const uint8_t build_id[20] = {0xde, 0xad, 0xbe, 0xef, 1, 2, 3};
    GROW(fake, modules, module_room, fake->source.module_count);
    fake->modules[fake->source.module_count] = (struct ta__source_module){
        .path = path,
        .build_id = build_id,
        .build_id_length = sizeof build_id,
        .load_base = start,
        .start = start,
        .end = end,
    };
    return ++fake->source.module_count;
}

uint32_t fake_domain(struct fake_source *fake, uint32_t number, const char *name)
{
    GROW(fake, domains, domain_room, fake->source.domain_count);
    fake->domains[fake->source.domain_count] = (struct ta__source_domain){.number = number, .name = name};
    return fake->source.domain_count++;
}

uint32_t fake_thread(struct fake_source *fake, uint32_t tid, const char *name)
{
    GROW(fake, threads, thread_room, fake->source.thread_count);
    struct ta__source_thread row = {.tid = tid};
    strncpy(row.name, name, sizeof row.name - 1);
    fake->threads[fake->source.thread_count] = row;
    return ++fake->source.thread_count;
}

uint32_t fake_context(struct fake_source *fake, uint32_t parent, uint64_t address, uint32_t module_id)
{
    GROW(fake, contexts, context_room, fake->source.context_count);
    fake->contexts[fake->source.context_count] = (struct ta__source_context){address, parent, module_id};
    fake->source.contexts = fake->contexts;
    return fake->source.context_count++;
}

uint32_t fake_leaf(struct fake_source *fake, uint32_t context, uint32_t domain_index, uint32_t thread_id,
                   uint16_t total)
{
    if (fake->source.leaf_count == fake->leaf_room) {
        uint32_t room = fake->leaf_room == 0 ? 64 : fake->leaf_room * 2;
        fake->counts = realloc(fake->counts, room * sizeof *fake->counts);
        if (fake->counts == NULL)
            abort();
    }
    GROW(fake, leaves, leaf_room, fake->source.leaf_count);
    fake->leaves[fake->source.leaf_count] = (struct ta__source_leaf){context, domain_index, thread_id, total, 0};
    memset(&fake->counts[fake->source.leaf_count], 0, sizeof *fake->counts);
    fake->source.leaves = fake->leaves;
    return fake->source.leaf_count++;
}

void fake_malloc(struct fake_source *fake, uint32_t leaf, uint64_t blocks, uint64_t size_each)
{
    fake->counts[leaf].allocated_blocks += blocks;
    fake->counts[leaf].allocated_bytes += blocks * size_each;
    fake->source.current_bytes += blocks * size_each;
    if (fake->source.peak_bytes < fake->source.current_bytes)
        fake->source.peak_bytes = fake->source.current_bytes;
}

void fake_free(struct fake_source *fake, uint32_t leaf, uint64_t blocks, uint64_t size_each)
{
    fake->counts[leaf].freed_blocks += blocks;
    fake->counts[leaf].freed_bytes += blocks * size_each;
    fake->source.current_bytes -= blocks * size_each;
}

/* Each function has up to eight call sites; what a call site calls is fixed, as in a program without function
 * pointers, but for one in ten. Paths are random walks from main; only what is new of a path is added. */
void fake_program(struct fake_source *fake, uint32_t contexts, uint32_t functions)
{
    enum { SITES = 8, DEPTH = 40 };
    uint32_t app = fake_module(fake, "/usr/bin/program", 0x400000, 0x4000000);
    uint32_t lib = fake_module(fake, "/usr/lib/libbase.so.1", 0x7f0000000000, 0x7f0000400000);
    uint32_t *children = calloc((size_t)contexts + DEPTH + 2, sizeof *children); /* first child, then siblings */
    uint32_t *siblings = calloc((size_t)contexts + DEPTH + 2, sizeof *siblings);
    uint32_t *callee_of = malloc((size_t)functions * SITES * sizeof *callee_of);
    if (children == NULL || siblings == NULL || callee_of == NULL)
        abort();
    for (uint32_t i = 0; i < functions * SITES; i++)
        callee_of[i] = (uint32_t)fake_random(fake, functions);
    while (fake->source.context_count < contexts) {
        uint32_t at = 0, function = 0;
        uint32_t depth = 3 + (uint32_t)fake_random(fake, DEPTH - 3);
        for (uint32_t level = 0; level < depth; level++) {
            uint32_t skewed = (uint32_t)(fake_random(fake, SITES) * fake_random(fake, SITES) / SITES);
            uint32_t site = function * SITES + skewed;
            uint64_t address = (function % 3 == 0 ? 0x7f0000000000 : 0x400000) + (uint64_t)function * 256 + skewed * 17;
            uint32_t child = children[at];
            while (child != 0 && fake->contexts[child].address != address)
                child = siblings[child];
            if (child == 0) {
                child = fake_context(fake, at, address, function % 3 == 0 ? lib : app);
                siblings[child] = children[at];
                children[at] = child;
            }
            at = child;
            function = fake_random(fake, 10) == 0 ? (uint32_t)fake_random(fake, functions) : callee_of[site];
            if (fake->source.context_count >= contexts)
                break;
        }
        uint32_t leaf = fake_leaf(fake, at, 0, 0, (uint16_t)depth);
        fake_malloc(fake, leaf, 1 + fake_random(fake, 20), 16 << fake_random(fake, 6));
    }
    free(children);
    free(siblings);
    free(callee_of);
}

void fake_activity(struct fake_source *fake, uint32_t step)
{
    for (uint32_t leaf = 1; leaf < fake->source.leaf_count; leaf += 1 + (uint32_t)fake_random(fake, 2 * step - 1)) {
        struct ta__source_counts *counts = &fake->counts[leaf];
        uint64_t size = counts->allocated_blocks == 0 ? 24 : counts->allocated_bytes / counts->allocated_blocks;
        uint64_t blocks = 1 + fake_random(fake, 100);
        fake_malloc(fake, leaf, blocks, size);
        fake_free(fake, leaf, fake_random(fake, 4) == 0 ? blocks - 1 : blocks, size);
    }
}

struct ta__facts fake_facts(uint64_t time_ns)
{
    return (struct ta__facts){
        .time_ns = time_ns,
        .pid = 4711,
        .program = "/usr/bin/program",
        .host = "host",
        .reason = "test",
    };
}
