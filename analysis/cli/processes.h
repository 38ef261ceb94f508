/* processes.h: processes as users name them: pidof and pgrep -f also list the one that watches a recorded program. */
#ifndef TA_ANALYSIS_CLI_PROCESSES_H
#define TA_ANALYSIS_CLI_PROCESSES_H

#include <sys/types.h>

/* The process itself; of one that watches a recorded program (snapshot/triggers/keeper.c) that program. */
pid_t cli_process_meant(pid_t process);
/* Operands: the number of a watching process becomes that of its program, or goes where that is named anyway. Answers how
 * many are left. */
int cli_processes_meant(char **operands, int count);

#endif
