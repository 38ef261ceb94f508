/* run_rules.c: see run_rules.h. What was compiled is kept in the cache folder of the user, because programs that the
 * program starts, and that outlive it, read it too. Its name is made of what it holds, so that it is never wrong. */
#include "analysis/cli/run_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracealloc/export.h>
#include <tracealloc/rules.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/whole_file.h"

struct objects {
    char **paths;
    size_t count, capacity;
};

static void add_object(struct objects *objects, const char *path)
{
    if (objects->count == objects->capacity) {
        objects->capacity = objects->capacity * 2 + 16;
        objects->paths = cli_enlarge(objects->paths, objects->capacity, sizeof *objects->paths);
    }
    objects->paths[objects->count++] = cli_text("%s", path);
}

static int is_of_the_system(const char *path)
{
    static const char *const folders[] = {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return 1;
    return 0;
}

/* What the loader would load, as it says itself; nothing of the program runs. Lines "name => path (address)". */
static void add_libraries(struct objects *objects, const char *program)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
        dup2(ends[1], STDOUT_FILENO);
        execl(program, program, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *lines = fdopen(ends[0], "r");
    char line[8192];
    while (lines != NULL && child > 0 && fgets(line, sizeof line, lines) != NULL) {
        char *path = strstr(line, "=> /"), *end = path != NULL ? strstr(path, " (0x") : NULL;
        if (end == NULL)
            continue;
        *end = '\0';
        if (!is_of_the_system(path + 3))
            add_object(objects, path + 3);
    }
    if (lines != NULL)
        fclose(lines);
    else
        close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
}

void cli_rules_note(void *user, const char *object, const char *text)
{
    (void)user;
    cli_warning("%s: its symbols alone are known: %s", object, text);
}

/* $XDG_CACHE_HOME/tracealloc, for this user alone. NULL after a message. */
static char *cache_folder(void)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *parent = base != NULL && *base == '/'   ? cli_text("%s", base)
                   : home != NULL && *home == '/' ? cli_text("%s/.cache", home)
                                                  : cli_text("/tmp/tracealloc-%u", (unsigned)getuid());
    char *folder = cli_text("%s/tracealloc", parent);
    struct stat status;
    if ((mkdir(parent, 0700) != 0 && errno != EEXIST) || (mkdir(folder, 0700) != 0 && errno != EEXIST) ||
        lstat(folder, &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != getuid()) {
        cli_error("run: --rules: cannot keep the compiled rules in %s", folder);
        free(folder);
        folder = NULL;
    }
    free(parent);
    return folder;
}

static char *keep(const struct ta_buffer *compiled)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < compiled->length; i++)
        hash = (hash ^ (unsigned char)compiled->bytes[i]) * UINT64_C(0x100000001B3);
    char *folder = cache_folder();
    if (folder == NULL)
        return NULL;
    char *path = cli_text("%s/rules-%016llx", folder, (unsigned long long)hash);
    struct cli_output output;
    free(folder);
    if (access(path, R_OK) == 0)
        return path;
    if (cli_output_open(&output, path) == CLI_OK) {
        cli_output_write(&output, compiled->bytes, compiled->length);
        if (cli_output_close(&output, CLI_OK) == CLI_OK)
            return path;
    }
    free(path);
    return NULL;
}

static char *compile(const char *rules, const char *program)
{
    struct objects objects = {0};
    struct ta_buffer compiled = {0};
    char *path = NULL;
    add_object(&objects, program);
    add_libraries(&objects, program);
    cli_progress_begin("compiling the rules");
    int status = ta_rules_compile(rules, (const char *const *)objects.paths, objects.count, cli_rules_note, NULL,
                                  ta_write_to_buffer, &compiled);
    cli_progress_end();
    if (status != 0)
        cli_error("run: --rules: %s", ta_error_text());
    else
        path = keep(&compiled);
    for (size_t i = 0; i < objects.count; i++)
        free(objects.paths[i]);
    free(objects.paths);
    free(compiled.bytes);
    return path;
}

char *cli_rules_for(const char *rules, const char *program)
{
    char *path = realpath(rules, NULL);
    if (path == NULL || access(path, R_OK) != 0) {
        cli_error("run: --rules: %s: %s", rules, strerror(errno));
        free(path);
        return NULL;
    }
    if (ta_rules_check(path, "", NULL, NULL) != 0) {
        cli_error("run: --rules: %s", ta_error_text());
        free(path);
        return NULL;
    }
    struct ta_rule rule;
    int wants_lines = 0;
    for (size_t i = 0; ta_rules_get(path, i, &rule, sizeof rule) == 0; i++)
        wants_lines |= rule.wants_lines && !rule.is_compiled;
    if (!wants_lines)
        return path;
    char *compiled = compile(path, program);
    free(path);
    return compiled;
}
