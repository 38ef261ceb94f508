/* made_recordings.c: recordings of a program that consists of arrays, written into the present folder for the transcript
 * of tests/cli/answers.txt. Its functions are this program's own, so that they have names and lines.
 *
 *     series.ta    seven entries: what grows, stays, comes and goes; domains, threads, facts about memory and a fault
 *     long.ta      a hundred entries of one place that grows
 *     short.ta     one entry of the same program, with less
 *     sampled.ta   the same, of samples
 *     small.ta     a program that mapped its memory itself */
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/write/write.h"
#include "tests/support/fake_source.h"

static volatile int sink;

#define FUNCTION __attribute__((noinline, noclone, used)) static int

FUNCTION parse_line(int x)
{
    sink = x + 1;
    return sink * 3;
}

FUNCTION fill_cache(int x)
{
    sink = x + 2;
    return sink * 5;
}

FUNCTION answer_request(int x)
{
    sink = x + 3;
    return sink * 7;
}

FUNCTION read_settings(int x)
{
    sink = x + 4;
    return sink * 11;
}

FUNCTION serve(int x)
{
    sink = x + 5;
    return sink * 13;
}

struct made {
    struct fake_source fake;
    struct ta__writer writer;
    struct ta__facts facts;
    uint32_t app, library;
    uint32_t main, parse, cache, answer, settings, outside, deep;
};

static int first_object(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(uint64_t *)base = info->dlpi_addr;
    return 1;
}

/* As a return address: what it belongs to is the byte before, the first of the function in every build. */
static uint64_t in(int (*function)(int))
{
    return (uint64_t)(uintptr_t)function + 1;
}

static void begin(struct made *made)
{
    static char program[4096];
    struct fake_source *fake = &made->fake;
    struct ta__sink memory;
    uint64_t base = 0;
    memset(made, 0, sizeof *made);
    fake_open(fake);
    dl_iterate_phdr(first_object, &base);
    program[readlink("/proc/self/exe", program, sizeof program - 1)] = '\0';
    made->app = fake_module(fake, program, base, base + 0x1000000);
    fake->modules[made->app - 1].build_id_length = 0;
    made->library = fake_module(fake, "/nonexistent/lib/libother.so.2", 0x7f0000000000, 0x7f0000400000);
    made->main = fake_context(fake, 0, in(serve), made->app);
    made->parse = fake_context(fake, made->main, in(parse_line), made->app);
    made->cache = fake_context(fake, made->main, in(fill_cache), made->app);
    made->answer = fake_context(fake, made->main, in(answer_request), made->app);
    made->settings = fake_context(fake, made->answer, in(read_settings), made->app);
    made->outside = fake_context(fake, made->cache, 0x7f0000000120, made->library);
    made->deep = made->answer;
    for (int i = 0; i < 6; i++)
        made->deep = fake_context(fake, made->deep, in(answer_request), made->app);
    ta__sink_memory(&memory);
    if (ta__writer_open(&made->writer, &memory) != 0)
        exit(1);
    made->facts = fake_facts(UINT64_C(1700000000000000000));
    made->facts.program = program;
    fake->source.start_time_ns = made->facts.time_ns - UINT64_C(5000000000);
}

static void entry(struct made *made)
{
    if (ta__writer_entry(&made->writer, &made->fake.source, &made->facts) != 0)
        exit(1);
    made->facts.time_ns += UINT64_C(10000000000);
}

static void end(struct made *made, const char *path)
{
    const struct ta__buffer *bytes = &made->writer.chunks.sink.memory;
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || write(file, bytes->bytes, bytes->length) != (ssize_t)bytes->length)
        exit(1);
    close(file);
    ta__buffer_free(&made->writer.chunks.sink.memory);
    ta__writer_close(&made->writer);
    fake_close(&made->fake);
}

static char frame_of_crash[2][4200];

static void make_series(const char *path)
{
    static struct made made;
    begin(&made);
    struct fake_source *fake = &made.fake;
    uint32_t cache = fake_domain(fake, 7, "cache"), plain = fake_domain(fake, 12, ""),
             thread = fake_thread(fake, 4711, "main"), worker = fake_thread(fake, 4712, "worker");
    fake->domains[cache].peak_bytes = 500000;
    fake->domains[cache].limit_bytes = 1000000;
    uint32_t leak = fake_leaf(fake, made.parse, 0, thread, 2), full = fake_leaf(fake, made.cache, cache, thread, 2),
             churn = fake_leaf(fake, made.answer, 0, worker, 2), once = fake_leaf(fake, made.settings, 0, thread, 3),
             outside = fake_leaf(fake, made.outside, plain, worker, 3),
             deep = fake_leaf(fake, made.deep, 0, worker, 12);
    for (int i = 0; i < 7; i++) {
        fake_malloc(fake, leak, 10, 1000);
        if (i < 2)
            fake_malloc(fake, full, 100, 640);
        fake_malloc(fake, churn, 500, 80);
        fake_free(fake, churn, i == 6 ? 499 : 500, 80);
        if (i == 0)
            fake_malloc(fake, once, 4, 2500);
        if (i == 4)
            fake_free(fake, once, 3, 2500);
        fake_malloc(fake, outside, 1, 4096);
        if (i == 5)
            fake_malloc(fake, deep, 2, 333);
        if (i == 3)
            fake->source.peak_bytes = 400000;
        if (i == 6) {
            uint64_t base = fake->modules[made.app - 1].load_base;
            sprintf(frame_of_crash[0], "%s+0x%llx", made.facts.program, (unsigned long long)(in(parse_line)-base));
            sprintf(frame_of_crash[1], "%s+0x%llx", made.facts.program, (unsigned long long)(in(serve)-base));
            static const struct ta__fact_pair pairs[] = {
                {"process.command", "server --port 7000"},
                {"process.threads", "2"},
                {"memory.resident", "52428800"},
                {"memory.resident_peak", "67108864"},
                {"memory.swapped", "4096"},
                {"memory.peak.resident", "66000000"},
                {"memory.peak.kind.malloc", "600000"},
                {"memory.peak.kind.tracing", "9000000"},
                {"memory.peak.kind.mapped", "50000000"},
                {"memory.peak.kind.stacks", "3000000"},
                {"memory.peak.kind.libraries", "3400000"},
                {"memory.site.0.peak", "30000000"},
                {"memory.site.0.frame.0", frame_of_crash[0]},
                {"memory.site.0.frame.1", frame_of_crash[1]},
                {"memory.site.1.peak", "10000000"},
                {"memory.site.1.frame.0", frame_of_crash[1]},
                {"memory.site.2.peak", "5000000"},
                {"memory.site.2.frame.0", frame_of_crash[1]},
                {"crash.signal", "SIGSEGV"},
                {"crash.thread", "4712"},
                {"crash.address", "0x10"},
                {"crash.access", "write"},
                {"crash.cause", "nothing is there"},
                {"crash.frame.0", frame_of_crash[0]},
                {"crash.frame.1", frame_of_crash[1]},
                {"crash.block", "5 bytes behind a live block of 1000 bytes"},
                {"crash.block.frame.0", frame_of_crash[1]},
            };
            made.facts.pairs = pairs;
            made.facts.pair_count = sizeof pairs / sizeof *pairs;
            made.facts.reason = "end";
        }
        entry(&made);
    }
    end(&made, path);
}

static void make_long(const char *path)
{
    static struct made made;
    begin(&made);
    uint32_t leak = fake_leaf(&made.fake, made.parse, 0, 0, 2), still = fake_leaf(&made.fake, made.cache, 0, 0, 2);
    fake_malloc(&made.fake, still, 3, 30000);
    for (int i = 0; i < 100; i++) {
        fake_malloc(&made.fake, leak, 1 + (i % 3 == 0), 500);
        entry(&made);
    }
    end(&made, path);
}

static void make_one(const char *path, uint64_t sampled, int maps)
{
    static struct made made;
    begin(&made);
    static const struct ta__fact_pair pairs[] = {
        {"memory.resident_peak", "20000000"},
        {"memory.peak.resident", "18000000"},
        {"memory.peak.kind.mapped", "17000000"},
        {"memory.site.0.peak", "16000000"},
        {"memory.site.0.frame.0", "/opt/x+0x123"},
        {"crash.signal", "SIGTERM"},
        {"crash.sender", "99"},
    };
    made.fake.source.sample_bytes = sampled;
    if (maps) {
        made.facts.pairs = pairs;
        made.facts.pair_count = sizeof pairs / sizeof *pairs;
    } else {
        fake_malloc(&made.fake, fake_leaf(&made.fake, made.parse, 0, 0, 2), 5, 1000);
        fake_malloc(&made.fake, fake_leaf(&made.fake, made.cache, 0, 0, 2), 150, 640);
        fake_malloc(&made.fake, fake_leaf(&made.fake, made.settings, 0, 0, 3), 9, 2500);
    }
    entry(&made);
    end(&made, path);
}

/* odd.ta: two entries: circles of calls, losses, who held what at the peak; most of it is gone by now. */
static void make_odd(const char *path)
{
    static struct made made;
    static uint64_t peaks[8];
    begin(&made);
    struct fake_source *fake = &made.fake;
    uint32_t two = made.main, one = made.main;
    for (int i = 0; i < 4; i++)
        two = fake_context(fake, fake_context(fake, two, in(parse_line), made.app), in(fill_cache), made.app);
    for (int i = 0; i < 5; i++)
        one = fake_context(fake, one, in(answer_request), made.app);
    uint32_t circles = fake_leaf(fake, two, 0, 0, 9), circle = fake_leaf(fake, one, 0, 0, 6),
             plain = fake_leaf(fake, made.settings, 0, 0, 3);
    fake_malloc(fake, circles, 30, 10000);
    fake_malloc(fake, circle, 20, 10000);
    fake_malloc(fake, plain, 10, 10000);
    peaks[circles] = 300000;
    peaks[circle] = 190000;
    peaks[plain] = 100000;
    fake->source.peak_bytes = 600000;
    fake->source.leaf_peak_bytes = peaks;
    fake->source.leaf_peak_count = 8;
    fake->source.lost = 1;
    fake->source.overflowed = 2;
    fake->source.cut_short = 3;
    fake->source.foreign_frees = 4;
    fake->source.invalid_frees = 5;
    fake->source.snapshot_errors = 6;
    entry(&made);
    fake_free(fake, circles, 27, 10000);
    fake_free(fake, circle, 18, 10000);
    fake_free(fake, plain, 9, 10000);
    entry(&made);
    end(&made, path);
}

/* kinds.ta: memory that is told in few kinds, of which more is mapped than lives; kinds-2.ta: less, and nothing for tables. */
static void make_kinds(const char *path, int has_more)
{
    static struct made made;
    begin(&made);
    static const struct ta__fact_pair more[] = {
        {"memory.resident", "900000"}, {"memory.anonymous", "500000"}, {"memory.tracer", "90000"},
        {"memory.file", "300000"},     {"memory.shared", "100000"},    {"memory.swapped", "70000"},
    };
    static const struct ta__fact_pair less[] = {{"memory.resident", "90000"},
                                                {"memory.anonymous", "80000"},
                                                {"memory.tracer", "90000"},
                                                {"memory.file", "10000"}};
    made.facts.pairs = has_more ? more : less;
    made.facts.pair_count = has_more ? sizeof more / sizeof *more : sizeof less / sizeof *less;
    fake_malloc(&made.fake, fake_leaf(&made.fake, made.parse, 0, 0, 2), has_more ? 1 : 2, 60000);
    entry(&made);
    end(&made, path);
}

static void make_empty(const char *path)
{
    static struct made made;
    begin(&made);
    entry(&made);
    end(&made, path);
}

int main(void)
{
    make_odd("odd.ta");
    make_kinds("kinds.ta", 1);
    make_kinds("kinds-2.ta", 0);
    make_empty("empty.ta");
    make_series("series.ta");
    make_long("long.ta");
    make_one("short.ta", 0, 0);
    make_one("sampled.ta", 65536, 0);
    make_one("small.ta", 0, 1);
    return parse_line(1) + fill_cache(1) + answer_request(1) + read_settings(1) + serve(1) == 0;
}
