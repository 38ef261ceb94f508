/* error.h: the text of the last error of this thread, for ta_error_text.
 *
 * No malloc and no stdio: a fixed buffer per thread. Every library of the project carries this file; a process that
 * uses two of them still has one buffer per thread: that of the ta_error_text that the linker found first. */
#ifndef TA_BASE_ERROR_H
#define TA_BASE_ERROR_H

#include "base/message.h"

/* Stores the texts one after another, up to the NULL. Answers -1, so that a failing function can return it. */
int ta__error_set(const char *first, ...) __attribute__((sentinel));
/* The same for a line built with numbers in it. */
int ta__error_take(const struct ta__message *message);
/* Adds ": " and the words for an errno value to the stored text. Answers -1. */
int ta__error_add_errno(int number);
void ta__error_clear(void);
/* The stored text; "" when there was no error yet. */
const char *ta__error_text(void);
/* Words for an errno value without strerror, which may call malloc. */
const char *ta__errno_text(int number);

#endif
