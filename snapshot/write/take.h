/* take.h: snapshots of this process into files — what the triggers use besides the public calls. */
#ifndef TA_SNAPSHOT_WRITE_TAKE_H
#define TA_SNAPSHOT_WRITE_TAKE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attributes.h"
#include "tracealloc/snapshot.h"

/* Takes a snapshot and writes it at once, without keeping it in memory. 0, or -1 with ta__error_set. */
TA_NODISCARD int ta__snapshot_to_file(const char *path, const char *reason);
/* The same into an open file, which stays open. */
TA_NODISCARD int ta__snapshot_to_descriptor(int descriptor, const char *reason);
/* How files are replaced that were changed after a moment, and whether the disk is waited for: see struct
 * ta__new_file. */
struct ta__sparing {
    uint64_t since_ns;
    int (*yields)(void);
    int is_hasty;
    int is_last;     /* the process is about to end: what was mapped goes with it */
    int keeps_older; /* nor is a file replaced that was changed before: the new one gets a number */
};
/* The same. `name`, unless NULL, is what the file is called in the end: room for 4096 bytes. */
TA_NODISCARD int ta__snapshot_to_file_sparing(const char *path, const char *reason, const struct ta__sparing *sparing,
                                              char *name);
struct ta_record *ta__record_open_sparing(const char *path, unsigned flags, const struct ta__sparing *sparing);
/* For record.c: one more entry; a new file, also where only the one that started this process may create it; what was taken
 * and given up in its middle; a failure, counted: -1. */
struct ta__writer;
struct ta__new_file;
TA_NODISCARD int ta__append_entry(struct ta__writer *writer, const char *reason);
TA_NODISCARD int ta__open_new_file(struct ta__new_file *file, const char *path, const struct ta__sparing *sparing);
void ta__taking_recover(void);
int ta__count_failure(void);

/* In a child after fork: forgets a record that belongs to the parent, without touching its file. */
void ta__record_forget(struct ta_record *record);
/* The program's path, for later: a process may change to a root without /proc. */
void ta__snapshot_remember_program(void);
/* The process that snapshots are of: the calling one; in the process `keeper`, which shares the memory of `owner`, the
 * latter. 0, 0: there is no such process. */
void ta__snapshot_set_keeper(pid_t keeper, pid_t owner);
pid_t ta__snapshot_process(void);
/* Unless NULL: adds what an entry of a file says of the process. */
struct ta__pairs;
void ta__snapshot_set_describer(void (*describe)(struct ta__pairs *pairs, const char *reason));
/* 0, or -1 with ta__error_set: nothing is traced. */
TA_NODISCARD int ta__snapshot_is_possible(void);
/* How many rows of contexts and leaves it would look through. */
uint64_t ta__snapshot_rows(void);
/* After something that was being taken or appended (`record`, or NULL) was given up in its middle: nothing of it stays. */
void ta__record_recover(struct ta_record *record);
/* As ta_record_close, where the process is about to end: the memory goes with it. */
int ta__record_end(struct ta_record *record);
/* What the series' file is called now; 0 or -1. */
TA_NODISCARD int ta__record_name(const struct ta_record *record, char *path, size_t room);
/* Bytes of the series now, and of all that was ever written to it. */
uint64_t ta__record_length(const struct ta_record *record);
uint64_t ta__record_written(const struct ta_record *record);
/* Why it cannot be made shorter: an errno value, 0 = it can. */
int ta__record_obstacle(const struct ta_record *record);

#endif
