"""test_ends.py: however a process ends, the last entry of its recording is what lived at its last moment.

    test_ends.py TRACEALLOC LIBRARY CC CXX KILLS [TEST …]

The programs keep the truth themselves, in a page of a file: how many bytes and blocks of theirs live. They allocate from
functions named `ours`, and write the page after each call, so that one block may be on its way when they are killed.
"""
import glob
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

TRACEALLOC, LIBRARY, CC, CXX = [os.path.abspath(name) for name in sys.argv[1:3]] + sys.argv[3:5]
KILLS = int(sys.argv[5])
del sys.argv[1:6]
os.environ.pop("LD_PRELOAD", None)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import other_users

PROGRAM = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __cplusplus
#include <stdexcept>
#include <thread>
#define EXTERN extern "C"
#else
#define EXTERN
#endif
struct truth { int64_t bytes, blocks, largest, pid; };
static struct truth *truth;
EXTERN __attribute__((noinline)) void *ours(size_t size) { void *volatile block = malloc(size); return block; }
/* How deep blocks are asked for. More than 0: the file is to grow, which many stacks do; and the program rests. */
static unsigned deepest;
static void *asked(unsigned depth, size_t size)
{
    void *volatile block = depth > 0 ? asked(depth - 1, size) : ours(size);
    return block;
}
static void work(unsigned rounds, unsigned seed)
{
    enum { KEPT = 500 };
    static __thread struct { void *block; size_t size; } kept[KEPT];
    for (unsigned i = 0; i != rounds; i++) {
        seed = seed * 1103515245u + 12345u;
        unsigned slot = (seed >> 16) % KEPT;
        if (deepest > 0 && i % 100 == 0) usleep(1000);
        if (kept[slot].block != NULL) {
            free(kept[slot].block);
            __atomic_fetch_sub(&truth->bytes, (int64_t)kept[slot].size, __ATOMIC_SEQ_CST);
            __atomic_fetch_sub(&truth->blocks, 1, __ATOMIC_SEQ_CST);
            kept[slot].block = NULL;
        } else {
            kept[slot].size = 1 + (seed >> 8) % 2000;
            kept[slot].block = asked(seed >> 4 & deepest, kept[slot].size);
            __atomic_fetch_add(&truth->bytes, (int64_t)kept[slot].size, __ATOMIC_SEQ_CST);
            __atomic_fetch_add(&truth->blocks, 1, __ATOMIC_SEQ_CST);
        }
    }
}
static int end(const char *how, char **argv)
{
    if (strcmp(how, "segv") == 0) *(volatile int *)16 = 1;
    if (strcmp(how, "fpe") == 0) { volatile int zero = 0; return 7 / zero; }
    if (strcmp(how, "ill") == 0) __builtin_trap();
    if (strcmp(how, "bus") == 0) raise(SIGBUS);
    if (strcmp(how, "trap") == 0) raise(SIGTRAP);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
    if (strcmp(how, "term") == 0) kill(getpid(), SIGTERM);
    if (strcmp(how, "alrm") == 0) kill(getpid(), SIGALRM);
    if (strcmp(how, "_exit") == 0) _exit(3);
    if (strcmp(how, "syscall") == 0) syscall(SYS_exit_group, 4);
    if (strcmp(how, "exec") == 0) execlp("true", "true", (char *)NULL);
    if (strcmp(how, "overflow") == 0) { volatile char frame[4096]; frame[0] = 1; return end(how, argv) + frame[0]; }
#ifdef __cplusplus
    if (strcmp(how, "throw") == 0) throw std::runtime_error("nobody catches this");
#endif
    return 0;
}
int main(int argc, char **argv)
{
    int file = open(argv[1], O_RDWR);
    truth = (struct truth *)mmap(NULL, sizeof *truth, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    truth->pid = getpid();
    (void)argc;
#ifdef __cplusplus
    std::thread other(work, 30000u, 7u);
    work(30000, 1);
    other.join();
#else
    if (strcmp(argv[2], "slowly") == 0) deepest = 127;
    work(deepest > 0 || strcmp(argv[2], "never") == 0 ? 0xffffffffu : 30000, 1);
#endif
    return end(argv[2], argv);
}
"""
ENDS = {"return": 0, "segv": -signal.SIGSEGV, "fpe": -signal.SIGFPE, "ill": -signal.SIGILL, "bus": -signal.SIGBUS,
        "trap": -signal.SIGTRAP, "abort": -signal.SIGABRT, "kill": -signal.SIGKILL, "term": -signal.SIGTERM,
        "alrm": -signal.SIGALRM, "_exit": 3, "syscall": 4, "exec": 0, "overflow": -signal.SIGSEGV}


NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")


def is_waited_for(names):
    """Somebody waits for the lock of one of the files."""
    numbers = {str(os.stat(name).st_ino) for name in names}
    with open("/proc/locks", encoding="ascii") as file:
        return any(line.split()[1] == "->" and line.split()[6].split(":")[2] in numbers for line in file)


def children_of(process):
    with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
        return [int(number) for number in file.read().split()]


class Ends(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        os.environ["TRACEALLOC_LIBRARY"] = other_users.open_to_all(cls.folder, LIBRARY)
        os.chdir(cls.folder)
        for name, compiler, more in (("program.c", CC, ()), ("program.cpp", CXX, ("-pthread",))):
            with open(name, "w") as file:
                file.write(PROGRAM)
            subprocess.run([compiler, "-g", "-O1", "-w", *more, "-o", name.replace(".", "_"), name], check=True)

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        shutil.rmtree(cls.folder)

    def setUp(self):
        with open("truth", "wb") as file:
            file.write(bytes(32))

    def tearDown(self):
        for name in glob.glob("*.ta*"):
            os.unlink(name)
        for name in glob.glob("*.run"):
            shutil.rmtree(name)

    def truth(self):
        with open("truth", "rb") as file:
            return struct.unpack("4q", file.read(32))

    def recorded(self, name):
        done = subprocess.run([TRACEALLOC, "top", name, "--by", "function", "--json", "-n", "1000"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for row in json.loads(done.stdout):
            if row["key"] == "ours":
                return row["size"], row["count"]
        return 0, 0

    def assert_whole(self, name):
        done = subprocess.run([TRACEALLOC, "check", name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def assert_exact(self, program, how, status):
        done = subprocess.run([TRACEALLOC, "run", "-q", "-o", "x.ta", program, "truth", how], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, status, (program, how))
        name = "x.ta.1" if how == "exec" else "x.ta"
        self.assert_whole(name)
        size, count, _, _ = self.truth()
        self.assertGreater(count, 100)
        self.assertEqual(self.recorded(name), (size, count), (program, how))
        for left in glob.glob("x.ta*"):
            os.unlink(left)

    def test_c_ends(self):
        for how, status in ENDS.items():
            self.setUp()
            self.assert_exact("./program_c", how, status)

    def test_cpp_threads_end(self):
        for how, status in {"throw": -signal.SIGABRT, **ENDS}.items():
            self.setUp()
            self.assert_exact("./program_cpp", how, status)

    def test_the_core_is_of_the_fault(self):
        """The status says that a core was dumped (or would have been) exactly as without us."""
        def status_of(*command):
            child = os.posix_spawnp(command[0], command, os.environ)
            return os.waitpid(child, 0)[1]
        for how in ("segv", "abort"):
            plain = status_of("./program_c", "truth", how)
            inner = f"import os, sys; p = os.posix_spawn('./program_c', ['program_c', 'truth', '{how}'], os.environ); " \
                    "print(os.waitpid(p, 0)[1])"
            done = subprocess.run([TRACEALLOC, "run", "-q", "-o", "x.ta", sys.executable, "-c", inner],
                                  stdout=subprocess.PIPE, check=True)
            self.assertEqual(int(done.stdout), plain, how)

    def test_faults_are_described(self):
        """Where it happened, which block the address belongs to, who asked for that block."""
        with open("fault.c", "w") as file:
            file.write("""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
struct node { struct node *next; };
__attribute__((noinline)) char *ask_for(size_t size) { char *volatile block = malloc(size); return block; }
__attribute__((noinline)) void touch(char *place) { *(volatile char *)place = 1; }
__attribute__((noinline)) void use(struct node *node) { node->next->next = NULL; }
__attribute__((noinline)) int fall(int deep) { volatile char room[1000]; room[0] = deep; return fall(deep + 1) + room[0]; }
int main(int argc, char **argv)
{
    if (strcmp(argv[1], "locked") == 0) {
        char *block = ask_for(1 << 20);
        uintptr_t page = ((uintptr_t)block + 8191) & ~(uintptr_t)4095;
        mprotect((void *)page, 4096, PROT_READ);
        touch((char *)page + 5);
    }
    struct node *node = (struct node *)ask_for(40);
    node->next = (struct node *)0x12345678000;
    if (strcmp(argv[1], "freed") == 0) free(node);
    if (strcmp(argv[1], "deep") == 0) return fall(0);
    use(node);
    return argc;
}
""")
        subprocess.run([CC, "-g", "-O1", "-w", "-fno-builtin", "-o", "fault", "fault.c"], check=True)
        for how, patterns, words in (
                ("locked", {"crash.access": "write", "crash.frame.0": "fault.c:.* touch", "crash.frame.1": "fault.c:.* main",
                            "crash.block": r"^[0-9]+ bytes into a live block of 1048576 bytes$",
                            "crash.block.frame.0": "fault.c:.* ask_for"},
                 [": write to 0x", "in touch (", "into a live block of 1048576 bytes, asked for in ask_for ("]),
                ("live", {"crash.frame.0": "use", "crash.register.0": "0 bytes into a live block of 40 bytes",
                          "crash.register.0.frame.0": "ask_for"}, ["nothing is there, in use ("]),
                ("deep", {"crash.cause": "^the stack is full$", "crash.access": "write", "crash.frame.0": "fault.c:.* fall",
                          "crash.frame.9": "fault.c:.* fall"}, ["the stack is full, in fall ("]),
                ("freed", {"crash.frame.0": "use", "crash.register.0": "freed memory, a place for 4[08] bytes"}, ["in use ("])):
            done = subprocess.run([TRACEALLOC, "run", "-o", "x.ta", "./fault", how], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, check=False, text=True)
            self.assertEqual(done.returncode, -signal.SIGSEGV)
            for wanted in words:
                self.assertIn(wanted, done.stderr)
            info = subprocess.run([TRACEALLOC, "info", "x.ta", "--csv"], stdout=subprocess.PIPE, check=True, text=True).stdout
            facts = dict(line.split(",", 1) for line in info.splitlines())
            for key, pattern in patterns.items():
                self.assertRegex(facts.get(key, ""), pattern, (how, key))
            top = subprocess.run([TRACEALLOC, "top", "x.ta"], stdout=subprocess.PIPE, check=True, text=True).stdout
            self.assertIn("ended by SIGSEGV: ", top)

    def test_the_place_of_a_fault_is_a_line_of_ones_own(self):
        """What is inlined from a library's header is named, and then who called it."""
        with open("use.cpp", "w") as file:
            file.write("#include <memory>\n#include <vector>\nstruct Session { std::vector<char> buffer; };\n"
                       "__attribute__((noinline)) void serve(std::unique_ptr<Session> &one)\n{\n    one->buffer[2] = 1;\n}\n"
                       "int main() { std::unique_ptr<Session> none; serve(none); }\n")
        subprocess.run([CXX, "-g", "-O1", "-w", "-o", "use", "use.cpp"], check=True)
        done = subprocess.run([TRACEALLOC, "run", "-o", "x.ta", "./use"], stderr=subprocess.PIPE, check=False, text=True)
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        self.assertRegex(done.stderr, r"in std::vector<char>::operator\[\] < serve \([^ ]*use\.cpp:6\)\n")

    def test_a_program_tests_its_memory_when_it_crashes(self):
        """As redis does, which neither blocks the signal meanwhile nor catches it any more: patterns go into all that is
        mapped, ours too, and stay a while; what was there is put back before the end."""
        with open("tests.c", "w") as file:
            file.write("""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { PIECE = 1 << 20, REGIONS = 1000 };
static struct { int64_t bytes, blocks, tested, its; } *truth; /* pieces that were tested; those of the library */
static char keeper[64];
__attribute__((noinline)) void *ours(size_t size) { void *volatile block = malloc(size); return block; }
static size_t load(const char *path, char *text, size_t room)
{
    size_t length = 0;
    int file = open(path, O_RDONLY);
    for (ssize_t got; (got = read(file, text + length, room - 1 - length)) > 0;)
        length += (size_t)got;
    close(file);
    text[length] = 0;
    return length;
}
static __attribute__((noinline)) void test(unsigned char *at, size_t length, unsigned us)
{
    static const unsigned char patterns[] = {0, 0xff, 0xaa};
    unsigned char kept[PIECE];
    memcpy(kept, at, length);
    for (int i = 0; i < 3; i++) {
        memset(at, patterns[i], length);
        usleep(us);
    }
    memcpy(at, kept, length);
    truth->tested++;
}
static void on_fault(int number, siginfo_t *info, void *context)
{
    char maps[200000];
    struct { unsigned char *start; size_t length; int is_its; } regions[REGIONS];
    int count = 0, is_its = 0; /* the library's variables */
    for (int tries = 0; tries < 10000; tries++) { /* until it has seen us here, and waits */
        load(keeper, maps, sizeof maps);
        if (strncmp(maps, "202 ", 4) == 0)
            break;
        usleep(1000);
    }
    load("/proc/self/maps", maps, sizeof maps);
    for (char *line = maps, *end; (end = strchr(line, 10)) != NULL && count < REGIONS; line = end + 1) {
        *end = 0;
        char *dash, *rights;
        unsigned long start = strtoul(line, &dash, 16), behind = strtoul(dash + 1, &rights, 16);
        /* Not what the kernel reads of this thread whenever another one has had the processor (rseq): that is the end. */
        int is_the_threads = start <= (unsigned long)&errno && (unsigned long)&errno < behind;
        if (strncmp(rights, " rw-p", 5) == 0 && strstr(rights, " 00:00 ") != NULL && strstr(rights, "[stack]") == NULL &&
            !is_the_threads)
            regions[count].start = (unsigned char *)start, regions[count].length = behind - start, regions[count++].is_its = is_its;
        is_its = strstr(rights, "/libtracealloc") != NULL;
    }
    for (int i = 0; i < count; i++) {
        test(regions[i].start, regions[i].length < PIECE ? regions[i].length : PIECE, regions[i].is_its ? 600000 : 2000);
        truth->its += regions[i].is_its;
    }
    raise(number);
    (void)info, (void)context;
}
int main(int argc, char **argv)
{
    char children[64], path[64];
    truth = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open(argv[1], O_RDWR), 0);
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    load(path, children, sizeof children);
    snprintf(keeper, sizeof keeper, "/proc/%ld/syscall", strtol(children, NULL, 10));
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESETHAND};
    sigaction(SIGSEGV, &action, NULL);
    for (int i = 1; i <= 500; i++) {
        ours(100);
        truth->bytes += 100, truth->blocks++;
        usleep(i % 50 == 0 ? 3000 : 0);
    }
    while (access("x.ta", F_OK) != 0) /* until the series has an entry: its tables are tested, too */
        usleep(10000);
    *(volatile int *)16 = 1;
    return argc;
}
""")
        subprocess.run([CC, "-g", "-O1", "-w", "-o", "tests", "tests.c"], check=True)
        with open("truth", "wb") as file:
            file.write(bytes(4096))
        done = subprocess.run([TRACEALLOC, "run", "-q", "-o", "x.ta", "./tests", "truth"], stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, -signal.SIGSEGV, done.stderr)
        size, blocks, tested, its = self.truth()
        self.assertEqual(blocks, 500)
        self.assertGreaterEqual(its, 1)
        self.assertGreater(tested, its)  # how many there are depends on which of them stand side by side
        self.assertGreater(len(self.entries("x.ta")), 1)
        self.assert_whole("x.ta")
        self.assertEqual(self.recorded("x.ta"), (size, blocks))
        info = subprocess.run([TRACEALLOC, "info", "x.ta", "--csv"], stdout=subprocess.PIPE, check=True, text=True).stdout
        self.assertIn("\nreason,end\n", info)

    @unittest.skipUnless(KILLS >= 100, "label long")
    def test_when_memory_runs_out_the_last_entry_is_fresh(self):
        """The kernel kills who shares the memory, too. Within 2 % of growth (and a block on its way) or a quarter of a
        second; ten times as much where the machine has something else to do."""
        group = "/sys/fs/cgroup/memory/tracealloc-test" if os.path.isdir("/sys/fs/cgroup/memory") else \
                "/sys/fs/cgroup/tracealloc-test"
        limit = "memory.limit_in_bytes" if "/memory/" in group else "memory.max"
        try:
            os.makedirs(group, exist_ok=True)
            with open(os.path.join(group, limit), "w") as file:
                file.write(str(60 << 20))
        except OSError:
            self.skipTest("no cgroup for memory here")
        with open("grow.c", "w") as file:
            file.write("""
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) void *ours(size_t size) { void *volatile block = malloc(size); return memset(block, 1, size); }
int main(int argc, char **argv)
{
    struct { int64_t bytes, time_ns; } *truth;
    truth = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open(argv[1], O_RDWR), 0);
    for (;;) {
        struct timespec now;
        ours(3000);
        truth->bytes += 3000;
        clock_gettime(CLOCK_REALTIME, &now);
        truth->time_ns = now.tv_sec * 1000000000 + now.tv_nsec;
        if (truth->bytes % (argc > 2 ? 30000 : 300000) == 0) usleep(1000);
    }
}
""")
        subprocess.run([CC, "-g", "-O1", "-w", "-o", "grow", "grow.c"], check=True)
        late = 0
        for turn in range(10):
            with open("truth", "wb") as file:
                file.write(bytes(4096))
            done = subprocess.run(["sh", "-c", f"echo $$ >{group}/cgroup.procs; exec \"$@\"", "sh", TRACEALLOC, "run", "-o",
                                   "x.ta", "./grow", "truth", *(["slowly"] if turn & 1 else [])], stderr=subprocess.PIPE,
                                  check=False, text=True)
            self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
            self.assert_whole("x.ta")
            size, time_ns, _, _ = self.truth()
            had, last = self.recorded("x.ta")[0], int(self.entries("x.ta")[-1]["time_ns"])
            if size != had:
                self.assertIn("killed together with", done.stderr)
            behind, age = size - had, (time_ns - last) / 1e9
            self.assertTrue(behind <= had * 0.2 + 640000 or age <= 2.5, (behind, had, age))
            late += not (behind <= had * 0.02 + 67000 or age <= 0.25)
            os.unlink("x.ta")
        os.rmdir(group)
        self.assertLess(late, 4)

    def test_killed_at_any_moment(self):
        """Within one block, which may be on its way; every entry before is whole."""
        chance = random.Random(1)
        for kill in range(KILLS):
            self.setUp()
            with subprocess.Popen([TRACEALLOC, "run", "-q", "-o", "x.ta", "./program_c", "truth", "never"]) as running:
                while self.truth()[3] == 0 or self.truth()[1] < 50:
                    time.sleep(0.001)
                time.sleep(chance.random() * 0.4)
                os.kill(self.truth()[3], signal.SIGKILL)
            self.assertEqual(running.returncode, -signal.SIGKILL)
            self.assert_whole("x.ta")
            size, count, _, _ = self.truth()
            had = self.recorded("x.ta")
            self.assertLessEqual(abs(had[1] - count), 1, (kill, had, count))
            self.assertLessEqual(abs(had[0] - size), 2000, (kill, had, size))
            os.unlink("x.ta")

    def test_ended_while_new_stacks_are_met(self):
        """A thread that had the lock of the tables is gone: who watches takes the last entry all the same."""
        with open("stacks.c", "w") as file:
            file.write("""
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static __thread unsigned state;
static unsigned chance(void)
{
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return state;
}
#define WAY(name) __attribute__((noinline)) void name(int depth) { go_on(depth); __asm__ volatile(""); }
void one(int depth), other(int depth), third(int depth);
static inline void go_on(int depth)
{
    void *volatile block = depth == 0 ? malloc(8) : NULL;
    unsigned way = chance() % 3;
    free(block);
    if (depth > 0)
        way == 0 ? one(depth - 1) : way == 1 ? other(depth - 1) : third(depth - 1);
}
WAY(one) WAY(other) WAY(third)
static void *meet(void *seed)
{
    for (state = (unsigned)getpid() * 7919u + (unsigned)(size_t)seed;;)
        one(30);
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    for (size_t i = 1; i < 5; i++)
        pthread_create(&thread, NULL, meet, (void *)i);
    usleep(20000 + getpid() % 20000);
    if (strcmp(argv[1], "exec") == 0)
        execlp("true", "true", (char *)NULL);
    kill(getpid(), atoi(argv[1]));
    pause();
}
""")
        subprocess.run([CC, "-g", "-O1", "-fno-optimize-sibling-calls", "-w", "-o", "stacks", "stacks.c", "-pthread"], check=True)
        for how in [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, "exec"] * 4:
            done = subprocess.run([TRACEALLOC, "run", "-o", "x.ta", "./stacks", str(int(how) if how != "exec" else how)],
                                  stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(done.returncode, 0 if how == "exec" else -how, done.stderr)
            self.assertIn("recording", done.stderr)
            for name in ["x.ta", "x.ta.1"] if how == "exec" else ["x.ta"]:
                self.assert_whole(name)
                os.unlink(name)

    def entries(self, name):
        done = subprocess.run([TRACEALLOC, "list", name, "--csv"], stdout=subprocess.PIPE, check=True, text=True)
        return [dict(zip(("entry", "time_ns"), line.split(","))) for line in done.stdout.splitlines()[1:]]

    def file(self):
        """Size and number of x.ta, which has no name for a moment when another program is executed."""
        try:
            status = os.stat("x.ta")
        except FileNotFoundError:
            return 0, 0
        return status.st_size, status.st_ino

    def until_thinned(self, running, times):
        """A long file has been replaced, so often."""
        former = self.file()
        while times > 0:
            time.sleep(0.01)
            self.assertIsNone(running.poll(), (former, os.listdir(".")))
            now = self.file()
            self.assertLess(now[0], 140000)
            if now[1] != former[1] and former[0] > 32768:
                times -= 1
            former = now

    def run_thinned(self, *before, also=lambda running: None, preload="", output="x.ta"):
        environment = {**os.environ, "TRACEALLOC_OPTIONS": "file_limit=64KiB,interval=0.01", "LD_PRELOAD": preload}
        with subprocess.Popen([TRACEALLOC, "run", "-q", "-o", output, *before, "./program_c", "truth", "slowly"],
                              env=environment) as running:
            also(running)
            self.until_thinned(running, 2)
            os.kill(self.truth()[3], signal.SIGKILL)
        self.assertEqual(running.returncode, -signal.SIGKILL)

    def test_a_file_with_a_limit_is_exact_and_has_its_beginning(self):
        self.run_thinned()
        self.assert_whole("x.ta")
        size, count, _, _ = self.truth()
        had = self.recorded("x.ta")
        self.assertLessEqual(abs(had[1] - count), 1)
        self.assertLessEqual(abs(had[0] - size), 2000)
        times = [int(row["time_ns"]) for row in self.entries("x.ta")]
        self.assertEqual(times, sorted(times))
        gaps = [b - a for a, b in zip(times, times[1:])]
        self.assertGreater(max(gaps[:-1]), 4 * sorted(gaps)[len(gaps) // 2])
        self.assertEqual(glob.glob("*.tmp"), [])

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("setpriv"), "only root can become somebody else")
    def test_the_file_of_one_who_gave_up_root_is_thinned_by_run(self):
        os.chmod("truth", 0o666)
        self.run_thinned(*NOBODY)
        self.assert_whole("x.ta")
        self.assertLessEqual(abs(self.recorded("x.ta")[1] - self.truth()[1]), 1)
        self.assertEqual(glob.glob("*.tmp"), [])

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("setpriv"), "only root can become somebody else")
    def test_run_thins_in_a_folder_behind_a_link(self):
        """The process knows the file by the name that the kernel has for it, `run` by the one that was given."""
        os.chmod(self.folder, 0o755)
        os.chmod("truth", 0o666)
        os.symlink(".", "link")
        try:
            self.run_thinned(*NOBODY, output="link/x.ta")
        finally:
            os.unlink("link")
        self.assert_whole("x.ta")
        self.assertLessEqual(abs(self.recorded("x.ta")[1] - self.truth()[1]), 1)

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("setpriv"), "only root can become somebody else")
    def test_run_is_stopped_while_it_gives_a_file_its_name(self):
        """In front of its lock and behind it. Who watches the program does not wait for ever, and what `run` does when it
        goes on is what it takes it for."""
        with open("stop.c", "w") as file:
            file.write("""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
static void stop(void)
{
    static int stopped;
    if (strcmp(program_invocation_short_name, "tracealloc") == 0 && access("stop", F_OK) == 0 && !stopped++) {
        close(open("stopped", O_CREAT | O_WRONLY, 0666));
        raise(SIGSTOP);
    }
}
#ifdef AT_LOCK
int flock(int file, int how)
{
    stop();
    return ((int (*)(int, int))dlsym(RTLD_NEXT, "flock"))(file, how);
}
#else
int renameat2(int base, const char *from, int other, const char *to, unsigned flags)
{
    if (strstr(from, ".tmp") != NULL)
        stop();
    return ((int (*)(int, const char *, int, const char *, unsigned))dlsym(RTLD_NEXT, "renameat2"))(base, from, other, to, flags);
}
#endif
""")

        def stop_and_go_on(running):
            self.until_thinned(running, 1)
            open("stop", "w").close()
            while not os.path.exists("stopped"):
                time.sleep(0.01)
                self.assertIsNone(running.poll())
            size = self.file()[0]
            while self.file()[0] == size and not is_waited_for(glob.glob("*.tmp")):
                time.sleep(0.01)
            os.kill(running.pid, signal.SIGCONT)

        for place in ("-DAT_LOCK", "-DAT_NAME"):
            self.setUp()
            os.chmod("truth", 0o666)
            subprocess.run([CC, "-w", "-shared", "-fPIC", place, "-o", "stop.so", "stop.c", "-ldl"], check=True)
            self.run_thinned(*NOBODY, also=stop_and_go_on, preload=os.path.abspath("stop.so"))
            self.assert_whole("x.ta")
            self.assertLessEqual(abs(self.recorded("x.ta")[1] - self.truth()[1]), 1, place)
            self.assertEqual(glob.glob("*.tmp"), [])
            for name in ("stop", "stopped", *glob.glob("x.ta*")):
                os.unlink(name)

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("setpriv"), "only root can become somebody else")
    def test_programs_that_follow_each_other_without_rights_keep_their_files(self):
        """All want the same name in a folder where none of them may make a file, most of them at once."""
        environment = {**os.environ, "TRACEALLOC_OPTIONS": "interval=0.01"}
        wanted = ["./program_c truth return", "sh -c exec ./program_c truth return",
                  "sh -c exec sh -c 'exec ./program_c truth return'"]
        for _ in range(5):
            self.setUp()
            os.chmod("truth", 0o666)
            subprocess.run([TRACEALLOC, "run", "-q", "-o", "x.ta", *NOBODY, *wanted[2].split(" ", 2)], env=environment,
                           check=True)
            texts = {name: subprocess.run([TRACEALLOC, "info", name, "--csv"], stdout=subprocess.PIPE, check=True, text=True).stdout
                     for name in sorted(glob.glob("x.ta*"))}
            found = [line.split(",", 1)[1] for text in texts.values() for line in text.splitlines()
                     if line.startswith("process.command,")]
            self.assertEqual(sorted(found[:1]), wanted[:1], texts)
            self.assertEqual(len(found), 4, found)
            self.assertTrue(set(wanted) < set(found), found)
            self.assertEqual(self.recorded("x.ta"), self.truth()[:2])
            self.tearDown()

    def test_who_watches_is_killed_and_then_the_program_crashes(self):
        """What could not be recorded is said."""
        with open("waits.c", "w") as file:
            file.write("""
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    char byte;
    void *volatile block = malloc(100000);
    write(1, "ready\\n", 6);
    read(0, &byte, 1);
    signal(SIGSEGV, SIG_DFL); /* and nobody else is asked */
    raise(SIGSEGV);
    return block == NULL;
}
""")
        subprocess.run([CC, "-g", "-O1", "-w", "-o", "waits", "waits.c"], check=True)
        with subprocess.Popen([TRACEALLOC, "run", "-o", "x.ta", "./waits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env={**os.environ, "TRACEALLOC_OPTIONS": "interval=0.01"}) as running:
            self.assertEqual(running.stdout.readline(), "ready\n")
            process = children_of(running.pid)[0]
            while subprocess.run([TRACEALLOC, "check", "x.ta"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 check=False).returncode != 0:
                time.sleep(0.01)
            for keeper in children_of(process):
                os.kill(keeper, signal.SIGKILL)
            _, said = running.communicate("x")
        self.assertEqual(running.returncode, -signal.SIGSEGV, said)
        self.assertRegex(said, r"\ntracealloc: ended by SIGSEGV while what it held could not be read: the last entry is "
                               r"[0-9.]+ s old\n")

    def test_run_itself_is_killed_and_the_program_goes_on(self):
        with subprocess.Popen([TRACEALLOC, "run", "-q", "-o", "x.ta", "./program_c", "truth", "never"]) as running:
            while self.truth()[3] == 0 or self.truth()[1] < 50:
                time.sleep(0.001)
            running.kill()
        process = self.truth()[3]
        before = self.truth()[0]
        while self.truth()[0] == before:
            time.sleep(0.001)
        os.kill(process, signal.SIGKILL)
        info = b""
        while b"\nreason,end\n" not in info:
            time.sleep(0.01)
            info = subprocess.run([TRACEALLOC, "info", "x.ta", "--csv"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  check=False).stdout
        self.assertLessEqual(abs(self.recorded("x.ta")[1] - self.truth()[1]), 1)

    def test_who_goes_on_after_the_run_is_listed_with_its_last_entry(self):
        with subprocess.Popen([TRACEALLOC, "run", "-q", "-o", "x.ta", "sh", "-c", "./program_c truth never & read line"],
                              stdin=subprocess.PIPE) as running:
            while self.truth()[3] == 0 or self.truth()[1] < 50:
                time.sleep(0.001)
            running.communicate(b"\n")
        process = self.truth()[3]
        os.kill(process, signal.SIGTERM)
        name, info = f"x.run/{process}.ta", b""
        while b"\nreason,end\n" not in info:
            time.sleep(0.01)
            info = subprocess.run([TRACEALLOC, "info", name, "--csv"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  check=False).stdout
        listed = subprocess.run([TRACEALLOC, "list", "x.run", "--json"], stdout=subprocess.PIPE, check=True)
        self.assertEqual([row["reason"] for row in json.loads(listed.stdout) if row["process"] == process], ["end"])

    def test_who_goes_on_after_the_run_and_has_no_recording_yet_leaves_one(self):
        """As a server's workers do, which sleep from the beginning: the folder is made again for them."""
        with open("sleeps.c", "w") as file:
            file.write("#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(void) { FILE *file = fopen(\"pid\", \"w\"); "
                       "pid_t child = fork(); if (child == 0) { free(malloc(100)); pause(); } fprintf(file, \"%d\", (int)child); "
                       "return fclose(file); }\n")
        subprocess.run([CC, "-w", "-o", "sleeps", "sleeps.c"], check=True)
        subprocess.run([TRACEALLOC, "run", "-q", "-o", "x.ta", "./sleeps"], check=True)
        process = int(open("pid").read())
        shutil.rmtree("x.run", ignore_errors=True)  # as run does when it ends before the child has told that it is there
        time.sleep(0.5)
        os.kill(process, signal.SIGKILL)
        for _ in range(500):
            if os.path.exists(f"x.run/{process}.ta"):
                break
            time.sleep(0.02)
        self.assertTrue(os.path.exists(f"x.run/{process}.ta"), os.listdir("."))

    def test_pipelines_and_make(self):
        with open("Makefile", "w") as file:
            file.write("all: a b c d\na b c d:\n\t@cp truth truth.$@; ./program_c truth.$@ return; true\n")
        done = subprocess.run([TRACEALLOC, "run", "-q", "-o", "x.ta", "sh", "-c", "make -s -j2 | sort | cat"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        files = {name: subprocess.run([TRACEALLOC, "info", name, "--csv"], stdout=subprocess.PIPE, check=True).stdout.decode()
                 for name in glob.glob("x.ta*") + glob.glob("x.run/*.ta*")}
        commands = [line.split(",", 1)[1] for text in files.values() for line in text.splitlines()
                    if line.startswith("process.command,")]
        for wanted in ("make -s -j2", "sort", "cat", "./program_c truth.a return", "./program_c truth.d return"):
            self.assertIn(wanted, commands)
        runs = {line for text in files.values() for line in text.splitlines() if line.startswith("run,")}
        self.assertEqual(len(runs), 1)

    @unittest.skipUnless(os.getuid() == 0 and subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "test", "-w", "/proc/sys/kernel/ns_last_pid"], check=False).returncode == 0,
                         "numbers of processes cannot be chosen here")
    def test_processes_of_one_number_have_a_recording_each(self):
        """Numbers come again in a long run."""
        script = "for i in 1 2 3; do echo 3000 >/proc/sys/kernel/ns_last_pid; /bin/echo $i >said; done"
        subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", TRACEALLOC, "run", "-q", "-o", "x.ta", "sh", "-c", script],
                       check=True)
        listed = subprocess.run([TRACEALLOC, "list", "x.run", "--json"], stdout=subprocess.PIPE, check=True)
        rows = [(row["process"], row["command"].strip(), os.path.basename(row["file"])) for row in json.loads(listed.stdout)
                if row["command"].strip().startswith("/bin/echo")]
        self.assertEqual(sorted(rows), [(3001, "/bin/echo 1", "3001.ta"), (3001, "/bin/echo 2", "3001.ta.1"),
                                        (3001, "/bin/echo 3", "3001.ta.2")])
        for _, command, name in rows:
            info = subprocess.run([TRACEALLOC, "info", "x.run/" + name, "--csv"], stdout=subprocess.PIPE, check=True, text=True)
            self.assertIn(f"process.command,{command}\n", info.stdout)

    def test_many_short_children(self):
        count = 10000 if KILLS >= 100 else 300
        done = subprocess.run([TRACEALLOC, "run", "-o", "x.ta", "sh", "-c",
                               f"i=0; while [ $i -lt {count} ]; do /bin/true; i=$((i+1)); done"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, b""))
        self.assertIn(f"and {count} of other processes".encode(), done.stderr)
        listed = subprocess.run([TRACEALLOC, "list", "x.run", "--json"], stdout=subprocess.PIPE, check=True)
        ends = [(row["end"], row["reason"]) for row in json.loads(listed.stdout) if row["command"].strip() == "/bin/true"]
        self.assertEqual(ends, [("0", "exit")] * count)
        summed = subprocess.run([TRACEALLOC, "info", "x.run", "--csv"], stdout=subprocess.PIPE, check=True).stdout
        self.assertIn(f"processes={count + 1}".encode(), summed)


if __name__ == "__main__":
    unittest.main(verbosity=2)
