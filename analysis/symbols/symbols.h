/* symbols.h: from addresses to (file, line, function), inlined calls expanded.
 *
 * Between the loaded snapshot and everything that groups by file or line: the model hands over its modules and its
 * frames of kind ADDRESS, and gets back tables in the shape of view.h. Each address is looked up once, in parallel
 * where that pays; the answer does not depend on the number of threads.
 *
 * A module on disk is used only when its build id is the recorded one. What cannot be found falls back step by step:
 * no line → path of the module, line 0; no debug information → function from the symbol tables; no module →
 * "<unknown>". A function without a name is called after the place where it begins ("libfoo.so+0x1c480"). Nothing here
 * prints, and a debuginfod server is asked only when the environment variable DEBUGINFOD_URLS is set. */
#ifndef TA_ANALYSIS_SYMBOLS_SYMBOLS_H
#define TA_ANALYSIS_SYMBOLS_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "snapshot/format/view.h"

/* A module as recorded. The strings stay the caller's and must outlive the symbolizer. Whether it was unloaded makes no
 * difference: the file and the build id decide. */
struct ta__symbolizer_module {
    const char *path;
    const uint8_t *build_id;
    uint32_t build_id_length; /* 0 = not recorded: the file on disk is then used unverified */
    uint64_t load_base;       /* what the loader added to the addresses in the file */
};

struct ta__symbolizer_address {
    uint64_t address;
    uint32_t module; /* index + 1, 0 = in no module; TA__SYMBOLIZER_SKIP = leave out: an empty range */
    int interrupted; /* not a return address: looked up as it is instead of one byte before */
};

#define TA__SYMBOLIZER_SKIP UINT32_MAX

struct ta__symbolizer_options {
    unsigned threads;       /* 0 = as many as there are processors for us, at most 8 */
    uint64_t slice_bytes;   /* debug information that pays for one more reader of a module; 0 = 8 MiB */
    const char *debug_path; /* as libdwfl's debuginfo path; NULL = ":.debug:/usr/lib/debug" */
    /* Called on the thread of ta__symbolizer_run now and then, and once at the end with done == total. */
    void (*progress)(void *context, size_t done, size_t total);
    void *progress_context;
};

/* What became of a module. */
enum ta__symbolizer_state {
    TA__MODULE_UNUSED,     /* no address was in it */
    TA__MODULE_LINES,      /* lines from DWARF */
    TA__MODULE_NAMES_ONLY, /* no debug information: symbol tables alone */
    TA__MODULE_ABSENT,     /* the file is gone or unreadable */
    TA__MODULE_DIFFERS,    /* there is a file, but with another build id */
    TA__MODULE_UNREADABLE, /* not an ELF file that libdw accepts */
};

/* The answer; it belongs to the symbolizer and holds until its next run. */
struct ta__symbols {
    const struct ta__view_string *strings; /* index 0 is "" */
    const struct ta__view_symbol *symbols;
    const struct ta__view_symbol_range *ranges; /* one per address, empty only for those to skip */
    uint32_t string_count, symbol_count;
};

struct ta__symbolizer;

/* NULL when there is no memory. `options` may be NULL. */
TA_NODISCARD struct ta__symbolizer *ta__symbolizer_open(const struct ta__symbolizer_options *options,
                                                        const struct ta__symbolizer_module *modules,
                                                        uint32_t module_count);
void ta__symbolizer_close(struct ta__symbolizer *symbolizer);

/* What can be done about ENOMEM, for the end of a message. */
#define TA__MORE_MEMORY ": raise the limit of memory (ulimit -v, ulimit -d), or try where there is more"

/* 0, ENOMEM, or EINVAL for an address whose module is out of range. Missing debug information is no error. */
TA_NODISCARD int ta__symbolizer_run(struct ta__symbolizer *symbolizer, const struct ta__symbolizer_address *addresses,
                                    uint32_t count, struct ta__symbols *symbols);

/* Opens a symbolizer for the modules of a view and asks it for all its frames of kind ADDRESS: `symbols` then has one
 * range per frame. All frames count as return addresses. Close *symbolizer also after an error; `view` must outlive it.
 */
TA_NODISCARD int ta__symbolize_view(const struct ta__view *view, const struct ta__symbolizer_options *options,
                                    struct ta__symbolizer **symbolizer, struct ta__symbols *symbols);

/* About module `index` after a run: its state and, in words, why it is not LINES ("" otherwise). */
enum ta__symbolizer_state ta__symbolizer_module_state(const struct ta__symbolizer *symbolizer, uint32_t index,
                                                      const char **reason);

#endif
