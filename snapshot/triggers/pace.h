/* pace.h: when a series that runs for hours or weeks takes its next entry, and how long its file may be.
 *
 * One whenever the memory has grown by 2 %, and four a second while anything changes; none by which entries would have
 * cost more than a hundredth of what the program took of the processor, or more than the disk should bear, in the mean since
 * the beginning: what was not used is saved for later. What the next one costs is foreseen, so that short programs have none
 * but the last. Where the memory of the machine or of the container is nearly used up, so that the process may be killed at
 * any moment together with who writes this, five times as much, and some at once. A pure function of what it is told: no
 * clock, no file. */
#ifndef TA_SNAPSHOT_TRIGGERS_PACE_H
#define TA_SNAPSHOT_TRIGGERS_PACE_H

#include <stdint.h>

struct ta__pace {
    uint64_t begun_ns, last_ns;       /* of some clock that goes on; last_ns: when the last entry was written */
    uint64_t last_bytes;              /* live in the last entry */
    uint64_t spent_ns;                /* by all entries, of the processor */
    uint64_t busy_ns;                 /* what their share is taken of; 0 = the time since the beginning */
    uint64_t written_bytes;           /* by all entries */
    uint64_t looked_ns, looked_bytes; /* at the last look, for how fast it grows */
    uint64_t danger_bytes;            /* by then it must be looked at again whether memory is short; 0 = not known */
    int is_in_danger;
    uint64_t next_ns, next_rows, last_rows;  /* foreseen; 0 = nothing is, and the next entry counts as free */
    uint64_t foreseen_ns, foreseen_spent_ns; /* what entries were foreseen to cost, and did */
};

int ta__pace_is_due(const struct ta__pace *pace, uint64_t now_ns, uint64_t current_bytes);
/* What the next entry will cost, from what it will look through: stacks and frames of stacks. */
void ta__pace_foresee(struct ta__pace *pace, uint64_t rows);
/* How long nothing needs to be looked at. */
uint64_t ta__pace_nap_ns(struct ta__pace *pace, uint64_t now_ns, uint64_t current_bytes);
/* An entry was taken; `written_bytes`: all that was ever written to the series. */
void ta__pace_note(struct ta__pace *pace, uint64_t now_ns, uint64_t current_bytes, uint64_t written_bytes,
                   uint64_t cost_ns);
/* How long the file may be by now, so that an hour stays below 10 MB and a week below 100 MB. */
uint64_t ta__pace_file_limit(const struct ta__pace *pace, uint64_t now_ns);

#endif
