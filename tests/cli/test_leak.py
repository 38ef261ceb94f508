"""test_leak.py: a leak of 100 bytes per request in programs as they are installed, found in three commands.

    test_leak.py TRACEALLOC LIBRARY

The leak sits in a library that the program loads (a wrapper of accept, an extension): the program itself is untouched
and mostly stripped. The second command is the one that the first one proposes.
"""
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

TRACEALLOC, LIBRARY = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
for name in ("LD_PRELOAD", "TRACEALLOC_OPTIONS", "TRACEALLOC"):
    os.environ.pop(name, None)
os.environ.update(TRACEALLOC_LIBRARY=LIBRARY, LC_ALL="C.UTF-8")

LEAK = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
static char *volatile last;
__attribute__((noinline)) void note_peer(void)
{
    last = malloc(100); /* the leak */
}
int accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags)
{
    static int (*next)(int, struct sockaddr *, socklen_t *, int);
    if (next == NULL)
        next = (int (*)(int, struct sockaddr *, socklen_t *, int))dlsym(RTLD_NEXT, "accept4");
    int connection = next(descriptor, address, length, flags);
    if (connection >= 0)
        note_peer();
    return connection;
}
"""
EXTENSION = """
#include <sqlite3ext.h>
#include <stdlib.h>
SQLITE_EXTENSION_INIT1
void note_peer(void);
static void note(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    note_peer();
    sqlite3_result_value(context, values[0]);
}
int sqlite3_leaky_init(sqlite3 *database, char **error, const sqlite3_api_routines *routines)
{
    (void)error;
    SQLITE_EXTENSION_INIT2(routines);
    return sqlite3_create_function(database, "note", 1, SQLITE_UTF8, NULL, note, NULL, NULL);
}
"""
REQUESTS = 2000
needs = lambda *programs: unittest.skipUnless(all(shutil.which(p, path=os.environ["PATH"] + ":/usr/sbin") for p in programs),
                                              f"{' or '.join(programs)} is not here")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def request(port, text):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(text)
        return connection.recv(4096)


class Leak(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        os.chdir(self.folder)
        os.chmod(".", 0o755)  # servers that give up their rights load from here
        with open("leak.c", "w", encoding="utf-8") as file:
            file.write(LEAK)
        subprocess.run(["cc", "-g", "-O1", "-shared", "-fPIC", "-o", "leak.so", "leak.c"], check=True)

    def tearDown(self):
        os.chdir("/")
        shutil.rmtree(self.folder)

    def tracealloc(self, command):
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        return done.stdout.decode()

    def follow(self, said, caller):
        """Commands two and three."""
        following = re.search(r"^tracealloc: next: tracealloc (.*)$", said, re.M)
        self.assertIsNotNone(following, said)
        command = shlex.split(following.group(1))
        self.assertEqual(command[:1], ["growth"], said)
        courses = self.tracealloc([TRACEALLOC, *command]).splitlines()
        first = courses[courses.index("") + 2]  # below the heading
        self.assertRegex(first, r"\A(steady|slowing|unsure) .*  leak\.c:8  note_peer\Z", "\n".join(courses))
        recording = command[1]
        first = self.tracealloc([TRACEALLOC, "diff", "--grown", recording, recording + "@0"]).splitlines()[1]
        row = re.fullmatch(r" *\+\S+ KiB +\S+ KiB +\+(\d+) +(\d+)  leak\.c:8  note_peer", first)
        self.assertIsNotNone(row, first)
        grown, live = map(int, row.groups())
        self.assertTrue(REQUESTS <= live <= REQUESTS + 50, first)  # and the attempts until the server was there
        self.assertGreater(grown, 0)
        told = self.tracealloc([TRACEALLOC, "biggest", recording, "--where", "file:*leak.c"])
        self.assertRegex(told, r"\A\d+ memory blocks: ")
        self.assertTrue(told.endswith("leak.c\", line 8\n    last = malloc(100); /* the leak */\n"), told)
        self.assertIn(caller, told)

    def serve(self, program, port, text, stop):
        with subprocess.Popen([TRACEALLOC, "run", "--interval=0.1", "-o", "server.ta", "--", *program],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              env={**os.environ, "LD_PRELOAD": os.path.abspath("leak.so")}) as server:
            try:
                for _ in range(300):
                    try:
                        request(port, text)
                        break
                    except OSError:
                        time.sleep(0.1)
                        self.assertIsNone(server.poll(), "the server ended")
                time.sleep(0.5)  # a few entries before the load
                for _ in range(REQUESTS):
                    self.assertTrue(request(port, text))
                stop(server)
                said = server.stderr.read().decode()
                server.wait(60)
            finally:
                if server.poll() is None:
                    server.terminate()
        return said

    @needs("nginx")
    def test_nginx_with_workers_that_give_up_their_rights(self):
        port = free_port()
        for name in ("body", "proxy", "fastcgi", "uwsgi", "scgi"):
            os.mkdir(name)
        with open("nginx.conf", "w", encoding="utf-8") as file:
            file.write(f"""
                daemon off; worker_processes 1; pid {self.folder}/pid; error_log {self.folder}/error.log;
                events {{ worker_connections 64; }}
                http {{
                    access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
                    uwsgi_temp_path uwsgi; scgi_temp_path scgi;
                    server {{ listen 127.0.0.1:{port}; location / {{ return 200 "hello"; }} }}
                }}""")
        nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")

        def stop(_):
            with open("pid", encoding="ascii") as file:
                os.kill(int(file.read()), signal.SIGQUIT)
        said = self.serve([nginx, "-p", self.folder, "-e", "error.log", "-c", "nginx.conf"], port,
                          b"GET / HTTP/1.0\r\n\r\n", stop)
        self.assertRegex(said, r"tracealloc: recording in server\.ta \(\d+ entries\) and \d+ of (other processes|another process) in server\.run; "
                         r"most memory in server\.run/\d+\.ta\n")
        self.follow(said, "/nginx\", line 0, in ngx_event_accept\n")

    @needs("redis-server")
    def test_redis(self):
        port = free_port()
        said = self.serve(["redis-server", "--port", str(port), "--save", "", "--dir", self.folder], port,
                          b"INCR counter\r\n", lambda server: server.send_signal(signal.SIGTERM))
        self.follow(said, ", in anetTcpAccept\n")

    def test_python(self):
        with open("server.py", "w", encoding="utf-8") as file:
            file.write(f"""
import ctypes, json, email.message, decimal, time
leak = ctypes.CDLL("./leak.so")
for i in range({REQUESTS}):
    leak.note_peer()
    if i % 200 == 0: time.sleep(0.1)
""")
        done = subprocess.run([TRACEALLOC, "run", "--interval=0.1", "-o", "python.ta", "--", sys.executable, "server.py"],
                              stderr=subprocess.PIPE, check=True)
        self.follow(done.stderr.decode(), "ffi")

    @needs("sqlite3")
    def test_sqlite3(self):
        with open("leaky.c", "w", encoding="utf-8") as file:
            file.write(EXTENSION)
        if subprocess.run(["cc", "-g", "-shared", "-fPIC", "-o", "leaky.so", "leaky.c", "./leak.so"], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("the headers of sqlite3 are not here")
        script = ".load ./leaky.so\n" + f".system sleep 1.5\nselect sum(note(value)) from generate_series(1, {REQUESTS});\n"
        done = subprocess.run([TRACEALLOC, "run", "--no-follow", "--interval=0.1", "-o", "sqlite.ta", "--", "sqlite3", ":memory:"],
                              input=script.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout, b"%d\n" % (REQUESTS * (REQUESTS + 1) // 2))
        self.follow(done.stderr.decode(), "leaky.c\", line ")

    @needs("gcc")
    def test_the_compiler_shows_where_its_memory_is(self):
        with open("unit.c", "w", encoding="utf-8") as file:
            file.write("#include <stdio.h>\n#include <stdlib.h>\nint f(int x) { return x * printf(\"%d\", x); }\n")
        done = subprocess.run([TRACEALLOC, "run", "-o", "gcc.ta", "--", "gcc", "-O2", "-c", "unit.c"],
                              stderr=subprocess.PIPE, check=True)
        largest = re.search(r"most memory in (gcc\.run/\d+\.ta)\n", done.stderr.decode())  # cc1, not the driver
        self.assertIsNotNone(largest, done.stderr)
        self.assertIn("/cc1 (process", self.tracealloc([TRACEALLOC, "top", largest.group(1), "-n", "3"]).splitlines()[0])


if __name__ == "__main__":
    unittest.main()
