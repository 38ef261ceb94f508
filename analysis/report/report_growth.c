/* report_growth.c: what the courses of a report's rows look like. Of a family a row has the course of the process in which
 * it grew most. See report.h. */
#include "analysis/report/report.h"

#include <string.h>

static int take_row(struct ta__report *report, const struct ta_series_row *told)
{
    uint32_t number;
    if (ta__report_row(&report->tables, &told->frame, &number) != 0)
        return -1;
    struct ta__report_row *row = &report->tables.rows[number];
    if (row->growth != TA_GROWTH_UNKNOWN && told->grown_size <= row->grown_size)
        return 0;
    row->growth = told->growth;
    row->grown_size = told->grown_size;
    row->certainty = told->certainty;
    row->bytes_per_minute = told->bytes_per_minute;
    row->bytes_per_call = told->bytes_per_call;
    return ta__report_text(&report->tables, told->reason, strlen(told->reason), &row->reason);
}

static int take_rows(struct ta__report *report, const char *path)
{
    struct ta_series *series = ta_series_load(path, "own", report->rules);
    int status = series == NULL ? -1 : 0;
    for (size_t i = 0; i < ta_series_row_count(series) && status == 0; i++) {
        struct ta_series_row row;
        ta_series_get_row(series, i, &row, sizeof row);
        status = take_row(report, &row);
    }
    ta_series_free(series);
    return status;
}

int ta__report_growth(struct ta__report *report)
{
    int status = 0;
    for (size_t i = 0; i < report->recording_count && status == 0; i++)
        if (report->recordings[i].point_count > 1)
            status = take_rows(report, report->recordings[i].file->path);
    return status;
}
