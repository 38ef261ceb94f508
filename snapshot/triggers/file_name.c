/* file_name.c: see file_name.h. */
#include "snapshot/triggers/file_name.h"

#include <sys/types.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "snapshot/write/take.h"

struct name {
    char *at, *end;
};

static void add_text(struct name *name, const char *text)
{
    while (*text != '\0' && name->at < name->end)
        *name->at++ = *text++;
}

static void add_number(struct name *name, uint64_t number, unsigned digits)
{
    char text[24];
    unsigned at = sizeof text - 1;
    text[at] = '\0';
    do {
        text[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0 || sizeof text - 1 - at < digits);
    add_text(name, text + at);
}

/* 20261231-235959, UTC. Not by gmtime_r: that may read the time zone's file, and allocate. */
static void add_time(struct name *name)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seconds = (uint64_t)now.tv_sec;
    uint64_t days = seconds / 86400 + 719468; /* since 0000-03-01, so that the leap day ends a year */
    uint64_t era = days / 146097;
    uint64_t day_of_era = days % 146097;
    uint64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    uint64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint64_t month = (5 * day_of_year + 2) / 153; /* 0 = March */
    uint64_t day = day_of_year - (153 * month + 2) / 5 + 1;
    uint64_t year = year_of_era + era * 400 + (month >= 10);
    add_number(name, year, 4);
    add_number(name, month < 10 ? month + 3 : month - 9, 2);
    add_number(name, day, 2);
    add_text(name, "-");
    add_number(name, seconds / 3600 % 24, 2);
    add_number(name, seconds / 60 % 60, 2);
    add_number(name, seconds % 60, 2);
}

static void add_host(struct name *name)
{
    struct utsname system;
    if (uname(&system) != 0)
        return;
    for (char *at = system.nodename; *at != '\0'; at++)
        if (*at == '/')
            *at = '_';
    add_text(name, system.nodename);
}

int ta__trigger_path(const char *pattern, uint64_t number, int forked, char *path, uint64_t room)
{
    struct name name = {path, path + room - 1};
    int has_pid = 0;
    for (const char *at = pattern; *at != '\0'; at++) {
        char one[2] = {*at, '\0'};
        if (*at != '%' || at[1] == '\0') {
            add_text(&name, one);
            continue;
        }
        switch (*++at) {
        case 'p':
            add_number(&name, (uint64_t)ta__snapshot_process(), 1);
            has_pid = 1;
            break;
        case 'n':
            add_number(&name, number, 1);
            break;
        case 't':
            add_time(&name);
            break;
        case 'h':
            add_host(&name);
            break;
        case '%':
            add_text(&name, "%");
            break;
        default:
            add_text(&name, one);
            one[0] = *at;
            add_text(&name, one);
        }
    }
    if (forked && !has_pid) {
        add_text(&name, ".");
        add_number(&name, (uint64_t)ta__snapshot_process(), 1);
    }
    if (name.at == name.end)
        return ta__error_set("the snapshot's file name is too long", NULL);
    *name.at = '\0';
    return 0;
}

static int has_number(const char *pattern)
{
    for (; *pattern != '\0'; pattern++)
        if (pattern[0] == '%' && *++pattern == 'n')
            return 1;
        else if (*pattern == '\0')
            break;
    return 0;
}

int ta__free_path(const char *pattern, uint64_t *number, int forked, char *path, uint64_t room)
{
    do {
        ++*number;
        if (ta__trigger_path(pattern, *number, forked, path, room) != 0)
            return -1;
    } while (has_number(pattern) && access(path, F_OK) == 0);
    return 0;
}
