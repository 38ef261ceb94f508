#!/usr/bin/env python3
"""run.py: plants small faults in the product, one at a time, and says which of them the tests notice.

    tests/mutation/run.py                      all mutants of the lists
    tests/mutation/run.py --sample 12          that many of them; --seed N repeats a sample
    tests/mutation/run.py --module snapshot    those of one list (MODULE.txt), or of several
    tests/mutation/run.py NAME…                those of these names
    tests/mutation/run.py --fresh 10 --module trace    mutants that no list has, drawn from the module's sources
    tests/mutation/run.py --check              only: does each entry still apply to its file, exactly once?

The lists stand beside this file, one for each part of the product; lists.py says how an entry is written. The tree is
copied to build/mutation/tree, changed there and nowhere else, and built in build/mutation/build: -O1, no LTO, only what
the tests of the mutant at hand need. Those that want it are built with every assertion, in build/mutation/debug-full.
Exit status 0: every mutant died.
"""
import argparse
import datetime
import fcntl
import json
import os
import random
import resource
import shlex
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import draw  # noqa: E402
import lists  # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]
WORK = SOURCE / "build" / "mutation"
TREE = WORK / "tree"
FLAGS = "-O1 -g1"


def fail(text):
    print(f"mutation: {text}", file=sys.stderr)
    sys.exit(2)


# ---- the copy, and its build ----

def source_files():
    """Every file of the tree that git would keep; without git, everything outside build/."""
    said = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=SOURCE, capture_output=True, text=True)
    if said.returncode == 0:
        return [name for name in said.stdout.splitlines() if (SOURCE / name).is_file()]
    names = (path.relative_to(SOURCE) for path in SOURCE.rglob("*") if path.is_file())
    return [str(name) for name in names if name.parts[0] not in ("build", ".git")]


def renew_tree():
    """What differs is copied, so that what was built stays built. Takes back whatever an earlier run left."""
    names = set(source_files())
    for name in names:
        old, new = TREE / name, SOURCE / name
        if not old.is_file() or old.read_bytes() != new.read_bytes():
            old.parent.mkdir(parents=True, exist_ok=True)
            old.write_bytes(new.read_bytes())
        old.chmod(new.stat().st_mode)
    for path in list(TREE.rglob("*")):
        if path.is_file() and str(path.relative_to(TREE)) not in names:
            path.unlink()


def call(command, log, limit=None):
    """Exit status; None: it had no end within the limit. What was said goes to the end of the log."""
    with open(log, "a") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


def folder_of(build):
    return WORK / (build or "build")


def configure(kind, log):
    given = shlex.split(os.environ.get("TRACEALLOC_CMAKE_ARGS", ""))
    if kind == "debug-full":
        given += ["-DTRACEALLOC_CHECKS=2"]
    command = ["cmake", "-S", TREE, "-B", folder_of(kind), "-G", "Ninja",
               f"-DCMAKE_BUILD_TYPE={'Debug' if kind else 'Mutation'}", "-DTRACEALLOC_LTO=OFF",
               f"-DCMAKE_C_FLAGS={FLAGS}", f"-DCMAKE_CXX_FLAGS={FLAGS}", "-DTRACEALLOC_WERROR=OFF",
               f"-DTRACEALLOC_DEPS_DIR={SOURCE / 'build' / 'deps'}", *given]
    if call(command, log) != 0:
        fail(f"the copy cannot be configured: {log}")


def targets_of_tests(kind):
    """Of every test of the build, the targets that it needs (tests/CMakeLists.txt writes them)."""
    targets = {}
    for line in (folder_of(kind) / "test-targets.txt").read_text().splitlines():
        test, *needed = line.split()
        targets[test] = needed
    return targets


def build(kind, targets, log):
    if not targets:
        return True
    jobs = str(os.cpu_count() or 2)
    return call(["cmake", "--build", folder_of(kind), "-j", jobs, "--target", *sorted(set(targets))], log) == 0


def run_tests(kind, tests, log, seconds):
    """The names of the tests that failed, and of those that ran."""
    results = WORK / "results.xml"
    results.unlink(missing_ok=True)
    pattern = "^(" + "|".join(tests) + ")$"
    status = call(["ctest", "--test-dir", folder_of(kind), "-R", pattern, "--timeout", str(seconds), "--stop-on-failure",
                   "--output-on-failure", "--output-junit", results], log, limit=seconds * len(tests) + 60)
    return (tests, tests) if status is None else read_results(results)


def read_results(path):
    import xml.etree.ElementTree as xml
    failed, ran = [], []
    try:
        cases = xml.parse(path).getroot().findall("testcase")
    except (OSError, xml.ParseError):
        return failed, ran
    for case in cases:
        if case.get("status") == "run" or case.find("failure") is not None:
            ran.append(case.get("name"))
        if case.find("failure") is not None or case.get("status") == "fail":
            failed.append(case.get("name"))
    return failed, ran


# ---- one mutant ----

class Planted:
    """The copy with the mutant in it; without it again at the end."""

    def __init__(self, mutant):
        self.path, self.mutant = TREE / mutant.file, mutant

    def __enter__(self):
        self.before = self.path.read_text()
        self.path.write_text(self.mutant.apply(self.before))

    def __exit__(self, *_):
        self.path.write_text(self.before)


def judge(mutant, targets, arguments, sound):
    """What became of it ("died", "survived" or "error"), and by what."""
    targets = targets[mutant.build]
    unknown = [test for test in mutant.tests if test not in targets]
    if unknown:
        return "error", f"there is no test {' '.join(unknown)} in this build"
    log = WORK / "logs" / f"{mutant.name}.log"
    log.unlink(missing_ok=True)
    killer = None
    with Planted(mutant):
        # One test after the other: most mutants die by the first, and the others need not be built.
        for test in mutant.tests:
            if not sound.get((mutant.build, test), True):
                continue
            if not build(mutant.build, targets[test], log):
                return "error", f"does not build: {log}"
            failed, ran = run_tests(mutant.build, [test], log, arguments.seconds)
            if not ran:
                return "error", f"{test} did not run: {log}"
            killer = failed[0] if failed else None
            if killer:
                break
    if killer is None:
        return "survived", f"{' '.join(mutant.tests)} passed: {mutant.stands_for or mutant.describe()}"
    if not arguments.trust and not is_sound(mutant.build, killer, targets[killer], sound, log):
        return "error", f"{killer} fails without any mutant too: {log}"
    return "died", f"by {killer}"


def is_sound(kind, test, needed, sound, log):
    """A test that fails without any mutant says nothing about one. Each is asked once."""
    if (kind, test) not in sound:
        sound[kind, test] = build(kind, needed, log) and not run_tests(kind, [test], log, 600)[0]
    return sound[kind, test]


# ---- which ones ----

def chosen(arguments, suites, entries):
    if arguments.fresh:
        wanted = arguments.module or sorted(suites)
        drawn = [mutant for module in wanted for mutant in
                 draw.draw(SOURCE, suites[module], module, arguments.fresh, arguments.seed)]
        return [mutant for mutant in drawn if not arguments.names or mutant.name in arguments.names]
    picked = [entry for entry in entries if not arguments.module or entry.module in arguments.module]
    if arguments.names:
        unknown = set(arguments.names) - {entry.name for entry in picked}
        if unknown:
            fail(f"no list has {' '.join(sorted(unknown))}")
        picked = [entry for entry in picked if entry.name in arguments.names]
    if arguments.sample is not None and arguments.sample < len(picked):
        picked = random.Random(arguments.seed).sample(picked, arguments.sample)
    return sorted(picked, key=lambda mutant: (mutant.module, mutant.file))


def parse():
    parser = argparse.ArgumentParser(prog="mutation", description="Plants small faults and says which the tests notice.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these mutants")
    parser.add_argument("--module", action="append", help="only those of this list (may come several times)")
    parser.add_argument("--sample", type=int, metavar="N", help="that many of them")
    parser.add_argument("--fresh", type=int, metavar="N", help="draw N new ones for each module instead")
    parser.add_argument("--seed", type=int, default=datetime.date.today().toordinal(),
                        help="of the sample or the draw; today's number when not given")
    parser.add_argument("--seconds", type=int, default=120, help="that a test may take (120)")
    parser.add_argument("--check", action="store_true", help="only look whether every entry applies")
    parser.add_argument("--list", action="store_true", help="only say which mutants are meant")
    parser.add_argument("--trust", action="store_true", help="do not run the test that failed without the mutant too")
    parser.add_argument("--json", metavar="FILE", help="write what became of each there")
    return parser.parse_args()


def main():
    arguments = parse()
    try:
        suites, entries = lists.read_all(Path(__file__).resolve().parent)
    except lists.Broken as broken:
        fail(broken)
    unknown = set(arguments.module or ()) - set(suites)
    if unknown:
        fail(f"no list {' '.join(unknown)}; there are {' '.join(sorted(suites))}")
    stale = lists.stale(SOURCE, entries)
    for line in stale:
        print(line)
    if arguments.check or stale:
        print(f"{len(entries)} mutants, {len(stale)} that do not apply")
        return 1 if stale else 0
    mutants = chosen(arguments, suites, entries)
    if arguments.list:
        for mutant in mutants:
            print(f"{mutant.module:9} {mutant.name:34} {mutant.describe()}")
        return 0
    return run(mutants, arguments)


def run(mutants, arguments):
    (WORK / "logs").mkdir(parents=True, exist_ok=True)
    lock = open(WORK / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        fail(f"another run is at work in {WORK}")
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    log = WORK / "build.log"
    log.unlink(missing_ok=True)
    print(f"== {len(mutants)} mutants, seed {arguments.seed}", flush=True)
    renew_tree()
    targets = {}
    for kind in sorted({mutant.build for mutant in mutants}):
        configure(kind, log)
        targets[kind] = targets_of_tests(kind)
    sound = {}
    counts, told = {"died": 0, "survived": 0, "error": 0}, []
    for mutant in mutants:
        what, by = judge(mutant, targets, arguments, sound)
        counts[what] += 1
        told.append({"module": mutant.module, "name": mutant.name, "what": what, "by": by, "mutant": mutant.describe()})
        shown = {"died": "died", "survived": "SURVIVED", "error": "ERROR"}[what]
        print(f"{mutant.module:9} {mutant.name:34} {shown}: {by}", flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(told, indent=1))
    print(f"{counts['died']} of {len(mutants)} died, {counts['survived']} survived, {counts['error']} without an answer")
    return 0 if counts["died"] == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
