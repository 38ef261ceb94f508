"""test_interchange.py: import, stats, diff, filter and export, with their errors.

    test_interchange.py TRACEALLOC
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

TRACEALLOC = os.path.abspath(sys.argv.pop(1))

DOCUMENT = {"traceback_limit": 3, "traces": [
    {"domain": 0, "size": 10, "total_nframe": 2, "count": 3, "frames": [["/s/a.c", 3], ["/s/main.c", 9]]},
    {"domain": 0, "size": 5000, "total_nframe": None, "count": 1, "frames": [["/s/\udcff\u00e9/b.c", 4], ["/s/main.c", 9]]},
    {"domain": 7, "size": 2 ** 64 - 1, "total_nframe": 1, "count": 1, "frames": [["x", 2 ** 32 - 1]]}]}


def run(*arguments, text=b"", stdout=subprocess.PIPE):
    return subprocess.run([TRACEALLOC, *arguments], input=text, stdout=stdout, stderr=subprocess.PIPE, check=False)


class Interchange(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.chdir(self.folder.name)
        self.make("a.ta", DOCUMENT)

    def make(self, name, document):
        done = run("import", "-", "-o", name, text=json.dumps(document).encode())
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))

    def answer(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout.decode()

    def refuse(self, error, *arguments, **options):
        """Exit status 2 and exactly one line on standard error."""
        done = run(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr.decode()), (2, f"tracealloc: {error}\n"))
        self.assertIn(done.stdout, (b"", None))

    def test_import_then_export_gives_the_same_traces(self):
        self.assertEqual(json.loads(self.answer("export", "a.ta", "--json")),
                         {**DOCUMENT, "frame_order": "most_recent_first"})

    def test_stats_prints_rows_in_order(self):
        done = run("stats", "a.ta", "--key", "filename", "--cumulative", "--where", "domain:0")
        self.assertEqual(done.stdout, b"/s/main.c:0: size=5030 B, count=4, average=1258 B\n"
                                      b"/s/\xff\xc3\xa9/b.c:0: size=5000 B, count=1, average=5000 B\n"
                                      b"/s/a.c:0: size=30 B, count=3, average=10 B\n")

    def test_stats_as_json_has_frames_size_count_and_text(self):
        rows = json.loads(self.answer("stats", "a.ta", "--key", "traceback", "--json"))
        self.assertEqual(rows[0], {"frames": [["x", 2 ** 32 - 1]], "size": 2 ** 64 - 1, "count": 1,
                                   "str": "x:4294967295: size=16777216 TiB, count=1, average=16777216 TiB"})
        self.assertEqual(rows[1]["frames"], [["/s/\udcff\u00e9/b.c", 4], ["/s/main.c", 9]])

    def test_diff_as_json_has_both_differences(self):
        self.make("b.ta", {"traces": DOCUMENT["traces"][:1]})
        rows = json.loads(self.answer("diff", "b.ta", "a.ta", "--key", "lineno", "--json"))
        self.assertEqual(rows[0], {"frames": [["x", 2 ** 32 - 1]], "size": 0, "size_diff": 1 - 2 ** 64, "count": 0,
                                   "count_diff": -1, "str": "x:4294967295: size=0 B (-16777216 TiB), count=0 (-1)"})
        self.assertEqual([row["size_diff"] for row in rows], [1 - 2 ** 64, -5000, 0])

    def test_filter_by_specification_and_by_words_write_the_same_file(self):
        spec = json.dumps([{"type": "filter", "inclusive": True, "filename_pattern": "/s/*.c", "lineno": None},
                           {"type": "domain", "inclusive": False, "domain": 7}])
        self.answer("filter", "a.ta", "--spec", "-", "-o", "spec.ta", text=spec.encode())
        self.answer("filter", "a.ta", "--where", "file:/s/*.c and not domain:7", "-o", "words.ta")
        self.assertEqual(self.answer("export", "spec.ta", "--json"), self.answer("export", "words.ta", "--json"))
        self.assertEqual(len(json.loads(self.answer("export", "spec.ta", "--json"))["traces"]), 2)

    def test_wrong_arguments_are_refused_with_one_line(self):
        self.refuse("a command is missing (see tracealloc --help)")
        done = run("bogus")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr.decode(), r"\Atracealloc: unknown command 'bogus' \(run, top, diff, [a-z, ]+, retained\)\n\Z")
        self.refuse("stats: unknown option '--bogus' (see tracealloc stats --help)", "stats", "--bogus")
        self.refuse("stats: --key wants a value", "stats", "a.ta", "--key")
        self.refuse("--limit: expected a number, not '-1'", "stats", "a.ta", "--limit", "-1")
        self.refuse("export: one of --json, --python, --csv and --format, please", "export", "a.ta")
        self.refuse("import: unknown option '--json' (see tracealloc import --help)", "import", "x", "--json")
        choices = "(own, line, function, file, module, traceback, domain, process, thread; tracemalloc's lineno and filename)"
        self.refuse(f"--key: unknown key 'bogus' {choices}", "stats", "a.ta", "--key", "bogus")
        self.refuse(f"--by: unknown key '' {choices}", "stats", "a.ta", "--by", "")
        self.refuse("-n: expected a number, not 'x'", "top", "a.ta", "-n", "x")
        self.refuse("diff: cumulative mode cannot by used with key type 'traceback'", "diff", "a.ta", "a.ta", "--key",
                    "traceback", "--cumulative")
        self.refuse("a.ta: this order is for differences only", "stats", "a.ta", "--sort", "growth")
        self.refuse("domain:3 and: filter, column 13: a condition is missing", "stats", "a.ta", "--where", "domain:3 and")

    def test_wrong_files_are_refused_with_one_line(self):
        for arguments in (["stats", "missing.ta"], ["stats", "."], ["stats", "empty.ta"], ["diff", "a.ta", "text.ta"],
                          ["filter", "text.ta", "--where", "domain:1", "-o", "x.ta"], ["export", "text.ta", "--json"],
                          ["import", "missing.json", "-o", "x.ta"], ["import", "text.ta", "-o", "x.ta"],
                          ["filter", "a.ta", "--spec", "text.ta", "-o", "x.ta"],
                          ["import", "ok.json", "-o", "missing/x.ta"]):
            with open("text.ta", "w") as file:
                file.write("no recording\n")
            with open("empty.ta", "w"):
                pass
            with open("ok.json", "w") as file:
                json.dump(DOCUMENT, file)
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertRegex(done.stderr.decode(), r"\Atracealloc: [^\n]+\n\Z", arguments)
            self.assertEqual(done.stdout, b"")
            self.assertFalse(os.path.exists("x.ta"))

    def test_a_full_device_is_trouble(self):
        with open("/dev/full", "wb") as full:
            for arguments in (["stats", "a.ta"], ["stats", "a.ta", "--json"], ["export", "a.ta", "--python"], ["--help"]):
                done = run(*arguments, stdout=full)
                self.assertEqual(done.returncode, 2, arguments)
                self.assertIn(b"No space left on device", done.stderr)

    def test_help_of_every_command_names_its_usage(self):
        listing = self.answer("--help")
        commands = [line.split()[0] for line in listing.splitlines() if line.startswith("  ")]
        self.assertGreaterEqual(len(commands), 5)
        for command in commands:
            self.assertTrue(self.answer(command, "--help").startswith(f"usage: tracealloc {command} "))


if __name__ == "__main__":
    unittest.main()
