"""test_cost.py: what tracing costs a program: every mode really is one, turns are taken, failures are said.

    test_cost.py TRACEALLOC LIBRARY

Times decide nothing here.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TRACEALLOC, LIBRARY = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
for name in ("LD_PRELOAD", "TRACEALLOC_OPTIONS", "TRACEALLOC"):
    os.environ.pop(name, None)
os.environ.update(TRACEALLOC_LIBRARY=LIBRARY, LC_ALL="C.UTF-8")


def cost(*arguments, status=0):
    done = subprocess.run([TRACEALLOC, "cost", *arguments], capture_output=True, text=True, timeout=100)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done


class Cost(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.log = os.path.join(self.folder, "log")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def test_each_mode_is_run_in_turns_as_it_says(self):
        note = f'echo "${{TRACEALLOC-unset}} ${{TRACEALLOC_OPTIONS-none}} ${{LD_PRELOAD-nothing}}" >>{self.log}'
        told = json.loads(cost("-r", "2", "--modes", "own,stopped,sampled,one,whole", "--json", "--", "sh", "-c", note).stdout)
        library = LIBRARY if not os.path.islink(LIBRARY) else os.path.realpath(LIBRARY)
        modes = ["unset none nothing", f"unset none {library}", f"65535 sample=512K {library}", f"1 none {library}",
                 f"65535 none {library}"]
        with open(self.log) as file:
            seen = file.read().split("\n")[:-1]
        self.assertEqual(seen, modes + modes[1:] + modes[:1] + modes[2:] + modes[:2])

        self.assertEqual([mode["mode"] for mode in told["modes"]], ["own", "stopped", "sampled", "one", "whole"])
        for mode in told["modes"]:
            for quantity in ("cpu", "wall", "memory"):
                self.assertEqual(len(mode[quantity]["runs"]), 2)
        self.assertEqual(told["modes"][0]["memory"]["ratio"], 1)

    def test_there_are_intervals_where_there_are_rounds_enough(self):
        for rounds in (1, 2, 3, 5):
            arguments = ["-r", str(rounds), "--modes", "own,whole"]
            told = json.loads(cost(*arguments, "--json", "--", "true").stdout)
            table = cost(*arguments, "--", "true").stdout
            is_enough = rounds >= 3
            self.assertEqual("[" in table, is_enough, table)
            self.assertIn("with 95 % intervals" if is_enough else "; too few rounds for intervals", table)
            for mode in told["modes"]:
                for quantity in ("cpu", "wall", "memory"):
                    measured = mode[quantity]
                    self.assertEqual("low" in measured and "high" in measured, is_enough)
                    if is_enough:
                        self.assertLessEqual(measured["low"], measured["ratio"])
                        self.assertLessEqual(measured["ratio"], measured["high"])

    def test_the_library_without_tracing_is_found_and_is_one(self):
        done = cost("-r", "1", "--modes", "own,untraced", "--json", "--", "sh", "-c", f'echo "$LD_PRELOAD" >>{self.log}')
        self.assertEqual(done.stderr, "")
        with open(self.log) as file:
            preloaded = file.read().split()[-1]
        self.assertEqual(os.path.basename(preloaded), "libtracealloc-untraced.so")
        names = subprocess.run(["nm", "-D", "--defined-only", preloaded], capture_output=True, text=True, check=True).stdout
        self.assertIn(" malloc\n", names)
        status = subprocess.run(["true"], env={"LD_PRELOAD": preloaded, "TRACEALLOC": "5", "TRACEALLOC_OPTIONS": "bogus"})
        self.assertEqual(status.returncode, 0)  # it reads no options

    def test_memory_is_that_of_the_program(self):
        script = "x = bytearray(64 << 20)"
        told = json.loads(cost("-r", "1", "--modes", "own,whole", "--json", "--", sys.executable, "-c", script).stdout)
        for mode in told["modes"]:
            self.assertGreater(mode["memory"]["median"], 64 << 20)
            self.assertLess(mode["memory"]["median"], 200 << 20)

    def test_a_program_that_fails_is_no_measurement(self):
        self.assertIn('failed under "own": status 3', cost("-r", "1", "--", "sh", "-c", "exit 3", status=2).stderr)
        self.assertIn("signal 6", cost("-r", "1", "--", "sh", "-c", "kill -ABRT $$", status=2).stderr)
        cost("-r", "1", "--", "/nowhere/at/all", status=2)
        self.assertIn("unknown mode 'fast'", cost("--modes", "own,fast", "--", "true", status=2).stderr)
        self.assertIn("--for", cost("--load", "true", "--", "true", status=2).stderr)

    def test_a_server_is_ended_when_its_load_has(self):
        table = cost("-r", "1", "--modes", "own,stopped", "--for", "60", "--load", f"echo load >>{self.log}", "--markdown",
                     "--", "sleep", "1000").stdout
        with open(self.log) as file:
            self.assertEqual(file.read().count("load"), 4)
        self.assertIn("| stopped ", table)


if __name__ == "__main__":
    unittest.main()
