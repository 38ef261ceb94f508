/* fill.c: how many bytes a program gets under a limit of its memory (ulimit -v, ulimit -d), in blocks of this many.
 *
 *   fill BYTES */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    size_t size = argc == 2 ? strtoul(argv[1], NULL, 10) : 0, sum = 0;
    if (size == 0) {
        fputs("usage: fill BYTES (under a limit, or it takes all there is)\n", stderr);
        return 2;
    }
    for (char *block; (block = malloc(size)) != NULL; sum += size)
        memset(block, 1, size);
    printf("%zu\n", sum);
    return 0;
}
