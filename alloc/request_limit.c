/* request_limit.c: see request_limit.h. The kernel says it: a mapping that reserves memory is refused where the request exceeds
 * all memory and swap, unless the administrator has chosen to overcommit always. Nothing is asked that a filter of system
 * calls would forbid which knows glibc's malloc. */
#include "alloc/request_limit.h"

#include <errno.h>

#include "base/mappings.h"

int ta__size_is_grantable(size_t size)
{
    int saved_errno = errno;
    void *trial = ta__system_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (trial != MAP_FAILED)
        ta__system_munmap(trial, size);
    errno = saved_errno;
    return trial != MAP_FAILED;
}
