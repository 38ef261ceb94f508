/* end_words.c: see end_words.h. */
#include "analysis/cli/end_words.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/places.h"

/* ---- places ---- */

static void frame_text(const struct ta_frame *frame, char *text, size_t size)
{
    char place[PATH_MAX + 16];
    cli_place_text(frame, place, sizeof place);
    if (frame->lineno > 0)
        snprintf(text, size, "%s %s", place, frame->function);
    else
        snprintf(text, size, "%s", *frame->function != '\0' ? frame->function : place);
}

/* The stacks of an entry, each looked up once. */
static struct ta_places *places_of(struct ta_snapshot *snapshot, const char *prefix)
{
    static struct {
        const struct ta_snapshot *snapshot;
        char *prefix;
        struct ta_places *places;
    } last;
    if (last.snapshot == snapshot && last.prefix != NULL && strcmp(last.prefix, prefix) == 0)
        return last.places;
    ta_places_free(last.places);
    free(last.prefix);
    last.snapshot = snapshot;
    last.prefix = cli_text("%s", prefix);
    last.places = ta_snapshot_places(snapshot, prefix);
    return last.places;
}

char *cli_place_of_key(struct ta_snapshot *snapshot, const char *key, const char *value)
{
    const char *dot = strrchr(key, '.');
    struct ta_frame frame;
    size_t number, wanted;
    if (dot == NULL || dot - key < 6 || strncmp(dot - 6, ".frame", 6) != 0)
        return NULL;
    char *prefix = cli_text("%.*s", (int)(dot + 1 - key), key), *text = NULL;
    struct ta_places *places = places_of(snapshot, prefix);
    free(prefix);
    wanted = strtoul(dot + 1, NULL, 10);
    for (size_t i = 0; i < ta_places_count(places) && ta_places_get(places, i, &frame, &number) == 0; i++) {
        char one[PATH_MAX + 256];
        if (number != wanted)
            continue;
        frame_text(&frame, one, sizeof one);
        char *longer = text == NULL ? cli_text("%s", one) : cli_text("%s, inlined into %s", text, one);
        free(text);
        text = longer;
    }
    char *whole = text == NULL ? cli_text("%s", value) : cli_text("%s (%s)", text, value);
    free(text);
    return whole;
}

/* Whether the loader finds it by its name alone: a library of the system. */
static int is_of_system(const char *module)
{
    static const char *const folders[] = {"/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib64", "/lib"};
    const char *slash = strrchr(module, '/');
    for (size_t i = 0; slash != NULL && i < sizeof folders / sizeof *folders; i++) {
        size_t length = strlen(folders[i]);
        const char *rest = module + length;
        if (strncmp(module, folders[i], length) != 0 || *rest != '/')
            continue;
        const char *next = strchr(rest + 1, '/'), *machine = strstr(rest, "-linux-");
        return rest == slash || (next == slash && machine != NULL && machine < next);
    }
    return 0;
}

/* Of the program, or of a library that came with it. What stands in the headers of a library is inlined into them. */
static int is_own_line(const struct ta_frame *frame, const struct ta_snapshot_info *info)
{
    return frame->lineno > 0 && (strcmp(frame->module, info->program) == 0 || !is_of_system(frame->module)) &&
           !cli_frame_is_allocator(frame) && strncmp(frame->filename, "/usr/include/", 13) != 0 &&
           strstr(frame->filename, "/include/c++/") == NULL;
}

/* The functions of a stack up to the first that is one's own, innermost first: "main (list.c:12)". */
struct way {
    char **names;
    size_t count;
    int has_own; /* the last of them is one's own */
};

static void forget_names(struct way *way)
{
    for (size_t i = 0; i < way->count; i++)
        free(way->names[i]);
    way->count = 0;
}

/* What is called by its place is called by its module: a stripped one has no names for its functions. */
static char *short_name(const struct ta_frame *frame, const char *place)
{
    const char *slash = strrchr(frame->module, '/'), *module = slash != NULL ? slash + 1 : place;
    char *function = cli_function_name(frame->function), *offset = strstr(function, "+0x");
    if (offset != NULL)
        *offset = '\0';
    char *name = cli_text("%s", *function != '\0' ? function : module);
    free(function);
    return name;
}

static void add_frame(struct way *way, const struct ta_frame *frame, const struct ta_snapshot_info *info)
{
    char place[PATH_MAX + 16];
    cli_place_text(frame, place, sizeof place);
    char *name = short_name(frame, place);
    if (strcmp(name, "abort") == 0) /* how that ends the program is of no interest */
        forget_names(way);
    way->has_own = is_own_line(frame, info);
    if (way->has_own) {
        way->names[way->count++] = cli_text("%s (%s)", name, place);
        free(name);
    } else if (way->count > 0 && strcmp(way->names[way->count - 1], name) == 0) {
        free(name);
    } else {
        way->names[way->count++] = name;
    }
}

/* "show < main (list.c:12)": functions up to the first of one's own that has a line. Of more than `most` those in the
 * middle are left out; where none is one's own, those behind. The library's own frames are none of the program's. */
static char *way_text(struct ta_snapshot *snapshot, const char *prefix, size_t most)
{
    struct ta_snapshot_info info;
    struct ta_places *places = places_of(snapshot, prefix);
    size_t count = ta_places_count(places);
    struct way way = {.names = cli_allocate(count + 1, sizeof *way.names)};
    char *text = cli_text("%s", "");
    if (ta_snapshot_info(snapshot, &info, sizeof info) != 0)
        info.program = "";
    for (size_t i = 0; i < count && !way.has_own; i++) {
        struct ta_frame frame;
        if (ta_places_get(places, i, &frame, NULL) != 0)
            break;
        if (!cli_frame_is_allocator(&frame))
            add_frame(&way, &frame, &info);
    }
    size_t shown = way.count <= most ? way.count : way.has_own ? most - 1 : most;
    int leaves_out = way.has_own && shown < way.count;
    for (size_t i = 0; i < shown; i++) {
        int is_last = leaves_out && i + 1 == shown;
        char *longer = cli_text("%s%s%s%s", text, i > 0 ? " < " : "", is_last ? "… < " : "",
                                way.names[is_last ? way.count - 1 : i]);
        free(text);
        text = longer;
    }
    forget_names(&way);
    free(way.names);
    return text;
}

/* ---- faults ---- */

char *cli_crash_text(struct ta_snapshot *snapshot)
{
    const char *signal = ta_snapshot_metadata(snapshot, "crash.signal");
    const char *address = ta_snapshot_metadata(snapshot, "crash.address");
    const char *access = ta_snapshot_metadata(snapshot, "crash.access");
    const char *cause = ta_snapshot_metadata(snapshot, "crash.cause");
    const char *sender = ta_snapshot_metadata(snapshot, "crash.sender");
    if (signal == NULL)
        return NULL;
    char *way = way_text(snapshot, "crash.frame.", 6);
    int is_write = access != NULL && strcmp(access, "write") == 0;
    char *text = cli_text(
        "%s%s%s%s%s%s%s%s%s%s%s", signal, address != NULL || cause != NULL ? ": " : "", access != NULL ? access : "",
        access == NULL ? ""
        : is_write     ? " to "
                       : " of ",
        address != NULL ? address : "", address != NULL && cause != NULL ? ", " : "", cause != NULL ? cause : "",
        sender != NULL ? ", sent by process " : "", sender != NULL ? sender : "", *way != '\0' ? ", in " : "", way);
    free(way);
    return text;
}

char *cli_crash_block_text(struct ta_snapshot *snapshot)
{
    const char *block = ta_snapshot_metadata(snapshot, "crash.block");
    if (block == NULL)
        return NULL;
    char *way = way_text(snapshot, "crash.block.frame.", 6);
    char *text = cli_text("%s%s%s", block, *way != '\0' ? ", asked for in " : "", way);
    free(way);
    return text;
}

/* ---- frees of what is no block ---- */

char *cli_foreign_text(struct ta_snapshot *snapshot)
{
    struct ta_snapshot_info info;
    if (ta_snapshot_info(snapshot, &info, sizeof info) != 0 || info.foreign_frees == 0)
        return NULL;
    const char *address = ta_snapshot_metadata(snapshot, "foreign.address");
    char *way = way_text(snapshot, "foreign.frame.", 6), *first = cli_text("%s", "");
    if (address != NULL) {
        free(first);
        first = cli_text("%s%s%s%s", info.foreign_frees == 1 ? ": " : ", the first of ", address,
                         *way != '\0' ? ", in " : "", way);
    }
    char *text = info.foreign_frees == 1 ? cli_text("1 free of an address that is no block was ignored%s", first)
                                         : cli_text("%" PRIu64 " frees of addresses that are no blocks were ignored%s",
                                                    info.foreign_frees, first);
    free(first);
    free(way);
    return text;
}

/* ---- memory besides malloc ---- */

enum { SITES_MOST = 6, PARTS_MOST = 16 };

static uint64_t fact(const struct ta_snapshot *snapshot, const char *format, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, format, name);
    const char *value = ta_snapshot_metadata(snapshot, key);
    return value == NULL ? 0 : strtoull(value, NULL, 10);
}

struct part {
    uint64_t bytes;
    char *text;
};

static int by_bytes(const void *a, const void *b)
{
    uint64_t x = ((const struct part *)a)->bytes, y = ((const struct part *)b)->bytes;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* What the program mapped itself, by who asked. Answers how many parts there are then. */
static size_t add_sites(struct ta_snapshot *snapshot, uint64_t mapped, struct part *parts, size_t count)
{
    for (int site = 0; site < SITES_MOST; site++) {
        char number[16], prefix[48];
        snprintf(number, sizeof number, "%d", site);
        snprintf(prefix, sizeof prefix, "memory.site.%d.frame.", site);
        uint64_t bytes = fact(snapshot, "memory.site.%s.peak", number);
        char *way = way_text(snapshot, prefix, 3);
        char *words = cli_text("mapped by %s", way);
        size_t same = 0;
        while (same < count && strcmp(parts[same].text, words) != 0)
            same++;
        if (bytes > 0 && bytes <= mapped && *way != '\0') {
            mapped -= bytes;
            if (same == count)
                parts[count++] = (struct part){0, cli_text("%s", words)};
            parts[same].bytes += bytes;
        }
        free(words);
        free(way);
    }
    parts[count++] = (struct part){mapped, cli_text("mapped by others")};
    return count;
}

static char *join_parts(struct part *parts, size_t count, uint64_t all)
{
    char *text = cli_text("%s", "");
    qsort(parts, count, sizeof *parts, by_bytes);
    for (size_t i = 0; i < count; i++) {
        char size[32];
        if (parts[i].bytes * 50 >= all) {
            ta_size_text((double)parts[i].bytes, 0, size, sizeof size);
            char *longer = cli_text("%s%s%s %s", text, *text != '\0' ? ", " : "", size, parts[i].text);
            free(text);
            text = longer;
        }
        free(parts[i].text);
    }
    return text;
}

int cli_is_nearly_gone(uint64_t live, uint64_t peak)
{
    enum { PEAK_LEAST = 64 << 10 };
    return peak >= PEAK_LEAST && peak / 4 > live;
}

char *cli_memory_text(struct ta_snapshot *snapshot)
{
    static const char *const kinds[][2] = {{"malloc", "malloc"},      {"tracing", "tracing"},
                                           {"stacks", "stacks"},      {"libraries", "libraries"},
                                           {"files", "mapped files"}, {"shared", "shared memory"}};
    struct ta_snapshot_info info;
    struct part parts[PARTS_MOST];
    size_t count = 0;
    char most[32], then[32];
    uint64_t highest = fact(snapshot, "memory.%s", "resident_peak"),
             seen = fact(snapshot, "memory.peak.%s", "resident");
    if (highest < (16u << 20) || seen == 0 || ta_snapshot_info(snapshot, &info, sizeof info) != 0 ||
        highest < 2 * info.peak_bytes)
        return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        parts[count++] = (struct part){fact(snapshot, "memory.peak.kind.%s", kinds[i][0]), cli_text("%s", kinds[i][1])};
    count = add_sites(snapshot, fact(snapshot, "memory.peak.kind.%s", "mapped"), parts, count);
    char *list = join_parts(parts, count, seen);
    ta_size_text((double)highest, 0, most, sizeof most);
    ta_size_text((double)seen, 0, then, sizeof then);
    int is_near = seen + seen / 10 >= highest;
    char *text = cli_text("the process had %s at most%s%s%s%s", most, is_near ? "" : ", and was looked at when it had ",
                          is_near ? "" : then, *list != '\0' ? ": " : "", list);
    free(list);
    return text;
}

/* A program that needs no memory cannot be told from one with a malloc of its own. */
const char *cli_unused_text(struct ta_snapshot *snapshot)
{
    struct ta_snapshot_info info;
    if (ta_snapshot_info(snapshot, &info, sizeof info) != 0 || info.peak_bytes > 0 || info.sample_bytes > 1 ||
        info.epoch > 1 || ta_snapshot_trace_count(snapshot) != 0 ||
        ta_snapshot_metadata(snapshot, "memory.resident") == NULL)
        return NULL;
    return "nobody asked this malloc for memory: the program needs none, or has a malloc of its own";
}

/* Small objects come from malloc itself then. */
static int is_python_without_pools(const struct ta_snapshot *snapshot)
{
    const char *value = ta_snapshot_metadata(snapshot, "process.PYTHONMALLOC");
    return value != NULL && (strcmp(value, "malloc") == 0 || strcmp(value, "malloc_debug") == 0);
}

/* By the functions that mapped memory and by the program. */
const char *cli_memory_hint(struct ta_snapshot *snapshot)
{
    static const struct {
        const char *function, *program, *hint;
    } hints[] = {
        {"_PyObject_Arena*", "python*", "PYTHONMALLOC=malloc in the environment shows what is in Python's pools"},
        {"zend_mm_*", "php*", "USE_ZEND_ALLOC=0 in the environment shows what is in PHP's pools"},
        {"v8::*", "node*", "V8 has a heap of its own: node --heap-prof shows it"},
        {"os::*", "java*", "the JVM has a heap of its own: -XX:NativeMemoryTracking=summary shows it"},
        {"je_*", "", "the program has a malloc of its own (jemalloc): build or start it without"},
        {"tcmalloc::*", "", "the program has a malloc of its own (tcmalloc): build or start it without"},
        {"_mi_*", "", "the program has a malloc of its own (mimalloc): build or start it without"},
        {"lj_*", "luajit*", "LuaJIT has a heap of its own: collectgarbage(\"count\") tells its size"},
        {"GC_*", "", "Boehm's garbage collector has a heap of its own"},
        {"caml_*", "", "OCaml has a heap of its own"},
    };
    struct ta_snapshot_info info;
    if (ta_snapshot_info(snapshot, &info, sizeof info) != 0)
        return NULL;
    const char *slash = strrchr(info.program, '/'), *program = slash == NULL ? info.program : slash + 1;
    size_t first = is_python_without_pools(snapshot) ? 1 : 0; /* Python's is the first of them */
    for (size_t i = first; i < sizeof hints / sizeof *hints; i++)
        if (ta_pattern_matches(hints[i].program, strlen(hints[i].program), program, strlen(program)))
            return hints[i].hint;
    for (int site = 0; site < 2; site++) {
        char prefix[48];
        snprintf(prefix, sizeof prefix, "memory.site.%d.frame.", site);
        struct ta_places *places = places_of(snapshot, prefix);
        for (size_t at = 0; at < ta_places_count(places); at++) {
            struct ta_frame frame;
            for (size_t i = first; ta_places_get(places, at, &frame, NULL) == 0 && i < sizeof hints / sizeof *hints;
                 i++)
                if (ta_pattern_matches(hints[i].function, strlen(hints[i].function), frame.function,
                                       strlen(frame.function)))
                    return hints[i].hint;
        }
    }
    return info.peak_bytes == 0 ? "nobody asked this malloc for memory: the program seems to have one of its own"
                                : NULL;
}
