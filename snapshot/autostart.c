/* autostart.c: snapshots for programs that know nothing of us, as the options ask for them.
 *
 * Runs as a constructor of the library, after alloc has read the options and long before main; the snapshot at exit is
 * its destructor, which comes after the program's own. Does nothing when no output is asked for. */
#include "snapshot/triggers.h"

#include <pthread.h>
#include <unistd.h>

#include "alloc/alloc.h"
#include "base/error.h"
#include "base/message.h"
#include "tracealloc.h"

static int is_started;

static uint64_t current_bytes(void)
{
    size_t current;
    ta_get_traced_memory(&current, NULL);
    return current;
}

__attribute__((constructor)) static void start_triggers(void)
{
    ta__process_ready();
    const struct ta__options *given = &ta__options;
    if (given->output[0] == '\0')
        return;
    struct ta__trigger_options options = {
        .path = given->is_series ? NULL : given->output,
        .series = given->is_series ? given->output : NULL,
        .at_exit = !given->no_exit_snapshot,
        .signal_number = given->signal_number,
        .interval_ns = given->interval_ns,
        .at_peak = given->at_peak,
        .peak_percent = (unsigned)given->peak_percent,
        .at_limit = given->at_limit,
        .forked = given->process != 0 && given->process != getpid(),
        .no_children = given->no_follow,
        .opener = ta__environment("TRACEALLOC_OPENER"),
        .loud = given->is_loud,
        .current_bytes = given->at_peak ? current_bytes : NULL,
    };
    if (ta__triggers_start(&options) != 0)
        ta__message_line("no snapshots: ", ta__error_text(), NULL);
    else
        is_started = 1;
    if (is_started && given->at_limit)
        ta__domain_on_limit = ta__triggers_note_limit;
    if (is_started && given->watches_ends && !given->no_exit_snapshot)
        ta__watch_ends();
    /* A child takes its own snapshots: it needs a helper of its own, unless it wants only the one at exit. */
    if (is_started && (given->interval_ns != 0 || given->at_peak || given->signal_number != 0 || given->at_limit))
        pthread_atfork(NULL, NULL, ta__triggers_poke);
}

__attribute__((destructor)) static void stop_triggers(void)
{
    if (is_started)
        ta__triggers_exit();
}
