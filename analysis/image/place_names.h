/* place_names.h: names for addresses of another process: variables and functions by the symbol tables of its files, the
 * function whose frame a place on a stack is in, and the class of an object by its table of virtual functions.
 *
 * Everything is looked up after the process goes on: what stacks held is copied while it is held. */
#ifndef TA_ANALYSIS_IMAGE_PLACE_NAMES_H
#define TA_ANALYSIS_IMAGE_PLACE_NAMES_H

#include "analysis/image/target.h"

/* The live part of a thread's stack. */
struct ta__stack_copy {
    uint64_t start, end;
    uint8_t *bytes;
};
/* A frame: from its stack pointer to that of the next one outwards. */
struct ta__stack_frame {
    uint64_t sp, ip;
};
struct ta__frames {
    const struct ta__target_thread *thread;
    struct ta__stack_frame *items;
    size_t count, capacity;
    int is_known; /* unwound, or tried in vain */
};

struct ta__names {
    struct ta__target *target;
    struct ta__stack_copy *stacks; /* by thread */
    struct ta__frames *frames;     /* by thread */
    size_t thread_count;
    void *dwfl; /* Dwfl, opened when it is first wanted */
    int has_failed, is_attached;
};

/* While the process is held: copies stacks, where frames will be asked for. 0, or -1 with the error set. */
TA_NODISCARD int ta__names_open(struct ta__names *names, struct ta__target *target, int with_stacks);
void ta__names_close(struct ta__names *names);
/* "name+12" of a variable or function, in *text; "" when none is known. */
void ta__name_of_address(struct ta__names *names, uint64_t address, char *text, size_t room);
/* The function whose frame the place is in; "" when that is not known. */
void ta__name_of_frame(struct ta__names *names, size_t thread, uint64_t address, char *text, size_t room);
/* The class of an object that begins with a pointer to a table of virtual functions; `word` is that pointer. */
void ta__name_of_class(struct ta__names *names, uint64_t word, char *text, size_t room);

#endif
