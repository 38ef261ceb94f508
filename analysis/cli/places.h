/* places.h: how a frame is written for people: the place first and never cut, names without what only compilers need. */
#ifndef TA_ANALYSIS_CLI_PLACES_H
#define TA_ANALYSIS_CLI_PLACES_H

#include <stddef.h>

#include <tracealloc/analysis.h>

struct cli_table;

/* --full-names: names and paths as they are. */
void cli_places_set_full(int is_full);
/* How much of a process's command is what it was called by. */
int cli_called_length(const char *command);
/* From now on this program's executable is called what it was called by. */
void cli_places_set_program(struct ta_snapshot *snapshot);

/* "FILE:LINE" with the path from the project's root, or what stands for it where the line is not known: the name of the
 * module. */
void cli_place_text(const struct ta_frame *frame, char *text, size_t size);
/* A function's name, short unless --full-names was given; "" when it has none. For free(). */
char *cli_function_name(const char *function);
/* The function, unless the place says it already ("libsqlite3.so.0+0x1c480"). For free(). */
char *cli_frame_name(const struct ta_frame *frame);

/* Whether it is called after the place where it begins. */
int cli_frame_is_unnamed(const struct ta_frame *frame);

/* Whether it is the library's own, which stands in for malloc, free and operator new. */
int cli_frame_is_allocator(const struct ta_frame *frame);

/* The source line of a frame without surrounding blanks, or NULL; for free(). */
char *cli_source_line(const struct ta_frame *frame);

/* Notes below the last row for the frames, most recent first: recursion folded, without what starts programs. The most
 * recent one stands in the row itself and is left out, unless it is recursion. */
void cli_note_stack(struct cli_table *table, struct ta_traceback traceback);
/* The whole stack in one field of CSV or JSON: "FILE:LINE FUNCTION;…", most recent first. For free(). */
char *cli_stack_text(struct ta_traceback traceback);

#endif
