"""test_cost.py: what tracing costs a program: every mode really is one, turns are taken, failures are said.

    test_cost.py TRACEALLOC LIBRARY

Times decide nothing here.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import terminal as terminals  # noqa: E402

TRACEALLOC, LIBRARY = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
for name in ("LD_PRELOAD", "TRACEALLOC_OPTIONS", "TRACEALLOC"):
    os.environ.pop(name, None)
os.environ.update(TRACEALLOC_LIBRARY=LIBRARY, LC_ALL="C.UTF-8")


def cost(*arguments, status=0):
    done = subprocess.run([TRACEALLOC, "cost", *arguments], capture_output=True, text=True, timeout=100)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def wait_until_gone(process):
    for _ in range(6000):
        try:
            with open(f"/proc/{process}/status") as file:
                if "\nState:\tZ" in file.read():
                    return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    raise AssertionError(f"process {process} is still there")


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

    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind here")
    def test_instructions_are_counted_on_every_machine(self):
        script = "for ($i = 0; $i < 20000; $i++) { $h{$i} = [$i] }"
        arguments = ["-r", "2", "--modes", "own,stopped,whole", "--instructions", "--", "perl", "-e", script]
        own, stopped, whole = json.loads(cost("--json", *arguments).stdout)["modes"]
        for mode in (own, stopped, whole):
            self.assertGreater(mode["instructions"]["median"], 5e6)
        self.assertEqual(own["instructions"]["ratio"], 1)
        self.assertGreater(whole["instructions"]["ratio"], stopped["instructions"]["ratio"])
        self.assertNotIn("not counted", cost(*arguments).stdout)
        self.assertIn("--for", cost("--instructions", "--for", "1", "--", "true", status=2).stderr)

    def test_instructions_of_a_program_and_its_children_are_added_up(self):
        """A valgrind that says what the real one says, of two processes."""
        with open(f"{self.folder}/valgrind", "w") as file:
            file.write("""#!/bin/sh
for word; do case $word in --log-fd=*) log=${word#*=} ;; esac; done
case " $* " in *" --trace-children=yes "*) eval "echo '==1== Collected : 1500' >&$log; echo '==2== Collected : 700' >&$log" ;; esac
""")
        os.chmod(f"{self.folder}/valgrind", 0o755)
        path = os.environ["PATH"]
        try:
            os.environ["PATH"] = f"{self.folder}:{path}"
            told = json.loads(cost("-r", "1", "--modes", "own", "--instructions", "--json", "--", "true").stdout)
        finally:
            os.environ["PATH"] = path
        counted = told["modes"][0]["instructions"]["median"]
        self.assertTrue(counted == 2200 or counted > 10000)  # or the processor has said it

    def test_without_valgrind_the_rest_is_told(self):
        path = os.environ["PATH"]
        os.symlink(shutil.which("true"), f"{self.folder}/true")
        try:
            os.environ["PATH"] = self.folder
            told = cost("-r", "1", "--modes", "own", "--instructions", "--", "true")
        finally:
            os.environ["PATH"] = path
        self.assertIn("own ", told.stdout)
        if "not counted here" in told.stdout:  # or the processor has said it
            self.assertIn("valgrind: no such program in PATH: instructions are not counted", told.stderr)

    def test_a_terminal_of_eighty_columns_gets_two_tables(self):
        for columns, tables in ((80, 2), (131, 2), (132, 1)):
            text, status = terminals.run([TRACEALLOC, "cost", "-r", "3", "--modes", "own,whole", "--", "true"], columns)
            self.assertEqual(status, 0)
            lines = re.sub(r"\x1b\[[0-9;]*[mK]", "", text).replace("\r", "").split("\n")
            rows = [line for line in lines if line.startswith(("MODE ", "TIMES ", "own ", "whole "))]
            self.assertEqual(len(rows), 3 * tables, lines)
            self.assertLessEqual(max(map(len, rows)), columns)

    def test_each_run_reads_its_input_from_the_beginning(self):
        lines = f"{self.folder}/lines"
        with open(lines, "w") as file:
            file.write("a\n" * 100 + "b\n" * 30000)
        counts = ["-r", "2", "--modes", "own,whole", "--", "sh", "-c", "n=$(wc -l); echo $n >>" + self.folder + "/n; test $n -gt 0"]
        with open(lines) as file:
            os.lseek(file.fileno(), 200, os.SEEK_SET)  # as behind `read` in a script
            self.assertEqual(subprocess.run([TRACEALLOC, "cost", *counts], stdin=file, capture_output=True, text=True).stderr, "")
        cost("--input", lines, *counts)
        with open(f"{self.folder}/n") as file:
            self.assertEqual(file.read().split(), ["30000"] * 6 + ["30100"] * 6)
        piped = subprocess.run([TRACEALLOC, "cost", "-r", "1", "--modes", "own", "--", "true"], input="x\n", capture_output=True,
                               text=True)
        self.assertIn("--input FILE", piped.stderr)
        self.assertIn("is not a file", cost("--input", self.folder, "--", "true", status=2).stderr)
        self.assertIn("No such file", cost("--input", f"{self.folder}/missing", "--", "true", status=2).stderr)

    def test_a_load_that_fails_is_no_load(self):
        server = ["-r", "1", "--modes", "own", "--for", "100"]
        self.assertIn('the load failed under "own": status 127', cost(*server, "--load", "/nonexistent/benchmark", "--", "sleep", "1000",
                                                                     status=2).stderr)
        self.assertIn('the load failed under "own": signal 9', cost(*server, "--load", "kill -9 $$", "--", "sleep", "1000",
                                                                   status=2).stderr)
        cost(*server, "--load", "true", "--", "sleep", "1000")

    def test_a_server_that_does_not_stay_is_no_server(self):
        self.assertIn("ended by itself", cost("-r", "1", "--modes", "own", "--for", "100", "--", "true", status=2).stderr)
        self.assertIn("ended by itself", cost("-r", "1", "--modes", "own", "--for", "100", "--load", "sleep 1000", "--", "true",
                                              status=2).stderr)
        # Whoever ends it for us is a load like others.
        stays = f"echo $$ >{self.folder}/pid; while [ -e {self.folder}/pid ]; do sleep 0.01; done"
        cost("-r", "1", "--modes", "own", "--for", "100", "--load", f"rm {self.folder}/pid", "--", "sh", "-c", stays)

    def test_whoever_ends_it_ends_the_program_and_the_load(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
            names = [f"{self.folder}/{name}" for name in ("program", "load")]
            say = "echo $$ >{0}.new && mv {0}.new {0} && exec sleep 1000"
            process = subprocess.Popen([TRACEALLOC, "cost", "--modes", "own", "--for", "1000", "--load", say.format(names[1]), "--",
                                        "sh", "-c", say.format(names[0])], stdout=subprocess.DEVNULL)
            while not all(map(os.path.exists, names)):
                time.sleep(0.01)
            process.send_signal(number)
            self.assertEqual(process.wait(), -number)
            for name in names:
                with open(name) as file:
                    wait_until_gone(int(file.read()))
                os.unlink(name)

    def test_on_a_terminal_too_the_children_of_the_load_end(self):
        parent, terminal = terminals.opened(100)
        load = f"sleep 1000 & echo $! >{self.folder}/new && mv {self.folder}/new {self.folder}/load; wait"
        with subprocess.Popen([TRACEALLOC, "cost", "--modes", "own", "--for", "1000", "--load", load, "--", "sleep", "1000"],
                              stdout=subprocess.DEVNULL, stderr=terminal) as process:
            os.close(terminal)
            while not os.path.exists(f"{self.folder}/load"):
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            terminals.read_all(parent)
            self.assertEqual(process.wait(), -signal.SIGTERM)
        with open(f"{self.folder}/load") as file:
            wait_until_gone(int(file.read()))

    def test_a_status_can_be_ignored_and_a_crash_cannot(self):
        self.assertIn("-i measures it", cost("-r", "1", "--modes", "own", "--", "false", status=2).stderr)
        cost("-i", "-r", "1", "--modes", "own", "--", "false")
        self.assertIn("signal 9", cost("-i", "-r", "1", "--modes", "own", "--", "sh", "-c", "kill -9 $$", status=2).stderr)

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
