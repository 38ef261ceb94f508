/* terminal.h: what depends on who reads: width, colours, bars, progress. Piped output is plain and never changes. */
#ifndef TA_ANALYSIS_CLI_TERMINAL_H
#define TA_ANALYSIS_CLI_TERMINAL_H

#include <stddef.h>

/* "auto", "always" or "never"; 0, or -1 for another word. Always also means bars and a width, as on a terminal. */
int cli_set_color(const char *when);
int cli_on_terminal(void);
/* Columns of standard output; SIZE_MAX where it is no terminal. */
size_t cli_width(void);

enum cli_style { CLI_PLAIN, CLI_BOLD, CLI_DIM, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_CYAN };
/* The sequence that begins a style, or "" where there are no colours; CLI_PLAIN ends one. */
const char *cli_style(enum cli_style style);

/* `share` (0 … 1) as a bar of at most `cells` columns followed by blanks; only where cli_has_bars. */
int cli_has_bars(void);
void cli_print_bar(double share, size_t cells);

/* `count` values as one character each, the largest one full: "▁▂█" on a terminal of UTF-8, else letters. */
void cli_graph_text(const double *values, size_t count, char *text, size_t size);

/* A path as a person reads it: from the project's root on; on terminals also from the home folder on. `text` of `size`
 * bytes receives it. */
void cli_short_path(const char *path, char *text, size_t size);
/* Columns that the text takes: one per code point. */
size_t cli_text_width(const char *text);
/* Prints at most `columns`; what does not fit is cut at the left ("…/net/http.c:12") or at the right. */
enum cli_cut { CLI_CUT_LEFT, CLI_CUT_RIGHT };
void cli_print_fitted(const char *text, size_t columns, enum cli_cut cut);
/* Prints functions: where they do not fit they lose their template arguments first, then namespaces, then what is at the
 * right. */
void cli_print_name(const char *name, size_t columns);
/* Whole lines: those that do not fit go on below, indented, from a comma or two blanks outside of all brackets on. What
 * cannot be broken is printed all the same. */
void cli_print_wrapped(const char *text);
/* "std::map<string, vector<…>>::find" as "std::map<…>::find", and as "map::find". */
char *cli_without_arguments(const char *name);
char *cli_class_and_function(const char *name);
/* Prints a path: where it does not fit it loses folders at the left, never its last part. Answers the columns that are
 * left. */
size_t cli_print_path(const char *path, size_t columns);

/* After a second without cli_progress_end a line with the label and how far it is appears on standard error, if that is
 * a terminal. cli_progress_set fits the library's progress callbacks. What begins inside of
 * another shows its own label until its end. On one thread; nothing is printed on standard output in between. */
void cli_progress_begin(const char *label);
/* The same for what is written to standard output, unless that is a terminal too. To be ended like the other. */
void cli_progress_begin_output(void);
void cli_progress_set(void *user, size_t done, size_t total);
void cli_progress_end(void);
/* From a signal handler: takes the line away. */
void cli_progress_wipe(void);

#endif
