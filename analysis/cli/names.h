/* names.h: one copy of each text, so that equal texts have equal addresses. */
#ifndef TA_ANALYSIS_CLI_NAMES_H
#define TA_ANALYSIS_CLI_NAMES_H

struct cli_names;

struct cli_names *cli_names_new(void);
/* `source` must stay where it is and what it is, until the sources are forgotten. */
const char *cli_intern(struct cli_names *names, const char *source);
/* The same for a text that goes away. */
const char *cli_intern_text(struct cli_names *names, const char *text);
/* Before another snapshot: its pointers may be the same with other texts behind them. What was interned stays. */
void cli_names_forget_sources(struct cli_names *names);
void cli_names_free(struct cli_names *names);

#endif
