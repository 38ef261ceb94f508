"""test_run.py: tracealloc run passes everything through, and refuses what it cannot trace.

    test_run.py TRACEALLOC LIBRARY
"""
import glob
import json
import os
import resource
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import terminal as terminals  # noqa: E402

TRACEALLOC, LIBRARY = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
os.environ.pop("LD_PRELOAD", None)
os.environ["TRACEALLOC_LIBRARY"] = LIBRARY

LEAK = """
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) static void *leak(size_t size) { return malloc(size); }
__attribute__((noinline)) static void churn(void)
{
    for (int i = 1; i <= 20; i++) { void *volatile block = malloc((size_t)i << 20); usleep(20000); free(block); }
}
static int work(int argc, char **argv)
{
    for (int i = 0; i < 90; i++) { void *volatile p = leak(1000); (void)p; }
    if (strcmp(argv[1], "drop") == 0) return setgid(65534) != 0 || setuid(65534) != 0;
    if (strcmp(argv[1], "chroot") == 0) return chroot(argv[2]) != 0 || chdir("/") != 0;
    if (strcmp(argv[1], "close") == 0) { for (int i = 0; i < 1024; i++) close(i); return 0; }
    if (strcmp(argv[1], "exec") == 0) execv(argv[2], argv + 2);
    if (strcmp(argv[1], "raise") == 0) raise(atoi(argv[2]));
    if (strcmp(argv[1], "vfork") == 0) { if (vfork() == 0) _exit(0); return 0; }
    if (strcmp(argv[1], "quick_exit") == 0) quick_exit(6);
    if (strcmp(argv[1], "churn") == 0) churn();
    if (strcmp(argv[1], "daemon") == 0) {
        if (daemon(1, 1) == 0)
            for (int i = 0; argc > 2 && i < 100000 && access(argv[2], F_OK) != 0; i++) usleep(1000);
        return 0;
    }
    if (strcmp(argv[1], "workers") == 0) {
        for (int i = 0; i < 2; i++)
            if (fork() == 0) {
                for (int j = 0; j < 900; j++) { void *volatile p = leak(1000); (void)p; }
                if (i == 1) return setgid(65534) != 0 || setuid(65534) != 0;
                _exit(0);
            }
        while (wait(NULL) > 0) {}
    }
    return 0;
}
int main(int argc, char **argv)
{
    for (int i = 0; i < 10; i++) { void *volatile p = leak(1000); (void)p; }
    if (argc > 1 && strcmp(argv[1], "spawn") == 0) { printf("%d\\n", system(argv[2])); return 0; }
    if (argc > 1 && strcmp(argv[1], "wait") == 0) { puts("ready"); fflush(stdout); for (;;) pause(); }
    if (argc > 1 && strcmp(argv[1], "_exit") == 0) _exit(3);
    return argc > 1 && atoi(argv[1]) == 0 ? work(argc, argv) : argc > 1 ? atoi(argv[1]) : 0;
}
"""
HANDLERS = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void handle(int number) { (void)number; printf(" handled "); }
int main(int argc, char **argv)
{
    struct sigaction action, former;
    void *volatile block = malloc(1000);
    (void)block, (void)argc;
    memset(&action, 1, sizeof action);
    sigaction(SIGTERM, NULL, &action);
    printf("%d", action.sa_handler == SIG_DFL && action.sa_flags == 0);
    printf("%d", signal(SIGTERM, handle) == SIG_DFL);
    raise(SIGTERM);
    printf("%d", signal(SIGTERM, SIG_DFL) == handle);
    printf("%d", signal(SIGTERM, SIG_IGN) == SIG_DFL);
    raise(SIGTERM);
    action.sa_handler = SIG_DFL;
    sigaction(SIGTERM, &action, &former);
    printf("%d", former.sa_handler == SIG_IGN);
    sigaction(SIGTERM, NULL, &former);
    printf("%d\\n", former.sa_handler == SIG_DFL);
    fflush(stdout);
    if (strcmp(argv[1], "vfork") != 0) raise(SIGTERM);
    if (vfork() == 0) { raise(SIGTERM); _exit(1); }
    return 0;
}
"""
# What a program may do with the signal that takes a snapshot; the same with and without us.
TAKEN = """
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static sigjmp_buf back;
static volatile int count, level, deepest;
static void jump(int number) { (void)number; count++; siglongjmp(back, 1); }
static void nest(int number)
{
    count++;
    level++;
    if (level > deepest) deepest = level;
    if (count < 5) raise(number);
    level--;
}
static void chained(int number) { (void)number; count += 100; }
static void (*before)(int);
static void chain(int number) { count++; before(number); }
int main(int argc, char **argv)
{
    struct sigaction action, found;
    void *volatile block = malloc(1000);
    (void)block, (void)argc;
    memset(&action, 0, sizeof action);
    sigaction(SIGUSR2, NULL, &found);
    printf("%d ", found.sa_handler == SIG_DFL && found.sa_flags == 0);
    action.sa_handler = jump;
    sigaction(SIGUSR2, &action, NULL);
    for (volatile int i = 0; i < 4; i++)
        if (sigsetjmp(back, 1) == 0) raise(SIGUSR2);
    printf("jumped %d ", count);
    action.sa_handler = nest;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGUSR2, &action, &found);
    count = 0;
    raise(SIGUSR2);
    printf("nested %d deep %d %d ", count, deepest, found.sa_handler == jump);
    signal(SIGUSR2, chained);
    count = 0;
    before = signal(SIGUSR2, chain);
    raise(SIGUSR2);
    printf("chained %d ", count);
    action.sa_handler = chained;
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGUSR2, &action, NULL);
    count = 0;
    raise(SIGUSR2);
    sigaction(SIGUSR2, NULL, &found);
    printf("once %d %d\\n", count, found.sa_handler == SIG_DFL);
    fflush(stdout);
    raise(SIGUSR2);
    return 0;
}
"""
ROOT = os.getuid() == 0


class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        os.chdir(cls.folder)
        with open("leak.c", "w") as file:
            file.write(LEAK)
        subprocess.run(["cc", "-g", "-O1", "-o", "leak", "leak.c"], check=True)

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        shutil.rmtree(cls.folder)

    def tearDown(self):
        for name in glob.glob("*.ta*"):
            os.unlink(name)
        for name in glob.glob("*.run"):
            if os.path.islink(name):
                os.unlink(name)
            else:
                shutil.rmtree(name)

    def run_it(self, *arguments, **options):
        return subprocess.run([TRACEALLOC, "run", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False, **options)

    def rows(self, name):
        done = subprocess.run([TRACEALLOC, "top", name, "--by", "function", "--json"], stdout=subprocess.PIPE,
                              check=True)
        return {row["key"]: (row["size"], row["count"]) for row in json.loads(done.stdout)}

    def entries(self, name):
        done = subprocess.run([TRACEALLOC, "list", name, "--csv"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=False)
        return max(done.stdout.count(b"\n") - 1, 0)

    def test_status_and_two_lines_at_the_end(self):
        done = self.run_it("-o", "x.ta", "--", "./leak", "7")
        self.assertEqual(done.returncode, 7)
        self.assertEqual(done.stdout, b"")
        self.assertEqual(done.stderr.decode(),
                         "tracealloc: recording in x.ta\ntracealloc: next: tracealloc top x.ta\n")
        self.assertEqual(self.rows("x.ta")["leak"], (10000, 10))

    def test_the_next_command_can_be_pasted(self):
        for name in ("my file's.ta", "$x`y.ta", "-dash.ta"):
            done = self.run_it(f"--output={name}", "./leak")
            command = done.stderr.decode().splitlines()[1].removeprefix("tracealloc: next: tracealloc ")
            shown = subprocess.run(["sh", "-c", f"'{TRACEALLOC}' {command}"], stdout=subprocess.PIPE, check=True)
            self.assertIn(b" leak\n", shown.stdout)
            os.unlink(name)

    def test_what_gave_all_back_is_asked_at_its_peak(self):
        with open("back.c", "w", encoding="utf-8") as file:
            file.write("#include <stdlib.h>\n"
                       "int main(void) { char *volatile p = malloc(900000); free(p); p = malloc(50); return 0; }\n")
        subprocess.run(["cc", "-g", "-o", "back", "back.c"], check=True)
        for path in ("x.ta", "-x.ta"):
            done = self.run_it(f"--output={path}", "./back")
            command = done.stderr.decode().splitlines()[-1].removeprefix("tracealloc: next: tracealloc ")
            self.assertRegex(command, r"\Atop --sort peak ")
            shown = subprocess.run(["sh", "-c", f"'{TRACEALLOC}' {command}"], stdout=subprocess.PIPE, check=True)
            self.assertRegex(shown.stdout.decode(), r"879 KiB +100\.0% .*back\.c:2  main\n")

    def test_a_folder_is_no_output(self):
        self.refuse(125, "is a folder", "-o", ".", "./leak")

    def test_default_name_has_program_and_process(self):
        self.run_it("--", "./leak")
        self.assertRegex(" ".join(glob.glob("*")), r"tracealloc\.leak\.\d+\.ta")

    def test_quiet_says_nothing(self):
        self.assertEqual(self.run_it("-q", "-o", "x.ta", "./leak").stderr, b"")

    def test_top_goes_to_standard_error(self):
        done = self.run_it("--top", "-o", "x.ta", "./leak")
        self.assertEqual(done.stdout, b"")
        self.assertRegex(done.stderr, rb"leak\.c:\d+  leak")

    def test_standard_streams_are_the_programs(self):
        done = self.run_it("-q", "-o", "x.ta", "cat", input=b"\0through\xff")
        self.assertEqual((done.stdout, done.stderr), (b"\0through\xff", b""))

    def test_death_by_signal_is_passed_on_and_leaves_a_recording(self):
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM):
            done = self.run_it("-o", "x.ta", "./leak", "raise", str(int(number)))
            self.assertEqual(done.returncode, -number)
            self.assertRegex(done.stderr.decode(), r"\Atracealloc: recording in x\.ta( \(\d+ entries\))?\n"
                             r"(tracealloc: SIG(SEGV|ABRT), in [^\n]+\ntracealloc: the whole stack: tracealloc info x\.ta\n)?"
                             r"tracealloc: next: tracealloc top x\.ta\n\Z")
            self.assertEqual(self.rows("x.ta")["leak"], (100000, 100))
            os.unlink("x.ta")

    def facts(self, name):
        done = subprocess.run([TRACEALLOC, "info", name, "--csv"], stdout=subprocess.PIPE, check=True)
        return dict(line.split(",", 1) for line in done.stdout.decode().splitlines())

    def test_a_fault_is_recorded_with_its_stack(self):
        with open("fault.c", "w") as file:
            file.write("#include <stdlib.h>\n#include <unistd.h>\n"
                       "__attribute__((noinline)) void inner(int *at) { *at = 1; __asm__ volatile(\"\"); }\n"
                       "__attribute__((noinline)) void outer(int *at) { inner(at); __asm__ volatile(\"\"); }\n"
                       "int main(void) { void *volatile p = malloc(1234); (void)p; outer((int *)4096); return 0; }\n")
        subprocess.run(["cc", "-g", "-O1", "-o", "fault", "fault.c"], check=True)
        done = self.run_it("-o", "x.ta", "./fault")
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        self.assertIn(b"tracealloc: SIGSEGV: write to 0x1000, nothing is there, in inner (", done.stderr)
        facts = self.facts("x.ta")
        self.assertEqual((facts["crash.signal"], facts["crash.address"], facts["live"]),
                         ("SIGSEGV", "0x1000", "1234 B (1234 bytes)"))
        names = []
        for i in range(3):
            path, offset = facts[f"crash.frame.{i}"].rsplit("(", 1)[1].rstrip(")").rsplit("+", 1)
            names.append(subprocess.run(["addr2line", "-f", "-e", path, offset], stdout=subprocess.PIPE, check=True)
                         .stdout.split()[0])
        self.assertEqual(names, [b"inner", b"outer", b"main"])

    def test_an_end_by_abort_is_told_up_to_ones_own_line(self):
        with open("deep.c", "w") as file:
            file.write("".join(f"void deep{i}(void (*f)(void)) {{ {f'deep{i + 1}(f)' if i < 7 else 'f()'}; __asm__ volatile(\"\"); }}\n"
                               for i in range(7, -1, -1)))
        with open("ends.cpp", "w") as file:
            file.write("#include <cstdlib>\n#include <cstring>\n#include <stdexcept>\n"
                       "extern \"C\" void deep0(void (*)());\n"
                       "static void twice() { char *p = (char *)malloc(24); free(p); free(p); }\n"
                       "int main(int count, char **words)\n{\n"
                       "    if (!strcmp(words[1], \"throw\")) throw std::runtime_error(\"oops\");\n"
                       "    if (!strcmp(words[1], \"twice\")) twice();\n"
                       "    if (!strcmp(words[1], \"deep\")) deep0(abort);\n"
                       "    return count > 5;\n}\n")
        subprocess.run(["cc", "-O1", "-c", "deep.c"], check=True)
        subprocess.run(["c++", "-g", "-O0", "-o", "ends", "ends.cpp", "deep.o"], check=True)
        for how, words in (("throw", r"abort < .*std::terminate < __cxa_throw < main \(ends\.cpp:8\)"),
                           ("twice", r"abort < twice \(ends\.cpp:5\)"),
                           ("deep", r"abort < deep7 < deep6 < deep5 < … < main \(ends\.cpp:10\)")):
            done = self.run_it("-o", "x.ta", "./ends", how)
            self.assertEqual(done.returncode, -signal.SIGABRT)
            self.assertRegex(done.stderr.decode(), rf"(?m)^tracealloc: SIGABRT, in {words}$")
            self.assertNotIn("misuse <", done.stderr.decode())

    def test_frees_of_what_is_no_block_are_told(self):
        with open("foreign.c", "w") as file:
            file.write("#include <stdlib.h>\nvoid *volatile kept;\n"
                       "__attribute__((noinline)) void give_back(void *at)\n{\n    free(at);\n    __asm__ volatile(\"\");\n}\n"
                       "int main(int count, char **words)\n{\n    int here;\n    kept = malloc(100);\n"
                       "    for (int i = 1; i < count; i++)\n        give_back(&here);\n"
                       "    return realloc(words, 0) != NULL;\n}\n")
        subprocess.run(["cc", "-g", "-O1", "-w", "-o", "foreign", "foreign.c"], check=True)
        place = r"0x[0-9a-f]+, in give_back \(foreign\.c:5\)\n"
        for options in ([], ["--nframe=1"], ["--nframe=9"], ["--sample=1MiB"]):
            done = self.run_it(*options, "-o", "x.ta", "./foreign", "one", "two")
            self.assertRegex(done.stderr.decode(), r"\ntracealloc: 3 frees of addresses that are no blocks were ignored, the first "
                                                   "of " + place)
        facts = self.facts("x.ta")
        self.assertIn("3 (frees of pointers", facts["foreign frees"])
        self.assertRegex(facts["foreign.frame.0"], "foreign.c:5 give_back ")
        self.assertIn("foreign.address", facts)
        done = self.run_it("-o", "x.ta", "./foreign")
        self.assertRegex(done.stderr.decode(),
                         r"\ntracealloc: 1 free of an address that is no block was ignored: 0x[0-9a-f]+, in main \(foreign\.c:14\)\n")
        done = self.run_it("-o", "x.ta", "./leak")
        self.assertNotIn(b"ignored", done.stderr)

    def test_entries_say_what_the_process_is_and_has(self):
        self.run_it("-q", "-o", "x.ta", "./leak", "7")
        facts = self.facts("x.ta")
        self.assertEqual(facts["process.command"], "./leak 7")
        self.assertIn("bytes)", facts["memory.resident"])

    def test_what_malloc_did_not_have_is_told(self):
        done = self.run_it("-o", "x.ta", sys.executable, "-c", "import mmap; m = mmap.mmap(-1, 64 << 20); m.write(b'x' * (64 << 20))")
        self.assertRegex(done.stderr.decode(), r"\ntracealloc: the process had [0-9.]+ MiB at most[^:]*: [^\n]*libraries[^\n]*\n"
                         r"tracealloc: PYTHONMALLOC=malloc [^\n]+ shows what is in Python's pools\n")

    def test_a_program_with_a_malloc_of_its_own_is_told(self):
        with open("own.c", "w") as file:
            file.write("#include <string.h>\nstatic char pool[40 << 20];\nstatic size_t at;\n"
                       "void *malloc(size_t n) { void *p = pool + at; at += (n + 15) & ~15ul; return p; }\n"
                       "void *calloc(size_t a, size_t b) { return malloc(a * b); }\n"
                       "void *realloc(void *p, size_t n) { (void)p; return malloc(n); }\n"
                       "void free(void *p) { (void)p; }\n"
                       "int main(void) { memset(malloc(32 << 20), 1, 32 << 20); return 0; }\n")
        subprocess.run(["cc", "-O0", "-o", "own", "own.c"], check=True)
        done = self.run_it("-o", "x.ta", "./own")
        words = "nobody asked this malloc for memory: the program seems to have one of its own\n"
        self.assertEqual(done.returncode, 0)
        self.assertIn("tracealloc: " + words, done.stderr.decode())
        top = subprocess.run([TRACEALLOC, "top", "x.ta"], stdout=subprocess.PIPE, check=True).stdout.decode()
        self.assertIn("\n" + words, top)

    def test_without_memory_there_are_no_lines_and_no_crash(self):
        self.run_it("-o", "x.ta", "./leak")
        told = set()
        for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
            for mebibytes in range(16, 72, 2):  # less is not enough to start every build of it
                limit = mebibytes << 20
                done = subprocess.run([TRACEALLOC, "top", "x.ta"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      preexec_fn=lambda: resource.setrlimit(which, (limit, limit)))
                said, wrong = done.stdout.decode(), done.stderr.decode()
                self.assertIn(done.returncode, (0, 2, 127), (mebibytes, said, wrong))
                if done.returncode == 2:
                    self.assertRegex(wrong, r"\Atracealloc: x\.ta: [^\n]+\n\Z")
                    told.add("error" if "raise the limit of memory (ulimit -v, ulimit -d)" in wrong else "other")
                elif done.returncode == 127:  # the loader has none
                    self.assertIn("shared librar", wrong)
                else:
                    self.assertIn("10 blocks", said)
                    has_line = "leak.c:" in said
                    self.assertTrue(has_line or "raise its limit: ulimit -v, ulimit -d\n" in said, (mebibytes, said))
                    told.add("lines" if has_line else "no lines")
        self.assertIn("lines", told)
        self.assertTrue(told & {"error", "no lines"}, told)

    def test_a_program_that_stops_tracing_itself_is_told(self):
        with open("stopper.c", "w") as file:
            file.write("#include <dlfcn.h>\n#include <stdlib.h>\nvoid *volatile kept;\n"
                       "int main(void)\n{\n    int (*start)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, \"ta_start\");\n"
                       "    void (*stop)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, \"ta_stop\");\n"
                       "    start(25);\n    kept = malloc(1000);\n    stop();\n    return 0;\n}\n")
        subprocess.run(["cc", "-D_GNU_SOURCE", "-o", "stopper", "stopper.c"], check=True)
        said = (b"tracealloc: no recording was written: tracing was off when the program ended: it stopped it itself "
                b"(ta_stop), or tracealloc ctl did\n")
        for options in ([], ["-q"]):
            done = self.run_it(*options, "-o", "none.ta", "./stopper")
            self.assertEqual((done.returncode, done.stderr), (0, said))
            self.assertFalse(os.path.exists("none.ta"))

    def test_pythons_pools_are_named_where_they_are_in_use(self):
        hint = "PYTHONMALLOC=malloc in the environment shows what is in Python's pools\n"
        program = "import mmap; m = mmap.mmap(-1, 64 << 20); m.write(b'x' * (64 << 20)); kept = list(range(100000))"
        for value, is_said in (("malloc", False), ("malloc_debug", False), ("pymalloc", True), ("", True)):
            done = self.run_it("-o", "x.ta", sys.executable, "-c", program, env={**os.environ, "PYTHONMALLOC": value})
            top = subprocess.run([TRACEALLOC, "top", "x.ta"], stdout=subprocess.PIPE, check=True).stdout.decode()
            self.assertIn("the process had", top)
            self.assertEqual((hint in done.stderr.decode(), hint in top), (is_said, is_said), value)

    def test_a_program_that_asks_for_nothing_is_told(self):
        sources = {"idle": "int main(void) { return 0; }\n",
                   "modest": "#include <stdlib.h>\nvoid *volatile kept;\nint main(void) { kept = malloc(1); return 0; }\n"}
        words = "nobody asked this malloc for memory: the program needs none, or has a malloc of its own\n"
        for name, source in sources.items():
            with open(name + ".c", "w") as file:
                file.write(source)
            subprocess.run(["cc", "-O0", "-o", name, name + ".c"], check=True)
            done = self.run_it("-o", "x.ta", "./" + name)
            top = subprocess.run([TRACEALLOC, "top", "x.ta"], stdout=subprocess.PIPE, check=True).stdout.decode()
            self.assertEqual("tracealloc: " + words in done.stderr.decode(), name == "idle", done.stderr)
            self.assertEqual("\n" + words in top, name == "idle", top)

    def test_what_usually_ends_a_server_leaves_a_recording(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with subprocess.Popen([TRACEALLOC, "run", "-o", "x.ta", "./leak", "wait"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE) as running:
                running.stdout.readline()
                running.send_signal(number)
                self.assertEqual(running.stderr.read(), b"tracealloc: recording in x.ta\n"
                                                        b"tracealloc: next: tracealloc top x.ta\n")
            self.assertEqual(running.returncode, -number)
            self.assertEqual(self.rows("x.ta")["leak"], (10000, 10))
            os.unlink("x.ta")

    def test_the_program_sees_its_own_signal_handlers_only(self):
        with open("handlers.c", "w") as file:
            file.write(HANDLERS)
        subprocess.run(["cc", "-g", "-o", "handlers", "handlers.c"], check=True)
        for argument, status in (("raise", -signal.SIGTERM), ("vfork", 0)):
            self.assertEqual(subprocess.run(["./handlers", argument], stdout=subprocess.PIPE, check=False).returncode, status)
            done = self.run_it("-q", "-o", "x.ta", "./handlers", argument)
            self.assertEqual((done.returncode, done.stdout), (status, b"11 handled 1111\n"))
            self.assertEqual(glob.glob("x.ta*"), ["x.ta"])
            self.assertIn("main", self.rows("x.ta"))
            os.unlink("x.ta")

    def test_python_keeps_its_keyboard_interrupt_and_ends_pools(self):
        with open("pool.py", "w") as file:
            file.write("import multiprocessing, os, signal\n"
                       "def work(n): return n\n"
                       "if __name__ == '__main__':\n"
                       "    try: os.kill(os.getpid(), signal.SIGINT); signal.pause()\n"
                       "    except KeyboardInterrupt: pass\n"
                       "    multiprocessing.set_start_method('fork')\n"
                       "    with multiprocessing.Pool(3) as pool: print(sum(pool.map(work, range(30))), flush=True)\n"
                       "    os.kill(os.getpid(), signal.SIGTERM)\n")
        done = self.run_it("-q", "-o", "x.ta", sys.executable, "pool.py")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (-signal.SIGTERM, b"435\n", b""))
        self.assertEqual(len(glob.glob("x.run/*.ta")), 3)
        self.assertEqual(glob.glob("*.tmp") + glob.glob("x.run/*.tmp"), [])

    def child_of(self, process):
        with open(f"/proc/{process}/task/{process}/children") as file:
            return int(file.read().split()[0])

    def test_a_series_survives_death_by_signal(self):
        with subprocess.Popen([TRACEALLOC, "run", "--interval=0.05", "-o", "x.ta", "./leak", "wait"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            running.stdout.readline()
            while not os.path.exists("x.ta") or self.entries("x.ta") < 4:
                pass
            os.kill(self.child_of(running.pid), signal.SIGKILL)
            self.assertRegex(running.stderr.read().decode(), r"\Atracealloc: recording in x\.ta \(\d+ entries\)\n"
                             r"tracealloc: next: tracealloc growth x\.ta\n\Z")
        self.assertEqual(self.rows("x.ta")["leak"], (10000, 10))

    def test_signals_sent_to_us_reach_the_program(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            with subprocess.Popen([TRACEALLOC, "run", "-q", "-o", "x.ta", "./leak", "wait"], stdout=subprocess.PIPE) as running:
                self.assertEqual(running.stdout.readline(), b"ready\n")
                running.send_signal(number)
                self.assertEqual(running.wait(), -number)

    def test_ignored_signals_stay_ignored(self):
        done = self.run_it("-q", "-o", "x.ta", "sh", "-c", "kill -HUP $$; echo lives",
                           preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertEqual(done.stdout, b"lives\n")

    def test_a_signal_takes_a_snapshot(self):
        with subprocess.Popen([TRACEALLOC, "run", "--signal=USR2", "-o", "x.ta", "./leak", "wait"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as running:
            running.stdout.readline()
            running.send_signal(signal.SIGUSR2)
            while True:
                listed = subprocess.run([TRACEALLOC, "list", "x.ta", "--csv"], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, check=False)
                if listed.stdout.count(b"\n") == 2:
                    break
            running.kill()
            running.wait()
        for process in glob.glob("/proc/[0-9]*"):  # the program outlives its parent's SIGKILL: end ours
            try:
                if os.readlink(process + "/exe") == os.path.join(os.path.realpath(self.folder), "leak"):
                    os.kill(int(process[6:]), signal.SIGKILL)
            except OSError:
                pass
        self.assertEqual(self.rows("x.ta")["leak"], (10000, 10))

    def test_frames_and_precedence(self):
        def limit(environment, *options):
            self.run_it(*options, "-q", "-o", "x.ta", "./leak", env={**os.environ, **environment})
            done = subprocess.run([TRACEALLOC, "info", "x.ta", "--csv"], stdout=subprocess.PIPE, check=True)
            os.unlink("x.ta")
            return [line for line in done.stdout.decode().splitlines() if line.startswith("frames per stack,")]
        self.assertEqual(limit({}), ["frames per stack,65535 at most"])
        self.assertEqual(limit({}, "--nframe"), ["frames per stack,1 at most"])
        self.assertEqual(limit({}, "--nframe=5", "--nframe=7"), ["frames per stack,5 at most"])
        self.assertEqual(limit({"TRACEALLOC": "9"}), ["frames per stack,9 at most"])
        self.assertEqual(limit({"TRACEALLOC": "9"}, "--nframe=3"), ["frames per stack,3 at most"])

    def test_no_frames_means_no_recording(self):
        for option in ("--nframe=0", "--nframe="):
            done = self.run_it(option, "-o", "x.ta", "./leak", "4")
            self.assertEqual((done.returncode, done.stderr),
                             (4, b"tracealloc: nothing was recorded: tracing was switched off\n"))
            self.assertFalse(os.path.exists("x.ta"))

    def test_children_have_files_of_their_own(self):
        done = self.run_it("-o", "x.ta", "./leak", "spawn", "./leak; ./leak")
        self.assertEqual(self.rows("x.ta")["leak"], (10000, 10))
        self.assertGreaterEqual(len(glob.glob("x.run/*.ta")), 2)
        self.assertIn(b"of other processes", done.stderr)

    def test_no_follow_leaves_children_alone(self):
        self.run_it("--no-follow", "-o", "x.ta", "./leak", "spawn", "./leak; ./leak")
        self.assertEqual(glob.glob("x.*"), ["x.ta"])

    def test_exec_in_the_same_process_is_traced(self):
        self.run_it("--no-follow", "-o", "x.ta", "sh", "-c", "exec ./leak")
        self.assertEqual(self.rows("x.ta")["leak"], (10000, 10))

    def test_exits_without_destructors_leave_a_recording(self):
        for way, status, blocks in (("_exit", 3, 10), ("quick_exit", 6, 100)):
            done = self.run_it("-o", "x.ta", "./leak", way)
            self.assertEqual(done.returncode, status)
            self.assertIn(b"recording in x.ta\n", done.stderr)
            self.assertEqual(self.rows("x.ta")["leak"], (blocks * 1000, blocks))
            os.unlink("x.ta")

    def test_a_child_of_vfork_touches_nothing(self):
        for option in ((), ("--interval=10",)):
            self.run_it(*option, "-o", "x.ta", "./leak", "vfork")
            self.assertEqual(glob.glob("x.*"), ["x.ta"])
            self.assertEqual(self.rows("x.ta")["leak"], (100000, 100))
            os.unlink("x.ta")

    def test_a_program_that_closes_everything_leaves_a_recording(self):
        for option in ((), ("--interval=10",)):
            done = self.run_it(*option, "-o", "x.ta", "./leak", "close")
            self.assertIn(b"recording in x.ta\n", done.stderr)
            self.assertEqual(self.rows("x.ta")["leak"], (100000, 100))
            os.unlink("x.ta")

    @unittest.skipUnless(ROOT, "only root can give up rights")
    def test_without_the_right_to_write_the_recording_is_there_all_the_same(self):
        for way in (("drop",), ("chroot", "/proc/self/fdinfo")):
            for option in ((), ("--interval=10",)):
                done = self.run_it(*option, "-o", "x.ta", "./leak", *way)
                self.assertEqual((done.returncode, done.stderr[:34]), (0, b"tracealloc: recording in x.ta\ntrac"), way)
                self.assertEqual(self.rows("x.ta")["leak"], (100000, 100))
                program = subprocess.run([TRACEALLOC, "info", "x.ta", "--csv"], stdout=subprocess.PIPE, check=True)
                self.assertIn(os.path.realpath("leak").encode(), program.stdout.splitlines()[1])
                os.unlink("x.ta")

    @unittest.skipUnless(ROOT, "only root can give up rights")
    def test_who_keeps_the_memory_gives_up_rights_too(self):
        with open("drop.c", "w") as file:
            file.write("#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
                       "int main(void) { void *volatile p = malloc(1000); (void)p;\n"
                       "  if (setgid(65534) != 0 || setuid(65534) != 0) return 1;\n"
                       "  puts(\"ready\"); fflush(stdout); for (;;) pause(); }\n")
        subprocess.run(["cc", "-o", "drop", "drop.c"], check=True)
        with subprocess.Popen([TRACEALLOC, "run", "-q", "-o", "x.ta", "./drop"], stdout=subprocess.PIPE) as running:
            running.stdout.readline()
            program = self.child_of(running.pid)
            keeper, rights, end = self.child_of(program), "", time.time() + 60
            while "Uid:\t65534\t65534\t65534\t65534\nGid:\t65534\t65534\t65534\t65534\n" not in rights and time.time() < end:
                with open(f"/proc/{keeper}/status") as file:
                    rights = file.read()
            os.kill(program, signal.SIGKILL)
        self.assertIn("Name:\ttracealloc\n", rights)
        self.assertIn("Uid:\t65534\t", rights)
        self.assertEqual(self.reason("x.ta"), "end")

    def test_a_pipe_that_the_program_closes_is_closed(self):
        with open("closes.c", "w") as file:
            file.write("#include <stdlib.h>\n#include <unistd.h>\n"
                       "int main(void) { char byte; void *volatile p = malloc(1000); (void)p; close(1); return (int)read(0, &byte, 1); }\n")
        subprocess.run(["cc", "-o", "closes", "closes.c"], check=True)
        environment = {**os.environ, "LD_PRELOAD": LIBRARY, "TRACEALLOC": "10", "TRACEALLOC_OPTIONS": "output=x.ta,series=auto,ends=yes"}
        with subprocess.Popen(["./closes"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as running:
            self.assertEqual(running.stdout.read(), b"")  # its end, though the program goes on
            self.assertIsNone(running.poll())
            running.stdin.close()
            self.assertEqual(running.wait(), 0)
        self.assertGreater(self.entries("x.ta"), 0)

    def test_short_files_of_the_program_are_no_limit_for_its_recording(self):
        script = "import json, email, http.client, xml.dom.minidom"
        done = self.run_it("-q", "-o", "x.ta", sys.executable, "-c", script, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (8 << 10, resource.getrlimit(resource.RLIMIT_FSIZE)[1])))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertGreater(os.path.getsize("x.ta"), 8 << 10)
        self.assertIn(self.reason("x.ta"), ("exit", "end"))

    def test_workers_leave_recordings_and_the_largest_is_named(self):
        done = self.run_it("-o", "x.ta", "./leak", "workers")
        files = sorted(glob.glob("x.run/*.ta"))
        self.assertEqual(len(files), 2)
        for name in files:
            self.assertEqual(self.rows(name)["leak"], (1000000, 1000))
        self.assertRegex(done.stderr.decode(), r"\Atracealloc: recording in x\.ta(?: \(\d+ entries\))? and 2 of other processes "
                         r"in x\.run; most memory in x\.run/\d+\.ta\ntracealloc: processes: tracealloc list x\.run\n"
                         r"tracealloc: next: tracealloc top x\.run\n\Z")

    def test_other_processes_that_crashed_are_named(self):
        done = self.run_it("-o", "x.ta", "sh", "-c", "./leak raise 11; ./leak raise 15; ./leak spawn './leak raise 6'; ./leak")
        told = re.findall(r"tracealloc: process (\d+) \((.*)\) was ended by (\w+): tracealloc info (\S+)\n", done.stderr.decode())
        self.assertEqual([(command, name) for _, command, name, _ in told],
                         [("./leak raise 11", "SIGSEGV"), ("./leak raise 6", "SIGABRT")], done.stderr)
        self.assertEqual([path for *_, path in told], [f"x.run/{process}.ta" for process, *_ in told])

    def assert_ended(self, family, ends):
        """Of processes that said nothing themselves. Before Linux 6.15 the keeper may be too late to see it."""
        done = subprocess.run([TRACEALLOC, "list", family, "--json"], stdout=subprocess.PIPE, check=True)
        told = {row["command"]: row["end"] for row in json.loads(done.stdout)}
        is_known = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2]) >= (6, 15)
        for command, end in ends.items():
            self.assertIn(told[command], (end,) if is_known else (end, "-"), command)

    def test_ends_that_nobody_announced_are_told(self):
        with open("waits.c", "w") as file:
            file.write("#include <stdlib.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n"
                       "int main(int count, char **words)\n{\n    void *volatile kept = malloc(100);\n    (void)kept;\n"
                       "    usleep(200000);\n    syscall(SYS_exit_group, count > 1 ? atoi(words[1]) : 0);\n}\n")
        subprocess.run(["cc", "-O1", "-w", "-o", "waits", "waits.c"], check=True)
        signals = ["TERM", "HUP", "USR1", "KILL", "ALRM", "RTMIN"]
        self.run_it("-q", "-o", "x.ta", "bash", "-c", "".join(
            f"./waits {name} & sleep 0.1; kill -{name} $!; wait $!; " for name in signals)
            + "./waits 0; ./waits 300; ./waits 5; timeout 0.1 ./waits 1; true")
        ends = {f"./waits {name}": f"SIG{name}" for name in signals}
        ends.update({"./waits RTMIN": "SIG34", "./waits 0": "0", "./waits 300": "44", "./waits 5": "5", "./waits 1": "SIGTERM"})
        self.assert_ended("x.run", ends)

    def test_the_index_says_who_the_processes_were(self):
        self.run_it("-q", "-o", "x.ta", "sh", "-c", "./leak spawn './leak 5'; ./leak raise 9; env -i ./leak; exec ./leak 4")
        done = subprocess.run([TRACEALLOC, "list", "x.run", "--json"], stdout=subprocess.PIPE, check=True)
        rows = json.loads(done.stdout)
        by_command = {row["command"]: row for row in rows} # as it is: to the right only where people read
        first = next(row for row in rows if row["reason"] == "exec" and row["command"].startswith("sh -c"))
        self.assertEqual((by_command["./leak 4"]["end"], by_command["./leak 4"]["process"]), ("4", first["process"]))
        self.assertEqual((by_command["./leak 5"]["end"], by_command["./leak 5"]["reason"]), ("5", "exit"))
        self.assertEqual((by_command["./leak raise 9"]["reason"], by_command["./leak raise 9"]["live"]), ("end", 100000))
        self.assertEqual(by_command["./leak spawn ./leak 5"]["parent"], first["process"])
        untraced = [row for row in rows if ": was started with an environment" in row["command"]]
        self.assertEqual([row["parent"] for row in untraced], [first["process"]], rows)
        for width, missing in ((200, []), (80, ["LAST ENTRY"]), (40, ["LAST ENTRY", "PARENT", "ENTRIES", "PEAK", "FILE"])):
            shown = subprocess.run([TRACEALLOC, "list", "x.run", "--color=always"], stdout=subprocess.PIPE, check=True,
                                   env=dict(os.environ, COLUMNS=str(width)), text=True).stdout
            lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
            self.assertLessEqual(max(len(line) for line in lines), width, lines)
            for heading in ("PROCESS", "PARENT", "ENDED", "LAST ENTRY", "ENTRIES", "LIVE", "PEAK", "FILE", "COMMAND"):
                if heading in missing or width != 80:
                    self.assertEqual(heading in lines[0], heading not in missing, lines[0])
        for row in rows:
            if row["file"] != "-":
                self.assertGreater(self.entries(row["file"]), 0)
        self.assertEqual(stat.S_IMODE(os.stat("x.run").st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(os.stat("x.run/index").st_mode), 0o600)

    def top(self, name, *more):
        done = subprocess.run([TRACEALLOC, "top", name, "--json", "-n", "0", *more], stdout=subprocess.PIPE, check=True)
        return {row["key"]: (row["size"], row["count"]) for row in json.loads(done.stdout)}

    def test_a_family_is_looked_at_as_one(self):
        self.run_it("-q", "-o", "x.ta", "./leak", "spawn", "./leak workers; ./leak 5; exec ./leak 4")
        os.mkdir("moved.run.d")
        for name in ("x.ta", "x.run"):
            os.rename(name, "moved.run.d/" + name)
        names = glob.glob("moved.run.d/x.ta") + glob.glob("moved.run.d/x.run/*.ta*")
        each = [self.top(name, "--by", "function") for name in names]
        whole = self.top("moved.run.d/x.run", "--by", "function")
        self.assertGreaterEqual(len(names), 6)
        self.assertIn("leak", whole)
        for key in whole:
            self.assertEqual(whole[key], tuple(sum(one.get(key, (0, 0))[i] for one in each) for i in (0, 1)), key)
        processes = self.top("moved.run.d/x.run", "--by", "process")
        self.assertEqual(sum(size for size, _ in processes.values()),
                         sum(size for one in each for size, _ in one.values()))
        self.assertTrue(any(key.startswith("leak 4[") for key in processes), processes)
        self.assertEqual(whole, self.top("moved.run.d/x.run/index", "--by", "function"))
        for command in ("tree", "flame", "biggest", "info"):
            done = subprocess.run([TRACEALLOC, command, "moved.run.d/x.run"], stdout=subprocess.PIPE, check=True)
            self.assertTrue(done.stdout, command)
        done = subprocess.run([TRACEALLOC, "diff", "moved.run.d/x.run", "moved.run.d/x.run", "--by", "process", "--json"],
                              stdout=subprocess.PIPE, check=True)
        self.assertEqual({row["size_diff"] for row in json.loads(done.stdout)}, {0})
        shutil.rmtree("moved.run.d")

    def test_a_family_is_known_when_run_was_killed(self):
        with subprocess.Popen([TRACEALLOC, "run", "-q", "-o", "x.ta", "sh", "-c", "./leak wait & ./leak wait & wait; true"],
                              stdout=subprocess.PIPE) as running:
            for _ in range(2):
                running.stdout.readline()
            shell = self.child_of(running.pid)
            with open(f"/proc/{shell}/task/{shell}/children") as file:
                children = [int(number) for number in file.read().split()]
            running.kill()
            for process in (*children, shell):
                os.kill(process, signal.SIGKILL)
        if os.path.exists("x.run/index"):
            os.unlink("x.run/index")
        end = time.time() + 60
        while time.time() < end:
            try:
                if self.top("x.run", "--by", "function")["leak"] == (20000, 20):
                    break
            except (subprocess.CalledProcessError, KeyError):
                pass
        self.assertEqual(self.top("x.run", "--by", "function")["leak"], (20000, 20))
        done = subprocess.run([TRACEALLOC, "list", "x.run", "--json"], stdout=subprocess.PIPE, check=True)
        rows = {row["process"]: row for row in json.loads(done.stdout)}
        self.assertEqual([rows[process]["parent"] for process in children if process in rows], [shell, shell])

    def test_a_link_in_the_place_of_the_folder_is_left_alone(self):
        os.mkdir("elsewhere")
        os.symlink("elsewhere", "x.run")
        done = self.run_it("-o", "x.ta", "./leak", "spawn", "./leak 5")
        self.assertEqual(os.listdir("elsewhere"), [])
        self.assertIn(b"/x.run: no folder for the recordings of further processes", done.stderr)
        self.assertIn((10000, 10), [self.rows(name).get("leak") for name in glob.glob("x.ta.*")])
        os.unlink("x.run")
        os.rmdir("elsewhere")

    def test_only_names_of_the_run_are_opened_for_who_knows_the_token(self):
        script = ("import os, socket, struct, sys\n"
                  "name, token = os.environ['TRACEALLOC_OPENER'].split(':')\n"
                  "def ask(token, path):\n"
                  "    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:\n"
                  "        s.connect(b'\\0' + name.encode())\n"
                  "        s.send(token.encode() + b'O' + os.path.realpath(path).encode())\n"
                  "        answer, files, _, _ = socket.recv_fds(s, 4, 1)\n"
                  "        return (struct.unpack('i', answer)[0] if answer else None), len(files)\n"
                  "print([ask(token, p) for p in ('x.ta', 'x.ta.77', 'x.run/7.ta', 'x.tar', 'x.ta.7.gz', 'y.ta', 'x.ta/../y',"
                  " 'x.run/7.gz', 'x.run/index', 'x.run/../7.ta', 'y.run/7.ta')],"
                  " ask('0' * len(token), 'x.ta'))\n")
        done = self.run_it("-q", "-o", "x.ta", sys.executable, "-c", script)
        self.assertEqual(done.stdout.decode(), str([(0, 1)] * 3 + [(13, 0)] * 8) + " (None, 0)\n", done.stderr)
        self.assertFalse(os.path.exists("y.ta") or os.path.exists("x.tar"))

    def ask_the_opener(self, lines):
        """What the lines print, run traced; ask(way, text) is (errno, descriptor or None), of_file(path) as it is described."""
        with open("asks.py", "w") as file:
            file.write("import os, socket, struct\n"
                       "name, token = os.environ['TRACEALLOC_OPENER'].split(':')\n"
                       "def ask(way, text):\n"
                       "    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:\n"
                       "        s.connect(b'\\0' + name.encode())\n"
                       "        s.send(token.encode() + way.encode() + text.encode())\n"
                       "        answer, files, _, _ = socket.recv_fds(s, 4, 1)\n"
                       "        return struct.unpack('i', answer)[0], files[0] if files else None\n"
                       "here = os.path.realpath('.') + '/'\n"
                       "def of_file(path):\n"
                       "    status = os.lstat(path)\n"
                       "    return f'{status.st_dev} {status.st_ino}'\n"
                       "def rename(of, to, former=None):\n"
                       "    return ask('M', here + of + '\\0' + here + to + '\\0' + (former or of_file(to)))[0]\n"
                       "def make(path, text='text'):\n"
                       "    error, file = ask('O', here + path)\n"
                       "    os.write(file, text.encode())\n"
                       "    os.close(file)\n" + lines)
        done = self.run_it("-q", "-o", "x.ta", sys.executable, "asks.py")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout.decode()

    def test_only_files_of_the_run_are_renamed_and_only_to_names_of_the_run(self):
        with open("y.ta", "w") as file:
            file.write("mine")
        told = self.ask_the_opener(
            "make('x.ta.77', 'old')\n"
            "piece = 'x.ta.77.0123456789.tmp'\n"
            "told = []\n"
            "def again(text='new'):\n"
            "    make(piece, text)\n"
            "again()\n"
            "told.append(rename(piece, 'y.ta'))\n"                       # not a name of this run
            "told.append((open('y.ta').read(), os.path.exists(piece)))\n"
            "again()\n"
            "os.rename('y.ta', 'y.ta.0123456789.tmp')\n"
            "told.append(rename('y.ta.0123456789.tmp', 'x.ta.77'))\n"    # not a file of this run
            "os.rename('y.ta.0123456789.tmp', 'y.ta')\n"
            "os.unlink(piece)\n"
            "os.symlink('y.ta', piece)\n"
            "told.append(rename(piece, 'x.ta.77'))\n"                    # not a file at all
            "os.unlink(piece)\n"
            "again()\n"
            "told.append(rename(piece, 'x.ta.77', '1 1'))\n"             # instead of another one than there is
            "again('')\n"
            "told.append(rename(piece, 'x.ta.77'))\n"                    # given up
            "told.append(open('x.ta.77').read())\n"
            "again()\n"
            "told.append(rename(piece, 'x.ta.77'))\n"
            "told.append((open('x.ta.77').read(), os.path.exists(piece)))\n"
            "print(told)\n")
        self.assertEqual(told, "[13, ('mine', True), 13, 13, 16, 125, 'old', 0, ('new', False)]\n")
        with open("y.ta") as file:
            self.assertEqual(file.read(), "mine")

    def test_what_was_not_finished_under_another_name_is_given_up(self):
        told = self.ask_the_opener(
            "make('x.ta.77')\n"
            "make('x.ta.77.0123456789.tmp')\n"
            "make('x.ta.88.0123456789.tmp')\n"
            "make('x.ta.77.9876543210.tmp')\n"
            "print(sorted(n for n in os.listdir('.') if n.endswith('.tmp')))\n")
        self.assertEqual(told, "['x.ta.77.9876543210.tmp', 'x.ta.88.0123456789.tmp']\n")
        self.assertEqual(sorted(glob.glob("x.ta*")), ["x.ta", "x.ta.77"])

    def test_a_daemon_is_told_of_and_followed(self):
        with open("said", "w+b") as said:  # the daemon has it, too: its end is none of run's
            process = subprocess.Popen([TRACEALLOC, "run", "-o", "x.ta", "./leak", "daemon", "ended"], stderr=said)
            self.assertEqual(process.wait(), 0)
            said.seek(0)
            text = said.read().decode()
        with open("ended", "wb"):
            pass
        self.assertRegex(text, r"\Atracealloc: recording in x\.ta[^\n]*\ntracealloc: 1 process still "
                         r"runs in the background and will leave a recording of its own\n")
        while not [name for name in glob.glob("x.run/*.ta") if self.reason(name) == "exit"]:
            pass
        self.assertEqual(self.rows(glob.glob("x.run/*.ta")[0])["leak"], (100000, 100))

    def reason(self, name):
        done = subprocess.run([TRACEALLOC, "info", name, "--csv"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=False)
        return dict(line.split(",", 1) for line in done.stdout.decode().splitlines()).get("reason")

    def test_what_executes_another_program_keeps_a_recording(self):
        done = self.run_it("-o", "x.ta", "./leak", "exec", "./leak", "3")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(self.rows("x.ta")["leak"], (10000, 10))
        self.assertEqual(self.rows("x.ta.1")["leak"], (100000, 100))
        self.assertEqual((self.reason("x.ta"), self.reason("x.ta.1")), ("exit", "exec"))

    def test_handlers_of_the_signal_that_takes_a_snapshot_are_the_programs(self):
        with open("taken.c", "w") as file:
            file.write(TAKEN)
        subprocess.run(["cc", "-O2", "-o", "taken", "taken.c"], check=True)
        plain = subprocess.run(["./taken"], stdout=subprocess.PIPE, check=False)
        self.assertEqual((plain.returncode, plain.stdout),
                         (-signal.SIGUSR2, b"1 jumped 4 nested 5 deep 5 1 chained 101 once 100 1\n"))
        done = self.run_it("-q", "--signal=USR2", "-o", "x.ta", "./taken")
        self.assertEqual((done.returncode, done.stdout), (plain.returncode, plain.stdout))

    def test_signals_that_mean_a_fault_are_refused(self):
        for name in ("11", "4", "6", "9", "13", "32", "33", "70", "SEGV"):
            done = self.run_it("-q", f"--signal={name}", "-o", "x.ta", "./leak")
            self.assertEqual(done.returncode, 125, name)
            self.assertRegex(done.stderr.decode(), rf"\Atracealloc: run: --signal={name}: expected USR1[^\n]*\n\Z")

    def test_programs_that_cannot_be_recorded_are_named(self):
        subprocess.run(["cc", "-static", "-o", "fixed", "leak.c"], check=True)
        for command, why in (("./fixed; true", r"\./fixed is linked statically: [^\n]+"),
                             ("env -i ./leak; true", r"\./leak was started with an environment without LD_PRELOAD: [^\n]+")):
            done = self.run_it("-o", "x.ta", "sh", "-c", command)
            self.assertRegex(done.stderr.decode(), r"\ntracealloc: process \d+ was not recorded: " + why + "\n")
            for name in glob.glob("x.ta*"):
                os.unlink(name)

    def test_the_program_sees_one_thread_and_no_child(self):
        with open("alone.c", "w") as file:
            file.write("#define _GNU_SOURCE\n#include <errno.h>\n#include <sched.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n"
                       "int main(void) { void *volatile p = malloc(9); (void)p; errno = 0;\n"
                       "  return wait(NULL) != -1 || errno != ECHILD ? 1 : unshare(CLONE_NEWUSER) != 0 ? 2 : 0; }\n")
        subprocess.run(["cc", "-o", "alone", "alone.c"], check=True)
        plain = subprocess.run(["./alone"], check=False).returncode
        for option in ((), ("--interval=0.05",)):
            self.assertEqual(self.run_it(*option, "-o", "x.ta", "./alone").returncode, plain)

    def test_why_nothing_was_written_is_told(self):
        with subprocess.Popen([TRACEALLOC, "run", "-o", "gone/x.ta", "./leak", "wait"], stdout=subprocess.PIPE) as missing:
            missing.wait()
        self.assertEqual(missing.returncode, 125)
        os.mkdir("gone")
        with subprocess.Popen([TRACEALLOC, "run", "--signal=USR2", "-o", "gone/x.ta", "./leak", "wait"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            running.stdout.readline()
            shutil.rmtree("gone")
            running.send_signal(signal.SIGUSR2)  # said once, here or at the end
            os.kill(self.child_of(running.pid), signal.SIGKILL)
            self.assertRegex(running.stderr.read().decode(), r"\Atracealloc: process \d+: cannot create a file beside "
                             r"[^\n]*/gone/x\.ta: [^\n]+\n\Z")

    def test_peaks_are_entries_of_their_own(self):
        done = self.run_it("--peak=50", "-o", "x.ta", "./leak", "churn")
        listed = subprocess.run([TRACEALLOC, "list", "x.ta", "--json"], stdout=subprocess.PIPE, check=True)
        live = [entry["current_bytes"] for entry in json.loads(listed.stdout)]
        self.assertGreaterEqual(len(live), 3, live)
        self.assertLess(live[-1], max(live))
        highest = f"x.ta@{len(live) - 1 - live[::-1].index(max(live))}"
        self.assertIn(f"next: tracealloc top {highest}\n".encode(), done.stderr)
        self.assertGreater(self.rows(highest)["churn"][0], 1 << 20)

    def test_rules_decide_domains_also_of_programs_started_elsewhere(self):
        with open("rules", "w") as file:
            file.write("7 leaks function=leak\n")
        self.run_it("-q", "--rules=rules", "-o", "x.ta", "sh", "-c", f"cd / && exec '{os.getcwd()}/leak'")
        done = subprocess.run([TRACEALLOC, "domains", "x.ta", "--json"], stdout=subprocess.PIPE, check=True)
        self.assertIn((7, "leaks", 10000, 10),
                      [(row["domain"], row["name"], row["live_bytes"], row["live_blocks"]) for row in json.loads(done.stdout)])
        self.refuse(125, "--rules: missing: No such file or directory", "--rules=missing", "./leak")
        with open("rules", "w") as file:
            file.write("nonsense\n")
        self.refuse(125, r"/rules:1:1: expected the number of a domain, found 'nonsense'", "--rules=rules", "./leak")

    def test_samples_are_scaled(self):
        self.run_it("-q", "--sample=4KiB", "-o", "x.ta", "./leak", "workers")
        files = glob.glob("x.run/*.ta")
        size, _ = self.rows(files[0])["leak"]
        self.assertTrue(400000 < size < 2000000, size)
        done = subprocess.run([TRACEALLOC, "top", files[0]], stdout=subprocess.PIPE, check=True)
        self.assertIn(b"sampled: one allocation per 4096 bytes in the mean, numbers are estimates", done.stdout)

    def refuse(self, status, text, *arguments):
        done = self.run_it(*arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertRegex(done.stderr.decode(), r"\Atracealloc: run: [^\n]*" + text + r"[^\n]*\n\Z")

    def test_static_programs_are_refused(self):
        subprocess.run(["cc", "-static", "-o", "fixed", "leak.c"], check=True)
        self.refuse(126, "linked statically", "./fixed")

    def test_programs_with_a_sanitizer_are_refused(self):
        for sanitizer in ("address", "thread"):
            built = subprocess.run(["cc", f"-fsanitize={sanitizer}", "-o", "sane", "leak.c"], stderr=subprocess.DEVNULL, check=False)
            if built.returncode == 0:
                self.refuse(126, f"is built with -fsanitize={sanitizer}, which brings an allocator of its own: trace a build "
                            "without it", "./sane")
        if shutil.which("clang"):
            for sanitizer in ("address", "memory", "thread"):  # its names are the program's own
                built = subprocess.run(["clang", f"-fsanitize={sanitizer}", "-o", "sane", "leak.c"], stderr=subprocess.DEVNULL,
                                       check=False)
                if built.returncode == 0:
                    self.refuse(126, f"is built with -fsanitize={sanitizer}", "./sane")
        subprocess.run(["cc", "-fsanitize=undefined", "-o", "sane", "leak.c"], check=True)
        self.assertEqual(self.run_it("-q", "-o", "x.ta", "./sane").returncode, 0)
        self.assertIn("leak", self.rows("x.ta"))

    def test_other_architectures_are_refused(self):
        with open("leak", "rb") as file:
            program = bytearray(file.read())
        program[18:20] = (183).to_bytes(2, "little")
        self.write("arm", program)
        self.refuse(126, "is a program for 64-bit ARM", "./arm")
        program[4] = 1
        program[18:20] = (3).to_bytes(2, "little")
        self.write("small", program)
        self.refuse(126, "is a program for 32-bit x86", "./small")

    def test_missing_loader_is_refused(self):
        with open("leak", "rb") as file:
            program = file.read()
        self.write("strange", program.replace(b"/lib64/ld-linux", b"/lib64/ld-linus"))
        self.refuse(126, "wants the loader /lib64/ld-linus", "./strange")

    def test_damaged_programs_do_not_crash_us(self):
        with open("leak", "rb") as file:
            program = bytearray(file.read(4096))
        for at in range(0, 64):
            damaged = bytearray(program)
            damaged[at] ^= 0xFF
            self.write("damaged", damaged)
            self.assertIn(self.run_it("-q", "./damaged").returncode, (126, 2, 127, -signal.SIGSEGV), at)

    def test_set_uid_programs_are_refused(self):
        if os.getuid() == 0:
            shutil.copy("leak", "raised")
            os.chown("raised", 65534, 65534)
        else:
            self.skipTest("needs root to make one")
        os.chmod("raised", 0o4755)
        self.refuse(126, "is set-uid", "./raised")

    def write(self, name, content):
        with open(name, "wb") as file:
            file.write(content)
        os.chmod(name, 0o755)

    def test_a_closed_pipe_ends_quietly(self):
        self.run_it("-q", "-o", "x.ta", "./leak")
        done = subprocess.run(["bash", "-c", f"'{TRACEALLOC}' export x.ta --format jsonl | head -c 1; echo ${{PIPESTATUS[0]}}"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.stderr, b"")

    def test_a_terminal_gets_colours_and_no_color_takes_them_away(self):
        self.run_it("-q", "-o", "x.ta", "./leak")
        for environment, colours in (({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False),
                                     ({"TERM": "dumb"}, False)):
            text, status = terminals.run([TRACEALLOC, "top", "x.ta"], stderr=None,
                                         env={**os.environ, "NO_COLOR": "", **environment})
            self.assertEqual(status, 0)
            self.assertEqual("\x1b[" in text, colours, environment)
            self.assertIn("leak", text)


if __name__ == "__main__":
    unittest.main()
