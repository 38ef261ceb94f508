"""test_growth.py: leak, cache and churn told apart: planted ones of every kind, and real programs (--real).

    test_growth.py TRACEALLOC LIBRARY PROGRAM SOURCE [--real]
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

TRACEALLOC, LIBRARY, PROGRAM, SOURCE = [os.path.abspath(sys.argv.pop(1)) for _ in range(4)]
REAL = "--real" in sys.argv and (sys.argv.remove("--real") or True)
for name in ("LD_PRELOAD", "TRACEALLOC_OPTIONS", "TRACEALLOC"):
    os.environ.pop(name, None)
os.environ.update(TRACEALLOC_LIBRARY=LIBRARY, LC_ALL="C.UTF-8")
LINES = open(SOURCE).read().split("\n")


def line_of(text):
    return 1 + next(i for i, line in enumerate(LINES) if text in line)


def tracealloc(*arguments, status=0):
    done = subprocess.run([TRACEALLOC, *arguments], capture_output=True, text=True)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def growth(path, *arguments):
    return json.loads(tracealloc("growth", path, "--json", *arguments).stdout)[0]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.file = os.path.join(self.folder, "a.ta")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def run_program(self, *arguments, interval="0.1"):
        os.environ["GROWTH_RECORDING"] = self.file
        tracealloc("run", f"--interval={interval}", "--output=" + self.file, "--", PROGRAM, *arguments)


@unittest.skipIf(REAL, "planted ones are in the daily tests")
class Planted(Case):
    def test_every_kind_is_named_and_the_leak_is_first(self):
        self.run_program("1500")
        rows = growth(self.file, "-n", "0")["rows"]
        by_line = {row["line"]: row for row in rows if row["key"].endswith("growth_program.c")}
        expected = {"malloc(sizeof *link)": "steady", "malloc(1000)": "plateau", "calloc(1, 300000)": "one-off",
                    "malloc(500)": "sawtooth", "malloc(64)": "churn", "malloc(512)": "start", "malloc(3000)": "freed"}
        seen = {text: by_line[line_of(text)]["growth"] for text in expected}
        self.assertEqual(seen, expected)

        first = rows[0]
        self.assertEqual(first["line"], line_of("malloc(sizeof *link)"))
        self.assertEqual(first["function"], "leak")
        self.assertEqual(first["size"], 1500 * 64)
        self.assertEqual(first["never_freed"], 1500)
        self.assertEqual(first["bytes_per_call"], 64)
        self.assertEqual(sum(first["blocks_by_size"]), 1500)
        self.assertEqual(first["blocks_by_size"].index(1500), 7)  # 64 … 127 bytes
        self.assertGreater(first["certainty"], 0.5)

        cache = by_line[line_of("malloc(1000)")]
        self.assertEqual(cache["never_freed"], 256)
        self.assertEqual(sum(cache["blocks_by_lifetime"]) + 256, 750)
        churn = by_line[line_of("malloc(64)")]
        self.assertEqual(churn["blocks_by_lifetime"], [1500])

        steady = [row for row in rows if row["growth"] in ("steady", "slowing", "unsure")]
        self.assertEqual(len(steady), 1, [(row["key"], row["line"], row["reason"]) for row in steady])

    def test_a_sound_program_has_no_leak(self):
        self.run_program("1600", "sound", interval="0.05")
        rows = growth(self.file, "-n", "0")["rows"]
        self.assertEqual([row for row in rows if row["growth"] in ("steady", "slowing", "unsure")], [])

    def test_what_grows_until_it_is_freed_at_exit_comes_before_what_does_not_grow(self):
        self.run_program("1600", "tidy")
        rows = growth(self.file, "-n", "0")["rows"]
        grown = {row["line"]: row for row in rows[:2]}
        self.assertEqual(set(grown), {line_of("malloc(sizeof *link)"), line_of("malloc(3000)")})
        list_of_links = grown[line_of("malloc(sizeof *link)")]
        self.assertEqual((list_of_links["growth"], list_of_links["size"], list_of_links["bytes_per_call"]), ("freed", 0, 64))
        self.assertRegex(list_of_links["reason"], r"^grew until freed at exit, \d+% on a line$")
        self.assertEqual([row["line"] for row in rows[2:] if row["grown_size"] > 0], [])

    def test_courses_add_up_to_what_the_entries_hold(self):
        self.run_program("300")
        told = growth(self.file, "-n", "0")
        for index, entry in enumerate(told["entries"]):
            values = [row["sizes"][index] if index < len(row["sizes"]) else 0 for row in told["rows"]]
            self.assertEqual(sum(values), entry["size"])
            top = json.loads(tracealloc("stats", "--json", "--key", "module", f"{self.file}@{entry['entry']}").stdout)
            self.assertEqual(sum(row["size"] for row in top), entry["size"])

    def test_one_and_two_entries_promise_nothing(self):
        for entries, kinds in ((1, {"unknown", "churn"}), (2, {"unsure", "start", "churn", "unknown"})):
            self.record(entries)
            rows = growth(self.file, "-n", "0")["rows"]
            self.assertLessEqual({row["growth"] for row in rows}, kinds)
            self.assertLess(max(row["certainty"] for row in rows if row["growth"] != "churn"), 0.5)

    def test_what_the_table_leaves_out_is_said(self):
        self.run_program("300")
        rows = growth(self.file, "-n", "0")["rows"]
        text = tracealloc("growth", self.file, "-n", "2").stdout
        left = sum(row["size"] for row in rows[2:])
        said = re.search(r"^… and (\d+) more: (\S+) (B|KiB|MiB) live \(-n 0 lists all\)$", text, re.M)
        self.assertIsNotNone(said, text)
        self.assertEqual(int(said[1]), len(rows) - 2)
        self.assertAlmostEqual(float(said[2]) * {"B": 1, "KiB": 1024, "MiB": 2**20}[said[3]], left, delta=left / 100 + 1)
        self.assertNotIn("more:", tracealloc("growth", self.file, "-n", "0").stdout)
        self.assertNotIn("more:", tracealloc("growth", self.file, "-n", "2", "--csv").stdout)

    def record(self, entries, clear_at=None):
        arguments = [] if clear_at is None else [str(clear_at)]
        tracealloc("run", "--output=" + os.path.join(self.folder, "other.ta"), "--", PROGRAM, str(entries), "record",
                   self.file, *arguments)

    def test_thousands_of_entries_are_followed_once(self):
        self.record(2000)
        told = growth(self.file, "-n", "0")
        self.assertLessEqual(len(told["entries"]), 1001)
        self.assertEqual(told["entries"][-1]["entry"], 1999)
        leak = next(row for row in told["rows"] if row["function"] == "leak")
        self.assertEqual((leak["growth"], leak["sizes"][-1], leak["never_freed"]), ("steady", 2000 * 64, 2000))
        cache = next(row for row in told["rows"] if row["function"] == "fill_cache")
        self.assertEqual(cache["growth"], "plateau")

    def test_what_was_cleared_begins_anew(self):
        self.record(60, clear_at=20)
        told = growth(self.file, "-n", "0")
        self.assertEqual([entry["entry"] for entry in told["entries"] if entry["restarts"]], [20])
        leak = next(row for row in told["rows"] if row["function"] == "leak")
        self.assertIn(leak["growth"], ("steady", "slowing"))  # how evenly the entries came is the machine's affair
        self.assertEqual(leak["sizes"][19], 20 * 64)
        self.assertEqual(leak["sizes"][20:22], [0, 64])
        self.assertEqual(leak["size"], 39 * 64)

    def test_a_file_that_was_cut_off_is_followed_as_far_as_it_goes(self):
        self.record(50)
        with open(self.file, "r+b") as file:
            file.truncate(os.path.getsize(self.file) * 2 // 3)
        told = growth(self.file, "-n", "0")
        self.assertGreater(len(told["entries"]), 10)
        self.assertLess(len(told["entries"]), 50)

    def test_text_names_place_and_course(self):
        self.run_program("1500")
        text = tracealloc("growth", self.file, "-n", "1", "--histogram").stdout
        self.assertRegex(text, r"steady +[ _.\-~=+*#]+ +\S+ KiB .*growth_program.c:%d  leak"
                         % line_of("malloc(sizeof *link)"))
        self.assertIn("never freed: 1500 of 1500 blocks", text)
        leak = growth(self.file)["rows"][0]
        self.assertRegex(text, r" B a call: grew through")
        self.assertEqual(leak["bytes_per_minute"] > 0, "/min" in text)
        self.assertRegex(tracealloc("growth", self.file, "--csv").stdout, r"^growth,size,grown_size,")

    def test_what_is_no_recording_is_refused(self):
        with open(self.file, "w") as file:
            file.write("no recording")
        self.assertIn(self.file, tracealloc("growth", self.file, status=2).stderr)
        self.assertIn("traceback", tracealloc("growth", "--by", "traceback", self.file, status=2).stderr)


@unittest.skipUnless(REAL, "label long")
class Real(Case):
    def wait_for(self, condition):
        for _ in range(200):
            if condition():
                return
            time.sleep(0.05)
        self.fail("never came up")

    def test_python_that_keeps_what_it_reads(self):
        script = ("import time\nkept = []\n"
                  "for i in range(60):\n    kept.append(bytearray(20000))\n    [str(n) for n in range(1000)]\n"
                  "    time.sleep(0.03)\n")
        tracealloc("run", "--interval=0.1", "--output=" + self.file, "--", "/usr/bin/python3", "-c", script)
        first = growth(self.file)["rows"][0]
        self.assertEqual(first["growth"], "freed")  # Python frees its globals when it ends
        self.assertRegex(first["reason"], "grew until freed at exit")
        self.assertGreater(first["grown_size"], 600000)
        self.assertIn("python3", first["key"])

    def test_redis_under_load_that_ends_leaks_nothing_large(self):
        socket = os.path.join(self.folder, "redis")
        server = subprocess.Popen([TRACEALLOC, "run", "--interval=0.25", "--output=" + self.file, "--", "/usr/bin/redis-server",
                                   "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for(lambda: os.path.exists(socket))
        subprocess.run(["redis-benchmark", "-s", socket, "-q", "-n", "60000", "-r", "1000", "-t", "set,get,lpush,lpop"],
                       check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["redis-cli", "-s", socket, "shutdown", "nosave"], stdout=subprocess.DEVNULL)
        server.wait()
        told = growth(self.file, "-n", "0")
        self.assertGreater(len(told["entries"]), 4)
        self.assertGreater(len({row["growth"] for row in told["rows"]}), 2)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + [a for a in sys.argv[1:]])
