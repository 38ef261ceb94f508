/* deepbind.c: a plugin opened with RTLD_DEEPBIND, and libc's own handle, hand blocks to and fro with the program: whoever
 * asks, there is one allocator. The rest of what the flag means stays: the plugin prefers a function of its own.
 * Argument: the plugin's path. */
#include "way.h"

#include <dlfcn.h>
#include <malloc.h>

struct family {
    const char *whose;
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*reallocarray)(void *, size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*malloc_usable_size)(void *);
};

int both_have_this(void);
__attribute__((visibility("default"))) int both_have_this(void)
{
    return 1;
}

static void from_libc(void *libc, struct family *family)
{
    family->whose = "libc's handle";
    *(void **)&family->malloc = dlsym(libc, "malloc");
    *(void **)&family->free = dlsym(libc, "free");
    *(void **)&family->calloc = dlsym(libc, "calloc");
    *(void **)&family->realloc = dlsym(libc, "realloc");
    *(void **)&family->reallocarray = dlsym(libc, "reallocarray");
    *(void **)&family->memalign = dlsym(libc, "memalign");
    *(void **)&family->aligned_alloc = dlsym(libc, "aligned_alloc");
    *(void **)&family->posix_memalign = dlsym(libc, "posix_memalign");
    *(void **)&family->valloc = dlsym(libc, "valloc");
    *(void **)&family->pvalloc = dlsym(libc, "pvalloc");
    *(void **)&family->malloc_usable_size = dlsym(libc, "malloc_usable_size");
}

/* Every block of theirs is freed here, every block of ours is freed and moved there. */
static void exchange(const struct family *theirs)
{
    for (size_t size = 1; size < 300000; size = size * 3 + 1) {
        void *blocks[] = {theirs->malloc(size),
                          theirs->calloc(1, size),
                          theirs->memalign(64, size),
                          theirs->aligned_alloc(256, size),
                          theirs->valloc(size),
                          theirs->pvalloc(size),
                          NULL};
        expect(theirs->posix_memalign(&blocks[6], 128, size) == 0, "WRONG: posix_memalign");
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
            expect(hold(blocks[i]) != NULL, "WRONG: no block");
            memset(blocks[i], 1, size);
            expect(malloc_usable_size(blocks[i]) >= size, "WRONG: usable here");
            expect(theirs->malloc_usable_size(blocks[i]) >= size, "WRONG: usable there");
            free(blocks[i]);
        }
        theirs->free(make_block(size));
        unsigned char *block = theirs->realloc(make_block(size), size);
        block = theirs->reallocarray(block, size, 2);
        block = realloc(block, size);
        drop_block(block, size);
    }
    expect_content();
    say(theirs->whose);
}

int main(int argc, char **argv)
{
    expect(argc > 1, "WRONG: no plugin named");
    expect_ours();
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
    expect(plugin != NULL, "WRONG: dlopen");
    void (*fill)(struct family *);
    int (*which)(void);
    *(void **)&fill = dlsym(plugin, "plugin_family");
    *(void **)&which = dlsym(plugin, "plugin_which");
    struct family family = {0};
    fill(&family);
    exchange(&family);
    expect(both_have_this() == 1 && which() == 2, "WRONG: the plugin does not prefer its own");

    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    expect(libc != NULL, "WRONG: no libc");
    from_libc(libc, &family);
    exchange(&family);
    char *(*copy)(const char *);
    *(void **)&copy = dlsym(libc, "strdup");
    family.free(copy("a copy"));
    expect(dlclose(plugin) == 0, "WRONG: dlclose");
    expect_content();
    return 0;
}
