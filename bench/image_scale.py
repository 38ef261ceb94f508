"""image_scale.py: what looking at a large process costs: take, memory, leaks and retained.

    image_scale.py PROGRAM TRACEALLOC LIBRARY [BLOCKS [BYTES]]     PROGRAM = the built image_scale; 2*10^7 blocks of 200 bytes

Prints seconds of the processor and of the clock, for how long the process was held, and the reader's memory, beside their
budgets. How long other programs on the machine made it wait is in the clock's seconds, not in the processor's.

The yardstick for `take` is a copy of the same memory by process_vm_readv and nothing else, in the same run: the process
cannot be held for less. The processor's seconds of `take` are more than those in which it holds the process.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

program, tracealloc, library = map(os.path.abspath, sys.argv[1:4])
blocks = int(sys.argv[4]) if len(sys.argv) > 4 else 20_000_000
average = int(sys.argv[5]) if len(sys.argv) > 5 else 200
BUDGETS = {"take": 4, "memory": 5, "leaks": 20, "retained": 60}


def high_water(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) * 1024


def copy(pid):
    """Seconds of the processor and of the clock, a GiB."""
    said = subprocess.run([program, "copy", str(pid)], stdout=subprocess.PIPE, check=True).stdout
    size, processor, clock = map(int, said.split())
    return processor / 1e9 * 2**30 / size, clock / 1e9 * 2**30 / size


def look(command, pid, folder):
    words = ["-o", os.path.join(folder, "big.ta")] if command == "take" else []
    began = time.monotonic()
    child = subprocess.Popen([tracealloc, command, str(pid), *words, "--json"], stdout=subprocess.PIPE)
    said = json.loads(child.stdout.read())
    _, status, used = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) > 1:
        sys.exit(f"{command} failed")
    return said, used.ru_utime + used.ru_stime, time.monotonic() - began, used.ru_maxrss * 1024


environment = dict(os.environ, LD_PRELOAD=library, TRACEALLOC="20")
subject = subprocess.Popen([program, str(blocks), str(average)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
try:
    if subject.stdout.readline() != b"ready\n":
        sys.exit("the subject did not get ready: memory?")
    resident = high_water(subject.pid)
    print(f"{resident / 2**30:.2f} GiB resident, {blocks} blocks")
    print(f"{'':10}{'processor':>12}{'budget':>8}{'clock':>9}{'held':>8}{'per GiB':>9}{'reader':>11}{'per block':>11}")
    with tempfile.TemporaryDirectory() as folder:
        rounds = []
        for i in range(5):
            alone, alone_clock = copy(subject.pid)
            said, processor, clock, memory = look("take", subject.pid, folder)
            held = said[0]["held_ns"] / 1e9 * 2**30 / resident
            processor *= 2**30 / resident
            rounds.append((processor / alone, alone, alone_clock, processor, held))
        ratio, alone, alone_clock, processor, held = sorted(rounds)[2]
        print(f"a GiB is copied in {alone:.2f} s of the processor, {alone_clock:.2f} s of the clock; take needs "
              f"{processor:.2f} s of the processor ({ratio:.1f} times), held for {held:.2f} s of the clock", flush=True)
        for command, budget in BUDGETS.items():
            said, processor, clock, memory = look(command, subject.pid, folder)
            held = said[0].get("held_ns", 0) / 1e9 if isinstance(said[0], dict) else 0
            print(f"{command:10}{processor:10.1f} s{budget:6} s{clock:7.1f} s{held:6.1f} s{held * 2**30 / resident:7.2f} s"
                  f"{memory / 2**20:7.0f} MiB{memory / blocks:9.1f} B", flush=True)
        size = os.path.getsize(os.path.join(folder, "big.ta"))
        print(f"the recording: {size / 2**20:.0f} MiB, {size / blocks:.2f} bytes a block")
finally:
    subject.stdin.close()
    subject.wait()
