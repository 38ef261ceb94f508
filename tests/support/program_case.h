/* program_case.h: snapshots of programs for tests, one stack per line, most recent frame first:
 *
 *     SIZE COUNT FUNCTION|FILE:LINE|MODULE; FUNCTION|FILE:LINE|MODULE; …
 *
 * An empty FILE:LINE means that there are no lines. The program itself is /bin/app. */
#ifndef TESTS_SUPPORT_PROGRAM_CASE_H
#define TESTS_SUPPORT_PROGRAM_CASE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/read/read.h"
#include "tests/support/analysis_case.h"

enum { PROGRAM_STRINGS = 512, PROGRAM_FRAMES = 1024, PROGRAM_TRACES = 256 };

struct program_case {
    struct ta__view_string strings[PROGRAM_STRINGS];
    struct ta__view_module modules[PROGRAM_STRINGS];
    struct ta__view_frame frames[PROGRAM_FRAMES];
    struct ta__view_context contexts[PROGRAM_FRAMES + 1];
    struct ta__view_symbol_range ranges[PROGRAM_FRAMES];
    struct ta__view_symbol symbols[PROGRAM_FRAMES];
    struct ta__view_trace traces[PROGRAM_TRACES];
    uint32_t string_count, module_count, frame_count, context_count, trace_count;
};

static inline uint32_t program_string(struct program_case *program, const char *text)
{
    for (uint32_t i = 0; i < program->string_count; i++)
        if (strcmp(program->strings[i].text, text) == 0)
            return i;
    TEST_ASSERT_TRUE(program->string_count < PROGRAM_STRINGS);
    program->strings[program->string_count] = (struct ta__view_string){text, strlen(text)};
    return program->string_count++;
}

static inline uint32_t program_module(struct program_case *program, const char *path)
{
    uint32_t name = program_string(program, path);
    for (uint32_t i = 0; i < program->module_count; i++)
        if (program->modules[i].path == name)
            return i + 1;
    program->modules[program->module_count++] = (struct ta__view_module){.path = name};
    return program->module_count;
}

/* "FUNCTION|FILE:LINE|MODULE", in memory that stays. */
static inline void program_frame(struct program_case *program, char *text)
{
    text += strspn(text, " ");
    char *place = strchr(text, '|'), *module = place != NULL ? strchr(place + 1, '|') : NULL;
    TEST_ASSERT_NOT_NULL_MESSAGE(module, text);
    *place++ = '\0';
    *module++ = '\0';
    char *colon = strrchr(place, ':');
    if (colon != NULL)
        *colon++ = '\0';
    uint32_t frame = program->frame_count++;
    TEST_ASSERT_TRUE(frame < PROGRAM_FRAMES);
    program->frames[frame] = (struct ta__view_frame){.address = 0x1000 + 16 * frame,
                                                     .module = *module != '\0' ? program_module(program, module) : 0};
    program->ranges[frame] = (struct ta__view_symbol_range){frame, 1};
    program->symbols[frame] = (struct ta__view_symbol){.file = program_string(program, colon != NULL ? place : module),
                                                       .line = colon != NULL ? (uint32_t)atoi(colon) : 0,
                                                       .function = program_string(program, text),
                                                       .flags = colon != NULL ? 0u : (uint32_t)TA__SYMBOL_NO_LINES};
}

static inline void program_stack(struct program_case *program, char *line)
{
    char *frames[64], *rest;
    uint32_t depth = 0, parent = 0;
    uint64_t size = strtoull(line, &rest, 10), count = strtoull(rest, &rest, 10);
    for (char *at = strtok(rest, ";"); at != NULL; at = strtok(NULL, ";"))
        frames[depth++] = at;
    while (depth > 0) {
        program_frame(program, frames[--depth]);
        program->contexts[++program->context_count - 1] = (struct ta__view_context){parent, program->frame_count - 1};
        parent = program->context_count - 1;
    }
    TEST_ASSERT_TRUE(program->trace_count < PROGRAM_TRACES);
    program->traces[program->trace_count++] = (struct ta__view_trace){.context = parent,
                                                                      .size = size,
                                                                      .count = count,
                                                                      .allocated_bytes = size,
                                                                      .allocated_blocks = count,
                                                                      .total_nframe = -1};
}

static inline struct ta_snapshot *program_of(const char *stacks)
{
    static struct program_case program;
    char *text = strdup(stacks), *lines[PROGRAM_TRACES];
    size_t count = 0;
    program = (struct program_case){.context_count = 1};
    program_string(&program, "");
    for (char *at = text; at != NULL && *at != '\0';) {
        char *end = strchr(at, '\n');
        if (end != NULL)
            *end++ = '\0';
        if (*at != '\0')
            lines[count++] = at;
        at = end;
    }
    for (size_t i = 0; i < count; i++)
        program_stack(&program, lines[i]);
    uint32_t name = program_string(&program, "/bin/app");
    const struct ta__view view = {.strings = program.strings,
                                  .modules = program.modules,
                                  .frames = program.frames,
                                  .contexts = program.contexts,
                                  .symbol_ranges = program.ranges,
                                  .symbols = program.symbols,
                                  .traces = program.traces,
                                  .program = name,
                                  .string_count = program.string_count,
                                  .module_count = program.module_count,
                                  .frame_count = program.frame_count,
                                  .context_count = program.context_count,
                                  .symbol_count = program.frame_count,
                                  .trace_count = program.trace_count,
                                  .traceback_limit = 100};
    struct ta_snapshot *snapshot = ta__snapshot_from_view(&view, NULL);
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    free(text);
    return snapshot;
}

#endif
