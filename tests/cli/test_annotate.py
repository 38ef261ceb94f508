"""test_annotate.py: a source with what its lines hold, against what the other commands say of the same recording.

    test_annotate.py TRACEALLOC LIBRARY PROGRAM SOURCE
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TRACEALLOC, LIBRARY, PROGRAM, SOURCE = [os.path.abspath(sys.argv.pop(1)) for _ in range(4)]
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


class Annotate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.file = os.path.join(cls.folder, "a.ta")
        tracealloc("run", "--output=" + cls.file, "--", PROGRAM, "200")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_figures_stand_beside_their_lines(self):
        told = json.loads(tracealloc("annotate", self.file, "--json", "--source", "growth_program.c").stdout)
        lines = next(iter(told.values()))
        self.assertEqual(len(told), 1)
        leak = lines[str(line_of("malloc(sizeof *link)"))]
        self.assertEqual((leak["live"], leak["calls"], leak["through"]), (200 * 64, 200, 200 * 64))
        churn = lines[str(line_of("malloc(64)"))]
        self.assertEqual((churn["live"], churn["calls"]), (0, 200))
        call = lines[str(line_of("            leak();"))]
        self.assertEqual((call["live"], call["calls"], call["through"], call["through_calls"]), (0, 0, 200 * 64, 200))

    def test_own_figures_add_up_to_the_rows_of_stats(self):
        told = json.loads(tracealloc("annotate", self.file, "--json").stdout)
        rows = json.loads(tracealloc("stats", self.file, "--json", "--key", "own").stdout)
        lined = sum(row["size"] for row in rows if row["frames"][0][1] > 0)
        self.assertEqual(sum(line["live"] for file in told.values() for line in file.values()), lined)
        self.assertGreater(lined, 200 * 64)

    def test_text_is_the_source_with_figures(self):
        for path in ("growth_program.c", "support/growth_program.c", SOURCE):
            text = tracealloc("annotate", self.file, "--source", path, "-n", "0").stdout.split("\n")
            self.assertEqual([line[48:] for line in text[2:2 + len(LINES) - 1]], LINES[:-1], path)
            number = line_of("malloc(sizeof *link)")
            self.assertRegex(text[1 + number], r"^ *12\.5 KiB +\S+ \S+ +200 +12\.5 KiB +%d  " % number)
        short = tracealloc("annotate", self.file, "--source", "growth_program.c", "-n", "1").stdout
        self.assertLess(short.count("\n"), len(LINES))
        self.assertIn("…", short)

    def test_a_source_that_is_not_there_is_said(self):
        self.assertIn("nothing.c", tracealloc("annotate", self.file, "--source", "nothing.c", status=2).stderr)
        self.assertRegex(tracealloc("annotate", self.file).stdout, r"\A *\S+ KiB  \S*/growth_program\.c\n\Z")


if __name__ == "__main__":
    unittest.main()
