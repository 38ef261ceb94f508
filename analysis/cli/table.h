/* table.h: rows and columns, printed for people, as JSON, or as CSV. Every listing of the program goes through here, so
 * that each of them knows all three. */
#ifndef TA_ANALYSIS_CLI_TABLE_H
#define TA_ANALYSIS_CLI_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/cli/cli.h"

enum cli_kind {
    CLI_BYTES,        /* people see 12.3 KiB, machines the number */
    CLI_BYTES_CHANGE, /* the same, with a sign */
    CLI_NUMBER,
    CLI_NUMBER_CHANGE,
    CLI_SHARE, /* 0 … 1: people see 12.3% */
    CLI_TIME,  /* nanoseconds since 1970: people see the UTC time, machines the number */
    CLI_TEXT,
    CLI_JSON_TEXT, /* for machines: JSON as it stands; in CSV the cell's `plain` */
    CLI_PLACE,     /* for people: where, who, by what way; see struct cli_cell */
};

enum cli_column_flags {
    CLI_MACHINES_ONLY = 1, /* not in the text */
    CLI_PEOPLE_ONLY = 2,   /* not in JSON and CSV */
    CLI_WITH_BAR = 4,      /* a SHARE with a bar beside it where there is room */
    CLI_PATH = 8,          /* a TEXT that is cut at the left when it does not fit */
    CLI_STRONG = 16,       /* the number that the rows are ordered by */
    CLI_GOES_FIRST = 256,  /* times 1, 2 …: where a window is too narrow, the columns go in that order; others stay */
    CLI_NAME_FIRST = 32,   /* a PLACE whose `text` is a name, `via` a shorter one, and `more` the place beside it */
};

/* The n-th to be left out. */
#define CLI_GOES(n) ((unsigned)(n)*CLI_GOES_FIRST)

struct cli_column {
    const char *name;    /* in JSON and CSV */
    const char *heading; /* for people */
    enum cli_kind kind;
    unsigned flags;
};

struct cli_cell {
    uint64_t number;  /* BYTES, NUMBER, TIME */
    int64_t change;   /* …_CHANGE */
    double share;     /* SHARE */
    const char *text; /* TEXT, JSON_TEXT, PLACE: copied */
    /* PLACE: the function, and how it came to the allocator. What does not fit beside the place stands below it; the
     * place itself loses folders at most. JSON_TEXT: `more` is what CSV has instead. May be NULL. */
    const char *more, *via;
};

struct cli_table;

/* `columns` must outlive the table. */
struct cli_table *cli_table_new(const struct cli_column *columns, size_t count);
/* One cell per column. */
void cli_table_add(struct cli_table *table, const struct cli_cell *cells);
/* A line below the row added last, indented; for people only. */
void cli_table_note(struct cli_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t cli_table_count(const struct cli_table *table);

void cli_table_print_text(const struct cli_table *table);
/* A list of objects, and a heading with one line per row. */
void cli_table_print_json(const struct cli_table *table);
void cli_table_print_csv(const struct cli_table *table);
/* As the options ask for. */
void cli_table_print(const struct cli_table *table, const struct cli_options *options);
void cli_table_free(struct cli_table *table);

/* "2024-05-06 07:08:09Z" */
void cli_time_text(uint64_t time_ns, char *text, size_t size);

#endif
