/* test_snapshot_builder.c: snapshots built row by row: what is equal gets one number, stacks are turned around, and a lack of
 * memory at any moment is said and leaves nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "base/error.h"
#include "base/memory.h"
#include "snapshot/format/buffer.h"
#include "snapshot/format/format.h"
#include "snapshot/read/read.h"
#include "tracealloc/snapshot.h"

static struct ta__snapshot_builder *builder;
static size_t mapped_before;

void setUp(void)
{
    mapped_before = ta__memory_mapped();
    builder = ta__snapshot_builder_create();
    TEST_ASSERT_NOT_NULL(builder);
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
    ta__snapshot_builder_destroy(builder);
    TEST_ASSERT_EQUAL(mapped_before, ta__memory_mapped());
}

static uint32_t name(const char *text)
{
    uint32_t id;
    TEST_ASSERT_EQUAL(0, ta__snapshot_builder_name(builder, text, strlen(text), &id));
    return id;
}

static uint32_t line(uint32_t file, uint32_t number)
{
    uint32_t id;
    TEST_ASSERT_EQUAL(0, ta__snapshot_builder_frame(builder, file, number, &id));
    return id;
}

static uint32_t address(uint64_t place, uint32_t module)
{
    uint32_t id;
    TEST_ASSERT_EQUAL(0, ta__snapshot_builder_address(builder, place, module, &id));
    return id;
}

static uint32_t context(uint32_t parent, uint32_t frame)
{
    uint32_t id;
    TEST_ASSERT_EQUAL(0, ta__snapshot_builder_context(builder, parent, frame, &id));
    return id;
}

static struct ta_snapshot *finish(void)
{
    struct ta_snapshot *snapshot = ta__snapshot_builder_finish(builder, 7);
    builder = NULL;
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta__error_text());
    return snapshot;
}

static void test_equal_rows_have_one_number_and_others_their_own(void)
{
    enum { MANY = 3000 };
    uint32_t overflow;
    TEST_ASSERT_EQUAL(0, name(""));
    uint32_t a = name("a.c"), b = name("b.c");
    TEST_ASSERT_EQUAL(1, a);
    TEST_ASSERT_EQUAL(2, b);
    TEST_ASSERT_EQUAL(3, name("a."));
    TEST_ASSERT_EQUAL(1, name("a.c"));
    TEST_ASSERT_EQUAL(4, name("c"));
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < MANY; i++) {
            TEST_ASSERT_EQUAL(4 * i, address(i, 0));
            TEST_ASSERT_EQUAL(4 * i + 1, address(i, 1));
            TEST_ASSERT_EQUAL(4 * i + 2, line(a, i));
            TEST_ASSERT_EQUAL(4 * i + 3, line(b, i));
        }
    TEST_ASSERT_EQUAL(0, ta__snapshot_builder_overflow(builder, &overflow));
    TEST_ASSERT_EQUAL(4 * MANY, overflow);
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < MANY; i++) {
            TEST_ASSERT_EQUAL(2 * i + 1, context(0, i));
            TEST_ASSERT_EQUAL(2 * i + 2, context(1, i));
        }
    struct ta_snapshot *snapshot = finish();
    const struct ta__view *view = ta__snapshot_view(snapshot);
    TEST_ASSERT_EQUAL(5, view->string_count);
    TEST_ASSERT_EQUAL_STRING("a.", view->strings[3].text);
    TEST_ASSERT_EQUAL_STRING("c", view->strings[4].text);
    TEST_ASSERT_EQUAL(4 * MANY + 1, view->frame_count);
    TEST_ASSERT_EQUAL(2 * MANY + 1, view->context_count);
    ta_snapshot_free(snapshot);
}

static void add_live_rows(void)
{
    static const uint8_t first_id[] = {1, 2}, second_id[] = {3, 4, 5};
    const struct ta__view_module first = {.path = name("/x"), .build_id = first_id, .build_id_length = 2, .end = 9},
                                 second = {.path = name("/y"), .build_id = second_id, .build_id_length = 3, .end = 8};
    const struct ta__view_domain domain = {.number = 4, .name = name("pool"), .live_bytes = 10};
    const struct ta__view_thread thread = {.tid = 77, .name = name("worker")};
    const struct ta__view_pair option = {name("key"), name("value")};
    const struct ta__view_trace live = {.context = context(context(0, address(0x10, 1)), address(0x20, 2)),
                                        .size = 10,
                                        .count = 1,
                                        .total_nframe = 2},
                                gone = {.context = 1, .allocated_bytes = 5, .allocated_blocks = 1, .total_nframe = 1};
    const struct ta__view_block block = ta__view_block(0x1000, 10, 0);
    TEST_ASSERT_EQUAL(0, ta__snapshot_builder_module(builder, &first));
    TEST_ASSERT_EQUAL(0, ta__snapshot_builder_module(builder, &second));
    TEST_ASSERT_EQUAL(0, ta__snapshot_builder_domain(builder, &domain));
    TEST_ASSERT_EQUAL(0, ta__snapshot_builder_thread(builder, &thread));
    TEST_ASSERT_EQUAL(0, ta__snapshot_builder_option(builder, &option));
    TEST_ASSERT_EQUAL(0, ta__snapshot_builder_trace(builder, &live));
    TEST_ASSERT_EQUAL(0, ta__snapshot_builder_trace(builder, &gone));
    TEST_ASSERT_EQUAL(0, ta__buffer_put(ta__snapshot_builder_blocks(builder), &block, sizeof block));
    ta__snapshot_builder_view(builder)->gone_trace_count = 1;
    ta__snapshot_builder_view(builder)->has_blocks = 1;
    ta__snapshot_builder_view(builder)->pid = 99;
}

static void test_rows_of_a_process_are_kept_as_they_are(void)
{
    add_live_rows();
    struct ta_snapshot *snapshot = ta__snapshot_builder_finish_live(builder);
    builder = NULL;
    TEST_ASSERT_NOT_NULL(snapshot);
    const struct ta__view *view = ta__snapshot_view(snapshot);
    TEST_ASSERT_EQUAL(99, view->pid);
    TEST_ASSERT_EQUAL(1, view->trace_count);
    TEST_ASSERT_EQUAL(1, view->gone_trace_count);
    TEST_ASSERT_EQUAL_UINT64(10, view->traces[0].size);
    TEST_ASSERT_EQUAL_UINT64(5, view->traces[1].allocated_bytes);
    TEST_ASSERT_EQUAL(2, view->module_count);
    TEST_ASSERT_EQUAL_STRING("/x", view->strings[view->modules[0].path].text);
    TEST_ASSERT_EQUAL_HEX8(1, view->modules[0].build_id[0]);
    TEST_ASSERT_EQUAL_HEX8(3, view->modules[1].build_id[0]);
    TEST_ASSERT_EQUAL_HEX8(5, view->modules[1].build_id[2]);
    TEST_ASSERT_EQUAL_STRING("pool", view->strings[view->domains[0].name].text);
    TEST_ASSERT_EQUAL(77, view->threads[0].tid);
    TEST_ASSERT_EQUAL_STRING("value", view->strings[view->options[0].value].text);
    TEST_ASSERT_EQUAL(1, view->block_count);
    TEST_ASSERT_EQUAL_HEX64(0x1000, view->blocks[0].address);
    TEST_ASSERT_EQUAL_HEX64(0x20, view->frames[view->contexts[view->traces[0].context].frame].address);
    ta_snapshot_free(snapshot);
}

static void add(uint64_t size, const uint32_t *frames, size_t nframe)
{
    const struct ta__built_trace trace = {
        .domain = 3, .total_nframe = -1, .size = size, .count = 2, .frames = frames, .nframe = nframe};
    TEST_ASSERT_EQUAL(0, ta__snapshot_builder_add(builder, &trace));
}

static void assert_lines(const struct ta_snapshot *snapshot, size_t index, const char *expected)
{
    struct ta_raw_frame frames[8];
    char said[9] = "";
    size_t count = ta_snapshot_trace_frames(snapshot, index, frames, 8);
    for (size_t i = 0; i < count; i++)
        said[i] = (char)('0' + frames[i].line);
    TEST_ASSERT_EQUAL_STRING(expected, said);
}

static void test_stacks_are_turned_around(void)
{
    uint32_t file = name("x.c"), frames[4];
    for (uint32_t i = 0; i < 4; i++)
        frames[i] = line(file, i + 1);
    for (int turns = 0; turns < 3; turns++) {
        if (builder == NULL)
            setUp(), file = name("x.c"), line(file, 1), line(file, 2), line(file, 3), line(file, 4);
        add(10, frames, 4);
        add(20, frames + 1, 2);
        add(30, frames, 0);
        add(40, frames, 1);
        add(0, (const uint32_t[]){frames[0], frames[1]}, 2);
        add(0, (const uint32_t[]){frames[2], frames[1]}, 2);
        for (int i = 0; i < turns; i++)
            TEST_ASSERT_EQUAL(0, ta__snapshot_builder_turn_around(builder));
        struct ta_snapshot *snapshot = finish();
        assert_lines(snapshot, 0, turns == 1 ? "4321" : "1234");
        assert_lines(snapshot, 1, turns == 1 ? "32" : "23");
        assert_lines(snapshot, 2, "");
        assert_lines(snapshot, 3, "1");
        assert_lines(snapshot, 4, turns == 1 ? "21" : "12");
        assert_lines(snapshot, 5, turns == 1 ? "23" : "32");
        const struct ta__view *view = ta__snapshot_view(snapshot);
        TEST_ASSERT_EQUAL_UINT64(100, view->current_bytes);
        TEST_ASSERT_EQUAL(7, view->traceback_limit);
        TEST_ASSERT_EQUAL(3, view->traces[0].domain);
        TEST_ASSERT_EQUAL(2, view->traces[0].count);
        TEST_ASSERT_EQUAL(TA__TRACE_EACH, view->traces[0].flags);
        /* the root; nodes for what none before ends with, and turned around begins with */
        TEST_ASSERT_EQUAL(turns == 1 ? 1 + 4 + 2 + 0 + 0 + 2 : 1 + 4 + 2 + 1 + 2 + 1, view->context_count);
        ta_snapshot_free(snapshot);
    }
}

static void test_names_beyond_all_measure_are_refused(void)
{
    uint32_t id;
    char *large = calloc(1, (size_t)TA__STRING_MAX + 2);
    TEST_ASSERT_NOT_NULL(large);
    add(1, NULL, 0);
    errno = 0;
    TEST_ASSERT_EQUAL(-1, ta__snapshot_builder_name(builder, large, (size_t)TA__STRING_MAX + 1, &id));
    TEST_ASSERT_EQUAL_STRING("trace 1: a file name is longer than 8 MiB", ta_error_text());
    TEST_ASSERT_EQUAL(EINVAL, errno);
    TEST_ASSERT_EQUAL(0, ta__snapshot_builder_name(builder, large, TA__STRING_MAX, &id));
    TEST_ASSERT_EQUAL(1, id);
    free(large);
}

/* ---- without memory ---------------------------------------------------------------------------------------------- */

static struct ta_snapshot *model;

static struct ta_snapshot *from_traces(void)
{
    enum { MANY = 3000 };
    static struct ta_frame_data frames[MANY];
    static struct ta_trace_data traces[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        frames[i] = (struct ta_frame_data){"some file.c", TA_NUL_TERMINATED, i};
        traces[i] = (struct ta_trace_data){.size = 1, .total_nframe = 1, .frames = frames, .nframe = i % 50 + 1};
    }
    return ta_snapshot_from_traces(traces, MANY, 1);
}

static struct ta_snapshot *from_view(void)
{
    return ta__snapshot_from_view(ta__snapshot_view(model), model);
}

/* Whoever meets a failure says so. */
static void fail_at_every_moment(struct ta_snapshot *(*make)(void))
{
    size_t before = ta__memory_mapped();
    struct ta_snapshot *snapshot = NULL;
    long nth = 1;
    for (; nth < 1000 && snapshot == NULL; nth++) {
        ta__error_clear();
        ta__memory_inject_failure(nth, 0);
        snapshot = make();
        void *next = ta__memory_map(4096);
        ta__memory_inject_failure(0, 0);
        TEST_ASSERT_EQUAL_INT(next == NULL, snapshot != NULL);
        ta__memory_unmap(next, 4096);
        if (snapshot == NULL) {
            TEST_ASSERT_EQUAL(before, ta__memory_mapped());
            TEST_ASSERT_NOT_NULL_MESSAGE(strstr(ta_error_text(), "no memory"), ta_error_text());
        }
    }
    TEST_ASSERT_GREATER_THAN(3, nth);
    ta_snapshot_free(snapshot);
    TEST_ASSERT_EQUAL(before, ta__memory_mapped());
}

static void test_lack_of_memory_is_said_and_leaves_nothing(void)
{
    fail_at_every_moment(from_traces);
    model = from_traces();
    TEST_ASSERT_NOT_NULL(model);
    TEST_ASSERT_EQUAL(0, ta_snapshot_set_metadata(model, "key", "value"));
    fail_at_every_moment(from_view);
    struct ta_snapshot *copy = from_view();
    TEST_ASSERT_EQUAL_STRING("value", ta_snapshot_metadata(copy, "key"));
    ta_snapshot_free(copy);
    copy = ta__snapshot_from_view(ta__snapshot_view(model), NULL);
    TEST_ASSERT_EQUAL(0, ta_snapshot_metadata_count(copy));
    ta_snapshot_free(copy);
    ta_snapshot_free(model);
}

static void test_lack_of_memory_for_a_builder(void)
{
    for (long nth = 1; nth < 3; nth++) {
        ta__memory_inject_failure(nth, 0);
        TEST_ASSERT_NULL(ta__snapshot_builder_create());
        TEST_ASSERT_EQUAL_STRING("no memory for the snapshot", ta_error_text());
    }
    ta__snapshot_builder_destroy(NULL);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_equal_rows_have_one_number_and_others_their_own);
    RUN_TEST(test_rows_of_a_process_are_kept_as_they_are);
    RUN_TEST(test_stacks_are_turned_around);
    RUN_TEST(test_names_beyond_all_measure_are_refused);
    RUN_TEST(test_lack_of_memory_is_said_and_leaves_nothing);
    RUN_TEST(test_lack_of_memory_for_a_builder);
    return UNITY_END();
}
