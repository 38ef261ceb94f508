/* message.c: see message.h. */
#include "base/message.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

void ta__message_begin_plain(struct ta__message *message)
{
    message->length = 0;
}

void ta__message_begin(struct ta__message *message)
{
    message->length = 0;
    ta__message_text(message, "tracealloc: ");
}

void ta__message_span(struct ta__message *message, const char *text, size_t length)
{
    size_t room = TA__MESSAGE_MAX - 1 - message->length; /* one byte stays for the line end */
    if (length > room)
        length = room;
    memcpy(message->text + message->length, text, length);
    message->length += length;
}

void ta__message_text(struct ta__message *message, const char *text)
{
    ta__message_span(message, text, strlen(text));
}

static void number_in_base(struct ta__message *message, uint64_t number, unsigned base)
{
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number != 0);
    ta__message_span(message, digits + at, sizeof digits - at);
}

void ta__message_number(struct ta__message *message, uint64_t number)
{
    number_in_base(message, number, 10);
}

void ta__message_count(struct ta__message *message, uint64_t number, const char *thing)
{
    ta__message_number(message, number);
    ta__message_text(message, " ");
    ta__message_text(message, thing);
    ta__message_text(message, number == 1 ? "" : "s");
}

void ta__message_signed(struct ta__message *message, int64_t number)
{
    if (number < 0)
        ta__message_text(message, "-");
    number_in_base(message, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, 10);
}

void ta__message_hex(struct ta__message *message, uint64_t number)
{
    ta__message_text(message, "0x");
    number_in_base(message, number, 16);
}

void ta__message_size(struct ta__message *message, uint64_t size_bytes)
{
    static const char units[5][5] = {" B", " KiB", " MiB", " GiB", " TiB"};
    unsigned unit = 0;
    uint64_t scale = 1;
    while (size_bytes / scale >= 10240 && unit < 4) {
        scale *= 1024;
        unit++;
    }
    uint64_t whole = size_bytes / scale;
    if (unit == 0 || whole >= 100) {
        ta__message_number(message, whole + ((size_bytes % scale) >= (scale + 1) / 2 && unit != 0));
    } else {
        uint64_t tenths = whole * 10 + ((size_bytes % scale) * 10 + scale / 2) / scale;
        ta__message_number(message, tenths / 10);
        ta__message_text(message, ".");
        ta__message_number(message, tenths % 10);
    }
    ta__message_text(message, units[unit]);
}

void ta__message_send_to(struct ta__message *message, int descriptor)
{
    int saved_errno = errno;
    message->text[message->length] = '\n';
    size_t left = message->length + 1;
    const char *at = message->text;
    while (left > 0) {
        ssize_t written = write(descriptor, at, left);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            break;
        at += written;
        left -= (size_t)written;
    }
    errno = saved_errno;
}

void ta__message_send(struct ta__message *message)
{
    ta__message_send_to(message, 2);
}

void ta__message_line(const char *first, ...)
{
    struct ta__message message;
    ta__message_begin(&message);
    va_list texts;
    va_start(texts, first);
    for (const char *text = first; text != NULL; text = va_arg(texts, const char *))
        ta__message_text(&message, text);
    va_end(texts);
    ta__message_send(&message);
}
