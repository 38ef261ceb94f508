/* project.c: see project.h. */
#include "analysis/cli/project.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RULES_FILE ".tracealloc"

static int has(const char *folder, const char *name, char *path)
{
    struct stat status;
    return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && stat(path, &status) == 0;
}

/* Cuts `folder` back to the nearest one upwards that has one of the names; 0 when there is none. */
static int go_up_to(char *folder, const char *const *names, size_t count)
{
    char path[PATH_MAX];
    for (;;) {
        for (size_t i = 0; i < count; i++)
            if (has(folder, names[i], path))
                return 1;
        char *slash = strrchr(folder, '/');
        if (slash == NULL)
            return 0;
        *slash = '\0'; /* "" is the root */
        if (*folder == '\0')
            return 0;
    }
}

const char *cli_project_root(void)
{
    static const char *const rules[] = {RULES_FILE}, *const versions[] = {".git", ".hg", ".svn", ".jj"};
    static char root[PATH_MAX];
    static int is_known;
    char here[PATH_MAX];
    if (is_known)
        return root;
    is_known = 1;
    if (getcwd(here, sizeof here) == NULL || strcmp(here, "/") == 0)
        return root;
    strcpy(root, here);
    if (go_up_to(root, rules, 1))
        return root;
    strcpy(root, here);
    if (!go_up_to(root, versions, sizeof versions / sizeof *versions))
        strcpy(root, here);
    return root;
}

static int add_file(struct ta_own_rules **rules, const char *path)
{
    size_t length;
    char *text = cli_read_file(path, &length);
    if (text == NULL)
        return CLI_TROUBLE;
    if (*rules == NULL)
        *rules = ta_own_rules_create();
    int status = *rules == NULL || ta_own_rules_add(*rules, text) != 0 ? cli_library_error(path) : CLI_OK;
    free(text);
    return status;
}

int cli_project_rules(const struct cli_options *options, struct ta_own_rules **rules)
{
    const char *home = getenv("HOME");
    char of_user[PATH_MAX] = "", of_project[PATH_MAX] = "";
    int status = CLI_OK;
    *rules = NULL;
    if (home != NULL && *home == '/' && has(home, RULES_FILE, of_user))
        status = add_file(rules, of_user);
    if (status == CLI_OK && has(cli_project_root(), RULES_FILE, of_project) && !cli_is_same_file(of_user, of_project))
        status = add_file(rules, of_project);
    if (status == CLI_OK && options != NULL && options->rules != NULL) {
        if (*rules == NULL)
            *rules = ta_own_rules_create();
        if (*rules == NULL || ta_own_rules_add(*rules, options->rules) != 0)
            status = cli_library_error(options->command->name);
    }
    if (status != CLI_OK) {
        ta_own_rules_free(*rules);
        *rules = NULL;
    }
    return status;
}

int cli_use_rules(const struct cli_options *options, struct ta_snapshot *snapshot, struct ta_snapshot *other)
{
    struct ta_own_rules *rules;
    if (cli_project_rules(options, &rules) != CLI_OK)
        return CLI_TROUBLE;
    int status = CLI_OK;
    if (rules != NULL &&
        (ta_own_rules_learn(rules, snapshot) != 0 || (other != NULL && ta_own_rules_learn(rules, other) != 0) ||
         ta_snapshot_set_own_rules(snapshot, rules) != 0 ||
         (other != NULL && ta_snapshot_set_own_rules(other, rules) != 0)))
        status = cli_library_error("whose code it is");
    ta_own_rules_free(rules);
    return status;
}
