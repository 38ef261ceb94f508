"""test_ctl.py: a running process is started, stopped and asked for snapshots from outside, also while it works, after
fork and exec, as a daemon, and when it has given up its rights.

    test_ctl.py TRACEALLOC LIBRARY [--real]          --real: redis under redis-benchmark, 1000 times on and off
"""
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

REAL = "--real" in sys.argv and (sys.argv.remove("--real") or True)
TRACEALLOC, LIBRARY = [os.path.abspath(sys.argv.pop(1)) for _ in range(2)]
for name in ("LD_PRELOAD", "TRACEALLOC_OPTIONS", "TRACEALLOC"):
    os.environ.pop(name, None)
os.environ.update(TRACEALLOC_LIBRARY=LIBRARY, LC_ALL="C.UTF-8")

# Does what it is told, a line at a time, and says so.
PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tracealloc/domain.h>
static void *kept[100000];
static int count;
__attribute__((noinline)) void grow(int blocks) { while (blocks-- > 0) { kept[count] = malloc(100); memset(kept[count++], 1, 100); } }
static void *churn(void *unused)
{
    for (unsigned i = 0;; i++) { void *volatile a = malloc(i % 5000), *volatile b = calloc(1, i % 70); a = realloc(a, i % 900 + 1); free(b); free(a); }
    return unused;
}
int main(int argc, char **argv)
{
    char line[100];
    pthread_t thread;
    if (argc > 1) grow(7);
    while (fgets(line, sizeof line, stdin) != NULL) {
        int number = atoi(line + 1);
        switch (*line) {
        case 'g': grow(number); break;
        case 't': while (number-- > 0) pthread_create(&thread, NULL, churn, NULL); break;
        case 'f': if (fork() > 0) { wait(NULL); _exit(0); } break;        /* the child goes on with the lines */
        case 'd': if (fork() > 0) _exit(0); setsid(); break;              /* so does the daemon */
        case 'x': execl("/proc/self/exe", argv[0], "again", NULL); return 1;
        case 'u': if (setgid(number) || setuid(number)) return 1; break;
        case 'm': ta_domain_set_name(5, "images"); kept[count++] = ta_domain_malloc(5, number); break;
        case 'k': abort();
        }
        printf("%d\n", (int)getpid());
        fflush(stdout);
    }
    return 0;
}
"""


def ctl(process, *arguments, status=0, cwd=None, **more):
    done = subprocess.run([TRACEALLOC, "ctl", str(process), *arguments], capture_output=True, text=True, cwd=cwd, **more)
    assert done.returncode == status, f"ctl {arguments}: {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def until(test, what):
    for _ in range(600):
        answer = test()
        if answer:
            return answer
        time.sleep(0.05)
    raise AssertionError(f"{what}: never came")


def has_channel(process):
    return subprocess.run([TRACEALLOC, "ctl", str(process)], capture_output=True).returncode == 0


def sockets(process):
    places = [f"/run/user/{os.geteuid()}/tracealloc"] + [f"{place}/tracealloc-{os.geteuid()}" for place in ("/tmp", "/dev/shm", "/var/tmp")]
    return [os.path.join(place, name) for place in places if os.path.isdir(place) for name in os.listdir(place)
            if name.startswith(f"{process}-")]


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build = tempfile.mkdtemp()
        os.chmod(cls.build, 0o755)
        cls.program = os.path.join(cls.build, "program")
        with open(cls.program + ".c", "w") as file:
            file.write(PROGRAM)
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
        subprocess.run(["gcc", "-g", "-O1", "-fno-builtin", "-I" + os.path.join(root, "include"), cls.program + ".c", "-o",
                        cls.program, "-L" + os.path.dirname(LIBRARY), "-ltracealloc", "-Wl,-rpath," + os.path.dirname(LIBRARY),
                        "-lpthread"], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.build)

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.processes = []

    def tearDown(self):
        for process in self.processes:  # with what it has started: a child that is left holds our output
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        shutil.rmtree(self.folder)

    def begin(self, *command, options=None, **more):
        """Answers its number, when it has a channel."""
        if options is not None:
            more["env"] = dict(os.environ, TRACEALLOC_OPTIONS=options)
        self.process = subprocess.Popen(command or [self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self.folder,
                                        stderr=subprocess.PIPE if command else None, start_new_session=True, **more)
        self.processes.append(self.process)
        number = self.do("-")
        until(lambda: has_channel(number), "a channel")
        return number

    def do(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def path(self, name):
        return os.path.join(self.folder, name)

    def rows(self, file):
        done = subprocess.run([TRACEALLOC, "top", file, "--json"], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {}
        for row in json.loads(done.stdout):
            size, count = rows.get(row["function"], (0, 0))
            rows[row["function"]] = (size + row["size"], count + row["count"])
        return rows

    def grown(self, file):
        return sum(count for key, (_, count) in self.rows(file).items() if key == "grow")

    def reasons(self, file):
        listed = json.loads(subprocess.run([TRACEALLOC, "list", file, "--json"], capture_output=True, text=True, cwd=self.folder).stdout)
        for i in (0, len(listed) // 2, len(listed) - 1):
            told = subprocess.run([TRACEALLOC, "info", f"{file}@{i}"], capture_output=True, text=True, cwd=self.folder).stdout
            self.assertEqual(listed[i]["reason"], re.search(r"^reason +(.*)$", told, re.M).group(1))
        return [entry["reason"] for entry in listed]


@unittest.skipIf(REAL, "the small program is in the daily tests")
class Small(Case):
    def test_a_process_that_rests_is_traced_for_as_long_as_somebody_asks(self):
        process = self.begin(TRACEALLOC, "run", "--stopped", "-o", "a.ta", "--", self.program)
        self.assertRegex(ctl(process), r"^\d+: not tracing\nit has written no entry yet\n$")
        self.do("g 10")
        self.assertEqual(ctl(process, "start", "30"), f"{process}: tracing, 30 frames\n")
        self.assertIn("is tracing already, 30 frames", ctl(process, "start"))
        self.do("g 20")
        ctl(process, "mark", "before", "the", "load")
        self.assertRegex(ctl(process, "status"), r": tracing, 30 frames; 2000 B live, peak [\d.]+ K?i?B, tables [\d.]+ \w+\nrecording in ")
        self.do("g 5")
        self.assertRegex(ctl(process, "snapshot"), r"^\d+: one more entry in \S+/a\.ta\n$")
        ctl(process, "snapshot", "-o", self.path("now.ta"))
        self.assertEqual(self.grown("now.ta"), 25)
        self.do("g 3")
        self.assertRegex(ctl(process, "stop"), r"^\d+: no longer tracing; recording in \S+/a\.ta\n$")
        self.assertEqual(self.grown("a.ta"), 28)
        self.assertEqual(ctl(process, "stop"), f"{process}: is not tracing\n")
        self.assertRegex(ctl(process, "snapshot", status=2), "nothing is traced")
        self.do("g 100")
        ctl(process, "start")
        self.do("g 4")
        ctl(process, "clear")
        self.do("g 2")
        self.process.stdin.close()
        self.process.wait()
        self.assertEqual(self.grown("a.ta"), 2)
        reasons = [reason for reason in self.reasons("a.ta") if reason != "pace"]
        self.assertEqual(reasons, ["mark: before the load", "ctl", "stop", "clear", "exit"])
        self.assertRegex(self.process.stderr.read(), r"tracealloc: recording in a\.ta \(\d+ entries\)")
        self.assertEqual(self.grown("a.ta@before the load"), 20)
        self.assertEqual(self.grown("a.ta@stop"), 28)
        missing = subprocess.run([TRACEALLOC, "top", "a.ta@after"], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual((missing.returncode, missing.stdout), (2, ""))
        self.assertIn('a.ta has no entry with the mark "after"', missing.stderr)
        self.assertEqual(sockets(process), [])

    def test_who_watches_the_program_is_taken_for_it(self):
        name = f"pidof{os.getpid()}"
        shutil.copy(self.program, self.path(name))
        program = self.begin(TRACEALLOC, "run", "-q", "-o", "a.ta", "--", self.path(name))
        self.do("g 10")
        children = f"/proc/{program}/task/{program}/children"
        keeper = int(until(lambda: open(children).read().split(), "who watches it")[-1])
        until(lambda: open(f"/proc/{keeper}/comm").read() == "tracealloc\n", "its name")
        if shutil.which("pidof"):
            listed = [int(number) for number in subprocess.run(["pidof", name], capture_output=True, text=True).stdout.split()]
            self.assertEqual(sorted(listed), sorted([program, keeper]))

        def answer(*words, status=0):
            done = subprocess.run([TRACEALLOC, *map(str, words)], capture_output=True, text=True, cwd=self.folder)
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
            return done.stdout if status == 0 else done.stderr

        for named in ([keeper, program], [program, keeper], [keeper]):
            self.assertRegex(answer("ctl", *named), rf"^{program}: tracing")
            self.assertEqual(answer("ctl", *named, "mark", "7"), f"{program}: marked\n")
            self.assertEqual([one["process"] for one in json.loads(answer("memory", *named, "--json"))], [program])
            self.assertIn(f"process {program} in now.ta", answer("take", *named, "-o", "now.ta"))
            self.assertEqual(self.grown("now.ta"), 10)
            self.assertIn(f"(process {program})", answer("leaks", *named))
            self.assertIn(f"(process {program})", answer("retained", *named))
            self.assertIn("0x10 ", answer("why", "0x10", *named))
            self.assertIn("needs a terminal", answer("watch", *named, status=2))
        # One that is named twice is meant twice; two programs are two.
        self.assertEqual([one["process"] for one in json.loads(answer("memory", program, program, "--json"))], [program] * 2)
        first, other = program, self.begin(TRACEALLOC, "run", "-q", "-o", "b.ta", "--", self.path(name))
        self.assertEqual([one["process"] for one in json.loads(answer("memory", keeper, other, first, "--json"))], [other, first])
        self.assertIn(f"one process, please, not {other} and {first}", answer("ctl", other, keeper, status=2))
        # A program of the same name is itself.
        shutil.copy(self.program, self.path("tracealloc"))
        same = self.begin(TRACEALLOC, "run", "-q", "-o", "c.ta", "--", self.path("tracealloc"))
        self.assertRegex(answer("ctl", same), rf"^{same}: tracing")
        for process in self.processes:  # each has written its last entry then
            process.stdin.close()
            process.wait()

    def test_stopped_again_and_never_started(self):
        process = self.begin(TRACEALLOC, "run", "--stopped", "-o", "a.ta", "--", self.program)
        self.process.stdin.close()
        self.process.wait()
        self.assertIn("nothing was recorded: tracing was switched off", self.process.stderr.read())
        self.assertEqual(os.listdir(self.folder), [])
        process = self.begin(TRACEALLOC, "run", "-q", "--stopped", "-o", "a.ta", "--", self.program)
        ctl(process, "start")
        self.do("g 9")
        ctl(process, "stop")
        self.process.stdin.close()
        self.process.wait()
        self.assertEqual(self.process.stderr.read(), "")
        self.assertEqual(self.grown("a.ta"), 9)

    def test_a_linked_program_without_a_recording(self):
        process = self.begin(options="control=yes")
        self.do("g 10")
        self.assertRegex(ctl(process), r"not tracing\nit has no recording: snapshot -o FILE takes one\n")
        ctl(process, "start")
        self.do("g 6")
        self.assertEqual(ctl(process, "snapshot", cwd=self.folder), f"{process}: snapshot in tracealloc.{process}.1.ta\n")
        self.assertEqual(ctl(process, "snapshot", cwd=self.folder), f"{process}: snapshot in tracealloc.{process}.2.ta\n")
        self.assertEqual(self.grown(f"tracealloc.{process}.2.ta"), 6)
        self.assertIn("no recording", ctl(process, "mark", "x", status=2))
        self.assertIn("no recording", ctl(process, "interval", "1", status=2))
        told = json.loads(ctl(process, "status", "--json"))
        self.assertEqual((told["process"], told["tracing"], told["live"], told["recording"]), (process, True, 600, None))
        self.process.stdin.close()
        self.process.wait()
        self.assertEqual(len(os.listdir(self.folder)), 2)

    def test_interval_and_limit(self):
        process = self.begin(options=f"control=yes,output={self.path('a.ta')},series=yes")
        ctl(process, "start")
        ctl(process, "interval", "0.05")
        until(lambda: os.path.exists(self.path("a.ta")) and self.reasons("a.ta").count("interval") >= 3, "entries")
        ctl(process, "interval", "0")
        self.do("m 10")
        self.assertIn("no such domain", ctl(process, "limit", "6", "1KiB", status=2))
        self.assertIn("no such domain", ctl(process, "limit", "imagesque", "1KiB", status=2))
        self.assertIn("domain 0 can have no limit", ctl(process, "limit", "0", "1KiB", status=2))
        self.assertRegex(ctl(process, "limit", "images", "1KiB"), r"domain images: an entry at 1024 B")
        self.do("m 10000")
        until(lambda: "limit" in self.reasons("a.ta"), "the limit's entry")
        self.assertRegex(ctl(process, "limit", "5", "1KiB", "--hard"), "no more memory")
        self.do("m 2000")
        told = subprocess.run([TRACEALLOC, "domains", "a.ta"], capture_output=True, text=True, cwd=self.folder).stdout
        self.assertIn("images", told)

    def test_children_daemons_and_other_programs_have_one_of_their_own(self):
        first = self.begin(options="control=yes")
        until(lambda: sockets(first), "a socket")
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(sockets(first)[0])).st_mode), 0o700)
        for what in "fd":
            child = self.do(what)
            self.assertNotEqual(child, first)
            until(lambda: has_channel(child), "the child's channel")
            ctl(child, "stop")  # a child is traced where its parent was
            ctl(child, "start")
            self.do("g 4")
            ctl(child, "snapshot", "-o", self.path(what))
            self.assertEqual(self.grown(what), 4)
        self.process.stdin.write("x\n")  # says nothing itself; what stdio had read ahead would be lost
        self.process.stdin.flush()
        until(lambda: "again" in open(f"/proc/{child}/cmdline").read(), "the other program")
        self.assertEqual(self.do("-"), child)
        until(lambda: has_channel(child), "the other program's channel")
        self.assertIn("not tracing", ctl(child))
        ctl(child, "start")
        self.do("g 3")
        ctl(child, "snapshot", "-o", self.path("again"))
        self.assertEqual(self.grown("again"), 3)
        self.process.stdin.close()
        self.process.stdout.read()
        until(lambda: not has_channel(child), "the end")
        until(lambda: sockets(child) == [] and sockets(first) == [], "nothing is left")
        self.assertIn("is not there", ctl(child, status=2))

    def test_on_and_off_while_threads_allocate(self):
        process = self.begin(options=f"control=yes,output={self.path('a.ta')},series=auto")
        self.do("t 4")
        for i in range(60):
            ctl(process, "start", str(1 + i % 40))
            if i % 3 == 0:
                ctl(process, "snapshot")
            if i % 7 == 0:
                ctl(process, "clear")
            ctl(process, "stop")
        ctl(process, "start")
        self.do("g 11")
        ctl(process, "stop")
        self.assertEqual(self.grown("a.ta"), 11)
        self.process.kill()
        self.process.wait()
        until(lambda: sockets(process) == [], "nothing is left of a process that was killed")
        self.assertEqual(subprocess.run([TRACEALLOC, "check", self.path("a.ta")], capture_output=True).returncode, 0)

    def test_sockets_of_the_dead_are_swept_and_no_others(self):
        living = [self.begin(options="control=yes") for _ in range(3)]
        mine = [until(lambda: sockets(process), "a socket")[0] for process in living]
        folder, space = os.path.dirname(mine[0]), os.stat("/proc/self/ns/pid").st_ino
        others = [os.path.join(folder, name) for name in (f"4194305-{space + 1}", f"none-{space}", f"0-{space}", "4194305")]
        dead = [os.path.join(folder, f"{number}-{space}") for number in range(4194305, 4194345)]
        for name in others + dead:
            with open(name, "w"):
                pass
        try:
            self.assertIn("has no channel", ctl(os.getpid(), status=2))
            self.assertEqual([name for name in dead if os.path.exists(name)], [])
            self.assertEqual([name for name in mine + others if not os.path.exists(name)], [])
        finally:
            for name in others + dead:
                if os.path.exists(name):
                    os.unlink(name)
        for process in living:
            self.assertIn("not tracing", ctl(process))

    def test_what_cannot_be_written_is_not_lost(self):
        os.mkdir(self.path("gone"))
        process = self.begin(options=f"control=yes,output={self.path('gone/a.ta')},series=yes")
        os.rmdir(self.path("gone"))
        ctl(process, "start")
        self.do("g 12")
        said = ctl(process, "stop", status=2)
        self.assertIn("No such file", said)
        self.assertIn("it is traced as before: take what it holds with snapshot -o FILE", said)
        ctl(process, "clear", status=2)
        ctl(process, "snapshot", "-o", self.path("now.ta"))
        self.assertEqual(self.grown("now.ta"), 12)
        self.assertIn("no longer tracing", ctl(process, "stop", "--force"))

    def test_who_may_not_and_what_is_not(self):
        self.assertIn("has no channel: start it with tracealloc run, or with control=yes", ctl(os.getpid(), status=2))
        self.assertIn("is not there", ctl(2 ** 22 + 1, status=2))
        self.assertIn("expected the number of a process", ctl("redis", status=2))
        process = self.begin(options="control=yes")
        for words, said in ((["begin"], "there is no 'begin'"), (["start", "0"], "range"), (["start", "5", "6"], "too many words"),
                            (["mark"], "too few"), (["interval", "soon"], "expected seconds"), (["limit", "5", "much"], "limit"),
                            (["status", "--loud"], "unknown option"), (["snapshot", "-o", "/nowhere/a.ta"], "/nowhere/a.ta: No such file")):
            self.assertIn(said, ctl(process, *words, status=2))
        self.assertIn("nothing is traced", ctl(process, "snapshot", "-o", self.path("x"), status=2))
        self.assertFalse(os.path.exists(self.path("x")))
        plain = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.processes.append(plain)
        self.assertIn("has no channel", ctl(plain.pid, status=2))

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root")
    def test_other_users_may_not_and_given_up_rights_do_not_matter(self):
        process = self.begin(options="control=yes")
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        done = subprocess.run([*nobody, TRACEALLOC, "ctl", str(process)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("belongs to somebody else", done.stderr)
        self.do("u 65534")
        with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
            keeper = int(file.read().split()[0])
        until(lambda: "\nUid:\t65534\t65534\t" in open(f"/proc/{keeper}/status", encoding="utf-8").read(), "the keeper follows")
        ctl(process, "start")
        self.do("g 8")
        ctl(process, "snapshot", "-o", self.path("now.ta"))
        self.assertEqual(self.grown("now.ta"), 8)


@unittest.skipUnless(REAL, "real programs are in the long tests")
class Redis(Case):
    def holds_something(self, process):
        ctl(process, "snapshot", "-o", self.path("now.ta"))
        return any(re.search("dict|sds|create|lp|zmalloc", key) and size > 0 for key, (size, _) in self.rows("now.ta").items())

    def test_a_thousand_times_on_and_off_under_load(self):
        server = subprocess.Popen(["redis-server", "--port", "7946", "--save", "", "--appendonly", "no"], cwd=self.folder,
                                  stdout=subprocess.DEVNULL, start_new_session=True, env=dict(os.environ, LD_PRELOAD=LIBRARY, TRACEALLOC_OPTIONS="control=yes"))
        self.processes.append(server)
        until(lambda: has_channel(server.pid), "a channel")
        until(lambda: subprocess.run(["redis-cli", "-p", "7946", "ping"], capture_output=True, text=True).stdout == "PONG\n", "the server")
        load = subprocess.Popen(["redis-benchmark", "-p", "7946", "-q", "-l", "-n", "100000", "-r", "5000", "-t", "set,lpush,hset"],
                                stdout=subprocess.DEVNULL, start_new_session=True)
        self.processes.append(load)

        def resident():
            with open(f"/proc/{server.pid}/statm") as file:
                return int(file.read().split()[1]) * 4096

        early = 0
        for i in range(1000):
            ctl(server.pid, "start", *(["20"] if i % 2 else []))
            if i % 50 == 0:
                until(lambda: self.holds_something(server.pid), "what it holds")
                self.assertEqual(subprocess.run([TRACEALLOC, "check", self.path("now.ta")], capture_output=True).returncode, 0)
            ctl(server.pid, "stop")
            if i == 200:
                early = resident()
        load.kill()
        load.wait()
        self.assertLess(resident(), 2 * early + (64 << 20), "the tables of a thousand epochs stay")
        self.assertEqual(subprocess.run(["redis-cli", "-p", "7946", "ping"], capture_output=True, text=True).stdout, "PONG\n")
        subprocess.run(["redis-cli", "-p", "7946", "flushall"], capture_output=True)

        # Nothing is lost: what it holds is counted to the last key.
        ctl(server.pid, "start")
        subprocess.run(["redis-cli", "-p", "7946", "eval", "for i = 1, 5000 do redis.call('set', 'key' .. i, i) end", "0"],
                       capture_output=True)
        ctl(server.pid, "snapshot", "-o", self.path("now.ta"))
        self.assertEqual(sum(count for key, (_, count) in self.rows("now.ta").items() if key == "dictAddRaw"), 5001,
                         "the keys, and the script that made them")
        ctl(server.pid, "stop")
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)


if __name__ == "__main__":
    if REAL and shutil.which("redis-benchmark") is None:
        print("no redis here")
        sys.exit(77)
    unittest.main()
