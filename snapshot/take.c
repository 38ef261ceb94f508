/* take.c: snapshots of this process: into memory, into a file, into a series. Public face: tracealloc/snapshot.h.
 *
 * Runs in the traced process, in any thread: no malloc, no stdio, no lock that an allocation could need. */
#include "snapshot/take.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/error.h"
#include "base/memory.h"
#include "snapshot/live.h"
#include "snapshot/opener.h"
#include "snapshot/write.h"

static uint64_t failures; /* any thread, relaxed */

uint64_t ta__snapshot_error_count(void)
{
    return ta__load_relaxed(&failures);
}

static int count_failure(void)
{
    ta__add_relaxed(&failures, 1);
    ta__source_note_failure();
    return -1;
}

/* ---- who and when ---------------------------------------------------------------------------------------------- */

struct facts_memory {
    char program[4096];
    struct utsname system;
};

/* A program may change to a root without /proc. */
static char program_at_start[4096];

void ta__snapshot_remember_program(void)
{
    ssize_t length = readlink("/proc/self/exe", program_at_start, sizeof program_at_start - 1);
    program_at_start[length > 0 ? length : 0] = '\0';
}

static void gather_facts(struct ta__facts *facts, struct facts_memory *memory, const char *reason)
{
    int saved_errno = errno;
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_REALTIME, &now);
    ssize_t length = readlink("/proc/self/exe", memory->program, sizeof memory->program - 1);
    memory->program[length > 0 ? length : 0] = '\0';
    if (length <= 0)
        memcpy(memory->program, program_at_start, sizeof memory->program);
    if (uname(&memory->system) != 0)
        memory->system.nodename[0] = '\0';
    *facts = (struct ta__facts){
        .time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
        .pid = (uint32_t)getpid(),
        .program = memory->program,
        .host = memory->system.nodename,
        .reason = reason,
    };
    errno = saved_errno;
}

static int append_entry(struct ta__writer *writer, const char *reason)
{
    struct ta__source source;
    struct ta__facts facts;
    struct facts_memory memory;
    if (ta__source_open(&source) != 0)
        return -1;
    gather_facts(&facts, &memory, reason);
    source.snapshot_errors = ta__snapshot_error_count();
    int result = ta__writer_entry(writer, &source, &facts);
    ta__source_close(&source);
    return result;
}

/* ---- into memory ---------------------------------------------------------------------------------------------------
 */

struct ta_snapshot *ta_take_snapshot(void)
{
    struct ta__source source;
    struct ta__facts facts;
    struct facts_memory memory;
    struct ta__writer writer;
    struct ta__sink sink;
    if (ta__source_open(&source) != 0)
        return NULL;
    gather_facts(&facts, &memory, "call");
    source.snapshot_errors = ta__snapshot_error_count();
    struct ta_snapshot *snapshot = ta__object_create();
    ta__sink_memory(&sink);
    int failed = snapshot == NULL || ta__writer_open(&writer, &sink) != 0;
    if (!failed) {
        failed = ta__writer_image(&writer, &source, &facts, &snapshot->image) != 0;
        ta__buffer_free(&writer.chunks.sink.memory);
        ta__writer_close(&writer);
    }
    ta__source_close(&source);
    if (!failed)
        return snapshot;
    ta_snapshot_free(snapshot);
    count_failure();
    return NULL;
}

/* Where this process may not create a file, the one that started it may. */
static int open_new_file(struct ta__new_file *file, const char *path)
{
    if (ta__new_file_open(file, path) == 0)
        return 0;
    int error = errno;
    file->descriptor = ta__opener_open(path);
    if (file->descriptor < 0) {
        errno = error;
        return -1;
    }
    file->direct = 1;
    file->identity = ta__identity_of(file->descriptor);
    memcpy(file->path, path, strlen(path) + 1); /* not longer than what was tried before */
    return 0;
}

/* ---- into a file ---------------------------------------------------------------------------------------------------
 */

int ta__snapshot_to_file(const char *path, const char *reason)
{
    struct ta__new_file file;
    struct ta__writer writer;
    struct ta__sink sink;
    if (open_new_file(&file, path) != 0)
        return count_failure();
    ta__sink_descriptor(&sink, file.descriptor);
    int result = ta__writer_open(&writer, &sink);
    if (result == 0) {
        result = append_entry(&writer, reason);
        if (result == 0)
            result = ta__writer_seal(&writer);
        ta__writer_close(&writer);
    }
    if (result == 0)
        result = ta__new_file_commit(&file, 0);
    else
        ta__new_file_abandon(&file);
    return result == 0 ? 0 : count_failure();
}

/* ---- into a series
 * --------------------------------------------------------------------------------------------------- */

struct ta_record {
    pthread_mutex_t lock; /* guards the writer; held while an entry is written */
    struct ta__writer writer;
    pid_t owner;
    unsigned flags;
    char path[4096];
};

struct ta_record *ta_record_open(const char *path, unsigned flags)
{
    struct ta__new_file file;
    struct ta__sink sink;
    if ((flags & ~(unsigned)TA_RECORD_SYNC) != 0) {
        errno = EINVAL;
        ta__error_set("cannot begin a recording: unknown flags", NULL);
        return NULL;
    }
    struct ta_record *record = ta__memory_map(sizeof *record);
    if (record == NULL) {
        errno = ENOMEM;
        ta__error_set("no memory for a recording", NULL);
        return NULL;
    }
    if (open_new_file(&file, path) != 0) {
        ta__memory_unmap(record, sizeof *record);
        count_failure();
        return NULL;
    }
    ta__sink_descriptor(&sink, file.descriptor);
    int failed = ta__writer_open(&record->writer, &sink) != 0;
    if (failed)
        ta__new_file_abandon(&file);
    else
        failed = ta__new_file_commit(&file, 1) != 0;
    if (failed) {
        ta__writer_close(&record->writer);
        ta__memory_unmap(record, sizeof *record);
        count_failure();
        return NULL;
    }
    pthread_mutex_init(&record->lock, NULL);
    record->owner = getpid();
    record->flags = flags;
    memcpy(record->path, file.path, sizeof record->path);
    return record;
}

/* Programs that become daemons close every descriptor, and then open their own under the same numbers: never write into
 * those. The file is found again by its name. */
static int descriptor_ready(struct ta_record *record)
{
    struct ta__sink *sink = &record->writer.chunks.sink;
    int again = sink->descriptor;
    if (!ta__is_identical(again, sink->identity)) {
        again = open(record->path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (!ta__is_identical(again, sink->identity)) {
            if (again >= 0)
                close(again);
            errno = EBADF;
            return ta__error_set("cannot append to ", record->path, ": the program closed it and the file is gone",
                                 NULL);
        }
        sink->descriptor = again;
        sink->is_torn = 1; /* and its offset is 0 */
    }
    if (!sink->is_torn || sink->error != 0 || ta__sink_cut(sink, sink->written) == 0)
        return 0;
    int number = errno;
    ta__error_set("cannot append to ", record->path, NULL);
    return ta__error_add_errno(number);
}

static int usable_here(const struct ta_record *record)
{
    if (record != NULL && record->owner == getpid())
        return 1;
    errno = EINVAL;
    ta__error_set("cannot append: the recording belongs to another process", NULL);
    return 0;
}

int ta_record_append(struct ta_record *record, const char *reason)
{
    if (!usable_here(record))
        return count_failure();
    pthread_mutex_lock(&record->lock);
    int result = descriptor_ready(record);
    if (result == 0)
        result = append_entry(&record->writer, reason == NULL ? "call" : reason);
    if (result != 0 && record->writer.chunks.sink.is_torn && descriptor_ready(record) == 0) /* closed meanwhile */
        result = append_entry(&record->writer, reason == NULL ? "call" : reason);
    if (result == 0 && (record->flags & TA_RECORD_SYNC) != 0 && fdatasync(record->writer.chunks.sink.descriptor) != 0) {
        int number = errno;
        ta__error_set("cannot sync ", record->path, NULL);
        result = ta__error_add_errno(number);
    }
    pthread_mutex_unlock(&record->lock);
    return result == 0 ? 0 : count_failure();
}

int ta_record_close(struct ta_record *record)
{
    if (record == NULL)
        return 0;
    if (!usable_here(record))
        return count_failure();
    int result = descriptor_ready(record);
    if (result == 0) {
        result = ta__writer_seal(&record->writer);
        if (ta__is_identical(record->writer.chunks.sink.descriptor, record->writer.chunks.sink.identity)) {
            fsync(record->writer.chunks.sink.descriptor);
            close(record->writer.chunks.sink.descriptor);
        }
    }
    ta__writer_close(&record->writer);
    pthread_mutex_destroy(&record->lock);
    ta__memory_unmap(record, sizeof *record);
    return result == 0 ? 0 : count_failure();
}

void ta__record_forget(struct ta_record *record)
{
    if (record == NULL)
        return;
    if (ta__is_identical(record->writer.chunks.sink.descriptor, record->writer.chunks.sink.identity))
        close(record->writer.chunks.sink.descriptor);
    /* The tables may have been in use by a thread that does not exist here: they stay mapped. */
}
