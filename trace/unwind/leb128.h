/* leb128.h: the variable-length integers of DWARF, through the bounded cursor of base/bytes.h.
 *
 * Unlike ta__get_varint these accept padded forms, which assemblers do write, up to ten bytes. */
#ifndef TA_TRACE_UNWIND_LEB128_H
#define TA_TRACE_UNWIND_LEB128_H

#include "base/bytes.h"

TA_INLINE uint64_t ta__get_uleb(struct ta__cursor *cursor)
{
    return ta__get_varint(cursor);
}

TA_INLINE int64_t ta__get_sleb(struct ta__cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = (uint8_t)ta__get_fixed(cursor, 1);
        if (cursor->failed)
            return 0;
        if (shift == 63 && byte != 0 && byte != 0x7f)
            break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            if ((byte & 0x40) != 0 && shift < 57)
                value |= ~0ull << (shift + 7);
            return (int64_t)value;
        }
    }
    cursor->failed = 1;
    return 0;
}

#endif
