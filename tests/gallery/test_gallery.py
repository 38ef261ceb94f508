"""test_gallery.py: small programs of many kinds with a leak, a cache, a pool, a cycle or churn planted in them: the first
row of the first command names the planted line.

    test_gallery.py TRACEALLOC LIBRARY [--heaptrack] [TEST…]

Each source says what it is. The line that must come first has the mark "planted". With --heaptrack the same programs are
run under heaptrack too: its report must not name the line earlier than ours.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TRACEALLOC, LIBRARY = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
WITH_HEAPTRACK = "--heaptrack" in sys.argv and sys.argv.remove("--heaptrack") is None
if WITH_HEAPTRACK and not all(shutil.which(name) for name in ("heaptrack", "heaptrack_print")):
    print("heaptrack is not here")
    sys.exit(77)
for name in ("LD_PRELOAD", "COLUMNS", "NO_COLOR", "DEBUGINFOD_URLS", "TRACEALLOC_SYMBOLS"):
    os.environ.pop(name, None)
os.environ.update(TRACEALLOC_LIBRARY=LIBRARY, LC_ALL="C.UTF-8", TERM="xterm")


def line_of(source, mark="planted"):
    with open(os.path.join(HERE, source), encoding="utf-8") as file:
        return next(n for n, text in enumerate(file, 1) if f"/* {mark} */" in text)


def rows_of(text):
    """The rows of a listing: what stands below WHERE, without the notes."""
    lines = text.splitlines()
    heading = next(i for i, line in enumerate(lines) if line.endswith("WHERE"))
    column = lines[heading].index("WHERE")
    return [line[column:] for line in lines[heading + 1:] if re.match(r" *\S", line[:column]) and line[column - 1:column] == " "
            and line[column:column + 1] not in ("", " ")]


class Gallery(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        os.chdir(self.folder)
        os.environ["HOME"] = self.folder

    def tearDown(self):
        os.chdir("/")
        shutil.rmtree(self.folder)

    def build(self, source, *flags, output=None):
        program = output or source.split(".")[0]
        compiler = ["g++", "-std=c++20"] if source.endswith("pp") else ["cc"]
        subprocess.run([*compiler, "-g", "-O1", *flags, "-o", program, os.path.join(HERE, source), "-pthread"], check=True)
        return "./" + program

    def ask(self, question, program, *arguments):
        """The rows of the answer; and the recording for more."""
        recording = os.path.basename(program) + ".ta"
        subprocess.run([TRACEALLOC, "run", "-q", "--interval=0.05", "-o", recording, "--", program, *arguments], check=True,
                       stdout=subprocess.DEVNULL)
        return rows_of(self.listing(question, recording)), recording

    def listing(self, question, recording, *arguments):
        return subprocess.run([TRACEALLOC, question, recording, *arguments], stdout=subprocess.PIPE, check=True).stdout.decode()

    def first(self, question, source, *arguments, program=None, mark="planted", program_arguments=()):
        program = program or self.build(source)
        rows, recording = self.ask(question, program, *program_arguments)
        place = f"{source}:{line_of(source, mark)}"
        self.assertRegex(rows[0], rf"\A(\S*/)?{re.escape(place)}(  |$)", "\n".join(rows))
        if WITH_HEAPTRACK:
            self.compare(question, place, program, program_arguments)
        return rows, recording

    # ---- heaptrack ----

    def compare(self, question, place, program, arguments):
        """Says where heaptrack's report of the same program names the line. Earlier than our first row it cannot."""
        subprocess.run(["heaptrack", "-o", os.path.join(self.folder, "heaptrack"), program, *arguments], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        report = subprocess.run(["heaptrack_print", "--print-leaks=1", "--peak-limit=1000", "--sub-peak-limit=50",
                                 "heaptrack.zst"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                check=True).stdout.decode("utf-8", "replace")
        os.remove("heaptrack.zst")
        section, kind = ("MEMORY LEAKS\n", "leaked") if question == "growth" else ("PEAK MEMORY CONSUMERS\n", "peak memory consumed")
        text = report.split(section, 1)[1].split("\nMOST TEMPORARY" if question == "growth" else "\nMEMORY LEAKS", 1)[0]
        entries = re.split(rf"(?m)^\S+ {kind} over \d+ calls from\n", text)[1:]
        self.assertTrue(entries, report[:2000])
        rank = next((i for i, entry in enumerate(entries, 1) if re.search(re.escape(place) + r"\b", entry)), None)
        print(f"{self.id().split('.')[-1]}: our row 1, heaptrack's entry {rank} of {len(entries)}")

    # ---- the programs ----

    def test_orders_a_cycle_of_shared_pointers(self):
        rows, recording = self.first("growth", "orders.cpp")
        grown = rows_of(self.listing("diff", recording, f"{recording}@0", "--grown"))
        self.assertTrue(all(not row.startswith("/usr/") and "/include/" not in row for row in grown), grown)

    def test_sessions_beside_a_cache_ten_times_as_large(self):
        _, recording = self.first("growth", "sessions.cpp")
        course = json.loads(self.listing("growth", recording, "--json"))[0]["rows"]
        cache = next(row for row in course if row["line"] == line_of("sessions.cpp", "cache"))
        self.assertIn(cache["growth"], ("plateau", "freed"))

    def test_inventory_where_everything_goes_through_xmalloc(self):
        self.first("top", "inventory.c")

    def test_inventory_stripped(self):
        self.build("inventory.c", output="whole")
        subprocess.run(["strip", "-o", "inventory", "whole"], check=True)
        rows, _ = self.ask("top", "./inventory")
        self.assertEqual(rows[0].split("  ")[0], f"inventory+{self.address_of('whole', 'add_item'):#x}")

    def address_of(self, program, function):
        symbols = subprocess.run(["nm", "-C", program], stdout=subprocess.PIPE, check=True).stdout.decode()
        return next(int(line.split()[0], 16) for line in symbols.splitlines() if re.search(rf" [tTwW] {re.escape(function)}(\(|$)", line))

    def test_grid_of_templates(self):
        rows, _ = self.first("top", "grid.cpp")
        self.assertRegex(rows[0], r"  Tensor<.*>::fill|  \d+ functions: |  main|  Model<")
        self.assertIn("std::vector<", rows[0])

    def test_grid_optimised(self):
        self.first("top", "grid.cpp", program=self.build("grid.cpp", "-O3"))

    def test_workers_in_threads(self):
        self.first("growth", "workers.cpp")

    def test_host_with_a_plugin_that_is_unloaded(self):
        subprocess.run(["cc", "-g", "-O1", "-fPIC", "-shared", "-o", "plugin.so", os.path.join(HERE, "plugin.c")], check=True)
        host = self.build("host.c", "-ldl")
        rows, recording = self.first("growth", "plugin.c", program=host, program_arguments=("./plugin.so",))
        self.assertNotIn("host.c", rows[0])
        table = [row for row in json.loads(self.listing("growth", recording, "--json"))[0]["rows"] if row["key"].endswith("host.c")]
        self.assertEqual({row["growth"] for row in table}, {"start"})

    def test_frameless(self):
        self.first("growth", "frameless.c", program=self.build("frameless.c", "-O2", "-fomit-frame-pointer"))

    def test_frameless_without_unwind_tables(self):
        flags = ("-O2", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions")
        self.first("growth", "frameless.c", program=self.build("frameless.c", *flags))

    def test_orders_without_symbols(self):
        """The leak is a function of the program, whoever it calls, and the program has no names."""
        self.build("orders.cpp", output="whole")
        subprocess.run(["strip", "-o", "orders", "whole"], check=True)
        rows, _ = self.ask("growth", "./orders")
        self.assertTrue(rows[0].startswith("orders+0x"), rows[0])
        self.assertEqual(rows[0].split()[0], f"orders+{self.address_of('whole', 'Order::watch'):#x}")

    def test_workers_installed_below_usr(self):
        """The program is one's own wherever it is, even where a compiler keeps its parts."""
        home = f"/usr/lib/gcc/tracealloc-gallery-{os.getpid()}"
        try:
            os.makedirs(home)
        except OSError:
            self.skipTest("nothing may be installed below /usr here")
        try:
            program = self.build("workers.cpp")
            shutil.copy(program, home)
            self.first("growth", "workers.cpp", program=f"{home}/workers")
            subprocess.run(["strip", f"{home}/workers"], check=True)
            rows, _ = self.ask("growth", f"{home}/workers")
            self.assertTrue(rows[0].startswith("workers+0x"), rows[0])
        finally:
            shutil.rmtree(home)

    def test_parser_deep_in_recursion(self):
        rows, recording = self.first("top", "parser.cpp")
        self.assertIn("Parser::make_node", rows[0])
        deepest = json.loads(self.listing("top", recording, "--by", "traceback", "--json"))
        self.assertGreater(max(row["stack"].count("parse_list") for row in deepest), 50)
        shown = self.listing("top", recording, "--by", "traceback", "-n", "0")
        self.assertLess(max(len(stack.split("\n\n")[0].splitlines()) for stack in shown.split("% ")), 12)
        self.assertRegex(shown, r"these 2 calls ×5\d")

    def test_pool_that_is_home_made(self):
        self.first("top", "pool.c")

    def test_churn_hides_a_small_leak(self):
        _, recording = self.first("growth", "churn.cpp")
        rows = rows_of(self.listing("top", recording, "--sort", "temporary"))
        self.assertTrue(rows[0].startswith(f"{os.path.join(HERE, 'churn.cpp')}:{line_of('churn.cpp', 'churn')}  render"), rows[0])

    def test_journal_beside_a_sawtooth(self):
        _, recording = self.first("growth", "journal.c")
        course = json.loads(self.listing("growth", recording, "--json"))[0]["rows"]
        batch = next(row for row in course if row["line"] == line_of("journal.c", "batch"))
        self.assertIn(batch["growth"], ("sawtooth", "freed"))

    def test_fibers_that_wait_for_ever(self):
        rows, _ = self.ask("growth", self.build("fibers.cpp"))
        self.assertRegex(rows[0], r"/fibers\.cpp:\d+  fetch$")  # which of its lines is the compiler's choice

    def test_errors_that_are_kept(self):
        self.first("growth", "errors.cpp")

    def test_documents_of_a_library_in_the_project(self):
        os.mkdir("third_party")
        shutil.copy(os.path.join(HERE, "tree.hpp"), "third_party")
        rows, _ = self.first("growth", "documents.cpp", program=self.build("documents.cpp", "-I."))
        self.assertTrue(all("third_party" not in row for row in rows), rows)

    def test_factory_that_is_a_template(self):
        rows, _ = self.first("growth", "factory.cpp")
        self.assertIn("shoot", rows[0])

    def test_objects_from_one_function(self):
        self.first("growth", "objects.c")


if __name__ == "__main__":
    unittest.main()
