/* entry_list.h: which entries a recording holds, and whether its end is missing, from the headers of its chunks alone.
 *
 * Reading side; needs no runtime. */
#ifndef TA_SNAPSHOT_READ_ENTRY_LIST_H
#define TA_SNAPSHOT_READ_ENTRY_LIST_H

#include "snapshot/read/input.h"

/* One whole entry. */
struct ta__entry_place {
    uint64_t offset; /* of its ENTRY */
    uint64_t last;   /* of its END */
    uint64_t end;    /* behind its END */
    int reset;       /* needs nothing before it */
};

/* What the headers of all its chunks say. */
struct ta__entry_list {
    struct ta__buffer entries; /* of struct ta__entry_place */
    uint32_t features;
    int closed;            /* ends with a trailer */
    uint64_t index_offset; /* when closed */
    int torn;              /* something follows the last whole entry that is not whole: `tail` says what */
    struct ta__problem tail;
};
/* 0, or -1 with *problem when the file is no recording or contradicts itself. A file that was not closed may end in
 * anything: that is `torn`, no failure. */
TA_NODISCARD int ta__entry_list_read(struct ta__entry_list *list, struct ta__input *input, struct ta__budget *budget,
                                     struct ta__problem *problem);

#endif
