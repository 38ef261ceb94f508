/* rule_text.h: the language of rules that give blocks to domains (docs/domains.md), for those who follow the rules and
 * for those who compile and check them.
 *
 *      file      = { line }
 *      line      = [ rule | object | range ] [ "#" … ]
 *      rule      = number name word { word }
 *      word      = "module=" patterns | "function=" patterns | "file=" patterns | "innermost" | "outermost"
 *      patterns  = pattern { "," pattern }       pattern = text without blanks and commas, or any text in quotes
 *      object    = "@object" build-id path       what follows is of this file; written by tracealloc rules compile
 *      range     = "@range" rule start end       rule: which line of rules, from 1; addresses in the file, in hex
 *
 * A wrong file is named by line and column and nothing of it is taken. No malloc, no stdio: it may be read at the first
 * allocation, before main. */
#ifndef TA_BASE_RULE_TEXT_H
#define TA_BASE_RULE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/message.h"

enum { TA__PATTERNS_MAX = 16, TA__RULES_MAX = 1024, TA__RULE_BUILD_ID_MAX = 32 };

struct ta__rule {
    uint32_t number; /* of the domain */
    const char *name;
    uint32_t line;                             /* in the file */
    uint32_t outermost;                        /* once it matched, frames further in are not asked */
    const char *modules[TA__PATTERNS_MAX + 1]; /* patterns, NULL behind the last: any may match. None: all */
    const char *functions[TA__PATTERNS_MAX + 1];
    const char *files[TA__PATTERNS_MAX + 1];
};

/* Code of an object that a rule with functions or files is about. */
struct ta__rule_range {
    uint64_t start, end; /* addresses in the file */
    uint32_t rule;       /* index */
};

struct ta__rule_object {
    const char *path; /* where it was found; the build id is what counts */
    uint32_t first, count;
    uint32_t build_id_length;
    uint8_t build_id[TA__RULE_BUILD_ID_MAX];
};

struct ta__rule_text {
    const char *path;
    struct ta__rule *rules;
    struct ta__rule_object *objects;
    struct ta__rule_range *ranges; /* of each object together, ascending by start */
    uint32_t rule_count, object_count, range_count;
    int is_compiled; /* there are ranges, or there were no functions and files to find */
    int wants_files; /* a rule has file= */
    struct ta__message error;
    /* What the rules point into. */
    char *text;
    size_t length, text_bytes, rules_bytes, objects_bytes, ranges_bytes;
    /* Of the reader. */
    size_t at, line_start;
    uint32_t line_number;
};

/* Reads and checks the file. 1; or 0 with `error`, a line without its end. Either way close it. */
int ta__rule_text_read(struct ta__rule_text *rules, const char *path);
/* Frees everything that the rules point into. */
void ta__rule_text_close(struct ta__rule_text *rules);

/* Whether the text is as the pattern says: * stands for any characters, ? for one. */
int ta__rule_matches(const char *pattern, const char *text);
/* A pattern with a slash is matched against the whole path, any other against its last part. No patterns: yes. */
int ta__rule_names_module(const struct ta__rule *rule, const char *path);
/* A relative pattern is matched from any folder on: src/net/<star> takes /home/me/project/src/net/http.cpp. */
int ta__rule_names_file(const struct ta__rule *rule, const char *path);
/* By the name as the linker has it, and for C++ by what people call it: without parameters, or whole where the pattern
 * has a parenthesis. `room` bytes at `scratch` are for that; it needs a large stack (base/own_stack.h). */
int ta__rule_names_function(const struct ta__rule *rule, const char *name, char *scratch, size_t room);

#endif
