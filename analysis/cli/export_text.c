/* export_text.c: snapshots as text for other programs: folded stacks, speedscope's JSON, CSV, JSON lines. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/calltree.h"
#include "analysis/cli/cli.h"
#include "analysis/cli/exports.h"

/* ---- what is made from the tree ---- */

/* What a node holds besides its children. */
static int64_t own_value(const struct cli_calltree *tree, size_t index)
{
    int64_t value = tree->nodes[index].value;
    for (uint32_t child = tree->nodes[index].child; child != 0; child = tree->nodes[child].sibling)
        value -= tree->nodes[child].value;
    return value;
}

/* The nodes from the outermost call to `index`, without the root. */
static size_t path_to(const struct cli_calltree *tree, size_t index, uint32_t **path, size_t *room)
{
    size_t length = 0;
    for (size_t at = index; at != 0; at = tree->nodes[at].parent)
        length++;
    if (length > *room) {
        *room = 2 * length;
        *path = cli_enlarge(*path, *room, sizeof **path);
    }
    size_t place = length;
    for (size_t at = index; at != 0; at = tree->nodes[at].parent)
        (*path)[--place] = (uint32_t)at;
    return length;
}

/* The grammar knows no quoting: ';' separates, a line ends the stack. */
static void print_folded_name(FILE *file, const char *name)
{
    for (; *name != '\0'; name++)
        putc(*name == ';' ? ':' : (unsigned char)*name < 0x20 ? '?' : *name, file);
}

int cli_export_folded(struct ta_snapshot *snapshot, enum ta_order order, FILE *file)
{
    struct cli_calltree tree = {0};
    uint32_t *path = NULL;
    size_t room = 0;
    int result = cli_calltree_add(&tree, snapshot, order, CLI_TOP_DOWN, 0);
    if (result == 0)
        cli_calltree_sort(&tree);
    for (size_t i = 1; result == 0 && i < tree.count; i++) {
        int64_t value = own_value(&tree, i);
        if (value <= 0)
            continue;
        size_t length = path_to(&tree, i, &path, &room);
        for (size_t p = 0; p < length; p++) {
            if (p > 0)
                putc(';', file);
            print_folded_name(file, tree.nodes[path[p]].name);
        }
        fprintf(file, " %" PRId64 "\n", value);
    }
    free(path);
    cli_calltree_free(&tree);
    return result != 0 || ferror(file) ? -1 : 0;
}

static void print_samples(const struct cli_calltree *tree, FILE *file)
{
    uint32_t *path = NULL;
    size_t room = 0;
    const char *comma = "";
    fputs("\"samples\": [", file);
    for (size_t i = 1; i < tree->count; i++) {
        if (own_value(tree, i) <= 0)
            continue;
        size_t length = path_to(tree, i, &path, &room);
        fprintf(file, "%s[", comma);
        for (size_t p = 0; p < length; p++)
            fprintf(file, "%s%u", p > 0 ? "," : "", path[p] - 1);
        putc(']', file);
        comma = ",\n";
    }
    comma = "";
    fputs("],\n\"weights\": [", file);
    for (size_t i = 1; i < tree->count; i++) {
        int64_t value = own_value(tree, i);
        if (value <= 0)
            continue;
        fprintf(file, "%s%" PRId64, comma, value);
        comma = ",";
    }
    putc(']', file);
    free(path);
}

int cli_export_speedscope(struct ta_snapshot *snapshot, enum ta_order order, FILE *file)
{
    struct cli_calltree tree = {0};
    int result = cli_calltree_add(&tree, snapshot, order, CLI_TOP_DOWN, 0);
    if (result != 0) {
        cli_calltree_free(&tree);
        return -1;
    }
    int is_bytes = order == TA_ORDER_DEFAULT || order == TA_ORDER_ALLOCATED_SIZE || order == TA_ORDER_PEAK;
    fputs("{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\", \"exporter\": "
          "\"tracealloc " TRACEALLOC_VERSION "\",\n\"shared\": {\"frames\": [",
          file);
    for (size_t i = 1; i < tree.count; i++) {
        const struct cli_node *node = &tree.nodes[i];
        fputs(i == 1 ? "\n{\"name\": " : ",\n{\"name\": ", file);
        cli_print_json_string(file, node->name, strlen(node->name));
        if (*node->file != '\0') {
            fputs(", \"file\": ", file);
            cli_print_json_string(file, node->file, strlen(node->file));
            fprintf(file, ", \"line\": %u", node->line);
        }
        putc('}', file);
    }
    fprintf(file,
            "]},\n\"profiles\": [{\"type\": \"sampled\", \"name\": \"%s\", \"unit\": \"%s\", \"startValue\": 0, "
            "\"endValue\": %" PRId64 ",\n",
            cli_order_name(order), is_bytes ? "bytes" : "none", tree.nodes[0].value);
    print_samples(&tree, file);
    fputs("}]}\n", file);
    cli_calltree_free(&tree);
    return ferror(file) ? -1 : 0;
}

/* ---- what is made from the traces ---- */

typedef void (*print_trace)(FILE *file, const struct ta_trace *trace, const struct ta_frame *frames, size_t count);

static int each_trace(struct ta_snapshot *snapshot, FILE *file, print_trace print)
{
    long count = ta_snapshot_trace_count(snapshot);
    struct ta_frame *frames = NULL;
    size_t room = 0;
    if (count < 0)
        return -1;
    count += ta_snapshot_gone_trace_count(snapshot);
    for (long i = 0; i < count; i++) {
        struct ta_trace trace;
        struct ta_traceback traceback = ta_snapshot_trace_traceback(snapshot, (size_t)i);
        size_t length = cli_frames(traceback, &frames, &room);
        if (ta_snapshot_trace(snapshot, (size_t)i, &trace) == 0)
            print(file, &trace, frames, length);
    }
    free(frames);
    return ferror(file) ? -1 : 0;
}

static void print_csv_trace(FILE *file, const struct ta_trace *trace, const struct ta_frame *frames, size_t count)
{
    fprintf(file, "%u,%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",\"", trace->domain, trace->thread,
            trace->size, trace->count, trace->allocated_bytes, trace->allocated_blocks, trace->peak_bytes);
    for (size_t i = count; i-- > 0;) {
        char *text = cli_text("%s%s%s:%u%s", frames[i].function, *frames[i].function != '\0' ? " (" : "",
                              frames[i].filename, frames[i].lineno, *frames[i].function != '\0' ? ")" : "");
        for (const char *at = text; *at != '\0'; at++) {
            if (*at == '"')
                putc('"', file);
            putc(*at, file);
        }
        if (i > 0)
            putc(';', file);
        free(text);
    }
    fputs("\"\n", file);
}

int cli_export_csv(struct ta_snapshot *snapshot, FILE *file)
{
    fputs("domain,thread,size,count,allocated_size,allocated_count,peak_size,stack\n", file);
    return each_trace(snapshot, file, print_csv_trace);
}

static void print_json_trace(FILE *file, const struct ta_trace *trace, const struct ta_frame *frames, size_t count)
{
    fprintf(file,
            "{\"domain\": %u, \"thread\": %u, \"size\": %" PRIu64 ", \"count\": %" PRIu64
            ", \"allocated_size\": %" PRIu64 ", \"allocated_count\": %" PRIu64 ", \"peak_size\": %" PRIu64
            ", \"total_nframe\": ",
            trace->domain, trace->thread, trace->size, trace->count, trace->allocated_bytes, trace->allocated_blocks,
            trace->peak_bytes);
    if (trace->total_nframe >= 0)
        fprintf(file, "%" PRId64, trace->total_nframe);
    else
        fputs("null", file);
    fputs(", \"frames\": [", file);
    for (size_t i = count; i-- > 0;) {
        fputs("{\"file\": ", file);
        cli_print_json_string(file, frames[i].filename, frames[i].filename_length);
        fprintf(file, ", \"line\": %u, \"function\": ", frames[i].lineno);
        cli_print_json_string(file, frames[i].function, strlen(frames[i].function));
        fputs(", \"module\": ", file);
        cli_print_json_string(file, frames[i].module, strlen(frames[i].module));
        fprintf(file, ", \"address\": %" PRIu64 ", \"inlined\": %s}%s", frames[i].address,
                frames[i].flags & TA_FRAME_INLINED ? "true" : "false", i > 0 ? ", " : "");
    }
    fputs("]}\n", file);
}

int cli_export_json_lines(struct ta_snapshot *snapshot, FILE *file)
{
    return each_trace(snapshot, file, print_json_trace);
}
