/* loaded_objects.h: which loaded object an address belongs to, as the dynamic loader knows it.
 *
 * The one place that knows how to ask: _dl_find_object where libc has it, else a list made with dl_iterate_phdr. */
#ifndef TA_TRACE_UNWIND_LOADED_OBJECTS_H
#define TA_TRACE_UNWIND_LOADED_OBJECTS_H

#include <stdint.h>

struct ta__object {
    uintptr_t start;
    uintptr_t end;
    uintptr_t bias;
    const void *eh_frame_hdr; /* NULL: none */
    const void *link_map;     /* identifies this loading, together with start; the name stands in for it in the list */
    const char *name;         /* the loader's; valid while the object is loaded; "" = the program */
};

/* 1 when there is one. No lock, no allocation. */
int ta__object_find(uintptr_t address, struct ta__object *object);

/* Makes the list anew, where one is needed. It takes the loader's lock, so it may be called only when tracing begins or
 * when ld.so itself is the caller. */
void ta__objects_refresh(void);

/* Called in the child of a fork: a writer that does not exist here must not keep the list. */
void ta__objects_after_fork(void);

/* For tests: behave as with a libc that lacks _dl_find_object. */
void ta__objects_use_list(int on);

#endif
