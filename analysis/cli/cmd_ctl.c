/* cmd_ctl.c: tracealloc ctl — steers a running process through its channel. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/cli/channel_client.h"
#include "analysis/cli/cli.h"
#include "analysis/cli/processes.h"

struct ctl {
    pid_t process;
    const char *word, *output;
    char **rest; /* behind the word */
    int rest_count, json, is_hard, is_forced;
    int channel;
    struct cli_channel_answer answer;
};

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'}, {"hard", no_argument, NULL, 'H'}, {"force", no_argument, NULL, 'f'},
    {"json", no_argument, NULL, 'j'},         {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0},
};

/* ---- asking ---- */

static int ask(struct ctl *ctl, const char *request, int descriptor)
{
    int status = cli_channel_ask(ctl->channel, request, descriptor, &ctl->answer);
    if (status != CLI_OK)
        cli_error("ctl: process %d: %s", (int)ctl->process, ctl->answer.text);
    return status == CLI_OK ? CLI_OK : CLI_TROUBLE;
}

static uint64_t number(const struct ctl *ctl, const char *key)
{
    return cli_channel_number(&ctl->answer, key);
}

static const char *size(const struct ctl *ctl, const char *key, char text[32])
{
    ta_size_text((double)number(ctl, key), 0, text, 32);
    return text;
}

/* ---- telling ---- */

/* "whole stacks", "25 frames"; with what is left out. */
static void print_mode(const struct ctl *ctl)
{
    uint64_t frames = number(ctl, "frames");
    if (frames >= TA_NFRAME_MAX)
        fputs("whole stacks", stdout);
    else
        printf("%" PRIu64 " frame%s", frames, cli_s(frames));
    char text[32];
    if (number(ctl, "sample") > 0)
        printf(", one block in %s", size(ctl, "sample", text));
}

static void print_state(const struct ctl *ctl)
{
    char live[32], peak[32], tracer[32], recording[4096];
    cli_channel_value(&ctl->answer, "recording", recording, sizeof recording);
    if (number(ctl, "tracing")) {
        printf("%d: tracing, ", (int)ctl->process);
        print_mode(ctl);
        printf("; %s live, peak %s, tables %s\n", size(ctl, "live", live), size(ctl, "peak", peak),
               size(ctl, "tracer", tracer));
    } else {
        printf("%d: not tracing\n", (int)ctl->process);
    }
    if (*recording != '\0')
        printf("recording in %s\n", recording);
    else
        puts(number(ctl, "records") ? "it has written no entry yet"
                                    : "it has no recording: snapshot -o FILE takes one");
    if (number(ctl, "interval") > 0)
        printf("an entry every %.10g s\n", (double)number(ctl, "interval") / 1000);
    if (number(ctl, "lost") > 0)
        printf("%" PRIu64 " allocation%s not traced for want of memory\n", number(ctl, "lost"),
               number(ctl, "lost") == 1 ? " was" : "s were");
}

static void print_json_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++)
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text < ' ')
            printf("\\u%04x", (unsigned)(unsigned char)*text);
        else
            putchar(*text);
    putchar('"');
}

static void print_json(const struct ctl *ctl)
{
    static const char *const keys[] = {"frames", "sample", "live", "peak", "tracer", "stacks", "lost"};
    char recording[4096];
    cli_channel_value(&ctl->answer, "recording", recording, sizeof recording);
    printf("{\"process\": %d, \"tracing\": %s, ", (int)ctl->process, number(ctl, "tracing") ? "true" : "false");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        printf("\"%s\": %" PRIu64 ", ", keys[i], number(ctl, keys[i]));
    printf("\"interval\": %g, \"recording\": ", (double)number(ctl, "interval") / 1000);
    if (*recording != '\0')
        print_json_text(recording);
    else
        fputs("null", stdout);
    puts("}");
}

/* ---- the words ---- */

static int status(struct ctl *ctl)
{
    if (ask(ctl, "status", -1) != CLI_OK)
        return CLI_TROUBLE;
    if (ctl->json)
        print_json(ctl);
    else
        print_state(ctl);
    return CLI_OK;
}

static int start(struct ctl *ctl)
{
    char *request = cli_text("start %s", ctl->rest_count > 0 ? ctl->rest[0] : "");
    int result = ask(ctl, request, -1);
    free(request);
    if (result != CLI_OK)
        return result;
    printf("%d: %s, ", (int)ctl->process, number(ctl, "was") ? "is tracing already" : "tracing");
    print_mode(ctl);
    putchar('\n');
    return CLI_OK;
}

static int stop(struct ctl *ctl)
{
    char recording[4096];
    if (ask(ctl, ctl->is_forced ? "stop force" : "stop", -1) != CLI_OK)
        return ctl->is_forced ? CLI_TROUBLE
                              : cli_error("ctl: it is traced as before: take what it holds with snapshot -o FILE, or "
                                          "lose it with stop --force");
    cli_channel_value(&ctl->answer, "recording", recording, sizeof recording);
    printf("%d: %s", (int)ctl->process, number(ctl, "was") ? "no longer tracing" : "is not tracing");
    if (number(ctl, "was") && *recording != '\0')
        printf("; recording in %s", recording);
    putchar('\n');
    return CLI_OK;
}

static int clear(struct ctl *ctl)
{
    if (ask(ctl, "clear", -1) != CLI_OK)
        return CLI_TROUBLE;
    printf("%d: traces forgotten, tracing goes on\n", (int)ctl->process);
    return CLI_OK;
}

static int to_file(struct ctl *ctl, const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0)
        return cli_error("ctl: %s: %s", path, strerror(errno));
    int result = ask(ctl, "snapshot", file);
    if (close(file) != 0 && result == CLI_OK)
        result = cli_error("ctl: %s: %s", path, strerror(errno));
    if (result == CLI_OK)
        printf("%d: snapshot in %s\n", (int)ctl->process, path);
    else
        unlink(path);
    return result;
}

/* An entry of its recording; of a process without one a file here. */
static int snapshot(struct ctl *ctl)
{
    char recording[4096];
    if (ctl->output != NULL)
        return to_file(ctl, ctl->output);
    if (ask(ctl, "status", -1) != CLI_OK)
        return CLI_TROUBLE;
    if (!number(ctl, "records")) {
        char path[64];
        int at = 1;
        do
            snprintf(path, sizeof path, "tracealloc.%d.%d.ta", (int)ctl->process, at);
        while (access(path, F_OK) == 0 && at++ < 1000000);
        return to_file(ctl, path);
    }
    if (ask(ctl, "snapshot", -1) != CLI_OK)
        return CLI_TROUBLE;
    cli_channel_value(&ctl->answer, "recording", recording, sizeof recording);
    printf("%d: one more entry in %s\n", (int)ctl->process, recording);
    return CLI_OK;
}

static int mark(struct ctl *ctl)
{
    char *request = cli_text("mark");
    for (int i = 0; i < ctl->rest_count; i++) {
        char *longer = cli_text("%s %s", request, ctl->rest[i]);
        free(request);
        request = longer;
    }
    int result = ask(ctl, request, -1);
    free(request);
    if (result == CLI_OK)
        printf("%d: marked\n", (int)ctl->process);
    return result;
}

static int interval(struct ctl *ctl)
{
    char *end;
    double seconds = strtod(ctl->rest[0], &end);
    if (end == ctl->rest[0] || *end != '\0' || !(seconds == 0 || (seconds >= 0.01 && seconds <= 1000000)))
        return cli_error("ctl: interval: expected seconds, at least 0.01, or 0, not '%s'", ctl->rest[0]);
    char *request = cli_text("interval %.0f", seconds * 1000);
    int result = ask(ctl, request, -1);
    free(request);
    if (result == CLI_OK && seconds > 0)
        printf("%d: an entry every %.10g s\n", (int)ctl->process, seconds);
    else if (result == CLI_OK)
        printf("%d: no entries by interval\n", (int)ctl->process);
    return result;
}

static int limit(struct ctl *ctl)
{
    uint64_t bytes;
    char text[32];
    if (cli_parse_amount("ctl", "limit", ctl->rest[1], &bytes) != 0)
        return CLI_TROUBLE;
    char *request = ctl->is_hard ? cli_text("limit %s %" PRIu64 " %" PRIu64, ctl->rest[0], bytes, bytes)
                                 : cli_text("limit %s %" PRIu64, ctl->rest[0], bytes);
    int result = ask(ctl, request, -1);
    free(request);
    if (result != CLI_OK)
        return result;
    ta_size_text((double)bytes, 0, text, sizeof text);
    if (bytes == 0)
        printf("%d: domain %s has no limit\n", (int)ctl->process, ctl->rest[0]);
    else
        printf("%d: domain %s: %s at %s\n", (int)ctl->process, ctl->rest[0],
               ctl->is_hard ? "no more memory" : "an entry", text);
    return CLI_OK;
}

static const struct word {
    const char *name;
    int least, most; /* words behind it */
    int (*act)(struct ctl *ctl);
} words[] = {{"status", 0, 0, status},     {"start", 0, 1, start},       {"stop", 0, 0, stop},
             {"clear", 0, 0, clear},       {"snapshot", 0, 0, snapshot}, {"mark", 1, 1000, mark},
             {"interval", 1, 1, interval}, {"limit", 2, 2, limit}};

/* ---- the command ---- */

/* 0, or 1 when help was printed, or -1 after a message. Options may stand anywhere. */
static int parse(struct ctl *ctl, int argc, char **argv)
{
    int option;
    optind = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":o:h", long_options, NULL)) != -1) {
        if (option == 'h') {
            printf("usage: tracealloc ctl %s\n%s\n\n%s", cli_ctl.arguments, cli_ctl.summary, cli_ctl.help);
            return 1;
        }
        if (option == 'o')
            ctl->output = optarg;
        else if (option == 'H')
            ctl->is_hard = 1;
        else if (option == 'f')
            ctl->is_forced = 1;
        else if (option == 'j')
            ctl->json = 1;
        else
            return cli_error(option == ':' ? "ctl: %s wants a value"
                                           : "ctl: unknown option '%s' (see tracealloc ctl --help)",
                             argv[optind - 1]),
                   -1;
    }
    return 0;
}

/* The process, and the words behind it; `given` are numbers and words. */
static int take_words(struct ctl *ctl, char **given, int count)
{
    char *end;
    int numbers = 0;
    while (numbers < count && given[numbers][strspn(given[numbers], "0123456789")] == '\0')
        numbers++;
    int processes = cli_processes_meant(given, numbers);
    if (processes > 1)
        return cli_error("ctl: one process, please, not %s and %s", given[0], given[1]);
    long process = strtol(given[0], &end, 10);
    if (*end != '\0' || process <= 0 || process > INT32_MAX)
        return cli_error("ctl: expected the number of a process, not '%s'", given[0]);
    ctl->process = (pid_t)process;
    ctl->rest = given + (numbers > 0 ? numbers : 1);
    ctl->rest_count = count - (int)(ctl->rest - given);
    if (ctl->rest_count > 0) {
        ctl->word = *ctl->rest++;
        ctl->rest_count--;
    }
    return CLI_OK;
}

static int run(int argc, char **argv)
{
    struct ctl ctl = {.word = "status"};
    const char *why;
    int parsed = parse(&ctl, argc, argv);
    if (parsed != 0)
        return parsed < 0 ? CLI_TROUBLE : cli_finish_output();
    if (optind >= argc)
        return cli_error("usage: tracealloc ctl %s", cli_ctl.arguments);
    if (take_words(&ctl, argv + optind, argc - optind) != CLI_OK)
        return CLI_TROUBLE;
    const struct word *word = NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].name, ctl.word) == 0)
            word = &words[i];
    if (word == NULL || ctl.rest_count < word->least || ctl.rest_count > word->most)
        return cli_error("ctl: %s '%s' (see tracealloc ctl --help)",
                         word == NULL ? "there is no" : "too few or too many words behind", ctl.word);
    ctl.channel = cli_channel_open(ctl.process, &why);
    if (ctl.channel < 0)
        return cli_error("ctl: process %d %s", (int)ctl.process, why);
    int result = word->act(&ctl);
    close(ctl.channel);
    int finished = cli_finish_output();
    return result != CLI_OK ? result : finished;
}

const struct cli_command cli_ctl = {
    .name = "ctl",
    .arguments =
        "PID [status | start [N] | stop [--force] | clear | snapshot [-o FILE] | mark TEXT | interval SECONDS | "
        "limit DOMAIN SIZE [--hard]]",
    .summary = "start and stop tracing in a running process, take snapshots of it",
    .help =
        "  status           whether it is traced, and what lives (--json: for other programs); also without a word\n"
        "  start [N]        trace from now on, whole stacks unless N, 1 to 65535, says how many frames\n"
        "  stop             a last entry into its recording, then trace no more: the program is as fast as before;\n"
        "                   --force: also where the entry cannot be written\n"
        "  clear            an entry, then all traces are forgotten: what is allocated from now on counts\n"
        "  snapshot         one more entry of its recording; -o FILE: a recording of its own\n"
        "  mark TEXT        an entry that says so: \"before the load\"\n"
        "  interval SECONDS an entry every so often; 0: no longer\n"
        "  limit DOMAIN SIZE an entry when the domain (number or name) crosses SIZE; 0 takes the limit away;\n"
        "                   --hard: beyond it the program gets no memory in the domain\n"
        "\n"
        "For processes of the same user that were started with tracealloc run (run --stopped: not yet traced), or\n"
        "that have the library and control=yes in TRACEALLOC_OPTIONS (docs/ctl.md).\n"
        "\n"
        "  tracealloc ctl $(pidof server) start\n"
        "  tracealloc ctl $(pidof server) snapshot -o now.ta\n"
        "  tracealloc ctl $(pidof server) stop\n",
    .run = run,
};
