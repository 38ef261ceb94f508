/* process_facts.h: what the kernel knows of the process, as pairs of texts that travel with an entry (METADATA).
 *
 * Read from /proc/self, which in the keeper is the same memory, also after the program has ended. docs/format.md lists
 * the keys. */
#ifndef TA_SNAPSHOT_WRITE_PROCESS_FACTS_H
#define TA_SNAPSHOT_WRITE_PROCESS_FACTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "snapshot/write/write.h"

enum { TA__PAIRS_MOST = 192, TA__PAIRS_TEXT = 32768 };

struct ta__pairs {
    struct ta__fact_pair rows[TA__PAIRS_MOST];
    uint32_t count, used; /* used: bytes of `text` */
    char text[TA__PAIRS_TEXT];
};

/* The value is copied; what does not fit is left out. The key must stay. */
void ta__pairs_add(struct ta__pairs *pairs, const char *key, const char *value);
/* The same under PREFIX and a number, such as "crash.frame.3"; here the key is copied, too. */
void ta__pairs_add_row(struct ta__pairs *pairs, const char *prefix, uint64_t row, const char *value);
void ta__pairs_add_number(struct ta__pairs *pairs, const char *key, uint64_t number);
/* The same with a key that is copied. */
void ta__pairs_add_keyed(struct ta__pairs *pairs, const char *key, uint64_t number);
/* The command line, with blanks between the words; "" when there is none. */
void ta__process_command(char *text, size_t room);
/* The calling process has begun: who its parent is now stays its parent, though that may end before it. */
void ta__process_begins(void);
/* Command line, memory by kind; page faults while the process `owner` is there. */
void ta__pairs_add_process(struct ta__pairs *pairs, pid_t owner);

#endif
