/* sample.h: the sampled mode — about one block in so many bytes is traced and stands for the others.
 *
 * Samples fall on the stream of allocated bytes as a Poisson process with one point in `sample_bytes` on average: a
 * block of s bytes is traced with probability p(s) = 1 - exp(-s / sample_bytes). It then counts 1/p(s) blocks and
 * s/p(s) bytes, which makes every sum an unbiased estimate of what full tracing would show. The weight is a function of
 * the size alone, so that its free takes out exactly what its allocation put in. */
#ifndef TA_TRACE_SAMPLE_H
#define TA_TRACE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "trace/thread_state.h"

/* Does a sample point fall into this allocation of the thread? */
int ta__sample_this(struct ta__thread *self, size_t size);

/* The trace of a block begins and ends, in any mode: in sampled mode it counts for all those like it that were not
 * sampled. Blocks are then counted in units of 1/65536, which ta__counters_fold takes out again: a block that was
 * sampled with probability 2/3 counts one and a half. */
#define TA__SAMPLE_UNIT 65536u
void ta__count_block_in(struct ta__thread *self, uint32_t leaf, size_t size);
void ta__count_block_out(struct ta__thread *self, uint32_t leaf, size_t size);
/* What ta_track records counts once. */
void ta__count_tracked_in(struct ta__thread *self, uint32_t leaf, size_t size);
void ta__count_tracked_out(struct ta__thread *self, uint32_t leaf, size_t size);

/* How many blocks a sampled block of this size stands for, in units. */
uint64_t ta__sample_weight(size_t size, uint64_t sample_bytes);
/* Bytes until the next sample point; advances *random. */
int64_t ta__sample_interval(uint64_t *random, uint64_t sample_bytes);

#endif
