/* rules.h: rules that give memory to domains (docs/domains.md), looked at from outside of the program: which code each of
 * them names, and the same as ranges of addresses, which a program can follow without debug information.
 *
 * Needs libtracealloc-analysis. Failure is -1, with the reason in ta_error_text: for the text of the rules as
 * "FILE:LINE:COLUMN: what". */
#ifndef TRACEALLOC_RULES_H
#define TRACEALLOC_RULES_H

#include <stddef.h>
#include <stdint.h>

#include <tracealloc/analysis.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* A rule as it stands in the file. */
struct ta_rule {
    uint32_t line;   /* of the file */
    uint32_t domain; /* number and name of whom it gives to */
    const char *name;
    int wants_lines; /* it names source files: needs debug information */
    int wants_code;  /* it names functions or source files, not modules alone */
    int is_compiled; /* the file has the addresses already */
};

/* A function, or an inlined call of one, that a rule names. */
struct ta_rule_match {
    struct ta_rule rule;
    size_t rule_index;
    const char *function; /* as people read it */
    const char *raw_name; /* as the linker has it */
    const char *file;     /* where it is defined; "" when not known */
    uint32_t lineno;
    int inlined;
    uint64_t start, end; /* its (first) range of addresses in the file of the object */
};

/* Calls `found` for every function of an object (a program or a library) that a rule names: the first of the file that
 * does. Anything but 0 stops, and is answered. `found` may be NULL: then only the rules are checked. */
TA_API int ta_rules_check(const char *rules, const char *object,
                          int (*found)(void *user, const struct ta_rule_match *match), void *user);
/* The rules of a file, by index: 0, or -1 beyond the last and when the file is wrong. `name` holds until the thread's
 * next call. */
TA_API int ta_rules_get(const char *rules, size_t index, struct ta_rule *rule, size_t size);

/* Writes the rules with the addresses of all code of the objects that they name: a file for rules= and
 * ta_domain_load_rules, in which file= works. `note`, which may be NULL, is told of objects without debug information, which
 * are then known by their symbols alone. */
TA_API int ta_rules_compile(const char *rules, const char *const *objects, size_t count,
                            void (*note)(void *user, const char *object, const char *text), void *note_user,
                            ta_write_function write, void *user);

#if defined(__cplusplus)
}
#endif

#endif
