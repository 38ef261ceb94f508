/* test_image_refused.c: what happens to questions about a core when memory is refused. Each request is refused once, the
 * first, the second, and so on; every third with all that follow. Opening then fails with a reason, or the image lacks
 * something; a question about an image that is open fails, or its answer is the same as ever. Nothing keeps memory.
 *
 *     test_image_refused CORE */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <unity.h>

#include "analysis/image/memory_image.h"
#include "analysis/image/unpack.h"
#include "base/error.h"
#include "tests/support/refusing_malloc.h"
#include "tracealloc/image.h"

enum { ALL = TA_IMAGE_BLOCKS | TA_IMAGE_MEMORY | TA_IMAGE_POINTERS | TA_IMAGE_PATHS };
enum { REFUSALS_MOST = 200 /* of one question: of more requests some are left out */ };

static const char *packed;
static char core[64];   /* the same, unpacked */
static char zipped[64]; /* something that gzip packed */
static struct ta_image *image;
static uint64_t about;
static char said[4096];
static size_t said_length;

typedef int (*question)(void); /* 0, or -1 when it failed */

static void say_number(uint64_t number)
{
    said_length += (size_t)snprintf(said + said_length, sizeof said - said_length, " %" PRIu64, number);
}

void setUp(void)
{
}

void tearDown(void)
{
}

static const char *told(const char *what, long from, long to)
{
    static char message[256];
    snprintf(message, sizeof message, "%s (requests %ld to %ld refused)", what, from, to);
    return message;
}

static int answer(question ask, long from, long to)
{
    long before = living;
    said_length = 0;
    memset(said, 0, sizeof said);
    ta__error_clear();
    asked = 0;
    refused_from = from;
    refused_to = to;
    int status = ask();
    refused_from = refused_to = -1;
    TEST_ASSERT_EQUAL_INT64_MESSAGE(before, living, told("memory is kept", from, to));
    TEST_ASSERT_TRUE_MESSAGE(status == 0 || *ta_error_text() != '\0', told("it fails without a reason", from, to));
    return status;
}

static void stands_refusals(question ask, int may_lack_something)
{
    char usual[sizeof said];
    said_length = 0;
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, ask(), ta_error_text()); /* what is kept for good is made here */
    TEST_ASSERT_EQUAL_INT(0, answer(ask, -1, -1));
    TEST_ASSERT_TRUE(said_length > 0 && said_length < sizeof said - 1);
    memcpy(usual, said, sizeof said);
    long requests = asked, failures = 0, step = requests / REFUSALS_MOST + 1;
    for (long number = 0; number < requests; number += step) {
        long from = number, to = number / step % 3 != 2 ? from + 1 : INT32_MAX;
        int status = answer(ask, from, to);
        failures += status != 0;
        TEST_ASSERT_TRUE_MESSAGE(status != 0 || may_lack_something || strcmp(usual, said) == 0,
                                 told("the answer differs", from, to));
    }
    TEST_ASSERT_TRUE(failures > 0);
    TEST_ASSERT_EQUAL_INT(0, answer(ask, -1, -1));
    TEST_ASSERT_EQUAL_STRING(usual, said);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static struct ta_image *open_image(const char *path, unsigned wants)
{
    const struct ta_image_options options = {.wants = wants, .about = about};
    return ta_image_open(path, &options, sizeof options);
}

static int open_and_close(void)
{
    struct ta_image *opened = open_image(core, ALL);
    struct ta_image_info info;
    if (opened == NULL)
        return -1;
    ta_image_get_info(opened, &info, sizeof info);
    TEST_ASSERT_EQUAL_UINT64_MESSAGE(info.blocks, opened->graph->count, "blocks are missing without a word");
    say_number(info.blocks);
    say_number(info.bytes);
    say_number((uint64_t)ta_snapshot_trace_count(ta_image_snapshot(opened)));
    ta_image_close(opened);
    return 0;
}

static int unpack_file(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    int status = ta__unpack(&file, path);
    if (status == 0)
        say_number((uint64_t)lseek(file, 0, SEEK_END));
    close(file);
    return status;
}

static int unpack_zstd(void)
{
    return unpack_file(packed);
}

static int unpack_gzip(void)
{
    return unpack_file(zipped);
}

static int find_leaks(void)
{
    static const char text[] = "leak:nowhere\n# a remark\n  leak:app\nleak:*alloc$\nleak:4\nleak:5\nleak:6\nleak:7\n";
    struct ta_suppressions *known = ta_suppressions_parse(text, strlen(text));
    struct ta_leaks *leaks = known != NULL ? ta_image_leaks(image, known) : NULL;
    struct ta_leak_totals totals;
    struct ta_block members[8];
    int status = leaks != NULL ? 0 : -1;
    if (leaks != NULL) {
        ta_leaks_totals(leaks, &totals, sizeof totals);
        say_number(totals.rows);
        say_number(totals.direct_bytes);
        say_number(totals.indirect_bytes);
        say_number(totals.cycles);
        say_number(totals.inner_bytes);
        for (size_t i = 0; i < ta_leaks_count(leaks); i++) /* without memory for a way around, there is none */
            ta_leaks_cycle(leaks, i, members, 8);
    }
    ta_leaks_free(leaks);
    ta_suppressions_free(known);
    return status;
}

static int ask_rows(void)
{
    struct ta_statistics *statistics = ta_snapshot_statistics(ta_image_snapshot(image), "traceback", 0);
    if (statistics == NULL)
        return -1;
    size_t rows = ta_statistics_count(statistics) + 1;
    struct ta_memory_figures *figures = calloc(rows, sizeof *figures);
    struct ta_retained_row *retained = calloc(rows, sizeof *retained);
    int status = figures == NULL || retained == NULL ? ta__error_set("no memory", NULL)
                 : ta_image_memory_rows(image, statistics, figures) != 0 ||
                         ta_image_retained_rows(image, statistics, retained) != 0
                     ? -1
                     : 0;
    for (size_t i = 0; status == 0 && i < rows; i++) {
        say_number(figures[i].resident);
        say_number(retained[i].retained);
    }
    free(figures);
    free(retained);
    ta_statistics_free(statistics);
    return status;
}

/* What holds what is found when it is first asked for: of a fresh image each time. */
static int ask_fresh(void)
{
    struct ta_retained_block blocks[4];
    struct ta_image *fresh = open_image(core, TA_IMAGE_POINTERS);
    long count = fresh != NULL ? ta_image_retained_blocks(fresh, blocks, 4) : -1;
    for (long i = 0; i < count; i++)
        say_number(blocks[i].retained);
    ta_image_close(fresh);
    return count < 0 ? -1 : 0;
}

static int measure(void)
{
    struct ta_snapshot *snapshot = ta_image_memory_snapshot(image, TA_MEMORY_PINNED);
    struct ta_trace trace;
    for (size_t i = 0; snapshot != NULL && i < 9 && ta_snapshot_trace(snapshot, i, &trace) == 0; i++)
        say_number(trace.size);
    ta_snapshot_free(snapshot);
    return snapshot != NULL ? 0 : -1;
}

static int ask_why(void)
{
    struct ta_place steps[12];
    struct ta_why *why = ta_image_why(image, about);
    if (why == NULL)
        return -1;
    say_number(ta_why_referrer_count(why));
    say_number((uint64_t)ta_why_is_reached(why));
    ta_why_path(why, 0, steps, 12); /* without memory there is none */
    ta_why_free(why);
    return 0;
}

/* ---- the tests --------------------------------------------------------------------------------------------------- */

static void test_opening_stands_refusals(void)
{
    stands_refusals(open_and_close, 1);
    stands_refusals(unpack_zstd, 0);
    stands_refusals(unpack_gzip, 0);
}

static void test_questions_stand_refusals(void)
{
    image = open_image(core, ALL);
    TEST_ASSERT_NOT_NULL_MESSAGE(image, ta_error_text());
    stands_refusals(find_leaks, 0);
    stands_refusals(ask_rows, 0);
    stands_refusals(measure, 0);
    stands_refusals(ask_why, 0);
    ta_image_close(image);
}

static void test_what_holds_what_stands_refusals(void)
{
    stands_refusals(ask_fresh, 1);
}

int main(int argc, char **argv)
{
    struct ta_block block;
    packed = argc > 1 ? argv[1] : "image.core.zst";
    setvbuf(stdout, NULL, _IONBF, 0);
    int file = open(packed, O_RDONLY | O_CLOEXEC);
    if (file < 0 || ta__unpack(&file, packed) != 0)
        return 1;
    snprintf(core, sizeof core, "/proc/self/fd/%d", file);
    int gzip_file = memfd_create("zipped", MFD_CLOEXEC);
    gzFile stream = gzdopen(dup(gzip_file), "wb");
    for (int i = 0; i < 400000; i++)
        gzprintf(stream, "%d ", i);
    gzclose(stream);
    snprintf(zipped, sizeof zipped, "/proc/self/fd/%d", gzip_file);
    image = open_image(core, ALL);
    if (image == NULL || ta_snapshot_block(ta_image_snapshot(image), 20, &block) != 0)
        return 1;
    about = block.address;
    ta_image_close(image);
    UNITY_BEGIN();
    RUN_TEST(test_opening_stands_refusals);
    RUN_TEST(test_questions_stand_refusals);
    RUN_TEST(test_what_holds_what_stands_refusals);
    return UNITY_END();
}
