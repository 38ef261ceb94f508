/* test_table_snapshot.c: the library's tables, made of arrays, become the snapshot that the program would take: row by row,
 * and with each number that cannot be. */
#include <stdio.h>
#include <string.h>

#include "analysis/image/memory_image.h"
#include "base/error.h"
#include "snapshot/read/read.h"
#include "tests/support/made_memory.h"

#include <unity.h>

#define DATA UINT64_C(0x10000000)
enum { DATA_BYTES = 4 << 20, CONTEXTS = 6, LEAVES = 18, FIRST = 3, MEMBERS = 3, SHARDS = 2 };
enum { CUT_SHORT = 1, OVERFLOWED = 2, UNTRACED = 4, FORGOTTEN = 8, FREED = 16, DESTROYED = 32 };

/* Where the things of the process are. */
static uint64_t next_place;
static uint64_t contexts, leaves, shared, former, own_counts[MEMBERS], threads[MEMBERS], parts[MEMBERS], chunks[2];
static uint64_t modules, shards, cells[SHARDS], peaks, options;

static struct ta_image *const image = &made_image;
static struct ta__layout *const layout = &made_image.layout;

static uint64_t place(uint64_t bytes)
{
    uint64_t at = next_place;
    next_place += (bytes + 15) & ~UINT64_C(15);
    TEST_ASSERT_TRUE(next_place < DATA + DATA_BYTES);
    return at;
}

/* A variable of the library. */
static uint64_t variable(uint64_t word)
{
    uint64_t at = place(8);
    made_word(at, word);
    return at;
}

static void put_context(uint32_t id, uint64_t address, uint32_t parent, uint32_t module)
{
    uint64_t row = contexts + id * layout->context_bytes;
    made_word(row + layout->context_address, address);
    made_half(row + layout->context_parent, parent);
    made_half(row + layout->context_module, module);
}

static void put_leaf(uint32_t id, uint32_t context, uint32_t domain, uint16_t depth, uint16_t flags)
{
    uint64_t row = leaves + id * layout->leaf_bytes;
    made_half(row + layout->leaf_context, context);
    made_half(row + layout->leaf_domain, domain);
    made_put(row + layout->leaf_depth, &depth, sizeof depth);
    made_put(row + layout->leaf_flags, &flags, sizeof flags);
}

static void put_counts(uint64_t array, uint32_t id, uint64_t in_blocks, uint64_t in_bytes, uint64_t out_blocks,
                       uint64_t out_bytes)
{
    uint64_t row = array + id * layout->counts_bytes;
    made_word(row + layout->counts_in_blocks, in_blocks);
    made_word(row + layout->counts_in_bytes, in_bytes);
    made_word(row + layout->counts_out_blocks, out_blocks);
    made_word(row + layout->counts_out_bytes, out_bytes);
}

static void put_former(uint32_t id, uint64_t blocks, uint64_t bytes)
{
    made_word(former + id * layout->former_bytes + layout->former_blocks, blocks);
    made_word(former + id * layout->former_bytes + layout->former_size, bytes);
}

static void describe_tables(void)
{
    layout->can_trace = 1;
    layout->context_bytes = 24;
    layout->context_address = 8;
    layout->context_parent = 16;
    layout->context_module = 20;
    layout->leaf_bytes = 16;
    layout->leaf_context = 0;
    layout->leaf_domain = 4;
    layout->leaf_depth = 8;
    layout->leaf_flags = 14;
    layout->leaf_cut_short = CUT_SHORT;
    layout->leaf_overflow = OVERFLOWED;
    layout->leaf_untraced = UNTRACED;
    layout->leaf_forgotten = FORGOTTEN;
    layout->leaf_freed = FREED;
    layout->counts_bytes = 40;
    layout->counts_in_blocks = 0;
    layout->counts_in_bytes = 8;
    layout->counts_out_blocks = 16;
    layout->counts_out_bytes = 32;
    layout->former_bytes = 24;
    layout->former_blocks = 0;
    layout->former_size = 16;
    contexts = place(CONTEXTS * layout->context_bytes);
    leaves = place(LEAVES * layout->leaf_bytes);
    shared = place(LEAVES * layout->counts_bytes);
    former = place(LEAVES * layout->former_bytes);
    layout->contexts = variable(contexts);
    layout->contexts_count = variable(CONTEXTS);
    layout->leaves = variable(leaves);
    layout->leaves_count = variable(LEAVES);
    layout->leaves_first = variable(FIRST);
    layout->counts_shared = variable(shared);
    layout->counts_former = variable(former);
    layout->control_sample_bytes = variable(0);
    layout->sample_unit = 0;
}

static void fill_stacks(void)
{
    put_context(1, 0xA1, 5, 1);
    put_context(2, 0xA2, 1, 2);
    put_context(3, 0xA3, 1, 3); /* there is no third module */
    put_context(4, 0xA4, 4, 0); /* a circle */
    put_context(5, 0xA5, 0, 1);
    put_leaf(3, 2, 0, 3, 0);
    put_leaf(4, 3, 0, 3, 0);
    put_leaf(5, 1, 0, 2, 0);
    put_leaf(6, 1, 0, 2, UNTRACED);
    put_leaf(7, 1, 0, 2, FREED);
    put_leaf(8, 1, 0, 9, FORGOTTEN);
    put_leaf(9, 0, 0, 0, OVERFLOWED);
    put_leaf(10, 5, 0, 0, CUT_SHORT);
    put_leaf(11, 0, 1, 0, 0);
    put_leaf(12, 1, 3, 2, 0); /* there is no such domain */
    put_leaf(13, 2, 2, 3, CUT_SHORT | OVERFLOWED);
    put_leaf(14, 1, 0, 2, 0);
    put_leaf(15, 1, 1, 2, 0);
    put_leaf(16, 4, 0, 2, 0);
    put_leaf(17, 5, 0, 1, 0);
    put_counts(shared, 1, 9, 9, 0, 0); /* no leaf */
    put_counts(shared, 3, 10, 1000, 4, 400);
    put_counts(shared, 4, 5, 50, 5, 50);
    put_counts(shared, 6, 5, 50, 0, 0);
    put_counts(shared, 7, 5, 50, 0, 0);
    put_counts(shared, 8, 6, 60, 1, 10);
    put_counts(shared, 9, 7, 70, 1, 10);
    put_counts(shared, 10, 8, 80, 1, 10);
    put_counts(shared, 11, 9, 90, 1, 10);
    put_counts(shared, 12, 9, 90, 1, 10);
    put_counts(shared, 13, 11, 110, 1, 10);
    put_counts(shared, 14, 5, 100, 3, 200); /* read while it changed */
    put_counts(shared, 15, 1, 10, 2, 5);
    put_counts(shared, 16, 2, 20, 1, 5);
    put_counts(shared, 17, 3, 30, 1, 10);
    put_former(17, 1, 10);
    put_former(3, 2, 200);
}

static void make_threads(void)
{
    static const char *const names[MEMBERS] = {"main", "a name of 16 byt", ""};
    uint64_t members = place(MEMBERS * 8), present = place(MEMBERS);
    layout->members = members;
    layout->members_present = present;
    layout->members_used = variable(MEMBERS);
    layout->members_most = MEMBERS;
    layout->thread_counts = 64;
    layout->thread_headroom = 8;
    layout->thread_high = 16;
    layout->thread_domains = 24;
    layout->thread_lost = 32;
    layout->thread_tid = 40;
    layout->thread_name = 44;
    for (unsigned i = 0; i < MEMBERS; i++) {
        threads[i] = place(80);
        own_counts[i] = place(LEAVES * layout->counts_bytes);
        made_word(members + i * 8, threads[i]);
        made_put(present + i, &(uint8_t){i != 1}, 1);
        made_word(threads[i] + 64, i < 2 ? own_counts[i] : 0);
        made_word(threads[i] + 8, i == 0 ? 30 : (uint64_t)-40); /* headroom: what it may yet have */
        made_word(threads[i] + 16, 100 * (i + 1));
        made_word(threads[i] + 32, i + 1);
        made_half(threads[i] + 40, 500 + i);
        made_put(threads[i] + 44, names[i], strlen(names[i]) + (i != 1));
    }
    put_counts(own_counts[0], 3, 3, 300, 1, 100);
    put_counts(own_counts[1], 3, 1, 50, 0, 0);
    layout->counts_flushed = variable(1000);
    layout->counts_peak = variable(1500);
}

static void make_domains(void)
{
    layout->domains_chunk = 2;
    layout->domain_bytes = 96;
    layout->domain_number = 80;
    layout->domain_flags = 4;
    layout->domain_destroyed = DESTROYED;
    layout->domain_name = 8;
    layout->domain_soft = 16;
    layout->domain_hard = 24;
    layout->domain_current = 32;
    layout->domain_peak = 40;
    layout->domain_in_blocks = 48;
    layout->domain_in_bytes = 56;
    layout->domain_out_blocks = 64;
    layout->domain_out_bytes = 72;
    layout->slots = 16;
    layout->slot_bytes = 48;
    layout->slot_cold = 40;
    layout->slot_in_blocks = 8;
    layout->slot_in_bytes = 16;
    layout->slot_out_blocks = 24;
    layout->slot_out_bytes = 32;
    layout->colds = 256;
    layout->cold_bytes = 16;
    layout->cold_high = 8;
    for (unsigned i = 0; i < 2; i++)
        chunks[i] = place(2 * layout->domain_bytes);
    layout->domains_chunks = place(16);
    made_word(layout->domains_chunks, chunks[0]);
    made_word(layout->domains_chunks + 8, chunks[1]);
    layout->domains_count = variable(3);
    uint64_t name = place(16), other = place(16);
    made_text(name, "pool");
    made_text(other, "gone");
    made_word(chunks[0] + 96 + 8, name);
    made_half(chunks[0] + 96 + 80, 77);
    made_half(chunks[0] + 96 + 4, 1);
    made_word(chunks[0] + 96 + 16, 5000); /* the soft limit, where there is no hard one */
    made_word(chunks[0] + 96 + 32, 10);
    made_word(chunks[0] + 96 + 40, 20);
    made_word(chunks[0] + 96 + 48, 7);
    made_word(chunks[0] + 96 + 56, 70);
    made_word(chunks[0] + 96 + 64, 2);
    made_word(chunks[0] + 96 + 72, 30);
    made_half(chunks[1] + 80, 78);
    made_half(chunks[1] + 4, DESTROYED | 1);
    made_word(chunks[1] + 8, other);
    made_word(chunks[1] + 16, 6000);
    made_word(chunks[1] + 24, 7000);
    made_word(chunks[1] + 56, 99);
    for (unsigned i = 0; i < MEMBERS; i++) {
        parts[i] = place(512);
        made_word(threads[i] + 24, i < 2 ? parts[i] : 0);
        uint64_t slot = parts[i] + 16 + 48;
        made_half(slot + 40, i == 1 ? 3 : 1); /* which of its highs is the domain's; 0: it has none */
        made_word(slot + 8, 1);
        made_word(slot + 16, 100);
        made_word(slot + 24, 1);
        made_word(slot + 32, 15);
        made_word(parts[i] + 256 + (i == 1 ? 3 : 1) * 16 + 8, 40 + i * 50);
    }
}

static void make_modules(void)
{
    uint64_t first = place(32), second = place(32);
    made_text(first, "/app/program");
    made_text(second, "/app/library");
    layout->modules_first = 16;
    layout->module_bytes = 64;
    layout->module_start = 56;
    layout->module_end = 8;
    layout->module_bias = 16;
    layout->module_path = 24;
    layout->module_gone = 32;
    layout->module_id_bytes = 33;
    layout->module_id = 34;
    modules = place(16 + 4 * 64);
    layout->modules_table = variable(modules);
    layout->modules_count = variable(2);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t row = modules + 16 + i * 64;
        made_word(row + 56, 0x1000 * (i + 1));
        made_word(row + 8, 0x1000 * (i + 1) + 0x800);
        made_word(row + 16, 0x900 * (i + 1));
        made_word(row + 24, i == 0 ? first : second);
        made_put(row + 32, &(uint8_t){i == 1}, 1);
        made_put(row + 33, &(uint8_t){2}, 1);
        made_put(row + 34, "\x12\x34\x56", 3);
    }
}

static void make_rest(void)
{
    layout->control_limit = variable(25);
    layout->control_epochs_begun = variable(4);
    layout->events_lost = variable(1000);
    layout->events_foreign_frees = variable(11);
    layout->events_invalid_frees = variable(12);
    layout->events_snapshots = variable(13);
    options = place(64);
    made_text(options, "sample=off");
    layout->options = options;
    layout->options_room = 64;
    peaks = place(LEAVES * 8);
    for (uint32_t i = 0; i < LEAVES; i++)
        made_word(peaks + i * 8, i == 0 || i == 5 ? 0 : 200 + i);
    layout->peak_list = variable(peaks);
    layout->peak_count = variable(LEAVES);
    layout->peak_current = variable(2000);
    layout->peak_epoch = variable(4);
    layout->peak_users = variable(0);
}

void setUp(void)
{
    made_begin();
    made_map(DATA, DATA_BYTES, DATA_BYTES, 0);
    next_place = DATA + 64;
    made->inner = 4321;
    made->time_ns = 99;
    made->program = ta__target_keep(made, "/app/program", 12);
    image->marks.is_tracing = 1;
    image->options.wants = TA_IMAGE_BLOCKS;
    describe_tables();
    fill_stacks();
    make_threads();
    make_domains();
    make_modules();
    make_rest();
}

static void forget_image(void)
{
    ta_snapshot_free(image->snapshot);
    free(image->trace_of_leaf);
    free(image->domain_of_leaf);
    for (size_t i = 0; i < image->warning_count; i++)
        free(image->warnings[i]);
    image->snapshot = NULL;
    image->trace_of_leaf = image->domain_of_leaf = NULL;
    image->warning_count = 0;
    image->leaf_count = 0;
    image->blocks = image->bytes = image->untraced_blocks = image->untraced_bytes = 0;
}

void tearDown(void)
{
    forget_image();
    made_end();
}

/* The tables, and nothing else of the process. */
static const struct ta__view *read_tables(void)
{
    struct ta__table_reading *reading;
    forget_image();
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, ta__table_read(image, &reading), ta__error_text());
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, ta__table_finish(reading), ta__error_text());
    return ta__snapshot_view(image->snapshot);
}

static void set(uint64_t *variable_at, uint64_t word)
{
    made_word(*variable_at, word);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static char said[8192];

static void say_stack(FILE *out, const struct ta__view *view, uint32_t context)
{
    for (; context != 0; context = view->contexts[context].parent) {
        const struct ta__view_frame *frame = &view->frames[view->contexts[context].frame];
        if (frame->kind == TA__FRAME_ADDRESS)
            fprintf(out, " %lX/%u", (unsigned long)frame->address, frame->module);
        else if (frame->kind == TA__FRAME_OVERFLOW)
            fprintf(out, " overflow");
        else
            fprintf(out, " %s", view->strings[frame->file].text);
    }
}

static void say_traces(FILE *out, const struct ta__view *view)
{
    for (uint32_t i = 0; i < view->trace_count + view->gone_trace_count; i++) {
        const struct ta__view_trace *trace = &view->traces[i];
        fprintf(out, "%s %u of %u: %lu in %lu, all %lu in %lu, peak %lu, depth %d, flags %u:",
                i < view->trace_count ? "trace" : "gone", i, trace->domain, (unsigned long)trace->size,
                (unsigned long)trace->count, (unsigned long)trace->allocated_bytes,
                (unsigned long)trace->allocated_blocks, (unsigned long)trace->peak_bytes, trace->total_nframe,
                trace->flags);
        say_stack(out, view, trace->context);
        fputc('\n', out);
    }
}

static void say_rows(FILE *out, const struct ta__view *view)
{
    for (uint32_t i = 0; i < view->module_count; i++) {
        const struct ta__view_module *module = &view->modules[i];
        fprintf(out, "module %s %lX-%lX at %lX flags %u id", view->strings[module->path].text,
                (unsigned long)module->start, (unsigned long)module->end, (unsigned long)module->load_base,
                module->flags);
        for (uint32_t k = 0; k < module->build_id_length; k++)
            fprintf(out, " %02x", module->build_id[k]);
        fputc('\n', out);
    }
    for (uint32_t i = 0; i < view->domain_count; i++) {
        const struct ta__view_domain *domain = &view->domains[i];
        fprintf(out, "domain %u '%s' flags %u: %lu in %lu, peak %lu, all %lu in %lu, limit %lu\n", domain->number,
                view->strings[domain->name].text, domain->flags, (unsigned long)domain->live_bytes,
                (unsigned long)domain->live_blocks, (unsigned long)domain->peak_bytes,
                (unsigned long)domain->allocated_bytes, (unsigned long)domain->allocated_blocks,
                (unsigned long)domain->limit_bytes);
    }
    for (uint32_t i = 0; i < view->thread_count; i++)
        fprintf(out, "thread %u '%s' flags %u\n", view->threads[i].tid, view->strings[view->threads[i].name].text,
                view->threads[i].flags);
    for (uint32_t i = 0; i < view->option_count; i++)
        fprintf(out, "option %s=%s\n", view->strings[view->options[i].key].text,
                view->strings[view->options[i].value].text);
}

static const char *say(const struct ta__view *view)
{
    FILE *out = fmemopen(said, sizeof said, "w");
    TEST_ASSERT_NOT_NULL(out);
    fprintf(out, "process %u %s '%s' by %s at %lu, limit %u, epoch %lu, sample %lu\n", view->pid,
            view->strings[view->program].text, view->strings[view->host].text, view->strings[view->reason].text,
            (unsigned long)view->time_ns, view->traceback_limit, (unsigned long)view->epoch,
            (unsigned long)view->sample_bytes);
    fprintf(out, "current %lu peak %lu lost %lu overflowed %lu cut short %lu frees %lu %lu errors %lu\n",
            (unsigned long)view->current_bytes, (unsigned long)view->peak_bytes, (unsigned long)view->lost,
            (unsigned long)view->overflowed, (unsigned long)view->cut_short, (unsigned long)view->foreign_frees,
            (unsigned long)view->invalid_frees, (unsigned long)view->snapshot_errors);
    say_traces(out, view);
    say_rows(out, view);
    fclose(out);
    return said;
}

static void test_tables_become_the_snapshot_that_the_program_would_take(void)
{
    static const char expected[] =
        "process 4321 /app/program '' by core at 99, limit 25, epoch 4, sample 0\n"
        "current 1570 peak 1600 lost 1006 overflowed 18 cut short 8 frees 11 12 errors 13\n"
        "trace 0 of 0: 850 in 9, all 1150 in 12, peak 203, depth 3, flags 0: A2/2 A1/1 A5/1\n"
        "trace 1 of 0: 50 in 5, all 60 in 6, peak 208, depth 1, flags 0: <forgotten>\n"
        "trace 2 of 0: 60 in 6, all 70 in 7, peak 209, depth -1, flags 2: overflow\n"
        "trace 3 of 0: 70 in 7, all 80 in 8, peak 210, depth -1, flags 1: A5/1\n"
        "trace 4 of 77: 80 in 8, all 90 in 9, peak 211, depth 1, flags 0:\n"
        "trace 5 of 78: 100 in 10, all 110 in 11, peak 213, depth 3, flags 3: A2/2 A1/1 A5/1\n"
        "trace 6 of 0: 0 in 2, all 100 in 5, peak 214, depth 2, flags 0: A1/1 A5/1\n"
        "trace 7 of 0: 15 in 1, all 20 in 2, peak 216, depth 2, flags 0:\n"
        "trace 8 of 0: 20 in 2, all 20 in 2, peak 217, depth 1, flags 0: A5/1\n"
        "gone 9 of 0: 0 in 0, all 50 in 5, peak 204, depth 3, flags 0: A3/0 A1/1 A5/1\n"
        "gone 10 of 77: 0 in 0, all 10 in 1, peak 215, depth 2, flags 0: A1/1 A5/1\n"
        "module /app/program 1000-1800 at 900 flags 0 id 12 34\n"
        "module /app/library 2000-2800 at 1200 flags 1 id 12 34\n"
        "domain 0 '' flags 0: 0 in 0, peak 0, all 0 in 0, limit 0\n"
        "domain 77 'pool' flags 1: 210 in 5, peak 210, all 270 in 9, limit 5000\n"
        "domain 78 'gone' flags 33: 0 in 0, peak 0, all 0 in 0, limit 7000\n"
        "thread 500 'main' flags 0\n"
        "thread 501 'a name of 16 byt' flags 1\n"
        "thread 502 '' flags 0\n"
        "option options=sample=off\n";
    static const uint32_t trace_of_leaf[LEAVES] = {TA__NO_TRACE,
                                                   TA__NO_TRACE,
                                                   TA__NO_TRACE,
                                                   0,
                                                   9,
                                                   TA__NO_TRACE,
                                                   TA__NO_TRACE,
                                                   TA__NO_TRACE,
                                                   1,
                                                   2,
                                                   3,
                                                   4,
                                                   TA__NO_TRACE,
                                                   5,
                                                   6,
                                                   10,
                                                   7,
                                                   8};
    TEST_ASSERT_EQUAL_STRING(expected, say(read_tables()));
    TEST_ASSERT_EQUAL_UINT32(LEAVES, image->leaf_count);
    TEST_ASSERT_EQUAL_UINT32_ARRAY(trace_of_leaf, image->trace_of_leaf, LEAVES);
    TEST_ASSERT_EQUAL_UINT32(3, image->domain_of_leaf[12]);
    TEST_ASSERT_EQUAL_size_t(0, image->warning_count);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* Opens the reading, so that a test may add blocks to it. */
static struct ta__table_reading *open_reading(void)
{
    struct ta__table_reading *reading;
    forget_image();
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, ta__table_read(image, &reading), ta__error_text());
    return reading;
}

static uint32_t count_block(struct ta__table_reading *reading, uint32_t leaf, int has_trace, uint64_t size,
                            uint32_t domain)
{
    const struct ta__page_block block = {.leaf = leaf, .has_trace = (uint8_t)has_trace, .size = size};
    return ta__table_count(reading, &block, domain);
}

static void expect_counts(uint64_t blocks, uint64_t bytes, uint64_t untraced_blocks, uint64_t untraced_bytes)
{
    TEST_ASSERT_EQUAL_UINT64(blocks, image->blocks);
    TEST_ASSERT_EQUAL_UINT64(bytes, image->bytes);
    TEST_ASSERT_EQUAL_UINT64(untraced_blocks, image->untraced_blocks);
    TEST_ASSERT_EQUAL_UINT64(untraced_bytes, image->untraced_bytes);
}

static void expect_block(const struct ta__view *view, uint32_t index, uint64_t address, uint64_t size, uint32_t trace)
{
    TEST_ASSERT_TRUE(index < view->block_count);
    TEST_ASSERT_EQUAL_HEX64(address, view->blocks[index].address);
    TEST_ASSERT_EQUAL_UINT64(size, ta__view_block_size(&view->blocks[index]));
    TEST_ASSERT_EQUAL_UINT32(trace, view->blocks[index].trace);
}

static void test_block_has_the_trace_of_its_leaf(void)
{
    struct ta__table_reading *reading = open_reading();
    TEST_ASSERT_EQUAL_UINT32(11, ta__table_traces(reading));
    TEST_ASSERT_EQUAL_UINT32(0, count_block(reading, 3, 1, 10, 0));
    TEST_ASSERT_EQUAL_UINT32(6, count_block(reading, 14, 1, 20, 2));
    TEST_ASSERT_EQUAL_UINT32(TA__NO_TRACE, count_block(reading, 3, 0, 30, 0));
    TEST_ASSERT_EQUAL_UINT32(TA__NO_TRACE, count_block(reading, 6, 1, 40, 0));
    TEST_ASSERT_EQUAL_UINT32(TA__NO_TRACE, count_block(reading, LEAVES, 1, 50, 0));
    TEST_ASSERT_EQUAL_UINT32(8, count_block(reading, LEAVES - 1, 1, 60, 0));
    expect_counts(6, 210, 3, 120);
    TEST_ASSERT_EQUAL_INT(0, ta__table_add(reading, 0x5000, 10, 0));
    TEST_ASSERT_EQUAL_INT(0, ta__table_add(reading, 0x6000, 30, TA__NO_TRACE));
    TEST_ASSERT_EQUAL_INT(0, ta__table_finish(reading));
    const struct ta__view *view = ta__snapshot_view(image->snapshot);
    TEST_ASSERT_EQUAL_UINT32(1, view->has_blocks);
    TEST_ASSERT_EQUAL_UINT32(2, view->block_count);
    expect_block(view, 0, 0x5000, 10, 0);
    expect_block(view, 1, 0x6000, 30, TA__BLOCK_UNTRACED);
}

static void test_where_nothing_is_traced_each_domain_has_one_trace(void)
{
    image->marks.is_tracing = 0;
    struct ta__table_reading *reading = open_reading();
    TEST_ASSERT_EQUAL_UINT32(3, ta__table_traces(reading));
    TEST_ASSERT_EQUAL_UINT32(0, count_block(reading, 0, 0, 10, 2));
    TEST_ASSERT_EQUAL_UINT32(1, count_block(reading, 0, 0, 20, 0));
    TEST_ASSERT_EQUAL_UINT32(0, count_block(reading, 0, 0, 30, 2));
    TEST_ASSERT_EQUAL_UINT32(1, count_block(reading, 0, 0, 40, 3)); /* of no domain that there is */
    expect_counts(4, 100, 4, 100);
    TEST_ASSERT_EQUAL_INT(0, ta__table_finish(reading));
    const struct ta__view *view = ta__snapshot_view(image->snapshot);
    TEST_ASSERT_EQUAL_UINT32(2, view->trace_count);
    TEST_ASSERT_EQUAL_UINT32(0, view->gone_trace_count);
    TEST_ASSERT_EQUAL_UINT32(78, view->traces[0].domain);
    TEST_ASSERT_EQUAL_UINT64(2, view->traces[0].count);
    TEST_ASSERT_EQUAL_UINT64(40, view->traces[0].size);
    TEST_ASSERT_EQUAL_INT32(-1, view->traces[0].total_nframe);
    TEST_ASSERT_EQUAL_UINT32(0, view->traces[1].domain);
    TEST_ASSERT_EQUAL_UINT64(60, view->traces[1].size);
    TEST_ASSERT_EQUAL_UINT64(100, view->current_bytes);
    TEST_ASSERT_EQUAL_UINT64(0, view->peak_bytes);
    TEST_ASSERT_EQUAL_UINT64(0, view->lost); /* of tracing nothing is told */
    TEST_ASSERT_EQUAL_UINT32(3, view->thread_count);
}

static void test_library_that_cannot_trace_has_one_domain_and_no_tables(void)
{
    layout->can_trace = 0;
    image->marks.is_tracing = 0;
    struct ta__table_reading *reading = open_reading();
    TEST_ASSERT_EQUAL_UINT32(1, ta__table_traces(reading));
    TEST_ASSERT_EQUAL_UINT32(0, count_block(reading, 0, 0, 10, 2));
    TEST_ASSERT_EQUAL_INT(0, ta__table_finish(reading));
    const struct ta__view *view = ta__snapshot_view(image->snapshot);
    TEST_ASSERT_EQUAL_UINT32(1, view->domain_count);
    TEST_ASSERT_EQUAL_UINT32(0, view->domains[0].number);
    TEST_ASSERT_EQUAL_STRING("", view->strings[view->domains[0].name].text);
    TEST_ASSERT_EQUAL_UINT32(0, view->module_count);
    TEST_ASSERT_EQUAL_UINT32(0, view->thread_count);
    TEST_ASSERT_EQUAL_UINT32(0, view->option_count);
    TEST_ASSERT_EQUAL_UINT64(10, view->traces[0].size);
}

static void test_blocks_that_were_not_asked_for_are_not_there(void)
{
    image->options.wants = TA_IMAGE_MEMORY | TA_IMAGE_POINTERS;
    TEST_ASSERT_EQUAL_UINT32(0, read_tables()->has_blocks);
}

/* ---- tracked addresses ------------------------------------------------------------------------------------------- */

enum { CELL = 48, USED = 7 };

static void put_cell(unsigned shard, unsigned index, uint64_t state, uint64_t address, uint64_t bytes, uint32_t leaf)
{
    uint64_t cell = cells[shard] + index * CELL;
    made_word(cell + 40, state);
    made_word(cell + 8, address);
    made_word(cell + 16, bytes);
    made_half(cell + 24, leaf);
}

static void make_tracked(void)
{
    shards = place(SHARDS * 32);
    layout->tracked_shards = shards;
    layout->tracked_shard_count = SHARDS;
    layout->tracked_shard_bytes = 32;
    layout->tracked_size = 16;
    layout->tracked_cells = 8;
    layout->tracked_cell_bytes = CELL;
    layout->tracked_state = 40;
    layout->tracked_address = 8;
    layout->tracked_bytes = 16;
    layout->tracked_leaf = 24;
    layout->tracked_used = USED;
    for (unsigned i = 0; i < SHARDS; i++) {
        cells[i] = place(4 * CELL);
        made_word(shards + i * 32 + 16, i == 0 ? 3 : 4);
        made_word(shards + i * 32 + 8, cells[i]);
    }
    put_cell(0, 0, USED, 0x9000, 90, 3);
    put_cell(0, 1, USED + 1, 0x9100, 91, 3); /* a place that is free */
    put_cell(0, 2, USED, 0x7000, 70, 13);    /* another domain than the block's that is there */
    put_cell(0, 3, USED, 0x9300, 93, 3);     /* behind the last place */
    put_cell(1, 0, USED, 0x6000, 60, 14);    /* a block without a trace */
    put_cell(1, 1, USED, 0x5000, 50, 14);    /* a block that has one */
    put_cell(1, 2, USED, 0x4000, 40, LEAVES);
    put_cell(1, 3, USED, 0x3000, 30, 6);
}

static const struct ta__view *read_tracked(void)
{
    struct ta__table_reading *reading = open_reading();
    static const uint64_t addresses[] = {0x5000, 0x6000, 0x7000};
    for (size_t i = 0; i < 3; i++) {
        uint32_t trace = count_block(reading, 3, i == 0, 10 + i, 0);
        TEST_ASSERT_EQUAL_INT(0, ta__table_add(reading, addresses[i], 10 + i, trace));
    }
    expect_counts(3, 33, 2, 23);
    TEST_ASSERT_EQUAL_INT(0, ta__table_finish(reading));
    return ta__snapshot_view(image->snapshot);
}

static void test_tracked_addresses_are_blocks_too(void)
{
    make_tracked();
    const struct ta__view *view = read_tracked();
    TEST_ASSERT_EQUAL_UINT32(7, view->block_count);
    expect_block(view, 0, 0x3000, 30, TA__BLOCK_UNTRACED);
    TEST_ASSERT_EQUAL_HEX64(0x5000, view->blocks[1].address);
    TEST_ASSERT_EQUAL_HEX64(0x5000, view->blocks[2].address);
    TEST_ASSERT_EQUAL_UINT64(60, ta__view_block_size(&view->blocks[1]) + ta__view_block_size(&view->blocks[2]));
    expect_block(view, 3, 0x6000, 60, 6);
    TEST_ASSERT_EQUAL_HEX64(0x7000, view->blocks[4].address);
    TEST_ASSERT_EQUAL_HEX64(0x7000, view->blocks[5].address);
    expect_block(view, 6, 0x9000, 90, 0);
    expect_counts(3, 33, 1, 12);
}

static uint32_t tracked_with(uint64_t *member, uint64_t value)
{
    uint64_t before = *member;
    *member = value;
    uint32_t count = read_tracked()->block_count - 3;
    *member = before;
    return count;
}

static void test_tracked_addresses_in_tables_of_an_impossible_shape_are_none(void)
{
    make_tracked();
    TEST_ASSERT_EQUAL_UINT32(0, tracked_with(&layout->tracked_shards, 0));
    TEST_ASSERT_EQUAL_UINT32(0, tracked_with(&layout->tracked_shard_count, 0));
    TEST_ASSERT_EQUAL_UINT32(2, tracked_with(&layout->tracked_shard_count, 1));
    TEST_ASSERT_EQUAL_UINT32(0, tracked_with(&layout->tracked_shard_count, 4097));
    TEST_ASSERT_EQUAL_UINT32(0, tracked_with(&layout->tracked_cell_bytes, 0));
    TEST_ASSERT_EQUAL_UINT32(0, tracked_with(&layout->tracked_cell_bytes, 1025));
    TEST_ASSERT_EQUAL_UINT32(1, tracked_with(&layout->tracked_cell_bytes, 1024)); /* the first of each */
    uint64_t left = DATA + DATA_BYTES - cells[1];
    made_word(shards + 32 + 16, left / CELL + 1); /* more than there is memory for */
    TEST_ASSERT_EQUAL_UINT32(2, tracked_with(&layout->tracked_shard_count, 2));
    made_word(shards + 32 + 16, left / CELL);
    TEST_ASSERT_EQUAL_UINT32(4, tracked_with(&layout->tracked_shard_count, 2));
    image->options.wants = 0;
    TEST_ASSERT_EQUAL_UINT32(3, read_tracked()->block_count); /* nobody asked */
}

static void test_as_many_shards_as_there_may_be_are_looked_at(void)
{
    make_tracked();
    layout->tracked_shards = place(4096 * 32);
    layout->tracked_shard_count = 4096;
    made_word(layout->tracked_shards + 4095 * 32 + 16, 3);
    made_word(layout->tracked_shards + 4095 * 32 + 8, cells[0]);
    TEST_ASSERT_EQUAL_UINT32(5, read_tracked()->block_count);
}

/* ---- peaks and sums ---------------------------------------------------------------------------------------------- */

static void expect_totals(uint64_t current, uint64_t peak)
{
    const struct ta__view *view = read_tables();
    TEST_ASSERT_EQUAL_UINT64(current, view->current_bytes);
    TEST_ASSERT_EQUAL_UINT64(peak, view->peak_bytes);
}

static void test_peak_is_what_was_recorded_or_what_there_may_be_now(void)
{
    expect_totals(1000 + 600 - 30, 1600);
    set(&layout->counts_peak, 1601);
    expect_totals(1570, 1601);
    set(&layout->counts_flushed, (uint64_t)-570);
    expect_totals(1000 - 1000, 1601);
    set(&layout->counts_flushed, (uint64_t)-571);
    expect_totals(0, 1601);
    set(&layout->counts_flushed, (uint64_t)-569);
    expect_totals(1, 1601);
}

static uint64_t peak_of(uint32_t trace)
{
    return read_tables()->traces[trace].peak_bytes;
}

static void test_peak_of_a_stack_is_recorded_or_what_it_holds(void)
{
    enum { RECORDED = 203, HELD = 850 };
    TEST_ASSERT_EQUAL_UINT64(RECORDED, peak_of(0));
    set(&layout->peak_current, 1570); /* as much as there is now: the program would write it anew */
    TEST_ASSERT_EQUAL_UINT64(HELD, peak_of(0));
    set(&layout->peak_current, 1571);
    TEST_ASSERT_EQUAL_UINT64(RECORDED, peak_of(0));
    set(&layout->peak_users, UINT32_MAX); /* it is being written */
    TEST_ASSERT_EQUAL_UINT64(HELD, peak_of(0));
    set(&layout->peak_users, 5);
    TEST_ASSERT_EQUAL_UINT64(RECORDED, peak_of(0));
    set(&layout->peak_epoch, 3); /* of before it was cleared */
    TEST_ASSERT_EQUAL_UINT64(HELD, peak_of(0));
    set(&layout->counts_flushed, 1023 - 570); /* too little to be written down */
    TEST_ASSERT_EQUAL_UINT64(0, peak_of(0));
    set(&layout->counts_flushed, 1024 - 570);
    TEST_ASSERT_EQUAL_UINT64(HELD, peak_of(0));
    set(&layout->counts_flushed, 1023 - 570);
    set(&layout->peak_epoch, 4);
    TEST_ASSERT_EQUAL_UINT64(RECORDED, peak_of(0));
    set(&layout->peak_count, 0);
    TEST_ASSERT_EQUAL_UINT64(0, peak_of(0));
    set(&layout->peak_count, 3); /* stacks that came later were not there */
    TEST_ASSERT_EQUAL_UINT64(0, peak_of(0));
    set(&layout->peak_count, 4);
    TEST_ASSERT_EQUAL_UINT64(RECORDED, peak_of(0));
    set(&layout->peak_count, UINT32_MAX);
    TEST_ASSERT_EQUAL_UINT64(RECORDED, peak_of(0));
    set(&layout->peak_list, 0);
    TEST_ASSERT_EQUAL_UINT64(0, peak_of(0));
}

static void test_peaks_that_cannot_be_read_are_not_known(void)
{
    set(&layout->peak_list, DATA + DATA_BYTES - LEAVES * 8);
    made_word(DATA + DATA_BYTES - LEAVES * 8 + 3 * 8, 17);
    TEST_ASSERT_EQUAL_UINT64(17, peak_of(0));
    set(&layout->peak_list, DATA + DATA_BYTES - LEAVES * 8 + 8);
    TEST_ASSERT_EQUAL_UINT64(0, peak_of(0));
}

static void test_sampled_blocks_are_counted_in_units(void)
{
    layout->sample_unit = 4;
    TEST_ASSERT_EQUAL_UINT64(12, read_tables()->traces[0].allocated_blocks);
    set(&layout->control_sample_bytes, 512);
    const struct ta__view *view = read_tables();
    TEST_ASSERT_EQUAL_UINT64(512, view->sample_bytes);
    TEST_ASSERT_EQUAL_UINT64(3, view->traces[0].allocated_blocks); /* 12 */
    TEST_ASSERT_EQUAL_UINT64(850, view->traces[0].size);
    TEST_ASSERT_EQUAL_UINT64(2, view->traces[0].count);            /* less 3, which is nearer to one */
    TEST_ASSERT_EQUAL_UINT64(2, view->traces[1].allocated_blocks); /* 6 is nearer to 8 */
    TEST_ASSERT_EQUAL_UINT64(2, view->traces[2].allocated_blocks); /* 7 */
    TEST_ASSERT_EQUAL_UINT64(2, view->traces[4].allocated_blocks); /* 9 */
    layout->sample_unit = 0;
    TEST_ASSERT_EQUAL_UINT64(12, read_tables()->traces[0].allocated_blocks);
}

/* ---- what cannot be ---------------------------------------------------------------------------------------------- */

static void test_rows_of_an_impossible_shape_are_refused(void)
{
    const struct {
        uint64_t *member, bad, good;
    } cases[] = {
        {&layout->context_bytes, 15, 24},     {&layout->context_bytes, 65, 64},    {&layout->context_address, 17, 16},
        {&layout->context_parent, 21, 20},    {&layout->context_module, 21, 20},   {&layout->leaf_bytes, 7, 16},
        {&layout->leaf_bytes, 65, 64},        {&layout->leaf_context, 13, 12},     {&layout->leaf_domain, 13, 12},
        {&layout->leaf_depth, 15, 14},        {&layout->leaf_flags, 15, 14},       {&layout->counts_bytes, 31, 40},
        {&layout->counts_bytes, 65, 64},      {&layout->counts_in_blocks, 33, 32}, {&layout->counts_in_bytes, 33, 32},
        {&layout->counts_out_blocks, 33, 32}, {&layout->counts_out_bytes, 33, 32}, {&layout->former_bytes, 15, 24},
        {&layout->former_bytes, 65, 64},      {&layout->former_blocks, 17, 16},    {&layout->former_size, 17, 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ta__table_reading *reading;
        uint64_t before = *cases[i].member;
        forget_image();
        ta__error_clear();
        *cases[i].member = cases[i].bad;
        TEST_ASSERT_EQUAL_INT(-1, ta__table_read(image, &reading));
        TEST_ASSERT_EQUAL_STRING("the library's tables are of a shape that cannot be", ta__error_text());
        ta__table_free(reading);
        *cases[i].member = cases[i].good;
        read_tables();
        *cases[i].member = before;
    }
}

static void test_smallest_rows_that_there_may_be_are_read(void)
{
    layout->context_bytes = 16;
    layout->context_address = 0;
    layout->context_parent = 8;
    layout->context_module = 12;
    layout->leaf_bytes = 8;
    layout->leaf_context = 0;
    layout->leaf_domain = 4;
    layout->leaf_depth = 4;
    layout->leaf_flags = 6;
    layout->counts_bytes = 32;
    layout->counts_out_bytes = 24;
    layout->former_bytes = 16;
    layout->former_size = 8;
    set(&layout->counts_shared, 0);
    set(&layout->counts_former, 0);
    read_tables();
}

static void expect_warning(const char *text)
{
    read_tables();
    TEST_ASSERT_EQUAL_size_t(1, image->warning_count);
    TEST_ASSERT_EQUAL_STRING(text, image->warnings[0]);
}

static void test_tables_that_end_too_early_are_read_as_far_as_they_go(void)
{
    uint64_t end = DATA + DATA_BYTES;
    set(&layout->leaves, end - 4 * 16);
    expect_warning("18 stacks, of which 4 can be read");
    TEST_ASSERT_EQUAL_UINT32(4, image->leaf_count);
    set(&layout->leaves, end - LEAVES * 16);
    read_tables();
    TEST_ASSERT_EQUAL_size_t(0, image->warning_count);
    TEST_ASSERT_EQUAL_UINT32(LEAVES, image->leaf_count);
    set(&layout->leaves, leaves);
    set(&layout->contexts, 0);
    expect_warning("6 stack frames, of which 0 can be read");
    TEST_ASSERT_EQUAL_UINT32(0, ta__snapshot_view(image->snapshot)->traces[0].context);
    set(&layout->contexts, contexts);
    set(&layout->leaves_count, (1 << 28) + 1);
    read_tables();
    snprintf(said, sizeof said, "268435457 stacks, of which %lu can be read", (unsigned long)(end - leaves) / 16);
    TEST_ASSERT_EQUAL_STRING(said, image->warnings[0]);
    TEST_ASSERT_EQUAL_UINT32(0, image->leaf_count); /* not even those are believed */
}

static void test_table_that_cannot_be_read_is_left_out(void)
{
    uint64_t far = place(8192) + 4096;
    far -= far % 4096;
    set(&layout->leaves, far);
    made_break(far, far + 8);
    expect_warning("the table of stacks cannot be read");
    TEST_ASSERT_EQUAL_UINT32(0, image->leaf_count);
}

static void test_counters_that_cannot_be_read_count_nothing(void)
{
    set(&layout->counts_shared, DATA + DATA_BYTES - 40);
    expect_warning("the counters of a thread cannot be read");
    TEST_ASSERT_EQUAL_UINT64(2, ta__snapshot_view(image->snapshot)->traces[0].allocated_blocks); /* 3 + 1 - 2 */
    set(&layout->counts_shared, DATA + DATA_BYTES - 4 * 40);
    read_tables(); /* the first of them, and no other */
    TEST_ASSERT_EQUAL_size_t(0, image->warning_count);
    put_counts(DATA + DATA_BYTES - 4 * 40, 3, 100, 1000, 0, 0);
    TEST_ASSERT_EQUAL_UINT64(102, read_tables()->traces[0].allocated_blocks);
}

/* Counters are summed 65536 at a time. */
static void test_many_stacks_are_all_counted(void)
{
    enum { MANY = FIRST + (1 << 16) + 5 };
    uint64_t rows = place(MANY * 16), array = place(MANY * UINT64_C(40));
    set(&layout->leaves, rows);
    set(&layout->leaves_count, MANY);
    set(&layout->counts_shared, array);
    set(&layout->counts_former, 0);
    for (unsigned i = 0; i < MEMBERS; i++)
        made_word(threads[i] + 64, 0);
    for (uint32_t id = FIRST; id < MANY; id += id < FIRST + 65530 ? 65530 : 1)
        put_counts(array, id, id, 10, 0, 0);
    const struct ta__view *view = read_tables();
    TEST_ASSERT_EQUAL_UINT32(12, view->trace_count);
    TEST_ASSERT_EQUAL_UINT64(FIRST, view->traces[0].count);
    for (uint32_t i = 1; i < 12; i++)
        TEST_ASSERT_EQUAL_UINT64(FIRST + 65530 + i - 1, view->traces[i].count);
}

static void test_numbers_of_rows_that_cannot_be_are_not_believed(void)
{
    set(&layout->modules_count, (1 << 14) + 1);
    TEST_ASSERT_EQUAL_UINT32(0, read_tables()->module_count);
    TEST_ASSERT_EQUAL_UINT32(0, ta__snapshot_view(image->snapshot)->frames[0].module);
    set(&layout->modules_count, 1 << 14);
    TEST_ASSERT_EQUAL_UINT32(1 << 14, read_tables()->module_count);
    set(&layout->modules_table, 0);
    TEST_ASSERT_EQUAL_UINT32(0, read_tables()->module_count);
    set(&layout->members_used, MEMBERS + 1);
    TEST_ASSERT_EQUAL_UINT32(0, read_tables()->thread_count);
    set(&layout->members_used, MEMBERS - 1);
    TEST_ASSERT_EQUAL_UINT32(2, read_tables()->thread_count);
    layout->members_most = (1 << 16) + 1;
    set(&layout->members_used, (1 << 16) + 1);
    TEST_ASSERT_EQUAL_UINT32(0, read_tables()->thread_count);
    layout->members = place(8 << 16); /* so many that were never there */
    set(&layout->members_used, 1 << 16);
    TEST_ASSERT_EQUAL_UINT32(1 << 16, read_tables()->thread_count);
    set(&layout->members_used, 0);
    set(&layout->domains_count, 0);
    TEST_ASSERT_EQUAL_UINT32(1, read_tables()->domain_count);
    set(&layout->domains_count, (1 << 17) + 1);
    TEST_ASSERT_EQUAL_UINT32(1, read_tables()->domain_count);
    set(&layout->domains_count, 1 << 17);
    TEST_ASSERT_EQUAL_UINT32(1 << 17, read_tables()->domain_count);
}

static void test_domains_that_cannot_be_found_are_empty(void)
{
    made_word(layout->domains_chunks + 8, 0);
    TEST_ASSERT_EQUAL_UINT32(77, read_tables()->domains[1].number);
    TEST_ASSERT_EQUAL_UINT32(0, ta__snapshot_view(image->snapshot)->domains[2].number);
    TEST_ASSERT_EQUAL_UINT64(0, ta__snapshot_view(image->snapshot)->domains[2].limit_bytes);
    layout->domains_chunk = 0;
    TEST_ASSERT_EQUAL_UINT32(0, read_tables()->domains[1].number);
    TEST_ASSERT_EQUAL_UINT64(0, ta__snapshot_view(image->snapshot)->domains[1].peak_bytes);
}

static void expect_domain(uint64_t live, uint64_t blocks, uint64_t peak)
{
    const struct ta__view_domain *domain = &read_tables()->domains[1];
    TEST_ASSERT_EQUAL_UINT64(live, domain->live_bytes);
    TEST_ASSERT_EQUAL_UINT64(blocks, domain->live_blocks);
    TEST_ASSERT_EQUAL_UINT64(peak, domain->peak_bytes);
}

static void test_domain_is_summed_over_threads(void)
{
    uint64_t domain = chunks[0] + 96, slot = parts[1] + 16 + 48;
    expect_domain(210, 5, 210);
    made_word(domain + 40, 300);
    expect_domain(210, 5, 300);
    made_word(domain + 32, 211);
    expect_domain(210, 5, 301); /* with what the thread with most of it may have yet */
    made_half(slot + 40, 0);    /* that thread never had any */
    expect_domain(125, 5, 300);
    made_half(slot + 40, 1 << 17);
    expect_domain(125, 5, 300);
    made_half(slot + 40, 3);
    made_word(domain + 72, 240);
    expect_domain(0, 5, 301);
    made_word(domain + 72, 239);
    expect_domain(1, 5, 301);
    made_word(domain + 64, 8);
    expect_domain(1, 0, 301);
    made_word(domain + 64, 6);
    expect_domain(1, 1, 301);
}

static void test_peak_of_a_domain_is_never_negative(void)
{
    uint64_t domain = chunks[0] + 96;
    set(&layout->members_used, 0);
    made_word(domain + 32, (uint64_t)-5);
    made_word(domain + 40, (uint64_t)-5);
    made_word(domain + 72, 71);
    expect_domain(0, 5, 0);
    made_word(domain + 72, 69);
    expect_domain(1, 5, 1);
}

static void test_module_whose_build_id_cannot_be_has_none(void)
{
    uint64_t row = modules + 16;
    made_put(row + 33, &(uint8_t){65}, 1);
    TEST_ASSERT_EQUAL_UINT32(0, read_tables()->modules[0].build_id_length);
    made_put(row + 33, &(uint8_t){64}, 1);
    TEST_ASSERT_EQUAL_UINT32(64, read_tables()->modules[0].build_id_length);
    made_word(row + 24, 1);
    const struct ta__view *view = read_tables();
    TEST_ASSERT_EQUAL_STRING("", view->strings[view->modules[0].path].text);
    TEST_ASSERT_EQUAL_STRING("/app/library", view->strings[view->modules[1].path].text);
}

static void test_thread_whose_data_cannot_be_read_has_no_name(void)
{
    made_word(layout->members, 0x100);
    const struct ta__view *view = read_tables();
    TEST_ASSERT_EQUAL_UINT32(0, view->threads[0].tid);
    TEST_ASSERT_EQUAL_STRING("", view->strings[view->threads[0].name].text);
    layout->members_present = 1; /* then it is taken for present */
    TEST_ASSERT_EQUAL_UINT32(0, read_tables()->threads[1].flags);
}

static void test_options_are_a_text_of_the_library(void)
{
    const struct ta__view *view;
    layout->options_room = 8; /* no room for its end */
    view = read_tables();
    TEST_ASSERT_EQUAL_STRING("sample=", view->strings[view->options[0].value].text);
    layout->options_room = 0;
    TEST_ASSERT_EQUAL_UINT32(0, read_tables()->option_count);
    layout->options_room = 64;
    layout->options = 1;
    TEST_ASSERT_EQUAL_UINT32(0, read_tables()->option_count);
    layout->options = options;
    made_text(options, "");
    TEST_ASSERT_EQUAL_UINT32(0, read_tables()->option_count);
    layout->options = place(5000);
    for (uint64_t i = 0; i < 5000; i++)
        made_put(layout->options + i, "o", 1);
    layout->options_room = 5000;
    view = read_tables();
    TEST_ASSERT_EQUAL_size_t(4095, view->strings[view->options[0].value].length);
}

static void test_live_process_is_said_to_be_of_now_and_of_this_machine(void)
{
    made->is_core = 0;
    const struct ta__view *view = read_tables();
    TEST_ASSERT_EQUAL_STRING("take", view->strings[view->reason].text);
    TEST_ASSERT_TRUE(view->strings[view->host].length > 0);
    TEST_ASSERT_TRUE(view->time_ns > UINT64_C(1700000000) * 1000000000 && view->time_ns % 1000000000 != 0);
}

static void test_leaves_in_front_of_the_first_are_no_stacks(void)
{
    set(&layout->leaves_first, 1);
    const struct ta__view *view = read_tables();
    TEST_ASSERT_EQUAL_UINT64(9, view->traces[0].count);
    TEST_ASSERT_EQUAL_UINT32(0, image->trace_of_leaf[1]);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_tables_become_the_snapshot_that_the_program_would_take);
    RUN_TEST(test_block_has_the_trace_of_its_leaf);
    RUN_TEST(test_where_nothing_is_traced_each_domain_has_one_trace);
    RUN_TEST(test_library_that_cannot_trace_has_one_domain_and_no_tables);
    RUN_TEST(test_blocks_that_were_not_asked_for_are_not_there);
    RUN_TEST(test_tracked_addresses_are_blocks_too);
    RUN_TEST(test_tracked_addresses_in_tables_of_an_impossible_shape_are_none);
    RUN_TEST(test_as_many_shards_as_there_may_be_are_looked_at);
    RUN_TEST(test_peak_is_what_was_recorded_or_what_there_may_be_now);
    RUN_TEST(test_peak_of_a_stack_is_recorded_or_what_it_holds);
    RUN_TEST(test_peaks_that_cannot_be_read_are_not_known);
    RUN_TEST(test_sampled_blocks_are_counted_in_units);
    RUN_TEST(test_rows_of_an_impossible_shape_are_refused);
    RUN_TEST(test_smallest_rows_that_there_may_be_are_read);
    RUN_TEST(test_tables_that_end_too_early_are_read_as_far_as_they_go);
    RUN_TEST(test_table_that_cannot_be_read_is_left_out);
    RUN_TEST(test_counters_that_cannot_be_read_count_nothing);
    RUN_TEST(test_many_stacks_are_all_counted);
    RUN_TEST(test_numbers_of_rows_that_cannot_be_are_not_believed);
    RUN_TEST(test_domains_that_cannot_be_found_are_empty);
    RUN_TEST(test_domain_is_summed_over_threads);
    RUN_TEST(test_peak_of_a_domain_is_never_negative);
    RUN_TEST(test_module_whose_build_id_cannot_be_has_none);
    RUN_TEST(test_thread_whose_data_cannot_be_read_has_no_name);
    RUN_TEST(test_options_are_a_text_of_the_library);
    RUN_TEST(test_live_process_is_said_to_be_of_now_and_of_this_machine);
    RUN_TEST(test_leaves_in_front_of_the_first_are_no_stacks);
    return UNITY_END();
}
