/* tracealloc/api.h: what all headers of tracealloc share: the version, and how their functions are declared. */
#ifndef TRACEALLOC_API_H
#define TRACEALLOC_API_H

#define TRACEALLOC_VERSION_MAJOR 0
#define TRACEALLOC_VERSION_MINOR 1
#define TRACEALLOC_VERSION_PATCH 0
#define TRACEALLOC_VERSION       "0.1.0"
/* For #if: TA_VERSION >= 10203 means 1.2.3 or later. ta_version() is the version of the library that is really there. */
#define TA_VERSION (TRACEALLOC_VERSION_MAJOR * 10000 + TRACEALLOC_VERSION_MINOR * 100 + TRACEALLOC_VERSION_PATCH)

/* A program that is to run with tracealloc or without it defines TRACEALLOC_WEAK before it includes any of the headers,
 * and is linked without the library. A function that is not there then has the address NULL:
 *
 *      #define TRACEALLOC_WEAK
 *      #include <tracealloc.h>
 *      …
 *      if (ta_is_tracing && ta_is_tracing())
 *          …
 *
 * Preloaded (tracealloc run), the library answers; otherwise nothing happens. */
#if !defined(TA_API)
#if defined(TRACEALLOC_WEAK)
#define TA_API __attribute__((visibility("default"), weak))
#else
#define TA_API __attribute__((visibility("default")))
#endif
#endif

#endif
