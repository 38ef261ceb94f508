/* test_image_same.c: what a process is from outside is what it is from inside, row by row and block by block. Programs that
 * are linked all statically have few stacks: gcc gives them no table of their frames. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

#include "snapshot/read/read.h"
#include "tracealloc/image.h"

static const char *subject;
static char inside[] = "/tmp/ta_same.XXXXXX";
static pid_t child;

void setUp(void)
{
}

void tearDown(void)
{
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    child = 0;
    unlink(inside);
}

static void start(const char *what, const char *frames, const char *options, const char *preload, const char *file)
{
    int ends[2];
    char line[16];
    TEST_ASSERT_EQUAL(0, pipe(ends));
    child = fork();
    TEST_ASSERT_TRUE(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        setenv("TRACEALLOC", frames, 1);
        setenv("TRACEALLOC_OPTIONS", options, 1);
        if (preload != NULL)
            setenv("LD_PRELOAD", preload, 1);
        execl(subject, "subject", what, file, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    TEST_ASSERT_EQUAL_MESSAGE(6, read(ends[0], line, sizeof line), "the subject did not get ready");
    close(ends[0]);
}

static const char *text(const struct ta__view *view, uint32_t string)
{
    return view->strings[string].text;
}

static void compare_frames(const struct ta__view *in, uint32_t a, const struct ta__view *out, uint32_t b)
{
    for (; a != 0 && b != 0; a = in->contexts[a].parent, b = out->contexts[b].parent) {
        const struct ta__view_frame *left = &in->frames[in->contexts[a].frame],
                                    *right = &out->frames[out->contexts[b].frame];
        TEST_ASSERT_EQUAL_HEX64(left->address, right->address);
        TEST_ASSERT_EQUAL(left->kind, right->kind);
        TEST_ASSERT_EQUAL(left->module, right->module);
    }
    TEST_ASSERT_TRUE_MESSAGE(a == 0 && b == 0, "the stacks are not as deep");
}

static void compare_traces(const struct ta__view *in, const struct ta__view *out)
{
    TEST_ASSERT_EQUAL(in->trace_count, out->trace_count);
    TEST_ASSERT_EQUAL(in->gone_trace_count, out->gone_trace_count);
    for (uint32_t i = 0; i < in->trace_count + in->gone_trace_count; i++) {
        const struct ta__view_trace *left = &in->traces[i], *right = &out->traces[i];
        TEST_ASSERT_EQUAL(left->domain, right->domain);
        TEST_ASSERT_EQUAL(left->flags, right->flags);
        TEST_ASSERT_EQUAL(left->total_nframe, right->total_nframe);
        TEST_ASSERT_EQUAL_UINT64(left->size, right->size);
        TEST_ASSERT_EQUAL_UINT64(left->count, right->count);
        TEST_ASSERT_EQUAL_UINT64(left->allocated_bytes, right->allocated_bytes);
        TEST_ASSERT_EQUAL_UINT64(left->allocated_blocks, right->allocated_blocks);
        TEST_ASSERT_EQUAL_UINT64(left->peak_bytes, right->peak_bytes);
        compare_frames(in, left->context, out, right->context);
    }
}

/* Of the program's own snapshot, blocks without a header are not: nobody traced them. What they are from outside, blocks.py
 * compares with the program's own list. */
static void compare_blocks(const struct ta__view *in, const struct ta__view *out, int are_exact)
{
    TEST_ASSERT_TRUE(in->has_blocks && out->has_blocks);
    uint64_t *counts = calloc((size_t)in->trace_count + 1, sizeof *counts);
    TEST_ASSERT_NOT_NULL(counts);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < in->block_count; i++, seen++) {
        while (seen < out->block_count && out->blocks[seen].address < in->blocks[i].address)
            TEST_ASSERT_EQUAL_HEX(TA__BLOCK_UNTRACED, out->blocks[seen++].trace);
        TEST_ASSERT_LESS_THAN(out->block_count, seen);
        TEST_ASSERT_EQUAL_HEX64(in->blocks[i].address, out->blocks[seen].address);
        TEST_ASSERT_EQUAL_UINT64(ta__view_block_size(&in->blocks[i]), ta__view_block_size(&out->blocks[seen]));
        TEST_ASSERT_EQUAL(in->blocks[i].trace, out->blocks[seen].trace);
        if (in->blocks[i].trace < in->trace_count)
            counts[in->blocks[i].trace]++;
    }
    for (; seen < out->block_count; seen++)
        TEST_ASSERT_EQUAL_HEX(TA__BLOCK_UNTRACED, out->blocks[seen].trace);
    for (uint32_t i = 0; i < in->trace_count && are_exact; i++)
        TEST_ASSERT_EQUAL_UINT64(in->traces[i].count, counts[i]);
    free(counts);
}

/* Of one address there are several rows only where traces of different domains are. */
static void expect_keys_once(const struct ta__view *view, uint32_t least)
{
    uint32_t twice = 0;
    for (uint32_t i = 1; i < view->block_count; i++) {
        if (view->blocks[i].address != view->blocks[i - 1].address)
            continue;
        uint32_t before = view->blocks[i - 1].trace, trace = view->blocks[i].trace;
        TEST_ASSERT_TRUE_MESSAGE(before < view->trace_count && trace < view->trace_count,
                                 "a block has a row without trace");
        TEST_ASSERT_TRUE(view->traces[before].domain != view->traces[trace].domain);
        twice++;
    }
    TEST_ASSERT_GREATER_OR_EQUAL_UINT32(least, twice);
}

static void compare_rows(const struct ta__view *in, const struct ta__view *out)
{
    TEST_ASSERT_EQUAL(in->module_count, out->module_count);
    for (uint32_t i = 0; i < in->module_count; i++) {
        TEST_ASSERT_EQUAL_STRING(text(in, in->modules[i].path), text(out, out->modules[i].path));
        TEST_ASSERT_EQUAL_HEX64(in->modules[i].load_base, out->modules[i].load_base);
        TEST_ASSERT_EQUAL(in->modules[i].build_id_length, out->modules[i].build_id_length);
        if (in->modules[i].build_id_length > 0)
            TEST_ASSERT_EQUAL_MEMORY(in->modules[i].build_id, out->modules[i].build_id, in->modules[i].build_id_length);
    }
    TEST_ASSERT_EQUAL(in->domain_count, out->domain_count);
    for (uint32_t i = 0; i < in->domain_count; i++) {
        struct ta__view_domain left = in->domains[i], right = out->domains[i];
        TEST_ASSERT_EQUAL_STRING(text(in, left.name), text(out, right.name));
        left.name = right.name = 0;
        TEST_ASSERT_EQUAL_MEMORY(&left, &right, sizeof left);
    }
    TEST_ASSERT_EQUAL(in->thread_count, out->thread_count);
    for (uint32_t i = 0; i < in->thread_count; i++) {
        TEST_ASSERT_EQUAL(in->threads[i].tid, out->threads[i].tid);
        TEST_ASSERT_EQUAL_STRING(text(in, in->threads[i].name), text(out, out->threads[i].name));
    }
    TEST_ASSERT_EQUAL(in->traceback_limit, out->traceback_limit);
    TEST_ASSERT_EQUAL(in->pid, out->pid);
    TEST_ASSERT_EQUAL_STRING(text(in, in->program), text(out, out->program));
    TEST_ASSERT_EQUAL_UINT64(in->epoch, out->epoch);
    TEST_ASSERT_EQUAL_UINT64(in->current_bytes, out->current_bytes);
    TEST_ASSERT_EQUAL_UINT64(in->peak_bytes, out->peak_bytes);
    TEST_ASSERT_EQUAL_UINT64(in->sample_bytes, out->sample_bytes);
    TEST_ASSERT_EQUAL_UINT64(in->lost, out->lost);
    TEST_ASSERT_EQUAL_UINT64(in->overflowed, out->overflowed);
    TEST_ASSERT_EQUAL_UINT64(in->cut_short, out->cut_short);
    TEST_ASSERT_EQUAL(in->option_count, out->option_count);
    for (uint32_t i = 0; i < in->option_count; i++)
        TEST_ASSERT_EQUAL_STRING(text(in, in->options[i].value), text(out, out->options[i].value));
}

static struct ta_image *open_image(const char *what, unsigned flags)
{
    const struct ta_image_options options = {.wants = TA_IMAGE_BLOCKS, .flags = flags};
    struct ta_image *image = ta_image_open(what, &options, sizeof options);
    TEST_ASSERT_NOT_NULL_MESSAGE(image, ta_error_text());
    TEST_ASSERT_NULL_MESSAGE(ta_image_warning(image, 0), ta_image_warning(image, 0));
    return image;
}

static void compare_to_inside(const char *what, struct ta_image *image, int are_exact, uint32_t least)
{
    struct ta_snapshot *taken = ta_snapshot_load(inside);
    TEST_ASSERT_NOT_NULL_MESSAGE(taken, ta_error_text());
    const struct ta__view *in = ta__snapshot_view(taken), *out = ta__snapshot_view(ta_image_snapshot(image));
    TEST_ASSERT_GREATER_THAN(least, in->trace_count);
    TEST_ASSERT_GREATER_THAN(500, in->block_count);
    TEST_ASSERT_GREATER_THAN(1000, out->block_count);
    compare_rows(in, out);
    compare_traces(in, out);
    compare_blocks(in, out, are_exact);
    expect_keys_once(in, strcmp(what, "track") == 0 ? 100 : 0);
    expect_keys_once(out, strcmp(what, "track") == 0 ? 100 : 0);
    ta_snapshot_free(taken);
}

static void check(const char *what, const char *frames, const char *options, unsigned flags, int are_exact,
                  uint32_t least)
{
    char number[16];
    start(what, frames, options, getenv("TA_LIB"), inside);
    snprintf(number, sizeof number, "%d", child);
    struct ta_image *image = open_image(number, flags);
    compare_to_inside(what, image, are_exact, getenv("TA_LIB") == NULL || strcmp(frames, "1") == 0 ? 0 : least);
    ta_image_close(image);
}

static void test_plain_program_is_the_same_from_outside(void)
{
    check("plain", "100", "blocks=yes", 0, 1, 100);
}

static void test_one_frame_is_the_same_from_outside(void)
{
    check("plain", "1", "blocks=yes", 0, 1, 100);
}

static void test_unpaused_program_that_rests_is_the_same(void)
{
    check("plain", "5", "blocks=yes", TA_IMAGE_NO_PAUSE, 1, 100);
}

static void test_threads_are_the_same_from_outside(void)
{
    check("threads", "50", "blocks=yes", 0, 1, 100);
}

static void test_domains_are_the_same_from_outside(void)
{
    check("domains", "20", "blocks=yes", 0, 1, 100);
}

static void test_tracked_memory_is_the_same_from_outside(void)
{
    check("track", "20", "blocks=yes", 0, 1, 100);
}

static void test_blocks_of_an_earlier_epoch_have_no_trace(void)
{
    check("clear", "20", "blocks=yes", 0, 1, 10);
}

static void test_few_contexts_overflow_alike(void)
{
    check("threads", "60", "blocks=yes,max_contexts=1024", 0, 1, 100);
}

static void test_samples_are_the_same_from_outside(void)
{
    check("plain", "20", "blocks=yes,sample=4096", 0, 0, 100);
}

static void test_untraced_program_has_blocks_and_sizes(void)
{
    char number[16];
    start("plain", "0", "", getenv("TA_LIB"), NULL);
    snprintf(number, sizeof number, "%d", child);
    struct ta_image *image = open_image(number, 0);
    struct ta_image_info info;
    TEST_ASSERT_EQUAL(0, ta_image_get_info(image, &info, sizeof info));
    const struct ta__view *view = ta__snapshot_view(ta_image_snapshot(image));
    TEST_ASSERT_EQUAL(0, info.is_tracing);
    TEST_ASSERT_EQUAL(1, view->trace_count);
    TEST_ASSERT_GREATER_THAN(1000, view->block_count);
    TEST_ASSERT_EQUAL_UINT64(info.blocks, view->traces[0].count);
    TEST_ASSERT_EQUAL_UINT64(info.bytes, view->traces[0].size);
    TEST_ASSERT_EQUAL_UINT64(view->block_count, view->traces[0].count);
    ta_image_close(image);
}

static char state_of_child(void)
{
    char path[64], state[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    FILE *file = fopen(path, "r");
    TEST_ASSERT_NOT_NULL(file);
    TEST_ASSERT_NOT_NULL(fgets(state, sizeof state, file));
    fclose(file);
    return strrchr(state, ')')[2];
}

static void test_process_goes_on_afterwards(void)
{
    check("threads", "10", "blocks=yes", 0, 1, 100);
    for (int i = 0; i < 10000 && state_of_child() != 'S'; i++)
        usleep(1000); /* on its way back to sleep */
    TEST_ASSERT_EQUAL_HEX8('S', state_of_child());
}

static void test_what_is_no_process_is_refused(void)
{
    const struct {
        const char *what, *says;
    } wrong[] = {{"999999999", "no such process"},
                 {"/nowhere/core", "No such file"},
                 {"/dev/null", "neither"},
                 {"/proc/self/exe", "no core file"},
                 {"1x", "No such file"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        TEST_ASSERT_NULL(ta_image_open(wrong[i].what, NULL, 0));
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(ta_error_text(), wrong[i].says), ta_error_text());
    }
}

static void test_program_without_the_library_is_refused(void)
{
    char number[16];
    child = fork();
    if (child == 0) {
        execlp("sleep", "sleep", "1000", (char *)NULL);
        _exit(127);
    }
    snprintf(number, sizeof number, "%d", child);
    usleep(100000); /* until it is another program; else it is refused for that reason too */
    TEST_ASSERT_NULL(ta_image_open(number, NULL, 0));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(ta_error_text(), "was not started with tracealloc"), ta_error_text());
}

/* Each question of an image that was opened for it, and of one that was not. */
static void ask_everything(const char *process, unsigned wants)
{
    const struct ta_image_options options = {.wants = wants};
    struct ta_image *image = ta_image_open(process, &options, sizeof options);
    TEST_ASSERT_NOT_NULL_MESSAGE(image, ta_error_text());
    struct ta_statistics *rows = ta_snapshot_statistics(ta_image_snapshot(image), "lineno", 0);
    TEST_ASSERT_NOT_NULL(rows);
    struct ta_memory_figures *figures = calloc(ta_statistics_count(rows) + 1, sizeof *figures);
    struct ta_retained_row *retained = calloc(ta_statistics_count(rows) + 1, sizeof *retained);
    for (int i = 0; i < 6; i++) {
        TEST_ASSERT_NULL(ta_image_open("/nowhere/core", NULL, 0)); /* the error that a good answer leaves */
        void *answer = NULL;
        int result = 0;
        if (i == 0)
            answer = ta_image_memory_snapshot(image, TA_MEMORY_RESIDENT);
        else if (i == 1)
            result = ta_image_memory_rows(image, rows, figures);
        else if (i == 2)
            answer = ta_image_leaks(image, NULL);
        else if (i == 3)
            result = ta_image_retained_rows(image, rows, retained);
        else if (i == 4)
            result = ta_image_retained_blocks(image, NULL, 0) < 0 ? -1 : 0;
        else
            answer = ta_image_why(image, 4096);
        int is_answered = i == 0 || i == 2 || i == 5 ? answer != NULL : result == 0;
        TEST_ASSERT_NOT_NULL_MESSAGE(
            strstr(ta_error_text(), is_answered ? "/nowhere/core" : "not opened for questions about "),
            ta_error_text());
        static const unsigned needed[] = {TA_IMAGE_MEMORY,   TA_IMAGE_MEMORY,   TA_IMAGE_POINTERS,
                                          TA_IMAGE_POINTERS, TA_IMAGE_POINTERS, TA_IMAGE_PATHS};
        TEST_ASSERT_EQUAL((wants & needed[i]) != 0 || (needed[i] == TA_IMAGE_POINTERS && (wants & TA_IMAGE_PATHS)),
                          is_answered);
        if (i == 0)
            ta_snapshot_free(answer);
        else if (i == 2)
            ta_leaks_free(answer);
        else if (i == 5)
            ta_why_free(answer);
    }
    TEST_ASSERT_EQUAL((wants & TA_IMAGE_MEMORY) != 0, ta_image_memory_parts(image, NULL, 0) > 0);
    TEST_ASSERT_EQUAL((wants & TA_IMAGE_MEMORY) != 0, ta_image_memory_mappings(image, NULL, 0) > 0);
    free(figures);
    free(retained);
    ta_statistics_free(rows);
    ta_image_close(image);
}

static void test_only_what_it_was_opened_for_is_answered(void)
{
    char number[16];
    start("plain", "10", "", getenv("TA_LIB"), inside);
    snprintf(number, sizeof number, "%d", child);
    static const unsigned wants[] = {TA_IMAGE_SNAPSHOT, TA_IMAGE_BLOCKS, TA_IMAGE_MEMORY,
                                     TA_IMAGE_POINTERS, TA_IMAGE_PATHS,  TA_IMAGE_MEMORY | TA_IMAGE_PATHS};
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++)
        ask_everything(number, wants[i]);
}

int main(int count, char **words)
{
    if (count < 2)
        return 77;
    subject = words[1];
    close(mkstemp(inside));
    UNITY_BEGIN();
    RUN_TEST(test_plain_program_is_the_same_from_outside);
    RUN_TEST(test_one_frame_is_the_same_from_outside);
    RUN_TEST(test_unpaused_program_that_rests_is_the_same);
    RUN_TEST(test_threads_are_the_same_from_outside);
    RUN_TEST(test_domains_are_the_same_from_outside);
    RUN_TEST(test_tracked_memory_is_the_same_from_outside);
    RUN_TEST(test_blocks_of_an_earlier_epoch_have_no_trace);
    RUN_TEST(test_few_contexts_overflow_alike);
    RUN_TEST(test_samples_are_the_same_from_outside);
    RUN_TEST(test_untraced_program_has_blocks_and_sizes);
    RUN_TEST(test_process_goes_on_afterwards);
    RUN_TEST(test_what_is_no_process_is_refused);
    RUN_TEST(test_program_without_the_library_is_refused);
    RUN_TEST(test_only_what_it_was_opened_for_is_answered);
    return UNITY_END();
}
