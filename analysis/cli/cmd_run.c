/* cmd_run.c: tracealloc run — starts a program with the runtime library preloaded, and says where its recording is.
 *
 * The program keeps everything that it would have without us: standard streams, terminal, signals, exit status. We stay
 * behind as its parent, pass on signals that are sent to us, and end as it ended: with its status, or by its signal.
 * Before it is started we find out whether it can be traced at all: static and set-uid programs are refused with a
 * reason, never run untraced in silence.
 *
 * Exit status: the program's own; 1 a wrong number of frames, or leaks where there must be none; 125 trouble of ours; 126 a program that cannot be traced;
 * 127 there is no such program. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/family.h"
#include "analysis/cli/file_opener.h"
#include "analysis/cli/gate.h"
#include "analysis/cli/library_options.h"
#include "analysis/cli/program.h"
#include "analysis/cli/recordings.h"
#include "analysis/cli/run_output.h"
#include "analysis/cli/run_rules.h"

enum { RUN_BAD_FRAMES = 1, RUN_LEAKS = 1, RUN_TROUBLE = 125, RUN_REFUSED = 126, RUN_MISSING = 127 };

struct settings {
    const char *frames; /* NULL = not given */
    const char *output, *rules;
    char *options; /* for TRACEALLOC_OPTIONS, each with a comma before it */
    int is_series, wants_peak, shows_top, shows_leaks, is_quiet, does_not_follow, fails_on_leak, help;
    uint64_t leak; /* bytes that a function may hold at the end */
    char *suppressions;
    char **program;
};

enum {
    OPT_NFRAME = 256,
    OPT_SAMPLE,
    OPT_INTERVAL,
    OPT_PEAK,
    OPT_SIGNAL,
    OPT_RULES,
    OPT_FOLLOW,
    OPT_NO_FOLLOW,
    OPT_TOP,
    OPT_FAIL_ON_LEAK,
    OPT_SUPPRESSIONS,
    OPT_LEAKS,
    OPT_STOPPED,
};

static const struct option long_options[] = {
    {"nframe", optional_argument, NULL, OPT_NFRAME},
    {"sample", required_argument, NULL, OPT_SAMPLE},
    {"output", required_argument, NULL, 'o'},
    {"interval", required_argument, NULL, OPT_INTERVAL},
    {"peak", optional_argument, NULL, OPT_PEAK},
    {"signal", required_argument, NULL, OPT_SIGNAL},
    {"rules", required_argument, NULL, OPT_RULES},
    {"follow", no_argument, NULL, OPT_FOLLOW},
    {"no-follow", no_argument, NULL, OPT_NO_FOLLOW},
    {"top", no_argument, NULL, OPT_TOP},
    {"fail-on-leak", optional_argument, NULL, OPT_FAIL_ON_LEAK},
    {"suppressions", required_argument, NULL, OPT_SUPPRESSIONS},
    {"leaks", no_argument, NULL, OPT_LEAKS},
    {"stopped", no_argument, NULL, OPT_STOPPED},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void __attribute__((noreturn)) fail(int status)
{
    exit(status);
}

/* ---- options ---- */

static void add_option(struct settings *settings, const char *key, const char *value)
{
    if (strchr(value, ',') != NULL) {
        cli_error("run: %s: '%s': a comma cannot be passed on; choose a name without", key, value);
        fail(RUN_TROUBLE);
    }
    char *longer = cli_text("%s,%s=%s", settings->options, key, value);
    free(settings->options);
    settings->options = longer;
}

/* Absolute: the programs that this one starts read it too, from folders of theirs. */
static void add_rules(struct settings *settings, const char *program)
{
    char *path = settings->rules != NULL ? cli_rules_for(settings->rules, program) : NULL;
    if (settings->rules != NULL && path == NULL)
        fail(RUN_TROUBLE);
    if (path != NULL)
        add_option(settings, "rules", path);
    free(path);
}

/* Python's grammar: leading blanks, a sign, decimal digits. Empty and 0 mean: do not trace. */
static void check_frames(const char *name, const char *text)
{
    static const char allowed[] = "1 to 65535 frames, or 0 or nothing to record nothing";
    const char *at = text + strspn(text, " \t\n\v\f\r");
    at += *at == '+';
    size_t digits = strspn(at, "0123456789");
    errno = 0;
    unsigned long number = strtoul(at, NULL, 10);
    if (*text != '\0' && (digits == 0 || at[digits] != '\0' || errno != 0 || number > TA_NFRAME_MAX)) {
        cli_error("run: %s=%s: expected %s", name, text, allowed);
        fail(RUN_BAD_FRAMES);
    }
}

static void take_leak_option(struct settings *settings, int option)
{
    size_t length;
    if (option == OPT_SUPPRESSIONS)
        settings->suppressions = cli_read_file(optarg, &length);
    else
        settings->fails_on_leak = 1;
    if ((option == OPT_SUPPRESSIONS && settings->suppressions == NULL) ||
        (option == OPT_FAIL_ON_LEAK && optarg != NULL &&
         cli_parse_amount("run", "--fail-on-leak", optarg, &settings->leak) != 0))
        fail(RUN_TROUBLE);
}

static void take_option(struct settings *settings, int option)
{
    switch (option) {
    case OPT_NFRAME:
        if (settings->frames == NULL) /* of two the first counts */
            settings->frames = optarg != NULL ? optarg : "1";
        break;
    case OPT_SAMPLE:
        add_option(settings, "sample", optarg);
        break;
    case OPT_STOPPED:
        settings->frames = "0";
        break;
    case 'o':
        settings->output = optarg;
        break;
    case OPT_INTERVAL:
        add_option(settings, "interval", optarg);
        settings->is_series = 1;
        break;
    case OPT_PEAK:
        add_option(settings, "peak", optarg != NULL ? optarg : "yes");
        settings->is_series = settings->wants_peak = 1;
        break;
    case OPT_SIGNAL:
        add_option(settings, "signal", optarg);
        settings->is_series = 1;
        break;
    case OPT_RULES:
        settings->rules = optarg;
        break;
    case OPT_FOLLOW:
        settings->does_not_follow = 0;
        break;
    case OPT_NO_FOLLOW:
        settings->does_not_follow = 1;
        break;
    case OPT_TOP:
        settings->shows_top = 1;
        break;
    case OPT_LEAKS:
        settings->shows_leaks = 1;
        break;
    case OPT_FAIL_ON_LEAK:
    case OPT_SUPPRESSIONS:
        take_leak_option(settings, option);
        break;
    default:
        settings->is_quiet = 1;
    }
}

static int is_number(const char *text)
{
    return *text != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static void parse(struct settings *settings, int argc, char **argv)
{
    int option;
    optind = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:o:qh", long_options, NULL)) != -1) {
        const char *given = argv[optind > 0 ? optind - 1 : 0];
        if (option == 'h') {
            printf("usage: tracealloc run %s\n%s\n\n%s", cli_run.arguments, cli_run.summary, cli_run.help);
            settings->help = 1;
            return;
        }
        if (option == ':' || option == '?') {
            if (option == ':')
                cli_error("run: %s wants a value", given);
            else
                cli_error("run: unknown option '%s' (see tracealloc run --help)", given);
            fail(RUN_TROUBLE);
        }
        if (option == OPT_NFRAME && optarg == NULL && optind < argc && is_number(argv[optind]))
            optarg = argv[optind++]; /* "--nframe 64", though a number alone may be left out */
        take_option(settings, option);
    }
    settings->program = argv + optind;
    if (optind >= argc) {
        cli_error("usage: tracealloc run %s", cli_run.arguments);
        fail(RUN_TROUBLE);
    }
    const char *variable = getenv("TRACEALLOC");
    if (variable != NULL)
        check_frames("the variable TRACEALLOC", variable);
    if (settings->frames != NULL)
        check_frames("--nframe", settings->frames);
    else
        settings->frames = variable != NULL ? variable : "65535";
}

/* ---- the library ---- */

static int is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

char *cli_find_library(void)
{
    static const char *const places[] = {"lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib64"};
    const char *given = getenv("TRACEALLOC_LIBRARY");
    char own[PATH_MAX];
    char *library = NULL;
    if (given != NULL && *given != '\0') {
        library = realpath(given, NULL);
        if (library == NULL || !is_file(library)) {
            cli_error("run: TRACEALLOC_LIBRARY: %s: %s", given, library == NULL ? strerror(errno) : "is no file");
            fail(RUN_TROUBLE);
        }
    } else {
        ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
        own[length > 0 ? length : 0] = '\0';
        for (int up = 0; up < 2; up++)
            *(strrchr(own, '/') != NULL ? strrchr(own, '/') : own) = '\0';
        for (size_t i = 0; i < sizeof places / sizeof *places && library == NULL; i++) {
            library = cli_text("%s/%s/libtracealloc.so.%d", own, places[i], TRACEALLOC_VERSION_MAJOR);
            if (!is_file(library)) {
                free(library);
                library = NULL;
            }
        }
    }
    if (library == NULL) {
        cli_error("run: libtracealloc.so.%d is not in %s/lib: install it, or name it in TRACEALLOC_LIBRARY",
                  TRACEALLOC_VERSION_MAJOR, own);
        fail(RUN_TROUBLE);
    }
    if (strpbrk(library, ": ") != NULL) {
        cli_error("run: %s: the loader cannot preload a path with a blank or a colon: name a copy elsewhere in "
                  "TRACEALLOC_LIBRARY",
                  library);
        fail(RUN_TROUBLE);
    }
    return library;
}

/* Nothing is started with options that the library does not take: those of the variable, and ours. */
static void check_options(const struct settings *settings, const char *library)
{
    const char *variable = getenv("TRACEALLOC_OPTIONS");
    char *refused = cli_library_refuses(library, variable != NULL ? variable : "");
    if (refused != NULL)
        cli_error("run: the variable TRACEALLOC_OPTIONS: %s", refused);
    else if ((refused = cli_library_refuses(library, settings->options)) != NULL)
        cli_error("run: --%s", refused);
    if (refused != NULL)
        fail(RUN_TROUBLE);
}

/* ---- the last words ---- */

static int is_zero(const char *frames)
{
    return strspn(frames, " \t\n\v\f\r+0") == strlen(frames);
}

static void show(const struct cli_command *command, char *file)
{
    char *arguments[] = {(char *)(uintptr_t)command->name, file, NULL};
    if (dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
        command->run(2, arguments);
}

/* Of what the started process held at its end. */
static int judge(const struct settings *settings, const struct cli_recordings *found)
{
    if (found->first == NULL)
        return cli_error("run: --fail-on-leak: there is no recording to judge");
    return cli_gate_leaks(found->first->path, settings->leak, settings->suppressions);
}

/* Two lines: where the recording is, and what to type next. Or one: why there is none. CLI_NO when there are leaks that
 * must not be, CLI_TROUBLE when that cannot be told. */
static int tell(const struct settings *settings, const char *pattern, const char *family, pid_t process,
                const struct timespec *since, int status)
{
    struct cli_recordings found;
    cli_recordings_find(&found, pattern, process, since);
    found.end = status;
    if (found.first == NULL && is_zero(settings->frames)) { /* and nobody asked for it meanwhile: tracealloc ctl */
        if (!settings->is_quiet)
            fputs("tracealloc: nothing was recorded: tracing was switched off\n", stderr);
        cli_recordings_free(&found);
        return settings->fails_on_leak ? CLI_TROUBLE : CLI_OK;
    }
    if (found.largest != NULL && settings->shows_top)
        show(&cli_top, cli_relative_path(found.largest->path));
    if (found.largest != NULL && settings->shows_leaks)
        show(&cli_growth, cli_relative_path(found.largest->path));
    char *index = found.first != NULL && cli_opener_write_index(process, status) ? cli_text("%s", family) : NULL;
    if (found.count == 0)
        cli_recordings_tell_none(pattern, process, status, settings->is_quiet);
    else if (!settings->is_quiet)
        cli_recordings_tell(&found, index, settings->wants_peak, settings->is_series, settings->shows_top);
    int answer = settings->fails_on_leak ? judge(settings, &found) : CLI_OK;
    free(index);
    cli_recordings_free(&found);
    return answer;
}

/* ---- the process ---- */

static volatile sig_atomic_t child;

/* Signals of the terminal reach the program by themselves; others are meant for it and are passed on. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    (void)context;
    int saved_errno = errno;
    if (info->si_code <= 0 && child > 0)
        kill((pid_t)child, number);
    errno = saved_errno;
}

static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,   SIGUSR2,
                                SIGALRM, SIGCONT, SIGPROF, SIGURG,  SIGVTALRM, SIGWINCH};
#define PASSED_ON (sizeof passed_on / sizeof *passed_on)

static void catch_signals(struct sigaction *former)
{
    struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < PASSED_ON; i++) {
        sigaction(passed_on[i], NULL, &former[i]);
        if (former[i].sa_handler != SIG_IGN) /* what we were told to ignore stays ignored, here and there */
            sigaction(passed_on[i], &action, NULL);
    }
}

static void prepare_environment(const struct settings *settings, const char *library, const char *pattern)
{
    const char *preloaded = getenv("LD_PRELOAD");
    const char *options = getenv("TRACEALLOC_OPTIONS");
    char *preload =
        preloaded != NULL && *preloaded != '\0' ? cli_text("%s:%s", library, preloaded) : cli_text("%s", library);
    char *all = cli_text("ends=yes,control=yes,%s%soutput=%s%s%s%s", options != NULL ? options : "",
                         options != NULL && *options != '\0' ? "," : "", pattern,
                         settings->is_series ? ",series=yes" : ",series=auto",
                         settings->does_not_follow ? ",follow=no" : "", settings->options);
    cli_opener_start(pattern);
    if (setenv("TRACEALLOC_OPENER", cli_opener_name(), 1) != 0 || setenv("LD_PRELOAD", preload, 1) != 0 ||
        setenv("TRACEALLOC", settings->frames, 1) != 0 || setenv("TRACEALLOC_OPTIONS", all, 1) != 0) {
        cli_error("run: the environment: %s", strerror(errno));
        fail(RUN_TROUBLE);
    }
    free(preload);
    free(all);
}

/* Where the other processes leave theirs; NULL: beside the first one's, because that is what was asked for. */
static char *family_of(const struct settings *settings, const char *pattern, pid_t process)
{
    if (settings->output != NULL && strstr(settings->output, "%p") != NULL)
        return NULL;
    char *folder = cli_family_folder_of(pattern, process);
    if (folder == NULL || (cli_run_output_fits_folder(folder) && cli_family_make(folder) == 0))
        return folder;
    if (!cli_run_output_is_pipe(pattern))
        cli_warning("run: %s: no folder for the recordings of further processes: they get names beside it", folder);
    free(folder);
    return NULL;
}

/* What only the process itself knows: its number, and what is named after it. */
static void complete_environment(const struct settings *settings, const char *pattern)
{
    struct stat namespace = {.st_ino = 0};
    (void)!stat("/proc/self/ns/pid", &namespace);
    char *family = family_of(settings, pattern, getpid()), *escaped = cli_text("%s", "");
    for (const char *at = family == NULL ? "" : family; *at != '\0'; at++)
        escaped = cli_text(*at == '%' ? "%s%%%%" : "%s%c", escaped, *at);
    char *options = cli_text("%s,process=%d%s%s", getenv("TRACEALLOC_OPTIONS"), (int)getpid(),
                             family == NULL ? "" : ",family=", escaped);
    if (namespace.st_ino != 0)
        options = cli_text("%s,namespace=%ju", options, (uintmax_t) namespace.st_ino);
    setenv("TRACEALLOC_OPTIONS", options, 1);
}

static pid_t start(const struct settings *settings, const char *pattern)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0)
        return -1;
    struct sigaction former[PASSED_ON];
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before); /* so that no signal meets a parent that has no child yet */
    catch_signals(former);
    pid_t process = fork();
    if (process == 0) {
        for (size_t i = 0; i < PASSED_ON; i++)
            sigaction(passed_on[i], &former[i], NULL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        complete_environment(settings, pattern);
        execvp(settings->program[0], settings->program);
        int error = errno;
        if (write(report[1], &error, sizeof error) < 0)
            _exit(RUN_TROUBLE);
        _exit(RUN_REFUSED);
    }
    child = process;
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    int error = 0;
    ssize_t got;
    do
        got = read(report[0], &error, sizeof error);
    while (got < 0 && errno == EINTR);
    close(report[0]);
    if (process > 0 && got == (ssize_t)sizeof error) {
        waitpid(process, NULL, 0);
        cli_error("run: %s: %s", settings->program[0], strerror(error));
        fail(error == ENOENT ? RUN_MISSING : RUN_REFUSED);
    }
    return process;
}

/* As the init of a container we have the orphans of all others. */
static int wait_for(pid_t process, int *status)
{
    for (;;) {
        pid_t ended = waitpid(getpid() == 1 ? -1 : process, status, 0);
        if (ended == process)
            return 0;
        if (ended < 0 && errno != EINTR)
            return -1;
    }
}

/* Ends as the program ended. Its core dump, if any, is written; ours would only cover it. */
static int end_like(int status)
{
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    int number = WTERMSIG(status);
    struct rlimit none = {0, 0};
    sigset_t set;
    setrlimit(RLIMIT_CORE, &none);
    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
    return 128 + number;
}

static int run(int argc, char **argv)
{
    static struct settings settings; /* static: failures end the program from anywhere */
    settings.options = cli_text("%s", "");
    char path[PATH_MAX], reason[PATH_MAX + 512];
    parse(&settings, argc, argv);
    if (settings.help)
        return cli_finish_output();
    enum cli_program_state state = cli_program_check(settings.program[0], path, sizeof path, reason, sizeof reason);
    if (state != CLI_PROGRAM_FINE) {
        cli_error("run: %s", reason);
        return state == CLI_PROGRAM_MISSING ? RUN_MISSING : RUN_REFUSED;
    }
    add_rules(&settings, path);
    char *library = cli_find_library();
    check_options(&settings, library);
    char *pattern = cli_run_output(settings.output, settings.program[0]);
    if (pattern == NULL)
        return RUN_TROUBLE;
    prepare_environment(&settings, library, pattern);
    free(library);

    struct timespec since;
    clock_gettime(CLOCK_REALTIME, &since);
    pid_t process = start(&settings, pattern);
    if (process < 0) {
        cli_error("run: %s: %s", settings.program[0], strerror(errno));
        return RUN_TROUBLE;
    }
    char *family = cli_family_folder_of(pattern, process);
    cli_opener_set_family(family, settings.output == NULL || strstr(settings.output, "%p") == NULL);
    cli_opener_serve();
    int status;
    if (wait_for(process, &status) != 0)
        return cli_error("run: %s", strerror(errno)), RUN_TROUBLE;
    child = 0;
    cli_opener_stop(process);
    unsetenv("LD_PRELOAD");
    int answer = tell(&settings, pattern, family, process, &since, status);
    if (family != NULL)
        (void)rmdir(family); /* it stays where there is something in it */
    free(family);
    free(pattern);
    free(settings.options);
    free(settings.suppressions);
    if (answer != CLI_OK && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return answer == CLI_NO ? RUN_LEAKS : RUN_TROUBLE;
    return end_like(status);
}

const struct cli_command cli_run = {
    .name = "run",
    .arguments = "[OPTION …] [--] PROGRAM [ARGUMENT …]",
    .summary = "run a program and record what it allocates",
    .help =
        "  --nframe[=N]     frames kept of each stack, 1 to 65535: whole stacks unless given, 1 without a number,\n"
        "                   0 or nothing after the = records nothing; overrides the variable TRACEALLOC\n"
        "  -o, --output FILE  the recording: tracealloc.PROGRAM.%p.ta unless given; %p is the process\n"
        "  --interval SECONDS a snapshot every so often, all in one file that may be read while it grows\n"
        "  --peak[=PERCENT] a snapshot at each new peak (that is so much above the former)\n"
        "  --signal NAME    a snapshot whenever the program gets the signal: USR1, USR2, HUP, …\n"
        "  --sample SIZE    trace one allocation per SIZE bytes in the mean, such as 512KiB: faster, estimated\n"
        "  --rules FILE     which modules and functions belong to which domain\n"
        "  --no-follow      do not trace the programs that this one starts (--follow: do, the default)\n"
        "  --stopped        record nothing until tracealloc ctl PID start\n"
        "  --top            list the ten largest places at the end, on standard error\n"
        "  --fail-on-leak[=BYTES] status 1 where the program would end with 0 and a function of one's own holds\n"
        "                   memory (more than BYTES) at its end; which ones is said on standard error\n"
        "  --suppressions FILE  leaks that are known: lines of leak:PART, or patterns of functions\n"
        "  --leaks          say at the end what grew and how: leak, cache or churn (tracealloc growth)\n"
        "  -q, --quiet      do not say where the recording is\n"
        "\n"
        "Without --interval, --peak and --signal the recording is a series by itself: entries by growth and time, as\n"
        "many as keep the file of an hour below 10 MB. The last entry is exact however the program ends: by itself,\n"
        "by exec, by a signal, SIGKILL included. What it has executed before keeps a recording NAME.1, NAME.2 …\n"
        "\n"
        "The program's exit status is passed on, or it is ended by the same signal. Else: 1 wrong number of frames,\n"
        "125 trouble, 126 the program cannot be traced, 127 there is no such program.\n"
        "\n"
        "  tracealloc run --top -- python3 -c 'import json'\n"
        "  tracealloc run --interval=1 -o server.ta -- ./server\n",
    .run = run,
};
