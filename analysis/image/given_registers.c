/* given_registers.c: threads and registers of a process that somebody else holds still, such as a debugger, as a text:
 * "TID=SP,IP,TLS,REGISTER,…;TID=…", numbers in hexadecimal. TLS is the thread pointer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/failure.h"
#include "analysis/image/target.h"

static int take_number(const char **at, int base, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(*at, &end, base);
    if (end == *at || errno != 0 || **at == '-')
        return -1;
    *at = end;
    return 0;
}

static int take_thread(struct ta__target *target, const char **at)
{
    uint64_t tid, words[3 + TA__REGISTERS] = {0};
    size_t count = 0;
    if (take_number(at, 10, &tid) != 0 || *(*at)++ != '=')
        return -1;
    do {
        if (count == sizeof words / sizeof *words || take_number(at, 16, &words[count++]) != 0)
            return -1;
    } while (**at == ',' && (*at)++ != NULL);
    struct ta__target_thread *thread = count >= 3 ? ta__target_add_thread(target) : NULL;
    if (thread == NULL)
        return -1;
    thread->tid = (uint32_t)tid;
    thread->sp = words[0];
    thread->ip = words[1];
    thread->tls = words[2];
    thread->register_count = (uint32_t)(count - 3);
    memcpy(thread->registers, words + 3, thread->register_count * sizeof *words);
    return 0;
}

int ta__target_give_registers(struct ta__target *target, const char *text)
{
    target->thread_count = 0;
    for (const char *at = text; *at != '\0'; at += *at == ';')
        if (take_thread(target, &at) != 0 || (*at != ';' && *at != '\0'))
            return ta__fail("--registers: expected TID=SP,IP,TLS,REGISTER,…;… in hexadecimal, not '%.60s'", text);
    return 0;
}
