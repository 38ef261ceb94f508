/* channel_requests.c: what can be asked through the channel. See channel.h; docs/ctl.md tells users.
 *
 *     status                    what is known of the process and its tracing
 *     start [FRAMES]            trace from now on; nothing changes where it is traced already
 *     stop [force]              a last entry, then trace no more; force: also where it cannot be written
 *     clear                     forget all traces and go on
 *     snapshot [TEXT]           an entry of the recording; into the descriptor that came along, where one did
 *     mark TEXT                 an entry of the recording that says so
 *     interval MILLISECONDS     entries every so often; 0 = as before
 *     limit DOMAIN BYTES [HARD] an entry when the domain (number or name) crosses BYTES, no memory beyond HARD
 *
 * The helper that answers may be a process that shares the memory: ta__thread_may_stop. */
#include "snapshot/triggers/channel.h"

#include <string.h>

#include "alloc/alloc.h"
#include "alloc/domains/domains.h"
#include "base/error.h"
#include "base/small_file.h"
#include "snapshot/format/format.h"
#include "snapshot/triggers/keeper.h"
#include "snapshot/triggers/triggers.h"
#include "snapshot/write/take.h"
#include "trace/trace.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

enum { MARK_MOST = 200 };

/* ---- answers ---- */

static void refuse(struct ta__channel_answer *answer, const char *why)
{
    answer->is_refused = 1;
    ta__message_begin_plain(&answer->text);
    ta__message_text(&answer->text, why);
}

static void tell(struct ta__channel_answer *answer, const char *key, uint64_t number)
{
    ta__message_text(&answer->text, key);
    ta__message_text(&answer->text, "=");
    ta__message_number(&answer->text, number);
    ta__message_text(&answer->text, "\n");
}

static void tell_path(struct ta__channel_answer *answer)
{
    ta__message_text(&answer->text, "recording=");
    answer->path = ta__triggers_last_name();
}

static int has_recording(void)
{
    return ta__options.output[0] != '\0';
}

static void tell_state(struct ta__channel_answer *answer)
{
    size_t live, peak;
    ta_get_traced_memory(&live, &peak);
    tell(answer, "process", (uint64_t)ta__snapshot_process());
    tell(answer, "tracing", (uint64_t)ta_is_tracing());
    tell(answer, "frames", (uint64_t)ta_get_traceback_limit());
    tell(answer, "sample", ta__options.sample_bytes);
    tell(answer, "live", live);
    tell(answer, "peak", peak);
    tell(answer, "interval", ta__triggers_interval() / 1000000);
    tell(answer, "records", (uint64_t)has_recording());
    tell_path(answer);
}

/* ---- words ---- */

/* Cuts the first word off: NULL when there is none. */
static char *next_word(char **text)
{
    char *word = *text + strspn(*text, " ");
    size_t length = strcspn(word, " ");
    if (length == 0)
        return NULL;
    *text = word + length;
    if (**text != '\0')
        *(*text)++ = '\0';
    return word;
}

static int is_number(const char *word, uint64_t most, uint64_t *number)
{
    if (word == NULL || *word == '\0' || strlen(word) > 18 || word[strspn(word, "0123456789")] != '\0')
        return 0;
    *number = ta__decimal_at(word);
    return *number <= most;
}

/* ---- what is asked ---- */

static void start(struct ta__channel_answer *answer, char *rest, int descriptor)
{
    (void)descriptor;
    uint64_t frames = TA_NFRAME_MAX;
    char *word = next_word(&rest);
    if (word != NULL && (!is_number(word, TA_NFRAME_MAX, &frames) || frames == 0)) {
        refuse(answer, "the number of frames must be in range [1; 65535]");
        return;
    }
    int was_tracing = ta_is_tracing();
    ta__thread_may_stop(1);
    int result = ta_start((int)frames);
    ta__thread_may_stop(0);
    if (result != 0) {
        refuse(answer, ta__error_text());
        return;
    }
    tell(answer, "was", (uint64_t)was_tracing);
    tell_state(answer);
}

/* What lives now is written before it is forgotten. */
static void stop(struct ta__channel_answer *answer, char *rest, int descriptor)
{
    (void)descriptor;
    const char *word = next_word(&rest);
    int was_tracing = ta_is_tracing(), is_forced = word != NULL && strcmp(word, "force") == 0;
    if (was_tracing && has_recording() && ta__triggers_take("stop") != 0 && !is_forced) {
        refuse(answer, ta__error_text());
        return;
    }
    ta__thread_may_stop(1);
    ta_stop();
    ta__thread_may_stop(0);
    if (ta_is_tracing()) {
        refuse(answer, ta__error_text());
        return;
    }
    tell(answer, "was", (uint64_t)was_tracing);
    tell_state(answer);
}

static void clear(struct ta__channel_answer *answer, char *rest, int descriptor)
{
    (void)rest, (void)descriptor;
    if (!ta_is_tracing()) {
        refuse(answer, "nothing is traced");
        return;
    }
    if (has_recording() && ta__triggers_take("clear") != 0) {
        refuse(answer, ta__error_text());
        return;
    }
    uint64_t epoch = ta__trace_epoch();
    ta__thread_may_stop(1);
    ta_clear_traces();
    ta__thread_may_stop(0);
    if (ta__trace_epoch() == epoch)
        refuse(answer, ta__error_text());
    else
        tell_state(answer);
}

static void append(struct ta__channel_answer *answer, const char *reason)
{
    if (!ta_is_tracing())
        refuse(answer, "nothing is traced");
    else if (!has_recording())
        refuse(answer, "it has no recording");
    else if (ta__triggers_take(reason) != 0)
        refuse(answer, ta__error_text());
    else
        tell_path(answer);
}

static struct {
    int descriptor, result;
} file_asked;

static void write_file_asked(void)
{
    file_asked.result = ta__snapshot_to_descriptor(file_asked.descriptor, "ctl");
}

static void snapshot(struct ta__channel_answer *answer, char *rest, int descriptor)
{
    (void)rest;
    file_asked.descriptor = descriptor;
    if (descriptor < 0)
        append(answer, "ctl");
    else if (!ta_is_tracing())
        refuse(answer, "nothing is traced");
    else if (!ta__keeper_try(write_file_asked))
        refuse(answer, "the tables of the process are damaged");
    else if (file_asked.result != 0)
        refuse(answer, ta__error_text());
}

static void mark(struct ta__channel_answer *answer, char *rest, int descriptor)
{
    (void)descriptor;
    struct ta__message reason;
    rest += strspn(rest, " ");
    if (*rest == '\0' || strlen(rest) > MARK_MOST) {
        refuse(answer, "a mark has 1 to 200 bytes");
        return;
    }
    for (char *at = rest; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = ' ';
    ta__message_begin_plain(&reason);
    ta__message_text(&reason, TA__MARK);
    ta__message_text(&reason, rest);
    reason.text[reason.length] = '\0';
    append(answer, reason.text);
}

static void interval(struct ta__channel_answer *answer, char *rest, int descriptor)
{
    (void)descriptor;
    uint64_t milliseconds;
    if (!is_number(next_word(&rest), 1000000000, &milliseconds) || (milliseconds > 0 && milliseconds < 10)) {
        refuse(answer, "an interval is 0, or at least 0.01 seconds");
    } else if (milliseconds > 0 && !has_recording()) {
        refuse(answer, "it has no recording");
    } else {
        ta__triggers_set_interval(milliseconds * 1000000);
        tell_state(answer);
    }
}

static void limit(struct ta__channel_answer *answer, char *rest, int descriptor)
{
    (void)descriptor;
    const char *name = next_word(&rest), *soft_word = next_word(&rest), *hard_word = next_word(&rest);
    uint64_t number, soft, hard = 0;
    uint32_t domain = 0;
    if (name == NULL || !is_number(soft_word, UINT64_C(1) << 60, &soft) ||
        (hard_word != NULL && !is_number(hard_word, UINT64_C(1) << 60, &hard))) {
        refuse(answer, "expected a domain and bytes");
        return;
    }
    ta__thread_may_stop(1);
    int result = -1;
    if (is_number(name, UINT32_MAX, &number))
        domain = (uint32_t)number;
    else if (!ta_domain_find(name, &domain))
        ta__error_set("there is no such domain", NULL);
    if (domain != 0 || is_number(name, 0, &number))
        result = ta__domain_limit_bytes(domain, soft, hard_word != NULL ? &hard : NULL);
    ta__thread_may_stop(0);
    if (result != 0) {
        refuse(answer, ta__error_text());
        return;
    }
    if (has_recording()) {
        ta__triggers_take_at_limits();
        ta__domain_on_limit = ta__triggers_note_limit;
    }
    tell(answer, "domain", domain);
    tell(answer, "soft", soft);
}

static void status(struct ta__channel_answer *answer, char *rest, int descriptor)
{
    (void)rest, (void)descriptor;
    struct ta_health health;
    ta_get_health(&health, sizeof health);
    tell(answer, "tracer", ta_get_tracer_memory());
    tell(answer, "stacks", health.contexts);
    tell(answer, "lost", health.lost);
    tell_state(answer);
}

void ta__channel_answer(struct ta__channel_answer *answer, char *request, int descriptor)
{
    static const struct {
        const char *word;
        void (*act)(struct ta__channel_answer *answer, char *rest, int descriptor);
    } acts[] = {{"status", status},     {"start", start}, {"stop", stop},         {"clear", clear},
                {"snapshot", snapshot}, {"mark", mark},   {"interval", interval}, {"limit", limit}};
    const char *word = next_word(&request);
    ta__message_begin_plain(&answer->text);
    answer->path = NULL;
    answer->is_refused = 0;
    for (size_t i = 0; word != NULL && i < sizeof acts / sizeof *acts; i++)
        if (strcmp(word, acts[i].word) == 0) {
            acts[i].act(answer, request, descriptor);
            return;
        }
    refuse(answer, "no such request");
}
