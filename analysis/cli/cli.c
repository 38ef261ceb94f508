/* cli.c: see cli.h. */
#include "analysis/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

static const struct option long_options[] = {
    {"key", required_argument, NULL, CLI_KEY},
    {"cumulative", no_argument, NULL, CLI_CUMULATIVE},
    {"json", no_argument, NULL, CLI_JSON},
    {"output", required_argument, NULL, CLI_OUTPUT},
    {"spec", required_argument, NULL, CLI_SPEC},
    {"where", required_argument, NULL, CLI_WHERE},
    {"limit", required_argument, NULL, CLI_LIMIT},
    {"sort", required_argument, NULL, CLI_SORT},
    {"python", no_argument, NULL, CLI_PYTHON},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const struct {
    const char *name;
    enum ta_order order;
} orders[] = {
    {"size", TA_ORDER_DEFAULT},          {"count", TA_ORDER_COUNT},         {"allocated", TA_ORDER_ALLOCATED_SIZE},
    {"calls", TA_ORDER_ALLOCATED_COUNT}, {"temporary", TA_ORDER_TEMPORARY}, {"peak", TA_ORDER_PEAK},
    {"growth", TA_ORDER_GROWTH},         {"released", TA_ORDER_RELEASED},
};

static int parse_order(struct cli_options *options, const char *text)
{
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (strcmp(orders[i].name, text) == 0) {
            options->order = orders[i].order;
            return 0;
        }
    cli_error("--sort: unknown order '%s' (size, count, allocated, calls, temporary, peak, growth, released)", text);
    return -1;
}

static int parse_limit(struct cli_options *options, const char *text)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0) {
        cli_error("--limit: expected a number, not '%s'", text);
        return -1;
    }
    options->limit = (size_t)number;
    return 0;
}

static int take_option(struct cli_options *options, int option)
{
    switch (option) {
    case CLI_KEY:
        options->key = optarg;
        return 0;
    case CLI_CUMULATIVE:
        options->cumulative = 1;
        return 0;
    case CLI_JSON:
        options->json = 1;
        return 0;
    case CLI_OUTPUT:
        options->output = optarg;
        return 0;
    case CLI_SPEC:
        options->spec = optarg;
        return 0;
    case CLI_WHERE:
        options->where = optarg;
        return 0;
    case CLI_PYTHON:
        options->python = 1;
        return 0;
    case CLI_SORT:
        return parse_order(options, optarg);
    default:
        return parse_limit(options, optarg);
    }
}

static void print_help(const struct cli_command *command)
{
    printf("usage: tracealloc %s %s\n%s\n", command->name, command->arguments, command->summary);
    if (*command->help != '\0')
        printf("\n%s", command->help);
}

int cli_parse(struct cli_options *options, const struct cli_command *command, unsigned allowed, int operands, int argc,
              char **argv)
{
    *options = (struct cli_options){.command = command, .limit = SIZE_MAX};
    int option, index = 0;
    optind = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":o:h", long_options, &index)) != -1) {
        const char *given = argv[optind > 0 ? optind - 1 : 0];
        if (option == 'o')
            option = CLI_OUTPUT;
        if (option == 'h') {
            print_help(command);
            options->help = 1;
            return 0;
        }
        if (option == ':')
            return cli_error("%s: %s wants a value", command->name, given), -1;
        if (option == '?' || (allowed & (unsigned)option) == 0)
            return cli_error("%s: unknown option '%s' (see tracealloc %s --help)", command->name, given, command->name),
                   -1;
        if (take_option(options, option) != 0)
            return -1;
    }
    options->operands = argv + optind;
    options->operand_count = argc - optind;
    if (options->operand_count != operands) {
        cli_error("usage: tracealloc %s %s", command->name, command->arguments);
        return -1;
    }
    return 0;
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

struct ta_snapshot *cli_load(const char *path)
{
    cli_show_progress();
    struct ta_snapshot *snapshot = ta_snapshot_load(path);
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
    if (snapshot != NULL && options->spec != NULL) {
        filtered = apply_spec(snapshot, options->spec);
        ta_snapshot_free(snapshot);
        snapshot = filtered;
    }
    if (snapshot != NULL && options->where != NULL) {
        filtered = ta_snapshot_filter_expression(snapshot, options->where);
        if (filtered == NULL)
            cli_library_error(options->where);
        ta_snapshot_free(snapshot);
        snapshot = filtered;
    }
    return snapshot;
}

/* ---- progress ---- */

#define BAR_WIDTH 30

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void draw_progress(void *user, size_t done, size_t total)
{
    static double start, last;
    static int drawn;
    double now = seconds();
    (void)user;
    if (start == 0)
        start = now;
    if (done == total) {
        if (drawn)
            fputs("\r\033[K", stderr);
        start = drawn = 0;
        return;
    }
    if (now - start < 1 || now - last < 0.1)
        return;
    last = now;
    drawn = 1;
    int filled = (int)(done * BAR_WIDTH / total);
    fprintf(stderr, "\rsymbols [%.*s%*s] %3zu %%", filled, "##############################", BAR_WIDTH - filled, "",
            done * 100 / total);
}

void cli_show_progress(void)
{
    if (isatty(STDERR_FILENO))
        ta_symbols_set_progress(draw_progress, NULL);
}

/* ---- text ---- */

void cli_print_line(const char *text, size_t length)
{
    int escape = isatty(STDOUT_FILENO);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (escape && (byte < 0x20 || byte == 0x7F))
            printf("\\x%02x", byte);
        else
            putchar(byte);
    }
    putchar('\n');
}

int cli_finish_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return CLI_OK;
    return cli_error("standard output: %s", strerror(errno));
}
