/* cli.c: see cli.h. */
#include "analysis/cli/cli.h"

#include "analysis/cli/family.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/cli/places.h"
#include "analysis/cli/project.h"
#include "analysis/cli/terminal.h"

/* ---- messages ---- */

static void message(const char *kind, const char *format, va_list arguments)
{
    fputs("tracealloc: ", stderr);
    fputs(kind, stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

int cli_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    message("", format, arguments);
    va_end(arguments);
    return CLI_TROUBLE;
}

void cli_warning(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    message("warning: ", format, arguments);
    va_end(arguments);
}

int cli_library_error(const char *subject)
{
    return cli_error("%s: %s", subject, ta_error_text());
}

/* ---- options ---- */

/* --by in tracemalloc's words. */
#define OPTION_KEY (1 << 30)

static const struct option long_options[] = {
    {"key", required_argument, NULL, OPTION_KEY},
    {"by", required_argument, NULL, CLI_KEY},
    {"cumulative", no_argument, NULL, CLI_CUMULATIVE},
    {"json", no_argument, NULL, CLI_JSON},
    {"csv", no_argument, NULL, CLI_CSV},
    {"color", required_argument, NULL, CLI_COLOR},
    {"output", required_argument, NULL, CLI_OUTPUT},
    {"spec", required_argument, NULL, CLI_SPEC},
    {"where", required_argument, NULL, CLI_WHERE},
    {"limit", required_argument, NULL, CLI_LIMIT},
    {"sort", required_argument, NULL, CLI_SORT},
    {"python", no_argument, NULL, CLI_PYTHON},
    {"grown", no_argument, NULL, CLI_GROWN},
    {"released", no_argument, NULL, CLI_RELEASED},
    {"format", required_argument, NULL, CLI_FORMAT},
    {"bottom-up", no_argument, NULL, CLI_BOTTOM_UP},
    {"min", required_argument, NULL, CLI_MINIMUM},
    {"depth", required_argument, NULL, CLI_DEPTH},
    {"title", required_argument, NULL, CLI_TITLE},
    {"skip", required_argument, NULL, CLI_SKIP},
    {"own", required_argument, NULL, CLI_OWN_CODE},
    {"no-skip", no_argument, NULL, CLI_NO_SKIP},
    {"callers", no_argument, NULL, CLI_CALLERS},
    {"collapse", no_argument, NULL, CLI_COLLAPSE},
    {"full-names", no_argument, NULL, CLI_FULL},
    {"histogram", no_argument, NULL, CLI_HISTOGRAM},
    {"source", required_argument, NULL, CLI_SOURCE},
    {"open", no_argument, NULL, CLI_OPEN},
    {"no-source", no_argument, NULL, CLI_NO_SOURCE},
    {"together", no_argument, NULL, CLI_TOGETHER},
    {"blocks", no_argument, NULL, CLI_BLOCKS},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const struct {
    const char *name;
    enum ta_order order;
} orders[] = {
    {"live", TA_ORDER_DEFAULT},
    {"size", TA_ORDER_DEFAULT},
    {"count", TA_ORDER_COUNT},
    {"total", TA_ORDER_ALLOCATED_SIZE},
    {"allocated", TA_ORDER_ALLOCATED_SIZE},
    {"calls", TA_ORDER_ALLOCATED_COUNT},
    {"temporary", TA_ORDER_TEMPORARY},
    {"peak", TA_ORDER_PEAK},
    {"growth", TA_ORDER_GROWTH},
    {"released", TA_ORDER_RELEASED},
};

int cli_order_wants_gone(enum ta_order order)
{
    return order != TA_ORDER_DEFAULT && order != TA_ORDER_COUNT;
}

uint64_t cli_value(const struct ta_statistic *statistic, enum ta_order order)
{
    switch (order) {
    case TA_ORDER_COUNT:
        return statistic->count;
    case TA_ORDER_ALLOCATED_SIZE:
        return statistic->allocated_size;
    case TA_ORDER_ALLOCATED_COUNT:
        return statistic->allocated_count;
    case TA_ORDER_TEMPORARY:
        return statistic->allocated_count > statistic->count ? statistic->allocated_count - statistic->count : 0;
    case TA_ORDER_PEAK:
        return statistic->peak_size;
    default:
        return statistic->size;
    }
}

static int parse_order(struct cli_options *options, const char *text)
{
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (strcmp(orders[i].name, text) == 0) {
            options->order = orders[i].order;
            options->sort = orders[i].name;
            return 0;
        }
    cli_error("--sort: unknown order '%s' (live, total, count, calls, temporary, peak; for differences growth, "
              "released)",
              text);
    return -1;
}

static int parse_number(size_t *number, const char *option, const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0) {
        cli_error("%s: expected a number, not '%s'", option, text);
        return -1;
    }
    *number = (size_t)value;
    return 0;
}

int cli_parse_amount(const char *command, const char *option, const char *text, uint64_t *amount)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB"};
    char *end;
    double value = strtod(text, &end);
    end += strspn(end, " ");
    for (int i = 0; i < 4; i++, value *= 1024)
        if (end != text && value >= 0 && value < 1e18 &&
            (strcmp(end, units[i]) == 0 || (i == 0 && strcmp(end, "B") == 0))) {
            *amount = (uint64_t)value;
            return 0;
        }
    cli_error("%s: %s: expected a number with B, KiB, MiB or GiB, not '%s'", command, option, text);
    return -1;
}

static int parse_percent(double *percent, const char *text)
{
    char *end;
    *percent = strtod(text, &end);
    if (end == text || (*end != '\0' && strcmp(end, "%") != 0) || !(*percent >= 0 && *percent <= 100)) {
        cli_error("--min: expected a percentage from 0 to 100, not '%s'", text);
        return -1;
    }
    return 0;
}

/* The library's words, and others for them. */
static const struct {
    const char *word, *key;
} keys[] = {
    {"own", "own"},       {"line", "line"},     {"function", "function"}, {"file", "filename"},
    {"module", "module"}, {"domain", "domain"}, {"traceback", "stack"},   {"thread", "thread"},
    {"stack", "stack"},   {"lineno", "lineno"}, {"filename", "filename"}, {"process", "process"},
};

static int parse_key(struct cli_options *options, const char *option, const char *text)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].word, text) == 0) {
            options->key = keys[i].key;
            return 0;
        }
    cli_error("%s: unknown key '%s' (own, line, function, file, module, traceback, domain, process, thread; "
              "tracemalloc's lineno "
              "and filename)",
              option, text);
    return -1;
}

static void add_rule(struct cli_options *options, const char *word, const char *pattern)
{
    char *longer = cli_text("%s%s %s\n", options->rules != NULL ? options->rules : "", word, pattern);
    free(options->rules);
    options->rules = longer;
}

/* Options that say yes, and options whose value is kept as it is. */
static const struct {
    int option;
    size_t place; /* in struct cli_options */
} switches[] =
    {
        {CLI_CALLERS, offsetof(struct cli_options, callers)},
        {CLI_COLLAPSE, offsetof(struct cli_options, collapse)},
        {CLI_CUMULATIVE, offsetof(struct cli_options, cumulative)},
        {CLI_JSON, offsetof(struct cli_options, json)},
        {CLI_CSV, offsetof(struct cli_options, csv)},
        {CLI_PYTHON, offsetof(struct cli_options, python)},
        {CLI_GROWN, offsetof(struct cli_options, grown)},
        {CLI_RELEASED, offsetof(struct cli_options, released)},
        {CLI_BLOCKS, offsetof(struct cli_options, blocks)},
        {CLI_BOTTOM_UP, offsetof(struct cli_options, bottom_up)},
        {CLI_HISTOGRAM, offsetof(struct cli_options, histogram)},
        {CLI_OPEN, offsetof(struct cli_options, open)},
        {CLI_NO_SOURCE, offsetof(struct cli_options, no_source)},
        {CLI_TOGETHER, offsetof(struct cli_options, together)},
},
  texts[] = {
      {CLI_OUTPUT, offsetof(struct cli_options, output)}, {CLI_SPEC, offsetof(struct cli_options, spec)},
      {CLI_WHERE, offsetof(struct cli_options, where)},   {CLI_FORMAT, offsetof(struct cli_options, format)},
      {CLI_SOURCE, offsetof(struct cli_options, source)}, {CLI_TITLE, offsetof(struct cli_options, title)},
};

static int take_plain(struct cli_options *options, int option)
{
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (switches[i].option == option) {
            *(int *)(void *)((char *)options + switches[i].place) = 1;
            return 1;
        }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].option == option) {
            *(const char **)(void *)((char *)options + texts[i].place) = optarg;
            return 1;
        }
    return 0;
}

/* `name` is what the user wrote. */
static int take_option(struct cli_options *options, int option, const char *name)
{
    if (take_plain(options, option))
        return 0;
    switch (option) {
    case OPTION_KEY:
        options->says_key = 1;
        if (strcmp(optarg, "traceback") != 0)
            return parse_key(options, name, optarg);
        options->key = "traceback"; /* whose frames are files and line numbers alone */
        return 0;
    case CLI_KEY:
        return parse_key(options, name, optarg);
    case CLI_SKIP:
        add_rule(options, "skip", optarg);
        return 0;
    case CLI_OWN_CODE:
        add_rule(options, "own", optarg);
        return 0;
    case CLI_NO_SKIP:
        add_rule(options, "own", "*");
        return 0;
    case CLI_FULL:
        options->full = 1;
        cli_places_set_full(1);
        return 0;
    case CLI_COLOR:
        if (cli_set_color(optarg) == 0)
            return 0;
        return cli_error("--color: expected auto, always or never, not '%s'", optarg), -1;
    case CLI_MINIMUM:
        return parse_percent(&options->minimum, optarg);
    case CLI_DEPTH:
        return parse_number(&options->depth, name, optarg);
    case CLI_SORT:
        return parse_order(options, optarg);
    default:
        return parse_number(&options->limit, name, optarg);
    }
}

static void print_help(const struct cli_command *command)
{
    printf("usage: tracealloc %s %s\n%s\n", command->name, command->arguments, command->summary);
    if (*command->help != '\0')
        printf("\n%s", command->help);
}

int cli_parse(struct cli_options *options, const struct cli_command *command, unsigned allowed, int least, int most,
              int argc, char **argv)
{
    *options = (struct cli_options){.command = command, .limit = SIZE_MAX, .depth = SIZE_MAX, .minimum = -1};
    int option, index = 0;
    optind = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":o:n:h", long_options, &index)) != -1) {
        const char *given = argv[optind > 0 ? optind - 1 : 0];
        char name[32];
        snprintf(name, sizeof name, option == 'n' ? "-n" : "--%s", option == 'n' ? "" : long_options[index].name);
        if (option == 'o')
            option = CLI_OUTPUT;
        if (option == 'n')
            option = CLI_LIMIT;
        if (option == 'h') {
            print_help(command);
            options->help = 1;
            return 0;
        }
        unsigned wanting = optopt == 'o'          ? CLI_OUTPUT
                           : optopt == 'n'        ? CLI_LIMIT
                           : optopt == OPTION_KEY ? CLI_KEY
                                                  : (unsigned)optopt;
        unsigned kind = option == OPTION_KEY ? CLI_KEY : (unsigned)option;
        if (option == ':' && (allowed & wanting) != 0)
            return cli_error("%s: %s wants a value", command->name, given), -1;
        if (option == '?' || option == ':' || (allowed & kind) == 0)
            return cli_error("%s: unknown option '%s' (see tracealloc %s --help)", command->name, given, command->name),
                   -1;
        if (take_option(options, option, name) != 0)
            return -1;
    }
    options->operands = argv + optind;
    options->operand_count = argc - optind;
    if (options->json && options->csv)
        return cli_error("%s: one of --json and --csv, please", command->name), -1;
    if (options->operand_count < least || options->operand_count > most) {
        cli_error("usage: tracealloc %s %s", command->name, command->arguments);
        return -1;
    }
    return 0;
}

size_t cli_rows(const struct cli_options *options, size_t usual)
{
    if (options->limit == SIZE_MAX)
        return options->json || options->csv ? SIZE_MAX : usual;
    return options->limit == 0 ? SIZE_MAX : options->limit;
}

/* ---- files ---- */

static char *read_descriptor(int descriptor, const char *path, size_t *length)
{
    size_t capacity = 65536, done = 0;
    char *bytes = malloc(capacity);
    for (;;) {
        if (bytes == NULL) {
            cli_error("%s: out of memory", path);
            return NULL;
        }
        ssize_t got = read(descriptor, bytes + done, capacity - done - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            cli_error("%s: %s", path, strerror(errno));
            free(bytes);
            return NULL;
        }
        if (got == 0)
            break;
        done += (size_t)got;
        if (capacity - done < 4096) {
            char *bigger = reallocarray(bytes, capacity, 2);
            if (bigger == NULL)
                free(bytes);
            bytes = bigger;
            capacity *= 2;
        }
    }
    bytes[done] = '\0';
    *length = done;
    return bytes;
}

char *cli_read_file(const char *path, size_t *length)
{
    if (strcmp(path, "-") == 0)
        return read_descriptor(STDIN_FILENO, "standard input", length);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        cli_error("%s: %s", path, strerror(errno));
        return NULL;
    }
    char *bytes = read_descriptor(descriptor, path, length);
    close(descriptor);
    return bytes;
}

/* The library tells how far it is on this thread, with done == total at the end. */
static void show_symbols(void *user, size_t done, size_t total)
{
    static int has_begun;
    if (!has_begun)
        cli_progress_begin("looking up symbols");
    has_begun = done < total;
    if (has_begun)
        cli_progress_set(user, done, total);
    else
        cli_progress_end();
}

struct ta_snapshot *cli_load(const char *path)
{
    if (cli_family_is(path)) {
        ta_symbols_set_progress(show_symbols, NULL);
        return cli_family_load(path);
    }
    ta_symbols_set_progress(show_symbols, NULL);
    cli_progress_begin("reading the recording");
    struct ta_snapshot *snapshot = ta_snapshot_load(path);
    cli_progress_end();
    if (snapshot == NULL) {
        cli_error("%s", ta_error_text()); /* it names the file */
        return NULL;
    }
    if (*ta_snapshot_warning(snapshot) != '\0')
        cli_warning("%s: %s", path, ta_snapshot_warning(snapshot));
    return snapshot;
}

static struct ta_snapshot *apply_spec(const struct ta_snapshot *snapshot, const char *path)
{
    struct ta_filter *filters;
    struct ta_snapshot *filtered = NULL;
    size_t length, count;
    char *text = cli_read_file(path, &length);
    if (text == NULL)
        return NULL;
    if (ta_filters_from_json(text, length, &filters, &count) == 0) {
        filtered = ta_snapshot_filter_traces(snapshot, filters, count);
        free(filters);
    }
    if (filtered == NULL)
        cli_library_error(path);
    free(text);
    return filtered;
}

struct ta_snapshot *cli_load_filtered(const char *path, const struct cli_options *options)
{
    struct ta_snapshot *snapshot = cli_load(path), *filtered;
    if (snapshot != NULL && (options->spec != NULL || options->where != NULL)) {
        filtered = ta_snapshot_symbolize(snapshot); /* so that the filtered one need not look again */
        if (filtered == NULL)
            cli_library_error(path);
        ta_snapshot_free(snapshot);
        snapshot = filtered;
    }
    cli_progress_begin("filtering the traces");
    if (snapshot != NULL && options->spec != NULL) {
        filtered = apply_spec(snapshot, options->spec);
        ta_snapshot_free(snapshot);
        snapshot = filtered;
    }
    if (snapshot != NULL && options->where != NULL && strstr(options->where, "own") != NULL &&
        cli_use_rules(options, snapshot, NULL) != CLI_OK) {
        ta_snapshot_free(snapshot);
        snapshot = NULL;
    }
    if (snapshot != NULL && options->where != NULL) {
        filtered = ta_snapshot_filter_expression(snapshot, options->where);
        if (filtered == NULL)
            cli_library_error(options->where);
        ta_snapshot_free(snapshot);
        snapshot = filtered;
    }
    cli_progress_end();
    return snapshot;
}

/* ---- memory ---- */

static void no_memory(void)
{
    cli_error("out of memory");
    exit(CLI_TROUBLE);
}

void *cli_allocate(size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);
    if (memory == NULL)
        no_memory();
    return memory;
}

void *cli_enlarge(void *array, size_t count, size_t size)
{
    void *memory = reallocarray(array, count, size);
    if (memory == NULL)
        no_memory();
    return memory;
}

int cli_is_same_file(const char *path, const char *other)
{
    struct stat x, y;
    return stat(path, &x) == 0 && stat(other, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

char *cli_text(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        no_memory();
    va_end(arguments);
    return text;
}

/* ---- text ---- */

void cli_print_text(const char *text, size_t length)
{
    int escape = cli_on_terminal();
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (escape && (byte < 0x20 || byte == 0x7F))
            printf("\\x%02x", byte);
        else
            putchar_unlocked(byte);
    }
}

void cli_print_line(const char *text, size_t length)
{
    cli_print_text(text, length);
    putchar('\n');
}

/* A reader that has seen enough (a pipe closed early) is no trouble worth a word. Where an earlier write failed, its
 * errno is lost: one more byte of what is broken anyway brings it back. */
int cli_finish_output(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return CLI_OK;
    if (errno == 0 && write(STDOUT_FILENO, "\n", 1) == 1)
        errno = EIO;
    if (errno == EPIPE)
        return CLI_TROUBLE;
    return cli_error("standard output: %s", strerror(errno));
}

const char *cli_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

size_t cli_utf8_length(const unsigned char *text, size_t room)
{
    size_t length = *text < 0x80 ? 1 : *text >= 0xC2 && *text < 0xE0 ? 2 : *text >= 0xE0 && *text < 0xF0 ? 3 : 4;
    if (length > room || *text >= 0xF5 || (*text >= 0x80 && *text < 0xC2))
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    if ((*text == 0xE0 && text[1] < 0xA0) || (*text == 0xED && text[1] >= 0xA0) || (*text == 0xF0 && text[1] < 0x90) ||
        (*text == 0xF4 && text[1] >= 0x90))
        return 0;
    return length;
}

void cli_print_json_string(FILE *file, const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    putc('"', file);
    for (size_t i = 0; i < length;) {
        size_t sequence = cli_utf8_length(bytes + i, length - i);
        if (bytes[i] == '"' || bytes[i] == '\\')
            fprintf(file, "\\%c", bytes[i]);
        else if (bytes[i] < 0x20 || bytes[i] == 0x7F)
            fprintf(file, "\\u%04x", bytes[i]);
        else if (sequence == 0)
            fprintf(file, "\\udc%02x", bytes[i]);
        else
            fwrite(bytes + i, 1, sequence, file);
        i += sequence > 0 ? sequence : 1;
    }
    putc('"', file);
}
