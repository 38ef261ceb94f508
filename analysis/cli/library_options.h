/* library_options.h: whether the runtime library takes what its variable shall say. */
#ifndef TA_ANALYSIS_CLI_LIBRARY_OPTIONS_H
#define TA_ANALYSIS_CLI_LIBRARY_OPTIONS_H

/* NULL when it does; else the first it does not take: "interval=-1: expected seconds, …". For free(). */
char *cli_library_refuses(const char *library, const char *options);

#endif
