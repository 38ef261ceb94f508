/* test_place_names.c: names of functions, variables and frames of a live process, a child of the test; and of classes, by
 * tables of virtual functions that are made of arrays. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/image/place_names.h"
#include "base/error.h"
#include "tests/support/made_memory.h"

#include <unity.h>

/* What they have on their stacks is there, and not where a sanitizer would put it. */
#define APART __attribute__((noinline, noclone, used, no_sanitize_address))

/* What the child says of itself. */
struct told {
    const volatile char *outer, *middle, *inner;
};
static struct told *told;
static pid_t child;
static int ends[2];
static struct ta__names names;
static int is_open;
static char text[300];

int named_variable[20] = {1};
APART int named_function(int number)
{
    return number + named_variable[3];
}
/* As C++ would call a function of one int in a class. */
APART int _ZN5Thing4callEi(int number);
APART int _ZN5Thing4callEi(int number)
{
    return number * named_variable[4];
}

APART static void innermost(void)
{
    volatile char room[64] = "inner";
    told->inner = room;
    if (write(ends[1], "r", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

APART static int in_the_middle(void)
{
    volatile char room[64] = "middle";
    told->middle = room;
    innermost();
    return room[0];
}

APART static int outermost(void)
{
    volatile char room[64] = "outer";
    told->outer = room;
    return in_the_middle() + room[1];
}

void setUp(void)
{
    is_open = 0;
    child = 0;
    made_begin();
}

void tearDown(void)
{
    if (is_open)
        ta__names_close(&names);
    made_end();
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        close(ends[0]);
        close(ends[1]);
        munmap(told, sizeof *told);
    }
}

/* The child is held while its stacks are copied, and goes on. */
static void look_at_child(int with_stacks)
{
    char number[16], byte;
    void *at = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TEST_ASSERT_TRUE(at != MAP_FAILED);
    told = at;
    TEST_ASSERT_EQUAL_INT(0, pipe(ends));
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(outermost());
    }
    TEST_ASSERT_EQUAL_INT(1, (int)read(ends[0], &byte, 1));
    snprintf(number, sizeof number, "%d", (int)child);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, ta__target_open(made, number), ta__error_text());
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, ta__target_hold(made), ta__error_text());
    TEST_ASSERT_EQUAL_INT(0, ta__target_find_objects(made));
    TEST_ASSERT_EQUAL_INT(0, ta__names_open(&names, made, with_stacks));
    is_open = 1;
    ta__target_release(made);
}

static const char *name_of(const void *address)
{
    memset(text, 'x', sizeof text);
    ta__name_of_address(&names, (uintptr_t)address, text, sizeof text);
    return text;
}

static void test_address_has_the_name_of_its_symbol(void)
{
    look_at_child(0);
    TEST_ASSERT_EQUAL_STRING("named_variable", name_of(named_variable));
    TEST_ASSERT_EQUAL_STRING("named_variable+12", name_of(&named_variable[3]));
    TEST_ASSERT_EQUAL_STRING("named_variable+79", name_of((char *)&named_variable[20] - 1));
    TEST_ASSERT_TRUE(strncmp(name_of(&named_variable[20]), "named_variable", 14) != 0);
    TEST_ASSERT_EQUAL_STRING("named_function", name_of((void *)(uintptr_t)named_function));
    TEST_ASSERT_EQUAL_STRING("named_function+1", name_of((char *)(uintptr_t)named_function + 1));
    TEST_ASSERT_EQUAL_STRING("Thing::call(int)", name_of((void *)(uintptr_t)_ZN5Thing4callEi));
    TEST_ASSERT_EQUAL_STRING("Thing::call(int)+1", name_of((char *)(uintptr_t)_ZN5Thing4callEi + 1));
    TEST_ASSERT_EQUAL_STRING("", name_of((void *)16));
    TEST_ASSERT_EQUAL_STRING("", name_of((const void *)told->inner));
}

static const char *frame_of(size_t thread, const volatile char *address)
{
    memset(text, 'x', sizeof text);
    ta__name_of_frame(&names, thread, (uintptr_t)address, text, sizeof text);
    return text;
}

#if defined(__x86_64__)
static void test_place_on_a_stack_has_the_name_of_its_function(void)
{
    look_at_child(1);
    for (int i = 0; i < 2; i++) {
        TEST_ASSERT_EQUAL_STRING("innermost", frame_of(0, told->inner));
        TEST_ASSERT_EQUAL_STRING("in_the_middle", frame_of(0, told->middle));
        TEST_ASSERT_EQUAL_STRING("outermost", frame_of(0, told->outer));
    }
    TEST_ASSERT_EQUAL_STRING("", frame_of(0, (char *)16));  /* below all frames */
    TEST_ASSERT_EQUAL_STRING("", frame_of(1, told->inner)); /* there is one thread */
}
#endif

static void test_place_on_a_stack_that_was_not_copied_has_no_outer_name(void)
{
    look_at_child(0);
    TEST_ASSERT_EQUAL_STRING("", frame_of(0, (char *)16));
    TEST_ASSERT_TRUE(strcmp(frame_of(0, told->outer), "outermost") != 0);
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

#define OBJECT UINT64_C(0x10000000)
enum { PAGE = 4096, TABLE = 0x110, DESCRIPTION = 0x200, NAME = 0x300 };
static struct ta__object_file object;

static void make_class(const char *mangled)
{
    object = (struct ta__object_file){.start = OBJECT, .end = OBJECT + PAGE};
    made_map(OBJECT, 2 * PAGE, 2 * PAGE, 0);
    made->objects = &object;
    made->object_count = 1;
    TEST_ASSERT_EQUAL_INT(0, ta__names_open(&names, made, 1));
    is_open = 1;
    made_word(OBJECT + TABLE - 16, 0);
    made_word(OBJECT + TABLE - 8, OBJECT + DESCRIPTION);
    made_word(OBJECT + DESCRIPTION + 8, OBJECT + NAME);
    made_text(OBJECT + NAME, mangled);
}

static const char *class_of(uint64_t word)
{
    memset(text, 'x', sizeof text);
    ta__name_of_class(&names, word, text, sizeof text);
    return text;
}

static void test_object_has_the_name_of_its_class(void)
{
    make_class("N4deep5ThingE");
    TEST_ASSERT_EQUAL_STRING("deep::Thing", class_of(OBJECT + TABLE));
    made_word(OBJECT + TABLE - 16, (uint64_t) - (1 << 20)); /* a base that lies so far in */
    TEST_ASSERT_EQUAL_STRING("deep::Thing", class_of(OBJECT + TABLE));
    made_word(OBJECT + TABLE - 16, (uint64_t) - (1 << 20) - 1);
    TEST_ASSERT_EQUAL_STRING("", class_of(OBJECT + TABLE));
    made_word(OBJECT + TABLE - 16, 1);
    TEST_ASSERT_EQUAL_STRING("", class_of(OBJECT + TABLE));
    made_word(OBJECT + TABLE - 16, 0);
    made_text(OBJECT + NAME, "no name");
    TEST_ASSERT_EQUAL_STRING("", class_of(OBJECT + TABLE));
    made->objects = NULL;
    made->object_count = 0;
}

static void test_word_that_leads_to_no_class_has_none(void)
{
    make_class("5Thing");
    TEST_ASSERT_EQUAL_STRING("Thing", class_of(OBJECT + TABLE));
    TEST_ASSERT_EQUAL_STRING("", class_of(OBJECT + TABLE + 4));
    TEST_ASSERT_EQUAL_STRING("", class_of(OBJECT));
    TEST_ASSERT_EQUAL_STRING("", class_of(0));
    for (int i = 0; i < 4; i++) { /* tables, descriptions and names outside of all objects, or not at multiples of 8 */
        static const uint64_t wrong[] = {OBJECT + PAGE + DESCRIPTION, OBJECT + DESCRIPTION + 4, 8, 0};
        for (uint64_t at = 0; at < 2; at++)
            made_word(OBJECT + PAGE + DESCRIPTION + 8 * at, OBJECT + NAME);
        made_word(OBJECT + DESCRIPTION + 12, OBJECT + NAME);
        made_word(OBJECT + TABLE - 8, wrong[i]);
        TEST_ASSERT_EQUAL_STRING("", class_of(OBJECT + TABLE));
    }
    made_word(OBJECT + DESCRIPTION + 8, OBJECT + NAME);
    made_word(OBJECT + TABLE - 8, OBJECT + DESCRIPTION);
    TEST_ASSERT_EQUAL_STRING("Thing", class_of(OBJECT + TABLE));
    made_text(OBJECT + PAGE + NAME, "5Thing");
    made_word(OBJECT + DESCRIPTION + 8, OBJECT + PAGE + NAME);
    TEST_ASSERT_EQUAL_STRING("", class_of(OBJECT + TABLE));
    made_word(OBJECT + DESCRIPTION + 8, OBJECT + NAME);
    made_word(OBJECT + PAGE + TABLE - 8, OBJECT + DESCRIPTION);
    TEST_ASSERT_EQUAL_STRING("", class_of(OBJECT + PAGE + TABLE));
    made_break(OBJECT, OBJECT + PAGE);
    TEST_ASSERT_EQUAL_STRING("", class_of(OBJECT + TABLE));
    made->objects = NULL;
    made->object_count = 0;
}

/* Names of classes may be long: as far as there is room, and what is cut is none. */
static void test_long_name_of_a_class(void)
{
    char mangled[300], expected[300];
    for (int length = 190; length <= 195; length++) {
        memset(mangled, 'n', sizeof mangled);
        int digits = snprintf(mangled, sizeof mangled, "%d", length);
        mangled[digits] = 'n';
        mangled[digits + length] = '\0';
        if (is_open)
            ta__names_close(&names);
        is_open = 0;
        made->objects = NULL;
        made->object_count = 0;
        made_end();
        made_begin();
        make_class(mangled);
        memset(expected, 'n', sizeof expected);
        expected[length] = '\0';
        TEST_ASSERT_EQUAL_STRING(length + digits <= 195 ? expected : "", class_of(OBJECT + TABLE));
    }
    made->objects = NULL;
    made->object_count = 0;
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_address_has_the_name_of_its_symbol);
#if defined(__x86_64__)
    RUN_TEST(test_place_on_a_stack_has_the_name_of_its_function);
#endif
    RUN_TEST(test_place_on_a_stack_that_was_not_copied_has_no_outer_name);
    RUN_TEST(test_object_has_the_name_of_its_class);
    RUN_TEST(test_word_that_leads_to_no_class_has_none);
    RUN_TEST(test_long_name_of_a_class);
    return UNITY_END();
}
