/* memory_short.c: see memory_short.h. No malloc, no stdio. */
#include "snapshot/triggers/memory_short.h"

#include <string.h>
#include <unistd.h>

#include "base/small_file.h"

enum { ROOM = 512, SHARE = 10 };

/* ---- the files of the cgroup, found once ---- */

static struct {
    int is_found;
    char stat[ROOM], limit[ROOM]; /* "" = there is none */
} group;

/* FOLDER + what stands in /proc/self/cgroup behind `label` + /NAME, where that is; in a container often at the top. */
static int find_file(char *path, const char *folder, const char *cgroup, const char *label, const char *name)
{
    const char *at = ta__behind(cgroup, label);
    if (at == NULL)
        return 0;
    for (int is_top = 0; is_top <= 1; is_top++) {
        size_t length = is_top ? 0 : strcspn(at, "\n");
        if (strlen(folder) + length + strlen(name) + 2 > ROOM)
            continue;
        char *end = stpcpy(path, folder);
        memcpy(end, at, length);
        strcpy(stpcpy(end + length, "/"), name);
        if (access(path, R_OK) == 0)
            return 1;
    }
    *path = '\0';
    return 0;
}

static void find_group(void)
{
    char cgroup[4096];
    group.is_found = 1;
    ta__small_file("/proc/self/cgroup", cgroup, sizeof cgroup);
    if (find_file(group.limit, "/sys/fs/cgroup/memory", cgroup, ":memory:", "memory.limit_in_bytes"))
        (void)find_file(group.stat, "/sys/fs/cgroup/memory", cgroup, ":memory:", "memory.stat");
    else if (find_file(group.limit, "/sys/fs/cgroup", cgroup, "0::", "memory.max"))
        (void)find_file(group.stat, "/sys/fs/cgroup", cgroup, "0::", "memory.stat");
}

/* ---- numbers ---- */

static uint64_t number_of(const char *text, const char *label)
{
    const char *at = ta__behind(text, label);
    return at == NULL ? 0 : ta__decimal_at(at);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t ta__memory_texts_left(const char *meminfo, const char *stat, const char *limit)
{
    uint64_t all = number_of(meminfo, "MemTotal:"), available = number_of(meminfo, "MemAvailable:"),
             left = UINT64_MAX / 4;
    if (all > 0 && available < all / SHARE)
        return 0;
    if (all > 0)
        left = (available - all / SHARE + 1) * 1024;
    uint64_t most = ta__decimal_at(limit); /* "max", or a number beyond all memory: no limit */
    uint64_t used = number_of(stat, "\ntotal_rss ");
    if (used == 0)
        used = strncmp(stat, "anon ", 5) == 0 ? ta__decimal_at(stat + 5) : number_of(stat, "\nanon ");
    if (most == 0 || most / 1024 > all)
        return left;
    return used > most - most / SHARE ? 0 : smaller(left, most - most / SHARE - used + 1);
}

uint64_t ta__memory_left_until_short(void)
{
    static char meminfo[512], stat[4096];
    char limit[64] = "";
    if (!group.is_found)
        find_group();
    ta__small_file("/proc/meminfo", meminfo, sizeof meminfo);
    stat[0] = '\0';
    if (*group.limit != '\0' && *group.stat != '\0' && ta__small_file(group.limit, limit, sizeof limit) > 0)
        ta__small_file(group.stat, stat, sizeof stat);
    return ta__memory_texts_left(meminfo, stat, limit);
}
