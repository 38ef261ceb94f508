/* cmd_take.c: tracealloc take — a snapshot of a running process or of a core, from outside. */
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/inside.h"
#include "analysis/cli/terminal.h"

/* As tracealloc run names its recordings; %p in a name that was given is the process. */
static char *name_for(const struct cli_inside *inside, const char *what, const struct ta_image_info *info)
{
    if (inside->output == NULL)
        return info->is_core ? cli_text("%s.ta", cli_base_name(what))
                             : cli_text("tracealloc.%s.%u.ta", cli_base_name(info->program), info->pid);
    const char *place = strstr(inside->output, "%p");
    if (place == NULL)
        return cli_text("%s", inside->output);
    return cli_text("%.*s%u%s", (int)(place - inside->output), inside->output, info->pid, place + 2);
}

static void print_json(const struct ta_image_info *info, const char *path)
{
    printf("{\"process\": %u, \"program\": ", info->pid);
    cli_print_json_string(stdout, info->program, strlen(info->program));
    fputs(", \"file\": ", stdout);
    cli_print_json_string(stdout, path, strlen(path));
    printf(", \"blocks\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"untraced_blocks\": %" PRIu64
           ", \"untraced_bytes\": %" PRIu64 ", \"held_ns\": %" PRIu64 "}",
           info->blocks, info->bytes, info->untraced_blocks, info->untraced_bytes, info->held_ns);
}

static void print_text(const struct ta_image_info *info, const char *path)
{
    char bytes[32];
    ta_size_text((double)info->bytes, 0, bytes, sizeof bytes);
    printf("tracealloc: %s in %" PRIu64 " block%s of %s %u in %s", bytes, info->blocks, cli_s(info->blocks),
           info->is_core ? "the core of process" : "process", info->pid, path);
    if (info->held_ns > 0)
        printf(" (held for %.0f ms)", (double)info->held_ns / 1e6);
    putchar('\n');
    if (!info->is_tracing)
        printf("tracealloc: nothing is traced in it: blocks and sizes are there, stacks are not\n");
}

/* For whoever asks the file later: tracealloc memory FILE. */
static void note_parts(struct ta_image *image)
{
    struct ta_memory_part parts[32];
    size_t count = ta_image_memory_parts(image, parts, sizeof parts / sizeof *parts);
    for (size_t i = 0; i < count; i++) {
        char *key = cli_text("memory.part.%s", parts[i].name), *value = cli_text("%" PRIu64, parts[i].bytes);
        ta_snapshot_set_metadata(ta_image_snapshot(image), key, value);
        free(key);
        free(value);
    }
}

static int take(const struct cli_inside *inside, const char *what, int is_first)
{
    struct ta_image_info info;
    struct ta_image *image =
        cli_inside_open(inside, what, TA_IMAGE_MEMORY | (inside->no_blocks ? 0u : TA_IMAGE_BLOCKS));
    if (image == NULL)
        return CLI_TROUBLE;
    ta_image_get_info(image, &info, sizeof info);
    char *path = name_for(inside, what, &info);
    note_parts(image);
    int status = ta_snapshot_dump(ta_image_snapshot(image), path) == 0 ? CLI_OK : cli_error("%s", ta_error_text());
    if (status == CLI_OK && inside->json) {
        fputs(is_first ? "" : ",\n", stdout);
        print_json(&info, path);
    } else if (status == CLI_OK && !inside->quiet) {
        print_text(&info, path);
    }
    free(path);
    ta_image_close(image);
    return status;
}

static int run(int argc, char **argv)
{
    static const int options[] = {INSIDE_OUTPUT, INSIDE_QUIET, INSIDE_JSON, INSIDE_NO_PAUSE, INSIDE_NO_BLOCKS, 0};
    struct cli_inside inside;
    if (cli_inside_parse(&inside, &cli_take, options, 1, INT_MAX, argc, argv) != 0)
        return CLI_TROUBLE;
    if (inside.help)
        return cli_finish_output();
    if (inside.operand_count > 1 && inside.output != NULL && strstr(inside.output, "%p") == NULL)
        return cli_error("take: several processes want a name with %%p in it, not '%s'", inside.output);
    int status = CLI_OK, taken = 0;
    fputs(inside.json ? "[" : "", stdout);
    for (int i = 0; i < inside.operand_count; i++) {
        int one = take(&inside, inside.operands[i], taken == 0);
        taken += one == CLI_OK;
        status = one > status ? one : status;
    }
    fputs(inside.json ? "]\n" : "", stdout);
    int output = cli_finish_output();
    return status > output ? status : output;
}

const struct cli_command cli_take = {
    .name = "take",
    .arguments = "PID|CORE… [-o OUT.ta] [--no-blocks] [--no-pause] [--json]",
    .summary = "take a snapshot of a running process or a core, from outside",
    .help = "  -o FILE          the recording: tracealloc.PROGRAM.PID.ta or CORE.ta unless given; %p is the process\n"
            "  --no-blocks      only what stacks hold together, not each block\n"
            "  --no-pause       do not hold the process still: figures may be a moment apart\n"
            "  -q, --quiet      do not say what was taken\n"
            "  --json           the same as {process, program, file, blocks, bytes, …} for each\n"
            "\n"
            "The process must have been started with tracealloc (run, LD_PRELOAD or linked); nothing runs inside it.\n"
            "A core may be compressed by gzip, zstd or lz4. docs/inside.md says more.\n"
            "\n"
            "  tracealloc take 1234 -o now.ta\n"
            "  tracealloc take core.1234.zst\n",
    .run = run,
};
