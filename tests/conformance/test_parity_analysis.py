"""test_parity_analysis.py: analysis behaves as tracemalloc does — the rows 79 to 111 and 115 to 120, one test or more each.

    test_parity_analysis.py ANALYSIS-LIBRARY TRACEALLOC DRIVER      TRACEALLOC_LIBRARY = the runtime, CC = a C compiler

Where Python can be asked, it is: the expected answer is what its tracemalloc module says of the same traces. Values (frames,
tracebacks, texts of sizes, patterns) are asked of the shared library through its C API, snapshots of the driver, reports
of the program.
"""
import ctypes
import itertools
import json
import linecache
import locale
import os
import re
import subprocess
import sys
import tempfile
import time
import tracemalloc
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import terminal as terminals  # noqa: E402
from driver import Driver, Refused, differences, python_filter, statistics

LIBRARY, TRACEALLOC, DRIVER = (os.path.abspath(path) for path in sys.argv[1:4])
del sys.argv[1:4]
ROWS = [*range(79, 112), *range(115, 121)]
ALL_FRAMES = 2 ** 63 - 1


class Frame(ctypes.Structure):
    _fields_ = [("filename", ctypes.c_char_p), ("filename_length", ctypes.c_size_t), ("lineno", ctypes.c_uint32),
                ("flags", ctypes.c_uint32), ("function", ctypes.c_char_p), ("raw_name", ctypes.c_char_p),
                ("module", ctypes.c_char_p), ("offset", ctypes.c_uint64), ("address", ctypes.c_uint64)]


class Traceback(ctypes.Structure):
    _fields_ = [("total_nframe", ctypes.c_int64), ("owner", ctypes.c_void_p), ("kind", ctypes.c_uint32),
                ("index", ctypes.c_uint32)]


lib = ctypes.CDLL(LIBRARY)
lib.ta_traceback_of.restype = Traceback
lib.ta_traceback_of.argtypes = [ctypes.POINTER(Frame), ctypes.c_size_t, ctypes.c_int64]
lib.ta_traceback_format.restype = ctypes.POINTER(ctypes.c_char_p)
lib.ta_traceback_format.argtypes = [Traceback, ctypes.c_int64, ctypes.c_int]
lib.ta_traceback_frame.argtypes = [Traceback, ctypes.c_int64, ctypes.POINTER(Frame)]
for name in ("ta_traceback_compare", "ta_traceback_equal"):
    getattr(lib, name).argtypes = [Traceback, Traceback]
for name in ("ta_traceback_hash", "ta_traceback_length"):
    getattr(lib, name).argtypes = [Traceback]
    getattr(lib, name).restype = ctypes.c_uint64
for name, value in (("ta_traceback_text", Traceback), ("ta_frame_text", ctypes.POINTER(Frame))):
    getattr(lib, name).argtypes = [value, ctypes.c_char_p, ctypes.c_size_t]
    getattr(lib, name).restype = ctypes.c_size_t
lib.ta_frame_hash.restype = ctypes.c_uint64
lib.ta_size_text.argtypes = [ctypes.c_double, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
libc = ctypes.CDLL(None)
libc.free.argtypes = [ctypes.c_void_p]


def frame(name, line, **more):
    raw = os.fsencode(name)
    fields = {"function": b"", "raw_name": b"", "module": b"", **more}
    return Frame(raw, len(raw), line, 0, fields["function"], fields["raw_name"], fields["module"], 0,
                 fields.get("address", 0))


def traceback(frames, total=-1):
    """Of (file, line) pairs, oldest first, as Python's Traceback shows them."""
    array = (Frame * max(len(frames), 1))(*(frame(*pair) for pair in frames))
    value = lib.ta_traceback_of(array, len(frames), total)
    value.kept = array
    return value


def text(function, *arguments):
    buffer = ctypes.create_string_buffer(4096)
    function(*arguments, buffer, len(buffer))
    return os.fsdecode(buffer.value)


def formatted(value, limit, most_recent_first):
    lines = lib.ta_traceback_format(value, limit, most_recent_first)
    result = [os.fsdecode(line) for line in itertools.takewhile(lambda line: line is not None, lines)]
    libc.free(lines)
    return result


def sign(number):
    return (number > 0) - (number < 0)


def python_order(a, b):
    return -1 if a < b else 1 if b < a else 0


def python_traceback(frames, total=None):
    return tracemalloc.Traceback(tuple(reversed(frames)), total)


A, B, C = ("a.py", 1), ("b.py", 2), ("c.py", 3)
NAMES = ["B", "a", "\u00e9", "\ufb01", "\U0001f600", "a/b", "a.b", "A", "", "a\n", "\udcff", "\ue000"]


def run(*arguments, text=None, status=0, cwd=None):
    done = subprocess.run([TRACEALLOC, *arguments], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
                          check=False)
    if done.returncode != status:
        raise AssertionError((arguments, done.returncode, done.stderr))
    return os.fsdecode(done.stdout if status == 0 else done.stderr)


class Rows(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.driver = Driver(DRIVER)

    @classmethod
    def tearDownClass(cls):
        cls.driver.close()

    def both(self, slot, traces, limit=9):
        """The same snapshot on both sides; the traces as tracemalloc keeps them, frames most recent first."""
        self.driver.load(slot, traces, limit)
        return tracemalloc.Snapshot(list(traces), limit)

    def same_statistics(self, traces, key, cumulative=False):
        snapshot = self.both(0, traces)
        ours = self.driver.rows(f"statistics 0 {key} {int(cumulative)}")
        self.assertEqual(ours, statistics(snapshot, key, cumulative))
        return ours

    def same_differences(self, new, old, key="lineno", cumulative=False):
        new_snapshot, old_snapshot = self.both(0, new), self.both(1, old)
        ours = self.driver.rows(f"difference 0 1 {key} {int(cumulative)}")
        self.assertEqual(ours, differences(new_snapshot, old_snapshot, key, cumulative))
        return ours

    def same_filter(self, traces, *specs):
        snapshot = self.both(0, traces)
        self.driver.filter(1, 0, list(specs))
        kept = self.driver.traces(1)
        self.assertEqual(kept, snapshot.filter_traces([python_filter(spec) for spec in specs]).traces._traces, specs)
        return [traces.index(trace) for trace in kept]

    # ---- values ----

    def test_row_79_frames_are_equal_and_ordered_by_file_then_line(self):
        pairs = [(name, line) for name in ("a", "b") for line in (0, 9, 10, 2 ** 32 - 1)]
        for x, y in itertools.product(pairs, pairs):
            ours = lib.ta_frame_compare(ctypes.byref(frame(*x)), ctypes.byref(frame(*y)))
            theirs = python_order(tracemalloc.Frame(x), tracemalloc.Frame(y))
            self.assertEqual(sign(ours), theirs, (x, y))
            equal = lib.ta_frame_equal(ctypes.byref(frame(*x)), ctypes.byref(frame(*y)))
            self.assertEqual(bool(equal), tracemalloc.Frame(x) == tracemalloc.Frame(y))
            if equal:
                self.assertEqual(lib.ta_frame_hash(ctypes.byref(frame(*x))), lib.ta_frame_hash(ctypes.byref(frame(*y))))
        self.assertTrue(lib.ta_frame_equal(ctypes.byref(frame("a", 1, function=b"f", address=1)),
                                           ctypes.byref(frame("a", 1, function=b"g", address=2))))

    def test_row_80_names_order_by_code_point(self):
        for x, y in itertools.product(NAMES, NAMES):
            ours = lib.ta_frame_compare(ctypes.byref(frame(x, 1)), ctypes.byref(frame(y, 1)))
            self.assertEqual(sign(ours), python_order(tracemalloc.Frame((x, 1)), tracemalloc.Frame((y, 1))), (x, y))

    def test_row_81_text_of_a_frame(self):
        for pair in [A, ("", 0), ("a:1", 2 ** 32 - 1), ("x y\n\udcff\u00e9", 7)]:
            self.assertEqual(text(lib.ta_frame_text, ctypes.byref(frame(*pair))), str(tracemalloc.Frame(pair)))

    def test_row_82_tracebacks_list_the_oldest_frame_first(self):
        theirs, ours = python_traceback([A, B, C]), traceback([A, B, C])
        self.assertEqual(lib.ta_traceback_length(ours), len(theirs))
        for index in range(-4, 4):
            found = Frame()
            there = lib.ta_traceback_frame(ours, index, ctypes.byref(found)) == 0
            self.assertEqual(there, -3 <= index < 3, index)
            if there:
                self.assertEqual((os.fsdecode(found.filename), found.lineno),
                                 (theirs[index].filename, theirs[index].lineno))

    def test_row_83_tracebacks_are_equal_by_their_frames_alone(self):
        for x, y in [([A, B], [A, B]), ([A, B], [B, A]), ([A], [A, B]), ([A, A], [A])]:
            mine, yours = traceback(x, 5), traceback(y, 9)
            equal = python_traceback(x, 5) == python_traceback(y, 9)
            self.assertEqual(bool(lib.ta_traceback_equal(mine, yours)), equal)
            if equal:
                self.assertEqual(lib.ta_traceback_hash(mine), lib.ta_traceback_hash(yours))

    def test_row_84_tracebacks_order_from_the_oldest_frame(self):
        stacks = [[A], [A, B], [A, C], [B], [B, A], [A, B, C], [C, A, A]]
        for x, y in itertools.product(stacks, stacks):
            self.assertEqual(sign(lib.ta_traceback_compare(traceback(x), traceback(y))),
                             python_order(python_traceback(x), python_traceback(y)), (x, y))

    def test_row_85_text_of_a_traceback_is_that_of_the_oldest_frame(self):
        self.assertEqual(text(lib.ta_traceback_text, traceback([C, A, B])), str(python_traceback([C, A, B])))

    def test_row_86_format_takes_limits_of_both_signs_and_both_orders(self):
        for limit, first in itertools.product([None, 0, 1, 2, 3, 4, -1, -2, -3, -4], [0, 1]):
            ours = formatted(traceback([A, B, C]), ALL_FRAMES if limit is None else limit, first)
            self.assertEqual(ours, python_traceback([A, B, C]).format(limit, bool(first)), (limit, first))
        for limit in (2 ** 63 - 1, -2 ** 63):
            self.assertEqual(formatted(traceback([A]), limit, 0), python_traceback([A]).format(limit))

    def test_row_87_source_lines_are_shown_stripped_where_they_can_be_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "source.py")
            with open(path, "wb") as file:
                file.write(b"\t first \x0b\x0c \r\n\n   \nlast without end")
            frames = [(path, line) for line in range(7)] + [(folder, 1), (path + ".none", 1), ("", 1)]
            self.assertEqual(formatted(traceback(frames), ALL_FRAMES, 0), python_traceback(frames).format())
            with open(path, "wb") as file:
                file.write(b"  byte \xff\n")
            self.assertEqual(formatted(traceback([(path, 1)]), ALL_FRAMES, 0)[1:], ["    byte \udcff"])

    def test_row_88_traces_are_equal_by_domain_size_frames_and_total(self):
        traces = [(0, 5, (A,), 1), (1, 5, (A,), 1), (0, 6, (A,), 1), (0, 5, (B,), 1), (0, 5, (A,), 2), (0, 5, (A,), None)]
        snapshot = self.both(0, traces)
        for i, j in itertools.product(range(len(traces)), repeat=2):
            ours = self.driver.ask(f"compare 0 {i} 0 {j}").split()[3]
            self.assertEqual(ours == b"1", snapshot.traces[i] == snapshot.traces[j], (i, j))

    def test_row_89_text_of_a_trace(self):
        traces = [(0, size, (A, B), 2) for size in (0, 10, 10239, 10240, 2 ** 63, 2 ** 64 - 1)]
        snapshot = self.both(0, traces)
        self.assertEqual(self.driver.texts("traces 0"), [str(trace) for trace in snapshot.traces])

    # ---- statistics ----

    def test_row_90_traceback_groups_by_all_frames_and_nothing_else(self):
        rows = self.same_statistics([(0, 1, (A, B), 2), (7, 2, (A, B), 9), (0, 4, (A, C), 2), (0, 8, (B,), None)],
                                    "traceback")
        self.assertEqual([row["size"] for row in rows], [8, 4, 3])

    def test_row_91_lineno_groups_by_the_most_recent_frame(self):
        rows = self.same_statistics([(0, 1, (A, B), 2), (1, 2, (A, C), 2), (0, 4, (("a.py", 2), B), 2)], "lineno")
        self.assertEqual([row["str"] for row in rows], ["a.py:2: size=4 B, count=1, average=4 B",
                                                        "a.py:1: size=3 B, count=2, average=2 B"])

    def test_row_92_filename_groups_by_the_file_and_shows_line_0(self):
        rows = self.same_statistics([(0, 1, (A, B), 2), (0, 4, (("a.py", 2), B), 2)], "filename")
        self.assertEqual(rows[0]["frames"], [["a.py", 0]])

    def test_row_93_cumulative_adds_to_every_frame(self):
        for key in ("lineno", "filename"):
            rows = self.same_statistics([(0, 10, (A, B, C), 3), (0, 1, (B, C), 2)], key, True)
            self.assertEqual([row["size"] for row in rows], [11, 11, 10])

    def test_row_94_cumulative_counts_once_per_occurrence(self):
        rows = self.same_statistics([(0, 10, (A, B, A), 3)], "lineno", True)
        self.assertEqual([(row["size"], row["count"]) for row in rows], [(20, 2), (10, 1)])
        rows = self.same_statistics([(0, 10, (("a", 1), ("a", 2)), 2)], "filename", True)
        self.assertEqual([(row["size"], row["count"]) for row in rows], [(20, 2)])

    def test_row_95_order_is_size_count_traceback_descending(self):
        ties = [(0, 10, (("a", 1),), 1), (0, 10, (("b", 1),), 1), (0, 10, (("a", 9),), 1), (0, 10, (("a", 10),), 1),
                (0, 5, (("z", 1),), 1), (0, 5, (("z", 1),), 1), (0, 11, (("0", 1),), 1)]
        for traces in itertools.islice(itertools.permutations(ties), 0, 5040, 97):
            self.same_statistics(list(traces), "lineno")
        self.same_statistics([(0, 1, (("x", 1), ("a", 1)), 2), (0, 1, (("w", 1), ("b", 1)), 2), (0, 1, (("b", 1),), 1),
                              (0, 1, (("a", 1),), 1)], "traceback")

    def test_row_96_errors_come_without_traces_too_and_no_traces_give_no_rows(self):
        snapshot = self.both(0, [])
        for key, cumulative in [("bogus", 0), ("bogus", 1), ("traceback", 1), ("", 0), ("Lineno", 0)]:
            with self.assertRaises(ValueError) as theirs:
                snapshot.statistics(key, bool(cumulative))
            if key:
                with self.assertRaises(Refused) as ours:
                    self.driver.ask(f"statistics 0 {key} {cumulative}")
                self.assertEqual(str(ours.exception), str(theirs.exception))
        for key in ("traceback", "lineno", "filename"):
            self.assertEqual(self.same_statistics([], key), [])

    def test_row_97_text_of_a_statistic(self):
        for name, size, count in [("x y\n", 1000, 3), ("\udcff", 3, 2), ("", 0, 1), ("a", 10240, 1), ("a", 5, 2)]:
            trace = (0, size // count, ((name, 1),), 1)
            self.same_statistics([(0, size - size // count * (count - 1), *trace[2:])] + [trace] * (count - 1), "lineno")

    def test_row_98_sums_are_exact_at_any_width(self):
        huge = [(0, 2 ** 64 - 1 - i, (A, A, B), 3) for i in range(7)]
        for key, cumulative in [("lineno", False), ("lineno", True), ("filename", True), ("traceback", False)]:
            rows = self.same_statistics(huge, key, cumulative)
            self.assertGreater(rows[0]["size"], 2 ** 64)

    # ---- differences ----

    def test_row_99_differences_are_over_the_union_and_keep_what_did_not_change(self):
        old = [(0, 10, (A,), 1), (0, 5, (("gone", 1),), 1), (0, 7, (("same", 1),), 1), (0, 3, (C,), 1), (0, 3, (C,), 1)]
        new = [(0, 15, (A,), 1), (0, 5, (("new", 1),), 1), (0, 7, (("same", 1),), 1), (0, 6, (C,), 1)]
        rows = self.same_differences(new, old)
        self.assertEqual({row["frames"][0][0]: (row["size"], row["size_diff"], row["count"], row["count_diff"])
                          for row in rows},
                         {"a.py": (15, 5, 1, 0), "new": (5, 5, 1, 1), "gone": (0, -5, 0, -1), "same": (7, 0, 1, 0),
                          "c.py": (6, 0, 1, -1)})
        self.assertEqual({row["size_diff"] for row in self.same_differences(new, new)}, {0})

    def test_row_100_order_of_differences(self):
        new = [(0, size, ((name, 1),), 1) for name, size in [("a", 5), ("b", 0), ("d", 9), ("e", 9)]]
        old = [(0, size, ((name, 1),), 1) for name, size in [("a", 5), ("b", 5), ("c", 5), ("d", 4), ("e", 14), ("g0", 9),
                                                              ("g1", 9)]]
        for key in ("lineno", "filename", "traceback"):
            self.same_differences(new, old, key)
        self.same_differences([(0, 2 ** 63, (A,), 1), (0, 2 ** 64 - 1, (B,), 1)], [(0, 2 ** 64 - 1, (C,), 1)])

    def test_row_101_text_of_a_difference(self):
        rows = self.same_differences([(0, 20480, (A,), 1), (0, 7, (B,), 1)], [(0, 10240, (A,), 1), (0, 7, (B,), 1),
                                                                              (0, 5, (C,), 1)])
        self.assertEqual([row["str"] for row in rows],
                         ["a.py:1: size=20.0 KiB (+10.0 KiB), count=1 (+0), average=20.0 KiB",
                          "c.py:3: size=0 B (-5 B), count=0 (-1)", "b.py:2: size=7 B (+0 B), count=1 (+0), average=7 B"])

    def test_row_102_snapshots_of_different_limits_compare_and_a_terminal_is_warned(self):
        deep, shallow = self.both(0, [(0, 1, (A, B), 2)], 2), self.both(1, [(0, 1, (A,), 2)], 1)
        for key in ("traceback", "lineno"):
            self.assertEqual(self.driver.rows(f"difference 0 1 {key} 0"), differences(deep, shallow, key, False))
        with tempfile.TemporaryDirectory() as folder:
            for name, frames, limit in (("deep.ta", [A, B], 2), ("shallow.ta", [A], 1)):
                document = {"traceback_limit": limit, "traces": [{"size": 1, "frames": frames}]}
                run("import", "-", "-o", name, text=json.dumps(document).encode(), cwd=folder)
            quiet = subprocess.run([TRACEALLOC, "diff", "deep.ta", "shallow.ta"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, cwd=folder, check=True)
            self.assertEqual(quiet.stderr, b"")
            shown, status = terminals.run([TRACEALLOC, "diff", "deep.ta", "shallow.ta"], stderr=subprocess.STDOUT, cwd=folder)
            self.assertEqual(status, 0)
            self.assertIn("the snapshots keep 2 and 1 frames per stack", shown)

    def test_row_103_growth_and_release_are_the_same_rows_in_signed_order(self):
        new = [{"size": size, "frames": [[name, 1]]} for name, size in [("a", 9), ("b", 1), ("c", 5), ("n", 4), ("s", 3)]]
        old = [{"size": size, "frames": [[name, 1]]} for name, size in [("a", 5), ("b", 9), ("c", 1), ("o", 8), ("s", 3)]]
        with tempfile.TemporaryDirectory() as folder:
            for name, traces in (("new.ta", new), ("old.ta", old)):
                run("import", "-", "-o", name, text=json.dumps({"traces": traces}).encode(), cwd=folder)
            rows = json.loads(run("diff", "new.ta", "old.ta", "--json", cwd=folder))
            for order, reverse in (("growth", True), ("released", False)):
                self.assertEqual(json.loads(run("diff", "new.ta", "old.ta", "--json", "--sort", order, cwd=folder)),
                                 sorted(rows, key=lambda row: row["size_diff"], reverse=reverse))
            for flag, wanted in (("--grown", lambda n: n > 0), ("--released", lambda n: n < 0)):
                shown = json.loads(run("diff", "new.ta", "old.ta", "--json", flag, cwd=folder))
                self.assertTrue(shown and all(wanted(row["size_diff"]) for row in shown))
                self.assertEqual(len(shown), sum(wanted(row["size_diff"]) for row in rows))

    def test_row_104_texts_of_sizes_at_every_border_and_in_every_locale(self):
        values = [0, 1023, 1024, 10239, 10239.5, 10240, 102348, 102349, 102400, 10485759, 10485760, 0.5, 1.5, 2.5, 126.5,
                  10 * 2 ** 40, 100 * 2 ** 40, 2.0 ** 63]
        values += [1024 ** power * 10 + step for power in range(1, 5) for step in (-1, 0, 1)]
        try:
            locale.setlocale(locale.LC_NUMERIC, "de_DE.UTF-8")
        except locale.Error:
            pass
        self.addCleanup(locale.setlocale, locale.LC_NUMERIC, "C")
        for value, signed, factor in itertools.product(values, (0, 1), (1, -1)):
            self.assertEqual(text(lib.ta_size_text, factor * value, signed),
                             tracemalloc._format_size(float(factor * value), bool(signed)), (factor * value, signed))

    # ---- filters ----

    TRACES = [(0, 1, (("a.py", 2), ("b.py", 4)), 2), (1, 2, (("a.py", 5), ("b.py", 4)), 2), (2, 3, (("b.py", 1),), 1),
              (3, 4, (("<unknown>", 0),), 1), (0, 5, (("dir/A.pyc", 2),), 1), (0, 6, (("dir/sub/x.c", 2), ("main.c", 9)), 2)]

    @staticmethod
    def file(inclusive, pattern, **more):
        return {"type": "filter", "inclusive": inclusive, "filename_pattern": pattern, **more}

    @staticmethod
    def domain(inclusive, domain):
        return {"type": "domain", "inclusive": inclusive, "domain": domain}

    def test_row_105_a_filtered_snapshot_is_a_new_one_with_the_same_limit_and_order(self):
        snapshot = self.both(0, self.TRACES, 77)
        self.driver.filter(1, 0, [self.file(False, "b.py")])
        self.assertEqual(self.driver.traces(0), snapshot.traces._traces)
        self.assertEqual(self.driver.rows("json 1")["traceback_limit"], 77)
        self.driver.filter(1, 0, [])
        self.assertEqual(self.driver.traces(1), snapshot.filter_traces([]).traces._traces)

    def test_row_106_inclusive_filters_are_any_of_and_exclusive_ones_none_of(self):
        one = [self.file(direction, pattern) for direction in (True, False) for pattern in ("a.py", "*.c")]
        one += [self.domain(True, 2), self.domain(False, 0)]
        for count in range(4):
            for specs in itertools.combinations(one, count):
                self.same_filter(self.TRACES, *specs)
        self.assertEqual(self.same_filter(self.TRACES, self.file(True, "a.py"), self.domain(True, 2)), [0, 1, 2])

    def test_row_107_file_filters_with_line_all_frames_and_domain(self):
        for inclusive, pattern, lineno, all_frames, domain in itertools.product(
                (True, False), ("b.py", "*", "a.py"), (None, 0, 4, -1), (False, True), (None, 0, 1)):
            self.same_filter(self.TRACES, self.file(inclusive, pattern, lineno=lineno, all_frames=all_frames, domain=domain))
        self.assertEqual(self.same_filter(self.TRACES, self.file(True, "*", lineno=0)), [3])
        self.assertEqual(self.same_filter(self.TRACES, self.file(True, "a.py", lineno=4, all_frames=True)), [])

    def test_row_108_domain_filters(self):
        for inclusive, domain in itertools.product((True, False), (0, 1, 9, 2 ** 32 - 1, -1, 2 ** 40)):
            self.same_filter(self.TRACES, self.domain(inclusive, domain))

    def test_row_109_patterns_are_pythons_and_many_stars_take_no_time(self):
        names = ["", "a", "a\n", "a/b", ".x", "\u00e9", "\udcff", "\U0001f600", "]", "-", "^", "[", "\\", "ab", "[a]", "b"]
        patterns = ["", "*", "?", "a*", "[abc]", "[!abc]", "[^a]", "[]]", "[!]]", "[a-]", "[c-a]", "[!c-a]", "[", "[a", "\\*",
                    "[[:alpha:]]", "[\u00e0-\u00ff]", "{a}", "*/*", "?x", "a**", "[[]a]", "[\\]"]
        for name, pattern in itertools.product(names, patterns):
            raw_pattern, raw_name = os.fsencode(pattern), os.fsencode(name)
            ours = lib.ta_pattern_matches(raw_pattern, ctypes.c_size_t(len(raw_pattern)), raw_name,
                                          ctypes.c_size_t(len(raw_name)))
            self.assertEqual(bool(ours), tracemalloc.Filter(True, pattern)._match_frame_impl(name, 1), (name, pattern))
        stars, long_name = b"*a" * 12 + b"*b", b"a" * 20000
        began = time.process_time()
        self.assertEqual(lib.ta_pattern_matches(stars, ctypes.c_size_t(len(stars)), long_name, ctypes.c_size_t(20000)), 0)
        self.assertLess(time.process_time() - began, 60)  # backtracking would outlive us all

    def test_row_110_a_final_pyc_is_py_on_both_sides(self):
        names = ["x.py", "x.pyc", "x.pyo", "x.PYC", "x.pyc.pyc", ".pyc", "pyc", "x.py\n"]
        traces = [(0, i, ((name, 1),), 1) for i, name in enumerate(names)]
        for pattern in names + ["*.pyc", "*.py", "*.p[y]c", "*.pyo", "*.PYC", "*pyc"]:
            self.same_filter(traces, self.file(True, pattern))

    def test_row_111_what_is_no_filter_is_refused(self):
        self.both(0, self.TRACES)
        for spec in [{"type": "filter", "inclusive": True, "filename_pattern": "a"}, 3, None, "filter", [3], [None], [{}],
                     [{"type": "filter", "inclusive": True}], [{"type": "domain", "inclusive": True}],
                     [{"type": "filter", "inclusive": True, "filename_pattern": 3}],
                     [{"type": "other", "inclusive": True, "filename_pattern": "a"}],
                     [{"type": "filter", "filename_pattern": "a"}],
                     [{"type": "filter", "inclusive": True, "filename_pattern": "a", "lineno": "3"}]]:
            with self.assertRaises(Refused, msg=spec):
                self.driver.filter(1, 0, spec)
        with self.assertRaises(TypeError):
            tracemalloc.Snapshot([], 1).filter_traces(tracemalloc.Filter(True, "a"))


class Reports(unittest.TestCase):
    """Rows 115 to 120: what people read."""
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.chdir(folder.name)
        self.addCleanup(os.chdir, "/")
        linecache.clearcache()
        for name in ("app.py", "lib.py"):
            with open(name, "w") as file:
                file.writelines(f"   {name}_line_{number} = 1  \n" for number in range(1, 40))

    def snapshot(self, name, traces):
        run("import", "-", "-o", f"{name}.ta", text=json.dumps({"traceback_limit": 25, "traces": traces}).encode())
        run("export", f"{name}.ta", "--python", "-o", f"{name}.pickle")
        return tracemalloc.Snapshot.load(f"{name}.pickle")

    def traces(self, growth):
        files = [os.path.abspath("app.py"), os.path.abspath("lib.py"), "<unknown>", "/", "/x", "a/b", "missing.py"]
        return [{"size": (i * 7919 % 1000 + i % 3) * growth, "count": 1 + i % 4,
                 "frames": [[files[(i + depth * depth) % len(files)], (i * 3 + depth) % 41] for depth in range(1 + i % 25)]}
                for i in range(200)]

    def test_row_115_a_bad_free_names_the_stack_most_recent_call_first(self):
        library = os.environ.get("TRACEALLOC_LIBRARY")
        if not library:
            self.skipTest("no runtime was named")
        with open("bad.c", "w") as file:
            file.write("#include <stdlib.h>\n"
                       "__attribute__((noinline)) char *make(void) { char *p = malloc(1000); p[0] = 1; return p; }\n"
                       "int main(void) { char *p = make(); free(p + 64); return 0; }\n")
        subprocess.run([os.environ.get("CC", "cc"), "-g", "-O0", "-rdynamic", "bad.c", "-o", "bad"], check=True,
                       stderr=subprocess.DEVNULL)
        done = subprocess.run(["./bad"], env={**os.environ, "LD_PRELOAD": library, "TRACEALLOC": "10",
                                              "TRACEALLOC_OPTIONS": "on_corruption=leak"}, stderr=subprocess.PIPE, check=True)
        lines = done.stderr.decode().splitlines()
        self.assertEqual(lines[1], "Memory block allocated at (most recent call first):")
        frames = [re.fullmatch(r"  (\w+) (bad\.c:\d) \(.*/bad\+0x([0-9a-f]+)\)", line) for line in lines[2:4]]
        self.assertEqual([found and found.group(1, 2) for found in frames], [("make", "bad.c:2"), ("main", "bad.c:3")])
        places = subprocess.run(["addr2line", "-f", "-e", "bad", *(hex(int(found[3], 16) - 1) for found in frames)],
                                stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
        self.assertEqual(places[0::2], ["make", "main"])

    def test_row_116_the_stack_of_a_leak_lists_the_oldest_call_first_with_its_source(self):
        stacks = self.snapshot("leak", self.traces(1)).statistics("traceback")[:5]
        expected = []
        for stack in stacks:
            expected += [f"{stack.count} memory blocks: {stack.size / 1024:.1f} KiB", *stack.traceback.format()]
        self.assertEqual(run("biggest", "leak.ta", "-n", "5").splitlines(), expected)

    def test_row_117_top_ten_by_line_file_and_traceback(self):
        snapshot = self.snapshot("top", self.traces(1))
        for key in ("lineno", "filename", "traceback"):
            self.assertEqual(run("stats", "top.ta", "--key", key, "--limit", "10").splitlines(),
                             [str(statistic) for statistic in snapshot.statistics(key)[:10]])

    def test_row_118_top_ten_differences(self):
        new, old = self.snapshot("new", self.traces(3)), self.snapshot("old", self.traces(2)[:150])
        for key in ("lineno", "filename", "traceback"):
            self.assertEqual(run("diff", "new.ta", "old.ta", "--key", key, "--limit", "10").splitlines(),
                             [str(difference) for difference in new.compare_to(old, key)[:10]])

    def test_row_119_the_biggest_block_with_its_traceback(self):
        biggest = self.snapshot("big", self.traces(1)).statistics("traceback")[0]
        self.assertEqual(run("biggest", "big.ta").splitlines(),
                         [f"{biggest.count} memory blocks: {biggest.size / 1024:.1f} KiB", *biggest.traceback.format()])

    def test_row_120_pretty_top(self):
        snapshot = self.snapshot("pretty", self.traces(5)).filter_traces((
            tracemalloc.Filter(False, "<frozen importlib._bootstrap>"), tracemalloc.Filter(False, "<unknown>")))
        for limit in (1, 3, 10, 1000):
            top = snapshot.statistics("lineno")
            lines = [f"Top {limit} lines"]
            for index, stat in enumerate(top[:limit], 1):
                frame = stat.traceback[0]
                filename = os.sep.join(frame.filename.split(os.sep)[-2:])
                lines.append(f"#{index}: {filename}:{frame.lineno}: {stat.size / 1024:.1f} KiB")
                line = linecache.getline(frame.filename, frame.lineno).strip()
                lines += [f"    {line}"] if line else []
            other = top[limit:]
            lines += [f"{len(other)} other: {sum(stat.size for stat in other) / 1024:.1f} KiB"] if other else []
            lines.append(f"Total allocated size: {sum(stat.size for stat in top) / 1024:.1f} KiB")
            self.assertEqual(run("pretty", "pretty.ta", "-n", str(limit)).splitlines(), lines)


class Table(unittest.TestCase):
    def test_every_row_has_a_test_that_names_it(self):
        named = {int(found[1]) for case in (Rows, Reports) for name in dir(case)
                 if (found := re.match(r"test_row_(\d+)_", name))}
        self.assertEqual(sorted(named), ROWS)


if __name__ == "__main__":
    unittest.main()
