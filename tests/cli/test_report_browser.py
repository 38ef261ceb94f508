"""test_report_browser.py: a report in a real browser: what it shows equals what the program says, for every selection.
Skipped where there is no Chromium.

    test_report_browser.py TRACEALLOC LIBRARY SERVER.c [--real] [--pictures FOLDER]

--real drives g++ and redis instead of the small server; --pictures keeps screenshots.
"""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

REAL = "--real" in sys.argv and (sys.argv.remove("--real") or True)
PICTURES = sys.argv.pop(sys.argv.index("--pictures") + 1) if "--pictures" in sys.argv else None
if PICTURES:
    sys.argv.remove("--pictures")
TRACEALLOC, LIBRARY, SERVER = [os.path.abspath(sys.argv.pop(1)) for _ in range(3)]
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import browser as chromium  # noqa: E402

for name in ("LD_PRELOAD", "TRACEALLOC_OPTIONS", "TRACEALLOC"):
    os.environ.pop(name, None)
os.environ.update(TRACEALLOC_LIBRARY=LIBRARY, LC_ALL="C.UTF-8")

# What the rows in view show, by column; and of all groups of the key that is chosen, the sums of a figure.
ROWS = """return [...document.querySelectorAll('.rows .row')].map(row => Object.fromEntries([
    ['where', row.querySelector('.where b').title], ...[...row.querySelectorAll('[data-column]')].map(cell =>
        [cell.dataset.column, +cell.dataset.value])]))"""
SUMS = """const app = tracealloc, key = app.figures.key(app.state.by), sums = app.figures.sumBy(key, arguments[0]);
    return key.labels.map((label, i) => [label.name ?? (label.isFunction ? label.fullName : label.file), label.name === undefined
        && !label.isFunction ? label.line : 0, label.filter?.domain ?? null, sums[i]])"""
TILES = """return Object.fromEntries([...document.querySelectorAll('.tile')].map(tile => [tile.dataset.metric, +tile.dataset.value]))"""
BOX = "const box = document.querySelector(arguments[0]).getBoundingClientRect(); return [box.left, box.top, box.width, box.height]"


def tracealloc(*arguments, **more):
    done = subprocess.run([TRACEALLOC, *arguments], capture_output=True, text=True, **more)
    assert done.returncode == 0, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout


def summed(rows, value):
    sums = collections.Counter()
    for row in rows:
        sums[row["key"], row["line"]] += value(row)
    return {key: total for key, total in sums.items() if total}


def top(recording, by, field, order):
    return summed(json.loads(tracealloc("top", recording, "--by", by, "--sort", order, "--json")), lambda row: row[field])


def grown(new, old, by):
    rows = json.loads(tracealloc("diff", new, old, "--by", by, "--json"))
    return summed([{"key": row["frames"][0][0], "line": row["frames"][0][1], "diff": row["size_diff"]} for row in rows],
                  lambda row: row["diff"])


class Case(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.record()
        cls.browser = chromium.Browser(cls.folder + "/profile", 1440, 1500)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        shutil.rmtree(cls.folder, ignore_errors=True)

    def tearDown(self):
        self.assertEqual(self.browser.messages(), [], "nothing on the console")

    def open(self, name, state=""):
        self.browser.open("about:blank")
        self.browser.open(f"file://{self.folder}/{name}{state}")
        self.browser.until("document.documentElement.dataset.ready === '1'", "the page is ready")
        self.settle()

    def settle(self):
        self.browser.until("document.documentElement.dataset.busy === undefined && !tracealloc.flame.isWaiting", "all is drawn")

    def picture(self, name):
        if PICTURES:
            time.sleep(0.2)
            self.browser.screenshot(os.path.join(PICTURES, name + ".png"))

    def press(self, key):
        self.browser.keys(key)
        self.settle()

    def click(self, selector):
        self.browser.click(selector)
        self.settle()

    def sums(self, figure):
        sums = collections.Counter()
        for name, line, _, value in self.browser.script(SUMS, figure):
            sums[name, line] += value
        return {key: value for key, value in sums.items() if value}

    def brush(self, start, end):
        """Drags over the curve, from a share of its width to another."""
        left, upper, width, height = self.browser.script(BOX, ".u-over")
        self.browser.drag((left + start * width, upper + height / 2), (left + end * width, upper + height / 2))
        self.settle()

    def entries_selected(self):
        return self.browser.script("const f = tracealloc.figures, b = f.selected[0], p = tracealloc.data.points;"
                                   "return [b.from < 0 ? -1 : p.index[b.from], p.index[b.to]]")

    def compare_whole(self, recording, keys):
        for by in keys:
            self.click(f"[data-by={by}]")
            for figure, field, order in (("live", "size", "live"), ("total", "allocated_size", "total"), ("blocks", "count", "count"),
                                         ("calls", "allocated_count", "calls"), ("peak", "peak_size", "peak")):
                self.assertEqual(self.sums(figure), top(recording, by, field, order), (by, figure))

    def compare_range(self, recording, keys):
        start, end = self.entries_selected()
        self.assertGreater(end, start)
        for by in keys:
            self.click(f"[data-by={by}]")
            live = top(f"{recording}@{end}", by, "size", "live")
            self.assertEqual(self.sums("live"), live, by)
            self.assertEqual(self.sums("growth"), grown(f"{recording}@{end}", f"{recording}@{start}", by), by)
            for figure, field, order in (("total", "allocated_size", "total"), ("calls", "allocated_count", "calls")):
                before = collections.Counter(top(f"{recording}@{start}", by, field, order))
                now = collections.Counter(top(f"{recording}@{end}", by, field, order))
                now.subtract(before)
                self.assertEqual(self.sums(figure), {key: value for key, value in now.items() if value}, (by, figure))
            self.assertEqual(self.browser.script(TILES)["live"], sum(live.values()))


@unittest.skipIf(REAL, "the small server is in the daily tests")
class Server(Case):
    @classmethod
    def record(cls):
        shutil.copy(SERVER, cls.folder + "/server.c")
        subprocess.run(["gcc", "-g", "-O1", "server.c", "-o", "server"], check=True, cwd=cls.folder)
        tracealloc("run", "-q", "--interval=0.1", "-o", "server.ta", "--", "./server", "3000", "500", cwd=cls.folder)
        tracealloc("report", "server.ta", cwd=cls.folder)
        tracealloc("report", "server.ta", "server.ta@2", "-o", "two.html", cwd=cls.folder)
        tracealloc("run", "-q", "-o", "sh.ta", "--", "sh", "-c", "./server 200 10; ./server 100 10; true", cwd=cls.folder)
        tracealloc("report", "sh.run", "-o", "run.html", cwd=cls.folder)
        cls.recording = cls.folder + "/server.ta"

    def test_the_whole_equals_top(self):
        self.open("server.html")
        self.compare_whole(self.recording, ("own", "line", "function", "file", "module"))
        self.picture("server")

    def test_a_range_equals_top_and_diff(self):
        self.open("server.html")
        self.brush(0.2, 0.75)
        self.compare_range(self.recording, ("own", "line", "function"))
        self.picture("server-range")
        self.assertIn("range=", self.browser.address())
        before = self.entries_selected()
        self.press("]")
        self.assertEqual(self.entries_selected(), [before[0] + 1, before[1] + 1])
        self.compare_range(self.recording, ("own",))
        self.click(".chip")
        self.assertEqual(self.sums("live"), top(self.recording, "own", "size", "live"), "everything again")

    def test_rows_are_sorted_searched_and_show_their_numbers(self):
        self.open("server.html")
        expected = json.loads(tracealloc("top", self.recording, "--by", "own", "--json"))
        rows = self.browser.script(ROWS)
        self.assertEqual([row["live"] for row in rows][:len(expected)], [row["size"] for row in expected])
        for column, field in (("calls", "allocated_count"), ("total", "allocated_size"), ("peak", "peak_size")):
            self.click(f".heading [data-column={column}]")
            shown = [row[column] for row in self.browser.script(ROWS)]
            self.assertEqual(shown, sorted(shown, reverse=True))
            self.assertEqual(shown[0], max(row[field] for row in expected))
        self.click(".heading [data-column=peak]")
        shown = [row["peak"] for row in self.browser.script(ROWS)]
        self.assertEqual(shown, sorted(shown))
        self.press("/")
        self.press("render_page")
        rows = self.browser.script(ROWS)
        self.assertEqual({row["where"].split("\n")[0] for row in rows}, {"render_page"})
        self.assertEqual(self.browser.script("return tracealloc.flame.keys.names.filter((_, i) => tracealloc.flame.hits[i])"), ["render_page"])
        self.press("\ue00c")  # Esc
        self.assertGreater(len(self.browser.script(ROWS)), len(rows))

    def test_a_row_shows_its_course_stacks_and_source(self):
        self.open("server.html")
        self.click(".rows [data-row='0']")
        self.assertIn("format_log_line", self.browser.script("return document.querySelector('#details h3').textContent"))
        self.assertIn("steady", self.browser.script("return document.querySelector('#details h3 .badge').textContent"))
        lines = self.browser.script("""return [...document.querySelectorAll('#details .code tbody tr')].map(row =>
            [+row.dataset.line, ...[...row.querySelectorAll('.number')].map(cell => +cell.dataset.value)])""")
        annotated = json.loads(tracealloc("annotate", self.recording, "--json"))
        figures = next(lines for file, lines in annotated.items() if file.endswith("/server.c"))
        expected = {int(line): [row["live"], row["through"]] for line, row in figures.items()}
        self.assertGreater(len(lines), 8)
        for line, own, through in lines:
            self.assertEqual([own, through], expected.get(line, [0, 0]), line)
        stack = self.browser.script("return [...document.querySelectorAll('#details .stack[open] .own')].map(row => row.firstChild.textContent.trim())")
        self.assertEqual(stack[:3], ["format_log_line", "handle_request", "main"])
        self.assertTrue(self.browser.script("return tracealloc.flame.marked !== null"))
        self.picture("server-row")

    def test_the_graph_zooms_turns_and_keeps_the_sums(self):
        self.open("server.html")
        whole = self.browser.script("return tracealloc.flame.tree.value[0]")
        self.assertEqual(whole, sum(top(self.recording, "own", "size", "live").values()))
        place = """const box = tracealloc.flame.boxes.find(box => tracealloc.flame.keys.names[tracealloc.flame.tree.key[box.node]] === arguments[0]);
            const frame = tracealloc.flame.canvas.getBoundingClientRect(); return [frame.left + box.x + box.wide / 2, frame.top + box.y + 9]"""
        self.browser.script("document.querySelector('#flame').scrollIntoView()")
        spot = self.browser.script(place, "render_page")
        self.browser.drag(spot, spot)
        self.settle()
        zoomed = "return tracealloc.flame.keys.names[tracealloc.flame.tree.key[tracealloc.flame.zoomed]]"
        self.assertEqual(self.browser.script(zoomed), "render_page")
        self.assertEqual(self.browser.script("return tracealloc.flame.tree.value[tracealloc.flame.zoomed]"),
                         top(self.recording, "function", "size", "live")["render_page", 0])
        self.assertIn("render_page", self.browser.script("return document.querySelector('#details h3').textContent"))
        address = self.browser.address()
        self.open("server.html", address[address.index("#"):])
        self.assertEqual(self.browser.script(zoomed), "render_page", "the address keeps the view")
        self.picture("server-zoom")
        self.press("\ue00c")
        for option in ("outwards", "ownOnly", "fold", "byLine", "upside"):
            self.click(f"[data-option={option}]")
            self.assertEqual(self.browser.script("return tracealloc.flame.tree.value[0]"), whole, option)
            parts = self.browser.script("const t = tracealloc.flame.tree; return t.children(0).reduce((sum, node) => sum + t.value[node], 0)")
            self.assertLessEqual(parts, whole)
        self.picture("server-outwards")

    def test_two_recordings_are_compared_as_diff_does(self):
        self.open("two.html")
        for by in ("own", "line", "function"):
            self.click(f"[data-by={by}]")
            self.assertEqual(self.sums("growth"), grown(self.recording, self.recording + "@2", by), by)
            self.assertEqual(self.sums("live"), top(self.recording, by, "size", "live"), by)
        self.picture("two")

    def test_processes_of_a_run(self):
        self.open("run.html")
        files = [os.path.join(self.folder, path)
                 for path in self.browser.script("return tracealloc.data.files.map(file => file.path)")]
        rows = self.browser.script("return [...document.querySelectorAll('#processes [data-source]')].map(row => "
                                   "[+row.dataset.source, +row.querySelector('[data-value]').dataset.value])")
        self.assertEqual(len(rows), len(files))
        for source, live in rows:
            self.assertEqual(live, sum(top(os.path.join(self.folder, files[source]), "line", "size", "live").values()), files[source])
        self.picture("run")
        self.click("#processes [data-source='1']")
        self.assertEqual(self.sums("live"), top(os.path.join(self.folder, files[1]), "own", "size", "live"))
        self.assertIn("source=1", self.browser.address())

    def test_light_dark_and_paper(self):
        self.open("server.html", "#theme=dark")
        ground = "return getComputedStyle(document.body).backgroundColor"
        dark = self.browser.script(ground)
        self.picture("server-dark")
        self.press("d")
        self.assertNotEqual(self.browser.script(ground), dark)
        pdf = self.browser.do("/print", {"orientation": "landscape", "background": True})
        self.assertTrue(pdf.startswith("JVBER"), "a PDF came out")
        self.assertGreater(len(pdf), 20000)


@unittest.skipUnless(REAL, "real programs are in the long tests")
class Programs(Case):
    @classmethod
    def record(cls):
        with open(cls.folder + "/a.cpp", "w") as file:
            file.write("#include <regex>\n#include <map>\n#include <iostream>\nint main(int, char **v) { std::map<std::string, int> m;"
                       " m[v[0]]++; std::cout << std::regex_match(v[0], std::regex(\"a(b|c)*d\")) << m.size(); }\n")
        tracealloc("run", "-q", "--interval=0.2", "-o", "gcc.ta", "--", "g++", "-O2", "-c", "a.cpp", cwd=cls.folder)
        run = json.loads(tracealloc("list", "gcc.run", "--json", cwd=cls.folder))
        cls.compiler = os.path.join(cls.folder, max(run, key=lambda row: row["peak"])["file"])
        tracealloc("report", cls.compiler, "-o", "cc1plus.html", cwd=cls.folder)
        server = subprocess.Popen([TRACEALLOC, "run", "-q", "--interval=0.2", "-o", "redis.ta", "--", "redis-server", "--port", "7933",
                                   "--save", "", "--appendonly", "no"], cwd=cls.folder, stdout=subprocess.DEVNULL)
        while subprocess.run(["redis-cli", "-p", "7933", "ping"], capture_output=True).stdout != b"PONG\n":
            time.sleep(0.1)
        subprocess.run(["redis-benchmark", "-p", "7933", "-q", "-n", "30000", "-r", "10000", "-t", "set,lpush,hset"], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run(["redis-cli", "-p", "7933", "shutdown", "nosave"])
        server.wait()
        tracealloc("report", "redis.ta", cwd=cls.folder)

    def test_the_compiler(self):
        self.assertLess(os.path.getsize(self.folder + "/cc1plus.html"), 2_000_000)
        self.open("cc1plus.html")
        self.compare_whole(self.compiler, ("own", "line", "function", "module"))
        self.picture("cc1plus")
        self.brush(0.02, 0.6)
        self.compare_range(self.compiler, ("own", "function"))

    def test_redis(self):
        self.open("redis.html")
        self.compare_whole(self.folder + "/redis.ta", ("own", "function"))
        self.brush(0.3, 0.6)
        self.compare_range(self.folder + "/redis.ta", ("own", "function", "module"))
        self.picture("redis")


if __name__ == "__main__":
    if not chromium.is_there() or (REAL and shutil.which("redis-server") is None):
        print("no chromium and chromedriver, or no redis here")
        sys.exit(77)
    unittest.main()
