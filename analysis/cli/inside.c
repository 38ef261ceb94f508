/* inside.c: see inside.h. */
#include "analysis/cli/inside.h"

#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/places.h"
#include "analysis/cli/processes.h"
#include "analysis/cli/row_text.h"
#include "analysis/cli/table.h"
#include "analysis/cli/terminal.h"

static const struct option long_options[] = {
    {"help", no_argument, NULL, INSIDE_HELP},
    {"output", required_argument, NULL, INSIDE_OUTPUT},
    {"limit", required_argument, NULL, INSIDE_LIMIT},
    {"quiet", no_argument, NULL, INSIDE_QUIET},
    {"json", no_argument, NULL, INSIDE_JSON},
    {"color", required_argument, NULL, INSIDE_COLOR},
    {"no-pause", no_argument, NULL, INSIDE_NO_PAUSE},
    {"no-blocks", no_argument, NULL, INSIDE_NO_BLOCKS},
    {"by", required_argument, NULL, INSIDE_KEY},
    {"key", required_argument, NULL, INSIDE_KEY},
    {"sort", required_argument, NULL, INSIDE_SORT},
    {"mappings", no_argument, NULL, INSIDE_MAPPINGS},
    {"flame", required_argument, NULL, INSIDE_FLAME},
    {"tagged", no_argument, NULL, INSIDE_TAGGED},
    {"unaligned", no_argument, NULL, INSIDE_UNALIGNED},
    {"exact", no_argument, NULL, INSIDE_EXACT},
    {"suppressions", required_argument, NULL, INSIDE_SUPPRESSIONS},
    {"format", required_argument, NULL, INSIDE_FORMAT},
    {"registers", required_argument, NULL, INSIDE_REGISTERS},
    {"at", required_argument, NULL, INSIDE_AT},
    {"blocks", no_argument, NULL, INSIDE_BLOCKS},
    {"brief", no_argument, NULL, INSIDE_BRIEF},
    {"history", required_argument, NULL, INSIDE_HISTORY},
    {NULL, 0, NULL, 0},
};

static int is_allowed(const int *options, int option)
{
    if (option == INSIDE_HELP)
        return 1;
    while (*options != 0 && *options != option)
        options++;
    return *options != 0;
}

static int take_limit(struct cli_inside *inside, const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0)
        return cli_error("--limit: expected a number, not '%s'", text), -1;
    inside->limit = (size_t)value;
    return 0;
}

/* People say line and file, tracemalloc lineno and filename. */
static const char *key_of(const char *text)
{
    if (strcmp(text, "line") == 0)
        return "lineno";
    if (strcmp(text, "file") == 0)
        return "filename";
    return strcmp(text, "stack") == 0 ? "traceback" : text;
}

/* Options whose value is kept as it is. */
static const char **text_of(struct cli_inside *inside, int option)
{
    switch (option) {
    case INSIDE_OUTPUT:
        return &inside->output;
    case INSIDE_SORT:
        return &inside->sort;
    case INSIDE_FLAME:
        return &inside->flame;
    case INSIDE_SUPPRESSIONS:
        return &inside->suppressions;
    case INSIDE_FORMAT:
        return &inside->format;
    case INSIDE_REGISTERS:
        return &inside->image.registers;
    case INSIDE_AT:
        return &inside->at;
    case INSIDE_HISTORY:
        return &inside->history;
    default:
        return NULL;
    }
}

static int take_option(struct cli_inside *inside, int option)
{
    const char **text = text_of(inside, option);
    if (text != NULL) {
        *text = optarg;
        return 0;
    }
    switch (option) {
    case INSIDE_LIMIT:
        return take_limit(inside, optarg);
    case INSIDE_KEY:
        inside->key = key_of(optarg);
        return 0;
    case INSIDE_QUIET:
        inside->quiet = 1;
        return 0;
    case INSIDE_JSON:
        inside->json = 1;
        return 0;
    case INSIDE_COLOR:
        if (cli_set_color(optarg) == 0)
            return 0;
        return cli_error("--color: expected auto, always or never, not '%s'", optarg), -1;
    case INSIDE_BRIEF:
        inside->brief = 1;
        return 0;
    case INSIDE_BLOCKS:
        inside->blocks = 1;
        return 0;
    case INSIDE_MAPPINGS:
        inside->mappings = 1;
        return 0;
    case INSIDE_NO_BLOCKS:
        inside->no_blocks = 1;
        return 0;
    default:
        inside->image.flags |= option == INSIDE_NO_PAUSE ? TA_IMAGE_NO_PAUSE
                               : option == INSIDE_TAGGED ? TA_IMAGE_TAGGED
                               : option == INSIDE_EXACT  ? TA_IMAGE_EXACT
                                                         : TA_IMAGE_UNALIGNED;
        return 0;
    }
}

static int refuse(const struct cli_inside *inside, const char *given, int wants_value)
{
    if (wants_value)
        return cli_error("%s: %s wants a value", inside->command->name, given), -1;
    return cli_error("%s: unknown option '%s' (see tracealloc %s --help)", inside->command->name, given,
                     inside->command->name),
           -1;
}

int cli_inside_parse(struct cli_inside *inside, const struct cli_command *command, const int *options, int least,
                     int most, int argc, char **argv)
{
    *inside = (struct cli_inside){.command = command, .limit = SIZE_MAX};
    optind = 0;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":ho:n:q", long_options, NULL)) != -1;) {
        const char *given = argv[optind > 0 ? optind - 1 : 0];
        if (option == INSIDE_HELP) {
            printf("usage: tracealloc %s %s\n%s\n\n%s", command->name, command->arguments, command->summary,
                   command->help);
            inside->help = 1;
            return 0;
        }
        if (option == ':' || option == '?' || !is_allowed(options, option))
            return refuse(inside, given, option == ':' && is_allowed(options, optopt));
        if (take_option(inside, option) != 0)
            return -1;
    }
    inside->operands = argv + optind;
    inside->operand_count = cli_processes_meant(inside->operands, argc - optind);
    if (inside->operand_count < least || inside->operand_count > most)
        return cli_error("usage: tracealloc %s %s", command->name, command->arguments), -1;
    return 0;
}

struct ta_image *cli_inside_open(const struct cli_inside *inside, const char *what, unsigned wants)
{
    struct ta_image_options options = inside->image;
    options.wants = wants;
    cli_progress_begin("reading the memory");
    struct ta_image *image = ta_image_open(what, &options, sizeof options);
    cli_progress_end();
    if (image == NULL) {
        cli_error("%s", ta_error_text()); /* it names the process or file */
        return NULL;
    }
    cli_places_set_program(ta_image_snapshot(image));
    const char *warning;
    for (size_t i = 0; (warning = ta_image_warning(image, i)) != NULL; i++)
        cli_warning("%s: %s", what, warning);
    return image;
}

char *cli_inside_name(const struct ta_image *image)
{
    struct ta_image_info info;
    ta_image_get_info(image, &info, sizeof info);
    char *word = cli_text("%.*s", cli_called_length(info.command), info.command); /* its file may have many names */
    const char *program = *word != '\0' ? word : info.program;
    char *name = cli_text("%s (%s %u)", cli_base_name(program), info.is_core ? "core of process" : "process", info.pid);
    free(word);
    return name;
}

size_t cli_inside_rows(const struct cli_inside *inside, size_t usual)
{
    if (inside->limit == SIZE_MAX)
        return inside->json ? SIZE_MAX : usual;
    return inside->limit == 0 ? SIZE_MAX : inside->limit;
}

const char *cli_inside_key(const struct cli_inside *inside)
{
    return inside->key != NULL ? inside->key : "own";
}

void cli_inside_row(struct cli_row_text *row, struct ta_statistics *statistics, const char *key, size_t index)
{
    static const struct cli_options plain;
    const struct cli_rows rows = {.statistics = statistics, .key = key, .options = &plain};
    cli_row_make(row, &rows, index);
}

char *cli_row_words(const struct cli_row_text *row)
{
    const char *name = row->name != NULL ? row->name : "", *via = row->via != NULL ? row->via : "";
    return cli_text("%s%s%s%s%s", row->place, *row->place != '\0' && *name != '\0' ? "  " : "", name,
                    *via != '\0' ? "  " : "", via);
}

char *cli_row_label(struct ta_statistics *statistics, const char *key, size_t index)
{
    struct cli_row_text row;
    cli_inside_row(&row, statistics, key, index);
    char *label = cli_row_words(&row);
    cli_row_free(&row);
    return label;
}

/* Without lines a row is a function, or an address where that has no name. */
static int is_frame_of(const struct ta_frame *frame, const struct ta_frame *key)
{
    return ta_frame_equal(frame, key) && (frame->lineno != 0 || strcmp(frame->function, key->function) == 0);
}

/* The innermost frame of the stack that is the row's, and how many are further in; -1 where it has none. */
static int64_t frame_of_row(const struct cli_row_text *row, struct ta_traceback traceback, struct ta_frame *frame)
{
    size_t length = ta_traceback_length(traceback);
    for (size_t at = 0; at < length; at++)
        if (ta_traceback_frame(traceback, -1 - (int64_t)at, frame) == 0 && is_frame_of(frame, &row->frame))
            return (int64_t)at;
    return -1;
}

char *cli_row_way(const struct cli_row_text *row, struct ta_traceback traceback)
{
    struct ta_frame frame, called;
    int64_t at = frame_of_row(row, traceback, &frame);
    if (at <= 0 || ta_traceback_frame(traceback, -at, &called) != 0 || cli_frame_is_allocator(&called))
        return cli_text("%s", "");
    return cli_function_name(called.function);
}

void cli_row_narrow(struct cli_row_text *row, struct ta_traceback traceback)
{
    struct ta_frame frame;
    if (frame_of_row(row, traceback, &frame) < 0)
        return;
    free(row->name);
    free(row->via);
    row->name = cli_frame_name(&frame);
    char *way = cli_row_way(row, traceback);
    row->via = *way != '\0' ? cli_text("via %s", way) : NULL;
    free(way);
}

char *cli_trace_label(const struct ta_snapshot *snapshot, struct ta_statistics *own, long trace)
{
    struct cli_row_text text;
    long row = trace >= 0 && own != NULL ? ta_statistics_row_of(own, (size_t)trace) : -1;
    if (row < 0)
        return cli_text("%s", "(without a stack)");
    cli_inside_row(&text, own, "own", (size_t)row);
    cli_row_narrow(&text, ta_snapshot_trace_traceback(snapshot, (size_t)trace));
    char *label = cli_row_words(&text);
    cli_row_free(&text);
    return label;
}

void cli_note_whole_stack(struct cli_table *table, struct ta_traceback traceback)
{
    struct ta_frame frame;
    char place[4096];
    if (ta_traceback_frame(traceback, -1, &frame) != 0)
        return;
    cli_place_text(&frame, place, sizeof place);
    char *name = cli_frame_name(&frame);
    cli_table_note(table, "%s%s%s", place, *name != '\0' ? "  " : "", name);
    free(name);
    cli_note_stack(table, traceback);
}
