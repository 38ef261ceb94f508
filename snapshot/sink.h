/* sink.h: where the bytes of a recording go: memory, a descriptor, or a file that appears only when it is whole.
 *
 * Writing never kills the host: SIGXFSZ and SIGPIPE raised by our own writes are taken back. After a failure the sink
 * stays failed, keeps the errno, and refuses what comes later.
 *
 * Programs that become daemons close every descriptor and then open their own under the same numbers, at any moment: a
 * descriptor is looked at before each write, cut and close, and what is not our file is left alone (EBADF). */
#ifndef TA_SNAPSHOT_SINK_H
#define TA_SNAPSHOT_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "snapshot/buffer.h"

/* Which file a descriptor meant when it was opened. */
struct ta__identity {
    uint64_t device, inode;
};
struct ta__identity ta__identity_of(int descriptor);
int ta__is_identical(int descriptor, struct ta__identity identity);

struct ta__sink {
    struct ta__buffer memory; /* when descriptor < 0 */
    int descriptor;
    int error;        /* errno of the first failure */
    int is_torn;      /* the file is longer than `written`: it was not ours to cut */
    uint64_t written; /* bytes so far: the offset of what comes next */
    struct ta__identity identity;
};

void ta__sink_memory(struct ta__sink *sink);
void ta__sink_descriptor(struct ta__sink *sink, int descriptor);
/* Cuts what is behind `length`, also after a failure. -1: that is not possible, now or ever. */
TA_NODISCARD int ta__sink_cut(struct ta__sink *sink, uint64_t length);
TA_NODISCARD int ta__sink_write(struct ta__sink *sink, const void *data, size_t length);

/* A file under construction. Regular files are written under a temporary name in the same folder and renamed; anything
 * else (a device, a pipe) is written directly. */
struct ta__new_file {
    int descriptor;
    int direct; /* no temporary name */
    struct ta__identity identity;
    char path[4096];
    char temporary[4096];
};
/* All three: 0, or -1 with ta__error_set. */
TA_NODISCARD int ta__new_file_open(struct ta__new_file *file, const char *path);
/* Syncs, renames and syncs the folder; `keep_open` leaves the descriptor open for appending. */
TA_NODISCARD int ta__new_file_commit(struct ta__new_file *file, int keep_open);
void ta__new_file_abandon(struct ta__new_file *file);

/* Signals that a failing write would raise in this thread. */
struct ta__quiet {
    int usable, pending;
    uint64_t mask[16]; /* room for a sigset_t */
};
void ta__quiet_begin(struct ta__quiet *quiet);
void ta__quiet_end(struct ta__quiet *quiet);

#endif
