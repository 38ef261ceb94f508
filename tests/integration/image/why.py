"""why.py: tracealloc why, on a program whose pointers are known, alive, dead (a core of the kernel or of gcore) and crashed.

    why.py TRACEALLOC LIBRARY
"""
import atexit
import glob
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import terminal as terminals  # noqa: E402

program, library = sys.argv[1:3]
here = os.path.dirname(os.path.abspath(__file__))
failures = 0


def check(what, is_right, *values):
    global failures
    if not is_right:
        failures += 1
        print(what, *[str(value)[:900] for value in values])


def start(path, *words, **more):
    environment = dict(os.environ, LD_PRELOAD=library, TRACEALLOC="60", TRACEALLOC_OPTIONS="on_corruption=leak")
    child = subprocess.Popen([path, *words], env=environment, stdout=subprocess.PIPE, **more)
    atexit.register(child.kill)
    said = {}
    for line in child.stdout:
        if line == b"ready\n":
            return child, said
        name, address = line.split()
        said[name.decode()] = int(address, 16)
    return child, said


def why(what, *words):
    done = subprocess.run([program, "why", *map(str, words), "--json", str(what)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    check(f"why {words} {what}", done.returncode == 0, done.stderr)
    if done.returncode != 0:
        sys.exit(1)
    told = json.loads(done.stdout)
    for place in [told["place"], *told["referrers"], *(step for path in told["paths"] for step in path)]:
        start, address = int(place.get("start", "0"), 16), int(place["address"], 16)
        check("a place lies in what it is a place of", "start" not in place or address - start == place["offset"], place)
        check("which begins somewhere", "start" not in place or (start > 0 and start % 8 == 0), place)
        check("and it is not behind it", place["kind"] in ("behind", "header", "damaged", "free", "block") or "start" not in place or
              0 <= address - start < place["size"], place)
    return told


def text(what, *words):
    return subprocess.run([program, "why", *map(str, words), str(what)], stdout=subprocess.PIPE).stdout.decode()


def ask(what, said, has_registers=True):
    label = why(what, hex(said["label"] + 4))
    place, path = label["place"], label["paths"][0]
    check("label", place["kind"] == "block" and place["size"] == 21 and place["offset"] == 4 and "make_shop" in label["stack"], label)
    steps = [(step["kind"], step.get("type", ""), step.get("offset")) for step in path]
    check("way to the label", [step[0] for step in steps] == ["data", "block", "block", "block", "block"], path)
    check("its root", "the_shelf" in path[0]["name"] and int(path[0]["address"], 16) == said["global"], path[0])
    check("its classes", [step[1] for step in steps[1:]] == ["", "shop::special_item", "shop::item", ""], steps)
    check("its offsets", [step[2] for step in steps[1:4]] == [8 + 2 * 8, 24, 16], steps)
    check("its places", "pointing.cpp" in path[1]["where"] and "make_shop" in path[1]["where"], path[1])
    check("who points to it", label["pointers"] == 1 and label["reached"] and
          int(label["referrers"][0]["address"], 16) == said["base"] + 16, label["referrers"])
    words = text(what, "--at", hex(said["label"] + 4))
    check("names are short", re.search(r"  make_shop$", words, re.M) and "make_shop()" not in words, words)
    special = why(what, hex(said["special"]))
    check("class of a block", special["place"].get("type") == "shop::special_item", special["place"])
    stack = why(what, hex(said["on_stack"]))
    on_stacks = [root for root in stack["referrers"] if root["kind"] == "stack"]
    check("a pointer on a stack", on_stacks and all(root.get("name") == "wait_in_thread(void*)" for root in on_stacks), stack)
    words = text(what, "--at", hex(said["on_stack"]))
    check("its frame has a short name", re.search(r"in the frame of wait_in_thread$", words, re.M), words)
    thread = why(what, hex(said["of_thread"]))
    check("thread-local storage", thread["reached"], thread)
    mapping = why(what, hex(said["of_mapping"]))
    check("a pointer in a mapping", "mapping" in [root["kind"] for root in mapping["referrers"]], mapping)
    if "of_neighbour" in said: # else the page there was taken
        neighbour = why(what, hex(said["of_neighbour"]))
        check("a pointer in a mapping that begins with the library's data",
              "mapping" in [root["kind"] for root in neighbour["referrers"]], neighbour)
    freed = why(what, hex(said["freed"]))
    check("a freed block", freed["place"]["kind"] == "free" and freed["place"]["size"] >= 640, freed)
    victim = why(what, hex(said["victim"]))
    check("an overwritten header", victim["place"]["kind"] == "damaged", victim)
    check("and whose neighbour it was", int(victim["before"]["start"], 16) == said["overrun"] and
          "overrun" in victim["before"]["where"], victim)
    behind = why(what, hex(said["overrun"] + 104 + 3))
    check("behind a block", behind["place"]["kind"] in ("behind", "damaged"), behind)
    for name, address in (("a null pointer", said["null"]), ("code", said["code"]), ("data", said["global"]),
                          ("a stack", int(on_stacks[0]["address"], 16))):
        alone = why(what, hex(address))
        check(f"{name} has no neighbours", "before" not in alone and "behind" not in alone, alone)
    check("code", "overrun" in why(what, hex(said["code"]))["place"]["name"])
    check("data", why(what, hex(said["global"]))["place"]["kind"] == "data")
    check("a null pointer", why(what, hex(said["null"]))["place"]["kind"] == "nothing" and
          "null pointer" in text(what, hex(said["null"])))
    check("a pointer's block is told by its own stack",
          all(" and " not in step.get("where", "") and "functions:" not in step.get("where", "") for step in path), path)
    words = text(what, hex(said["label"]))
    check("an address at the beginning", words.startswith(f"{said['label']:#x} is a live block of 21 bytes\n"), words)
    check("in words", "asked for by" in words and "shortest ways" in words and "shop::special_item" in words, words)
    check("--at", why(what, "--at", hex(said["label"]))["place"]["kind"] == "block")


AGING = """
#include <stdio.h>
#include <stdlib.h>
#include <tracealloc/snapshot.h>
void *volatile kept[8];
__attribute__((noinline)) void *early(void) { return malloc(1000); }
__attribute__((noinline)) void *late(void) { return malloc(2000); }
__attribute__((noinline)) void *always(void) { return malloc(3000); }
int main(int count, char **words)
{
    struct ta_record *record = ta_record_open(words[count - 1], 0);
    kept[0] = early();
    for (int i = 0; i < 5; i++) {
        if (i == 2) kept[1] = late();
        kept[3 + i] = always();
        if (i < 4 && (record == NULL || ta_record_append(record, "") != 0)) return 1;
    }
    kept[2] = malloc(4000);
    printf("early %p\\nlate %p\\nalways %p\\nlast %p\\nready\\n", kept[0], kept[1], kept[5], kept[2]);
    fflush(stdout);
    return getchar() == 0;
}
"""


def on_terminal(columns, what, *words):
    seen, _ = terminals.run([program, "why", *map(str, words), str(what)], columns, stdin=None, stderr=None,
                            env=dict(os.environ, NO_COLOR="1", TERM="xterm"))
    return seen.replace("\r\n", "\n")


def wrapped(pid, said):
    """What does not fit goes on below, and nothing is lost."""
    for name in said:
        piped, narrow = text(pid, hex(said[name])), on_terminal(66, pid, hex(said[name]))
        check(f"{name} on a terminal says the same", narrow.split() == piped.split(), narrow, piped)
        long = [line for line in narrow.splitlines() if len(line) > 66 and len(re.split(", |(?<=\\S)  ", line.strip())) > 1]
        check(f"{name} fits", long == [], long, narrow)


def ages(folder):
    """The program appends the entries itself, so that each block was asked for between known ones."""
    path, recording, other = (os.path.join(folder, name) for name in ("aging", "aging.ta", "other.ta"))
    with open(path + ".c", "w") as file:
        file.write(AGING)
    subprocess.run(["gcc", "-g", "-O0", "-I", os.path.join(here, "../../../include"), "-o", path, path + ".c", library,
                    "-Wl,-rpath," + os.path.dirname(library)], check=True)
    child, said = start(path, recording, stdin=subprocess.PIPE)
    times = {}
    for name in "early", "late", "always", "last":
        found = why(child.pid, hex(said[name]), "--history", recording)["age"]
        times[name] = (found.get("most_ns"), found["least_ns"])
        words = text(child.pid, hex(said[name]), "--history", recording)
        check(f"age of {name} in words", {"early": "when: more than", "late": " ago, 20", "always": "when: is not in",
                                          "last": "when: in the last"}[name] in words, words)
    check("asked for before the first entry", times["early"][0] is None and times["early"][1] > 0, times)
    check("asked for between two entries", times["late"][0] > times["late"][1] > 0, times)
    check("always some", times["always"] == (None, 0), times)
    check("asked for since", times["last"][0] > 0 and times["last"][1] == 0, times)
    hour = 3600 * 10**9
    check("no age is older than this test", all(0 <= age < hour for pair in times.values() for age in pair if age is not None), times)
    words = text(child.pid, hex(said["late"]), "--history", recording)
    ago = re.search(r"when: ([\d.]+) s to ([\d.]+) s ago", words)
    check("the same in words", ago is not None and float(ago[1]) <= float(ago[2]) < 3600, words)
    live = why(child.pid, hex(said["late"]), "--history", recording)["age"]["live_blocks"]
    check("how many live", f"  {live} block{'' if live == 1 else 's'} of this stack live{'s' if live == 1 else ''} now" in words, words)
    check("without a recording", "age" not in why(child.pid, hex(said["early"])))
    other_child, other_said = start(path, other, stdin=subprocess.PIPE)
    done = subprocess.run([program, "why", hex(other_said["early"]), str(other_child.pid), "--history", recording],
                          stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    check("of another process", done.returncode == 2 and f"is of process {child.pid}".encode() in done.stderr, done)
    done = subprocess.run([program, "why", hex(said["early"])], stderr=subprocess.PIPE)
    check("of which process", done.returncode == 2 and b"of which process" in done.stderr, done)
    child.kill()
    other_child.kill()


def core_of(child, folder):
    """gdb's core; None where gcore is not here, or may not."""
    if shutil.which("gcore") is None:
        return None
    subprocess.run(["gcore", "-o", os.path.join(folder, "core"), str(child.pid)], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    found = glob.glob(os.path.join(folder, "core.*"))
    return found[0] if found else None


def kernel_core_of(path, folder, how="crash"):
    """(the core's path, what the program said); None where the system puts cores elsewhere, or nowhere."""
    with open("/proc/sys/kernel/core_pattern") as file:
        pattern = file.read().strip()
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if pattern not in ("core", "core.%p") or 0 <= most < 1 << 30:
        return None
    child, said = start(path, how, cwd=folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (most, most)))
    child.communicate()
    found = glob.glob(os.path.join(folder, "core*"))
    return (found[0], said) if found else None


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pointing")
        if subprocess.run(["g++", "-g", "-O1", "-o", path, os.path.join(here, "pointing.cpp"), "-lpthread"]).returncode != 0:
            sys.exit(77)
        child, said = start(path)
        ask(child.pid, said)
        wrapped(child.pid, said)
        ages(folder)
        for number in "0", "9", "1009", "0x9", "017", "9223372036854775808", "0xffffffffffffffff":
            place = why(child.pid, number)["place"]
            check(f"address {number}", int(place["address"], 16) == (int(number, 8) if number == "017" else int(number, 0)) and
                  place["kind"] == "nothing", place)
        for wrong in "x", "12z", "0x", "", "+5", " 5", ":5", "/5", "99999999999999999999", "0x10000000000000000":
            done = subprocess.run([program, "why", wrong, str(child.pid)], stderr=subprocess.PIPE)
            check(f"address {wrong}", done.returncode == 2 and b"expected an address" in done.stderr, done.stderr)
        core = core_of(child, folder)
        if core is not None:
            ask(core, said)
            done = subprocess.run([program, "why", core], stderr=subprocess.PIPE)
            check("a core without a failure", done.returncode == 2 and b"did not fail at an address" in done.stderr, done)
            cut = core + ".cut"
            with open(core, "rb") as source, open(cut, "wb") as out:
                out.write(source.read(200000))
            done = subprocess.run([program, "why", hex(said["label"]), cut], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
            check("a core that is cut", done.returncode == 2 and done.stderr.startswith(b"tracealloc: "), done)
            os.remove(core)
            os.remove(cut)
        child.kill()
        child.communicate()
        crash = kernel_core_of(path, folder)
        if crash is not None:
            core, said = crash
            ask(core, said)
            fault = why(core)
            os.remove(core)
            aborted = kernel_core_of(path, folder, "abort")
            done = subprocess.run([program, "why", aborted[0]], stderr=subprocess.PIPE)
            check("ended without an address", done.returncode == 2 and b"was ended by SIGABRT" in done.stderr, done)
            check("where it failed", int(fault["place"]["address"], 16) == said["freed"] - 5 + (1 << 40) and
                  fault["place"]["kind"] == "nothing", fault)


main()
sys.exit(failures > 0)
