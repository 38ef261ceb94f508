/* message.h: one bounded line on file descriptor 2, from any place: no malloc, no stdio, no lock, errno kept.
 *
 * Nothing here is called unasked: only for errors that are due (a bad option, a double free) and for reports that an
 * option requests. A closed descriptor 2 is not an error. */
#ifndef TA_BASE_MESSAGE_H
#define TA_BASE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#define TA__MESSAGE_MAX 512

/* A line under construction; text that does not fit is cut, never overrun. */
struct ta__message {
    size_t length;
    char text[TA__MESSAGE_MAX];
};

void ta__message_begin(struct ta__message *message); /* starts with "tracealloc: " */
void ta__message_begin_plain(struct ta__message *message);
void ta__message_text(struct ta__message *message, const char *text);
void ta__message_span(struct ta__message *message, const char *text, size_t length);
void ta__message_number(struct ta__message *message, uint64_t number);
/* "1 byte", "2 bytes": `thing` is one. */
void ta__message_count(struct ta__message *message, uint64_t number, const char *thing);
void ta__message_signed(struct ta__message *message, int64_t number);
void ta__message_hex(struct ta__message *message, uint64_t number);      /* 0x… */
void ta__message_size(struct ta__message *message, uint64_t size_bytes); /* "12.3 MiB", as tracemalloc writes sizes */
void ta__message_send(struct ta__message *message);                      /* adds the line end and writes in one call */
void ta__message_send_to(struct ta__message *message, int descriptor);

/* A whole line at once: the texts one after another, up to the NULL. */
void ta__message_line(const char *first, ...) __attribute__((sentinel));

#endif
