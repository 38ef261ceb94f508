/* report.c: a report as one page: the frame of the page, which cmake has put together, with the data in the middle. See
 * report.h and docs/report.md. */
#include "analysis/report/report.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/report/columns.h"
#include "analysis/report/page.h"
#include "analysis/text_output.h"

enum { PAGE_MOST = 2000000 };

static int open_report(struct ta__report *report, const struct ta_report_file *files, size_t count,
                       const struct ta_report_options *options, size_t size)
{
    *report = (struct ta__report){.recording_count = count};
    if (options != NULL)
        memcpy(&report->options, options, size < sizeof report->options ? size : sizeof report->options);
    if (count == 0 || files == NULL)
        return ta__fail("a report needs a recording");
    if (report->options.compares && count != 2)
        return ta__fail("two recordings can be compared: there are %zu", count);
    report->recordings = ta__new_array(count, sizeof *report->recordings);
    if (report->recordings == NULL)
        return -1;
    for (size_t i = 0; i < count; i++)
        report->recordings[i].file = &files[i];
    return ta__report_tables_open(&report->tables);
}

static void close_report(struct ta__report *report)
{
    for (size_t i = 0; report->recordings != NULL && i < report->recording_count; i++)
        ta__text_free(&report->recordings[i].facts);
    ta__report_tables_close(&report->tables);
    ta_own_rules_free(report->rules);
    free(report->recordings);
    free(report->points);
    free(report->reasons);
    free(report->changes);
}

static void add_title(struct ta__output *output, const struct ta__report *report)
{
    const char *title = report->options.title != NULL ? report->options.title : report->recordings[0].file->path;
    for (; *title != '\0'; title++)
        if (*title == '<' || *title == '&')
            ta__output_add_string(output, *title == '<' ? "&lt;" : "&amp;");
        else
            ta__output_add(output, title, 1);
}

static int write_page(const struct ta__report *report, const struct ta__text *data, ta_write_function write, void *user)
{
    struct ta__output output = {.write = write, .user = user};
    ta__output_add(&output, (const char *)ta__page_head, ta__page_head_size);
    add_title(&output, report);
    ta__output_add(&output, (const char *)ta__page_middle, ta__page_middle_size);
    ta__output_add_base64(&output, data->bytes, data->length);
    ta__output_add(&output, (const char *)ta__page_end, ta__page_end_size);
    return ta__output_finish(&output);
}

int ta_report_write(const struct ta_report_file *files, size_t count, const struct ta_report_options *options,
                    size_t size, ta_write_function write, void *user)
{
    struct ta__report report;
    struct ta__text data = {0};
    size_t frame = ta__page_head_size + ta__page_middle_size + ta__page_end_size;
    int status = open_report(&report, files, count, options, size);
    size_t most = report.options.most_bytes > 0 ? report.options.most_bytes : PAGE_MOST;
    if (status == 0)
        status = ta__report_read(&report);
    if (status == 0)
        status = ta__report_growth(&report);
    if (status == 0)
        status = ta__report_encode(&data, &report, most > frame ? (most - frame) / 4 * 3 : 0);
    if (status == 0)
        status = write_page(&report, &data, write, user);
    ta__text_free(&data);
    close_report(&report);
    return status;
}
