/* run_rules.h: rules for a program that is about to run: compiled where they name source files. */
#ifndef TA_ANALYSIS_CLI_RUN_RULES_H
#define TA_ANALYSIS_CLI_RUN_RULES_H

/* The file of rules to hand to the program: `rules` itself, or what was compiled from it for the program and for those of
 * its libraries that do not belong to the system. Absolute, to be freed; NULL after a message. */
char *cli_rules_for(const char *rules, const char *program);
/* A note of ta_rules_compile as a warning. */
void cli_rules_note(void *user, const char *object, const char *text);

#endif
