/* symbols_text.c: interning, textual paths and demangling for symbols*.c.
 *
 * Names come from files that may be damaged or hostile: a mangled name of a hundred bytes can ask for gigabytes of
 * text. Demangling therefore writes into a bounded buffer and is left by longjmp when that is full. */
#include "analysis/symbols/symbols_text.h"

#include <inttypes.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define BLOCK_BYTES         (64u << 10)
#define DEMANGLED_MAX       (64u << 10)
#define MANGLED_MAX         (16u << 10)
#define DEEP_MANGLED_LENGTH 1000 /* libiberty's own limit on recursion refuses most names from about here */

struct ta__text_block {
    struct ta__text_block *next;
    char bytes[];
};

void ta__text_table_create(struct ta__text_table *table)
{
    memset(table, 0, sizeof *table);
    ta__text_intern(table, "", 0);
}

void ta__text_table_destroy(struct ta__text_table *table)
{
    while (table->blocks != NULL) {
        struct ta__text_block *next = table->blocks->next;
        free(table->blocks);
        table->blocks = next;
    }
    free(table->strings);
    ta__index_free(&table->index);
    memset(table, 0, sizeof *table);
}

static uint64_t hash_of(const void *table, uint32_t row)
{
    const struct ta__view_string *string = &((const struct ta__text_table *)table)->strings[row];
    return ta__hash_bytes(string->text, string->length);
}

static int is_same(const void *table, uint32_t row, const void *wanted)
{
    const struct ta__view_string *string = &((const struct ta__text_table *)table)->strings[row], *other = wanted;
    return string->length == other->length && memcmp(string->text, other->text, string->length) == 0;
}

/* Room for one string more. */
static int reserve(struct ta__text_table *table)
{
    if (table->count == table->capacity) {
        uint32_t capacity = table->capacity > 0 ? table->capacity * 2 : 256;
        struct ta__view_string *strings = realloc(table->strings, capacity * sizeof *strings);
        if (strings == NULL)
            return -1;
        table->strings = strings;
        table->capacity = capacity;
    }
    return ta__index_reserve(&table->index, table->count, hash_of, table);
}

static const char *keep(struct ta__text_table *table, const char *text, size_t length)
{
    if (table->blocks == NULL || table->block_size - table->block_used <= length) {
        size_t size = length < BLOCK_BYTES ? BLOCK_BYTES : length + 1;
        struct ta__text_block *block = malloc(sizeof *block + size);
        if (block == NULL)
            return NULL;
        block->next = table->blocks;
        table->blocks = block;
        table->block_used = 0;
        table->block_size = size;
    }
    char *kept = table->blocks->bytes + table->block_used;
    memcpy(kept, text, length);
    kept[length] = '\0';
    table->block_used += length + 1;
    return kept;
}

uint32_t ta__text_intern(struct ta__text_table *table, const char *text, size_t length)
{
    if (length == 0 && table->count > 0)
        return 0;
    if (reserve(table) != 0) {
        table->failed = 1;
        return 0;
    }
    struct ta__view_string string = {.text = text, .length = length};
    uint32_t *slot = ta__index_find(&table->index, ta__hash_bytes(text, length), is_same, table, &string);
    if (*slot == 0) {
        string.text = keep(table, text, length);
        if (string.text == NULL) {
            table->failed = 1;
            return 0;
        }
        table->strings[table->count++] = string;
        *slot = table->count;
    }
    return *slot - 1;
}

uint32_t ta__text_intern_z(struct ta__text_table *table, const char *text)
{
    return text != NULL ? ta__text_intern(table, text, strlen(text)) : 0;
}

uint32_t ta__text_intern_place(struct ta__text_table *table, uint32_t path, uint64_t address)
{
    const char *slash = strrchr(table->strings[path].text, '/');
    const char *base = slash != NULL ? slash + 1 : table->strings[path].text;
    char text[300];
    int length = snprintf(text, sizeof text, "%.*s%s0x%" PRIx64, 255, base, *base != '\0' ? "+" : "", address);
    return ta__text_intern(table, text, (size_t)length);
}

/* Appends the parts of `path` to out[0, length) and returns the new length; `root` bytes at the start are never taken
 * away again. */
static size_t append_parts(char *out, size_t length, size_t root, const char *path)
{
    while (*path != '\0') {
        size_t part = strcspn(path, "/");
        int is_here = part == 0 || (part == 1 && path[0] == '.');
        int is_up = part == 2 && path[0] == '.' && path[1] == '.';
        if (is_up) {
            size_t last = length;
            while (last > root && out[last - 1] != '/')
                last--;
            int last_is_up = length - last == 2 && out[last] == '.' && out[last + 1] == '.';
            if (length > root && !last_is_up)
                length = last > root ? last - 1 : root;
            else if (root == 0)
                is_up = 0; /* nothing to go up from: stays as text */
        }
        if (!is_here && !is_up) {
            if (length > root)
                out[length++] = '/';
            memcpy(out + length, path, part);
            length += part;
        }
        path += part;
        path += *path == '/';
    }
    return length;
}

/* libdw puts the first folder of the line table before the names of its files: the unit's own, which is relative where
 * the build was told to forget its place (glibc's "./libio"). Such a name is not joined a second time. */
static int is_joined_already(const char *directory, const char *path)
{
    size_t length = strlen(directory);
    return directory[0] != '/' && length > 0 && strncmp(path, directory, length) == 0 && path[length] == '/';
}

uint32_t ta__text_intern_path(struct ta__text_table *table, const char *directory, const char *path)
{
    int joined = path[0] != '/' && directory != NULL && !is_joined_already(directory, path);
    size_t room = strlen(path) + (joined ? strlen(directory) : 0) + 3;
    char *out = malloc(room);
    if (out == NULL) {
        table->failed = 1;
        return 0;
    }
    size_t root = (joined ? directory[0] : path[0]) == '/';
    size_t length = root;
    out[0] = '/';
    if (joined)
        length = append_parts(out, length, root, directory);
    length = append_parts(out, length, root, path);
    if (length == 0)
        out[length++] = '.';
    uint32_t id = ta__text_intern(table, out, length);
    free(out);
    return id;
}

struct demangling {
    jmp_buf full;
    size_t length;
    char text[DEMANGLED_MAX];
};

static void demangled_piece(const char *piece, size_t length, void *context)
{
    struct demangling *demangling = context;
    if (length > sizeof demangling->text - demangling->length)
        longjmp(demangling->full, 1);
    memcpy(demangling->text + demangling->length, piece, length);
    demangling->length += length;
}

/* 1 when `demangling` holds the readable name. In a function of its own so that no local outlives the jump. */
static __attribute__((noinline)) int demangle(struct demangling *demangling, const char *raw, int options)
{
    if (setjmp(demangling->full) != 0)
        return 0;
    demangling->length = 0;
    if (rust_demangle_callback(raw, options, demangled_piece, demangling))
        return demangling->length > 0;
    demangling->length = 0;
    return cplus_demangle_v3_callback(raw, options, demangled_piece, demangling) && demangling->length > 0;
}

uint32_t ta__text_intern_demangled(struct ta__text_table *table, const char *raw)
{
    size_t length = strlen(raw);
    int mangled = raw[0] == '_' && (raw[1] == 'Z' || raw[1] == 'R');
    if (!mangled || length > MANGLED_MAX)
        return ta__text_intern(table, raw, length);

    struct demangling demangling;
    int options = DMGL_PARAMS | DMGL_ANSI | (length >= DEEP_MANGLED_LENGTH ? DMGL_NO_RECURSE_LIMIT : 0);
    if (!demangle(&demangling, raw, options))
        return ta__text_intern(table, raw, length);
    return ta__text_intern(table, demangling.text, demangling.length);
}
