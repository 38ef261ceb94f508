/* process_facts.c: see process_facts.h. No malloc, no stdio. */
#include "snapshot/write/process_facts.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/small_file.h"

void ta__pairs_add(struct ta__pairs *pairs, const char *key, const char *value)
{
    size_t length = strlen(value) + 1;
    if (pairs->count >= TA__PAIRS_MOST || length > sizeof pairs->text - pairs->used)
        return;
    char *copy = pairs->text + pairs->used;
    memcpy(copy, value, length);
    pairs->used += (uint32_t)length;
    pairs->rows[pairs->count++] = (struct ta__fact_pair){key, copy};
}

void ta__pairs_add_row(struct ta__pairs *pairs, const char *prefix, uint64_t row, const char *value)
{
    size_t length = strlen(prefix), needed = length + 21;
    if (needed > sizeof pairs->text - pairs->used)
        return;
    char *key = pairs->text + pairs->used;
    memcpy(key, prefix, length);
    pairs->used += (uint32_t)(ta__put_decimal(key + length, row) - key) + 1;
    ta__pairs_add(pairs, key, value);
}

void ta__pairs_add_number(struct ta__pairs *pairs, const char *key, uint64_t number)
{
    char text[24];
    ta__put_decimal(text, number);
    ta__pairs_add(pairs, key, text);
}

void ta__pairs_add_keyed(struct ta__pairs *pairs, const char *key, uint64_t number)
{
    size_t length = strlen(key) + 1;
    if (length > sizeof pairs->text - pairs->used)
        return;
    char *copy = memcpy(pairs->text + pairs->used, key, length);
    pairs->used += (uint32_t)length;
    ta__pairs_add_number(pairs, copy, number);
}

void ta__process_command(char *text, size_t room)
{
    size_t length = ta__small_file("/proc/self/cmdline", text, room);
    while (length > 0 && text[length - 1] == '\0')
        length--;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ')
            text[i] = ' ';
}

static void add_command(struct ta__pairs *pairs)
{
    char text[1024];
    ta__process_command(text, sizeof text);
    if (*text != '\0')
        ta__pairs_add(pairs, "process.command", text);
}

/* Lines such as "RssAnon:	     112 kB". */
static void add_memory(struct ta__pairs *pairs)
{
    static const struct {
        const char *line, *key;
    } lines[] = {
        {"\nVmRSS:", "memory.resident"},   {"\nVmHWM:", "memory.resident_peak"}, {"\nRssAnon:", "memory.anonymous"},
        {"\nRssFile:", "memory.file"},     {"\nRssShmem:", "memory.shared"},     {"\nVmSwap:", "memory.swapped"},
        {"\nVmStk:", "memory.main_stack"},
    };
    char text[4096];
    if (ta__small_file("/proc/self/status", text, sizeof text) == 0)
        return;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const char *at = ta__behind(text, lines[i].line);
        if (at != NULL)
            ta__pairs_add_number(pairs, lines[i].key, ta__decimal_at(at) * 1024);
    }
}

static struct {
    pid_t process, parent;
} known;

void ta__process_begins(void)
{
    known.process = getpid();
    known.parent = getppid();
}

/* Fields 10, 12 and 20 of the line: faults without and with reading from a disk, threads. */
static void add_counts(struct ta__pairs *pairs, pid_t owner)
{
    static const struct {
        int field;
        const char *key;
    } fields[] = {{10, "faults.minor"}, {12, "faults.major"}, {20, "process.threads"}};
    char text[1024];
    if (known.process == owner)
        ta__pairs_add_number(pairs, "process.parent", (uint64_t)known.parent);
    if (ta__small_file_of(owner, "stat", text, sizeof text) == 0)
        return;
    const char *at = strrchr(text, ')');
    size_t next = 0;
    for (int field = 3; at != NULL && next < sizeof fields / sizeof fields[0]; field++) {
        at = strchr(at + 1, ' ');
        if (at != NULL && field == fields[next].field)
            ta__pairs_add_number(pairs, fields[next++].key, ta__decimal_at(at));
    }
}

void ta__pairs_add_process(struct ta__pairs *pairs, pid_t owner)
{
    int saved_errno = errno;
    add_command(pairs);
    add_counts(pairs, owner);
    add_memory(pairs);
    errno = saved_errno;
}
