/* tell_mode.c: says from within whether it is traced, for test_environment.sh. */
#include <stdio.h>

#include "tracealloc.h"

#pragma weak ta_is_tracing
#pragma weak ta_get_traceback_limit

int main(void)
{
    if (ta_is_tracing != NULL && ta_is_tracing())
        printf("tracing %d\n", ta_get_traceback_limit());
    else
        puts("stopped");
    return 0;
}
