/* weak.c: a program that is linked without tracealloc and asks for it all the same. */
#define TRACEALLOC_WEAK
#include <tracealloc/export.h>

#include <tracealloc/domain.h>

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    void *block = ta_domain_malloc ? ta_domain_malloc(3, 10) : malloc(10);
    const char *tracing = ta_is_tracing && ta_is_tracing() ? "tracing" : "not tracing";
    printf("%s, %s, %s\n", ta_version ? ta_version() : "no library", tracing,
           ta_export_metrics ? "analysis" : "no analysis");
    free(block);
    return 0;
}
