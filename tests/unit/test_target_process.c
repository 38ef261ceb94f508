/* test_target_process.c: a live process as a target: what its mappings are called and how much of them there is, what its
 * pages are, its memory, its command, and its threads while they are held. The process is a child of the test. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/image/resident.h"
#include "analysis/image/target.h"
#include "base/error.h"

#include <unity.h>

enum { PAGE = TA__TARGET_PAGE, PAGES = 16, BYTES = PAGES * PAGE };

/* What the child says of itself. */
struct told {
    uint8_t *kept, *deleted, *shared, *hidden, *anonymous, *zeros, *written, *private_zero, *program, *replaced;
    unsigned long headers, stack;
    int tids[4];
    volatile int signals, may_end;
};
static struct told *told;
static char kept_path[64], deleted_path[64];
static pid_t child;
static int to_parent[2];
static struct ta__target target;
static int is_open;

static void hear(int descriptor)
{
    char byte;
    TEST_ASSERT_EQUAL_INT(1, (int)read(descriptor, &byte, 1));
}

static uint8_t *map(int rights, int flags, int file)
{
    void *at = mmap(NULL, BYTES, rights, flags, file, 0);
    if (at == MAP_FAILED)
        _exit(3);
    madvise(at, BYTES, MADV_NOHUGEPAGE);
    return at;
}

static int make_file(char *path, const char *begin)
{
    static const char text[BYTES] = "what the file has";
    snprintf(path, 64, "/tmp/%s.XXXXXX", begin);
    int file = mkstemp(path);
    if (file < 0 || write(file, text, BYTES) != BYTES)
        _exit(4);
    return file;
}

/* Page 2 and 5 of what is anonymous are touched, page 9 is read. */
static void make_mappings(void)
{
    volatile uint8_t seen;
    int kept = make_file(kept_path, "ta_kept"), gone = make_file(deleted_path, "ta_gone");
    told->kept = map(PROT_READ, MAP_PRIVATE, kept);
    told->written = map(PROT_READ | PROT_WRITE, MAP_PRIVATE, kept);
    told->replaced = map(PROT_READ, MAP_PRIVATE, kept);
    told->deleted = map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, gone);
    told->shared = map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    told->hidden = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    told->anonymous = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    int zero = open("/dev/zero", O_RDWR);
    told->private_zero = map(PROT_READ, MAP_PRIVATE, zero);
    memset(told->hidden, 'h', BYTES);
    mprotect(told->hidden, BYTES, PROT_NONE);
    told->anonymous[2 * PAGE] = 2;
    told->anonymous[5 * PAGE + 17] = 5;
    seen = told->anonymous[9 * PAGE];
    told->written[3 * PAGE] = 'w';
    seen = told->written[4 * PAGE];
    seen = told->kept[0];
    told->program = map(PROT_READ | PROT_WRITE, MAP_PRIVATE, open("/proc/self/exe", O_RDONLY));
    told->program[6 * PAGE + 5] = 'w'; /* reading would bring its neighbours along */
    mprotect(told->program, BYTES, PROT_READ);
    (void)seen;
}

static void on_signal(int number)
{
    (void)number;
    told->signals++;
    if (write(to_parent[1], "s", 1) != 1)
        _exit(5);
}

static void *wait_for_ever(void *number)
{
    int at = (int)(intptr_t)number;
    char name[] = "waiter one";
    name[9] = (char)('0' + at);
    prctl(PR_SET_NAME, at == 1 ? name : "fifteen letters");
    told->tids[at] = gettid();
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    if (write(to_parent[1], "t", 1) != 1)
        _exit(5);
    for (;;)
        pause();
    return NULL;
}

static void *end_first(void *unused)
{
    (void)unused;
    for (;;)
        pause();
    return NULL;
}

static void be_child(void (*also)(void))
{
    signal(SIGUSR1, on_signal);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "main one");
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    told->headers = getauxval(AT_PHDR);
    told->stack = getauxval(AT_RANDOM);
    told->tids[0] = gettid();
    also();
    if (write(to_parent[1], "r", 1) != 1)
        _exit(5);
    for (;;)
        pause();
}

static void start(void (*also)(void))
{
    child = fork();
    if (child == 0) {
        be_child(also);
        _exit(0);
    }
}

static void open_child(void)
{
    char number[16];
    snprintf(number, sizeof number, "%d", (int)child);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, ta__target_open(&target, number), ta__error_text());
    is_open = 1;
}

void setUp(void)
{
    void *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT_TRUE(at != MAP_FAILED);
    told = at;
    TEST_ASSERT_EQUAL_INT(0, pipe(to_parent));
    child = 0;
    is_open = 0;
}

void tearDown(void)
{
    if (is_open)
        ta__target_close(&target);
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    munmap(told, PAGE);
    close(to_parent[0]);
    close(to_parent[1]);
}

static void nothing_else(void)
{
}

/* ---- mappings ---------------------------------------------------------------------------------------------------- */

/* The child makes files whose names are its own: it tells them in its memory. */
static char *told_names;

static void make_and_tell(void)
{
    make_mappings();
    unlink(deleted_path);
    memcpy(told_names, kept_path, sizeof kept_path);
    memcpy(told_names + 64, deleted_path, sizeof deleted_path);
}

static void start_with_mappings(void)
{
    void *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT_TRUE(at != MAP_FAILED);
    told_names = at;
    start(make_and_tell);
    hear(to_parent[0]);
    memcpy(kept_path, told_names, sizeof kept_path);
    memcpy(deleted_path, told_names + 64, sizeof deleted_path);
    munmap(at, PAGE);
    unlink(kept_path); /* as soon as it is mapped: of it nothing stays */
    open_child();
}

static const struct ta__region *region_of(const void *address)
{
    const struct ta__region *region = ta__target_region(&target, (uintptr_t)address);
    TEST_ASSERT_NOT_NULL(region);
    TEST_ASSERT_TRUE(region->start <= (uintptr_t)address);
    return region;
}

static const struct ta__region *region_called(const char *name)
{
    for (size_t i = 0; i < target.region_count; i++)
        if (strcmp(ta__target_string(&target, target.regions[i].name), name) == 0)
            return &target.regions[i];
    return NULL;
}

static void expect_region(const void *address, const char *file, uint32_t flags)
{
    const struct ta__region *region = region_of(address);
    TEST_ASSERT_EQUAL_STRING(file, ta__target_string(&target, region->path));
    TEST_ASSERT_EQUAL_UINT32(flags, region->flags);
    TEST_ASSERT_EQUAL_UINT32(0, region->name);
}

static void test_mappings_have_files_rights_and_names(void)
{
    enum { READ = TA__REGION_READ, WRITE = TA__REGION_WRITE, FILED = TA__REGION_FILE, SHARED = TA__REGION_SHARED };
    enum { GONE = FILED | TA__REGION_DELETED };
    start_with_mappings();
    expect_region(told->kept, kept_path, READ | GONE); /* its file was deleted: that is no part of the name */
    expect_region(told->written, kept_path, READ | WRITE | GONE);
    expect_region(told->deleted, deleted_path, READ | WRITE | TA__REGION_EXECUTE | GONE | SHARED);
    expect_region(told->shared, "/dev/zero", READ | WRITE | GONE | SHARED);
    expect_region(told->private_zero, "/dev/zero", READ | FILED);
    expect_region(told->anonymous, "", READ | WRITE);
    expect_region(told->hidden, "", 0);
    const struct ta__region *kept = region_of(told->kept);
    TEST_ASSERT_EQUAL_HEX64((uintptr_t)told->kept, kept->start);
    TEST_ASSERT_EQUAL_HEX64((uintptr_t)told->kept + BYTES, kept->end);
    TEST_ASSERT_EQUAL_UINT64(0, kept->file_offset);
    TEST_ASSERT_EQUAL_UINT64(0, kept->rss);
    TEST_ASSERT_EQUAL_UINT32(TA__REGION_STACK, region_called("[stack]")->flags & TA__REGION_STACK);
    TEST_ASSERT_TRUE(told->stack >= region_called("[stack]")->start && told->stack < region_called("[stack]")->end);
    TEST_ASSERT_EQUAL_UINT32(TA__REGION_READ, region_called("[vvar]")->flags & (READ | FILED));
    TEST_ASSERT_EQUAL_UINT32(TA__REGION_SPECIAL, region_called("[vvar]")->flags & TA__REGION_SPECIAL);
    TEST_ASSERT_EQUAL_UINT32(0, region_called("[vdso]")->flags & (TA__REGION_SPECIAL | TA__REGION_STACK));
    for (size_t i = 1; i < target.region_count; i++)
        TEST_ASSERT_TRUE(target.regions[i].start >= target.regions[i - 1].end);
}

static void test_heap_of_the_program_is_marked(void)
{
    start_with_mappings();
    const struct ta__region *heap = region_called("[heap]");
    for (size_t i = 0; i < target.region_count; i++)
        TEST_ASSERT_EQUAL_INT(&target.regions[i] == heap, (target.regions[i].flags & TA__REGION_BRK) != 0);
}

static void test_offsets_are_those_of_the_file(void)
{
    start_with_mappings();
    size_t with_offset = 0;
    for (size_t i = 1; i < target.region_count; i++) {
        const struct ta__region *region = &target.regions[i], *before = region - 1;
        if (region->path == 0 || before->end != region->start || region->file_offset == 0 ||
            strcmp(ta__target_string(&target, region->path), ta__target_string(&target, before->path)) != 0)
            continue;
        TEST_ASSERT_TRUE(region->file_offset >= before->file_offset);
        with_offset++;
    }
    TEST_ASSERT_TRUE(with_offset > 0); /* segments of the program and its libraries */
}

static void test_sizes_are_known_when_they_are_asked_for(void)
{
    start_with_mappings();
    size_t before = target.region_count;
    TEST_ASSERT_EQUAL_INT(0, ta__target_refresh(&target, 1));
    TEST_ASSERT_EQUAL_size_t(before, target.region_count);
    TEST_ASSERT_EQUAL_UINT64(2 * PAGE, region_of(told->anonymous)->rss); /* the page of zeros is not counted */
    TEST_ASSERT_EQUAL_UINT64(2 * PAGE, region_of(told->anonymous)->pss);
    TEST_ASSERT_EQUAL_UINT64(0, region_of(told->anonymous)->swap);
    TEST_ASSERT_EQUAL_UINT64(BYTES, region_of(told->hidden)->rss);
    TEST_ASSERT_EQUAL_UINT64(0, region_of(told->shared)->rss);
    TEST_ASSERT_EQUAL_UINT64(0, region_of(told->private_zero)->rss);
    TEST_ASSERT_TRUE(region_of(told->written)->rss >= 2 * PAGE && region_of(told->written)->rss <= BYTES);
    TEST_ASSERT_EQUAL_UINT32(TA__REGION_READ | TA__REGION_WRITE, region_of(told->anonymous)->flags);
    TEST_ASSERT_EQUAL_UINT32(TA__REGION_SPECIAL, region_called("[vvar]")->flags & TA__REGION_SPECIAL);
    TEST_ASSERT_EQUAL_INT(0, ta__target_refresh(&target, 0));
    TEST_ASSERT_EQUAL_UINT64(0, region_of(told->anonymous)->rss);
    TEST_ASSERT_EQUAL_size_t(before, target.region_count);
}

/* ---- pages ------------------------------------------------------------------------------------------------------- */

static void expect_anonymous_pages(void)
{
    uint8_t states[PAGES];
    memset(states, 0x55, sizeof states);
    ta__target_pages(&target, (uintptr_t)told->anonymous, PAGES, states);
    for (size_t i = 0; i < PAGES; i++)
        if (i == 2 || i == 5)
            TEST_ASSERT_EQUAL_HEX8(TA__PAGE_PRESENT | TA__PAGE_ALONE, states[i]);
        else if (i != 9)
            TEST_ASSERT_EQUAL_HEX8(0, states[i]);
    TEST_ASSERT_EQUAL_HEX8(TA__PAGE_PRESENT, states[9] & (TA__PAGE_PRESENT | TA__PAGE_SWAPPED | TA__PAGE_FILE));
}

static void test_pages_are_told_apart(void)
{
    uint8_t states[PAGES];
    start_with_mappings();
    expect_anonymous_pages();
    ta__target_pages(&target, (uintptr_t)told->written, PAGES, states);
    TEST_ASSERT_EQUAL_HEX8(TA__PAGE_PRESENT | TA__PAGE_ALONE, states[3]);
    TEST_ASSERT_EQUAL_HEX8(TA__PAGE_PRESENT | TA__PAGE_FILE, states[4] & (uint8_t)~TA__PAGE_ALONE);
    ta__target_pages(&target, UINT64_C(1) << 62, 2, states);
    TEST_ASSERT_EQUAL_HEX8(0, states[0] | states[1]);
}

/* What the child has of the program's file: page 6, written to. */
static void expect_program_pages(void)
{
    uint8_t states[PAGES];
    ta__target_pages(&target, (uintptr_t)told->program, PAGES, states);
    for (size_t i = 0; i < PAGES; i++)
        TEST_ASSERT_EQUAL_HEX8(i == 6 ? TA__PAGE_PRESENT : 0, states[i] & TA__PAGE_PRESENT);
}

static void test_looking_at_files_makes_nothing_resident(void)
{
    static char wanted[BYTES], got[BYTES];
    int file = open("/proc/self/exe", O_RDONLY);
    TEST_ASSERT_EQUAL_INT(BYTES, (int)read(file, wanted, BYTES));
    close(file);
    wanted[6 * PAGE + 5] = 'w';
    start_with_mappings();
    expect_program_pages();
    for (size_t from = 0; from < 3 * PAGE; from += PAGE / 2 + 100) {
        TEST_ASSERT_EQUAL_INT(0, ta__target_read(&target, (uintptr_t)told->program + from, got, BYTES - from));
        TEST_ASSERT_EQUAL_MEMORY(wanted + from, got, BYTES - from);
    }
    expect_program_pages();
}

/* Its name is another file's now. */
static void test_file_that_was_replaced_is_read_where_it_is_mapped(void)
{
    char got[9];
    start_with_mappings();
    int other = open(kept_path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    TEST_ASSERT_EQUAL_INT(10, (int)write(other, "other text", 10));
    close(other);
    int result = ta__target_read(&target, (uintptr_t)told->replaced, got, sizeof got);
    unlink(kept_path);
    TEST_ASSERT_EQUAL_INT(0, result);
    TEST_ASSERT_EQUAL_MEMORY("what the ", got, sizeof got);
}

/* While it is held the system is asked for more pages than somebody wants, and they are remembered. */
static void test_pages_of_a_process_that_is_held_are_the_same(void)
{
    uint8_t one[PAGES], all[2000];
    start_with_mappings();
    TEST_ASSERT_EQUAL_INT(0, ta__target_hold(&target));
    expect_anonymous_pages();
    expect_anonymous_pages();
    uint64_t start = (uintptr_t)told->anonymous;
    for (int i = PAGES; i-- > 0;) {
        ta__target_pages(&target, start + (unsigned)i * PAGE, 1, one);
        TEST_ASSERT_EQUAL_INT(i == 2 || i == 5 || i == 9, (one[0] & TA__PAGE_PRESENT) != 0);
    }
    target.states.count = 0;
    ta__target_pages(&target, start - 1018 * PAGE, 1, one); /* what is remembered ends in the middle */
    ta__target_pages(&target, start, PAGES, one);
    TEST_ASSERT_EQUAL_INT(1, one[2] & TA__PAGE_PRESENT);
    TEST_ASSERT_EQUAL_INT(0, one[3] & TA__PAGE_PRESENT);
    TEST_ASSERT_EQUAL_INT(1, one[5] & TA__PAGE_PRESENT);
    ta__target_pages(&target, start - 1000 * PAGE, 2000, all);
    TEST_ASSERT_EQUAL_INT(1, all[1002] & TA__PAGE_PRESENT);
    TEST_ASSERT_EQUAL_INT(1, all[1005] & TA__PAGE_PRESENT);
    TEST_ASSERT_EQUAL_INT(0, all[1006] & TA__PAGE_PRESENT);
    ta__target_release(&target);
}

static void test_pages_are_taken_for_there_where_nobody_may_ask(void)
{
    uint8_t states[PAGES];
    start_with_mappings();
    int before = target.pagemap_descriptor;
    target.pagemap_descriptor = -1;
    ta__target_pages(&target, (uintptr_t)told->anonymous, PAGES, states);
    TEST_ASSERT_EACH_EQUAL_HEX8(TA__PAGE_PRESENT, states, PAGES);
    target.pagemap_descriptor = before;
}

static uint64_t resident_of(const void *mapping, size_t pages)
{
    struct ta__resident resident;
    TEST_ASSERT_EQUAL_INT(0, ta__resident_read(&resident, &target));
    uint64_t start = (uintptr_t)mapping, bytes = ta__resident_bytes(&resident, start, start + pages * PAGE);
    TEST_ASSERT_EQUAL_INT(0, resident.is_guess);
    ta__resident_free(&resident);
    return bytes;
}

/* A sanitizer has mappings whose pages nobody can look at one by one. */
static void leave_out_what_is_not_told(void)
{
    const void *const mappings[] = {told->anonymous, told->hidden, told->private_zero, told->written};
    size_t kept = 0;
    for (size_t i = 0; i < target.region_count; i++)
        for (size_t k = 0; k < 4; k++)
            if (target.regions[i].start == (uintptr_t)mappings[k])
                target.regions[kept++] = target.regions[i];
    TEST_ASSERT_EQUAL_size_t(4, kept);
    target.region_count = kept;
}

/* By the kernel's scan, where it has one, and page by page. */
static void test_resident_is_what_the_kernel_counts(void)
{
    start_with_mappings();
    TEST_ASSERT_EQUAL_INT(0, ta__target_refresh(&target, 1));
    leave_out_what_is_not_told();
    TEST_ASSERT_EQUAL_UINT64(2 * PAGE, resident_of(told->anonymous, PAGES));
    TEST_ASSERT_EQUAL_UINT64(PAGE, resident_of(told->anonymous, 5));
    TEST_ASSERT_EQUAL_UINT64(0, resident_of(told->anonymous, 2));
    TEST_ASSERT_EQUAL_UINT64(BYTES, resident_of(told->hidden, PAGES));
    TEST_ASSERT_EQUAL_UINT64(0, resident_of(told->private_zero, PAGES));
    TEST_ASSERT_EQUAL_UINT64(region_of(told->written)->rss, resident_of(told->written, PAGES));
    int before = target.pagemap_descriptor;
    target.pagemap_descriptor = -1; /* then each page is there that does not look like one that was never written */
    TEST_ASSERT_EQUAL_UINT64(2 * PAGE, resident_of(told->anonymous, PAGES));
    TEST_ASSERT_EQUAL_UINT64(BYTES, resident_of(told->hidden, PAGES));
    for (size_t i = 0; i < target.region_count; i++) /* no page behind a mapping counts */
        if (target.regions[i].start == (uintptr_t)told->hidden)
            target.regions[i].end -= 4 * PAGE;
    TEST_ASSERT_EQUAL_UINT64(BYTES - 4 * PAGE, resident_of(told->hidden, PAGES));
    target.pagemap_descriptor = before;
}

static void test_resident_bytes_of_any_range(void)
{
    struct ta__range runs[] = {{0x1000, 0x3000}, {0x5000, 0x6000}, {0x8000, 0x9000}};
    struct ta__resident resident = {.runs = runs, .count = 3};
    static const struct {
        uint64_t start, end, bytes;
    } cases[] = {{0, 0x1000, 0},
                 {0, 0x1001, 1},
                 {0x1000, 0x3000, 0x2000},
                 {0x2FFF, 0x5000, 1},
                 {0x3000, 0x5000, 0},
                 {0x3000, 0x5001, 1},
                 {0, 0x10000, 0x4000},
                 {0x1800, 0x8800, 0x3000},
                 {0x9000, 0x10000, 0},
                 {0x8FFF, 0x10000, 1},
                 {0x5000, 0x6000, 0x1000},
                 {0x1000, 0x1001, 1},
                 {0x8000, 0x9000, 0x1000},
                 {0x2000, 0x2100, 0x100},
                 {0x6000, 0x8000, 0},
                 {0x5FFF, 0x8001, 2},
                 {0, 1, 0},
                 {0x5800, 0x5900, 0x100},
                 {0x1000, 0x1000, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) { /* whatever was asked before */
            ta__resident_bytes(&resident, cases[k].start, cases[k].end);
            TEST_ASSERT_EQUAL_UINT64(cases[i].bytes, ta__resident_bytes(&resident, cases[i].start, cases[i].end));
        }
}

/* ---- memory and facts -------------------------------------------------------------------------------------------- */

static void test_memory_is_read_also_where_the_process_may_not(void)
{
    uint8_t bytes[2 * PAGE];
    start_with_mappings();
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(&target, (uintptr_t)told->anonymous + 5 * PAGE + 17, bytes, 1));
    TEST_ASSERT_EQUAL_INT(5, bytes[0]);
    TEST_ASSERT_EQUAL_INT(0, ta__target_hold(&target)); /* some kernels let none but debuggers */
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(&target, (uintptr_t)told->hidden + 7, bytes, 2 * PAGE));
    TEST_ASSERT_EACH_EQUAL_HEX8('h', bytes, 2 * PAGE);
    ta__target_release(&target);
    TEST_ASSERT_EQUAL_INT(-1, ta__target_read(&target, 4096, bytes, 1));
    TEST_ASSERT_EQUAL_INT(-1, ta__target_read(&target, UINT64_C(1) << 63, bytes, 1));
    TEST_ASSERT_EQUAL_UINT64(1000, ta__target_stored(&target, 1000, 2000));
    close(target.memory_descriptor);
    target.memory_descriptor = -1;
    TEST_ASSERT_EQUAL_INT(-1, ta__target_read(&target, (uintptr_t)told->hidden + 7, bytes, 1));
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(&target, (uintptr_t)told->anonymous, bytes, 1));
}

static unsigned long status_of(const char *format)
{
    char line[256], name[64];
    unsigned long number = 0;
    snprintf(name, sizeof name, "/proc/%d/status", (int)child);
    FILE *file = fopen(name, "r");
    TEST_ASSERT_NOT_NULL(file);
    while (fgets(line, sizeof line, file) != NULL && sscanf(line, format, &number) != 1)
        continue;
    fclose(file);
    return number;
}

static void test_process_says_what_it_is(void)
{
    char self[4096] = "", root[32];
    TEST_ASSERT_TRUE(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    start_with_mappings();
    TEST_ASSERT_EQUAL_INT(0, target.is_core);
    TEST_ASSERT_EQUAL_UINT32((uint32_t)child, target.pid);
    TEST_ASSERT_EQUAL_UINT32((uint32_t)child, target.inner);
    TEST_ASSERT_EQUAL_STRING(self, ta__target_string(&target, target.program));
    TEST_ASSERT_EQUAL_HEX64(told->headers, target.entry_phdr);
    TEST_ASSERT_EQUAL_HEX64(told->stack, target.on_first_stack);
    TEST_ASSERT_EQUAL_UINT64(getauxval(AT_PHNUM), target.entry_phdr_count);
    TEST_ASSERT_EQUAL_UINT64(1024 * status_of("VmPTE: %lu kB"), target.page_table_bytes);
    TEST_ASSERT_TRUE(target.page_table_bytes > 0);
    TEST_ASSERT_EQUAL_UINT64(1024 * status_of("VmSwap: %lu kB"), target.status_swap);
    snprintf(root, sizeof root, "/proc/%d/root", (int)child);
    TEST_ASSERT_EQUAL_STRING(root, target.root);
    int file = ta__target_open_file(&target, self);
    TEST_ASSERT_TRUE(file >= 0);
    close(file);
}

static void test_command_is_the_words_with_spaces_between(void)
{
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(to_parent[1], STDOUT_FILENO);
        execl("/bin/sh", "a shell", "-c", "echo; kill -STOP $$", "", "last", "", "", (char *)NULL);
        _exit(1);
    }
    hear(to_parent[0]);
    open_child();
    TEST_ASSERT_EQUAL_STRING("a shell -c echo; kill -STOP $$  last", ta__target_string(&target, target.command));
}

static void test_program_that_is_gone_is_told_so(void)
{
    char number[16], text[64];
    start(nothing_else);
    hear(to_parent[0]);
    open_child();
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    TEST_ASSERT_EQUAL_INT(-1, ta__target_refresh(&target, 0));
    snprintf(text, sizeof text, "process %d: there is no such process", (int)child);
    TEST_ASSERT_EQUAL_STRING(text, ta__error_text());
    TEST_ASSERT_EQUAL_INT(-1, ta__target_hold(&target));
    TEST_ASSERT_EQUAL_STRING(text, ta__error_text());
    TEST_ASSERT_EQUAL_INT(0, target.is_held);
    ta__target_close(&target);
    is_open = 0;
    snprintf(number, sizeof number, "%d", (int)child);
    TEST_ASSERT_EQUAL_INT(-1, ta__target_open(&target, number));
    TEST_ASSERT_EQUAL_STRING(text, ta__error_text());
    child = 0;
}

/* ---- holding ----------------------------------------------------------------------------------------------------- */

static void make_waiters(void)
{
    pthread_t thread;
    for (intptr_t i = 1; i <= 2; i++)
        pthread_create(&thread, NULL, wait_for_ever, (void *)i);
}

static void start_with_threads(void)
{
    start(make_waiters);
    for (int i = 0; i < 3; i++)
        hear(to_parent[0]);
    open_child();
}

static char state_of(int tid)
{
    char text[512] = "", name[64];
    snprintf(name, sizeof name, "/proc/%d/task/%d/stat", (int)child, tid);
    FILE *file = fopen(name, "r");
    TEST_ASSERT_NOT_NULL(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    TEST_ASSERT_TRUE(length > 0);
    return strrchr(text, ')')[2];
}

static const struct ta__target_thread *thread_of(int tid)
{
    for (size_t i = 0; i < target.thread_count; i++)
        if (target.threads[i].tid == (uint32_t)tid)
            return &target.threads[i];
    TEST_FAIL_MESSAGE("a thread is missing");
    return NULL;
}

static void expect_held(void)
{
    static const char *const names[] = {"main one", "waiter on1", "fifteen letters"};
    TEST_ASSERT_EQUAL_size_t(3, target.thread_count);
    for (int i = 0; i < 3; i++) {
        const struct ta__target_thread *thread = thread_of(told->tids[i]);
        char name[17] = "";
        memcpy(name, thread->name, 16);
        TEST_ASSERT_EQUAL_STRING(names[i], name);
        TEST_ASSERT_EQUAL_INT('t', state_of(told->tids[i]));
        const struct ta__region *region = ta__target_region(&target, thread->sp);
        TEST_ASSERT_NOT_NULL(region);
        TEST_ASSERT_EQUAL_INT(i == 0, (region->flags & TA__REGION_STACK) != 0);
        TEST_ASSERT_TRUE(ta__target_region(&target, thread->ip)->flags & TA__REGION_EXECUTE);
        TEST_ASSERT_TRUE(thread->register_count > 0);
    }
}

/* They go on, and wait again for what they waited for. */
static void expect_running(void)
{
    for (int i = 0; i < 3; i++)
        for (int tries = 0; tries < 100000 && state_of(told->tids[i]) != 'S'; tries++)
            usleep(100);
    for (int i = 0; i < 3; i++)
        TEST_ASSERT_EQUAL_INT('S', state_of(told->tids[i]));
}

static void test_threads_are_held_with_names_and_registers(void)
{
    start_with_threads();
    TEST_ASSERT_EQUAL_INT(0, ta__target_hold(&target));
    TEST_ASSERT_EQUAL_INT(1, target.is_held);
    expect_held();
    TEST_ASSERT_EQUAL_INT(0, ta__target_hold(&target)); /* it is held already */
    expect_held();
    ta__target_release(&target);
    TEST_ASSERT_EQUAL_INT(0, target.is_held);
    TEST_ASSERT_TRUE(target.held_ns > 0 && target.held_ns < UINT64_C(100) * 1000000000);
    expect_running();
    uint64_t once = target.held_ns;
    TEST_ASSERT_EQUAL_INT(0, ta__target_hold(&target));
    expect_held();
    ta__target_release(&target);
    TEST_ASSERT_TRUE(target.held_ns > once);
    ta__target_release(&target); /* nothing is held */
    expect_running();
}

static void test_closing_lets_go(void)
{
    start_with_threads();
    TEST_ASSERT_EQUAL_INT(0, ta__target_hold(&target));
    ta__target_close(&target);
    is_open = 0;
    expect_running();
}

static void test_thread_that_is_nudged_goes_on_and_stands_again(void)
{
    start_with_threads();
    TEST_ASSERT_EQUAL_INT(0, ta__target_hold(&target));
    size_t first = (size_t)(thread_of(told->tids[0]) - target.threads);
    kill(child, SIGUSR1); /* it waits until the thread goes on */
    target.threads[first].sp = 1;
    TEST_ASSERT_EQUAL_INT(0, ta__target_nudge(&target, first, 100));
    expect_held();
    ta__target_release(&target);
    hear(to_parent[0]);
    TEST_ASSERT_EQUAL_INT(1, told->signals);
    TEST_ASSERT_EQUAL_INT(-1, ta__target_nudge(&target, first, 100)); /* it is not held */
    expect_running();
}

/* Whether it arrives before a stop, at it or after it: each signal is handled once. */
static void test_no_signal_is_lost_or_doubled_by_holding(void)
{
    start_with_threads();
    for (int i = 1; i <= 100; i++) {
        kill(child, SIGUSR1);
        TEST_ASSERT_EQUAL_INT(0, ta__target_hold(&target));
        TEST_ASSERT_EQUAL_size_t(3, target.thread_count);
        ta__target_release(&target);
        hear(to_parent[0]);
        TEST_ASSERT_EQUAL_INT(i, told->signals);
    }
    TEST_ASSERT_EQUAL_INT(0, ta__target_hold(&target));
    kill(child, SIGUSR1);
    ta__target_release(&target);
    hear(to_parent[0]);
    TEST_ASSERT_EQUAL_INT(101, told->signals);
}

static void leave_another_behind(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_ever, (void *)1);
    pthread_create(&thread, NULL, end_first, NULL);
    if (write(to_parent[1], "r", 1) != 1)
        _exit(5);
    while (!told->may_end)
        usleep(100);
    pthread_exit(NULL);
}

static void test_main_thread_that_has_ended_is_left_out(void)
{
    char number[16], text[100];
    struct ta__target again;
    start(leave_another_behind);
    hear(to_parent[0]);
    hear(to_parent[0]);
    open_child();
    told->may_end = 1;
    while (state_of(told->tids[0]) != 'Z')
        usleep(100);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, ta__target_hold(&target), ta__error_text());
    TEST_ASSERT_EQUAL_size_t(2, target.thread_count);
    TEST_ASSERT_EQUAL_INT('t', state_of((int)target.threads[0].tid));
    thread_of(told->tids[1]);
    ta__target_release(&target);
    snprintf(number, sizeof number, "%d", (int)child);
    snprintf(text, sizeof text, "process %d has ended, or its main thread has, by which it is looked at", (int)child);
    TEST_ASSERT_EQUAL_INT(-1, ta__target_open(&again, number));
    TEST_ASSERT_EQUAL_STRING(text, ta__error_text());
}

static void test_process_that_has_ended_is_told_so(void)
{
    char text[100];
    start(nothing_else);
    hear(to_parent[0]);
    open_child();
    kill(child, SIGKILL);
    while (state_of((int)child) != 'Z')
        usleep(100);
    snprintf(text, sizeof text, "process %d has ended", (int)child);
    TEST_ASSERT_EQUAL_INT(-1, ta__target_hold(&target));
    TEST_ASSERT_EQUAL_STRING(text, ta__error_text());
    TEST_ASSERT_EQUAL_INT(0, target.is_held);
    char number[16];
    struct ta__target again;
    snprintf(number, sizeof number, "%d", (int)child);
    snprintf(text, sizeof text, "process %d has ended, or its main thread has, by which it is looked at", (int)child);
    TEST_ASSERT_EQUAL_INT(-1, ta__target_open(&again, number));
    TEST_ASSERT_EQUAL_STRING(text, ta__error_text());
    snprintf(text, sizeof text, "process %d has no memory, or", (int)child);
    TEST_ASSERT_EQUAL_INT(-1, ta__target_refresh(&target, 0));
    TEST_ASSERT_EQUAL_STRING_LEN(text, ta__error_text(), strlen(text));
}

static void test_process_that_is_being_debugged_is_not_held(void)
{
    char text[300];
    start_with_threads();
    int ends[2];
    char answer = 'n';
    TEST_ASSERT_EQUAL_INT(0, pipe(ends));
    pid_t debugger = fork();
    if (debugger == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        answer = ptrace(PTRACE_SEIZE, told->tids[2], NULL, NULL) == 0 ? 'y' : 'n';
        if (write(ends[1], &answer, 1) == 1)
            pause();
        _exit(0);
    }
    TEST_ASSERT_EQUAL_INT(1, (int)read(ends[0], &answer, 1));
    int result = ta__target_hold(&target);
    kill(debugger, SIGKILL);
    waitpid(debugger, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    if (answer != 'y')
        TEST_IGNORE_MESSAGE("no other process may be a debugger here");
    snprintf(text, sizeof text,
             "process %d cannot be held still: it is being debugged, or not yours, or ptrace is restricted "
             "(/proc/sys/kernel/yama/ptrace_scope); --no-pause looks without",
             (int)child);
    TEST_ASSERT_EQUAL_INT(-1, result);
    TEST_ASSERT_EQUAL_STRING(text, ta__error_text());
    TEST_ASSERT_EQUAL_INT(0, target.is_held);
    expect_running(); /* also those that were held already */
}

int main(void)
{
    alarm(60); /* a signal that is lost would be waited for without end */
    UNITY_BEGIN();
    RUN_TEST(test_mappings_have_files_rights_and_names);
    RUN_TEST(test_heap_of_the_program_is_marked);
    RUN_TEST(test_offsets_are_those_of_the_file);
    RUN_TEST(test_sizes_are_known_when_they_are_asked_for);
    RUN_TEST(test_pages_are_told_apart);
    RUN_TEST(test_looking_at_files_makes_nothing_resident);
    RUN_TEST(test_file_that_was_replaced_is_read_where_it_is_mapped);
    RUN_TEST(test_pages_of_a_process_that_is_held_are_the_same);
    RUN_TEST(test_pages_are_taken_for_there_where_nobody_may_ask);
    RUN_TEST(test_resident_is_what_the_kernel_counts);
    RUN_TEST(test_resident_bytes_of_any_range);
    RUN_TEST(test_memory_is_read_also_where_the_process_may_not);
    RUN_TEST(test_process_says_what_it_is);
    RUN_TEST(test_command_is_the_words_with_spaces_between);
    RUN_TEST(test_program_that_is_gone_is_told_so);
    RUN_TEST(test_threads_are_held_with_names_and_registers);
    RUN_TEST(test_closing_lets_go);
    RUN_TEST(test_thread_that_is_nudged_goes_on_and_stands_again);
    RUN_TEST(test_no_signal_is_lost_or_doubled_by_holding);
    RUN_TEST(test_main_thread_that_has_ended_is_left_out);
    RUN_TEST(test_process_that_has_ended_is_told_so);
    RUN_TEST(test_process_that_is_being_debugged_is_not_held);
    return UNITY_END();
}
