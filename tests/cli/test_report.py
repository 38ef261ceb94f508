"""test_report.py: the page that tracealloc report writes: what is in it equals what the program says, for every entry.

    test_report.py TRACEALLOC LIBRARY SERVER.c GROWTH_PROGRAM
"""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TRACEALLOC, LIBRARY, SERVER, GROWTH = [os.path.abspath(sys.argv.pop(1)) for _ in range(4)]
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from report_page import Page  # noqa: E402

for name in ("LD_PRELOAD", "TRACEALLOC_OPTIONS", "TRACEALLOC", "BROWSER"):
    os.environ.pop(name, None)
os.environ.update(TRACEALLOC_LIBRARY=LIBRARY, LC_ALL="C.UTF-8")


def tracealloc(*arguments, status=0, **more):
    done = subprocess.run([TRACEALLOC, *arguments], capture_output=True, text=True, **more)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def rows(text, by):
    """What top or diff says, by the page's keys."""
    sums = collections.defaultdict(lambda: [0, 0, 0, 0])
    for row in json.loads(text):
        key = (int(row["key"].split()[1]) if by == "domain" else row["key"], row["line"])
        for i, field in enumerate(("size", "count", "allocated_size", "allocated_count")):
            sums[key][i] += row[field]
    return {key: tuple(total) for key, total in sums.items() if any(total)}


def top(recording, by):
    return rows(tracealloc("top", recording, "--by", by, "--sort", "calls", "--json").stdout, by)


class Report(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp()
        shutil.copy(SERVER, cls.shared + "/server.c")
        subprocess.run(["gcc", "-g", "-O1", "server.c", "-o", "server"], check=True, cwd=cls.shared)
        tracealloc("run", "-q", "--interval=0.05", "-o", "server.ta", "--", "./server", "2000", "300", cwd=cls.shared)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.shared)

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.old, _ = os.getcwd(), os.chdir(self.folder)

    def tearDown(self):
        os.chdir(self.old)
        shutil.rmtree(self.folder)

    def server(self):
        shutil.copy(self.shared + "/server.ta", "server.ta")

    def entries(self, recording):
        return [row["entry"] for row in json.loads(tracealloc("list", recording, "--json").stdout)]

    def compare(self, page, recording, source=0, keys=("own", "line", "function", "file", "module", "domain"), every=1):
        for entry in self.entries(recording)[::every] + [-1]:
            for by in keys:
                self.assertEqual(page.sums(by, entry, source), top(f"{recording}@{entry}", by), (recording, entry, by))

    def test_a_series_says_of_every_entry_what_top_says(self):
        self.server()
        said = tracealloc("report", "server.ta")
        self.assertRegex(said.stderr, r"^tracealloc: report in server\.html \(\d+ KiB\)\n$")
        self.assertEqual(said.stdout, "")
        page = Page("server.html")
        self.compare(page, "server.ta", every=8)
        peaks = collections.Counter()
        for trace in page.traces:
            peaks[page.key(trace, "line")] += trace["peak"]
        expected = json.loads(tracealloc("top", "server.ta", "--by", "line", "--sort", "peak", "--json").stdout)
        self.assertEqual({key: peak for key, peak in peaks.items() if peak},
                         {(row["key"], row["line"]): row["peak_size"] for row in expected if row["peak_size"]})

    def test_the_page_needs_nothing_else_and_shows_the_sources(self):
        self.server()
        tracealloc("report", "server.ta", "--title", "a <b>&</b> title", "-o", "a.html")
        page = Page("a.html")
        self.assertIn("<title>a &lt;b>&amp;&lt;/b> title</title>", page.html)
        outside = {line for line in page.html.split("\n") if ("http:" in line or "https:" in line)
                   and "www.w3.org/2000/svg" not in line and "github.com/leeoniya/uPlot (v" not in line}
        self.assertEqual(outside, set(), "no address but names and where the chart comes from")
        self.assertIn("default-src 'none'", page.html)
        self.assertIn("Copyright (c) 2022 Leon Sorokin", page.html)
        source = page.head["sources"][os.path.realpath(self.shared + "/server.c")]
        lines = {first + i: text for first, block in source for i, text in enumerate(block.split("\n"))}
        with open(SERVER) as file:
            original = file.read().split("\n")
        self.assertEqual({number: original[number - 1] for number in lines}, lines)
        leak = next(i for i, line in enumerate(original, 1) if "char *line = malloc(100);" in line)
        self.assertIn(leak, lines)
        tracealloc("report", "server.ta", "--no-source", "-o", "b.html")
        self.assertEqual(Page("b.html").head["sources"], {})
        self.assertNotIn("malloc(100)", json.dumps(Page("b.html").head))

    def test_rows_are_called_what_growth_calls_them(self):
        self.server()
        tracealloc("report", "server.ta")
        page = Page("server.html")
        expected = {(row["key"], row["line"]): (row["growth"], row["reason"], row["grown_size"]) for row in
                    json.loads(tracealloc("growth", "server.ta", "--json", "-n", "0").stdout)[0]["rows"]}
        c = page.columns
        found = {page.key({"row": i, "node": 1}, "own"): (page.head["growth"][c["row.growth"][i]], page.texts[c["row.reason"][i]],
                                                          c["row.grown"][i]) for i in range(len(c["row.line"]))}
        self.assertEqual(found, expected)
        self.assertIn("steady", {name for name, _, _ in found.values()})

    def test_cleared_traces_begin_anew(self):
        subprocess.run([TRACEALLOC, "run", "-q", "-o", "other.ta", "--", GROWTH, "40", "record", "clear.ta", "20"], check=True)
        tracealloc("report", "clear.ta")
        page = Page("clear.html")
        self.assertEqual(sum(page.columns["point.restarts"]), 1)
        self.compare(page, "clear.ta", every=7)

    def test_tables_that_were_used_again_lose_nothing(self):
        with open("a.cpp", "w") as file:
            file.write("#include <map>\n#include <string>\n#include <vector>\n#include <functional>\n"
                       "std::map<std::string, std::vector<std::function<int(int)>>> m; int main() { m[\"a\"].push_back({}); }\n")
        tracealloc("run", "-q", "-o", "gcc.ta", "--", "g++", "-c", "a.cpp", env={**os.environ, "TRACEALLOC_OPTIONS": "table_memory=64KiB"})
        run = json.loads(tracealloc("list", "gcc.run", "--json").stdout)
        compiler = max(run, key=lambda row: row["peak"])
        tracealloc("report", "gcc.run", "-o", "run.html")
        page = Page("run.html")
        self.assertEqual([(file["process"], file["parent"]) for file in page.files],
                         [(row["process"], row["parent"]) for row in sorted(run, key=lambda row: page_order(page, row))])
        for source, file in enumerate(page.files):
            self.compare(page, file["path"], source, keys=("own", "function"), every=3)
        self.assertIn("cc1plus", compiler["command"])
        self.assertEqual(sum(page.columns["point.restarts"]), 0, "nothing was cleared")

    def test_domains_and_threads_are_kept_apart(self):
        for name in ("new", "old"):
            tracealloc("import", os.path.join(HERE, name + ".json"), "-o", name + ".ta")
        tracealloc("report", "new.ta")
        page = Page("new.html")
        self.compare(page, "new.ta", keys=("own", "line", "file", "domain"))
        depths = {len(stack) for _, stack in page.stacks()}
        traces = json.loads(tracealloc("export", "new.ta", "--json").stdout)["traces"]
        self.assertEqual(depths, {len(trace["frames"]) for trace in traces})

    def test_two_are_compared_and_one_entry_is_a_page_too(self):
        self.server()
        tracealloc("report", "server.ta", "server.ta@1", "-o", "two.html")
        page = Page("two.html")
        self.assertEqual(page.head["compares"], 1)
        self.assertEqual(page.sums("line"), top("server.ta", "line"))
        self.assertEqual(page.sums("line", source=1), top("server.ta@1", "line"))
        tracealloc("report", "server.ta", "server.ta", "--together")
        self.assertEqual(Page("server.html").head["compares"], 0)
        said = tracealloc("report", "server.ta@1")
        self.assertIn("server.html", said.stderr)
        self.assertEqual(Page("server.html").sums("own"), top("server.ta@1", "own"))

    def test_many_stacks_and_points_fit_into_the_size_that_is_allowed(self):
        self.server()
        tracealloc("report", "server.ta", "-o", "a.html")
        self.assertLess(os.path.getsize("a.html"), 2_000_000)
        self.assertEqual(len(Page("a.html").times), len(self.entries("server.ta")))

    def test_trouble_is_told_in_one_line_and_leaves_nothing(self):
        with open("no.ta", "w") as file:
            file.write("no recording\n")
        self.assertRegex(tracealloc("report", "no.ta", status=2).stderr, r"^tracealloc: report: .*no\.ta.*\n$")
        self.assertRegex(tracealloc("report", "gone.ta", status=2).stderr, r"^tracealloc: .*gone\.ta.*\n$")
        self.assertRegex(tracealloc("report", status=2).stderr, r"^tracealloc: usage: ")
        self.assertRegex(tracealloc("report", "--bogus", "x", status=2).stderr, r"^tracealloc: report: unknown option '--bogus'")
        self.server()
        self.assertIn("no/folder", tracealloc("report", "server.ta", "-o", "no/folder/x.html", status=2).stderr)
        self.assertEqual([name for name in os.listdir(".") if "html" in name], [])
        page = tracealloc("report", "server.ta", "-o", "-").stdout
        self.assertTrue(page.startswith("<!doctype html>") and page.endswith("</html>\n"))

    def test_a_browser_is_asked_to_open_it(self):
        self.server()
        with open("browser", "w") as file:
            file.write("#!/bin/sh\necho \"$1\" >opened\n")
        os.chmod("browser", 0o755)
        tracealloc("report", "server.ta", "--open", env={**os.environ, "BROWSER": os.path.abspath("browser")})
        with open("opened") as file:
            self.assertEqual(file.read().strip(), os.path.realpath("server.html"))
        os.remove("server.html")
        done = tracealloc("report", "server.ta", "--open", status=2, env={**os.environ, "PATH": "/nowhere", "BROWSER": "/no/browser"})
        self.assertIn("no browser", done.stderr)
        self.assertTrue(os.path.exists("server.html"), "the page is there all the same")


def page_order(page, row):
    return next((i for i, file in enumerate(page.files) if file["path"].endswith(os.path.basename(row["file"]))), -1)


if __name__ == "__main__":
    unittest.main()
