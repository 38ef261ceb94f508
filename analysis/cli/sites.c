/* sites.c: see sites.h. A baseline is a text of one line per site, in the order of names, so that a change of it can be
 * read by people:
 *
 *     # tracealloc baseline 1
 *     # live-bytes blocks peak-bytes calls site
 *     1536 12 4096 90 src/parse.c parse_line
 */
#include "analysis/cli/sites.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/cli/project.h"
#include "analysis/cli/terminal.h"

#define FIRST_LINE "# tracealloc baseline 1\n"
#define TOTAL_NAME "(all)"

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct cli_site *)a)->name, ((const struct cli_site *)b)->name);
}

/* Below the working directory: as it stands there; elsewhere, which another machine would not have, the last part. */
static const char *stable_path(const char *path)
{
    char here[PATH_MAX];
    size_t length = getcwd(here, sizeof here) == NULL ? 0 : strlen(here);
    if (length > 1 && strncmp(path, here, length) == 0 && path[length] == '/')
        return path + length + 1;
    const char *slash = strrchr(path, '/');
    return *path == '/' && slash != NULL ? slash + 1 : path;
}

static char *name_of(const struct ta_frame *frame)
{
    char function[512] = "";
    if (*frame->function != '\0')
        ta_function_text(frame->function, function, sizeof function);
    const char *path = stable_path(frame->filename);
    return *function != '\0' ? cli_text("%s %s", path, function) : cli_text("%s", path);
}

/* Takes the name over. */
static struct cli_site *add_site(struct cli_sites *sites, char *name)
{
    if (sites->count == sites->capacity) {
        sites->capacity = sites->capacity * 2 + 64;
        sites->rows = cli_enlarge(sites->rows, sites->capacity, sizeof *sites->rows);
    }
    struct cli_site *site = &sites->rows[sites->count++];
    *site = (struct cli_site){.name = name};
    return site;
}

static void add_to(struct cli_site *site, const struct cli_site *other)
{
    for (int m = 0; m < CLI_MEASURES; m++)
        site->values[m] += other->values[m];
    site->blocks += other->blocks;
    site->is_own |= other->is_own;
    if (site->file == NULL || other->largest > site->largest) {
        free(site->file);
        site->file = cli_text("%s", other->file != NULL ? other->file : "");
        site->line = other->line;
        site->largest = other->largest;
    }
}

static void sort(struct cli_sites *sites)
{
    if (sites->count > 1)
        qsort(sites->rows, sites->count, sizeof *sites->rows, compare_names);
}

/* Lines of one function are one site. */
static void join(struct cli_sites *sites)
{
    size_t kept = 0;
    sort(sites);
    for (size_t i = 0; i < sites->count; i++) {
        if (kept > 0 && strcmp(sites->rows[kept - 1].name, sites->rows[i].name) == 0) {
            add_to(&sites->rows[kept - 1], &sites->rows[i]);
            free(sites->rows[i].name);
            free(sites->rows[i].file);
        } else {
            sites->rows[kept++] = sites->rows[i];
        }
    }
    sites->count = kept;
    sites->total = (struct cli_site){.name = cli_text("%s", TOTAL_NAME)};
    for (size_t i = 0; i < kept; i++)
        add_to(&sites->total, &sites->rows[i]);
    free(sites->total.file); /* all is nowhere */
    sites->total.file = NULL;
    sites->total.line = 0;
}

static int load_recording(struct cli_sites *sites, const char *path, const char *key)
{
    struct ta_snapshot *snapshot = cli_load(path);
    if (snapshot == NULL)
        return CLI_TROUBLE;
    if (cli_use_rules(NULL, snapshot, NULL) != CLI_OK) {
        ta_snapshot_free(snapshot);
        return CLI_TROUBLE;
    }
    cli_progress_begin("grouping the traces");
    struct ta_statistics *statistics = ta_snapshot_churn(snapshot, key, 0);
    cli_progress_end();
    for (size_t i = 0; i < ta_statistics_count(statistics); i++) {
        struct ta_statistic row;
        struct ta_frame frame = {.filename = "", .function = "", .raw_name = ""};
        ta_statistics_get(statistics, i, &row);
        ta_traceback_frame(row.traceback, -1, &frame);
        struct cli_site *site = add_site(sites, name_of(&frame));
        site->file = cli_text("%s", stable_path(frame.filename));
        site->line = frame.lineno;
        site->is_own = *frame.raw_name != '\0' || frame.lineno > 0; /* libraries without names have places alone */
        site->values[CLI_LIVE] = row.size;
        site->values[CLI_PEAK] = row.peak_size;
        site->values[CLI_CALLS] = row.allocated_count;
        site->blocks = row.count;
        site->largest = row.size;
    }
    int status = statistics == NULL ? cli_library_error(path) : CLI_OK;
    struct ta_snapshot_info info;
    join(sites);
    if (ta_snapshot_info(snapshot, &info, sizeof info) == 0 && info.peak_bytes > 0)
        sites->total.values[CLI_PEAK] = info.peak_bytes;
    ta_statistics_free(statistics);
    ta_snapshot_free(snapshot);
    return status;
}

static int load_baseline(struct cli_sites *sites, const char *path, const char *text)
{
    size_t number = 1;
    join(sites);
    for (const char *line = strchr(text, '\n'); line != NULL && line[1] != '\0'; line = strchr(line + 1, '\n')) {
        uint64_t values[CLI_MEASURES], blocks;
        int at = 0;
        number++;
        if (line[1] == '#' || line[1] == '\n')
            continue;
        if (sscanf(line + 1, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %n", &values[CLI_LIVE], &blocks,
                   &values[CLI_PEAK], &values[CLI_CALLS], &at) != 4 ||
            at == 0 || line[1 + at] == '\n' || line[1 + at] == '\0')
            return cli_error("%s:%zu: expected \"live-bytes blocks peak-bytes calls site\"", path, number);
        char *name = cli_text("%.*s", (int)strcspn(line + 1 + at, "\n"), line + 1 + at);
        struct cli_site *site = &sites->total;
        if (strcmp(name, TOTAL_NAME) != 0)
            site = add_site(sites, name);
        else
            free(name);
        memcpy(site->values, values, sizeof values);
        site->blocks = blocks;
    }
    sort(sites);
    for (size_t i = 1; i < sites->count; i++)
        if (strcmp(sites->rows[i - 1].name, sites->rows[i].name) == 0)
            return cli_error("%s: the site \"%s\" comes twice", path, sites->rows[i].name);
    return CLI_OK;
}

int cli_sites_load(struct cli_sites *sites, const char *path, const char *key)
{
    char begin[sizeof FIRST_LINE] = "";
    FILE *file = fopen(path, "re");
    *sites = (struct cli_sites){0};
    if (file != NULL) {
        size_t got = fread(begin, 1, sizeof begin - 1, file);
        fclose(file);
        if (got == sizeof begin - 1 && strcmp(begin, FIRST_LINE) == 0) {
            size_t length;
            char *text = cli_read_file(path, &length);
            int status = text == NULL ? CLI_TROUBLE : load_baseline(sites, path, text);
            free(text);
            return status;
        }
    }
    return load_recording(sites, path, key);
}

void cli_sites_free(struct cli_sites *sites)
{
    for (size_t i = 0; i < sites->count; i++) {
        free(sites->rows[i].name);
        free(sites->rows[i].file);
    }
    free(sites->rows);
    free(sites->total.name);
    free(sites->total.file);
}

static void write_site(const struct cli_site *site, FILE *file)
{
    fprintf(file, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", site->values[CLI_LIVE], site->blocks,
            site->values[CLI_PEAK], site->values[CLI_CALLS], site->name);
}

void cli_sites_write(const struct cli_sites *sites, FILE *file)
{
    fputs(FIRST_LINE "# live-bytes blocks peak-bytes calls site\n", file);
    write_site(&sites->total, file);
    for (size_t i = 0; i < sites->count; i++)
        write_site(&sites->rows[i], file);
}
