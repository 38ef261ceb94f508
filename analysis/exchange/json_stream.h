/* json_stream.h: JSON text read piece by piece, so that a document need not fit into memory.
 *
 * Whoever knows what is to come asks for it: members of an object, items of a list, a string, a value. A string is the
 * bytes that its text stands for: \udc80 … \udcff are the bytes 0x80 … 0xFF, everything else is UTF-8 or whatever
 * bytes the text has. The first failure stays: every later call answers -1 (or 0), and the error names line and column.
 * Strict: no comments, no trailing commas, nothing behind the value. */
#ifndef TA_ANALYSIS_EXCHANGE_JSON_STREAM_H
#define TA_ANALYSIS_EXCHANGE_JSON_STREAM_H

#include "analysis/growing_text.h"
#include "tracealloc/analysis.h"

struct ta__json_stream {
    ta_read_function read;
    void *user;
    const char *at, *end; /* what is read and not yet looked at */
    char *buffer;
    uint64_t read_before_end; /* bytes of the whole text up to `end` */
    uint64_t line, line_start;
    struct ta__text string; /* the last string or key */
    unsigned depth;
    int failed;
};

enum ta__json_kind { TA__JSON_ABSENT, TA__JSON_NULL, TA__JSON_STRING, TA__JSON_UNSIGNED, TA__JSON_OTHER };
struct ta__json_value {
    enum ta__json_kind kind;
    uint64_t number; /* UNSIGNED */
};

/* 0, or -1 when out of memory. Either way close it. */
int ta__json_stream_open(struct ta__json_stream *stream, ta_read_function read, void *user);
void ta__json_stream_close(struct ta__json_stream *stream);

/* The first byte of what comes next, behind blanks; -1 at the end of the text and after a failure. */
int ta__json_stream_peek(struct ta__json_stream *stream);
/* Enters an object ('{') or a list ('['), which must come next. */
int ta__json_stream_enter(struct ta__json_stream *stream, char bracket);
/* Inside of one: 1 when there is another member (its key in `string`) or item, 0 when it has ended, -1 on failure.
 * `count` is how many came before, and counts. */
int ta__json_stream_member(struct ta__json_stream *stream, size_t *count);
int ta__json_stream_item(struct ta__json_stream *stream, size_t *count);
/* Any value: a string goes to `string`, an integer that is not negative to `number`, all else is checked and skipped.
 * An integer beyond 64 bits is refused. */
int ta__json_stream_value(struct ta__json_stream *stream, struct ta__json_value *value);
/* Nothing but blanks may follow. */
int ta__json_stream_finish(struct ta__json_stream *stream);

#endif
