/* end_words.h: how a process ended and what it had besides malloc, in words: for the end of run, info and the head of
 * listings. All from the metadata of an entry (docs/format.md). */
#ifndef TA_ANALYSIS_CLI_END_WORDS_H
#define TA_ANALYSIS_CLI_END_WORDS_H

#include "analysis/cli/cli.h"

/* "SIGSEGV: read of 0x10: nothing is there, in show < main (list.c:12)"; NULL when no fault ended it. For free(). */
char *cli_crash_text(struct ta_snapshot *snapshot);
/* "5000 bytes into a live block of 67108864 bytes, asked for in main (list.c:3)"; NULL when the address belongs to none. */
char *cli_crash_block_text(struct ta_snapshot *snapshot);
/* "1 free of an address that is no block was ignored: 0x10, in main (list.c:3)"; NULL when there was none. For free(). */
char *cli_foreign_text(struct ta_snapshot *snapshot);
/* A program that gave back nearly all of it has its answer at the peak. */
int cli_is_nearly_gone(uint64_t live, uint64_t peak);
/* Where the rest of the process is, when malloc had less than half of it: "the process had 89.0 MiB at most: 60.0 MiB mapped
 * by new_arena (pool.c:12), 8 MiB libraries, …"; NULL else. For free(). */
char *cli_memory_text(struct ta_snapshot *snapshot);
/* How to see what is in a pool that took it, such as Python's; NULL when none is known. */
const char *cli_memory_hint(struct ta_snapshot *snapshot);
/* That nothing was ever asked for, in a recording of a program; NULL else. */
const char *cli_unused_text(struct ta_snapshot *snapshot);
/* The value of crash.frame.N and the like as places: "list.c:12 show (/usr/bin/list+0x12ca)". NULL when `key` is no
 * such key. For free(). */
char *cli_place_of_key(struct ta_snapshot *snapshot, const char *key, const char *value);

#endif
