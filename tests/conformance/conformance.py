"""conformance.py: every statistic, difference, filter and text of ours against Python's tracemalloc on the same traces.

    conformance.py DRIVER [--cases N] [--seed N]

Random snapshots are drawn from small pools, so that ties, recursion, frames that occur twice and stacks that share a
beginning are the rule. The seed is printed; the same seed draws the same cases.
"""
import argparse
import os
import random
import sys
import tempfile
import tracemalloc

from driver import Driver, Refused, differences, entries_of, python_filter, statistics

NAMES = ["a.py", "b.py", "a.pyc", "/src/net/x.c", "/src/net/y.c", "/src/main.c", "dir/A.py", "<unknown>", "", " ", "a b",
         "\u00e9.c", "\ufb01.c", "\U0001f600", "B", "a:1", "new\nline", "quote\"back\\slash", "tab\t", "a", "a.", "*", "[x]",
         "\udc80", "\udcff.c", "a\udcff", "\ue000", "\uffff", "\U0010ffff", "x" * 300, "\x01", "a/", "A.PYC", ".pyc", "//",
         "\udce2\udc82.c", "\udce2\udc82", "\u20ac", "\u20acx", "caf\u00e9/\udcff\udcfe/z.c", "\x7f", "\u2028", "name with spaces/and more.c", "$(x)"]
KEYS = [("traceback", False), ("lineno", False), ("lineno", True), ("filename", False), ("filename", True)]
PATTERNS = ["*", "", "a.py", "*.py", "*.pyc", "?", "??", "*.c", "/src/*", "*/net/*", "[a-c]*", "[!a]*", "*[0-9]", "a*",
            "<unknown>", "\u00e9*", "[\u00e0-\u00ff].c", "*\udcff*", "?.c", "dir/?.py", "*a*", "[]x]", "[[]x]", "*.p[y]c",
            "[\ue000-\U0010ffff]", "*\n*", "a:1", "*.", "[", "a[", "[!", "[]", "[z-a]", "[!z-a]*", "*/*/*"]


def random_name(rng):
    if rng.random() < 0.9:
        return rng.choice(NAMES)
    raw = bytes(rng.choice(b"ab./\xc3\xa9\xff\x80\xe2\x82\xac\xf0\x9f\x98\x80\xed\xa0\x80") for _ in range(rng.randrange(6)))
    return os.fsdecode(raw)


def random_size(rng):
    kind = rng.randrange(6)
    if kind < 3:
        return rng.randrange(4)
    if kind == 3:
        return rng.choice([1023, 1024, 10239, 10240, 102348, 102349, 102400, 10485759, 10485760, 2 ** 40, 10 * 2 ** 40])
    if kind == 4:
        return rng.randrange(2 ** rng.randrange(1, 64))
    return 2 ** 63 + rng.randrange(2 ** 62) if rng.random() < 0.2 else rng.randrange(100000)


def random_snapshot(rng, names, limit):
    lines = [0, 1, 2, 3, 9, 10, 4294967295]
    frames = [(rng.choice(names), rng.choice(lines)) for _ in range(rng.randrange(1, 7))]
    stacks = []
    for _ in range(rng.randrange(1, 8)):
        if stacks and rng.random() < 0.5:
            base = rng.choice(stacks)
            stack = (tuple(rng.choice(frames) for _ in range(rng.randrange(3))) + base[rng.randrange(len(base) + 1):])
        else:
            stack = tuple(rng.choice(frames) for _ in range(rng.randrange(1, 5)))
        stacks.append(stack[:limit] or (rng.choice(frames),))
    sizes = [random_size(rng) for _ in range(rng.randrange(1, 5))]
    traces = []
    for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 13, 30])):
        stack = rng.choice(stacks)
        total = rng.choice([len(stack), len(stack) + rng.randrange(3), None])
        traces.append((rng.choice([0, 0, 1, 7, 4294967295]), rng.choice(sizes), stack, total))
        if rng.random() < 0.2:
            traces.append(traces[-1])
    return traces


def random_filter(rng, names):
    if rng.random() < 0.3:
        return {"type": "domain", "inclusive": rng.random() < 0.5, "domain": rng.choice([0, 1, 7, 4294967295, 5])}
    pattern = rng.choice(PATTERNS) if rng.random() < 0.6 else rng.choice(names)
    spec = {"type": "filter", "inclusive": rng.random() < 0.5, "filename_pattern": pattern}
    if rng.random() < 0.3:
        spec["lineno"] = rng.choice([0, 1, 2, 10, None, -1])
    if rng.random() < 0.5:
        spec["all_frames"] = rng.random() < 0.7
    if rng.random() < 0.3:
        spec["domain"] = rng.choice([0, 1, 7, None])
    return spec


class Tally:
    """Counts comparisons; the first difference ends the run with everything needed to see it."""

    def __init__(self):
        self.counts = {}

    def same(self, what, ours, theirs, context):
        self.counts[what] = self.counts.get(what, 0) + 1
        if ours != theirs:
            print(f"DIFFERENT: {what}\n  case:   {context!r}\n  ours:   {ours!r}\n  python: {theirs!r}")
            sys.exit(1)

    def note(self):
        return ", ".join(f"{count} {what}" for what, count in self.counts.items())


def check_case(driver, tally, rng, number):
    names = [random_name(rng) for _ in range(rng.randrange(1, 6))]
    limits = [rng.randrange(1, 6), rng.randrange(1, 6)]
    data = [random_snapshot(rng, names, limit) for limit in limits]
    if rng.random() < 0.3:  # the same program a little later
        data[1] = [t for t in data[0] if rng.random() < 0.8] + data[1][:3]
    snapshots = [tracemalloc.Snapshot(list(traces), limit) for traces, limit in zip(data, limits)]
    for slot in (0, 1):
        driver.load(slot, data[slot], limits[slot], oldest_first=number % 3 == 0, ascii_only=number % 2 == 0)
    tally.same("imports", driver.traces(0), data[0], data[0])

    for key, cumulative in KEYS:
        tally.same("statistics", driver.rows(f"statistics 0 {key} {int(cumulative)}"),
                   statistics(snapshots[0], key, cumulative), (key, cumulative, data[0]))
        tally.same("differences", driver.rows(f"difference 0 1 {key} {int(cumulative)}"),
                   differences(snapshots[0], snapshots[1], key, cumulative), (key, cumulative, data))
    tally.same("trace texts", driver.texts("traces 0"), traces_as_text(snapshots[0]), data[0])

    for _ in range(3):
        spec = [random_filter(rng, names) for _ in range(rng.randrange(4))]
        driver.filter(2, 0, spec)
        kept = snapshots[0].filter_traces([python_filter(f) for f in spec])
        tally.same("filters", driver.traces(2), kept.traces._traces, (spec, data[0]))
        tally.same("filtered statistics", driver.rows("statistics 2 lineno 0"), statistics(kept, "lineno", False),
                   (spec, data[0]))
    check_orders(driver, tally, rng, snapshots, data)
    check_formats(driver, tally, rng, snapshots[0], data[0])


def traces_as_text(snapshot):
    return [str(snapshot.traces[first]) for first, _ in entries_of(snapshot.traces._traces)]


def check_orders(driver, tally, rng, snapshots, data):
    entries = [entries_of(traces) for traces in data]
    for _ in range(4 if entries[0] and entries[1] else 0):
        i, j = rng.randrange(len(entries[0])), rng.randrange(len(entries[1]))
        (first, count), (other, other_count) = entries[0][i], entries[1][j]
        a, b = snapshots[0].traces[first], snapshots[1].traces[other]
        order = "<" if a.traceback < b.traceback else ">" if b.traceback < a.traceback else "="
        equal = str(int(a.traceback == b.traceback))
        ours = driver.ask(f"compare 0 {i} 1 {j}").decode().split()
        tally.same("orders", ours[:3], [order, equal, equal], (a, b))
        if count == other_count == 1:  # an entry of several blocks is not one trace
            tally.same("trace equalities", ours[3], str(int(a == b)), (a, b))


def check_formats(driver, tally, rng, snapshot, traces):
    entries = entries_of(traces)
    for _ in range(3 if entries else 0):
        index = rng.randrange(len(entries))
        traceback = snapshot.traces[entries[index][0]].traceback
        limit = rng.choice([None, 0, 1, 2, 3, 5, 100, -1, -2, -3, -4, -100])
        first = rng.randrange(2)
        tally.same("formats", driver.texts(f"format 0 {index} {'all' if limit is None else limit} {first}"),
                   traceback.format(limit, bool(first)), (traceback, limit, first))


def check_sources(driver, tally):
    """Source lines: blank, stripped, with odd line ends, beyond the end, without a line end."""
    with tempfile.TemporaryDirectory() as folder:
        texts = {"plain.py": b"one\n\t two  \n\n   \nfive", "crlf.py": b"one\r\n  two\r\nthree\rfour\n",
                 "bom.py": b"\xef\xbb\xbffirst\nsecond \xc2\xa0\n", "empty.py": b"", "unicode.py":
                 "\u3000\u00e9 = 1\u2003\n\x0c\x1d x\x0b y \x85\n\u2028z\n".encode()}
        names = []
        for name, text in texts.items():
            names.append(os.path.join(folder, name))
            with open(names[-1], "wb") as file:
                file.write(text)
        names += [folder, os.path.join(folder, "missing.py"), "/dev/null"]
        traces = [(0, 1, tuple((name, line) for line in range(8)), 8) for name in names]
        driver.load(0, traces, 8)
        snapshot = tracemalloc.Snapshot(traces, 8)
        for index in range(len(traces)):
            for limit in (None, 3, -2, 0):
                for first in (0, 1):
                    ours = driver.texts(f"format 0 {index} {'all' if limit is None else limit} {first}")
                    tally.same("source lines", ours, snapshot.traces[index].traceback.format(limit, bool(first)),
                               (names[index], limit, first))


GLOBS = [("abc", "a*c"), ("a/b", "a*b"), (".x", "*"), (".x", "?x"), ("a\nb", "a*b"), ("a\n", "a"), ("a", "a\n"),
         ("\u00e9", "?"), ("\u00e9", "[\u00e0-\u00ff]"), ("\U0001f600", "?"), ("\udcff", "?"), ("a", "[abc]"), ("d", "[abc]"),
         ("d", "[!abc]"), ("a", "[!abc]"), ("]", "[]]"), ("]", "[!]]"), ("a", "[!]]"), ("-", "[a-]"), ("-", "[-a]"),
         ("b", "[a-c]"), ("-", "[a-c]"), ("b", "[c-a]"), ("b", "[!c-a]"), ("[", "["), ("[a", "[a"), ("a", "[a"), ("\\", "\\"),
         ("*", "\\*"), ("\\x", "\\*"), ("^", "[^a]"), ("a", "[^a]"), ("b", "[^a]"), ("a", "[[:alpha:]]"), ("a]", "[[:alpha:]]"),
         ("{a}", "{a}"), ("~", "~"), ("$", "$"), ("(", "("), ("+", "+"), ("aa", "a+"), ("*", "[*]"), ("?", "[?]"), ("[", "[[]"),
         ("a.py", "*.pyc"), ("a.pyc", "*.py"), ("a.PYC", "*.py"), ("a.pyo", "*.pyo"), ("a.pyc", "*.p[y]c"), ("", ""), ("", "*"),
         ("a", ""), ("A", "a"), ("a\\b", "a/b"), ("a-c", "[a-b-c]"), ("-", "[a-b-c]"), ("c", "[a-b-c]"), ("&", "[a&&b]"),
         ("|", "[a||b]"), ("~", "[a~~b]"), ("/a/b/x.c", "x.c"), ("/a/b/x.c", "*/x.c"), ("a", "[!"), ("a", "[]"), ("[]", "[]"),
         ("[!]", "[!]"), ("x", "[!!]"), ("!", "[!!]"), ("!", "[a!]"), ("a", "a**"), ("ab", "**b**"), ("\\", "[\\]"), ("n", "[\\n]"),
         ("x", "[a-c-z]"), ("-", "[--a]"), (".", "[+--]"), ("^", "[]^]"), ("]", "[^]]"), ("^]", "[^]]")]


def has_negation_accident(pattern):
    """A set that begins with a wrong-way range followed by `!` (or with one, in which `!` is the range's end)."""
    start = pattern.find("[")
    while start >= 0:
        members = pattern[start + 1:]
        while len(members) >= 3 and members[1] == "-" and members[0] > members[2] and members[2] != "]":
            members = members[3:]
            if members[:1] == "!":
                return True
        start = pattern.find("[", start + 1)
    return False


def python_match(name, pattern):
    return tracemalloc.Filter(True, pattern)._match_frame_impl(name, 1)


def check_globs(driver, tally, rng, count):
    alphabet = "ab-]!^[*?\\./\u00e9\udcff\U0001f600c"
    pairs = list(GLOBS)
    while len(pairs) < len(GLOBS) + count:
        pattern = "".join(rng.choice(alphabet) for _ in range(rng.randrange(9)))
        name = "".join(rng.choice("ab-]^[\\./\u00e9\udcff\U0001f600c!") for _ in range(rng.randrange(5)))
        if rng.random() < 0.2:
            pattern += rng.choice([".pyc", ".py", "*.pyc"])
            name += rng.choice([".pyc", ".py"])
        if not has_negation_accident(pattern):
            pairs.append((name, pattern))
    for name, pattern in pairs:
        raw_pattern, raw_name = os.fsencode(pattern), os.fsencode(name)
        # Neighbouring bytes may have become a character: Python gets what the bytes say.
        ours = driver.ask(f"match {len(raw_pattern)} {len(raw_name)}", raw_pattern, raw_name) == b"1"
        tally.same("globs", ours, python_match(os.fsdecode(raw_name), os.fsdecode(raw_pattern)), (name, pattern))
    name, pattern = b"a" * 5000, b"*a" * 200 + b"*b"  # must end at once
    tally.same("globs", driver.ask(f"match {len(pattern)} {len(name)}", pattern, name), b"0", "many stars")


def check_sizes(driver, tally, rng):
    values = [0, 1023, 1024, 10239, 10240, 10239.5, 102348, 102349, 102400, 10485759, 10485760, 10 * 2 ** 40, 100 * 2 ** 40,
              2 ** 63, 0.5, 1.5, 2.5, 126.5, -5, -10240, -0.5, 2 ** 64, 2 ** 80]
    values += [rng.uniform(-1, 1) * 2 ** rng.randrange(70) for _ in range(2000)]
    values += [rng.randrange(2 ** 52) / 1024 for _ in range(500)]
    values += [float(1024 ** unit * n + rng.choice([-1, 0, 1]) * 1024 ** unit / 20) for unit in (1, 2, 3, 4)
               for n in (1, 10, 99, 100, 9999, 10239, 10240)]
    for value in values:
        for sign in (False, True):
            tally.same("size texts", driver.ask(f"size {float(value)!r} {int(sign)}").decode(),
                       tracemalloc._format_size(float(value), sign), (value, sign))


def check_errors(driver, tally):
    driver.load(0, [], 1)
    snapshot = tracemalloc.Snapshot([], 1)
    for key, cumulative in [("bogus", 0), ("bogus", 1), ("traceback", 1)]:
        try:
            snapshot.statistics(key, bool(cumulative))
            expected = None
        except ValueError as error:
            expected = str(error)
        for command in (f"statistics 0 {key} {cumulative}", f"difference 0 0 {key} {cumulative}"):
            try:
                driver.ask(command)
                ours = None
            except Refused as error:
                ours = str(error)
            tally.same("errors", ours, expected, command)


def check_pickle(driver, tally, rng):
    """tracemalloc.Snapshot.load reads what we export."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(100):
            names = [random_name(rng) for _ in range(5)]
            limit = rng.randrange(1, 70000)
            traces = random_snapshot(rng, names, limit)
            driver.load(0, traces, limit)
            path = os.path.join(folder, f"{number}.pickle")
            with open(path, "wb") as file:
                file.write(driver.ask("python 0"))
            loaded = tracemalloc.Snapshot.load(path)
            tally.same("pickles", (loaded.traces._traces, loaded.traceback_limit), (traces, limit), traces)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=20240611)
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.cases} cases, Python {sys.version.split()[0]}")
    rng = random.Random(options.seed)
    driver, tally = Driver(options.driver), Tally()
    check_sizes(driver, tally, rng)
    check_globs(driver, tally, rng, 5000)
    check_errors(driver, tally)
    check_sources(driver, tally)
    check_pickle(driver, tally, rng)
    for number in range(options.cases):
        check_case(driver, tally, rng, number)
    driver.close()
    print(f"all equal: {tally.note()}")


if __name__ == "__main__":
    main()
