/* public_names.h: gives an entry point its public C name too, in the file that defines it.
 *
 * The alias is the same function at the same address: no jump in between, the caller's frame untouched. Builds that do
 * not replace malloc leave it out. */
#ifndef TA_ALLOC_PUBLIC_NAMES_H
#define TA_ALLOC_PUBLIC_NAMES_H

#include <stdlib.h> /* says whose libc it is */

#include "base/attributes.h"

/* The name that glibc's own function has beside malloc's: who replaces some of malloc's names calls the others by it.
 * Behind it, what the compiler is told of the function. */
#if TRACEALLOC_OVERRIDE && defined(__GLIBC__)
#define TA_ALSO_LIBCS(name, ...)                                                                                       \
    extern __typeof__(ta_##name) __libc_##name __attribute__((alias("ta_" #name), visibility("default"), __VA_ARGS__));
#else
#define TA_ALSO_LIBCS(name, ...)
#endif

#if TRACEALLOC_OVERRIDE
#define TA_ALSO_NAMED(name, target)                                                                                    \
    extern __typeof__(target) name __attribute__((alias(#target), visibility("default")));
#else
#define TA_ALSO_NAMED(name, target)
#endif

#endif
