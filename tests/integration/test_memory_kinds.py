#!/usr/bin/env python3
"""test_memory_kinds.py: an entry says what a process has besides malloc, and who asked for it; the sizes are those of the
kernel. With a program that says what it does, and with python3's pools.

Usage: test_memory_kinds.py TRACEALLOC LIBRARY CC [unittest arguments]."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TRACEALLOC, LIBRARY, CC = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
del sys.argv[1:4]
for name in ("LD_PRELOAD", "PYTHONMALLOC"):
    os.environ.pop(name, None)
os.environ["TRACEALLOC_LIBRARY"] = LIBRARY
MIB = 1 << 20

PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { MIB = 1 << 20 };
static pthread_barrier_t barrier;
__attribute__((noinline)) char *make_pool(size_t size)
{
    char *volatile pool = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memset(pool, 1, size);
}
static void *use_stack(void *unused)
{
    volatile char room[3 * MIB];
    for (size_t i = 0; i < sizeof room; i += 4096)
        room[i] = 1;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}
int main(int argc, char **argv)
{
    pthread_t threads[4];
    char *kept = memset(malloc(5 * MIB), 1, 5 * MIB);
    char *pool = make_pool(40 * MIB), *grown = make_pool(8 * MIB);
    grown = mremap(grown, 8 * MIB, 16 * MIB, MREMAP_MAYMOVE);
    memset(grown, 1, 16 * MIB);
    munmap(mmap(NULL, 30 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 30 * MIB);
    munmap(pool, 10 * MIB);
    char *shared = mmap(NULL, 6 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(shared, 1, 6 * MIB);
    mmap(NULL, (size_t)1 << 36, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char path[] = "data.XXXXXX";
    int file = mkstemp(path);
    for (int i = 0; i < 7; i++)
        if (write(file, kept, MIB) != MIB)
            return 1;
    volatile char *data = mmap(NULL, 7 * MIB, PROT_READ, MAP_PRIVATE, file, 0);
    unsigned sum = 0;
    for (int i = 0; i < 7 * MIB; i += 4096)
        sum += (unsigned)data[i];
    pthread_barrier_init(&barrier, NULL, 5);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, use_stack, NULL);
    pthread_barrier_wait(&barrier);
    if (argc > 1)
        abort();
    pthread_barrier_wait(&barrier);
    return (int)(sum & 0) + (kept == pool);
}
"""


class Kinds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        os.chdir(cls.folder)
        with open("program.c", "w") as file:
            file.write(PROGRAM)
        subprocess.run([CC, "-g", "-O1", "-w", "-pthread", "-o", "program", "program.c"], check=True)

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        shutil.rmtree(cls.folder)

    def run_it(self, *command):
        done = subprocess.run([TRACEALLOC, "run", "-o", "x.ta", *command], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, check=False, text=True)
        info = subprocess.run([TRACEALLOC, "info", "x.ta", "--json"], stdout=subprocess.PIPE, check=True, text=True).stdout
        return done.stderr, {row["name"]: row["value"] for row in json.loads(info)}

    def bytes_of(self, facts, key):
        return int(facts[key].split("(")[1].split()[0]) if key in facts else 0

    def assert_kind(self, facts, kind, least, most=None):
        had = self.bytes_of(facts, f"memory.kind.{kind}")
        self.assertGreaterEqual(had, least, kind)
        self.assertLessEqual(had, least * 1.03 + MIB if most is None else most, kind)

    def test_kinds_are_what_the_program_did(self):
        words, facts = self.run_it("./program", "abort")
        self.assert_kind(facts, "malloc", 5 * MIB)
        self.assert_kind(facts, "mapped", 46 * MIB)
        self.assert_kind(facts, "stacks", 12 * MIB)
        self.assert_kind(facts, "shared", 6 * MIB)
        self.assert_kind(facts, "files", 7 * MIB)
        self.assert_kind(facts, "libraries", 1, 20 * MIB)
        whole = sum(self.bytes_of(facts, key) for key in facts if key.startswith("memory.kind."))
        self.assertAlmostEqual(whole / self.bytes_of(facts, "memory.resident"), 1, delta=0.02)
        self.assertLess(self.bytes_of(facts, "memory.size.mapped"), 60 * MIB)
        self.assertGreater(self.bytes_of(facts, "memory.size.stacks"), 30 * MIB)
        for wanted in ("mapped by make_pool", "program.c:", "stacks", "shared memory", "mapped files"):
            self.assertIn(wanted, words)
        self.assertIn("make_pool", facts["memory.site.0.frame.0"])

    def test_listings_say_where_the_rest_is(self):
        self.run_it("./program", "abort")
        top = subprocess.run([TRACEALLOC, "top", "x.ta"], stdout=subprocess.PIPE, check=True, text=True).stdout
        self.assertIn("mapped by make_pool", top)

    def test_every_entry_has_sizes(self):
        self.run_it("./program")
        entries = subprocess.run([TRACEALLOC, "list", "x.ta", "--csv"], stdout=subprocess.PIPE, check=True).stdout
        for entry in range(len(entries.splitlines()) - 1):
            info = subprocess.run([TRACEALLOC, "info", f"x.ta@{entry}", "--csv"], stdout=subprocess.PIPE, check=True).stdout
            for key in (b"memory.resident,", b"memory.anonymous,", b"memory.file,", b"faults.minor,", b"memory.size.stacks,"):
                self.assertIn(key, info)

    def test_pools_of_python_are_named(self):
        script = "d = [str(i) for i in range(1000000)]"
        words, _ = self.run_it(sys.executable, "-c", script)
        self.assertIn("mapped by", words)
        self.assertIn("PYTHONMALLOC=malloc", words)
        os.environ["PYTHONMALLOC"] = "malloc"
        words, _ = self.run_it(sys.executable, "-c", script)
        del os.environ["PYTHONMALLOC"]
        self.assertNotIn("PYTHONMALLOC", words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
