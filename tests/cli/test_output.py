"""test_output.py: what a terminal, a pipe, a full disk and another program get to see.

    test_output.py TRACEALLOC LIBRARY
"""
import csv
import glob
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unicodedata
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import terminal as terminals  # noqa: E402

TRACEALLOC, LIBRARY = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
for name in ("LD_PRELOAD", "COLUMNS", "NO_COLOR", "DEBUGINFOD_URLS"):
    os.environ.pop(name, None)
os.environ.update(TRACEALLOC_LIBRARY=LIBRARY, LC_ALL="C.UTF-8", TERM="xterm")

PROGRAM = """
#include <stdlib.h>
__attribute__((noinline)) void *a_function_with_a_name_that_is_long_enough_to_be_cut_in_narrow_windows(size_t size)
{
    return malloc(size);
}
__attribute__((noinline)) static void *deep(int depth, size_t size)
{
    void *volatile block = depth > 0 ? deep(depth - 1, size)
                                     : a_function_with_a_name_that_is_long_enough_to_be_cut_in_narrow_windows(size);
    return block;
}
int main(int argc, char **argv)
{
    (void)argv;
    for (int i = 0; i < 100 * argc; i++) { void *volatile block = deep(i % 40, 1000); (void)block; }
    return 0;
}
"""
LISTINGS = [("top",), ("top", "--by", "traceback"), ("top", "--by", "function", "--sort", "calls"), ("tree",),
            ("tree", "--bottom-up"), ("info",), ("list",), ("domains",), ("pretty",), ("stats",), ("biggest",), ("check",)]


def on_terminal(arguments, columns=100, environment=None, stream="stdout"):
    """What the terminal gets, and the exit status."""
    return terminals.run([TRACEALLOC, *arguments], columns, stream, env={**os.environ, **(environment or {})})


def width_of(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


class Output(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        os.chdir(cls.folder)
        os.makedirs("a/folder/that/lies/rather/deep/in/the/tree")
        cls.source = os.path.join(cls.folder, "a/folder/that/lies/rather/deep/in/the/tree/program.c")
        with open(cls.source, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        subprocess.run(["cc", "-g", "-O1", "-o", "program", cls.source], check=True)
        subprocess.run(["strip", "-o", "stripped", "program"], check=True)
        for name, more in (("old", ()), ("new", ("more",))):
            subprocess.run([TRACEALLOC, "run", "-q", "-o", f"{name}.ta", "./program", *more], check=True)
        subprocess.run([TRACEALLOC, "run", "-q", "-o", "stripped.ta", "./stripped"], check=True)

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        shutil.rmtree(cls.folder)

    def lines(self, *arguments, folder=None):
        done = subprocess.run([TRACEALLOC, *arguments], stdout=subprocess.PIPE, check=True, cwd=folder)
        return done.stdout.decode().splitlines()

    # ---- other programs ----

    def test_json_is_json_and_csv_is_csv_everywhere(self):
        for command, *options in LISTINGS + [("diff", "--sort", "growth"), ("diff", "--by", "traceback")]:
            files = ["new.ta", "old.ta"] if command == "diff" else ["new.ta"]
            rows = json.loads("\n".join(self.lines(command, *files, *options, "--json")))
            self.assertIsInstance(rows, list, command)
            self.assertTrue(rows or command == "check", command)
            table = list(csv.reader(io.StringIO("\n".join(self.lines(command, *files, *options, "--csv")))))
            self.assertEqual({len(row) for row in table}, {len(table[0])}, command)
            if command not in ("diff", "stats", "pretty", "biggest"):  # these have JSON of the library
                self.assertEqual([dict(zip(table[0], (str(v) for v in row))).keys() for row in table[1:]],
                                 [row.keys() for row in rows], (command, options))
            self.assertEqual(len(table) - 1, len(rows), (command, options))

    def test_whole_stacks_are_in_csv_too(self):
        for command in (("top", "new.ta"), ("stats", "new.ta"), ("diff", "new.ta", "old.ta")):
            option = "--key" if command[0] == "stats" else "--by"
            row = next(csv.DictReader(io.StringIO("\n".join(self.lines(*command, option, "traceback", "--csv")))))
            self.assertRegex(row["stack"], r"program\.c:5 a_function_with[a-z_]+;.*program\.c:\d+ deep;.*program\.c:\d+ main;")

    def test_exports_are_what_they_say(self):
        for line in self.lines("export", "new.ta", "--format", "jsonl"):
            self.assertIn("frames", json.loads(line))
        for line in self.lines("export", "new.ta", "--format", "folded"):
            self.assertRegex(line, r"^[^;]+(;[^;]+)* \d+$")
        json.loads("\n".join(self.lines("export", "new.ta", "--format", "speedscope")))
        self.assertGreater(len(list(csv.reader(io.StringIO("\n".join(self.lines("export", "new.ta", "--csv")))))), 1)

    # ---- terminals ----

    def test_listings_fit_the_width(self):
        for columns in (40, 80, 200):
            for command, *options in LISTINGS + [("diff", "old.ta")]:
                if command in ("pretty", "stats", "biggest", "check", "info"):
                    continue  # texts that are the same everywhere
                text, status = on_terminal([command, "new.ta", *options, "--color=auto"], columns)
                self.assertEqual(status, 0)
                plain = re.sub(r"\x1b\[[0-9;]*m", "", text).split("\r\n")
                limit = max(columns, 75)  # numbers are never cut; the last column keeps a dozen cells
                for line in plain:
                    if "more:" not in line:
                        self.assertLessEqual(width_of(line), limit, (columns, command, line))

    def test_where_the_rest_of_the_process_is_fits_the_width(self):
        with open("map.c", "w", encoding="utf-8") as file:
            file.write("#include <string.h>\n#include <sys/mman.h>\n#include <unistd.h>\n"
                       "int main(void) { memset(mmap(NULL, 64 << 20, 3, 0x22, -1, 0), 1, 64 << 20); usleep(1500000); }\n")
        subprocess.run(["cc", "-g", "-o", "map", "map.c"], check=True)
        subprocess.run([TRACEALLOC, "run", "-q", "-o", "map.ta", "./map"], check=True)
        piped = self.lines("top", "map.ta")[1]
        self.assertRegex(piped, r"^the process had [\d.]+ MiB at most")
        self.assertGreater(len(piped), 60)
        shown = on_terminal(["top", "map.ta"], 60, {"NO_COLOR": "1"})[0].split("\r\n")
        parts = [shown[1]] + [line for line in shown[2:] if line.startswith("    ") and "LIVE" not in line]
        self.assertEqual(" ".join(part.strip() for part in parts), piped)
        for line in parts:
            self.assertLessEqual(width_of(line), 60, line)

    def test_ways_go_on_in_the_next_line(self):
        names = [f"a_function_with_a_name_of_some_length_{letter}" for letter in "abcd"]
        with open("way.c", "w", encoding="utf-8") as file:
            file.write("#include <stdlib.h>\n")
            for name, inner in zip(names, ("abort", *names)):
                file.write(f"__attribute__((noinline)) void {name}(void) {{ {inner}(); __asm__ volatile(\"\"); }}\n")
            file.write("int main(int argc, char **argv) { if (argc > 1) "
                       f"{names[3]}(); argv[0] = malloc(100); return 0; }}\nvoid *volatile kept;\n"
                       "__attribute__((constructor)) void keep(void) { kept = malloc(100); }\n")
        subprocess.run(["cc", "-O1", "-g0", "-c", "way.c"], check=True)
        subprocess.run(["cc", "-o", "way", "way.o"], check=True)
        subprocess.run([TRACEALLOC, "run", "-q", "-o", "way.ta", "./way", "abort"], check=False)
        piped = self.lines("top", "way.ta")[1]
        self.assertEqual(piped, f"ended by SIGABRT, in abort < {' < '.join(names)} < main")
        shown = on_terminal(["top", "way.ta"], 80, {"NO_COLOR": "1"})[0].split("\r\n")
        parts = [shown[1]] + [line for line in shown[2:] if line.startswith("    ") and "LIVE" not in line]
        self.assertEqual(" ".join(part.strip() for part in parts), piped)
        self.assertGreater(len(parts), 2)
        for line in parts:
            self.assertLessEqual(width_of(line), 80, line)

    def test_namespaces_go_before_the_name_does(self):
        with open("deep.cpp", "w", encoding="utf-8") as file:
            file.write("#include <cstdlib>\n"
                       "namespace a_company { namespace with_many { namespace nested_namespaces { namespace here {\n"
                       "struct Writer { __attribute__((noinline)) void *write_header(size_t size); };\n"
                       "void *Writer::write_header(size_t size) { return calloc(size, 1); } } } } }\n"
                       "int main() { a_company::with_many::nested_namespaces::here::Writer writer;\n"
                       "    void *volatile kept = writer.write_header(5000); (void)kept; }\n")
        subprocess.run(["g++", "-O1", "-o", "deep", "deep.cpp"], check=True)
        subprocess.run([TRACEALLOC, "run", "-q", "-o", "deep.ta", "./deep"], check=True)
        text, _ = on_terminal(["top", "deep.ta"], 80, {"NO_COLOR": "1"})
        self.assertRegex(text, r"^deep\.ta: 5000 B live in 1 block, peak 5000 B, \./deep \(process \d+\)\r\n")
        narrow, _ = on_terminal(["top", "deep.ta"], 60, {"NO_COLOR": "1"})
        self.assertTrue(narrow.startswith("deep.ta: 5000 B live in 1 block, peak 5000 B, ./deep\r\n"), narrow)
        self.assertIn("deep  …::here::Writer::write_header\r\n", text)
        self.assertIn("deep  a_company::with_many::nested_namespaces::here::Writer::write_header", "\n".join(self.lines("top", "deep.ta")))

    def test_paths_are_cut_from_the_left_and_relative_to_here(self):
        wide, _ = on_terminal(["top", "new.ta"], 200, {"NO_COLOR": "1"})
        where = "a/folder/that/lies/rather/deep/in/the/tree/program.c:5"
        self.assertIn(f"  {where}  a_function_with", wide)
        narrow, _ = on_terminal(["top", "new.ta"], 80, {"NO_COLOR": "1"})
        self.assertNotIn("a/folder", narrow)
        self.assertIn("…", narrow)
        for columns in (40, 60, 80, 120):  # folders may go, the file and its line never do
            self.assertIn("/program.c:5", on_terminal(["top", "new.ta"], columns, {"NO_COLOR": "1"})[0])
        self.assertIn(f"  {where}  a_function_with", "\n".join(self.lines("top", "new.ta")))
        self.assertIn(f"  {self.source}:5  a_function_with", "\n".join(self.lines("top", "new.ta", "--full-names")))
        os.makedirs("project/inside", exist_ok=True)
        os.mkdir("project/.git")
        os.rename("a", "project/a")
        try:  # from the project's root on, wherever in it one stands
            path = os.path.join(self.folder, "new.ta")
            self.assertIn(f"  {self.source}:5  a_function", "\n".join(self.lines("top", path, folder="project/inside")))
            os.mkdir(".git")
            self.assertIn(f"  {where}  a_function_with", "\n".join(self.lines("top", path, folder="project/..")))
        finally:
            os.rename("project/a", "a")
            os.rmdir(".git")
            shutil.rmtree("project")

    def test_bars_are_unicode_where_the_locale_is(self):
        self.assertIn("█", on_terminal(["top", "new.ta"], 120)[0])
        ascii_only = on_terminal(["top", "new.ta"], 120, {"LC_ALL": "C"})[0]
        self.assertIn("####", ascii_only)
        ascii_only.encode("ascii")

    def test_a_pipe_gets_neither_colours_nor_bars_nor_escapes(self):
        for command, *options in LISTINGS:
            for line in self.lines(command, "new.ta", *options):
                self.assertNotRegex(line, r"\x1b|█")

    # ---- interruptions ----

    def hang(self, *arguments):
        """Asks a server for symbols that never answers; interrupts when the progress bar is there."""
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen(16)
            held, asked = [], threading.Event()

            def accept():
                try:
                    while True:
                        held.append(server.accept())
                        asked.set()
                except OSError:
                    pass
            threading.Thread(target=accept, daemon=True).start()
            parent, terminal = terminals.opened(100)
            environment = {**os.environ, "DEBUGINFOD_URLS": f"http://127.0.0.1:{server.getsockname()[1]}",
                           "DEBUGINFOD_CACHE_PATH": os.path.join(self.folder, "cache"), "DEBUGINFOD_TIMEOUT": "60"}
            with subprocess.Popen([TRACEALLOC, *arguments], stdout=subprocess.DEVNULL, stderr=terminal,
                                  env=environment) as running:
                os.close(terminal)
                text = b""
                while b"of" not in text and running.poll() is None:
                    try:
                        text += os.read(parent, 4096)
                    except OSError:
                        break
                if running.poll() is None:
                    running.send_signal(signal.SIGINT)
                running.wait()
                rest = terminals.read_all(parent)
            if not asked.is_set():
                self.skipTest("the symbols library asks no server here (libdebuginfod is missing)")
            for connection, _ in held:
                connection.close()
            return text.decode() + rest, running.returncode

    def test_what_takes_long_shows_progress_and_ctrl_c_leaves_nothing(self):
        for arguments in (("top", "stripped.ta"), ("flame", "stripped.ta", "-o", "out.svg"),
                          ("symbolize", "stripped.ta", "-o", "out.ta"),
                          ("export", "stripped.ta", "--format", "pprof", "-o", "out.pb.gz")):
            text, status = self.hang(*arguments)
            self.assertRegex(text, r"\A\rlooking up symbols \[#*\.+\] \d+ of \d+\x1b\[K")
            self.assertTrue(text.endswith("\r\x1b[K"), text[-40:])
            self.assertEqual(status, -signal.SIGINT, arguments)  # what shells call 130
            self.assertEqual(glob.glob("out*"), [])

    def test_no_progress_where_nobody_looks(self):
        done = subprocess.run([TRACEALLOC, "top", "new.ta"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
        self.assertEqual(done.stderr, b"")

    def test_a_reader_that_leaves_is_no_error(self):
        for command, *options in LISTINGS + [("diff", "old.ta"), ("flame",), ("export", "--format", "jsonl")]:
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([TRACEALLOC, command, "new.ta", *options], stdout=writer, stderr=subprocess.PIPE,
                                  restore_signals=True, check=False)
            os.close(writer)
            self.assertEqual(done.stderr, b"", command)
            self.assertEqual(done.returncode, -signal.SIGPIPE, command)

    def test_a_full_disk_is_one_line_and_status_2(self):
        commands = [[command, "new.ta", *options] for command, *options in LISTINGS]
        commands += [["diff", "new.ta", "old.ta"], ["flame", "new.ta"], ["export", "new.ta", "--format", "jsonl"],
                     ["report", "new.ta", "-o", "-"]]
        for arguments in commands:
            for more in ([],) if arguments[0] in ("flame", "export", "report") else ([], ["--json"], ["--csv"]):
                with open("/dev/full", "wb") as full:
                    done = subprocess.run([TRACEALLOC, *arguments, *more], stdout=full, stderr=subprocess.PIPE, check=False)
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr.decode(), r"\Atracealloc: standard output: (cannot write: )?"
                                 r"No space left on device\n\Z", arguments + more)
        for arguments in (["flame", "new.ta"], ["export", "new.ta", "--format", "pprof"], ["symbolize", "new.ta"],
                          ["filter", "new.ta", "--where", "domain:0"], ["report", "new.ta"], ["report", "new.ta", "old.ta"]):
            done = subprocess.run([TRACEALLOC, *arguments, "-o", "/dev/full"], stderr=subprocess.PIPE, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr.decode(), r"\Atracealloc: /dev/full: [^\n]*No space left on device\n\Z")
        os.mkdir("small")
        done = subprocess.run(["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=4k small small && head -c 4096 /dev/zero > small/full; exec "$@"', "sh", TRACEALLOC,
                               "run", "-o", "small/a.ta", "./program"], stderr=subprocess.PIPE, check=False)
        said = done.stderr.decode()
        if not re.search(r"^(unshare|mount): ", said, re.M):  # who may mount nothing has no small disk
            self.assertEqual(done.returncode, 0, said)
            self.assertRegex(said, r"\Atracealloc: process \d+: [^\n]*No space left on device\n\Z")


if __name__ == "__main__":
    unittest.main()
