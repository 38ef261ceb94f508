/* report.h: a report under construction, as the files of this folder see it.
 *
 *     recordings ─ report_reading.c ─► tables, points, changes ─ report_encoding.c ─► columns ─ report.c ─► page
 *                  report_growth.c  ─► what the rows look like
 *                  report_facts.c, report_sources.c ─► JSON: what else is known, and the lines of the sources
 */
#ifndef TA_ANALYSIS_REPORT_REPORT_H
#define TA_ANALYSIS_REPORT_REPORT_H

#include "analysis/report/report_tables.h"
#include "tracealloc/export.h"

/* What a trace gained or lost from one point to the next. */
struct ta__report_change {
    uint32_t trace, point;
    int64_t size, count, allocated_bytes, allocated_blocks;
};

struct ta__report_recording {
    const struct ta_report_file *file;
    size_t first_point, point_count;
    struct ta__text facts; /* JSON */
};

struct ta__report {
    struct ta_report_options options;
    struct ta_own_rules *rules; /* shared by all recordings */
    struct ta__report_tables tables;
    struct ta__report_recording *recordings;
    size_t recording_count;
    struct ta_series_entry *points; /* of all recordings; reasons are numbers of texts */
    uint32_t *reasons;
    size_t point_count, point_capacity, reason_capacity;
    struct ta__report_change *changes;
    size_t change_count, change_capacity;
};

/* All of these: 0, or -1 with the error set. */

/* The rules of whose code is whose learn from every recording, then each is read. */
int ta__report_read(struct ta__report *report);
/* Names the rows' courses. */
int ta__report_growth(struct ta__report *report);
/* Appends {…} about a recording as of its last entry. */
int ta__report_facts(struct ta__text *json, struct ta_snapshot *snapshot);
/* Appends {"FILE": [[LINE, "TEXT"], …], …}: the lines around those that are rows, of the files that can be read. */
int ta__report_sources(struct ta__text *json, const struct ta__report *report, size_t most_bytes);
/* The whole data of the page, compressed, in at most `most_bytes` if fewer points of time can make it so. */
int ta__report_encode(struct ta__text *data, struct ta__report *report, size_t most_bytes);

#endif
