"""make_core.py: a small core for the fuzzer: of a program that runs under tracealloc, without what is zero or code.

    make_core.py LIBRARY OUT.core.zst           image.core.zst, the fuzzer's
    make_core.py LIBRARY OUT.core.zst rich      tests/golden/image.core.zst, which tests/unit/test_image_core.c asks

Run again when the library's tables or headers change; the result is committed. `rich` needs gdb: threads have their
registers then.
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

library, out = sys.argv[1:3]
IS_RICH = sys.argv[3:] == ["rich"]
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

# Threads, domains, circles, pointers into the middle, from the stack and from data; blocks of all sizes and alignments, given
# back by others; a header that was overwritten; what is older than the epoch.
RICH = """
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct node { struct node *next, *other; char *text; };
struct node *kept, *middle, *held_by_two[2];
void *slots[400], *old[5], *damaged[3];
__thread struct node *of_thread;
void ta_clear_traces(void) __attribute__((weak));
void ta_domain_push(uint32_t) __attribute__((weak));
void ta_domain_pop(void) __attribute__((weak));
int ta_domain_set_name(uint32_t, const char *) __attribute__((weak));
int ta_track(uint32_t, uintptr_t, size_t) __attribute__((weak));
int ta_start(int) __attribute__((weak));
void *plain[300];
#define KEEP(block) __asm__ volatile("" : "+r"(block))
#define APART __attribute__((noinline))
APART static struct node *make(size_t more) { struct node *n = calloc(1, sizeof *n + more); KEEP(n); return n; }
APART static struct node *lost_node(void) { struct node *n = make(1); KEEP(n); return n; }
APART static struct node *list(int length)
{
    struct node *first = NULL;
    for (int i = 0; i < length; i++) { struct node *n = lost_node(); n->next = first; n->text = strdup("a text"); first = n; }
    KEEP(first);
    return first;
}
APART static void circle(int length, size_t more)
{
    struct node *first = make(more), *at = first;
    for (int i = 1; i < length; i++) at = at->next = make(more);
    at->next = first;
    first->other = make(500);
    at->text = strdup("of the circle");
}
APART static void lose(void)
{
    list(3)->other = list(2);
    list(1);
    circle(1, 40);
    circle(3, 80);
    circle(4, 80);
    struct node *tree = make(3), *twice = make(4);
    tree->next = twice, tree->other = twice;
    twice->next = make(5);
}
APART static void churn(void)
{
    static const size_t sizes[] = {0, 1, 8, 24, 48, 100, 130, 500, 1000, 3000, 9000, 40000, 70000, 300000};
    for (int i = 0; i < 400; i++) slots[i] = malloc(sizes[i % 14 > 9 && i > 60 ? 3 : i % 14] + (size_t)(i % 5));
    for (int i = 0; i < 400; i += 3) { free(slots[i]); slots[i] = NULL; }
    for (int i = 1; i < 400; i += 30) slots[i] = realloc(slots[i], 77);
    for (int i = 0; i < 6; i++) slots[i * 3] = aligned_alloc((size_t)32 << 2 * i, 200);
    free(malloc(1 << 20));
}
APART static void clean(void) { volatile char room[20000]; memset((char *)room, 0, sizeof room); }
static pthread_barrier_t ready;
static void *thread(void *number)
{
    struct node *volatile on_stack = list(2);
    for (int i = 5 + (int)(intptr_t)number; i < 300; i += 8) { free(plain[i]); plain[i] = NULL; }
    of_thread = make(30);
    of_thread->next = make(31);
    for (int i = 300 + (int)(intptr_t)number; i < 400; i += 7) { free(slots[i]); slots[i] = malloc(60); }
    pthread_barrier_wait(&ready);
    for (;;) pause();
    return on_stack;
}
int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 300; i++) plain[i] = malloc(i % 3 ? 40 : 700 + (size_t)i);
    for (int i = 0; i < 300; i += 4) { free(plain[i]); plain[i] = NULL; }
    ta_start(8);
    for (int i = 0; i < 5; i++) old[i] = malloc(90);
    ta_clear_traces();
    for (int i = 0; i < 20; i++) { struct node *n = make(0); n->next = kept; kept = n; }
    middle = (struct node *)((char *)make(100) + 50);
    middle[-1].next = NULL;
    held_by_two[0] = make(10), held_by_two[1] = make(11);
    held_by_two[0]->next = held_by_two[1]->next = make(900);
    churn();
    ta_domain_set_name(7, "pool");
    ta_domain_push(7);
    for (int i = 0; i < 5; i++) old[i] = (i & 1) ? old[i] : malloc(200 + (size_t)i);
    ta_domain_pop();
    ta_track(9, 0x1000, 50);
    ta_track(9, (uintptr_t)kept, 24);
    for (int i = 0; i < 3; i++) damaged[i] = malloc(88);
    memset((char *)damaged[1] - 8, 'x', 8);
    lose();
    clean();
    pthread_barrier_init(&ready, NULL, 3);
    for (intptr_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, thread, (void *)i);
    pthread_barrier_wait(&ready);
    struct node *volatile on_stack = make(60);
    usleep(100000);
    if (write(1, "r", 1) != 1) return 1;
    for (;;) pause();
    return on_stack != NULL;
}
"""
SOURCE = RICH if IS_RICH else SOURCE
REGISTERS = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es fs "
             "gs").split()  # as struct user_regs_struct has them


def registers_of(pid):
    """The registers of each thread, the first one's first."""
    said = subprocess.run(["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "set debuginfod enabled off", "-ex",
                           "thread apply all -ascending info registers " + " ".join(REGISTERS)],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    threads = {}
    for line in said.split("\n"):
        thread = re.match(r"Thread \d+ .*LWP (\d+)", line)
        register = re.match(r"(\w+) +(0x[0-9a-f]+|-?\d+)\b", line)
        if thread:
            threads[int(thread.group(1))] = values = {}
        elif register and register.group(1) in REGISTERS:
            values[register.group(1)] = int(register.group(2), 0)
    return threads


def notes_of(pid, files):
    def note(kind, value):
        return struct.pack("<III", 5, len(value), kind) + b"CORE\0\0\0\0" + value + bytes(-len(value) % 4)

    statuses = b""
    for thread, values in (registers_of(pid) if IS_RICH else {pid: {}}).items():
        status = bytearray(336)
        struct.pack_into("<i", status, 32, thread)
        for i, name in enumerate(REGISTERS):
            struct.pack_into("<Q", status, 112 + 8 * i, values.get(name, 0) % (1 << 64))
        statuses += note(1, bytes(status))
    with open(f"/proc/{pid}/auxv", "rb") as file:
        auxiliary = file.read()
    names = b"".join(path.encode() + b"\0" for _, _, _, path in files)
    rows = b"".join(struct.pack("<QQQ", start, end, offset // PAGE) for start, end, offset, _ in files)
    mapped = struct.pack("<QQ", len(files), PAGE) + rows + names
    return statuses + note(6, auxiliary) + note(0x46494C45, mapped)


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
    subprocess.run(["gcc", "-O1", "-pthread", "-w", "-o", app, app + ".c"], check=True)
    shutil.copy(library, own)
    child = subprocess.Popen([app], env={"LD_PRELOAD": own, "TRACEALLOC": "0" if IS_RICH else "8",
                                         "TRACEALLOC_OPTIONS": "table_memory=64KiB"}, stdout=subprocess.PIPE, cwd=folder)
    child.stdout.read(1)
    write_core(child.pid, os.path.join(folder, "core"))
    child.kill()
    subprocess.run(["zstd", "-19", "-qf", os.path.join(folder, "core"), "-o", out], check=True)
