/* options.c: how tracing is started from outside — the variables TRACEALLOC and TRACEALLOC_OPTIONS.
 *
 * Read once, at the first allocation, before anything is traced and possibly before libc has set up its own idea of the
 * environment; so without malloc, and from /proc when need be. A wrong value ends the process with status 1 and one
 * line: nothing is ignored silently and nothing is clamped. Set-uid programs ignore both variables.
 * docs/options.md has the table of options; tests/unit/test_options_table.sh holds it to this one. */
#include "alloc/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/message.h"
#include "tracealloc.h"

struct ta__options ta__options;

/* ---- the environment --------------------------------------------------------------------------------------------- */

extern char **environ;

/* Copies the value of NAME=value from /proc/self/environ into buffer; 1 when it is there and fits. */
static int environment_from_proc(const char *name, char *buffer, size_t room)
{
    int descriptor = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return 0;
    size_t name_length = strlen(name);
    size_t at = 0; /* in the present entry */
    int matches = 1;
    int found = 0;
    char chunk[512];
    for (ssize_t got; !found && (got = read(descriptor, chunk, sizeof chunk)) > 0;) {
        for (ssize_t i = 0; i < got && !found; i++) {
            char byte = chunk[i];
            if (matches && at > name_length && at - name_length - 1 < room)
                buffer[at - name_length - 1] = byte;
            if (byte == '\0') {
                found = matches && at > name_length && at - name_length - 1 < room;
                matches = 1;
                at = 0;
                continue;
            }
            if (at < name_length ? byte != name[at] : at == name_length && byte != '=')
                matches = 0;
            at++;
        }
    }
    close(descriptor);
    return found;
}

const char *ta__environment(const char *name)
{
    static char from_proc[2][16384];
    static int from_proc_used;
    if (getauxval(AT_SECURE) != 0)
        return NULL;
    if (environ != NULL)
        return getenv(name);
    if (from_proc_used < 2 && environment_from_proc(name, from_proc[from_proc_used], sizeof from_proc[0]))
        return from_proc[from_proc_used++];
    return NULL;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static void refuse(const char *what)
{
    ta__message_line(what, NULL);
    _exit(1);
}

/* Python's grammar: leading blanks, a sign, decimal digits, nothing behind. -1 when it is not that, or beyond int. */
static long frames_number(const char *text)
{
    while (*text == ' ' || (*text >= '\t' && *text <= '\r'))
        text++;
    int negative = *text == '-';
    if (*text == '+' || negative)
        text++;
    long number = 0;
    const char *digits = text;
    while (*text >= '0' && *text <= '9') {
        number = number * 10 + (*text++ - '0');
        if (number > 2147483647)
            return -1;
    }
    return *text == '\0' && text != digits && (!negative || number == 0) ? number : -1;
}

static void read_frames(const char *text)
{
    if (text == NULL || *text == '\0')
        return;
    long number = frames_number(text);
    if (number < 0)
        refuse("TRACEALLOC: invalid number of frames");
    if (number > TA_NFRAME_MAX)
        refuse("the number of frames must be in range [1; 65535]");
    ta__options.nframe = (int)number;
}

/* "512KiB", "64k", "1M", "4096"; -1 when it is not a size. */
static int64_t size_number(const char *text, size_t length)
{
    static const char units[] = "kKmMgG";
    uint64_t number = 0;
    size_t at = 0;
    for (; at < length && text[at] >= '0' && text[at] <= '9'; at++) {
        if (number > (UINT64_C(1) << 52))
            return -1;
        number = number * 10 + (uint64_t)(text[at] - '0');
    }
    if (at == 0)
        return -1;
    const char *unit = at < length ? memchr(units, text[at], sizeof units - 1) : NULL;
    if (unit != NULL) {
        unsigned shift = 10 * (unsigned)((unit - units) / 2 + 1);
        if (number > (UINT64_C(1) << 52) >> shift)
            return -1;
        number <<= shift;
        at++;
        if (at < length && text[at] == 'i')
            at++;
    }
    if (at < length && text[at] == 'B')
        at++;
    return at == length ? (int64_t)number : -1;
}

static int span_is(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* ---- the options ------------------------------------------------------------------------------------------------- */

static int set_sample(const char *value, size_t length)
{
    int64_t size = size_number(value, length);
    if (size <= 0)
        return 0;
    ta__options.sample_bytes = size == 1 ? 0 : (uint64_t)size;
    return 1;
}

static int set_max_contexts(const char *value, size_t length)
{
    int64_t number = size_number(value, length);
    if (number < 1024 || number > 1 << 28)
        return 0;
    ta__options.max_contexts = (uint32_t)number;
    return 1;
}

static int set_table_memory(const char *value, size_t length)
{
    int64_t size = size_number(value, length);
    if (size < 64 << 10)
        return 0;
    ta__options.table_memory = (uint64_t)size;
    return 1;
}

static int set_file_limit(const char *value, size_t length)
{
    int64_t number = size_number(value, length);
    ta__options.file_limit = (uint64_t)number;
    return number >= 64 << 10;
}

static int set_on_corruption(const char *value, size_t length)
{
    ta__options.leak_on_corruption = span_is(value, length, "leak");
    return ta__options.leak_on_corruption || span_is(value, length, "abort");
}

static int set_headers(const char *value, size_t length)
{
    ta__options.has_headers = span_is(value, length, "always");
    return ta__options.has_headers || span_is(value, length, "traced");
}

/* A double free is noticed where blocks have headers. */
static int set_remember_frees(const char *value, size_t length)
{
    int64_t number = size_number(value, length);
    if (number < 0 || number > 1 << 22)
        return 0;
    ta__options.remember_frees = (uint32_t)number;
    return 1;
}

/* Milliseconds; -1: never. */
static int set_purge_delay(const char *value, size_t length)
{
    int64_t delay = span_is(value, length, "never") ? -1 : size_number(value, length);
    ta__options.purge_delay = (int32_t)delay;
    ta__options.has_purge_delay = 1;
    return (delay >= 0 && delay <= 1000000) || span_is(value, length, "never");
}

static int yes_or_no(const char *value, size_t length, int *answer)
{
    *answer = span_is(value, length, "1") || span_is(value, length, "yes");
    return *answer || span_is(value, length, "0") || span_is(value, length, "no");
}

static int set_text(const char *value, size_t length, char *text, size_t room)
{
    if (length == 0 || length >= room)
        return 0;
    memcpy(text, value, length);
    text[length] = '\0';
    return 1;
}

static int set_output(const char *value, size_t length)
{
    return set_text(value, length, ta__options.output, sizeof ta__options.output);
}

static int set_family(const char *value, size_t length)
{
    return set_text(value, length, ta__options.family, sizeof ta__options.family);
}

static int set_series(const char *value, size_t length)
{
    ta__options.is_paced = span_is(value, length, "auto");
    if (ta__options.is_paced)
        return ta__options.is_series = 1;
    return yes_or_no(value, length, &ta__options.is_series);
}

static int set_at_exit(const char *value, size_t length)
{
    int wanted;
    int is_answer = yes_or_no(value, length, &wanted);
    ta__options.no_exit_snapshot = !wanted;
    return is_answer;
}

static int set_ends(const char *value, size_t length)
{
    return yes_or_no(value, length, &ta__options.watches_ends);
}

/* Seconds, with up to three decimals. */
static int set_interval(const char *value, size_t length)
{
    uint64_t milliseconds = 0;
    uint64_t unit = 1000;
    size_t at = 0;
    for (; at < length && value[at] >= '0' && value[at] <= '9' && milliseconds < 100000000000; at++)
        milliseconds = milliseconds * 10 + (uint64_t)(value[at] - '0') * 1000;
    if (at == 0)
        return 0;
    if (at < length && value[at] == '.')
        for (at++; at < length && value[at] >= '0' && value[at] <= '9'; at++)
            milliseconds += (uint64_t)(value[at] - '0') * (unit /= 10);
    if (at < length && value[at] == 's')
        at++;
    ta__options.interval_ns = milliseconds * 1000000;
    return at == length && milliseconds >= 10;
}

/* Not those that a fault raises, that our own writes may, that libc keeps for itself, and that nobody catches. */
static int can_be_taken(int64_t number)
{
    static const int never[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                SIGTRAP, SIGABRT, SIGSYS,  SIGXFSZ, SIGPIPE};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (number == never[i])
            return 0;
    return number > 0 && (number <= SIGSYS || number >= SIGRTMIN) && number <= SIGRTMAX;
}

static int set_signal(const char *value, size_t length)
{
    static const struct {
        const char *name;
        int number;
    } names[] = {{"HUP", SIGHUP}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"PROF", SIGPROF}, {"URG", SIGURG}};
    if (length > 3 && memcmp(value, "SIG", 3) == 0) {
        value += 3;
        length -= 3;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (span_is(value, length, names[i].name))
            ta__options.signal_number = names[i].number;
    int64_t number = size_number(value, length);
    if (can_be_taken(number))
        ta__options.signal_number = (int)number;
    return ta__options.signal_number != 0;
}

/* 1 or yes, or how many percent the peak must have grown. */
static int set_peak(const char *value, size_t length)
{
    if (yes_or_no(value, length, &ta__options.at_peak))
        return 1;
    if (length > 0 && value[length - 1] == '%')
        length--;
    int64_t percent = size_number(value, length);
    ta__options.at_peak = 1;
    ta__options.peak_percent = (int)percent;
    return percent > 0 && percent <= 1000;
}

static int set_on_limit(const char *value, size_t length)
{
    ta__options.at_limit = span_is(value, length, "snapshot");
    return ta__options.at_limit || span_is(value, length, "none");
}

static int set_loud(const char *value, size_t length)
{
    return yes_or_no(value, length, &ta__options.is_loud);
}

static int set_blocks(const char *value, size_t length)
{
    return yes_or_no(value, length, &ta__options.has_blocks);
}

static int set_control(const char *value, size_t length)
{
    return yes_or_no(value, length, &ta__options.has_channel);
}

static int set_rules(const char *value, size_t length)
{
    return set_text(value, length, ta__options.rules, sizeof ta__options.rules);
}

static int set_domains_at_exit(const char *value, size_t length)
{
    ta__options.domains_at_exit = span_is(value, length, "1");
    return ta__options.domains_at_exit || span_is(value, length, "0");
}

static int set_check(const char *value, size_t length)
{
    return yes_or_no(value, length, &ta__options.only_checks);
}

static int set_process(const char *value, size_t length)
{
    int64_t number = size_number(value, length);
    ta__options.process = (int)number;
    return number > 0 && number <= INT32_MAX;
}

static int set_namespace(const char *value, size_t length)
{
    int64_t number = size_number(value, length);
    ta__options.process_namespace = (uint64_t)number;
    return number > 0;
}

static int set_follow(const char *value, size_t length)
{
    int wanted;
    int is_answer = yes_or_no(value, length, &wanted);
    ta__options.no_follow = !wanted;
    return is_answer;
}

static const struct option {
    const char *key;
    int (*set)(const char *value, size_t length); /* 0: not a value of this option */
    const char *expects;
} options[] = {
    {"sample", set_sample, "a size such as 512KiB"},
    {"max_contexts", set_max_contexts, "a number from 1024 to 268435456"},
    {"table_memory", set_table_memory, "a size of at least 64KiB, such as 32MiB"},
    {"on_corruption", set_on_corruption, "abort or leak"},
    {"headers", set_headers, "traced or always"},
    {"remember_frees", set_remember_frees, "a number up to 4194304"},
    {"purge_delay", set_purge_delay, "milliseconds from 0 to 1000000, or never"},
    {"output", set_output, "a file name of at most 4095 bytes"},
    {"ends", set_ends, "yes or no"},
    {"series", set_series, "yes, no or auto"},
    {"file_limit", set_file_limit, "a size of at least 64KiB, such as 50MiB"},
    {"exit", set_at_exit, "yes or no"},
    {"interval", set_interval, "seconds, at least 0.01"},
    {"peak", set_peak, "yes, no, or a percentage from 1 to 1000"},
    {"signal", set_signal, "USR1, USR2, HUP, PROF, URG, or the number of a signal that no fault raises"},
    {"on_limit", set_on_limit, "snapshot or none"},
    {"loud", set_loud, "yes or no"},
    {"blocks", set_blocks, "yes or no"},
    {"control", set_control, "yes or no"},
    {"process", set_process, "the number of a process"},
    {"family", set_family, "the name of a folder, at most 4095 bytes"},
    {"namespace", set_namespace, "the number of a namespace of processes"},
    {"follow", set_follow, "yes or no"},
    {"rules", set_rules, "the path of a file, at most 4095 bytes"},
    {"domains_at_exit", set_domains_at_exit, "0 or 1"},
    {"check", set_check, "yes or no"},
};

static void refuse_value(const char *key, const char *value, size_t length, const char *expects)
{
    struct ta__message message;
    ta__message_begin(&message);
    ta__message_text(&message, "TRACEALLOC_OPTIONS: ");
    ta__message_text(&message, key);
    ta__message_text(&message, "=");
    ta__message_span(&message, value, length);
    ta__message_text(&message, ": expected ");
    ta__message_text(&message, expects);
    ta__message_send(&message);
    _exit(1);
}

static void read_option(const char *text, size_t length)
{
    const char *equals = memchr(text, '=', length);
    size_t key_length = equals != NULL ? (size_t)(equals - text) : length;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (!span_is(text, key_length, options[i].key))
            continue;
        const char *value = equals != NULL ? equals + 1 : text + length;
        size_t value_length = (size_t)(text + length - value);
        if (!options[i].set(value, value_length))
            refuse_value(options[i].key, value, value_length, options[i].expects);
        return;
    }
    struct ta__message message;
    ta__message_begin(&message);
    ta__message_text(&message, "TRACEALLOC_OPTIONS: unknown option ");
    ta__message_span(&message, text, key_length);
    ta__message_send(&message);
    _exit(1);
}

static void read_options(const char *text)
{
    if (text == NULL)
        return;
    strncpy(ta__options.text, text, sizeof ta__options.text - 1);
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        if (length > 0)
            read_option(text, length);
        text += length + (text[length] == ',');
    }
}

void ta__options_read(void)
{
    int saved_errno = errno;
    read_frames(ta__environment("TRACEALLOC"));
    read_options(ta__environment("TRACEALLOC_OPTIONS"));
    if (ta__options.only_checks)
        _exit(0);
    if (ta__options.no_follow && ta__options.process != getpid()) {
        ta__options.nframe = 0;
        ta__options.output[0] = '\0';
        ta__options.has_channel = 0;
    }
    errno = saved_errno;
}
