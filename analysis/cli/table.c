/* table.c: see table.h. */
#include "analysis/cli/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/cli/terminal.h"

struct row {
    struct cli_cell *cells;
    char **notes;
    size_t note_count;
};

struct cli_table {
    const struct cli_column *columns;
    size_t column_count;
    struct row *rows;
    size_t count, capacity;
};

struct cli_table *cli_table_new(const struct cli_column *columns, size_t count)
{
    struct cli_table *table = cli_allocate(1, sizeof *table);
    table->columns = columns;
    table->column_count = count;
    return table;
}

void cli_table_add(struct cli_table *table, const struct cli_cell *cells)
{
    if (table->count == table->capacity) {
        table->capacity = table->capacity * 2 + 16;
        table->rows = cli_enlarge(table->rows, table->capacity, sizeof *table->rows);
    }
    struct row *row = &table->rows[table->count++];
    *row = (struct row){.cells = cli_allocate(table->column_count, sizeof *row->cells)};
    for (size_t i = 0; i < table->column_count; i++) {
        row->cells[i] = cells[i];
        if (table->columns[i].kind < CLI_TEXT)
            continue;
        row->cells[i].text = cli_text("%s", cells[i].text != NULL ? cells[i].text : "");
        row->cells[i].more = cells[i].more != NULL ? cli_text("%s", cells[i].more) : NULL;
        row->cells[i].via = cells[i].via != NULL ? cli_text("%s", cells[i].via) : NULL;
    }
}

void cli_table_note(struct cli_table *table, const char *format, ...)
{
    struct row *row = &table->rows[table->count - 1];
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return; /* a note less */
    row->notes = cli_enlarge(row->notes, row->note_count + 1, sizeof *row->notes);
    row->notes[row->note_count++] = text;
}

size_t cli_table_count(const struct cli_table *table)
{
    return table->count;
}

static void free_cell(const struct cli_column *column, struct cli_cell *cell)
{
    if (column->kind < CLI_TEXT)
        return;
    free((char *)(uintptr_t)cell->text);
    free((char *)(uintptr_t)cell->more);
    free((char *)(uintptr_t)cell->via);
}

void cli_table_free(struct cli_table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->count; i++) {
        struct row *row = &table->rows[i];
        for (size_t c = 0; c < table->column_count; c++)
            free_cell(&table->columns[c], &row->cells[c]);
        for (size_t n = 0; n < row->note_count; n++)
            free(row->notes[n]);
        free(row->notes);
        free(row->cells);
    }
    free(table->rows);
    free(table);
}

/* ---- for people ---- */

void cli_time_text(uint64_t time_ns, char *text, size_t size)
{
    struct tm parts;
    time_t seconds = (time_t)(time_ns / 1000000000);
    if (gmtime_r(&seconds, &parts) == NULL || strftime(text, size, "%Y-%m-%d %H:%M:%SZ", &parts) == 0)
        snprintf(text, size, "%" PRIu64 " ns", time_ns);
}

static const char *cell_text(const struct cli_column *column, const struct cli_cell *cell, char *text, size_t size)
{
    switch (column->kind) {
    case CLI_BYTES:
        ta_size_text((double)cell->number, 0, text, size);
        break;
    case CLI_BYTES_CHANGE:
        ta_size_text((double)cell->change, 1, text, size);
        break;
    case CLI_NUMBER:
        snprintf(text, size, "%" PRIu64, cell->number);
        break;
    case CLI_NUMBER_CHANGE:
        snprintf(text, size, "%+" PRId64, cell->change);
        break;
    case CLI_SHARE:
        snprintf(text, size, "%.1f%%", cell->share * 100);
        break;
    case CLI_TIME:
        cli_time_text(cell->number, text, size);
        break;
    default:
        return cell->text;
    }
    return text;
}

static int for_people(const struct cli_column *column)
{
    return (column->flags & CLI_MACHINES_ONLY) == 0;
}

static size_t column_width(const struct cli_table *table, size_t column)
{
    char text[64];
    size_t width = cli_text_width(table->columns[column].heading);
    for (size_t i = 0; i < table->count; i++) {
        size_t cell = cli_text_width(cell_text(&table->columns[column], &table->rows[i].cells[column], text, 64));
        width = cell > width ? cell : width;
    }
    return width;
}

#define BAR_CELLS 8

/* Which columns are shown, how wide, and what there is room for behind them. */
struct layout {
    size_t widths[32]; /* without what is between columns and the last */
    int is_shown[32];
    size_t last, least, before, room;
};

static size_t whole_width(const struct cli_column *column, size_t width)
{
    return width + 2 + ((column->flags & CLI_WITH_BAR) && cli_has_bars() ? BAR_CELLS + 1 : 0);
}

enum { LAST_LEAST = 12, PATH_ENOUGH = 16, PATH_LEAST = 8 };

/* How many columns too much there are. */
static size_t excess(const struct layout *layout)
{
    size_t all = cli_width(), wanted = layout->before + layout->least;
    return wanted > all ? wanted - all : 0;
}

static void narrow_paths(const struct cli_table *table, struct layout *layout, size_t least)
{
    for (size_t c = 0; c < layout->last; c++) {
        size_t width = layout->widths[c], much = excess(layout);
        if (!layout->is_shown[c] || !(table->columns[c].flags & CLI_PATH) || width <= least)
            continue;
        size_t less = much < width - least ? much : width - least;
        layout->widths[c] -= less;
        layout->before -= less;
    }
}

/* 0: none of them may go. */
static int leave_one_out(const struct cli_table *table, struct layout *layout)
{
    size_t found = layout->last;
    for (size_t c = 0; c < layout->last; c++) {
        unsigned turn = table->columns[c].flags / CLI_GOES_FIRST;
        if (layout->is_shown[c] && turn > 0 &&
            (found == layout->last || turn < table->columns[found].flags / CLI_GOES_FIRST))
            found = c;
    }
    if (found == layout->last)
        return 0;
    layout->is_shown[found] = 0;
    layout->before -= whole_width(&table->columns[found], layout->widths[found]);
    return 1;
}

static void lay_out(const struct cli_table *table, struct layout *layout)
{
    *layout = (struct layout){.last = 0};
    for (size_t c = 0; c < table->column_count; c++) {
        layout->is_shown[c] = for_people(&table->columns[c]);
        if (!layout->is_shown[c])
            continue;
        layout->widths[c] = column_width(table, c);
        layout->last = c;
    }
    for (size_t c = 0; c < layout->last; c++)
        if (layout->is_shown[c])
            layout->before += whole_width(&table->columns[c], layout->widths[c]);
    int is_short = table->columns[layout->last].kind != CLI_PLACE && layout->widths[layout->last] < LAST_LEAST;
    layout->least = is_short ? layout->widths[layout->last] : LAST_LEAST;
    if (cli_width() != SIZE_MAX) {
        narrow_paths(table, layout, PATH_ENOUGH);
        while (excess(layout) > 0 && leave_one_out(table, layout))
            continue;
        narrow_paths(table, layout, PATH_LEAST);
    }
    size_t all = cli_width();
    layout->room = all == SIZE_MAX ? SIZE_MAX : all > layout->before + LAST_LEAST ? all - layout->before : LAST_LEAST;
}

static void print_heading(const struct cli_table *table, const struct layout *layout)
{
    fputs(cli_style(CLI_DIM), stdout);
    for (size_t c = 0; c <= layout->last; c++) {
        const struct cli_column *column = &table->columns[c];
        if (!layout->is_shown[c])
            continue;
        if (column->kind >= CLI_TEXT)
            printf("%-*s", c == layout->last ? 0 : (int)layout->widths[c] + 2, column->heading);
        else
            printf("%*s", (int)layout->widths[c], column->heading);
        if ((column->flags & CLI_WITH_BAR) && cli_has_bars())
            printf(" %*s", BAR_CELLS, "");
        if (column->kind < CLI_TEXT && c != layout->last)
            fputs("  ", stdout);
    }
    printf("%s\n", cli_style(CLI_PLAIN));
}

enum { NO_FUNCTION = 1, NO_VIA = 2, NO_PLACE = 4 };

/* "3 functions: …" is worth a line of its own, with arguments: they may be all that differs. */
static int is_list(const struct cli_cell *cell)
{
    return *cell->more >= '0' && *cell->more <= '9';
}

/* "WHERE  FUNCTION  via WHAT" in `room` columns: answers which of the two last parts were left for the lines below. */
static unsigned print_place(const struct cli_cell *cell, size_t room)
{
    enum { ENOUGH = 14 };
    size_t left = cli_print_path(cell->text, room);
    unsigned missing = 0;
    if (cell->more != NULL && *cell->more != '\0') {
        size_t width = cli_text_width(cell->more);
        if (left < 2 + (width < ENOUGH || is_list(cell) ? width : ENOUGH)) {
            missing |= NO_FUNCTION;
            left = 0;
        } else {
            size_t blanks = *cell->text != '\0' ? 2 : 0;
            printf("%*s", (int)blanks, "");
            cli_print_name(cell->more, left == SIZE_MAX ? left : left - blanks);
            left = left == SIZE_MAX ? left : left > width + blanks ? left - blanks - width : 0;
        }
    }
    if (cell->via != NULL && *cell->via != '\0') {
        if (left < 2 + cli_text_width(cell->via))
            missing |= NO_VIA;
        else
            printf("  %s%s%s", cli_style(CLI_DIM), cell->via, cli_style(CLI_PLAIN));
    }
    return missing;
}

/* The place without as many of its folders as there is no room for beside the name; NULL when not even its file fits. */
static const char *place_beside(const char *name, const char *place, size_t room)
{
    size_t width = cli_text_width(name) + (*place != '\0' ? 2 : 0);
    while (room != SIZE_MAX && width + cli_text_width(place) > room) {
        const char *slash = strchr(place, '/');
        if (slash == NULL)
            return NULL;
        place = slash + 1;
    }
    return place;
}

/* "NAME  PLACE": folders give way, then the longer names. Whether the place is left for the line below is answered; one
 * without a line is not worth that. */
static unsigned print_name(const struct cli_cell *cell, size_t room)
{
    const char *place = cell->more != NULL ? cell->more : "", *beside = NULL;
    char *plain = cli_without_arguments(cell->text);
    const char *names[] = {cell->text, plain, cell->via != NULL ? cell->via : plain};
    size_t at = 0;
    while ((beside = place_beside(names[at], place, room)) == NULL && at < 2)
        at++;
    cli_print_name(names[at], room);
    if (beside != NULL && *beside != '\0')
        printf("  %s%s%s", cli_style(CLI_DIM), beside, cli_style(CLI_PLAIN));
    free(plain);
    return beside == NULL && strchr(place, ':') != NULL ? NO_PLACE : 0;
}

static void print_cell(const struct cli_column *column, const struct cli_cell *cell, size_t width, size_t room,
                       int is_last)
{
    char small[64];
    const char *text = cell_text(column, cell, small, sizeof small);
    enum cli_style style = column->flags & CLI_STRONG ? CLI_BOLD : CLI_PLAIN;
    if (column->kind == CLI_BYTES_CHANGE || column->kind == CLI_NUMBER_CHANGE)
        style = cell->change > 0 ? CLI_RED : cell->change < 0 ? CLI_GREEN : CLI_DIM;
    if (style != CLI_PLAIN)
        fputs(cli_style(style), stdout);
    if (column->kind >= CLI_TEXT) {
        cli_print_fitted(text, is_last ? room : width, column->flags & CLI_PATH ? CLI_CUT_LEFT : CLI_CUT_RIGHT);
        size_t taken = cli_text_width(text) < width ? cli_text_width(text) : width;
        for (size_t at = taken; !is_last && at < width + 2; at++)
            putchar(' ');
    } else {
        printf("%*s", (int)width, text);
        if ((column->flags & CLI_WITH_BAR) && cli_has_bars()) {
            putchar(' ');
            cli_print_bar(cell->share, BAR_CELLS);
        }
        if (!is_last)
            fputs("  ", stdout);
    }
    if (style != CLI_PLAIN)
        fputs(cli_style(CLI_PLAIN), stdout);
}

static int has_headings(const struct cli_table *table)
{
    for (size_t c = 0; c < table->column_count; c++)
        if (for_people(&table->columns[c]) && *table->columns[c].heading != '\0')
            return 1;
    return 0;
}

static void print_cut(const char *text, size_t room)
{
    cli_print_fitted(text, room, CLI_CUT_RIGHT);
}

static void print_path(const char *text, size_t room)
{
    cli_print_path(text, room);
}

/* A line below a row. */
static void print_note(const char *text, size_t indent, size_t room, void (*print)(const char *, size_t))
{
    printf("%*s%s", (int)indent, "", cli_style(CLI_DIM));
    print(text, room);
    printf("%s\n", cli_style(CLI_PLAIN));
}

/* The last cell of a row, and the lines below it. */
static void print_last(const struct row *row, const struct cli_column *column, const struct cli_cell *cell,
                       size_t before, size_t room)
{
    enum { NARROW = 60, INDENT = 6 };
    unsigned missing = 0;
    if (column->flags & CLI_NAME_FIRST)
        missing = print_name(cell, room);
    else if (column->kind == CLI_PLACE)
        missing = print_place(cell, room);
    else
        print_cell(column, cell, 0, room, 1);
    putchar('\n');
    size_t indent = room < NARROW && before > INDENT ? INDENT : before + 2;
    size_t all = cli_width(), width = all == SIZE_MAX ? all : all > indent + LAST_LEAST ? all - indent : LAST_LEAST;
    if (missing & NO_FUNCTION)
        print_note(cell->more, indent, width, is_list(cell) ? print_cut : cli_print_name);
    if (missing & NO_VIA)
        print_note(cell->via, indent, width, cli_print_name);
    if (missing & NO_PLACE)
        print_note(cell->more, indent, width, print_path);
    for (size_t n = 0; n < row->note_count; n++)
        print_note(row->notes[n], indent, width, print_cut);
}

void cli_table_print_text(const struct cli_table *table)
{
    struct layout layout;
    lay_out(table, &layout);
    if (has_headings(table))
        print_heading(table, &layout);
    for (size_t i = 0; i < table->count; i++) {
        const struct row *row = &table->rows[i];
        for (size_t c = 0; c < layout.last; c++)
            if (layout.is_shown[c])
                print_cell(&table->columns[c], &row->cells[c], layout.widths[c], layout.room, 0);
        print_last(row, &table->columns[layout.last], &row->cells[layout.last], layout.before, layout.room);
    }
}

/* ---- for machines ---- */

static void print_number(const struct cli_column *column, const struct cli_cell *cell)
{
    if (column->kind == CLI_SHARE)
        printf("%.6f", cell->share);
    else if (column->kind == CLI_BYTES_CHANGE || column->kind == CLI_NUMBER_CHANGE)
        printf("%" PRId64, cell->change);
    else
        printf("%" PRIu64, cell->number);
}

void cli_table_print_json(const struct cli_table *table)
{
    putchar('[');
    for (size_t i = 0; i < table->count; i++) {
        fputs(i == 0 ? "\n  {" : ",\n  {", stdout);
        const char *comma = "";
        for (size_t c = 0; c < table->column_count; c++) {
            const struct cli_column *column = &table->columns[c];
            const struct cli_cell *cell = &table->rows[i].cells[c];
            if (column->flags & CLI_PEOPLE_ONLY)
                continue;
            printf("%s\"%s\": ", comma, column->name);
            if (column->kind == CLI_TEXT)
                cli_print_json_string(stdout, cell->text, strlen(cell->text));
            else if (column->kind == CLI_JSON_TEXT)
                fputs(*cell->text != '\0' ? cell->text : "null", stdout);
            else
                print_number(column, cell);
            comma = ", ";
        }
        putchar('}');
    }
    fputs(table->count > 0 ? "\n]\n" : "]\n", stdout);
}

static void print_csv_text(const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

void cli_table_print_csv(const struct cli_table *table)
{
    for (size_t i = 0; i <= table->count; i++) {
        const char *comma = "";
        for (size_t c = 0; c < table->column_count; c++) {
            const struct cli_column *column = &table->columns[c];
            if (column->flags & CLI_PEOPLE_ONLY)
                continue;
            fputs(comma, stdout);
            if (i == 0)
                fputs(column->name, stdout);
            else if (column->kind == CLI_TEXT)
                print_csv_text(table->rows[i - 1].cells[c].text);
            else if (column->kind == CLI_JSON_TEXT)
                print_csv_text(table->rows[i - 1].cells[c].more != NULL ? table->rows[i - 1].cells[c].more : "");
            else
                print_number(column, &table->rows[i - 1].cells[c]);
            comma = ",";
        }
        putchar('\n');
    }
}

void cli_table_print(const struct cli_table *table, const struct cli_options *options)
{
    if (options->json)
        cli_table_print_json(table);
    else if (options->csv)
        cli_table_print_csv(table);
    else
        cli_table_print_text(table);
}
