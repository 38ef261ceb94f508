"""test_known_lines.py: programs whose live memory is known line by line, traced, dumped, and read by a clean process.

    test_known_lines.py RUNTIME TRACEALLOC CC CXX

A line that allocates says so: `/* @name count size */` is `count` live blocks of `size` bytes each when the program ends. For
every such line the report must have exactly that, and nothing else of these sources may appear.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

RUNTIME, TRACEALLOC, CC, CXX = [os.path.abspath(path) if "/" in path else path for path in sys.argv[1:5]]
del sys.argv[1:5]

LIBRARY = r'''
#include <stdlib.h>
static inline __attribute__((always_inline)) void *deepest(size_t size)
{
    return malloc(size); /* @deepest 7 100 */
}
static inline __attribute__((always_inline)) void *middle(size_t size)
{
    void *block = deepest(size); /* @middle cumulative 7 100 */
    return block;
}
void *library_make(void)
{
    void *block = middle(100); /* @make cumulative 7 100 */
    return block;
}
void *library_zeroed(void)
{
    return calloc(3, 11); /* @zeroed 2 33 */
}
'''

PROGRAM = r'''
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
void *library_make(void);
void *library_zeroed(void);
void *volatile keep[64];
static int kept;
static __attribute__((noinline)) void recurse(int depth)
{
    if (depth > 0)
        recurse(depth - 1);
    else
        keep[kept++] = malloc(1000); /* @recursion 1 1000 */
    __asm__ volatile("");
}
static void *thread(void *unused)
{
    keep[kept++] = strdup("in a thread"); /* @strdup-caller cumulative 1 12 */
    return unused;
}
int main(void)
{
    pthread_t other;
    for (int i = 0; i < 7; i++)
        keep[kept++] = library_make(); /* @loop cumulative 7 100 */
    for (int i = 0; i < 2; i++)
        keep[kept++] = library_zeroed();
    recurse(10);
    for (int i = 0; i < 1000; i++) {
        char *volatile gone = malloc(5000); /* freed again: not in the report */
        free(gone);
    }
    void *grown = malloc(10);
    keep[kept++] = realloc(grown, 4096); /* @realloc 1 4096 */
    keep[kept++] = aligned_alloc(256, 512); /* @aligned 1 512 */
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    return 0;
}
'''

CXX_PROGRAM = r'''
#include <string>
#include <vector>
template <typename T> struct holder {
    T *items;
    explicit holder(int count) : items(new T[count]) /* @template 3 80 */
    {
    }
};
struct node { char bytes[48]; };
void *volatile keep[64];
int main()
{
    int kept = 0;
    for (int i = 0; i < 3; i++)
        keep[kept++] = holder<double>(10).items; /* @caller cumulative 3 80 */
    keep[kept++] = new node; /* @new 1 48 */
    auto *words = new std::vector<std::string>; /* @vector 1 24 */
    words->reserve(10); /* @reserve cumulative 1 320 */
    keep[kept++] = words;
    auto make = [&](int size) { keep[kept++] = new char[size]; }; /* @lambda 2 60 */
    make(60);
    make(60);
    return 0;
}
'''


def expectations(source, name):
    """{line: (count, total, is cumulative)}"""
    expected = {}
    for number, line in enumerate(source.splitlines(), 1):
        found = re.search(r"/\* @\S+ (cumulative )?(\d+) (\d+) \*/", line)
        if found:
            count, size = int(found[2]), int(found[3])
            expected[(name, number)] = (count, count * size, found[1] is not None)
    return expected


class KnownLines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        os.chdir(self.folder)
        for name, text in (("library.c", LIBRARY), ("program.c", PROGRAM), ("program.cpp", CXX_PROGRAM)):
            with open(name, "w") as file:
                file.write(text)

    def command(self, *arguments, **options):
        done = subprocess.run(arguments, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.assertEqual(done.returncode, 0, (arguments, done.stderr.decode()))
        return done.stdout.decode()

    def build(self, *flags):
        common = ["-g", "-fno-optimize-sibling-calls", *flags]
        self.command(CC, *common, "-fPIC", "-shared", "library.c", "-o", "liblibrary.so")
        self.command(CC, *common, "program.c", "-o", "program", "-L.", "-llibrary", "-lpthread", "-Wl,-rpath,$ORIGIN")
        self.command(CXX, *common, "program.cpp", "-o", "program_cpp")

    def trace(self, program, output, nframe=200):
        self.command(f"./{program}", env={**os.environ, "LD_PRELOAD": RUNTIME, "TRACEALLOC": str(nframe),
                                          "TRACEALLOC_OPTIONS": f"output={output}"})
        self.assertTrue(os.path.exists(output))

    def lines(self, recording, *arguments):
        rows = json.loads(self.command(TRACEALLOC, "stats", recording, "--key", "lineno", "--json", *arguments))
        return {(os.path.basename(row["frames"][0][0]), row["frames"][0][1]): (row["count"], row["size"]) for row in rows}

    def check(self, recording, sources):
        expected = {}
        for name, text in sources:
            expected.update(expectations(text, name))
        exact, cumulative = self.lines(recording), self.lines(recording, "--cumulative")
        for place, (count, total, is_cumulative) in expected.items():
            self.assertEqual((cumulative if is_cumulative else exact).get(place), (count, total), place)
        names = {name for name, _ in sources}
        allocating = {place for place, (_, _, is_cumulative) in expected.items() if not is_cumulative}
        self.assertEqual({place for place in exact if place[0] in names}, allocating)

    C_SOURCES = (("library.c", LIBRARY), ("program.c", PROGRAM))
    CXX_SOURCES = (("program.cpp", CXX_PROGRAM),)

    def test_every_line_of_a_c_program_and_its_library_is_exact(self):
        for flags in (["-O0"], ["-O2"], ["-O2", "-gdwarf-4"], ["-O3", "-fno-omit-frame-pointer"]):
            with self.subTest(flags=flags):
                self.build(*flags)
                self.trace("program", "c.ta")
                self.check("c.ta", self.C_SOURCES)

    def test_every_line_of_a_cxx_program_with_inlining_is_exact(self):
        for flags in (["-O0"], ["-O2"]):
            with self.subTest(flags=flags):
                self.build(*flags)
                self.trace("program_cpp", "cpp.ta")
                self.check("cpp.ta", self.CXX_SOURCES)

    def test_inlined_functions_are_named(self):
        self.build("-O2")
        self.trace("program", "c.ta")
        rows = json.loads(self.command(TRACEALLOC, "stats", "c.ta", "--key", "function", "--cumulative", "--json"))
        functions = {row["frames"][0][0]: (row["count"], row["size"]) for row in rows}
        for name in ("deepest", "middle", "library_make"):
            self.assertEqual(functions.get(name), (7, 700), name)

    def test_one_frame_gives_the_same_lines_and_no_depth(self):
        self.build("-O2")
        self.trace("program", "one.ta", nframe=1)
        exact = self.lines("one.ta")
        for place, (count, total, is_cumulative) in expectations(LIBRARY, "library.c").items():
            if not is_cumulative:
                self.assertEqual(exact.get(place), (count, total), place)
        traces = json.loads(self.command(TRACEALLOC, "export", "one.ta", "--json"))["traces"]
        self.assertTrue(traces)
        self.assertEqual({trace["total_nframe"] for trace in traces}, {None})
        self.trace("program", "whole.ta")
        for trace in json.loads(self.command(TRACEALLOC, "export", "whole.ta", "--json"))["traces"]:
            self.assertGreaterEqual(trace["total_nframe"], 1)

    def test_stripped_objects_find_their_separate_debug_files(self):
        self.build("-O2")
        for name in ("program", "liblibrary.so"):
            self.command("objcopy", "--only-keep-debug", name, f"{name}.debug")
            self.command("strip", name)
            self.command("objcopy", f"--add-gnu-debuglink={name}.debug", name)
        self.trace("program", "c.ta")
        self.check("c.ta", self.C_SOURCES)

    def test_without_debug_information_the_module_stands_for_the_line(self):
        self.build("-O2")
        self.command("strip", "-g", "program", "liblibrary.so")
        self.trace("program", "c.ta")
        lines = self.lines("c.ta")
        self.assertEqual(lines.get(("liblibrary.so", 0)), (9, 766))
        rows = json.loads(self.command(TRACEALLOC, "stats", "c.ta", "--key", "function", "--json"))
        functions = {row["frames"][0][0]: row["size"] for row in rows}
        self.assertEqual((functions.get("library_make"), functions.get("library_zeroed")), (700, 66))

    def test_symbols_stored_in_the_file_travel_without_the_binaries(self):
        self.build("-O2")
        self.trace("program", "c.ta")
        self.command(TRACEALLOC, "symbolize", "c.ta", "-o", "symbolized.ta")
        before = self.command(TRACEALLOC, "stats", "symbolized.ta", "--key", "traceback", "--json")
        os.mkdir("elsewhere")
        shutil.move("symbolized.ta", "elsewhere/")
        for name in ("program", "liblibrary.so"):
            os.remove(name)
        self.check("elsewhere/symbolized.ta", self.C_SOURCES)
        self.assertEqual(self.command(TRACEALLOC, "stats", "elsewhere/symbolized.ta", "--key", "traceback", "--json"), before)

    def test_a_library_that_was_rebuilt_is_not_believed(self):
        self.build("-O2")
        self.trace("program", "c.ta")
        with open("library.c", "a") as file:
            file.write("int library_version = 2;\n")
        self.build("-O1")
        lines = self.lines("c.ta")
        self.assertEqual([place for place in lines if place[0] == "library.c"], [])
        self.assertEqual(lines.get(("liblibrary.so", 0)), (9, 766))


if __name__ == "__main__":
    unittest.main()
