/* test_golden.c: recordings written long ago say what they said then; damaged ones give exactly their error.
 *
 *     test_golden DIR            compares
 *     test_golden DIR --write    writes the golden files anew: only for a new version of the format, under a new name
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>
#include <unity.h>

#include "base/error.h"
#include "snapshot/read/read.h"
#include "snapshot/write/write.h"
#include "tests/support/fake_source.h"

static const char *folder;

void setUp(void)
{
}

void tearDown(void)
{
}

static void path_of(char *path, size_t room, const char *name)
{
    snprintf(path, room, "%s/%s", folder, name);
}

/* ---- everything that a snapshot says, as text ------------------------------------------------------------------- */

static void print_bytes(FILE *out, const char *bytes, size_t length)
{
    fputc('"', out);
    for (size_t i = 0; i < length; i++)
        if (bytes[i] >= ' ' && bytes[i] < 127 && bytes[i] != '"' && bytes[i] != '\\')
            fputc(bytes[i], out);
        else
            fprintf(out, "\\x%02x", (unsigned char)bytes[i]);
    fputc('"', out);
}

static void print_string(FILE *out, const struct ta__view *view, uint32_t id)
{
    print_bytes(out, view->strings[id].text, view->strings[id].length);
}

static void print_trace(FILE *out, const struct ta__view *view, const struct ta__view_trace *trace)
{
    fprintf(out, "trace domain=%u thread=%u flags=%u total=%d size=%lu count=%lu allocated=%lu/%lu peak=%lu stack=",
            trace->domain, trace->thread, trace->flags, trace->total_nframe, trace->size, trace->count,
            trace->allocated_bytes, trace->allocated_blocks, trace->peak_bytes);
    for (uint32_t at = trace->context; at != 0; at = view->contexts[at].parent)
        fprintf(out, "%u ", view->contexts[at].frame);
    fputc('\n', out);
}

static void print_snapshot(FILE *out, struct ta_snapshot *snapshot)
{
    const struct ta__view *view = ta__snapshot_view(snapshot);
    fprintf(out, "limit=%u pid=%u time=%lu start=%lu epoch=%lu current=%lu peak=%lu sample=%lu\n",
            view->traceback_limit, view->pid, view->time_ns, view->start_time_ns, view->epoch, view->current_bytes,
            view->peak_bytes, view->sample_bytes);
    fprintf(out, "lost=%lu overflowed=%lu cut=%lu foreign=%lu invalid=%lu errors=%lu\nprogram=", view->lost,
            view->overflowed, view->cut_short, view->foreign_frees, view->invalid_frees, view->snapshot_errors);
    print_string(out, view, view->program);
    print_string(out, view, view->host);
    print_string(out, view, view->reason);
    fputc('\n', out);
    for (uint32_t i = 0; i < view->module_count; i++) {
        const struct ta__view_module *row = &view->modules[i];
        fprintf(out, "module %lx %lx-%lx flags=%u id=", row->load_base, row->start, row->end, row->flags);
        print_bytes(out, (const char *)row->build_id, row->build_id_length);
        print_string(out, view, row->path);
        fputc('\n', out);
    }
    for (uint32_t i = 0; i < view->frame_count; i++) {
        const struct ta__view_frame *row = &view->frames[i];
        fprintf(out, "frame %u kind=%u %lx module=%u line=%u ", i, row->kind, row->address, row->module, row->line);
        print_string(out, view, row->file);
        for (uint32_t s = 0; view->symbol_ranges != NULL && s < view->symbol_ranges[i].count; s++) {
            const struct ta__view_symbol *symbol = &view->symbols[view->symbol_ranges[i].first + s];
            fprintf(out, " [line=%u offset=%lu flags=%u ", symbol->line, symbol->offset, symbol->flags);
            print_string(out, view, symbol->file);
            print_string(out, view, symbol->function);
            print_string(out, view, symbol->raw_name);
            fputc(']', out);
        }
        fputc('\n', out);
    }
    for (uint32_t i = 0; i < view->domain_count; i++) {
        const struct ta__view_domain *row = &view->domains[i];
        fprintf(out, "domain %u flags=%u %lu %lu %lu %lu %lu %lu ", row->number, row->flags, row->live_bytes,
                row->live_blocks, row->peak_bytes, row->allocated_bytes, row->allocated_blocks, row->limit_bytes);
        print_string(out, view, row->name);
        fputc('\n', out);
    }
    for (uint32_t i = 0; i < view->thread_count; i++) {
        fprintf(out, "thread %u flags=%u ", view->threads[i].tid, view->threads[i].flags);
        print_string(out, view, view->threads[i].name);
        fputc('\n', out);
    }
    for (uint32_t i = 0; i < view->trace_count + view->gone_trace_count; i++)
        print_trace(out, view, &view->traces[i]);
    for (uint32_t i = 0; i < view->option_count; i++) {
        fputs("option ", out);
        print_string(out, view, view->options[i].key);
        print_string(out, view, view->options[i].value);
        fputc('\n', out);
    }
    for (size_t i = 0; i < ta_snapshot_metadata_count(snapshot); i++) {
        const char *key, *value;
        size_t key_length, value_length;
        ta_snapshot_metadata_at(snapshot, i, &key, &key_length, &value, &value_length);
        fputs("metadata ", out);
        print_bytes(out, key, key_length);
        print_bytes(out, value, value_length);
        fputc('\n', out);
    }
    fprintf(out, "warning %s\n\n", ta_snapshot_warning(snapshot));
}

/* All entries of a file, one after another. */
static char *file_text(const char *path)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    struct ta_recording *recording = ta_recording_open(path);
    TEST_ASSERT_NOT_NULL_MESSAGE(recording, ta_error_text());
    size_t count = ta_recording_entry_count(recording);
    for (size_t i = 0; i < count; i++) {
        char entry[4200];
        struct ta_entry_info info;
        TEST_ASSERT_EQUAL(0, ta_recording_entry(recording, i, &info));
        snprintf(entry, sizeof entry, "%s@%zu", path, i);
        struct ta_snapshot *snapshot = ta_snapshot_load(entry);
        TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
        fprintf(out, "entry %zu time=%lu current=%lu peak=%lu traces=%lu\n", i, info.time_ns, info.current_bytes,
                info.peak_bytes, info.traces);
        TEST_ASSERT_EQUAL_UINT64(info.traces, ta__snapshot_view(snapshot)->trace_count);
        print_snapshot(out, snapshot);
        ta_snapshot_free(snapshot);
    }
    ta_recording_close(recording);
    fclose(out);
    return text;
}

/* ---- the golden files ---------------------------------------------------------------------------------------------
 */

static void write_series(const char *path, int seal)
{
    static uint64_t peaks[20];
    struct fake_source fake;
    struct ta__writer writer;
    struct ta__sink sink;
    fake_open(&fake);
    ta__sink_descriptor(&sink, open(path, O_RDWR | O_CREAT | O_TRUNC, 0644));
    TEST_ASSERT_EQUAL(0, ta__writer_open(&writer, &sink));
    fake_program(&fake, 120, 12);
    uint32_t domain = fake_domain(&fake, 7, "network");
    uint32_t thread = fake_thread(&fake, 815, "worker");
    for (uint64_t entry = 0; entry < 4; entry++) {
        struct ta__facts facts = fake_facts(1700000000000000000u + entry);
        if (entry == 1) {
            fake_activity(&fake, 2);
            uint32_t leaf = fake_leaf(&fake, fake_context(&fake, 3, 0x400bad, 1), domain, thread, 900);
            fake.leaves[leaf].flags = TA__LEAF_CUT_SHORT;
            fake_malloc(&fake, leaf, 5, 1000);
            for (int i = 1; i < 10; i++)
                peaks[i] = (uint64_t)i * 100;
            fake.source.leaf_peak_bytes = peaks;
            fake.source.leaf_peak_count = 10;
        }
        if (entry == 2) {
            uint32_t leaf = fake_leaf(&fake, 0, 0, 0, 0);
            fake.leaves[leaf].flags = TA__LEAF_OVERFLOW;
            fake_malloc(&fake, leaf, 1, 4096);
            fake.modules[1].flags = TA__MODULE_UNLOADED;
            fake.domains[domain].limit_bytes = 1 << 20;
            fake.source.lost = 17;
        }
        if (entry == 3) {
            memset(fake.counts, 0, fake.source.leaf_count * sizeof *fake.counts);
            fake.source.epoch++;
            fake_malloc(&fake, 2, 1, 8);
        }
        TEST_ASSERT_EQUAL(0, ta__writer_entry(&writer, &fake.source, &facts));
    }
    if (seal)
        TEST_ASSERT_EQUAL(0, ta__writer_seal(&writer));
    close(writer.chunks.sink.descriptor);
    ta__writer_close(&writer);
    fake_close(&fake);
}

static void write_data(const char *path)
{
    static const struct ta_frame_data frames[] = {
        {"a.c", TA_NUL_TERMINATED, 1}, {"\xff\x80 bytes", TA_NUL_TERMINATED, 0}, {"nul\0in", 6, UINT32_MAX}};
    static const struct ta_trace_data traces[] = {
        {.size = 10, .total_nframe = 3, .frames = frames, .nframe = 3},
        {.domain = UINT32_MAX, .size = UINT64_MAX, .count = 9, .total_nframe = -1, .frames = frames, .nframe = 1},
        {.size = 0, .total_nframe = 0}};
    struct ta_snapshot *snapshot = ta_snapshot_from_traces(traces, 3, 25);
    TEST_ASSERT_EQUAL(0, ta_snapshot_set_metadata(snapshot, "commit", "0123abcd"));
    TEST_ASSERT_EQUAL(0, ta_snapshot_dump(snapshot, path));
    ta_snapshot_free(snapshot);
}

static void write_symbols(const char *path)
{
    static const struct ta__view_string strings[] = {{"", 0}, {"/bin/x", 6}, {"x.c", 3}, {"f(int)", 6}, {"_Z1fi", 5}};
    static const struct ta__view_module module = {.path = 1, .start = 0x1000, .end = 0x2000};
    static const struct ta__view_frame frames[] = {{.address = 0x1010, .module = 1}, {.address = 0x1500, .module = 1}};
    static const struct ta__view_context contexts[] = {{0, 0}, {0, 1}, {1, 0}};
    static const struct ta__view_symbol symbols[] = {
        {2, 10, 3, 4, 4, TA__SYMBOL_INLINED}, {2, 20, 3, 4, 16, 0}, {1, 0, 0, 0, 0, TA__SYMBOL_NO_LINES}};
    static const struct ta__view_symbol_range ranges[] = {{0, 2}, {2, 1}};
    static const struct ta__view_trace trace = {.context = 2, .size = 5, .count = 1, .total_nframe = 2};
    const struct ta__view view = {.strings = strings,
                                  .string_count = 5,
                                  .modules = &module,
                                  .module_count = 1,
                                  .frames = frames,
                                  .frame_count = 2,
                                  .contexts = contexts,
                                  .context_count = 3,
                                  .symbols = symbols,
                                  .symbol_count = 3,
                                  .symbol_ranges = ranges,
                                  .traces = &trace,
                                  .trace_count = 1,
                                  .traceback_limit = 9};
    struct ta_snapshot *snapshot = ta__snapshot_from_view(&view, NULL);
    TEST_ASSERT_EQUAL(0, ta_snapshot_dump(snapshot, path));
    ta_snapshot_free(snapshot);
}

static const char *const names[] = {"v1-series", "v1-killed", "v1-data", "v1-symbols"};
enum { NAMES = sizeof names / sizeof *names };

static int write_all(void)
{
    char path[4096];
    path_of(path, sizeof path, "v1-series.ta");
    write_series(path, 1);
    path_of(path, sizeof path, "v1-killed.ta");
    write_series(path, 0);
    path_of(path, sizeof path, "v1-data.ta");
    write_data(path);
    path_of(path, sizeof path, "v1-symbols.ta");
    write_symbols(path);
    for (int i = 0; i < NAMES; i++) {
        char file[64];
        snprintf(file, sizeof file, "%s.ta", names[i]);
        path_of(path, sizeof path, file);
        char *text = file_text(path);
        snprintf(file, sizeof file, "%s.txt", names[i]);
        path_of(path, sizeof path, file);
        FILE *out = fopen(path, "w");
        fputs(text, out);
        fclose(out);
        free(text);
    }
    return 0;
}

static char *read_text(const char *path)
{
    FILE *in = fopen(path, "r");
    TEST_ASSERT_NOT_NULL_MESSAGE(in, path);
    char *text = calloc(1, 1 << 20);
    TEST_ASSERT_LESS_THAN(1 << 20, fread(text, 1, 1 << 20, in));
    fclose(in);
    return text;
}

static void test_golden_files_say_what_they_said(void)
{
    for (int i = 0; i < NAMES; i++) {
        char path[4096], file[64];
        snprintf(file, sizeof file, "%s.txt", names[i]);
        path_of(path, sizeof path, file);
        char *expected = read_text(path);
        snprintf(file, sizeof file, "%s.ta", names[i]);
        path_of(path, sizeof path, file);
        char *text = file_text(path);
        TEST_ASSERT_TRUE_MESSAGE(strcmp(expected, text) == 0, names[i]);
        TEST_ASSERT_EQUAL_MESSAGE(0, ta_recording_check(path, NULL, NULL), names[i]);
        free(text);
        free(expected);
    }
}

/* ---- the broken files ---------------------------------------------------------------------------------------------
 */

struct report {
    int count;
    int severity;
    char text[600];
};

static void keep_first(void *user, int severity, uint64_t offset, const char *section, const char *text)
{
    struct report *report = user;
    if (severity == TA_CHECK_NOTE)
        return;
    if (report->count++ > 0)
        return;
    report->severity = severity;
    if (section[0] == '\0')
        snprintf(report->text, sizeof report->text, "%s", text);
    else
        snprintf(report->text, sizeof report->text, "section %s at offset %lu: %s", section, offset, text);
}

static void assert_broken(const char *name, const char *expected)
{
    char path[4096], file[128], told[8300];
    snprintf(file, sizeof file, "broken/%s.ta", name);
    path_of(path, sizeof path, file);
    struct ta_snapshot *snapshot = ta_snapshot_load(path);
    struct report report = {0};
    long problems = ta_recording_check(path, keep_first, &report);
    if (expected[0] == '\0') {
        TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
        TEST_ASSERT_EQUAL_STRING_MESSAGE("", ta_snapshot_warning(snapshot), name);
        TEST_ASSERT_EQUAL_MESSAGE(0, problems, report.text);
    } else if (strncmp(expected, "warning: ", 9) == 0) {
        TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
        TEST_ASSERT_EQUAL_STRING_MESSAGE(expected + 9, ta_snapshot_warning(snapshot), name);
        TEST_ASSERT_EQUAL_MESSAGE(1, problems, name);
        TEST_ASSERT_EQUAL_MESSAGE(TA_CHECK_WARNING, report.severity, name);
    } else {
        TEST_ASSERT_NULL_MESSAGE(snapshot, name);
        snprintf(told, sizeof told, "%s: %s", path, expected);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(told, ta_error_text(), name);
        TEST_ASSERT_GREATER_THAN_MESSAGE(0, problems, name);
        if (strstr(expected, "no whole entry") == NULL)
            TEST_ASSERT_EQUAL_STRING_MESSAGE(expected, report.text, name);
    }
    ta_snapshot_free(snapshot);
}

static void test_broken_files_give_their_error(void)
{
    char path[4096];
    int count = 0;
    path_of(path, sizeof path, "broken/EXPECTED");
    char *text = read_text(path);
    for (char *line = text; *line != '\0';) {
        char *end = strchr(line, '\n');
        char *tab = strchr(line, '\t');
        *end = *tab = '\0';
        assert_broken(line, tab + 1);
        line = end + 1;
        count++;
    }
    free(text);
    TEST_ASSERT_GREATER_OR_EQUAL(30, count);
}

/* ---- every cut and every flip --------------------------------------------------------------------------------------
 */

static size_t read_bytes(const char *name, uint8_t **bytes)
{
    char path[4096];
    path_of(path, sizeof path, name);
    FILE *in = fopen(path, "rb");
    TEST_ASSERT_NOT_NULL(in);
    *bytes = malloc(1 << 20);
    size_t length = fread(*bytes, 1, 1 << 20, in);
    fclose(in);
    return length;
}

static void test_file_cut_anywhere_loads_whole_entries_or_fails_with_a_text(void)
{
    uint8_t *bytes;
    size_t length = read_bytes("v1-series.ta", &bytes);
    int loaded = 0, warned = 0, refused = 0;
    for (size_t cut = 0; cut < length; cut++) {
        uint8_t *copy = malloc(cut + 1); /* exact, so that a sanitizer sees a read beyond */
        memcpy(copy, bytes, cut);
        ta__error_clear();
        struct ta_snapshot *snapshot = ta_snapshot_load_memory(copy, cut, -1);
        loaded += snapshot != NULL;
        warned += snapshot != NULL && ta_snapshot_warning(snapshot)[0] != '\0';
        refused += snapshot == NULL;
        if (snapshot == NULL)
            TEST_ASSERT_NOT_EQUAL('\0', ta_error_text()[0]);
        ta_snapshot_free(snapshot);
        free(copy);
    }
    TEST_ASSERT_GREATER_THAN(500, warned);
    TEST_ASSERT_GREATER_THAN(500, refused);
    TEST_ASSERT_GREATER_THAN(0, loaded - warned); /* cut exactly between entries */
    free(bytes);
}

static void test_file_with_one_bit_flipped_is_noticed(void)
{
    uint8_t *bytes;
    size_t length = read_bytes("v1-series.ta", &bytes);
    for (size_t at = 0; at < length; at++) {
        bytes[at] ^= (uint8_t)(1u << (at % 8));
        struct ta_snapshot *snapshot = ta_snapshot_load_memory(bytes, length, -1);
        int in_tail = at >= length - 200; /* index and trailer: the entries do not need them */
        if (snapshot != NULL && !in_tail) {
            char where[64];
            snprintf(where, sizeof where, "bit flipped at %zu", at);
            TEST_ASSERT_TRUE_MESSAGE(ta_snapshot_warning(snapshot)[0] != '\0', where);
        }
        ta_snapshot_free(snapshot);
        bytes[at] ^= (uint8_t)(1u << (at % 8));
    }
    free(bytes);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    folder = argv[1];
    if (argc > 2 && strcmp(argv[2], "--write") == 0)
        return write_all();
    if (chdir("/") != 0)
        return 2;
    UNITY_BEGIN();
    RUN_TEST(test_golden_files_say_what_they_said);
    RUN_TEST(test_broken_files_give_their_error);
    RUN_TEST(test_file_cut_anywhere_loads_whole_entries_or_fails_with_a_text);
    RUN_TEST(test_file_with_one_bit_flipped_is_noticed);
    return UNITY_END();
}
