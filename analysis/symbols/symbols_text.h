/* symbols_text.h: the strings of symbolising: interned tables, textual paths, demangling. Used in this folder alone. */
#ifndef TA_ANALYSIS_SYMBOLS_SYMBOLS_TEXT_H
#define TA_ANALYSIS_SYMBOLS_SYMBOLS_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/index.h"
#include "snapshot/format/view.h"

/* Each text once, under a number; 0 is "". Texts never move. When memory runs out `failed` is set and 0 answered. */
struct ta__text_table {
    struct ta__view_string *strings;
    uint32_t count, capacity;
    struct ta__index index;        /* of the strings */
    struct ta__text_block *blocks; /* where the bytes are */
    size_t block_used, block_size; /* of the first block */
    int failed;
};

void ta__text_table_create(struct ta__text_table *table);
void ta__text_table_destroy(struct ta__text_table *table);
uint32_t ta__text_intern(struct ta__text_table *table, const char *text, size_t length);
uint32_t ta__text_intern_z(struct ta__text_table *table, const char *text); /* NULL counts as "" */

/* directory (may be NULL) + path without ".", ".." and doubled slashes; no link is resolved. 0 when memory is short.
 * Leading ".." of a relative result stay. */
uint32_t ta__text_intern_path(struct ta__text_table *table, const char *directory, const char *path);

/* "libsqlite3.so.0+0x1c480": the last part of a path that is in the table, and an address of that file. */
uint32_t ta__text_intern_place(struct ta__text_table *table, uint32_t path, uint64_t address);

/* C++ (Itanium) and Rust (both manglings). A name that is not mangled, or that would take unreasonable space, stays as
 * it is. Needs a large stack: call it on a worker of the symbolizer only. */
uint32_t ta__text_intern_demangled(struct ta__text_table *table, const char *raw);

#endif
