"""filter_language.py: random conditions in words, against the same conditions evaluated in Python.

    filter_language.py DRIVER [--cases N] [--seed N]

A condition is drawn as a tree that can say two things: its words, and whether it holds for a trace. File patterns are
matched by Python's own tracemalloc.Filter. The seed is printed; the same seed draws the same cases.
"""
import argparse
import json
import random
import sys
import tracemalloc

from driver import Driver

NAMES = ["/s/net/a.c", "/s/b.c", "x y", "q\"t\\z", "(p)", "a)b", "<unknown>", "\u00e9.c", "\udcff", "and", "not", "a:3", "m.pyc",
         "-", ""]
PATTERNS = ["*", "*/net/*", "/s/*", "x y", "*\"*", "(p)", "*)b", "?.c", "[!/]*", "*.py", "*.pyc", "\u00e9*", "*\udcff", "and",
            "a:*", "<unknown>", "*[ ]*", "\\", "*\\*"]
NUMBERS = [0, 1, 2, 3, 7, 10, 2 ** 32 - 1]
UNITS = {"": 1, "B": 1, "K": 2 ** 10, "KiB": 2 ** 10, "M": 2 ** 20, "MiB": 2 ** 20, "G": 2 ** 30, "T": 2 ** 40}
COMPARISONS = {":": lambda x, y: x == y, "=": lambda x, y: x == y, "<": lambda x, y: x < y, "<=": lambda x, y: x <= y,
               ">": lambda x, y: x > y, ">=": lambda x, y: x >= y}
# A trace is (domain, size, frames, total_nframe, count); a field gives the values of which one must fit.
FIELDS = {"line": lambda t: [t[2][0][1]], "any.line": lambda t: [frame[1] for frame in t[2]], "domain": lambda t: [t[0]],
          "size": lambda t: [t[1]], "total": lambda t: [t[1] * t[4]], "count": lambda t: [t[4]],
          "depth": lambda t: [len(t[2]) if t[3] is None else t[3]]}
OR, AND, FACTOR = range(3)  # how tightly the words of a condition hold together


class Drawer:
    def __init__(self, seed):
        self.rng = random.Random(seed)

    def quoted(self, value):
        open_ones = 0
        for character in value:
            open_ones += (character == "(") - (character == ")")
            if open_ones < 0:
                break
        if value and open_ones >= 0 and not set(value) & set(' \t\n"') and self.rng.random() < 0.5:
            return value
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def file_condition(self):
        pattern, every, negated = self.rng.choice(PATTERNS), self.rng.random() < 0.4, self.rng.random() < 0.3
        match = tracemalloc.Filter(True, pattern, all_frames=every)._match_traceback
        words = f"{'any.' if every else ''}file{'!=' if negated else self.rng.choice(':=')}{self.quoted(pattern)}"
        return words, lambda t: match(t[2]) != negated, FACTOR

    def place_condition(self):
        pattern, every, first = self.rng.choice(PATTERNS), self.rng.random() < 0.4, self.rng.choice([0, 1, 3, 9])
        last = first + self.rng.choice([0, 0, 1, 5])
        lines = str(first) if first == last else f"{first}-{last}"
        matches = [tracemalloc.Filter(True, pattern, lineno=line, all_frames=every)._match_traceback
                   for line in range(first, last + 1)]
        return (f"{'any.' if every else ''}at:" + self.quoted(f"{pattern}:{lines}"),
                lambda t: any(match(t[2]) for match in matches), FACTOR)

    def number_condition(self):
        field, number, operator = (self.rng.choice(list(options)) for options in (FIELDS, NUMBERS, [*COMPARISONS, "!="]))
        values, unit = FIELDS[field], self.rng.choice(list(UNITS)) if field in ("size", "total") else ""
        if (number + 5) * UNITS[unit] >= 2 ** 64:
            unit = ""
        low = high = number * UNITS[unit]
        words = f"{field}{operator}{number}{unit}"
        if operator in (":", "=", "!=") and self.rng.random() < 0.4:
            other = number + self.rng.choice([0, 1, 5])
            high = other * UNITS[unit]
            words += f"-{other}{unit}"
            return words, lambda t: any(low <= value <= high for value in values(t)) != (operator == "!="), FACTOR
        if operator == "!=":
            return words, lambda t: low not in values(t), FACTOR
        return words, lambda t: any(COMPARISONS[operator](value, low) for value in values(t)), FACTOR

    def condition(self, depth):
        """(words, predicate, how tightly)"""
        if depth == 0 or self.rng.random() < 0.3:
            return self.rng.choice([self.file_condition, self.place_condition, self.number_condition])()
        kind = self.rng.randrange(4)
        left, holds_left, tightness = self.condition(depth - 1)
        if kind == 0:
            return "not " + self.grouped(left, tightness < FACTOR), lambda t: not holds_left(t), FACTOR
        right, holds_right, right_tightness = self.condition(depth - 1)
        if kind == 1:
            return f"{left} or {right}", lambda t: holds_left(t) or holds_right(t), OR
        left, right = self.grouped(left, tightness < AND), self.grouped(right, right_tightness < AND)
        return left + self.rng.choice([" and ", " ", "  and\t"]) + right, lambda t: holds_left(t) and holds_right(t), AND

    def grouped(self, words, needed):
        return "(" + self.rng.choice(["", " "]) + words + self.rng.choice(["", " "]) + ")" if needed else words

    def trace(self):
        frames = tuple((self.rng.choice(NAMES), self.rng.choice([0, 1, 2, 3, 9, 10, 2 ** 32 - 1]))
                       for _ in range(self.rng.randrange(1, 5)))
        return (self.rng.choice([0, 1, 2, 7, 2 ** 32 - 1]), self.rng.choice([0, 1, 2, 3, 7, 10, 1024, 3072, 2 ** 20, 2 ** 41]),
                frames, self.rng.choice([len(frames), None, 7, 10]), self.rng.choice([1, 1, 2, 3, 7]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.cases} cases, Python {sys.version.split()[0]}")
    driver, drawer, kept_some = Driver(options.driver), Drawer(options.seed), 0
    for _ in range(options.cases):
        traces = [drawer.trace() for _ in range(drawer.rng.randrange(12))]
        document = {"traceback_limit": 9, "traces": [
            {"domain": domain, "size": size, "frames": frames, "total_nframe": total, "count": count}
            for domain, size, frames, total, count in traces]}
        text = json.dumps(document).encode()
        driver.ask(f"import 0 {len(text)}", text)
        for _ in range(8):
            words, holds, _ = drawer.condition(drawer.rng.randrange(5))
            driver.words(1, 0, words)
            ours = [(row["domain"], row["size"], tuple((name, line) for name, line in row["frames"]), row["total_nframe"],
                     row["count"]) for row in driver.rows("json 1")["traces"]]
            expected = [trace for trace in traces if holds(trace)]
            kept_some += 0 < len(expected) < len(traces)
            if ours != expected:
                sys.exit(f"DIFFERENT: {words!r}\n  traces: {traces!r}\n  ours:   {ours!r}\n  python: {expected!r}")
    driver.close()
    if kept_some < options.cases:
        sys.exit(f"only {kept_some} conditions kept some traces and not all: the cases prove little")
    print(f"all equal: {8 * options.cases} conditions, {kept_some} of which kept some traces and not all")


if __name__ == "__main__":
    main()
