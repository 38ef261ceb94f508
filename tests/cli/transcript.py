"""transcript.py: runs the commands of a transcript in a folder of their own and compares what they say.

    transcript.py BIN FILE [--docs] [--update] [NAME=FILE…]

BIN is the folder of the program. A line "$ command" is run by sh, the lines after it are what it prints (standard output
and errors together); lines before the first command are comments; "[2]" after them is the exit status when it is not 0. With --docs FILE is a page of documentation:
its indented blocks that begin with "$ " are the transcript, figures are compared as "some number", blanks are one blank,
and a line "…" stands for any lines. NAME=FILE copies a file into the folder first. --update writes what was seen into
a transcript: read the difference before believing it.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile


def steps_of(text, docs):
    """(first line number, command, expected lines, status) for every command."""
    steps, inside = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if docs:
            if line.startswith("    $ "):
                inside = True
            elif line and not line.startswith("    "):
                inside = False
            if not inside:
                continue
            line = line[4:]
        if line.startswith("$ "):
            steps.append([number, line[2:], [], 0])
        elif not steps:
            continue
        elif re.fullmatch(r"\[\d+\]", line):
            steps[-1][3] = int(line[1:-1])
        else:
            steps[-1][2].append(line)
    for step in steps:
        while step[2] and not step[2][-1].strip():
            step[2].pop()
    return steps


def plain(line):
    """A line of documentation without its figures: sizes, counts, small graphs, places of the machine."""
    line = re.sub(r"[^\s\"]*/([\w.+-]+)", r"\1", line)
    line = re.sub(r" [ _.\-~=+*#]{8,} ", " graph ", line)
    line = re.sub(r"[+-]?\d[\d.,]*( ?[KMGT]iB| B\b|%)?", "#", line)
    return re.sub(r"\s+", " ", line).strip()


def agrees(expected, seen):
    """Whether the seen lines fit the expected ones, where "…" stands for any lines."""
    if not expected:
        return not seen
    if expected[0].strip() == "…":
        return any(agrees(expected[1:], seen[i:]) for i in range(len(seen) + 1))
    return bool(seen) and plain(expected[0]) == plain(seen[0]) and agrees(expected[1:], seen[1:])


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    docs, update = "--docs" in sys.argv, "--update" in sys.argv
    programs, path = os.path.abspath(arguments[0]), os.path.abspath(arguments[1])
    copies = [(name, os.path.abspath(source)) for name, source in (a.split("=", 1) for a in arguments[2:])]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    steps, bad, lines = steps_of(text, docs), 0, text.splitlines()
    assert steps, f"{path}: no command"
    environment = {**os.environ, "PATH": programs + os.pathsep + os.environ["PATH"], "LC_ALL": "C.UTF-8",
                   "NO_COLOR": ""}
    for name in ("TRACEALLOC", "TRACEALLOC_OPTIONS", "LD_PRELOAD", "COLUMNS", "TRACEALLOC_SYMBOLS",
                 "DEBUGINFOD_URLS"):
        environment.pop(name, None)
    written = []
    with tempfile.TemporaryDirectory() as folder:
        for name, source in copies:
            shutil.copy(source, os.path.join(folder, name))
        for number, command, expected, status in steps:
            done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            seen = done.stdout.decode("utf-8", "backslashreplace").replace(folder, "FOLDER").splitlines()
            while seen and not seen[-1].strip():
                seen.pop()
            written += [f"$ {command}", *seen, *([f"[{done.returncode}]"] if done.returncode else []), ""]
            if (agrees(expected, seen) if docs else expected == seen) and status == done.returncode:
                continue
            bad += 1
            print(f"{path}:{number}: $ {command}\n  status {done.returncode}, expected {status}\n--- expected")
            print("\n".join(expected) + "\n--- seen\n" + "\n".join(seen) + "\n---")
    if update and not docs:
        head = lines[:steps[0][0] - 2]
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(head + [""] + written))
        return 0
    print(f"{path}: {len(steps)} commands, {bad} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
