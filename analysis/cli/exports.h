/* exports.h: the formats of other programs that export.c offers; one function per file. */
#ifndef TA_ANALYSIS_CLI_EXPORTS_H
#define TA_ANALYSIS_CLI_EXPORTS_H

#include <stdio.h>

#include <tracealloc/analysis.h>

/* 0, or -1 when the snapshot cannot be read or not everything could be written. */
int cli_export_pprof(struct ta_snapshot *snapshot, FILE *file);
int cli_export_folded(struct ta_snapshot *snapshot, enum ta_order order, FILE *file);
int cli_export_speedscope(struct ta_snapshot *snapshot, enum ta_order order, FILE *file);
int cli_export_csv(struct ta_snapshot *snapshot, FILE *file);
int cli_export_json_lines(struct ta_snapshot *snapshot, FILE *file);

#endif
