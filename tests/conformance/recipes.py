"""recipes.py: what people do with tracemalloc snapshots, done by Python on files that `tracealloc export --python` wrote.

    recipes.py TRACEALLOC

Top ten lines, top ten differences, the biggest stack with its source lines, the "pretty top", dump and load again: each
as Python programs have it, with tracemalloc.Snapshot.load in place of take_snapshot. What Python prints is compared with
what our program prints for the same snapshot.
"""
import json
import linecache
import os
import random
import subprocess
import sys
import tempfile
import tracemalloc

TRACEALLOC = os.path.abspath(sys.argv[1])


def tracealloc(*arguments):
    return subprocess.run([TRACEALLOC, *arguments], check=True, stdout=subprocess.PIPE).stdout.decode()


def document(rng, folder, growth):
    sources = [os.path.join(folder, name) for name in ("app.py", "list.py", "util.py")] + ["<unknown>"]
    traces = []
    for _ in range(300):
        frames = [[rng.choice(sources), rng.randrange(0, 12)] for _ in range(rng.randrange(1, 25))]
        traces.append({"size": rng.randrange(100000) * growth, "count": rng.randrange(1, 4), "frames": frames})
    return {"traceback_limit": 25, "traces": traces}


def make_snapshot(name, content):
    with open(f"{name}.json", "w") as file:
        json.dump(content, file)
    tracealloc("import", f"{name}.json", "-o", f"{name}.ta")
    tracealloc("export", f"{name}.ta", "--python", "-o", f"{name}.pickle")
    return tracemalloc.Snapshot.load(f"{name}.pickle")


def top_ten(snapshot):
    return [str(statistic) for statistic in snapshot.statistics("lineno")[:10]]


def top_ten_differences(new, old):
    return [str(difference) for difference in new.compare_to(old, "lineno")[:10]]


def biggest_stack(snapshot):
    biggest = snapshot.statistics("traceback")[0]
    return [f"{biggest.count} memory blocks: {biggest.size / 1024:.1f} KiB"] + biggest.traceback.format()


def pretty_top(snapshot, limit):
    snapshot = snapshot.filter_traces((tracemalloc.Filter(False, "<frozen importlib._bootstrap>"),
                                       tracemalloc.Filter(False, "<unknown>")))
    statistics = snapshot.statistics("lineno")
    lines = [f"Top {limit} lines"]
    for rank, statistic in enumerate(statistics[:limit], 1):
        frame = statistic.traceback[0]
        short = os.sep.join(frame.filename.split(os.sep)[-2:])
        lines.append(f"#{rank}: {short}:{frame.lineno}: {statistic.size / 1024:.1f} KiB")
        source = linecache.getline(frame.filename, frame.lineno).strip()
        if source:
            lines.append(f"    {source}")
    other = statistics[limit:]
    if other:
        lines.append(f"{len(other)} other: {sum(s.size for s in other) / 1024:.1f} KiB")
    lines.append(f"Total allocated size: {sum(s.size for s in statistics) / 1024:.1f} KiB")
    return lines


def same(what, ours, theirs):
    if ours != theirs:
        sys.exit(f"{what} differ\nours:\n{ours}\nPython:\n{theirs}")
    print(f"{what}: equal")


def main():
    rng = random.Random(11)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in ("app.py", "list.py"):
            with open(name, "w") as file:
                file.writelines(f"   line_{number} = {name!r}\n" for number in range(1, 10))
        new, old = make_snapshot("new", document(rng, folder, 3)), make_snapshot("old", document(rng, folder, 1))

        same("top ten", tracealloc("stats", "new.ta", "--limit", "10").splitlines(), top_ten(new))
        same("top ten differences", tracealloc("diff", "new.ta", "old.ta", "--key", "lineno", "--limit", "10").splitlines(),
             top_ten_differences(new, old))

        biggest = json.loads(tracealloc("stats", "new.ta", "--key", "traceback", "--limit", "1", "--json"))[0]
        stack = biggest_stack(new)
        same("biggest stack", f"{biggest['count']} memory blocks: {biggest['size'] / 1024:.1f} KiB", stack[0])
        frames = [f'  File "{name}", line {line}' for name, line in reversed(biggest["frames"])]
        same("its frames", frames, [line for line in stack[1:] if line.startswith("  File")])
        if not any(line.startswith("    line_") for line in stack):
            sys.exit("no source line in the biggest stack")

        pretty = pretty_top(new, 10)
        ours = tracealloc("stats", "new.ta", "--where", "not file:<unknown>", "--json")
        rows = json.loads(ours)
        same("pretty top: total", f"Total allocated size: {sum(r['size'] for r in rows) / 1024:.1f} KiB", pretty[-1])
        same("pretty top: rest", f"{len(rows) - 10} other: {sum(r['size'] for r in rows[10:]) / 1024:.1f} KiB", pretty[-2])

        new.dump("again.pickle")
        again = tracemalloc.Snapshot.load("again.pickle")
        same("dump and load", list(again.traces), list(new.traces))


main()
