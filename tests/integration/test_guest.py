#!/usr/bin/env python3
"""test_guest.py: the process that watches (docs/decisions/0011-keeper.md) is no burden for the program and its tools:
debuggers, containers, sandboxes, limits, parents that count their children.

Usage: test_guest.py TRACEALLOC LIBRARY CC [unittest arguments]."""
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

TRACEALLOC, LIBRARY, CC = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
del sys.argv[1:4]
os.environ.pop("LD_PRELOAD", None)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import other_users

PROGRAM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) void *ours(void) { void *volatile block = malloc(1000); return block; }
static void refuse(int number)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {4, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(77);
}
/* Nothing but what glibc's malloc calls, and an end: whoever calls more is killed. */
static void confine(void)
{
    static const int allowed[] = {SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_brk, SYS_madvise, SYS_futex,
                                  SYS_rt_sigprocmask, SYS_wait4, SYS_exit_group};
    enum { COUNT = sizeof allowed / sizeof *allowed };
    struct sock_filter filter[2 * COUNT + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < COUNT; i++) {
        filter[2 * i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        filter[2 * i + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[2 * COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL);
    struct sock_fprog program = {2 * COUNT + 2, filter};
#ifdef PR_SET_TSC
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
#endif
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(77);
}
static void confined(void)
{
    static void *volatile kept[200];
    unsigned seed = 1;
    struct timespec now;
    free(ours()); /* what it begins with */
    confine();
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now); /* in memory, or this system is of no use here */
    for (int i = 0; i < 20000; i++) {
        void *volatile *at = &kept[(seed = seed * 1103515245u + 12345u) >> 16 & 127];
        size_t size = i % 50 == 0 ? (seed >> 9) % 4000000 : (seed >> 9) % 9000;
        if (*at == NULL) *at = i % 3 == 0 ? calloc(1, size) : i % 7 == 0 ? aligned_alloc(64, size) : malloc(size);
        else if (i % 2 == 0) *at = realloc(*at, size + 1);
        else { free(*at); *at = NULL; }
    }
    free(malloc((size_t)1 << 46));
    for (int i = 0; i < 100; i++) ours();
    exit(3);
}
static void end(const char *how)
{
    if (strcmp(how, "segv") == 0) *(volatile int *)16 = 1;
    if (strcmp(how, "term") == 0) kill(getpid(), SIGTERM);
    exit(3);
}
int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "refused") == 0) { /* NUMBER… -- PROGRAM */
        for (argv += 2; strcmp(*argv, "--") != 0; argv++) refuse(atoi(*argv));
        execv(argv[1], argv + 1);
        return 126;
    }
    if (strcmp(argv[1], "clone") == 0) { /* behind libc's back */
        int status;
        pid_t child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (child == 0) { for (int i = 0; i < 100; i++) ours(); end(argv[2]); }
        waitpid(child, &status, 0);
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    if (strcmp(argv[1], "confined") == 0) confined();
    if (strcmp(argv[1], "alone") == 0) { /* how many threads it has; 0: that is not told */
        char line[200];
        int threads = 0;
        FILE *file = fopen("/proc/self/status", "r");
        while (file != NULL && fgets(line, sizeof line, file) != NULL) sscanf(line, "Threads: %d", &threads);
        return threads;
    }
    if (strcmp(argv[1], "children") == 0) { /* of a process that has the orphans too */
        int count = 0;
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        for (int i = 0; i < 5; i++) if (fork() == 0) { ours(); if (i & 1) exit(0); _exit(0); }
        while (wait(NULL) > 0) count++;
        printf("%d children\n", count);
        return 0;
    }
    if (strcmp(argv[1], "tracer") == 0) { /* until there is nobody, of whatever kind */
        int status, count = 0, way = atoi(argv[3]);
        for (int i = 0; i < 100; i++) ours();
        if (fork() == 0) _exit(5);
        alarm(60);
        while ((way == 0 ? wait4(-1, &status, __WALL, NULL) : waitpid(-1, &status, way == 1 ? __WALL : __WCLONE)) > 0) count++;
        if (way != 2 && count != 1) exit(99);
        end(argv[2]);
    }
    for (int i = 0; i < 100; i++) ours();
    if (strcmp(argv[1], "ignored") == 0) { signal(SIGTERM, SIG_IGN); kill(getpid(), SIGTERM); }
    end(argv[1]);
}
"""


def numbers_of(*names):
    text = "#include <sys/syscall.h>\n" + "\n".join(f"SYS_{name}" for name in names)
    done = subprocess.run([CC, "-E", "-P", "-"], input=text.encode(), stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().split()[-len(names):]


def is_possible(*command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


# Functions of a program's own by names that libc has, too, but not standard C: the library means libc's.
OWN_NAMES = ("accept4 access bind clone close connect dup fcntl fdatasync flock fstat fsync ftruncate futex geteuid getpid getppid "
             "getrlimit getrusage getsockopt gettid ioctl listen lseek lstat madvise mincore mkdir mmap_all mprotect nanosleep on_exit open "
             "openat poll prctl pread process_vm_readv read readlink recvmsg sched_getscheduler sched_setscheduler send sendmsg "
             "setsid setsockopt shutdown sigaltstack sigpending sigtimedwait sleep socket stat syscall sysconf sysinfo uname "
             "unlink usleep write").split()
OWN_PROGRAM = "#define OWN(name) int name(void) { called(#name); return -1; }\n" \
    "int puts(const char *); void *malloc(unsigned long); void free(void *); int fork(void); int wait(int *); void exit(int);\n" \
    "static void called(const char *name) { puts(name); }\n" + "".join(f"OWN({name})\n" for name in OWN_NAMES) + """
__attribute__((noinline)) void *ours(void) { void *volatile block = malloc(1000); return block; }
int main(void) { for (int i = 0; i < 100; i++) ours(); if (fork() == 0) exit(0); wait(0); return 3; }
"""
UNSHARE = ["unshare", "-Urpf"] if os.getuid() else ["unshare", "-pf"]


class Guest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        os.environ["TRACEALLOC_LIBRARY"] = other_users.open_to_all(cls.folder, LIBRARY)
        os.chmod(cls.folder, 0o777)
        os.chdir(cls.folder)
        with open("program.c", "w") as file:
            file.write(PROGRAM)
        subprocess.run([CC, "-g", "-O1", "-w", "-o", "program", "program.c"], check=True)

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        shutil.rmtree(cls.folder)

    def tearDown(self):
        for name in glob.glob("x.*"):
            if os.path.isdir(name):
                shutil.rmtree(name)
            else:
                os.unlink(name)

    def run_it(self, *command, before=(), options=()):
        return subprocess.run([*before, TRACEALLOC, "run", "-o", "x.ta", *options, *command], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, text=True, timeout=300)

    def facts(self, name):
        done = subprocess.run([TRACEALLOC, "info", name, "--csv"], stdout=subprocess.PIPE, check=True, text=True)
        return dict(line.split(",", 1) for line in done.stdout.splitlines())

    def ours(self, name):
        done = subprocess.run([TRACEALLOC, "top", name, "--by", "function", "--csv", "-n", "0"], stdout=subprocess.PIPE,
                              check=True, text=True)
        rows = [line for line in done.stdout.splitlines() if "ours" in line]
        return rows[0] if rows else ""

    def assert_has_ours(self, name):
        self.assertIn("100000", self.ours(name))

    def recordings(self):
        return sorted(glob.glob("x.ta*") + glob.glob("x.run/*.ta*"))

    def test_an_unknown_clone_has_a_recording_of_its_own(self):
        for how, status, reason in (("exit", 3, "exit"), ("segv", 128 + signal.SIGSEGV, "end")):
            self.assertEqual(self.run_it("./program", "clone", how).returncode, status)
            names = self.recordings()
            self.assertEqual(len(names), 2, names)
            self.assertEqual(sorted(self.facts(name)["reason"] for name in names), sorted(["exit", reason]))
            self.assert_has_ours([name for name in names if name != "x.ta"][0])
            self.tearDown()

    @unittest.skipUnless(is_possible(*UNSHARE, "true"), "no namespaces of processes here")
    def test_with_its_namespace_everybody_ends(self):
        """The init of a namespace takes all others of it along: the last entry is taken before."""
        for how in ("segv", "exit"):
            self.run_it(*UNSHARE, "./program", how)
            names = [name for name in self.recordings() if self.ours(name)]
            self.assertEqual(len(names), 1, self.recordings())
            self.assert_has_ours(names[0])
            self.assertEqual(self.facts(names[0])["reason"], "end" if how == "segv" else "exit")
            self.tearDown()

    @unittest.skipUnless(is_possible(*UNSHARE, "true"), "no namespaces of processes here")
    def test_a_process_beside_init_ends_by_a_signal(self):
        for how in ("segv", "term", "ignored"):
            self.run_it(*UNSHARE, "sh", "-c", f"./program {how}; exit 5")
            names = [name for name in self.recordings() if self.ours(name)]
            self.assertEqual(len(names), 1, (how, self.recordings()))
            self.assert_has_ours(names[0])
            self.tearDown()

    @unittest.skipUnless(is_possible(*UNSHARE, "true"), "no namespaces of processes here")
    def test_run_is_init(self):
        dead = "while grep -qs '^State:.Z' /proc/[0-9]*/status; do sleep 0.05; done"
        done = self.run_it("sh", "-c", f"(./program exit &); (./program exit &); ./program exit; {dead}; exit 4",
                           before=[*UNSHARE, "--mount-proc"])
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertGreaterEqual(len([name for name in self.recordings() if self.ours(name)]), 1)

    def test_filters_of_system_calls(self):
        """Without close_range all is as ever; without processes and threads what can be caught is."""
        close_range, clone, clone3, futex_waitv = numbers_of("close_range", "clone", "clone3", "futex_waitv")
        for refused in ((close_range,), (futex_waitv,)):
            self.assertEqual(self.run_it("./program", "segv", before=["./program", "refused", *refused, "--"]).returncode,
                             -signal.SIGSEGV)
            self.assert_has_ours("x.ta")
            self.tearDown()
        for how, status in (("segv", -signal.SIGSEGV), ("term", -signal.SIGTERM), ("exit", 3)):
            done = self.run_it("./program", "refused", clone, clone3, "--", "./program", how)
            self.assertEqual(done.returncode, status)
            self.assert_has_ours("x.ta")
            self.assertIn("could not be started", done.stderr)
            self.assertIn("could not be started", self.facts("x.ta")["missing"])
            if how == "segv":
                self.assertEqual(self.facts("x.ta")["crash.signal"], "SIGSEGV")
            self.tearDown()

    def test_nothing_is_called_that_malloc_would_not(self):
        """In every mode a program may forbid itself all but that, and reading the time stamp counter."""
        if subprocess.run(["./program", "confined"], check=False).returncode != 3:
            self.skipTest("no filters of system calls here, or they are not enough for malloc")
        done = subprocess.run(["./program", "confined"], env={**os.environ, "LD_PRELOAD": os.environ["TRACEALLOC_LIBRARY"]},
                              check=False)
        self.assertEqual(done.returncode, 3)
        if self.run_it("./program", "alone").returncode != 1 or "missing" in self.facts("x.ta"):
            self.skipTest("no process that watches here: the program itself has to write its last entry")
        self.tearDown()
        for options in ((), ("--nframe=1",), ("--sample=64K",), ("--stopped",)):
            self.assertEqual(self.run_it("./program", "confined", options=options).returncode, 3, options)
            if options == ():
                self.assert_has_ours("x.ta")
            self.tearDown()

    def test_who_waits_for_children_of_every_kind_is_left_alone(self):
        """strace waits until there are none, and would wait for the process that watches, which waits for its end."""
        for way in "012":
            for how, status in (("exit", 3), ("segv", -signal.SIGSEGV), ("term", -signal.SIGTERM)):
                self.assertEqual(self.run_it("./program", "tracer", how, way).returncode, status, (how, way))
                self.assert_has_ours("x.ta")
                if self.facts("x.ta").get("missing") is not None:
                    self.assertIn("children of every kind", self.facts("x.ta")["missing"])
                self.tearDown()

    def test_functions_of_the_program_are_not_taken_for_libcs(self):
        """lzop has a `sysinfo` that prints; it was called before main, with nothing that it could print to."""
        with open("own.c", "w") as file:
            file.write(OWN_PROGRAM)
        subprocess.run([CC, "-g", "-O1", "-w", "-fno-builtin", "-rdynamic", "-o", "own", "own.c"], check=True)
        done = self.run_it("./own")
        self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)
        self.assert_has_ours("x.ta")
        for mode in ("", "65535"):
            alone = subprocess.run(["./own"], env={**os.environ, "LD_PRELOAD": os.environ["TRACEALLOC_LIBRARY"], "TRACEALLOC": mode},
                                   stdout=subprocess.PIPE, check=False)
            self.assertEqual((alone.returncode, alone.stdout), (3, b""), mode)

    def test_filters_of_waiting(self):
        """Whether the process that watches has ended is told without asking for it."""
        waitid, wait4 = numbers_of("waitid", "wait4")
        for refused in ((waitid,), (waitid, wait4)):
            done = self.run_it("./program", "refused", *refused, "--", "./program", "exit")
            if done.returncode == 77:
                self.skipTest("no filters of system calls here")
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assert_has_ours("x.ta")
            self.assertEqual(self.facts("x.ta")["reason"], "exit")
            self.tearDown()

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("setpriv") and shutil.which("prlimit"), "only root can become somebody else")
    def test_few_processes_are_left_to_the_program(self):
        """What the user may start is the program's."""
        command = f"exec prlimit --nproc=8 setpriv --reuid {60000 + os.getpid() % 5000} --regid 65534 --clear-groups " \
                  "sh -c './program exit; ./program segv; sleep 0.01 & sleep 0.01 & sleep 0.01 & wait; exit 6'"
        done = self.run_it("sh", "-c", command)
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertNotIn("fork", done.stderr)
        self.assertIn("ulimit -u", done.stderr)
        self.assertEqual(len([name for name in self.recordings() if self.ours(name)]), 2)

    def test_nobody_has_children_that_are_not_its_own(self):
        for _ in range(5):
            done = self.run_it("./program", "children")
            self.assertEqual(done.stdout, "5 children\n")

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_debuggers_see_one_thread(self):
        done = self.run_it("gdb", "-q", "-nx", "-batch", "-ex", "break ours", "-ex", "run", "-ex", "info threads",
                           "-ex", "delete", "-ex", "continue", "-ex", "kill", "--args", "./program", "segv")
        self.assertNotIn("New Thread", done.stdout)
        self.assertIn("SIGSEGV", done.stdout)
        self.assertEqual(len([line for line in done.stdout.splitlines() if "LWP" in line]), 1, done.stdout)
        names = [name for name in self.recordings() if self.ours(name)]
        self.assertEqual(len(names), 1, done.stdout)
        self.assert_has_ours(names[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
