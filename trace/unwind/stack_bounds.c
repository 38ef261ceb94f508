/* stack_bounds.c: see stack_bounds.h. Cold: a thread's own stack is learnt once; foreign stacks cost a look at the mappings when
 * they were not met before, and a system call per capture to be sure that they still are what they were.
 *
 * Own stacks. glibc places a thread's control block and static TLS at the top of its stack, so the thread pointer
 * bounds the frames from above, and the block says where the stack begins; the main thread's frames end at the initial
 * stack pointer that the kernel gave it. Where the block is of another kind an own stack is bounded generously below: every
 * sp that a walk begins with is real. */
#include "trace/unwind/stack_bounds.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/atomics.h"
#include "trace/trace.h"

extern void *__libc_stack_end __attribute__((weak));

enum { PAGE = 4096 };

/* ---- /proc/self/maps without stdio ---- */

struct mapping {
    uint64_t low, high;
};

struct maps_reader {
    int descriptor;
    unsigned length, at;
    char buffer[1024];
};

static int next_byte(struct maps_reader *reader)
{
    if (reader->at == reader->length) {
        ssize_t got = read(reader->descriptor, reader->buffer, sizeof reader->buffer);
        if (got <= 0)
            return -1;
        reader->length = (unsigned)got;
        reader->at = 0;
    }
    return (unsigned char)reader->buffer[reader->at++];
}

static int read_hex(struct maps_reader *reader, uint64_t *value)
{
    *value = 0;
    for (;;) {
        int byte = next_byte(reader);
        if (byte >= '0' && byte <= '9')
            *value = *value * 16 + (uint64_t)(byte - '0');
        else if (byte >= 'a' && byte <= 'f')
            *value = *value * 16 + (uint64_t)(byte - 'a' + 10);
        else
            return byte;
    }
}

/* The readable and writable mapping that contains `address`. */
static int find_mapping(uint64_t address, struct mapping *found)
{
    int saved_errno = errno;
    struct maps_reader reader = {.descriptor = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    int is_found = 0;
    if (reader.descriptor >= 0) {
        while (!is_found) {
            uint64_t low, high;
            if (read_hex(&reader, &low) != '-' || read_hex(&reader, &high) != ' ')
                break;
            int readable = next_byte(&reader) == 'r';
            int writable = next_byte(&reader) == 'w';
            if (address >= low && address < high) {
                is_found = readable && writable;
                *found = (struct mapping){low, high};
                break;
            }
            int byte;
            while ((byte = next_byte(&reader)) != '\n' && byte >= 0)
                ;
        }
        close(reader.descriptor);
    }
    errno = saved_errno;
    return is_found;
}

/* ---- the thread's own stack ---- */

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
/* Of a control block: the number of the word that says where the stack begins; the next one has its size. 0: not known. */
static uint32_t stack_word;

/* glibc has no name for the place, which moves with its version. (pthread_getattr_np makes system calls, and allocates.) In
 * the main thread's block the size is the kernel's initial stack pointer, and the beginning 0. */
static void find_stack_word(const uintptr_t *block)
{
    enum { BLOCK_BYTES = 2048 }; /* in every version it is larger */
    for (uint32_t i = 1; i < BLOCK_BYTES / sizeof *block; i++)
        if (block[i] == (uintptr_t)__libc_stack_end && block[i - 1] == 0) {
            ta__store_relaxed(&stack_word, i - 1);
            return;
        }
}

/* 0: the block says nothing, as that of the main thread, or nothing that can be true. */
static int learn_from_libc(struct ta__thread *self, int is_main)
{
    const uintptr_t *block = (const uintptr_t *)__builtin_thread_pointer();
    if (is_main && ta__load_relaxed(&stack_word) == 0 && &__libc_stack_end != NULL)
        find_stack_word(block);
    uint32_t word = ta__load_relaxed(&stack_word);
    uintptr_t high = (uintptr_t)block;
    if (word == 0 || block[word] == 0 || high <= block[word] || high - block[word] > block[word + 1])
        return 0;
    self->own_low = block[word];
    self->own_high = high;
    return 1;
}
#else
static int learn_from_libc(struct ta__thread *self, int is_main)
{
    (void)self, (void)is_main;
    return 0;
}
#endif

static void learn_from_here(struct ta__thread *self, int is_main)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t high = (uintptr_t)__builtin_thread_pointer();
    uintptr_t below = UINT64_C(8) << 20;
    if (is_main) {
        struct rlimit limit;
        int saved_errno = errno;
        high = &__libc_stack_end != NULL ? (uintptr_t)__libc_stack_end : 0;
        if (getrlimit(RLIMIT_STACK, &limit) == 0)
            below = limit.rlim_cur == RLIM_INFINITY ? UINT64_C(16) << 30 : limit.rlim_cur;
        errno = saved_errno;
    }
    struct mapping mapping;
    if (high <= here || high - here > below) {
        /* The stack is not where glibc puts it: the thread was made by hand, or by another libc. */
        if (find_mapping(here, &mapping)) {
            self->own_low = mapping.low;
            self->own_high = mapping.high;
        }
    } else {
        self->own_high = high;
        self->own_low = is_main ? high - below : here & ~(uintptr_t)(PAGE - 1);
    }
}

void ta__stack_learn_own(struct ta__thread *self, int is_main)
{
    self->own_is_whole = (uint8_t)learn_from_libc(self, is_main);
    if (!self->own_is_whole)
        learn_from_here(self, is_main);
    self->stack_low = self->own_low;
    self->stack_high = self->own_high;
}

/* sp lies below what is known of the thread's own stack: has the thread just used its stack deeper than before? Where all of
 * it is known it is another one, though perhaps in the same mapping: one day that may be gone. */
static int own_stack_reaches(struct ta__thread *self, uint64_t sp)
{
    struct mapping mapping;
    if (self->own_is_whole || sp >= self->own_high || !find_mapping(sp, &mapping))
        return 0;
    if (mapping.low > self->own_low || mapping.high <= self->own_low)
        return 0; /* another mapping: a foreign stack */
    self->own_low = mapping.low;
    return 1;
}

/* ---- foreign stacks ---- */

/* Is every page of [low, high) mapped now? Looks without touching. */
static int is_mapped(uint64_t low, uint64_t high)
{
    enum { PAGES = 256 };
    unsigned char residence[PAGES];
    int saved_errno = errno;
    low &= ~(uint64_t)(PAGE - 1);
    int result = 1;
    for (uint64_t at = low; at < high && result; at += PAGES * PAGE) {
        uint64_t length = high - at < PAGES * PAGE ? high - at : PAGES * PAGE;
        result = mincore((void *)at, length, residence) == 0;
    }
    errno = saved_errno;
    return result;
}

int ta__stack_select(struct ta__thread *self, uint64_t sp)
{
    if (sp - self->own_low < self->own_high - self->own_low) {
        self->stack_low = self->own_low;
        self->stack_high = self->own_high;
        return 1;
    }
    if (self->own_high != 0 && own_stack_reaches(self, sp)) {
        self->stack_low = self->own_low;
        self->stack_high = self->own_high;
        return 1;
    }
    enum { FRAMES_AT_MOST = 1 << 20 }; /* bytes of a foreign stack that are looked at */
    struct mapping mapping = {self->foreign_low, self->foreign_high};
    if (sp - mapping.low >= mapping.high - mapping.low) {
        if (!find_mapping(sp, &mapping))
            return 0;
        self->foreign_low = mapping.low;
        self->foreign_high = mapping.high;
    }
    uint64_t high = mapping.high - sp > FRAMES_AT_MOST ? sp + FRAMES_AT_MOST : mapping.high;
    if (!is_mapped(sp, high)) {
        self->foreign_low = self->foreign_high = 0;
        return 0;
    }
    /* Leaves empty bounds, so that the next capture comes here again. */
    self->stack_low = high;
    self->stack_high = high;
    return 1;
}
