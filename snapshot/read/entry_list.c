/* entry_list.c: see entry_list.h. */
#include "snapshot/read/entry_list.h"

#include "base/bytes.h"
#include "base/hash.h"

struct reader {
    struct ta__entry_list *list;
    struct ta__problem *problem;
    struct ta__entry_place place; /* the entry that began last */
    int is_inside, index_seen;
};

/* A trailer at the very end says that the file was closed: then nothing in it may be missing. */
static int find_trailer(struct ta__input *input, uint64_t *index_offset)
{
    struct ta__chunk_header header;
    struct ta__problem ignored;
    if (input->length < TA__FILE_HEADER_LENGTH + TA__TRAILER_LENGTH)
        return 0;
    uint64_t offset = input->length - TA__TRAILER_LENGTH;
    if (ta__input_chunk(input, offset, &header, &ignored) != 0 || header.kind != TA__KIND_TRAILER ||
        header.stored != TA__TRAILER_PAYLOAD || (header.flags & TA__CHUNK_PLAIN) == 0)
        return 0;
    const uint8_t *payload = ta__input_at(input, offset + TA__CHUNK_HEADER_LENGTH, TA__TRAILER_PAYLOAD);
    if (payload == NULL || (uint32_t)ta__hash_bytes(payload, TA__TRAILER_PAYLOAD) != header.check)
        return 0;
    *index_offset = (uint64_t)ta__u32_at(payload) | (uint64_t)ta__u32_at(payload + 4) << 32;
    return 1;
}

static int misplaced(const struct reader *reader, const struct ta__chunk_header *header, const char *text)
{
    return ta__problem_begin(reader->problem, ta__section_name(header->kind), header->offset, text);
}

static int take_trailer(const struct reader *reader, const struct ta__chunk_header *header, uint64_t bytes_behind)
{
    if (bytes_behind != 0) {
        misplaced(reader, header, "");
        ta__message_count(&reader->problem->text, bytes_behind, "byte");
        ta__message_text(&reader->problem->text, bytes_behind == 1 ? " follows" : " follow");
        ta__message_text(&reader->problem->text, " the end of the recording");
        return -1;
    }
    if (reader->is_inside || !reader->index_seen)
        return misplaced(reader, header, "the recording ends without an index");
    return 0;
}

/* Why a section may not stand where it stands; NULL when it may. */
static const char *misplacement(const struct reader *reader, const struct ta__chunk_header *header)
{
    if (reader->index_seen)
        return "the section follows the index";
    if (header->entry != TA__ROW_COUNT(struct ta__entry_place, reader->list->entries))
        return "the section belongs to another entry";
    if (header->kind == TA__KIND_INDEX)
        return reader->is_inside ? "the index stands within an entry" : NULL;
    if (header->kind != TA__KIND_ENTRY)
        return reader->is_inside ? NULL : "the section stands outside any entry";
    if (reader->is_inside)
        return "an entry begins within an entry";
    if (header->entry == 0 && (header->flags & TA__CHUNK_RESET) == 0)
        return "the first entry relies on one before it";
    return NULL;
}

static int take_section(struct reader *reader, const struct ta__chunk_header *header, uint64_t end)
{
    const char *wrong = misplacement(reader, header);
    if (wrong != NULL)
        return misplaced(reader, header, wrong);
    if (header->kind == TA__KIND_INDEX) {
        reader->index_seen = 1;
    } else if (header->kind == TA__KIND_ENTRY) {
        reader->is_inside = 1;
        reader->place = (struct ta__entry_place){
            .offset = header->offset,
            .reset = (header->flags & TA__CHUNK_RESET) != 0,
        };
    } else if (header->kind == TA__KIND_END) {
        reader->is_inside = 0;
        reader->place.last = header->offset;
        reader->place.end = end;
        if (ta__buffer_put(&reader->list->entries, &reader->place, sizeof reader->place) != 0)
            return misplaced(reader, header, "no memory for the list of entries");
    }
    return 0;
}

int ta__entry_list_read(struct ta__entry_list *list, struct ta__input *input, struct ta__budget *budget,
                        struct ta__problem *problem)
{
    struct reader reader = {.list = list, .problem = problem};
    struct ta__chunk_header header;
    memset(list, 0, sizeof *list);
    list->entries.budget = budget;
    if (ta__input_header(input, &list->features, problem) != 0)
        return -1;
    list->closed = find_trailer(input, &list->index_offset);
    for (uint64_t offset = TA__FILE_HEADER_LENGTH; offset < input->length;) {
        if (ta__input_chunk(input, offset, &header, problem) != 0) {
            if (list->closed)
                return -1;
            list->torn = 1;
            list->tail = *problem;
            return 0;
        }
        uint64_t end = offset + TA__CHUNK_HEADER_LENGTH + header.stored;
        if (header.kind == TA__KIND_TRAILER)
            return take_trailer(&reader, &header, input->length - end);
        if (take_section(&reader, &header, end) != 0)
            return -1;
        offset = end;
    }
    if (reader.is_inside) {
        list->torn = 1;
        ta__problem_begin(&list->tail, "entry", reader.place.offset, "the entry has no end");
    }
    return 0;
}
