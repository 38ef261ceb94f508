/* take.h: snapshots of this process into files — what the triggers use besides the public calls. */
#ifndef TA_SNAPSHOT_TAKE_H
#define TA_SNAPSHOT_TAKE_H

#include <stdint.h>

#include "base/attributes.h"
#include "tracealloc/snapshot.h"

/* Takes a snapshot and writes it at once, without keeping it in memory. 0, or -1 with ta__error_set. */
TA_NODISCARD int ta__snapshot_to_file(const char *path, const char *reason);
/* In a child after fork: forgets a record that belongs to the parent, without touching its file. */
void ta__record_forget(struct ta_record *record);
/* The program's path, for later: a process may change to a root without /proc. */
void ta__snapshot_remember_program(void);
/* Snapshots that could not be written since the process began. */
uint64_t ta__snapshot_error_count(void);

#endif
