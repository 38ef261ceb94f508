/* test_writer_rows.c: the tables of an entry (snapshot/write/write.h), row by row: which sections an entry has, tables that fill a
 * section exactly or do not, rows that are not there, and lack of memory with all of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "base/error.h"
#include "base/memory.h"
#include "snapshot/read/read.h"
#include "snapshot/write/write.h"
#include "tests/support/fake_source.h"

static struct fake_source fake;
static struct ta__writer writer;
static struct ta__facts facts;

void setUp(void)
{
    struct ta__sink sink;
    fake_open(&fake);
    ta__sink_memory(&sink);
    TEST_ASSERT_EQUAL(0, ta__writer_open(&writer, &sink));
    facts = fake_facts(1000);
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
    ta__buffer_free(&writer.chunks.sink.memory);
    ta__writer_close(&writer);
    fake_close(&fake);
}

static uint64_t entry_begins;

static void write_entry(void)
{
    entry_begins = writer.chunks.sink.written;
    facts.time_ns++;
    TEST_ASSERT_EQUAL_MESSAGE(0, ta__writer_entry(&writer, &fake.source, &facts), ta__error_text());
}

static struct ta_snapshot *load(void)
{
    const struct ta__buffer *bytes = &writer.chunks.sink.memory;
    struct ta_snapshot *snapshot = ta_snapshot_load_memory(bytes->bytes, bytes->length, -1);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    return snapshot;
}

static const char *text(const struct ta__view *view, uint32_t string)
{
    TEST_ASSERT_LESS_THAN(view->string_count, string);
    return view->strings[string].text;
}

/* The sections of the last entry, such as "entry strings leaves end". */
static const char *sections(void)
{
    static const char *const names[] = {"?",       "entry",    "strings", "modules",  "frames", "contexts",
                                        "domains", "threads",  "leaves",  "counters", "peak",   "traces",
                                        "options", "metadata", "symbols", "ranges",   "blocks"};
    static char list[400];
    const uint8_t *bytes = writer.chunks.sink.memory.bytes;
    list[0] = '\0';
    for (uint64_t at = entry_begins; at < writer.chunks.sink.written; at += 32 + ta__u32_at(bytes + at + 12)) {
        unsigned kind = ta__u16_at(bytes + at + 4);
        sprintf(list + strlen(list), "%s%s", list[0] != '\0' ? " " : "", kind == TA__KIND_END ? "end" : names[kind]);
    }
    return list;
}

/* ---- which sections ---- */

static void test_an_entry_has_what_is_new_or_changed(void)
{
    fake_module(&fake, "/bin/x", 0x1000, 0x2000);
    fake_module(&fake, "/lib/y", 0x3000, 0x4000);
    uint32_t context = fake_context(&fake, 0, 0x1010, 1), leaf = fake_leaf(&fake, context, 0, 0, 1);
    uint32_t domain = fake_domain(&fake, 4, "pool");
    fake_thread(&fake, 1000, "main");
    fake_malloc(&fake, leaf, 1, 16);
    write_entry();
    TEST_ASSERT_EQUAL_STRING(
        "entry strings strings modules frames contexts strings domains strings threads leaves counters "
        "strings options end",
        sections());
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry end", sections());
    fake_malloc(&fake, leaf, 1, 16);
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry counters end", sections());
    fake.domains[domain].live_bytes = 5;
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry domains end", sections());
    fake.domains[domain].limit_bytes = 5;
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry domains end", sections());
    strcpy(fake.threads[0].name, "pool"); /* a text that is known */
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry threads end", sections());
    fake.threads[0].flags = TA__THREAD_ENDED;
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry threads end", sections());
    fake.threads[0].tid = 7;
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry threads end", sections());
    static const uint8_t other_id[] = {1, 2, 3};
    fake.modules[1].build_id = other_id;
    fake.modules[1].build_id_length = 3;
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry modules end", sections());
    static const uint8_t third_id[] = {1, 2, 4};
    fake.modules[1].build_id = third_id; /* as long, but another */
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry modules end", sections());
    fake.modules[0].end++;
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry modules end", sections());
    fake.source.options = "pool";
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry options end", sections());
    fake.source.options = NULL;
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry options end", sections()); /* there are none any more */
    facts.reason = "another";
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry strings end", sections());
    const struct ta__fact_pair pairs[] = {{"key", "value"}, {"pool", "main"}};
    facts.pairs = pairs;
    facts.pair_count = 2;
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry strings metadata end", sections());
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry metadata end", sections()); /* once per entry */
    fake.source.has_blocks = 1;
    facts.pair_count = 0;
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry blocks end", sections());
    fake.source.has_blocks = 0;
    writer.reset = 1;
    write_entry();
    TEST_ASSERT_EQUAL_STRING("entry strings strings modules frames contexts strings domains threads leaves counters "
                             "strings options end",
                             sections());
    struct ta_snapshot *snapshot = load();
    const struct ta__view *view = ta__snapshot_view(snapshot);
    TEST_ASSERT_EQUAL(0, view->option_count);
    TEST_ASSERT_EQUAL(2, view->module_count);
    TEST_ASSERT_EQUAL_HEX64(0x2001, view->modules[0].end);
    TEST_ASSERT_EQUAL(3, view->modules[1].build_id_length);
    TEST_ASSERT_EQUAL_MEMORY(third_id, view->modules[1].build_id, 3);
    TEST_ASSERT_EQUAL_STRING("pool", text(view, view->threads[0].name));
    TEST_ASSERT_EQUAL(7, view->threads[0].tid);
    ta_snapshot_free(snapshot);
}

/* What rows say that change alone comes back with the others as they were. */
static void test_rows_that_change_alone_leave_the_others(void)
{
    char name[16];
    for (unsigned i = 0; i < 9; i++) {
        sprintf(name, "n%u", i);
        fake_thread(&fake, 100 + i, name);
        fake_module(&fake, i % 2 ? "/lib/odd" : "/lib/even", 0x1000 * (i + 1), 0x1000 * (i + 2));
        fake_domain(&fake, 10 + i, i % 2 ? "odd" : "even");
    }
    write_entry();
    fake.threads[3].tid = 777;
    fake.threads[8].flags = TA__THREAD_ENDED;
    fake.modules[5].path = "/lib/other";
    fake.domains[2].peak_bytes = 99;
    write_entry();
    TEST_ASSERT_LESS_OR_EQUAL(9 * 20, writer.build_ids.length); /* those of one entry */
    struct ta_snapshot *snapshot = load();
    const struct ta__view *view = ta__snapshot_view(snapshot);
    TEST_ASSERT_EQUAL(9, view->thread_count);
    TEST_ASSERT_EQUAL(9, view->module_count);
    TEST_ASSERT_EQUAL(10, view->domain_count);
    for (unsigned i = 0; i < 9; i++) {
        sprintf(name, "n%u", i);
        TEST_ASSERT_EQUAL(i == 3 ? 777 : 100 + i, view->threads[i].tid);
        TEST_ASSERT_EQUAL(i == 8 ? TA__THREAD_ENDED : 0, view->threads[i].flags);
        TEST_ASSERT_EQUAL_STRING(name, text(view, view->threads[i].name));
        TEST_ASSERT_EQUAL_STRING(i == 5  ? "/lib/other"
                                 : i % 2 ? "/lib/odd"
                                         : "/lib/even",
                                 text(view, view->modules[i].path));
        TEST_ASSERT_EQUAL_HEX64(0x1000 * (i + 1), view->modules[i].start);
        TEST_ASSERT_EQUAL_MEMORY(fake.modules[i].build_id, view->modules[i].build_id, 20);
        TEST_ASSERT_EQUAL(10 + i, view->domains[i + 1].number);
        TEST_ASSERT_EQUAL_UINT64(i == 1 ? 99 : 0, view->domains[i + 1].peak_bytes);
    }
    ta_snapshot_free(snapshot);
}

/* ---- rows that are not there ---- */

static int no_module(const struct ta__source *source, uint32_t index, struct ta__source_module *row)
{
    (void)source, (void)index;
    *row = (struct ta__source_module){.path = "/wrong", .start = 5};
    return 0;
}

static int no_domain(const struct ta__source *source, uint32_t index, struct ta__source_domain *row)
{
    (void)source, (void)index;
    *row = (struct ta__source_domain){.number = 99, .name = "wrong"};
    return 0;
}

static int no_thread(const struct ta__source *source, uint32_t index, struct ta__source_thread *row)
{
    (void)source, (void)index;
    *row = (struct ta__source_thread){.tid = 99, .name = "wrong"};
    return 0;
}

static void test_rows_that_cannot_be_had_are_empty(void)
{
    fake_module(&fake, "/bin/x", 0x1000, 0x2000);
    fake_domain(&fake, 77, "x");
    fake_thread(&fake, 88, "x");
    fake.source.module = no_module;
    fake.source.domain = no_domain;
    fake.source.thread = no_thread;
    facts.program = facts.host = NULL;
    write_entry();
    struct ta_snapshot *snapshot = load();
    const struct ta__view *view = ta__snapshot_view(snapshot);
    TEST_ASSERT_EQUAL(1, view->module_count);
    TEST_ASSERT_EQUAL_STRING("", text(view, view->modules[0].path));
    TEST_ASSERT_EQUAL_UINT64(0, view->modules[0].start);
    TEST_ASSERT_EQUAL(2, view->domain_count);
    TEST_ASSERT_EQUAL(1, view->domains[1].number); /* its place */
    TEST_ASSERT_EQUAL_STRING("", text(view, view->domains[1].name));
    TEST_ASSERT_EQUAL(0, view->threads[0].tid);
    TEST_ASSERT_EQUAL_STRING("", text(view, view->threads[0].name));
    TEST_ASSERT_EQUAL_STRING("", text(view, view->program));
    ta_snapshot_free(snapshot);
}

static void test_texts_have_8_mebibytes_at_most(void)
{
    char *large = malloc((8 << 20) + 2);
    for (int more = -1; more <= 1; more++) {
        memset(large, 'x', (8 << 20) + 1);
        large[(8 << 20) + more] = '\0';
        facts.reason = large;
        write_entry();
        struct ta_snapshot *snapshot = load();
        const struct ta__view *view = ta__snapshot_view(snapshot);
        TEST_ASSERT_EQUAL((8 << 20) + (more < 0 ? more : 0), view->strings[view->reason].length);
        ta_snapshot_free(snapshot);
    }
    free(large);
}

/* A leaf that names what this entry does not have yet waits, and those behind it with it. */
static void test_leaves_wait_for_what_they_name(void)
{
    static const struct {
        uint32_t context, domain, thread;
        long traces;
    } cases[] = {{1, 0, 0, 3}, {2, 0, 0, 1}, {1, 1, 0, 1}, {1, 0, 1, 3}, {1, 0, 2, 1}, {0, 0, 1, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_context(&fake, 0, 0x1010, 0);
        fake_thread(&fake, 1, "x");
        fake_malloc(&fake, fake_leaf(&fake, 1, 0, 0, 1), 1, 10);
        uint32_t leaf = fake_leaf(&fake, cases[i].context, cases[i].domain, cases[i].thread, 1);
        fake.leaves[leaf].flags = cases[i].context == 0 ? TA__LEAF_CUT_SHORT : 0;
        fake_malloc(&fake, leaf, 1, 20);
        fake_malloc(&fake, fake_leaf(&fake, 1, 0, 0, 1), 1, 30);
        write_entry();
        struct ta_snapshot *snapshot = load();
        TEST_ASSERT_EQUAL(cases[i].traces, ta_snapshot_trace_count(snapshot));
        ta_snapshot_free(snapshot);
        tearDown();
        setUp();
    }
}

/* ---- tables that fill their sections ---- */

enum { FULL = 65536 };
static const uint32_t counts[] = {FULL - 1, FULL, FULL + 1, 2 * FULL, 2 * FULL + 1};

static void test_blocks_fill_their_sections(void)
{
    struct ta__source_block *blocks = calloc(2 * FULL + 1, sizeof *blocks);
    uint32_t context = fake_context(&fake, 0, 0x1010, 0);
    uint32_t one = fake_leaf(&fake, context, 0, 0, 1), freed = fake_leaf(&fake, context, 0, 0, 1);
    uint32_t two = fake_leaf(&fake, context, 0, 0, 2);
    fake.leaves[freed].flags = TA__LEAF_FREED;
    fake_malloc(&fake, one, 1, 10);
    fake_malloc(&fake, two, 1, 20);
    const uint32_t leaves[] = {one, 0, two, freed, fake.source.leaf_count, one, two, two};
    static const long traces[] = {0, -1, 1, -1, -1, 0, 1, 1};
    for (uint32_t i = 0; i < 2 * FULL + 1; i++)
        blocks[i] = (struct ta__source_block){0x7f0000000000 + i * UINT64_C(64), i % 5 ? 48 : i, leaves[i % 8]};
    fake.source.blocks = blocks;
    fake.source.has_blocks = 1;
    for (size_t i = 0; i < sizeof counts / sizeof *counts + 1; i++) {
        uint32_t count = i < sizeof counts / sizeof *counts ? counts[i] : 0;
        fake.source.block_count = count;
        write_entry();
        struct ta_snapshot *snapshot = load();
        struct ta_block block;
        TEST_ASSERT_EQUAL(count, ta_snapshot_block_count(snapshot));
        for (uint32_t at = 0; at < count; at++) {
            TEST_ASSERT_EQUAL(0, ta_snapshot_block(snapshot, at, &block));
            if (block.address != blocks[at].address || block.size != blocks[at].size || block.trace != traces[at % 8])
                TEST_ASSERT_EQUAL(at, -1);
        }
        ta_snapshot_free(snapshot);
    }
    free(blocks);
}

static void test_tables_fill_their_sections(void)
{
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint32_t count = counts[i];
        uint64_t *peaks = calloc(count + 1, sizeof *peaks);
        for (uint32_t at = 0; at < count; at++) {
            char name[16];
            sprintf(name, "t%u", at);
            fake_thread(&fake, at + 1, name);
            if (at > 0)
                fake_domain(&fake, at, "");
            uint32_t context = fake_context(&fake, at % 7 ? 1 : 0, 0x1000 + at * UINT64_C(16), 0);
            if (at > 0)
                fake_malloc(&fake, fake_leaf(&fake, context, at, at, 2), 1 + at % 3, 100 + at % 1000);
            peaks[at] = at % 2 ? at : 0;
        }
        fake.source.leaf_peak_bytes = peaks;
        fake.source.leaf_peak_count = count;
        fake.source.start_time_ns = 1;
        write_entry();
        struct ta_snapshot *snapshot = load();
        const struct ta__view *view = ta__snapshot_view(snapshot);
        TEST_ASSERT_EQUAL(count, view->thread_count);
        TEST_ASSERT_EQUAL(count, view->domain_count);
        TEST_ASSERT_EQUAL(count + 1, view->context_count);
        TEST_ASSERT_EQUAL(count - 1, view->trace_count);
        for (uint32_t at = 1; at < count; at++) {
            const struct ta__view_trace *trace = &view->traces[at - 1];
            const struct ta__view_context *context = &view->contexts[trace->context];
            if (trace->count != 1 + at % 3 || trace->size != (1 + at % 3) * (100 + at % 1000) || trace->thread != at ||
                trace->domain != at || trace->peak_bytes != peaks[at] || view->threads[at].tid != at + 1 ||
                view->domains[at].number != at || view->frames[context->frame].address != 0x1000 + at * UINT64_C(16) ||
                context->parent != (at % 7 ? 1u : 0u) || atoi(text(view, view->threads[at].name) + 1) != (int)at)
                TEST_ASSERT_EQUAL(at, -1);
        }
        ta_snapshot_free(snapshot);
        for (uint32_t at = 1; at < count; at++) /* each of them has changed */
            fake_free(&fake, at, 1, 100 + at % 1000);
        peaks[count - 1] = 12345;
        write_entry();
        snapshot = load();
        view = ta__snapshot_view(snapshot);
        TEST_ASSERT_EQUAL(count - 1, view->trace_count + view->gone_trace_count);
        TEST_ASSERT_EQUAL((count - 1) / 3, view->gone_trace_count);
        uint64_t peak = 0;
        for (uint32_t at = 0; at < count - 1; at++)
            peak = view->traces[at].domain == count - 1 ? view->traces[at].peak_bytes : peak;
        TEST_ASSERT_EQUAL_UINT64(12345, peak);
        ta_snapshot_free(snapshot);
        free(peaks);
        tearDown();
        setUp();
    }
}

/* A section of texts has a mebibyte, or one text that is longer. */
static void test_texts_fill_their_sections(void)
{
    static char texts[5][(1 << 20) + 1];
    static const size_t lengths[] = {(1 << 19), (1 << 19), 1, (1 << 20), 5};
    struct ta__fact_pair pairs[5];
    for (unsigned i = 0; i < 5; i++) {
        memset(texts[i], 'a' + (int)i, lengths[i]);
        texts[i][lengths[i]] = '\0';
        pairs[i] = (struct ta__fact_pair){"k", texts[i]};
    }
    write_entry();
    facts.pairs = pairs;
    facts.pair_count = 5;
    write_entry();
    /* "k" and half a mebibyte; half a mebibyte and 1 byte; a mebibyte alone; 5 bytes. */
    TEST_ASSERT_EQUAL_STRING("entry strings strings strings strings metadata end", sections());
    struct ta_snapshot *snapshot = load();
    const struct ta__view *view = ta__snapshot_view(snapshot);
    for (unsigned i = 0; i < 5; i++)
        TEST_ASSERT_EQUAL_STRING(texts[i], text(view, view->metadata[i].value));
    ta_snapshot_free(snapshot);
    for (unsigned i = 0; i < 2; i++)
        memset(texts[i], 'x' + (int)i, lengths[i]);
    facts.pairs = pairs;
    pairs[0].key = pairs[1].key = "";
    facts.pair_count = 2;
    write_entry(); /* exactly a mebibyte */
    TEST_ASSERT_EQUAL_STRING("entry strings metadata end", sections());
}

static void test_an_index_has_200000_rows_or_none(void)
{
    struct ta__index_row row = {.offset = 32};
    for (uint32_t count = 200000; count <= 200001; count++) {
        writer.chunks.index.length = 0;
        for (uint32_t i = 0; i < count; i++, row.offset += 40)
            TEST_ASSERT_EQUAL(0, ta__buffer_put(&writer.chunks.index, &row, sizeof row));
        uint64_t begin = writer.chunks.sink.written;
        TEST_ASSERT_EQUAL(0, ta__writer_seal(&writer));
        const uint8_t *header = writer.chunks.sink.memory.bytes + begin;
        TEST_ASSERT_EQUAL(TA__KIND_INDEX, ta__u16_at(header + 4));
        if (count == 200000)
            TEST_ASSERT_GREATER_THAN(200000, ta__u32_at(header + 16));
        else
            TEST_ASSERT_EQUAL(7, ta__u32_at(header + 16)); /* their number, and six columns without any */
    }
}

static void test_a_section_has_16_mebibytes_at_most(void)
{
    enum { MOST = 16 << 20 };
    char *bytes = calloc(1, MOST + 1);
    for (int more = 0; more <= 1; more++)
        for (int flags = 0; flags <= TA__CHUNK_PLAIN; flags += TA__CHUNK_PLAIN) {
            TEST_ASSERT_EQUAL(0, ta__chunk_begin(&writer.chunks));
            TEST_ASSERT_EQUAL(0, ta__raw_bytes(&writer.chunks, bytes, MOST + (size_t)more));
            uint64_t begin = writer.chunks.sink.written;
            TEST_ASSERT_EQUAL(-more, ta__chunk_end(&writer.chunks, TA__KIND_STRINGS, (uint16_t)flags));
            TEST_ASSERT_EQUAL(more ? EOVERFLOW : 0, writer.chunks.sink.error);
            if (more == 0)
                TEST_ASSERT_EQUAL(MOST, ta__u32_at(writer.chunks.sink.memory.bytes + begin + 16));
            else
                TEST_ASSERT_EQUAL_UINT64(begin, writer.chunks.sink.written);
            writer.chunks.sink.error = 0;
        }
    free(bytes);
}

static void test_what_was_compressed_is_unpacked_into_its_room_alone(void)
{
    static uint8_t bytes[50000], packed[60000], unpacked[50001];
    struct ta__coder coder;
    size_t mapped = ta__memory_mapped();
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * i / 7);
    TEST_ASSERT_EQUAL(0, ta__compressor_open(&coder));
    static const size_t lengths[] = {50000, 100, 50000, 16384, 16385}; /* long and short ones in turn */
    for (size_t i = 0; i < 5; i++) {
        size_t length = ta__compress(&coder, packed, sizeof packed, bytes, lengths[i]);
        TEST_ASSERT_GREATER_THAN(0, length);
        memset(unpacked, 0, sizeof unpacked);
        TEST_ASSERT_EQUAL(1, ta__unpack_frames(unpacked, lengths[i], packed, length));
        TEST_ASSERT_EQUAL_MEMORY(bytes, unpacked, lengths[i]);
        TEST_ASSERT_EQUAL(0, ta__unpack_frames(unpacked, lengths[i] + 1, packed, length));
        TEST_ASSERT_EQUAL(0, ta__unpack_frames(unpacked, lengths[i] - 1, packed, length));
        TEST_ASSERT_EQUAL(0, ta__unpack_frames(unpacked, lengths[i], packed, length - 1));
    }
    TEST_ASSERT_EQUAL(0, ta__unpack_frames(unpacked, 100, bytes, 100));
    TEST_ASSERT_EQUAL(0, ta__compress(&coder, packed, 10, bytes, 50000)); /* no room */
    ta__coder_close(&coder);
    TEST_ASSERT_EQUAL(mapped, ta__memory_mapped());
    ta__memory_inject_failure(1, 0);
    TEST_ASSERT_EQUAL(0, ta__unpack_frames(unpacked, 100, packed, 100));
    ta__memory_inject_failure(1, 0);
    TEST_ASSERT_EQUAL(-1, ta__compressor_open(&coder));
    TEST_ASSERT_EQUAL(mapped, ta__memory_mapped());
}

/* ---- lack of memory ---- */

static void make_everything(unsigned round)
{
    static struct ta__source_block blocks[300];
    static uint64_t peaks[3000];
    static char names[40][16];
    for (unsigned i = 0; i < 20; i++) {
        sprintf(names[i], "r%u-%u", round, i);
        fake_module(&fake, names[i], 0x1000 * i, 0x1000 * (i + 1));
        fake_domain(&fake, 1 + 20 * round + i, names[i]);
        fake_thread(&fake, 1 + i, names[i]);
    }
    fake_program(&fake, 300 * (round + 1), 50);
    fake.leaves[5].flags = TA__LEAF_FORGOTTEN | TA__LEAF_CUT_SHORT;
    for (unsigned i = 0; i < 300; i++)
        blocks[i] = (struct ta__source_block){0x10000 * (i + 1), 100, i % 7};
    for (unsigned i = 0; i < 3000; i++)
        peaks[i] = i * (round + 1);
    fake.source.blocks = blocks;
    fake.source.block_count = 300;
    fake.source.has_blocks = 1;
    fake.source.leaf_peak_bytes = peaks;
    fake.source.leaf_peak_count = 80;
    fake.source.options = names[round];
}

/* Small buffers are in one mapping, so some moments come only with tables that are large already. */
static void test_without_memory_at_any_moment_the_file_is_as_it_was(void)
{
    static char long_text[6000];
    struct ta__fact_pair pairs[] = {{"key", "one"}, {"other", long_text}};
    memset(long_text, 'l', sizeof long_text - 1);
    facts.pairs = pairs;
    facts.pair_count = 2;
    for (unsigned round = 0; round < 3; round++) {
        make_everything(round);
        uint64_t before = writer.chunks.sink.written;
        unsigned failures = 0;
        for (long nth = 1;; nth++) {
            ta__memory_inject_failure(nth, 0);
            int result = ta__writer_entry(&writer, &fake.source, &facts);
            ta__memory_inject_failure(0, 0);
            if (result == 0)
                break;
            failures++;
            TEST_ASSERT_EQUAL_STRING("cannot write the snapshot: Cannot allocate memory", ta__error_text());
            TEST_ASSERT_EQUAL(ENOMEM, errno);
            TEST_ASSERT_EQUAL_UINT64(before, writer.chunks.sink.written);
        }
        TEST_ASSERT_GREATER_THAN(3, failures);
        struct ta_snapshot *snapshot = load();
        const struct ta__view *view = ta__snapshot_view(snapshot);
        TEST_ASSERT_EQUAL(fake.source.module_count, view->module_count);
        TEST_ASSERT_EQUAL(300, ta_snapshot_block_count(snapshot));
        TEST_ASSERT_EQUAL(20 * (round + 1), view->thread_count);
        TEST_ASSERT_EQUAL_STRING(long_text, text(view, view->metadata[1].value));
        TEST_ASSERT_EQUAL_STRING(fake.source.options, text(view, view->options[0].value));
        ta_snapshot_free(snapshot);
    }
}

static void test_what_cannot_be_closed_says_why(void)
{
    write_entry();
    writer.chunks.sink.error = ENOSPC;
    TEST_ASSERT_EQUAL(-1, ta__writer_seal(&writer));
    TEST_ASSERT_EQUAL_STRING("cannot close the recording: No space left on device", ta__error_text());
    TEST_ASSERT_EQUAL(-1, ta__writer_entry(&writer, &fake.source, &facts));
    TEST_ASSERT_EQUAL_STRING("cannot write the snapshot: No space left on device", ta__error_text());
    TEST_ASSERT_EQUAL(ENOSPC, errno);
    writer.chunks.sink.error = 0;
    errno = 77;
    TEST_ASSERT_EQUAL(0, ta__writer_seal(&writer));
    TEST_ASSERT_EQUAL(77, errno);
}

/* Stacks that nobody knows any more: one frame, once in a recording. */
static void test_forgotten_stacks_are_one_frame(void)
{
    uint32_t context = fake_context(&fake, 0, 0x1010, 0);
    for (unsigned i = 0; i < 3; i++) {
        uint32_t leaf = fake_leaf(&fake, i == 2 ? context : 0, 0, 0, 30);
        fake.leaves[leaf].flags = i == 2 ? 0 : TA__LEAF_FORGOTTEN;
        fake_malloc(&fake, leaf, 1, 10 + i);
    }
    write_entry();
    fake.leaves[fake_leaf(&fake, 0, 0, 0, 9)].flags = TA__LEAF_FORGOTTEN;
    write_entry();
    struct ta_snapshot *snapshot = load();
    struct ta_raw_frame frame;
    struct ta_trace trace;
    TEST_ASSERT_EQUAL(3, ta_snapshot_trace_count(snapshot));
    for (size_t i = 0; i < 2; i++) {
        TEST_ASSERT_EQUAL(0, ta_snapshot_trace(snapshot, i, &trace));
        TEST_ASSERT_EQUAL(1, trace.total_nframe);
        TEST_ASSERT_EQUAL(0, trace.flags);
        TEST_ASSERT_EQUAL(1, ta_snapshot_trace_frames(snapshot, i, &frame, 1));
        TEST_ASSERT_EQUAL_STRING("<forgotten>", frame.file);
    }
    TEST_ASSERT_EQUAL(1, ta_snapshot_trace_frames(snapshot, 2, &frame, 1));
    TEST_ASSERT_EQUAL_HEX64(0x1010, frame.address);
    TEST_ASSERT_EQUAL(3, ta__snapshot_view(snapshot)->context_count);
    TEST_ASSERT_EQUAL(2, ta__snapshot_view(snapshot)->frame_count);
    ta_snapshot_free(snapshot);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_an_entry_has_what_is_new_or_changed);
    RUN_TEST(test_rows_that_change_alone_leave_the_others);
    RUN_TEST(test_rows_that_cannot_be_had_are_empty);
    RUN_TEST(test_texts_have_8_mebibytes_at_most);
    RUN_TEST(test_leaves_wait_for_what_they_name);
    RUN_TEST(test_blocks_fill_their_sections);
    RUN_TEST(test_tables_fill_their_sections);
    RUN_TEST(test_texts_fill_their_sections);
    RUN_TEST(test_an_index_has_200000_rows_or_none);
    RUN_TEST(test_a_section_has_16_mebibytes_at_most);
    RUN_TEST(test_what_was_compressed_is_unpacked_into_its_room_alone);
    RUN_TEST(test_without_memory_at_any_moment_the_file_is_as_it_was);
    RUN_TEST(test_what_cannot_be_closed_says_why);
    RUN_TEST(test_forgotten_stacks_are_one_frame);
    return UNITY_END();
}
