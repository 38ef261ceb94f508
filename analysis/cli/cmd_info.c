/* cmd_info.c: tracealloc info — what is in a recording besides the traces. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/end_words.h"
#include "analysis/cli/table.h"
#include "analysis/cli/terminal.h"

static const struct cli_column columns[] = {
    {"name", "", CLI_TEXT, 0},
    {"value", "", CLI_TEXT, 0},
};

static void add(struct cli_table *table, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add(struct cli_table *table, const char *name, const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cli_table_add(table, (struct cli_cell[2]){{.text = name}, {.text = text}});
}

static void add_size(struct cli_table *table, const char *name, uint64_t bytes)
{
    char text[32];
    ta_size_text((double)bytes, 0, text, sizeof text);
    add(table, name, "%s (%" PRIu64 " byte%s)", text, bytes, cli_s(bytes));
}

static void add_time(struct cli_table *table, const char *name, uint64_t time_ns)
{
    char text[64];
    cli_time_text(time_ns, text, sizeof text);
    if (time_ns != 0)
        add(table, name, "%s", text);
}

static void add_facts(struct cli_table *table, struct ta_snapshot *snapshot, const struct ta_snapshot_info *info)
{
    if (*info->program != '\0')
        add(table, "program", "%s", info->program);
    if (info->pid != 0)
        add(table, "process", "%u", info->pid);
    if (*info->host != '\0')
        add(table, "host", "%s", info->host);
    add_time(table, "time", info->time_ns);
    add_time(table, "tracing since", info->start_time_ns);
    if (*info->reason != '\0')
        add(table, "reason", "%s", info->reason);
    add_size(table, "live", info->current_bytes);
    add_size(table, "peak", info->peak_bytes);
    add(table, "frames per stack", "%d at most", ta_snapshot_traceback_limit(snapshot));
    add(table, "sampling", info->sample_bytes > 1 ? "one per %" PRIu64 " bytes" : "none: every allocation",
        info->sample_bytes);
}

static void add_metadata(struct cli_table *table, struct ta_snapshot *snapshot, const char *key, const char *value)
{
    static const char *const ours[] = {"process.", "faults.", "crash.", "foreign.", "run", "missing"};
    char *place = cli_place_of_key(snapshot, key, value);
    if (place != NULL)
        value = place;
    if (strncmp(key, "memory.", 7) == 0 && place == NULL) {
        add_size(table, key, strtoull(value, NULL, 10));
        return;
    }
    int is_ours = 0;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        is_ours |= strncmp(key, ours[i], strlen(ours[i])) == 0;
    if (is_ours || place != NULL)
        add(table, key, "%s", value);
    else
        add(table, "metadata", "%s=%s", key, value);
    free(place);
}

static void add_counts(struct cli_table *table, struct ta_snapshot *snapshot, const struct ta_snapshot_info *info)
{
    const struct {
        const char *name;
        uint64_t count;
    } counts[] = {
        {"traces", info->traces},   {"contexts", info->contexts}, {"addresses", info->frames},
        {"modules", info->modules}, {"domains", info->domains},   {"threads", info->threads},
    };
    const struct {
        const char *name, *meaning;
        uint64_t count;
    } losses[] = {
        {"lost", "allocations that were not traced, without memory for tables", info->lost},
        {"overflowed", "allocations beyond the cap on contexts, under <overflow>", info->overflowed},
        {"cut short", "stacks that ended before their outermost frame", info->cut_short},
        {"foreign frees", "frees of pointers that are not ours, ignored", info->foreign_frees},
        {"invalid frees", "double frees and damaged headers", info->invalid_frees},
        {"snapshot errors", "snapshots that could not be written", info->snapshot_errors},
    };
    const char *key, *value;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        add(table, counts[i].name, "%" PRIu64, counts[i].count);
    add(table, "gone traces", "%ld", ta_snapshot_gone_trace_count(snapshot));
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        if (losses[i].count > 0)
            add(table, losses[i].name, "%" PRIu64 " (%s)", losses[i].count, losses[i].meaning);
    for (size_t i = 0; ta_snapshot_option(snapshot, i, &key, &value) == 0; i++)
        add(table, "option", "%s=%s", key, value);
    for (size_t i = 0; ta_snapshot_metadata_at(snapshot, i, &key, NULL, &value, NULL) == 0; i++)
        add_metadata(table, snapshot, key, value);
}

static void build_id_text(const struct ta_module_info *module, char *text, size_t size)
{
    size_t at = 0;
    *text = '\0';
    for (size_t i = 0; i < module->build_id_length && at + 3 <= size; i++)
        at += (size_t)snprintf(text + at, size - at, "%02x", module->build_id[i]);
}

static void add_modules(struct cli_table *table, struct ta_snapshot *snapshot)
{
    static const char *const states[] = {"no frames",     "lines",      "names only", "absent",
                                         "another build", "unreadable", "stored"};
    struct ta_module_info module;
    for (size_t i = 0; ta_snapshot_module(snapshot, i, &module, sizeof module) == 0; i++) {
        struct ta_module_symbols symbols = {.reason = ""};
        char id[80];
        build_id_text(&module, id, sizeof id);
        if (ta_snapshot_module_symbols(snapshot, i, &symbols) != 0)
            continue;
        add(table, "module", "%s [%s] symbols: %s%s%s", module.path, id, states[symbols.state],
            *symbols.reason != '\0' ? ": " : "", symbols.reason);
    }
}

static int run(int argc, char **argv)
{
    struct cli_options options;
    if (cli_parse(&options, &cli_info, CLI_FORMATS, 1, 1, argc, argv) != 0)
        return CLI_TROUBLE;
    if (options.help)
        return cli_finish_output();
    struct ta_snapshot *snapshot = cli_load(options.operands[0]);
    struct ta_snapshot_info info;
    if (snapshot == NULL)
        return CLI_TROUBLE;
    int status = CLI_TROUBLE;
    if (ta_snapshot_info(snapshot, &info, sizeof info) != 0) {
        cli_library_error(options.operands[0]);
    } else {
        struct cli_table *table = cli_table_new(columns, 2);
        add_facts(table, snapshot, &info);
        add_counts(table, snapshot, &info);
        add_modules(table, snapshot);
        cli_table_print(table, &options);
        cli_table_free(table);
        status = cli_finish_output();
    }
    ta_snapshot_free(snapshot);
    return status;
}

const struct cli_command cli_info = {
    .name = "info",
    .arguments = "FILE[@ENTRY] [--json | --csv]",
    .summary = "say what is in a recording: program, times, options, counts, losses, modules",
    .help = "  --json, --csv    the same facts as pairs of name and value, for other programs\n"
            "  --color WHEN     auto (default), always or never; NO_COLOR is respected\n"
            "\n"
            "  tracealloc info server.ta@0\n",
    .run = run,
};
