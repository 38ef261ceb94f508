/* exits.c: the ends of a process at which no destructor runs: _exit, _Exit and quick_exit.
 *
 * Workers that were forked end by _exit (Python's multiprocessing, shells): without this they would leave no recording.
 * What cannot be caught stays so: death by a signal, and the C library's own calls. A child of vfork shares its
 * parent's memory and must touch nothing: it is told apart by its number. */
#include "snapshot/triggers.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracealloc.h"

#if TRACEALLOC_OVERRIDE
__attribute__((constructor)) static void watch_quick_exit(void)
{
    at_quick_exit(ta__triggers_exit_now);
}

TA_API void _exit(int status);
TA_API void _exit(int status)
{
    ta__triggers_exit_now();
    for (;;)
        syscall(SYS_exit_group, status);
}

TA_API void _Exit(int status) __attribute__((alias("_exit"), copy(_exit)));
#endif
