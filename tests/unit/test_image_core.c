/* test_image_core.c: every answer about two small cores that are kept with the tests, compared with what they were. The files
 * of those cores are on no machine, so that all is as it was everywhere.
 *
 *     test_image_core CORE ANSWERS CORE ANSWERS [--write]
 *
 * When tests/fuzz/make_core.py has made another core, --write renews the answers: look at what changed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "base/error.h"
#include "tracealloc/image.h"
#include "tracealloc/snapshot.h"

static const char *core_path, *answers_path;
static FILE *out;

enum { MAPPINGS = 1000 };
enum { ALL = TA_IMAGE_BLOCKS | TA_IMAGE_MEMORY | TA_IMAGE_POINTERS | TA_IMAGE_PATHS };

void setUp(void)
{
}

void tearDown(void)
{
}

static struct ta_image *open_core(unsigned wants, unsigned flags, uint64_t about)
{
    const struct ta_image_options options = {.wants = wants, .flags = flags, .about = about};
    struct ta_image *image = ta_image_open(core_path, &options, sizeof options);
    TEST_ASSERT_NOT_NULL_MESSAGE(image, ta_error_text());
    return image;
}

/* ---- the process and its snapshot -------------------------------------------------------------------------------- */

static void say_info(const struct ta_image *image)
{
    struct ta_image_info info;
    TEST_ASSERT_EQUAL(0, ta_image_get_info(image, &info, sizeof info));
    fprintf(out, "process %u core %d can trace %d traces %d program %s command %s threads %" PRIu64 "\n", info.pid,
            info.is_core, info.can_trace, info.is_tracing, info.program, info.command, info.threads);
    fprintf(out,
            "blocks %" PRIu64 " bytes %" PRIu64 " untraced %" PRIu64 " bytes %" PRIu64 " signal %u fault %" PRIx64 "\n",
            info.blocks, info.bytes, info.untraced_blocks, info.untraced_bytes, info.signal, info.fault_address);
    const char *warning;
    for (size_t i = 0; (warning = ta_image_warning(image, i)) != NULL; i++)
        fprintf(out, "warning %s\n", warning);
}

static void say_traces(const struct ta_snapshot *snapshot)
{
    struct ta_trace trace;
    struct ta_raw_frame frames[16];
    fprintf(out, "traces %ld gone %ld limit %d\n", ta_snapshot_trace_count(snapshot),
            ta_snapshot_gone_trace_count(snapshot), ta_snapshot_traceback_limit(snapshot));
    long count = ta_snapshot_trace_count(snapshot) + ta_snapshot_gone_trace_count(snapshot);
    for (long i = 0; i < count; i++) {
        TEST_ASSERT_EQUAL(0, ta_snapshot_trace(snapshot, (size_t)i, &trace));
        fprintf(out,
                "trace %ld domain %u flags %u size %" PRIu64 " count %" PRIu64 " depth %" PRId64 " of all %" PRIu64
                " in %" PRIu64 " peak %" PRIu64 " thread %u:",
                i, trace.domain, trace.flags, trace.size, trace.count, trace.total_nframe, trace.allocated_bytes,
                trace.allocated_blocks, trace.peak_bytes, trace.thread);
        size_t depth = ta_snapshot_trace_frames(snapshot, (size_t)i, frames, 16);
        for (size_t f = 0; f < depth && f < 16; f++)
            fprintf(out, " %" PRIx64 "/%u", frames[f].address, frames[f].module);
        fputc('\n', out);
    }
}

static void say_snapshot(const struct ta_snapshot *snapshot)
{
    struct ta_snapshot_info info;
    struct ta_module_info module;
    struct ta_domain_info domain;
    struct ta_block block;
    const char *key, *value;
    TEST_ASSERT_EQUAL(0, ta_snapshot_info(snapshot, &info, sizeof info));
    fprintf(out,
            "snapshot %s %s process %u begun %" PRIu64 " current %" PRIu64 " peak %" PRIu64 " sample %" PRIu64
            " lost %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " contexts %" PRIu64
            " frames %" PRIu64 " threads %" PRIu64 "\n",
            info.program, info.reason, info.pid, info.start_time_ns, info.current_bytes, info.peak_bytes,
            info.sample_bytes, info.lost, info.overflowed, info.cut_short, info.foreign_frees, info.invalid_frees,
            info.snapshot_errors, info.contexts, info.frames, info.threads);
    say_traces(snapshot);
    for (size_t i = 0; ta_snapshot_module(snapshot, i, &module, sizeof module) == 0; i++) {
        fprintf(out, "module %s base %" PRIx64 " %" PRIx64 "-%" PRIx64 " ", module.path, module.load_base, module.start,
                module.end);
        for (size_t k = 0; k < module.build_id_length; k++)
            fprintf(out, "%02x", module.build_id[k]);
        fputc('\n', out);
    }
    for (size_t i = 0; ta_snapshot_domain(snapshot, i, &domain, sizeof domain) == 0; i++)
        fprintf(out, "domain %u %s %" PRIu64 " in %" PRIu64 " peak %" PRIu64 " of all %" PRIu64 " in %" PRIu64 "\n",
                domain.number, domain.name, domain.live_bytes, domain.live_blocks, domain.peak_bytes,
                domain.allocated_bytes, domain.allocated_blocks);
    for (size_t i = 0; ta_snapshot_option(snapshot, i, &key, &value) == 0; i++)
        fprintf(out, "option %s=%s\n", key, value);
    for (size_t i = 0; ta_snapshot_block(snapshot, i, &block) == 0; i++)
        fprintf(out, "block %" PRIx64 " %" PRIu64 " %ld\n", block.address, block.size, block.trace);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void say_memory(struct ta_image *image)
{
    static struct ta_memory_part parts[32];
    static struct ta_memory_mapping mappings[MAPPINGS];
    size_t count = ta_image_memory_parts(image, parts, 32);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "part %s (%s) %" PRIu64 " %d\n", parts[i].name, parts[i].words, parts[i].bytes,
                parts[i].is_in_rss);
    count = ta_image_memory_mappings(image, mappings, MAPPINGS);
    TEST_ASSERT_TRUE(count <= MAPPINGS);
    for (size_t i = 0; i < count; i++)
        fprintf(out,
                "mapping %" PRIx64 "-%" PRIx64 " %s rss %" PRIu64 " explained %" PRIu64 " swap %" PRIu64 " %s %s\n",
                mappings[i].start, mappings[i].end, mappings[i].rights, mappings[i].rss, mappings[i].explained,
                mappings[i].swap, mappings[i].part, mappings[i].path);
}

static void say_rows(struct ta_image *image, const char *key)
{
    struct ta_statistics *statistics = ta_snapshot_statistics(ta_image_snapshot(image), key, 0);
    TEST_ASSERT_NOT_NULL_MESSAGE(statistics, ta_error_text());
    size_t rows = ta_statistics_count(statistics) + 1;
    struct ta_memory_figures *figures = calloc(rows, sizeof *figures);
    struct ta_retained_row *retained = calloc(rows, sizeof *retained);
    TEST_ASSERT_EQUAL_MESSAGE(0, ta_image_memory_rows(image, statistics, figures), ta_error_text());
    TEST_ASSERT_EQUAL_MESSAGE(0, ta_image_retained_rows(image, statistics, retained), ta_error_text());
    for (size_t i = 0; i < rows; i++)
        fprintf(out,
                "%s %zu: %" PRIu64 " asked %" PRIu64 " occupied %" PRIu64 " resident %" PRIu64 " pinned %" PRIu64
                " back %" PRIu64 "; %" PRIu64 " of %" PRIu64 " retain %" PRIu64 " %d\n",
                key, i, figures[i].blocks, figures[i].asked, figures[i].occupied, figures[i].resident,
                figures[i].pinned, figures[i].back, retained[i].blocks, retained[i].bytes, retained[i].retained,
                retained[i].is_exact);
    free(figures);
    free(retained);
    ta_statistics_free(statistics);
}

static void say_measures(struct ta_image *image)
{
    for (int measure = TA_MEMORY_ASKED; measure <= TA_MEMORY_BACK; measure++) {
        struct ta_snapshot *snapshot = ta_image_memory_snapshot(image, (enum ta_memory_measure)measure);
        TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
        struct ta_trace trace;
        fprintf(out, "measure %d:", measure);
        for (size_t i = 0; ta_snapshot_trace(snapshot, i, &trace) == 0; i++)
            fprintf(out, " %" PRIu64, trace.size);
        fputc('\n', out);
        ta_snapshot_free(snapshot);
    }
}

static void say_retained(struct ta_image *image)
{
    struct ta_retained_block largest[20];
    long count = ta_image_retained_blocks(image, largest, 20);
    fprintf(out, "retaining blocks %ld\n", count);
    for (long i = 0; i < count && i < 8; i++)
        fprintf(out, "retains %" PRIx64 " %" PRIu64 " %ld: %" PRIu64 " %s\n", largest[i].block.address,
                largest[i].block.size, largest[i].block.trace, largest[i].retained, largest[i].type);
}

/* ---- leaks ------------------------------------------------------------------------------------------------------- */

static void say_leaks(struct ta_image *image, const char *known)
{
    struct ta_suppressions *suppressions = known != NULL ? ta_suppressions_parse(known, strlen(known)) : NULL;
    struct ta_leaks *leaks = ta_image_leaks(image, suppressions);
    TEST_ASSERT_NOT_NULL_MESSAGE(leaks, ta_error_text());
    struct ta_leak_totals totals;
    ta_leaks_totals(leaks, &totals, sizeof totals);
    fprintf(out,
            "leaks %" PRIu64 " direct %" PRIu64 " %" PRIu64 " indirect %" PRIu64 " %" PRIu64 " cycles %" PRIu64
            " suppressed %" PRIu64 " %" PRIu64 " reachable %" PRIu64 " inner %" PRIu64 " %" PRIu64 "\n",
            totals.rows, totals.direct_blocks, totals.direct_bytes, totals.indirect_blocks, totals.indirect_bytes,
            totals.cycles, totals.suppressed_blocks, totals.suppressed_bytes, totals.reachable_blocks,
            totals.inner_blocks, totals.inner_bytes);
    struct ta_leak leak;
    for (size_t i = 0; ta_leaks_get(leaks, i, &leak, sizeof leak) == 0; i++) {
        struct ta_block members[8];
        size_t count = ta_leaks_cycle(leaks, i, members, 8);
        fprintf(out,
                "leak trace %ld cycle %d known %ld: %" PRIu64 " %" PRIu64 " held %" PRIu64 " %" PRIu64 " at %" PRIx64
                " %" PRIu64 " circle %zu",
                leak.trace, leak.is_cycle, leak.suppression, leak.blocks, leak.bytes, leak.held_blocks, leak.held_bytes,
                leak.address, leak.largest_bytes, count);
        for (size_t k = 0; k < count && k < 8; k++)
            fprintf(out, " %" PRIx64 "+%" PRIu64, members[k].address, members[k].size);
        fputc('\n', out);
    }
    fprintf(out, "rows %zu\n", ta_leaks_count(leaks));
    uint64_t blocks, bytes;
    const char *pattern;
    for (size_t i = 0;
         suppressions != NULL && (pattern = ta_suppressions_get(suppressions, i, &blocks, &bytes)) != NULL; i++)
        fprintf(out, "pattern %s %" PRIu64 " %" PRIu64 "\n", pattern, blocks, bytes);
    ta_leaks_free(leaks);
    ta_suppressions_free(suppressions);
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static void say_place(const char *what, const struct ta_place *place)
{
    fprintf(out,
            "  %s kind %d %" PRIx64 " start %" PRIx64 " size %" PRIu64 " offset %" PRIu64
            " trace %ld thread %u %s %s\n",
            what, (int)place->kind, place->address, place->start, place->size, place->offset, place->trace,
            place->thread, place->name, place->type);
}

static void say_why(struct ta_image *image, uint64_t address)
{
    struct ta_place place, steps[12];
    struct ta_why *why = ta_image_why(image, address);
    if (why == NULL) {
        fprintf(out, "why %" PRIx64 ": %s\n", address, ta_error_text());
        return;
    }
    fprintf(out, "why %" PRIx64 " referrers %" PRIu64 " reached %d\n", address, ta_why_referrer_count(why),
            ta_why_is_reached(why));
    ta_why_place(why, &place);
    say_place("is", &place);
    if (ta_why_neighbour(why, -1, &place) == 0)
        say_place("before", &place);
    if (ta_why_neighbour(why, 1, &place) == 0)
        say_place("behind", &place);
    for (size_t i = 0; i < 4 && ta_why_referrer(why, i, &place) == 0; i++)
        say_place("from", &place);
    size_t count;
    for (size_t i = 0; i < 2 && (count = ta_why_path(why, i, steps, 12)) != 0; i++) {
        fprintf(out, "  way %zu has %zu steps\n", i, count);
        for (size_t k = 0; k < count && k < 12; k++)
            say_place("  step", &steps[k]);
    }
    ta_why_free(why);
}

static void say_addresses(struct ta_image *image)
{
    struct ta_block block;
    static struct ta_memory_mapping mappings[MAPPINGS];
    struct ta_snapshot *snapshot = ta_image_snapshot(image);
    for (size_t i = 0; ta_snapshot_block(snapshot, i, &block) == 0; i += 29) {
        say_why(image, block.address);
        say_why(image, block.address + block.size / 2);
        say_why(image, block.address + block.size);
        say_why(image, block.address - 1);
        say_why(image, block.address + 3 * block.size + 64);
    }
    size_t count = ta_image_memory_mappings(image, mappings, MAPPINGS);
    TEST_ASSERT_TRUE(count <= MAPPINGS);
    for (size_t i = 0; i < count; i += 11) {
        say_why(image, mappings[i].start);
        say_why(image, mappings[i].end - 1);
    }
    say_why(image, 0);
    say_why(image, UINT64_MAX);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void say_all(void)
{
    static const unsigned flags[] = {TA_IMAGE_EXACT, TA_IMAGE_UNALIGNED, TA_IMAGE_TAGGED,
                                     TA_IMAGE_EXACT | TA_IMAGE_UNALIGNED};
    struct ta_image *image = open_core(ALL, 0, 0);
    struct ta_block block;
    say_info(image);
    say_snapshot(ta_image_snapshot(image));
    say_memory(image);
    say_rows(image, "traceback");
    say_rows(image, "lineno");
    say_measures(image);
    say_retained(image);
    say_leaks(image, NULL);
    say_leaks(image, "# known\nleak:nowhere\nleak:app$\nleak:libc*\n");
    say_addresses(image);
    TEST_ASSERT_EQUAL(0, ta_snapshot_block(ta_image_snapshot(image), 20, &block));
    ta_image_close(image);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        fprintf(out, "== flags %u\n", flags[i]);
        image = open_core(ALL, flags[i], block.address);
        say_retained(image);
        say_leaks(image, NULL);
        say_why(image, block.address);
        ta_image_close(image);
    }
    fprintf(out, "== nothing but the snapshot\n");
    image = open_core(TA_IMAGE_SNAPSHOT, 0, 0);
    say_info(image);
    TEST_ASSERT_EQUAL(-1, ta_snapshot_block_count(ta_image_snapshot(image)));
    TEST_ASSERT_NULL(ta_image_leaks(image, NULL));
    fprintf(out, "%s\n", ta_error_text());
    TEST_ASSERT_NULL(ta_image_why(image, block.address));
    fprintf(out, "%s\n", ta_error_text());
    TEST_ASSERT_EQUAL(0, ta_image_memory_parts(image, NULL, 0));
    ta_image_close(image);
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    TEST_ASSERT_NOT_NULL_MESSAGE(file, path);
    TEST_ASSERT_NOT_NULL(text);
    TEST_ASSERT_TRUE(fread(text, 1, (1 << 20) - 1, file) < (1 << 20) - 1);
    fclose(file);
    return text;
}

/* The first line that differs says more than all of them. */
static void compare(void)
{
    char *said = NULL;
    size_t length = 0;
    out = open_memstream(&said, &length);
    TEST_ASSERT_NOT_NULL(out);
    say_all();
    TEST_ASSERT_EQUAL(0, fclose(out));
    char *expected = read_text(answers_path), *rest = expected, *at = said;
    for (char *line, *wanted; (wanted = strsep(&rest, "\n")) != NULL;) {
        line = strsep(&at, "\n");
        TEST_ASSERT_EQUAL_STRING(wanted, line);
    }
    TEST_ASSERT_NULL(at);
    free(expected);
    free(said);
}

static char **paths;

static void test_every_answer_is_what_it_was(void)
{
    core_path = paths[0];
    answers_path = paths[1];
    compare();
}

static void test_every_answer_about_threads_domains_and_circles_is_what_it_was(void)
{
    core_path = paths[2];
    answers_path = paths[3];
    compare();
}

static int write_answers(void)
{
    for (int i = 0; i < 4; i += 2) {
        core_path = paths[i];
        out = fopen(paths[i + 1], "w");
        say_all();
        fclose(out);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 1;
    paths = argv + 1;
    unsetenv("DEBUGINFOD_URLS"); /* nobody is asked */
    UNITY_BEGIN();
    if (argc > 5)
        return write_answers();
    RUN_TEST(test_every_answer_is_what_it_was);
    RUN_TEST(test_every_answer_about_threads_domains_and_circles_is_what_it_was);
    return UNITY_END();
}
