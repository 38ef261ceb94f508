/* other_libc.c: where the C library is not glibc: what archives that were built for glibc (libiberty, zstd) ask for. */
#include <features.h>

#if !defined(__GLIBC__)
#include <stdarg.h>
#include <stdio.h>

int __sprintf_chk(char *text, int flag, size_t room, const char *format, ...);
int __sprintf_chk(char *text, int flag, size_t room, const char *format, ...)
{
    va_list arguments;
    (void)flag;
    va_start(arguments, format);
    int length = vsnprintf(text, room, format, arguments);
    va_end(arguments);
    return length;
}
#else
typedef int ta__nothing_to_add;
#endif
