/* test_options.c: every value that an option takes, at both ends of what is allowed, and what is refused: with one line
 * that names it, and status 1. Each in a process of its own, since a wrong value ends it. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc/alloc.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"
#include "tests/support/child.h"

#include <unity.h>

extern char **environ;

void setUp(void)
{
}

void tearDown(void)
{
}

enum { WRONG = 3, OTHER = 4 };

struct asked {
    const char *frames, *options;
    size_t offset, bytes; /* of what the option sets */
    int64_t expected;
};

static int64_t field(const struct asked *asked)
{
    const char *at = (const char *)&ta__options + asked->offset;
    int64_t wide = 0;
    int32_t narrow = 0;
    if (asked->bytes == sizeof narrow)
        return memcpy(&narrow, at, sizeof narrow), narrow;
    memcpy(&wide, at, sizeof wide);
    return wide;
}

static void read_in_child(void *argument)
{
    const struct asked *asked = argument;
    unsetenv("TRACEALLOC");
    unsetenv("TRACEALLOC_OPTIONS");
    if (asked->frames != NULL)
        setenv("TRACEALLOC", asked->frames, 1);
    if (asked->options != NULL)
        setenv("TRACEALLOC_OPTIONS", asked->options, 1);
    memset(&ta__options, 0, sizeof ta__options);
    ta__options_read();
    if (field(asked) != asked->expected) {
        fprintf(stderr, "%lld", (long long)field(asked));
        _exit(WRONG);
    }
    _exit(0);
}

static void expect_taken(const struct asked *asked)
{
    struct child_result result;
    child_run(&result, read_in_child, (void *)(uintptr_t)asked);
    TEST_ASSERT_EQUAL_STRING_MESSAGE("", result.text, asked->options != NULL ? asked->options : asked->frames);
    TEST_ASSERT_EQUAL_INT(0, result.exit_status);
}

/* `said`: what stands in the one line. */
static void expect_refused(const char *frames, const char *options, const char *said)
{
    struct child_result result;
    struct asked asked = {frames, options, 0, 4, 0};
    child_run(&result, read_in_child, &asked);
    TEST_ASSERT_EQUAL_INT_MESSAGE(1, result.exit_status, options != NULL ? options : frames);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(result.text, said), result.text);
    TEST_ASSERT_EQUAL_size_t(1, result.lines);
}

#define OF(name) offsetof(struct ta__options, name), sizeof ta__options.name

static void test_numbers_and_sizes_are_taken_up_to_their_ends(void)
{
    static const struct asked taken[] = {
        {NULL, "sample=1", OF(sample_bytes), 0},
        {NULL, "sample=2", OF(sample_bytes), 2},
        {NULL, "sample=1009", OF(sample_bytes), 1009},
        {NULL, "sample=7B", OF(sample_bytes), 7},
        {NULL, "sample=3k", OF(sample_bytes), 3 << 10},
        {NULL, "sample=3K", OF(sample_bytes), 3 << 10},
        {NULL, "sample=3KB", OF(sample_bytes), 3 << 10},
        {NULL, "sample=512KiB", OF(sample_bytes), 512 << 10},
        {NULL, "sample=5m", OF(sample_bytes), 5 << 20},
        {NULL, "sample=5Mi", OF(sample_bytes), 5 << 20},
        {NULL, "sample=6g", OF(sample_bytes), INT64_C(6) << 30},
        {NULL, "sample=6GiB", OF(sample_bytes), INT64_C(6) << 30},
        {NULL, "sample=4503599627370496", OF(sample_bytes), INT64_C(1) << 52},
        {NULL, "sample=4398046511104K", OF(sample_bytes), INT64_C(1) << 52},
        {NULL, "sample=4294967296M", OF(sample_bytes), INT64_C(1) << 52},
        {NULL, "sample=4194304G", OF(sample_bytes), INT64_C(1) << 52},
        {NULL, "max_contexts=1024", OF(max_contexts), 1024},
        {NULL, "max_contexts=268435456", OF(max_contexts), 1 << 28},
        {NULL, "max_contexts=256M", OF(max_contexts), 1 << 28},
        {NULL, "table_memory=65536", OF(table_memory), 65536},
        {NULL, "table_memory=64KiB", OF(table_memory), 65536},
        {NULL, "file_limit=64KiB", OF(file_limit), 65536},
        {NULL, "remember_frees=0", OF(remember_frees), 0},
        {NULL, "remember_frees=4194304", OF(remember_frees), 1 << 22},
        {NULL, "purge_delay=0", OF(has_purge_delay), 1},
        {NULL, "purge_delay=1000000", OF(purge_delay), 1000000},
        {NULL, "purge_delay=never", OF(purge_delay), -1},
        {NULL, "process=1", OF(process), 1},
        {NULL, "process=2147483647", OF(process), INT32_MAX},
        {NULL, "namespace=4026531836", OF(process_namespace), INT64_C(4026531836)},
    };
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        expect_taken(&taken[i]);
    static const char *const refused[] = {"sample=",
                                          "sample=0",
                                          "sample=0K",
                                          "sample=-1",
                                          "sample=+1",
                                          "sample= 1",
                                          "sample=K",
                                          "sample=1T",
                                          "sample=1KK",
                                          "sample=1KiBB",
                                          "sample=1i",
                                          "sample=1.5K",
                                          "sample=0x10",
                                          "sample=4398046511105K",
                                          "sample=4294967297M",
                                          "sample=4194305G",
                                          "sample=99999999999999999999",
                                          "sample=18446744073709551617",
                                          "max_contexts=1023",
                                          "max_contexts=268435457",
                                          "max_contexts=",
                                          "table_memory=65535",
                                          "table_memory=x",
                                          "file_limit=65535",
                                          "file_limit=-1",
                                          "remember_frees=4194305",
                                          "remember_frees=-1",
                                          "purge_delay=1000001",
                                          "purge_delay=-1",
                                          "purge_delay=ever",
                                          "purge_delay=nevers",
                                          "process=0",
                                          "process=2147483648",
                                          "process=self",
                                          "namespace=0",
                                          "namespace=x"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        expect_refused(NULL, refused[i], refused[i]);
}

static void test_times_have_three_decimals_and_a_least(void)
{
    static const struct asked taken[] = {
        {NULL, "interval=0.01", OF(interval_ns), 10000000},
        {NULL, "interval=0.011s", OF(interval_ns), 11000000},
        {NULL, "interval=1", OF(interval_ns), 1000000000},
        {NULL, "interval=12.", OF(interval_ns), INT64_C(12000000000)},
        {NULL, "interval=1.2345", OF(interval_ns), 1234000000},
        {NULL, "interval=3600s", OF(interval_ns), INT64_C(3600000000000)},
    };
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        expect_taken(&taken[i]);
    static const char *const refused[] = {"interval=",   "interval=0",  "interval=0.009", "interval=.5",
                                          "interval=-1", "interval=1m", "interval=1.5.5", "interval=1ss"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        expect_refused(NULL, refused[i], refused[i]);
}

static void test_words_are_taken_as_they_are_written(void)
{
    static const struct asked taken[] = {
        {NULL, "on_corruption=leak", OF(leak_on_corruption), 1},
        {NULL, "on_corruption=leak,on_corruption=abort", OF(leak_on_corruption), 0},
        {NULL, "headers=always", OF(has_headers), 1},
        {NULL, "headers=always,headers=traced", OF(has_headers), 0},
        {NULL, "ends=yes", OF(watches_ends), 1},
        {NULL, "ends=yes,ends=no", OF(watches_ends), 0},
        {NULL, "series=1", OF(is_series), 1},
        {NULL, "series=auto", OF(is_series), 1},
        {NULL, "series=auto", OF(is_paced), 1},
        {NULL, "series=auto,series=yes", OF(is_paced), 0},
        {NULL, "series=auto,series=0", OF(is_series), 0},
        {NULL, "exit=no", OF(no_exit_snapshot), 1},
        {NULL, "exit=no,exit=yes", OF(no_exit_snapshot), 0},
        {NULL, "on_limit=snapshot", OF(at_limit), 1},
        {NULL, "on_limit=snapshot,on_limit=none", OF(at_limit), 0},
        {NULL, "loud=1", OF(is_loud), 1},
        {NULL, "blocks=yes", OF(has_blocks), 1},
        {NULL, "blocks=yes,blocks=0", OF(has_blocks), 0},
        {NULL, "control=yes", OF(has_channel), 1},
        {NULL, "follow=yes", OF(no_follow), 0},
        {NULL, "follow=no", OF(no_follow), 1},
        {NULL, "control=yes,follow=no", OF(has_channel), 0}, /* of another process than process= */
        {"5", "follow=no,process=1", OF(nframe), 0},
        {NULL, "domains_at_exit=1", OF(domains_at_exit), 1},
        {NULL, "domains_at_exit=1,domains_at_exit=0", OF(domains_at_exit), 0},
        {NULL, "peak=yes", OF(at_peak), 1},
        {NULL, "peak=1", OF(peak_percent), 0},
        {NULL, "peak=2", OF(peak_percent), 2},
        {NULL, "peak=25%", OF(peak_percent), 25},
        {NULL, "peak=1000", OF(peak_percent), 1000},
        {NULL, "peak=25,peak=no", OF(at_peak), 0},
        {NULL, ",,blocks=yes,,", OF(has_blocks), 1},
    };
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        expect_taken(&taken[i]);
    static const char *const refused[] = {
        "on_corruption=leaks", "headers=never", "ends=",  "ends=maybe", "series=automatic", "exit=2",
        "on_limit=yes",        "loud=Yes",      "blocks", "control=on", "follow=0no",       "domains_at_exit=yes",
        "peak=1001",           "peak=0%",       "peak=%", "peak=-5",    "peak=5%%"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        expect_refused(NULL, refused[i], refused[i]);
    static const char *const unknown[] = {"sampl=1", "samples=1", "=1", "Sample=1", "blocks=yes,no_such"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        expect_refused(NULL, unknown[i], "unknown option ");
}

static void test_signals_are_those_that_no_fault_raises(void)
{
    static const struct asked taken[] = {
        {NULL, "signal=HUP", OF(signal_number), SIGHUP},   {NULL, "signal=SIGUSR1", OF(signal_number), SIGUSR1},
        {NULL, "signal=USR2", OF(signal_number), SIGUSR2}, {NULL, "signal=SIGPROF", OF(signal_number), SIGPROF},
        {NULL, "signal=URG", OF(signal_number), SIGURG},   {NULL, "signal=1", OF(signal_number), 1},
        {NULL, "signal=10", OF(signal_number), 10},        {NULL, "signal=34", OF(signal_number), 34},
        {NULL, "signal=64", OF(signal_number), 64},
    };
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        expect_taken(&taken[i]);
    static const int never[] = {
        0, SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGXFSZ, SIGPIPE, 32, 33, 65,
    };
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        char text[32];
        snprintf(text, sizeof text, "signal=%d", never[i]);
        expect_refused(NULL, text, text);
    }
    static const char *const refused[] = {"signal=",     "signal=SIG",       "signal=USR",       "signal=USR12",
                                          "signal=usr1", "signal=SIGSIGHUP", "signal=4294967306"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        expect_refused(NULL, refused[i], refused[i]);
}

static void name_in_child(void *argument)
{
    static char text[5000], name[4400];
    size_t length = *(const size_t *)argument;
    static const char *const keys[] = {"output", "family", "rules"};
    for (size_t i = 0; i < 3; i++) {
        memset(name, 'n', length);
        name[length] = '\0';
        snprintf(text, sizeof text, "%s=%s", keys[i], name);
        setenv("TRACEALLOC_OPTIONS", text, 1);
        memset(&ta__options, 0, sizeof ta__options);
        ta__options_read();
        const char *taken = i == 0 ? ta__options.output : i == 1 ? ta__options.family : ta__options.rules;
        if (strcmp(taken, name) != 0)
            _exit(WRONG);
    }
    _exit(0);
}

static void test_names_are_whole_or_refused(void)
{
    static const size_t lengths[] = {1, 255, 4095, 0, 4096, 4390};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct child_result result;
        child_run(&result, name_in_child, (void *)(uintptr_t)&lengths[i]);
        TEST_ASSERT_EQUAL_INT(i < 3 ? 0 : 1, result.exit_status);
    }
}

static void check_in_child(void *argument)
{
    setenv("TRACEALLOC_OPTIONS", argument, 1);
    memset(&ta__options, 0, sizeof ta__options);
    ta__options_read();
    _exit(OTHER);
}

/* tracealloc run asks so. */
static void test_a_process_that_only_checks_ends_with_the_answer(void)
{
    static const struct {
        const char *options, *said;
        int status;
    } cases[] = {
        {"check=yes", "", 0},
        {"check=yes,interval=1,output=x", "", 0},
        {"check=yes,interval=-1", "tracealloc: TRACEALLOC_OPTIONS: interval=-1: expected seconds, at least 0.01\n", 1},
        {"check=no,interval=1", "", OTHER},
        {"check=maybe", "tracealloc: TRACEALLOC_OPTIONS: check=maybe: expected yes or no\n", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct child_result result;
        child_run(&result, check_in_child, (void *)(uintptr_t)cases[i].options);
        TEST_ASSERT_EQUAL_STRING(cases[i].said, result.text);
        TEST_ASSERT_EQUAL_INT(cases[i].status, result.exit_status);
    }
}

static void test_frames_are_a_number_in_range(void)
{
    static const struct asked taken[] = {{"", NULL, OF(nframe), 0},         {"0", NULL, OF(nframe), 0},
                                         {"-0", NULL, OF(nframe), 0},       {"1", NULL, OF(nframe), 1},
                                         {" +07", NULL, OF(nframe), 7},     {"\t\r\n5", NULL, OF(nframe), 5},
                                         {"65535", NULL, OF(nframe), 65535}};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        expect_taken(&taken[i]);
    static const char *const invalid[] = {"-1", "+",  "-",   " ",          "5 ",
                                          "5x", "x5", "+-5", "2147483648", "99999999999999999999"};
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
        expect_refused(invalid[i], NULL, "TRACEALLOC: invalid number of frames");
    expect_refused("65536", NULL, "must be in range [1; 65535]");
    expect_refused("2147483647", NULL, "must be in range [1; 65535]");
}

/* At the first allocation libc may not have set up the environment. */
static void read_from_proc(void)
{
    environ = NULL;
    memset(&ta__options, 0, sizeof ta__options);
    ta__options_read();
    if (ta__options.nframe != 17 || strcmp(ta__options.output, "the name") != 0 || ta__options.sample_bytes != 4096)
        _exit(WRONG);
    _exit(ta__environment("TRACEALLO") == NULL && ta__environment("TRACEALLOCX") == NULL ? 0 : OTHER);
}

static void test_the_environment_is_read_from_proc_where_libc_has_none(void)
{
    static const char *const settings[] = {"TRACEALLO=1",
                                           "XTRACEALLOC=2",
                                           "TRACEALLOC=17",
                                           "TRACEALLOCS=3",
                                           "TRACEALLOC_OPTIONS=output=the name,sample=4K",
                                           NULL};
    struct child_result result;
    child_run_self(&result, "proc", settings);
    TEST_ASSERT_EQUAL_STRING("", result.text);
    TEST_ASSERT_EQUAL_INT(0, result.exit_status);
}

/* ---- what domains_at_exit=1 says ---------------------------------------------------------------------------------- */

static void leave_domains(void)
{
    ta_domain_set_name(7, "seven");
    void *volatile gone = ta_domain_malloc(7, 3000);
    ta_free(gone);
    for (int i = 0; i < 2; i++) {
        void *volatile kept = ta_domain_malloc(7, 1000);
        (void)kept;
    }
    void *volatile other = ta_domain_malloc(1234567890, 5);
    (void)other;
    exit(0);
}

static void expect_report(const char *frames, const char *is_asked, const char *title, int has_all)
{
    static const char
        row[] = "\n         7            2000           2            3000              5000             3  seven\n",
        other[] = "\n1234567890               5           1               5                 5             1  \n",
        heads[] = "    domain      live bytes      blocks      peak bytes   allocated bytes        blocks  name\n";
    const char *const settings[] = {frames, is_asked, NULL};
    struct child_result result;
    child_run_self(&result, "domains", settings);
    TEST_ASSERT_EQUAL_INT(0, result.exit_status);
    if (title == NULL) {
        TEST_ASSERT_EQUAL_STRING("", result.text);
        return;
    }
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, strncmp(result.text, title, strlen(title)), result.text);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, strncmp(result.text + strlen(title), heads, strlen(heads)), result.text);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(result.text, row), result.text);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(result.text, other), result.text);
    TEST_ASSERT_EQUAL_MESSAGE(has_all, strstr(result.text, "\n       all  ") != NULL, result.text);
    TEST_ASSERT_EQUAL_size_t(5 + (size_t)has_all, result.lines); /* title, heads, domain 0 and the two */
}

static void test_domains_are_told_at_exit_where_that_is_asked_for(void)
{
    expect_report("TRACEALLOC=1", "TRACEALLOC_OPTIONS=domains_at_exit=1", "tracealloc: domains at exit:\n", 1);
    expect_report("TRACEALLOC=0", "TRACEALLOC_OPTIONS=domains_at_exit=1",
                  "tracealloc: domains at exit (domain 0 is counted only while tracing):\n", 0);
    expect_report("TRACEALLOC=1", "TRACEALLOC_OPTIONS=domains_at_exit=0", NULL, 0);
    expect_report("TRACEALLOC=1", "TRACEALLOC_OPTIONS=", NULL, 0);
}

int main(int count, char **words)
{
    if (count > 1 && strcmp(words[1], "domains") == 0)
        leave_domains();
    if (count > 1 && strcmp(words[1], "proc") == 0)
        read_from_proc();
    UNITY_BEGIN();
    RUN_TEST(test_numbers_and_sizes_are_taken_up_to_their_ends);
    RUN_TEST(test_times_have_three_decimals_and_a_least);
    RUN_TEST(test_words_are_taken_as_they_are_written);
    RUN_TEST(test_signals_are_those_that_no_fault_raises);
    RUN_TEST(test_names_are_whole_or_refused);
    RUN_TEST(test_a_process_that_only_checks_ends_with_the_answer);
    RUN_TEST(test_frames_are_a_number_in_range);
    RUN_TEST(test_the_environment_is_read_from_proc_where_libc_has_none);
    RUN_TEST(test_domains_are_told_at_exit_where_that_is_asked_for);
    return UNITY_END();
}
