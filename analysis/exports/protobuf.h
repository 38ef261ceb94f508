/* protobuf.h: messages of Protocol Buffers, field by field. A field of number 0 is left out, as proto3 has it. */
#ifndef TA_ANALYSIS_EXPORTS_PROTOBUF_H
#define TA_ANALYSIS_EXPORTS_PROTOBUF_H

#include "analysis/growing_text.h"

void ta__protobuf_number(struct ta__text *message, unsigned field, uint64_t value);
/* A string, or a message inside of the message. */
void ta__protobuf_bytes(struct ta__text *message, unsigned field, const void *bytes, size_t length);
/* A message made in `inner`, which is emptied for the next one. */
void ta__protobuf_message(struct ta__text *message, unsigned field, struct ta__text *inner);
/* A packed list of numbers, zeros included. */
void ta__protobuf_list(struct ta__text *message, unsigned field, const uint64_t *values, size_t count);

#endif
