/* members.c: see members.h. */
#include "analysis/cli/members.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/places.h"
#include "analysis/cli/table.h"

/* Shown by name; the others are counted. */
enum { FUNCTIONS_MOST = 3, VIA_MOST = 2, CALLERS_MOST = 5 };
#define NEARLY_ALL 99.0 /* percent: one function is named for all */

static uint64_t value_of(const struct ta_row_member *member, enum ta_order order)
{
    const struct ta_statistic statistic = {.size = member->size,
                                           .count = member->count,
                                           .allocated_size = member->allocated_size,
                                           .allocated_count = member->allocated_count,
                                           .peak_size = member->size};
    return cli_value(&statistic, order);
}

/* Where the value says nothing, as for what is gone, what was allocated does. */
static int compare_values(const void *a, const void *b)
{
    const struct cli_member *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : ta_frame_compare(&x->frame, &y->frame);
}

static int compare_names(const void *a, const void *b)
{
    const struct cli_member *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : -compare_values(a, b);
}

/* Callers are places; functions and ways are names. */
static int is_one(const struct cli_member *a, const struct cli_member *b, enum ta_member what)
{
    return strcmp(a->name, b->name) == 0 && (what != TA_MEMBER_CALLER || ta_frame_equal(&a->frame, &b->frame));
}

void cli_members_join(struct cli_members *members, enum ta_member what)
{
    size_t kept = 0;
    qsort(members->items, members->count, sizeof *members->items, compare_names);
    for (size_t i = 0; i < members->count; i++) {
        struct cli_member *last = kept > 0 ? &members->items[kept - 1] : NULL, *next = &members->items[i];
        if (last != NULL && is_one(last, next, what)) {
            last->value += next->value;
            last->size += next->size;
            last->count += next->count;
            last->allocated_size += next->allocated_size;
            last->instances++;
            free(next->name);
        } else {
            members->items[kept++] = *next;
        }
    }
    members->count = kept;
    qsort(members->items, members->count, sizeof *members->items, compare_values);
}

struct cli_members cli_members_of(struct ta_statistics *statistics, struct ta_differences *differences, size_t index,
                                  enum ta_member what, enum ta_order order)
{
    struct ta_row_member few[16], *rows = few;
    size_t room = sizeof few / sizeof *few, count;
    for (;; room = count) {
        count = statistics != NULL ? ta_statistics_members(statistics, index, what, rows, room)
                                   : ta_differences_members(differences, index, what, rows, room);
        if (count <= room)
            break;
        rows = cli_allocate(count, sizeof *rows);
    }
    struct cli_members members = {.items = cli_allocate(count, sizeof *members.items), .count = count};
    for (size_t i = 0; i < count; i++) {
        uint64_t value = value_of(&rows[i], order);
        members.items[i] = (struct cli_member){.frame = rows[i].frame,
                                               .name = cli_function_name(rows[i].frame.function),
                                               .value = value,
                                               .size = rows[i].size,
                                               .count = rows[i].count,
                                               .allocated_size = rows[i].allocated_size,
                                               .instances = 1};
        members.total += value;
    }
    if (rows != few)
        free(rows);
    cli_members_join(&members, what);
    return members;
}

void cli_members_free(struct cli_members *members)
{
    for (size_t i = 0; i < members->count; i++)
        free(members->items[i].name);
    free(members->items);
    *members = (struct cli_members){0};
}

static double share_of(const struct cli_members *members, const struct cli_member *member)
{
    return members->total > 0 ? 100 * (double)member->value / (double)members->total : 0;
}

char *cli_members_functions(const struct cli_members *members)
{
    if (members->count == 0)
        return cli_text("%s", "");
    if (members->count == 1 && members->items[0].instances == 1)
        return cli_text("%s", members->items[0].name);
    if (members->count == 1)
        return cli_text("%s (%zu instances)", members->items[0].name, members->items[0].instances);
    if (share_of(members, &members->items[0]) >= NEARLY_ALL)
        return cli_text("%s and %zu more", members->items[0].name, members->count - 1);
    char *text = cli_text("%zu functions:", members->count);
    for (size_t i = 0; i < members->count && i < FUNCTIONS_MOST; i++) {
        const struct cli_member *item = &members->items[i];
        char *longer = cli_text("%s%s %s %.0f%%", text, i > 0 ? "," : "", *item->name != '\0' ? item->name : "?",
                                share_of(members, item));
        free(text);
        text = longer;
    }
    if (members->count <= FUNCTIONS_MOST)
        return text;
    char *longer = cli_text("%s, …", text);
    free(text);
    return longer;
}

/* Whether most of it took a way that has a name: what the row's own function asked for itself is most of it else. Where
 * the values say nothing, as for what is gone, what was allocated does. */
static int has_usual_way(const struct cli_members *members)
{
    double named = 0, all = 0;
    for (size_t i = 0; i < members->count; i++) {
        const struct cli_member *item = &members->items[i];
        double value = (double)(members->total > 0 ? item->value : item->allocated_size);
        all += value;
        named += *item->name != '\0' ? value : 0;
    }
    return named > all / 2 || all == 0;
}

char *cli_members_via(const struct cli_members *members)
{
    char *text = cli_text("%s", "");
    size_t shown = 0, more = 0;
    if (!has_usual_way(members))
        return text;
    for (size_t i = 0; i < members->count; i++) {
        const struct cli_member *item = &members->items[i];
        if (*item->name == '\0')
            continue;
        if (shown > 0 && share_of(members, item) < 1)
            continue;
        if (shown == VIA_MOST) {
            more++;
            continue;
        }
        char *longer = cli_text("%s%s%s", text, shown++ > 0 ? ", " : "via ", item->name);
        free(text);
        text = longer;
    }
    if (more == 0)
        return text;
    char *longer = cli_text("%s and %zu more", text, more);
    free(text);
    return longer;
}

void cli_members_note_callers(struct cli_table *table, const struct cli_members *members)
{
    size_t shown = 0;
    for (size_t i = 0; i < members->count && shown < CALLERS_MOST; i++) {
        const struct cli_member *item = &members->items[i];
        char place[PATH_MAX + 16];
        cli_place_text(&item->frame, place, sizeof place);
        if (*place == '\0' && *item->name == '\0')
            continue;
        const char *name = cli_frame_is_unnamed(&item->frame) ? "" : item->name; /* its place says it */
        cli_table_note(table, "%5.1f%% from %s%s%s", share_of(members, item), place, *name != '\0' ? "  " : "", name);
        shown++;
    }
    if (members->count > shown && shown == CALLERS_MOST)
        cli_table_note(table, "       and %zu more", members->count - shown);
}

/* ---- for machines ---- */

char *cli_members_json(const struct cli_members *members)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream == NULL)
        return cli_text("%s", "[]");
    putc('[', stream);
    for (size_t i = 0; i < members->count; i++) {
        const struct cli_member *item = &members->items[i];
        fputs(i > 0 ? ", {\"function\": " : "{\"function\": ", stream);
        cli_print_json_string(stream, item->frame.function, strlen(item->frame.function));
        fputs(", \"file\": ", stream);
        cli_print_json_string(stream, item->frame.filename, strlen(item->frame.filename));
        fprintf(stream, ", \"line\": %u, \"size\": %" PRIu64 ", \"count\": %" PRIu64 ", \"instances\": %zu}",
                item->frame.lineno, item->size, item->count, item->instances);
    }
    putc(']', stream);
    fclose(stream);
    return text;
}

char *cli_members_plain(const struct cli_members *members)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream == NULL)
        return cli_text("%s", "");
    for (size_t i = 0; i < members->count; i++)
        fprintf(stream, "%s%s%s%" PRIu64, i > 0 ? ";" : "", members->items[i].frame.function,
                *members->items[i].frame.function != '\0' ? " " : "", members->items[i].size);
    fclose(stream);
    return text;
}
