/* project.h: the project that the reader stands in: where it begins, and what its people say about whose code is whose.
 *
 * A project begins at the nearest folder above the working directory that has a file .tracealloc, else at the nearest
 * that is kept by a version control system, else at the working directory itself. */
#ifndef TA_ANALYSIS_CLI_PROJECT_H
#define TA_ANALYSIS_CLI_PROJECT_H

#include "analysis/cli/cli.h"

/* Without a slash at the end; "" where the working directory is not known. */
const char *cli_project_root(void);

/* The rules of the user (~/.tracealloc), of the project (.tracealloc), and of --skip, --own and --no-skip where there
 * are options: of two that fit the later one decides. *rules is NULL where there are none. CLI_OK, or CLI_TROUBLE after a message. */
int cli_project_rules(const struct cli_options *options, struct ta_own_rules **rules);
/* The same, given to snapshots; those that are to be compared (`other` may be NULL) share what they learn. */
int cli_use_rules(const struct cli_options *options, struct ta_snapshot *snapshot, struct ta_snapshot *other);

#endif
