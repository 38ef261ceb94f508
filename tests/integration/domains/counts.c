/* counts.c: one operation, many times, for counting instructions: counts WHAT TIMES.
 *
 *      WHAT     per turn                                            in a process that
 *      loop     nothing                                             uses no domain
 *      zero     malloc and free                                     uses no domain
 *      beside   malloc and free, domain 0                           uses domains
 *      scope    malloc and free in a scope of domain 3              uses domains
 *      call     ta_domain_malloc(3) and free                        uses domains
 *      pushpop  ta_domain_push(3) and ta_domain_pop                 uses domains
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracealloc.h"
#include "tracealloc/domain.h"

static void *(*volatile allocate)(size_t) = malloc;
static void (*volatile release)(void *) = free;
static void *(*volatile allocate_in)(uint32_t, size_t) = ta_domain_malloc;
static void (*volatile push)(uint32_t) = ta_domain_push;
static void (*volatile pop)(void) = ta_domain_pop;

__attribute__((noinline)) static void run(const char *what, long times)
{
    if (strcmp(what, "pushpop") == 0) {
        for (long i = 0; i < times; i++) {
            push(3);
            pop();
        }
    } else if (strcmp(what, "call") == 0) {
        for (long i = 0; i < times; i++)
            release(allocate_in(3, 100));
    } else if (strcmp(what, "loop") == 0) {
        for (volatile long i = 0; i < times; i++)
            ;
    } else {
        for (long i = 0; i < times; i++)
            release(allocate(100));
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const char *what = argv[1];
    if (strcmp(what, "zero") != 0 && strcmp(what, "loop") != 0)
        free(ta_domain_malloc(3, 100));
    if (strcmp(what, "scope") == 0)
        ta_domain_push(3);
    run(what, 200); /* warm */
    run(what, strtol(argv[2], NULL, 10));
    return 0;
}
