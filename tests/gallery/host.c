/* host.c: a program with a large table from its first moments on, that loads a plugin, uses it and unloads it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *table[500];

int main(int argc, char **argv)
{
    for (size_t i = 0; i < 500; i++) {
        table[i] = malloc(4096);
        memset(table[i], 1, 4096);
    }
    void *plugin = dlopen(argv[1], RTLD_NOW);
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void (*filter)(const char *) = (void (*)(const char *))dlsym(plugin, "filter");
    int rounds = argc > 2 ? atoi(argv[2]) : 3000;
    for (int i = 0; i < rounds; i++) {
        filter(table[i % 500]);
        usleep(200);
    }
    dlclose(plugin);
    return 0;
}
