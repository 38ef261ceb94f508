"""make_core.py: a small core for the fuzzer: of a program that runs under tracealloc, without what is zero or code.

    make_core.py LIBRARY OUT.core.zst

Run again when the library's tables or headers change; the result is committed.
"""
import os
import shutil
import struct
import subprocess
import sys
import tempfile

library, out = sys.argv[1:3]
PAGE = 4096
SOURCE = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct node { struct node *next, *other; char *text; };
struct node *kept;
__attribute__((noinline)) static struct node *make(int i) { struct node *n = calloc(1, sizeof *n); n->text = strdup(i % 2 ? "odd" : "a longer text of an even one"); return n; }
int main(void)
{
    for (int i = 0; i < 60; i++) { struct node *n = make(i); n->next = kept; if (i % 7) kept = n; }
    struct node *a = make(1), *b = make(2); a->next = b; b->next = a; a = b = 0;
    void *volatile aligned = aligned_alloc(256, 700); memset(aligned, 1, 700);
    void *volatile large = calloc(1, 200000); memset(large, 2, 5000);
    for (int i = 0; i < 40; i++) free(malloc(100));
    free(kept->text); kept->text = 0;
    if (write(1, "r", 1) != 1) return 1;
    for (;;) pause();
}
"""


def notes_of(pid, files):
    def note(kind, value):
        return struct.pack("<III", 5, len(value), kind) + b"CORE\0\0\0\0" + value + bytes(-len(value) % 4)

    status = bytearray(336)
    struct.pack_into("<i", status, 32, pid)
    with open(f"/proc/{pid}/auxv", "rb") as file:
        auxiliary = file.read()
    names = b"".join(path.encode() + b"\0" for _, _, _, path in files)
    rows = b"".join(struct.pack("<QQQ", start, end, offset // PAGE) for start, end, offset, _ in files)
    mapped = struct.pack("<QQ", len(files), PAGE) + rows + names
    return note(1, bytes(status)) + note(6, auxiliary) + note(0x46494C45, mapped)


def forget_files(core, paths):
    """Other names and build ids for these files, of the same length: none is found on any machine, so that a question costs
    no reading of debug information and has the same answer everywhere."""
    for path in paths:
        with open(path, "rb") as file:
            content = file.read()
        at = content.find(struct.pack("<III4s", 4, 20, 3, b"GNU"))
        if at >= 0:
            identity = content[at + 16:at + 36]
            core = core.replace(identity, bytes(byte ^ 0xFF for byte in identity))
        core = core.replace(path.encode(), b"/gon" + path.encode()[4:])
    return core


def pages_of(pid):
    """[(address, bytes)] of the pages worth keeping, and the mapped files."""
    kept, files = [], []
    memory = open(f"/proc/{pid}/mem", "rb", 0)
    for line in open(f"/proc/{pid}/maps"):
        words = line.split()
        start, end = (int(part, 16) for part in words[0].split("-"))
        path = words[5] if len(words) > 5 else ""
        if path.startswith("/"):
            files.append((start, end, int(words[2], 16), "/app/" + os.path.basename(path)))
        if "r" not in words[1] or path in ("[vvar]", "[vsyscall]", "[vvar_vclock]"):
            continue
        is_data = "w" in words[1]
        if not is_data and not (int(words[2], 16) == 0 and path.startswith("/")):
            continue
        with open(f"/proc/{pid}/pagemap", "rb") as pagemap:
            pagemap.seek(start // PAGE * 8)
            entries = pagemap.read((end - start) // PAGE * 8)
        for i in range(0, (end - start) // PAGE if is_data else 1):
            present = struct.unpack_from("<Q", entries, i * 8)[0] >> 62
            if not present:
                continue
            memory.seek(start + i * PAGE)
            content = memory.read(PAGE)
            if content.strip(b"\0"):
                kept.append((start + i * PAGE, content))
    return kept, files


def write_core(pid, path):
    kept, files = pages_of(pid)
    ranges = [(int(a, 16), int(b, 16), rights) for a, b, rights in
              ((*line.split()[0].split("-"), line.split()[1]) for line in open(f"/proc/{pid}/maps"))]
    segments = []
    for start, end, rights in ranges:  # each mapping: runs of kept pages, and what lies between them without contents
        flags = (4 if "r" in rights else 0) | (2 if "w" in rights else 0) | (1 if "x" in rights else 0)
        at = start
        for address, content in [page for page in kept if start <= page[0] < end]:
            if address > at:
                segments.append((at, address, flags, b""))
            segments.append((address, address + PAGE, flags, content))
            at = address + PAGE
        if at < end:
            segments.append((at, end, flags, b""))
    joined = []
    for start, end, flags, content in segments:
        if joined and joined[-1][1] == start and joined[-1][2] == flags and bool(joined[-1][3]) == bool(content):
            joined[-1] = (joined[-1][0], end, flags, joined[-1][3] + content)
        else:
            joined.append((start, end, flags, content))
    notes = notes_of(pid, files)
    count = len(joined) + 1
    offset = 64 + 56 * count
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01" + bytes(9), 4, 62, 1, 0, 64, 0, 0, 64, 56, count, 64, 0, 0)
    table = struct.pack("<IIQQQQQQ", 4, 0, offset, 0, 0, len(notes), 0, 4)
    offset += len(notes)
    for start, end, flags, content in joined:
        table += struct.pack("<IIQQQQQQ", 1, flags, offset, start, 0, len(content), end - start, PAGE)
        offset += len(content)
    core = header + table + notes + b"".join(content for _, _, _, content in joined)
    links = [line.split()[5] for line in open(f"/proc/{pid}/maps") if "/lib" in line]
    with open(path, "wb") as file:
        file.write(forget_files(core, {name for link in links for name in (link, link.removeprefix("/usr"))}
                                | {"/lib64/ld-linux-x86-64.so.2"}))


with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    app, own = os.path.join(folder, "app"), os.path.join(folder, "libtracealloc.so")
    with open(app + ".c", "w") as file:
        file.write(SOURCE)
    subprocess.run(["gcc", "-O1", "-o", app, app + ".c"], check=True)
    shutil.copy(library, own)
    child = subprocess.Popen([app], env={"LD_PRELOAD": own, "TRACEALLOC": "8", "TRACEALLOC_OPTIONS": "table_memory=64KiB"},
                             stdout=subprocess.PIPE, cwd=folder)
    child.stdout.read(1)
    write_core(child.pid, os.path.join(folder, "core"))
    child.kill()
    subprocess.run(["zstd", "-19", "-qf", os.path.join(folder, "core"), "-o", out], check=True)
