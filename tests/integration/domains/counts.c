/* counts.c: one operation, many times, for counting instructions: counts WHAT TIMES.
 *
 *      WHAT     per turn                                                in a process that
 *      pushpop  ta_domain_push(3) and ta_domain_pop                     uses domains
 *      zero     malloc and free                                         uses no domain
 *      beside   the same, in domain 0                                   uses domains
 *      scope    the same, in a scope of domain 3                        uses domains
 *      call     ta_domain_malloc(3) and free                            uses domains
 *      rule     malloc and free below allocate_in_rule                  uses domains, or rules
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

static void scopes(long times)
{
    for (long i = 0; i < times; i++) {
        push(3);
        pop();
    }
}

static void blocks_freed(long times)
{
    for (long i = 0; i < times; i++)
        release(allocate(100));
}

static void blocks_called_for(long times)
{
    for (long i = 0; i < times; i++)
        release(allocate_in(3, 100));
}

/* Named by a rule of the test. */
void allocate_in_rule(void (*run)(long), long times);
__attribute__((noinline)) void allocate_in_rule(void (*run)(long), long times)
{
    run(times);
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *what;
        void (*run)(long);
        int uses_domains;
        uint32_t scope;
    } modes[] = {
        {"pushpop", scopes, 1, 0},     {"zero", blocks_freed, 0, 0},      {"beside", blocks_freed, 1, 0},
        {"scope", blocks_freed, 1, 3}, {"call", blocks_called_for, 1, 0}, {"rule", blocks_freed, 1, 0},
    };
    for (size_t i = 0; argc == 3 && i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(argv[1], modes[i].what) != 0)
            continue;
        if (modes[i].uses_domains)
            free(ta_domain_malloc(3, 100));
        if (modes[i].scope != 0)
            ta_domain_push(modes[i].scope);
        for (int round = 0; round < 2; round++)
            allocate_in_rule(modes[i].run, round == 0 ? 1000 : strtol(argv[2], NULL, 10)); /* warm, then counted */
        return 0;
    }
    return 2;
}
