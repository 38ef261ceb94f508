/* file_name.h: what files of snapshots are called: a pattern with %p (pid), %n (number), %t (UTC time), %h (host) and %%.
 *
 * A child that was forked gets ".PID" behind a name without %p, so that it leaves its parent's file alone. No malloc, and
 * nothing of libc that may allocate. */
#ifndef TA_SNAPSHOT_TRIGGERS_FILE_NAME_H
#define TA_SNAPSHOT_TRIGGERS_FILE_NAME_H

#include <stdint.h>

#include "base/attributes.h"

/* The name that a pattern gives now. `number` replaces %n. 0, or -1 when it does not fit. */
TA_NODISCARD int ta__trigger_path(const char *pattern, uint64_t number, int forked, char *path, uint64_t room);
/* The same for the next number whose name no file has, so that a process that executes another program keeps what it
 * wrote before. */
TA_NODISCARD int ta__free_path(const char *pattern, uint64_t *number, int forked, char *path, uint64_t room);

#endif
