/* roots.h: what the program reaches its blocks from: registers, stacks, thread-local storage, data of the program and its
 * libraries, and every mapping that is neither malloc's nor tracealloc's. */
#ifndef TA_ANALYSIS_IMAGE_ROOTS_H
#define TA_ANALYSIS_IMAGE_ROOTS_H

#include "analysis/image/block_graph.h"

struct ta_image;

/* 0, or -1 with the error set. A live process must be held for its stacks to be read from where they begin. */
TA_NODISCARD int ta__roots_add(struct ta__block_graph *graph, struct ta_image *image);

#endif
