/* family_list.c: the processes of a run as a tree, with what each held at last. */
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/family.h"
#include "analysis/cli/recordings.h"
#include "analysis/cli/table.h"

static const struct cli_column columns[] = {
    {"process", "PROCESS", CLI_NUMBER, 0},
    {"parent", "PARENT", CLI_NUMBER, CLI_GOES(2)},
    {"end", "ENDED", CLI_TEXT, 0},
    {"reason", "LAST ENTRY", CLI_TEXT, CLI_GOES(1)},
    {"entries", "ENTRIES", CLI_NUMBER, CLI_GOES(3)},
    {"live", "LIVE", CLI_BYTES, 0},
    {"peak", "PEAK", CLI_BYTES, CLI_GOES(4)},
    {"file", "FILE", CLI_TEXT, CLI_PATH | CLI_GOES(5)},
    {"command", "COMMAND", CLI_TEXT, 0},
};
#define COLUMNS (sizeof columns / sizeof *columns)

struct tree {
    struct cli_family_member *rows;
    char *is_shown;
    size_t count;
    struct cli_table *table;
    int step; /* spaces for each generation; none where programs read */
};

static const char *or_dash(const char *text)
{
    return text == NULL ? "-" : text;
}

static int has_later(const struct tree *tree, size_t at)
{
    for (size_t i = at + 1; i < tree->count; i++)
        if (tree->rows[i].process == tree->rows[at].process)
            return 1;
    return 0;
}

static const char *state_of(const struct cli_family_member *row, size_t entries)
{
    if (row->why != NULL)
        return row->why;
    return entries == 0 ? "it left no recording" : NULL;
}

static void show_row(struct tree *tree, struct cli_family_member *row, int depth)
{
    struct ta_entry_info info = {.current_bytes = 0};
    struct ta_recording *recording = row->path == NULL ? NULL : ta_recording_open(row->path);
    size_t entries = recording == NULL ? 0 : ta_recording_entry_count(recording);
    if (entries > 0 && ta_recording_entry(recording, entries - 1, &info) != 0)
        entries = 0;
    ta_recording_close(recording);
    const char *state = state_of(row, entries);
    char *command = cli_text("%*s%s%s%s", tree->step * depth, "", or_dash(row->command), state == NULL ? "" : ": ",
                             state == NULL ? "" : state);
    cli_table_add(tree->table,
                  (struct cli_cell[COLUMNS]){{.number = row->process},
                                             {.number = row->parent},
                                             {.text = or_dash(row->end)},
                                             {.text = or_dash(row->reason)},
                                             {.number = entries},
                                             {.number = info.current_bytes},
                                             {.number = info.peak_bytes},
                                             {.text = row->path == NULL ? "-" : cli_relative_path(row->path)},
                                             {.text = command}});
    free(command);
}

/* Forked only to execute another program, which has a row of its own. */
static int is_passing(const struct tree *tree, size_t at)
{
    const struct cli_family_member *row = &tree->rows[at];
    return row->path == NULL && row->why == NULL && row->end == NULL && has_later(tree, at);
}

/* The programs that a process was follow one another; children stand below, further to the right. */
static void show(struct tree *tree, size_t at, int depth)
{
    const uint32_t process = tree->rows[at].process;
    for (size_t i = at; i < tree->count; i++)
        if (!tree->is_shown[i] && tree->rows[i].process == process) {
            tree->is_shown[i] = 1;
            if (!is_passing(tree, i))
                show_row(tree, &tree->rows[i], depth);
        }
    for (size_t i = 0; i < tree->count && depth < 50; i++)
        if (!tree->is_shown[i] && tree->rows[i].parent == process)
            show(tree, i, depth + 1);
}

static int is_child(const struct tree *tree, size_t at)
{
    for (size_t i = 0; i < tree->count; i++)
        if (tree->rows[at].parent == tree->rows[i].process && i != at)
            return 1;
    return 0;
}

int cli_family_list(const char *path, const struct cli_options *options)
{
    struct tree tree = {.table = cli_table_new(columns, COLUMNS), .step = options->json || options->csv ? 0 : 2};
    tree.rows = cli_family_all(path, &tree.count);
    tree.is_shown = cli_allocate(tree.count + 1, 1);
    for (int pass = 0; pass < 2; pass++) /* first those whose parent is not among them */
        for (size_t i = 0; i < tree.count; i++)
            if (!tree.is_shown[i] && (pass == 1 || !is_child(&tree, i)))
                show(&tree, i, 0);
    cli_table_print(tree.table, options);
    cli_table_free(tree.table);
    free(tree.is_shown);
    free(tree.rows);
    return cli_finish_output();
}
