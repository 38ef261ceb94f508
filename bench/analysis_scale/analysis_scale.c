/* analysis_scale.c: how long it takes to group a large snapshot. Its counterpart analysis_scale.py does the same with
 * Python's tracemalloc on the same traces; analysis_scale.sh runs both and prints the ratios.
 *
 *     analysis_scale [TRACES [DEPTH]] -o FILE     makes a snapshot, writes FILE.ta and FILE.pickle
 *     analysis_scale FILE.ta                      loads and groups it
 *
 * Every stack continues an earlier one from some depth on, as stacks of programs do: with 30 frames it shares 24.5 of
 * them on average. No two stacks are equal. */
#include <inttypes.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <tracealloc/analysis.h>

static uint64_t state = 0x243F6A8885A308D3u;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double peak_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static int fail(const char *what)
{
    fprintf(stderr, "analysis_scale: %s: %s\n", what, ta_error_text());
    return 1;
}

/* ---- making ---- */

/* 30000 distinct lines: a large compiler has about 23000 call sites on the way to its allocations. */
enum { FILES = 500, LINES = 60 };

static struct ta_frame_data random_frame(char names[FILES][64])
{
    size_t file = next_random() % FILES;
    return (struct ta_frame_data){names[file], TA_NUL_TERMINATED, 1 + (uint32_t)(next_random() % LINES)};
}

static struct ta_snapshot *make(size_t traces, size_t depth)
{
    static char names[FILES][64];
    for (size_t i = 0; i < FILES; i++)
        snprintf(names[i], sizeof names[i], "/usr/src/program/module%zu/source_file%zu.c", i / 20, i);
    struct ta_frame_data *frames = calloc(traces * depth, sizeof *frames);
    struct ta_trace_data *data = calloc(traces, sizeof *data);
    if (frames == NULL || data == NULL)
        return NULL;
    for (size_t i = 0; i < traces; i++) {
        struct ta_frame_data *stack = frames + i * depth;
        size_t fresh = i == 0 ? depth : 1 + next_random() % (depth > 10 ? 10 : depth);
        if (i > 0) /* the oldest frames are at the end */
            memcpy(stack, frames + (next_random() % i) * depth, depth * sizeof *stack);
        for (size_t f = 0; f < fresh; f++)
            stack[f] = random_frame(names);
        data[i] = (struct ta_trace_data){.size = 16 + next_random() % 1000,
                                         .count = 1,
                                         .total_nframe = (int64_t)depth,
                                         .frames = stack,
                                         .nframe = depth};
    }
    struct ta_snapshot *snapshot = ta_snapshot_from_traces(data, traces, (uint32_t)depth);
    free(frames);
    free(data);
    return snapshot;
}

static int make_files(size_t traces, size_t depth, const char *name)
{
    char path[4096];
    struct ta_snapshot *snapshot = make(traces, depth);
    if (snapshot == NULL)
        return fail("cannot make the snapshot");
    snprintf(path, sizeof path, "%s.ta", name);
    if (ta_snapshot_dump(snapshot, path) != 0)
        return fail(path);
    snprintf(path, sizeof path, "%s.pickle", name);
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0 || ta_snapshot_export_python(snapshot, ta_write_to_descriptor, &descriptor) != 0)
        return fail(path);
    close(descriptor);
    ta_snapshot_free(snapshot);
    return 0;
}

/* ---- measuring ---- */

/* Prints "ours NAME SECONDS GROUPS TOTAL": the shortest of three, and what both sides must agree on. */
static int measure(const struct ta_snapshot *snapshot, const char *key, int cumulative)
{
    double best = 1e9;
    size_t groups = 0;
    uint64_t total = 0;
    for (int round = 0; round < 3; round++) {
        double start = now();
        struct ta_statistics *statistics = ta_snapshot_statistics(snapshot, key, cumulative);
        double elapsed = now() - start;
        if (statistics == NULL)
            return fail(key);
        best = elapsed < best ? elapsed : best;
        groups = ta_statistics_count(statistics);
        total = 0;
        for (size_t i = 0; i < groups; i++) {
            struct ta_statistic row;
            ta_statistics_get(statistics, i, &row);
            total += row.size;
        }
        ta_statistics_free(statistics);
    }
    printf("ours %s%s %.6f %zu %" PRIu64 "\n", key, cumulative ? "-cumulative" : "", best, groups, total);
    return 0;
}

static int measure_file(const char *path)
{
    double start = now();
    struct ta_snapshot *snapshot = ta_snapshot_load(path);
    if (snapshot == NULL)
        return fail(path);
    long traces = ta_snapshot_trace_count(snapshot);
    printf("ours load %.6f %ld 0\n", now() - start, traces);
    double memory = peak_mib();
    start = now();
    struct ta_statistics *statistics = ta_snapshot_statistics(snapshot, "lineno", 0);
    if (statistics == NULL)
        return fail(path);
    printf("ours first-lineno %.6f %zu 0\n", now() - start, ta_statistics_count(statistics));
    ta_statistics_free(statistics);
    printf("ours memory-of-lineno-MiB %.1f 0 0\n", peak_mib() - memory);
    int status = measure(snapshot, "lineno", 0) | measure(snapshot, "filename", 0) | measure(snapshot, "lineno", 1) |
                 measure(snapshot, "traceback", 0);
    printf("ours peak-MiB %.1f %ld 0\n", peak_mib(), traces);
    ta_snapshot_free(snapshot);
    return status;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[argc - 2], "-o") == 0) {
        size_t traces = argc > 3 ? (size_t)strtoul(argv[1], NULL, 10) : 1000000;
        size_t depth = argc > 4 ? (size_t)strtoul(argv[2], NULL, 10) : 30;
        return make_files(traces, depth, argv[argc - 1]);
    }
    if (argc == 2)
        return measure_file(argv[1]);
    fprintf(stderr, "usage: analysis_scale [TRACES [DEPTH]] -o FILE | analysis_scale FILE.ta\n");
    return 2;
}
