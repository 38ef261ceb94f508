/* test_symbols.c: places and names of programs that are compiled here, for every way in which debug information comes.
 *
 * Each program calls note("label") from lines that are known; it prints the return address that note() saw, and the
 * module. The test then asks the symbolizer for those addresses and compares the whole answer, written as
 * "function file:line", innermost first, joined by " < ". Files below the test's own folder are written relative to it.
 */
#include "analysis/symbols/symbols.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <unity.h>

#define MODULES_MAX 8
#define NOTES_MAX   16

struct module {
    char path[1200];
    uint8_t build_id[64];
    uint32_t build_id_length;
    uint64_t load_base;
};

struct note {
    char label[32];
    uint64_t address;
    uint32_t module; /* index + 1 */
};

static char folder[256];
static char debug_path[512];
static struct module modules[MODULES_MAX];
static struct note notes[NOTES_MAX];
static uint32_t module_count, note_count;
static struct ta__symbolizer *symbolizer;
static struct ta__symbols symbols;

static const char note_source[] =
    "#ifndef _GNU_SOURCE\n"
    "#define _GNU_SOURCE\n"
    "#endif\n"
    "#include <dlfcn.h>\n"
    "#include <link.h>\n"
    "#include <stdio.h>\n"
    "static __attribute__((noinline)) void note(const char *label)\n"
    "{\n"
    "    Dl_info info;\n"
    "    struct link_map *map = 0;\n"
    "    void *address = __builtin_return_address(0);\n"
    "    if (dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP))\n"
    "        printf(\"%s %lx %lx %s\\n\", label, (unsigned long)address, (unsigned long)map->l_addr, map->l_name);\n"
    "    fflush(stdout);\n"
    "}\n";

static const char sample_source[] = /* line 1 */
    "#include \"note.h\"\n"
    "static inline __attribute__((always_inline)) int inner(int x)\n"
    "{\n"
    "    note(\"inner\");\n" /* 4 */
    "    return x + 1;\n"
    "}\n"
    "static inline __attribute__((always_inline)) int middle(int x)\n"
    "{\n"
    "    int y = inner(x);\n" /* 9 */
    "    return y * 2;\n"
    "}\n"
    "__attribute__((noinline)) int outer(int x)\n"
    "{\n"
    "    return middle(x) + 3;\n" /* 14 */
    "}\n"
    "__attribute__((noinline)) int plain(int x)\n"
    "{\n"
    "    note(\"plain\");\n" /* 18 */
    "    return x ^ 1;\n"
    "}\n"
    "int ENTRY(int argc)\n"
    "{\n"
    "    return outer(argc) + plain(argc) == 0;\n"
    "}\n";

#define SAMPLE_INNER "inner sample.c:4 inlined < middle sample.c:9 inlined < outer sample.c:14"
#define SAMPLE_PLAIN "plain sample.c:18"

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A shell command in the folder that must succeed. */
static void run(const char *format, ...)
{
    char command[4096];
    int length = snprintf(command, sizeof command, "cd '%s' && ", folder);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command + length, sizeof command - (size_t)length, format, arguments);
    va_end(arguments);
    if (system(command) != 0)
        TEST_FAIL_MESSAGE(command);
}

static int have(const char *command)
{
    char text[256];
    snprintf(text, sizeof text, "command -v %s >/dev/null 2>&1", command);
    return system(text) == 0;
}

static void write_file(const char *name, const char *text)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    TEST_ASSERT_NOT_NULL_MESSAGE(file, path);
    fputs(text, file);
    fclose(file);
}

static void read_build_id(struct module *module)
{
    int fd = open(module->path, O_RDONLY | O_CLOEXEC);
    elf_version(EV_CURRENT);
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
    const void *id = NULL;
    ssize_t length = elf ? dwelf_elf_gnu_build_id(elf, &id) : 0;
    if (length > 0 && (size_t)length <= sizeof module->build_id) {
        memcpy(module->build_id, id, (size_t)length);
        module->build_id_length = (uint32_t)length;
    }
    elf_end(elf);
    if (fd >= 0)
        close(fd);
}

static uint32_t enter_module(const char *path, uint64_t load_base)
{
    for (uint32_t i = 0; i < module_count; i++) {
        if (strcmp(modules[i].path, path) == 0)
            return i + 1;
    }
    TEST_ASSERT_LESS_THAN_UINT32(MODULES_MAX, module_count);
    struct module *module = &modules[module_count++];
    snprintf(module->path, sizeof module->path, "%s", path);
    module->load_base = load_base;
    read_build_id(module);
    return module_count;
}

/* Runs a program of the folder and takes down its notes and its modules' build ids. */
static void take_notes(const char *program)
{
    char command[512], line[1024];
    snprintf(command, sizeof command, "cd '%s' && LD_LIBRARY_PATH=. ./%s", folder, program);
    FILE *output = popen(command, "r");
    TEST_ASSERT_NOT_NULL(output);
    while (fgets(line, sizeof line, output)) {
        char label[32], name[512] = "";
        unsigned long address, base;
        if (sscanf(line, "%31s %lx %lx %511s", label, &address, &base, name) < 3)
            continue;
        char path[1024];
        const char *file = *name ? name : program;
        snprintf(path, sizeof path, "%s/%s", folder, strncmp(file, "./", 2) == 0 ? file + 2 : file);
        TEST_ASSERT_LESS_THAN_UINT32(NOTES_MAX, note_count);
        struct note *note = &notes[note_count++];
        snprintf(note->label, sizeof note->label, "%s", label);
        note->address = address;
        note->module = enter_module(*file == '/' ? file : path, base);
    }
    TEST_ASSERT_EQUAL_INT(0, pclose(output));
    TEST_ASSERT_GREATER_THAN_UINT32(0, note_count);
}

/* Compiles the sample as a program and takes its notes. */
static void make_sample(const char *compiler, const char *flags)
{
    write_file("note.h", note_source);
    write_file("sample.c", sample_source);
    write_file("main.c", "int entry(int); int main(int argc, char **argv) { (void)argv; return entry(argc); }\n");
    run("%s %s -O2 -DENTRY=entry sample.c main.c -o prog -ldl", compiler, flags);
    take_notes("prog");
}

static void symbolize_with(const struct ta__symbolizer_options *options)
{
    struct ta__symbolizer_module recorded[MODULES_MAX];
    struct ta__symbolizer_address addresses[NOTES_MAX];
    for (uint32_t i = 0; i < module_count; i++)
        recorded[i] = (struct ta__symbolizer_module){modules[i].path, modules[i].build_id, modules[i].build_id_length,
                                                     modules[i].load_base};
    for (uint32_t i = 0; i < note_count; i++)
        addresses[i] = (struct ta__symbolizer_address){notes[i].address, notes[i].module, 0};
    ta__symbolizer_close(symbolizer);
    symbolizer = ta__symbolizer_open(options, recorded, module_count);
    TEST_ASSERT_NOT_NULL(symbolizer);
    TEST_ASSERT_EQUAL_INT(0, ta__symbolizer_run(symbolizer, addresses, note_count, &symbols));
}

/* Debug files are looked for beside the file, in .debug, and in the test's own folder "debug". */
static void symbolize(void)
{
    symbolize_with(&(struct ta__symbolizer_options){.debug_path = debug_path});
}

/* Addresses differ from build to build: "prog+0xN". */
static const char *name_of(const char *function)
{
    static char name[512];
    const char *place = strstr(function, "0x");
    if (*function == '\0' || place == NULL || (place != function && place[-1] != '+'))
        return *function != '\0' ? function : "?";
    snprintf(name, sizeof name, "%.*s0xN", (int)(place - function), function);
    return name;
}

static const char *text_of(uint32_t index)
{
    static char text[4096];
    size_t length = 0, prefix = strlen(folder);
    struct ta__view_symbol_range range = symbols.ranges[index];
    text[0] = '\0';
    for (uint32_t i = 0; i < range.count; i++) {
        const struct ta__view_symbol *symbol = &symbols.symbols[range.first + i];
        const char *file = symbols.strings[symbol->file].text, *function = symbols.strings[symbol->function].text;
        if (strncmp(file, folder, prefix) == 0 && file[prefix] == '/')
            file += prefix + 1;
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%s%s %s:%u%s%s", i ? " < " : "", name_of(function),
                             file, symbol->line, symbol->flags & TA__SYMBOL_INLINED ? " inlined" : "",
                             symbol->flags & TA__SYMBOL_NO_LINES ? " no lines" : "");
    }
    return text;
}

static uint32_t index_of(const char *label)
{
    for (uint32_t i = 0; i < note_count; i++) {
        if (strcmp(notes[i].label, label) == 0)
            return i;
    }
    TEST_FAIL_MESSAGE(label);
    return 0;
}

static const char *raw_name_of(const char *label, uint32_t frame)
{
    return symbols.strings[symbols.symbols[symbols.ranges[index_of(label)].first + frame].raw_name].text;
}

static void expect(const char *label, const char *frames)
{
    TEST_ASSERT_EQUAL_STRING_MESSAGE(frames, text_of(index_of(label)), label);
}

static enum ta__symbolizer_state state_of(uint32_t module)
{
    const char *reason;
    enum ta__symbolizer_state state = ta__symbolizer_module_state(symbolizer, module, &reason);
    TEST_ASSERT_EQUAL_INT(state == TA__MODULE_LINES || state == TA__MODULE_UNUSED, *reason == '\0');
    return state;
}

static void expect_sample(void)
{
    expect("inner", SAMPLE_INNER);
    expect("plain", SAMPLE_PLAIN);
    TEST_ASSERT_EQUAL_INT(TA__MODULE_LINES, state_of(0));
}

/* The fallback with names alone. */
static void expect_names_only(void)
{
    expect("inner", "outer prog:0 no lines");
    expect("plain", "plain prog:0 no lines");
    TEST_ASSERT_EQUAL_INT(TA__MODULE_NAMES_ONLY, state_of(0));
}

static void expect_nothing(enum ta__symbolizer_state state)
{
    expect("inner", "prog+0xN prog:0 no lines");
    expect("plain", "prog+0xN prog:0 no lines");
    TEST_ASSERT_EQUAL_INT(state, state_of(0));
}

void setUp(void)
{
    const char *place = getenv("TMPDIR");
    char pattern[256];
    snprintf(pattern, sizeof pattern, "%s/tracealloc-symbols-XXXXXX", place && *place ? place : "/tmp");
    TEST_ASSERT_NOT_NULL(mkdtemp(pattern));
    char *real = realpath(pattern, NULL);
    TEST_ASSERT_NOT_NULL(real);
    snprintf(folder, sizeof folder, "%s", real);
    snprintf(debug_path, sizeof debug_path, ":.debug:%s/debug", folder);
    free(real);
    module_count = note_count = 0;
    memset(modules, 0, sizeof modules);
}

void tearDown(void)
{
    ta__symbolizer_close(symbolizer);
    symbolizer = NULL;
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0)
        fprintf(stderr, "%s: left behind\n", folder);
}

/* Where the information is inside the file */

static void test_symbols_inlined_calls_in_dwarf_5_are_expanded_innermost_first(void)
{
    make_sample(CC, "-gdwarf-5");
    symbolize();
    expect_sample();
}

static void test_symbols_inlined_calls_in_dwarf_4_are_expanded_innermost_first(void)
{
    make_sample(CC, "-gdwarf-4");
    symbolize();
    expect_sample();
}

static void test_symbols_inlined_calls_in_dwarf_3_and_2_are_expanded_innermost_first(void)
{
    make_sample(CC, "-gdwarf-3 -gno-strict-dwarf");
    symbolize();
    expect_sample();
    note_count = module_count = 0;
    make_sample(CC, "-gdwarf-2 -gno-strict-dwarf");
    symbolize();
    expect_sample();
}

static void test_symbols_line_tables_only_still_name_functions_and_inlined_calls(void)
{
    make_sample(CC, "-g1");
    symbolize();
    expect_sample();
}

static void test_symbols_program_at_a_fixed_address_is_read(void)
{
    make_sample(CC, "-g -no-pie");
    TEST_ASSERT_EQUAL_HEX64(0, modules[0].load_base);
    symbolize();
    expect_sample();
}

static void test_symbols_compressed_sections_are_read(void)
{
    make_sample(CC, "-g -gz=zlib");
    symbolize();
    expect_sample();
}

static void test_symbols_split_dwarf_is_read_from_its_own_files(void)
{
    make_sample(CC, "-gdwarf-5 -gsplit-dwarf");
    symbolize();
    expect_sample();
    note_count = module_count = 0;
    make_sample(CC, "-gdwarf-4 -gsplit-dwarf");
    symbolize();
    expect_sample();
}

static void test_symbols_split_dwarf_that_is_gone_leaves_lines_and_the_outermost_name(void)
{
    make_sample(CC, "-gdwarf-5 -gsplit-dwarf");
    run("rm -f *.dwo");
    symbolize();
    expect("plain", "plain sample.c:18");
    expect("inner", "outer sample.c:4");
}

static void test_symbols_link_time_optimised_program_is_read(void)
{
    make_sample(CC, "-g -flto");
    symbolize();
    expect_sample();
}

static void test_symbols_discarded_functions_do_not_get_in_the_way(void)
{
    write_file("dead.c", "volatile int dead_sink;\n"
                         "int dead(int x)\n"
                         "{\n"
                         "#define W dead_sink += x; x *= dead_sink;\n"
                         "#define W8 W W W W W W W W\n"
                         "#define W64 W8 W8 W8 W8 W8 W8 W8 W8\n"
                         "W64 W64 W64 W64 W64 W64\n"
                         "    return x;\n"
                         "}\n");
    make_sample(CC, "-g -no-pie -ffunction-sections dead.c -Wl,--gc-sections -Wl,-Ttext-segment=0x1000");
    symbolize();
    expect_sample();
}

static void test_symbols_clang_programs_are_read(void)
{
    if (!have("clang"))
        TEST_IGNORE_MESSAGE("no clang here");
    static const char *const flags[] = {"-g", "-gdwarf-4", "-g -gz", "-gdwarf-5 -gsplit-dwarf"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        note_count = module_count = 0;
        make_sample("clang", flags[i]);
        symbolize();
        expect_sample();
    }
}

static void test_symbols_shared_library_is_read_at_its_own_base(void)
{
    write_file("note.h", note_source);
    write_file("sample.c", sample_source);
    write_file("main.c", "#include \"note.h\"\n"
                         "int entry(int);\n"
                         "int main(int argc, char **argv)\n"
                         "{\n"
                         "    note(\"main\");\n"
                         "    return (void)argv, entry(argc);\n"
                         "}\n");
    run(CC " -g -O2 -fPIC -shared -DENTRY=entry sample.c -o libsample.so -ldl");
    run(CC " -g -O2 main.c -o prog -L. -lsample -ldl");
    take_notes("prog");
    TEST_ASSERT_EQUAL_UINT32(2, module_count);

    symbolize();

    expect("inner", SAMPLE_INNER);
    expect("plain", SAMPLE_PLAIN);
    expect("main", "main main.c:5");
}

static void test_symbols_cxx_names_are_demangled_and_the_raw_ones_kept(void)
{
    write_file("note.h", note_source);
    write_file("shop.cpp", "#include \"note.h\"\n"
                           "namespace shop {\n"
                           "template <typename T> struct Box {\n"
                           "    T value;\n"
                           "    __attribute__((always_inline)) T put(T x)\n"
                           "    {\n"
                           "        note(\"put\");\n" /* 7 */
                           "        return value = x;\n"
                           "    }\n"
                           "    __attribute__((noinline)) T twice(T x)\n"
                           "    {\n"
                           "        return put(x) * 2;\n" /* 12 */
                           "    }\n"
                           "    __attribute__((noinline)) explicit Box(T x)\n"
                           "    {\n"
                           "        note(\"constructor\");\n" /* 16 */
                           "        value = x;\n"
                           "    }\n"
                           "};\n"
                           "namespace {\n"
                           "__attribute__((noinline)) int hidden(const char *text, int x)\n"
                           "{\n"
                           "    note(text);\n" /* 23 */
                           "    return x + 1;\n"
                           "}\n"
                           "}\n"
                           "}\n"
                           "int main(int argc, char **)\n"
                           "{\n"
                           "    shop::Box<long> box(argc);\n"
                           "    auto lambda = [](int x) __attribute__((noinline)) {\n"
                           "        note(\"lambda\");\n" /* 32 */
                           "        return x + 1;\n"
                           "    };\n"
                           "    return box.twice(argc) + shop::hidden(\"hidden\", argc) + lambda(argc) == 0;\n"
                           "}\n");
    run(CXX " -g -O2 shop.cpp -o prog -ldl");
    take_notes("prog");

    symbolize();

    expect("put", "shop::Box<long>::put(long) shop.cpp:7 inlined < shop::Box<long>::twice(long) shop.cpp:12");
    expect("constructor", "shop::Box<long>::Box(long) shop.cpp:16");
    expect("hidden", "shop::(anonymous namespace)::hidden shop.cpp:23");
    expect("lambda", "main::{lambda}::operator() shop.cpp:32");
    TEST_ASSERT_EQUAL_STRING_LEN("_ZN4shop12_GLOBAL__N_16hiddenEPKci", raw_name_of("hidden", 0), 34);
    TEST_ASSERT_EQUAL_STRING("_ZN4shop3BoxIlE3putEl", raw_name_of("put", 0));
    TEST_ASSERT_EQUAL_STRING("_ZN4shop3BoxIlE5twiceEl", raw_name_of("put", 1));
}

/* What compilers of today write into units of C++ 17, 20 and 23: newer languages than this machine's compiler knows. */
static void test_symbols_cxx_of_later_years_is_still_cxx(void)
{
    write_file("note.h", note_source);
    write_file("later.cpp", "#include \"note.h\"\n"
                            "namespace {\n"
                            "__attribute__((noinline)) int hidden(int x)\n"
                            "{\n"
                            "    note(\"hidden\");\n" /* 5 */
                            "    return x + 1;\n"
                            "}\n"
                            "}\n"
                            "int main(int argc, char **)\n"
                            "{\n"
                            "    return hidden(argc) == 0;\n"
                            "}\n");
    static const char *const languages[] = {"0x21", "0x2b", "0x2c", "0x3a"};
    for (size_t i = 0; i < 4; i++) {
        note_count = module_count = 0;
        run(CXX " -g -gdwarf-5 -dA -O1 -S later.cpp -o later.s");
        run("sed 's/^\\(.*\\)0x21\\(.*DW_AT_language\\)/\\1%s\\2/' later.s >changed.s", languages[i]);
        run("grep '%s.*DW_AT_language' changed.s >/dev/null", languages[i]);
        run(CXX " changed.s -o prog -ldl");
        take_notes("prog");
        symbolize();
        expect("hidden", "(anonymous namespace)::hidden later.cpp:5");
    }
}

/* Names without a linkage name, in places that take some way down the tree, and clones of functions. */
static void test_symbols_cxx_names_deep_in_the_tree_are_whole(void)
{
    write_file("note.h", note_source);
    write_file("deep.cpp", "#include \"note.h\"\n"
                           "struct before { int x; struct inner { int y; int get() { return y; } } z; };\n"
                           "namespace outer { inline namespace v2 { namespace {\n"
                           "struct Table {\n"
                           "    struct Row {\n"
                           "        int x;\n"
                           "        __attribute__((noinline)) Row &operator<<(int by)\n"
                           "        {\n"
                           "            note(\"shift\");\n" /* 9 */
                           "            x <<= by;\n"
                           "            return *this;\n"
                           "        }\n"
                           "        __attribute__((noinline)) operator long() const\n"
                           "        {\n"
                           "            note(\"conversion\");\n" /* 15 */
                           "            return x;\n"
                           "        }\n"
                           "    };\n"
                           "};\n"
                           "} } }\n"
                           "static __attribute__((noinline)) int blocks(int x)\n"
                           "{\n"
                           "    for (int i = 0; i < x; i++) {\n"
                           "        struct Local {\n"
                           "            __attribute__((noinline)) int operator()(int y) const\n"
                           "            {\n"
                           "                note(\"local\");\n" /* 27 */
                           "                return y + 1;\n"
                           "            }\n"
                           "        } local;\n"
                           "        x = local(x) - 1;\n"
                           "    }\n"
                           "    return x;\n"
                           "}\n"
                           "static int prepared = (note(\"file_constructor\"), 1);\n" /* 35 */
                           "int main(int argc, char **)\n"
                           "{\n"
                           "    outer::Table::Row row{argc};\n"
                           "    row << 1;\n"
                           "    return (long)row + blocks(argc) + prepared == 0;\n"
                           "}\n");
    run(CXX " -g -O1 deep.cpp -o prog -ldl");
    take_notes("prog");

    symbolize();

    expect("shift", "outer::v2::(anonymous namespace)::Table::Row::operator<< deep.cpp:9");
    expect("conversion", "outer::v2::(anonymous namespace)::Table::Row::operator long int deep.cpp:15");
    expect("local", "blocks::Local::operator() deep.cpp:27");
    const char *text = text_of(index_of("file_constructor"));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(text, "deep.cpp:35"), text);
    TEST_ASSERT_NULL_MESSAGE(strstr(text, "::"), text);
}

static void test_symbols_rust_names_are_demangled_and_the_raw_ones_kept(void)
{
    if (!have("rustc"))
        TEST_IGNORE_MESSAGE("no rustc here");
    write_file("note.h", note_source);
    write_file("note.c", "#include \"note.h\"\n"
                         "void rust_note(void *address)\n"
                         "{\n"
                         "    Dl_info info;\n"
                         "    struct link_map *map = 0;\n"
                         "    if (dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP))\n"
                         "        printf(\"rust %lx %lx %s\\n\", (unsigned long)address, (unsigned long)map->l_addr,\n"
                         "               map->l_name);\n"
                         "    fflush(stdout);\n"
                         "    (void)note;\n"
                         "}\n"
                         "void take(void)\n"
                         "{\n"
                         "    rust_note(__builtin_return_address(0));\n"
                         "}\n");
    write_file("prog.rs", "mod shelf {\n"
                          "    extern \"C\" { fn take(); }\n"
                          "    pub struct Shelf<T>(pub T);\n"
                          "    impl<T> Shelf<T> {\n"
                          "        #[inline(never)]\n"
                          "        pub fn fill(&mut self) -> i32 {\n"
                          "            unsafe { take() };\n" /* 7 */
                          "            std::hint::black_box(1)\n"
                          "        }\n"
                          "    }\n"
                          "}\n"
                          "fn main() { let mut s = shelf::Shelf(3u8); std::process::exit(s.fill() - 1) }\n");
    run(CC " -g -O2 -c note.c -o note.o");
    static const char *const manglings[] = {"", "-C symbol-mangling-version=v0"};
    for (size_t i = 0; i < 2; i++) {
        note_count = module_count = 0;
        run("rustc -g -O %s -C link-arg=note.o -C link-arg=-ldl prog.rs -o prog 2>&1", manglings[i]);
        take_notes("prog");
        symbolize();
        const char *text = text_of(index_of("rust"));
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(text, "shelf::Shelf<"), text);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(text, "::fill prog.rs:7"), text);
        TEST_ASSERT_EQUAL_INT(0, strncmp(raw_name_of("rust", 0), i ? "_R" : "_ZN", i ? 2 : 3));
    }
}

/* Which byte is looked up */

static void test_symbols_return_address_behind_a_function_still_belongs_to_the_call(void)
{
    write_file("note.h", note_source);
    write_file("last.c", "#include \"note.h\"\n"
                         "#include <unistd.h>\n"
                         "__attribute__((noinline, noreturn)) void leave(void *from)\n"
                         "{\n"
                         "    printf(\"last %lx\", (unsigned long)from);\n"
                         "    Dl_info info;\n"
                         "    struct link_map *map = 0;\n"
                         "    dladdr1(from, &info, (void **)&map, RTLD_DL_LINKMAP);\n"
                         "    printf(\" %lx %s\\n\", (unsigned long)map->l_addr, map->l_name);\n"
                         "    fflush(stdout);\n"
                         "    (void)note;\n"
                         "    _exit(0);\n"
                         "}\n"
                         "__attribute__((noinline, noreturn)) void done(void)\n"
                         "{\n"
                         "    leave(__builtin_return_address(0));\n"
                         "}\n"
                         "__attribute__((noinline, noreturn)) void fatal(void)\n"
                         "{\n"
                         "    done();\n" /* 20 */
                         "}\n"
                         "__attribute__((noinline)) int behind(int x)\n"
                         "{\n"
                         "    return x * 3;\n"
                         "}\n"
                         "int main(int argc, char **argv)\n"
                         "{\n"
                         "    if (argv[0])\n"
                         "        fatal();\n"
                         "    return behind(argc);\n"
                         "}\n");
    run(CC " -g -O1 -fno-align-functions -fno-reorder-functions -fno-toplevel-reorder "
           "-fno-optimize-sibling-calls last.c -o prog -ldl");
    take_notes("prog");

    symbolize();
    expect("last", "fatal last.c:20");

    /* The same number as that of an interrupted instruction is the function behind. */
    struct ta__symbolizer_address address = {notes[0].address, 1, 1};
    struct ta__symbols answer;
    TEST_ASSERT_EQUAL_INT(0, ta__symbolizer_run(symbolizer, &address, 1, &answer));
    TEST_ASSERT_EQUAL_STRING("behind", answer.strings[answer.symbols[0].function].text);
    TEST_ASSERT_EQUAL_UINT64(0, answer.symbols[0].offset);
}

static void test_symbols_offset_counts_from_the_start_of_the_function_to_the_return_address(void)
{
    make_sample(CC, "-g");
    symbolize();
    char command[512], line[64] = "";
    snprintf(command, sizeof command, "nm '%s/prog' | awk '$3 == \"plain\" { print $1 }'", folder);
    FILE *nm = popen(command, "r");
    TEST_ASSERT_NOT_NULL(fgets(line, sizeof line, nm));
    pclose(nm);

    const struct note *note = &notes[index_of("plain")];
    uint64_t start = strtoull(line, NULL, 16) + modules[0].load_base;

    TEST_ASSERT_EQUAL_UINT64(note->address - start, symbols.symbols[symbols.ranges[index_of("plain")].first].offset);
    TEST_ASSERT_GREATER_THAN_UINT64(0, note->address - start);
}

/* Separate and shared debug files */

static void test_symbols_debug_file_beside_the_program_is_found_by_its_link(void)
{
    make_sample(CC, "-g");
    run("objcopy --only-keep-debug prog prog.debug && strip prog && objcopy --add-gnu-debuglink=prog.debug prog");
    symbolize();
    expect_sample();

    run("mkdir .debug && mv prog.debug .debug/");
    symbolize();
    expect_sample();

    run("rm -r .debug");
    symbolize();
    expect_nothing(TA__MODULE_NAMES_ONLY);
}

static void test_symbols_debug_file_of_another_build_is_refused(void)
{
    make_sample(CC, "-g");
    run("objcopy --only-keep-debug prog prog.debug && strip prog && objcopy --add-gnu-debuglink=prog.debug prog");
    run("sed -i 's/x . 1/x ^ 7/' sample.c && " CC " -g -O2 -DENTRY=entry sample.c main.c -o other -ldl");
    run("objcopy --only-keep-debug other prog.debug");
    symbolize();
    expect_nothing(TA__MODULE_NAMES_ONLY);
}

/* Without build ids the checksum in the link decides. */
static void test_symbols_debug_file_with_another_checksum_is_refused(void)
{
    make_sample(CC, "-g -Wl,--build-id=none");
    TEST_ASSERT_EQUAL_UINT32(0, modules[0].build_id_length);
    run("objcopy --only-keep-debug prog prog.debug && strip prog && objcopy --add-gnu-debuglink=prog.debug prog");
    symbolize();
    expect_sample();

    run("printf x >>prog.debug");
    symbolize();
    expect_nothing(TA__MODULE_NAMES_ONLY);
}

/* Moves the debug file of `prog` to where its build id says. */
static void file_by_build_id(const char *name)
{
    char hex[129];
    for (uint32_t i = 0; i < modules[0].build_id_length; i++)
        snprintf(hex + 2 * i, 3, "%02x", modules[0].build_id[i]);
    TEST_ASSERT_GREATER_THAN_UINT32(4, modules[0].build_id_length);
    run("mkdir -p debug/.build-id/%.2s && mv %s debug/.build-id/%.2s/%s.debug", hex, name, hex, hex + 2);
}

static void test_symbols_debug_file_in_a_build_id_directory_is_found(void)
{
    make_sample(CC, "-g");
    run("objcopy --only-keep-debug prog prog.debug && strip prog");
    file_by_build_id("prog.debug");
    symbolize();
    expect_sample();
    symbolize_with(NULL);
    expect_nothing(TA__MODULE_NAMES_ONLY);
}

static void test_symbols_program_that_is_gone_is_read_from_its_debug_file(void)
{
    make_sample(CC, "-g");
    run("objcopy --only-keep-debug prog prog.debug && rm prog");
    file_by_build_id("prog.debug");
    symbolize();
    expect_sample();
}

static void test_symbols_debug_information_shared_by_dwz_is_read(void)
{
    if (!have("dwz"))
        TEST_IGNORE_MESSAGE("no dwz here");
    make_sample(CC, "-g -gdwarf-4");
    run("sed 's/x + 1/x + 5/' sample.c >sample2.c && " CC
        " -g -gdwarf-4 -O2 -DENTRY=entry sample2.c main.c -o two -ldl");
    run("for p in prog two; do objcopy --only-keep-debug $p $p.debug && strip $p && "
        "objcopy --add-gnu-debuglink=$p.debug $p; done");
    run("mkdir -p debug/.dwz && dwz -m debug/.dwz/common.debug -M \"$PWD\"/debug/.dwz/common.debug prog.debug "
        "two.debug && readelf -SW prog.debug 2>/dev/null | grep gnu_debugaltlink >/dev/null");
    symbolize();
    expect_sample();

    /* The shared part of another build is not used: names in it are lost, but nothing wrong is said. */
    run("rm debug/.dwz/common.debug");
    symbolize();
    TEST_ASSERT_NOT_NULL(strstr(text_of(index_of("plain")), ":18"));
}

/* What there is without debug information */

static void test_symbols_without_debug_information_functions_come_from_the_symbol_table(void)
{
    make_sample(CC, "-g0");
    symbolize();
    expect_names_only();
}

#if defined(__x86_64__)

#define TELL(label) "    sub $8, %rsp\n    lea " label "(%rip), %rdi\n    call tell\n    add $8, %rsp\n"

/* Written by hand: symbols without sizes reach to the next place, whatever their number there; one within another is the
 * inner one; behind the inner one it is the outer again; what comes behind a size belongs to nobody. */
static const char by_hand_source[] =
    "    .section .rodata\n"
    "s1: .string \"unsized\"\n"
    "s2: .string \"pair\"\n"
    "s3: .string \"inside\"\n"
    "s4: .string \"around\"\n"
    "s5: .string \"last\"\n"
    "    .text\n"
    "    .globl unsized, pair, all, around, inside, last\n"
    "    .type unsized, @function\n"
    "    .type pair, @function\n"
    "    .type __pair, @function\n"
    "    .type around, @function\n"
    "    .type inside, @function\n"
    "    .type last, @function\n"
    "unsized:\n" TELL("s1") "    ret\n"
                            "__pair:\n"
                            "pair_label:\n"
                            "pair:\n" TELL("s2") "    ret\n"
                                                 "around:\n"
                                                 "    nop\n"
                                                 "inside:\n" TELL("s3") "    .size inside, . - inside\n" TELL(
                                                     "s4") "    ret\n"
                                                           "    .size around, . - around\n"
                                                           "all:\n"
                                                           "    sub $8, %rsp\n"
                                                           "    call unsized\n"
                                                           "    call pair\n"
                                                           "    call around\n"
                                                           "    call last\n"
                                                           "    add $8, %rsp\n"
                                                           "    ret\n"
                                                           "    .size all, . - all\n"
                                                           "    .section zcode, \"ax\", @progbits\n"
                                                           "last:\n" TELL(
                                                               "s5") "    ret\n"
                                                                     "    .section .note.GNU-stack, \"\", @progbits\n";

static void test_symbols_of_functions_written_by_hand_reach_to_the_next_place(void)
{
    write_file("note.h", note_source);
    write_file("hand.s", by_hand_source);
    write_file("main.c", "#include \"note.h\"\n"
                         "void tell(const char *label) __attribute__((alias(\"note\")));\n"
                         "void all(void);\n"
                         "int main(void) { all(); return 0; }\n");
    run(CC " -g0 -O1 main.c hand.s -o prog -ldl");
    take_notes("prog");
    symbolize();
    expect("unsized", "unsized prog:0 no lines");
    expect("pair", "pair prog:0 no lines");
    expect("inside", "inside prog:0 no lines");
    expect("around", "around prog:0 no lines");
    expect("last", "last prog:0 no lines");
}

#endif

static void test_symbols_stripped_library_offers_its_exported_functions(void)
{
    write_file("note.h", note_source);
    write_file("sample.c", sample_source);
    write_file("main.c", "int entry(int); int main(int argc, char **argv) { (void)argv; return entry(argc); }\n");
    run(CC " -O2 -fPIC -shared -DENTRY=entry sample.c -o libsample.so -ldl && strip libsample.so");
    run(CC " -O2 main.c -o prog -L. -lsample");
    take_notes("prog");
    symbolize();
    expect("inner", "outer libsample.so:0 no lines");
    expect("plain", "plain libsample.so:0 no lines");
}

/* What a library calls its functions, and what others call them. */
static const char public_source[] = "#include \"note.h\"\n"
                                    "#define LOCAL static __attribute__((noipa)) int\n"
                                    "int __written(int x) { note(\"written\"); return x + 1; }\n"
                                    "extern int written(int) __attribute__((weak, alias(\"__written\")));\n"
                                    "int __kept(int x) { note(\"kept\"); return x + 1; }\n"
                                    "__asm__(\".symver __kept, kept@OLD\");\n"
                                    "LOCAL __opened(int x) { note(\"opened\"); return x + 1; }\n"
                                    "int open_it(int x) { return __opened(x * 2); }\n"
                                    "LOCAL __called(int x) { note(\"called\"); return x + 1; }\n"
                                    "int call_it(int x) { return __called(x * 2) + 1; }\n"
                                    "LOCAL __both(int x) { note(\"both\"); return x + 1; }\n"
                                    "int jump_there(int x) { return __both(x * 2); }\n"
                                    "int call_there(int x) { return __both(x * 2) + 1; }\n"
                                    "LOCAL __two(int x) { note(\"two\"); return x + 1; }\n"
                                    "int one_way(int x) { return __two(x * 2); }\n"
                                    "int other_way(int x) { return __two(x * 3); }\n"
                                    "LOCAL helper(int x) { note(\"helper\"); return x + 1; }\n"
                                    "int help(int x) { return helper(x * 2); }\n"
                                    "LOCAL __attribute__((section(\".text.behind\"))) __behind(int x)\n"
                                    "{ note(\"behind\"); return x + 1; }\n"
                                    "int go_on(int x) { return __behind(x * 2); }\n";

static void make_public(const char *flags, const char *strip)
{
    write_file("note.h", note_source);
    write_file("public.c", public_source);
    write_file("public.map", "OLD { global: *; };\n");
    write_file("user.c", "int written(int), __kept(int), open_it(int), call_it(int), jump_there(int), one_way(int), "
                         "help(int), go_on(int);\n"
                         "int main(int count, char **words)\n"
                         "{\n"
                         "    (void)words;\n"
                         "    return written(count) + __kept(count) + open_it(count) + call_it(count) + "
                         "jump_there(count) + one_way(count) + help(count) + go_on(count) < 0;\n"
                         "}\n");
    run(CC " %s -O2 -shared -fPIC -Wl,--version-script=public.map -o libpublic.so public.c", flags);
    run(CC " -o user user.c -L. -lpublic");
    run("%s libpublic.so", strip);
    take_notes("user");
    symbolize();
}

static void test_symbols_function_has_the_name_that_others_call_it_by(void)
{
    make_public("-g", ":");
    expect("written", "written public.c:3");
    expect("kept", "__kept public.c:5"); /* the other name is of an old version */
    expect("called", "__called public.c:9");
    expect("helper", "helper public.c:17");
    TEST_ASSERT_EQUAL_STRING("written", raw_name_of("written", 0));
#if defined(__x86_64__)
    expect("opened", "open_it public.c:7");
    expect("both", "__both public.c:11");
    expect("two", "__two public.c:14");
#endif
}

static const char *function_of(const char *label)
{
    return symbols.strings[symbols.symbols[symbols.ranges[index_of(label)].first].function].text;
}

/* "prog+0x11e0" for a function that the file "symbols" (of nm) has. */
static const char *place_of(const char *function)
{
    static char place[64];
    char path[1100], name[64];
    unsigned long address;
    snprintf(path, sizeof path, "%s/symbols", folder);
    FILE *file = fopen(path, "r");
    TEST_ASSERT_NOT_NULL(file);
    *place = '\0';
    while (fscanf(file, "%lx %*s %63s", &address, name) == 2)
        if (strcmp(name, function) == 0)
            snprintf(place, sizeof place, "prog+0x%lx", address);
    fclose(file);
    return place;
}

static void test_symbols_functions_without_names_are_called_after_where_they_begin(void)
{
    make_sample(CC, "");
    run("nm --defined-only prog > symbols && strip prog");
    symbolize();
    TEST_ASSERT_EQUAL_STRING(place_of("outer"), function_of("inner"));
    TEST_ASSERT_EQUAL_STRING(place_of("plain"), function_of("plain"));
    TEST_ASSERT_EQUAL_INT(TA__MODULE_NAMES_ONLY, state_of(0));
}

#if defined(__x86_64__)
/* A function without a name that one public function alone goes on in has the name of that. */
static void test_symbols_function_without_a_name_has_that_of_the_one_that_jumps_there(void)
{
    make_public("", "strip");
    TEST_ASSERT_EQUAL_STRING("written", function_of("written"));
    TEST_ASSERT_EQUAL_STRING("open_it", function_of("opened"));
    TEST_ASSERT_EQUAL_STRING("help", function_of("helper"));
    TEST_ASSERT_EQUAL_STRING("go_on", function_of("behind")); /* it stands behind who jumps */
    TEST_ASSERT_EQUAL(0, strncmp("libpublic.so+0x", function_of("called"), 15));
    TEST_ASSERT_EQUAL(0, strncmp("libpublic.so+0x", function_of("both"), 15));
    TEST_ASSERT_EQUAL(0, strncmp("libpublic.so+0x", function_of("two"), 15));
}
#endif

static void test_symbols_functions_that_no_table_knows_are_called_after_the_address(void)
{
    make_sample(CC, "");
    run("strip prog && objcopy -R .eh_frame -R .eh_frame_hdr prog bare && mv bare prog");
    symbolize();
    char place[64];
    const struct note *note = &notes[index_of("plain")];
    snprintf(place, sizeof place, "prog+0x%lx", (unsigned long)(note->address - modules[note->module - 1].load_base));
    TEST_ASSERT_EQUAL_STRING(place, function_of("plain"));
}

static void test_symbols_damaged_unwind_tables_do_no_harm(void)
{
    make_sample(CC, "");
    run("strip prog && objcopy --dump-section .eh_frame=table prog");
    for (int i = 0; i < 40; i++) {
        run("cp table damaged && printf '\\%o' | dd of=damaged bs=1 seek=%d conv=notrunc 2>/dev/null && "
            "objcopy --update-section .eh_frame=damaged prog",
            i * 53 % 256, i * 7);
        symbolize();
        TEST_ASSERT_EQUAL_STRING_LEN("prog+0x", function_of("plain"), 7);
    }
}

static void test_symbols_mini_debug_information_names_functions(void)
{
    if (!have("xz"))
        TEST_IGNORE_MESSAGE("no xz here");
    make_sample(CC, "-g");
    run("nm prog --format=posix --defined-only | awk '$2 ~ /[Tt]/ { print $1 }' >keep && "
        "objcopy --only-keep-debug prog mini && objcopy -S --keep-symbols=keep mini && strip prog && xz mini && "
        "objcopy --add-section .gnu_debugdata=mini.xz prog");
    symbolize();
    expect_names_only();
}

/* Files that cannot be trusted */

static void test_symbols_program_that_was_replaced_is_not_used(void)
{
    make_sample(CC, "-g");
    run("sed -i 's/x . 1/x ^ 7/' sample.c && " CC " -g -O2 -DENTRY=entry sample.c main.c -o prog -ldl");
    symbolize();
    expect_nothing(TA__MODULE_DIFFERS);
}

static void test_symbols_program_that_lost_its_build_id_is_not_used(void)
{
    make_sample(CC, "-g");
    run("objcopy --remove-section .note.gnu.build-id prog");
    symbolize();
    expect_nothing(TA__MODULE_DIFFERS);
}

static void test_symbols_program_that_is_gone_leaves_its_path(void)
{
    make_sample(CC, "-g");
    run("rm prog");
    symbolize();
    expect_nothing(TA__MODULE_ABSENT);
}

static void test_symbols_things_that_are_no_programs_leave_the_path(void)
{
    make_sample(CC, "-g");
    run("echo text >prog");
    symbolize();
    expect_nothing(TA__MODULE_UNREADABLE);
    run("rm prog && mkfifo prog");
    symbolize();
    expect_nothing(TA__MODULE_ABSENT);
    run("rm prog && mkdir prog");
    symbolize();
    expect_nothing(TA__MODULE_ABSENT);
    run("rmdir prog && : >prog");
    symbolize();
    expect_nothing(TA__MODULE_UNREADABLE);
}

static void test_symbols_cut_off_and_damaged_files_do_no_harm(void)
{
    make_sample(CC, "-g");
    char path[1100];
    snprintf(path, sizeof path, "%s/prog", folder);
    FILE *file = fopen(path, "rb");
    static unsigned char whole[1 << 20], damaged[1 << 20];
    size_t size = fread(whole, 1, sizeof whole, file);
    fclose(file);
    TEST_ASSERT_LESS_THAN_UINT(sizeof whole, size);
    modules[0].build_id_length = 0; /* damage may hit the note: what is behind it is meant */

    uint64_t state = 99;
    for (int round = 0; round < 300; round++) {
        size_t length = size;
        memcpy(damaged, whole, size);
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (round % 3 == 0)
            length = (size_t)(state >> 33) % size;
        for (int change = 0; change < 8; change++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            damaged[(state >> 33) % size] = (unsigned char)(state >> 25);
        }
        unlink(path);
        file = fopen(path, "wb");
        fwrite(damaged, 1, length, file);
        fclose(file);
        symbolize();
        for (uint32_t i = 0; i < note_count; i++)
            TEST_ASSERT_GREATER_THAN_UINT32(0, symbols.ranges[i].count);
    }
}

/* Addresses outside of files */

static void test_symbols_address_in_no_module_is_unknown(void)
{
    struct ta__symbolizer_address addresses[] = {{0x1234, 0, 0}, {0, 0, 0}, {UINT64_MAX, 0, 1}};
    symbolizer = ta__symbolizer_open(NULL, NULL, 0);
    TEST_ASSERT_EQUAL_INT(0, ta__symbolizer_run(symbolizer, addresses, 3, &symbols));
    for (uint32_t i = 0; i < 3; i++)
        TEST_ASSERT_EQUAL_STRING("0xN <unknown>:0 no lines", text_of(i));
}

static void test_symbols_no_addresses_give_empty_tables(void)
{
    symbolizer = ta__symbolizer_open(NULL, NULL, 0);
    TEST_ASSERT_EQUAL_INT(0, ta__symbolizer_run(symbolizer, NULL, 0, &symbols));
    TEST_ASSERT_EQUAL_UINT32(0, symbols.symbol_count);
}

static void test_symbols_module_out_of_range_is_an_error(void)
{
    struct ta__symbolizer_address address = {0x1234, 1, 0};
    symbolizer = ta__symbolizer_open(NULL, NULL, 0);
    TEST_ASSERT_EQUAL_INT(EINVAL, ta__symbolizer_run(symbolizer, &address, 1, &symbols));
}

static int find_vdso(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct module *module = context;
    uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && info->dlpi_addr + segment->p_vaddr == vdso)
            module->load_base = info->dlpi_addr;
    }
    for (int i = 0; module->load_base == info->dlpi_addr && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE)
            continue;
        const char *at = (const char *)info->dlpi_addr + segment->p_vaddr, *end = at + segment->p_memsz;
        while (at < end) {
            const ElfW(Nhdr) *note = (const void *)at;
            const char *name = at + sizeof *note, *data = name + ((note->n_namesz + 3) & ~3u);
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
                memcpy(module->build_id, data, note->n_descsz);
                module->build_id_length = note->n_descsz;
            }
            at = data + ((note->n_descsz + 3) & ~3u);
        }
    }
    return 0;
}

static void test_symbols_vdso_functions_are_named_when_the_build_id_is_that_of_this_kernel(void)
{
    void *vdso = dlopen("linux-vdso.so.1", RTLD_NOLOAD | RTLD_NOW);
    void *function = vdso ? dlsym(vdso, "__vdso_clock_gettime") : NULL;
    if (!function)
        TEST_IGNORE_MESSAGE("no vdso here");
    dl_iterate_phdr(find_vdso, &modules[0]);
    TEST_ASSERT_GREATER_THAN_UINT32(0, modules[0].build_id_length);
    snprintf(modules[0].path, sizeof modules[0].path, "%s", "linux-vdso.so.1");
    module_count = note_count = 1;
    notes[0] = (struct note){"vdso", (uintptr_t)function + 1, 1};

    symbolize();
    expect("vdso", "clock_gettime linux-vdso.so.1:0 no lines");
    TEST_ASSERT_EQUAL_UINT64(1, symbols.symbols[0].offset);

    modules[0].build_id[0] ^= 1;
    symbolize();
    expect("vdso", "linux-vdso.so.1+0xN linux-vdso.so.1:0 no lines");
}

/* Many at once */

struct progress {
    size_t calls, last_done, total;
    int fell;
};

static void count_progress(void *context, size_t done, size_t total)
{
    struct progress *progress = context;
    progress->calls++;
    progress->fell = progress->fell || done < progress->last_done || done > total;
    progress->last_done = done;
    progress->total = total;
}

/* Every 7th byte of libc and of this program: more than enough for several slices. */
static void test_symbols_answer_is_the_same_for_any_number_of_threads_and_progress_is_told(void)
{
    enum { COUNT = 60000 };
    struct ta__symbolizer_module recorded[2] = {{.path = "/proc/self/exe"}};
    Dl_info info;
    TEST_ASSERT_NOT_EQUAL_INT(0, dladdr((void *)(uintptr_t)&fopen, &info));
    recorded[1].path = info.dli_fname;
    uint64_t libc_start = (uintptr_t)dlsym(RTLD_DEFAULT, "fopen") - (uintptr_t)info.dli_fbase - 100000;
    struct ta__symbolizer_address *addresses = calloc(COUNT, sizeof *addresses);
    for (uint32_t i = 0; i < COUNT; i++) {
        addresses[i].module = 1 + i % 2;
        addresses[i].address = i % 2 ? libc_start + i * 7u : 0x1000 + i * 7u;
    }

    struct ta__symbols answers[2];
    struct ta__symbolizer *open[2];
    static const unsigned threads[2] = {1, 7};
    for (int i = 0; i < 2; i++) {
        struct progress progress = {0};
        struct ta__symbolizer_options options = {
            .threads = threads[i], .slice_bytes = 1, .progress = count_progress, .progress_context = &progress};
        open[i] = ta__symbolizer_open(&options, recorded, 2);
        TEST_ASSERT_EQUAL_INT(0, ta__symbolizer_run(open[i], addresses, COUNT, &answers[i]));
        TEST_ASSERT_GREATER_THAN_UINT(0, progress.calls);
        TEST_ASSERT_FALSE(progress.fell);
        TEST_ASSERT_EQUAL_UINT(COUNT, progress.total);
        TEST_ASSERT_EQUAL_UINT(COUNT, progress.last_done);
    }

    for (uint32_t i = 0; i < COUNT; i++)
        TEST_ASSERT_GREATER_THAN_UINT32(0, answers[0].ranges[i].count);
    TEST_ASSERT_EQUAL_UINT32(answers[0].symbol_count, answers[1].symbol_count);
    TEST_ASSERT_EQUAL_UINT32(answers[0].string_count, answers[1].string_count);
    TEST_ASSERT_EQUAL_MEMORY(answers[0].ranges, answers[1].ranges, COUNT * sizeof *answers[0].ranges);
    for (uint32_t i = 0; i < answers[0].symbol_count; i++) {
        const struct ta__view_symbol *one = &answers[0].symbols[i], *other = &answers[1].symbols[i];
        TEST_ASSERT_EQUAL_UINT32(one->file, other->file);
        TEST_ASSERT_EQUAL_UINT32(one->line, other->line);
        TEST_ASSERT_EQUAL_UINT32(one->function, other->function);
        TEST_ASSERT_EQUAL_UINT32(one->raw_name, other->raw_name);
        TEST_ASSERT_EQUAL_UINT64(one->offset, other->offset);
        TEST_ASSERT_EQUAL_UINT32(one->flags, other->flags);
    }
    TEST_ASSERT_GREATER_THAN_UINT32(100, answers[0].string_count);
    for (uint32_t i = 0; i < answers[0].string_count; i++)
        TEST_ASSERT_EQUAL_STRING(answers[0].strings[i].text, answers[1].strings[i].text);
    ta__symbolizer_close(open[0]);
    ta__symbolizer_close(open[1]);
    free(addresses);
}

static void test_symbols_equal_addresses_share_one_answer(void)
{
    make_sample(CC, "-g");
    struct note copy = notes[0];
    notes[note_count++] = copy;
    symbolize();
    TEST_ASSERT_EQUAL_MEMORY(&symbols.ranges[0], &symbols.ranges[note_count - 1], sizeof symbols.ranges[0]);
}

static void test_symbols_view_gets_one_range_per_frame_and_none_for_frames_that_have_lines(void)
{
    make_sample(CC, "-g");
    struct ta__view_string strings[] = {{"", 0}, {modules[0].path, strlen(modules[0].path)}, {"given.c", 7}};
    struct ta__view_module module = {.path = 1,
                                     .build_id = modules[0].build_id,
                                     .build_id_length = modules[0].build_id_length,
                                     .load_base = modules[0].load_base};
    struct ta__view_frame frames[] = {
        {.kind = TA__FRAME_SOURCE, .file = 2, .line = 7},
        {.kind = TA__FRAME_ADDRESS, .module = 1, .address = notes[index_of("inner")].address},
        {.kind = TA__FRAME_OVERFLOW},
        {.kind = TA__FRAME_ADDRESS, .module = 0, .address = 42},
    };
    struct ta__view view = {.strings = strings,
                            .string_count = 3,
                            .modules = &module,
                            .module_count = 1,
                            .frames = frames,
                            .frame_count = 4};

    TEST_ASSERT_EQUAL_INT(0, ta__symbolize_view(&view, NULL, &symbolizer, &symbols));

    TEST_ASSERT_EQUAL_UINT32(0, symbols.ranges[0].count);
    TEST_ASSERT_EQUAL_STRING(SAMPLE_INNER, text_of(1));
    TEST_ASSERT_EQUAL_UINT32(0, symbols.ranges[2].count);
    TEST_ASSERT_EQUAL_STRING("0xN <unknown>:0 no lines", text_of(3));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_symbols_inlined_calls_in_dwarf_5_are_expanded_innermost_first);
    RUN_TEST(test_symbols_inlined_calls_in_dwarf_4_are_expanded_innermost_first);
    RUN_TEST(test_symbols_inlined_calls_in_dwarf_3_and_2_are_expanded_innermost_first);
    RUN_TEST(test_symbols_line_tables_only_still_name_functions_and_inlined_calls);
    RUN_TEST(test_symbols_program_at_a_fixed_address_is_read);
    RUN_TEST(test_symbols_compressed_sections_are_read);
    RUN_TEST(test_symbols_split_dwarf_is_read_from_its_own_files);
    RUN_TEST(test_symbols_split_dwarf_that_is_gone_leaves_lines_and_the_outermost_name);
    RUN_TEST(test_symbols_link_time_optimised_program_is_read);
    RUN_TEST(test_symbols_discarded_functions_do_not_get_in_the_way);
    RUN_TEST(test_symbols_clang_programs_are_read);
    RUN_TEST(test_symbols_shared_library_is_read_at_its_own_base);
    RUN_TEST(test_symbols_cxx_names_are_demangled_and_the_raw_ones_kept);
    RUN_TEST(test_symbols_cxx_of_later_years_is_still_cxx);
    RUN_TEST(test_symbols_cxx_names_deep_in_the_tree_are_whole);
    RUN_TEST(test_symbols_rust_names_are_demangled_and_the_raw_ones_kept);
    RUN_TEST(test_symbols_return_address_behind_a_function_still_belongs_to_the_call);
    RUN_TEST(test_symbols_offset_counts_from_the_start_of_the_function_to_the_return_address);
    RUN_TEST(test_symbols_debug_file_beside_the_program_is_found_by_its_link);
    RUN_TEST(test_symbols_debug_file_of_another_build_is_refused);
    RUN_TEST(test_symbols_debug_file_with_another_checksum_is_refused);
    RUN_TEST(test_symbols_debug_file_in_a_build_id_directory_is_found);
    RUN_TEST(test_symbols_program_that_is_gone_is_read_from_its_debug_file);
    RUN_TEST(test_symbols_debug_information_shared_by_dwz_is_read);
    RUN_TEST(test_symbols_without_debug_information_functions_come_from_the_symbol_table);
#if defined(__x86_64__)
    RUN_TEST(test_symbols_of_functions_written_by_hand_reach_to_the_next_place);
#endif
    RUN_TEST(test_symbols_stripped_library_offers_its_exported_functions);
    RUN_TEST(test_symbols_function_has_the_name_that_others_call_it_by);
#if defined(__x86_64__)
    RUN_TEST(test_symbols_function_without_a_name_has_that_of_the_one_that_jumps_there);
#endif
    RUN_TEST(test_symbols_functions_without_names_are_called_after_where_they_begin);
    RUN_TEST(test_symbols_functions_that_no_table_knows_are_called_after_the_address);
    RUN_TEST(test_symbols_damaged_unwind_tables_do_no_harm);
    RUN_TEST(test_symbols_mini_debug_information_names_functions);
    RUN_TEST(test_symbols_program_that_was_replaced_is_not_used);
    RUN_TEST(test_symbols_program_that_lost_its_build_id_is_not_used);
    RUN_TEST(test_symbols_program_that_is_gone_leaves_its_path);
    RUN_TEST(test_symbols_things_that_are_no_programs_leave_the_path);
    RUN_TEST(test_symbols_cut_off_and_damaged_files_do_no_harm);
    RUN_TEST(test_symbols_address_in_no_module_is_unknown);
    RUN_TEST(test_symbols_no_addresses_give_empty_tables);
    RUN_TEST(test_symbols_module_out_of_range_is_an_error);
    RUN_TEST(test_symbols_vdso_functions_are_named_when_the_build_id_is_that_of_this_kernel);
    RUN_TEST(test_symbols_answer_is_the_same_for_any_number_of_threads_and_progress_is_told);
    RUN_TEST(test_symbols_equal_addresses_share_one_answer);
    RUN_TEST(test_symbols_view_gets_one_range_per_frame_and_none_for_frames_that_have_lines);
    return UNITY_END();
}
