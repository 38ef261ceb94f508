/* crash.c: see crash.h. */
#include "snapshot/triggers/crash.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "alloc/alloc.h"
#include "base/atomics.h"
#include "base/bytes.h"
#include "base/message.h"
#include "snapshot/triggers/stack_step.h"
#include "snapshot/write/take.h"

enum { FRAMES_MOST = 40, BLOCK_FRAMES_MOST = 24, REGISTERS = 16 };

static struct {
    int is_begun, is_noted; /* is_noted: release; the rest is whole */
    int number, code, thread, sender;
    unsigned error; /* of a page fault, as the processor says it; 0 = not known */
    uintptr_t address, ip, sp, fp, registers[REGISTERS];
} crash;

#if defined(__x86_64__)
static const char *const register_names[REGISTERS] = {"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
                                                      "rdi", "rsi", "rbp", "rbx", "rdx", "rax", "rcx", "rsp"};
#endif

enum { PAGE_FAULT = 14, WRITES = 2, FETCHES = 16, KNOWN = 1 << 30 };

/* Of several threads that fault at once the first is noted. */
void ta__crash_note(int number, siginfo_t *info, void *context)
{
    int fresh = 0;
    const ucontext_t *registers = context;
    if (!__atomic_compare_exchange_n(&crash.is_begun, &fresh, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    crash.number = number;
    crash.code = info->si_code;
    crash.address = info->si_code > 0 ? (uintptr_t)info->si_addr : 0;
    crash.thread = (int)syscall(SYS_gettid);
    crash.sender = info->si_code <= 0 ? info->si_pid : 0;
#if defined(__x86_64__)
    crash.ip = (uintptr_t)registers->uc_mcontext.gregs[REG_RIP];
    crash.sp = (uintptr_t)registers->uc_mcontext.gregs[REG_RSP];
    crash.fp = (uintptr_t)registers->uc_mcontext.gregs[REG_RBP];
    if (info->si_code > 0 && registers->uc_mcontext.gregs[REG_TRAPNO] == PAGE_FAULT)
        crash.error = (unsigned)registers->uc_mcontext.gregs[REG_ERR] | KNOWN;
    for (int i = 0; i < REGISTERS; i++)
        crash.registers[i] = (uintptr_t)registers->uc_mcontext.gregs[i];
#else
    crash.ip = registers->uc_mcontext.pc;
    crash.sp = registers->uc_mcontext.sp;
    crash.fp = registers->uc_mcontext.regs[29];
#endif
    ta__store_release(&crash.is_noted, 1);
}

int ta__crash_is_noted(void)
{
    return ta__load_acquire(&crash.is_noted);
}

/* ---- the stack, from memory that nobody runs in ------------------------------------------------------------------ */

/* By the kernel: an address that cannot be read is no fault of ours. */
static int word_at(uint64_t address, uint64_t *word)
{
    struct iovec to = {word, sizeof *word}, from = {(void *)(uintptr_t)address, sizeof *word};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof *word;
}

/* ---- words -------------------------------------------------------------------------------------------------------- */

static void end_text(struct ta__message *message)
{
    message->text[message->length < TA__MESSAGE_MAX ? message->length : TA__MESSAGE_MAX - 1] = '\0';
}

static void add_place(struct ta__pairs *pairs, const char *prefix, int row, uint64_t ip)
{
    struct ta__message message;
    ta__place_text(&message, ip);
    ta__pairs_add_row(pairs, prefix, (uint64_t)row, message.text);
}

static void add_frames(struct ta__pairs *pairs)
{
    struct ta__place place = {crash.ip, crash.sp, crash.fp, 1};
    for (int i = 0; i < FRAMES_MOST; i++) {
        add_place(pairs, "crash.frame.", i, place.is_interrupted ? place.ip : place.ip - 1);
        if (!ta__place_step(&place, word_at))
            return;
    }
}

/* ---- the block that an address belongs to -------------------------------------------------------------------------- */

/* "16 bytes into a live block of 48 bytes" */
static void block_text(struct ta__message *message, const struct ta__block_around *around)
{
    int64_t behind = around->offset - (int64_t)around->size;
    int is_behind = around->is_live && behind >= 0;
    int64_t distance = is_behind ? behind : around->offset < 0 ? -around->offset : around->offset;
    ta__message_count(message, (uint64_t)distance, "byte");
    ta__message_text(message, is_behind ? " behind the end of" : around->offset < 0 ? " before" : " into");
    ta__message_text(message, around->is_plain  ? " an untraced block, live or freed, of "
                              : around->is_live ? " a live block of "
                                                : " freed memory, a place for ");
    ta__message_count(message, around->size, "byte");
    end_text(message);
}

static void add_block_frames(struct ta__pairs *pairs, const char *prefix, uint32_t leaf, size_t most)
{
    uint64_t frames[BLOCK_FRAMES_MOST];
    size_t count = leaf != 0 ? ta__leaf_frames(leaf, frames, BLOCK_FRAMES_MOST) : 0;
    for (size_t i = 0; i < count && i < most; i++)
        add_place(pairs, prefix, (int)i, frames[i] - 1);
}

static void add_block(struct ta__pairs *pairs)
{
    struct ta__block_around around;
    struct ta__message message;
    if (crash.code <= 0 || !ta__block_around(crash.address, &around))
        return;
    ta__message_begin_plain(&message);
    block_text(&message, &around);
    ta__pairs_add(pairs, "crash.block", message.text);
    add_block_frames(pairs, "crash.block.frame.", around.leaf, BLOCK_FRAMES_MOST);
}

#if defined(__x86_64__)
/* What the interrupted code had at hand: "rdi: 0x20000001200, 16 bytes into a live block of 48 bytes", and who asked for
 * it. Each block once. */
static void add_registers(struct ta__pairs *pairs)
{
    enum { REGISTER_FRAMES_MOST = 6 };
    uintptr_t met[REGISTERS] = {0};
    int rows = 0;
    for (int i = 0; i < REGISTERS; i++) {
        struct ta__message message;
        struct ta__block_around around;
        int known = 0;
        if (!ta__block_around(crash.registers[i], &around) || around.offset > (int64_t)around.room)
            continue;
        for (int j = 0; j < rows; j++)
            known |= met[j] == around.user;
        if (known)
            continue;
        ta__message_begin_plain(&message);
        ta__message_text(&message, register_names[i]);
        ta__message_text(&message, ": ");
        ta__message_hex(&message, crash.registers[i]);
        ta__message_text(&message, ", ");
        block_text(&message, &around);
        ta__pairs_add_row(pairs, "crash.register.", (uint64_t)rows, message.text);
        char prefix[48] = "crash.register.";
        strcpy(ta__put_decimal(prefix + strlen(prefix), (uint64_t)rows), ".frame.");
        add_block_frames(pairs, prefix, around.leaf, REGISTER_FRAMES_MOST);
        met[rows++] = around.user;
    }
}
#else
static void add_registers(struct ta__pairs *pairs)
{
    (void)pairs;
}
#endif

const char *ta__crash_name(void)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"},
                 {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGSYS, "SIGSYS"}};
    for (size_t i = 0; ta__crash_is_noted() && i < sizeof names / sizeof names[0]; i++)
        if (names[i].number == crash.number)
            return names[i].name;
    return "";
}

/* A frame, or what a frame calls, wanted to be where the stack ends: a recursion, most often. */
static int is_stack_full(void)
{
    enum { NEAR = 64 << 10 };
    return crash.number == SIGSEGV && (crash.code == SEGV_MAPERR || crash.code == SEGV_ACCERR) &&
           crash.address >= NEAR && crash.address + NEAR >= crash.sp && crash.address < crash.sp + NEAR;
}

/* What the number of the signal does not tell yet. */
static const char *cause(void)
{
    if (is_stack_full())
        return "the stack is full";
    static const struct {
        int number, code;
        const char *words;
    } causes[] = {{SIGSEGV, SEGV_MAPERR, "nothing is there"},
                  {SIGSEGV, SEGV_ACCERR, "that is not allowed there"},
                  {SIGSEGV, SI_KERNEL, "no such address can be"},
                  {SIGBUS, BUS_ADRALN, "not aligned"},
                  {SIGBUS, BUS_ADRERR, "behind the end of the mapped file, or no memory left for it"},
                  {SIGFPE, FPE_INTDIV, "integer division by zero"},
                  {SIGFPE, FPE_INTOVF, "integer overflow"},
                  {SIGFPE, FPE_FLTDIV, "division by zero"},
                  {SIGFPE, FPE_FLTINV, "invalid operation with floating-point numbers"},
                  {SIGILL, ILL_ILLOPN, "illegal instruction"},
                  {SIGILL, ILL_ILLOPC, "illegal instruction"}};
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
        if (causes[i].number == crash.number && causes[i].code == crash.code)
            return causes[i].words;
    return NULL;
}

static void add_cause(struct ta__pairs *pairs)
{
    struct ta__message message;
    if (crash.code == SI_KERNEL || (crash.code > 0 && crash.number != SIGABRT)) {
        if (crash.code != SI_KERNEL) {
            ta__message_begin_plain(&message);
            ta__message_hex(&message, crash.address);
            end_text(&message);
            ta__pairs_add(pairs, "crash.address", message.text);
        }
        if ((crash.error & KNOWN) != 0)
            ta__pairs_add(pairs, "crash.access",
                          (crash.error & FETCHES) != 0  ? "execute"
                          : (crash.error & WRITES) != 0 ? "write"
                                                        : "read");
    }
    if (cause() != NULL)
        ta__pairs_add(pairs, "crash.cause", cause());
    if (crash.sender != 0 && crash.sender != ta__snapshot_process())
        ta__pairs_add_number(pairs, "crash.sender", (uint64_t)crash.sender);
}

void ta__crash_describe(struct ta__pairs *pairs)
{
    ta__pairs_add(pairs, "crash.signal", ta__crash_name());
    ta__pairs_add_number(pairs, "crash.thread", (uint64_t)crash.thread);
    add_cause(pairs);
    add_frames(pairs);
    add_block(pairs);
    add_registers(pairs);
}
