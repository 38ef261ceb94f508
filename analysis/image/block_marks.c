/* block_marks.c: see block_marks.h. Headers of layout 3: a word in front of the user's bytes, check and kind 16, leaf 32,
 * size + 1 16; in long headers a word with the size in front of that (alloc/header.h). In layout 2 the leaf came first. */
#include "analysis/image/block_marks.h"

#include <string.h>

#include "analysis/failure.h"

enum { LAYOUT_OLD = 2, LAYOUT = 3, MARK = 8, LONG = 16, SIZE_ELSEWHERE = 0xFFFF };
enum { TRACED = 1, ALIGNED = 2, DOMAIN = 4, ODD = 8, FORWARD = DOMAIN | ODD, KIND_MOST = 15 };

int ta__marks_read(struct ta__marks *marks, struct ta__target *target, const struct ta__layout *layout)
{
    uint32_t gate = 0;
    memset(marks, 0, sizeof *marks);
    if (!layout->can_trace)
        return 0;
    if (layout->header_layout < LAYOUT_OLD || layout->header_layout > LAYOUT || layout->header_mark != MARK ||
        layout->header_long != LONG)
        return ta__fail("%s is of a tracealloc (%s) whose headers (layout %llu) this program does not know",
                        ta__target_string(target, layout->object->path), layout->library,
                        (unsigned long long)layout->header_layout);
    if (ta__target_half(target, layout->header_key, &marks->key) != 0 ||
        ta__target_half(target, layout->leaves_first, &marks->leaf_first) != 0 ||
        ta__target_half(target, layout->leaves_count, &marks->leaf_count) != 0 ||
        ta__target_half(target, layout->gate, &gate) != 0)
        return ta__fail("the library's data are not in the memory at hand");
    marks->has_leaf_first = layout->header_layout == LAYOUT_OLD;
    marks->is_tracing = (gate & layout->gate_tracing) != 0;
    return 0;
}

/* The mark as layout 3 has it. */
static uint64_t in_order(const struct ta__marks *marks, uint64_t word)
{
    uint64_t size = word & UINT64_C(0xFFFF) << 48, rest = word & ~(UINT64_C(0xFFFF) << 48);
    return marks->has_leaf_first ? size | (rest & UINT32_MAX) << 16 | rest >> 32 : word;
}

static uint32_t leaf_of(uint64_t mark)
{
    return (uint32_t)(mark >> 16);
}

static int read_forward(uint64_t mark, uint32_t header, uint64_t room, struct ta__mark *result)
{
    uint64_t distance = (uint64_t)leaf_of(mark) * 16;
    result->offset = (uint32_t)distance;
    return mark >> 48 == 1 && distance != 0 && distance <= UINT32_MAX - header && distance + header <= room;
}

static int has_a_kind(uint32_t kind, int is_forwarded)
{
    return kind <= KIND_MOST && ((kind & FORWARD) != FORWARD || (kind & TRACED) != 0) &&
           ((kind & ALIGNED) != 0) == (is_forwarded != 0);
}

enum ta__mark_kind ta__mark_read(const struct ta__marks *marks, const struct ta__heap_page *page, uint64_t address,
                                 const uint8_t *bytes, uint64_t room, int is_forwarded, struct ta__mark *mark)
{
    uint64_t word, size;
    uint32_t header = page->header;
    if (room < header)
        return TA__MARK_NONE;
    memcpy(&word, bytes + header - MARK, sizeof word);
    word = in_order(marks, word);
    uint32_t kind = ((uint32_t)word ^ (uint32_t)(address + header) ^ marks->key) & 0xFFFF;
    if (kind == FORWARD && !is_forwarded)
        return read_forward(word, header, room, mark) ? TA__MARK_FORWARD : TA__MARK_NONE;
    if (word >> 48 == 0 || !has_a_kind(kind, is_forwarded) || (word >> 48 == SIZE_ELSEWHERE) != (header == LONG))
        return TA__MARK_NONE;
    size = (word >> 48) - 1;
    if (header == LONG)
        memcpy(&size, bytes, sizeof size);
    if (size > room - header)
        return TA__MARK_NONE;
    uint32_t leaf = leaf_of(word);
    *mark = (struct ta__mark){.offset = header, .size = size};
    if ((kind & TRACED) != 0)
        mark->leaf = leaf < marks->leaf_count ? leaf : 0;
    else if ((kind & DOMAIN) != 0)
        mark->domain = leaf;
    mark->has_trace = marks->is_tracing && mark->leaf != 0 && mark->leaf >= marks->leaf_first;
    return TA__MARK_LIVE;
}
