/* members.h: what a row of statistics or differences is made of, in words: its functions, the way to the allocator, its
 * callers. A row is named by what all its members share. */
#ifndef TA_ANALYSIS_CLI_MEMBERS_H
#define TA_ANALYSIS_CLI_MEMBERS_H

#include <stddef.h>

#include <tracealloc/analysis.h>

struct cli_table;

/* Members with one short name are one; largest first by what the rows are ordered by. */
struct cli_member {
    struct ta_frame frame; /* of the largest one */
    char *name;            /* short; "" = none */
    uint64_t value, size, count, allocated_size;
    size_t instances;
};
struct cli_members {
    struct cli_member *items;
    size_t count;
    uint64_t total; /* of the values */
};

/* One of the two is asked; the other is NULL. */
struct cli_members cli_members_of(struct ta_statistics *statistics, struct ta_differences *differences, size_t index,
                                  enum ta_member what, enum ta_order order);
/* Equal ones, by `what` they are, become one. */
void cli_members_join(struct cli_members *members, enum ta_member what);
void cli_members_free(struct cli_members *members);

/* "grow", "grow (14 instances)", "3 functions: grow 55%, copy 33%, …"; "" when there is none. For free(). */
char *cli_members_functions(const struct cli_members *members);
/* "via std::make_shared, strdup"; "" where half of it or more was asked for directly. For free(). */
char *cli_members_via(const struct cli_members *members);
/* A note for each of the largest callers: where, who, how much of the row. */
void cli_members_note_callers(struct cli_table *table, const struct cli_members *members);
/* A list of objects with function, file, line, size and count; and the same for CSV: "NAME SIZE;…". For free(). */
char *cli_members_json(const struct cli_members *members);
char *cli_members_plain(const struct cli_members *members);

#endif
