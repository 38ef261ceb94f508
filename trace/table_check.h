/* table_check.h: walks over the tables of contexts and leaves, for the debug-full build (base/assert.h). */
#ifndef TA_TRACE_TABLE_CHECK_H
#define TA_TRACE_TABLE_CHECK_H

/* With the world stopped. Ends the process when an invariant does not hold. */
void ta__check_tables(void);

#endif
