/* export_json.c: snapshots, statistics and differences for other programs. One object per line.
 *
 * There may be a million rows with dozens of frames each: every place of the program is put into words once, and rows
 * are made of these pieces. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/block_sizes.h"
#include "analysis/exchange/json.h"
#include "analysis/model.h"
#include "analysis/statistics.h"
#include "analysis/text_output.h"
#include "analysis/arrays.h"
#include "analysis/growing_text.h"

/* ["FILE",LINE] for each location of a model, written when it is first asked for; for the key "stack" by logical frame,
 * and ["MODULE",0,"FUNCTION"] where there is no line. */
struct places {
    const struct ta__model *model;
    int has_functions;
    struct ta__text text;
    struct piece {
        size_t start, length; /* length 0 = not written yet */
    } * pieces;
};

static int places_open(struct places *places, const struct ta__model *model, enum ta__key key)
{
    *places = (struct places){.model = model, .has_functions = key == TA__KEY_STACK};
    places->pieces =
        ta__new_array(places->has_functions ? model->logical_count : model->location_count, sizeof *places->pieces);
    return places->pieces == NULL ? -1 : 0;
}

static void places_close(struct places *places)
{
    ta__text_free(&places->text);
    free(places->pieces);
}

/* `function` may be NULL. */
static void add_place_text(struct ta__text *text, const char *file, size_t length, uint32_t line,
                           const struct ta__name *function)
{
    ta__text_add(text, "[", 1);
    ta__json_add_string(text, file, length);
    ta__text_add(text, ",", 1);
    ta__text_add_wide(text, line);
    if (function != NULL && function->length > 0) {
        ta__text_add(text, ",", 1);
        ta__json_add_string(text, function->text, function->length);
    }
    ta__text_add(text, "]", 1);
}

/* `logical` may be 0 where only the location is known. */
static void add_place(struct ta__text *text, struct places *places, uint32_t location, uint32_t logical)
{
    struct piece *piece = &places->pieces[places->has_functions ? logical : location];
    if (piece->length == 0) {
        const struct ta__model *model = places->model;
        const struct ta__location *row = &model->locations[location];
        const struct ta__name *name = &model->names[row->name];
        int wants_function = places->has_functions && row->line == 0;
        piece->start = places->text.length;
        add_place_text(&places->text, name->text, name->length, row->line,
                       wants_function ? &model->names[model->logicals[logical].function] : NULL);
        piece->length = places->text.length - piece->start;
    }
    if (places->text.failed)
        text->failed = 1;
    else
        ta__text_add(text, places->text.bytes + piece->start, piece->length);
}

static void add_stack(struct ta__text *text, struct places *places, uint32_t context)
{
    const struct ta__model *model = places->model;
    do {
        struct ta__logical_range range = ta__model_range(model, context);
        for (uint32_t i = 0; i < range.count; i++) {
            add_place(text, places, model->logicals[range.first + i].location, range.first + i);
            ta__text_add(text, ",", 1);
        }
        if (context != 0)
            context = model->view->contexts[context].parent;
    } while (context != 0);
    text->length--; /* the last comma */
}

/* Most recent first. */
static void add_frames(struct ta__text *text, struct places *places, struct ta_traceback traceback)
{
    struct ta_frame frame;
    ta__text_add_string(text, "\"frames\":[");
    if (traceback.kind == TA__TRACEBACK_CONTEXT)
        add_stack(text, places, traceback.index);
    else if (traceback.kind == TA__TRACEBACK_LOCATION)
        add_place(text, places, traceback.index, 0);
    else if (ta_traceback_frame(traceback, 0, &frame) == 0)
        add_place_text(text, frame.filename, frame.filename_length, frame.lineno, NULL);
    ta__text_add_string(text, "]");
}

static void add_number(struct ta__text *text, const char *key, ta__wide value)
{
    ta__text_add_string(text, key);
    ta__text_add_wide(text, value);
}

static void add_change(struct ta__text *text, const char *key, ta__signed_wide value)
{
    ta__text_add_string(text, key);
    if (value < 0)
        ta__text_add(text, "-", 1);
    ta__text_add_wide(text, value < 0 ? -(ta__wide)value : (ta__wide)value);
}

/* The member "str"; frees `words`. */
static void add_words(struct ta__text *text, struct ta__text *words)
{
    ta__text_add_string(text, ",\"str\":");
    if (words->failed)
        text->failed = 1;
    else
        ta__json_add_string(text, words->bytes, words->length);
    words->length = 0;
}

static void add_string(struct ta__text *text, const char *key, const char *string)
{
    ta__text_add_string(text, key);
    ta__json_add_string(text, string, strlen(string));
}

/* Asks for the members of a row of the statistics or the differences that `rows` is. */
typedef size_t (*members_function)(void *rows, size_t index, enum ta_member what, struct ta_row_member *members,
                                   size_t max);

static size_t members_of_statistics(void *rows, size_t index, enum ta_member what, struct ta_row_member *members,
                                    size_t max)
{
    return ta_statistics_members(rows, index, what, members, max);
}

static size_t members_of_differences(void *rows, size_t index, enum ta_member what, struct ta_row_member *members,
                                     size_t max)
{
    return ta_differences_members(rows, index, what, members, max);
}

/* What rows of the keys "own" and "line" have beside tracemalloc's members. `rows` is only read: what it keeps for the
 * next question is nobody else's. */
static int add_own(struct ta__text *text, const void *rows, size_t index, const struct ta__groups *groups,
                   struct ta_traceback traceback, members_function ask)
{
    void *asked = (void *)(uintptr_t)rows;
    struct ta_frame frame;
    struct ta_row_member via = {.frame = {.function = ""}};
    size_t count = ask(asked, index, TA_MEMBER_FUNCTION, NULL, 0);
    if (count == 0 && groups->group_of_trace != NULL)
        return -1; /* no memory to find them */
    struct ta_row_member *members = ta__new_array(count, sizeof *members);
    if (members == NULL || ta_traceback_frame(traceback, 0, &frame) != 0) {
        free(members);
        return members == NULL ? -1 : 0;
    }
    if (ask(asked, index, TA_MEMBER_FUNCTION, members, count) != count ||
        (ask(asked, index, TA_MEMBER_VIA, &via, 1) == 0 && count > 0)) {
        free(members);
        return -1;
    }
    add_string(text, ",\"key\":", frame.filename);
    add_number(text, ",\"line\":", frame.lineno);
    add_string(text, ",\"function\":", frame.lineno > 0 && count > 0 ? members[0].frame.function : frame.function);
    add_string(text, ",\"via\":", via.frame.function);
    ta__text_add_string(text, ",\"members\":[");
    for (size_t i = 0; i < count; i++) {
        add_string(text, i > 0 ? ",{\"function\":" : "{\"function\":", members[i].frame.function);
        add_number(text, ",\"size\":", members[i].size);
        add_number(text, ",\"count\":", members[i].count);
        ta__text_add(text, "}", 1);
    }
    ta__text_add(text, "]", 1);
    free(members);
    return 0;
}

static int is_alive(const struct ta__output *output)
{
    return !output->failed && !output->pending.failed;
}

static int finish(struct ta__output *output, int status)
{
    return ta__output_finish(output) == 0 && status == 0 ? 0 : -1;
}

int ta_statistics_export_json(const struct ta_statistics *statistics, size_t limit, ta_write_function write, void *user)
{
    struct ta__output output = {.write = write, .user = user};
    struct ta__text *text = &output.pending, words = {0};
    struct places places;
    int status = places_open(&places, statistics->groups.model, statistics->groups.key);
    ta__output_add_string(&output, "[");
    for (size_t i = 0; status == 0 && is_alive(&output) && i < limit && i < statistics->groups.count; i++) {
        const struct ta__group *group = statistics->rows[i];
        ta__output_add_string(&output, i == 0 ? "\n{" : ",\n{");
        add_frames(text, &places, ta__group_traceback(&statistics->groups, group));
        add_number(text, ",\"size\":", group->sums[TA__VALUE_SIZE]);
        add_number(text, ",\"count\":", group->sums[TA__VALUE_COUNT]);
        ta__statistics_add_text(&words, statistics, i);
        add_words(text, &words);
        if (statistics->groups.key >= TA__KEY_OWN)
            status = add_own(text, statistics, i, &statistics->groups, ta__group_traceback(&statistics->groups, group),
                             members_of_statistics);
        ta__text_add(text, "}", 1);
    }
    ta__output_add_string(&output, "\n]\n");
    ta__text_free(&words);
    places_close(&places);
    return finish(&output, status);
}

int ta_differences_export_json(const struct ta_differences *differences, size_t limit, ta_write_function write,
                               void *user)
{
    struct ta__output output = {.write = write, .user = user};
    struct ta__text *text = &output.pending, words = {0};
    struct places places[2] = {{0}, {0}}; /* of the new model, of the old one */
    int status = places_open(&places[0], differences->new_groups.model, differences->new_groups.key);
    if (status == 0)
        status = places_open(&places[1], differences->old_groups.model, differences->old_groups.key);
    ta__output_add_string(&output, "[");
    for (size_t i = 0; status == 0 && is_alive(&output) && i < limit && i < differences->count; i++) {
        const struct ta__difference *row = &differences->rows[i];
        ta__output_add_string(&output, i == 0 ? "\n{" : ",\n{");
        add_frames(text, &places[row->new_group == NULL], ta__difference_traceback(differences, row));
        add_number(text, ",\"size\":", ta__difference_new(row, TA__VALUE_SIZE));
        add_change(text, ",\"size_diff\":", ta__difference_signed(row, TA__VALUE_SIZE));
        add_number(text, ",\"count\":", ta__difference_new(row, TA__VALUE_COUNT));
        add_change(text, ",\"count_diff\":", ta__difference_signed(row, TA__VALUE_COUNT));
        ta__differences_add_text(&words, differences, i);
        add_words(text, &words);
        if (differences->new_groups.key >= TA__KEY_OWN)
            status = add_own(text, differences, i, &differences->new_groups, ta__difference_traceback(differences, row),
                             members_of_differences);
        ta__text_add(text, "}", 1);
    }
    ta__output_add_string(&output, "\n]\n");
    ta__text_free(&words);
    places_close(&places[0]);
    places_close(&places[1]);
    return finish(&output, status);
}

static void add_trace(struct ta__text *text, struct places *places, const struct ta__view_trace *trace,
                      const struct ta__blocks *blocks)
{
    add_number(text, "\"domain\":", trace->domain);
    add_number(text, ",\"size\":", blocks->size);
    if (trace->total_nframe >= 0)
        add_number(text, ",\"total_nframe\":", (ta__wide)trace->total_nframe);
    else
        ta__text_add_string(text, ",\"total_nframe\":null");
    add_number(text, ",\"count\":", blocks->count);
    ta__text_add(text, ",", 1);
    add_frames(text, places, ta__traceback(places->model, TA__TRACEBACK_CONTEXT, trace->context));
    ta__text_add(text, "}", 1);
}

int ta_snapshot_export_json(const struct ta_snapshot *snapshot, ta_write_function write, void *user)
{
    const struct ta__model *model = ta__model_of(snapshot);
    if (model == NULL)
        return -1;
    struct ta__output output = {.write = write, .user = user};
    struct places places;
    struct ta__block_sizes sizes;
    int status = places_open(&places, model, TA__KEY_TRACEBACK), is_first = 1;
    if (ta__block_sizes_open(&sizes, model->view) != 0)
        status = -1;
    ta__text_add_format(&output.pending,
                        "{\"traceback_limit\": %u, \"frame_order\": \"most_recent_first\", \"traces\": [",
                        model->view->traceback_limit);
    for (uint32_t i = 0; status == 0 && is_alive(&output) && i < model->view->trace_count; i++) {
        const struct ta__blocks *blocks;
        size_t kinds = ta__block_sizes_of(&sizes, i, &blocks);
        for (size_t k = 0; k < kinds && is_alive(&output); k++, is_first = 0) {
            ta__output_add_string(&output, is_first ? "\n{" : ",\n{");
            add_trace(&output.pending, &places, &model->view->traces[i], &blocks[k]);
        }
    }
    ta__block_sizes_close(&sizes);
    ta__output_add_string(&output, "\n]}\n");
    places_close(&places);
    return finish(&output, status);
}
