/* refusing_malloc.h: an allocator in place of libc's, which refuses those requests that a test names, fills blocks with what
 * nobody wrote, and ends the program when somebody wrote behind a block. Not together with a sanitizer: it has its own. */
#ifndef TA_TESTS_REFUSING_MALLOC_H
#define TA_TESTS_REFUSING_MALLOC_H

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *block);

static atomic_long asked, living;
static atomic_long refused_from = -1, refused_to = -1; /* [from, to) of the numbers of requests */

static int is_refused(void)
{
    long number = atomic_fetch_add(&asked, 1);
    if (number < refused_from || number >= refused_to)
        return 0;
    errno = ENOMEM;
    return 1;
}

/* A block stands between its size and a mark, and begins with what nobody wrote: who reads or writes beyond its end, or
 * reads what it never wrote, is not right by chance. */
#define HEAD ((size_t)16)
static const unsigned char mark[16] = "behind the block";

static void *block_of(size_t size, int filling)
{
    char *head = size > PTRDIFF_MAX ? NULL : __libc_malloc(HEAD + size + sizeof mark);
    if (head == NULL)
        return NULL;
    memcpy(head, &size, sizeof size);
    memset(head + HEAD, filling, size);
    memcpy(head + HEAD + size, mark, sizeof mark);
    living++;
    return head + HEAD;
}

void *malloc(size_t size)
{
    return is_refused() ? NULL : block_of(size, 0xA5);
}

void *calloc(size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) || is_refused() ? NULL : block_of(bytes, 0);
}

void free(void *block)
{
    if (block == NULL)
        return;
    char *head = (char *)block - HEAD;
    size_t size;
    memcpy(&size, head, sizeof size);
    if (memcmp((char *)block + size, mark, sizeof mark) != 0)
        abort(); /* written beyond its end */
    memset(block, 0x5A, size);
    __libc_free(head);
    living--;
}

void *realloc(void *old, size_t size)
{
    size_t before = 0;
    char *block = is_refused() ? NULL : block_of(size, 0xA5);
    if (block == NULL)
        return NULL;
    if (old != NULL)
        memcpy(&before, (char *)old - HEAD, sizeof before);
    if (before > 0)
        memcpy(block, old, before < size ? before : size);
    free(old);
    return block;
}

void *reallocarray(void *old, size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : realloc(old, bytes);
}

#endif
