/* test_watch_model.c: what tracealloc watch makes of snapshots one after another: rows, rates, courses, marks, orders,
 * domains, and what it recalls of a recording that was there before. The recordings are made of arrays. */
#include "analysis/cli/cli.h"
#include "analysis/cli/watch.h"
#include "tests/support/written.h"

static struct written written;
static struct fake_source *const fake = &written.fake;
static struct cli_watch watch;
static uint32_t app, leaks, churns, other;

/* Three leaves in three functions without names: module + offset tells them apart. */
void setUp(void)
{
    written_open(&written);
    watch = (struct cli_watch){.order = CLI_BY_LIVE};
    app = fake_module(fake, "/nonexistent/app", 0x1000, 0x2000000);
    uint32_t *const leaves[] = {&leaks, &churns, &other};
    for (uint32_t i = 0; i < 3; i++)
        *leaves[i] = fake_leaf(fake, fake_context(fake, 0, 0x1100 + 0x100 * i, app), 0, 0, 1);
}

void tearDown(void)
{
    cli_watch_free(&watch);
    written_close(&written);
}

static void take(void)
{
    TEST_ASSERT_EQUAL_MESSAGE(CLI_OK, cli_watch_take(&watch, written_next(&written), 0), ta_error_text());
}

static const struct cli_watch_row *row_named(const char *name)
{
    for (size_t i = 0; i < watch.count; i++)
        if (strcmp(watch.rows[i].frame.function, name) == 0)
            return &watch.rows[i];
    TEST_FAIL_MESSAGE(name);
    return NULL;
}

/* "+0x100 +0x300": the offsets of the rows that are shown, in their order. */
static const char *shown_text(void)
{
    static char text[1000];
    text[0] = '\0';
    for (size_t i = 0; i < watch.shown_count; i++)
        sprintf(text + strlen(text), "%s%s", i > 0 ? " " : "", strrchr(watch.rows[watch.shown[i]].frame.function, '+'));
    return text;
}

static const char *course_text(const struct cli_course *course)
{
    static char text[2000];
    text[0] = '\0';
    for (size_t i = 0; i < course->count; i++)
        sprintf(text + strlen(text), "%s%g", i > 0 ? " " : "", course->values[i]);
    return text;
}

/* ---- rates ---- */

static void test_first_sample_has_no_rates_and_is_the_mark(void)
{
    fake_malloc(fake, leaks, 3, 100);
    fake_malloc(fake, churns, 5, 8);
    fake_free(fake, churns, 5, 8);
    take();
    TEST_ASSERT_EQUAL_UINT32(1, watch.generation);
    TEST_ASSERT_EQUAL_UINT64(300, watch.size);
    TEST_ASSERT_EQUAL_UINT64(3, watch.blocks);
    TEST_ASSERT_EQUAL_UINT64(8, watch.calls);
    TEST_ASSERT_EQUAL_UINT64(340, watch.bytes);
    TEST_ASSERT_EQUAL_UINT64(340, watch.peak);
    TEST_ASSERT_EQUAL_UINT64(1000000000, watch.time);
    TEST_ASSERT_EQUAL_UINT64(1000000000, watch.mark_time);
    TEST_ASSERT_EQUAL_UINT64(300, watch.mark_size);
    TEST_ASSERT_EQUAL_UINT64(8, watch.mark_calls);
    TEST_ASSERT_EQUAL_DOUBLE(0, watch.calls_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(0, watch.bytes_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(0, watch.growth_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(0, row_named("app+0x200")->calls_per_second);
    TEST_ASSERT_EQUAL_UINT64(300, row_named("app+0x100")->mark_size);
    TEST_ASSERT_EQUAL_UINT64(5, row_named("app+0x200")->mark_calls);
    TEST_ASSERT_EQUAL_STRING("300", course_text(&watch.live));
    TEST_ASSERT_GREATER_THAN_size_t(0, ta_calltree_count(watch.tree));
}

static void test_rates_are_what_came_since_the_sample_before_by_second(void)
{
    fake_malloc(fake, leaks, 3, 100);
    take();
    fake_malloc(fake, leaks, 5, 100);
    fake_malloc(fake, churns, 30, 8);
    fake_free(fake, churns, 30, 8);
    take();
    TEST_ASSERT_EQUAL_DOUBLE(3.5, watch.calls_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(74, watch.bytes_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(50, watch.growth_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(0.5, row_named("app+0x100")->calls_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(3, row_named("app+0x200")->calls_per_second);
    TEST_ASSERT_EQUAL_UINT64(800, row_named("app+0x100")->size);
    TEST_ASSERT_EQUAL_UINT64(8, row_named("app+0x100")->count);
    TEST_ASSERT_EQUAL_UINT64(8, row_named("app+0x100")->calls);
    TEST_ASSERT_EQUAL_UINT64(800, row_named("app+0x100")->bytes);
    TEST_ASSERT_EQUAL_UINT64(300, watch.mark_size);
    TEST_ASSERT_EQUAL_UINT64(1000000000, watch.mark_time);
    TEST_ASSERT_EQUAL_UINT64(UINT64_C(11000000000), watch.time);
    fake_free(fake, leaks, 6, 100);
    take();
    TEST_ASSERT_EQUAL_DOUBLE(0, watch.calls_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(0, watch.bytes_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(-60, watch.growth_per_second);
    TEST_ASSERT_EQUAL_STRING("300 800 200", course_text(&watch.live));
    TEST_ASSERT_EQUAL_STRING("300 800 200", course_text(&row_named("app+0x100")->course));
    TEST_ASSERT_EQUAL_STRING("0 0 0", course_text(&row_named("app+0x200")->course));
}

/* After a stop and a start all counts begin again: what was before is neither lost growth nor a rate. */
static void test_new_epoch_has_no_rates_and_is_the_mark(void)
{
    fake_malloc(fake, leaks, 30, 100);
    fake_malloc(fake, churns, 50, 8);
    take();
    fake_free(fake, leaks, 30, 100);
    fake_free(fake, churns, 50, 8);
    fake->source.epoch++;
    fake_malloc(fake, leaks, 2, 100);
    take();
    TEST_ASSERT_EQUAL_DOUBLE(0, watch.calls_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(0, watch.bytes_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(0, watch.growth_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(0, row_named("app+0x100")->calls_per_second);
    TEST_ASSERT_EQUAL_UINT64(UINT64_C(11000000000), watch.mark_time);
    TEST_ASSERT_EQUAL_UINT64(200, watch.mark_size);
    TEST_ASSERT_EQUAL_UINT64(200, row_named("app+0x100")->mark_size);
    TEST_ASSERT_EQUAL_UINT64(0, row_named("app+0x200")->mark_size);
    fake_malloc(fake, leaks, 5, 100);
    take();
    TEST_ASSERT_EQUAL_DOUBLE(0.5, watch.calls_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(50, watch.growth_per_second);
    TEST_ASSERT_EQUAL_UINT64(200, watch.mark_size);
}

static void test_nothing_has_a_rate_while_nothing_is_counted(void)
{
    fake_malloc(fake, leaks, 3, 100);
    take();
    fake_malloc(fake, leaks, 5, 100);
    take();
    TEST_ASSERT_EQUAL_DOUBLE(0.5, watch.calls_per_second);
    cli_watch_rest(&watch);
    TEST_ASSERT_EQUAL_DOUBLE(0, watch.calls_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(0, watch.bytes_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(0, watch.growth_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(0, row_named("app+0x100")->calls_per_second);
    TEST_ASSERT_EQUAL_UINT64(800, watch.size);
}

/* What was imported has no time, and clocks are set back. */
static void test_no_time_between_two_samples_makes_no_rates(void)
{
    fake_malloc(fake, leaks, 3, 100);
    take();
    written.facts.time_ns = watch.time;
    fake_malloc(fake, leaks, 3, 100);
    take();
    TEST_ASSERT_EQUAL_DOUBLE(0, watch.growth_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(0, watch.calls_per_second);
    written.facts.time_ns = watch.time - 1;
    fake_malloc(fake, leaks, 3, 100);
    take();
    TEST_ASSERT_EQUAL_DOUBLE(0, watch.growth_per_second);
    TEST_ASSERT_EQUAL_DOUBLE(0, watch.bytes_per_second);
    TEST_ASSERT_EQUAL_UINT64(900, watch.size);
}

static void test_peak_is_no_less_than_what_lives(void)
{
    fake_malloc(fake, leaks, 3, 100);
    fake->source.peak_bytes = 1000;
    take();
    TEST_ASSERT_EQUAL_UINT64(1000, watch.peak);
    fake->source.peak_bytes = 200;
    take();
    TEST_ASSERT_EQUAL_UINT64(300, watch.peak);
    TEST_ASSERT_EQUAL_UINT64(0, watch.sampled);
    fake->source.sample_bytes = 4096;
    take();
    TEST_ASSERT_EQUAL_UINT64(4096, watch.sampled);
}

/* What the feed knows of the process comes before what the recording says. */
static void test_resident_bytes_are_the_feeds_or_the_recordings(void)
{
    const struct ta__fact_pair pairs[] = {{"memory.resident", "12345"}};
    take();
    TEST_ASSERT_EQUAL_UINT64(0, watch.resident);
    TEST_ASSERT_EQUAL(CLI_OK, cli_watch_take(&watch, written_next(&written), 1));
    TEST_ASSERT_EQUAL_UINT64(1, watch.resident);
    written.facts.pairs = pairs;
    written.facts.pair_count = 1;
    take();
    TEST_ASSERT_EQUAL_UINT64(12345, watch.resident);
}

/* ---- rows ---- */

/* A row that is gone stays, without anything; what is new was nothing before. */
static void test_rows_that_go_and_come_keep_their_courses(void)
{
    fake_malloc(fake, leaks, 1, 100);
    take();
    fake_malloc(fake, leaks, 1, 100);
    take();
    uint32_t late = fake_leaf(fake, fake_context(fake, 0, 0x1900, app), 0, 0, 1);
    fake_malloc(fake, late, 2, 50);
    take();
    TEST_ASSERT_EQUAL_STRING("100 200 200", course_text(&row_named("app+0x100")->course));
    TEST_ASSERT_EQUAL_STRING("0 0 100", course_text(&row_named("app+0x900")->course));
    TEST_ASSERT_EQUAL_UINT64(0, row_named("app+0x900")->mark_size);
    TEST_ASSERT_EQUAL_DOUBLE(0.2, row_named("app+0x900")->calls_per_second);
    /* Cleared: these rows are in no sample any more. */
    fake->source.epoch++;
    fake->source.leaf_first = fake->source.leaf_count;
    memset(fake->counts, 0, fake->source.leaf_count * sizeof *fake->counts);
    fake->source.current_bytes = 0;
    uint32_t again = fake_leaf(fake, fake->leaves[late].context, 0, 0, 1);
    fake_malloc(fake, again, 1, 70);
    take();
    const struct cli_watch_row *gone = row_named("app+0x100");
    TEST_ASSERT_EQUAL_STRING("100 200 200 0", course_text(&gone->course));
    TEST_ASSERT_EQUAL_UINT64(0, gone->size);
    TEST_ASSERT_EQUAL_UINT64(0, gone->count);
    TEST_ASSERT_EQUAL_DOUBLE(0, gone->calls_per_second);
    TEST_ASSERT_EQUAL_STRING("0 0 100 70", course_text(&row_named("app+0x900")->course));
    TEST_ASSERT_EQUAL_UINT64(70, watch.size);
    TEST_ASSERT_EQUAL_DOUBLE(0, row_named("app+0x900")->calls_per_second);
}

static void test_course_remembers_so_many_values(void)
{
    for (int i = 0; i < CLI_COURSE + 3; i++) {
        fake_malloc(fake, leaks, 1, 10);
        take();
    }
    TEST_ASSERT_EQUAL_size_t(CLI_COURSE, watch.live.count);
    TEST_ASSERT_EQUAL_DOUBLE(40, watch.live.values[0]);
    TEST_ASSERT_EQUAL_DOUBLE(50, watch.live.values[1]);
    TEST_ASSERT_EQUAL_DOUBLE(10 * (CLI_COURSE + 3), watch.live.values[CLI_COURSE - 1]);
    TEST_ASSERT_EQUAL_DOUBLE(10 * (CLI_COURSE + 2), watch.live.values[CLI_COURSE - 2]);
    uint32_t late = fake_leaf(fake, fake_context(fake, 0, 0x1900, app), 0, 0, 1);
    fake_malloc(fake, late, 1, 7);
    take();
    const struct cli_course *course = &row_named("app+0x900")->course;
    TEST_ASSERT_EQUAL_size_t(CLI_COURSE, course->count);
    TEST_ASSERT_EQUAL_DOUBLE(0, course->values[CLI_COURSE - 2]);
    TEST_ASSERT_EQUAL_DOUBLE(7, course->values[CLI_COURSE - 1]);
}

/* More rows than there is room for at first; each is found again, none twice. */
static void test_many_rows_are_found_again(void)
{
    enum { MANY = 1500 };
    static uint32_t leaves[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        leaves[i] = fake_leaf(fake, fake_context(fake, 0, 0x10000 + 16 * i, app), 0, 0, 1);
        fake_malloc(fake, leaves[i], 1, i + 1);
    }
    take();
    TEST_ASSERT_EQUAL_size_t(MANY, watch.count);
    TEST_ASSERT_EQUAL_size_t(MANY, watch.shown_count);
    for (uint32_t i = 0; i < MANY; i++)
        fake_malloc(fake, leaves[i], 1, i + 1);
    take();
    TEST_ASSERT_EQUAL_size_t(MANY, watch.count);
    char name[32];
    for (uint32_t i = 0; i < MANY; i++) {
        sprintf(name, "app+0x%x", 0x10000 + 16 * i - 0x1000);
        TEST_ASSERT_EQUAL_UINT64(2 * (i + 1), row_named(name)->size);
        TEST_ASSERT_EQUAL_UINT64(i + 1, row_named(name)->mark_size);
    }
    TEST_ASSERT_EQUAL_UINT64(2 * MANY, watch.rows[watch.shown[0]].size);
    TEST_ASSERT_EQUAL_UINT64(2, watch.rows[watch.shown[MANY - 1]].size);
}

/* Rules are learned anew when there is much more to learn from; what only then becomes a row had its memory before. */
static void test_rows_of_newly_learned_rules_have_not_grown(void)
{
    fake_malloc(fake, leaks, 1, 100);
    take();
    TEST_ASSERT_EQUAL(1, watch.has_learned);
    TEST_ASSERT_EQUAL(1, watch.learned_from);
    for (uint32_t i = 0; i < 3; i++)
        fake_malloc(fake, fake_leaf(fake, fake_context(fake, 0, 0x3000 + 16 * i, app), 0, 0, 1), 1, 40);
    take(); /* four are not more than four times one */
    TEST_ASSERT_EQUAL(0, watch.has_learned);
    TEST_ASSERT_EQUAL_UINT64(0, row_named("app+0x2000")->mark_size);
    fake_malloc(fake, fake_leaf(fake, fake_context(fake, 0, 0x4000, app), 0, 0, 1), 1, 50);
    fake_malloc(fake, leaks, 1, 100);
    take();
    TEST_ASSERT_EQUAL(1, watch.has_learned);
    TEST_ASSERT_EQUAL(5, watch.learned_from);
    TEST_ASSERT_EQUAL_UINT64(50, row_named("app+0x3000")->mark_size);
    TEST_ASSERT_EQUAL_UINT64(0, row_named("app+0x2000")->mark_size);
    TEST_ASSERT_EQUAL_UINT64(100, row_named("app+0x100")->mark_size);
    fake_malloc(fake, fake_leaf(fake, fake_context(fake, 0, 0x5000, app), 0, 0, 1), 1, 60);
    take();
    TEST_ASSERT_EQUAL(0, watch.has_learned);
    TEST_ASSERT_EQUAL_UINT64(0, row_named("app+0x4000")->mark_size);
}

/* ---- marks, orders, filters ---- */

static void test_growth_counts_from_the_mark(void)
{
    fake_malloc(fake, leaks, 1, 100);
    take();
    fake_malloc(fake, leaks, 1, 100);
    take();
    TEST_ASSERT_EQUAL_UINT64(100, row_named("app+0x100")->mark_size);
    cli_watch_mark(&watch);
    TEST_ASSERT_EQUAL_UINT64(200, row_named("app+0x100")->mark_size);
    TEST_ASSERT_EQUAL_UINT64(2, row_named("app+0x100")->mark_calls);
    TEST_ASSERT_EQUAL_UINT64(200, watch.mark_size);
    TEST_ASSERT_EQUAL_UINT64(2, watch.mark_calls);
    TEST_ASSERT_EQUAL_UINT64(watch.time, watch.mark_time);
}

static void arrange_by(enum cli_watch_order order)
{
    watch.order = order;
    cli_watch_arrange(&watch);
}

/* By size, by growth, by rate and by calls each of them is another order; what is equal comes by size. */
static void test_each_order_is_by_its_own_numbers(void)
{
    uint32_t twin = fake_leaf(fake, fake_context(fake, 0, 0x1080, app), 0, 0, 1);
    fake_malloc(fake, leaks, 2, 500);
    fake_malloc(fake, churns, 90, 5);
    fake_malloc(fake, other, 1, 300);
    fake_malloc(fake, twin, 1, 299);
    take();
    fake_free(fake, leaks, 1, 100);
    fake_malloc(fake, churns, 10, 5);
    fake_malloc(fake, other, 40, 10);
    fake_free(fake, other, 40, 10);
    fake_malloc(fake, twin, 9, 600);
    fake_free(fake, twin, 9, 600);
    take();
    TEST_ASSERT_EQUAL_STRING("+0x100 +0x200 +0x300 +0x80", shown_text());
    arrange_by(CLI_BY_GROWTH);
    TEST_ASSERT_EQUAL_STRING("+0x200 +0x300 +0x80 +0x100", shown_text());
    arrange_by(CLI_BY_RATE);
    TEST_ASSERT_EQUAL_STRING("+0x300 +0x200 +0x80 +0x100", shown_text());
    arrange_by(CLI_BY_CALLS);
    TEST_ASSERT_EQUAL_STRING("+0x200 +0x300 +0x80 +0x100", shown_text());
}

static void test_equal_rows_come_by_size_then_by_place(void)
{
    struct cli_watch_row rows[] = {
        {.frame = {.filename = "b.c", .lineno = 3, .filename_length = 3}, .size = 8, .calls = 4},
        {.frame = {.filename = "b.c", .lineno = 1, .filename_length = 3}, .size = 8, .calls = 4},
        {.frame = {.filename = "a.c", .lineno = 9, .filename_length = 3}, .size = 8, .calls = 4},
        {.frame = {.filename = "c.c", .lineno = 1, .filename_length = 3}, .size = 9, .calls = 4},
        {.frame = {.filename = "a.c", .lineno = 1, .filename_length = 3}, .size = 8, .mark_size = 3, .calls = 4},
    };
    const uint32_t live[] = {3, 4, 2, 1, 0}, growth[] = {3, 2, 1, 0, 4};
    struct cli_watch made = {.rows = rows, .count = 5, .order = CLI_BY_LIVE};
    for (made.order = CLI_BY_LIVE; made.order < CLI_ORDERS; made.order++) {
        cli_watch_arrange(&made);
        TEST_ASSERT_EQUAL_UINT32_ARRAY(made.order == CLI_BY_GROWTH ? growth : live, made.shown, 5);
    }
    free(made.shown);
}

/* What neither lives nor lived at the mark is shown only where calls are looked at. */
static void test_what_lives_nowhere_is_shown_by_its_calls(void)
{
    fake_malloc(fake, leaks, 1, 100);
    fake_malloc(fake, other, 1, 10);
    take();
    fake_free(fake, other, 1, 10);
    fake_malloc(fake, churns, 1, 8);
    fake_free(fake, churns, 1, 8);
    take();
    TEST_ASSERT_EQUAL_STRING("+0x100 +0x300", shown_text());
    arrange_by(CLI_BY_GROWTH);
    TEST_ASSERT_EQUAL_STRING("+0x100 +0x300", shown_text());
    arrange_by(CLI_BY_RATE);
    TEST_ASSERT_EQUAL_STRING("+0x200 +0x100 +0x300", shown_text());
    arrange_by(CLI_BY_CALLS);
    TEST_ASSERT_EQUAL_size_t(3, watch.shown_count);
    arrange_by(CLI_BY_LIVE);
    cli_watch_mark(&watch);
    TEST_ASSERT_EQUAL_STRING("+0x100", shown_text());
}

static void test_filter_looks_at_function_file_and_module_in_any_case(void)
{
    fake_malloc(fake, leaks, 1, 100);
    uint32_t lib = fake_module(fake, "/nonexistent/Other", 0x5000000, 0x5001000);
    fake_malloc(fake, fake_leaf(fake, fake_context(fake, 0, 0x5000010, lib), 0, 0, 1), 1, 7);
    fake_malloc(fake, churns, 1, 8);
    fake_free(fake, churns, 1, 8);
    take();
    TEST_ASSERT_EQUAL_STRING("+0x100 +0x10", shown_text());
    const char *const filters[][2] = {
        {"other", "+0x10"},   {"ST", "+0x100 +0x10 +0x200"},
        {"0X100", "+0x100"},  {"app+0x2", "+0x200"}, /* a name shows also what is gone */
        {"nothing such", ""},
    };
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        strcpy(watch.filter, filters[i][0]);
        cli_watch_arrange(&watch);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(filters[i][1], shown_text(), filters[i][0]);
    }
}

static void test_each_text_of_a_row_is_looked_at_alone(void)
{
    const struct ta_frame frames[] = {
        {.function = "alpha", .filename = "beta.c", .module = "gamma", .lineno = 1, .filename_length = 6},
        {.function = "one", .filename = "two.c", .module = "three", .lineno = 2, .filename_length = 5},
    };
    struct cli_watch_row rows[2] = {{.frame = frames[0], .size = 1}, {.frame = frames[1], .size = 2}};
    struct cli_watch made = {.rows = rows, .count = 2};
    const char *const words[] = {"ALPHA", "beta", "gamma"};
    for (size_t i = 0; i < 3; i++) {
        strcpy(made.filter, words[i]);
        cli_watch_arrange(&made);
        TEST_ASSERT_EQUAL_size_t_MESSAGE(1, made.shown_count, words[i]);
        TEST_ASSERT_EQUAL_UINT32(0, made.shown[0]);
    }
    free(made.shown);
}

/* ---- domains ---- */

static void test_domains_have_their_sums_and_come_by_size_then_number(void)
{
    uint32_t cache = fake_domain(fake, 9, "cache"), twin = fake_domain(fake, 5, "twin"),
             small = fake_domain(fake, 7, "small");
    fake->domains[cache].peak_bytes = 4000;
    fake->domains[cache].limit_bytes = 9000;
    fake_malloc(fake, leaks, 2, 10);
    fake_malloc(fake, fake_leaf(fake, fake->leaves[leaks].context, cache, 0, 1), 2, 150);
    fake_malloc(fake, fake_leaf(fake, fake->leaves[churns].context, twin, 0, 1), 3, 100);
    fake_malloc(fake, fake_leaf(fake, fake->leaves[other].context, small, 0, 1), 4, 1);
    uint32_t more = fake_leaf(fake, fake->leaves[other].context, cache, 0, 1);
    fake_malloc(fake, more, 4, 10);
    fake_free(fake, more, 4, 10);
    take();
    take(); /* not added to what was there */
    char text[500] = "";
    for (size_t i = 0; i < watch.domain_count; i++) {
        const struct cli_watch_domain *domain = &watch.domains[i];
        sprintf(text + strlen(text), "%u %s %llu/%llu of %llu, %llu %llu\n", domain->number, domain->name,
                (unsigned long long)domain->size, (unsigned long long)domain->count, (unsigned long long)domain->calls,
                (unsigned long long)domain->peak, (unsigned long long)domain->limit);
    }
    TEST_ASSERT_EQUAL_STRING("5 twin 300/3 of 3, 0 0\n9 cache 300/2 of 6, 4000 9000\n0  20/2 of 2, 0 0\n"
                             "7 small 4/4 of 4, 0 0\n",
                             text);
}

/* ---- what was before ---- */

/* The course of before is there at once; the first sample is the last entry, which adds the last value. */
static void test_recording_that_was_there_is_recalled(void)
{
    for (int i = 0; i < 4; i++) {
        fake_malloc(fake, leaks, 1, 100);
        fake_malloc(fake, churns, 1, 8);
        fake_free(fake, churns, 1, 8);
        written_entry(&written);
    }
    cli_watch_recall(&watch, written_file(&written));
    TEST_ASSERT_EQUAL_STRING("100 200 300", course_text(&watch.live));
    TEST_ASSERT_EQUAL_STRING("100 200 300", course_text(&row_named("app+0x100")->course));
    TEST_ASSERT_NOT_NULL(watch.rules); /* its rows are told by what was learned of the whole */
    TEST_ASSERT_EQUAL(2, watch.learned_from);
    struct ta_snapshot *last = ta_snapshot_load(written.path);
    TEST_ASSERT_EQUAL(CLI_OK, cli_watch_take(&watch, last, 0));
    TEST_ASSERT_EQUAL_STRING("100 200 300 400", course_text(&watch.live));
    TEST_ASSERT_EQUAL_STRING("100 200 300 400", course_text(&row_named("app+0x100")->course));
    TEST_ASSERT_EQUAL_STRING("0 0 0 0", course_text(&row_named("app+0x200")->course));
    TEST_ASSERT_EQUAL(0, watch.has_learned);
    TEST_ASSERT_EQUAL_UINT64(400, row_named("app+0x100")->mark_size);
    TEST_ASSERT_EQUAL_DOUBLE(0, watch.growth_per_second);
}

static void test_recording_of_one_entry_or_none_recalls_nothing(void)
{
    fake_malloc(fake, leaks, 1, 100);
    written_entry(&written);
    cli_watch_recall(&watch, written_file(&written));
    TEST_ASSERT_EQUAL_size_t(0, watch.live.count);
    TEST_ASSERT_EQUAL_size_t(0, watch.count);
    cli_watch_recall(&watch, "/nonexistent/recording.ta");
    TEST_ASSERT_EQUAL_size_t(0, watch.live.count);
    take();
    TEST_ASSERT_EQUAL_STRING("100 100", (take(), course_text(&watch.live)));
}

static void test_recall_takes_the_last_entries_of_a_long_recording(void)
{
    for (int i = 0; i < CLI_COURSE + 6; i++) {
        fake_malloc(fake, leaks, 1, 10);
        written_entry(&written);
    }
    cli_watch_recall(&watch, written_file(&written));
    TEST_ASSERT_EQUAL_size_t(CLI_COURSE - 1, watch.live.count);
    TEST_ASSERT_EQUAL_DOUBLE(70, watch.live.values[0]);
    TEST_ASSERT_EQUAL_DOUBLE(10 * (CLI_COURSE + 5), watch.live.values[CLI_COURSE - 2]);
    const struct cli_course *course = &row_named("app+0x100")->course;
    TEST_ASSERT_EQUAL_size_t(CLI_COURSE - 1, course->count);
    TEST_ASSERT_EQUAL_DOUBLE(70, course->values[0]);
    TEST_ASSERT_EQUAL_DOUBLE(10 * (CLI_COURSE + 5), course->values[CLI_COURSE - 2]);
}

int main(void)
{
    setenv("HOME", "/nonexistent", 1); /* nobody's own rules */
    if (chdir("/") != 0)
        return 1;
    UNITY_BEGIN();
    RUN_TEST(test_first_sample_has_no_rates_and_is_the_mark);
    RUN_TEST(test_rates_are_what_came_since_the_sample_before_by_second);
    RUN_TEST(test_new_epoch_has_no_rates_and_is_the_mark);
    RUN_TEST(test_nothing_has_a_rate_while_nothing_is_counted);
    RUN_TEST(test_no_time_between_two_samples_makes_no_rates);
    RUN_TEST(test_peak_is_no_less_than_what_lives);
    RUN_TEST(test_resident_bytes_are_the_feeds_or_the_recordings);
    RUN_TEST(test_rows_that_go_and_come_keep_their_courses);
    RUN_TEST(test_course_remembers_so_many_values);
    RUN_TEST(test_many_rows_are_found_again);
    RUN_TEST(test_rows_of_newly_learned_rules_have_not_grown);
    RUN_TEST(test_growth_counts_from_the_mark);
    RUN_TEST(test_each_order_is_by_its_own_numbers);
    RUN_TEST(test_equal_rows_come_by_size_then_by_place);
    RUN_TEST(test_what_lives_nowhere_is_shown_by_its_calls);
    RUN_TEST(test_filter_looks_at_function_file_and_module_in_any_case);
    RUN_TEST(test_each_text_of_a_row_is_looked_at_alone);
    RUN_TEST(test_domains_have_their_sums_and_come_by_size_then_number);
    RUN_TEST(test_recording_that_was_there_is_recalled);
    RUN_TEST(test_recording_of_one_entry_or_none_recalls_nothing);
    RUN_TEST(test_recall_takes_the_last_entries_of_a_long_recording);
    return UNITY_END();
}
