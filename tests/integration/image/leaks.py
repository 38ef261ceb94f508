"""leaks.py: tracealloc leaks against LeakSanitizer and valgrind on forty small programs: nothing they find is missed; and
what its own options, formats and exit statuses do.

    leaks.py TRACEALLOC LIBRARY lsan|valgrind     the programs are leaky.c and leaky.cpp, beside this file
    leaks.py TRACEALLOC LIBRARY options

LeakSanitizer and valgrind look when the program ends, ours where it would end: old values in registers and on the stack
were wiped before that. What valgrind calls possibly lost, ours finds with --exact.
They count what is lost directly and what went with it, as ours does; of a circle one block is
direct.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

program, library, mode = sys.argv[1:4]
here = os.path.dirname(os.path.abspath(__file__))
failures = compared = 0


def check(what, is_right, *values):
    global failures
    if not is_right:
        failures += 1
        print(what, *[str(value)[:600] for value in values])


def build(folder, name, *flags):
    compiler = "g++" if name.endswith(".cpp") else "gcc"
    out = os.path.join(folder, name.replace(".", "_"))
    out += "".join(flag.replace("=", "_") for flag in flags)
    done = subprocess.run([compiler, "-g", "-O1", *flags, "-D_GNU_SOURCE", "-o", out, os.path.join(here, name), "-lpthread"],
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        print(done.stderr.decode())
        sys.exit(77)
    return out


def start(path, name):
    environment = dict(os.environ, LD_PRELOAD=library, TRACEALLOC="60", TRACEALLOC_OPTIONS="")
    child = subprocess.Popen([path, name, "wait"], env=environment, stdout=subprocess.PIPE)
    check(f"{name}: gets ready", child.stdout.readline() == b"ready\n")
    return child


def end(child):
    child.kill()
    child.communicate()


def leaks(*words):
    done = subprocess.run([program, "leaks", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def ours(path, name, *words):
    child = start(path, name)
    status, text, errors = leaks(child.pid, "--json", "--by", "stack", *words)
    end(child)
    said = json.loads(text)[0]
    check(f"{name}: exit status", status == (1 if said["leaks"] else 0), status, errors)
    return said


def names_of(path):
    return subprocess.run([path], stdout=subprocess.PIPE, check=True).stdout.decode().split()


def lsan_of(path, name):
    """(bytes, blocks), and the functions that asked for each leak."""
    text = subprocess.run([path, name], stderr=subprocess.PIPE, env=dict(os.environ, LSAN_OPTIONS="fast_unwind_on_malloc=0")
                          ).stderr.decode()
    if "LeakSanitizer has encountered a fatal error" in text:
        print("LeakSanitizer does not run here")
        sys.exit(77)
    total = re.search(r"SUMMARY: LeakSanitizer: (\d+) byte\(s\) leaked in (\d+) allocation", text)
    functions = re.findall(r"Direct leak of .*\n(?:    #\d+ .*\n)*?    #\d+ 0x\S+ in (\S+?)(?:\(.*)? \S*leaky", text)
    return (int(total[1]), int(total[2])) if total else (0, 0), set(functions)


def valgrind_of(path, name):
    text = subprocess.run(["valgrind", "--leak-check=full", path, name], stderr=subprocess.PIPE).stderr.decode()
    found = {kind: (int(size.replace(",", "")), int(blocks.replace(",", ""))) for kind, size, blocks in
             re.findall(r"(definitely|indirectly|possibly) lost: ([\d,]+) bytes in ([\d,]+) blocks", text)}
    return tuple(map(sum, zip((0, 0), *found.values()))), set()


def compare(folder):
    global compared
    for source in "leaky.c", "leaky.cpp":
        plain = build(folder, source)
        other = build(folder, source, "-fsanitize=leak") if mode == "lsan" else plain
        for name in names_of(plain):
            (size, blocks), functions = (lsan_of if mode == "lsan" else valgrind_of)(other, name)
            said = ours(plain, name, *(["--exact"] if mode == "valgrind" else []))
            own_blocks = said["direct_blocks"] + said["indirect_blocks"]
            own_size = said["direct_bytes"] + said["indirect_bytes"]
            # LeakSanitizer counts an empty block as one byte.
            check(f"{name}: {mode} finds more", own_blocks >= blocks and own_size >= size - (blocks if name == "empty" else 0),
                  (own_size, own_blocks), (size, blocks))
            rows = json.dumps([row["stack"] for row in said["leaks"]])
            missed = [function for function in functions if function.split("::")[-1] not in rows]
            check(f"{name}: {mode} names others", not missed, missed, rows)
            check(f"{name}: nothing is lost, but we say so", name != "nothing" or own_blocks == 0, said)
            compared += 1


def figures(path, name, *words):
    said = ours(path, name, *words)
    return tuple(said[key] for key in ("direct_blocks", "direct_bytes", "indirect_blocks", "indirect_bytes", "cycles"))


def kinds(folder):
    c, cpp = build(folder, "leaky.c"), build(folder, "leaky.cpp")
    for path, name, wanted in (
        (c, "plain", (10, 1000, 0, 0, 0)), (c, "list", (1, 64, 19, 19 * 64, 0)), (c, "tree", (1, 64, 125, 5039, 0)),
        (c, "circle", (4, 256, 12, 8 * 64 + 4 * 17, 4)), (c, "self", (1, 64, 0, 0, 0)),
        (c, "figure_eight", (1, 64, 2, 128, 1)), (c, "tail_on_circle", (1, 64, 2, 128, 0)),
        (c, "inner_pointer", (0, 0, 0, 0, 0)), (c, "tagged_low", (0, 0, 0, 0, 0)), (c, "aligned", (2, 9192, 0, 0, 0)),
        (c, "thread", (3, 2331, 0, 0, 0)), (c, "thread_local_lost", (0, 0, 0, 0, 0)), (c, "specific", (1, 222, 0, 0, 0)),
        (cpp, "shared_circle", (3, 3 * 64, 9, 3 * (64 + 2 * 51), 3)), (cpp, "second_base", (0, 0, 0, 0, 0)),
    ):
        check(name, figures(path, name) == wanted, figures(path, name), wanted)
    child = start(cpp, "shared_circle")
    said = json.loads(leaks(child.pid, "--json")[1])[0]["leaks"][0]
    check("the circle of two shared pointers", said["kind"] == "cycle" and len(said["cycle"]) == 2 and
          all("shared_circle" in json.dumps(said["stack"]) for _ in [0]), said)
    end(child)


def options(folder):
    path = build(folder, "leaky.c")
    child = start(path, "circle")
    status, text, _ = leaks(child.pid)
    check("inner pointers", figures(path, "inner_pointer", "--exact")[:2] == (1, 500) and
          ours(path, "inner_pointer")["inner_bytes"] == 500 and figures(path, "aligned", "--exact")[0] == 2)
    check("text", status == 1 and "4 circles" in text and "a circle of 3 blocks" in text and "leaky.c" in text, text)
    status, text, _ = leaks(child.pid, "--format", "junit")
    suite = xml.etree.ElementTree.fromstring(text).find("testsuite")
    check("junit", status == 1 and suite.get("failures") == "1" and "circle" in suite.find("testcase/failure").text, text)
    known = os.path.join(folder, "known")
    for pattern, hits in (("leak:make_node", 1), ("leak:*leaky_c", 1), ("leak:^make_n*e$", 1), ("leak:^ake_node", 0),
                          ("leak:make_nod$", 0), ("leak:libfoo", 0), ("# nothing\n\n  leak:leaky.c  ", 1)):
        with open(known, "w") as file:
            file.write(pattern + "\n")
        status, text, _ = leaks(child.pid, "--suppressions", known)
        check(f"suppression {pattern}", status == 1 - hits and ("suppressed by leak:" in text) == bool(hits), status, text)
    with open(known, "w") as file:
        file.write("leak:a\nrace:b\n")
    status, _, errors = leaks(child.pid, "--suppressions", known)
    check("a wrong suppression", status == 2 and "line 2" in errors, errors)
    status, _, errors = leaks(child.pid, "--format", "pdf")
    check("a wrong format", status == 2 and "--format" in errors, errors)
    other = start(path, "nothing")
    check("nothing is lost", leaks(other.pid)[0] == 0 and "nothing is lost" in leaks(other.pid)[1])
    status, text, _ = leaks(child.pid, other.pid, "--json")
    check("two processes", status == 1 and [len(one["leaks"]) for one in json.loads(text)] == [1, 0], text)
    check("one process that is none", leaks(other.pid, 999999999)[0] == 2)
    check("without a pause", leaks(other.pid, "--no-pause")[0] == 0)
    check("unaligned pointers", leaks(child.pid, "--unaligned", "--tagged")[0] in (0, 1))
    end(child)
    end(other)


TWO = """
#include <stdlib.h>
#include <unistd.h>
void *volatile kept[3];
#define MAKER(name) __attribute__((noinline)) static void *name(size_t n) { void *p = malloc(n); __asm__ volatile("" : "+r"(p)); return p; }
MAKER(keeper) MAKER(loser)
int main(void)
{
    for (int i = 0; i < 3; i++) kept[i] = keeper(100);
    loser(200);
    if (write(1, "ready\\n", 6) == 6) pause();
}
"""


def labels(folder):
    """Two functions on one line, of which one loses: the row is not about the other, also where it is a block's."""
    path = os.path.join(folder, "two")
    with open(path + ".c", "w") as file:
        file.write(TWO)
    subprocess.run(["gcc", "-g", "-O1", "-o", path, path + ".c"], check=True)
    child = start(path, "")
    status, text, _ = leaks(child.pid, "--json")
    wheres = [row["where"] for row in json.loads(text)[0]["leaks"] if row["bytes"] == 200]
    check("a lost block's own function", len(wheres) == 1 and "loser" in wheres[0] and "keeper" not in wheres[0], text)
    words = leaks(child.pid)[1]
    check("the same in words", "two.c:6  loser" in words and "functions:" not in words, words)
    end(child)


WAYS = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
char *kept[2];
__attribute__((noinline)) static void ask(int n) { kept[0] = strdup("a text that is kept and has the most bytes of this line, more than all that is lost of it");
#line 7
 malloc(n); malloc(n + 8); kept[1] = strdup("a text that is kept and has the most bytes of this line, more than all that is lost of it"); }
int main(void) { ask(20); if (write(1, "ready\\n", 6) == 6) pause(); }
"""


def ways(folder):
    """What is kept of a line came another way than what is lost."""
    path = os.path.join(folder, "ways")
    with open(path + ".c", "w") as file:
        file.write(WAYS)
    subprocess.run(["gcc", "-g", "-O1", "-fno-builtin", "-Wno-unused-result", "-o", path, path + ".c"], check=True)
    child = start(path, "")
    status, text, _ = leaks(child.pid, "--json")
    wheres = [row["where"] for row in json.loads(text)[0]["leaks"]]
    check("what is lost came by no way", wheres == ["ways.c:7  ask"] or wheres == [path + ".c:7  ask"], text)
    check("the same in words", re.search(r"ways\.c:7  ask$", leaks(child.pid)[1], re.M), leaks(child.pid)[1])
    end(child)


with tempfile.TemporaryDirectory() as folder:
    if mode == "options":
        kinds(folder)
        options(folder)
        labels(folder)
        ways(folder)
    else:
        compare(folder)
        check("programs compared", compared >= 30, compared)
sys.exit(failures > 0)
