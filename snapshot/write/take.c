/* take.c: snapshots of this process: into memory, into a file, as the next entry of a series (record.c). Public face:
 * tracealloc/snapshot.h.
 *
 * Runs in the traced process, in any thread: no malloc, no stdio, no lock that an allocation could need. */
#include "snapshot/write/take.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "snapshot/write/live.h"
#include "snapshot/write/file_request.h"
#include "snapshot/write/process_facts.h"
#include "snapshot/write/write.h"

int ta__count_failure(void)
{
    ta__source_note_failure();
    return -1;
}

/* ---- who and when ---------------------------------------------------------------------------------------------- */

static pid_t keeper_process, kept_process; /* written before the former looks, and in a child after fork */

void ta__snapshot_set_keeper(pid_t keeper, pid_t owner)
{
    keeper_process = keeper;
    kept_process = owner;
}

pid_t ta__snapshot_process(void)
{
    pid_t process = getpid();
    return process == keeper_process ? kept_process : process;
}

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

int ta__snapshot_is_possible(void)
{
    struct ta__source source;
    if (ta__source_open(&source) != 0)
        return -1;
    ta__source_close(&source);
    return 0;
}

uint64_t ta__snapshot_rows(void)
{
    return ta__source_rows();
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
        .pid = (uint32_t)ta__snapshot_process(),
        .program = memory->program,
        .host = memory->system.nodename,
        .reason = reason,
    };
    errno = saved_errno;
}

static void (*describer)(struct ta__pairs *pairs, const char *reason);

void ta__snapshot_set_describer(void (*describe)(struct ta__pairs *pairs, const char *reason))
{
    describer = describe;
}

/* What is open: the keeper may be made to give up. */
static struct ta__source taken;
static int is_taking;

int ta__append_entry(struct ta__writer *writer, const char *reason)
{
    struct ta__source source;
    struct ta__facts facts;
    struct facts_memory memory;
    struct ta__pairs pairs;
    if (ta__source_open_whole(&source) != 0)
        return -1;
    gather_facts(&facts, &memory, reason);
    pairs.count = pairs.used = 0;
    if (keeper_process != 0) {
        taken = source;
        is_taking = 1;
    }
    if (describer != NULL)
        describer(&pairs, reason);
    facts.pairs = pairs.rows;
    facts.pair_count = pairs.count;
    int result = ta__writer_entry(writer, &source, &facts);
    is_taking = 0;
    ta__source_close(&source);
    return result;
}

void ta__taking_recover(void)
{
    if (is_taking)
        ta__source_close(&taken);
    is_taking = 0;
    ta__count_failure();
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
    if (ta__source_open_whole(&source) != 0)
        return NULL;
    gather_facts(&facts, &memory, "call");
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
    ta__count_failure();
    return NULL;
}

static enum ta__opener_way way_of(const char *path, const struct ta__sparing *sparing)
{
    if (sparing->since_ns == 0)
        return TA__OPEN_INSTEAD;
    int is_older = sparing->keeps_older && access(path, F_OK) == 0 && !ta__appeared_since(path, sparing->since_ns);
    return is_older || sparing->yields() ? TA__OPEN_NUMBERED : TA__OPEN_SPARING;
}

/* Where this process may not create a file, the one that started it may. */
int ta__open_new_file(struct ta__new_file *file, const char *path, const struct ta__sparing *sparing)
{
    int result = ta__new_file_open(file, path), error = errno;
    file->spared_ns = sparing->since_ns;
    file->yields = sparing->yields;
    file->is_hasty = sparing->is_hasty;
    file->keeps_older = sparing->keeps_older;
    if (result == 0)
        return 0;
    file->descriptor = ta__opener_open(path, way_of(path, sparing));
    if (file->descriptor < 0) {
        errno = error;
        return -1;
    }
    file->direct = 1;
    file->identity = ta__identity_of(file->descriptor);
    if (ta__descriptor_name(file->descriptor, file->path, sizeof file->path) != 0)
        memcpy(file->path, path, strlen(path) + 1); /* not longer than what was tried before */
    return 0;
}

/* ---- into a file ---------------------------------------------------------------------------------------------------
 */

int ta__snapshot_to_file(const char *path, const char *reason)
{
    return ta__snapshot_to_file_sparing(path, reason, &(struct ta__sparing){0}, NULL);
}

/* A whole recording of one entry. */
static int write_snapshot(int descriptor, const char *reason, int is_last)
{
    struct ta__writer writer;
    struct ta__sink sink;
    ta__sink_descriptor(&sink, descriptor);
    if (ta__writer_open(&writer, &sink) != 0)
        return -1;
    int result = ta__append_entry(&writer, reason);
    if (result == 0)
        result = ta__writer_seal(&writer);
    if (!is_last)
        ta__writer_close(&writer);
    return result;
}

int ta__snapshot_to_descriptor(int descriptor, const char *reason)
{
    return write_snapshot(descriptor, reason, 0) == 0 ? 0 : ta__count_failure();
}

int ta__snapshot_to_file_sparing(const char *path, const char *reason, const struct ta__sparing *sparing, char *name)
{
    struct ta__new_file file;
    if (ta__open_new_file(&file, path, sparing) != 0)
        return ta__count_failure();
    int result = write_snapshot(file.descriptor, reason, sparing->is_last);
    if (result == 0)
        result = ta__new_file_commit(&file, 0);
    else
        ta__new_file_abandon(&file);
    if (result == 0 && name != NULL)
        memcpy(name, file.path, strlen(file.path) + 1);
    return result == 0 ? 0 : ta__count_failure();
}
