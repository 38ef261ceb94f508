/* own_stack.c: see own_stack.h. The frame of the caller stays addressed by its frame pointer, so that unwinders find
 * their way from the new stack to the old. Sanitizers do not follow: there the work is done where one stands. */
#include "base/own_stack.h"

#include <stdint.h>
#include <sys/mman.h>

#include "base/memory.h"

#if defined(__has_feature)
#define IS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

enum { GUARD_BYTES = 4096 };

#if !IS_SANITIZED && (defined(__x86_64__) || defined(__aarch64__))
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((noinline, noclone, optimize("no-omit-frame-pointer")))
#else
__attribute__((noinline))
#endif
static void
call_on(void *top, void (*function)(void *), void *argument)
{
    void *volatile frame = __builtin_frame_address(0); /* has one */
    (void)frame;
#if defined(__x86_64__)
    __asm__ volatile("movq %%rsp, %%rbx\n\tmovq %[top], %%rsp\n\tcallq *%[function]\n\tmovq %%rbx, %%rsp"
                     : [function] "+r"(function), "+D"(argument), [top] "+r"(top)
                     :
                     : "rbx", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1",
                       "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
                       "xmm13", "xmm14", "xmm15");
#else
    register void *first __asm__("x0") = argument;
    register void *called __asm__("x9") = (void *)(uintptr_t)function;
    register void *stack __asm__("x10") = top;
    __asm__ volatile("mov x19, sp\n\tmov sp, x10\n\tblr x9\n\tmov sp, x19"
                     : "+r"(first), "+r"(called), "+r"(stack)
                     :
                     : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
                       "x18", "x19", "x30", "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16",
                       "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30",
                       "v31");
#endif
}

int ta__on_own_stack(size_t bytes, void (*function)(void *), void *argument)
{
    char *memory = ta__memory_map(bytes);
    if (memory == NULL)
        return 0;
    if (mprotect(memory, GUARD_BYTES, PROT_NONE) == 0) {
        call_on(memory + bytes, function, argument);
        function = NULL;
    }
    ta__memory_unmap(memory, bytes);
    return function == NULL;
}
#else
int ta__on_own_stack(size_t bytes, void (*function)(void *), void *argument)
{
    (void)bytes;
    function(argument);
    return 1;
}
#endif
