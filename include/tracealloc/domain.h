/* tracealloc/domain.h: domains — numbered address spaces, each with its own heap, figures and limit.
 *
 * A domain is any number from 0 to 2^32 - 1; 0 is the default. It comes into being when it is first used. Which domain
 * a block belongs to is decided by the first of these that says something:
 *
 *      1. the call              ta_domain_malloc(3, n)
 *      2. the thread's scope    ta_domain_push(3) … ta_domain_pop(), TA_DOMAIN_SCOPE(3), tracealloc::domain_scope
 *      3. a rule                "3 tls module=libssl.so*" in a file (ta_domain_load_rules), while tracing
 *      4. nothing               domain 0
 *
 * free and realloc need no domain: the block knows its own, and keeps it when it is resized. Every function may be
 * called from any thread. docs/domains.md explains all of it. */
#ifndef TRACEALLOC_DOMAIN_H
#define TRACEALLOC_DOMAIN_H

#include <stddef.h>
#include <stdint.h>

#include <tracealloc/api.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- explicit calls ---------------------------------------------------------------------------------------------- */

/* As their namesakes in C, in the domain given. NULL with errno ENOMEM also when the domain's hard limit refuses. */
TA_API void *ta_domain_malloc(uint32_t domain, size_t size) __attribute__((malloc, alloc_size(2), warn_unused_result));
TA_API void *ta_domain_calloc(uint32_t domain, size_t count, size_t size)
    __attribute__((malloc, alloc_size(2, 3), warn_unused_result));
/* Moves the block into the domain when it is in another. */
TA_API void *ta_domain_realloc(uint32_t domain, void *block, size_t size)
    __attribute__((alloc_size(3), warn_unused_result));
TA_API void *ta_domain_reallocarray(uint32_t domain, void *block, size_t count, size_t size)
    __attribute__((alloc_size(3, 4), warn_unused_result));
TA_API void *ta_domain_aligned_alloc(uint32_t domain, size_t alignment, size_t size)
    __attribute__((alloc_size(3), warn_unused_result));
TA_API int ta_domain_posix_memalign(uint32_t domain, void **block, size_t alignment, size_t size)
    __attribute__((warn_unused_result));
TA_API char *ta_domain_strdup(uint32_t domain, const char *text) __attribute__((malloc, warn_unused_result));
TA_API char *ta_domain_strndup(uint32_t domain, const char *text, size_t max)
    __attribute__((malloc, warn_unused_result));
TA_API void *ta_domain_memdup(uint32_t domain, const void *data, size_t size)
    __attribute__((malloc, warn_unused_result));

/* The domain of a live block: 1 and *domain, or 0 when the pointer is no block of ours. */
TA_API int ta_domain_of(const void *block, uint32_t *domain);

/* ---- scopes ------------------------------------------------------------------------------------------------------ */

/* What this thread allocates until the matching pop belongs to the domain. Scopes nest. A pop without a push is
 * reported once and ignored. When `domain` is an arena, push changes only what ta_domain_current answers: allocations
 * of libraries that happen to run meanwhile must not die with the arena. ta_domain_push_arena is for code that wants
 * them to. */
TA_API void ta_domain_push(uint32_t domain);
TA_API void ta_domain_push_arena(uint32_t domain);
TA_API void ta_domain_pop(void);
/* The domain of the innermost scope; 0 when there is none. Hand it to another thread, or keep it for a callback. */
TA_API uint32_t ta_domain_current(void);
/* Calls function(context) inside a scope of the domain. */
TA_API void ta_domain_with(uint32_t domain, void (*function)(void *context), void *context);

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* Up to 255 bytes, copied. 0; -1 with errno EINVAL when too long, ENOMEM when there is no room, EEXIST when another
 * domain has the name. */
TA_API int ta_domain_set_name(uint32_t domain, const char *name);
/* "" when it has none. Stays valid. */
TA_API const char *ta_domain_name(uint32_t domain);
/* 1 and *domain, or 0 when no living domain has this name. */
TA_API int ta_domain_find(const char *name, uint32_t *domain);
/* The living domains, 0 included, in the order of their making: at most `max` are stored, the number of all is
 * returned. */
TA_API size_t ta_domain_list(uint32_t *domains, size_t max);

/* ---- figures ----------------------------------------------------------------------------------------------------- */

struct ta_domain_stats {
    uint32_t domain;
    uint32_t is_arena;
    uint64_t live_bytes, live_blocks; /* now: blocks, and what ta_track recorded */
    uint64_t peak_bytes;              /* at most so far */
    uint64_t allocated_bytes, allocated_blocks;
    uint64_t freed_bytes, freed_blocks;
    uint64_t soft_limit, hard_limit; /* bytes; 0 = none */
    uint64_t crossings;              /* of the soft limit */
    uint64_t traced_bytes, traced_blocks;
};
/* Fills the first `size` bytes of *stats (pass sizeof *stats); stops nothing. 0; -1 with errno ENOENT when the domain
 * has never been used or was destroyed. Domain 0 is known only by its traces: all its figures are those of the traced
 * blocks, without a peak. While other threads allocate, the figures may be a moment apart; when the program rests, the
 * sum of traced_bytes over all domains is what ta_get_traced_memory says. */
TA_API int ta_domain_get_stats(uint32_t domain, struct ta_domain_stats *stats, size_t size);
/* Bytes that the blocks of the domain occupy, headers and rounding included. Holds other threads outside the allocator
 * for a moment. 0 for domains that share a heap (see docs/domains.md). */
TA_API uint64_t ta_domain_usable_bytes(uint32_t domain);

/* ---- limits ------------------------------------------------------------------------------------------------------ */

struct ta_domain_limit {
    uint64_t soft; /* bytes; crossing it upwards calls back, once until the domain has fallen below it again */
    uint64_t hard; /* bytes; what would exceed it gets NULL and ENOMEM, and operator new throws. 0 = none, both */
    void (*callback)(uint32_t domain, uint64_t live_bytes, void *context); /* may allocate; NULL = none */
    void *context;
};
/* Exact with one thread; with more, a domain may exceed its limit by 64 KiB for each other thread that uses it. 0; -1
 * with errno EINVAL for domain 0 and for limits beyond 2^62, ENOMEM. */
TA_API int ta_domain_set_limit(uint32_t domain, const struct ta_domain_limit *limit);

/* ---- arenas ------------------------------------------------------------------------------------------------------ */

/* A domain with a number nobody uses, whose blocks share pages with no other's. 0 and *domain; -1 with errno ENOMEM. */
TA_API int ta_domain_create_arena(uint32_t *domain);
/* Frees all blocks of the domain at once, forgets what ta_track recorded in it, its name and its limit. Pointers into
 * it are then dead: freeing one is reported once and ignored where it can be told. Threads that still allocate in the
 * domain do so in a new life of the number, an ordinary domain. 0; -1 with errno ENOENT when there is no such domain,
 * EINVAL for domain 0, EBUSY when a rule in force names it. */
TA_API int ta_domain_destroy(uint32_t domain);

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* Replaces the rules by those of a file: lines of `number name module=pattern,… function=pattern,… [outermost]`;
 * file=pattern,… needs them compiled (docs/domains.md).
 * 0; -1 with errno and ta_error_text, which names file, line and column; then the former rules stay. */
TA_API int ta_domain_load_rules(const char *path);

#if defined(__cplusplus)
} /* extern "C" */

namespace tracealloc
{
class domain; /* tracealloc.hpp */

/* The rest of the block belongs to the domain. */
class domain_scope
{
  public:
    explicit domain_scope(uint32_t number) noexcept
    {
        ta_domain_push(number);
    }
    explicit domain_scope(const domain &where) noexcept;
    ~domain_scope()
    {
        ta_domain_pop();
    }
    domain_scope(const domain_scope &) = delete;
    domain_scope &operator=(const domain_scope &) = delete;
};

/* The same for an arena, ambient allocations included. */
class arena_scope
{
  public:
    explicit arena_scope(uint32_t number) noexcept
    {
        ta_domain_push_arena(number);
    }
    explicit arena_scope(const domain &where) noexcept;
    ~arena_scope()
    {
        ta_domain_pop();
    }
    arena_scope(const arena_scope &) = delete;
    arena_scope &operator=(const arena_scope &) = delete;
};
} // namespace tracealloc
#else

/* The rest of the enclosing block belongs to the domain: leaving it by any way but longjmp pops. */
#define TA_DOMAIN_SCOPE(domain)          TA_DOMAIN_SCOPE_AT(domain, __LINE__)
#define TA_DOMAIN_SCOPE_AT(domain, line) TA_DOMAIN_SCOPE_NAMED(domain, line)
#define TA_DOMAIN_SCOPE_NAMED(domain, line)                                                                            \
    __attribute__((cleanup(ta_domain_scope_end), unused)) const int ta_domain_scope_##line = (ta_domain_push(domain), 0)

static inline void ta_domain_scope_end(const int *scope)
{
    (void)scope;
    ta_domain_pop();
}
#endif

#endif
