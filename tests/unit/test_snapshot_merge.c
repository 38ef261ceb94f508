/* test_snapshot_merge.c: one snapshot of several. What is equal is one in it, what differs stays apart, and sums are sums. */
#include <stdio.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "base/error.h"
#include "base/memory.h"
#include "snapshot/read/read.h"
#include "tracealloc/snapshot.h"

void setUp(void)
{
}

void tearDown(void)
{
}

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof *(array))

/* Two processes of one program that lies at 0x10000 in the one and at 0x50000 in the other, with a library "lib" that is
 * another file of that name in the second. */
static const uint8_t id_of_program[] = {1, 2, 3, 4}, id_of_old_lib[] = {9, 9}, id_of_new_lib[] = {9, 8};

static const struct ta__view_string first_strings[] = {{"", 0},     {"/bin/make", 9}, {"/lib/l.so", 9}, {"host", 4},
                                                       {"pool", 4}, {"x.c", 3},       {"f", 1}};
static const struct ta__view_string second_strings[] = {{"", 0},      {"x.c", 3},   {"/lib/l.so", 9}, {"/bin/make", 9},
                                                        {"other", 5}, {"cache", 5}, {"f", 1}};
static const struct ta__view_module first_modules[] = {
    {.path = 1,
     .build_id = id_of_program,
     .build_id_length = 4,
     .load_base = 0x10000,
     .start = 0x10000,
     .end = 0x20000},
    {.path = 2,
     .build_id = id_of_old_lib,
     .build_id_length = 2,
     .load_base = 0x30000,
     .start = 0x30000,
     .end = 0x40000},
};
static const struct ta__view_module second_modules[] = {
    {.path = 2,
     .build_id = id_of_new_lib,
     .build_id_length = 2,
     .load_base = 0x30000,
     .start = 0x30000,
     .end = 0x40000},
    {.path = 3,
     .build_id = id_of_program,
     .build_id_length = 4,
     .load_base = 0x50000,
     .start = 0x50000,
     .end = 0x60000},
};
/* main in the program, take in the library, a line, an address in nothing */
static const struct ta__view_frame first_frames[] = {
    {.address = 0x10100, .module = 1},
    {.address = 0x30200, .module = 2},
    {.file = 5, .line = 7, .kind = TA__FRAME_SOURCE},
    {.address = 0x99},
};
static const struct ta__view_frame second_frames[] = {
    {.address = 0x99},
    {.address = 0x30200, .module = 1},
    {.address = 0x50100, .module = 2},
    {.file = 1, .line = 7, .kind = TA__FRAME_SOURCE},
    {.file = 1, .line = 8, .kind = TA__FRAME_SOURCE},
};
static const struct ta__view_context first_contexts[] = {{0, 0}, {0, 0}, {1, 1}, {1, 2}, {0, 3}};
static const struct ta__view_context second_contexts[] = {{0, 0}, {0, 2}, {1, 1}, {1, 3}, {1, 4}, {0, 0}};
static const struct ta__view_trace first_traces[] = {
    {.context = 2, .size = 10, .count = 1, .allocated_bytes = 30, .allocated_blocks = 3, .peak_bytes = 20, .domain = 4},
    {.context = 3, .size = 20, .count = 2, .thread = 1},
    {.context = 4, .size = 40, .count = 1},
    {.context = 1, .allocated_bytes = 77, .allocated_blocks = 7},
};
static const struct ta__view_trace second_traces[] = {
    {.context = 2, .size = 100, .count = 1},
    {.context = 3, .size = 200, .count = 1},
    {.context = 4, .size = 300, .count = 1, .domain = 6},
    {.context = 5, .size = 400, .count = 1},
    {.context = 1, .allocated_bytes = 88, .allocated_blocks = 8},
};
static const struct ta__view_thread threads[] = {{.tid = 1000, .name = 6}};
static const struct ta__view_domain first_domains[] = {{.number = 4,
                                                        .name = 4,
                                                        .live_bytes = 10,
                                                        .live_blocks = 1,
                                                        .peak_bytes = 20,
                                                        .allocated_bytes = 30,
                                                        .allocated_blocks = 3}};
static const struct ta__view_domain second_domains[] = {{.number = 6, .name = 5, .live_bytes = 300, .live_blocks = 1},
                                                        {.number = 4,
                                                         .name = 0,
                                                         .live_bytes = 5,
                                                         .live_blocks = 2,
                                                         .peak_bytes = 7,
                                                         .allocated_bytes = 8,
                                                         .allocated_blocks = 9}};

static const struct ta__view first = {.strings = first_strings,
                                      .string_count = COUNT(first_strings),
                                      .modules = first_modules,
                                      .module_count = 2,
                                      .frames = first_frames,
                                      .frame_count = COUNT(first_frames),
                                      .contexts = first_contexts,
                                      .context_count = COUNT(first_contexts),
                                      .traces = first_traces,
                                      .trace_count = 3,
                                      .gone_trace_count = 1,
                                      .domains = first_domains,
                                      .domain_count = 1,
                                      .threads = threads,
                                      .thread_count = 1,
                                      .traceback_limit = 9,
                                      .pid = 50,
                                      .program = 1,
                                      .host = 3,
                                      .time_ns = 5000,
                                      .start_time_ns = 900,
                                      .current_bytes = 70,
                                      .peak_bytes = 500,
                                      .lost = 1,
                                      .overflowed = 2,
                                      .cut_short = 3,
                                      .foreign_frees = 4,
                                      .invalid_frees = 5,
                                      .snapshot_errors = 6};
static const struct ta__view second = {.strings = second_strings,
                                       .string_count = COUNT(second_strings),
                                       .modules = second_modules,
                                       .module_count = 2,
                                       .frames = second_frames,
                                       .frame_count = COUNT(second_frames),
                                       .contexts = second_contexts,
                                       .context_count = COUNT(second_contexts),
                                       .traces = second_traces,
                                       .trace_count = 4,
                                       .gone_trace_count = 1,
                                       .domains = second_domains,
                                       .domain_count = 2,
                                       .traceback_limit = 30,
                                       .pid = 51,
                                       .program = 3,
                                       .host = 4,
                                       .time_ns = 4000,
                                       .start_time_ns = 800,
                                       .current_bytes = 1000,
                                       .peak_bytes = 2000,
                                       .sample_bytes = 512,
                                       .lost = 10,
                                       .overflowed = 20,
                                       .cut_short = 30,
                                       .foreign_frees = 40,
                                       .invalid_frees = 50,
                                       .snapshot_errors = 60};

static struct ta_snapshot *snapshot_of(const struct ta__view *view, const char *command)
{
    struct ta_snapshot *snapshot = ta__snapshot_from_view(view, NULL);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta__error_text());
    if (command != NULL)
        TEST_ASSERT_EQUAL(0, ta_snapshot_set_metadata(snapshot, "process.command", command));
    return snapshot;
}

static void add(struct ta_merge *merge, const struct ta__view *view, const char *command)
{
    struct ta_snapshot *snapshot = snapshot_of(view, command);
    TEST_ASSERT_EQUAL_MESSAGE(0, ta_merge_add(merge, snapshot), ta__error_text());
    ta_snapshot_free(snapshot);
}

static struct ta_snapshot *both(void)
{
    struct ta_merge *merge = ta_merge_begin();
    add(merge, &first, "/usr/bin/make -j2 /x/y");
    add(merge, &second, NULL);
    struct ta_snapshot *all = ta_merge_end(merge);
    TEST_ASSERT_NOT_NULL_MESSAGE(all, ta__error_text());
    return all;
}

/* "/bin/make+100 /lib/l.so(9 9)+200": innermost frame first, addresses from where their module begins. */
static const char *stack_text(const struct ta__view *view, uint32_t context)
{
    static char text[256];
    size_t length = 0;
    text[0] = '\0';
    for (; context != 0; context = view->contexts[context].parent) {
        const struct ta__view_frame *frame = &view->frames[view->contexts[context].frame];
        const struct ta__view_module *module = frame->module != 0 ? &view->modules[frame->module - 1] : NULL;
        const char *space = length > 0 ? " " : "";
        if (frame->kind == TA__FRAME_SOURCE)
            length += (size_t)sprintf(text + length, "%s%s:%u", space, view->strings[frame->file].text, frame->line);
        else if (module == NULL)
            length += (size_t)sprintf(text + length, "%s%llx", space, (unsigned long long)frame->address);
        else
            length += (size_t)sprintf(text + length, "%s%s(%u)+%llx", space, view->strings[module->path].text,
                                      module->build_id[module->build_id_length - 1],
                                      (unsigned long long)(frame->address - module->load_base));
    }
    return text;
}

static void test_each_trace_keeps_its_stack_figures_and_process(void)
{
    static const struct {
        uint64_t size;
        uint32_t domain, process;
        const char *stack;
    } expected[] = {
        {10, 4, 1, "/lib/l.so(9)+200 /bin/make(4)+100"},
        {20, 0, 1, "x.c:7 /bin/make(4)+100"},
        {40, 0, 1, "99"},
        {100, 0, 2, "/lib/l.so(8)+200 /bin/make(4)+100"},
        {200, 0, 2, "x.c:7 /bin/make(4)+100"},
        {300, 6, 2, "x.c:8 /bin/make(4)+100"},
        {400, 0, 2, "99"},
        {0, 0, 1, "/bin/make(4)+100"},
        {0, 0, 2, "/bin/make(4)+100"},
    };
    struct ta_snapshot *all = both();
    const struct ta__view *view = ta__snapshot_view(all);
    TEST_ASSERT_EQUAL_UINT32(7, view->trace_count);
    TEST_ASSERT_EQUAL_UINT32(2, view->gone_trace_count);
    for (uint32_t i = 0; i < COUNT(expected); i++) {
        TEST_ASSERT_EQUAL_UINT64(expected[i].size, view->traces[i].size);
        TEST_ASSERT_EQUAL_UINT32(expected[i].domain, view->traces[i].domain);
        TEST_ASSERT_EQUAL_UINT32(expected[i].process, view->traces[i].thread);
        TEST_ASSERT_EQUAL_STRING(expected[i].stack, stack_text(view, view->traces[i].context));
    }
    TEST_ASSERT_EQUAL_UINT64(30, view->traces[0].allocated_bytes);
    TEST_ASSERT_EQUAL_UINT64(3, view->traces[0].allocated_blocks);
    TEST_ASSERT_EQUAL_UINT64(20, view->traces[0].peak_bytes);
    TEST_ASSERT_EQUAL_UINT64(77, view->traces[7].allocated_bytes);
    TEST_ASSERT_EQUAL_UINT64(88, view->traces[8].allocated_bytes);
    ta_snapshot_free(all);
}

static void test_what_is_equal_is_there_once(void)
{
    struct ta_snapshot *all = both();
    const struct ta__view *view = ta__snapshot_view(all);
    TEST_ASSERT_EQUAL_UINT32(3, view->module_count); /* the program and two libraries of one name */
    TEST_ASSERT_EQUAL_UINT32(6, view->frame_count);
    TEST_ASSERT_EQUAL_UINT32(7, view->context_count); /* with the root */
    TEST_ASSERT_EQUAL_UINT32(view->traces[1].context, view->traces[4].context);
    TEST_ASSERT_EQUAL_UINT32(view->traces[2].context, view->traces[6].context);
    for (uint32_t i = 0; i < view->string_count; i++)
        for (uint32_t other = 0; other < i; other++)
            TEST_ASSERT_TRUE(strcmp(view->strings[i].text, view->strings[other].text) != 0);
    ta_snapshot_free(all);
}

static void test_processes_have_their_number_and_their_command(void)
{
    struct ta_snapshot *all = both();
    const struct ta__view *view = ta__snapshot_view(all);
    TEST_ASSERT_EQUAL_UINT32(2, view->thread_count);
    TEST_ASSERT_EQUAL_UINT32(50, view->threads[0].tid);
    TEST_ASSERT_EQUAL_STRING("make -j2 /x/y", view->strings[view->threads[0].name].text);
    TEST_ASSERT_EQUAL_UINT32(TA__THREAD_IS_PROCESS, view->threads[0].flags);
    TEST_ASSERT_EQUAL_UINT32(51, view->threads[1].tid);
    TEST_ASSERT_EQUAL_STRING("make", view->strings[view->threads[1].name].text);
    ta_snapshot_free(all);
}

static void test_a_long_command_is_cut_and_an_empty_one_is_the_program(void)
{
    struct ta_merge *merge = ta_merge_begin();
    add(merge, &first, "");
    add(merge, &second, "/opt/a 3456789 123456789 123456789 123456789 123");
    struct ta_snapshot *all = ta_merge_end(merge);
    const struct ta__view *view = ta__snapshot_view(all);
    TEST_ASSERT_EQUAL_STRING("make", view->strings[view->threads[0].name].text);
    TEST_ASSERT_EQUAL_STRING("a 3456789 123456789 123456789 123456789 ", view->strings[view->threads[1].name].text);
    ta_snapshot_free(all);
}

static void test_totals_are_sums_and_moments_are_the_widest(void)
{
    struct ta_snapshot *all = both();
    const struct ta__view *view = ta__snapshot_view(all);
    TEST_ASSERT_EQUAL_UINT64(1070, view->current_bytes);
    TEST_ASSERT_EQUAL_UINT64(2500, view->peak_bytes);
    TEST_ASSERT_EQUAL_UINT64(11, view->lost);
    TEST_ASSERT_EQUAL_UINT64(22, view->overflowed);
    TEST_ASSERT_EQUAL_UINT64(33, view->cut_short);
    TEST_ASSERT_EQUAL_UINT64(44, view->foreign_frees);
    TEST_ASSERT_EQUAL_UINT64(55, view->invalid_frees);
    TEST_ASSERT_EQUAL_UINT64(66, view->snapshot_errors);
    TEST_ASSERT_EQUAL_UINT64(5000, view->time_ns);
    TEST_ASSERT_EQUAL_UINT64(800, view->start_time_ns);
    TEST_ASSERT_EQUAL_UINT64(512, view->sample_bytes);
    TEST_ASSERT_EQUAL_UINT32(30, view->traceback_limit);
    TEST_ASSERT_EQUAL_UINT32(50, view->pid);
    TEST_ASSERT_EQUAL_STRING("/bin/make", view->strings[view->program].text);
    TEST_ASSERT_EQUAL_STRING("host", view->strings[view->host].text);
    ta_snapshot_free(all);
}

static void test_domains_of_one_number_are_added_up(void)
{
    struct ta_snapshot *all = both();
    const struct ta__view *view = ta__snapshot_view(all);
    TEST_ASSERT_EQUAL_UINT32(2, view->domain_count);
    TEST_ASSERT_EQUAL_UINT32(4, view->domains[0].number);
    TEST_ASSERT_EQUAL_STRING("pool", view->strings[view->domains[0].name].text);
    TEST_ASSERT_EQUAL_UINT64(15, view->domains[0].live_bytes);
    TEST_ASSERT_EQUAL_UINT64(3, view->domains[0].live_blocks);
    TEST_ASSERT_EQUAL_UINT64(27, view->domains[0].peak_bytes);
    TEST_ASSERT_EQUAL_UINT64(38, view->domains[0].allocated_bytes);
    TEST_ASSERT_EQUAL_UINT64(12, view->domains[0].allocated_blocks);
    TEST_ASSERT_EQUAL_UINT32(6, view->domains[1].number);
    TEST_ASSERT_EQUAL_STRING("cache", view->strings[view->domains[1].name].text);
    ta_snapshot_free(all);

    struct ta_merge *merge = ta_merge_begin(); /* the name comes second */
    add(merge, &second, NULL);
    add(merge, &first, NULL);
    all = ta_merge_end(merge);
    view = ta__snapshot_view(all);
    TEST_ASSERT_EQUAL_STRING("pool", view->strings[view->domains[1].name].text);
    ta_snapshot_free(all);
}

/* The same view with symbols: two for the line in the program, one inlined into the other. */
static struct ta__view with_symbols(const struct ta__view *view, struct ta__view_symbol_range *ranges, uint32_t program,
                                    uint32_t file)
{
    static struct ta__view_symbol symbols[2][2];
    struct ta__view symbolised = *view;
    struct ta__view_symbol *rows = symbols[view == &second];
    rows[0] = (struct ta__view_symbol){
        .file = file, .line = 11, .function = 6, .raw_name = 6, .offset = 4, .flags = TA__SYMBOL_INLINED};
    rows[1] = (struct ta__view_symbol){.file = file, .line = 22, .function = 6, .raw_name = 6, .offset = 8};
    for (uint32_t i = 0; i < view->frame_count; i++)
        ranges[i] = (struct ta__view_symbol_range){i > program ? 2u : 0u, i == program ? 2u : 0u};
    symbolised.symbol_ranges = ranges;
    symbolised.symbols = rows;
    symbolised.symbol_count = 2;
    return symbolised;
}

static void test_symbols_go_with_their_frames(void)
{
    struct ta__view_symbol_range ranges[2][8];
    struct ta__view one = with_symbols(&first, ranges[0], 0, 5), two = with_symbols(&second, ranges[1], 2, 1);
    struct ta_merge *merge = ta_merge_begin();
    add(merge, &one, NULL);
    add(merge, &two, NULL);
    struct ta_snapshot *all = ta_merge_end(merge), *again = NULL;
    const struct ta__view *view = ta__snapshot_view(all);
    TEST_ASSERT_EQUAL_UINT32(2, view->symbol_count); /* those of the second are the same */
    uint32_t frame = view->contexts[view->traces[8].context].frame;
    TEST_ASSERT_EQUAL_UINT32(2, view->symbol_ranges[frame].count);
    const struct ta__view_symbol *symbols = view->symbols + view->symbol_ranges[frame].first;
    TEST_ASSERT_EQUAL_UINT32(11, symbols[0].line);
    TEST_ASSERT_EQUAL_UINT32(22, symbols[1].line);
    TEST_ASSERT_EQUAL_STRING("x.c", view->strings[symbols[0].file].text);
    TEST_ASSERT_EQUAL_STRING("f", view->strings[symbols[0].function].text);
    TEST_ASSERT_EQUAL_STRING("f", view->strings[symbols[1].raw_name].text);
    TEST_ASSERT_EQUAL_UINT64(4, symbols[0].offset);
    TEST_ASSERT_EQUAL_UINT32(TA__SYMBOL_INLINED, symbols[0].flags);
    ta_snapshot_free(all);

    merge = ta_merge_begin();
    add(merge, &one, NULL);
    again = snapshot_of(&second, NULL);
    TEST_ASSERT_EQUAL(-1, ta_merge_add(merge, again));
    TEST_ASSERT_EQUAL_STRING("some of the snapshots carry symbols and some do not: symbolize all of them, or none",
                             ta__error_text());
    ta_snapshot_free(again);
    ta_merge_abandon(merge);
    ta_merge_abandon(NULL);
}

/* So many that every table and index grows several times. */
static void test_thousands_of_stacks_twice_are_those_stacks(void)
{
    enum { STACKS = 5000 };
    static struct ta__view_frame frames[STACKS];
    static struct ta__view_context contexts[STACKS + 1];
    static struct ta__view_trace traces[STACKS];
    for (uint32_t i = 0; i < STACKS; i++) {
        frames[i] = (struct ta__view_frame){.address = 0x10000 + 16 * i, .module = 1};
        contexts[i + 1] = (struct ta__view_context){i / 3, i};
        traces[i] = (struct ta__view_trace){.context = i + 1, .size = i + 1, .count = 1};
    }
    struct ta__view view = first;
    view.frames = frames;
    view.frame_count = STACKS;
    view.contexts = contexts;
    view.context_count = STACKS + 1;
    view.traces = traces;
    view.trace_count = STACKS;
    view.gone_trace_count = 0;
    struct ta_merge *merge = ta_merge_begin();
    add(merge, &view, NULL);
    add(merge, &view, NULL);
    struct ta_snapshot *all = ta_merge_end(merge);
    const struct ta__view *got = ta__snapshot_view(all);
    TEST_ASSERT_EQUAL_UINT32(STACKS, got->frame_count);
    TEST_ASSERT_EQUAL_UINT32(STACKS + 1, got->context_count);
    TEST_ASSERT_EQUAL_UINT32(2 * STACKS, got->trace_count);
    for (uint32_t i = 0; i < 2 * STACKS; i++) {
        TEST_ASSERT_EQUAL_UINT64(i % STACKS + 1, got->traces[i].size);
        TEST_ASSERT_EQUAL_UINT32(i % STACKS + 1, got->traces[i].context);
        TEST_ASSERT_EQUAL_UINT32(i / STACKS + 1, got->traces[i].thread);
    }
    ta_snapshot_free(all);
}

/* Two of three hundred modules of one name each, which differ by their build ids alone, and of as many texts. */
static struct ta__view_module many_modules[300];
static uint8_t many_ids[300][2];
static struct ta__view_string many_strings[1300];
static char many_texts[1300][8];

static struct ta__view view_of_many(void)
{
    static struct ta__view_frame frames[1000];
    static struct ta__view_context contexts[1001];
    static struct ta__view_trace traces[1000];
    struct ta__view view = first;
    for (uint32_t i = 0; i < 1300; i++) {
        sprintf(many_texts[i], "%.0u%s", i, i == 0 ? "" : "x");
        many_strings[i] = (struct ta__view_string){many_texts[i], strlen(many_texts[i])};
    }
    for (uint32_t i = 0; i < 300; i++) {
        many_ids[i][0] = (uint8_t)i;
        many_ids[i][1] = (uint8_t)(i >> 8);
        many_modules[i] =
            (struct ta__view_module){.path = 1 + i % 3, .build_id = many_ids[i], .build_id_length = 2, .load_base = i};
    }
    for (uint32_t i = 0; i < 1000; i++) {
        frames[i] = i % 2 ? (struct ta__view_frame){.address = 5000 + i, .module = 1 + i % 300}
                          : (struct ta__view_frame){.file = 100 + i, .line = i, .kind = TA__FRAME_SOURCE};
        contexts[i + 1] = (struct ta__view_context){i / 2, (i + 1) % 1000};
        traces[i] = (struct ta__view_trace){.context = i + 1, .size = i + 1, .count = 1};
    }
    view.strings = many_strings;
    view.string_count = 1300;
    view.program = view.host = view.reason = 1;
    view.modules = many_modules;
    view.module_count = 300;
    view.frames = frames;
    view.frame_count = 1000;
    view.contexts = contexts;
    view.context_count = 1001;
    view.traces = traces;
    view.trace_count = 990;
    view.gone_trace_count = 10;
    view.domain_count = view.thread_count = view.option_count = view.metadata_count = 0;
    return view;
}

static struct ta_snapshot *merge_twice(struct ta_snapshot *snapshot)
{
    struct ta_merge *merge = ta_merge_begin();
    if (merge == NULL)
        return NULL;
    if (ta_merge_add(merge, snapshot) != 0 || ta_merge_add(merge, snapshot) != 0) {
        ta_merge_abandon(merge);
        return NULL;
    }
    return ta_merge_end(merge);
}

/* The n-th request for memory is refused, for every n. */
static void test_lack_of_memory_is_said_and_leaves_nothing(void)
{
    struct ta__view view = view_of_many();
    struct ta_snapshot *snapshot = ta__snapshot_from_view(&view, NULL), *all;
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta__error_text());
    size_t mapped = ta__memory_mapped();
    long nth = 1;
    for (;; nth++) {
        ta__memory_inject_failure(nth, 0);
        ta__error_clear();
        errno = 0;
        all = merge_twice(snapshot);
        ta__memory_inject_failure(0, 0);
        if (all != NULL)
            break;
        if (strcmp(ta__error_text(), "no memory for a snapshot") != 0) { /* the last one, which makes it */
            TEST_ASSERT_EQUAL_STRING("no memory to merge snapshots", ta__error_text());
            TEST_ASSERT_EQUAL(ENOMEM, errno);
        }
        TEST_ASSERT_EQUAL(mapped, ta__memory_mapped());
    }
    TEST_ASSERT_GREATER_THAN(20, nth);
    const struct ta__view *got = ta__snapshot_view(all);
    TEST_ASSERT_EQUAL_UINT32(300, got->module_count);
    TEST_ASSERT_EQUAL_UINT32(1000, got->frame_count);
    TEST_ASSERT_EQUAL_UINT32(1001, got->context_count);
    TEST_ASSERT_EQUAL_UINT32(1980, got->trace_count);
    TEST_ASSERT_EQUAL_UINT32(20, got->gone_trace_count);
    for (uint32_t i = 0; i < 300; i++) {
        TEST_ASSERT_EQUAL_MEMORY(many_ids[i], got->modules[i].build_id, 2);
        TEST_ASSERT_EQUAL_STRING(many_texts[1 + i % 3], got->strings[got->modules[i].path].text);
    }
    for (uint32_t i = 0; i < 1000; i += 2)
        TEST_ASSERT_EQUAL_STRING(many_texts[100 + i], got->strings[got->frames[i].file].text);
    for (uint32_t i = 0; i < 2000; i++)
        TEST_ASSERT_EQUAL_UINT64(i < 1980 ? i % 990 + 1 : 991 + i % 10, got->traces[i].size);
    ta_snapshot_free(all);
    ta_snapshot_free(snapshot);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_each_trace_keeps_its_stack_figures_and_process);
    RUN_TEST(test_what_is_equal_is_there_once);
    RUN_TEST(test_processes_have_their_number_and_their_command);
    RUN_TEST(test_a_long_command_is_cut_and_an_empty_one_is_the_program);
    RUN_TEST(test_totals_are_sums_and_moments_are_the_widest);
    RUN_TEST(test_domains_of_one_number_are_added_up);
    RUN_TEST(test_symbols_go_with_their_frames);
    RUN_TEST(test_thousands_of_stacks_twice_are_those_stacks);
    RUN_TEST(test_lack_of_memory_is_said_and_leaves_nothing);
    return UNITY_END();
}
