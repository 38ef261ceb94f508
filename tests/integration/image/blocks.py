"""blocks.py: snapshots with single blocks, from outside and from inside, against the program's own list and CPython.

    blocks.py TRACEALLOC LIBRARY SUBJECT

SUBJECT allocates blocks of many sizes at few places and writes down each of them, "ADDRESS SIZE"; so what take,
biggest --blocks, the exports and filters on sizes say can be compared to the last byte. Rows 73 and 76 of the table of
parity: every block is a trace of its own.
"""
import json
import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections import Counter

program, library, subject = sys.argv[1:4]
failures = 0


def check(what, have, want):
    global failures
    if have != want:
        failures += 1
        print(f"{what}: {str(have)[:300]} where {str(want)[:300]} is expected")


def tracealloc(*words):
    return subprocess.run([program, *words], check=True, stdout=subprocess.PIPE).stdout.decode()


def compare(file, blocks):
    """`blocks`: {address: size} of the program's own."""
    rows = json.loads(tracealloc("biggest", file, "--blocks", "-n", "0", "--json"))
    found = {int(row["address"], 16): row["size"] for row in rows}
    check(f"{file}: addresses and sizes", {at: found.get(at) for at in blocks}, blocks)
    order = [(-row["size"], int(row["address"], 16)) for row in rows]
    check(f"{file}: the largest first, then by address", order, sorted(order))
    own = [row for row in rows if int(row["address"], 16) in blocks]
    check(f"{file}: stacks", [row["stack"] for row in own if "main" not in row["stack"]], [])
    pickle = file + ".pickle"
    with open(pickle, "wb") as output:
        output.write(subprocess.run([program, "export", file, "--python"], check=True, stdout=subprocess.PIPE).stdout)
    snapshot = tracemalloc.Snapshot.load(pickle)
    check(f"{file}: one trace for each block", len(snapshot.traces), sum(row["stack"] != "" for row in rows))
    sizes = Counter(trace.size for trace in snapshot.traces)
    check(f"{file}: sizes for Python", [size for size in blocks.values() if sizes[size] == 0], [])
    check(f"{file}: sizes in JSON", Counter({}) + sum((Counter({trace["size"]: trace["count"]}) for trace in json.loads(
        tracealloc("export", file, "--json"))["traces"]), Counter()), sizes)
    for low, high in (0, 99), (100, 1000), (1001, 1 << 40), (7, 7):
        kept = [trace.size for trace in snapshot.traces if low <= trace.size <= high]
        where = f"size>={low} size<={high}"
        out = f"{file}.{low}.ta"
        tracealloc("filter", file, "--where", where, "-o", out)
        rows = json.loads(tracealloc("top", out, "--json"))
        check(f"{file}: {where}: blocks", sum(row["count"] for row in rows), len(kept))
        check(f"{file}: {where}: bytes", sum(row["size"] for row in rows), sum(kept))
        left = json.loads(tracealloc("biggest", out, "--blocks", "-n", "0", "--json"))
        check(f"{file}: {where}: single blocks", sorted(row["size"] for row in left), sorted(kept))


def said_by(child):
    """What the program says of its blocks: {address: size} of the live ones, and addresses of those that it freed."""
    live, freed = {}, set()
    for line in child.stdout:
        if line == b"ready\n":
            break
        address, size = line[1:].split()
        if line.startswith(b"+"):
            live[int(address, 16)] = int(size)
        else:
            freed.add(int(address, 16))
    return live, freed - set(live)


def compare_without_headers(what, options):
    """Most blocks are in pages of the allocator that have no headers: nothing but its free lists tells which are live."""
    environment = dict(os.environ, LD_PRELOAD=library, TRACEALLOC_OPTIONS=options)
    environment.pop("TRACEALLOC", None)
    if options:
        environment["TRACEALLOC"] = "30"
    child = subprocess.Popen([subject, "list"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    blocks, freed = said_by(child)
    tracealloc("take", str(child.pid), "-o", what)
    child.communicate()
    rows = json.loads(tracealloc("biggest", what, "--blocks", "-n", "0", "--json"))
    found = {int(row["address"], 16): row["size"] for row in rows}
    check(f"{what}: blocks that are missing", [hex(at) for at in blocks if at not in found], [])
    check(f"{what}: freed ones", [hex(at) for at in freed if at in found], [])
    check(f"{what}: sizes", [(blocks[at], found[at]) for at in blocks
                             if not blocks[at] <= found.get(at, 0) <= blocks[at] * 5 // 4 + 4096], [])
    check(f"{what}: blocks of nobody", len(found) - len(blocks) < 100, True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        environment = dict(os.environ, LD_PRELOAD=library, TRACEALLOC="30",
                           TRACEALLOC_OPTIONS="output=inside.ta,blocks=yes")
        child = subprocess.Popen([subject, "list"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        blocks, freed = said_by(child)
        check("blocks of the program", len(blocks) > 3000, True)
        said = json.loads(tracealloc("take", str(child.pid), "-o", "outside.ta", "--json"))
        check("take --json", [row["process"] for row in said], [child.pid])
        check("take --json counts", said[0]["blocks"] >= len(blocks), True)
        child.communicate()
        check("status of the program", child.returncode, 0)
        compare("outside.ta", blocks)
        compare("inside.ta", blocks)
        compare_without_headers("untraced.ta", "")
        compare_without_headers("sampled.ta", "sample=16384,output=own.ta")
        text = tracealloc("biggest", "outside.ta", "--blocks", "-n", "1")
        largest = max(blocks.values())
        check("biggest --blocks", text.split("\n")[0].split(": ")[1], f"{largest} bytes")
        csv = tracealloc("biggest", "outside.ta", "--blocks", "-n", "2", "--csv").splitlines()
        check("CSV", (csv[0], csv[1].split(",")[1]), ("address,size,stack", str(largest)))
    without = subprocess.run([program, "biggest", "--blocks", os.path.join(os.path.dirname(__file__), "../../golden/v1-data.ta")],
                             stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    check("a snapshot without blocks", (without.returncode, b"tracealloc take" in without.stderr), (2, True))


main()
sys.exit(failures > 0)
