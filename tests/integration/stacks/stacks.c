/* stacks.c: stacks of every kind, with allocations on them; run by check_stacks.sh with the checking library, which
 * compares each captured stack with others' opinions. Each subject is a function; its name is the argument. */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define KEEP(p)  __asm__ volatile("" : : "r"(p) : "memory")

static unsigned random_state = 1;

static unsigned some(unsigned below)
{
    random_state = random_state * 1103515245 + 12345;
    return (random_state >> 16) % below;
}

static void pair(size_t size)
{
    void *block = malloc(size);
    KEEP(block);
    free(block);
}

/* ---- random trees of calls, with all kinds of frames ------------------------------------------------------------- */

NOINLINE static void tree(int depth);

NOINLINE static void with_alloca(int depth)
{
    char *room = alloca(16 + some(2000));
    KEEP(room);
    tree(depth);
    KEEP(room);
}

NOINLINE static void with_alignment(int depth)
{
    _Alignas(64) char room[128];
    KEEP(room);
    tree(depth);
    KEEP(room);
}

__attribute__((noinline, noclone, optimize("no-omit-frame-pointer"))) static void with_frame_pointer(int depth)
{
    volatile int kept = depth;
    tree(depth);
    kept = kept + 1;
}

static int compare_and_go(const void *a, const void *b)
{
    int depth = *(const int *)a;
    if (depth == *(const int *)b)
        tree(depth);
    return 0;
}

NOINLINE static void through_qsort(int depth)
{
    int both[2] = {depth, depth};
    qsort(both, 2, sizeof both[0], compare_and_go);
    KEEP(both);
}

NOINLINE static void tree(int depth)
{
    pair(8 + some(500));
    if (depth <= 0)
        return;
    for (unsigned i = 0, n = 1 + some(2); i < n; i++) {
        switch (some(5)) {
        case 0:
            with_alloca(depth - 1);
            break;
        case 1:
            with_alignment(depth - 1);
            break;
        case 2:
            with_frame_pointer(depth - 1);
            break;
        case 3:
            through_qsort(depth - 1);
            break;
        default:
            tree(depth - 1);
            break;
        }
        if (some(3) == 0)
            pair(24);
    }
    pair(8);
}

static void trees(void)
{
    for (int i = 0; i < 60; i++)
        tree((int)some(14));
}

/* ---- equal sp and ip, another fp ----------------------------------------------------------------------------------
 * Three frames take as much room together each time, but share it differently: the innermost has one sp and one return
 * address, whatever lies between. Nothing is written into the room, so that the words of an earlier stack are still in
 * their places. All that tells is fp. */

enum { ALL_ROOM = 8192 };

NOINLINE static void plain_pair(size_t size)
{
    pair(size);
    pair(size + 8);
}

/* Needs no frame pointer, saves the one of those further out, and uses the register for something else. */
__attribute__((noipa)) static unsigned busy(unsigned a)
{
    unsigned b = a * 3 + 1, c = a ^ 5, d = a / 7, e = a + 11, f = a * a;
    plain_pair(8);
    unsigned mixed = b * c + d * e + f;
    pair(16);
    return mixed ^ a ^ (b << 1) ^ (c << 2) ^ (d << 3) ^ (e << 4) ^ (f << 5);
}

NOINLINE static void innermost(unsigned room, int is_busy)
{
    char *unused = alloca(room);
    KEEP(unused);
    if (is_busy)
        KEEP(busy(7));
    else
        plain_pair(24);
    KEEP(unused);
}

NOINLINE static void to_the_left(unsigned room, unsigned rest, int is_busy)
{
    char *unused = alloca(room);
    KEEP(unused);
    innermost(rest - room, is_busy);
    KEEP(unused);
}

NOINLINE static void to_the_right(unsigned room, unsigned rest, int is_busy)
{
    char *unused = alloca(room);
    KEEP(unused);
    innermost(rest - room, is_busy);
    KEEP(unused + 1);
}

NOINLINE static void to_a_side(unsigned room, unsigned next, int is_busy)
{
    char *unused = alloca(room);
    KEEP(unused);
    if (some(2) != 0)
        to_the_left(next, ALL_ROOM - room, is_busy);
    else
        to_the_right(next, ALL_ROOM - room, is_busy);
    KEEP(unused);
}

static void same_places(void)
{
    for (int i = 0; i < 4000; i++)
        to_a_side(16 * some(20), 16 * some(20), i / 100 % 2);
}

/* ---- longjmp ----------------------------------------------------------------------------------------------------- */

static jmp_buf place;

NOINLINE static void down_and_jump(int depth)
{
    pair(16);
    if (depth == 0)
        longjmp(place, 1);
    down_and_jump(depth - 1);
    KEEP(&depth);
}

static void longjmps(void)
{
    for (int i = 0; i < 400; i++) {
        if (setjmp(place) == 0)
            down_and_jump((int)some(40));
        pair(32);
    }
}

/* ---- coroutines on stacks that come and go ----------------------------------------------------------------------- */

static ucontext_t scheduler, coroutine[3];

static void body(int depth)
{
    for (int i = 0; i < 8; i++) {
        tree(depth);
        swapcontext(&coroutine[depth % 3], &scheduler);
        pair(40);
    }
}

static void coroutines(void)
{
    enum { STACK = 256 << 10 };
    for (int round = 0; round < 10; round++) {
        void *stacks[3];
        for (int i = 0; i < 3; i++) {
            /* By turns a mapping of its own and memory of malloc's. */
            stacks[i] = round % 2 ? malloc(STACK)
                                  : mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            getcontext(&coroutine[i]);
            coroutine[i].uc_stack = (stack_t){.ss_sp = stacks[i], .ss_size = STACK};
            coroutine[i].uc_link = &scheduler;
            makecontext(&coroutine[i], (void (*)(void))(void *)body, 1, 3 + i);
        }
        for (int turn = 0; turn < 24; turn++) {
            swapcontext(&scheduler, &coroutine[turn % 3]);
            pair(8);
        }
        for (int i = 0; i < 3; i++) {
            if (round % 2)
                free(stacks[i]);
            else
                munmap(stacks[i], STACK);
            pair(8);
        }
    }
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t signals_seen;

static void on_signal(int number)
{
    (void)number;
    signals_seen++;
    pair(100);
    tree(2);
}

static void install(int number, int flags)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    sigaction(number, &action, NULL);
}

static void raised_signals(void)
{
    stack_t alternate = {.ss_size = 256 << 10};
    alternate.ss_sp = mmap(NULL, alternate.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&alternate, NULL);
    for (int i = 0; i < 300; i++) {
        install(SIGUSR1, i % 2 ? SA_ONSTACK : 0);
        tree((int)some(4));
        raise(SIGUSR1);
    }
}

/* On one's own code alone: between allocations any place may be interrupted, and malloc itself is not. */
NOINLINE static unsigned long work(unsigned long n)
{
    unsigned long sum = 0;
    for (unsigned long i = 0; i < n; i++)
        sum += i * i ^ sum >> 3;
    return sum;
}

NOINLINE static unsigned long work_deep(int depth, unsigned long n)
{
    unsigned long result = depth > 0 ? work_deep(depth - 1, n) + 1 : work(n);
    KEEP(&result);
    return result;
}

static void timed_signals(void)
{
    stack_t alternate = {.ss_size = 256 << 10};
    alternate.ss_sp = mmap(NULL, alternate.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&alternate, NULL);
    install(SIGPROF, SA_ONSTACK | SA_RESTART);
    struct itimerval often = {{0, 1000}, {0, 1000}};
    struct itimerval never = {{0, 0}, {0, 0}};
    sigset_t profile;
    sigemptyset(&profile);
    sigaddset(&profile, SIGPROF);
    setitimer(ITIMER_PROF, &often, NULL);
    while (signals_seen < 60) {
        work_deep((int)some(30), 20000);
        sigprocmask(SIG_BLOCK, &profile, NULL); /* malloc is not for handlers to interrupt */
        tree(1);
        sigprocmask(SIG_UNBLOCK, &profile, NULL);
    }
    setitimer(ITIMER_PROF, &never, NULL);
}

/* The same without mercy: malloc is interrupted too. */
static void rude_signals(void)
{
    install(SIGPROF, SA_RESTART);
    struct itimerval often = {{0, 1000}, {0, 1000}};
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &often, NULL);
    for (int i = 0; i < 200 || signals_seen < 20; i++)
        tree((int)some(5));
    setitimer(ITIMER_PROF, &never, NULL);
}

/* And on an alternate stack, which the thread leaves by returning or, from its own code only, by jumping. */
static sigjmp_buf out_of_handler;
static volatile sig_atomic_t may_jump;

static void on_signal_elsewhere(int number)
{
    on_signal(number);
    if (may_jump)
        siglongjmp(out_of_handler, 1);
}

static void rude_alternate_signals(void)
{
    stack_t alternate = {.ss_size = 256 << 10};
    alternate.ss_sp = mmap(NULL, alternate.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_handler = on_signal_elsewhere, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    struct itimerval often = {{0, 1000}, {0, 1000}};
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &often, NULL);
    for (int i = 0; i < 200 || signals_seen < 40; i++) {
        tree((int)some(5));
        if (i % 50 == 0 && sigsetjmp(out_of_handler, 1) == 0) {
            may_jump = 1;
            for (;;)
                work_deep((int)some(30), 20000);
        }
        may_jump = 0;
    }
    setitimer(ITIMER_PROF, &never, NULL);
}

/* ---- objects that come and go ------------------------------------------------------------------------------------ */

static void plugins(void)
{
    char *paths[8];
    int count = 0;
    for (char *path = strtok(getenv("STACKS_PLUGINS"), " "); path != NULL && count < 8; path = strtok(NULL, " "))
        paths[count++] = path;
    for (int i = 0; i < 100; i++) {
        void *object = dlopen(paths[i < 6 ? 0 : some((unsigned)count)], RTLD_NOW); /* the first is known well */
        if (object == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            exit(1);
        }
        void (*allocate)(void (*)(size_t), int) = (void (*)(void (*)(size_t), int))dlsym(object, "plugin_allocate");
        allocate(pair, 3);
        allocate(pair, 1);
        dlclose(object);
    }
}

/* ---- threads and depth ------------------------------------------------------------------------------------------- */

static void *small_thread(void *argument)
{
    tree(2);
    return argument;
}

static void small_threads(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, 16 << 10) != 0)
        exit(1);
    for (int i = 0; i < 50; i++) {
        pthread_t threads[4];
        for (int t = 0; t < 4; t++)
            if (pthread_create(&threads[t], &attributes, small_thread, NULL) != 0)
                exit(1);
        for (int t = 0; t < 4; t++)
            pthread_join(threads[t], NULL);
    }
}

NOINLINE static void down(int depth)
{
    if (depth % 997 == 0)
        pair(8);
    if (depth > 0)
        down(depth - 1);
    if (depth % 499 == 0)
        pair(16);
    KEEP(&depth);
}

static void *deep_thread(void *argument)
{
    down(9000);
    down(80000); /* deeper than is remembered */
    return argument;
}

static void recursion(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 20);
    if (pthread_create(&thread, &attributes, deep_thread, NULL) != 0)
        exit(1);
    pthread_join(thread, NULL);
}

static void forks(void)
{
    for (int i = 0; i < 10; i++) {
        tree(3);
        pid_t child = fork();
        if (child == 0) {
            tree(4);
            exit(0);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status != 0)
            exit(1);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} subjects[] = {
    {"trees", trees},
    {"same_places", same_places},
    {"longjmps", longjmps},
    {"coroutines", coroutines},
    {"raised_signals", raised_signals},
    {"timed_signals", timed_signals},
    {"rude_signals", rude_signals},
    {"rude_alternate_signals", rude_alternate_signals},
    {"plugins", plugins},
    {"small_threads", small_threads},
    {"recursion", recursion},
    {"forks", forks},
};

int main(int count, char **words)
{
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        if (count < 2)
            puts(subjects[i].name);
        else if (strcmp(words[1], subjects[i].name) == 0) {
            subjects[i].run();
            return 0;
        }
    return count < 2 ? 0 : 2;
}
