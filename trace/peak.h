/* peak.h: what each leaf held when the traced memory was highest — the list that a search for memory begins with.
 *
 * No thread can keep this up to date with every allocation. Instead the live bytes of all leaves are written down at
 * moments worth it: when current begins to fall after it has grown by a hundredth, which is seen when a thread flushes, and
 * before anything large goes. What threads do not flush (TA__FLUSH_BYTES each) can fall unseen: as long as that is more
 * than a twentieth of current, it is written down whenever current has grown by as much, too. So the list is within a
 * twentieth of the peak, mostly within a hundredth; with several threads less what they have not flushed.
 * The thread that allocates or frees does it, inside the allocator: one pass over the counters, as often as the logarithm
 * of the peak, with steps up to four times as large where there are many leaves or threads. It waits for nobody: while a
 * snapshot reads the list it stays as it is, and is brought up to date afterwards. */
#ifndef TA_TRACE_PEAK_H
#define TA_TRACE_PEAK_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/facts.h"

/* Values of current from which on it is worth it. Any thread, relaxed. */
struct ta__peak_due {
    int64_t grown, falling;
};
extern struct ta__peak_due ta__peak_due;

/* Current is above one of them. Inside an operation, or outside of any. */
TA_COLD void ta__peak_record(int64_t current);

/* The list, for a snapshot: it does not change until ta__peak_close. Answers the number of leaves that it covers, 0
 * when there is nothing in it; then there is nothing to close. `is_now`: as much is live now. Outside of operations. */
uint32_t ta__peak_open(const uint64_t **live_bytes, uint32_t *is_now);
void ta__peak_close(void);

/* Is a list being written just now? */
int ta__peak_is_being_written(void);
/* What the list says of a leaf: more than 0, and the leaf must keep its meaning. */
uint64_t ta__peak_of(uint32_t leaf);

/* The list is of the past: with the world stopped. */
void ta__peak_clear(void);
void ta__peak_fit(uint32_t had, uint32_t max); /* the same: the list has no more room than for `max` leaves */
void ta__peak_after_fork(void);
size_t ta__peak_memory(void);

/* What a reader of this process's memory is told: base/facts.h. */
extern struct ta__fact ta__facts_peak[];

#endif
