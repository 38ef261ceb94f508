/* autostart.c: snapshots for programs that know nothing of us, as the options ask for them.
 *
 * Runs as a constructor of the library, after alloc has read the options and long before main; the snapshot at exit is
 * its destructor, which comes after the program's own. Does nothing when neither output nor a channel is asked for. */
#include "snapshot/triggers/triggers.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "alloc/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/message.h"
#include "snapshot/format/codec.h"
#include "snapshot/triggers/channel.h"
#include "snapshot/triggers/crash.h"
#include "snapshot/triggers/end_text.h"
#include "snapshot/triggers/keeper.h"
#include "snapshot/triggers/memory_kinds.h"
#include "snapshot/triggers/stack_step.h"
#include "snapshot/write/file_request.h"
#include "snapshot/write/take.h"
#include "trace/unwind/debug_section.h"
#include "tracealloc.h"

static int is_started;

static uint64_t current_bytes(void)
{
    size_t current;
    ta_get_traced_memory(&current, NULL);
    return current;
}

/* Entries that come by themselves, and often. */
static int is_one_of_many(const char *reason)
{
    static const char *const reasons[] = {"pace", "interval", "peak", "limit", "rights"};
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (strcmp(reason, reasons[i]) == 0)
            return 1;
    return 0;
}

/* Where the first pointer was freed that is none of ours; how many there were, each entry has anyway. */
static void describe_foreign(struct ta__pairs *pairs)
{
    struct ta__foreign_free first;
    struct ta__message message;
    if (!ta__foreign_first(&first))
        return;
    ta__message_begin_plain(&message);
    ta__message_hex(&message, first.user);
    message.text[message.length] = '\0';
    ta__pairs_add(pairs, "foreign.address", message.text);
    for (size_t i = 0; i < sizeof first.frames / sizeof *first.frames && first.frames[i] != 0; i++) {
        ta__place_text(&message, first.frames[i] - 1);
        ta__pairs_add_row(pairs, "foreign.frame.", i, message.text);
    }
}

/* What Python's own malloc was asked to be: it decides what of Python's objects is seen. */
static char python_malloc[32];

static void note_python_malloc(void)
{
    const char *value = ta__environment("PYTHONMALLOC");
    if (value != NULL && strlen(value) < sizeof python_malloc)
        strcpy(python_malloc, value);
}

/* What is expensive to find out is said in the last entry alone, and in those that the user asked for. */
static void describe(struct ta__pairs *pairs, const char *reason)
{
    if (*ta__opener_run() != '\0')
        ta__pairs_add(pairs, "run", ta__opener_run());
    ta__pairs_add_process(pairs, ta__snapshot_process());
    if (*python_malloc != '\0')
        ta__pairs_add(pairs, "process.PYTHONMALLOC", python_malloc);
    int is_small = is_one_of_many(reason);
    if (!is_small)
        ta__pairs_add_number(pairs, "memory.tracer", ta_get_tracer_memory());
    ta__memory_kinds_describe(pairs, !is_small);
    if (ta__triggers_lack() != NULL)
        ta__pairs_add(pairs, "missing", ta__triggers_lack());
    if (!is_small)
        describe_foreign(pairs);
    if (ta__crash_is_noted())
        ta__crash_describe(pairs);
}

/* "3", "SIGSEGV"; "" when that is not known in the process: it was killed, or ended by a system call. */
static void end_of(char *text, uint64_t room)
{
    char name[16] = "";
    if (*ta__crash_name() == '\0' && ta__ending_signal() != 0)
        ta__signal_text(name, ta__ending_signal());
    const char *known = *name != '\0' ? name : ta__crash_name();
    if (*known != '\0' && strlen(known) < room)
        strcpy(text, known);
    else if (ta__exit_status() >= 0)
        ta__put_decimal(text, (uint64_t)ta__exit_status());
}

/* Where a process that shares nothing but the memory finds the file. */
static int is_file(const char *output)
{
    return strncmp(output, "/dev/", 5) != 0 && strncmp(output, "/proc/", 6) != 0;
}

/* Valgrind gives up on a process that shares its parent's memory. */
static int is_emulated(void)
{
    const char *preloaded = ta__environment("LD_PRELOAD");
    return preloaded != NULL && strstr(preloaded, "vgpreload") != NULL;
}

static void after_fork_in_child(void)
{
    ta__memory_kinds_forget();
    ta__triggers_poke();
}

/* Nothing is written: there is a helper for the channel alone. */
static struct ta__trigger_options without_output(const struct ta__options *given)
{
    return (struct ta__trigger_options){
        .no_children = given->no_follow,
        .may_rest = 1,
        .has_keeper = !is_emulated(),
        .in_keeper = ta__thread_stays_outside,
    };
}

static struct ta__trigger_options with_output(const struct ta__options *given)
{
    struct ta__trigger_options options = {
        .path = given->is_series ? NULL : given->output,
        .series = given->is_series ? given->output : NULL,
        .at_exit = !given->no_exit_snapshot,
        .may_rest = given->has_channel,
        .signal_number = given->signal_number,
        .interval_ns = given->interval_ns,
        .at_peak = given->at_peak,
        .peak_percent = (unsigned)given->peak_percent,
        .at_limit = given->at_limit,
        .forked = given->process != 0 && given->process != getpid(),
        .family = given->family[0] != '\0' ? given->family : NULL,
        .no_children = given->no_follow,
        .opener = ta__environment("TRACEALLOC_OPENER"),
        .loud = given->is_loud,
        .is_paced = given->is_paced,
        .file_limit = given->file_limit,
        .dies_with_us = !ta__namespace_is_ours(given->process_namespace),
        .in_keeper = ta__thread_stays_outside,
        .end_of = end_of,
        .watch = ta__memory_kinds_watch,
        .current_bytes = given->at_peak || given->is_paced ? current_bytes : NULL,
    };
    int needs_helper = given->interval_ns != 0 || given->at_peak || given->is_paced || given->signal_number != 0 ||
                       given->at_limit || given->has_channel || given->watches_ends;
    options.has_keeper = needs_helper && is_file(given->output) && !is_emulated();
    return options;
}

__attribute__((constructor)) static void start_triggers(void)
{
    ta__process_ready();
    ta__unpack_zstd = ta__unpack_frames;
    const struct ta__options *given = &ta__options;
    int has_output = given->output[0] != '\0';
    if (!has_output && !given->has_channel)
        return;
    if (given->has_channel)
        ta__channel_prepare();
    struct ta__trigger_options options = has_output ? with_output(given) : without_output(given);
    note_python_malloc();
    ta__snapshot_set_describer(describe);
    if (ta__triggers_start(&options) != 0)
        ta__message_line("no snapshots: ", ta__error_text(), NULL);
    else
        is_started = 1;
    if (is_started && options.at_limit)
        ta__domain_on_limit = ta__triggers_note_limit;
    if (is_started && given->watches_ends && options.at_exit)
        ta__watch_ends(ta__triggers_outlive());
    /* A child takes its own snapshots: it needs a helper of its own where we have one. */
    if (is_started)
        pthread_atfork(NULL, NULL, after_fork_in_child);
}

__attribute__((destructor)) static void stop_triggers(void)
{
    if (is_started)
        ta__triggers_exit();
}
