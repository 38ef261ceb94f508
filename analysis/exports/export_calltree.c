/* export_calltree.c: a calling tree as text for other programs: folded stacks, speedscope's JSON. */
#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/calltree/calltree.h"
#include "analysis/exchange/json.h"
#include "analysis/text_output.h"
#include "tracealloc.h"

/* The grammar knows no quoting: ';' separates, a line ends the stack. */
static void add_folded_name(struct ta__text *text, const char *name)
{
    for (size_t sound; *name != '\0'; name += sound) {
        for (sound = 0; (unsigned char)name[sound] >= 0x20 && name[sound] != ';';)
            sound++;
        ta__text_add(text, name, sound);
        if (name[sound] == '\0')
            return;
        ta__text_add(text, name[sound++] == ';' ? ":" : "?", 1);
    }
}

static uint32_t *new_path(const struct ta_calltree *tree)
{
    return ta__new_array(ta__calltree_depth(tree), sizeof(uint32_t));
}

int ta_calltree_export_folded(const struct ta_calltree *tree, ta_write_function write, void *user)
{
    struct ta__output output = {.write = write, .user = user};
    uint32_t *path = new_path(tree);
    if (path == NULL)
        return -1;
    for (size_t i = 1; i < tree->count && !output.failed; i++) {
        int64_t value = ta__calltree_own_value(tree, i);
        if (value <= 0)
            continue;
        ta__calltree_path(tree, i, path);
        for (uint32_t d = 0; d < tree->nodes[i].depth; d++) {
            if (d > 0)
                ta__output_add(&output, ";", 1);
            add_folded_name(&output.pending, tree->nodes[path[d]].name);
        }
        ta__text_add(&output.pending, " ", 1);
        ta__text_add_wide(&output.pending, (ta__wide)value);
        ta__output_add(&output, "\n", 1);
    }
    free(path);
    return ta__output_finish(&output);
}

/* ---- speedscope ---- */

static void add_frames(struct ta__output *output, const struct ta_calltree *tree)
{
    struct ta__text *text = &output->pending;
    for (size_t i = 1; i < tree->count; i++) {
        const struct ta_calltree_node *node = &tree->nodes[i];
        ta__output_add_string(output, i == 1 ? "\n{\"name\": " : ",\n{\"name\": ");
        ta__json_add_string(text, node->name, strlen(node->name));
        if (*node->file != '\0') {
            ta__text_add_string(text, ", \"file\": ");
            ta__json_add_string(text, node->file, strlen(node->file));
            ta__text_add_format(text, ", \"line\": %u", node->line);
        }
        ta__text_add(text, "}", 1);
    }
}

static void add_samples(struct ta__output *output, const struct ta_calltree *tree, uint32_t *path)
{
    const char *comma = "";
    ta__output_add_string(output, "\"samples\": [");
    for (size_t i = 1; i < tree->count; i++) {
        if (ta__calltree_own_value(tree, i) <= 0)
            continue;
        ta__calltree_path(tree, i, path);
        ta__output_add_string(output, comma);
        for (uint32_t d = 0; d < tree->nodes[i].depth; d++)
            ta__text_add_format(&output->pending, "%s%u", d > 0 ? "," : "[", path[d] - 1);
        ta__output_add(output, "]", 1);
        comma = ",\n";
    }
    comma = "";
    ta__output_add_string(output, "],\n\"weights\": [");
    for (size_t i = 1; i < tree->count; i++) {
        int64_t value = ta__calltree_own_value(tree, i);
        if (value <= 0)
            continue;
        ta__output_add_string(output, comma);
        ta__text_add_wide(&output->pending, (ta__wide)value);
        comma = ",";
    }
    ta__output_add_string(output, "]");
}

int ta_calltree_export_speedscope(const struct ta_calltree *tree, ta_write_function write, void *user)
{
    struct ta__output output = {.write = write, .user = user};
    uint32_t *path = new_path(tree);
    if (path == NULL)
        return -1;
    ta__output_add_string(&output, "{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\", "
                                   "\"exporter\": \"tracealloc " TRACEALLOC_VERSION "\",\n\"shared\": {\"frames\": [");
    add_frames(&output, tree);
    ta__output_add_string(&output, "]},\n\"profiles\": [{\"type\": \"sampled\", \"name\": \"");
    ta__output_add_string(&output, ta__order_words(tree->order));
    ta__output_add_string(&output,
                          ta__order_is_bytes(tree->order) ? "\", \"unit\": \"bytes\"" : "\", \"unit\": \"none\"");
    ta__output_add_string(&output, ", \"startValue\": 0, \"endValue\": ");
    ta__text_add_wide(&output.pending, (ta__wide)tree->nodes[0].value);
    ta__output_add_string(&output, ",\n");
    add_samples(&output, tree, path);
    ta__output_add_string(&output, "}]}\n");
    free(path);
    return ta__output_finish(&output);
}
