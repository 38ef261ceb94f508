/* page.h: the page that a report is, without its data: made of page/ by cmake/embed-page.cmake. */
#ifndef TA_ANALYSIS_REPORT_PAGE_H
#define TA_ANALYSIS_REPORT_PAGE_H

#include <stddef.h>

/* What comes before the title, between title and data, and behind the data. */
extern const unsigned char ta__page_head[], ta__page_middle[], ta__page_end[];
extern const size_t ta__page_head_size, ta__page_middle_size, ta__page_end_size;

#endif
