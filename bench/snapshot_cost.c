/* snapshot_cost.c: what snapshots cost, in time and in bytes, and the ratios to the targets.
 *
 *     snapshot_cost              synthetic programs of 10^4, 10^5 and 10^6 contexts
 *     snapshot_cost FILE.ta…     recordings of real programs: bytes per context, time to load
 *
 * Times are of the processor, the best of several rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/error.h"
#include "snapshot/read/read.h"
#include "snapshot/write/write.h"
#include "tests/support/fake_source.h"

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void fail(void)
{
    fprintf(stderr, "snapshot_cost: %s\n", ta__error_text());
    exit(1);
}

static void entry(struct ta__writer *writer, struct fake_source *fake)
{
    struct ta__facts facts = fake_facts(1);
    if (ta__writer_entry(writer, &fake->source, &facts) != 0)
        fail();
}

static void line(const char *what, double value, const char *unit, double target)
{
    printf("    %-28s %10.4g %-16s target %-8.4g ratio %.3f\n", what, value, unit, target, value / target);
}

static void synthetic(uint32_t contexts, uint32_t functions)
{
    enum { ROUNDS = 5 };
    struct fake_source fake;
    struct ta__writer writer;
    struct ta__sink sink;
    double dump = 1e9, load = 1e9, repeat = 1e9;
    fake_open(&fake);
    fake_program(&fake, contexts, functions);
    for (int round = 0; round < ROUNDS; round++) {
        ta__sink_memory(&sink);
        double start = seconds();
        if (ta__writer_open(&writer, &sink) != 0)
            fail();
        entry(&writer, &fake);
        double taken = seconds() - start;
        dump = taken < dump ? taken : dump;
        start = seconds();
        struct ta_snapshot *snapshot =
            ta_snapshot_load_memory(writer.chunks.sink.memory.bytes, writer.chunks.sink.memory.length, -1);
        if (snapshot == NULL)
            fail();
        taken = seconds() - start;
        load = taken < load ? taken : load;
        ta_snapshot_free(snapshot);
        if (round == ROUNDS - 1)
            break;
        ta__buffer_free(&writer.chunks.sink.memory);
        ta__writer_close(&writer);
    }
    uint64_t whole = writer.chunks.sink.written;
    double start = seconds();
    entry(&writer, &fake);
    repeat = seconds() - start;
    uint64_t unchanged = writer.chunks.sink.written - whole;
    struct ta__source_counts *before = malloc(fake.source.leaf_count * sizeof *before);
    memcpy(before, fake.counts, fake.source.leaf_count * sizeof *before);
    fake_activity(&fake, 4);
    uint32_t changed = 0;
    for (uint32_t i = 0; i < fake.source.leaf_count; i++)
        changed += memcmp(&before[i], &fake.counts[i], sizeof *before) != 0;
    free(before);
    entry(&writer, &fake);
    uint64_t active = writer.chunks.sink.written - whole - unchanged;
    printf("%u contexts, %u leaves, %u functions\n", fake.source.context_count, fake.source.leaf_count, functions);
    line("dump", dump, "s", 1.0 * contexts / 1e6);
    line("load", load, "s", 1.0 * contexts / 1e6);
    line("repeat, unchanged", repeat, "s", 1.0 * contexts / 1e6);
    line("size of the first entry", (double)whole / contexts, "bytes/context", 3);
    line("size of a changed leaf", (double)active / changed, "bytes/leaf", 4);
    line("size of an unchanged entry", (double)unchanged, "bytes", 1024);
    ta__buffer_free(&writer.chunks.sink.memory);
    ta__writer_close(&writer);
    fake_close(&fake);
}

static void real(const char *path)
{
    struct stat status;
    double start = seconds();
    struct ta_snapshot *snapshot = ta_snapshot_load(path);
    double taken = seconds() - start;
    if (snapshot == NULL || stat(path, &status) != 0)
        fail();
    const struct ta__view *view = ta__snapshot_view(snapshot);
    printf("%s: %u contexts, %u + %u traces, %ld bytes, %s\n", path, view->context_count, view->trace_count,
           view->gone_trace_count, (long)status.st_size, view->strings[view->program].text);
    line("load", taken, "s", 1.0 * view->context_count / 1e6);
    line("size", (double)status.st_size / view->context_count, "bytes/context", 3);
    ta_snapshot_free(snapshot);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        real(argv[i]);
    if (argc > 1)
        return 0;
    synthetic(10000, 1000);
    synthetic(100000, 3000);
    synthetic(1000000, 20000);
    return 0;
}
