/* request_limit.c: see request_limit.h. Does what the kernel's heuristic does for mappings that reserve memory: a request that
 * exceeds all memory and swap is refused, unless the administrator has chosen to overcommit always. */
#include "alloc/request_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

static int overcommits_always(void)
{
    char mode = '0';
    int descriptor = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) {
        if (read(descriptor, &mode, 1) != 1)
            mode = '0';
        close(descriptor);
    }
    return mode == '1';
}

int ta__size_is_grantable(size_t size)
{
    int saved_errno = errno;
    struct sysinfo info;
    int result = 1;
    if (sysinfo(&info) == 0) {
        uint64_t total = ((uint64_t)info.totalram + info.totalswap) * info.mem_unit;
        result = size <= total || overcommits_always();
    }
    errno = saved_errno;
    return result;
}
