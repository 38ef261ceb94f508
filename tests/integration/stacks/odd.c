/* odd.c: stacks that cannot be followed, and threads that nobody made properly; run by odd_stacks.sh with tracing on.
 *
 *   odd without PLUGIN    the plugin has no unwind tables: what is known is reported, cut short, and nothing breaks
 *   odd damaged PLUGIN    the same plugin with tables, which are damaged at random, many times; also its header
 *   odd itself            this program, its own tables damaged at random, many times
 *   odd small PLUGIN      each kind of request on a stack of 5000 bytes, with a page behind it that nobody may touch
 *   odd clone             clone(CLONE_VM) and vfork: another process in this address space, with this thread's variables
 *   odd work              allocates a little: what `itself` runs; ends with status 3 when stacks were cut short */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "tracealloc.h"

#define NOINLINE __attribute__((noinline, noclone))
#define KEEP(p)  __asm__ volatile("" : : "r"(p) : "memory")

typedef void *odd_descend(void *(*allocate)(size_t), int depth);

static void fail(const char *what, long number)
{
    fprintf(stderr, "odd: %s (%ld)\n", what, number);
    exit(1);
}

NOINLINE static void *allocate(size_t size)
{
    void *block = malloc(size);
    KEEP(block);
    return block;
}

/* Blocks of many sizes from below the plugin's frames, and everything that works must work. */
NOINLINE static void use(odd_descend *descend)
{
    void *blocks[60];
    for (int i = 0; i < 60; i++) {
        size_t total;
        void *frames[8] = {NULL};
        blocks[i] = descend(allocate, i % 20);
        memset(blocks[i], i, 64);
        if (ta_get_object_traceback(blocks[i], frames, 8, &total) == 0 || frames[0] == NULL)
            fail("a block has no trace at all", i);
    }
    for (int i = 0; i < 60; i++)
        if (*(unsigned char *)blocks[i] != i)
            fail("a block has lost its content", i);
        else
            free(blocks[i]);
}

static odd_descend *load(const char *path)
{
    void *object = dlopen(path, RTLD_NOW);
    odd_descend *descend = object != NULL ? (odd_descend *)dlsym(object, "odd_descend") : NULL;
    if (descend == NULL)
        fail(dlerror(), 0);
    return descend;
}

static uint64_t cut_short(void)
{
    struct ta_health health;
    ta_get_health(&health, sizeof health);
    return health.cut_short;
}

/* ---- no tables --------------------------------------------------------------------------------------------------- */

static void without_tables(const char *path)
{
    void *frames[64];
    size_t total;
    uint64_t before = cut_short();
    odd_descend *descend = load(path);
    void *block = descend(allocate, 9);
    size_t count = ta_get_object_traceback(block, frames, 64, &total);
    /* allocate, and the address in the plugin that called it: there the knowledge ends. */
    if (count != 2 || total != 2)
        fail("frames known", (long)count);
    Dl_info in;
    if (dladdr(frames[1], &in) == 0 || strcmp(in.dli_fname, path) != 0)
        fail("the last known frame is not the plugin's", 0);
    if (cut_short() == before)
        fail("nobody counts what is cut short", 0);
    free(block);
    use(descend);
}

/* ---- damaged tables ---------------------------------------------------------------------------------------------- */

struct file {
    unsigned char *bytes;
    size_t size;
};

static struct file read_file(const char *path)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &status) != 0)
        fail(path, 0);
    struct file file = {malloc((size_t)status.st_size), (size_t)status.st_size};
    if (read(descriptor, file.bytes, file.size) != status.st_size)
        fail(path, 1);
    close(descriptor);
    return file;
}

static void write_file(const char *path, const struct file *file)
{
    unlink(path);
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    if (descriptor < 0 || write(descriptor, file->bytes, file->size) != (ssize_t)file->size || close(descriptor) != 0)
        fail(path, 2);
}

static Elf64_Shdr section_of(const struct file *file, const char *wanted)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file->bytes;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(file->bytes + header->e_shoff);
    const char *names = (const char *)file->bytes + sections[header->e_shstrndx].sh_offset;
    for (int i = 0; i < header->e_shnum; i++)
        if (strcmp(names + sections[i].sh_name, wanted) == 0)
            return sections[i];
    fail(wanted, 3);
    return sections[0];
}

static unsigned random_state;

static unsigned some(unsigned below)
{
    random_state = random_state * 1103515245 + 12345;
    return (random_state >> 8) % below;
}

/* One way to spoil a section. */
static void damage(struct file *file, const char *name)
{
    Elf64_Shdr section = section_of(file, name);
    unsigned char *at = file->bytes + section.sh_offset;
    unsigned size = (unsigned)section.sh_size;
    unsigned begin = some(size);
    unsigned length = 1 + some(size - begin);
    switch (some(5)) {
    case 0:
        memset(at, some(2) ? 0 : 0xff, size);
        break;
    case 1:
        memset(at + begin, (int)some(256), length);
        break;
    case 2:
        for (unsigned i = 0; i < size; i++)
            at[i] = (unsigned char)some(256);
        break;
    case 3:
        memmove(at + begin, at, length);
        break;
    default:
        for (unsigned i = 0, n = 1 + some(40); i < n; i++)
            at[some(size)] ^= (unsigned char)(1u << some(8));
        break;
    }
}

enum { WAYS = 300, CUT_SHORT = 3 };

static int verdict(void)
{
    return cut_short() != 0 ? CUT_SHORT : 0;
}

static void each_damage(const char *path, void (*run)(const char *damaged))
{
    char place[] = "/tmp/tracealloc-odd-XXXXXX";
    char damaged[64];
    if (mkdtemp(place) == NULL)
        fail("mkdtemp", 0);
    snprintf(damaged, sizeof damaged, "%s/damaged", place);
    struct file sound = read_file(path);
    struct file file = {malloc(sound.size), sound.size};
    int bad = 0, cut = 0;
    for (int way = 0; way < WAYS; way++) {
        memcpy(file.bytes, sound.bytes, sound.size);
        random_state = (unsigned)way + 1;
        damage(&file, way % 3 == 0 ? ".eh_frame_hdr" : ".eh_frame");
        write_file(damaged, &file);
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            run(damaged);
            _exit(verdict());
        }
        int status;
        if (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == CUT_SHORT)
            cut++;
        else if (status != 0) {
            fprintf(stderr, "odd: way %d: status %x\n", way, (unsigned)status);
            bad++;
        }
    }
    unlink(damaged);
    rmdir(place);
    if (bad != 0)
        fail("ways to damage a table that broke the program", bad);
    if (cut < WAYS / 4)
        fail("hardly any stack met a damage", cut);
}

static void use_plugin(const char *damaged)
{
    use(load(damaged));
}

static void run_program(const char *damaged)
{
    execl(damaged, "odd", "work", (char *)NULL);
}

NOINLINE static void *descend_here(void *(*from)(size_t), int depth)
{
    void *block = depth > 0 ? descend_here(from, depth - 1) : from(100);
    KEEP(&block);
    return block;
}

/* ---- processes in this address space ----------------------------------------------------------------------------- */

static int child_body(void *result)
{
    void *blocks[100];
    for (int i = 0; i < 100; i++)
        blocks[i] = descend_here(allocate, i % 30);
    size_t total;
    *(int *)result = ta_get_object_traceback(blocks[99], NULL, 0, &total) != 0;
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
    return 0;
}

static void in_clones(void)
{
    enum { STACK = 256 << 10 };
    static const int flags[] = {CLONE_VM | SIGCHLD, CLONE_VM | CLONE_VFORK | SIGCHLD,
                                CLONE_VM | CLONE_FILES | CLONE_FS | SIGCHLD};
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t before, after;
    ta_get_traced_memory(&before, NULL);
    for (int i = 0; i < 60; i++) {
        volatile int is_traced = 0;
        int status;
        pid_t child = clone(child_body, stack + STACK, flags[i % 3], (void *)&is_traced);
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || !is_traced)
            fail("a clone", i);
        free(descend_here(allocate, i % 30));

        child = vfork(); /* it may do no such thing, and does */
        if (child == 0) {
            free(descend_here(allocate, 3));
            _exit(0);
        }
        if (waitpid(child, &status, 0) != child || status != 0)
            fail("vfork", i);
        use(descend_here);
    }
    ta_get_traced_memory(&after, NULL);
    if (after != before)
        fail("blocks of clones stay counted", (long)(after - before));
}

/* ---- small stacks ------------------------------------------------------------------------------------------------ */

enum { SMALL = 5000, PAGE = 4096 };
static ucontext_t outside, inside;
static odd_descend *descend_there;
static void *block;

static void by_plugin(void) /* whose module nobody has met */
{
    block = descend_there(allocate, 0);
}

static void large(void)
{
    block = malloc(300000);
}

static void larger(void)
{
    block = realloc(block, 40000000);
}

static void give(void)
{
    free(block);
    block = NULL;
}

static void aligned(void)
{
    block = aligned_alloc(4096, 5000);
}

static void many(void)
{
    for (int i = 0; i < 50000; i++)
        block = malloc((size_t)i % 2000);
}

static void with_little_stack(void (*run)(void))
{
    char *stack = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, PAGE, PROT_NONE) != 0)
        fail("no stack", 0);
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack + PAGE;
    inside.uc_stack.ss_size = SMALL;
    inside.uc_link = &outside;
    makecontext(&inside, run, 0);
    if (swapcontext(&outside, &inside) != 0)
        fail("no context", 0);
    munmap(stack, 3 * PAGE);
}

static void *on_small_stacks(void *plugin)
{
    static void (*const all[])(void) = {by_plugin, give, large, larger, give, aligned, give, many, give};
    descend_there = load(plugin);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        with_little_stack(all[i]);
    return plugin;
}

static void in_small_stacks(char *plugin)
{
    pthread_t thread;
    on_small_stacks(plugin);
    if (pthread_create(&thread, NULL, on_small_stacks, plugin) != 0)
        fail("no thread", 0);
    pthread_join(thread, NULL);
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "";
    if (!ta_is_tracing())
        fail("not tracing", 0);
    if (strcmp(what, "without") == 0 && count > 2)
        without_tables(words[2]);
    else if (strcmp(what, "damaged") == 0 && count > 2)
        each_damage(words[2], use_plugin);
    else if (strcmp(what, "small") == 0 && count > 2)
        in_small_stacks(words[2]);
    else if (strcmp(what, "itself") == 0)
        each_damage("/proc/self/exe", run_program);
    else if (strcmp(what, "clone") == 0)
        in_clones();
    else if (strcmp(what, "work") == 0) {
        use(descend_here);
        return verdict();
    } else
        return 2;
    return 0;
}
