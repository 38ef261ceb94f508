/* error.c: see error.h. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "tracealloc.h"

/* Not in the static block of every thread: few threads ever fail. */
static __thread __attribute__((tls_model("global-dynamic"))) char last_error[TA__MESSAGE_MAX];

__attribute__((weak)) const char *ta_error_text(void)
{
    return last_error;
}

/* By the exported name, not last_error: the first library that the dynamic linker (or the static one) meets serves all
 * of them, so that an error set by one is read through the ta_error_text of another. */
static char *buffer(void)
{
    return (char *)(uintptr_t)ta_error_text();
}

const char *ta__error_text(void)
{
    return ta_error_text();
}

void ta__error_clear(void)
{
    buffer()[0] = '\0';
}

int ta__error_take(const struct ta__message *message)
{
    char *text = buffer();
    memcpy(text, message->text, message->length);
    text[message->length] = '\0';
    return -1;
}

int ta__error_set(const char *first, ...)
{
    struct ta__message message;
    ta__message_begin_plain(&message);
    va_list texts;
    va_start(texts, first);
    for (const char *text = first; text != NULL; text = va_arg(texts, const char *))
        ta__message_text(&message, text);
    va_end(texts);
    return ta__error_take(&message);
}

int ta__error_add_errno(int number)
{
    struct ta__message message;
    ta__message_begin_plain(&message);
    ta__message_text(&message, buffer());
    ta__message_text(&message, ": ");
    const char *words = ta__errno_text(number);
    if (words != NULL) {
        ta__message_text(&message, words);
    } else {
        ta__message_text(&message, "error ");
        ta__message_signed(&message, number);
    }
    return ta__error_take(&message);
}

const char *ta__errno_text(int number)
{
#if defined(__GLIBC__)
    return strerrordesc_np(number);
#else
    return strerror(number); /* other libraries have constants there */
#endif
}
