/* plain.c: a program that knows nothing of tracealloc; keeps ten blocks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *kept[10];

__attribute__((noinline)) char *grow(size_t size)
{
    char *block = malloc(size);
    return block != NULL ? memset(block, 1, size) : NULL;
}

int main(void)
{
    for (size_t i = 0; i < 10; i++)
        kept[i] = grow(1000 + i);
    puts("done");
    return 0;
}
