/* markup.h: texts inside of formats that other programs read; control characters become question marks. */
#ifndef TA_ANALYSIS_CLI_MARKUP_H
#define TA_ANALYSIS_CLI_MARKUP_H

/* Between tags, or between the quotes of an attribute. */
void cli_print_xml(const char *text);
/* In a command of GitHub's workflows (::error …). */
void cli_print_workflow(const char *text);

#endif
