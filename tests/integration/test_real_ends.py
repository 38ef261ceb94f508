"""test_real_ends.py: real programs, every way to end, every process of them: what the last entry says is what lived.

    test_real_ends.py TRACEALLOC LIBRARY CC WAYS [TEST …]

WAYS is `few` or `all`. The truth is kept in the programs themselves (tests/support/truth.c, preloaded beside the library): it
allocates while they read, write and wait, and leaves a row for every program that a process was in a shared file.
"""
import glob
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

TRACEALLOC, LIBRARY, CC, WAYS = [os.path.abspath(name) for name in sys.argv[1:3]] + sys.argv[3:5]
del sys.argv[1:5]
os.environ["TRACEALLOC_LIBRARY"] = LIBRARY
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support", "truth.c")
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
SIGNALS = ("SEGV", "BUS", "FPE", "ILL", "TRAP", "ABRT", "TERM", "KILL") if WAYS == "all" else ("SEGV", "KILL")
ROW, ROWS = 64, 60000
NGINX = """
%sdaemon %s;
master_process %s;
pid %s/nginx.pid;
worker_processes 2;
error_log %s/error.log;
events { worker_connections 64; }
http { access_log off; server { listen unix:%s/socket; location / { return 200 "fine"; } } }
"""


def wait_until(condition, what, seconds=60):
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            raise AssertionError("never: " + what)
        time.sleep(0.01)


def connect(talk):
    """The name is there a moment before who listens."""
    def is_connected():
        try:
            talk.connect("socket")
        except ConnectionRefusedError:
            return False
        return True
    wait_until(is_connected, "a connection")


class RealEnds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        os.chdir(cls.folder)
        os.chmod(cls.folder, 0o755)
        subprocess.run([CC, "-g", "-O1", "-shared", "-fPIC", "-pthread", "-o", "truth.so", SOURCE, "-ldl"], check=True)
        cls.environment = {**os.environ, "LD_PRELOAD": cls.folder + "/truth.so", "TRUTH": cls.folder + "/truth"}

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.fresh()

    def tearDown(self):
        for pid in {row[0] for row in self.truth()}:  # what a failed test leaves
            try:
                with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
                    if self.folder + "/truth" in file.read():
                        os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def fresh(self):
        for name in glob.glob("x.*"):
            if os.path.isdir(name):
                shutil.rmtree(name)
            else:
                os.unlink(name)
        for name in glob.glob("socket") + glob.glob("truth"):
            os.unlink(name)
        with open("truth", "wb") as file:
            file.truncate(8 + ROW * ROWS)
        os.chmod("truth", 0o666)

    def truth(self):
        with open("truth", "rb") as file:
            count = struct.unpack("q", file.read(8))[0]
            return [(*struct.unpack("4q", row[:32]), row[32:].split(b"\0")[0].decode())
                    for row in (file.read(ROW) for _ in range(count))]

    def pids(self, program):
        return [row[0] for row in self.truth() if row[4] == program]

    def begin(self, *command):
        return subprocess.Popen([TRACEALLOC, "run", "-q", "-o", "x.ta", *command], env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def listed(self):
        done = subprocess.run([TRACEALLOC, "list", "x.run", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=False)
        if done.returncode != 0:
            return []
        return [row for row in json.loads(done.stdout) if row["file"] != "-"]

    def files(self):
        return [name for name in glob.glob("x.ta*") + glob.glob("x.run/*.ta*") if not name.endswith(".tmp")]

    def facts(self, name):
        done = subprocess.run([TRACEALLOC, "info", name, "--csv"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                              text=True)
        return dict(line.split(",", 1) for line in done.stdout.splitlines() if "," in line)

    def recorded(self, name):
        done = subprocess.run([TRACEALLOC, "top", name, "--by", "function", "--json", "-n", "0"], stdout=subprocess.PIPE,
                              check=True)
        for row in json.loads(done.stdout):
            if row["key"] == "ours":
                return row["size"], row["count"]
        return 0, 0

    def assert_true_to_the_end(self, what):
        """Each recording is what one program of its process held at last; each program has one, but those that were forked
        only to become another."""
        wait_until(lambda: all(self.facts(name).get("reason") in ("exit", "end", "exec") for name in self.files()),
                   f"{what}: the last entries of all", 60)
        found = {}
        for name in self.files():
            facts = self.facts(name)
            found.setdefault(int(facts["process"] if facts.get("process") else facts["pid"]), []).append((*self.recorded(name), name))
        left = {}
        for pid, size, count, is_forked, program in self.truth():
            left.setdefault(pid, []).append((size, count, is_forked, program))
        for pid, recordings in found.items():
            for size, count, name in recordings:
                near = [row for row in left.get(pid, []) if abs(row[0] - size) <= 2000 and abs(row[1] - count) <= 1]
                self.assertTrue(near, (what, name, size, count, left.get(pid)))
                left[pid].remove(min(near, key=lambda row: (abs(row[0] - size), row[2])))
        for pid, rows in left.items():
            for at, row in enumerate(rows):
                self.assertTrue(row[2] and len(rows) - at + len(found.get(pid, [])) > 1, (what, pid, row, found.get(pid)))
        return found

    # ---- the subjects ----

    def test_python(self):
        ends = {"sys.exit(3)": 3, "os._exit(4)": 4, "os.abort()": -signal.SIGABRT, "os.execlp('true', 'true')": 0,
                "ctypes.string_at(0)": -signal.SIGSEGV, "raise KeyError": 1,
                "os.fork() or os.kill(os.getpid(), signal.SIGKILL); os.wait()": 0}
        for name in SIGNALS:
            ends[f"os.kill(os.getpid(), signal.SIG{name})"] = -signal.Signals["SIG" + name]
        for end, status in ends.items():
            self.fresh()
            script = "import ctypes, os, signal, sys, threading\nfile = os.open('/dev/zero', os.O_RDONLY)\n" \
                     "def work():\n  for i in range(300): os.read(file, 10)\n" \
                     "other = threading.Thread(target=work); other.start(); work(); other.join()\n" + end
            self.assertEqual(self.begin(PYTHON, "-c", script).wait(), status, end)
            self.assert_true_to_the_end(end)

    def test_pipelines(self):
        for name in SIGNALS:
            self.fresh()
            running = self.begin("sh", "-c", "cat /dev/zero | cat | head -c 3000000 | sort | tail -c 10; "
                                 f"cat /dev/zero | (sh -c 'kill -{name} $$; exec true'; true) | cat; exec sh -c 'exit 7'")
            self.assertEqual(running.wait(), 7)
            found = self.assert_true_to_the_end("pipeline " + name)
            self.assertGreaterEqual(len(found), 9)

    def test_make(self):
        with open("Makefile", "w") as file:
            file.write("all: " + " ".join(SIGNALS) + "\n")
            for name in SIGNALS:
                file.write(f"{name}:\n\t@cat Makefile | cat | {PYTHON} -c 'import os, signal, sys; sys.stdin.read(); "
                           f"os.kill(os.getpid(), signal.SIG{name})'\n")
        self.assertEqual(self.begin("make", "-k", "-s", "-j2").wait(), 2)
        found = self.assert_true_to_the_end("make")
        self.assertGreaterEqual(len(found), 1 + 4 * len(SIGNALS))

    @unittest.skipUnless(shutil.which("redis-server"), "no redis here")
    def test_redis(self):
        """Without its own test of all memory at a crash (crash-memcheck-enabled): that writes patterns into everything that is
        mapped, and back, for a minute where memory is reserved as tracing does."""
        for name in (*SIGNALS, "SHUTDOWN"):
            self.fresh()
            running = self.begin("redis-server", "--port", "0", "--unixsocket", self.folder + "/socket", "--save", "",
                                 "--dir", self.folder, "--crash-memcheck-enabled", "no")
            wait_until(lambda: os.path.exists("socket"), "redis listens")
            with socket.socket(socket.AF_UNIX) as talk:
                connect(talk)
                for i in range(200):
                    talk.sendall(f"SET key{i} x{i}\r\n".encode())
                    self.assertEqual(talk.recv(100), b"+OK\r\n")
                if name == "SHUTDOWN":
                    talk.sendall(b"SHUTDOWN NOSAVE\r\n")
                else:
                    os.kill(self.pids("redis-server")[0], signal.Signals["SIG" + name])
                running.wait()
            self.assert_true_to_the_end("redis " + name)

    def serve(self, is_daemon, has_master):
        self.fresh()
        with open("nginx.conf", "w") as file:
            file.write(NGINX % ("user daemon;\n" if os.getuid() == 0 else "", is_daemon, has_master, *[self.folder] * 3))
        running = self.begin("nginx", "-c", self.folder + "/nginx.conf")
        wanted = {"on": 4 if is_daemon == "on" else 3, "off": 1}[has_master]
        wait_until(lambda: len(self.pids("nginx")) >= wanted and os.path.exists("socket"), "nginx listens")
        for _ in range(20):
            with socket.socket(socket.AF_UNIX) as talk:
                connect(talk)
                talk.sendall(b"GET / HTTP/1.0\r\n\r\n")
                answer = b""
                while b"fine" not in answer:
                    answer += talk.recv(1000)
        return running

    def is_there(self, pid):
        try:
            with open(f"/proc/{pid}/statm") as file:
                return file.read(1) != "0"
        except OSError:
            return False

    def is_watched(self, pid):
        """By a process of its own, or it has ended, or has a recording already."""
        for name in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(name) as file:
                    program, rest = file.read().rsplit(")", 1)
            except OSError:
                continue
            if program.endswith("(tracealloc") and int(rest.split()[1]) == pid:
                return True
        return not self.is_there(pid) or any(self.facts(name).get("process") == str(pid) for name in self.files())

    def wait_for_watching(self):
        """Who is killed as soon as it is born has no recording yet: another worker may have given all answers."""
        wait_until(lambda: all(self.is_watched(pid) for pid in self.pids("nginx")), "each is watched")

    @unittest.skipUnless(shutil.which("nginx"), "no nginx here")
    def test_nginx_alone(self):
        for name in (*SIGNALS, "QUIT"):
            running = self.serve("off", "off")
            os.kill(self.pids("nginx")[0], signal.Signals["SIG" + name])
            running.wait()
            self.assert_true_to_the_end("nginx alone " + name)

    @unittest.skipUnless(shutil.which("nginx"), "no nginx here")
    def test_nginx_and_its_workers(self):
        for mode in ("off", "on"):
            for name in SIGNALS:
                running = self.serve(mode, "on")
                first, *workers = self.pids("nginx")
                master = workers.pop(0) if mode == "on" else first
                before = len(self.truth())
                self.wait_for_watching()
                os.kill(workers[0], signal.Signals["SIG" + name])
                if name != "TERM":
                    wait_until(lambda: len(self.truth()) > before, "another worker")
                self.wait_for_watching()
                os.kill(master, signal.SIGKILL if name == "KILL" else signal.SIGQUIT)
                if name == "KILL":
                    for worker in self.pids("nginx"):
                        if self.is_there(worker):
                            os.kill(worker, signal.SIGKILL)
                running.wait()
                wait_until(lambda: not any(self.is_there(pid) for pid in self.pids("nginx")), "nginx ends")
                found = self.assert_true_to_the_end(f"nginx, daemon {mode}, {name}")
                self.assertGreaterEqual(len(found), 3)
                self.assertEqual({os.stat(name).st_mode & 0o777 for name in self.files()}, {0o600})


if __name__ == "__main__":
    unittest.main(verbosity=2)
