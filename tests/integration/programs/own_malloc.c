/* own_malloc.c: a program with an allocator of its own, as some bring: a bump allocator that never frees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Alignas(16) char arena[16 << 20];
static size_t used;
static unsigned long calls;

void *malloc(size_t size)
{
    size_t whole = (size + 31) & ~(size_t)15;
    if (whole < size || used + whole > sizeof arena)
        return NULL;
    char *block = arena + used;
    used += whole;
    calls++;
    *(size_t *)block = size;
    return block + 16;
}

void free(void *block)
{
    if (block != NULL && ((char *)block < arena || (char *)block >= arena + sizeof arena))
        abort();
}

void *calloc(size_t count, size_t size)
{
    void *block = malloc(count * size);
    return block != NULL ? memset(block, 0, count * size) : NULL;
}

void *realloc(void *block, size_t size)
{
    void *moved = malloc(size);
    if (moved != NULL && block != NULL) {
        size_t old = *(size_t *)((char *)block - 16);
        memcpy(moved, block, old < size ? old : size);
    }
    return moved;
}

int main(void)
{
    char *text = NULL;
    size_t room = 0;
    FILE *stream = open_memstream(&text, &room);
    for (int i = 0; i < 1000; i++)
        fprintf(stream, "%d ", i);
    fclose(stream);
    char *copy = strdup(text);
    printf("%zu %zu %d\n", strlen(copy), room, calls > 2);
    free(copy);
    free(text);
    return 0;
}
