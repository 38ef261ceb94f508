/* failure.c: see failure.h. */
#include "analysis/failure.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"

int ta__fail(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ta__error_set(text, NULL);
    return -1;
}

int ta__fail_memory(void)
{
    return ta__fail("out of memory");
}
