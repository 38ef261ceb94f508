/* test_autostart.c: what the options of the environment make of the triggers (snapshot/triggers/autostart.c), option by option. Its
 * constructor runs once in a process: each case executes this program again, with what is to be tried in the environment. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

#include "alloc/alloc.h"
#include "base/error.h"
#include "snapshot/format/codec.h"
#include "snapshot/triggers/channel.h"
#include "snapshot/triggers/crash.h"
#include "snapshot/triggers/memory_kinds.h"
#include "snapshot/triggers/triggers.h"
#include "snapshot/write/file_request.h"
#include "snapshot/write/take.h"
#include "trace/unwind/debug_section.h"
#include "tracealloc.h"

/* ---- the process of a case ---- */

struct ta__options ta__options;
void (*ta__domain_on_limit)(uint32_t domain);
int (*ta__unpack_zstd)(uint8_t *to, size_t room, const uint8_t *from, size_t length);

static struct ta__trigger_options given;
static void (*describer)(struct ta__pairs *pairs, const char *reason);
static const char *run = "", *lack, *crash = "", *opener, *preload;
static int fails, is_crash, foreign, ending, outlives, status = -1, namespace_is_ours = 1, is_ready;

#define SAY(...) (printf(__VA_ARGS__), fflush(stdout))

void ta__process_ready(void)
{
    is_ready = 1;
}

void ta__thread_stays_outside(void)
{
}

int ta__unpack_frames(uint8_t *to, size_t room, const uint8_t *from, size_t length)
{
    (void)to, (void)room, (void)from, (void)length;
    return 0;
}

const char *ta__environment(const char *name)
{
    return strcmp(name, "LD_PRELOAD") == 0 ? preload : strcmp(name, "TRACEALLOC_OPENER") == 0 ? opener : NULL;
}

void ta_get_traced_memory(size_t *current, size_t *peak)
{
    (void)peak;
    *current = 12345;
}

size_t ta_get_tracer_memory(void)
{
    return 678;
}

const char *ta__opener_run(void)
{
    return run;
}

pid_t ta__snapshot_process(void)
{
    return 4711;
}

static void put(struct ta__pairs *pairs, const char *text)
{
    strcat(pairs->text, text);
}

void ta__pairs_add(struct ta__pairs *pairs, const char *key, const char *value)
{
    put(pairs, key), put(pairs, "="), put(pairs, value), put(pairs, " ");
}

void ta__pairs_add_number(struct ta__pairs *pairs, const char *key, uint64_t number)
{
    char text[24];
    sprintf(text, "%llu", (unsigned long long)number);
    ta__pairs_add(pairs, key, text);
}

void ta__pairs_add_process(struct ta__pairs *pairs, pid_t owner)
{
    ta__pairs_add_number(pairs, "process", (uint64_t)owner);
}

void ta__memory_kinds_describe(struct ta__pairs *pairs, int all)
{
    put(pairs, all ? "all " : "sizes ");
}

void ta__memory_kinds_forget(void)
{
    SAY("forget ");
}

void ta__memory_kinds_watch(uint64_t busy_ns)
{
    (void)busy_ns;
}

/* `foreign`: how many frames are known of it, -1 = that it was. */
int ta__foreign_first(struct ta__foreign_free *found)
{
    *found = (struct ta__foreign_free){.user = 0x7ff0};
    for (int i = 0; i < foreign; i++)
        found->frames[i] = 0x1001 + (uint64_t)i;
    return foreign != 0;
}

void ta__place_text(struct ta__message *message, uint64_t ip)
{
    message->length = (size_t)sprintf(message->text, "at %llx", (unsigned long long)ip);
}

void ta__pairs_add_row(struct ta__pairs *pairs, const char *prefix, uint64_t row, const char *value)
{
    char key[40];
    sprintf(key, "%s%llu", prefix, (unsigned long long)row);
    ta__pairs_add(pairs, key, value);
}

int ta__crash_is_noted(void)
{
    return is_crash;
}

const char *ta__crash_name(void)
{
    return crash;
}

void ta__crash_describe(struct ta__pairs *pairs)
{
    put(pairs, "crash ");
}

int ta__ending_signal(void)
{
    return ending;
}

int ta__exit_status(void)
{
    return status;
}

int ta__namespace_is_ours(uint64_t number)
{
    return namespace_is_ours && number == ta__options.process_namespace;
}

void ta__channel_prepare(void)
{
    SAY("channel ");
}

void ta__snapshot_set_describer(void (*describe)(struct ta__pairs *pairs, const char *reason))
{
    describer = describe;
}

int ta__triggers_start(const struct ta__trigger_options *options)
{
    given = *options;
    SAY("start ");
    return fails ? ta__error_set("no way", NULL) : 0;
}

int ta__triggers_outlive(void)
{
    return outlives;
}

void ta__watch_ends(int is_outlived)
{
    SAY("ends %d ", is_outlived);
}

void ta__triggers_note_limit(uint32_t domain)
{
    (void)domain;
}

const char *ta__triggers_lack(void)
{
    return lack;
}

void ta__triggers_exit(void)
{
    SAY("exit ");
}

void ta__triggers_poke(void)
{
    SAY("poke ");
}

/* ---- a case: words of the environment variable CASE ---- */

static int has(const char *word)
{
    const char *at = getenv("CASE"), *end;
    size_t length = strlen(word);
    for (; at != NULL && *at != '\0'; at = *end == ' ' ? end + 1 : end) {
        end = at + strcspn(at, " ");
        if ((size_t)(end - at) == length && strncmp(at, word, length) == 0)
            return 1;
    }
    return 0;
}

/* Before the constructor that is tried. */
__attribute__((constructor(101))) static void set_up_case(void)
{
    struct ta__options *options = &ta__options;
    if (getenv("CASE") == NULL)
        return;
    strcpy(options->output, has("file")         ? "/x/a.ta"
                            : has("device")     ? "/dev/stdout"
                            : has("descriptor") ? "/proc/self/fd/3"
                            : has("devices")    ? "/devices/x"
                                                : "");
    strcpy(options->family, has("family") ? "/x/family" : "");
    options->is_series = has("series");
    options->has_channel = has("channel");
    options->no_exit_snapshot = has("no_exit");
    options->watches_ends = has("watches_ends");
    options->signal_number = has("signal") ? 12 : 0;
    options->interval_ns = has("interval") ? 5000 : 0;
    options->at_peak = has("peak");
    options->peak_percent = 7;
    options->at_limit = has("limit");
    options->is_paced = has("paced");
    options->is_loud = has("loud");
    options->no_follow = has("no_follow");
    options->file_limit = has("file_limit") ? 900 : 0;
    options->process = has("ours") ? getpid() : has("others") ? getpid() + 1 : 0;
    options->process_namespace = 33;
    opener = has("opener") ? "run:token" : NULL;
    preload = has("valgrind") ? "/usr/lib/vgpreload_core.so" : has("preloaded") ? "/usr/lib/libtracealloc.so" : NULL;
    fails = has("fails");
    outlives = has("outlives");
    namespace_is_ours = !has("container");
}

static void tell_options(void)
{
    char end[8];
    const char *numbers[] = {"exit",        "rest", "peak",  "limit",  "forked",
                             "no_children", "loud", "paced", "keeper", "dies"};
    const int values[] = {given.at_exit,     given.may_rest, given.at_peak,  given.at_limit,   given.forked,
                          given.no_children, given.loud,     given.is_paced, given.has_keeper, given.dies_with_us};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i])
            SAY("%s ", numbers[i]);
    if (given.path != NULL)
        SAY("path=%s ", given.path);
    if (given.series != NULL)
        SAY("series=%s ", given.series);
    if (given.family != NULL)
        SAY("family=%s ", given.family);
    if (given.opener != NULL)
        SAY("opener=%s ", given.opener);
    if (given.signal_number != 0)
        SAY("signal=%d ", given.signal_number);
    if (given.interval_ns != 0)
        SAY("interval=%d ", (int)given.interval_ns);
    if (given.file_limit != 0)
        SAY("file_limit=%d ", (int)given.file_limit);
    if (given.peak_percent != 0)
        SAY("percent=%u ", given.peak_percent);
    if (given.current_bytes != NULL)
        SAY("current=%d ", (int)given.current_bytes());
    SAY("%s%s%s", given.in_keeper == ta__thread_stays_outside ? "outside " : "",
        given.watch == ta__memory_kinds_watch ? "watch " : "", given.end_of != NULL ? "end " : "");
    if (ta__domain_on_limit == ta__triggers_note_limit)
        SAY("on_limit ");
    if (has("ask_end") && given.end_of != NULL) {
        static const struct {
            const char *crash;
            int status, ending;
        } ends[] = {{"", -1, 0},           {"", 0, 0},          {"", 255, 0},      {"SIGSEGV", 3, 0},
                    {"SIGLONGNAME", 4, 0}, {"SIGLONGN", -1, 0}, {"", -1, SIGTERM}, {"", 7, SIGINT},
                    {"SIGBUS", -1, SIGHUP}};
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            crash = ends[i].crash;
            status = ends[i].status;
            ending = ends[i].ending;
            strcpy(end, "?");
            given.end_of(end, sizeof end);
            SAY("<%s>", end);
        }
    }
    SAY("%s", ta__unpack_zstd == ta__unpack_frames ? "" : "nothing unpacks ");
    SAY("%s", is_ready ? "" : "too early ");
}

static const char *case_of(const char *words)
{
    static char told[2000];
    char program[4096], command[5000];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    TEST_ASSERT_GREATER_THAN(0, length);
    program[length] = '\0';
    snprintf(command, sizeof command, "CASE='%s' '%s' 2>&1", words, program);
    FILE *from = popen(command, "r");
    size_t got = fread(told, 1, sizeof told - 1, from);
    told[got] = '\0';
    TEST_ASSERT_EQUAL_MESSAGE(0, pclose(from), told);
    return told;
}

#define CASE(expected, words) TEST_ASSERT_EQUAL_STRING(expected, case_of(words))

void setUp(void)
{
}

void tearDown(void)
{
}

/* ---- tests ---- */

static void test_nothing_is_started_where_nothing_is_asked_for(void)
{
    CASE("nothing ", "");
    CASE("nothing ", "paced peak interval signal loud series");
}

#define FILE_ONLY "start exit path=/x/a.ta percent=7 outside watch end "

static void test_a_file_alone_needs_no_helper(void)
{
    CASE(FILE_ONLY "exit ", "file");
    CASE("start path=/x/a.ta percent=7 outside watch end exit ", "file no_exit");
    CASE("start exit series=/x/a.ta percent=7 outside watch end exit ", "file series");
    CASE("start exit loud path=/x/a.ta file_limit=900 percent=7 outside watch end exit ", "file loud file_limit");
    CASE("start exit no_children path=/x/a.ta opener=run:token percent=7 outside watch end exit ",
         "file no_follow opener");
    CASE("start exit dies path=/x/a.ta percent=7 outside watch end exit ", "file container");
}

/* Each that must be looked after. */
static void test_what_must_be_looked_after_has_a_keeper(void)
{
    CASE("start exit keeper path=/x/a.ta interval=5000 percent=7 outside watch end exit ", "file interval");
    CASE("start exit peak keeper path=/x/a.ta percent=7 current=12345 outside watch end exit ", "file peak");
    CASE("start exit paced keeper path=/x/a.ta percent=7 current=12345 outside watch end exit ", "file paced");
    CASE("start exit keeper path=/x/a.ta signal=12 percent=7 outside watch end exit ", "file signal");
    CASE("start exit limit keeper path=/x/a.ta percent=7 outside watch end on_limit exit ", "file limit");
    CASE("channel start exit rest keeper path=/x/a.ta percent=7 outside watch end exit ", "file channel");
    CASE("start ends 0 exit keeper path=/x/a.ta percent=7 outside watch end exit ", "file watches_ends");
}

static void test_no_keeper_where_it_cannot_have_the_file_or_be(void)
{
    CASE("start exit path=/dev/stdout interval=5000 percent=7 outside watch end exit ", "device interval");
    CASE("start exit path=/proc/self/fd/3 interval=5000 percent=7 outside watch end exit ", "descriptor interval");
    CASE("start exit keeper path=/devices/x interval=5000 percent=7 outside watch end exit ", "devices interval");
    CASE("start exit path=/x/a.ta interval=5000 percent=7 outside watch end exit ", "file interval valgrind");
    CASE("start exit keeper path=/x/a.ta interval=5000 percent=7 outside watch end exit ", "file interval preloaded");
}

static void test_other_processes_have_files_of_their_own(void)
{
    CASE(FILE_ONLY "exit ", "file ours");
    CASE("start exit forked path=/x/a.ta percent=7 outside watch end exit ", "file others");
    CASE("start exit path=/x/a.ta family=/x/family percent=7 outside watch end exit ", "file family");
}

static void test_a_channel_alone_rests_until_it_is_asked(void)
{
    CASE("channel start rest keeper outside exit ", "channel");
    CASE("channel start rest no_children keeper outside exit ", "channel no_follow");
    CASE("channel start rest outside exit ", "channel valgrind");
    CASE("channel start rest keeper outside exit ", "channel limit watches_ends paced peak");
}

static void test_ends_are_watched_where_a_last_entry_is_wanted(void)
{
    CASE("start ends 1 exit keeper path=/x/a.ta percent=7 outside watch end exit ", "file watches_ends outlives");
    CASE("start keeper path=/x/a.ta percent=7 outside watch end exit ", "file watches_ends no_exit");
}

static void test_what_cannot_start_is_said_and_not_ended(void)
{
    CASE("start tracealloc: no snapshots: no way\nexit limit keeper path=/x/a.ta percent=7 outside watch end ",
         "file limit watches_ends fails");
}

static void test_a_child_looks_for_itself(void)
{
    CASE(FILE_ONLY "forget poke exit ", "file fork");
    CASE("nothing ", "fork");
}

/* A name is told where it fits, else the status, where one is known. */
static void test_the_end_is_told_in_a_word(void)
{
    CASE(FILE_ONLY "<?><0><255><SIGSEGV><4><?><SIGTERM><SIGINT><SIGBUS>exit ", "file ask_end");
}

static void say_unless_described(const char *expected, const char *reason)
{
    static struct ta__pairs pairs;
    pairs.text[0] = '\0';
    describer(&pairs, reason);
    if (strcmp(expected, pairs.text) != 0)
        SAY("\n%s: expected '%s', was '%s'\n", reason, expected, pairs.text);
}

static void test_frequent_entries_say_less(void)
{
    CASE(FILE_ONLY "exit ", "file describe");
}

static void describe_all(void)
{
    static const char *const small[] = {"pace", "interval", "peak", "limit", "rights"};
    static const char *const large[] = {"exit", "end", "exec", "ctl", "signal", "call", "pac", "paced", "mark: pace"};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        say_unless_described("process=4711 sizes ", small[i]);
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        say_unless_described("process=4711 memory.tracer=678 all ", large[i]);
    foreign = -1;
    say_unless_described("process=4711 memory.tracer=678 all foreign.address=0x7ff0 ", "exit");
    foreign = 2;
    say_unless_described("process=4711 memory.tracer=678 all foreign.address=0x7ff0 foreign.frame.0=at 1000 "
                         "foreign.frame.1=at 1001 ",
                         "end");
    foreign = 8;
    say_unless_described("process=4711 sizes ", "pace");
    foreign = 0;
    run = "the-run";
    lack = "a helper";
    say_unless_described("run=the-run process=4711 sizes missing=a helper ", "pace");
    is_crash = 1;
    say_unless_described("run=the-run process=4711 memory.tracer=678 all missing=a helper crash ", "end");
}

int main(void)
{
    if (getenv("CASE") != NULL) {
        if (given.in_keeper == NULL)
            SAY("nothing ");
        else
            tell_options();
        if (has("describe"))
            describe_all();
        if (has("fork")) {
            pid_t child = fork();
            if (child == 0)
                _exit(0);
            waitpid(child, NULL, 0);
        }
        return 0;
    }
    UNITY_BEGIN();
    RUN_TEST(test_nothing_is_started_where_nothing_is_asked_for);
    RUN_TEST(test_a_file_alone_needs_no_helper);
    RUN_TEST(test_what_must_be_looked_after_has_a_keeper);
    RUN_TEST(test_no_keeper_where_it_cannot_have_the_file_or_be);
    RUN_TEST(test_other_processes_have_files_of_their_own);
    RUN_TEST(test_a_channel_alone_rests_until_it_is_asked);
    RUN_TEST(test_ends_are_watched_where_a_last_entry_is_wanted);
    RUN_TEST(test_what_cannot_start_is_said_and_not_ended);
    RUN_TEST(test_a_child_looks_for_itself);
    RUN_TEST(test_the_end_is_told_in_a_word);
    RUN_TEST(test_frequent_entries_say_less);
    return UNITY_END();
}
