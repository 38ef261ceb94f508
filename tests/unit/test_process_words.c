/* test_process_words.c: what an entry says of its process, pair by pair (snapshot/write/process_facts.h,
 * snapshot/triggers/memory_kinds.h), from files of /proc that are made up here. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <unity.h>

#include "base/memory.h"
#include "snapshot/triggers/memory_kinds.h"
#include "snapshot/triggers/stack_step.h"

/* ---- the kernel ---- */

static struct {
    const char *name;
    const char *text; /* NULL: it cannot be read */
    size_t length;    /* 0 = as the text says */
    int reads;
} files[] = {{"/proc/self/cmdline", "", 0, 0}, {"/proc/self/status", "", 0, 0}, {"/proc/4711/stat", "", 0, 0},
             {"/proc/self/smaps", "", 0, 0},   {"/proc/self/maps", "", 0, 0},   {"/proc/self/statm", "", 0, 0}};
enum { CMDLINE, STATUS, STAT, SMAPS, MAPS, STATM, FILES };

int open(const char *name, int flags, ...)
{
    (void)flags;
    for (int i = 0; i < FILES; i++)
        if (strcmp(name, files[i].name) == 0) {
            files[i].reads++;
            if (files[i].text == NULL)
                return errno = ENOENT, -1;
            int file = (int)syscall(SYS_memfd_create, "x", 0);
            size_t length = files[i].length != 0 ? files[i].length : strlen(files[i].text);
            TEST_ASSERT_EQUAL(length, write(file, files[i].text, length));
            lseek(file, 0, SEEK_SET);
            return file;
        }
    return errno = ENOENT, -1;
}

pid_t getpid(void)
{
    return 4711;
}

pid_t getppid(void)
{
    return 42;
}

static uint64_t look_ns, clock_ns; /* of the processor: what each look costs */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    TEST_ASSERT_EQUAL(CLOCK_THREAD_CPUTIME_ID, clock);
    *now = (struct timespec){(time_t)(clock_ns / 1000000000), (long)(clock_ns % 1000000000)};
    clock_ns += look_ns;
    return 0;
}

/* ---- who mapped ---- */

static struct {
    uint64_t start, length;
} owned[20];
static unsigned owned_count;

static void own(uint64_t start, uint64_t length, uint32_t who)
{
    ta__mapping_note((const void *)(uintptr_t)start, length, who);
    owned[owned_count].start = start;
    owned[owned_count++].length = length;
}

static void own_nothing(void)
{
    while (owned_count-- > 0)
        ta__mapping_forget((const void *)(uintptr_t)owned[owned_count].start, owned[owned_count].length);
    owned_count = 0;
}

static const struct ta__mmap_site site_7 = {{0x101, 0x201, 0x301}}, site_8 = {{0x401}};

const struct ta__mmap_site *ta__mmap_site(uint32_t site)
{
    return site == 7 ? &site_7 : site == 8 ? &site_8 : NULL;
}

void ta__place_text(struct ta__message *message, uint64_t ip)
{
    ta__message_begin_plain(message);
    ta__message_hex(message, ip);
    message->text[message->length] = '\0';
}

/* ---- around ---- */

static struct ta__pairs pairs;
static size_t mapped_before;

void setUp(void)
{
    static const char *const texts[FILES] = {"", "", "", "", "", "1 1 1"};
    for (int i = 0; i < FILES; i++) {
        files[i].text = texts[i];
        files[i].length = 0;
        files[i].reads = 0;
    }
    pairs.count = pairs.used = 0;
    look_ns = 100000;
    ta__memory_kinds_forget();
    mapped_before = ta__memory_mapped();
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
    own_nothing();
    TEST_ASSERT_EQUAL(mapped_before, ta__memory_mapped());
}

static const char *words(void)
{
    static char text[20000];
    char *at = text;
    *at = '\0';
    for (uint32_t i = 0; i < pairs.count; i++)
        at += sprintf(at, "%s=%s\n", pairs.rows[i].key, pairs.rows[i].value);
    pairs.count = pairs.used = 0;
    return text;
}

/* ---- pairs ---- */

static void test_pairs_are_added_as_long_as_there_is_room(void)
{
    static char large[TA__PAIRS_TEXT + 1];
    memset(large, 'x', sizeof large - 1);
    ta__pairs_add(&pairs, "a", "1");
    ta__pairs_add(&pairs, "b", "");
    ta__pairs_add_number(&pairs, "c", UINT64_MAX);
    ta__pairs_add_keyed(&pairs, "d", 0);
    ta__pairs_add_row(&pairs, "e.", 17, "x");
    TEST_ASSERT_EQUAL(2 + 1 + 21 + 2 + 2 + 5 + 2, pairs.used);
    TEST_ASSERT_EQUAL_STRING("a=1\nb=\nc=18446744073709551615\nd=0\ne.17=x\n", words());
    ta__pairs_add(&pairs, "k", large); /* one byte too many, with its end */
    TEST_ASSERT_EQUAL(0, pairs.count);
    ta__pairs_add(&pairs, "k", large + 1);
    TEST_ASSERT_EQUAL(1, pairs.count);
    TEST_ASSERT_EQUAL(TA__PAIRS_TEXT, pairs.used);
    ta__pairs_add(&pairs, "k", "");
    ta__pairs_add_keyed(&pairs, "", 1);
    ta__pairs_add_row(&pairs, "", 1, "");
    TEST_ASSERT_EQUAL(1, pairs.count);
    TEST_ASSERT_EQUAL(TA__PAIRS_TEXT, pairs.used);
    for (uint32_t room = 0; room < 40; room++) { /* what has no room leaves what there is */
        pairs.count = 0;
        pairs.used = TA__PAIRS_TEXT - room;
        ta__pairs_add_row(&pairs, "row.", 5, "v");
        TEST_ASSERT_EQUAL(room >= 25, pairs.count);
        TEST_ASSERT_LESS_OR_EQUAL(TA__PAIRS_TEXT, pairs.used);
        pairs.count = 0;
        pairs.used = TA__PAIRS_TEXT - room;
        ta__pairs_add_keyed(&pairs, "key", 5);
        TEST_ASSERT_EQUAL(room >= 6, pairs.count);
        TEST_ASSERT_LESS_OR_EQUAL(TA__PAIRS_TEXT, pairs.used);
    }
    pairs.count = pairs.used = 0;
    for (unsigned i = 0; i < TA__PAIRS_MOST + 5; i++)
        ta__pairs_add(&pairs, "k", "v");
    TEST_ASSERT_EQUAL(TA__PAIRS_MOST, pairs.count);
    TEST_ASSERT_EQUAL(2 * TA__PAIRS_MOST, pairs.used);
    pairs.count = pairs.used = 0;
}

/* ---- the process ---- */

static void test_a_command_is_one_line(void)
{
    static const char command[] = "prog\0-x\0two\nlines\t\x1f\x7f\xc3\xa4\0\0";
    char text[64], small[8];
    files[CMDLINE].text = command;
    files[CMDLINE].length = sizeof command;
    ta__process_command(text, sizeof text);
    TEST_ASSERT_EQUAL_STRING("prog -x two lines  \x7f\xc3\xa4", text);
    ta__process_command(small, sizeof small);
    TEST_ASSERT_EQUAL_STRING("prog -x", small);
    files[CMDLINE].text = NULL;
    ta__process_command(text, sizeof text);
    TEST_ASSERT_EQUAL_STRING("", text);
}

static void test_the_process_is_described(void)
{
    ta__process_begins();
    files[CMDLINE].text = "a b";
    files[STATUS].text =
        "Name:\tx\nVmHWM:\t   12 kB\nVmRSS:\t   11 kB\nRssAnon:\t 5 kB\nRssFile:\t6 kB\nRssShmem:\t0 kB\n"
        "VmStk:\t 132 kB\nVmSwap:\t1 kB\n";
    files[STAT].text = "4711 (a) b) R 1 2 3 4 5 6 70 8 90 10 11 12 13 14 15 16 21 0 22 23\n";
    errno = 77;
    ta__pairs_add_process(&pairs, 4711);
    TEST_ASSERT_EQUAL(77, errno);
    TEST_ASSERT_EQUAL_STRING("process.command=a b\nprocess.parent=42\nfaults.minor=70\nfaults.major=90\n"
                             "process.threads=21\nmemory.resident=11264\nmemory.resident_peak=12288\n"
                             "memory.anonymous=5120\nmemory.file=6144\nmemory.shared=0\nmemory.swapped=1024\n"
                             "memory.main_stack=135168\n",
                             words());
    files[STATUS].text = "Name:\tx\nVmRSS:\t   11 kB\n";
    files[STAT].text = "4711 (a) R 1 2 3 4 5 6 70";
    files[CMDLINE].text = "";
    ta__pairs_add_process(&pairs, 4711);
    TEST_ASSERT_EQUAL_STRING("process.parent=42\nfaults.minor=70\nmemory.resident=11264\n", words());
    files[STATUS].text = files[STAT].text = NULL;
    ta__pairs_add_process(&pairs, 4711);
    TEST_ASSERT_EQUAL_STRING("process.parent=42\n", words());
    files[STAT].text = "no line";
    ta__pairs_add_process(&pairs, 4712); /* not the one that began: its parent is not known */
    TEST_ASSERT_EQUAL_STRING("", words());
}

/* ---- memory by kind ---- */

#define AREA(range, rights, name, rss)                                                                                 \
    range " " rights " 00000000 fe:00 332835                     " name "\nSize:  999 kB\nRss:    " rss " kB\n"
/* A library, a stack, shared memory, a file; 16 KiB of blocks, as much of tables, 8 and 4 of the program's. */
#define LIST(blocks)                                                                                                   \
    AREA("1000-5000", "r-xp", "/lib/a.so", "8")                                                                        \
    AREA("10000-1b000", "rw-p", "", blocks)                                                                            \
    AREA("20000-21000", "rw-p", "[stack]", "4")                                                                        \
    AREA("30000-31000", "rw-s", "/dev/shm/x", "3") AREA("40000-42000", "r--p", "/data", "5")

static void own_four(void)
{
    own(0x10000, 0x4000, TA__MAPPED_FOR_BLOCKS);
    own(0x14000, 0x4000, TA__MAPPED_FOR_TABLES);
    own(0x18000, 0x2000, TA__MAPPED_BY_PROGRAM + 7);
    own(0x1a000, 0x1000, TA__MAPPED_BY_PROGRAM + 8);
}

#define SIZES "memory.size.mapped=12288\nmemory.size.stacks=4096\nmemory.size.files=8192\nmemory.size.shared=4096\n"

static void test_often_only_sizes_are_told(void)
{
    own_four();
    files[MAPS].text = LIST("44");
    errno = 77;
    ta__memory_kinds_describe(&pairs, 0);
    TEST_ASSERT_EQUAL(77, errno);
    TEST_ASSERT_EQUAL_STRING(SIZES, words());
    TEST_ASSERT_EQUAL(0, files[SMAPS].reads);
    TEST_ASSERT_EQUAL(0, files[STATM].reads);
    files[MAPS].text = NULL;
    ta__memory_kinds_describe(&pairs, 0);
    TEST_ASSERT_EQUAL_STRING("", words());
    files[MAPS].text = LIST("44");
    ta__memory_inject_failure(1, 0);
    ta__memory_kinds_describe(&pairs, 0);
    TEST_ASSERT_EQUAL_STRING("", words());
}

#define KINDS(prefix, malloc, tracing, mapped)                                                                         \
    prefix "malloc=" malloc "\n" prefix "tracing=" tracing "\n" prefix "mapped=" mapped "\n" prefix                    \
           "stacks=4096\n" prefix "libraries=8192\n" prefix "files=5120\n" prefix "shared=3072\n"
#define SITES(seven, seven_peak, eight, eight_peak)                                                                    \
    "memory.site.0=" seven "\nmemory.site.0.peak=" seven_peak "\nmemory.site.0.frame.0=0x100\nmemory.site.0.frame.1="  \
    "0x200\nmemory.site.0.frame.2=0x300\nmemory.site.1=" eight "\nmemory.site.1.peak=" eight_peak                      \
    "\nmemory.site.1.frame.0=0x400\n"

static void test_at_times_everything_is_told(void)
{
    own_four();
    files[SMAPS].text = LIST("44");
    files[STATM].text = "100 16 3 4";
    ta__memory_kinds_describe(&pairs, 1);
    TEST_ASSERT_EQUAL_STRING(
        SIZES KINDS("memory.kind.", "16384", "16384", "12288") "memory.peak.resident=65536\n" KINDS(
            "memory.peak.kind.", "16384", "16384", "12288") SITES("8192", "8192", "4096", "4096"),
        words());
    files[SMAPS].text = LIST("22"); /* less, but what it was at the highest stays */
    files[STATM].text = "100 10 3 4";
    ta__memory_kinds_describe(&pairs, 1);
    TEST_ASSERT_EQUAL_STRING(SIZES KINDS("memory.kind.", "8192", "8192", "6144") "memory.peak.resident=65536\n" KINDS(
                                 "memory.peak.kind.", "16384", "16384", "12288") SITES("4096", "8192", "2048", "4096"),
                             words());
    files[STATM].text = "100 16 3 4"; /* as much as ever: the later one counts */
    ta__memory_kinds_describe(&pairs, 1);
    TEST_ASSERT_EQUAL_STRING(SIZES KINDS("memory.kind.", "8192", "8192", "6144") "memory.peak.resident=65536\n" KINDS(
                                 "memory.peak.kind.", "8192", "8192", "6144") SITES("4096", "4096", "2048", "2048"),
                             words());
    files[STATM].text = "";
    ta__memory_kinds_forget();
    ta__memory_kinds_describe(&pairs, 1);
    TEST_ASSERT_NOT_NULL(strstr(words(), "memory.peak.resident=0\n"));
}

/* Six at most, those with most first; of equal ones the first. */
static void test_who_mapped_most_is_told(void)
{
    static const unsigned pages[] = {1, 5, 2, 9, 2, 3, 9, 1};
    char list[800], expected[400] = "", *at = list;
    uint64_t address = 0x100000;
    for (unsigned i = 0; i < 8; i++) {
        own(address, pages[i] * 0x1000, TA__MAPPED_BY_PROGRAM + 20 + i);
        at += sprintf(at, "%llx-%llx rw-p 00000000 00:00 0 \nRss: %u kB\n", (unsigned long long)address,
                      (unsigned long long)(address + pages[i] * 0x1000), pages[i] * 4);
        address += 0x20000;
    }
    files[SMAPS].text = list;
    ta__memory_kinds_describe(&pairs, 1);
    const char *found = strstr(words(), "memory.site.0=");
    static const unsigned order[] = {9, 9, 5, 3, 2, 2};
    for (unsigned row = 0; row < 6; row++)
        sprintf(expected + strlen(expected), "memory.site.%u=%u\nmemory.site.%u.peak=%u\n", row, order[row] * 4096, row,
                order[row] * 4096);
    TEST_ASSERT_EQUAL_STRING(expected, found);
}

/* ---- the highest ---- */

static int looks(uint64_t busy_ns)
{
    int before = files[SMAPS].reads;
    errno = 77;
    ta__memory_kinds_watch(busy_ns);
    TEST_ASSERT_EQUAL(77, errno);
    return files[SMAPS].reads - before;
}

static void test_it_is_looked_when_there_is_more_and_it_costs_little(void)
{
    own_four();
    files[SMAPS].text = LIST("44");
    files[STATM].text = "100 100 3 4";
    TEST_ASSERT_EQUAL(0, looks(199999999)); /* the first look is taken to cost 0.4 ms: a five hundredth */
    TEST_ASSERT_EQUAL(0, files[STATM].reads);
    TEST_ASSERT_EQUAL(1, looks(200000000));
    TEST_ASSERT_EQUAL(0, looks(99999999)); /* it cost 0.1 ms, and the next would */
    TEST_ASSERT_EQUAL(1, files[STATM].reads);
    files[STATM].text = "100 110 3 4"; /* a tenth more is not yet more */
    TEST_ASSERT_EQUAL(0, looks(UINT64_MAX));
    files[STATM].text = "100 111 3 4";
    TEST_ASSERT_EQUAL(0, looks(99999999));
    TEST_ASSERT_EQUAL(1, looks(100000000));
    files[STATM].text = "100 262144 3 4"; /* a gibibyte: too much to be looked at */
    TEST_ASSERT_EQUAL(0, looks(UINT64_MAX));
    files[STATM].text = "100 262143 3 4";
    TEST_ASSERT_EQUAL(0, looks(149999999)); /* two have been */
    TEST_ASSERT_EQUAL(1, looks(150000000));
    files[SMAPS].text = LIST("22");
    files[STATM].text = "100 10 3 4";
    ta__memory_kinds_describe(&pairs, 1);
    const char *all = words();
    TEST_ASSERT_NOT_NULL(strstr(all, "memory.kind.malloc=8192\n"));
    TEST_ASSERT_NOT_NULL(strstr(all, "memory.peak.resident=1073737728\nmemory.peak.kind.malloc=16384\n"));
    ta__memory_kinds_forget();
    TEST_ASSERT_EQUAL(1, looks(200000000)); /* a child has everything before it */
}

static void test_a_look_that_fails_is_none(void)
{
    own_four();
    files[STATM].text = "100 100 3 4";
    files[SMAPS].text = NULL;
    TEST_ASSERT_EQUAL(1, looks(200000000));
    TEST_ASSERT_EQUAL(1, looks(200000000)); /* again: nothing is known yet */
    files[STATM].text = NULL;
    TEST_ASSERT_EQUAL(0, looks(200000000));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_pairs_are_added_as_long_as_there_is_room);
    RUN_TEST(test_a_command_is_one_line);
    RUN_TEST(test_the_process_is_described);
    RUN_TEST(test_often_only_sizes_are_told);
    RUN_TEST(test_at_times_everything_is_told);
    RUN_TEST(test_who_mapped_most_is_told);
    RUN_TEST(test_it_is_looked_when_there_is_more_and_it_costs_little);
    RUN_TEST(test_a_look_that_fails_is_none);
    return UNITY_END();
}
