/* small_file.h: the beginning of a small file as a text, most often one of /proc. No malloc, no stdio, errno kept. */
#ifndef TA_BASE_SMALL_FILE_H
#define TA_BASE_SMALL_FILE_H

#include <stddef.h>
#include <stdint.h>

/* As much as there is room for, and a final zero. The length; 0, and "", where it cannot be read. */
size_t ta__small_file(const char *path, char *text, size_t room);
/* The same for /proc/PROCESS/NAME. */
size_t ta__small_file_of(int64_t process, const char *name, char *text, size_t room);
/* Of another process or of the calling one: what a link of /proc says. */
size_t ta__link_text(const char *path, char *text, size_t room);

/* The number at `text`, behind blanks; 0 when there is none. */
uint64_t ta__decimal_at(const char *text);
/* What stands behind `label`, which the text need not have: NULL then. */
const char *ta__behind(const char *text, const char *label);

#endif
