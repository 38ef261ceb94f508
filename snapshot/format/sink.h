/* sink.h: where the bytes of a recording go: memory, a descriptor, or a file that appears only when it is whole.
 *
 * Writing never kills the host: SIGXFSZ and SIGPIPE raised by our own writes are taken back. After a failure the sink
 * stays failed, keeps the errno, and refuses what comes later.
 *
 * Nothing here waits without end: what is no regular file is opened without blocking and given a second to take more.
 * Files are for their owner alone (0600), and nobody else's link, pipe or device is written through.
 *
 * Programs that become daemons close every descriptor and then open their own under the same numbers, at any moment: a
 * descriptor is looked at before each write, cut and close, and what is not our file is left alone (EBADF). */
#ifndef TA_SNAPSHOT_FORMAT_SINK_H
#define TA_SNAPSHOT_FORMAT_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "snapshot/format/buffer.h"

/* Which file a descriptor meant when it was opened. */
struct ta__identity {
    uint64_t device, inode;
};
struct ta__identity ta__identity_of(int descriptor);
int ta__is_identical(int descriptor, struct ta__identity identity);
/* What the file is called now. 0 or -1. */
int ta__descriptor_name(int descriptor, char *path, size_t room);

struct ta__sink {
    struct ta__buffer memory; /* everything when descriptor < 0, else what the file has not yet */
    int descriptor;
    int error;        /* errno of the first failure */
    int is_torn;      /* the file is longer than `written`: it was not ours to cut */
    uint64_t written; /* bytes so far, with those in memory: the offset of what comes next */
    struct ta__identity identity;
};

void ta__sink_memory(struct ta__sink *sink);
void ta__sink_descriptor(struct ta__sink *sink, int descriptor);
/* What is in memory goes to the file, in one piece. Without a descriptor nothing happens. */
TA_NODISCARD int ta__sink_flush(struct ta__sink *sink);
/* Cuts what is behind `length`, also after a failure. -1: that is not possible, now or ever. */
TA_NODISCARD int ta__sink_cut(struct ta__sink *sink, uint64_t length);
TA_NODISCARD int ta__sink_write(struct ta__sink *sink, const void *data, size_t length);

/* A file under construction. Regular files are written under a temporary name in the same folder and renamed; a
 * pipe or a character device is written directly, anything else refused. */
struct ta__new_file {
    int descriptor;
    int direct; /* no temporary name */
    struct ta__identity identity;
    uint64_t spared_ns;  /* a file of that name that was changed later, since 1970, is not replaced; 0 = any is */
    int keeps_older;     /* then: nor is one that was changed before; the new file becomes PATH.1 … */
    int is_hasty;        /* nobody waits for the disk: what the machine's end leaves of it does not matter */
    int (*yields)(void); /* then: 1 = the new file becomes PATH.1 …, 0 = the other one does */
    char path[4096];
    char temporary[4096];
};
/* All three: 0, or -1 with ta__error_set. */
TA_NODISCARD int ta__new_file_open(struct ta__new_file *file, const char *path);
/* Syncs (unless hasty), renames and syncs the folder; `keep_open` leaves the descriptor open for appending. */
TA_NODISCARD int ta__new_file_commit(struct ta__new_file *file, int keep_open);
/* The same in the place of a file of ours, and of no other that has its name meanwhile: EBUSY then. The new one stays open. */
TA_NODISCARD int ta__new_file_replace(struct ta__new_file *file, struct ta__identity former);
void ta__new_file_abandon(struct ta__new_file *file);

int ta__appeared_since(const char *path, uint64_t time_ns);
/* Renames `from` to the first of PATH.1, PATH.2 … that is free, which `path` then is. 0, or -1 with errno. */
int ta__give_number(const char *from, char *path, size_t room);

/* Signals that a failing write would raise in this thread. */
struct ta__quiet {
    int usable, pending;
    uint64_t mask[16]; /* room for a sigset_t */
};
void ta__quiet_begin(struct ta__quiet *quiet);
void ta__quiet_end(struct ta__quiet *quiet);

#endif
