/* deepbind_plugin.c: what deepbind.c opens: the names of malloc's family as they are found from here. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdlib.h>

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

static void *kept;

/* While it is being opened. */
__attribute__((constructor)) static void begin(void)
{
    kept = malloc(100);
}

__attribute__((destructor)) static void end(void)
{
    free(kept);
}

int both_have_this(void);
int both_have_this(void)
{
    return 2;
}

int plugin_which(void);
int plugin_which(void)
{
    return both_have_this();
}

void plugin_family(struct family *family);
void plugin_family(struct family *family)
{
    *family = (struct family){"the plugin", malloc,        free,           calloc, realloc, reallocarray,
                              memalign,     aligned_alloc, posix_memalign, valloc, pvalloc, malloc_usable_size};
}
