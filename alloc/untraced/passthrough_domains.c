/* passthrough_domains.c: domains in the untraced build. Explicit requests go to a mimalloc heap of their domain, so that
 * destroying it frees them; scopes are remembered and change nothing; there are no figures, limits or rules. */
#include <errno.h>
#include <mimalloc.h>
#include <stdint.h>
#include <string.h>

#include "base/attributes.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/memory.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

enum { DOMAINS_MAX = 1 << 16, NAME_MAX_BYTES = 255, SCOPES_MAX = 64, FIRST_ARENA = 0x40000000 };

struct domain {
    uint32_t number;
    uint32_t is_used;
    mi_heap_t *heap;
    char name[NAME_MAX_BYTES + 1];
};

static struct {
    struct ta__lock lock;
    struct domain *domains; /* [0]: domain 0, which has no heap of its own */
    uint32_t count;
    uint32_t arenas_numbered;
} table;

static TA_THREAD_LOCAL uint32_t scopes[SCOPES_MAX];
static TA_THREAD_LOCAL uint32_t depth;

/* Under the lock: the domain of a number, made if wanted; NULL when there is none, or no room. */
static struct domain *find(uint32_t number, int make)
{
    if (table.domains == NULL) {
        table.domains = ta__memory_map(DOMAINS_MAX * sizeof *table.domains);
        if (table.domains == NULL)
            return NULL;
        table.domains[0].is_used = 1;
        table.count = 1;
    }
    struct domain *vacant = NULL;
    for (uint32_t i = 0; i < table.count; i++) {
        struct domain *domain = &table.domains[i];
        if (domain->is_used && domain->number == number)
            return domain;
        if (!domain->is_used && vacant == NULL)
            vacant = domain;
    }
    if (!make || (vacant == NULL && table.count == DOMAINS_MAX))
        return NULL;
    if (vacant == NULL)
        vacant = &table.domains[table.count++];
    vacant->number = number;
    vacant->is_used = 1;
    vacant->name[0] = '\0';
    return vacant;
}

/* NULL in *heap: mimalloc's default. 0: no memory. */
static int heap_of(uint32_t number, mi_heap_t **heap)
{
    *heap = NULL;
    if (number == 0)
        return 1;
    ta__lock_acquire(&table.lock);
    struct domain *domain = find(number, 1);
    if (domain != NULL && domain->heap == NULL)
        domain->heap = mi_heap_new();
    if (domain != NULL)
        *heap = domain->heap;
    ta__lock_release(&table.lock);
    return *heap != NULL;
}

static int refuse(int error, const char *text)
{
    errno = error;
    return ta__error_set(text, NULL);
}

static void *checked(void *block)
{
    if (TA_UNLIKELY(block == NULL))
        errno = ENOMEM;
    return block;
}

/* ---- requests ---- */

TA_API void *ta_domain_malloc(uint32_t number, size_t size)
{
    mi_heap_t *heap;
    if (!heap_of(number, &heap))
        return checked(NULL);
    return checked(heap != NULL ? mi_heap_malloc(heap, size) : mi_malloc(size));
}

TA_API void *ta_domain_calloc(uint32_t number, size_t count, size_t size)
{
    mi_heap_t *heap;
    if (!heap_of(number, &heap))
        return checked(NULL);
    return checked(heap != NULL ? mi_heap_calloc(heap, count, size) : mi_calloc(count, size));
}

TA_API void *ta_domain_realloc(uint32_t number, void *block, size_t size)
{
    mi_heap_t *heap;
    if (block != NULL && size == 0) {
        mi_free(block);
        return NULL;
    }
    if (!heap_of(number, &heap))
        return checked(NULL);
    return checked(heap != NULL ? mi_heap_realloc(heap, block, size) : mi_realloc(block, size));
}

TA_API void *ta_domain_reallocarray(uint32_t number, void *block, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return checked(NULL);
    return ta_domain_realloc(number, block, bytes);
}

TA_API void *ta_domain_aligned_alloc(uint32_t number, size_t alignment, size_t size)
{
    mi_heap_t *heap;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
        errno = EINVAL;
        return NULL;
    }
    if (!heap_of(number, &heap))
        return checked(NULL);
    return checked(heap != NULL ? mi_heap_malloc_aligned(heap, size, alignment) : mi_malloc_aligned(size, alignment));
}

TA_API int ta_domain_posix_memalign(uint32_t number, void **block, size_t alignment, size_t size)
{
    int saved_errno = errno;
    if (alignment % sizeof(void *) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0)
        return EINVAL;
    void *user = ta_domain_aligned_alloc(number, alignment, size);
    errno = saved_errno;
    if (user == NULL)
        return ENOMEM;
    *block = user;
    return 0;
}

TA_API void *ta_domain_memdup(uint32_t number, const void *data, size_t size)
{
    void *copy = ta_domain_malloc(number, size);
    return copy != NULL ? memcpy(copy, data, size) : NULL;
}

TA_API char *ta_domain_strndup(uint32_t number, const char *text, size_t max)
{
    size_t length = strnlen(text, max);
    char *copy = ta_domain_malloc(number, length + 1);
    if (copy != NULL) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

TA_API char *ta_domain_strdup(uint32_t number, const char *text)
{
    return ta_domain_strndup(number, text, strlen(text));
}

/* Blocks have no headers: nobody knows. */
TA_API int ta_domain_of(const void *block, uint32_t *number)
{
    (void)block, (void)number;
    return 0;
}

/* ---- scopes: remembered as deep as there is room ---- */

TA_API void ta_domain_push(uint32_t number)
{
    if (depth < SCOPES_MAX)
        scopes[depth] = number;
    depth++;
}

TA_API void ta_domain_push_arena(uint32_t number)
{
    ta_domain_push(number);
}

TA_API void ta_domain_pop(void)
{
    depth -= depth > 0;
}

TA_API uint32_t ta_domain_current(void)
{
    return depth == 0 ? 0 : scopes[(depth < SCOPES_MAX ? depth : SCOPES_MAX) - 1];
}

TA_API void ta_domain_with(uint32_t number, void (*function)(void *context), void *context)
{
    ta_domain_push(number);
    function(context);
    ta_domain_pop();
}

/* ---- names ---- */

static struct domain *find_name(const char *name)
{
    for (uint32_t i = 0; i < table.count; i++)
        if (table.domains[i].is_used && strcmp(table.domains[i].name, name) == 0)
            return &table.domains[i];
    return NULL;
}

TA_API int ta_domain_set_name(uint32_t number, const char *name)
{
    if (strlen(name) > NAME_MAX_BYTES)
        return refuse(EINVAL, "the name of a domain has at most 255 bytes");
    ta__lock_acquire(&table.lock);
    struct domain *domain = find(number, 1);
    struct domain *other = *name != '\0' ? find_name(name) : NULL;
    int error = domain == NULL ? ENOMEM : other != NULL && other != domain ? EEXIST : 0;
    if (error == 0)
        memcpy(domain->name, name, strlen(name) + 1);
    ta__lock_release(&table.lock);
    if (error == 0)
        return 0;
    return refuse(error, error == EEXIST ? "another domain has this name" : "there is no room for another domain");
}

TA_API const char *ta_domain_name(uint32_t number)
{
    ta__lock_acquire(&table.lock);
    const struct domain *domain = find(number, 0);
    ta__lock_release(&table.lock);
    return domain != NULL ? domain->name : "";
}

TA_API int ta_domain_find(const char *name, uint32_t *number)
{
    if (*name == '\0')
        return 0;
    ta__lock_acquire(&table.lock);
    const struct domain *domain = find_name(name);
    if (domain != NULL)
        *number = domain->number;
    ta__lock_release(&table.lock);
    return domain != NULL;
}

TA_API size_t ta_domain_list(uint32_t *numbers, size_t max)
{
    size_t living = 0;
    ta__lock_acquire(&table.lock);
    find(0, 0);
    for (uint32_t i = 0; i < table.count; i++) {
        if (!table.domains[i].is_used)
            continue;
        if (living < max)
            numbers[living] = table.domains[i].number;
        living++;
    }
    ta__lock_release(&table.lock);
    return living;
}

/* ---- what this build has not ---- */

static const char untraced[] = "this is the untraced build of tracealloc";

TA_API int ta_domain_get_stats(uint32_t number, struct ta_domain_stats *stats, size_t size)
{
    (void)number;
    memset(stats, 0, size);
    return refuse(ENOSYS, untraced);
}

TA_API uint64_t ta_domain_usable_bytes(uint32_t number)
{
    (void)number;
    return 0;
}

TA_API int ta_domain_set_limit(uint32_t number, const struct ta_domain_limit *limit)
{
    (void)number, (void)limit;
    return refuse(ENOSYS, untraced);
}

TA_API int ta_domain_load_rules(const char *path)
{
    (void)path;
    return refuse(ENOSYS, untraced);
}

/* ---- arenas: the program itself keeps other threads out of one that it destroys ---- */

TA_API int ta_domain_create_arena(uint32_t *number)
{
    ta__lock_acquire(&table.lock);
    uint32_t candidate;
    do
        candidate = FIRST_ARENA + (table.arenas_numbered++ & 0x3FFFFFFF);
    while (find(candidate, 0) != NULL);
    const struct domain *domain = find(candidate, 1);
    ta__lock_release(&table.lock);
    if (domain == NULL)
        return refuse(ENOMEM, "there is no room for another arena");
    *number = candidate;
    return 0;
}

TA_API int ta_domain_destroy(uint32_t number)
{
    if (number == 0)
        return refuse(EINVAL, "domain 0 cannot be destroyed");
    ta__lock_acquire(&table.lock);
    struct domain *domain = find(number, 0);
    mi_heap_t *heap = NULL;
    if (domain != NULL) {
        heap = domain->heap;
        domain->heap = NULL;
        domain->is_used = 0;
    }
    ta__lock_release(&table.lock);
    if (domain == NULL)
        return refuse(ENOENT, "there is no such domain");
    if (heap != NULL)
        mi_heap_destroy(heap);
    return 0;
}
