/* test_channel_requests.c: every request of the channel (snapshot/triggers/channel_requests.c), byte by byte, in a process made
 * up here: what is answered, what is done, and what is refused and then not done. */
#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "alloc/alloc.h"
#include "alloc/domains/domains.h"
#include "base/error.h"
#include "snapshot/triggers/channel.h"
#include "snapshot/triggers/keeper.h"
#include "snapshot/triggers/triggers.h"
#include "snapshot/write/take.h"
#include "trace/trace.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

/* ---- the process: what it says when it is asked, and what was done to it ---- */

struct ta__options ta__options;
void (*ta__domain_on_limit)(uint32_t domain);

static struct {
    int traces, frames, may_stop;
    int start_fails, stop_fails, clear_fails, take_fails, file_fails, is_damaged, limit_fails;
    uint64_t interval_ns, epoch;
    char done[1000];
} process;

#define DONE(...) snprintf(process.done + strlen(process.done), sizeof process.done - strlen(process.done), __VA_ARGS__)

int ta_is_tracing(void)
{
    return process.traces;
}

int ta_get_traceback_limit(void)
{
    return process.frames;
}

void ta_get_traced_memory(size_t *current, size_t *peak)
{
    *current = 1000;
    *peak = 2000;
}

size_t ta_get_tracer_memory(void)
{
    return 300;
}

void ta_get_health(struct ta_health *health, size_t size)
{
    TEST_ASSERT_EQUAL(sizeof *health, size);
    *health = (struct ta_health){.lost = 5, .contexts = 7};
}

int ta_start(int nframe)
{
    DONE("start %d%s;", nframe, process.may_stop ? "" : " though it may not");
    if (process.start_fails)
        return ta__error_set("no start", NULL);
    process.traces = 1;
    process.frames = nframe;
    return 0;
}

void ta_stop(void)
{
    DONE("stop%s;", process.may_stop ? "" : " though it may not");
    if (process.stop_fails)
        ta__error_set("no stop", NULL);
    else
        process.traces = 0;
}

void ta_clear_traces(void)
{
    DONE("clear%s;", process.may_stop ? "" : " though it may not");
    if (process.clear_fails)
        ta__error_set("no clear", NULL);
    else
        process.epoch++;
}

uint64_t ta__trace_epoch(void)
{
    return process.epoch;
}

void ta__thread_may_stop(int may)
{
    process.may_stop = may;
}

pid_t ta__snapshot_process(void)
{
    return 4711;
}

int ta__triggers_take(const char *reason)
{
    DONE("take %s;", reason);
    return process.take_fails ? ta__error_set("no room", NULL) : 0;
}

uint64_t ta__triggers_interval(void)
{
    return process.interval_ns;
}

void ta__triggers_set_interval(uint64_t ns)
{
    process.interval_ns = ns;
    DONE("interval;");
}

void ta__triggers_take_at_limits(void)
{
    DONE("at limits;");
}

void ta__triggers_note_limit(uint32_t domain)
{
    (void)domain;
}

const char *ta__triggers_last_name(void)
{
    return "/tmp/x.ta";
}

int ta__keeper_try(void (*function)(void))
{
    if (!process.is_damaged)
        function();
    return !process.is_damaged;
}

int ta__snapshot_to_descriptor(int descriptor, const char *reason)
{
    DONE("file %d %s;", descriptor, reason);
    return process.file_fails ? ta__error_set("no disk", NULL) : 0;
}

int ta_domain_find(const char *name, uint32_t *domain)
{
    if (strcmp(name, "images") != 0)
        return 0;
    *domain = 6;
    return 1;
}

int ta__domain_limit_bytes(uint32_t domain, uint64_t soft, const uint64_t *hard)
{
    DONE("limit %u %llu", domain, (unsigned long long)soft);
    if (hard != NULL)
        DONE(" %llu", (unsigned long long)*hard);
    DONE("%s;", process.may_stop ? "" : " though it may not");
    return process.limit_fails ? ta__error_set("no limit", NULL) : 0;
}

void setUp(void)
{
    memset(&process, 0, sizeof process);
    memset(&ta__options, 0, sizeof ta__options);
    process.traces = 1;
    process.frames = 9;
    process.epoch = 3;
    process.interval_ns = 250999999;
    ta__options.sample_bytes = 64;
    strcpy(ta__options.output, "x.ta");
    ta__domain_on_limit = NULL;
}

void tearDown(void)
{
}

/* ---- asking ---- */

/* "-text" or "+text path", as it goes through the socket; what was done behind " | ". */
static const char *asked_with(const char *request, int descriptor)
{
    static char text[2000], line[1200];
    struct ta__channel_answer answer;
    memset(&answer, 0xee, sizeof answer);
    process.done[0] = '\0';
    strcpy(line, request);
    ta__channel_answer(&answer, line, descriptor);
    snprintf(text, sizeof text, "%c%.*s%s | %s", answer.is_refused ? '-' : '+', (int)answer.text.length,
             answer.text.text, answer.path != NULL ? answer.path : "", process.done);
    TEST_ASSERT_EQUAL_MESSAGE(0, process.may_stop, "it still may stop the others");
    return text;
}

#define ASKED(expected, request) TEST_ASSERT_EQUAL_STRING(expected, asked_with(request, -1))
#define STATE_OF(tracing, frames, live, rest)                                                                          \
    "process=4711\ntracing=" tracing "\nframes=" frames "\nsample=64\nlive=1000\npeak=2000\n" live rest                \
    "recording=/tmp/x.ta"
#define STATE(tracing, frames) STATE_OF(tracing, frames, "interval=250\n", "records=1\n")

static void test_the_state_is_told(void)
{
    ASKED("+tracer=300\nstacks=7\nlost=5\n" STATE("1", "9") " | ", "status");
    ASKED("+tracer=300\nstacks=7\nlost=5\n" STATE("1", "9") " | ", "   status   and more");
    process.traces = 0;
    ta__options.output[0] = '\0';
    ASKED("+tracer=300\nstacks=7\nlost=5\n" STATE_OF("0", "9", "interval=250\n", "records=0\n") " | ", "status");
}

static void test_what_is_no_request_is_refused(void)
{
    static const char *const none[] = {"", " ", "    ", "statu", "status2", "Status", "startx 5", "snap"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        ASKED("-no such request | ", none[i]);
}

static void test_it_is_started_with_the_frames_that_are_asked_for(void)
{
    process.traces = 0;
    ASKED("+was=0\n" STATE("1", "65535") " | start 65535;", "start");
    ASKED("+was=1\n" STATE("1", "1") " | start 1;", "start 1");
    ASKED("+was=1\n" STATE("1", "65535") " | start 65535;", "start 65535");
    static const char *const wrong[] = {"start 0",  "start 65536", "start -1",
                                        "start 3x", "start x",     "start 0000000000000000007"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ASKED("-the number of frames must be in range [1; 65535] | ", wrong[i]);
    ASKED("+was=1\n" STATE("1", "7") " | start 7;", "start 000000000000000007"); /* 18 digits */
    process.start_fails = 1;
    ASKED("-no start | start 5;", "start 5");
}

static void test_it_is_stopped_after_a_last_entry(void)
{
    ASKED("+was=1\n" STATE("0", "9") " | take stop;stop;", "stop");
    ASKED("+was=0\n" STATE("0", "9") " | stop;", "stop"); /* nothing to take */
    process.traces = 1;
    ta__options.output[0] = '\0';
    ASKED("+was=1\n" STATE_OF("0", "9", "interval=250\n", "records=0\n") " | stop;", "stop");
}

static void test_it_is_not_stopped_where_the_last_entry_cannot_be_written_unless_forced(void)
{
    process.take_fails = 1;
    ASKED("-no room | take stop;", "stop");
    ASKED("-no room | take stop;", "stop forced");
    TEST_ASSERT_EQUAL(1, process.traces);
    ASKED("+was=1\n" STATE("0", "9") " | take stop;stop;", "stop force");
    process.traces = 1;
    process.take_fails = 0;
    process.stop_fails = 1;
    ASKED("-no stop | take stop;stop;", "stop");
}

static void test_traces_are_forgotten_after_an_entry(void)
{
    ASKED("+" STATE("1", "9") " | take clear;clear;", "clear");
    process.clear_fails = 1;
    ASKED("-no clear | take clear;clear;", "clear");
    process.take_fails = 1;
    ASKED("-no room | take clear;", "clear");
    ta__options.output[0] = '\0';
    process.clear_fails = 0;
    ASKED("+" STATE_OF("1", "9", "interval=250\n", "records=0\n") " | clear;", "clear");
    process.traces = 0;
    ASKED("-nothing is traced | ", "clear");
}

static void test_an_entry_is_taken(void)
{
    ASKED("+recording=/tmp/x.ta | take ctl;", "snapshot");
    ASKED("+recording=/tmp/x.ta | take ctl;", "snapshot of the evening");
    process.take_fails = 1;
    ASKED("-no room | take ctl;", "snapshot");
    ta__options.output[0] = '\0';
    ASKED("-it has no recording | ", "snapshot");
    process.traces = 0;
    ASKED("-nothing is traced | ", "snapshot");
}

static void test_a_descriptor_gets_a_snapshot_of_its_own(void)
{
    ta__options.output[0] = '\0';
    TEST_ASSERT_EQUAL_STRING("+ | file 0 ctl;", asked_with("snapshot", 0));
    TEST_ASSERT_EQUAL_STRING("+ | file 12 ctl;", asked_with("snapshot", 12));
    process.file_fails = 1;
    TEST_ASSERT_EQUAL_STRING("-no disk | file 12 ctl;", asked_with("snapshot", 12));
    process.is_damaged = 1;
    TEST_ASSERT_EQUAL_STRING("-the tables of the process are damaged | ", asked_with("snapshot", 12));
    process.traces = 0;
    TEST_ASSERT_EQUAL_STRING("-nothing is traced | ", asked_with("snapshot", 12));
}

static void test_marks_have_1_to_200_bytes_of_text(void)
{
    char request[300] = "mark ", expected[300] = "+recording=/tmp/x.ta | take mark: ";
    ASKED("+recording=/tmp/x.ta | take mark: a;", "mark a");
    ASKED("+recording=/tmp/x.ta | take mark: two  words ;", "mark   two  words ");
    ASKED("+recording=/tmp/x.ta | take mark: a b c ~\x80;", "mark a\tb\x1f"
                                                            "c\x7f~\x80");
    memset(request + 5, 'm', 200);
    sprintf(expected + strlen(expected), "%.200s;", request + 5);
    ASKED(expected, request);
    request[205] = 'm';
    ASKED("-a mark has 1 to 200 bytes | ", request);
    ASKED("-a mark has 1 to 200 bytes | ", "mark");
    ASKED("-a mark has 1 to 200 bytes | ", "mark    ");
    process.traces = 0;
    ASKED("-nothing is traced | ", "mark a");
}

static void test_intervals_are_0_or_at_least_10_milliseconds(void)
{
    ASKED("+" STATE_OF("1", "9", "interval=10\n", "records=1\n") " | interval;", "interval 10");
    ASKED("+" STATE_OF("1", "9", "interval=1000000000\n", "records=1\n") " | interval;", "interval 1000000000");
    TEST_ASSERT_EQUAL_UINT64(UINT64_C(1000000000000000), process.interval_ns);
    ASKED("+" STATE_OF("1", "9", "interval=0\n", "records=1\n") " | interval;", "interval 0");
    static const char *const wrong[] = {"interval", "interval 9", "interval 1", "interval 1000000001", "interval 1s"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ASKED("-an interval is 0, or at least 0.01 seconds | ", wrong[i]);
    ta__options.output[0] = '\0';
    ASKED("-it has no recording | ", "interval 10");
    ASKED("+" STATE_OF("1", "9", "interval=0\n", "records=0\n") " | interval;", "interval 0");
}

static void test_limits_are_those_of_a_domain_by_number_or_name(void)
{
    ASKED("+domain=6\nsoft=1000\n | limit 6 1000 5000;at limits;", "limit images 1000 5000");
    TEST_ASSERT_TRUE(ta__domain_on_limit == ta__triggers_note_limit);
    ASKED("+domain=77\nsoft=1\n | limit 77 1;at limits;", "limit 77 1");
    ASKED("+domain=0\nsoft=1\n | limit 0 1;at limits;", "limit 0 1");
    ASKED("+domain=4294967295\nsoft=0\n | limit 4294967295 0 0;at limits;", "limit 4294967295 0 0");
    ASKED("+domain=4\nsoft=1152921504606846\n | limit 4 1152921504606846;at limits;", "limit 4 1152921504606846");
    ta__domain_on_limit = NULL;
    ta__options.output[0] = '\0';
    ASKED("+domain=6\nsoft=8\n | limit 6 8;", "limit 6 8");
    TEST_ASSERT_NULL(ta__domain_on_limit);
    process.limit_fails = 1;
    ASKED("-no limit | limit 6 8;", "limit 6 8");
}

static void test_limits_that_say_too_little_are_refused(void)
{
    static const char *const wrong[] = {"limit",       "limit 4",    "limit 4 x",
                                        "limit 4 1 y", "limit 4 -1", "limit 4 1000000000000000000000"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ASKED("-expected a domain and bytes | ", wrong[i]);
    ASKED("-there is no such domain | ", "limit nobody 5");
    ASKED("-there is no such domain | ", "limit 4294967296 5");
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_the_state_is_told);
    RUN_TEST(test_what_is_no_request_is_refused);
    RUN_TEST(test_it_is_started_with_the_frames_that_are_asked_for);
    RUN_TEST(test_it_is_stopped_after_a_last_entry);
    RUN_TEST(test_it_is_not_stopped_where_the_last_entry_cannot_be_written_unless_forced);
    RUN_TEST(test_traces_are_forgotten_after_an_entry);
    RUN_TEST(test_an_entry_is_taken);
    RUN_TEST(test_a_descriptor_gets_a_snapshot_of_its_own);
    RUN_TEST(test_marks_have_1_to_200_bytes_of_text);
    RUN_TEST(test_intervals_are_0_or_at_least_10_milliseconds);
    RUN_TEST(test_limits_are_those_of_a_domain_by_number_or_name);
    RUN_TEST(test_limits_that_say_too_little_are_refused);
    return UNITY_END();
}
