/* function_name.h: the parts of a function's name as demanglers and DWARF write it. Between the symbols and whoever asks
 * whose function it is or shows it to people. Reads text, keeps nothing.
 *
 *     std::enable_if<…>::type  ns::Table<int>::grow<char>  (unsigned long) const [clone .isra.0]
 *     `------ result -------'  `--------- name ---------'  `------------ the rest -------------' */
#ifndef TA_ANALYSIS_OWN_FUNCTION_NAME_H
#define TA_ANALYSIS_OWN_FUNCTION_NAME_H

#include <stddef.h>

#include "analysis/support.h"

/* The name with all around it (namespaces, classes, template arguments), without result and parameters. */
struct ta__span {
    const char *text;
    size_t length;
};
struct ta__span ta__function_name(const char *function, size_t length);

/* The same without template arguments, clone suffixes and inline namespaces of the library: what patterns see. */
void ta__function_plain(struct ta__text *text, struct ta__span name);

#endif
