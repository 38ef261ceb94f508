/* cmd_biggest.c: tracealloc biggest — the stack that holds most, frame by frame with its source lines. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/places.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/top.h"

/* As tracemalloc writes it; where the line is not known, the function's name says more than the line 0. */
static int print_frame(const struct ta_frame *frame)
{
    char **lines = ta_traceback_format(ta_traceback_of(frame, 1, -1), TA_FORMAT_ALL, 0);
    if (lines == NULL)
        return -1;
    for (size_t i = 0; lines[i] != NULL; i++) {
        cli_print_text(lines[i], strlen(lines[i]));
        if (i == 0 && frame->lineno == 0 && *frame->function != '\0') {
            char *name = cli_function_name(frame->function);
            fputs(", in ", stdout);
            cli_print_text(name, strlen(name));
            free(name);
        }
        putchar('\n');
    }
    free(lines);
    return 0;
}

static int print_item(const struct ta_fold *item, const struct ta_frame *frames)
{
    for (size_t i = 0; i < item->length; i++)
        if (print_frame(&frames[item->first + i]) != 0)
            return -1;
    if (item->times > 1 && item->length > 1)
        printf("    (these %zu calls ×%zu)\n", item->length, item->times);
    else if (item->times > 1)
        printf("    (×%zu)\n", item->times);
    return 0;
}

static int print_stack(const struct ta_statistics *statistics, size_t index, int is_full)
{
    struct ta_statistic statistic;
    ta_statistics_get(statistics, index, &statistic);
    printf("%" PRIu64 " memory blocks: %.1f KiB\n", statistic.count, (double)statistic.size / 1024);
    size_t length = ta_traceback_length(statistic.traceback);
    struct ta_frame *frames = cli_allocate(length, sizeof *frames);
    struct ta_fold *items = cli_allocate(length, sizeof *items);
    ta_traceback_frames(statistic.traceback, frames, length);
    size_t count = is_full ? 0 : ta_traceback_fold(statistic.traceback, items, length);
    if (count == 0) {
        items[0] = (struct ta_fold){0, length, 1};
        count = length > 0;
    }
    int status = 0;
    for (size_t i = 0; status == 0 && i < count; i++)
        status = print_item(&items[i], frames);
    free(items);
    free(frames);
    return status;
}

/* ---- single blocks ---- */

static int compare_blocks(const void *a, const void *b)
{
    const struct ta_block *left = a, *right = b;
    if (left->size != right->size)
        return left->size < right->size ? 1 : -1;
    return left->address < right->address ? -1 : left->address > right->address;
}

static int print_block(struct ta_snapshot *snapshot, const struct ta_block *block)
{
    printf("0x%" PRIx64 ": %" PRIu64 " byte%s%s\n", block->address, block->size, cli_s(block->size),
           block->trace < 0 ? ", without a stack: not traced" : "");
    struct ta_traceback traceback = {0};
    if (block->trace >= 0)
        traceback = ta_snapshot_trace_traceback(snapshot, (size_t)block->trace);
    size_t length = block->trace >= 0 ? ta_traceback_length(traceback) : 0;
    for (size_t i = 0; i < length; i++) {
        struct ta_frame frame;
        if (ta_traceback_frame(traceback, (int64_t)i, &frame) != 0 || print_frame(&frame) != 0)
            return -1;
    }
    return 0;
}

static void print_block_for_machines(struct ta_snapshot *snapshot, const struct ta_block *block, int as_json)
{
    char *stack = block->trace >= 0 ? cli_stack_text(ta_snapshot_trace_traceback(snapshot, (size_t)block->trace))
                                    : cli_text("%s", "");
    if (as_json) {
        printf("{\"address\": \"0x%" PRIx64 "\", \"size\": %" PRIu64 ", \"stack\": ", block->address, block->size);
        cli_print_json_string(stdout, stack, strlen(stack));
        putchar('}');
    } else {
        printf("0x%" PRIx64 ",%" PRIu64 ",\"", block->address, block->size);
        for (const char *at = stack; *at != '\0'; at++)
            printf(*at == '"' ? "\"\"" : "%c", *at);
        puts("\"");
    }
    free(stack);
}

static int print_blocks(struct ta_snapshot *snapshot, const struct cli_options *options)
{
    long count = ta_snapshot_block_count(snapshot);
    size_t rows = cli_rows(&(struct cli_options){.limit = options->limit}, 1);
    if (count < 0)
        return cli_library_error(options->operands[0]);
    struct ta_block *blocks = cli_allocate((size_t)count, sizeof *blocks);
    for (long i = 0; i < count; i++)
        ta_snapshot_block(snapshot, (size_t)i, &blocks[i]);
    qsort(blocks, (size_t)count, sizeof *blocks, compare_blocks);
    fputs(options->json ? "[" : options->csv ? "address,size,stack\n" : "", stdout);
    int status = CLI_OK;
    for (size_t i = 0; i < rows && i < (size_t)count && status == CLI_OK; i++) {
        if (options->json)
            fputs(i == 0 ? "\n" : ",\n", stdout);
        if (options->json || options->csv)
            print_block_for_machines(snapshot, &blocks[i], options->json);
        else if (print_block(snapshot, &blocks[i]) != 0)
            status = cli_library_error(options->operands[0]);
    }
    fputs(options->json ? "\n]\n" : "", stdout);
    free(blocks);
    return status;
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_biggest,
                  CLI_LIMIT | CLI_SORT | CLI_FILTERS | CLI_JSON | CLI_CSV | CLI_BLOCKS | CLI_FULL, 1, 1, argc,
                  argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    struct ta_snapshot *snapshot = cli_load_filtered(options.operands[0], &options);
    if (snapshot == NULL)
        return CLI_TROUBLE;
    if (options.blocks) {
        int printed = print_blocks(snapshot, &options), finished = cli_finish_output();
        ta_snapshot_free(snapshot);
        return printed > finished ? printed : finished;
    }
    /* Of programs functions count where there are no lines; of traces that were imported the frames are all there is. */
    struct ta_module_info module;
    const char *key = ta_snapshot_module(snapshot, 0, &module, sizeof module) == 0 ? "stack" : "traceback";
    struct ta_statistics *statistics = cli_group(snapshot, options.operands[0], key, 0, options.order);
    int status = statistics != NULL ? CLI_OK : CLI_TROUBLE;
    size_t rows = cli_rows(&(struct cli_options){.limit = options.limit}, 1);
    if (status == CLI_OK && options.json)
        status = cli_print_statistics_json(statistics, rows);
    else if (status == CLI_OK && options.csv)
        cli_print_statistics_csv(statistics, rows, 1);
    else
        for (size_t i = 0; status == CLI_OK && i < rows && i < ta_statistics_count(statistics); i++)
            status = print_stack(statistics, i, options.full) == 0 ? CLI_OK : cli_library_error(options.operands[0]);
    if (status == CLI_OK)
        status = cli_finish_output();
    ta_statistics_free(statistics);
    ta_snapshot_free(snapshot);
    return status;
}

const struct cli_command cli_biggest = {
    .name = "biggest",
    .arguments = "FILE[@ENTRY] [-n N] [--blocks | --sort ORDER] [--where FILTER] [--json | --csv]",
    .summary = "show the stack that holds most memory, with its source lines",
    .help = "  -n N             the N largest stacks: 1 unless given, 0 = all\n"
            "  --sort ORDER     live (default), count, total, calls, temporary or peak\n" CLI_HELP_FILTERS
            "  --blocks         the largest single blocks, where the snapshot has them (tracealloc take)\n"
            "  --full-names     names as they are, recursion call by call, and what starts the program\n"
            "  --json           a list of {frames, size, count, str}; of blocks {address, size, stack}\n"
            "  --csv            the same numbers with a heading, the stack in one field\n"
            "\n"
            "  tracealloc biggest server.ta\n",
    .run = run,
};
