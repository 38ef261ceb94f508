/* report_sources.c: the lines of sources that a report shows: those around the lines of one's own code that hold or held
 * most, as far as the files can be read and there is room. See report.h. */
#include "analysis/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/arrays.h"
#include "analysis/exchange/json.h"
#include "analysis/failure.h"
#include "analysis/number_sort.h"

enum { AROUND = 8, FILE_MOST = 8 << 20 };

/* A file of the report's texts. */
struct source {
    struct ta__text text; /* its contents, empty when it cannot be read */
    uint32_t *starts;     /* by line, from 0: the offset; one more than there are lines */
    unsigned char *wanted;
    uint32_t line_count;
    int is_read;
};

static void read_file(struct ta__text *text, const char *path)
{
    struct stat status;
    char piece[65536];
    size_t length;
    FILE *file =
        stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= FILE_MOST ? fopen(path, "re") : NULL;
    if (file == NULL)
        return;
    while ((length = fread(piece, 1, sizeof piece, file)) > 0)
        ta__text_add(text, piece, length);
    fclose(file);
}

static int find_lines(struct source *source)
{
    const struct ta__text *text = &source->text;
    size_t count = 1;
    for (size_t i = 0; i < text->length; i++)
        count += text->bytes[i] == '\n';
    source->starts = ta__new_array(count + 1, sizeof *source->starts);
    source->wanted = ta__new_array(count + 1, 1);
    if (source->starts == NULL || source->wanted == NULL)
        return -1;
    for (size_t i = 0; i < text->length; i++)
        if (text->bytes[i] == '\n')
            source->starts[++source->line_count] = (uint32_t)i + 1;
    if (text->length > 0 && text->bytes[text->length - 1] != '\n')
        source->starts[++source->line_count] = (uint32_t)text->length + 1;
    return 0;
}

static int open_source(struct source *source, const struct ta__report_tables *tables, uint32_t file)
{
    const struct ta__report_text *name = &tables->texts[file];
    if (source->is_read)
        return 0;
    source->is_read = 1;
    char *path = ta__new_array(name->length + 1, 1);
    if (path == NULL)
        return -1;
    memcpy(path, tables->bytes.bytes + name->offset, name->length);
    if (strlen(path) == name->length)
        read_file(&source->text, path);
    free(path);
    return find_lines(source);
}

static uint32_t line_length(const struct source *source, uint32_t line)
{
    return source->starts[line + 1] - source->starts[line];
}

/* The lines around `line` (from 1) as far as `room` allows; what is left of it. */
static size_t want_lines(struct source *source, uint32_t line, size_t room)
{
    uint32_t first = line > AROUND ? line - AROUND : 1, last = line + AROUND;
    if (line > source->line_count)
        return room;
    if (last > source->line_count)
        last = source->line_count;
    for (uint32_t i = first - 1; i < last; i++)
        if (!source->wanted[i] && line_length(source, i) <= room) {
            source->wanted[i] = 1;
            room -= line_length(source, i);
        }
    return room;
}

/* ---- which lines ---- */

/* What every frame holds, held at the peak or is called by, all together: only to tell which are more important. */
static uint64_t *weigh_frames(const struct ta__report *report)
{
    const struct ta__report_tables *tables = &report->tables;
    uint64_t *nodes = ta__new_array(tables->node_list.count, sizeof *nodes);
    uint64_t *frames = ta__new_array(tables->frame_list.count, sizeof *frames);
    for (size_t i = 0; i < tables->trace_list.count && nodes != NULL; i++)
        nodes[tables->traces[i].node] += tables->traces[i].peak;
    for (size_t i = 0; i < report->change_count && nodes != NULL; i++)
        nodes[tables->traces[report->changes[i].trace].node] += (uint64_t)report->changes[i].size;
    for (size_t i = tables->node_list.count; nodes != NULL && frames != NULL && i-- > 1;) {
        frames[tables->nodes[i].frame] += nodes[i];
        nodes[tables->nodes[i].parent] += nodes[i];
    }
    free(nodes);
    return frames;
}

static int want_all(const struct ta__report *report, struct source *sources, size_t room)
{
    const struct ta__report_tables *tables = &report->tables;
    size_t count = tables->frame_list.count;
    uint64_t *weights = weigh_frames(report);
    struct ta__numbered *order = ta__new_array(count, sizeof *order);
    int status = weights == NULL || order == NULL ? -1 : 0;
    for (size_t i = 0; i < count && status == 0; i++)
        order[i] = (struct ta__numbered){~weights[i], 0, (uint32_t)i};
    if (status == 0)
        status = ta__sort_numbered(order, count);
    for (size_t i = 0; i < count && status == 0 && room > 0; i++) {
        const struct ta__report_frame *frame = &tables->frames[order[i].number];
        if ((frame->flags & TA__REPORT_FRAME_OWN) == 0 || frame->line == 0)
            continue;
        status = open_source(&sources[frame->file], tables, frame->file);
        if (status == 0)
            room = want_lines(&sources[frame->file], frame->line, room);
    }
    free(weights);
    free(order);
    return status;
}

/* ---- as JSON ---- */

/* [[LINE, "TEXT"], …]: ranges of lines without a gap. */
static void add_ranges(struct ta__text *json, const struct source *source)
{
    int is_first = 1;
    for (uint32_t line = 0, end; line < source->line_count; line = end) {
        for (end = line; end < source->line_count && source->wanted[end]; end++)
            continue;
        if (end == line) {
            end++;
            continue;
        }
        ta__text_add_format(json, "%s[%u,", is_first ? "" : ",", line + 1);
        ta__json_add_string(json, source->text.bytes + source->starts[line],
                            source->starts[end] - source->starts[line] - 1);
        ta__text_add(json, "]", 1);
        is_first = 0;
    }
}

static int is_wanted(const struct source *source)
{
    return source->line_count > 0 && memchr(source->wanted, 1, source->line_count) != NULL;
}

int ta__report_sources(struct ta__text *json, const struct ta__report *report, size_t most_bytes)
{
    const struct ta__report_tables *tables = &report->tables;
    size_t count = tables->text_list.count;
    struct source *sources = ta__new_array(count, sizeof *sources);
    int status = sources == NULL ? -1 : want_all(report, sources, most_bytes), is_first = 1;
    ta__text_add(json, "{", 1);
    for (size_t i = 0; i < count && status == 0; i++) {
        if (!is_wanted(&sources[i]))
            continue;
        ta__text_add_string(json, is_first ? "" : ",");
        ta__json_add_string(json, tables->bytes.bytes + tables->texts[i].offset, tables->texts[i].length);
        ta__text_add(json, ":[", 2);
        add_ranges(json, &sources[i]);
        ta__text_add(json, "]", 1);
        is_first = 0;
    }
    ta__text_add(json, "}", 1);
    for (size_t i = 0; i < count && sources != NULL; i++) {
        ta__text_free(&sources[i].text);
        free(sources[i].starts);
        free(sources[i].wanted);
    }
    free(sources);
    return status != 0 ? -1 : json->failed ? ta__fail_memory() : 0;
}
