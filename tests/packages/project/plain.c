/* plain.c: allocates nothing itself, and knows nothing of tracealloc. */
#include <stdio.h>

int main(void)
{
    puts("plain");
    return 0;
}
