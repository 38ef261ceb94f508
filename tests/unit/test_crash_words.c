/* test_crash_words.c: what an entry says of a fault (snapshot/triggers/crash.h), pair by pair: signal, registers, blocks and
 * stack are made up here. One fault is noted in a process, so each case has a process of its own. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unity.h>

#include "alloc/alloc.h"
#include "snapshot/triggers/crash.h"
#include "snapshot/triggers/stack_step.h"
#include "snapshot/write/take.h"

/* ---- what is asked ---- */

static int steps; /* so many frames have a caller */

int ta__place_step(struct ta__place *place, ta__word_reader read)
{
    static uint64_t readable = 0x77;
    uint64_t word = 0;
    if (place->is_interrupted && (place->sp != 0x7000 || place->fp != 0x7100))
        return 0; /* these are not the registers */
    TEST_ASSERT_EQUAL(1, read((uint64_t)(uintptr_t)&readable, &word));
    TEST_ASSERT_EQUAL_HEX64(0x77, word);
    TEST_ASSERT_EQUAL(0, read(8, &word));
    place->ip += 0x10;
    place->is_interrupted = 0;
    return steps-- > 0;
}

void ta__place_text(struct ta__message *message, uint64_t ip)
{
    ta__message_begin_plain(message);
    ta__message_text(message, "at ");
    ta__message_hex(message, ip);
    message->text[message->length] = '\0';
}

/* Of an address from 0x500000 on: its 4 KiB are a block. */
static struct ta__block_around around;

int ta__block_around(uintptr_t address, struct ta__block_around *found)
{
    if (address < 0x500000 || address >= 0x600000)
        return 0;
    *found = around;
    found->user = address & ~(uintptr_t)0xfff;
    found->offset = (int64_t)(address & 0xfff) - 0x100;
    return 1;
}

size_t ta__leaf_frames(uint32_t leaf, uint64_t *addresses, size_t max)
{
    size_t count = leaf < max ? leaf : max;
    TEST_ASSERT_NOT_EQUAL(0, leaf);
    for (size_t i = 0; i < count; i++)
        addresses[i] = 0x900 + i;
    return count;
}

pid_t ta__snapshot_process(void)
{
    return 4711;
}

void setUp(void)
{
    steps = 0;
    around = (struct ta__block_around){.size = 48, .room = 64, .is_live = 1};
}

void tearDown(void)
{
}

/* ---- a fault ---- */

static char *shared;

struct fault {
    int number, code, sender;
    uintptr_t address;
    long trap, error, rdi, rax, rcx;
};

/* "key: value" lines, without the number of the thread. */
static const char *words_of(struct fault fault)
{
#if defined(__x86_64__)
    pid_t child = fork();
    int status;
    if (child != 0) {
        TEST_ASSERT_EQUAL(child, waitpid(child, &status, 0));
        TEST_ASSERT_EQUAL(0, status);
        return shared;
    }
    static struct ta__pairs pairs;
    ucontext_t context;
    char thread[64];
    siginfo_t info = {.si_signo = fault.number, .si_code = fault.code}, second = {.si_signo = SIGILL};
    memset(&context, 0, sizeof context);
    if (fault.code > 0)
        info.si_addr = (void *)fault.address;
    else
        info.si_pid = fault.sender;
    context.uc_mcontext.gregs[REG_RIP] = 0x4000;
    context.uc_mcontext.gregs[REG_RSP] = 0x7000;
    context.uc_mcontext.gregs[REG_RBP] = 0x7100;
    context.uc_mcontext.gregs[REG_RCX] = fault.rcx;
    context.uc_mcontext.gregs[REG_TRAPNO] = fault.trap;
    context.uc_mcontext.gregs[REG_ERR] = fault.error;
    context.uc_mcontext.gregs[REG_RDI] = fault.rdi;
    context.uc_mcontext.gregs[REG_RAX] = fault.rax;
    context.uc_mcontext.gregs[REG_RIP + 1] = 0x500100; /* flags: no register that points anywhere */
    int before = ta__crash_is_noted() || *ta__crash_name() != '\0';
    ta__crash_note(fault.number, &info, &context);
    ta__crash_note(SIGILL, &second, &context); /* the first is the one */
    ta__crash_describe(&pairs);
    char *at = shared + sprintf(shared, "%s%s\n", before ? "noted before " : "", ta__crash_name());
    snprintf(thread, sizeof thread, "%d", (int)syscall(SYS_gettid));
    for (uint32_t i = 0; i < pairs.count; i++)
        if (i != 1 || strcmp(pairs.rows[i].key, "crash.thread") != 0 || strcmp(pairs.rows[i].value, thread) != 0)
            at += sprintf(at, "%s: %s\n", pairs.rows[i].key, pairs.rows[i].value);
    _exit(pairs.count > 1 && strcmp(pairs.rows[1].key, "crash.thread") == 0 ? 0 : 1);
#else
    (void)fault;
    TEST_IGNORE_MESSAGE("the registers of this architecture are not told");
    return "";
#endif
}

#define HEAD(name)           name "\ncrash.signal: " name "\n"
#define ONE_FRAME            "crash.frame.0: at 0x4000\n"
#define WORDS(expected, ...) TEST_ASSERT_EQUAL_STRING(expected, words_of((struct fault){__VA_ARGS__}))

static void test_every_cause_has_its_words(void)
{
    static const struct {
        int number, code;
        const char *name, *cause;
    } causes[] = {{SIGSEGV, SEGV_MAPERR, "SIGSEGV", "nothing is there"},
                  {SIGSEGV, SEGV_ACCERR, "SIGSEGV", "that is not allowed there"},
                  {SIGBUS, BUS_ADRALN, "SIGBUS", "not aligned"},
                  {SIGBUS, BUS_ADRERR, "SIGBUS", "behind the end of the mapped file, or no memory left for it"},
                  {SIGFPE, FPE_INTDIV, "SIGFPE", "integer division by zero"},
                  {SIGFPE, FPE_INTOVF, "SIGFPE", "integer overflow"},
                  {SIGFPE, FPE_FLTDIV, "SIGFPE", "division by zero"},
                  {SIGFPE, FPE_FLTINV, "SIGFPE", "invalid operation with floating-point numbers"},
                  {SIGILL, ILL_ILLOPN, "SIGILL", "illegal instruction"},
                  {SIGILL, ILL_ILLOPC, "SIGILL", "illegal instruction"},
                  {SIGTRAP, TRAP_BRKPT, "SIGTRAP", NULL},
                  {SIGSYS, 1, "SIGSYS", NULL},
                  {SIGFPE, FPE_FLTUND, "SIGFPE", NULL}};
    char expected[400];
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        const char *name = causes[i].name, *cause = causes[i].cause;
        snprintf(expected, sizeof expected, "%s\ncrash.signal: %s\ncrash.address: 0x40\n%s%s%s" ONE_FRAME, name, name,
                 cause != NULL ? "crash.cause: " : "", cause != NULL ? cause : "", cause != NULL ? "\n" : "");
        WORDS(expected, .number = causes[i].number, .code = causes[i].code, .address = 0x40);
    }
}

static void test_what_was_done_there_is_told_of_page_faults(void)
{
    WORDS(HEAD("SIGSEGV") "crash.address: 0x0\ncrash.access: read\ncrash.cause: nothing is there\n" ONE_FRAME,
          .number = SIGSEGV, .code = SEGV_MAPERR, .trap = 14, .error = 4);
    WORDS(HEAD("SIGSEGV") "crash.address: 0x0\ncrash.access: write\ncrash.cause: nothing is there\n" ONE_FRAME,
          .number = SIGSEGV, .code = SEGV_MAPERR, .trap = 14, .error = 6);
    WORDS(HEAD("SIGSEGV") "crash.address: 0x0\ncrash.access: execute\ncrash.cause: nothing is there\n" ONE_FRAME,
          .number = SIGSEGV, .code = SEGV_MAPERR, .trap = 14, .error = 20);
    WORDS(HEAD("SIGSEGV") "crash.address: 0x0\ncrash.cause: nothing is there\n" ONE_FRAME, .number = SIGSEGV,
          .code = SEGV_MAPERR, .trap = 13, .error = 6);
    WORDS(HEAD("SIGSEGV") "crash.cause: no such address can be\n" ONE_FRAME, .number = SIGSEGV, .code = SI_KERNEL,
          .trap = 13);
}

static void test_who_sent_it_is_told_unless_it_was_the_program(void)
{
    WORDS(HEAD("SIGABRT") ONE_FRAME, .number = SIGABRT, .code = SI_TKILL, .sender = 4711);
    WORDS(HEAD("SIGABRT") "crash.sender: 4712\n" ONE_FRAME, .number = SIGABRT, .code = SI_USER, .sender = 4712);
    WORDS(HEAD("SIGABRT") ONE_FRAME, .number = SIGABRT, .code = 1, .address = 0x40);
    WORDS(HEAD("SIGSEGV") ONE_FRAME, .number = SIGSEGV, .code = SI_USER, .sender = 0);
}

static void test_a_signal_that_is_no_fault_has_no_name(void)
{
    WORDS("\ncrash.signal: \n" ONE_FRAME, .number = SIGUSR1, .code = SI_USER, .sender = 4711);
}

static void test_frames_are_told_from_the_inside_40_at_most(void)
{
    char expected[3000] = HEAD("SIGABRT");
    steps = 2;
    WORDS(HEAD("SIGABRT") ONE_FRAME "crash.frame.1: at 0x400f\ncrash.frame.2: at 0x401f\n", .number = SIGABRT,
          .code = SI_TKILL, .sender = 4711);
    strcat(expected, ONE_FRAME);
    for (int i = 1; i < 40; i++)
        sprintf(expected + strlen(expected), "crash.frame.%d: at 0x%x\n", i, 0x4000 + 16 * i - 1);
    steps = 1000;
    WORDS(expected, .number = SIGABRT, .code = SI_TKILL, .sender = 4711);
}

/* ---- blocks ---- */

#define AT(address, words)                                                                                             \
    HEAD("SIGSEGV")                                                                                                    \
    "crash.address: " address "\ncrash.cause: that is not allowed there\n" ONE_FRAME "crash.block: " words "\n"
#define BLOCK(expected, at) WORDS(expected, .number = SIGSEGV, .code = SEGV_ACCERR, .address = at)

static void test_the_block_of_the_address_is_described(void)
{
    BLOCK(AT("0x500100", "0 bytes into a live block of 48 bytes"), 0x500100);
    BLOCK(AT("0x500101", "1 byte into a live block of 48 bytes"), 0x500101);
    BLOCK(AT("0x50012f", "47 bytes into a live block of 48 bytes"), 0x50012f);
    BLOCK(AT("0x500130", "0 bytes behind the end of a live block of 48 bytes"), 0x500130);
    BLOCK(AT("0x500135", "5 bytes behind the end of a live block of 48 bytes"), 0x500135);
    BLOCK(AT("0x5000f0", "16 bytes before a live block of 48 bytes"), 0x5000f0);
    around.is_live = 0;
    BLOCK(AT("0x500110", "16 bytes into freed memory, a place for 48 bytes"), 0x500110);
    BLOCK(AT("0x500140", "64 bytes into freed memory, a place for 48 bytes"), 0x500140);
    around.is_plain = 1;
    around.size = 1;
    BLOCK(AT("0x500110", "16 bytes into an untraced block, live or freed, of 1 byte"), 0x500110);
    TEST_ASSERT_NULL(
        strstr(words_of((struct fault){.number = SIGSEGV, .code = SI_USER, .address = 0x500100}), "block"));
}

static void test_who_allocated_it_is_told_24_frames_at_most(void)
{
    char expected[2000] = AT("0x500100", "0 bytes into a live block of 48 bytes");
    around.leaf = 2;
    BLOCK(AT("0x500100",
             "0 bytes into a live block of 48 bytes") "crash.block.frame.0: at 0x8ff\ncrash.block.frame.1: at 0x900\n",
          0x500100);
    for (int i = 0; i < 24; i++)
        sprintf(expected + strlen(expected), "crash.block.frame.%d: at 0x%x\n", i, 0x8ff + i);
    around.leaf = 100;
    BLOCK(expected, 0x500100);
}

/* The program counter's registers are named; each block once, with six frames. */
static void test_blocks_that_registers_point_into_are_told_once_each(void)
{
    WORDS(HEAD("SIGABRT") ONE_FRAME "crash.register.0: rdi: 0x500110, 16 bytes into a live block of 48 bytes\n"
                                    "crash.register.1: rax: 0x501100, 0 bytes into a live block of 48 bytes\n",
          .number = SIGABRT, .code = SI_TKILL, .sender = 4711, .rdi = 0x500110, .rax = 0x501100);
    WORDS(HEAD("SIGABRT") ONE_FRAME "crash.register.0: rdi: 0x500110, 16 bytes into a live block of 48 bytes\n",
          .number = SIGABRT, .code = SI_TKILL, .sender = 4711, .rdi = 0x500110, .rax = 0x500100);
    WORDS(HEAD("SIGABRT") ONE_FRAME
          "crash.register.0: rax: 0x501140, 16 bytes behind the end of a live block of 48 bytes\n",
          .number = SIGABRT, .code = SI_TKILL, .sender = 4711, .rdi = 0x500141, .rax = 0x501140);
    WORDS(HEAD("SIGABRT") ONE_FRAME "crash.register.0: rdi: 0x500110, 16 bytes into a live block of 48 bytes\n"
                                    "crash.register.1: rcx: 0x502100, 0 bytes into a live block of 48 bytes\n",
          .number = SIGABRT, .code = SI_TKILL, .sender = 4711, .rdi = 0x500110, .rax = 0x500100, .rcx = 0x502100);
    around.leaf = 9;
    WORDS(HEAD("SIGABRT") ONE_FRAME "crash.register.0: rdi: 0x500100, 0 bytes into a live block of 48 bytes\n"
                                    "crash.register.0.frame.0: at 0x8ff\ncrash.register.0.frame.1: at 0x900\n"
                                    "crash.register.0.frame.2: at 0x901\ncrash.register.0.frame.3: at 0x902\n"
                                    "crash.register.0.frame.4: at 0x903\ncrash.register.0.frame.5: at 0x904\n",
          .number = SIGABRT, .code = SI_TKILL, .sender = 4711, .rdi = 0x500100);
}

int main(void)
{
    shared = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    UNITY_BEGIN();
    RUN_TEST(test_every_cause_has_its_words);
    RUN_TEST(test_what_was_done_there_is_told_of_page_faults);
    RUN_TEST(test_who_sent_it_is_told_unless_it_was_the_program);
    RUN_TEST(test_a_signal_that_is_no_fault_has_no_name);
    RUN_TEST(test_frames_are_told_from_the_inside_40_at_most);
    RUN_TEST(test_the_block_of_the_address_is_described);
    RUN_TEST(test_who_allocated_it_is_told_24_frames_at_most);
    RUN_TEST(test_blocks_that_registers_point_into_are_told_once_each);
    return UNITY_END();
}
