/* cmd_cost.c: tracealloc cost — what tracing would cost this program: the same command in turns under each mode. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/measured.h"
#include "analysis/cli/program.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/whole_file.h"

struct mode {
    const char *name, *title;
    const char *frames, *options; /* for the environment; NULL = not set */
    enum { NOTHING, LIBRARY, UNTRACED } preload;
};

static const struct mode all_modes[] = {
    {"own", "its own malloc", NULL, NULL, NOTHING},
    {"untraced", "the library without tracing", NULL, NULL, UNTRACED},
    {"stopped", "traced by nobody", NULL, NULL, LIBRARY},
    {"sampled", "samples of 512 KiB", "65535", "sample=512K", LIBRARY},
    {"one", "one frame", "1", NULL, LIBRARY},
    {"whole", "whole stacks", "65535", NULL, LIBRARY},
};
#define MODES (sizeof all_modes / sizeof *all_modes)

enum quantity { CPU, WALL, MEMORY, INSTRUCTIONS, QUANTITIES };
static const char *const quantity_names[] = {"cpu", "wall", "memory", "instructions"};

struct cost {
    size_t rounds;
    int is_json, is_markdown, wants_instructions, ignores_status;
    const char *input_name;
    int input; /* what the program reads, in each run from input_start */
    off_t input_start;
    const char *load;
    double seconds; /* 0 = until the program ends by itself */
    struct mode modes[MODES];
    size_t mode_count;
    char *library, *untraced;
    double *values[MODES][QUANTITIES]; /* by round; < 0 = not known */
    char **command;
};

/* ---- what the runs say ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_of(const double *values, size_t count)
{
    double *sorted = cli_allocate(count, sizeof *sorted);
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_doubles);
    double median = count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
    free(sorted);
    return median;
}

/* Few runs tell nothing of what is usual; fewer nothing of how far ratios vary. */
#define ENOUGH              5
#define ENOUGH_FOR_INTERVAL 3

/* Values further than three standard deviations from the median, the deviation estimated without them. */
static size_t count_outliers(const double *values, size_t count)
{
    if (count < ENOUGH)
        return 0;
    double middle = median_of(values, count), *distances = cli_allocate(count, sizeof *distances);
    size_t outliers = 0;
    for (size_t i = 0; i < count; i++)
        distances[i] = fabs(values[i] - middle);
    double allowed = 3 * 1.4826 * median_of(distances, count);
    for (size_t i = 0; i < count; i++)
        outliers += allowed > 0 && distances[i] > allowed && distances[i] > 0.02 * middle;
    free(distances);
    return outliers;
}

/* Two-sided 95 % of Student's t. */
static double t_of(size_t degrees)
{
    static const double table[] = {0,     12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                   2.201, 2.179,  2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};
    size_t last = sizeof table / sizeof *table - 1;
    return degrees <= last ? table[degrees] : 1.96 + 2.4 / (double)degrees;
}

struct ratio {
    double mean, low, high; /* low and high: 95 %; NAN with too few rounds */
    int is_known;
};

/* The geometric mean of the rounds' ratios: both runs of a ratio were neighbours in time. */
static struct ratio ratio_of(const double *values, const double *base, size_t rounds)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < rounds; i++) {
        if (values[i] <= 0 || base[i] <= 0)
            return (struct ratio){0, 0, 0, 0};
        double logarithm = log(values[i] / base[i]);
        sum += logarithm;
        squares += logarithm * logarithm;
    }
    double n = (double)rounds, mean = sum / n;
    double half = rounds < ENOUGH_FOR_INTERVAL
                      ? NAN
                      : t_of(rounds - 1) * sqrt(fmax(0, squares / n - mean * mean) * n / (n - 1) / n);
    return (struct ratio){exp(mean), exp(mean - half), exp(mean + half), 1};
}

/* ---- telling ---- */

static struct ratio ratio_in(const struct cost *cost, size_t mode, enum quantity quantity)
{
    return ratio_of(cost->values[mode][quantity], cost->values[0][quantity], cost->rounds);
}

static void print_json(const struct cost *cost)
{
    printf("{\"rounds\": %zu, \"base\": \"%s\", \"modes\": [", cost->rounds, cost->modes[0].name);
    for (size_t m = 0; m < cost->mode_count; m++) {
        printf("%s\n {\"mode\": \"%s\"", m > 0 ? "," : "", cost->modes[m].name);
        for (int q = 0; q < QUANTITIES; q++) {
            struct ratio ratio = ratio_in(cost, m, q);
            if (!ratio.is_known)
                continue;
            printf(", \"%s\": {\"median\": %.6g, \"ratio\": %.5f", quantity_names[q],
                   median_of(cost->values[m][q], cost->rounds), ratio.mean);
            if (!isnan(ratio.low))
                printf(", \"low\": %.5f, \"high\": %.5f", ratio.low, ratio.high);
            printf(", \"outliers\": %zu, \"runs\": [", count_outliers(cost->values[m][q], cost->rounds));
            for (size_t i = 0; i < cost->rounds; i++)
                printf("%s%.6g", i > 0 ? ", " : "", cost->values[m][q][i]);
            printf("]}");
        }
        putchar('}');
    }
    puts("\n]}");
}

static char *ratio_text(struct ratio ratio)
{
    if (!ratio.is_known)
        return cli_text("-");
    int is_one = isnan(ratio.low) || ratio.low >= ratio.high;
    return is_one ? cli_text("%.3f", ratio.mean) : cli_text("%.3f [%.3f, %.3f]", ratio.mean, ratio.low, ratio.high);
}

/* Of one mode. */
static void print_figures(const struct cost *cost, size_t mode)
{
    const char *format = cost->is_markdown ? "| %-9s | %8.3f s | %8.3f s | %9s |" : "%-9s %8.3f s %8.3f s %9s ";
    char memory[32];
    ta_size_text(median_of(cost->values[mode][MEMORY], cost->rounds), 0, memory, sizeof memory);
    printf(format, cost->modes[mode].name, median_of(cost->values[mode][CPU], cost->rounds),
           median_of(cost->values[mode][WALL], cost->rounds), memory);
}

static void print_ratios(const struct cost *cost, size_t mode, const char *format, const char *last)
{
    for (int q = 0; q < QUANTITIES; q++) {
        char *text = ratio_text(ratio_in(cost, mode, q));
        printf(q + 1 < QUANTITIES ? format : last, text);
        free(text);
    }
    putchar('\n');
}

static void print_rows(const struct cost *cost)
{
    if (cost->is_markdown)
        puts("| mode | cpu | wall | peak memory | cpu ratio | wall ratio | memory ratio | instructions ratio |\n"
             "|---|---|---|---|---|---|---|---|");
    else
        printf("%-9s %10s %10s %9s  %-22s %-22s %-22s %s\n", "MODE", "CPU", "WALL", "MEMORY", "CPU TIMES", "WALL TIMES",
               "MEMORY TIMES", "INSTRUCTIONS TIMES");
    for (size_t m = 0; m < cost->mode_count; m++) {
        print_figures(cost, m);
        print_ratios(cost, m, cost->is_markdown ? " %s |" : " %-22s", cost->is_markdown ? " %s |" : " %s");
    }
}

/* The same in two tables, for terminals of eighty columns. */
static void print_rows_below(const struct cost *cost)
{
    printf("%-9s %10s %10s %9s\n", "MODE", "CPU", "WALL", "MEMORY");
    for (size_t m = 0; m < cost->mode_count; m++) {
        print_figures(cost, m);
        putchar('\n');
    }
    printf("\n%-9s %-20s %-20s %-20s %s\n", "TIMES", "CPU", "WALL", "MEMORY", "INSTR.");
    for (size_t m = 0; m < cost->mode_count; m++) {
        printf("%-9s", cost->modes[m].name);
        print_ratios(cost, m, " %-20s", " %s");
    }
}

static void print_table(const struct cost *cost)
{
    enum { WIDE = 132 };
    size_t outliers = 0;
    if (cost->is_markdown || cli_width() >= WIDE)
        print_rows(cost);
    else
        print_rows_below(cost);
    for (size_t m = 0; m < cost->mode_count; m++)
        for (int q = CPU; q <= WALL; q++)
            outliers += count_outliers(cost->values[m][q], cost->rounds);
    printf("\n%zu round%s in turns after a warm-up; medians, and ratios to \"%s\" as geometric means of the rounds",
           cost->rounds, cli_s(cost->rounds), cost->modes[0].name);
    puts(cost->rounds >= ENOUGH_FOR_INTERVAL ? " with 95 % intervals." : "; too few rounds for intervals.");
    if (outliers > 0)
        printf("%zu outlier%s among the times: something else was running, or the program varies.\n", outliers,
               cli_s(outliers));
    if (cost->values[0][INSTRUCTIONS][0] < 0)
        printf("Instructions are not counted here: the kernel or the machine does not let them be%s.\n",
               cost->seconds > 0 ? "" : "; --instructions asks valgrind");
}

/* ---- running ---- */

typedef int (*measuring_function)(const struct cli_measuring *measuring, struct cli_measured *measured);

enum { PATIENCE = 10 };

static int failed(const char *who, const struct mode *mode, int status, const char *advice)
{
    int is_signal = status > 128;
    return cli_error("cost: %s failed under \"%s\": %s %d%s", who, mode->name, is_signal ? "signal" : "status",
                     is_signal ? status - 128 : status, advice);
}

/* A failure is no measurement, and what was not asked for is none either. */
static int judge(const struct cost *cost, const struct mode *mode, const struct cli_measured *measured)
{
    const char *name = cost->command[0];
    int status = measured->status;
    if (measured->is_killed)
        return cli_error("cost: %s was killed: under \"%s\" it did not end within %d s of SIGTERM", name, mode->name,
                         PATIENCE);
    if (status > 128 || (status != 0 && !cost->ignores_status))
        return failed(name, mode, status, status > 128 ? "" : " (-i measures it all the same)");
    if (measured->load_status != 0)
        return failed("the load", mode, measured->load_status, "");
    if (measured->is_early)
        return cli_error(
            "cost: %s ended by itself under \"%s\", after %.3f s: --for is for a server that stays, and in "
            "the foreground",
            name, mode->name, measured->wall_seconds);
    return CLI_OK;
}

static int run_once(const struct cost *cost, const struct mode *mode, measuring_function by,
                    struct cli_measured *measured)
{
    const char *preload = mode->preload == LIBRARY ? cost->library : mode->preload == UNTRACED ? cost->untraced : NULL;
    const struct cli_measuring measuring = {.command = cost->command,
                                            .preload = preload,
                                            .frames = mode->frames,
                                            .options = mode->options,
                                            .load = cost->load,
                                            .seconds = cost->seconds,
                                            .patience = PATIENCE,
                                            .input = cost->input};
    if (lseek(cost->input, cost->input_start, SEEK_SET) < 0 || by(&measuring, measured) != 0)
        return cli_error("cost: %s", strerror(errno));
    return judge(cost, mode, measured);
}

/* Each round begins with another mode, so that none always comes first. */
static int run_rounds(struct cost *cost, size_t total)
{
    int status = CLI_OK;
    struct cli_measured measured;
    size_t done = 0;
    for (size_t round = 0; round <= cost->rounds && status == CLI_OK; round++)
        for (size_t m = 0; m < cost->mode_count && status == CLI_OK; m++) {
            size_t mode = (m + round) % cost->mode_count;
            status = run_once(cost, &cost->modes[mode], cli_measure, &measured);
            cli_progress_set(NULL, ++done, total);
            if (round == 0)
                continue; /* the warm-up */
            cost->values[mode][CPU][round - 1] = measured.cpu_seconds;
            cost->values[mode][WALL][round - 1] = measured.wall_seconds;
            cost->values[mode][MEMORY][round - 1] = measured.peak_bytes;
            cost->values[mode][INSTRUCTIONS][round - 1] = measured.instructions;
        }
    return status;
}

/* Where the processor does not say it: once for each mode, for they do not change. */
static int count_instructions(struct cost *cost, size_t total)
{
    struct cli_measured measured;
    char path[4096], reason[512];
    if (cli_program_check("valgrind", path, sizeof path, reason, sizeof reason) == CLI_PROGRAM_MISSING) {
        cli_warning("%s: instructions are not counted", reason);
        return CLI_OK;
    }
    for (size_t mode = 0; mode < cost->mode_count; mode++) {
        int status = run_once(cost, &cost->modes[mode], cli_measure_by_valgrind, &measured);
        if (status != CLI_OK)
            return status;
        if (measured.instructions < 0)
            return cli_error("cost: valgrind said no count under \"%s\"", cost->modes[mode].name);
        for (size_t round = 0; round < cost->rounds; round++)
            cost->values[mode][INSTRUCTIONS][round] = measured.instructions;
        cli_progress_set("counting instructions", total - cost->mode_count + mode + 1, total);
    }
    return CLI_OK;
}

static int run_all(struct cost *cost)
{
    size_t total = (cost->rounds + 1 + (size_t)cost->wants_instructions) * cost->mode_count;
    cli_progress_begin("running the program");
    int status = run_rounds(cost, total);
    if (status == CLI_OK && cost->wants_instructions && cost->values[0][INSTRUCTIONS][0] < 0)
        status = count_instructions(cost, total);
    cli_progress_end();
    return status;
}

/* ---- what was asked ---- */

enum { MODES_OPTION = 1, FOR, LOAD, INSTRUCTIONS_OPTION, JSON, MARKDOWN };
static const struct option long_options[] = {
    {"modes", required_argument, NULL, MODES_OPTION},
    {"for", required_argument, NULL, FOR},
    {"load", required_argument, NULL, LOAD},
    {"input", required_argument, NULL, 'I'},
    {"ignore-failure", no_argument, NULL, 'i'},
    {"instructions", no_argument, NULL, INSTRUCTIONS_OPTION},
    {"json", no_argument, NULL, JSON},
    {"markdown", no_argument, NULL, MARKDOWN},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int choose_modes(struct cost *cost, const char *words)
{
    cost->mode_count = 0;
    while (*words != '\0') {
        size_t length = strcspn(words, ","), found = 0;
        while (found < MODES &&
               (strlen(all_modes[found].name) != length || memcmp(all_modes[found].name, words, length) != 0))
            found++;
        if (found == MODES || cost->mode_count == MODES)
            return cli_error("cost: --modes: unknown mode '%.*s' (own, untraced, stopped, sampled, one, whole)",
                             (int)length, words),
                   -1;
        cost->modes[cost->mode_count++] = all_modes[found];
        words += length + (words[length] == ',');
    }
    return cost->mode_count > 0 ? 0 : (cli_error("cost: --modes: none is named"), -1);
}

static int take_option(struct cost *cost, int option)
{
    char *end;
    switch (option) {
    case 'r':
        cost->rounds = strtoul(optarg, &end, 10);
        return *end == '\0' && cost->rounds > 0 && cost->rounds <= 100000
                   ? 0
                   : (cli_error("cost: -r: expected a number of rounds, not '%s'", optarg), -1);
    case MODES_OPTION:
        return choose_modes(cost, optarg);
    case FOR:
        cost->seconds = strtod(optarg, &end);
        return *end == '\0' && cost->seconds > 0 ? 0
                                                 : (cli_error("cost: --for: expected seconds, not '%s'", optarg), -1);
    case LOAD:
        cost->load = optarg;
        return 0;
    case 'I':
        cost->input_name = optarg;
        return 0;
    case 'i':
        cost->ignores_status = 1;
        return 0;
    case INSTRUCTIONS_OPTION:
        cost->wants_instructions = 1;
        return 0;
    case JSON:
        cost->is_json = 1;
        return 0;
    default:
        cost->is_markdown = 1;
        return 0;
    }
}

/* 0, or 1 when help was printed, or -1 after a message. */
static int parse(struct cost *cost, int argc, char **argv)
{
    int option;
    optind = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:r:ih", long_options, NULL)) != -1) {
        const char *given = argv[optind > 0 ? optind - 1 : 0];
        if (option == 'h') {
            printf("usage: tracealloc cost %s\n%s\n\n%s", cli_cost.arguments, cli_cost.summary, cli_cost.help);
            return 1;
        }
        if (option == ':')
            return cli_error("cost: %s wants a value", given), -1;
        if (option == '?')
            return cli_error("cost: unknown option '%s' (see tracealloc cost --help)", given), -1;
        if (take_option(cost, option) != 0)
            return -1;
    }
    if (optind == argc)
        return cli_error("usage: tracealloc cost %s", cli_cost.arguments), -1;
    if (cost->load != NULL && cost->seconds <= 0)
        return cli_error("cost: --load wants --for SECONDS, the longest it may take"), -1;
    if (cost->wants_instructions && cost->seconds > 0)
        return cli_error("cost: --instructions goes without --for: under valgrind a server would have another load"),
               -1;
    cost->command = argv + optind;
    return 0;
}

/* Below the library's folder, where it is installed, or beside it. */
static void find_untraced(struct cost *cost)
{
    static const char *const folders[] = {"/tracealloc", ""};
    char *slash = strrchr(cost->library, '/');
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        free(cost->untraced);
        cost->untraced =
            cli_text("%.*s%s/libtracealloc-untraced.so", (int)(slash - cost->library), cost->library, folders[i]);
        if (access(cost->untraced, R_OK) == 0)
            return;
    }
    size_t kept = 0;
    for (size_t m = 0; m < cost->mode_count; m++)
        if (cost->modes[m].preload != UNTRACED)
            cost->modes[kept++] = cost->modes[m];
    if (kept < cost->mode_count)
        cli_warning("%s is not there: without \"untraced\"", cost->untraced);
    cost->mode_count = kept;
}

/* Each run reads the same from its beginning: a file. What comes by a pipe could be read once only. */
static int open_input(struct cost *cost)
{
    struct stat status;
    const char *name = cost->input_name != NULL ? cost->input_name : "/dev/null";
    if (cost->input_name == NULL && fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode)) {
        cost->input = STDIN_FILENO;
        cost->input_start = lseek(STDIN_FILENO, 0, SEEK_CUR);
        return 0;
    }
    cost->input = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (cost->input < 0 || fstat(cost->input, &status) != 0)
        return cli_error("cost: %s: %s", name, strerror(errno)), -1;
    if (cost->input_name != NULL && !S_ISREG(status.st_mode))
        return cli_error("cost: --input %s: is not a file, which each run could read from its beginning", name), -1;
    return 0;
}

static void say_unread_input(const struct cost *cost)
{
    int bytes = 0;
    if (cost->input != STDIN_FILENO && cost->input_name == NULL && ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 &&
        bytes > 0 && !isatty(STDIN_FILENO))
        cli_warning("what was piped in was not read: --input FILE gives it to each run");
}

/* Whoever ends this does not leave the program behind. */
static void end_program(void)
{
    cli_measure_pass_on(SIGTERM);
}

static int measure(struct cost *cost)
{
    char path[4096], reason[512];
    if (open_input(cost) != 0)
        return CLI_TROUBLE;
    if (cli_program_check(cost->command[0], path, sizeof path, reason, sizeof reason) != CLI_PROGRAM_FINE)
        return cli_error("cost: %s", reason);
    cost->library = cli_find_library();
    find_untraced(cost);
    if (cost->mode_count == 0)
        return CLI_TROUBLE;
    for (size_t m = 0; m < cost->mode_count; m++)
        for (int q = 0; q < QUANTITIES; q++)
            cost->values[m][q] = cli_allocate(cost->rounds, sizeof(double));
    cli_at_interruption(end_program);
    int status = run_all(cost);
    say_unread_input(cost);
    if (status == CLI_OK && cost->is_json)
        print_json(cost);
    else if (status == CLI_OK)
        print_table(cost);
    return status == CLI_OK ? cli_finish_output() : status;
}

static int run(int argc, char **argv)
{
    struct cost cost = {.rounds = 5, .mode_count = MODES};
    memcpy(cost.modes, all_modes, sizeof all_modes);
    int parsed = parse(&cost, argc, argv);
    int status = parsed < 0 ? CLI_TROUBLE : parsed > 0 ? cli_finish_output() : measure(&cost);
    for (size_t m = 0; m < MODES; m++)
        for (int q = 0; q < QUANTITIES; q++)
            free(cost.values[m][q]);
    free(cost.library);
    free(cost.untraced);
    return status;
}

const struct cli_command cli_cost = {
    .name = "cost",
    .arguments = "[-r N] [--modes LIST] [-i] [--input FILE] [--instructions | --for SECONDS [--load COMMAND]] "
                 "[--json | --markdown] -- PROGRAM [ARGUMENT …]",
    .summary = "measure what tracing costs this program: time, memory, instructions",
    .help =
        "  -r N             rounds: 5 unless given\n"
        "  --modes LIST     own, untraced, stopped, sampled, one, whole: all unless given; the first is the base "
        "of the\n"
        "                   ratios\n"
        "  -i, --ignore-failure\n"
        "                   measure it also when its status is not 0\n"
        "  --input FILE     what each run reads; standard input unless given, where that is a file, and nothing where "
        "it is\n"
        "                   not\n"
        "  --instructions   count them by valgrind where the processor does not let them be: once for each mode, "
        "some\n"
        "                   fifty times as long\n"
        "  --for SECONDS    a server: end it with SIGTERM after so long, or when the load has ended\n"
        "  --load COMMAND   what keeps the server busy, for the shell; started half a second after it\n"
        "  --json           every run, medians, ratios with their intervals, outliers\n"
        "  --markdown       a table for a document\n"
        "\n"
        "The program runs in turns under each mode, its output is thrown away, nothing is recorded. A first round "
        "warms\n"
        "up and does not count. Ratios are geometric means over rounds, with 95 % intervals from three on.\n"
        "\n"
        "  tracealloc cost -r 10 -- ./program input\n"
        "  tracealloc cost --for 20 --load 'redis-benchmark -q' -- redis-server --save ''\n",
    .run = run,
};
