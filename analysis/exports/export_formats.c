/* export_formats.c: every way to write a snapshot, by name, and where it can be written to. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "base/bytes.h"
#include "tracealloc/export.h"

/* ---- where it goes ---- */

int ta_write_to_buffer(void *user, const char *text, size_t length)
{
    struct ta_buffer *buffer = user;
    if (ta__grow(&buffer->bytes, &buffer->capacity, buffer->length + length + 1, 1) != 0)
        return -1;
    memcpy(buffer->bytes + buffer->length, text, length);
    buffer->length += length;
    buffer->bytes[buffer->length] = '\0';
    return 0;
}

int ta_write_to_stream(void *user, const char *text, size_t length)
{
    return fwrite(text, 1, length, user) == length ? 0 : ta__fail("cannot write: %s", strerror(errno));
}

/* ---- formats ---- */

enum { TEXT_ROWS = 25 };

static int export_text(const struct ta_snapshot *snapshot, ta_write_function write, void *user)
{
    return ta_snapshot_export_text(snapshot, TEXT_ROWS, write, user);
}

static int export_flame(const struct ta_calltree *tree, ta_write_function write, void *user)
{
    return ta_calltree_export_flame(tree, NULL, 0, write, user);
}

static const struct format {
    struct ta_export_format face;
    int (*of_snapshot)(const struct ta_snapshot *, ta_write_function, void *); /* or else: */
    int (*of_tree)(const struct ta_calltree *, ta_write_function, void *);
} formats[] = {
    {{"pprof", ".pb.gz", "application/octet-stream", "a compressed profile for pprof: live and total, blocks and bytes",
      0},
     ta_snapshot_export_pprof,
     NULL},
    {{"folded", ".folded", "text/plain; charset=utf-8", "one line per stack for flame graph tools", 1},
     NULL,
     ta_calltree_export_folded},
    {{"speedscope", ".speedscope.json", "application/json", "JSON for speedscope", 1},
     NULL,
     ta_calltree_export_speedscope},
    {{"flame", ".svg", "image/svg+xml", "a flame graph for a browser", 1}, NULL, export_flame},
    {{"text", ".txt", "text/plain; charset=utf-8", "a report in words", 0}, export_text, NULL},
    {{"csv", ".csv", "text/csv; charset=utf-8", "one line per stack with its numbers", 0},
     ta_snapshot_export_csv,
     NULL},
    {{"jsonl", ".jsonl", "application/jsonl", "the same as JSON, one object per line", 0},
     ta_snapshot_export_jsonl,
     NULL},
    {{"json", ".json", "application/json", "traces with their frames, as tracealloc import reads them", 0},
     ta_snapshot_export_json,
     NULL},
    {{"python", ".pickle", "application/octet-stream", "a file for tracemalloc.Snapshot.load of Python", 0},
     ta_snapshot_export_python,
     NULL},
};
#define FORMATS (sizeof formats / sizeof *formats)

int ta_export_format_get(size_t index, struct ta_export_format *format, size_t size)
{
    if (index >= FORMATS)
        return ta__fail("there is no export format %zu", index);
    ta__fill(format, size, &formats[index].face, sizeof *format);
    return 0;
}

int ta_snapshot_export(const struct ta_snapshot *snapshot, const char *name, enum ta_order order,
                       ta_write_function write, void *user)
{
    const struct format *format = formats;
    while (format < formats + FORMATS && strcmp(format->face.name, name) != 0)
        format++;
    if (format == formats + FORMATS)
        return ta__fail("unknown export format '%s'", name);
    if (format->of_snapshot != NULL)
        return format->of_snapshot(snapshot, write, user);
    struct ta_calltree *tree = ta_calltree_create(order, 0);
    int status = tree == NULL ? -1 : ta_calltree_add(tree, snapshot, 0);
    if (status == 0)
        status = format->of_tree(tree, write, user);
    ta_calltree_free(tree);
    return status;
}
