/* own_rules.c: see own_rules.h. */
#include "analysis/own/own_rules.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/own/function_name.h"
#include "analysis/support.h"
#include "base/atomics.h"

/* ---- what is nobody's own by itself; docs/own.md lists it for users ---- */

static const char *const skipped_functions[] = {
    /* the library of the language */
    "std::*",
    "__gnu_cxx::*",
    "__cxxabiv1::*",
    "boost::*",
    "tracealloc::*",
    "absl::*",
    "folly::*",
    "fmt::*",
    "nlohmann::*",
    "rapidjson::*",
    "Eigen::*",
    "google::protobuf::*",
    "operator new*",
    "*::operator new*",
    "__cxa_*",
    "*::allocate",
    "*::_M_allocate",
    "getline",
    "getdelim",
    "__getdelim",
    "fopen*",
    "fdopen*",
    "open_memstream",
    "opendir",
    "fdopendir",
    /* run-times that are linked in */
    "_IO_*",
    "__GI_*",
    "__libc_*",
    "_dl_*",
    "_start",
    "start_thread",
    "__clone*",
    "clone3",
    "_Unwind_*",
    "runtime.*",
    "_d_new*",
    "_d_array*",
    "__rust_*",
    "__rdl_*",
    "__rg_*",
    "ta_malloc*",
    "ta_domain_*alloc",
};

/* Of these, what programs are made of. */
static const char *const kept_functions[] = {"google::protobuf::compiler::*"};

/* Allocators by their usual names. */
static const char *const allocators[] = {
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "strdup",
    "strndup",
    "__strdup",
    "__strndup",
    "wcsdup",
    "asprintf",
    "vasprintf",
    "__asprintf*",
    "__vasprintf*",
    "x*alloc",
    "x*strdup",
    "x*strndup",
    "*malloc",
    "*calloc",
    "*realloc",
    "*zalloc",
    "*_malloc0",
    "*Malloc",
    "*Calloc",
    "*Realloc",
    "*malloc_usable",
    "*calloc_usable",
    "*realloc_usable",
    "*_memalign",
    "*_strdup",
    "*_strndup",
    "*_xstrdup",
    "*malloc_atomic*",
    "*malloc_uncollectable",
    "*malloc_unmanaged",
    "agalloc",
    "gv_*alloc",
    "pool_get_from_os*",
    "safe_*alloc",
    "safe*alloc",
    "checked_*alloc",
    "g_malloc*",
    "g_try_malloc*",
    "g_realloc*",
    "g_slice_alloc*",
    "PyMem_*",
    "_PyMem_*",
    "_PyObject_New*",
    "_PyObject_GC_New*",
    "PyType_GenericAlloc",
    "_emalloc*",
    "_ecalloc*",
    "_erealloc*",
    "_safe_*alloc*",
    "_estrdup",
    "_estrndup",
    "Perl_safesys*",
    "Perl_savepv*",
    "ruby_x*alloc*",
    "zmalloc_*",
    "zcalloc_*",
    "zrealloc_*",
    "ngx_alloc",
    "ngx_p*alloc",
    "ngx_array_create",
    "ngx_create_pool",
    "apr_p*alloc*",
    "_obstack_newchunk",
    "_obstack_begin*",
    "ggc_*alloc*",
    "palloc*",
    "repalloc*",
    "pstrdup",
    "pnstrdup",
    "MemoryContextAlloc*",
    "MemoryContextStrdup",
    "AllocSet*",
    "OPENSSL_*dup",
    "CRYPTO_*dup",
    "sqlite3DbMalloc*",
    "sqlite3DbRealloc*",
    "sqlite3DbStrDup",
    "sqlite3DbStrNDup",
    "luaM_*",
    "l_alloc",
};

static const char *const skipped_rust[] = {"alloc::*", "core::*",      "<alloc::*",    "<core::*",
                                           "<std::*",  "hashbrown::*", "<hashbrown::*"};

static const char *const skipped_files[] = {
    "/usr/include/*",   "/usr/local/include/*", "*/include/c++/*", "/usr/lib/gcc/*", "/usr/lib/llvm*",
    "*/libstdc++-v3/*", "*/glibc-2.*",          "/rustc/*",        "*/.rustup/*",    "*/libgcc/*",
};

/* Base names of modules: the C library, the loader, the run-times of compilers. */
static const char *const skipped_modules[] = {
    "libc.so*",   "libc-2.*",    "libc.musl*",     "ld-linux*",   "ld-musl*",     "ld-2.*",       "ld.so*",
    "ld64.so*",   "libm.so*",    "libpthread*",    "librt.so*",   "libdl.so*",    "libresolv*",   "libnss_*",
    "libstdc++*", "libc++*",     "libgcc_s*",      "libgomp*",    "libgfortran*", "libquadmath*", "libobjc*",
    "libgo.so*",  "libgphobos*", "libdruntime*",   "libatomic*",  "libitm*",      "libasan*",     "libtsan*",
    "libubsan*",  "liblsan*",    "libtracealloc*", "linux-vdso*", "[vdso]*",
};

/* Folders for what others wrote: its lines are one's own only where nothing better is known, so that a project that
 * itself lies in such a folder is not skipped as a whole. */
static const char *const vendored_files[] = {
    "*/third_party/*", "*/third-party/*", "*/thirdparty/*", "*/3rdparty/*", "*/3rd_party/*",       "*/vendor/*",
    "*/vendored/*",    "*/_deps/*",       "*/.conan/*",     "*/.conan2/*",  "*/vcpkg_installed/*",
};

static const char *const start_functions[] = {
    "_start", "__libc_start_*", "__libc_csu_init", "start_thread", "__clone*", "clone",
    "clone3", "_dl_*",          "call_init*",      "dl_main",      "_init",    "execute_native_thread_routine",
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* A pattern in which only '*' means something, byte by byte: enough for the lists above, and quick. */
static int glob(const char *pattern, const char *text, size_t length)
{
    const char *star = NULL;
    size_t at = 0, restart = 0;
    while (at < length) {
        if (*pattern == '*') {
            star = ++pattern;
            restart = at;
        } else if (*pattern == text[at]) {
            pattern++;
            at++;
        } else if (star != NULL) {
            pattern = star;
            at = ++restart;
        } else {
            return 0;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static int is_listed(const char *const *patterns, size_t count, const char *text, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (glob(patterns[i], text, length))
            return 1;
    return 0;
}

const char *ta__base_name(const struct ta__name *name)
{
    const char *slash = strrchr(name->text, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : name->text;
}

/* ---- rules as an object ---- */

struct ta_own_rules *ta_own_rules_create(void)
{
    struct ta_own_rules *rules = ta__new_array(1, sizeof *rules);
    if (rules != NULL)
        rules->references = 1;
    return rules;
}

struct ta_own_rules *ta__own_rules_share(struct ta_own_rules *rules)
{
    if (rules != NULL)
        ta__add_relaxed(&rules->references, 1);
    return rules;
}

void ta_own_rules_free(struct ta_own_rules *rules)
{
    /* acquire: the last one out sees what the others did before they left; pairs with their release. */
    if (rules == NULL || ta__add_acq_rel(&rules->references, (uint32_t)-1) != 1)
        return;
    for (size_t i = 0; i < rules->count; i++) {
        ta__pattern_free(&rules->items[i].pattern);
        free(rules->items[i].literal);
    }
    for (size_t i = 0; i < rules->wrapper_count; i++)
        free(rules->wrappers[i]);
    free(rules->items);
    free(rules->wrappers);
    free(rules);
}

static int add_rule(struct ta_own_rules *rules, int is_own, enum ta__rule_field field, const char *pattern,
                    size_t length)
{
    struct ta__own_rule rule = {.field = field, .is_own = is_own, .literal = strndup(pattern, length)};
    if (rule.literal == NULL)
        return ta__fail_memory();
    rule.literal_length = strcspn(rule.literal, "*?[");
    if (ta__pattern_compile(&rule.pattern, pattern, length) != 0 ||
        ta__grow(&rules->items, &rules->capacity, rules->count + 1, sizeof *rules->items) != 0) {
        ta__pattern_free(&rule.pattern);
        free(rule.literal);
        return -1;
    }
    rules->items[rules->count++] = rule;
    return 0;
}

/* One line of the rules' language: blank, "# …", "skip PATTERN" or "own PATTERN". */
static int add_line(struct ta_own_rules *rules, const char *line, size_t length, size_t number)
{
    static const struct {
        const char *word;
        enum ta__rule_field field;
    } fields[] = {{"function:", TA__RULE_FUNCTION}, {"file:", TA__RULE_FILE}, {"module:", TA__RULE_MODULE}};
    while (length > 0 && strchr(" \t\r", line[length - 1]) != NULL)
        length--;
    while (length > 0 && (*line == ' ' || *line == '\t'))
        line++, length--;
    if (length == 0 || *line == '#')
        return 0;
    int is_own = length > 4 && memcmp(line, "own ", 4) == 0, is_skip = length > 5 && memcmp(line, "skip ", 5) == 0;
    if (!is_own && !is_skip)
        return ta__fail("line %zu: expected 'skip PATTERN' or 'own PATTERN', not '%.*s'", number,
                        (int)(length < 60 ? length : 60), line);
    line += is_own ? 4 : 5;
    length -= is_own ? 4 : 5;
    while (length > 0 && (*line == ' ' || *line == '\t'))
        line++, length--;
    enum ta__rule_field field = TA__RULE_ANY;
    for (size_t i = 0; i < COUNT(fields); i++)
        if (length > strlen(fields[i].word) && memcmp(line, fields[i].word, strlen(fields[i].word)) == 0) {
            field = fields[i].field;
            line += strlen(fields[i].word);
            length -= strlen(fields[i].word);
            break;
        }
    return add_rule(rules, is_own, field, line, length);
}

int ta_own_rules_add(struct ta_own_rules *rules, const char *text)
{
    if (rules == NULL || text == NULL)
        return ta__fail("there are no rules: NULL");
    for (size_t number = 1;; number++) {
        size_t length = strcspn(text, "\n");
        if (add_line(rules, text, length, number) != 0)
            return -1;
        if (text[length] == '\0')
            return 0;
        text += length + 1;
    }
}

struct ta_own_rules *ta__own_rules_copy(const struct ta_own_rules *rules)
{
    struct ta_own_rules *copy = ta_own_rules_create();
    for (size_t i = 0; copy != NULL && rules != NULL && i < rules->count; i++) {
        const struct ta__own_rule *rule = &rules->items[i];
        if (add_rule(copy, rule->is_own, rule->field, rule->literal, strlen(rule->literal)) != 0) {
            ta_own_rules_free(copy);
            return NULL;
        }
    }
    return copy;
}

/* The place of a wrapper, or where it belongs. */
static size_t wrapper_place(const struct ta_own_rules *rules, const char *function, int *is_found)
{
    size_t low = 0, high = rules->wrapper_count;
    *is_found = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(rules->wrappers[middle], function);
        if (order == 0)
            *is_found = 1;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int ta__own_rules_add_wrapper(struct ta_own_rules *rules, const char *function)
{
    int is_found;
    size_t place = wrapper_place(rules, function, &is_found);
    if (is_found)
        return 0;
    char *copy = strdup(function);
    if (copy == NULL)
        return ta__fail_memory();
    if (ta__grow(&rules->wrappers, &rules->wrapper_capacity, rules->wrapper_count + 1, sizeof *rules->wrappers) != 0) {
        free(copy);
        return -1;
    }
    memmove(rules->wrappers + place + 1, rules->wrappers + place,
            (rules->wrapper_count++ - place) * sizeof *rules->wrappers);
    rules->wrappers[place] = copy;
    return 0;
}

/* ---- the judge ---- */

enum { NOT_ASKED = 0, ASKED = 1, SKIPPED = 2, RUST = 4, START = 8, LIBRARY = 16, PROGRAM = 32 };

struct verdict {
    uint32_t rule; /* the last one that matches + 1 */
    uint8_t flags;
};

struct ta__own_judge {
    const struct ta__model *model;
    const struct ta_own_rules *rules;            /* NULL = the built-in ones alone */
    struct verdict *functions, *files, *modules; /* by name */
    const char *program;
};

struct ta__own_judge *ta__own_judge_new(const struct ta__model *model, const struct ta_own_rules *rules)
{
    struct ta__own_judge *judge = ta__new_array(1, sizeof *judge);
    if (judge == NULL)
        return NULL;
    *judge = (struct ta__own_judge){.model = model,
                                    .rules = rules,
                                    .functions = ta__new_array(model->name_count, sizeof *judge->functions),
                                    .files = ta__new_array(model->name_count, sizeof *judge->files),
                                    .modules = ta__new_array(model->name_count, sizeof *judge->modules),
                                    .program = model->view->strings[model->view->program].text};
    if (judge->functions != NULL && judge->files != NULL && judge->modules != NULL)
        return judge;
    ta__own_judge_free(judge);
    return NULL;
}

void ta__own_judge_free(struct ta__own_judge *judge)
{
    if (judge == NULL)
        return;
    free(judge->functions);
    free(judge->files);
    free(judge->modules);
    free(judge);
}

static int rule_matches(const struct ta__own_rule *rule, const char *text, size_t length)
{
    return length >= rule->literal_length && memcmp(text, rule->literal, rule->literal_length) == 0 &&
           ta__pattern_matches(&rule->pattern, text, length);
}

/* A path matches a pattern as a whole, or from one of its components on: from "net/" on. */
static int rule_matches_path(const struct ta__own_rule *rule, const char *text, size_t length)
{
    for (const char *at = text;;) {
        if (rule_matches(rule, at, length - (size_t)(at - text)))
            return 1;
        at = memchr(at, '/', length - (size_t)(at - text));
        if (at == NULL || *rule->literal == '/')
            return 0;
        at++;
    }
}

static uint32_t last_rule(const struct ta__own_judge *judge, enum ta__rule_field field, const char *text, size_t length,
                          const char *other, size_t other_length)
{
    for (size_t i = judge->rules == NULL ? 0 : judge->rules->count; i > 0; i--) {
        const struct ta__own_rule *rule = &judge->rules->items[i - 1];
        if (rule->field != field && rule->field != TA__RULE_ANY)
            continue;
        int matches = field == TA__RULE_FUNCTION
                          ? rule_matches(rule, text, length) || rule_matches(rule, other, other_length)
                          : rule_matches_path(rule, text, length);
        if (matches)
            return (uint32_t)i;
    }
    return 0;
}

static const struct verdict *judge_function(struct ta__own_judge *judge, uint32_t name)
{
    struct verdict *verdict = &judge->functions[name];
    if (verdict->flags != NOT_ASKED)
        return verdict;
    verdict->flags = ASKED;
    struct ta__span whole = ta__function_name(judge->model->names[name].text, judge->model->names[name].length);
    struct ta__text plain = {0};
    ta__text_add(&plain, "", 0);
    ta__function_plain(&plain, whole);
    if (plain.failed || plain.length == 0) { /* without memory nothing is skipped: no sum is lost */
        ta__text_free(&plain);
        return verdict;
    }
    verdict->rule = last_rule(judge, TA__RULE_FUNCTION, whole.text, whole.length, plain.bytes, plain.length);
    int is_found = 0;
    if (judge->rules != NULL)
        wrapper_place(judge->rules, plain.bytes, &is_found);
    if (is_found || ta__is_allocator(plain.bytes) ||
        (is_listed(skipped_functions, COUNT(skipped_functions), plain.bytes, plain.length) &&
         !is_listed(kept_functions, COUNT(kept_functions), plain.bytes, plain.length)))
        verdict->flags |= SKIPPED;
    if (is_listed(skipped_rust, COUNT(skipped_rust), plain.bytes, plain.length))
        verdict->flags |= RUST;
    if (is_listed(start_functions, COUNT(start_functions), plain.bytes, plain.length))
        verdict->flags |= START;
    ta__text_free(&plain);
    return verdict;
}

static const struct verdict *judge_file(struct ta__own_judge *judge, uint32_t name)
{
    struct verdict *verdict = &judge->files[name];
    const struct ta__name *file = &judge->model->names[name];
    if (verdict->flags != NOT_ASKED)
        return verdict;
    verdict->flags = ASKED;
    verdict->rule = last_rule(judge, TA__RULE_FILE, file->text, file->length, NULL, 0);
    if (is_listed(skipped_files, COUNT(skipped_files), file->text, file->length))
        verdict->flags |= SKIPPED;
    else if (is_listed(vendored_files, COUNT(vendored_files), file->text, file->length))
        verdict->flags |= LIBRARY;
    return verdict;
}

/* Whether the loader finds it by its name alone: directly in a folder of libraries, not in one that a program made
 * for itself. */
static int is_in_library_folder(const char *path)
{
    static const char *const folders[] = {"/lib/*", "/lib64/*", "/usr/lib/*", "/usr/lib64/*", "/lib32/*"};
    const char *slash = strrchr(path, '/'), *name;
    for (size_t i = 0; slash != NULL && i < COUNT(folders); i++) {
        if (!glob(folders[i], path, strlen(path)))
            continue;
        name = path + strlen(folders[i]) - 1;
        if (slash < name)
            return 1;
        const char *next = strchr(name, '/');
        return next == slash && memmem(name, (size_t)(slash - name), "-linux-", 7) != NULL;
    }
    return 0;
}

static const struct verdict *judge_module(struct ta__own_judge *judge, uint32_t name)
{
    struct verdict *verdict = &judge->modules[name];
    const struct ta__name *module = &judge->model->names[name];
    if (verdict->flags != NOT_ASKED)
        return verdict;
    const char *base = ta__base_name(module);
    verdict->flags = ASKED;
    verdict->rule = last_rule(judge, TA__RULE_MODULE, module->text, module->length, NULL, 0);
    if (*judge->program != '\0' && strcmp(judge->program, module->text) == 0)
        verdict->flags |= PROGRAM; /* wherever it is installed */
    else if (is_listed(skipped_modules, COUNT(skipped_modules), base, strlen(base)))
        verdict->flags |= SKIPPED;
    else if (is_in_library_folder(module->text))
        verdict->flags |= LIBRARY;
    return verdict;
}

static int is_rust(const struct ta__name *raw)
{
    return (raw->length > 2 && raw->text[0] == '_' && raw->text[1] == 'R') ||
           (raw->length > 20 && memcmp(raw->text + raw->length - 20, "17h", 3) == 0);
}

/* The user's last rule about the frame's function, file or module; NULL when there is none. */
static const struct ta__own_rule *rule_of(struct ta__own_judge *judge, const struct ta__logical *logical)
{
    uint32_t best = 0, rule, file = judge->model->locations[logical->location].name;
    if (judge->rules == NULL || judge->rules->count == 0)
        return NULL;
    if (logical->function != 0 && (rule = judge_function(judge, logical->function)->rule) > best)
        best = rule;
    if (judge->model->locations[logical->location].line > 0 && (rule = judge_file(judge, file)->rule) > best)
        best = rule;
    if (logical->module != 0 && (rule = judge_module(judge, logical->module)->rule) > best)
        best = rule;
    return best == 0 ? NULL : &judge->rules->items[best - 1];
}

int ta__own_judge_insists(struct ta__own_judge *judge, const struct ta__logical *logical)
{
    const struct ta__own_rule *rule = rule_of(judge, logical);
    return rule != NULL && rule->is_own;
}

enum ta__frame_class ta__own_judge_frame(struct ta__own_judge *judge, const struct ta__logical *logical)
{
    const struct ta__own_rule *rule = rule_of(judge, logical);
    const struct ta__location *location = &judge->model->locations[logical->location];
    if (rule != NULL)
        return rule->is_own ? TA__FRAME_OWN : TA__FRAME_SKIPPED;
    const struct verdict *module = logical->module != 0 ? judge_module(judge, logical->module) : NULL;
    if (module != NULL && (module->flags & SKIPPED))
        return TA__FRAME_SKIPPED;
    if (logical->function != 0) {
        const struct verdict *function = judge_function(judge, logical->function);
        if ((function->flags & SKIPPED) ||
            ((function->flags & RUST) && is_rust(&judge->model->names[logical->raw_name])))
            return TA__FRAME_SKIPPED;
    }
    /* The path of a module is not that of a source. */
    unsigned flags =
        (location->line > 0 ? judge_file(judge, location->name)->flags : 0) | (module != NULL ? module->flags : 0);
    if ((flags & SKIPPED) || (location->line == 0 && module == NULL))
        return TA__FRAME_SKIPPED;
    return (flags & LIBRARY) ? TA__FRAME_LIBRARY : TA__FRAME_OWN;
}

int ta__is_start_function(const char *function)
{
    return is_listed(start_functions, COUNT(start_functions), function, strlen(function));
}

int ta__is_allocator(const char *function)
{
    return is_listed(allocators, COUNT(allocators), function, strlen(function));
}

int ta__own_judge_is_start(struct ta__own_judge *judge, const struct ta__logical *logical)
{
    if (logical->function != 0 && (judge_function(judge, logical->function)->flags & START))
        return 1;
    if (logical->module == 0)
        return 0;
    static const char *const loaders[] = {"ld-linux*", "ld-musl*", "ld-2.*", "ld.so*", "ld64.so*"};
    const char *base = ta__base_name(&judge->model->names[logical->module]);
    return is_listed(loaders, COUNT(loaders), base, strlen(base));
}
