/* public_names.h: gives an entry point its public C name too, in the file that defines it.
 *
 * The alias is the same function at the same address: no jump in between, the caller's frame untouched. Builds that do
 * not replace malloc leave it out. */
#ifndef TA_ALLOC_PUBLIC_NAMES_H
#define TA_ALLOC_PUBLIC_NAMES_H

#include "base/attributes.h"

#if TRACEALLOC_OVERRIDE
#define TA_ALSO_NAMED(name, target)                                                                                    \
    extern __typeof__(target) name __attribute__((alias(#target), visibility("default")));
#else
#define TA_ALSO_NAMED(name, target)
#endif

#endif
