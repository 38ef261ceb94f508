"""gdb.py: the commands for gdb, on a process that gdb holds and on a core.

    gdb.py TRACEALLOC LIBRARY SCRIPT
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

program, library, script = sys.argv[1:4]
here = os.path.dirname(os.path.abspath(__file__))
failures = 0
if shutil.which("gdb") is None or b"python" not in subprocess.run(["gdb", "--configuration"], stdout=subprocess.PIPE).stdout:
    sys.exit(77)


def check(what, is_right, *values):
    global failures
    if not is_right:
        failures += 1
        print(what, *[str(value)[:2000] for value in values])


def gdb(*words):
    environment = dict(os.environ, TRACEALLOC_PROGRAM=program, DEBUGINFOD_URLS="")
    commands = [part for word in words[1:] for part in ("-ex", word)]
    done = subprocess.run(["gdb", "-nx", "-batch", "-x", script, *words[0], *commands], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode(errors="replace")


def ask(target, said):
    text = gdb(target, "ta-block the_shelf", "ta-why the_shelf->items[2]", "ta-leaks", "ta-block freed", "ta-block &the_shelf",
               "ta-memory -n 1")
    check("ta-block", f"{said['shelf']} is a live block of 40 bytes" in text, text)
    check("ta-why", "it is a shop::special_item" in text and "shortest ways" in text and "the_shelf" in text, text)
    check("ta-block of what is free", "in a free block" in text, text)
    check("ta-block of a variable", re.search(r"is data, 0x[0-9a-f]+: the_shelf", text) is not None, text)
    check("ta-leaks", "lost" in text, text)
    check("ta-memory", "asked for by live blocks" in text, text)
    wrong = gdb(target, "ta-block", "ta-why nonsense_name")
    check("errors", "an address or an expression is missing" in wrong and "nonsense_name" in wrong, wrong)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pointing")
        if subprocess.run(["g++", "-g", "-O1", "-o", path, os.path.join(here, "pointing.cpp"), "-lpthread"]).returncode != 0:
            sys.exit(77)
        environment = dict(os.environ, LD_PRELOAD=library, TRACEALLOC="60", TRACEALLOC_OPTIONS="on_corruption=leak")
        child = subprocess.Popen([path], env=environment, stdout=subprocess.PIPE)
        said = {}
        for line in child.stdout:
            if line == b"ready\n":
                break
            name, address = line.decode().split()
            said[name] = address
        ask(["-p", str(child.pid)], said)
        core = os.path.join(folder, "core")
        gdb(["-p", str(child.pid)], "generate-core-file " + core)
        child.kill()
        child.communicate()
        ask([path, core], said)
        nothing = gdb([path], "ta-leaks")
        check("without a process", "there is no process" in nothing, nothing)


main()
sys.exit(failures > 0)
