/* test_block_age.c: between which entries of a recording a block was asked for. The recording is made of arrays, and what was
 * seen of the process is one of its entries, or one more. */
#include "analysis/cli/block_age.h"
#include "tests/support/written.h"

static struct written written;
static struct fake_source *const fake = &written.fake;
static uint32_t app, outer, leaf, others[5];

/* Stacks beside the one that is looked for: another caller, another depth, domain, thread, and place. */
void setUp(void)
{
    written_open(&written);
    app = fake_module(fake, "/nonexistent/app", 0x1000, 0x2000000);
    uint32_t domain = fake_domain(fake, 9, "nine"), thread = fake_thread(fake, 17, "worker");
    outer = fake_context(fake, 0, 0x1100, app);
    uint32_t inner = fake_context(fake, outer, 0x1200, app), twin = fake_context(fake, 0, 0x1900, app);
    leaf = fake_leaf(fake, inner, 0, 0, 2);
    others[0] = fake_leaf(fake, fake_context(fake, twin, 0x1200, app), 0, 0, 2);
    others[1] = fake_leaf(fake, outer, 0, 0, 1);
    others[2] = fake_leaf(fake, inner, domain, 0, 2);
    others[3] = fake_leaf(fake, inner, 0, thread, 2);
    others[4] = fake_leaf(fake, fake_context(fake, outer, 0x1300, app), 0, 0, 2);
}

void tearDown(void)
{
    written_close(&written);
}

/* The others go on all the time. */
static void entry(uint64_t asked, uint64_t freed)
{
    fake_malloc(fake, leaf, asked, 100);
    fake_free(fake, leaf, freed, 100);
    for (int i = 0; i < 5; i++)
        fake_malloc(fake, others[i], 3, 10);
    written_entry(&written);
}

/* Which trace of a snapshot is the one that is looked for: blocks of 100 bytes. */
static size_t trace_of(const struct ta_snapshot *snapshot)
{
    struct ta_trace trace;
    for (size_t i = 0; ta_snapshot_trace(snapshot, i, &trace) == 0; i++)
        if (trace.count > 0 && trace.size == 100 * trace.count)
            return i;
    TEST_FAIL_MESSAGE("there is no such trace");
    return 0;
}

/* "1 to 31 of 31, 3 live": seconds, as the recording tells of an entry of its own. */
static const char *age_text(const char *of_entry)
{
    static char text[100];
    char name[100];
    struct cli_block_age age;
    sprintf(name, "%s%s", written_file(&written), of_entry);
    struct ta_snapshot *snapshot = ta_snapshot_load(name);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    int result = cli_block_age(&age, written.path, snapshot, trace_of(snapshot));
    ta_snapshot_free(snapshot);
    sprintf(text, "%llu to %llu of %llu, %llu live", (unsigned long long)age.earliest_ns / 1000000000,
            (unsigned long long)age.latest_ns / 1000000000, (unsigned long long)age.now_ns / 1000000000,
            (unsigned long long)age.live);
    return result == 0 ? text : "an error";
}

static void test_block_was_asked_for_after_the_last_entry_without_one(void)
{
    entry(0, 0);
    entry(2, 0);
    entry(0, 0);
    entry(1, 0);
    TEST_ASSERT_EQUAL_STRING("1 to 31 of 31, 3 live", age_text("@3"));
    TEST_ASSERT_EQUAL_STRING("1 to 11 of 21, 2 live", age_text("@2")); /* what came later says nothing */
    TEST_ASSERT_EQUAL_STRING("1 to 11 of 11, 2 live", age_text("@1"));
}

static void test_blocks_that_were_there_from_the_first_entry_have_no_earliest_moment(void)
{
    entry(2, 0);
    entry(0, 0);
    entry(0, 1);
    TEST_ASSERT_EQUAL_STRING("0 to 1 of 21, 1 live", age_text("@2"));
}

static void test_entry_in_which_all_were_freed_is_before_the_block(void)
{
    entry(5, 0);
    entry(0, 5);
    entry(0, 0);
    entry(4, 0);
    entry(0, 2);
    TEST_ASSERT_EQUAL_STRING("21 to 31 of 41, 2 live", age_text("@4"));
}

/* Counters of another start of the tracing are no counters of this one. */
static void test_entries_before_a_new_start_say_nothing_of_the_latest_moment(void)
{
    entry(3, 0);
    fake->source.start_time_ns += 5;
    entry(0, 0);
    entry(0, 0);
    TEST_ASSERT_EQUAL_STRING("0 to 11 of 21, 3 live", age_text("@2"));
}

/* What was seen later than the last entry: the look itself is the latest moment when more was asked for since. */
static void test_look_after_the_last_entry(void)
{
    struct cli_block_age age;
    entry(0, 0);
    entry(2, 0);
    char path[] = "/tmp/test-block-age-XXXXXX.ta";
    close(mkstemps(path, 3));
    struct ta_snapshot *until_now = ta_snapshot_load(written_file(&written));
    TEST_ASSERT_EQUAL(0, ta_snapshot_dump(until_now, path));
    ta_snapshot_free(until_now);
    entry(1, 0);
    struct ta_snapshot *now = ta_snapshot_load(written_file(&written));
    int result = cli_block_age(&age, path, now, trace_of(now));
    int refused = cli_block_age(&age, path, now, 100);
    unlink(path);
    TEST_ASSERT_EQUAL(0, result);
    TEST_ASSERT_EQUAL(-1, refused);
    TEST_ASSERT_EQUAL_UINT64(UINT64_C(21000000000), age.latest_ns);
    TEST_ASSERT_EQUAL_UINT64(0, age.earliest_ns);
    TEST_ASSERT_EQUAL_UINT64(3, age.live);
    TEST_ASSERT_EQUAL(-1, cli_block_age(&age, "/nonexistent/recording.ta", now, trace_of(now)));
    ta_snapshot_free(now);
}

static void test_recordings_of_others_and_of_samples_are_refused(void)
{
    struct cli_block_age age;
    entry(1, 0);
    struct ta_snapshot *snapshot = ta_snapshot_load(written_file(&written));
    written.facts.pid++;
    entry(0, 0);
    TEST_ASSERT_EQUAL(-1, cli_block_age(&age, written_file(&written), snapshot, trace_of(snapshot)));
    ta_snapshot_free(snapshot);
    tearDown();
    setUp();
    fake->source.sample_bytes = 4096;
    entry(1, 0);
    TEST_ASSERT_EQUAL_STRING("an error", age_text("@0"));
}

int main(void)
{
    if (freopen("/dev/null", "w", stderr) == NULL) /* the messages of what is refused */
        return 1;
    UNITY_BEGIN();
    RUN_TEST(test_block_was_asked_for_after_the_last_entry_without_one);
    RUN_TEST(test_blocks_that_were_there_from_the_first_entry_have_no_earliest_moment);
    RUN_TEST(test_entry_in_which_all_were_freed_is_before_the_block);
    RUN_TEST(test_entries_before_a_new_start_say_nothing_of_the_latest_moment);
    RUN_TEST(test_look_after_the_last_entry);
    RUN_TEST(test_recordings_of_others_and_of_samples_are_refused);
    return UNITY_END();
}
