/* aligned.c: requests with an alignment. Up to 16 they are malloc's own; above, a plain block is one that stands at such an
 * address by itself. So is a small one with a header, up to TA__LINE, in a heap of its own; any other is made larger and
 * the header placed so that the user pointer is aligned (header.h draws it).
 *
 * Small ones from pages of the thread's own are served here, the others by slow.c. */
#include "alloc/fast_path.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "alloc/entry.h"
#include "alloc/public_names.h"
#include "trace/capture.h"

TA_INLINE int is_power_of_two(size_t number)
{
    return number != 0 && (number & (number - 1)) == 0;
}

/* Does the smallest block of that alignment do, and is it small? */
TA_INLINE int is_usual(size_t alignment, size_t size)
{
    return size - 1 < alignment && alignment - 17 < TA__SMALL_REQUEST_MAX - 16;
}

/* A plain block of a page whose blocks are all aligned like that; NULL: there is none at hand. */
TA_INLINE void *plain_block(size_t alignment, size_t size, struct ta__thread *self)
{
    if (TA_LIKELY(is_usual(alignment, size)))
        return ta__heap_pop(self->theap, alignment);
    size_t natural = ta__heap_natural_size(size, alignment);
    return natural - 1 < TA__SMALL_REQUEST_MAX ? ta__heap_pop(self->theap, natural) : NULL;
}

TA_INLINE void *sampled_block(size_t alignment, size_t size, struct ta__thread *self)
{
    int64_t left = self->sample_left - (int64_t)size;
    if (TA_UNLIKELY(left < 0 || ta__owner_read(&self->allocate) == ta__malloc_any))
        return NULL;
    void *block = plain_block(alignment, size, self);
    if (TA_LIKELY(block != NULL))
        self->sample_left = left;
    return block;
}

/* Bytes that a block with a header needs for it. */
TA_INLINE size_t with_alignment(size_t alignment, size_t size)
{
    return alignment > 16 ? size + alignment : size;
}

/* A block of a page with headers becomes one whose user's bytes are aligned. Ends the operation. */
TA_INLINE void *aligned_within(void *block, size_t alignment, size_t size, struct ta__thread *self, uint32_t leaf,
                               uint32_t gate)
{
    char *usual = (char *)block + TA__MARK_SIZE;
    char *user = (char *)(((uintptr_t)usual + alignment - 1) & ~(alignment - 1));
    uint32_t check = self->traced_check;
    if (user != usual) {
        ta__forward_write(usual, (size_t)(user - usual));
        check ^= TA__KIND_ALIGNED;
    }
    user = ta__header_write_short(user - TA__MARK_SIZE, check, leaf, size);
    if (TA_UNLIKELY(ta__count_in(self, leaf, size)))
        return ta__malloc_new_high(user, self, gate);
    ta__leave_sealed(self, gate);
    return user;
}

/* Would a block at a line do for it, where it has a header? Those are blocks like any other: no header is moved up. */
TA_INLINE int is_lined(size_t alignment, size_t size)
{
    return alignment - 17 < TA__LINE - 16 && size <= TA__SMALL_REQUEST_MAX - TA__MARK_SIZE;
}

/* A block with a header, of a line or of what room the alignment takes; NULL: there is none at hand. */
TA_INLINE void *block_with_header(size_t alignment, size_t size, struct ta__thread *self)
{
    if (!is_lined(alignment, size))
        return ta__heap_pop(self->headed, with_alignment(alignment, size));
    size_t bytes = ta__heap_lines(size);
    void *block = ta__heap_pop(self->lined, bytes);
    if (TA_LIKELY(block != NULL) || ta__lined_part(self) == NULL)
        return block;
    block = ta__heap_pop_freed(self->lined, bytes);
    return block != NULL ? block : ta__heap_refill(self->lined, bytes);
}

/* Small requests in the modes that are made for speed, from anywhere; NULL, and nothing done: the slow path must be taken. */
TA_INLINE void *small_block(size_t alignment, size_t size, const struct ta__caller *caller)
{
    struct ta__thread *self = ta__self;
    uint32_t gate;
    if (TA_UNLIKELY(size - 1 >= TA__SMALL_REQUEST_MAX || alignment > TA__SMALL_REQUEST_MAX))
        return NULL;
    if (self->way < TA__WAY_ONE_FRAME)
        return self->way == TA__WAY_SAMPLED              ? sampled_block(alignment, size, self)
               : ta__owner_read(&self->plain_limit) != 0 ? plain_block(alignment, size, self)
                                                         : NULL;
    if (TA_UNLIKELY(!ta__begin_sealed(self, &gate, with_alignment(alignment, size))))
        return NULL;
    uint32_t leaf = self->way == TA__WAY_STACK ? ta__capture(self, caller->ip, caller->sp, caller->fp, 0)
                                               : ta__capture_site(self, caller->ip);
    void *block = TA_LIKELY(leaf != 0) ? block_with_header(alignment, size, self) : NULL;
    if (TA_LIKELY(block != NULL))
        return aligned_within(block, alignment, size, self, leaf, gate);
    ta__leave_sealed(self, gate);
    return NULL;
}

void *ta__allocate_aligned(size_t alignment, size_t size, struct ta__caller caller)
{
    void *user = small_block(alignment, size, &caller);
    if (TA_LIKELY(user != NULL))
        return user;
    return ta__allocate(&(struct ta__request){.size = size, .alignment = alignment, .domain = TA__DOMAIN_AMBIENT},
                        caller);
}

/* Entered by a jump. */
__attribute__((noinline)) static void *aligned_by_caller(size_t alignment, size_t size)
{
    return ta__allocate_aligned(alignment, size, TA__CALLER());
}

/* The same, of what is perhaps malloc's. */
__attribute__((noinline)) static void *aligned_other(size_t alignment, size_t size, struct ta__thread *self)
{
    return alignment <= 16 ? ta__owner_read(&self->allocate)(size, self) : aligned_by_caller(alignment, size);
}

/* One frame, of the site that asked last, at a line: it needs no frame of its own. */
__attribute__((noinline)) static void *aligned_one_frame(size_t alignment, size_t size, struct ta__thread *self)
{
    uint32_t gate;
    if (TA_UNLIKELY(!is_lined(alignment, size) || self->one_ip != (uintptr_t)__builtin_return_address(0) ||
                    !ta__begin_sealed(self, &gate, 0)))
        return aligned_other(alignment, size, self);
    void *block = ta__heap_pop(self->lined, ta__heap_lines(size));
    if (TA_LIKELY(block != NULL))
        return ta__traced_block_of_site(self, block, size, gate);
    ta__leave_sealed(self, gate);
    return aligned_other(alignment, size, self);
}

/* Whole stacks: not the stack that was expected of those that begin like it, or no line is at hand. */
__attribute__((noinline, noipa)) static void *aligned_missed(size_t alignment, size_t size, uintptr_t sp, uintptr_t ip,
                                                             uintptr_t fp)
{
    return ta__allocate_aligned(alignment, size, (struct ta__caller){.ip = ip, .sp = sp, .fp = fp});
}

__attribute__((used)) void *ta__aligned_stack_of(size_t alignment, size_t size, struct ta__thread *self, uintptr_t sp,
                                                 uintptr_t ip, uintptr_t fp)
{
    uint32_t gate;
    if (TA_UNLIKELY(!is_lined(alignment, size) || !ta__begin_sealed(self, &gate, 0)))
        return aligned_missed(alignment, size, sp, ip, fp);
    uint32_t leaf = ta__kept_find_expected(self, ip, sp, fp, 0);
    void *block = TA_LIKELY(leaf != 0) ? ta__heap_pop(self->lined, ta__heap_lines(size)) : NULL;
    if (TA_UNLIKELY(block == NULL)) {
        ta__leave_sealed(self, gate);
        return aligned_missed(alignment, size, sp, ip, fp);
    }
    ta__check_kept(self, ip, sp, fp, leaf);
    return ta__traced_block(self, block, size, leaf, gate);
}

/* As TA__ENTERED_WITH_CALLER, with an argument more in front. */
#if defined(__x86_64__)
__attribute__((naked, noinline, used)) static void *aligned_stack(__attribute__((unused)) size_t alignment,
                                                                  __attribute__((unused)) size_t size,
                                                                  __attribute__((unused)) struct ta__thread *self)
{
    __asm__("leaq 8(%rsp), %rcx\n\tmovq (%rsp), %r8\n\tmovq %rbp, %r9\n\tjmp ta__aligned_stack_of");
}
#else
__attribute__((noinline)) static void *aligned_stack(size_t alignment, size_t size, struct ta__thread *self)
{
    struct ta__caller caller = TA__CALLER();
    return ta__aligned_stack_of(alignment, size, self, caller.sp, caller.ip, caller.fp);
}
#endif

__attribute__((noinline)) static void *aligned_sampled_other(size_t alignment, size_t size, struct ta__thread *self)
{
    void *block = TA_LIKELY(size - 1 < TA__SMALL_REQUEST_MAX) ? sampled_block(alignment, size, self) : NULL;
    return TA_LIKELY(block != NULL) ? block : aligned_by_caller(alignment, size);
}

__attribute__((noinline)) static void *aligned_sampled(size_t alignment, size_t size, struct ta__thread *self)
{
    void *block = TA_LIKELY(is_usual(alignment, size)) ? sampled_block(alignment, size, self) : NULL;
    return TA_LIKELY(block != NULL) ? block : aligned_sampled_other(alignment, size, self);
}

/* None of the thread's plain blocks. */
__attribute__((noinline)) static void *aligned_rest(size_t alignment, size_t size, struct ta__thread *self)
{
    if (self->way == TA__WAY_STACK)
        return aligned_stack(alignment, size, self);
    return self->way == TA__WAY_ONE_FRAME ? aligned_one_frame(alignment, size, self)
                                          : aligned_by_caller(alignment, size);
}

TA_INLINE void *allocate_aligned(size_t alignment, size_t size)
{
    struct ta__thread *self = ta__self;
    void *block = TA_LIKELY(size - 1 < ta__owner_read(&self->plain_limit)) ? plain_block(alignment, size, self) : NULL;
    if (TA_LIKELY(block != NULL))
        return block;
    return self->way == TA__WAY_SAMPLED ? aligned_sampled(alignment, size, self) : aligned_rest(alignment, size, self);
}

/* glibc's aligned_alloc and memalign take any alignment; one that is no power of two is rounded up to the next. */
static size_t rounded_alignment(size_t alignment)
{
    size_t rounded = 16;
    while (rounded < alignment && rounded != 0)
        rounded *= 2;
    return rounded;
}

TA_INLINE void *any_alignment(size_t alignment, size_t size)
{
    if (TA_UNLIKELY(!is_power_of_two(alignment))) {
        if (alignment > SIZE_MAX / 2 + 1)
            return ta__invalid_alignment();
        alignment = rounded_alignment(alignment);
    }
    return allocate_aligned(alignment, size);
}

TA_ENTRY void *ta_memalign(size_t alignment, size_t size)
{
    return any_alignment(alignment, size);
}

TA_ENTRY void *ta_aligned_alloc(size_t alignment, size_t size)
{
    return any_alignment(alignment, size);
}

TA_ENTRY int ta_posix_memalign(void **block, size_t alignment, size_t size)
{
    if (TA_UNLIKELY(!is_power_of_two(alignment) || alignment % sizeof(void *) != 0))
        return EINVAL;
    struct ta__thread *self = ta__self;
    void *user = size - 1 < ta__owner_read(&self->plain_limit) ? plain_block(alignment, size, self) : NULL;
    if (TA_UNLIKELY(user == NULL)) {
        int saved_errno = errno;
        user = ta__allocate_aligned(alignment, size, TA__CALLER());
        errno = saved_errno;
        if (user == NULL)
            return ENOMEM;
    }
    *block = user;
    return 0;
}

TA_ENTRY void *ta_valloc(size_t size)
{
    return allocate_aligned((size_t)sysconf(_SC_PAGESIZE), size);
}

TA_ENTRY void *ta_pvalloc(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (TA_UNLIKELY(size > SIZE_MAX - page))
        return ta__out_of_memory();
    return allocate_aligned(page, (size + page - 1) & ~(page - 1));
}

TA_ENTRY size_t ta_usable_size(void *block)
{
    return ta__usable(block);
}

TA_ALSO_NAMED(memalign, ta_memalign)
TA_ALSO_NAMED(aligned_alloc, ta_aligned_alloc)
TA_ALSO_NAMED(posix_memalign, ta_posix_memalign)
TA_ALSO_NAMED(valloc, ta_valloc)
TA_ALSO_NAMED(pvalloc, ta_pvalloc)
TA_ALSO_NAMED(malloc_usable_size, ta_usable_size)
TA_ALSO_LIBCS(memalign, alloc_size(2))
TA_ALSO_LIBCS(valloc, alloc_size(1))
TA_ALSO_LIBCS(pvalloc, nothrow)
