/* test_snapshot_write.c: what the writer writes, the reader reads: every field, series, restarts, failures. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

#include "base/error.h"
#include "base/memory.h"
#include "snapshot/read/read.h"
#include "snapshot/write/write.h"
#include "tests/support/fake_source.h"

static struct fake_source fake;
static struct ta__writer writer;

void setUp(void)
{
    struct ta__sink sink;
    fake_open(&fake);
    ta__sink_memory(&sink);
    TEST_ASSERT_EQUAL(0, ta__writer_open(&writer, &sink));
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
    ta__buffer_free(&writer.chunks.sink.memory);
    ta__writer_close(&writer);
    fake_close(&fake);
}

static void write_entry(uint64_t time_ns)
{
    struct ta__facts facts = fake_facts(time_ns);
    TEST_ASSERT_EQUAL_MESSAGE(0, ta__writer_entry(&writer, &fake.source, &facts), ta__error_text());
}

static uint64_t written(void)
{
    return writer.chunks.sink.written;
}

static struct ta_snapshot *load(long entry)
{
    struct ta_snapshot *snapshot =
        ta_snapshot_load_memory(writer.chunks.sink.memory.bytes, writer.chunks.sink.memory.length, entry);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta__error_text());
    return snapshot;
}

static const char *text(const struct ta__view *view, uint32_t string)
{
    TEST_ASSERT_LESS_THAN(view->string_count, string);
    return view->strings[string].text;
}

/* The view says what the arrays of the fake say. */
static void assert_same(const struct ta__view *view)
{
    const struct ta__source *source = &fake.source;
    TEST_ASSERT_EQUAL(source->context_count, view->context_count);
    for (uint32_t i = 1; i < view->context_count; i++) {
        const struct ta__view_frame *frame = &view->frames[view->contexts[i].frame];
        TEST_ASSERT_EQUAL(fake.contexts[i].parent, view->contexts[i].parent);
        TEST_ASSERT_EQUAL_HEX64(fake.contexts[i].address, frame->address);
        TEST_ASSERT_EQUAL(fake.contexts[i].module, frame->module);
        TEST_ASSERT_EQUAL(TA__FRAME_ADDRESS, frame->kind);
    }
    const struct ta__view_trace *live = view->traces;
    const struct ta__view_trace *gone = view->traces + view->trace_count;
    for (uint32_t i = 0; i < source->leaf_count; i++) {
        const struct ta__source_counts *counts = &fake.counts[i];
        if (counts->allocated_blocks == 0 || (fake.leaves[i].flags & TA__LEAF_UNTRACED))
            continue;
        const struct ta__view_trace *trace = counts->allocated_blocks > counts->freed_blocks ? live++ : gone++;
        TEST_ASSERT_EQUAL(fake.leaves[i].context, trace->context);
        TEST_ASSERT_EQUAL(fake.domains[fake.leaves[i].domain].number, trace->domain);
        TEST_ASSERT_EQUAL(fake.leaves[i].thread, trace->thread);
        TEST_ASSERT_EQUAL(fake.leaves[i].total_nframe, trace->total_nframe);
        TEST_ASSERT_EQUAL_UINT64(counts->allocated_blocks - counts->freed_blocks, trace->count);
        TEST_ASSERT_EQUAL_UINT64(counts->allocated_bytes - counts->freed_bytes, trace->size);
        TEST_ASSERT_EQUAL_UINT64(counts->allocated_blocks, trace->allocated_blocks);
        TEST_ASSERT_EQUAL_UINT64(counts->allocated_bytes, trace->allocated_bytes);
    }
    TEST_ASSERT_EQUAL_PTR(view->traces + view->trace_count, live);
    TEST_ASSERT_EQUAL_PTR(view->traces + view->trace_count + view->gone_trace_count, gone);
}

/* The stack of a context of the view is that of a context of the source. */
static void assert_stack(const struct ta__view *view, uint32_t found, uint32_t wanted)
{
    for (; wanted != 0; wanted = fake.contexts[wanted].parent, found = view->contexts[found].parent) {
        TEST_ASSERT_NOT_EQUAL(0, found);
        TEST_ASSERT_EQUAL_HEX64(fake.contexts[wanted].address, view->frames[view->contexts[found].frame].address);
    }
    TEST_ASSERT_EQUAL(0, found);
}

static void test_writer_every_field_comes_back(void)
{
    fake_module(&fake, "/bin/program", 0x400000, 0x500000);
    uint32_t library = fake_module(&fake, "/lib/libx.so", 0x7f0000000000, 0x7f0000100000);
    fake.modules[1].flags = TA__MODULE_UNLOADED;
    fake.modules[1].build_id_length = 0;
    uint32_t domain = fake_domain(&fake, 4000000000u, "network");
    fake.domains[domain] = (struct ta__source_domain){4000000000u, TA__DOMAIN_ARENA, "network", 1, 2, 3, 4, 5, 6};
    uint32_t thread = fake_thread(&fake, 815, "worker");
    uint32_t main_context = fake_context(&fake, 0, 0x400123, 1);
    uint32_t in_library = fake_context(&fake, main_context, 0x7f0000000456, library);
    uint32_t nowhere = fake_context(&fake, in_library, 0xdeadbeef, 0);
    uint32_t leaf = fake_leaf(&fake, nowhere, domain, thread, 65535);
    fake.leaves[leaf].flags = TA__LEAF_CUT_SHORT;
    fake_malloc(&fake, leaf, 3, UINT64_C(1) << 60);
    fake_free(&fake, leaf, 1, UINT64_C(1) << 60);
    fake.source.sample_bytes = 512;
    fake.source.lost = 1, fake.source.overflowed = 2, fake.source.cut_short = 3, fake.source.foreign_frees = 4;
    fake.source.invalid_frees = 5, fake.source.snapshot_errors = 6;

    write_entry(1234567890123456789u);
    struct ta_snapshot *snapshot = load(-1);
    const struct ta__view *view = ta__snapshot_view(snapshot);

    assert_same(view);
    TEST_ASSERT_EQUAL_STRING("", text(view, 0));
    TEST_ASSERT_EQUAL_STRING("/usr/bin/program", text(view, view->program));
    TEST_ASSERT_EQUAL_STRING("host", text(view, view->host));
    TEST_ASSERT_EQUAL_STRING("test", text(view, view->reason));
    TEST_ASSERT_EQUAL(4711, view->pid);
    TEST_ASSERT_EQUAL_UINT64(1234567890123456789u, view->time_ns);
    TEST_ASSERT_EQUAL_UINT64(1000000000, view->start_time_ns);
    TEST_ASSERT_EQUAL_UINT64(1, view->epoch);
    TEST_ASSERT_EQUAL(64, view->traceback_limit);
    TEST_ASSERT_EQUAL_UINT64(UINT64_C(2) << 60, view->current_bytes);
    TEST_ASSERT_EQUAL_UINT64(UINT64_C(3) << 60, view->peak_bytes);
    TEST_ASSERT_EQUAL_UINT64(512, view->sample_bytes);
    TEST_ASSERT_EQUAL_UINT64(1, view->lost);
    TEST_ASSERT_EQUAL_UINT64(2, view->overflowed);
    TEST_ASSERT_EQUAL_UINT64(3, view->cut_short);
    TEST_ASSERT_EQUAL_UINT64(4, view->foreign_frees);
    TEST_ASSERT_EQUAL_UINT64(5, view->invalid_frees);
    TEST_ASSERT_EQUAL_UINT64(6, view->snapshot_errors);
    TEST_ASSERT_EQUAL(TA__TRACE_CUT_SHORT, view->traces[0].flags);
    TEST_ASSERT_EQUAL(2, view->module_count);
    TEST_ASSERT_EQUAL_STRING("/bin/program", text(view, view->modules[0].path));
    TEST_ASSERT_EQUAL(20, view->modules[0].build_id_length);
    TEST_ASSERT_EQUAL_MEMORY(fake.modules[0].build_id, view->modules[0].build_id, 20);
    TEST_ASSERT_EQUAL_HEX64(0x400000, view->modules[0].load_base);
    TEST_ASSERT_EQUAL_HEX64(0x500000, view->modules[0].end);
    TEST_ASSERT_EQUAL(TA__MODULE_UNLOADED, view->modules[1].flags);
    TEST_ASSERT_EQUAL(0, view->modules[1].build_id_length);
    TEST_ASSERT_EQUAL(2, view->domain_count);
    const struct ta__view_domain *row = &view->domains[1];
    TEST_ASSERT_EQUAL_STRING("network", text(view, row->name));
    TEST_ASSERT_EQUAL(4000000000u, row->number);
    TEST_ASSERT_EQUAL(TA__DOMAIN_ARENA, row->flags);
    TEST_ASSERT_EQUAL_UINT64(1, row->live_bytes);
    TEST_ASSERT_EQUAL_UINT64(2, row->live_blocks);
    TEST_ASSERT_EQUAL_UINT64(3, row->peak_bytes);
    TEST_ASSERT_EQUAL_UINT64(4, row->allocated_bytes);
    TEST_ASSERT_EQUAL_UINT64(5, row->allocated_blocks);
    TEST_ASSERT_EQUAL_UINT64(6, row->limit_bytes);
    TEST_ASSERT_EQUAL(1, view->thread_count);
    TEST_ASSERT_EQUAL(815, view->threads[0].tid);
    TEST_ASSERT_EQUAL_STRING("worker", text(view, view->threads[0].name));
    TEST_ASSERT_EQUAL(1, view->option_count);
    TEST_ASSERT_EQUAL_STRING("options", text(view, view->options[0].key));
    TEST_ASSERT_EQUAL_STRING("nframe=64", text(view, view->options[0].value));
    ta_snapshot_free(snapshot);
}

static void test_writer_program_of_100000_contexts_comes_back(void)
{
    fake_program(&fake, 100000, 3000);
    fake_activity(&fake, 3);
    write_entry(1);
    struct ta_snapshot *snapshot = load(0);
    assert_same(ta__snapshot_view(snapshot));
    ta_snapshot_free(snapshot);
}

static void test_writer_series_each_entry_shows_its_moment(void)
{
    enum { ENTRIES = 20 };
    uint64_t traces[ENTRIES], current[ENTRIES];
    for (uint32_t i = 0; i < ENTRIES; i++) {
        fake_program(&fake, 2000 * (i + 1), 500);
        fake_activity(&fake, 5);
        write_entry(100 + i);
        struct ta_snapshot *snapshot = load(-1);
        assert_same(ta__snapshot_view(snapshot));
        traces[i] = ta__snapshot_view(snapshot)->trace_count;
        current[i] = fake.source.current_bytes;
        ta_snapshot_free(snapshot);
    }
    for (int i = 0; i < ENTRIES; i++) {
        struct ta_snapshot *snapshot = load(i);
        const struct ta__view *view = ta__snapshot_view(snapshot);
        TEST_ASSERT_EQUAL_UINT64(100 + (uint64_t)i, view->time_ns);
        TEST_ASSERT_EQUAL_UINT64(traces[i], view->trace_count);
        TEST_ASSERT_EQUAL_UINT64(current[i], view->current_bytes);
        uint64_t sum = 0;
        for (uint32_t t = 0; t < view->trace_count; t++)
            sum += view->traces[t].size;
        TEST_ASSERT_EQUAL_UINT64(current[i], sum);
        ta_snapshot_free(snapshot);
    }
}

static void test_writer_unchanged_repeat_costs_less_than_1_kib(void)
{
    fake_program(&fake, 50000, 3000);
    write_entry(1);
    uint64_t before = written();
    write_entry(2);
    TEST_ASSERT_LESS_THAN_UINT64(1024, written() - before);
    struct ta_snapshot *snapshot = load(1);
    assert_same(ta__snapshot_view(snapshot));
    ta_snapshot_free(snapshot);
}

static void test_writer_size_stays_within_3_bytes_per_context_and_4_per_changed_leaf(void)
{
    fake_program(&fake, 200000, 3000);
    write_entry(1);
    TEST_ASSERT_LESS_THAN_UINT64(3 * fake.source.context_count, written());
    struct ta__source_counts *before = malloc(fake.source.leaf_count * sizeof *before);
    memcpy(before, fake.counts, fake.source.leaf_count * sizeof *before);
    fake_activity(&fake, 3);
    uint32_t changed = 0;
    for (uint32_t i = 0; i < fake.source.leaf_count; i++)
        changed += memcmp(&before[i], &fake.counts[i], sizeof *before) != 0;
    uint64_t start = written();
    write_entry(2);
    TEST_ASSERT_GREATER_THAN(1000, changed);
    TEST_ASSERT_LESS_THAN_UINT64(4 * changed, written() - start);
    free(before);
}

static void test_writer_clear_begins_anew_with_the_leaves_of_its_epoch(void)
{
    fake_program(&fake, 5000, 300);
    write_entry(1);
    uint64_t first = written();
    memset(fake.counts, 0, fake.source.leaf_count * sizeof *fake.counts);
    fake.source.epoch++;
    fake.source.current_bytes = 0;
    fake.source.leaf_first = fake.source.leaf_count - 5; /* the others are of the past */
    fake_malloc(&fake, fake.source.leaf_count - 1, 1, 77);
    write_entry(2);
    TEST_ASSERT_LESS_THAN_UINT64(first / 4, written() - first);
    struct ta_snapshot *snapshot = load(1);
    const struct ta__view *view = ta__snapshot_view(snapshot);
    TEST_ASSERT_EQUAL(1, view->trace_count);
    TEST_ASSERT_EQUAL(0, view->gone_trace_count);
    TEST_ASSERT_EQUAL(77, view->traces[0].size);
    assert_stack(view, view->traces[0].context, fake.leaves[fake.source.leaf_count - 1].context);
    ta_snapshot_free(snapshot);
}

/* Reclaimed: what the numbers meant in the first entry is not what they mean in the second, and a context's parent may
 * have the larger number. What the leaves that are gone had stands under <forgotten>. */
static void test_writer_numbers_that_are_used_again_mean_what_they_mean_in_each_entry(void)
{
    uint32_t module = fake_module(&fake, "/bin/program", 0x400000, 0x500000);
    uint32_t outer = fake_context(&fake, 0, 0x400100, module);
    uint32_t inner = fake_context(&fake, outer, 0x400200, module);
    uint32_t leaf = fake_leaf(&fake, inner, 0, 0, 2);
    uint32_t unused = fake_leaf(&fake, outer, 0, 0, 1);
    fake_malloc(&fake, leaf, 1, 100);
    fake_malloc(&fake, unused, 1, 7);
    write_entry(1);
    fake.source.generation++;
    fake.contexts[inner] = (struct ta__source_context){.address = 0x400300, .module = module};
    fake.contexts[outer] = (struct ta__source_context){.address = 0x400400, .module = module, .parent = inner};
    fake.leaves[leaf].context = outer;
    fake.leaves[unused].flags = TA__LEAF_FREED;
    fake.counts[unused] = (struct ta__source_counts){0};
    uint32_t forgotten = fake_leaf(&fake, 0, 0, 0, 0);
    fake.leaves[forgotten].flags = TA__LEAF_FORGOTTEN;
    fake.counts[leaf] = (struct ta__source_counts){0};
    fake_malloc(&fake, leaf, 1, 200);
    fake_malloc(&fake, forgotten, 2, 50);
    fake_free(&fake, forgotten, 2, 50);
    write_entry(2);

    struct ta_snapshot *first = load(0);
    const struct ta__view *view = ta__snapshot_view(first);
    TEST_ASSERT_EQUAL(2, view->trace_count);
    const struct ta__view_context *context = &view->contexts[view->traces[0].context];
    TEST_ASSERT_EQUAL_HEX64(0x400200, view->frames[context->frame].address);
    TEST_ASSERT_EQUAL_HEX64(0x400100, view->frames[view->contexts[context->parent].frame].address);
    ta_snapshot_free(first);
    struct ta_snapshot *second = load(1);
    view = ta__snapshot_view(second);
    TEST_ASSERT_EQUAL(1, view->trace_count);
    TEST_ASSERT_EQUAL(200, view->traces[0].size);
    assert_stack(view, view->traces[0].context, outer);
    TEST_ASSERT_EQUAL(1, view->gone_trace_count);
    TEST_ASSERT_EQUAL(100, view->traces[1].allocated_bytes);
    TEST_ASSERT_EQUAL(2, view->traces[1].allocated_blocks);
    const struct ta__view_frame *frame = &view->frames[view->contexts[view->traces[1].context].frame];
    TEST_ASSERT_EQUAL(TA__FRAME_SOURCE, frame->kind);
    TEST_ASSERT_EQUAL_STRING("<forgotten>", view->strings[frame->file].text);
    ta_snapshot_free(second);
}

static void test_writer_other_tables_after_a_restart_are_written_in_full(void)
{
    fake_program(&fake, 5000, 300);
    write_entry(1);
    uint64_t random = fake.random;
    fake_close(&fake);
    fake_open(&fake);
    fake.random = random;
    fake.source.epoch = 2;
    fake_program(&fake, 7000, 300);
    write_entry(2);
    for (long entry = 1; entry >= -1; entry -= 2) {
        struct ta_snapshot *snapshot = load(entry);
        assert_same(ta__snapshot_view(snapshot));
        ta_snapshot_free(snapshot);
    }
    struct ta_snapshot *first = load(0);
    TEST_ASSERT_EQUAL(5000, ta__snapshot_view(first)->context_count);
    ta_snapshot_free(first);
}

static void test_writer_module_unloaded_later_is_written_again(void)
{
    fake_program(&fake, 100, 20);
    write_entry(1);
    fake.modules[1].flags = TA__MODULE_UNLOADED;
    write_entry(2);
    struct ta_snapshot *snapshot = load(1);
    TEST_ASSERT_EQUAL(0, ta__snapshot_view(snapshot)->modules[0].flags);
    TEST_ASSERT_EQUAL(TA__MODULE_UNLOADED, ta__snapshot_view(snapshot)->modules[1].flags);
    ta_snapshot_free(snapshot);
}

static void test_writer_leaf_beyond_the_contexts_read_waits_for_the_next_entry(void)
{
    fake_program(&fake, 100, 20);
    uint32_t context = fake_context(&fake, 1, 0x400999, 1);
    uint32_t leaf = fake_leaf(&fake, context, 0, 0, 2);
    fake_malloc(&fake, leaf, 1, 99);
    fake.source.context_count--; /* as if it had been read before the leaf was there */
    write_entry(1);
    struct ta_snapshot *snapshot = load(0);
    for (uint32_t i = 0; i < ta__snapshot_view(snapshot)->trace_count; i++)
        TEST_ASSERT_NOT_EQUAL(99, ta__snapshot_view(snapshot)->traces[i].size);
    ta_snapshot_free(snapshot);
    fake.source.context_count++;
    write_entry(2);
    snapshot = load(1);
    assert_same(ta__snapshot_view(snapshot));
    ta_snapshot_free(snapshot);
}

static void test_writer_free_seen_before_its_malloc_is_no_negative_trace(void)
{
    uint32_t context = fake_context(&fake, 0, 0x400999, 0);
    uint32_t leaf = fake_leaf(&fake, context, 0, 0, 1);
    fake_malloc(&fake, leaf, 1, 10);
    fake_free(&fake, leaf, 2, 10);
    write_entry(1);
    struct ta_snapshot *snapshot = load(0);
    TEST_ASSERT_EQUAL(0, ta__snapshot_view(snapshot)->trace_count);
    TEST_ASSERT_EQUAL(1, ta__snapshot_view(snapshot)->gone_trace_count);
    TEST_ASSERT_EQUAL_UINT64(0, ta__snapshot_view(snapshot)->traces[0].size);
    ta_snapshot_free(snapshot);
}

/* The counters of one leaf are read one after the other: of a block that grew and was freed meanwhile, the bytes that went
 * may be more than those that came. */
static void test_writer_more_bytes_freed_than_allocated_is_no_huge_trace(void)
{
    uint32_t context = fake_context(&fake, 0, 0x400999, 0);
    uint32_t leaf = fake_leaf(&fake, context, 0, 0, 1);
    fake_malloc(&fake, leaf, 3, 10);
    fake_free(&fake, leaf, 1, 100);
    write_entry(1);
    struct ta_snapshot *snapshot = load(0);
    TEST_ASSERT_EQUAL(1, ta__snapshot_view(snapshot)->trace_count);
    TEST_ASSERT_EQUAL_UINT64(2, ta__snapshot_view(snapshot)->traces[0].count);
    TEST_ASSERT_EQUAL_UINT64(0, ta__snapshot_view(snapshot)->traces[0].size);
    ta_snapshot_free(snapshot);
}

/* The tables stay small, what must be decompressed for them does not: sixteen times the limit, and no more. */
static void test_reader_decompresses_no_more_than_sixteen_times_its_limit(void)
{
    enum { LEAVES = 3000, MOST = 2000 };
    static uint32_t leaves[LEAVES];
    uint32_t context = fake_context(&fake, 0, 0x400999, 0);
    struct ta_snapshot *snapshot = NULL;
    for (int i = 0; i < LEAVES; i++)
        leaves[i] = fake_leaf(&fake, context, 0, 0, (uint16_t)(i + 1));
    int entries = 0;
    for (size_t limit = 64 << 10; entries < MOST && (entries == 0 || snapshot != NULL);) {
        for (int i = 0; i < LEAVES; i++)
            fake_malloc(&fake, leaves[i], 100000, 1000);
        write_entry((uint64_t)++entries);
        if (entries > 1 && entries % 200 != 0)
            continue;
        ta_snapshot_free(snapshot);
        do { /* the first entry finds out what the tables need */
            ta_snapshot_set_load_limit(limit);
            snapshot = ta_snapshot_load_memory(writer.chunks.sink.memory.bytes, writer.chunks.sink.memory.length,
                                               entries - 1); /* -1 is what is whole of a file that was not closed */
            limit *= entries == 1 && snapshot == NULL ? 2 : 1;
        } while (entries == 1 && snapshot == NULL && limit < (size_t)1 << 30);
    }
    ta_snapshot_set_load_limit((size_t)1 << 30);
    TEST_ASSERT_GREATER_THAN_INT(1, entries);
    TEST_ASSERT_NULL(snapshot);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(ta__error_text(), "decompresses to more than 16 times the limit"),
                                 ta__error_text());
    ta_snapshot_free(load(-1));
}

static void test_writer_build_ids_of_every_length_come_back(void)
{
    static const uint32_t lengths[] = {0, 1, 20, 63, 64};
    enum { COUNT = sizeof lengths / sizeof lengths[0] };
    uint8_t id[64];
    for (unsigned i = 0; i < sizeof id; i++)
        id[i] = (uint8_t)(200 - i);
    for (unsigned i = 0; i < COUNT; i++) {
        uint32_t module = fake_module(&fake, "/lib/libx.so", 0x10000 * (i + 1), 0x10000 * (i + 1) + 0x1000);
        fake.modules[module - 1].build_id = id;
        fake.modules[module - 1].build_id_length = lengths[i];
    }
    write_entry(1);
    struct ta_snapshot *snapshot = load(0);
    const struct ta__view *view = ta__snapshot_view(snapshot);
    TEST_ASSERT_EQUAL(COUNT, view->module_count);
    for (unsigned i = 0; i < COUNT; i++) {
        TEST_ASSERT_EQUAL(lengths[i], view->modules[i].build_id_length);
        if (lengths[i] != 0)
            TEST_ASSERT_EQUAL_MEMORY(id, view->modules[i].build_id, lengths[i]);
    }
    ta_snapshot_free(snapshot);
}

static void test_writer_overflow_leaf_gets_a_frame_that_says_so(void)
{
    uint32_t leaf = fake_leaf(&fake, 0, 0, 0, 0);
    fake.leaves[leaf].flags = TA__LEAF_OVERFLOW;
    fake_malloc(&fake, leaf, 2, 10);
    write_entry(1);
    struct ta_snapshot *snapshot = load(0);
    struct ta_raw_frame frame;
    TEST_ASSERT_EQUAL(1, ta_snapshot_trace_frames(snapshot, 0, &frame, 1));
    TEST_ASSERT_EQUAL_STRING("<overflow>", frame.file);
    ta_snapshot_free(snapshot);
}

static void test_writer_values_at_the_peak_stay_until_the_next_peak(void)
{
    fake_program(&fake, 3000, 100);
    uint32_t count = fake.source.leaf_count;
    uint64_t *peaks = calloc(count, sizeof *peaks);
    for (uint32_t i = 1; i < count; i += 2)
        peaks[i] = i * 10;
    fake.source.leaf_peak_bytes = peaks;
    fake.source.leaf_peak_count = count;
    write_entry(1);
    uint64_t before = written();
    write_entry(2);
    TEST_ASSERT_LESS_THAN_UINT64(1024, written() - before);
    memset(peaks, 0, count * sizeof *peaks);
    peaks[2] = 5;
    write_entry(3);
    for (long entry = 0; entry < 3; entry++) {
        struct ta_snapshot *snapshot = load(entry);
        const struct ta__view *view = ta__snapshot_view(snapshot);
        TEST_ASSERT_EQUAL(count - 1, view->trace_count); /* leaf i is trace i - 1 */
        TEST_ASSERT_EQUAL_UINT64(entry < 2 ? 10 : 0, view->traces[0].peak_bytes);
        TEST_ASSERT_EQUAL_UINT64(entry < 2 ? 0 : 5, view->traces[1].peak_bytes);
        TEST_ASSERT_EQUAL_UINT64(entry < 2 ? 30 : 0, view->traces[2].peak_bytes);
        ta_snapshot_free(snapshot);
    }
    free(peaks);
}

static void test_writer_at_the_peak_needs_no_list_of_it(void)
{
    static uint64_t peak[10000];
    fake_program(&fake, 3000, 100);
    fake.source.leaf_peak_bytes = peak;
    fake.source.leaf_peak_count = fake.source.leaf_count;
    for (uint32_t i = 0; i < fake.source.leaf_count; i++)
        peak[i] = 1000 + i;
    write_entry(1);
    fake.source.peak_is_now = 1;
    uint64_t before = written();
    write_entry(2);
    TEST_ASSERT_LESS_THAN(1024, written() - before);
    fake.source.peak_is_now = 0;
    write_entry(3);
    for (long entry = 0; entry < 3; entry++) {
        struct ta_snapshot *snapshot = load(entry);
        const struct ta__view *view = ta__snapshot_view(snapshot);
        TEST_ASSERT_GREATER_THAN(100, view->trace_count);
        for (uint32_t i = 0; i < view->trace_count; i++)
            if (entry == 1)
                TEST_ASSERT_EQUAL_UINT64(view->traces[i].size, view->traces[i].peak_bytes);
            else
                TEST_ASSERT_GREATER_OR_EQUAL(1000, view->traces[i].peak_bytes);
        ta_snapshot_free(snapshot);
    }
}

static void test_writer_no_memory_at_any_moment_leaves_the_file_as_it_was(void)
{
    fake_program(&fake, 20000, 500);
    write_entry(1);
    uint64_t before = written();
    fake_program(&fake, 40000, 500);
    int failures = 0;
    for (long nth = 1;; nth++) {
        struct ta__facts facts = fake_facts(2);
        ta__memory_inject_failure(nth, 1);
        int result = ta__writer_entry(&writer, &fake.source, &facts);
        ta__memory_inject_failure(0, 0);
        if (result == 0)
            break;
        failures++;
        TEST_ASSERT_EQUAL_STRING("cannot write the snapshot: Cannot allocate memory", ta__error_text());
        TEST_ASSERT_EQUAL_UINT64(before, written());
    }
    TEST_ASSERT_GREATER_THAN(5, failures);
    struct ta_snapshot *snapshot = load(1);
    assert_same(ta__snapshot_view(snapshot));
    ta_snapshot_free(snapshot);
}

static void test_writer_errno_is_kept_on_success(void)
{
    fake_program(&fake, 1000, 50);
    errno = 4242;
    write_entry(1);
    TEST_ASSERT_EQUAL(4242, errno);
}

/* ---- files that cannot be written ------------------------------------------------------------------------------- */

static void begin_file(struct ta__writer *file, const char *path, int flags)
{
    struct ta__sink sink;
    int descriptor = open(path, flags, 0600);
    TEST_ASSERT_GREATER_OR_EQUAL(0, descriptor);
    ta__sink_descriptor(&sink, descriptor);
    TEST_ASSERT_EQUAL(0, ta__writer_open(file, &sink));
}

static void test_writer_file_size_limit_fails_without_a_signal_and_recovers(void)
{
    char path[] = "/tmp/ta_limit.XXXXXX";
    close(mkstemp(path));
    pid_t child = fork();
    if (child == 0) {
        struct ta__writer file;
        struct ta__facts facts = fake_facts(1);
        begin_file(&file, path, O_RDWR | O_TRUNC);
        int good = ta__writer_entry(&file, &fake.source, &facts) == 0;
        uint64_t before = file.chunks.sink.written;
        struct rlimit limit = {before + 100, RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &limit); /* SIGXFSZ keeps its default action: it would end the process */
        fake_program(&fake, 20000, 1000);
        good &= ta__writer_entry(&file, &fake.source, &facts) != 0;
        good &= strcmp(ta__error_text(), "cannot write the snapshot: File too large") == 0;
        struct stat status;
        good &= stat(path, &status) == 0 && (uint64_t)status.st_size == before;
        limit.rlim_cur = RLIM_INFINITY;
        setrlimit(RLIMIT_FSIZE, &limit);
        good &= ta__writer_entry(&file, &fake.source, &facts) == 0;
        good &= ta__writer_seal(&file) == 0;
        _exit(good ? 7 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    TEST_ASSERT_TRUE_MESSAGE(WIFEXITED(status) && WEXITSTATUS(status) == 7, "the child died or saw something else");
    struct ta_snapshot *snapshot = ta_snapshot_load(path);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta__error_text());
    TEST_ASSERT_EQUAL(20000, ta__snapshot_view(snapshot)->context_count);
    TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
    ta_snapshot_free(snapshot);
    unlink(path);
}

static void test_writer_full_device_says_so(void)
{
    struct ta__writer file;
    struct ta__sink sink;
    ta__sink_descriptor(&sink, open("/dev/full", O_WRONLY));
    TEST_ASSERT_EQUAL(-1, ta__writer_open(&file, &sink));
    TEST_ASSERT_EQUAL_STRING("cannot begin the recording: No space left on device", ta__error_text());
    close(sink.descriptor);
}

static void test_writer_broken_pipe_fails_without_a_signal(void)
{
    struct ta__writer file;
    struct ta__sink sink;
    int ends[2];
    TEST_ASSERT_EQUAL(0, pipe(ends));
    close(ends[0]);
    ta__sink_descriptor(&sink, ends[1]);
    TEST_ASSERT_EQUAL(-1, ta__writer_open(&file, &sink));
    TEST_ASSERT_EQUAL_STRING("cannot begin the recording: Broken pipe", ta__error_text());
    close(ends[1]);
}

/* The beginnings of all tables are in one mapping. */
static void test_writer_small_recording_takes_few_mappings(void)
{
    struct ta__writer few;
    struct ta__sink sink;
    struct ta__facts facts = fake_facts(1);
    char path[] = "/tmp/ta_few.XXXXXX";
    ta__sink_descriptor(&sink, mkstemp(path));
    fake_program(&fake, 12, 6);
    ta__memory_inject_failure(10, 1); /* as many fail as would be needed */
    TEST_ASSERT_EQUAL(0, ta__writer_open(&few, &sink));
    TEST_ASSERT_EQUAL_MESSAGE(0, ta__writer_entry(&few, &fake.source, &facts), ta__error_text());
    TEST_ASSERT_EQUAL(0, ta__writer_seal(&few));
    ta__memory_inject_failure(0, 0);
    ta__writer_close(&few);
    close(sink.descriptor);
    TEST_ASSERT_EQUAL(0, ta_recording_check(path, NULL, NULL));
    unlink(path);
}

static void test_buffer_keeps_what_it_has_when_it_outgrows_the_pool(void)
{
    enum { BUFFERS = 40, MOST = 9000 };
    static struct ta__buffer buffers[BUFFERS];
    struct ta__pool pool;
    ta__pool_open(&pool);
    for (int i = 0; i < BUFFERS; i++)
        buffers[i].pool = &pool;
    for (int length = 0; length < MOST; length++) /* all at once, so that the pool runs out while some are small */
        for (int i = 0; i < BUFFERS; i++) {
            uint8_t value = (uint8_t)(length * 7 + i);
            TEST_ASSERT_EQUAL(0, ta__buffer_put(&buffers[i], &value, 1));
        }
    for (int i = 0; i < BUFFERS; i++) {
        for (int length = 0; length < MOST; length++)
            TEST_ASSERT_EQUAL_HEX8((uint8_t)(length * 7 + i), buffers[i].bytes[length]);
        for (size_t at = MOST; at < buffers[i].capacity; at++)
            TEST_ASSERT_EQUAL_HEX8(0, buffers[i].bytes[at]);
        ta__buffer_free(&buffers[i]);
    }
    ta__pool_close(&pool);
}

/* The tables of the usual level are a hundred pages, and cleared for each input. */
static void test_short_inputs_are_compressed_with_small_tables(void)
{
    enum { LENGTH = 12000 };
    static uint8_t raw[LENGTH], packed[2 * LENGTH], again[LENGTH];
    struct ta__coder coder, decoder;
    for (int i = 0; i < LENGTH; i++)
        raw[i] = (uint8_t)(i % 61 * (i / 1024 + 1));
    TEST_ASSERT_EQUAL(0, ta__compressor_open(&coder));
    size_t before = ta__memory_resident(coder.workspace, coder.workspace_bytes);
    size_t length = ta__compress(&coder, packed, sizeof packed, raw, LENGTH);
    size_t touched = ta__memory_resident(coder.workspace, coder.workspace_bytes) - before;
    TEST_ASSERT_GREATER_THAN(0, length);
    TEST_ASSERT_LESS_THAN(LENGTH / 2, length);
    TEST_ASSERT_LESS_OR_EQUAL(24 * 4096, touched);
    TEST_ASSERT_EQUAL(0, ta__decompressor_open(&decoder));
    TEST_ASSERT_NULL(ta__decompress(&decoder, again, LENGTH, packed, length));
    TEST_ASSERT_EQUAL_MEMORY(raw, again, LENGTH);
    ta__coder_close(&decoder);
    ta__coder_close(&coder);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_writer_every_field_comes_back);
    RUN_TEST(test_writer_program_of_100000_contexts_comes_back);
    RUN_TEST(test_writer_series_each_entry_shows_its_moment);
    RUN_TEST(test_writer_unchanged_repeat_costs_less_than_1_kib);
    RUN_TEST(test_writer_size_stays_within_3_bytes_per_context_and_4_per_changed_leaf);
    RUN_TEST(test_writer_clear_begins_anew_with_the_leaves_of_its_epoch);
    RUN_TEST(test_writer_numbers_that_are_used_again_mean_what_they_mean_in_each_entry);
    RUN_TEST(test_writer_other_tables_after_a_restart_are_written_in_full);
    RUN_TEST(test_writer_module_unloaded_later_is_written_again);
    RUN_TEST(test_writer_leaf_beyond_the_contexts_read_waits_for_the_next_entry);
    RUN_TEST(test_writer_free_seen_before_its_malloc_is_no_negative_trace);
    RUN_TEST(test_writer_more_bytes_freed_than_allocated_is_no_huge_trace);
    RUN_TEST(test_reader_decompresses_no_more_than_sixteen_times_its_limit);
    RUN_TEST(test_writer_build_ids_of_every_length_come_back);
    RUN_TEST(test_writer_overflow_leaf_gets_a_frame_that_says_so);
    RUN_TEST(test_writer_values_at_the_peak_stay_until_the_next_peak);
    RUN_TEST(test_writer_at_the_peak_needs_no_list_of_it);
    RUN_TEST(test_writer_no_memory_at_any_moment_leaves_the_file_as_it_was);
    RUN_TEST(test_writer_errno_is_kept_on_success);
    RUN_TEST(test_writer_file_size_limit_fails_without_a_signal_and_recovers);
    RUN_TEST(test_writer_full_device_says_so);
    RUN_TEST(test_writer_broken_pipe_fails_without_a_signal);
    RUN_TEST(test_writer_small_recording_takes_few_mappings);
    RUN_TEST(test_buffer_keeps_what_it_has_when_it_outgrows_the_pool);
    RUN_TEST(test_short_inputs_are_compressed_with_small_tables);
    return UNITY_END();
}
