/* test_snapshot_answers.c: what a snapshot answers to those who ask it, row by row and field by field, as it was made and as it
 * was loaded; which entry of a damaged recording is loaded; how the bytes of a recording are read. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unity.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "snapshot/read/input.h"
#include "snapshot/read/read.h"
#include "snapshot/write/write.h"
#include "tests/support/fake_source.h"
#include "tests/support/random.h"

static char folder[] = "/tmp/ta_answers.XXXXXX";
static char path[64];

/* What the next calls of pread do: E is interrupted, a digit gives at most so many bytes (0: the file ends); then all. */
static const char *manner = "";
static int preads;

ssize_t pread(int descriptor, void *bytes, size_t count, off_t offset)
{
    char how = *manner;
    preads++;
    manner += how != '\0';
    if (how == 'E')
        return errno = EINTR, -1;
    size_t most = how != '\0' ? (size_t)(how - '0') : count;
    return most == 0 ? 0 : syscall(SYS_pread64, descriptor, bytes, most < count ? most : count, offset);
}

void setUp(void)
{
    manner = "";
    snprintf(path, sizeof path, "%s/one.ta", folder);
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
    unlink(path);
}

static void save(const void *bytes, size_t length)
{
    FILE *file = fopen(path, "w");
    TEST_ASSERT_NOT_NULL(file);
    TEST_ASSERT_EQUAL(length, fwrite(bytes, 1, length, file));
    TEST_ASSERT_EQUAL(0, fclose(file));
}

/* ---- a snapshot with some of everything -------------------------------------------------------------------------- */

static const uint8_t build_id[] = {1, 2, 3, 4};
static const struct ta__view_string strings[] = {{"", 0},     {"/bin/x", 6}, {"/lib/y.so", 9}, {"host", 4},
                                                 {"pool", 4}, {"x.c", 3},    {"worker", 6},    {"frames", 6},
                                                 {"100", 3},  {"noon", 4},   {"mode", 4},      {"all", 3}};
static const struct ta__view_module modules[] = {
    {.path = 1, .load_base = 0x1000, .start = 0x1000, .end = 0x2000},
    {.path = 2, .build_id = build_id, .build_id_length = 4, .load_base = 0x3000, .start = 0x3100, .end = 0x4000}};
static const struct ta__view_frame frames[] = {{.address = 0x1010, .module = 1},
                                               {.address = 0x3500, .module = 2},
                                               {.address = 0x99},
                                               {.file = 5, .line = 77, .kind = TA__FRAME_SOURCE},
                                               {.kind = TA__FRAME_OVERFLOW}};
static const struct ta__view_context contexts[] = {{0, 0}, {0, 0}, {1, 1}, {2, 2}, {1, 3}, {0, 4}};
static const struct ta__view_trace traces[] = {
    {.context = 3,
     .domain = 4,
     .thread = 2,
     .flags = TA__TRACE_CUT_SHORT,
     .total_nframe = 9,
     .size = 300,
     .count = 3,
     .allocated_bytes = 900,
     .allocated_blocks = 9,
     .peak_bytes = 500},
    {.context = 4, .total_nframe = 2, .size = 40, .count = 1, .allocated_bytes = 40, .allocated_blocks = 1},
    {.context = 5, .flags = TA__TRACE_OVERFLOW, .total_nframe = -1, .allocated_bytes = 77, .allocated_blocks = 7}};
static const struct ta__view_domain domains[] = {{.number = 4,
                                                  .name = 4,
                                                  .live_bytes = 300,
                                                  .live_blocks = 3,
                                                  .peak_bytes = 500,
                                                  .allocated_bytes = 900,
                                                  .allocated_blocks = 9,
                                                  .limit_bytes = 4096},
                                                 {.number = 7, .live_bytes = 1}};
static const struct ta__view_thread threads[] = {{.tid = 1000, .name = 6}, {.tid = 1001}};
static const struct ta__view_pair options[] = {{7, 8}, {10, 11}};
static struct ta__view_block blocks[4];

static struct ta_snapshot *make(int with_blocks)
{
    blocks[0] = ta__view_block(0x10000, 100, 0);
    blocks[1] = ta__view_block(0x20000, 0x1234567890, 1);
    blocks[2] = ta__view_block(0x30000, 5, TA__BLOCK_UNTRACED);
    blocks[3] = ta__view_block(0xfffffffff000, 200, 0);
    const struct ta__view view = {.strings = strings,
                                  .string_count = 12,
                                  .modules = modules,
                                  .module_count = 2,
                                  .frames = frames,
                                  .frame_count = 5,
                                  .contexts = contexts,
                                  .context_count = 6,
                                  .traces = traces,
                                  .trace_count = 2,
                                  .gone_trace_count = 1,
                                  .blocks = blocks,
                                  .block_count = with_blocks ? 4 : 0,
                                  .has_blocks = (uint32_t)with_blocks,
                                  .domains = domains,
                                  .domain_count = 2,
                                  .threads = threads,
                                  .thread_count = 2,
                                  .options = options,
                                  .option_count = 2,
                                  .traceback_limit = 9,
                                  .pid = 50,
                                  .program = 1,
                                  .host = 3,
                                  .reason = 9,
                                  .time_ns = 5000,
                                  .start_time_ns = 900,
                                  .current_bytes = 340,
                                  .peak_bytes = 500,
                                  .sample_bytes = 11,
                                  .lost = 1,
                                  .overflowed = 2,
                                  .cut_short = 3,
                                  .foreign_frees = 4,
                                  .invalid_frees = 5,
                                  .snapshot_errors = 6};
    struct ta_snapshot *snapshot = ta__snapshot_from_view(&view, NULL);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta__error_text());
    return snapshot;
}

static struct ta_snapshot *through_a_file(struct ta_snapshot *snapshot)
{
    TEST_ASSERT_EQUAL_MESSAGE(0, ta_snapshot_dump(snapshot, path), ta__error_text());
    ta_snapshot_free(snapshot);
    snapshot = ta_snapshot_load(path);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta__error_text());
    return snapshot;
}

static void assert_info(const struct ta_snapshot *snapshot)
{
    struct ta_snapshot_info info;
    memset(&info, 0xee, sizeof info);
    TEST_ASSERT_EQUAL(0, ta_snapshot_info(snapshot, &info, sizeof info));
    TEST_ASSERT_EQUAL_STRING("/bin/x", info.program);
    TEST_ASSERT_EQUAL_STRING("host", info.host);
    TEST_ASSERT_EQUAL_STRING("noon", info.reason);
    TEST_ASSERT_EQUAL_UINT32(50, info.pid);
    const uint64_t expected[] = {5000, 900, 340, 500, 11, 1, 2, 3, 4, 5, 6, 2, 6, 5, 2, 2, 2};
    TEST_ASSERT_EQUAL_UINT64_ARRAY(expected, &info.time_ns, sizeof expected / sizeof *expected);
    memset(&info, 0xee, sizeof info);
    TEST_ASSERT_EQUAL(0, ta_snapshot_info(snapshot, &info, offsetof(struct ta_snapshot_info, time_ns)));
    TEST_ASSERT_EQUAL_UINT32(50, info.pid);
    TEST_ASSERT_EQUAL_HEX64(0xeeeeeeeeeeeeeeee, info.time_ns);
}

static void assert_traces(const struct ta_snapshot *snapshot)
{
    static const size_t depths[] = {3, 2, 1};
    static const uint32_t tids[] = {1001, 0, 0};
    struct ta_trace trace;
    TEST_ASSERT_EQUAL(2, ta_snapshot_trace_count(snapshot));
    TEST_ASSERT_EQUAL(1, ta_snapshot_gone_trace_count(snapshot));
    TEST_ASSERT_EQUAL(9, ta_snapshot_traceback_limit(snapshot));
    for (size_t i = 0; i < 3; i++) {
        TEST_ASSERT_EQUAL(0, ta_snapshot_trace(snapshot, i, &trace));
        TEST_ASSERT_EQUAL_UINT32(traces[i].domain, trace.domain);
        TEST_ASSERT_EQUAL_UINT32(traces[i].flags, trace.flags);
        TEST_ASSERT_EQUAL_UINT64(traces[i].size, trace.size);
        TEST_ASSERT_EQUAL_UINT64(traces[i].count, trace.count);
        TEST_ASSERT_EQUAL_INT64(traces[i].total_nframe, trace.total_nframe);
        TEST_ASSERT_EQUAL_UINT64(traces[i].allocated_bytes, trace.allocated_bytes);
        TEST_ASSERT_EQUAL_UINT64(traces[i].allocated_blocks, trace.allocated_blocks);
        TEST_ASSERT_EQUAL_UINT64(traces[i].peak_bytes, trace.peak_bytes);
        TEST_ASSERT_EQUAL_UINT32(tids[i], trace.thread);
        TEST_ASSERT_EQUAL(depths[i], trace.nframe);
    }
    TEST_ASSERT_EQUAL(-1, ta_snapshot_trace(snapshot, 3, &trace));
    TEST_ASSERT_EQUAL_STRING("there is no trace of that index", ta_error_text());
}

static void assert_frame(const struct ta_raw_frame *frame, uint64_t address, const char *file, uint32_t line,
                         uint32_t module)
{
    TEST_ASSERT_EQUAL_HEX64(address, frame->address);
    TEST_ASSERT_EQUAL_UINT32(line, frame->line);
    TEST_ASSERT_EQUAL_UINT32(module, frame->module);
    TEST_ASSERT_EQUAL(file == NULL ? 0 : strlen(file), frame->file_length);
    TEST_ASSERT_EQUAL_STRING(file, frame->file);
}

static void assert_frames(const struct ta_snapshot *snapshot)
{
    struct ta_raw_frame found[4];
    TEST_ASSERT_EQUAL(3, ta_snapshot_trace_frames(snapshot, 0, found, 4));
    assert_frame(&found[0], 0x99, NULL, 0, 0);
    assert_frame(&found[1], 0x3500, "/lib/y.so", 0, 2);
    assert_frame(&found[2], 0x1010, "/bin/x", 0, 1);
    TEST_ASSERT_EQUAL(2, ta_snapshot_trace_frames(snapshot, 1, found, 4));
    assert_frame(&found[0], 0, "x.c", 77, 0);
    TEST_ASSERT_EQUAL(1, ta_snapshot_trace_frames(snapshot, 2, found, 4));
    assert_frame(&found[0], 0, "<overflow>", 0, 0);
    memset(found, 0xee, sizeof found);
    TEST_ASSERT_EQUAL(3, ta_snapshot_trace_frames(snapshot, 0, found, 2));
    assert_frame(&found[1], 0x3500, "/lib/y.so", 0, 2);
    TEST_ASSERT_EQUAL_HEX64(0xeeeeeeeeeeeeeeee, found[2].address);
    TEST_ASSERT_EQUAL(0, ta_snapshot_trace_frames(snapshot, 3, found, 4));
}

static void assert_blocks(const struct ta_snapshot *snapshot)
{
    static const struct ta_block expected[] = {
        {0x10000, 100, 0}, {0x20000, 0x1234567890, 1}, {0x30000, 5, -1}, {0xfffffffff000, 200, 0}};
    struct ta_block block;
    TEST_ASSERT_EQUAL(4, ta_snapshot_block_count(snapshot));
    for (size_t i = 0; i < 4; i++) {
        TEST_ASSERT_EQUAL(0, ta_snapshot_block(snapshot, i, &block));
        TEST_ASSERT_EQUAL_HEX64(expected[i].address, block.address);
        TEST_ASSERT_EQUAL_HEX64(expected[i].size, block.size);
        TEST_ASSERT_EQUAL(expected[i].trace, block.trace);
    }
    TEST_ASSERT_EQUAL(-1, ta_snapshot_block(snapshot, 4, &block));
    TEST_ASSERT_EQUAL_STRING("there is no block of that index", ta_error_text());
}

static void assert_modules_and_domains(const struct ta_snapshot *snapshot)
{
    struct ta_module_info module;
    TEST_ASSERT_EQUAL(0, ta_snapshot_module(snapshot, 0, &module, sizeof module));
    TEST_ASSERT_EQUAL_STRING("/bin/x", module.path);
    TEST_ASSERT_EQUAL(0, module.build_id_length);
    TEST_ASSERT_EQUAL(0, ta_snapshot_module(snapshot, 1, &module, sizeof module));
    TEST_ASSERT_EQUAL_STRING("/lib/y.so", module.path);
    TEST_ASSERT_EQUAL(4, module.build_id_length);
    TEST_ASSERT_EQUAL_HEX8_ARRAY(build_id, module.build_id, 4);
    TEST_ASSERT_EQUAL_HEX64(0x3000, module.load_base);
    TEST_ASSERT_EQUAL_HEX64(0x3100, module.start);
    TEST_ASSERT_EQUAL_HEX64(0x4000, module.end);
    TEST_ASSERT_EQUAL(-1, ta_snapshot_module(snapshot, 2, &module, sizeof module));
    TEST_ASSERT_EQUAL_STRING("there is no module of that index", ta_error_text());
    struct ta_domain_info domain;
    TEST_ASSERT_EQUAL(0, ta_snapshot_domain(snapshot, 0, &domain, sizeof domain));
    TEST_ASSERT_EQUAL_UINT32(4, domain.number);
    TEST_ASSERT_EQUAL_STRING("pool", domain.name);
    const uint64_t expected[] = {300, 3, 500, 900, 9, 4096};
    TEST_ASSERT_EQUAL_UINT64_ARRAY(expected, &domain.live_bytes, 6);
    TEST_ASSERT_EQUAL(0, ta_snapshot_domain(snapshot, 1, &domain, sizeof domain));
    TEST_ASSERT_EQUAL_UINT32(7, domain.number);
    TEST_ASSERT_EQUAL_STRING("", domain.name);
    TEST_ASSERT_EQUAL(-1, ta_snapshot_domain(snapshot, 2, &domain, sizeof domain));
    TEST_ASSERT_EQUAL_STRING("there is no domain of that index", ta_error_text());
}

static void assert_options(const struct ta_snapshot *snapshot)
{
    const char *key, *value;
    TEST_ASSERT_EQUAL(0, ta_snapshot_option(snapshot, 0, &key, &value));
    TEST_ASSERT_EQUAL_STRING("frames", key);
    TEST_ASSERT_EQUAL_STRING("100", value);
    TEST_ASSERT_EQUAL(0, ta_snapshot_option(snapshot, 1, &key, &value));
    TEST_ASSERT_EQUAL_STRING("mode", key);
    TEST_ASSERT_EQUAL_STRING("all", value);
    TEST_ASSERT_EQUAL(-1, ta_snapshot_option(snapshot, 2, &key, &value));
    TEST_ASSERT_EQUAL_STRING("there is no option of that index", ta_error_text());
}

static void assert_all(const struct ta_snapshot *snapshot)
{
    assert_info(snapshot);
    assert_traces(snapshot);
    assert_frames(snapshot);
    assert_modules_and_domains(snapshot);
    assert_options(snapshot);
    const struct ta__view *view = ta__snapshot_view(snapshot);
    TEST_ASSERT_EQUAL_UINT32(1000, view->threads[0].tid);
    TEST_ASSERT_EQUAL_STRING("worker", view->strings[view->threads[0].name].text);
    TEST_ASSERT_EQUAL_UINT32(0, view->threads[1].name);
}

static void test_everything_is_answered_as_it_was_made_and_as_it_was_loaded(void)
{
    struct ta_snapshot *snapshot = make(1);
    assert_all(snapshot);
    assert_blocks(snapshot);
    snapshot = through_a_file(snapshot);
    assert_all(snapshot);
    assert_blocks(snapshot);
    snapshot = through_a_file(snapshot);
    assert_all(snapshot);
    assert_blocks(snapshot);
    ta_snapshot_free(snapshot);
}

static void test_blocks_are_missed_where_there_are_none(void)
{
    struct ta_snapshot *snapshot = through_a_file(make(0));
    struct ta_block block;
    assert_all(snapshot);
    TEST_ASSERT_EQUAL(-1, ta_snapshot_block_count(snapshot));
    TEST_ASSERT_EQUAL_STRING("the snapshot does not have single blocks: take it with blocks=yes, or by tracealloc take",
                             ta_error_text());
    TEST_ASSERT_EQUAL(-1, ta_snapshot_block(snapshot, 0, &block));
    ta_snapshot_free(snapshot);
}

static void test_nothing_is_answered_of_no_snapshot(void)
{
    struct ta_block block;
    struct ta_trace trace;
    struct ta_raw_frame frame;
    struct ta_snapshot_info info;
    struct ta_module_info module;
    struct ta_domain_info domain;
    const char *key, *value;
    TEST_ASSERT_EQUAL(-1, ta_snapshot_trace_count(NULL));
    TEST_ASSERT_EQUAL(-1, ta_snapshot_gone_trace_count(NULL));
    TEST_ASSERT_EQUAL(-1, ta_snapshot_traceback_limit(NULL));
    TEST_ASSERT_EQUAL(-1, ta_snapshot_trace(NULL, 0, &trace));
    TEST_ASSERT_EQUAL(0, ta_snapshot_trace_frames(NULL, 0, &frame, 1));
    TEST_ASSERT_EQUAL(-1, ta_snapshot_block_count(NULL));
    TEST_ASSERT_EQUAL(-1, ta_snapshot_block(NULL, 0, &block));
    TEST_ASSERT_EQUAL(-1, ta_snapshot_info(NULL, &info, sizeof info));
    TEST_ASSERT_EQUAL(-1, ta_snapshot_module(NULL, 0, &module, sizeof module));
    TEST_ASSERT_EQUAL(-1, ta_snapshot_domain(NULL, 0, &domain, sizeof domain));
    TEST_ASSERT_EQUAL(-1, ta_snapshot_option(NULL, 0, &key, &value));
    TEST_ASSERT_EQUAL_STRING("there is no snapshot: NULL", ta_error_text());
}

/* Whoever meets the failure says so, and nothing of the attempt is left. */
static void test_lack_of_memory_at_any_moment_of_a_load_leaves_nothing(void)
{
    struct ta_snapshot *snapshot = make(1);
    TEST_ASSERT_EQUAL(0, ta_snapshot_set_metadata(snapshot, "key", "value"));
    TEST_ASSERT_EQUAL(0, ta_snapshot_dump(snapshot, path));
    ta_snapshot_free(snapshot);
    size_t before = ta__memory_mapped();
    snapshot = NULL;
    for (long nth = 1; nth < 1000 && snapshot == NULL; nth++) {
        ta__memory_inject_failure(nth, 0);
        snapshot = ta_snapshot_load(path);
        void *next = ta__memory_map(4096);
        ta__memory_inject_failure(0, 0);
        TEST_ASSERT_EQUAL_INT(next == NULL, snapshot != NULL);
        ta__memory_unmap(next, 4096);
        if (snapshot == NULL)
            TEST_ASSERT_EQUAL(before, ta__memory_mapped());
    }
    TEST_ASSERT_NOT_NULL(snapshot);
    TEST_ASSERT_EQUAL_STRING("value", ta_snapshot_metadata(snapshot, "key"));
    ta_snapshot_free(snapshot);
    TEST_ASSERT_EQUAL(before, ta__memory_mapped());
}

/* ---- which entry is loaded --------------------------------------------------------------------------------------- */

static struct fake_source fake;
static struct ta__writer writer;
static size_t entry_at[4];

/* Three entries, taken for "a", a mark "b" and "c". */
static void write_three(void)
{
    static const char *const reasons[] = {"a", TA__MARK "b", "c"};
    struct ta__sink sink;
    fake_open(&fake);
    fake_program(&fake, 60, 20);
    ta__sink_memory(&sink);
    TEST_ASSERT_EQUAL(0, ta__writer_open(&writer, &sink));
    for (int i = 0; i < 3; i++) {
        struct ta__facts facts = fake_facts(1000 + (uint64_t)i);
        facts.reason = reasons[i];
        fake_activity(&fake, 4);
        entry_at[i] = writer.chunks.sink.memory.length;
        TEST_ASSERT_EQUAL(0, ta__writer_entry(&writer, &fake.source, &facts));
    }
    entry_at[3] = writer.chunks.sink.memory.length;
}

static void forget_them(void)
{
    ta__buffer_free(&writer.chunks.sink.memory);
    ta__writer_close(&writer);
    fake_close(&fake);
}

/* The reason of the entry that is loaded; NULL when none is. */
static const char *loaded(const char *name, const char *warning)
{
    static char reason[32];
    struct ta_snapshot_info info;
    struct ta_snapshot *snapshot = ta_snapshot_load(name);
    if (snapshot == NULL)
        return NULL;
    TEST_ASSERT_EQUAL(0, ta_snapshot_info(snapshot, &info, sizeof info));
    snprintf(reason, sizeof reason, "%s", info.reason);
    size_t length = strlen(ta_snapshot_warning(snapshot)), wanted = strlen(warning);
    TEST_ASSERT_TRUE_MESSAGE(length >= wanted, ta_snapshot_warning(snapshot));
    TEST_ASSERT_EQUAL_STRING(warning, ta_snapshot_warning(snapshot) + length - wanted);
    TEST_ASSERT_TRUE(wanted != 0 || length == 0);
    ta_snapshot_free(snapshot);
    return reason;
}

static void damage(int entry)
{
    for (int i = 0; i < 8; i++)
        writer.chunks.sink.memory.bytes[entry_at[entry] + TA__CHUNK_HEADER_LENGTH + (size_t)i] ^= 0x55;
    save(writer.chunks.sink.memory.bytes, writer.chunks.sink.memory.length);
}

static void test_the_last_entry_before_damage_is_loaded_of_what_was_not_closed(void)
{
    char name[96];
    write_three();
    damage(2);
    TEST_ASSERT_EQUAL_STRING(TA__MARK "b", loaded(path, "; 2 whole entries before it"));
    snprintf(name, sizeof name, "%s@2", path);
    TEST_ASSERT_NULL(loaded(name, ""));
    snprintf(name, sizeof name, "%s@1", path);
    TEST_ASSERT_EQUAL_STRING(TA__MARK "b", loaded(name, ""));
    damage(2);
    damage(1);
    TEST_ASSERT_EQUAL_STRING("a", loaded(path, "; 1 whole entry before it"));
    damage(1);
    damage(0);
    TEST_ASSERT_NULL(loaded(path, ""));
    damage(0);
    save(writer.chunks.sink.memory.bytes, entry_at[3] - 1);
    TEST_ASSERT_EQUAL_STRING(TA__MARK "b", loaded(path, "; 2 whole entries before it"));
    TEST_ASSERT_EQUAL(0, ta__chunks_seal(&writer.chunks));
    damage(2);
    TEST_ASSERT_NULL(loaded(path, ""));
    damage(2);
    TEST_ASSERT_EQUAL_STRING("c", loaded(path, ""));
    forget_them();
}

static void test_entries_have_numbers_from_both_ends_and_marks(void)
{
    static const struct {
        const char *suffix, *reason;
    } cases[] = {{"@0", "a"},           {"@1", TA__MARK "b"},
                 {"@2", "c"},           {"@-1", "c"},
                 {"@-2", TA__MARK "b"}, {"@-3", "a"},
                 {"@3", NULL},          {"@-4", NULL},
                 {"@b", TA__MARK "b"},  {"@mark: b", TA__MARK "b"},
                 {"@c", "c"},           {"@d", NULL},
                 {"@", NULL},           {"", "c"}};
    char name[160], inner[100];
    write_three();
    snprintf(inner, sizeof inner, "%s/x@y", folder);
    TEST_ASSERT_EQUAL(0, mkdir(inner, 0700));
    for (int round = 0; round < 2; round++) {
        save(writer.chunks.sink.memory.bytes, entry_at[3]);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            snprintf(name, sizeof name, "%s%s", path, cases[i].suffix);
            TEST_ASSERT_EQUAL_STRING_MESSAGE(cases[i].reason, loaded(name, ""), name);
        }
        unlink(path);
        snprintf(path, sizeof path, "%s/x@y/o.ta", folder); /* a name with that sign in it */
    }
    rmdir(inner);
    TEST_ASSERT_EQUAL(0, chdir(folder));
    TEST_ASSERT_EQUAL(0, mkdir("@d", 0700));
    strcpy(path, "@d/o.ta"); /* and at its beginning */
    save(writer.chunks.sink.memory.bytes, entry_at[3]);
    TEST_ASSERT_EQUAL_STRING(TA__MARK "b", loaded("@d/o.ta@b", ""));
    static const char *const beyond[] = {"9", "10", "-10", "2147483647"};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        snprintf(name, sizeof name, "@d/o.ta@%s", beyond[i]);
        TEST_ASSERT_NULL(loaded(name, ""));
        snprintf(name, sizeof name, "@d/o.ta: there is no entry %s; the recording has 3", beyond[i]);
        TEST_ASSERT_EQUAL_STRING(name, ta_error_text());
    }
    unlink(path);
    rmdir("@d");
    TEST_ASSERT_EQUAL(0, chdir("/"));
    forget_them();
}

/* ---- the bytes --------------------------------------------------------------------------------------------------- */

static void test_a_recording_is_read_whatever_the_pieces_it_comes_in(void)
{
    ta_snapshot_free(through_a_file(make(1)));
    manner = "E1EE3509";
    TEST_ASSERT_NULL(ta_snapshot_load(path)); /* 0: it ends there */
    for (int round = 0; round < 3; round++) {
        manner = round == 0 ? "E1EE3599E9" : round == 1 ? "111111111111111111111" : "";
        struct ta_snapshot *snapshot = ta_snapshot_load(path);
        TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta__error_text());
        assert_all(snapshot);
        ta_snapshot_free(snapshot);
    }
    manner = "E0";
    TEST_ASSERT_NULL(ta_snapshot_load(path));
}

static void test_a_recording_is_read_where_descriptor_0_is_free(void)
{
    ta_snapshot_free(through_a_file(make(1)));
    int kept = dup(0);
    close(0);
    struct ta_snapshot *snapshot = ta_snapshot_load(path);
    int next = open("/dev/null", O_RDONLY);
    if (kept >= 0) {
        dup2(kept, 0);
        close(kept);
    }
    TEST_ASSERT_NOT_NULL(snapshot);
    TEST_ASSERT_EQUAL(0, next);
    assert_all(snapshot);
    ta_snapshot_free(snapshot);
}

static void test_any_part_of_a_file_is_read_and_no_more_often_than_needed(void)
{
    enum { LENGTH = 700000, TIMES = 3000 };
    static uint8_t bytes[LENGTH];
    uint64_t state = random_seed();
    struct ta__input input;
    for (size_t i = 0; i < LENGTH; i++)
        bytes[i] = (uint8_t)ta__hash_word(i);
    save(bytes, LENGTH);
    for (int is_file = 0; is_file < 2; is_file++) {
        if (is_file)
            TEST_ASSERT_EQUAL(0, ta__input_open(&input, path));
        else
            ta__input_memory(&input, bytes, LENGTH);
        for (int i = 0; i < TIMES; i++) {
            size_t length = (size_t)random_below(&state, i % 50 == 0 ? LENGTH : 3000);
            uint64_t offset = random_below(&state, LENGTH - length + 1);
            const uint8_t *found = ta__input_at(&input, offset, length);
            TEST_ASSERT_NOT_NULL(found);
            TEST_ASSERT_TRUE(memcmp(bytes + offset, found, length) == 0);
        }
        TEST_ASSERT_NOT_NULL(ta__input_at(&input, LENGTH, 0));
        TEST_ASSERT_NULL(ta__input_at(&input, LENGTH + 1, 0));
        TEST_ASSERT_NULL(ta__input_at(&input, LENGTH, 1));
        TEST_ASSERT_NULL(ta__input_at(&input, LENGTH - 1, 2));
        TEST_ASSERT_NULL(ta__input_at(&input, UINT64_MAX, 2));
        TEST_ASSERT_NULL(ta__input_at(&input, 1, SIZE_MAX));
        ta__input_close(&input);
    }
    save(bytes, 100);
    TEST_ASSERT_EQUAL(0, ta__input_open(&input, path));
    preads = 0;
    TEST_ASSERT_NOT_NULL(ta__input_at(&input, 0, 10));
    TEST_ASSERT_NOT_NULL(ta__input_at(&input, 0, 100));
    TEST_ASSERT_NOT_NULL(ta__input_at(&input, 99, 1));
    TEST_ASSERT_EQUAL(1, preads);
    ta__input_close(&input);
    ta__input_close(&input); /* does nothing */
}

static void test_sections_have_names(void)
{
    TEST_ASSERT_EQUAL_STRING("entry", ta__section_name(TA__KIND_ENTRY));
    TEST_ASSERT_EQUAL_STRING("symbol ranges", ta__section_name(TA__KIND_SYMBOL_RANGES));
    TEST_ASSERT_EQUAL_STRING("unknown section", ta__section_name(0));
    TEST_ASSERT_EQUAL_STRING("unknown section", ta__section_name(0x7fff));
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    UNITY_BEGIN();
    RUN_TEST(test_everything_is_answered_as_it_was_made_and_as_it_was_loaded);
    RUN_TEST(test_blocks_are_missed_where_there_are_none);
    RUN_TEST(test_nothing_is_answered_of_no_snapshot);
    RUN_TEST(test_lack_of_memory_at_any_moment_of_a_load_leaves_nothing);
    RUN_TEST(test_the_last_entry_before_damage_is_loaded_of_what_was_not_closed);
    RUN_TEST(test_entries_have_numbers_from_both_ends_and_marks);
    RUN_TEST(test_a_recording_is_read_whatever_the_pieces_it_comes_in);
    RUN_TEST(test_a_recording_is_read_where_descriptor_0_is_free);
    RUN_TEST(test_any_part_of_a_file_is_read_and_no_more_often_than_needed);
    RUN_TEST(test_sections_have_names);
    int failures = UNITY_END();
    rmdir(folder);
    return failures;
}
