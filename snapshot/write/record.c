/* record.c: series: entries appended to one file, which may be read while it grows, and which stays within a size when it
 * has one. Public face: tracealloc/snapshot.h.
 *
 * Runs in the traced process, in any thread: no malloc, no stdio, no lock that an allocation could need. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h> /* rename */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/memory.h"
#include "snapshot/write/file_request.h"
#include "snapshot/write/take.h"
#include "snapshot/write/thinning.h"
#include "snapshot/write/write.h"

struct ta_record {
    pthread_mutex_t lock; /* guards the writer; held while an entry is written */
    struct ta__writer writer;
    pid_t owner;
    unsigned flags;
    int is_hasty;
    uint64_t limit;     /* bytes of the file; 0 = none */
    uint64_t thinned;   /* its length when it was last made shorter */
    uint64_t forgotten; /* bytes that went then, in all */
    int cannot_thin;    /* errno of the last try; 0 = it can */
    char path[4096];
};

struct ta_record *ta_record_open(const char *path, unsigned flags)
{
    return ta__record_open_sparing(path, flags, &(struct ta__sparing){0});
}

struct ta_record *ta__record_open_sparing(const char *path, unsigned flags, const struct ta__sparing *sparing)
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
    if (ta__open_new_file(&file, path, sparing) != 0) {
        ta__memory_unmap(record, sizeof *record);
        ta__count_failure();
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
        ta__count_failure();
        return NULL;
    }
    pthread_mutex_init(&record->lock, NULL);
    record->owner = ta__snapshot_process();
    record->flags = flags;
    record->is_hasty = sparing->is_hasty;
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
        again = open(record->path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
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
    if (record != NULL && record->owner == ta__snapshot_process())
        return 1;
    errno = EINVAL;
    ta__error_set("cannot append: the recording belongs to another process", NULL);
    return 0;
}

/* ---- a file that stays within a size ---- */

static uint64_t limit_of(const struct ta_record *record)
{
    uint64_t least = ta__writer_least_limit(&record->writer);
    uint64_t limit = ta__load_relaxed(&record->limit);
    return limit > least ? limit : least;
}

/* A new file beside the present one, whose name it will take. By the one that started the process where this one may not. */
static int begin_thinning(const struct ta_record *record, struct ta__new_file *file, int *is_foreign)
{
    char path[4096];
    struct stat status;
    if (ta__record_name(record, path, sizeof path) != 0 || fstat(record->writer.chunks.sink.descriptor, &status) != 0)
        return -1;
    if (status.st_nlink == 0)
        return errno = ENOENT, -1;
    *is_foreign = 0;
    if (ta__new_file_open(file, path) == 0)
        return file->direct ? (close(file->descriptor), errno = EINVAL, -1) : 0;
    int error = errno;
    file->descriptor = ta__opener_open(file->temporary, TA__OPEN_INSTEAD);
    if (file->descriptor < 0)
        return errno = error, -1;
    file->identity = ta__identity_of(file->descriptor);
    *is_foreign = 1;
    return 0;
}

static int end_thinning(struct ta__new_file *file, int is_foreign, struct ta__identity former)
{
    return is_foreign ? ta__opener_replace(file, former) : ta__new_file_replace(file, former);
}

static int thin(struct ta_record *record, uint64_t budget)
{
    struct ta__new_file file;
    struct ta__sink sink;
    struct ta__thinned thinned;
    int is_foreign, former = record->writer.chunks.sink.descriptor;
    if (begin_thinning(record, &file, &is_foreign) != 0)
        return -1;
    file.is_hasty = record->is_hasty;
    ta__sink_descriptor(&sink, file.descriptor);
    if (ta__thinned_copy(&thinned, &record->writer, &sink, budget) != 0) {
        int error = errno;
        ta__new_file_abandon(&file);
        return errno = error, -1;
    }
    if (end_thinning(&file, is_foreign, record->writer.chunks.sink.identity) != 0) {
        int error = errno;
        ta__thinned_drop(&thinned);
        if (is_foreign)
            close(file.descriptor);
        return errno = error, -1;
    }
    ta__thinned_adopt(&thinned, &record->writer);
    close(former);
    return 0;
}

/* A try that failed is not repeated at once: a copy costs as much as what it copies. */
static void thin_when_long(struct ta_record *record)
{
    uint64_t limit = limit_of(record), length = record->writer.chunks.sink.written;
    uint64_t budget = ta__writer_thins_to(&record->writer, limit);
    int saved_errno = errno;
    if (budget == 0 || length < record->thinned + limit / 16)
        return;
    record->cannot_thin = thin(record, budget) == 0 ? 0 : errno;
    record->thinned = record->writer.chunks.sink.written;
    record->forgotten += length - record->thinned;
    errno = saved_errno;
}

void ta_record_set_limit(struct ta_record *record, uint64_t bytes)
{
    ta__store_relaxed(&record->limit, bytes);
}

int ta__record_obstacle(const struct ta_record *record)
{
    return record->cannot_thin;
}

uint64_t ta__record_written(const struct ta_record *record)
{
    return record == NULL ? 0 : record->writer.chunks.sink.written + record->forgotten;
}

int ta_record_append(struct ta_record *record, const char *reason)
{
    if (!usable_here(record))
        return ta__count_failure();
    pthread_mutex_lock(&record->lock);
    int result = descriptor_ready(record);
    if (result == 0 && ta__load_relaxed(&record->limit) != 0) {
        ta__writer_set_mark(&record->writer, reason != NULL && strncmp(reason, TA__MARK, sizeof TA__MARK - 1) == 0);
        ta__writer_divide(&record->writer, limit_of(record));
    }
    if (result == 0)
        result = ta__append_entry(&record->writer, reason == NULL ? "call" : reason);
    if (result != 0 && record->writer.chunks.sink.is_torn && descriptor_ready(record) == 0) /* closed meanwhile */
        result = ta__append_entry(&record->writer, reason == NULL ? "call" : reason);
    if (result == 0 && (record->flags & TA_RECORD_SYNC) != 0 && fdatasync(record->writer.chunks.sink.descriptor) != 0) {
        int number = errno;
        ta__error_set("cannot sync ", record->path, NULL);
        result = ta__error_add_errno(number);
    }
    if (result == 0 && ta__load_relaxed(&record->limit) != 0)
        thin_when_long(record);
    pthread_mutex_unlock(&record->lock);
    return result == 0 ? 0 : ta__count_failure();
}

int ta__record_end(struct ta_record *record)
{
    if (record == NULL)
        return 0;
    if (!usable_here(record))
        return ta__count_failure();
    int result = descriptor_ready(record);
    if (result == 0) {
        result = ta__writer_seal(&record->writer);
        if (ta__is_identical(record->writer.chunks.sink.descriptor, record->writer.chunks.sink.identity)) {
            if (!record->is_hasty)
                fsync(record->writer.chunks.sink.descriptor);
            close(record->writer.chunks.sink.descriptor);
        }
    }
    return result == 0 ? 0 : ta__count_failure();
}

int ta_record_close(struct ta_record *record)
{
    int result = ta__record_end(record);
    if (record == NULL || !usable_here(record))
        return result;
    ta__writer_close(&record->writer);
    pthread_mutex_destroy(&record->lock);
    ta__memory_unmap(record, sizeof *record);
    return result;
}

int ta__record_name(const struct ta_record *record, char *path, size_t room)
{
    return ta__descriptor_name(record->writer.chunks.sink.descriptor, path, room);
}

uint64_t ta__record_length(const struct ta_record *record)
{
    return record == NULL ? 0 : record->writer.chunks.sink.written;
}

void ta__record_recover(struct ta_record *record)
{
    ta__taking_recover();
    if (record == NULL)
        return;
    pthread_mutex_init(&record->lock, NULL);
    ta__writer_take_back(&record->writer);
}

void ta__record_forget(struct ta_record *record)
{
    if (record == NULL)
        return;
    if (ta__is_identical(record->writer.chunks.sink.descriptor, record->writer.chunks.sink.identity))
        close(record->writer.chunks.sink.descriptor);
    /* The tables may have been in use by a thread that does not exist here: they stay mapped. */
}
