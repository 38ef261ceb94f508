/* recording.c: looks into a recording without loading it: which entries there are, and whether all of it is sound. */
#include <errno.h>

#include "base/error.h"
#include "base/memory.h"
#include "snapshot/format/chunks.h"
#include "snapshot/read/sections.h"
#include "snapshot/read/read.h"
#include "tracealloc/snapshot.h"

struct ta_recording {
    struct ta__input input;
    struct ta__entry_list list;
    struct ta__decoder decoder;
    size_t strings_read; /* entries whose strings the decoder has */
    char path[4096];
    char warning[TA__MESSAGE_MAX];
};

static uint32_t entry_count(const struct ta_recording *recording)
{
    return TA__ROW_COUNT(struct ta__entry_place, recording->list.entries);
}

static const struct ta__entry_place *places(const struct ta_recording *recording)
{
    return TA__ROWS(const struct ta__entry_place, recording->list.entries);
}

static void describe(char text[TA__MESSAGE_MAX], const struct ta__problem *problem)
{
    struct ta__message message;
    ta__message_begin_plain(&message);
    ta__problem_to_message(problem, &message);
    memcpy(text, message.text, message.length);
    text[message.length] = '\0';
}

struct ta_recording *ta_recording_open(const char *path)
{
    struct ta_recording *recording = ta__memory_map(sizeof *recording);
    if (recording == NULL) {
        ta__error_set("no memory for a recording", NULL);
        return NULL;
    }
    if (ta__input_open(&recording->input, path) != 0) {
        ta__memory_unmap(recording, sizeof *recording);
        return NULL;
    }
    struct ta__problem problem;
    size_t length = strnlen(path, sizeof recording->path - 1);
    memcpy(recording->path, path, length);
    int failed = ta__entry_list_read(&recording->list, &recording->input, NULL, &problem) != 0;
    if (!failed && ta__decoder_open(&recording->decoder, &recording->input, ta__snapshot_load_limit()) != 0) {
        failed = 1;
        problem = recording->decoder.problem;
    }
    if (failed) {
        ta__problem_to_error(&problem, path);
        ta_recording_close(recording);
        return NULL;
    }
    if (recording->list.torn)
        describe(recording->warning, &recording->list.tail);
    return recording;
}

size_t ta_recording_entry_count(const struct ta_recording *recording)
{
    return entry_count(recording);
}

int ta_recording_entry(struct ta_recording *recording, size_t index, struct ta_entry_info *info)
{
    if (index >= entry_count(recording))
        return ta__error_set("there is no entry of that index", NULL);
    const struct ta__entry_place *place = &places(recording)[index];
    uint64_t traces;
    recording->decoder.raw_total = 0;
    if (ta__decoder_summary(&recording->decoder, place, &traces) != 0)
        return ta__problem_to_error(&recording->decoder.problem, recording->path);
    *info = (struct ta_entry_info){
        .time_ns = recording->decoder.fields[TA__FIELD_TIME_NS],
        .current_bytes = recording->decoder.fields[TA__FIELD_CURRENT_BYTES],
        .peak_bytes = recording->decoder.fields[TA__FIELD_PEAK_BYTES],
        .traces = traces,
        .offset = place->offset,
        .length = place->end - place->offset,
    };
    return 0;
}

/* Strings are written once, by the entry that needed them first. */
const char *ta_recording_reason(struct ta_recording *recording, size_t index)
{
    struct ta__decoder *decoder = &recording->decoder;
    uint64_t traces;
    if (index >= entry_count(recording))
        return "";
    if (index < recording->strings_read)
        recording->strings_read = 0;
    while (recording->strings_read <= index)
        if (ta__decoder_strings(decoder, &places(recording)[recording->strings_read++]) != 0)
            return recording->strings_read = 0, "";
    return ta__decoder_summary(decoder, &places(recording)[index], &traces) != 0
               ? ""
               : ta__decoder_string(decoder, decoder->fields[TA__FIELD_REASON]);
}

long ta__recording_find(const char *path, const char *text)
{
    struct ta_recording *recording = ta_recording_open(path);
    long found = -1;
    if (recording == NULL)
        return -1;
    for (uint32_t i = 0; i < entry_count(recording); i++) {
        const char *reason = ta_recording_reason(recording, i);
        size_t length = strlen(TA__MARK);
        if (strcmp(reason, text) == 0 || (strncmp(reason, TA__MARK, length) == 0 && strcmp(reason + length, text) == 0))
            found = (long)i;
    }
    ta_recording_close(recording);
    if (found < 0)
        ta__error_set(path, " has no entry with the mark \"", text, "\": tracealloc list shows which there are", NULL);
    return found;
}

const char *ta_recording_warning(const struct ta_recording *recording)
{
    return recording->warning;
}

void ta_recording_close(struct ta_recording *recording)
{
    if (recording == NULL)
        return;
    ta__decoder_close(&recording->decoder);
    ta__buffer_free(&recording->list.entries);
    ta__input_close(&recording->input);
    ta__memory_unmap(recording, sizeof *recording);
}

/* ---- check ---- */

struct check {
    void (*report)(void *user, int severity, uint64_t offset, const char *section, const char *text);
    void *user;
    long count;
    struct ta_recording *recording;
};

static void tell(struct check *check, int severity, uint64_t offset, const char *section, const char *text)
{
    check->count += severity != TA_CHECK_NOTE;
    if (check->report != NULL)
        check->report(check->user, severity, offset, section, text);
}

static void tell_problem(struct check *check, int severity, const struct ta__problem *problem)
{
    char text[TA__MESSAGE_MAX + 1];
    memcpy(text, problem->text.text, problem->text.length);
    text[problem->text.length] = '\0';
    tell(check, severity, problem->offset, problem->section, text);
}

/* The index repeats what the entries say; readers that list entries may rely on it. */
static void check_index(struct check *check)
{
    struct ta_recording *recording = check->recording;
    struct ta__buffer rows = {.budget = &recording->decoder.budget};
    struct ta__chunk_header header;
    uint64_t offset = recording->list.index_offset;
    if (ta__input_chunk(&recording->input, offset, &header, &recording->decoder.problem) != 0) {
        tell_problem(check, TA_CHECK_ERROR, &recording->decoder.problem);
        return;
    }
    if (header.kind != TA__KIND_INDEX) {
        tell(check, TA_CHECK_ERROR, offset, ta__section_name(header.kind), "the trailer does not point to the index");
        return;
    }
    if (ta__section_index(&recording->decoder, &header, &rows) != 0) {
        tell_problem(check, TA_CHECK_ERROR, &recording->decoder.problem);
    } else {
        const struct ta__index_row *row = TA__ROWS(const struct ta__index_row, rows);
        uint32_t count = TA__ROW_COUNT(struct ta__index_row, rows);
        if (count != entry_count(recording) && count != 0)
            tell(check, TA_CHECK_ERROR, offset, "index", "the index lists another number of entries");
        for (uint32_t i = 0; i < count && i < entry_count(recording); i++) {
            struct ta_entry_info info;
            const struct ta__entry_place *place = &places(recording)[i];
            if (row[i].offset != place->offset || (row[i].reset != 0) != (place->reset != 0)) {
                tell(check, TA_CHECK_ERROR, offset, "index", "the index names places where no entry begins");
                break;
            }
            if (ta_recording_entry(recording, i, &info) == 0 &&
                (info.time_ns != row[i].time_ns || info.traces != row[i].traces ||
                 info.current_bytes != row[i].current_bytes || info.peak_bytes != row[i].peak_bytes)) {
                tell(check, TA_CHECK_ERROR, offset, "index", "the index contradicts an entry");
                break;
            }
        }
    }
    ta__buffer_free(&rows);
}

static void check_entries(struct check *check)
{
    struct ta_recording *recording = check->recording;
    struct ta__decoder *decoder = &recording->decoder;
    for (uint32_t i = 0; i < entry_count(recording); i++) {
        decoder->raw_total = 0; /* the cap is meant for one load */
        if (ta__decoder_entry(decoder, &places(recording)[i]) != 0) {
            tell_problem(check, TA_CHECK_ERROR, &decoder->problem);
            return; /* later entries build on this one */
        }
    }
}

long ta_recording_check(const char *path,
                        void (*report)(void *user, int severity, uint64_t offset, const char *section,
                                       const char *text),
                        void *user)
{
    struct check check = {.report = report, .user = user};
    struct ta__input input;
    struct ta__entry_list list;
    struct ta__problem problem;
    if (ta__input_open(&input, path) != 0)
        return -1;
    if (ta__entry_list_read(&list, &input, NULL, &problem) != 0)
        tell_problem(&check, TA_CHECK_ERROR, &problem);
    uint32_t entries = TA__ROW_COUNT(struct ta__entry_place, list.entries);
    if (check.count == 0 && list.torn)
        tell_problem(&check, TA_CHECK_WARNING, &list.tail);
    if (check.count == 0 && !list.closed)
        tell(&check, TA_CHECK_NOTE, input.length, "", "the recording was not closed: it has no index");
    if (entries == 0 && (check.count == 0 || list.torn))
        tell(&check, TA_CHECK_WARNING, 0, "", "the recording holds no whole entry");
    ta__buffer_free(&list.entries);
    ta__input_close(&input);
    if (entries == 0 || (check.count != 0 && !list.torn))
        return check.count;
    check.recording = ta_recording_open(path);
    if (check.recording == NULL)
        return -1;
    check_entries(&check);
    if (check.count == 0 && list.closed)
        check_index(&check);
    ta_recording_close(check.recording);
    return check.count;
}
