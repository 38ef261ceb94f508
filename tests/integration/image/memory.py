"""memory.py: tracealloc memory explains the resident memory of processes, to the last page, and tells what would go back.

    memory.py TRACEALLOC LIBRARY SUBJECT
"""
import json
import os
import re
import subprocess
import sys
import tempfile

program, library, subject = sys.argv[1:4]
failures = 0
PAGE = os.sysconf("SC_PAGESIZE")


def check(what, is_right, *values):
    global failures
    if not is_right:
        failures += 1
        print(what, *[str(value)[:400] for value in values])


def start(command, **more):
    environment = dict(os.environ, LD_PRELOAD=library, TRACEALLOC=more.pop("frames", "30"), TRACEALLOC_OPTIONS="")
    child = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)
    check(f"{command}: gets ready", child.stdout.readline() == b"ready\n")
    return child


def next_step(child):
    child.stdin.write(b"x")
    child.stdin.flush()
    child.stdout.readline()


def tracealloc(*words):
    return subprocess.run([program, *map(str, words)], check=True, stdout=subprocess.PIPE).stdout.decode()


def memory(child, *words):
    return json.loads(tracealloc("memory", child.pid, "--json", *words))[0]


def rss_of(child):
    with open(f"/proc/{child.pid}/smaps_rollup") as file:
        return int(re.search(r"^Rss:\s+(\d+) kB", file.read(), re.M)[1]) * 1024


def mappings_of(child):
    """{start: rss} as the kernel says it."""
    found, start_address = {}, None
    with open(f"/proc/{child.pid}/smaps") as file:
        for line in file:
            head = re.match(r"([0-9a-f]+)-[0-9a-f]+ ", line)
            if head:
                start_address = int(head[1], 16)
            elif line.startswith("Rss:"):
                found[start_address] = int(line.split()[1]) * 1024
    return {start: rss for start, rss in found.items() if rss > 0}


def explained(name, child):
    said = memory(child)
    kernel = mappings_of(child)
    check(f"{name}: Rss", said["rss"] == rss_of(child) == sum(kernel.values()), said["rss"], rss_of(child))
    rows = {int(row["start"], 16): row for row in said["mappings"]}
    check(f"{name}: mappings", {start: row["rss"] for start, row in rows.items()} == kernel)
    wrong = [row for row in said["mappings"] if abs(row["rss"] - row["explained"]) > PAGE]
    check(f"{name}: each mapping to the last page", not wrong, wrong)
    check(f"{name}: sum", sum(value for part, value in said["parts"].items() if part not in ("page_tables", "swap")) == said["rss"])
    return said


def row_of(said, function):
    rows = [row for row in said["rows"] if function in row["where"]]
    check(f"one row of {function}", len(rows) == 1, said["rows"])
    return rows[0]


def near(value, wanted, share):
    return abs(value - wanted) <= wanted * share


def pages():
    child = start([subject, "pages"])
    said = explained("pages", child)
    small, large, parts = row_of(said, "small_block"), row_of(said, "large_block"), said["parts"]
    check("small: asked", (small["blocks"], small["asked"]) == (6000, 6000 * 480), small)
    check("small: pinned is nine times what they take", near(small["pinned"], 9 * small["resident"], 0.05), small)
    check("free in pages in use", parts["free"] >= small["pinned"], parts)
    check("large: asked, but half of it is not there", large["asked"] == 40 << 20 and near(large["resident"], 20 << 20, 0.02), large)
    check("large: goes back", near(large["back"], large["resident"], 0.02), large)
    check("mapped by the program, without what was only read", 3 << 20 <= parts["other"] < (3 << 20) + 65536 + parts["stacks"], parts)
    check("shared", parts["shared"] == 1 << 20, parts)
    for order in "back", "resident", "pinned", "asked", "occupied":
        values = [row[order] for row in memory(child, "--sort", order)["rows"] if "without a stack" not in row["where"]]
        check(f"--sort {order}", values == sorted(values, reverse=True), values)
    text = tracealloc("memory", child.pid, "-n", "2", "--mappings")
    check("in words", "resident" in text and "small_block" in text and "ADDRESSES" in text, text)
    stacks = memory(child, "--by", "stack")
    check("by stack: the same sum", sum(row["resident"] for row in stacks["rows"]) == sum(row["resident"] for row in said["rows"]))

    # What would go back does go back.
    before = rss_of(child)
    next_step(child)
    check("small blocks gone: so much came back", near(before - rss_of(child), small["back"], 0.05), before - rss_of(child), small)
    before = rss_of(child)
    next_step(child)
    check("large blocks gone: so much came back", near(before - rss_of(child), large["back"], 0.05), before - rss_of(child), large)
    left = explained("pages, afterwards", child)
    check("nothing is left of them", not [row for row in left["rows"] if "_block" in row["where"]], left["rows"])
    child.communicate()


def measures_as_flames(child):
    with tempfile.TemporaryDirectory() as folder:
        for measure in "pinned", "resident":
            out = os.path.join(folder, "flame.svg")
            tracealloc("memory", child.pid, "--sort", measure, "--flame", out)
            with open(out) as file:
                check(f"flame graph of {measure}", "churn" in file.read())
        out = os.path.join(folder, "x.ta")
        tracealloc("take", child.pid, "-o", out)
        said, live = json.loads(tracealloc("memory", out, "--json"))[0], memory(child)
        check("a recording says the same", said["parts"] == live["parts"] and said["rss"] == live["rss"], said, live["parts"])


def family():
    children = [start([subject, "plain"]), start([subject, "plain"], frames="0")]
    said = json.loads(tracealloc("memory", "--json", *(child.pid for child in children)))
    check("two processes", [one["process"] for one in said] == [child.pid for child in children])
    text = tracealloc("memory", *(child.pid for child in children))
    check("and their sum", "all 2 processes" in text)
    for child in children:
        child.kill()
        child.communicate()


def main():
    for what in "plain", "threads", "domains", "emergency":
        child = start([subject, what])
        explained(what, child)
        if what == "threads":
            measures_as_flames(child)
        child.kill()
        child.communicate()
    child = start([subject, "plain"], frames="0")
    explained("not traced", child)
    child.kill()
    child.communicate()
    child = start([sys.executable, "-c", "import json, threading, sqlite3; x = [str(i) * 9 for i in range(300000)]\n"
                   "del x[::3]; print('ready', flush=True); input()"])
    explained("python", child)
    child.kill()
    child.communicate()
    pages()
    family()


main()
sys.exit(failures > 0)
