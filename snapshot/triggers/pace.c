/* pace.c: see pace.h. */
#include "snapshot/triggers/pace.h"

#define MS  UINT64_C(1000000)
#define S   (1000 * MS)
#define KIB UINT64_C(1024)

/* Entries take 7 thousandths of a processor: the rest of the hundredth is for looking (memory_kinds.h). */
enum { COST_SHARE = 143, DANGER_FACTOR = 5, SMALLEST_STEP = 16 << 10, BYTES_PER_S = 50000 };
#define SPARE_NS    (30 * MS) /* for those who may need it (may_be_killed) */
#define SPARE_BYTES (4096 * KIB)
#define MUCH_BYTES  (48 * KIB * KIB)
/* What an entry costs where nothing is known yet: as bench/recording found them, on a processor of 2.5 GHz. */
#define CHEAP_NS     (250 * MS / 1000)
#define ENTRY_NS     (200 * MS / 1000)
#define ROW_NS       20
#define FRESH_ROW_NS 60

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

/* Costs turn out otherwise than expected, by the processor and by what the rows hold: what they were so far corrects them. */
static uint64_t expected_ns(const struct ta__pace *pace)
{
    double known = (double)(pace->foreseen_ns + MS), spent = (double)(pace->foreseen_spent_ns + MS);
    return (uint64_t)((double)pace->next_ns * spent / known);
}

void ta__pace_foresee(struct ta__pace *pace, uint64_t rows)
{
    uint64_t fresh = rows > pace->last_rows ? rows - pace->last_rows : 0;
    pace->next_rows = rows;
    pace->next_ns = ENTRY_NS + rows * ROW_NS + fresh * FRESH_ROW_NS;
}

/* Memory that grows fast is followed also where the program is too young to have earned it, if entries cost little. */
static int may_be_killed(const struct ta__pace *pace, uint64_t current_bytes)
{
    return pace->is_in_danger || (current_bytes >= MUCH_BYTES && expected_ns(pace) <= CHEAP_NS);
}

/* How much less should have been spent by now for an entry to be affordable; 0 = it is. What it is expected to cost
 * counts: a program must have lived a while before its first entry, and long before a dear one. */
static uint64_t overdrawn_ns(const struct ta__pace *pace, uint64_t now_ns, uint64_t current_bytes)
{
    uint64_t busy = pace->busy_ns != 0 ? pace->busy_ns : now_ns - pace->begun_ns,
             spare = may_be_killed(pace, current_bytes) ? SPARE_NS : 0,
             earned = (spare + busy / COST_SHARE) * (pace->is_in_danger ? DANGER_FACTOR : 1),
             needed = pace->spent_ns + (pace->is_in_danger ? 0 : expected_ns(pace));
    return needed > earned ? needed - earned : 0;
}

static int is_affordable(const struct ta__pace *pace, uint64_t now_ns, uint64_t current_bytes)
{
    uint64_t elapsed = now_ns - pace->begun_ns, factor = pace->is_in_danger ? DANGER_FACTOR : 1;
    return overdrawn_ns(pace, now_ns, current_bytes) == 0 &&
           pace->written_bytes <= (SPARE_BYTES + elapsed / MS * BYTES_PER_S / 1000) * factor;
}

int ta__pace_is_due(const struct ta__pace *pace, uint64_t now_ns, uint64_t current_bytes)
{
    uint64_t since = now_ns - pace->last_ns, gap = current_bytes == pace->last_bytes ? 5 * S : 250 * MS;
    int has_grown = since >= 2 * MS && current_bytes > pace->last_bytes + step(pace->last_bytes);
    return (has_grown || since >= gap) && is_affordable(pace, now_ns, current_bytes);
}

/* What is earned in the meantime is a share of what the program takes: twice as much as so far, it is taken to be. */
static uint64_t usual_nap(const struct ta__pace *pace, uint64_t now_ns, uint64_t current_bytes)
{
    if (current_bytes == pace->last_bytes && now_ns - pace->last_ns > S)
        return 250 * MS;
    uint64_t elapsed = now_ns - pace->begun_ns, busy = pace->busy_ns != 0 ? pace->busy_ns : elapsed;
    double slowness = busy != 0 ? (double)elapsed / (double)busy / 2 : 0;
    uint64_t until = (uint64_t)((double)overdrawn_ns(pace, now_ns, current_bytes) * COST_SHARE * slowness);
    return until < 25 * MS ? 25 * MS : until < 100 * MS ? until : 100 * MS;
}

/* Nothing has happened for a second: four looks a second; ten where an entry cannot be afforded for long, else forty; more
 * when it grows so fast that the next entry, or the next look whether memory is short, is due sooner. */
uint64_t ta__pace_nap_ns(struct ta__pace *pace, uint64_t now_ns, uint64_t current_bytes)
{
    uint64_t nap = usual_nap(pace, now_ns, current_bytes);
    uint64_t grown = current_bytes > pace->looked_bytes ? current_bytes - pace->looked_bytes : 0;
    uint64_t passed = now_ns - pace->looked_ns, room = step(pace->last_bytes);
    if (!is_affordable(pace, now_ns, current_bytes) && pace->danger_bytes > current_bytes + room)
        room = pace->danger_bytes - current_bytes;
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
    pace->foreseen_ns += pace->next_ns;
    pace->foreseen_spent_ns += pace->next_ns != 0 ? cost_ns : 0;
    pace->last_rows = pace->next_rows;
}
