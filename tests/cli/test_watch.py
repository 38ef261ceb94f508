"""test_watch.py: the terminal view, driven by tmux at three sizes while a program allocates. Skipped where there is no tmux.

    test_watch.py TRACEALLOC LIBRARY SERVER.c [--real]          --real: redis under redis-benchmark
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

REAL = "--real" in sys.argv and (sys.argv.remove("--real") or True)
TRACEALLOC, LIBRARY, SERVER = [os.path.abspath(sys.argv.pop(1)) for _ in range(3)]
for name in ("LD_PRELOAD", "TRACEALLOC_OPTIONS", "TRACEALLOC", "TMUX"):
    os.environ.pop(name, None)
# A shell may have exported what its own window was: it is not this one.
os.environ.update(TRACEALLOC_LIBRARY=LIBRARY, LC_ALL="C.UTF-8", COLUMNS="201", LINES="7")
SIZES = ((80, 24), (132, 43), (44, 14))


def alive(process):
    try:
        os.kill(process, 0)
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.socket = os.path.join(self.folder, "tmux")
        self.processes = []

    def tearDown(self):
        self.tmux("kill-server")
        for process in self.processes:  # with what it has started: a child that is left holds our output
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *arguments], capture_output=True, text=True, cwd=self.folder).stdout

    def watch(self, *arguments, columns=80, lines=24, before=""):
        self.tmux("new-session", "-d", "-s", "w", "-x", str(columns), "-y", str(lines),
                  f"{before} {TRACEALLOC} watch -d 0.3 {' '.join(arguments)}; echo left with $?; sleep 1000")

    def screen(self):
        return self.tmux("capture-pane", "-p", "-t", "w").split("\n")

    def keys(self, *keys):
        self.tmux("send-keys", "-t", "w", *keys)

    def until(self, test, what):
        """Waits for a screen for which the test holds, and answers it. What is drawn comes in pieces: nothing else may be
        expected of that screen than what the test asks."""
        for _ in range(1200):
            screen = self.screen()
            if test(screen):
                return screen
            time.sleep(0.1)
        self.fail(f"{what}: never came; the screen is\n" + "\n".join(screen))

    def until_text(self, text):
        return self.until(lambda screen: any(re.search(text, line) for line in screen), text)

    def record(self, *command, interval="0.2", name="a.ta", **more):
        process = subprocess.Popen([TRACEALLOC, "run", "-q", f"--interval={interval}", "-o", os.path.join(self.folder, name), "--",
                                    *command], stdout=subprocess.DEVNULL, cwd=self.folder, start_new_session=True, **more)
        self.processes.append(process)
        for _ in range(600):
            done = subprocess.run([TRACEALLOC, "list", os.path.join(self.folder, name), "--json"], capture_output=True, text=True)
            if done.returncode == 0 and len(json.loads(done.stdout)) > 1:
                break
            time.sleep(0.05)
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            return int(file.read().split()[0])


@unittest.skipIf(REAL, "the small server is in the daily tests")
class Server(Case):
    def server(self):
        shutil.copy(SERVER, self.folder + "/server.c")
        subprocess.run(["gcc", "-g", "-O1", "server.c", "-o", "server"], check=True, cwd=self.folder)
        return self.record("./server", "10000000", "1000")

    def test_a_recording_that_grows_at_three_sizes(self):
        self.server()
        self.watch("a.ta")
        self.until_text(r"calls/s")
        self.until(lambda s: re.search(r"^ a\.ta \(\d+\) .*\d\d:\d\d:\d\d ?$|^ server .*", s[0]), "name, process and time")
        self.until_text(r"^ +[\d.]+ \w+ +\+[\d.]+ \w+ +\S+ .*server\.c:26  format_log_line")
        self.until_text(r"^ live .* \+[1-9][\d.]* \w+/s  [1-9][\d.]*[kM]? calls/s")
        for columns, lines in SIZES:
            self.tmux("resize-window", "-t", "w", "-x", str(columns), "-y", str(lines))
            self.until(lambda s: len(s[0]) > 0 and len(s) >= lines and re.search(r"^ +LIVE  SINCE MARK", s[3]) and
                       "q quit" in s[lines - 1] and all(len(line) <= columns for line in s) and
                       any("server.c:26" in line for line in s) and
                       re.search(r"^ live [\d.]+ \w+  peak [\d.]+ \w+  rss [\d.]+ \w+", s[1]), f"{columns}x{lines}")

    def test_what_it_shows_is_what_the_recording_says(self):
        process = self.server()
        self.watch("a.ta")
        self.until_text(r"format_log_line")
        os.kill(process, signal.SIGTERM)
        self.until_text(r"ENDED")
        said = subprocess.run([TRACEALLOC, "top", os.path.join(self.folder, "a.ta"), "-n", "1"], capture_output=True, text=True).stdout
        live = re.search(r"([\d.]+ \w+) live", said).group(1)
        rows = json.loads(subprocess.run([TRACEALLOC, "top", os.path.join(self.folder, "a.ta"), "--json"], capture_output=True, text=True).stdout)
        places = [f"server.c:{row['line']} " for row in rows if row["size"] > 20000 and row["key"].endswith("server.c")]
        self.until(lambda s: re.search(rf"live {re.escape(live)} ", s[1]) and
                   all(any(place in line for line in s) for place in places), f"what is recorded: {live}, {places}")

    def test_keys(self):
        process = self.server()
        self.watch(str(process))
        self.until_text(r"^ server")
        self.until_text(r"format_log_line")
        self.keys("/", "render")
        self.until(lambda s: "render_page" in s[4] and all("render_page" in line for line in s[4:-4] if line.strip()), "only what was searched")
        self.keys("Escape")
        self.until_text(r"format_log_line")
        self.keys("m")
        self.until_text(r"marked")
        self.keys("s")
        self.until_text(r"s GROWTH")
        self.keys("s")
        self.until_text(r"s CALLS/S")
        self.until(lambda s: re.search(r"\d  .*server\.c", s[4]) is not None, "the busiest is first")
        self.keys("2")
        self.until_text(r"CALLED BY main")
        self.until_text(r"- handle_request")
        self.keys("Home", "Enter")
        self.until(lambda s: "+ all" in s[4] and s[5].strip() == "", "a closed tree")
        self.keys("Enter", "3")
        self.until_text(r"DOMAIN")
        self.until_text(r"0 default")
        self.keys("?")
        self.until_text(r"growth counts from here")
        self.keys("1", "w")
        written = self.until_text(r"written: \S+\.ta")
        path = re.search(r"written: (\S+)", "\n".join(written)).group(1)
        self.assertEqual(subprocess.run([TRACEALLOC, "check", os.path.join(self.folder, path)], capture_output=True).returncode, 0)
        self.keys("Space")
        before = self.until(lambda s: "FROZEN" in s[0] and " live " in s[1], "FROZEN")
        time.sleep(1)
        self.assertEqual(self.screen()[1].split("rss")[0], before[1].split("rss")[0])
        self.keys("Space", "q")
        self.until_text(r"^left with 0")
        self.assertTrue(alive(process), "the program goes on")

    def test_a_program_of_its_own_goes_on_without_it(self):
        shutil.copy(SERVER, self.folder + "/server.c")
        subprocess.run(["gcc", "-g", "-O1", "server.c", "-o", "server"], check=True, cwd=self.folder)
        self.watch("--", "./server", "10000000", "1000")
        screen = self.until_text(r"^ server \(\d+\)")
        process = int(re.search(r"\((\d+)\)", screen[0]).group(1))
        self.until_text(r"format_log_line")
        self.keys("q")
        screen = self.until_text(r"goes on: process \d+")
        self.assertTrue(alive(process))
        os.kill(process, signal.SIGTERM)

    def test_a_program_of_its_own_is_not_what_run_asks_first(self):
        """run asks the library about its options in a child, which lives long on a busy machine: here two seconds."""
        shutil.copy(SERVER, self.folder + "/server.c")
        subprocess.run(["gcc", "-g", "-O1", "server.c", "-o", "server"], check=True, cwd=self.folder)
        with open(self.folder + "/slow.c", "w") as file:
            file.write("""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
pid_t fork(void)
{
    static int forks;
    pid_t child = ((pid_t (*)(void))dlsym(RTLD_NEXT, "fork"))();
    if (child == 0 && forks == 0)
        sleep(2);
    forks++;
    return child;
}
""")
        subprocess.run(["gcc", "-shared", "-fPIC", "slow.c", "-o", "slow.so"], check=True, cwd=self.folder)
        self.watch("--", "./server", "10000000", "1000", before=f"LD_PRELOAD={self.folder}/slow.so")
        screen = self.until_text(r"^ server \(\d+\)")
        process = int(re.search(r"\((\d+)\)", screen[0]).group(1))
        with open(f"/proc/{process}/cmdline") as file:
            self.assertEqual(file.read().split("\0")[0], "./server")
        self.until_text(r"format_log_line")
        self.keys("q")
        self.until_text(rf"goes on: process {process}$")
        os.kill(process, signal.SIGTERM)

    def test_a_process_without_a_recording_is_asked_and_turned_on_and_off(self):
        shutil.copy(SERVER, self.folder + "/server.c")
        subprocess.run(["gcc", "-g", "-O1", "server.c", "-o", "server"], check=True, cwd=self.folder)
        server = subprocess.Popen(["./server", "10000000", "1000"], stdout=subprocess.DEVNULL, cwd=self.folder, start_new_session=True,
                                  env=dict(os.environ, LD_PRELOAD=LIBRARY, TRACEALLOC_OPTIONS="control=yes"))
        self.processes.append(server)
        for _ in range(600):
            if subprocess.run([TRACEALLOC, "ctl", str(server.pid)], capture_output=True).returncode == 0:
                break
            time.sleep(0.05)
        self.watch(str(server.pid))
        self.until_text(r"^ server \(\d+\)  NOT TRACED: t starts")
        self.keys("t")
        self.until_text(r"traced from now on")
        self.until_text(r"^ +[\d.]+ \w+ +\+[\d.]+ \w+ +\S+ .*server\.c:26  format_log_line")
        self.keys("w")
        written = re.search(r"written: (\S+)", "\n".join(self.until_text(r"written: \S+\.ta"))).group(1)
        self.assertEqual(subprocess.run([TRACEALLOC, "check", os.path.join(self.folder, written)], capture_output=True).returncode, 0)
        self.keys("t")
        self.until_text(r"no longer traced")
        self.until_text(r"NOT TRACED")
        self.assertIn("not tracing", subprocess.run([TRACEALLOC, "ctl", str(server.pid)], capture_output=True, text=True).stdout)
        self.until_text(r"  \+0 B/s  0 calls/s")
        self.keys("t")
        self.until_text(r"traced from now on")
        self.until_text(r"  \+?[1-9][\d.]* \w+ calls/s|  [1-9][\d,.k]* calls/s")
        self.assertNotRegex("\n".join(self.until_text(r" since the mark at ")), r"(?m)^ -\S+ \w+ since the mark|  -\S+ \w+/s")
        self.keys("q")
        self.until_text(r"^left with 0")
        self.assertTrue(alive(server.pid), "the program goes on")

    def test_a_process_that_nobody_can_ask_is_read_from_outside(self):
        shutil.copy(SERVER, self.folder + "/server.c")
        subprocess.run(["gcc", "-g", "-O1", "server.c", "-o", "server"], check=True, cwd=self.folder)
        server = subprocess.Popen(["./server", "10000000", "1000"], stdout=subprocess.DEVNULL, cwd=self.folder, start_new_session=True,
                                  env=dict(os.environ, LD_PRELOAD=LIBRARY, TRACEALLOC="50"))
        self.processes.append(server)
        for _ in range(600):
            if subprocess.run([TRACEALLOC, "take", "-o", self.folder + "/before.ta", str(server.pid)], capture_output=True).returncode == 0:
                break
            time.sleep(0.05)
        self.watch(str(server.pid))
        self.until_text(r"^ server \(\d+\) ")
        self.until_text(r"^ +[\d.]+ \w+ +\+[\d.]+ \w+ +\S+ .*server\.c:26  format_log_line")
        self.keys("t")
        self.until_text(r"cannot be started or stopped")
        self.keys("w")
        written = re.search(r"written: (\S+)", "\n".join(self.until_text(r"written: \S+\.ta"))).group(1)
        self.assertEqual(subprocess.run([TRACEALLOC, "check", os.path.join(self.folder, written)], capture_output=True).returncode, 0)
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        self.until_text(r"ENDED")

    def test_made_figures_are_in_order_and_as_wide_as_they_may_be(self):
        counts = {1: (9999, "9999"), 2: (10000, "10.0k"), 3: (99960, "100k"), 4: (9999499, "9999k"), 5: (9999500, "10.0M"),
                  6: (10 ** 10, "10.0G"), 7: (25 * 10 ** 12, "25000G"), 8: (1, "1")}
        traces = [{"domain": domain, "size": 1, "count": count, "frames": [["/src/much.c", domain]]}
                  for domain, (count, _) in counts.items()]
        traces += [{"domain": 8, "size": 5000, "count": 1, "frames": [["/src/equal.c", line]]} for line in (7, 4, 9)]
        with open(self.folder + "/made.json", "w") as file:
            json.dump({"traceback_limit": 1, "traces": traces}, file)
        subprocess.run([TRACEALLOC, "import", "made.json", "-o", "made.ta"], check=True, capture_output=True, cwd=self.folder)
        self.watch("made.ta", columns=132, lines=43)
        places = ["much.c:7", "much.c:6", "much.c:5", "much.c:4", "much.c:3", "much.c:2", "much.c:1", "equal.c:4", "equal.c:7",
                  "equal.c:9", "much.c:8"]
        self.until(lambda s: re.findall(r"(?:much|equal)\.c:\d", "\n".join(s[4:15])) == places, f"in order: {places}")
        self.keys("3")
        expected = {domain: words if domain != 8 else "4" for domain, (_, words) in counts.items()}

        def told(screen):
            rows = {line[52:].split()[0]: line[33:41].strip() for line in screen[4:] if re.match(r"\d", line[52:])}
            return {domain: rows.get(str(domain)) for domain in counts}
        self.until(lambda s: told(s) == expected, f"blocks of the domains: {expected}")

    def test_what_has_ended_is_listed_in_each_order(self):
        shutil.copy(SERVER, self.folder + "/server.c")
        subprocess.run(["gcc", "-g", "-O1", "server.c", "-o", "server"], check=True, cwd=self.folder)
        subprocess.run([TRACEALLOC, "run", "-q", "--interval=0.05", "-o", "a.ta", "--", "./server", "300", "500"], check=True,
                       stdout=subprocess.DEVNULL, cwd=self.folder)
        told = json.loads(subprocess.run([TRACEALLOC, "top", "a.ta", "--sort", "calls", "-n", "0", "--json"], capture_output=True,
                                         text=True, check=True, cwd=self.folder).stdout)
        calls = sorted(((row["allocated_count"], row["size"]) for row in told), reverse=True)
        lives = sorted((row["size"] for row in told if row["size"] > 0), reverse=True)
        self.assertTrue(len({count for count, _ in calls}) > 1 and len({count for count, _ in calls}) < len(calls), calls)
        self.watch("a.ta", columns=132, lines=43)

        def rows(screen):
            found = [re.match(r" *([\d.]+ \w+) .{18} *(\d+) +(\S*) *\S+", line) for line in screen[4:4 + len(calls)]]
            return [(int(row[2]), row[1]) for row in found if row]

        def text(size):
            return f"{size} B" if size < 10240 else f"{size / 1024:.1f} KiB" if size < 102400 else f"{size / 1024:.0f} KiB"
        self.until(lambda s: [live for _, live in rows(s)] == [text(size) for size in lives] and
                   re.search("[▁▂▃▄▅▆▇█]", "\n".join(s[4:4 + len(lives)])), f"by what lives: {lives}")
        self.keys("s", "s", "s")
        self.until(lambda s: rows(s) == [(count, text(size)) for count, size in calls], f"by calls: {calls}")

    def test_trouble_is_told_without_a_terminal_and_for_strangers(self):
        done = subprocess.run([TRACEALLOC, "watch", "1"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^tracealloc: watch: needs a terminal.*\n$")
        self.watch(str(os.getpid()), columns=160)
        self.until_text(r"not recorded")
        self.until_text(r"^left with 2")


@unittest.skipUnless(REAL, "real programs are in the long tests")
class Redis(Case):
    def test_redis_under_load_at_three_sizes(self):
        process = self.record("redis-server", "--port", "7944", "--save", "", "--appendonly", "no", interval="0.5")
        load = subprocess.Popen(["redis-benchmark", "-p", "7944", "-q", "-l", "-n", "100000", "-r", "50000", "-t", "set,lpush,hset"],
                                stdout=subprocess.DEVNULL, start_new_session=True)
        self.processes.append(load)
        self.watch(str(process))
        for columns, lines in SIZES:
            self.tmux("resize-window", "-t", "w", "-x", str(columns), "-y", str(lines))
            self.until(lambda s: len(s) >= lines and "q quit" in s[lines - 1] and all(len(line) <= columns for line in s) and
                       re.search("dictAddRaw|createEmb|_dict|dict", "\n".join(s)) is not None, f"{columns}x{lines}")
        self.tmux("resize-window", "-t", "w", "-x", "100", "-y", "30")
        self.until_text(r"[\d.]+[kM] calls/s")
        self.until_text(r"\+[\d.]+ [KM]iB")
        self.keys("q")
        self.until_text(r"^left with 0")
        self.assertTrue(alive(process))
        self.assertEqual(subprocess.run(["redis-cli", "-p", "7944", "ping"], capture_output=True, text=True).stdout, "PONG\n")
        os.kill(process, signal.SIGTERM)


if __name__ == "__main__":
    if shutil.which("tmux") is None or (REAL and shutil.which("redis-benchmark") is None):
        print("no tmux, or no redis here")
        sys.exit(77)
    unittest.main()
