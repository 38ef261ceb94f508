/* reclaim.h: contexts and leaves that hold nothing any more are used again. See reclaim.c. */
#ifndef TA_TRACE_RECLAIM_H
#define TA_TRACE_RECLAIM_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that the tables may use before what holds nothing is looked for; 0: the larger of 32 MiB and a twentieth of
 * what lives. */
void ta__reclaim_set_limit(size_t bytes);

/* A little of the work, if there is any. By a thread that has just met a new stack: under the lock of the tables,
 * inside an operation. */
void ta__reclaim_step(void);

/* What was begun is dropped: the tables are other ones. The same lock, the world stopped. */
void ta__reclaim_abandon(void);

/* Which round of "has everybody been outside?" is asked: threads answer with ta__thread.quiet. */
extern uint32_t ta__reclaim_round;

#endif
