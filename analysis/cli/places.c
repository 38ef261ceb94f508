/* places.c: see places.h. */
#include "analysis/cli/places.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/table.h"
#include "analysis/cli/terminal.h"

static int is_full;
static char *program_path, *program_name; /* the executable, and what it was called by */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

void cli_places_set_full(int full)
{
    is_full = full;
}

/* A process that writes its title over its command, "nginx: worker process", names itself before the colon. */
int cli_called_length(const char *command)
{
    return (int)strcspn(command, " :");
}

void cli_places_set_program(struct ta_snapshot *snapshot)
{
    struct ta_snapshot_info info;
    const char *command = ta_snapshot_metadata(snapshot, "process.command");
    free(program_path);
    free(program_name);
    program_path = program_name = NULL;
    if (command == NULL || *command == '\0' || ta_snapshot_info(snapshot, &info, sizeof info) != 0)
        return;
    char *word = cli_text("%.*s", cli_called_length(command), command);
    program_path = cli_text("%s", info.program);
    program_name = cli_text("%s", last_part(word));
    free(word);
}

static const char *module_name(const char *path)
{
    return program_path != NULL && strcmp(path, program_path) == 0 ? program_name : last_part(path);
}

/* "libsqlite3.so.0+0x1c480": what a function without a name is called names its module already. */
int cli_frame_is_unnamed(const struct ta_frame *frame)
{
    const char *module = last_part(frame->module);
    size_t length = strlen(module);
    return frame->lineno == 0 && length > 0 && strncmp(frame->function, module, length) == 0 &&
           strncmp(frame->function + length, "+0x", 3) == 0;
}

/* "redis-server+0x64da0" where the executable behind that name has another one. */
static char *unnamed_text(const char *function)
{
    const char *base = program_path != NULL ? last_part(program_path) : "";
    size_t length = strlen(base);
    if (length > 0 && strncmp(function, base, length) == 0 && strncmp(function + length, "+0x", 3) == 0)
        return cli_text("%s%s", program_name, function + length);
    return cli_text("%s", function);
}

void cli_place_text(const struct ta_frame *frame, char *text, size_t size)
{
    char path[PATH_MAX];
    if (cli_frame_is_unnamed(frame)) {
        char *name = unnamed_text(frame->function);
        snprintf(text, size, "%s", name);
        free(name);
        return;
    }
    if (is_full)
        snprintf(path, sizeof path, "%s", frame->filename);
    else if (frame->lineno == 0 && strcmp(frame->filename, frame->module) == 0)
        snprintf(path, sizeof path, "%s", module_name(frame->filename));
    else if (program_path != NULL && strcmp(frame->filename, program_path) == 0)
        snprintf(path, sizeof path, "%.*s%s", (int)(last_part(program_path) - program_path), program_path,
                 program_name);
    else
        cli_short_path(frame->filename, path, sizeof path);
    if (frame->lineno > 0)
        snprintf(text, size, "%s:%u", path, frame->lineno);
    else
        snprintf(text, size, "%s", path);
}

char *cli_function_name(const char *function)
{
    if (is_full)
        return cli_text("%s", function);
    size_t length = ta_function_text(function, NULL, 0);
    char *text = cli_allocate(length + 1, 1);
    ta_function_text(function, text, length + 1);
    char *called = unnamed_text(text);
    free(text);
    return called;
}

char *cli_frame_name(const struct ta_frame *frame)
{
    return cli_function_name(cli_frame_is_unnamed(frame) ? "" : frame->function);
}

int cli_frame_is_allocator(const struct ta_frame *frame)
{
    return strncmp(last_part(frame->module), "libtracealloc.so", 16) == 0 || strncmp(frame->function, "ta__", 4) == 0;
}

char *cli_source_line(const struct ta_frame *frame)
{
    if (frame->lineno == 0)
        return NULL;
    char **lines = ta_traceback_format(ta_traceback_of(frame, 1, -1), 1, 0);
    char *source =
        lines != NULL && lines[0] != NULL && lines[1] != NULL ? cli_text("%s", lines[1] + strspn(lines[1], " ")) : NULL;
    free(lines);
    return source;
}

/* ---- stacks ---- */

/* One frame of a stack: "PLACE  FUNCTION". */
static void note_frame(struct cli_table *table, const struct ta_frame *frame, const char *after)
{
    char place[PATH_MAX + 16], *name = cli_frame_name(frame);
    cli_place_text(frame, place, sizeof place);
    cli_table_note(table, "%s%s%s%s", place, *name != '\0' ? "  " : "", name, after);
    free(name);
}

void cli_note_stack(struct cli_table *table, struct ta_traceback traceback)
{
    size_t length = ta_traceback_length(traceback);
    struct ta_frame *frames = cli_allocate(length, sizeof *frames);
    struct ta_fold *items = cli_allocate(length, sizeof *items);
    char after[64];
    ta_traceback_frames(traceback, frames, length);
    size_t count = is_full ? 0 : ta_traceback_fold(traceback, items, length);
    int is_told = count == 0 || items[count - 1].times == 1;
    for (size_t i = count - (size_t)(count > 0 && is_told); i-- > 0;) {
        const struct ta_frame *last = &frames[items[i].first + items[i].length * items[i].times - 1];
        for (size_t f = 0; f < items[i].length; f++) {
            *after = '\0';
            if (items[i].times > 1 && items[i].length == 1)
                snprintf(after, sizeof after, " ×%zu", items[i].times);
            else if (items[i].times > 1 && f + 1 == items[i].length)
                snprintf(after, sizeof after, "  (these %zu calls ×%zu)", items[i].length, items[i].times);
            note_frame(table, last - f, after);
        }
    }
    for (size_t i = length > 0 ? length - 1 : 0; count == 0 && i-- > 0;)
        note_frame(table, &frames[i], "");
    free(items);
    free(frames);
}

char *cli_stack_text(struct ta_traceback traceback)
{
    char *text = NULL;
    size_t size = 0, length = ta_traceback_length(traceback);
    FILE *stream = open_memstream(&text, &size);
    struct ta_frame frame;
    if (stream == NULL)
        return cli_text("%s", "");
    for (size_t i = 0; i < length && ta_traceback_frame(traceback, -1 - (int64_t)i, &frame) == 0; i++)
        fprintf(stream, "%s%s:%u%s%s", i > 0 ? ";" : "", frame.filename, frame.lineno,
                *frame.function != '\0' ? " " : "", frame.function);
    fclose(stream);
    return text;
}
