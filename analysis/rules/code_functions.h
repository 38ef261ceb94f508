/* code_functions.h: every function of an object's file, with the inlined calls in it, outermost first. */
#ifndef TA_ANALYSIS_RULES_CODE_FUNCTIONS_H
#define TA_ANALYSIS_RULES_CODE_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

struct ta__code_function {
    const char *function; /* as people read it, without parameters where the linker knows no name */
    const char *raw_name;
    const char *file; /* absolute where the debug information says so; "" when not known */
    uint32_t line;
    unsigned depth; /* 0 = a function, n = inlined into n others */
    int has_lines;  /* from debug information */
    const struct ta__code_span {
        uint64_t start, end; /* addresses in the file */
    } * spans;
    size_t span_count;
};

struct ta__code_object {
    uint8_t build_id[64];
    unsigned build_id_length; /* 0 = it has none */
    int has_lines;
    char reason[160]; /* why not */
};

/* Calls take() for each; a function comes before what was inlined into it. Anything but 0 stops and is answered; -1 with
 * the error set when the object cannot be read. Runs on a thread of its own, with a large stack. */
int ta__code_functions(const char *path, struct ta__code_object *object,
                       int (*take)(void *context, const struct ta__code_function *function), void *context);

#endif
