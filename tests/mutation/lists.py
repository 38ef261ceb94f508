"""lists.py: reads the lists of mutants, NAME.txt beside this file, one for each part of the product.

A list begins with the folders of the part and with the tests that mutants drawn anew must face, and goes on with entries.
Lines that begin with # between entries are remarks.

    sources alloc
    suite test_entry_points test_misuse

    mutant free-keeps-errno
    file alloc/slow.c
    tests test_entry_points test_entry_points_ta
    guards errno is as it was after free
    <<<<
        errno = saved;
    ====
        (void)saved;
    >>>>

A mutant that only assertions notice (base/assert.h) says so with a line "build debug-full" among the others.

The old text stands in the file exactly once, byte by byte; keep it as short as that allows.
"""
from dataclasses import dataclass


class Broken(Exception):
    pass


@dataclass
class Mutant:
    module: str
    name: str
    file: str
    tests: list
    stands_for: str
    old: str
    new: str
    build: str = ""  # "debug-full": with every assertion and walk
    at: int = -1  # where the old text begins, when it may stand in the file more than once

    def apply(self, text):
        at = self.at if self.at >= 0 else text.index(self.old)
        if text[at:at + len(self.old)] != self.old:
            raise Broken(f"{self.name}: the text of {self.file} is another one now")
        return text[:at] + self.new + text[at + len(self.old):]

    def describe(self):
        def short(text):
            return " ".join(text.split())[:70]
        return f"{self.file}: {short(self.old)} -> {short(self.new) or 'nothing'}"


@dataclass
class Suite:
    sources: list
    tests: list


def read(path):
    """The suite and the entries of one list."""
    lines = iter(enumerate(path.read_text().split("\n"), 1))
    suite, entries, head = Suite([], []), [], {}

    def broken(number, text):
        raise Broken(f"{path.name}:{number}: {text}")

    def text_until(end):
        found = []
        for _, line in lines:
            if line == end:
                return "\n".join(found)
            if line in ("<<<<", "====", ">>>>"):
                broken(0, f"{line} within a text: {end} is missing after {head.get('mutant')}")
            found.append(line)
        broken(0, f"a text does not end with {end}")

    for number, line in lines:
        word, _, rest = line.partition(" ")
        if line == "" or line.startswith("#"):
            continue
        if word == "sources":
            suite.sources += rest.split()
        elif word == "suite":
            suite.tests += rest.split()
        elif word in ("mutant", "file", "tests", "guards", "build"):
            if word == "build" and rest != "debug-full":
                broken(number, f"there is no build {rest}")
            if word in head or (word != "mutant" and "mutant" not in head):
                broken(number, f"'{word}' is not due here")
            head[word] = rest
        elif line == "<<<<":
            missing = {"mutant", "file", "tests", "guards"} - set(head)
            if missing:
                broken(number, f"the entry lacks {' '.join(sorted(missing))}")
            old, new = text_until("===="), text_until(">>>>")
            if old == new or old == "":
                broken(number, "the texts are equal, or there is nothing to replace")
            entries.append(Mutant(path.stem, head["mutant"], head["file"], head["tests"].split(), head["guards"], old, new,
                                  head.get("build", "")))
            head = {}
        else:
            broken(number, f"not understood: {line}")
    if head:
        broken(0, f"the last entry ({head.get('mutant')}) has no texts")
    return suite, entries


def read_all(folder):
    suites, entries = {}, []
    for path in sorted(folder.glob("*.txt")):
        suites[path.stem], found = read(path)
        entries += found
    names = [entry.name for entry in entries]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Broken(f"names that two entries have: {' '.join(twice)}")
    return suites, entries


def stale(source, entries):
    """One line for each entry whose old text does not stand in its file exactly once."""
    found = []
    for entry in entries:
        path = source / entry.file
        times = path.read_text().count(entry.old) if path.is_file() else -1
        if times == 1:
            continue
        why = "the file is gone" if times < 0 else f"the old text stands in the file {times} times, not once"
        found.append(f"tests/mutation/{entry.module}.txt: {entry.name}: {why} ({entry.file}). "
                     "Write the same fault for what stands there now.")
    return found
