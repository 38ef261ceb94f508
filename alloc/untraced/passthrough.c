/* passthrough.c: the untraced build — the same names and the same API straight on mimalloc: no headers, no tracing.
 *
 * What tracing costs a program is measured against this. Control calls answer "stopped"; ta_start fails with ENOSYS. */
#include <errno.h>
#include <mimalloc.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "alloc/libc_names.h"
#include "alloc/public_names.h"
#include "base/attributes.h"
#include "base/error.h"
#include "tracealloc.h"

#define PASS TA_API __attribute__((noinline))

TA_COLD static void *out_of_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

TA_INLINE void *checked(void *block)
{
    return TA_LIKELY(block != NULL) ? block : out_of_memory();
}

PASS void *ta_malloc(size_t size)
{
    return checked(mi_malloc(size));
}

PASS void ta_free(void *block)
{
    mi_free(block);
}

PASS void *ta_calloc(size_t count, size_t size)
{
    return checked(mi_calloc(count, size));
}

PASS void *ta_realloc(void *block, size_t size)
{
    if (block != NULL && size == 0) {
        mi_free(block);
        return NULL;
    }
    return checked(mi_realloc(block, size));
}

PASS void *ta_reallocarray(void *block, size_t count, size_t size)
{
    return checked(mi_reallocn(block, count, size));
}

PASS void *ta_memalign(size_t alignment, size_t size)
{
    return checked(mi_malloc_aligned(size, alignment));
}

PASS void *ta_aligned_alloc(size_t alignment, size_t size)
{
    return checked(mi_malloc_aligned(size, alignment));
}

PASS int ta_posix_memalign(void **block, size_t alignment, size_t size)
{
    return mi_posix_memalign(block, alignment, size);
}

PASS void *ta_valloc(size_t size)
{
    return checked(mi_valloc(size));
}

PASS void *ta_pvalloc(size_t size)
{
    return checked(mi_pvalloc(size));
}

PASS size_t ta_usable_size(void *block)
{
    return mi_usable_size(block);
}

TA_ALSO_NAMED(malloc, ta_malloc)
TA_ALSO_NAMED(free, ta_free)
TA_ALSO_NAMED(calloc, ta_calloc)
TA_ALSO_NAMED(realloc, ta_realloc)
TA_ALSO_NAMED(reallocarray, ta_reallocarray)
TA_ALSO_NAMED(memalign, ta_memalign)
TA_ALSO_NAMED(aligned_alloc, ta_aligned_alloc)
TA_ALSO_NAMED(posix_memalign, ta_posix_memalign)
TA_ALSO_NAMED(valloc, ta_valloc)
TA_ALSO_NAMED(pvalloc, ta_pvalloc)
TA_ALSO_NAMED(malloc_usable_size, ta_usable_size)
TA_ALSO_LIBCS(malloc, malloc, alloc_size(1))
TA_ALSO_LIBCS(calloc, malloc, alloc_size(1, 2))
TA_ALSO_LIBCS(realloc, alloc_size(2))
TA_ALSO_LIBCS(free, nothrow)
TA_ALSO_LIBCS(memalign, alloc_size(2))
TA_ALSO_LIBCS(valloc, alloc_size(1))
TA_ALSO_LIBCS(pvalloc, nothrow)
TA_ALSO_NAMED(_ZdlPv, ta_free)
TA_ALSO_NAMED(_ZdaPv, ta_free)

#if TRACEALLOC_OVERRIDE
/* libstdc++'s other forms of new and delete call these. */
TA_API void *_Znwm(size_t size);
TA_API void *_Znam(size_t size);
extern void throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv") __attribute__((weak, noreturn));

void *_Znwm(size_t size)
{
    void *block = ta_malloc(size);
    if (TA_UNLIKELY(block == NULL) && throw_bad_alloc != NULL)
        throw_bad_alloc();
    return block;
}

void *_Znam(size_t size)
{
    return _Znwm(size);
}
#endif

/* ---- control: stopped for ever ---- */

TA_API int ta_start(int nframe)
{
    (void)nframe;
    ta__error_set("this is the untraced build of tracealloc", NULL);
    errno = ENOSYS;
    return -1;
}

TA_API void ta_stop(void)
{
}

TA_API int ta_is_tracing(void)
{
    return 0;
}

TA_API void ta_clear_traces(void)
{
}

TA_API void ta_reset_peak(void)
{
}

TA_API void ta_get_traced_memory(size_t *current, size_t *peak)
{
    if (current != NULL)
        *current = 0;
    if (peak != NULL)
        *peak = 0;
}

TA_API int ta_get_traceback_limit(void)
{
    return 1;
}

TA_API size_t ta_get_tracer_memory(void)
{
    return 0;
}

TA_API size_t ta_get_object_traceback(const void *block, void **frames, size_t max, size_t *total)
{
    return ta_get_traceback(0, (uintptr_t)block, frames, max, total);
}

TA_API size_t ta_describe(const void *pointer, char *buffer, size_t room)
{
    (void)pointer;
    if (room > 0)
        buffer[0] = '\0';
    return 0;
}

TA_API size_t ta_get_traceback(uint32_t domain, uintptr_t address, void **frames, size_t max, size_t *total)
{
    (void)domain, (void)address, (void)frames, (void)max;
    if (total != NULL)
        *total = 0;
    return 0;
}

TA_API int ta_track(uint32_t domain, uintptr_t address, size_t size)
{
    (void)domain, (void)address, (void)size;
    return -2;
}

TA_API int ta_untrack(uint32_t domain, uintptr_t address)
{
    (void)domain, (void)address;
    return -2;
}

TA_API void ta_get_health(struct ta_health *health, size_t size)
{
    memset(health, 0, size);
}

__attribute__((constructor)) static void set_up_before_main(void)
{
    ta__libc_names_replace();
}

TA_API const char *ta_version(void)
{
    return TRACEALLOC_VERSION;
}
