"""test_renderings.py: what a person sees on terminals of 80, 120 and 200 columns and in a pipe, line by line.

    test_renderings.py TRACEALLOC [--update]

The recordings in renderings/ are of real programs and carry their symbols: an order service in C++ with a cycle of
shared_ptr, and its state before (tests/gallery/orders.cpp), templates (grid.cpp), deep recursion (parser.cpp), Debian's
redis-server after redis-benchmark, and its nginx, which has no names for most functions. --update writes what is seen:
look at it before you believe it.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import terminal as terminals  # noqa: E402

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "renderings")
TRACEALLOC = os.path.abspath(sys.argv[1])
COMMANDS = [
    "top orders.ta", "top orders.ta --callers -n 3", "top orders.ta --sort total -n 4",
    "top orders.ta --sort temporary -n 3", "top orders.ta --sort peak -n 3", "top orders.ta --cumulative -n 5",
    "top orders.ta --by traceback -n 2", "top orders.ta --by function -n 4", "top orders.ta --full-names -n 2",
    "diff orders.ta orders-old.ta", "diff --grown orders.ta orders-old.ta --callers -n 2", "tree orders.ta --min 5",
    "tree orders.ta --collapse --min 5", "tree orders.ta orders-old.ta --collapse --min 5", "tree orders.ta --bottom-up --min 20",
    "biggest redis.ta", "top grid.ta", "tree grid.ta --collapse", "top parser.ta",
    "top parser.ta --by traceback -n 3", "tree parser.ta --min 2", "top redis.ta", "top redis.ta --callers -n 3",
    "tree redis.ta --collapse --min 4", "top redis.ta --by line -n 3", "top nginx.ta", "top nginx.ta --by traceback -n 1",
]


def on_terminal(arguments, columns, environment):
    text, status = terminals.run(arguments, columns, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, env=environment, cwd=HERE)
    assert status == 0, (arguments, text)
    return text.replace("\r\n", "\n")


def render(columns):
    text = ""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm", "NO_COLOR": "1", "HOME": home}
        for name in ("COLUMNS", "DEBUGINFOD_URLS", "TRACEALLOC_SYMBOLS"):
            environment.pop(name, None)
        for command in COMMANDS:
            arguments = [TRACEALLOC, *command.split()]
            if columns is None:
                seen = subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      env=environment, cwd=HERE, check=True).stdout.decode()
            else:
                seen = on_terminal(arguments, columns, environment)
            text += f"$ tracealloc {command}\n{seen}\n"
    return text


def main():
    bad = 0
    for name, columns in (("80", 80), ("120", 120), ("200", 200), ("pipe", None)):
        path, seen = os.path.join(HERE, f"{name}.txt"), render(columns)
        if "--update" in sys.argv:
            with open(path, "w", encoding="utf-8") as file:
                file.write(seen)
            continue
        with open(path, encoding="utf-8") as file:
            wanted = file.read()
        for number, (a, b) in enumerate(zip(wanted.splitlines(), seen.splitlines()), 1):
            if a != b:
                print(f"{path}:{number}:\n  expected {a}\n  seen     {b}")
                break
        bad += wanted != seen
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
