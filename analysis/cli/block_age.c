/* block_age.c: see block_age.h. No block has the time in its header, but each entry of a recording has, for the block's stack,
 * how many blocks live and how many were ever asked for:
 *
 *     no block lives              the block was asked for later
 *     as many asked for as now    it was asked for earlier */
#include "analysis/cli/block_age.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/cli/cli.h"

/* The stack that is looked for. */
struct wanted {
    struct ta_trace trace;
    struct ta_raw_frame *frames;
    size_t depth;
};

static struct ta_raw_frame *frames_of(const struct ta_snapshot *snapshot, size_t trace, size_t depth)
{
    struct ta_raw_frame *frames = calloc(depth + 1, sizeof *frames);
    if (frames != NULL)
        ta_snapshot_trace_frames(snapshot, trace, frames, depth);
    return frames;
}

static int is_wanted(const struct wanted *wanted, const struct ta_snapshot *snapshot, size_t index,
                     struct ta_trace *trace)
{
    struct ta_raw_frame first;
    if (ta_snapshot_trace(snapshot, index, trace) != 0 || trace->domain != wanted->trace.domain ||
        trace->nframe != wanted->depth || trace->thread != wanted->trace.thread ||
        ta_snapshot_trace_frames(snapshot, index, &first, 1) != wanted->depth ||
        (wanted->depth > 0 && first.address != wanted->frames[0].address))
        return 0;
    struct ta_raw_frame *frames = frames_of(snapshot, index, wanted->depth);
    size_t same = 0;
    while (frames != NULL && same < wanted->depth && frames[same].address == wanted->frames[same].address)
        same++;
    int is_same = frames != NULL && same == wanted->depth;
    free(frames);
    return is_same;
}

/* How many blocks of the stack live in an entry, and how many were asked for. */
static void count(const struct wanted *wanted, const struct ta_snapshot *snapshot, uint64_t *live, uint64_t *asked)
{
    long traces = ta_snapshot_trace_count(snapshot), gone = ta_snapshot_gone_trace_count(snapshot);
    struct ta_trace trace;
    *live = *asked = 0;
    for (long i = 0; i < traces + (gone > 0 ? gone : 0); i++)
        if (is_wanted(wanted, snapshot, (size_t)i, &trace)) {
            *live += trace.count;
            *asked += trace.allocated_blocks;
        }
}

static struct ta_snapshot *load_entry(const char *path, size_t entry)
{
    char *name = cli_text("%s@%zu", path, entry);
    struct ta_snapshot *snapshot = name != NULL ? ta_snapshot_load(name) : NULL;
    if (snapshot == NULL)
        cli_error("%s: entry %zu: %s", path, entry, ta_error_text());
    free(name);
    return snapshot;
}

/* The recording is of this process, and can tell. */
static int check(const char *path, const struct ta_snapshot *entry, uint32_t pid)
{
    struct ta_snapshot_info info;
    ta_snapshot_info(entry, &info, sizeof info);
    if (info.pid != pid)
        return cli_error("%s: is of process %u, not of %u", path, info.pid, pid), -1;
    if (info.sample_bytes != 0)
        return cli_error("%s: only samples of the blocks were recorded: it does not say when one was asked for", path),
               -1;
    return 0;
}

/* From the last entry to the first, for as long as one of them may say more. */
static int ask_entries(struct cli_block_age *age, const char *path, size_t entries, uint32_t pid,
                       const struct wanted *wanted)
{
    uint64_t began_ns = 0;
    int has_latest = wanted->trace.allocated_blocks > 0;
    for (size_t i = entries; i-- > 0 && age->earliest_ns == 0;) {
        struct ta_snapshot *entry = load_entry(path, i);
        struct ta_snapshot_info info;
        uint64_t live, asked;
        if (entry == NULL || check(path, entry, pid) != 0) {
            ta_snapshot_free(entry);
            return -1;
        }
        ta_snapshot_info(entry, &info, sizeof info);
        count(wanted, entry, &live, &asked);
        ta_snapshot_free(entry);
        if (info.time_ns > age->now_ns)
            continue; /* taken after the core, or the look */
        began_ns = began_ns == 0 ? info.start_time_ns : began_ns;
        has_latest &= asked == wanted->trace.allocated_blocks && live > 0 && info.start_time_ns == began_ns;
        age->latest_ns = has_latest ? info.time_ns : age->latest_ns;
        age->earliest_ns = live == 0 ? info.time_ns : 0;
    }
    return 0;
}

int cli_block_age(struct cli_block_age *age, const char *path, const struct ta_snapshot *snapshot, size_t trace)
{
    struct ta_snapshot_info info;
    struct wanted wanted = {.frames = NULL};
    struct ta_recording *recording = ta_recording_open(path);
    if (recording == NULL)
        return cli_library_error(path), -1;
    size_t entries = ta_recording_entry_count(recording);
    ta_recording_close(recording);
    if (ta_snapshot_trace(snapshot, trace, &wanted.trace) != 0)
        return cli_library_error("why"), -1;
    ta_snapshot_info(snapshot, &info, sizeof info);
    *age = (struct cli_block_age){.now_ns = info.time_ns, .latest_ns = info.time_ns, .live = wanted.trace.count};
    wanted.depth = wanted.trace.nframe;
    wanted.frames = frames_of(snapshot, trace, wanted.depth);
    int result = wanted.frames != NULL ? ask_entries(age, path, entries, info.pid, &wanted) : -1;
    free(wanted.frames);
    return result;
}
