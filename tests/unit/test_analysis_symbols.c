/* test_analysis_symbols.c: symbols by the public calls: of a snapshot, of its modules, of places that travel as metadata.
 * The program that is looked up is this one. */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracealloc/analysis.h>
#include <unity.h>

#include "snapshot/read/read.h"

#define APART __attribute__((noinline, noclone))

static char program[4096];
static uint64_t load_base, inner_address, outer_address;
static int inner_line, outer_line;

void setUp(void)
{
}

void tearDown(void)
{
}

APART void note_return_address(uint64_t *to);
APART void note_return_address(uint64_t *to)
{
    *to = (uint64_t)(uintptr_t)__builtin_return_address(0);
}

APART int inner_of_two(void);
APART int inner_of_two(void)
{
    inner_line = __LINE__ + 1;
    note_return_address(&inner_address);
    return inner_line;
}

APART int outer_of_two(void);
APART int outer_of_two(void)
{
    outer_line = __LINE__ + 1;
    note_return_address(&outer_address);
    return inner_of_two() + outer_line;
}

static void find_myself(void)
{
    Dl_info info;
    struct link_map *map;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    TEST_ASSERT_TRUE(length > 0 &&
                     dladdr1((void *)(uintptr_t)outer_of_two, &info, (void **)&map, RTLD_DL_LINKMAP) != 0);
    program[length] = '\0';
    load_base = map->l_addr;
    outer_of_two();
}

/* Two stacks: inner < outer in this program, and inner < an address in a file that is gone. The third module has no frame. */
static struct ta_snapshot *make(void)
{
    const struct ta__view_string strings[] = {{"", 0},
                                              {program, strlen(program)},
                                              {"/nonexistent/gone.so", 20},
                                              {"/nonexistent/unused.so", 22},
                                              {"src.c", 5}};
    const struct ta__view_module modules[] = {
        {.path = 2, .load_base = 0x1000, .start = 0x1000, .end = 0x2000},
        {.path = 1, .load_base = load_base, .start = load_base, .end = load_base + (1 << 24)},
        {.path = 3, .load_base = 0x8000, .start = 0x8000, .end = 0x9000},
    };
    const struct ta__view_frame frames[] = {{.address = inner_address, .module = 2},
                                            {.address = outer_address, .module = 2},
                                            {.address = 0x1234, .module = 1},
                                            {.file = 4, .line = 6, .kind = TA__FRAME_SOURCE}};
    const struct ta__view_context contexts[] = {{0, 0}, {0, 1}, {1, 0}, {0, 2}, {3, 0}, {0, 3}};
    const struct ta__view_trace traces[] = {{.context = 2, .size = 10, .count = 1, .total_nframe = 2},
                                            {.context = 4, .size = 20, .count = 1, .total_nframe = 2},
                                            {.context = 5, .size = 30, .count = 1, .total_nframe = 1}};
    const struct ta__view view = {.strings = strings,
                                  .string_count = 5,
                                  .modules = modules,
                                  .module_count = 3,
                                  .frames = frames,
                                  .frame_count = 4,
                                  .contexts = contexts,
                                  .context_count = 6,
                                  .traces = traces,
                                  .trace_count = 3,
                                  .traceback_limit = 9};
    struct ta_snapshot *snapshot = ta__snapshot_from_view(&view, NULL);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    return snapshot;
}

static void assert_frame(struct ta_traceback traceback, int64_t index, const char *function, int line, uint64_t address)
{
    struct ta_frame frame;
    TEST_ASSERT_EQUAL_INT(0, ta_traceback_frame(traceback, index, &frame));
    TEST_ASSERT_EQUAL_STRING(function, frame.function);
    TEST_ASSERT_EQUAL_STRING(function, frame.raw_name);
    TEST_ASSERT_EQUAL_STRING(program, frame.module);
    TEST_ASSERT_EQUAL_HEX64(address, frame.address);
    if (frame.flags & TA_FRAME_NO_LINES)
        return; /* this build has no lines */
    TEST_ASSERT_EQUAL_INT(line, (int)frame.lineno);
    TEST_ASSERT_NOT_NULL(strstr(frame.filename, "test_analysis_symbols.c"));
}

static void assert_symbols(const struct ta_snapshot *snapshot)
{
    struct ta_frame frame;
    struct ta_traceback first = ta_snapshot_trace_traceback(snapshot, 0),
                        second = ta_snapshot_trace_traceback(snapshot, 1);
    TEST_ASSERT_EQUAL_size_t(2, ta_traceback_length(first));
    assert_frame(first, -1, "inner_of_two", inner_line, inner_address);
    assert_frame(first, 0, "outer_of_two", outer_line, outer_address);
    assert_frame(second, -1, "inner_of_two", inner_line, inner_address);
    TEST_ASSERT_EQUAL_INT(0, ta_traceback_frame(second, 0, &frame));
    TEST_ASSERT_EQUAL_STRING("gone.so+0x234", frame.function);
    TEST_ASSERT_EQUAL_STRING("/nonexistent/gone.so", frame.module);
    TEST_ASSERT_EQUAL_INT(0, ta_traceback_frame(ta_snapshot_trace_traceback(snapshot, 2), 0, &frame));
    TEST_ASSERT_EQUAL_STRING("src.c", frame.filename);
    TEST_ASSERT_EQUAL_UINT32(6, frame.lineno);
}

static void assert_state(const struct ta_snapshot *snapshot, size_t index, const char *path, int least, int most)
{
    struct ta_module_symbols module;
    TEST_ASSERT_EQUAL_INT(0, ta_snapshot_module_symbols(snapshot, index, &module));
    TEST_ASSERT_EQUAL_STRING(path, module.path);
    TEST_ASSERT_NOT_NULL(module.reason);
    TEST_ASSERT_TRUE_MESSAGE((int)module.state >= least && (int)module.state <= most, module.reason);
}

static void test_symbols_are_looked_up_and_travel(void)
{
    struct ta_snapshot *snapshot = make(), *carrying, *again;
    char path[] = "/tmp/test-symbols-XXXXXX.ta";
    close(mkstemps(path, 3));
    assert_symbols(snapshot);
    carrying = ta_snapshot_symbolize(snapshot);
    TEST_ASSERT_NOT_NULL_MESSAGE(carrying, ta_error_text());
    ta_snapshot_free(snapshot);
    assert_symbols(carrying);
    assert_state(carrying, 1, program, TA_MODULE_STORED, TA_MODULE_STORED);
    TEST_ASSERT_EQUAL_INT(0, ta_snapshot_dump(carrying, path));
    again = ta_snapshot_symbolize(carrying); /* what was stored is kept */
    ta_snapshot_free(carrying);
    assert_symbols(again);
    ta_snapshot_free(again);
    snapshot = ta_snapshot_load(path);
    unlink(path);
    assert_symbols(snapshot);
    ta_snapshot_free(snapshot);
}

static void test_what_became_of_each_module_is_told(void)
{
    struct ta_snapshot *snapshot = make();
    struct ta_module_symbols module;
    assert_state(snapshot, 0, "/nonexistent/gone.so", TA_MODULE_ABSENT, TA_MODULE_ABSENT);
    TEST_ASSERT_EQUAL_INT(0, ta_snapshot_module_symbols(snapshot, 1, &module));
    TEST_ASSERT_EQUAL_STRING(program, module.path);
    TEST_ASSERT_TRUE(module.state != TA_MODULE_ABSENT && module.state != TA_MODULE_UNUSED &&
                     module.state != TA_MODULE_STORED && module.state != TA_MODULE_UNREADABLE);
    assert_state(snapshot, 2, "/nonexistent/unused.so", TA_MODULE_UNUSED, TA_MODULE_UNUSED);
    TEST_ASSERT_EQUAL_INT(-1, ta_snapshot_module_symbols(snapshot, 3, &module));
    TEST_ASSERT_EQUAL_STRING("no module 3: the snapshot has 3", ta_error_text());
    TEST_ASSERT_EQUAL_INT(-1, ta_snapshot_module_symbols(NULL, 0, &module));
    ta_snapshot_free(snapshot);
}

static void set_place(struct ta_snapshot *snapshot, const char *key, const char *path, uint64_t address)
{
    char text[4200];
    snprintf(text, sizeof text, path != NULL ? "%s+0x%llx" : "%s0x%llx", path != NULL ? path : "",
             (unsigned long long)address);
    TEST_ASSERT_EQUAL_INT(0, ta_snapshot_set_metadata(snapshot, key, text));
}

static void test_places_in_metadata_are_looked_up(void)
{
    struct ta_snapshot *snapshot = make();
    struct ta_frame frame;
    size_t number = 99;
    set_place(snapshot, "crash.frame.0", program, inner_address - load_base);
    set_place(snapshot, "crash.frame.1", NULL, 0xdeadbeef);
    set_place(snapshot, "crash.frame.2", "/nonexistent/other.so", 0x10);
    set_place(snapshot, "crash.frame.3", "/nonexistent/gone.so", 0x10);
    set_place(snapshot, "crash.frame.4", program, outer_address - load_base);
    set_place(snapshot, "crash.frame.6", program, 5); /* behind a gap */
    struct ta_places *places = ta_snapshot_places(snapshot, "crash.frame.");
    TEST_ASSERT_NOT_NULL_MESSAGE(places, ta_error_text());
    TEST_ASSERT_EQUAL_size_t(5, ta_places_count(places));
    TEST_ASSERT_EQUAL_INT(0, ta_places_get(places, 0, &frame, &number));
    TEST_ASSERT_EQUAL_size_t(0, number);
    TEST_ASSERT_EQUAL_STRING("inner_of_two", frame.function);
    TEST_ASSERT_EQUAL_STRING(program, frame.module);
    TEST_ASSERT_EQUAL_HEX64(inner_address, frame.address);
    TEST_ASSERT_EQUAL_size_t(strlen(frame.filename), frame.filename_length);
    TEST_ASSERT_EQUAL_INT(0, ta_places_get(places, 1, &frame, &number));
    TEST_ASSERT_EQUAL_size_t(1, number);
    TEST_ASSERT_EQUAL_STRING("0xdeadbeef", frame.function);
    TEST_ASSERT_EQUAL_STRING("", frame.module);
    TEST_ASSERT_EQUAL_HEX64(0xdeadbeef, frame.address);
    TEST_ASSERT_EQUAL_INT(0, ta_places_get(places, 2, &frame, NULL));
    TEST_ASSERT_EQUAL_STRING("/nonexistent/other.so", frame.module);
    TEST_ASSERT_EQUAL_HEX64(0x10, frame.address);
    TEST_ASSERT_TRUE((frame.flags & TA_FRAME_NO_LINES) != 0);
    TEST_ASSERT_EQUAL_INT(0, ta_places_get(places, 3, &frame, &number));
    TEST_ASSERT_EQUAL_HEX64(0x1010, frame.address);
    TEST_ASSERT_EQUAL_INT(0, ta_places_get(places, 4, &frame, &number));
    TEST_ASSERT_EQUAL_STRING("outer_of_two", frame.function);
    TEST_ASSERT_EQUAL_size_t(4, number);
    TEST_ASSERT_EQUAL_INT(-1, ta_places_get(places, 5, &frame, &number));
    TEST_ASSERT_EQUAL_STRING("no such place", ta_error_text());
    ta_places_free(places);
    places = ta_snapshot_places(snapshot, "nothing.");
    TEST_ASSERT_NOT_NULL(places);
    TEST_ASSERT_EQUAL_size_t(0, ta_places_count(places));
    ta_places_free(places);
    TEST_ASSERT_NULL(ta_snapshot_places(NULL, "crash.frame."));
    TEST_ASSERT_NULL(ta_snapshot_places(snapshot, NULL));
    TEST_ASSERT_EQUAL_size_t(0, ta_places_count(NULL));
    ta_places_free(NULL);
    ta_snapshot_free(snapshot);
}

int main(void)
{
    UNITY_BEGIN();
    find_myself();
    RUN_TEST(test_symbols_are_looked_up_and_travel);
    RUN_TEST(test_what_became_of_each_module_is_told);
    RUN_TEST(test_places_in_metadata_are_looked_up);
    return UNITY_END();
}
