/* assert.c: see assert.h. */
#include "base/assert.h"

#include <stdlib.h>

#include "base/message.h"

void ta__assert_failed(const char *number, const char *what, const char *where)
{
    ta__message_line("invariant ", number, " does not hold at ", where, ": ", what, NULL);
    abort();
}

#if TA_CHECKS >= 2
#include <sys/mman.h>

void *ta__check_notes(size_t bytes)
{
    void *notes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (notes == MAP_FAILED)
        abort();
    return notes;
}

void ta__check_notes_free(void *notes, size_t bytes)
{
    munmap(notes, bytes);
}
#endif
