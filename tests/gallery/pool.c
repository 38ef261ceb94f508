/* pool.c: a home-made pool that everything comes from, chunk by chunk, as in compilers and servers. Nobody wants to read
 * "pool_take" a hundred times: one pass holds nearly all of it. */
#include <stdlib.h>
#include <string.h>

struct chunk {
    struct chunk *next;
    size_t used;
    char bytes[4000];
};
struct pool {
    struct chunk *chunks;
};

__attribute__((noinline)) static struct chunk *grow(struct pool *pool)
{
    struct chunk *chunk = malloc(sizeof *chunk);
    chunk->next = pool->chunks;
    chunk->used = 0;
    pool->chunks = chunk;
    return chunk;
}

__attribute__((noinline)) void *pool_take(struct pool *pool, size_t size)
{
    struct chunk *chunk = pool->chunks;
    if (chunk == NULL || chunk->used + size > sizeof chunk->bytes)
        chunk = grow(pool);
    chunk->used += size;
    return chunk->bytes + chunk->used - size;
}

#define PASS(name, times, size)                                                                                        \
    __attribute__((noinline)) static void name(void)                                                                   \
    {                                                                                                                  \
        static struct pool pool;                                                                                       \
        for (int i = 0; i < (times); i++)                                                                              \
            memset(pool_take(&pool, size), 0, size);                                                                   \
    }                                                                                                                  \
    struct unused
PASS(read_options, 20, 100);
PASS(read_names, 30, 100);
PASS(parse_types, 40, 100);
PASS(parse_bodies, 50, 100);
PASS(fold_constants, 60, 100);
PASS(resolve_names, 70, 100);
PASS(check_types, 80, 100);
PASS(lower_loops, 90, 100);
PASS(find_loops, 100, 100);
PASS(number_values, 110, 100);
PASS(schedule, 120, 100);
PASS(emit, 130, 100);
PASS(write_symbols, 140, 100);

__attribute__((noinline)) static void allocate_registers(void)
{
    static struct pool pool;
    for (int i = 0; i < 4000; i++)
        memset(pool_take(&pool, 200), 0, 200); /* planted */
}

int main(void)
{
    static void (*const passes[])(void) = {read_options,  read_names,  parse_types,   parse_bodies,      fold_constants,
                                           resolve_names, check_types, lower_loops,   find_loops,        number_values,
                                           schedule,      emit,        write_symbols, allocate_registers};
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        passes[i]();
    return 0;
}
