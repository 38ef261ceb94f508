/* family.c: see family.h: a family as a reader finds it. */
#include "analysis/cli/family.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/cli/terminal.h"

#define FIRST_WORDS "tracealloc run 2"

enum { PROCESS, PARENT, END, REASON, FILE_NAME, COMMAND, WHY, COLUMNS_OF_INDEX };

struct family {
    char *folder, *index;
    char *run; /* its name; "" = not known */
    struct cli_family_member *rows;
    size_t count;
    const char **listed; /* names of files, in order */
    size_t listed_count;
};

static int is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

int cli_family_is_recording(const char *name)
{
    size_t digits = strspn(name, "0123456789");
    if (digits == 0 || strncmp(name + digits, ".ta", 3) != 0)
        return 0;
    const char *rest = name + digits + 3;
    return *rest == '\0' || (*rest == '.' && rest[1] != '\0' && rest[1 + strspn(rest + 1, "0123456789")] == '\0');
}

static int has_index(const char *path)
{
    char line[sizeof FIRST_WORDS] = "";
    FILE *file = fopen(path, "r");
    int is_one = file != NULL && fgets(line, sizeof line, file) != NULL && strcmp(line, FIRST_WORDS) == 0;
    if (file != NULL)
        fclose(file);
    return is_one;
}

/* The name that `test` likes, or none. */
static char *first_name(const char *folder, int (*test)(const char *name))
{
    char *found = NULL;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries != NULL && found == NULL && (entry = readdir(entries)) != NULL;)
        if (test(entry->d_name))
            found = cli_text("%s/%s", folder, entry->d_name);
    if (entries != NULL)
        closedir(entries);
    return found;
}

int cli_family_is(const char *path)
{
    if (!is_folder(path))
        return has_index(path);
    char *index = cli_text("%s/index", path);
    int is_one = has_index(index);
    free(index);
    if (!is_one && strlen(path) > 4 && strstr(path, ".run") != NULL) { /* run was killed before it wrote one */
        char *recording = first_name(path, cli_family_is_recording);
        is_one = recording != NULL;
        free(recording);
    }
    return is_one;
}

/* ---- the index ---- */

static void unescape(char *text)
{
    char *to = text;
    for (; *text != '\0'; text++)
        if (*text == '%' && isxdigit((unsigned char)text[1]) && isxdigit((unsigned char)text[2])) {
            char digits[3] = {text[1], text[2], '\0'};
            *to++ = (char)strtol(digits, NULL, 16);
            text += 2;
        } else {
            *to++ = *text;
        }
    *to = '\0';
}

static char *known(char *text)
{
    return strcmp(text, "-") == 0 ? NULL : text;
}

static struct cli_family_member *add_row(struct family *family)
{
    family->rows = cli_enlarge(family->rows, family->count + 1, sizeof *family->rows);
    family->rows[family->count] = (struct cli_family_member){.process = 0};
    return &family->rows[family->count++];
}

/* Of a name in the index, seen from the folder; that of the process that was started stands beside the folder. */
static char *path_in(const char *folder, const char *name)
{
    const char *slash = strrchr(folder, '/');
    int is_beside = strncmp(name, "../", 3) == 0 && strcmp(slash == NULL ? folder : slash + 1, ".") != 0;
    if (*name == '/')
        return cli_text("%s", name);
    if (!is_beside)
        return cli_text("%s/%s", folder, name);
    return slash == NULL ? cli_text("%s", name + 3) : cli_text("%.*s/%s", (int)(slash - folder), folder, name + 3);
}

/* 0 when the line has other columns than ours. Its fields lie in the line, which stays. */
static int take_line(struct family *family, char *line)
{
    char *fields[COLUMNS_OF_INDEX];
    int column = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *at = line; at != NULL && column < COLUMNS_OF_INDEX; column++) {
        fields[column] = strsep(&at, "\t");
        unescape(fields[column]);
        if ((at == NULL) != (column + 1 == COLUMNS_OF_INDEX))
            return 0;
    }
    if (column != COLUMNS_OF_INDEX)
        return 0;
    struct cli_family_member *row = add_row(family);
    char *file = known(fields[FILE_NAME]);
    *row = (struct cli_family_member){.path = file == NULL ? NULL : path_in(family->folder, file),
                                      .command = known(fields[COMMAND]),
                                      .end = known(fields[END]),
                                      .reason = known(fields[REASON]),
                                      .why = known(fields[WHY]),
                                      .process = (uint32_t)strtoul(fields[PROCESS], NULL, 10),
                                      .parent = (uint32_t)strtoul(fields[PARENT], NULL, 10)};
    return 1;
}

static void read_index(struct family *family)
{
    FILE *file = fopen(family->index, "r");
    for (int number = 1; file != NULL; number++) {
        char *line = NULL;
        size_t room = 0;
        if (getline(&line, &room, file) < 0) {
            free(line);
            break;
        }
        if (number == 1) {
            char *tab = strchr(line, '\t');
            line[strcspn(line, "\n")] = '\0';
            family->run = cli_text("%s", tab != NULL ? tab + 1 : "");
        } else if (!take_line(family, line)) {
            cli_warning("%s: line %d is no process of a run: left out", family->index, number);
        }
    }
    if (file != NULL)
        fclose(file);
}

/* ---- what the index does not know ---- */

static int is_last_reason(const char *reason)
{
    return strcmp(reason, "exit") == 0 || strcmp(reason, "end") == 0 || strcmp(reason, "exec") == 0;
}

/* Who went on when the run was over has said its last words to nobody: they stand in its recording. */
static void complete_rows(struct family *family)
{
    for (size_t i = 0; i < family->count; i++) {
        struct cli_family_member *row = &family->rows[i];
        struct ta_recording *recording = row->path == NULL || row->reason != NULL ? NULL : ta_recording_open(row->path);
        size_t entries = recording == NULL ? 0 : ta_recording_entry_count(recording);
        const char *reason = entries == 0 ? "" : ta_recording_reason(recording, entries - 1);
        if (is_last_reason(reason))
            row->reason = cli_text("%s", reason);
        ta_recording_close(recording);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static void list_names(struct family *family)
{
    family->listed = cli_allocate(family->count + 1, sizeof *family->listed);
    for (size_t i = 0; i < family->count; i++)
        if (family->rows[i].path != NULL)
            family->listed[family->listed_count++] = name_of(family->rows[i].path);
    qsort(family->listed, family->listed_count, sizeof *family->listed, by_name);
}

static int is_listed(const struct family *family, const char *path)
{
    const char *name = name_of(path);
    return bsearch(&name, family->listed, family->listed_count, sizeof *family->listed, by_name) != NULL;
}

static char *fact(struct ta_snapshot *snapshot, const char *key)
{
    const char *value = ta_snapshot_metadata(snapshot, key);
    return value == NULL ? NULL : cli_text("%s", value);
}

/* A recording of this run, from what it says itself. */
static void add_recording(struct family *family, char *path)
{
    struct ta_snapshot_info info;
    struct ta_snapshot *snapshot = is_listed(family, path) ? NULL : ta_snapshot_load(path);
    char *run = snapshot == NULL ? NULL : fact(snapshot, "run");
    if (run != NULL && *family->run == '\0')
        family->run = cli_text("%s", run);
    if (run != NULL && strcmp(run, family->run) == 0 && ta_snapshot_info(snapshot, &info, sizeof info) == 0) {
        char *parent = fact(snapshot, "process.parent");
        *add_row(family) =
            (struct cli_family_member){.path = cli_text("%s", path),
                                       .command = fact(snapshot, "process.command"),
                                       .end = fact(snapshot, "crash.signal"),
                                       .reason = is_last_reason(info.reason) ? cli_text("%s", info.reason) : NULL,
                                       .process = info.pid,
                                       .parent = parent == NULL ? 0 : (uint32_t)strtoul(parent, NULL, 10)};
        free(parent);
    }
    free(run);
    ta_snapshot_free(snapshot);
}

static void add_unlisted(struct family *family)
{
    DIR *entries = opendir(family->folder);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        if (cli_family_is_recording(entry->d_name)) {
            char *path = cli_text("%s/%s", family->folder, entry->d_name);
            add_recording(family, path);
            free(path);
        }
    if (entries != NULL)
        closedir(entries);
    size_t length = strlen(family->folder);
    if (length > 4 && strcmp(family->folder + length - 4, ".run") == 0) { /* that of the process that was started */
        char *own = cli_text("%.*s.ta", (int)(length - 4), family->folder);
        if (access(own, R_OK) == 0)
            add_recording(family, own);
        free(own);
    }
}

static void read_family(struct family *family, const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    *family = (struct family){.run = cli_text("%s", "")};
    if (is_folder(path)) {
        family->folder = cli_text("%.*s", (int)length, path);
        family->index = cli_text("%s/index", family->folder);
    } else {
        const char *slash = strrchr(path, '/');
        family->index = cli_text("%s", path);
        family->folder = slash == NULL ? cli_text(".") : cli_text("%.*s", (int)(slash - path), path);
    }
    read_index(family);
    complete_rows(family);
    list_names(family);
    add_unlisted(family);
    free(family->listed);
    free(family->run);
    free(family->folder);
    free(family->index);
}

struct cli_family_member *cli_family_all(const char *path, size_t *count)
{
    struct family family;
    read_family(&family, path);
    *count = family.count;
    return family.rows != NULL ? family.rows : cli_allocate(1, sizeof *family.rows);
}

struct cli_family_member *cli_family_members(const char *path, size_t *count)
{
    size_t all;
    struct cli_family_member *rows = cli_family_all(path, &all);
    *count = 0;
    for (size_t i = 0; i < all; i++)
        if (rows[i].path != NULL && access(rows[i].path, R_OK) == 0)
            rows[(*count)++] = rows[i];
        else if (rows[i].path != NULL)
            cli_warning("%s: cannot be read: left out", rows[i].path);
    return rows;
}

/* ---- the sum ---- */

/* What cannot be read is said and left out: one of many. */
static size_t add_all(struct ta_merge *merge, const struct cli_family_member *rows, size_t count)
{
    size_t added = 0;
    for (size_t i = 0; i < count; i++) {
        struct ta_snapshot *snapshot = ta_snapshot_load(rows[i].path);
        cli_progress_set(NULL, i, count);
        if (snapshot == NULL || ta_merge_add(merge, snapshot) != 0)
            cli_warning("%s: left out: %s", rows[i].path, ta_error_text());
        else
            added++;
        ta_snapshot_free(snapshot);
    }
    return added;
}

struct ta_snapshot *cli_family_load(const char *path)
{
    size_t count, added = 0;
    char number[24];
    struct cli_family_member *rows = cli_family_members(path, &count);
    struct ta_merge *merge = count == 0 ? NULL : ta_merge_begin();
    struct ta_snapshot *sum = NULL;
    if (merge != NULL) {
        cli_progress_begin("reading the recordings");
        added = add_all(merge, rows, count);
        cli_progress_end();
        sum = ta_merge_end(merge);
    }
    if (count > 0 && added == 0) {
        ta_snapshot_free(sum);
        sum = NULL;
    }
    snprintf(number, sizeof number, "%zu", added);
    if (sum == NULL)
        cli_error("%s: none of its processes left a recording", path);
    else if (ta_snapshot_set_metadata(sum, "processes", number) != 0 ||
             (rows[0].command != NULL && ta_snapshot_set_metadata(sum, "process.command", rows[0].command) != 0))
        cli_warning("%s: %s", path, ta_error_text());
    free(rows);
    return sum;
}
