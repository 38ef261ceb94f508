/* own_free.c: a program that replaces free alone, or with malloc and realloc, and calls on glibc's other names for them: the
 * blocks are one allocator's, whoever asks under whatever name. */
#include "way.h"

#include <malloc.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void *__libc_valloc(size_t size);
extern void *__libc_pvalloc(size_t size);
extern void __libc_free(void *block);

static volatile size_t frees, requests;

void free(void *block)
{
    frees++;
    __libc_free(block);
}

#if OWN_FAMILY
void *malloc(size_t size)
{
    requests++;
    return __libc_malloc(size);
}

void *realloc(void *block, size_t size)
{
    requests++;
    return __libc_realloc(block, size);
}
#endif

static void exchange(size_t size)
{
    void *blocks[] = {malloc(size),
                      calloc(1, size),
                      realloc(malloc(1), size),
                      memalign(64, size),
                      strdup("a copy of a text"),
                      __libc_malloc(size),
                      __libc_calloc(1, size),
                      __libc_realloc(malloc(1), size),
                      __libc_realloc(__libc_malloc(1), size),
                      __libc_memalign(256, size),
                      __libc_valloc(size),
                      __libc_pvalloc(size)};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        expect(hold(blocks[i]) != NULL, "WRONG: no block");
        expect(malloc_usable_size(blocks[i]) >= (i == 4 ? 17 : size), "WRONG: not usable");
        if (i % 2 == 0)
            free(blocks[i]);
        else
            __libc_free(blocks[i]);
    }
}

int main(void)
{
    expect_ours();
    for (size_t size = 1; size < 300000; size = size * 3 + 1) {
        exchange(size);
        drop_block(make_block(size), size);
    }
    expect(frees > 0, "WRONG: the program's own free is not called");
#if OWN_FAMILY
    expect(requests > 0, "WRONG: the program's own malloc is not called");
#endif
    expect_content();
    say("own free");
    return 0;
}
