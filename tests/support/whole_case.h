/* whole_case.h: a small snapshot for tests that has everything a recording may have: functions, modules, threads, named
 * domains, every single block, a stack that holds nothing any more. */
#ifndef TESTS_SUPPORT_WHOLE_CASE_H
#define TESTS_SUPPORT_WHOLE_CASE_H

#include "tests/support/program_case.h"

/* Stack by stack:
 *     60 bytes: blocks of 8, 20 and 32, domain 0, thread 100 "main"; take < main
 *     40 bytes: 2 blocks of 20, domain 5 "cache", thread 101 "worker"; take < parse < main
 *      7 bytes: 1 block, domain 6 "pool", no thread; main
 *      nothing live, 500 bytes in 5 blocks ever, peak 300; domain 0, thread 100; gone < main */
static inline struct ta_snapshot *whole_snapshot(void)
{
    struct ta_snapshot *plain = program_of("60 3 take|take.c:4|/usr/lib/libtake.so; main|main.c:3|/bin/app\n"
                                           "40 2 take|take.c:4|/usr/lib/libtake.so; parse|parse.c:7|/bin/app; "
                                           "main|main.c:5|/bin/app\n"
                                           "7 1 main|main.c:9|/bin/app\n"
                                           "0 0 gone|gone.c:2|/bin/app; main|main.c:3|/bin/app\n");
    struct ta__view view = *ta__snapshot_view(plain);
    struct ta__view_string strings[PROGRAM_STRINGS];
    static const char *const added[] = {"", "cache", "pool", "main thread", "worker"};
    memcpy(strings, view.strings, view.string_count * sizeof *strings);
    uint32_t first = view.string_count;
    for (uint32_t i = 0; i < 5; i++)
        strings[first + i] = (struct ta__view_string){added[i], strlen(added[i])};
    struct ta__view_trace traces[4];
    memcpy(traces, view.traces, sizeof traces);
    traces[0].thread = traces[3].thread = 1;
    traces[1].thread = 2;
    traces[1].domain = 5;
    traces[2].domain = 6;
    traces[0].allocated_bytes = 100;
    traces[0].allocated_blocks = 4;
    traces[0].peak_bytes = 60;
    traces[3].allocated_bytes = 500;
    traces[3].allocated_blocks = 5;
    traces[3].peak_bytes = 300;
    const struct ta__view_domain domains[] = {{.number = 0, .name = first, .live_bytes = 60, .live_blocks = 3},
                                              {.number = 5, .name = first + 1, .live_bytes = 40, .live_blocks = 2},
                                              {.number = 6, .name = first + 2, .live_bytes = 7, .live_blocks = 1}};
    const struct ta__view_thread threads[] = {{.tid = 100, .name = first + 3}, {.tid = 101, .name = first + 4}};
    const struct ta__view_block blocks[] = {ta__view_block(0x1000, 8, 0),
                                            ta__view_block(0x2000, 20, 1),
                                            ta__view_block(0x3000, 20, 0),
                                            ta__view_block(0x4000, 32, 0),
                                            ta__view_block(0x5000, 7, 2),
                                            ta__view_block(0x6000, 20, 1),
                                            ta__view_block(0x7000, 99, TA__BLOCK_UNTRACED)};
    view.strings = strings;
    view.string_count += 5;
    view.traces = traces;
    view.trace_count = 3;
    view.gone_trace_count = 1;
    view.domains = domains;
    view.domain_count = 3;
    view.threads = threads;
    view.thread_count = 2;
    view.blocks = blocks;
    view.block_count = sizeof blocks / sizeof *blocks;
    view.has_blocks = 1;
    view.current_bytes = 107;
    view.peak_bytes = 400;
    struct ta_snapshot *snapshot = ta__snapshot_from_view(&view, NULL);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    ta_snapshot_free(plain);
    return snapshot;
}

#endif
