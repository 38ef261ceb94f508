/* gzip.h: bytes compressed on their way to a ta_write_function, as a file of gzip. */
#ifndef TA_ANALYSIS_EXPORTS_GZIP_H
#define TA_ANALYSIS_EXPORTS_GZIP_H

#include <zlib.h>

#include "tracealloc/analysis.h"

struct ta__gzip {
    ta_write_function write;
    void *user;
    z_stream stream;
    int is_open, failed;
};

/* 0, or -1 without memory. Either way finish it. */
int ta__gzip_open(struct ta__gzip *gzip, ta_write_function write, void *user);
void ta__gzip_add(struct ta__gzip *gzip, const void *bytes, size_t length);
/* 0 when everything was written. */
int ta__gzip_finish(struct ta__gzip *gzip);

#endif
