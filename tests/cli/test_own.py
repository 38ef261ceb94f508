"""test_own.py: whose line it is, as the program says it: what is skipped and shown, and who may change that.

    test_own.py TRACEALLOC LIBRARY
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TRACEALLOC, LIBRARY = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
for name in ("LD_PRELOAD", "COLUMNS", "NO_COLOR", "DEBUGINFOD_URLS", "TRACEALLOC_SYMBOLS"):
    os.environ.pop(name, None)
os.environ.update(TRACEALLOC_LIBRARY=LIBRARY, LC_ALL="C.UTF-8", TERM="xterm")

PROGRAM = """
#include <map>
#include <memory>
#include <string>
#include <vector>
#include <cstdlib>
struct Text { char *bytes; };
__attribute__((noinline)) void text_grow(Text &text, size_t size)
{
    text.bytes = static_cast<char *>(realloc(text.bytes, size)); /* grow */
}
template <class T> struct Table {
    T *rows = nullptr;
    __attribute__((noinline)) void grow(size_t count) { rows = new T[count]; } /* table */
};
template <class T> struct List {
    T *rows = nullptr;
    __attribute__((noinline)) void fill(size_t count) { rows = new T[count]; } /* list */
};
struct Order { int number; std::string customer; };
static std::vector<std::shared_ptr<Order>> &orders = *new std::vector<std::shared_ptr<Order>>;
static Text header, body;
static Table<int> numbers;
static Table<double> prices;
static List<double> many;
static List<char> few;
__attribute__((noinline)) static void write_header() { text_grow(header, 3000); } /* header */
__attribute__((noinline)) static void write_body() { text_grow(body, 1000); } /* body */
int main()
{
    for (int i = 0; i < 100; i++)
        orders.push_back(std::make_shared<Order>()); /* order */
    numbers.grow(100);
    prices.grow(100);
    many.fill(20);
    few.fill(1);
    write_header();
    write_body();
}
"""


WAYS = """
#include <stdlib.h>
#include <string.h>
#include <new>
char *kept[6];
int main()
{
    char text[100];
    memset(text, 'x', sizeof text);
    text[99] = 0;
    kept[0] = (char *)malloc(2000), kept[1] = strdup(text); /* direct */
    kept[2] = (char *)malloc(20), kept[3] = strdup(text); /* copied */
    free((kept[4] = (char *)malloc(2000), kept[5] = strdup(text), kept[4])), free(kept[5]); /* gone */
    try {
        kept[0] = new char[(size_t)1 << 62]; /* refused */
    } catch (std::bad_alloc &) {
    }
}
"""


def line_of(mark):
    return next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if f"/* {mark} */" in text)


class Own(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        os.chdir(cls.folder)
        cls.home = os.path.join(cls.folder, "home")
        os.makedirs("app/src")
        os.mkdir(cls.home)
        os.environ["HOME"] = cls.home
        with open("app/src/shop.cpp", "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        subprocess.run(["g++", "-g", "-O1", "-o", "app/shop", os.path.join(cls.folder, "app/src/shop.cpp")], check=True)
        subprocess.run([TRACEALLOC, "run", "-q", "-o", "shop.ta", "app/shop"], check=True)
        os.chdir("app")

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        shutil.rmtree(cls.folder)

    def tearDown(self):
        for path in (".tracealloc", "../.tracealloc", os.path.join(self.home, ".tracealloc")):
            if os.path.exists(path):
                os.remove(path)

    def run_program(self, *arguments, status=0, environment=None):
        done = subprocess.run([TRACEALLOC, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              env={**os.environ, **(environment or {})})
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout.decode() if status == 0 else done.stderr.decode()

    def rows(self, *arguments):
        return json.loads(self.run_program("top", "../shop.ta", "--json", *arguments))

    def lines(self, *arguments):
        """(line or function, bytes) of each row of the source."""
        return {row["line"]: row["size"] for row in self.rows(*arguments) if row["key"].endswith("shop.cpp")}

    # ---- rows ----

    def test_rows_are_lines_of_the_program_and_say_what_they_went_through(self):
        text = self.run_program("top", "../shop.ta")
        self.assertRegex(text, rf"(?m)  src/shop\.cpp:{line_of('order')}  main  via std::make_shared, std::vector<shared_ptr<…>>::push_back$")
        self.assertEqual(self.lines()[line_of("grow")], 4000)
        row = next(r for r in self.rows() if r["line"] == line_of("order"))
        self.assertEqual((row["function"], row["members"][0]["function"]), ("main", "main"))
        self.assertIn("make_shared<Order", row["via"])

    def test_a_way_is_named_where_most_of_the_row_came_by_it(self):
        with open("ways.cpp", "w", encoding="utf-8") as file:
            file.write(WAYS)
        subprocess.run(["g++", "-g", "-O1", "-fno-builtin", "-Wno-alloc-size-larger-than", "-o", "ways", "ways.cpp"], check=True)
        self.run_program("run", "-q", "-o", "ways.ta", "./ways")
        line = {mark: next(n for n, text in enumerate(WAYS.splitlines(), 1) if f"/* {mark} */" in text)
                for mark in ("direct", "copied", "gone", "refused")}
        text = self.run_program("top", "ways.ta", "--sort", "total", "-n", "0")
        self.assertRegex(text, rf"(?m)  ways\.cpp:{line['direct']}  main$")
        self.assertRegex(text, rf"(?m)  ways\.cpp:{line['copied']}  main  via \S*strdup$")
        self.assertRegex(text, rf"(?m)  ways\.cpp:{line['gone']}  main$")
        self.assertNotIn("slow", text)
        row = {row["line"]: row for row in json.loads(self.run_program("top", "ways.ta", "--sort", "total", "--json"))}
        self.assertEqual(row[line["direct"]]["via"], "", "the largest part of it")
        diff = self.run_program("diff", "ways.ta", "../shop.ta", "-n", "0")
        self.assertRegex(diff, rf"(?m)  ways\.cpp:{line['direct']}  main$")

    def test_the_tree_marks_a_line_that_is_one_of_several(self):
        text = self.run_program("tree", "../shop.ta", "--collapse", "--min", "0")
        self.assertRegex(text, r"(?m)  main  src/shop\.cpp:\d+, …$")
        self.assertRegex(text, rf"(?m)text_grow  src/shop\.cpp:{line_of('grow')}$")

    def test_rows_add_up_whatever_is_skipped(self):
        whole = sum(row["size"] for row in json.loads(self.run_program("stats", "../shop.ta", "--json")))
        for more in ((), ("--no-skip",), ("--skip", "*"), ("--skip", "text_grow"), ("--by", "line"), ("--own", "std::*")):
            rows = self.rows(*more)
            self.assertEqual(sum(row["size"] for row in rows), whole, more)
            self.assertAlmostEqual(sum(row["share"] for row in rows), 1, 4)
            places = [(row["key"], row["line"], row["function"] if row["line"] == 0 else "") for row in rows]
            self.assertEqual(len(set(places)), len(places))
            for row in rows:
                self.assertEqual(sum(member["size"] for member in row["members"]), row["size"])
        changed = json.loads(self.run_program("diff", "../shop.ta", "../shop.ta", "--json"))
        self.assertEqual(sum(row["size"] for row in changed), whole)

    def test_a_line_of_several_functions_says_how_many_and_which(self):
        text = self.run_program("top", "../shop.ta")
        self.assertRegex(text, rf"src/shop\.cpp:{line_of('table')}  2 functions: Table<double>::grow 67%, Table<int>::grow 33%\n")
        self.assertRegex(text, rf"src/shop\.cpp:{line_of('list')}  List<double>::fill and 1 more\n")
        row = next(r for r in self.rows() if r["line"] == line_of("table"))
        self.assertEqual([(m["function"], m["size"]) for m in row["members"]],
                         [("Table<double>::grow(unsigned long)", 800), ("Table<int>::grow(unsigned long)", 400)])

    def test_without_lines_the_function_is_the_row_never_the_module(self):
        subprocess.run(["g++", "-O1", "-o", "plain", "src/shop.cpp"], check=True)
        subprocess.run(["strip", "-o", "bare", "plain"], check=True)
        for program in ("plain", "bare"):
            self.run_program("run", "-q", "-o", f"{program}.ta", f"./{program}")
        for key in ("own", "line"):
            names = self.run_program("top", "plain.ta", "--by", key)
            self.assertRegex(names, r"(?m)  plain  Table<double>::grow$")
            self.assertNotRegex(names, r":0\b")
            places = self.run_program("top", "bare.ta", "--by", key)
            self.assertRegex(places, r"(?m)  bare\+0x[0-9a-f]+")
            self.assertNotIn("<unknown>", places)
            symbols = subprocess.run(["nm", "-C", "plain"], stdout=subprocess.PIPE, check=True).stdout.decode()
            where = {name: int(address, 16) for address, name in re.findall(r"^(\w+) \w (.*)$", symbols, re.M)}
            begin = where["Table<double>::grow(unsigned long)"]
            self.assertIn(f"  bare+{begin:#x}\n", places)

    def test_main_is_known_in_stripped_programs(self):
        for kind in ("-pie", "-no-pie"):
            subprocess.run(["g++", "-O1", "-s", kind, "-o", "bare", "src/shop.cpp"], check=True)
            self.run_program("run", "-q", "-o", "bare.ta", "./bare")
            tree = self.run_program("tree", "bare.ta")
            self.assertRegex(tree, r"(?m)  main  bare$", kind)
            self.assertRegex(tree, r"bare\+0x[0-9a-f]+", "the others have no name")

    def test_callers_are_one_step_outwards(self):
        text = self.run_program("top", "../shop.ta", "--callers")
        self.assertRegex(text, rf"(?s)shop\.cpp:{line_of('grow')}  text_grow\n.*?"
                         rf" 75\.0% from src/shop\.cpp:{line_of('header')}  write_header\n"
                         rf" +25\.0% from src/shop\.cpp:{line_of('body')}  write_body\n")
        row = next(r for r in self.rows("--callers") if r["line"] == line_of("grow"))
        self.assertEqual([(c["function"], c["size"]) for c in row["callers"]], [("write_header", 3000), ("write_body", 1000)])

    def test_cumulative_counts_a_block_once(self):
        for key in ("own", "line", "function", "file"):
            for row in self.rows("--cumulative", "--by", key):
                self.assertLessEqual(row["share"], 1.0)

    # ---- rules ----

    def test_options_change_what_is_skipped_and_the_last_one_decides(self):
        skipped = self.lines("--skip", "text_grow")
        self.assertEqual((skipped[line_of("header")], skipped[line_of("body")]), (3000, 1000))
        self.assertNotIn(line_of("grow"), skipped)
        self.assertIn("via text_grow", self.run_program("top", "../shop.ta", "--skip", "text_grow"))
        self.assertIn(line_of("grow"), self.lines("--skip", "text_*", "--own", "function:text_grow"))
        self.assertIn(line_of("grow"), self.lines("--skip", "text_grow", "--no-skip"))
        bare = self.rows("--no-skip")
        self.assertTrue(any("/include/" in row["key"] for row in bare), "the library's own lines")
        only = self.rows("--no-skip", "--skip", "file:/usr/include/*", "--skip", "module:libstdc++*")
        self.assertFalse(any("/include/" in row["key"] for row in only))
        self.assertIn(line_of("header"), self.lines("--skip", "function:text_*"))
        self.assertNotIn(line_of("header"), self.lines("--skip", "module:text_*"))

    def test_files_of_the_user_and_the_project_are_read_in_this_order(self):
        with open(os.path.join(self.home, ".tracealloc"), "w", encoding="utf-8") as file:
            file.write("# of the user\nskip text_grow\n")
        self.assertIn(line_of("header"), self.lines())
        with open(".tracealloc", "w", encoding="utf-8") as file:
            file.write("own text_grow\n")
        self.assertIn(line_of("grow"), self.lines())
        self.assertIn(line_of("header"), self.lines("--skip", "text_grow"))
        for command in (("diff", "../shop.ta", "../shop.ta", "--json"), ("growth", "../shop.ta", "--csv"),
                        ("stats", "../shop.ta", "--by", "own")):
            self.assertRegex(self.run_program(*command), rf"shop\.cpp[^\n]{{1,3}}{line_of('grow')}\b")
            self.assertNotRegex(self.run_program(*command, "--skip", "text_grow"), rf"shop\.cpp[^\n]{{1,3}}{line_of('grow')}\b")

    def test_the_project_is_found_upwards_and_paths_begin_there(self):
        with open("../.tracealloc", "w", encoding="utf-8") as file:
            file.write("skip src/*\n")
        text = self.run_program("top", "../shop.ta")
        self.assertNotIn("shop.cpp", text)
        self.assertRegex(text, r"(?m)  shop  main$")  # nothing is one's own: the outermost call
        with open("../.tracealloc", "w", encoding="utf-8") as file:
            file.write("")
        self.assertIn("  app/src/shop.cpp:", self.run_program("top", "../shop.ta"))

    def test_a_line_that_is_no_rule_is_named(self):
        with open(".tracealloc", "w", encoding="utf-8") as file:
            file.write("skip x\nhide y\n")
        path = os.path.realpath(".tracealloc")
        for command in (("top", "../shop.ta"), ("diff", "../shop.ta", "../shop.ta"), ("growth", "../shop.ta")):
            self.assertEqual(self.run_program(*command, status=2),
                             f"tracealloc: {path}: line 2: expected 'skip PATTERN' or 'own PATTERN', not 'hide y'\n")

    # ---- files that are not what ran ----

    def test_a_program_that_was_rebuilt_or_removed_is_said_so_and_a_copy_helps(self):
        shutil.copy("shop", "built")
        self.run_program("run", "-q", "-o", "built.ta", "./built")
        whole = self.run_program("top", "built.ta")
        self.assertIn(f"shop.cpp:{line_of('grow')}  text_grow", whole)
        os.mkdir("kept")
        shutil.move("built", "kept/built")
        gone = self.run_program("top", "built.ta")
        self.assertIn(f"\n{os.path.realpath('built')} is gone: its functions and lines are not known\n", gone)
        self.assertRegex(gone, r"(?m)  built\+0x[0-9a-f]+")
        self.assertIn("built is gone: its functions and lines are not known\n", self.run_program("tree", "built.ta"))
        subprocess.run(["g++", "-O2", "-g", "-o", "built", "src/shop.cpp"], check=True)
        rebuilt = self.run_program("top", "built.ta")
        self.assertIn(f"\n{os.path.realpath('built')} has been rebuilt since: its functions", rebuilt)
        self.assertIn("TRACEALLOC_SYMBOLS", rebuilt)
        self.assertEqual(self.run_program("top", "built.ta", environment={"TRACEALLOC_SYMBOLS": "/missing:kept"}), whole)
        other = self.run_program("top", "built.ta", environment={"TRACEALLOC_SYMBOLS": os.path.realpath(".")})
        self.assertEqual(other, rebuilt, "a copy of another build is not believed")


if __name__ == "__main__":
    unittest.main()
