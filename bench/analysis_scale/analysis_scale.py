"""analysis_scale.py: the counterpart of analysis_scale.c — the same groupings by Python's tracemalloc.

    analysis_scale.py FILE.pickle OURS     OURS = what analysis_scale printed; prints both, and the ratios
"""
import gc
import resource
import sys
import time
import tracemalloc


def main():
    path, ours_path = sys.argv[1:]
    ours = {}
    with open(ours_path) as file:
        for line in file:
            _, name, value, groups, total = line.split()
            ours[name] = (float(value), int(groups), int(total))
    gc.disable()  # in Python's favour: nothing here is garbage
    snapshot = tracemalloc.Snapshot.load(path)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(snapshot.traces)} traces; loaded and decoded in {ours['load'][0]:.3f} s; peak memory "
          f"{ours['peak-MiB'][0]:.0f} MiB (Python, loaded: {memory:.0f} MiB); grouping by line took "
          f"{ours['memory-of-lineno-MiB'][0]:.0f} MiB more than the loaded file")
    print(f"the first question, which builds the model: {ours['first-lineno'][0]:.3f} s")
    for name, key, cumulative in [("lineno", "lineno", False), ("filename", "filename", False),
                                  ("lineno-cumulative", "lineno", True), ("traceback", "traceback", False)]:
        start = time.monotonic()
        rows = snapshot.statistics(key, cumulative)
        seconds = time.monotonic() - start
        theirs = (len(rows), sum(row.size for row in rows))
        if theirs != ours[name][1:]:
            sys.exit(f"{name}: different results: {ours[name][1:]} and {theirs}")
        print(f"{name:18} {theirs[0]:8} groups   ours {ours[name][0]:8.3f} s   Python {seconds:8.3f} s   "
              f"ratio {seconds / ours[name][0]:7.1f}   with the model {seconds / (ours[name][0] + model(ours)):7.1f}")


def model(ours):
    return max(0.0, ours["first-lineno"][0] - ours["lineno"][0])


main()
