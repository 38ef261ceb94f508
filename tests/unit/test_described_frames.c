/* test_described_frames.c: return addresses in words (alloc/describe.h): which of several names an address gets, what a line
 * has of name, source line and place, and what it says where there is nothing to say. The functions are laid out by hand:
 * nobody calls them. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <unity.h>

#include "alloc/describe.h"
#include "base/memory.h"
#include "tracealloc.h"

#define GLOBAL(name)   ".globl " name "\n.type " name ", %function\n"
#define SIZED(name, n) ".size " name ", " #n "\n"
#define ALSO(name, as) GLOBAL(name) ".set " name ", " as "\n" SIZED(name, 16)
#define TEN_LETTERS    "abcdefghij"
#define HUNDRED_LETTERS                                                                                                \
    TEN_LETTERS TEN_LETTERS TEN_LETTERS TEN_LETTERS TEN_LETTERS TEN_LETTERS TEN_LETTERS TEN_LETTERS TEN_LETTERS        \
        TEN_LETTERS
#define NAME_OF_256 HUNDRED_LETTERS HUNDRED_LETTERS TEN_LETTERS TEN_LETTERS TEN_LETTERS TEN_LETTERS TEN_LETTERS "abcdef"
#define NAME_OF_257 "b" NAME_OF_256

/* clang-format off */
__asm__(".pushsection .text\n.balign 16\n"
        /* no size: whatever follows up to the next one */
        GLOBAL("laid_unsized") "laid_unsized:\n.skip 16\n"
        /* four names of one thing */
        GLOBAL("laid_host") "laid_host:\n" SIZED("laid_host", 16) ".skip 16\n"
        ALSO("__laid_host", "laid_host") ALSO("_laid_h", "laid_host") ALSO("laid_host64", "laid_host")
        /* one within another, and a label of no size in both */
        GLOBAL("laid_outer") "laid_outer:\n" SIZED("laid_outer", 48) ".skip 16\n"
        GLOBAL("laid_inner") "laid_inner:\n" SIZED("laid_inner", 16) ".skip 8\n"
        GLOBAL("laid_label") "laid_label:\n.skip 24\n"
        /* a gap behind what says its size */
        GLOBAL("laid_short") "laid_short:\n" SIZED("laid_short", 8) ".skip 16\n"
        GLOBAL("laid_another") "laid_another:\n.skip 16\n"
        GLOBAL("_ZN4laid5outer5innerEi") "_ZN4laid5outer5innerEi:\n" SIZED("_ZN4laid5outer5innerEi", 16) ".skip 16\n"
        GLOBAL(NAME_OF_256) NAME_OF_256 ":\n" SIZED(NAME_OF_256, 16) ".skip 16\n"
        GLOBAL(NAME_OF_257) NAME_OF_257 ":\n" SIZED(NAME_OF_257, 16) ".skip 16\n"
        ".popsection\n");
/* clang-format on */

extern const char laid_unsized[], laid_host[], laid_outer[], laid_short[], laid_another[];
extern const char laid_mangled[] __asm__("_ZN4laid5outer5innerEi");
extern const char laid_256[] __asm__(NAME_OF_256), laid_257[] __asm__(NAME_OF_257);

static char self[4096];
static struct {
    char text[16384];
    size_t length, lines;
} told;

void setUp(void)
{
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
}

static void take(struct ta__message *line, void *context)
{
    TEST_ASSERT_EQUAL_PTR(&told, context);
    TEST_ASSERT_TRUE(told.length + line->length + 2 < sizeof told.text);
    memcpy(told.text + told.length, line->text, line->length);
    told.length += line->length;
    told.text[told.length++] = '\n';
    told.text[told.length] = '\0';
    told.lines++;
}

static const char *describe(const uint64_t *addresses, size_t count)
{
    memset(&told, 0, sizeof told);
    errno = 77;
    ta__describe_frames(addresses, count, take, &told);
    TEST_ASSERT_EQUAL_INT(77, errno);
    return told.text;
}

/* Where the loader put this program: lines have addresses as its file has them. */
static uint64_t bias(void)
{
    Dl_info info;
    struct link_map *map = NULL;
    TEST_ASSERT_NOT_EQUAL(0, dladdr1(laid_host, &info, (void **)&map, RTLD_DL_LINKMAP));
    return map->l_addr;
}

static uint64_t at(const char *place, size_t distance)
{
    return (uint64_t)(uintptr_t)place + distance;
}

/* The line of one return address: the name of what holds the byte in front of it, and where it is itself. */
static void expect(const char *place, size_t distance, const char *name)
{
    char line[sizeof self + 512];
    uint64_t address = at(place, distance);
    snprintf(line, sizeof line, "  %s (%s+0x%llx)\n", name, self, (unsigned long long)(address - bias()));
    TEST_ASSERT_EQUAL_STRING(line, describe(&address, 1));
}

static void test_a_return_address_belongs_to_the_function_in_front_of_it(void)
{
    expect(laid_host, 1, "laid_host");
    expect(laid_host, 16, "laid_host");
    expect(laid_host, 17, "laid_outer");
}

static void test_of_several_names_the_public_and_then_the_shorter_one_is_told(void)
{
    expect(laid_host, 5, "laid_host");
}

static void test_of_functions_within_each_other_the_inner_one_is_told(void)
{
    expect(laid_outer, 16, "laid_outer");
    expect(laid_outer, 17, "laid_inner");
    expect(laid_outer, 32, "laid_inner");
    expect(laid_outer, 33, "laid_outer");
    expect(laid_outer, 48, "laid_outer");
}

static void test_a_name_without_a_size_holds_what_nobody_else_does(void)
{
    expect(laid_unsized, 1, "laid_unsized");
    expect(laid_unsized, 16, "laid_unsized");
    expect(laid_short, 8, "laid_short");
    expect(laid_short, 9, "laid_label");
    expect(laid_another, 1, "laid_another");
    expect(laid_another, 16, "laid_another");
}

static void test_names_of_cplusplus_are_told_as_people_know_them(void)
{
    expect(laid_mangled, 8, "laid::outer::inner");
}

static void test_names_without_end_are_cut(void)
{
    expect(laid_256, 8, NAME_OF_256);
    char cut[300];
    snprintf(cut, sizeof cut, "%.256s…", NAME_OF_257);
    expect(laid_257, 8, cut);
}

__attribute__((noipa)) static int has_lines(int number)
{
    return number + 1;
}

static void test_lines_are_told_where_the_file_knows_them(void)
{
    uint64_t address = (uint64_t)(uintptr_t)has_lines + 1;
    TEST_ASSERT_EQUAL_STRING_LEN("  has_lines ", describe(&address, 1), 12);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(told.text, "test_described_frames.c:"), told.text);
    char place[sizeof self + 64];
    snprintf(place, sizeof place, " (%s+0x%llx)\n", self, (unsigned long long)(address - bias()));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(told.text, place), told.text);
}

static void test_an_address_in_no_file_is_a_number(void)
{
    void *code = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t address = (uint64_t)(uintptr_t)code + 100;
    char line[64];
    snprintf(line, sizeof line, "  0x%llx\n", (unsigned long long)address);
    TEST_ASSERT_EQUAL_STRING(line, describe(&address, 1));
    munmap(code, 4096);
}

/* Two files in turn, an address of none among them: each line has the name that its own file says. */
static void test_frames_of_several_files_are_each_told(void)
{
    uint64_t of_libc = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "qsort") + 1,
             another = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "strtoull") + 1;
    const uint64_t addresses[] = {at(laid_host, 3), of_libc, 4097, at(laid_outer, 20), another, at(laid_another, 2)};
    static const char *const names[] = {"  laid_host (",  "  qsort", "  0x1001\n",
                                        "  laid_inner (", "  strto", "  laid_another ("};
    const char *line = describe(addresses, 6);
    TEST_ASSERT_EQUAL_size_t(6, told.lines);
    for (size_t i = 0; i < 6; i++) {
        TEST_ASSERT_EQUAL_STRING_LEN(names[i], line, strlen(names[i]));
        line = strchr(line, '\n') + 1;
    }
}

static void test_frames_end_with_a_zero_and_at_a_most(void)
{
    uint64_t addresses[TA__DESCRIBED_FRAMES + 8];
    for (size_t i = 0; i < TA__DESCRIBED_FRAMES + 8; i++)
        addresses[i] = at(laid_host, 1 + i % 16);
    describe(addresses, TA__DESCRIBED_FRAMES + 8);
    TEST_ASSERT_EQUAL_size_t(TA__DESCRIBED_FRAMES, told.lines);
    describe(addresses, 5);
    TEST_ASSERT_EQUAL_size_t(5, told.lines);
    addresses[3] = 0;
    describe(addresses, 5);
    TEST_ASSERT_EQUAL_size_t(3, told.lines);
    TEST_ASSERT_EQUAL_STRING("", describe(addresses, 0));
}

/* Reading names takes a stack of its own: without memory for it, numbers are better than nothing. */
static void test_without_memory_frames_are_numbers(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    TEST_IGNORE_MESSAGE("under the sanitizers there is no other stack");
#endif
    const uint64_t addresses[] = {0x1234, at(laid_host, 3), 0, 0x99};
    char lines[128];
    snprintf(lines, sizeof lines, "  0x1234\n  0x%llx\n", (unsigned long long)addresses[1]);
    ta__memory_inject_failure(1, 1);
    const char *text = describe(addresses, 4);
    ta__memory_inject_failure(0, 0);
    TEST_ASSERT_EQUAL_STRING(lines, text);
}

int main(void)
{
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    TEST_ASSERT_EQUAL_INT(2, has_lines(1));
    UNITY_BEGIN();
    RUN_TEST(test_a_return_address_belongs_to_the_function_in_front_of_it);
    RUN_TEST(test_of_several_names_the_public_and_then_the_shorter_one_is_told);
    RUN_TEST(test_of_functions_within_each_other_the_inner_one_is_told);
    RUN_TEST(test_a_name_without_a_size_holds_what_nobody_else_does);
    RUN_TEST(test_names_of_cplusplus_are_told_as_people_know_them);
    RUN_TEST(test_names_without_end_are_cut);
    RUN_TEST(test_lines_are_told_where_the_file_knows_them);
    RUN_TEST(test_an_address_in_no_file_is_a_number);
    RUN_TEST(test_frames_of_several_files_are_each_told);
    RUN_TEST(test_frames_end_with_a_zero_and_at_a_most);
    RUN_TEST(test_without_memory_frames_are_numbers);
    return UNITY_END();
}
