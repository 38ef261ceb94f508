/* resident.h: which pages of a process are in memory, as runs of addresses. */
#ifndef TA_ANALYSIS_IMAGE_RESIDENT_H
#define TA_ANALYSIS_IMAGE_RESIDENT_H

#include "analysis/image/heap_pages.h"

/* Ascending, disjoint. */
struct ta__resident {
    struct ta__range *runs;
    size_t count, capacity;
    size_t hint;  /* where the last question was answered: questions mostly ascend */
    int is_guess; /* core: pages that hold nothing but zeros are taken for absent */
};

/* 0, or -1 with the error set. A live process must be held, with the sizes of its mappings known. */
TA_NODISCARD int ta__resident_read(struct ta__resident *resident, struct ta__target *target);
void ta__resident_free(struct ta__resident *resident);
/* How many bytes of [start, end) are in memory. */
uint64_t ta__resident_bytes(struct ta__resident *resident, uint64_t start, uint64_t end);

#endif
