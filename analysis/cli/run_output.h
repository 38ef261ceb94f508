/* run_output.h: where tracealloc run lets the program record: the name is looked at before anything is started. */
#ifndef TA_ANALYSIS_CLI_RUN_OUTPUT_H
#define TA_ANALYSIS_CLI_RUN_OUTPUT_H

/* The pattern for the runtime, an absolute path; of --output, or named after the program where `given` is NULL. For free(),
 * NULL after a message: no recording could be kept there. */
char *cli_run_output(const char *given, const char *program);
/* Recordings written to it are read at its other end. */
int cli_run_output_is_pipe(const char *pattern);
/* Whether a folder of that name has room for the recordings of further processes. */
int cli_run_output_fits_folder(const char *folder);

#endif
