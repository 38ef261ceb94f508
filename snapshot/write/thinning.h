/* thinning.h: a series that runs for weeks stays within a size: of the older entries fewer and fewer stay, those of the
 * last minutes all.
 *
 * An entry that repeats everything (RESET) needs none before it, so a stretch of entries from one such to the next may go
 * but for its first. Writing them often enough is the writer's part (ta__writer_divide), and choosing is a pure function
 * here. A mark that somebody set is such an entry, and the last to go. What stays is copied, byte by byte but for its numbers, into a new file that takes the name of the old one: a
 * reader finds the one or the other, whole, and a writer that is killed meanwhile leaves the old one. */
#ifndef TA_SNAPSHOT_WRITE_THINNING_H
#define TA_SNAPSHOT_WRITE_THINNING_H

#include "snapshot/format/chunks.h"
#include "snapshot/write/write.h"

/* Which of `count` entries, the last of which ends at `end`, stay within `budget` bytes, if that can be: keep[i] = 1. The
 * first one and all since the last that repeats everything always stay. Answers the bytes. */
uint64_t ta__thinning_choose(const struct ta__index_row *rows, uint32_t count, uint64_t end, uint64_t budget,
                             uint8_t *keep);

/* The next entry repeats everything when enough was written since the last that did, for a file of `limit` bytes. */
void ta__writer_divide(struct ta__writer *writer, uint64_t limit);
/* The next entry is a mark, or none: it repeats everything and is the last to go. */
void ta__writer_set_mark(struct ta__writer *writer, int is_mark);
/* What a file needs at least, so that thinning can do something: a few entries that repeat everything. */
uint64_t ta__writer_least_limit(const struct ta__writer *writer);
/* For a file of `limit` bytes: how long what stays may be, when it is time to make it shorter; 0 = it is short enough. Tens
 * of thousands of entries are too many at any length, because the writer has a list of them. */
uint64_t ta__writer_thins_to(const struct ta__writer *writer, uint64_t limit);
/* What stays of a writer's file, in another one. */
struct ta__thinned {
    struct ta__sink sink;
    struct ta__buffer index;
};
/* Copies it into `to`, a new and empty file. 0, or -1 with errno. */
TA_NODISCARD int ta__thinned_copy(struct ta__thinned *thinned, const struct ta__writer *writer,
                                  const struct ta__sink *to, uint64_t budget);
/* That file is the writer's from here on; its former descriptor is the caller's to close. */
void ta__thinned_adopt(struct ta__thinned *thinned, struct ta__writer *writer);
void ta__thinned_drop(struct ta__thinned *thinned);

#endif
