/* test_line_numbers.c: lines of addresses as addr2line tells them, for every byte of a small program, by each compiler that
 * is here and each version of DWARF, also compressed; and files whose line programs are damaged lead nowhere bad. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/format/codec.h"
#include "trace/unwind/debug_section.h"
#include "trace/unwind/inflate.h"
#include "trace/unwind/line_numbers.h"
#include "tests/support/random.h"
#include "unity.h"

enum { ADDRESSES_MAX = 4000 };

static char folder[] = "/tmp/test_line_numbers.XXXXXX";
static struct ta__line_number lines[ADDRESSES_MAX], *pointers[ADDRESSES_MAX];
static size_t count;

void setUp(void)
{
}

void tearDown(void)
{
}

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    TEST_ASSERT_NOT_NULL(file);
    fputs(text, file);
    fclose(file);
}

static int run(const char *format, const char *first, unsigned second)
{
    char command[512], whole[800];
    snprintf(command, sizeof command, format, first, second);
    snprintf(whole, sizeof whole, "cd %s && { %s; } 2>log", folder, command);
    return system(whole);
}

/* Every byte of the program's own functions. */
static void list_addresses(void)
{
    unsigned long long start, size;
    char path[256], name[256], kind;
    snprintf(path, sizeof path, "%s/functions", folder);
    FILE *functions = fopen(path, "r");
    FILE *addresses = NULL;
    snprintf(path, sizeof path, "%s/addresses", folder);
    addresses = fopen(path, "w");
    TEST_ASSERT_TRUE(functions != NULL && addresses != NULL);
    count = 0;
    while (fscanf(functions, "%llx %llx %c %255s", &start, &size, &kind, name) == 4)
        for (unsigned long long at = start; at < start + size && count < ADDRESSES_MAX; at++, count++) {
            lines[count] = (struct ta__line_number){.address = at};
            pointers[count] = &lines[count];
            fprintf(addresses, "0x%llx\n", at);
        }
    fclose(functions);
    fclose(addresses);
    TEST_ASSERT_GREATER_THAN_size_t(50, count);
}

/* Columns, which one of them tells, are cut off. */
static void expect_as_told_by(const char *judge, const char *what)
{
    char path[256], theirs[1024], ours[400];
    TEST_ASSERT_EQUAL_INT(0, run("%s -e program <addresses | sed 's/:\\([0-9]*\\):[0-9]*$/:\\1/' >told", judge, 0));
    snprintf(path, sizeof path, "%s/told", folder);
    FILE *told = fopen(path, "r");
    TEST_ASSERT_NOT_NULL(told);
    size_t compared = 0;
    for (size_t i = 0; i < count; i++) {
        TEST_ASSERT_NOT_NULL(fgets(theirs, sizeof theirs, told));
        theirs[strcspn(theirs, " \n")] = '\0';
        snprintf(ours, sizeof ours, "%s/%s:%u", folder, lines[i].file, lines[i].line);
        if (strchr(theirs, '?') != NULL && lines[i].line == 0)
            continue;
        TEST_ASSERT_EQUAL_STRING_MESSAGE(theirs, ours, what);
        compared++;
    }
    fclose(told);
    TEST_ASSERT_GREATER_THAN_size_t_MESSAGE(count * 3 / 4, compared, what);
}

static void expect_as_addr2line(const char *what)
{
    expect_as_told_by("addr2line", what);
}

static int build(const char *compiler, unsigned version)
{
    return run("%s -O1 -g -gdwarf-%u main.c src/deep/one.c -o program", compiler, version) == 0 &&
           run("nm -S %s | grep -E ' [tT] (main|one|two|inner)' >functions", "program", 0) == 0;
}

static void test_lines_are_those_of_addr2line(void)
{
    static const char *const compilers[] = {"cc", "gcc", "clang", "clang-19"};
    unsigned built = 0;
    char path[256];
    snprintf(path, sizeof path, "%s/program", folder);
    for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++)
        for (unsigned version = 2; version <= 5; version++) {
            char what[64];
            snprintf(what, sizeof what, "%s -gdwarf-%u", compilers[i], version);
            if (!build(compilers[i], version))
                continue;
            list_addresses();
            ta__lines_read(path, NULL, 0, pointers, count);
            expect_as_addr2line(what);
            built++;
        }
    TEST_ASSERT_GREATER_OR_EQUAL_UINT(4, built);
}

/* By another judge: binutils 2.40 names wrong files in some of them. */
static void test_lines_of_split_and_of_late_optimised_programs(void)
{
    if (system("eu-addr2line --version >/dev/null 2>&1") != 0)
        TEST_IGNORE_MESSAGE("no eu-addr2line here");
    static const char *const flags[] = {"-gsplit-dwarf -gdwarf-4", "-gsplit-dwarf -gdwarf-5", "-gdwarf-5 -gdwarf64",
                                        "-flto -gdwarf-4", "-flto -gdwarf-5"};
    char path[256];
    snprintf(path, sizeof path, "%s/program", folder);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        TEST_ASSERT_EQUAL_INT(0, run("cc -O1 -g %s -fno-inline main.c src/deep/one.c -o program", flags[i], 0));
        TEST_ASSERT_EQUAL_INT(0, run("nm -S %s | grep -E ' [tT] (main|one|two|inner)' >functions", "program", 0));
        list_addresses();
        ta__lines_read(path, NULL, 0, pointers, count);
        expect_as_told_by("eu-addr2line", flags[i]);
    }
}

static void test_compressed_tables_are_read(void)
{
    static const char *const forms[] = {"zlib", "zlib-gnu", "zstd"};
    char path[256];
    unsigned packed = 0;
    snprintf(path, sizeof path, "%s/program", folder);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (unsigned version = 4; version <= 5; version++) {
            TEST_ASSERT_TRUE(build("cc", version));
            if (run("objcopy --compress-debug-sections=%s program && readelf -SW program >sections", forms[i], 0) != 0)
                continue; /* older binutils know no zstd */
            TEST_ASSERT_EQUAL_INT(0, run("grep -E '\\.zdebug_line |\\.debug_line .* C ' sections", "", 0));
            list_addresses();
            ta__lines_read(path, NULL, 0, pointers, count);
            expect_as_addr2line(forms[i]);
            packed++;
        }
    TEST_ASSERT_GREATER_OR_EQUAL_UINT(4, packed);
}

static void test_without_zstd_its_tables_say_nothing(void)
{
    char path[256];
    snprintf(path, sizeof path, "%s/program", folder);
    TEST_ASSERT_TRUE(build("cc", 5));
    if (run("objcopy --compress-debug-sections=%s program", "zstd", 0) != 0)
        TEST_IGNORE_MESSAGE("objcopy knows no zstd");
    list_addresses();
    ta__unpack_zstd = NULL;
    ta__lines_read(path, NULL, 0, pointers, count);
    ta__unpack_zstd = ta__unpack_frames;
    for (size_t i = 0; i < count; i++)
        TEST_ASSERT_EQUAL_UINT(0, lines[i].line);
}

/* The linker leaves `unused` out, but not its lines, which then begin at 0 and reach to where code is. */
static void test_code_that_was_left_out_has_no_lines(void)
{
    char path[256];
    FILE *file;
    snprintf(path, sizeof path, "%s/large.c", folder);
    file = fopen(path, "w");
    TEST_ASSERT_NOT_NULL(file);
    fputs("int unused(volatile int *n)\n{\n", file);
    for (int i = 0; i < 4000; i++)
        fputs("    *n += 1;\n", file);
    fputs("    return *n;\n}\n", file);
    fclose(file);
    TEST_ASSERT_EQUAL_INT(
        0, run("cc -O1 -g -ffunction-sections -Wl,--gc-sections large.c main.c src/deep/one.c -o %s &&"
               "! nm program | grep -w unused && nm -S program | grep -E ' [tT] (main|one|two|inner)' >functions",
               "program", 0));
    snprintf(path, sizeof path, "%s/program", folder);
    list_addresses();
    ta__lines_read(path, NULL, 0, pointers, count);
    for (size_t i = 0; i < count; i++)
        TEST_ASSERT_NULL_MESSAGE(strstr(lines[i].file, "large.c"), lines[i].file);
    TEST_ASSERT_NOT_NULL(strstr(lines[0].file, ".c"));
}

static void test_what_has_no_lines_stays_without(void)
{
    char path[256];
    snprintf(path, sizeof path, "%s/program", folder);
    TEST_ASSERT_TRUE(build("cc", 5));
    list_addresses();
    TEST_ASSERT_EQUAL_INT(0, run("strip -g %s", "program", 0));
    ta__lines_read(path, NULL, 0, pointers, count);
    for (size_t i = 0; i < count; i++)
        TEST_ASSERT_EQUAL_UINT(0, lines[i].line);
    ta__lines_read("/nowhere", NULL, 0, pointers, count);
    ta__lines_read("/etc/passwd", NULL, 0, pointers, count);
    TEST_ASSERT_EQUAL_UINT(0, lines[0].line);
}

/* One byte as it is, by zlib. Other first bytes promise other methods, a dictionary, or are damaged. */
static void test_what_does_not_begin_as_zlib_is_not_unpacked(void)
{
    uint8_t stream[] = {0x78, 0x01, 1, 1, 0, 0xfe, 0xff, 'a', 0, 0x62, 0, 0x62}, byte = 0;
    TEST_ASSERT_TRUE(ta__inflate(&byte, 1, stream, sizeof stream));
    TEST_ASSERT_EQUAL_UINT8('a', byte);
    static const uint8_t wrong[][2] = {{0x78, 0x02}, {0x78, 0x20}, {0x77, 0x09}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(stream, wrong[i], 2);
        TEST_ASSERT_FALSE(ta__inflate(&byte, 1, stream, sizeof stream));
    }
}

static uint64_t find_section(const char *path, uint64_t *size)
{
    struct ta__elf_file file;
    TEST_ASSERT_TRUE(ta__elf_open(&file, path, NULL, 0));
    const Elf64_Shdr *section = ta__elf_section(&file, ".debug_line");
    TEST_ASSERT_NOT_NULL(section);
    *size = section->sh_size;
    uint64_t offset = section->sh_offset;
    ta__elf_close(&file);
    return offset;
}

static void test_entries_of_no_bytes_are_none(void)
{
    static const uint8_t damage[] = {0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}; /* formats, entries */
    enum { FOLDER_FORMATS = 30 }; /* in a header of version 5 */
    char path[256];
    uint64_t size;
    snprintf(path, sizeof path, "%s/program", folder);
    TEST_ASSERT_TRUE(build("cc", 5));
    list_addresses();
    int descriptor = open(path, O_RDWR);
    off_t at = (off_t)find_section(path, &size) + FOLDER_FORMATS;
    TEST_ASSERT_EQUAL_INT(sizeof damage, pwrite(descriptor, damage, sizeof damage, at));
    for (size_t i = 0; i < count; i++)
        lines[i].line = 0;
    ta__lines_read(path, NULL, 0, pointers, count < 40 ? count : 40);
    close(descriptor);
}

static void test_damaged_line_programs_lead_nowhere_bad(void)
{
    char path[256];
    uint64_t seed = random_seed(), size;
    snprintf(path, sizeof path, "%s/program", folder);
    for (unsigned version = 4; version <= 5; version++) {
        TEST_ASSERT_TRUE(build("cc", version));
        list_addresses();
        uint64_t start = find_section(path, &size);
        int descriptor = open(path, O_RDWR);
        for (int round = 0; round < 1500; round++) {
            uint8_t was[4], is[4];
            uint64_t at = start + random_below(&seed, size - sizeof was);
            uint64_t bits = random_next(&seed);
            TEST_ASSERT_EQUAL_INT(sizeof was, pread(descriptor, was, sizeof was, (off_t)at));
            memcpy(is, was, sizeof is);
            memcpy(is, &bits, 1 + bits % sizeof is);
            TEST_ASSERT_EQUAL_INT(sizeof is, pwrite(descriptor, is, sizeof is, (off_t)at));
            for (size_t i = 0; i < count; i++)
                lines[i].line = 0;
            ta__lines_read(path, NULL, 0, pointers, count < 40 ? count : 40);
            if (round % 8 != 0) /* else the damage stays, and more comes */
                TEST_ASSERT_EQUAL_INT(sizeof was, pwrite(descriptor, was, sizeof was, (off_t)at));
        }
        close(descriptor);
    }
}

/* The checksum stands between damage and a wrong line. */
static void test_damaged_packed_lines_are_right_or_none(void)
{
    char path[256];
    uint32_t right[40];
    uint64_t seed = random_seed(), size;
    unsigned none = 0;
    snprintf(path, sizeof path, "%s/program", folder);
    TEST_ASSERT_TRUE(build("cc", 5));
    TEST_ASSERT_EQUAL_INT(0, run("objcopy --compress-debug-sections=%s program", "zlib", 0));
    list_addresses();
    size_t some = count < 40 ? count : 40;
    ta__lines_read(path, NULL, 0, pointers, some);
    for (size_t i = 0; i < some; i++)
        right[i] = lines[i].line;
    TEST_ASSERT_NOT_EQUAL_UINT(0, right[0]);
    uint64_t start = find_section(path, &size);
    int descriptor = open(path, O_RDWR);
    for (int round = 0; round < 1500; round++) {
        uint8_t was, is;
        off_t at = (off_t)(start + random_below(&seed, size));
        TEST_ASSERT_EQUAL_INT(1, pread(descriptor, &was, 1, at));
        is = (uint8_t)(was ^ (1 + random_below(&seed, 255)));
        TEST_ASSERT_EQUAL_INT(1, pwrite(descriptor, &is, 1, at));
        for (size_t i = 0; i < some; i++)
            lines[i].line = 0;
        ta__lines_read(path, NULL, 0, pointers, some);
        for (size_t i = 0; i < some; i++)
            TEST_ASSERT_TRUE(lines[i].line == 0 || lines[i].line == right[i]);
        none += lines[0].line == 0;
        TEST_ASSERT_EQUAL_INT(1, pwrite(descriptor, &was, 1, at));
    }
    close(descriptor);
    TEST_ASSERT_GREATER_THAN_UINT(1000, none);
}

int main(void)
{
    ta__unpack_zstd = ta__unpack_frames;
    if (system("addr2line --version >/dev/null 2>&1 && cc --version >/dev/null 2>&1") != 0)
        return 77;
    if (mkdtemp(folder) == NULL || run("mkdir -p %s", "src/deep", 0) != 0)
        return 1;
    write_file("src/inner.h",
               "static inline int inner(int n)\n{\n    return n > 3 ?\n        n * 7 :\n        n + 1;\n}\n");
    write_file("src/deep/one.c",
               "#include \"../inner.h\"\nint two(int n);\n\nint one(int n)\n{\n    int sum = 0;\n"
               "    for (int i = 0; i < n; i++)\n        sum += two(inner(i));\n    return sum;\n}\n");
    write_file("main.c",
               "#include <stdio.h>\n#include \"src/inner.h\"\nint one(int n);\nint two(int n)\n{\n"
               "    puts(\"two\");\n    return inner(n) +\n        n;\n}\n\nint main(int count, char **arguments)\n"
               "{\n    (void)arguments;\n    return one(count) + two(count);\n}\n");
    UNITY_BEGIN();
    RUN_TEST(test_lines_are_those_of_addr2line);
    RUN_TEST(test_lines_of_split_and_of_late_optimised_programs);
    RUN_TEST(test_compressed_tables_are_read);
    RUN_TEST(test_without_zstd_its_tables_say_nothing);
    RUN_TEST(test_code_that_was_left_out_has_no_lines);
    RUN_TEST(test_what_has_no_lines_stays_without);
    RUN_TEST(test_what_does_not_begin_as_zlib_is_not_unpacked);
    RUN_TEST(test_entries_of_no_bytes_are_none);
    RUN_TEST(test_damaged_line_programs_lead_nowhere_bad);
    RUN_TEST(test_damaged_packed_lines_are_right_or_none);
    int failures = UNITY_END();
    run("rm -rf %s", folder, 0);
    return failures;
}
