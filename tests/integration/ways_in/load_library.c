/* load_library.c: loads tracealloc itself with dlopen into a running program that lives on libc's malloc.
 *
 * Two outcomes are allowed: a clean refusal (dlopen says why), or a library that works under its ta_ names beside
 * libc's malloc and stays after dlclose. Argument: the library's path. */
#include "way.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static void *(*lib_malloc)(size_t);
static void (*lib_free)(void *);

static void *work(void *unused)
{
    for (size_t i = 0; i < 1000; i++) {
        void *block = lib_malloc(i);
        expect(block != NULL, "WRONG: ta_malloc");
        memset(block, 1, i);
        lib_free(block);
        drop_block(make_block(i + 1), i + 1);
    }
    return unused;
}

static int is_mapped(const void *address)
{
    unsigned long from = 0, to = 0;
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    expect(maps != NULL, "WRONG: maps");
    while (fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && (uintptr_t)address >= from && (uintptr_t)address < to)
            found = 1;
    fclose(maps);
    return found;
}

int main(int argc, char **argv)
{
    expect(argc > 1, "WRONG: no library named");
    unsigned char *old = make_block(1000);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        say(dlerror());
        drop_block(old, 1000);
        say("refused");
        return 0;
    }
    *(void **)&lib_malloc = dlsym(library, "ta_malloc");
    *(void **)&lib_free = dlsym(library, "ta_free");
    expect(lib_malloc != NULL && lib_free != NULL, "WRONG: dlsym");
    work(NULL);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        expect(pthread_create(&threads[i], NULL, work, NULL) == 0, "WRONG: pthread_create");
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    drop_block(old, 1000);
    void *kept = lib_malloc(50);
    expect(dlclose(library) == 0, "WRONG: dlclose");
    expect(is_mapped((const void *)(uintptr_t)lib_free), "WRONG: the library went away");
    lib_free(kept);
    use_memory(1000);
    say("loaded");
    return 0;
}
