/* override.c: the names that programs call — malloc's family as glibc has it, each an alias of a ta_ function, so that
 * the caller's frame is seen directly; and glibc's tuning and reporting calls in the sensible way.
 *
 * C++ operators are in override_new.c. strdup, getline, asprintf and their like need nothing: they call malloc. */
#include "alloc/alloc.h"
#include "alloc/entry.h"

#if TRACEALLOC_OVERRIDE

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "base/safepoint.h"

#if defined(__GLIBC__) /* other C libraries know no such calls */

/* ---- tuning: accepted and without effect ------------------------------------------------------------------------- */

TA_API int mallopt(int parameter, int value)
{
    (void)parameter, (void)value;
    return 1;
}

TA_API int malloc_trim(size_t pad)
{
    (void)pad;
    uint32_t gate;
    struct ta__thread *self = ta__begin(&gate);
    if (self == NULL)
        return 0;
    ta__heap_trim();
    ta__end(self, gate);
    return 1;
}

/* ---- reports: from pages, without walking all blocks ------------------------------------------------------------- */

static void add_heap(void *heap, uint32_t domain, void *sum)
{
    (void)domain;
    *(size_t *)sum += ta__heap_in_use(heap);
}

/* Where nobody may look now, what was found last. */
static size_t bytes_in_use(void)
{
    static size_t last;
    struct ta__thread *self = ta__thread_get();
    if (self == NULL || ta__safepoint_stop(&self->safepoint) != TA__STOP_DONE)
        return ta__load_relaxed(&last);
    size_t bytes = ta__heap_in_use(ta__plain_heap);
    ta__domain_heaps(add_heap, &bytes);
    ta__store_relaxed(&last, bytes);
    ta__safepoint_resume(&self->safepoint);
    return bytes;
}

TA_API struct mallinfo2 mallinfo2(void)
{
    struct ta__heap_figures figures;
    ta__heap_figures(&figures);
    struct mallinfo2 info;
    memset(&info, 0, sizeof info);
    info.uordblks = bytes_in_use();
    info.arena = figures.committed > info.uordblks ? figures.committed : info.uordblks;
    info.fordblks = info.arena - info.uordblks;
    return info;
}

static int narrowed(size_t number)
{
    return number > INT32_MAX ? INT32_MAX : (int)number;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TA_API struct mallinfo mallinfo(void)
{
    struct mallinfo2 wide = mallinfo2();
    struct mallinfo info;
    memset(&info, 0, sizeof info);
    info.arena = narrowed(wide.arena);
    info.uordblks = narrowed(wide.uordblks);
    info.fordblks = narrowed(wide.fordblks);
    return info;
}
#pragma GCC diagnostic pop

TA_API void malloc_stats(void)
{
    struct ta__heap_figures figures;
    ta__heap_figures(&figures);
    struct ta__message message;
    ta__message_begin(&message);
    ta__message_text(&message, "committed ");
    ta__message_size(&message, figures.committed);
    size_t current, peak;
    ta_get_traced_memory(&current, &peak);
    if (ta_is_tracing()) {
        ta__message_text(&message, ", traced ");
        ta__message_size(&message, current);
        ta__message_text(&message, ", peak ");
        ta__message_size(&message, peak);
    }
    ta__message_send(&message);
}

TA_API int malloc_info(int options, FILE *stream)
{
    if (options != 0) {
        errno = EINVAL;
        return -1;
    }
    struct ta__heap_figures figures;
    ta__heap_figures(&figures);
    int written = fprintf(stream,
                          "<malloc version=\"1\">\n<system type=\"current\" size=\"%zu\"/>\n"
                          "<allocator name=\"tracealloc\" version=\"" TRACEALLOC_VERSION "\"/>\n</malloc>\n",
                          figures.committed);
    return written < 0 ? -1 : 0;
}

#endif
#endif
