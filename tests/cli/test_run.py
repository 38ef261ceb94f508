"""test_run.py: tracealloc run passes everything through, and refuses what it cannot trace.

    test_run.py TRACEALLOC LIBRARY
"""
import glob
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

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
    if (strcmp(argv[1], "vfork") == 0) { if (vfork() == 0) _exit(0); return 0; }
    if (strcmp(argv[1], "quick_exit") == 0) quick_exit(6);
    if (strcmp(argv[1], "churn") == 0) churn();
    if (strcmp(argv[1], "daemon") == 0) { if (daemon(1, 1) == 0) usleep(argc > 2 ? 500000u : 0u); return 0; }
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

    def test_death_by_signal_is_passed_on(self):
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT):
            done = self.run_it("-o", "x.ta", "sh", "-c", f"kill -{int(number)} $$")
            self.assertEqual(done.returncode, -number)
            self.assertEqual(done.stderr.decode(),
                             f"tracealloc: no recording was written: {number.name} ended the program before it could "
                             "(--interval=1 records on the way)\n")

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
        self.assertEqual(len(glob.glob("x.ta*")), 4)
        self.assertEqual(glob.glob("*.tmp"), [])

    def child_of(self, process):
        with open(f"/proc/{process}/task/{process}/children") as file:
            return int(file.read().split()[0])

    def test_a_series_survives_death_by_signal(self):
        with subprocess.Popen([TRACEALLOC, "run", "--interval=0.05", "-o", "x.ta", "./leak", "wait"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            running.stdout.readline()
            while not os.path.exists("x.ta") or self.entries("x.ta") < 2:
                pass
            os.kill(self.child_of(running.pid), signal.SIGKILL)
            self.assertRegex(running.stderr.read().decode(), r"\Atracealloc: recording in x\.ta \(\d+ entries\)\n"
                             r"tracealloc: next: tracealloc diff --grown x\.ta x\.ta@0\n\Z")
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
        self.assertGreaterEqual(len(glob.glob("x.ta.*")), 2)
        self.assertIn(b"of other processes", done.stderr)

    def test_no_follow_leaves_children_alone(self):
        self.run_it("--no-follow", "-o", "x.ta", "./leak", "spawn", "./leak; ./leak")
        self.assertEqual(glob.glob("x.ta*"), ["x.ta"])

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
            self.assertEqual(glob.glob("x.ta*"), ["x.ta"])
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

    def test_workers_leave_recordings_and_the_largest_is_named(self):
        done = self.run_it("-o", "x.ta", "./leak", "workers")
        files = sorted(glob.glob("x.ta.*"))
        self.assertEqual(len(files), 2)
        for name in files:
            self.assertEqual(self.rows(name)["leak"], (1000000, 1000))
        self.assertRegex(done.stderr.decode(), r"\Atracealloc: recording in x\.ta and 2 of other processes; "
                         r"most memory in (x\.ta\.\d+)\ntracealloc: next: tracealloc top \1\n\Z")

    def test_only_names_of_the_run_are_opened_for_who_knows_the_token(self):
        script = ("import os, socket, struct, sys\n"
                  "name, token = os.environ['TRACEALLOC_OPENER'].split(':')\n"
                  "def ask(token, path):\n"
                  "    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:\n"
                  "        s.connect(b'\\0' + name.encode())\n"
                  "        s.send(token.encode() + b'O' + os.path.realpath(path).encode())\n"
                  "        answer, files, _, _ = socket.recv_fds(s, 4, 1)\n"
                  "        return (struct.unpack('i', answer)[0] if answer else None), len(files)\n"
                  "print([ask(token, p) for p in ('x.ta', 'x.ta.77', 'x.tar', 'x.ta.7.gz', 'y.ta', 'x.ta/../y')],"
                  " ask('0' * len(token), 'x.ta'))\n")
        done = self.run_it("-q", "-o", "x.ta", sys.executable, "-c", script)
        self.assertEqual(done.stdout.decode(), "[(0, 1), (0, 1), (13, 0), (13, 0), (13, 0), (13, 0)] (None, 0)\n", done.stderr)
        self.assertFalse(os.path.exists("y.ta") or os.path.exists("x.tar"))

    def test_a_daemon_is_told_of(self):
        done = self.run_it("-o", "x.ta", "./leak", "daemon", "long")
        self.assertEqual(done.stderr.decode(), "tracealloc: no recording yet: 1 process still runs in the background "
                         "(--interval=1 records on the way)\n")
        while not glob.glob("x.ta.*"):
            pass

    def test_why_nothing_was_written_is_told(self):
        with subprocess.Popen([TRACEALLOC, "run", "-o", "gone/x.ta", "./leak", "wait"], stdout=subprocess.PIPE) as missing:
            missing.wait()
        self.assertEqual(missing.returncode, 125)
        os.mkdir("gone")
        with subprocess.Popen([TRACEALLOC, "run", "--signal=USR2", "-o", "gone/x.ta", "./leak", "wait"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            running.stdout.readline()
            os.rmdir("gone")
            running.send_signal(signal.SIGUSR2)
            time.sleep(0.2)
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
        done = self.run_it("-q", "--rules=rules", "-o", "x.ta", "./leak")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, rb"\Atracealloc: [^\n]*rules[^\n]*\n\Z")

    def test_samples_are_scaled(self):
        self.run_it("-q", "--sample=4KiB", "-o", "x.ta", "./leak", "workers")
        files = glob.glob("x.ta.*")
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
            parent, terminal = pty.openpty()
            subprocess.run([TRACEALLOC, "top", "x.ta"], stdout=terminal, check=True,
                           env={**os.environ, "NO_COLOR": "", **environment})
            os.close(terminal)
            text = b""
            while True:
                try:
                    piece = os.read(parent, 65536)
                except OSError:
                    break
                if not piece:
                    break
                text += piece
            os.close(parent)
            self.assertEqual(b"\x1b[" in text, colours, environment)
            self.assertIn(b"leak", text)


if __name__ == "__main__":
    unittest.main()
