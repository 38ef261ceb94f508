/* test_file_name.c: the names that recordings get (snapshot/triggers/file_name.h): the clock, the host and the number of the
 * process are made up here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <unity.h>

#include "base/error.h"
#include "snapshot/triggers/file_name.h"
#include "snapshot/write/take.h"

static time_t now_s;
static const char *host;
static char taken[80]; /* files of these names are there: one digit each */

pid_t ta__snapshot_process(void)
{
    return 4711;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    TEST_ASSERT_EQUAL(CLOCK_REALTIME, clock);
    *now = (struct timespec){now_s, 999999999};
    return 0;
}

int uname(struct utsname *system)
{
    if (host == NULL)
        return -1;
    strcpy(system->nodename, host);
    return 0;
}

/* "x.3": there when 3 is one of those that are taken. */
int access(const char *path, int mode)
{
    TEST_ASSERT_EQUAL(F_OK, mode);
    return strchr(taken, path[strlen(path) - 1]) != NULL ? 0 : -1;
}

void setUp(void)
{
    now_s = 0;
    host = "host";
    taken[0] = '\0';
}

void tearDown(void)
{
}

static const char *name(const char *pattern, uint64_t number, int forked)
{
    static char path[300];
    memset(path, '#', sizeof path);
    TEST_ASSERT_EQUAL_MESSAGE(0, ta__trigger_path(pattern, number, forked, path, sizeof path), pattern);
    return path;
}

static void test_marks_are_replaced_and_all_else_stays(void)
{
    TEST_ASSERT_EQUAL_STRING("", name("", 1, 0));
    TEST_ASSERT_EQUAL_STRING("a.ta", name("a.ta", 1, 0));
    TEST_ASSERT_EQUAL_STRING("4711", name("%p", 1, 0));
    TEST_ASSERT_EQUAL_STRING("a4711-17-host%", name("a%p-%n-%h%%", 17, 0));
    TEST_ASSERT_EQUAL_STRING("0 10 18446744073709551615", name("0 %n 18446744073709551615", 10, 0));
    TEST_ASSERT_EQUAL_STRING("18446744073709551615", name("%n", UINT64_MAX, 0));
    TEST_ASSERT_EQUAL_STRING("0", name("%n", 0, 0));
    TEST_ASSERT_EQUAL_STRING("%q%", name("%q%", 1, 0));
    TEST_ASSERT_EQUAL_STRING("%", name("%", 1, 0));
    TEST_ASSERT_EQUAL_STRING("%n", name("%%n", 1, 0));
    TEST_ASSERT_EQUAL_STRING("%N%P", name("%N%P", 1, 0));
}

static void test_children_have_their_number_where_the_pattern_has_none(void)
{
    TEST_ASSERT_EQUAL_STRING("x.4711", name("x", 1, 1));
    TEST_ASSERT_EQUAL_STRING("x4711", name("x%p", 1, 1));
    TEST_ASSERT_EQUAL_STRING("x%p.4711", name("x%%p", 1, 1));
}

static void test_a_host_is_no_folder(void)
{
    host = "a/b/c";
    TEST_ASSERT_EQUAL_STRING("<a_b_c>", name("<%h>", 1, 0));
    host = "";
    TEST_ASSERT_EQUAL_STRING("<>", name("<%h>", 1, 0));
    host = NULL;
    TEST_ASSERT_EQUAL_STRING("<>", name("<%h>", 1, 0));
}

static void test_the_time_is_that_of_the_calendar(void)
{
    static const struct {
        time_t seconds;
        const char *text;
    } times[] = {{0, "19700101-000000"},           {86399, "19700101-235959"},       {86400, "19700102-000000"},
                 {951782399, "20000228-235959"},   {951782400, "20000229-000000"}, /* a leap day, of a century */
                 {951868799, "20000229-235959"},   {951868800, "20000301-000000"},   {1078012800, "20040229-000000"},
                 {1798761599, "20261231-235959"},  {1798761600, "20270101-000000"},  {4107542399, "21000228-235959"},
                 {4107542400, "21000301-000000"}, /* no leap day */
                 {13574563200, "24000229-000000"}, {253402300799, "99991231-235959"}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        now_s = times[i].seconds;
        TEST_ASSERT_EQUAL_STRING(times[i].text, name("%t", 1, 0));
    }
}

/* Each day of four centuries, after which the calendar repeats itself, at every second of a day in turn. */
static void test_every_day_and_every_second_is_told(void)
{
    char expected[40];
    for (int64_t day = 0; day < 146097; day++) {
        now_s = (time_t)(day * 86400 + day * 7 % 86400);
        strftime(expected, sizeof expected, "%Y%m%d-%H%M%S", gmtime(&now_s));
        if (strcmp(expected, name("%t", 1, 0)) != 0)
            TEST_ASSERT_EQUAL_STRING(expected, name("%t", 1, 0));
    }
}

static void test_a_name_has_less_than_its_room(void)
{
    char path[20] = "";
    TEST_ASSERT_EQUAL(0, ta__trigger_path("abcdef", 1, 0, path, 8));
    TEST_ASSERT_EQUAL_STRING("abcdef", path);
    TEST_ASSERT_EQUAL(-1, ta__trigger_path("abcdefg", 1, 0, path, 8));
    TEST_ASSERT_EQUAL_STRING("the snapshot's file name is too long", ta__error_text());
    TEST_ASSERT_EQUAL(0, ta__trigger_path("ab%p", 1, 0, path, 8));
    TEST_ASSERT_EQUAL(-1, ta__trigger_path("abc%p", 1, 0, path, 8));
    TEST_ASSERT_EQUAL(0, ta__trigger_path("a", 1, 1, path, 8));
    TEST_ASSERT_EQUAL(-1, ta__trigger_path("ab", 1, 1, path, 8));
    memset(path, '#', sizeof path);
    TEST_ASSERT_EQUAL(-1, ta__trigger_path("abcdefghijklmnop", 1, 1, path, 8));
    TEST_ASSERT_EQUAL_CHAR('#', path[8]);
}

static void test_the_next_number_whose_file_is_not_there(void)
{
    char path[40];
    uint64_t number = 0;
    TEST_ASSERT_EQUAL(0, ta__free_path("x.%n", &number, 0, path, sizeof path));
    TEST_ASSERT_EQUAL_STRING("x.1", path);
    TEST_ASSERT_EQUAL_UINT64(1, number);
    strcpy(taken, "234");
    TEST_ASSERT_EQUAL(0, ta__free_path("x.%n", &number, 0, path, sizeof path));
    TEST_ASSERT_EQUAL_STRING("x.5", path);
    TEST_ASSERT_EQUAL_UINT64(5, number);
    number = 1;
    TEST_ASSERT_EQUAL(-1, ta__free_path("x.%n", &number, 0, path, 4));
    strcpy(taken, "1234567890nx%");
    static const char *const patterns[] = {"a/x", "%%n", "%%%%n", "n", "x%"}; /* one name, whatever is there */
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        number = 0;
        TEST_ASSERT_EQUAL(0, ta__free_path(patterns[i], &number, 0, path, sizeof path));
        TEST_ASSERT_EQUAL_UINT64(1, number);
    }
    strcpy(taken, "1");
    number = 0;
    TEST_ASSERT_EQUAL(0, ta__free_path("%%%n", &number, 0, path, sizeof path));
    TEST_ASSERT_EQUAL_STRING("%2", path);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_marks_are_replaced_and_all_else_stays);
    RUN_TEST(test_children_have_their_number_where_the_pattern_has_none);
    RUN_TEST(test_a_host_is_no_folder);
    RUN_TEST(test_the_time_is_that_of_the_calendar);
    RUN_TEST(test_every_day_and_every_second_is_told);
    RUN_TEST(test_a_name_has_less_than_its_room);
    RUN_TEST(test_the_next_number_whose_file_is_not_there);
    return UNITY_END();
}
