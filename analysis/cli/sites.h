/* sites.h: what each function of one's own holds, under a name that survives other lines, machines and builds. */
#ifndef TA_ANALYSIS_CLI_SITES_H
#define TA_ANALYSIS_CLI_SITES_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/cli/cli.h"

enum cli_measure { CLI_LIVE, CLI_PEAK, CLI_CALLS, CLI_MEASURES };

struct cli_site {
    char *name;                    /* "src/parse.c parse_line", or a domain's name */
    char *file;                    /* of the largest row; "" in a baseline */
    uint32_t line;                 /* of the largest row; 0 = not known */
    int is_own;                    /* has a function or a line of its own: not a library's, nor nobody's */
    uint64_t values[CLI_MEASURES]; /* bytes, bytes at the peak, calls */
    uint64_t blocks, largest;
};

struct cli_sites {
    struct cli_site *rows; /* in the order of their names */
    size_t count, capacity;
    struct cli_site total;
};

/* Of a recording, by "own" or "domain"; or of a baseline, which is told by its first line. CLI_OK, or CLI_TROUBLE after
 * a message. */
int cli_sites_load(struct cli_sites *sites, const char *path, const char *key);
void cli_sites_free(struct cli_sites *sites);
/* The baseline: text that a repository can keep. */
void cli_sites_write(const struct cli_sites *sites, FILE *file);

#endif
