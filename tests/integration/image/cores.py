"""cores.py: the same process in all forms in which one may have it: alive, without a pause, in a container, as a core of gdb
and of the kernel, packed by gzip, zstd and lz4, cut short, with memory left out, and of a library that is not known.

    cores.py TRACEALLOC LIBRARY SUBJECT

SUBJECT says its blocks, "+ADDRESS SIZE" and "-ADDRESS SIZE" (freed), and waits for the end of its input.
"""
import glob
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

program, library, subject = map(os.path.abspath, sys.argv[1:4])
failures = 0


def check(what, is_right, *values):
    global failures
    if not is_right:
        failures += 1
        print("WRONG", what, *[str(value)[:700] for value in values])


def tracealloc(*words):
    done = subprocess.run([program, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def start(command=(), what="list", **more):
    environment = dict(os.environ, LD_PRELOAD=library, TRACEALLOC="20", TRACEALLOC_OPTIONS="output=own.ta,max_contexts=1024,table_memory=64KiB")
    if command:
        environment.pop("LD_PRELOAD")
    child = subprocess.Popen([*command, subject, what], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)
    blocks = {}
    for line in child.stdout:
        if line == b"ready\n":
            break
        if line.startswith(b"+"):
            address, size = line[1:].split()
            blocks[int(address, 16)] = int(size)
    return child, blocks


def compare(what, image, blocks, *words):
    """Every block of the program is in the image, with its size and its stack; what take says on standard error."""
    out = os.path.join(os.getcwd(), re.sub(r"\W+", "-", what) + ".ta")
    status, _, errors = tracealloc("take", image, "-o", out, *words)
    check(f"{what}: take", status == 0, errors)
    if status != 0:
        return errors
    rows = json.loads(tracealloc("biggest", out, "--blocks", "-n", "0", "--json")[1])
    found = {int(row["address"], 16): (row["size"], "main" in row["stack"]) for row in rows}
    check(f"{what}: blocks", {at: found.get(at) for at in blocks} == {at: (size, True) for at, size in blocks.items()},
          [(hex(at), size, found.get(at)) for at, size in blocks.items() if found.get(at) != (size, True)][:5])
    return errors


def packed(core, blocks):
    for name, command, packer in (("core.gz", ["gzip", "-1kc"], "gzip"), ("core.zst", ["zstd", "-1qc"], "zstd"),
                                  ("core.lz4", ["lz4", "-1qc"], "lz4"), ("linked.lz4", ["lz4", "-9qcBD", "-B4"], "lz4"),
                                  ("stored.lz4", ["lz4", "-1qc", "-B7", "--content-size"], "lz4")):
        if not shutil.which(packer):
            print(f"{packer} is not here")
            continue
        with open(name, "wb") as file:
            subprocess.run([*command, core], stdout=file, check=True)
        compare(f"packed {name}", name, blocks)
        with open(name, "rb") as file:
            whole = file.read()
        with open("cut-" + name, "wb") as file:
            file.write(whole[:len(whole) * 2 // 3])
        status, _, errors = tracealloc("take", "cut-" + name, "-o", "x.ta")
        check(f"{name}, cut: it is said", ("incomplete" in errors or status == 2) and errors.startswith("tracealloc: "), status, errors)
        damaged = bytearray(whole)
        damaged[len(damaged) // 2:len(damaged) // 2 + 64] = os.urandom(64)
        with open("bad-" + name, "wb") as file:
            file.write(damaged)
        status, _, errors = tracealloc("take", "bad-" + name, "-o", "x.ta")
        check(f"{name}, damaged: no crash", status in (0, 2), status, errors)
        for left in name, "cut-" + name, "bad-" + name:
            os.remove(left)


def incomplete(core):
    shutil.copy(core, "cut")
    os.truncate("cut", os.path.getsize("cut") * 3 // 4)
    status, _, errors = tracealloc("take", "cut", "-o", "x.ta")
    check("a core that is cut", "incomplete" in errors or "tracealloc: " in errors, status, errors)
    with open(core, "rb") as file:
        content = bytearray(file.read())
    at = content.find(b"tracealloc\0\0")  # the note's owner; its value is the root's distance, and the version
    found = 0
    while at >= 0:
        if content[at - 4:at] == (0x54410001).to_bytes(4, "little"):
            content[at + 12 + 8:at + 12 + 12] = (77).to_bytes(4, "little")
            found += 1
        at = content.find(b"tracealloc\0\0", at + 1)
    check("the core has the library's note", found > 0)
    if found:
        with open("other", "wb") as file:
            file.write(content)
        status, _, errors = tracealloc("take", "other", "-o", "x.ta")
        check("another version", status == 2 and "version 77" in errors and "knows version" in errors, status, errors)
        os.remove("other")
    headers, count = int.from_bytes(content[32:40], "little"), int.from_bytes(content[56:58], "little")
    for at in range(headers, headers + 56 * count, 56):
        if content[at:at + 4] == (4).to_bytes(4, "little"):  # PT_NOTE
            content[at + 32:at + 40] = (1 << 40).to_bytes(8, "little")
    with open("other", "wb") as file:
        file.write(content)
    status, _, errors = tracealloc("take", "other", "-o", "x.ta")
    check("notes without end", status == 2 and "bytes of notes" in errors, status, errors)
    os.remove("other")
    os.remove("cut")


def let_dump():
    """For a child: a core of up to a GiB, where the system lets it have one."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 30 if hard == resource.RLIM_INFINITY else min(hard, 1 << 30), hard))


def dumped_by_kernel(folder):
    """A core of the kernel's, whole and without anonymous memory."""
    with open("/proc/sys/kernel/core_pattern") as file:
        if file.read().strip() not in ("core", "core.%p"):
            print("cores of the kernel go elsewhere")
            return
    for filtered in (False, True):
        child, blocks = start(cwd=folder, preexec_fn=let_dump)
        if filtered:
            with open(f"/proc/{child.pid}/coredump_filter", "w") as file:
                file.write("0x10")
        child.send_signal(signal.SIGABRT)
        child.wait()
        cores = glob.glob(os.path.join(folder, "core*"))
        check("the kernel left a core", len(cores) == 1, cores)
        if filtered:
            status, _, errors = tracealloc("take", cores[0], "-o", "x.ta")
            check("memory left out is said", "left out" in errors or status == 2, status, errors)
        else:
            errors = compare("the kernel's core", cores[0], blocks)
            check("nothing is missing from it", errors == "", errors)
            with open(os.path.join(folder, "x.json"), "w") as out:
                out.write(tracealloc("memory", cores[0], "--json")[1])
        for core in cores:
            os.remove(core)


def in_a_container(folder):
    """Another mount namespace, where the library has a path that is nobody's outside; another namespace of processes."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        print("no namespaces: not root")
        return
    inner = os.path.join(folder, "inner")
    os.mkdir(inner)
    script = (f"mount -t tmpfs none {inner} && cp {library} {inner}/hidden.so && "
              f"LD_PRELOAD={inner}/hidden.so exec {subject} list")
    child, blocks = start(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script, "--"], cwd=folder)
    if not blocks:
        print("no namespaces here")
        return
    with open(f"/proc/{child.pid}/task/{child.pid}/children") as file:
        pid = file.read().split()[0]
    compare("in a container", pid, blocks)
    said = json.loads(tracealloc("leaks", pid, "--json")[1])
    check("leaks in a container", said[0]["process"] == int(pid) and said[0]["held_ns"] > 0, said)
    child.stdin.close()
    child.wait()


def dead_stack():
    """What stands below the stack pointer of the first thread points to nothing, in a core as in the process."""
    child, _ = start(what="dead")
    subprocess.run(["gcore", "-o", "dead", str(child.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for image in child.pid, f"dead.{child.pid}":
        said = json.loads(tracealloc("leaks", image, "--json")[1])
        check(f"a lost block in {image}", said[0]["direct_bytes"] >= 123457, said)
    child.stdin.close()
    check("the program with the dead stack goes on", child.wait() == 0)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        child, blocks = start()
        other, others = start()
        check("blocks of the program", len(blocks) > 3000)
        check("alive: without a word", compare("alive", child.pid, blocks) == "")
        compare("without a pause", child.pid, blocks, "--no-pause")
        status, text, errors = tracealloc("take", child.pid, other.pid, "-o", "of-%p.ta", "--json")
        check("a family", status == 0 and [row["process"] for row in json.loads(text)] == [child.pid, other.pid], errors)
        check("a family: a file each", all(os.path.exists(f"of-{pid}.ta") for pid in (child.pid, other.pid)), os.listdir())
        check("no blocks where none are wanted", tracealloc("take", child.pid, "-o", "none.ta", "--no-blocks")[0] == 0 and
              tracealloc("biggest", "none.ta", "--blocks")[0] == 2)
        if shutil.which("gcore"):
            subprocess.run(["gcore", "-o", "core", str(child.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            core = f"core.{child.pid}"
            check("gdb left a core", os.path.exists(core))
            compare("gdb's core", core, blocks)
            packed(core, blocks)
            incomplete(core)
            dead_stack()
        for one in child, other:
            one.stdin.close()
            check("the program goes on to its end", one.wait() == 0)
        kernel = os.path.join(folder, "kernel")
        os.mkdir(kernel)
        dumped_by_kernel(kernel)
        in_a_container(folder)


main()
sys.exit(failures > 0)
