/* pace.c: see pace.h. */
#include "snapshot/triggers/pace.h"

#define MS  UINT64_C(1000000)
#define S   (1000 * MS)
#define KIB UINT64_C(1024)

/* Entries take 7 thousandths of a processor: the rest of the hundredth is for looking (memory_kinds.h). */
enum { COST_SHARE = 143, DANGER_FACTOR = 5, SMALLEST_STEP = 16 << 10, BYTES_PER_S = 50000 };
#define SPARE_NS    (30 * MS)
#define SPARE_BYTES (4096 * KIB)

uint64_t ta__pace_file_limit(const struct ta__pace *pace, uint64_t now_ns)
{
    uint64_t seconds = (now_ns - pace->begun_ns) / S, most = 64 * KIB * KIB;
    uint64_t limit = 256 * KIB + (seconds < 3600 ? seconds * 2000 : 3600 * 2000 + (seconds - 3600) * 140);
    return limit < most ? limit : most;
}

static uint64_t step(uint64_t size)
{
    return size / 50 > SMALLEST_STEP ? size / 50 : SMALLEST_STEP;
}

/* Paid afterwards: the first entry, or one that repeats everything, costs far more than the next. */
static int is_affordable(const struct ta__pace *pace, uint64_t now_ns)
{
    uint64_t elapsed = now_ns - pace->begun_ns, busy = pace->busy_ns != 0 ? pace->busy_ns : elapsed,
             factor = pace->is_in_danger ? DANGER_FACTOR : 1;
    return pace->spent_ns <= (SPARE_NS + busy / COST_SHARE) * factor &&
           pace->written_bytes <= (SPARE_BYTES + elapsed / MS * BYTES_PER_S / 1000) * factor;
}

int ta__pace_is_due(const struct ta__pace *pace, uint64_t now_ns, uint64_t current_bytes)
{
    uint64_t since = now_ns - pace->last_ns, gap = current_bytes == pace->last_bytes ? 5 * S : 250 * MS;
    int has_grown = since >= 2 * MS && current_bytes > pace->last_bytes + step(pace->last_bytes);
    return (has_grown || since >= gap) && is_affordable(pace, now_ns);
}

/* Nothing has happened for a second: four looks a second, else forty; more when it grows so fast that 2 % come sooner. */
uint64_t ta__pace_nap_ns(struct ta__pace *pace, uint64_t now_ns, uint64_t current_bytes)
{
    uint64_t nap = current_bytes == pace->last_bytes && now_ns - pace->last_ns > S ? 250 * MS : 25 * MS;
    uint64_t grown = current_bytes > pace->looked_bytes ? current_bytes - pace->looked_bytes : 0;
    uint64_t passed = now_ns - pace->looked_ns, room = step(pace->last_bytes);
    if (grown > 0 && passed > 0 && grown > room / 16) {
        uint64_t until = (uint64_t)((double)room / (double)grown * (double)passed);
        nap = until < 2 * MS ? 2 * MS : until < nap ? until : nap;
    }
    pace->looked_ns = now_ns;
    pace->looked_bytes = current_bytes;
    return nap;
}

void ta__pace_note(struct ta__pace *pace, uint64_t now_ns, uint64_t current_bytes, uint64_t written_bytes,
                   uint64_t cost_ns)
{
    pace->last_ns = now_ns;
    pace->last_bytes = current_bytes;
    pace->written_bytes = written_bytes;
    pace->spent_ns += cost_ns;
}
