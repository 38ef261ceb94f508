/* cmd_flame.c: tracealloc flame — the calling tree as a picture (SVG) for any browser. The picture itself is made by the
 * library (analysis/exports/export_flame.c). */
#include <inttypes.h>
#include <stdlib.h>

#include <tracealloc/export.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/project.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/whole_file.h"

static void value_text(int64_t value, int is_bytes, int sign, char *text, size_t size)
{
    if (is_bytes)
        ta_size_text((double)value, sign, text, size);
    else
        snprintf(text, size, sign ? "%+" PRId64 : "%" PRId64, value);
}

static char *make_title(const struct ta_calltree *tree, const struct cli_options *options)
{
    static const char *const what[] = {
        [TA_ORDER_DEFAULT] = "live bytes",
        [TA_ORDER_COUNT] = "live blocks",
        [TA_ORDER_ALLOCATED_SIZE] = "bytes allocated",
        [TA_ORDER_ALLOCATED_COUNT] = "allocations",
        [TA_ORDER_TEMPORARY] = "blocks that came and went",
        [TA_ORDER_PEAK] = "bytes at the peak",
    };
    struct ta_calltree_node root;
    char value[32], change[32];
    int is_bytes = options->order == TA_ORDER_DEFAULT || options->order == TA_ORDER_ALLOCATED_SIZE ||
                   options->order == TA_ORDER_PEAK;
    if (options->title != NULL)
        return cli_text("%s", options->title);
    ta_calltree_get(tree, 0, &root, sizeof root);
    value_text(root.value, is_bytes, 0, value, sizeof value);
    value_text(root.value - root.old_value, is_bytes, 1, change, sizeof change);
    if (options->operand_count == 2)
        return cli_text("%s against %s: %s, %s (%s)", cli_base_name(options->operands[0]),
                        cli_base_name(options->operands[1]), what[options->order], value, change);
    return cli_text("%s: %s, %s", cli_base_name(options->operands[0]), what[options->order], value);
}

/* The two views of the picture: call by call, and with recursion folded. */
struct trees {
    struct ta_calltree *whole, *folded;
};

static int add_snapshot(struct trees *trees, struct ta_snapshot *snapshot, const char *path, int is_old)
{
    cli_progress_begin("adding up the stacks");
    int result = trees->whole != NULL && ta_calltree_add(trees->whole, snapshot, is_old) != 0;
    if (result == 0 && trees->folded != NULL)
        result = ta_calltree_add(trees->folded, snapshot, is_old);
    cli_progress_end();
    return result != 0 ? cli_library_error(path) : CLI_OK;
}

static int draw(const struct trees *trees, const struct cli_options *options)
{
    struct cli_output output;
    const struct ta_calltree *tree = trees->whole;
    if (cli_output_open(&output, options->output) != CLI_OK)
        return CLI_TROUBLE;
    char *title = make_title(tree, options);
    const struct ta_flame_options flame = {.title = title,
                                           .minimum = options->minimum > 0    ? options->minimum / 100
                                                      : options->minimum == 0 ? -1
                                                                              : 0,
                                           .folded = trees->folded};
    int status = CLI_OK;
    if (ta_calltree_export_flame(tree, &flame, sizeof flame, cli_output_write, &output) != 0)
        status = cli_output_trouble(&output, options->operands[0]);
    free(title);
    return cli_output_close(&output, status);
}

static int make(const struct cli_options *options, struct ta_snapshot *snapshot, struct ta_snapshot *old)
{
    unsigned flags = (options->bottom_up ? TA_CALLTREE_FROM_LEAVES : 0u) | (options->collapse ? TA_CALLTREE_OWN : 0u);
    if (options->collapse && cli_use_rules(options, snapshot, old) != CLI_OK)
        return CLI_TROUBLE;
    struct trees trees = {.whole = ta_calltree_create(options->order, flags)};
    if (!options->full)
        trees.folded = ta_calltree_create(options->order, flags | TA_CALLTREE_FOLD);
    int status = trees.whole == NULL || (trees.folded == NULL && !options->full) ? cli_library_error("flame") : CLI_OK;
    if (status == CLI_OK)
        status = add_snapshot(&trees, snapshot, options->operands[0], 0);
    if (status == CLI_OK && old != NULL)
        status = add_snapshot(&trees, old, options->operands[1], 1);
    if (status == CLI_OK)
        status = draw(&trees, options);
    ta_calltree_free(trees.whole);
    ta_calltree_free(trees.folded);
    return status;
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_flame,
                  CLI_OUTPUT | CLI_SORT | CLI_FILTERS | CLI_BOTTOM_UP | CLI_TITLE | CLI_MINIMUM | CLI_OWN |
                      CLI_COLLAPSE | CLI_FULL,
                  1, 2, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    if (options.order > TA_ORDER_PEAK)
        return cli_error(
            "flame: --sort %s: for two files the colours tell what grew; choose live, count, total, calls, "
            "temporary or peak",
            options.sort);
    struct ta_snapshot *snapshot = cli_load_filtered(options.operands[0], &options), *old = NULL;
    if (snapshot != NULL && options.operand_count == 2)
        old = cli_load_filtered(options.operands[1], &options);
    int status =
        snapshot == NULL || (options.operand_count == 2 && old == NULL) ? CLI_TROUBLE : make(&options, snapshot, old);
    ta_snapshot_free(snapshot);
    ta_snapshot_free(old);
    return status;
}

const struct cli_command cli_flame = {
    .name = "flame",
    .arguments = "FILE[@ENTRY] [OLD[@ENTRY]] [-o OUT.svg] [--collapse] [--sort ORDER] [--where FILTER]",
    .summary = "draw a flame graph (SVG) for a browser; with two files one of the differences",
    .help =
        "  -o FILE          the picture; standard output unless given\n" CLI_HELP_COLLAPSE
        "  --sort ORDER     what the widths are: live (default), count, total, calls, temporary or peak\n"
        "  --bottom-up      begin with the functions that asked for the memory\n"
        "  --min PERCENT    leave out what is narrower: 0.02 unless given\n"
        "  --title TEXT     the heading\n" CLI_HELP_OWN CLI_HELP_FILTERS
        "  --full-names     recursion call by call only, and what starts the program\n"
        "\n"
        "In the browser: the picture fills the window. A click zooms, the field searches, Esc shows the whole picture\n"
        "again. Colours are modules; where there are several domains a click makes them domains. Recursion is folded,\n"
        "and a click unfolds it. Of two files red is what grew, blue what shrank.\n"
        "\n"
        "  tracealloc flame server.ta server.ta@0 -o growth.svg\n",
    .run = run,
};
