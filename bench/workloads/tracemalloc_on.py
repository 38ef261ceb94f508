"""Runs another script under Python's own tracemalloc with whole stacks: tracemalloc_on.py FRAMES SCRIPT [ARG…]."""
import runpy
import sys
import time
import tracemalloc

tracemalloc.start(int(sys.argv[1]))
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
begin = time.monotonic()
top = tracemalloc.take_snapshot().statistics("lineno")[:10]
sys.stderr.write("answer %.6f\n" % (time.monotonic() - begin))
