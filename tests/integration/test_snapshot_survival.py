"""test_snapshot_survival.py: whatever happens to the files of snapshots, the program goes on and what is there loads.

    test_snapshot_survival.py LIBRARY TRACEALLOC CC

A program that knows nothing of tracealloc runs under it while its disk fills up, its folder vanishes, its descriptors
are closed … It must print and return what it always does; what was written must load, and what was lost must be counted.
"""
import glob
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

LIBRARY, TRACEALLOC, CC = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1)), sys.argv.pop(1)
for name in [name for name in os.environ if name.startswith("TRACEALLOC") or name == "LD_PRELOAD"]:
    del os.environ[name]

# Makes ever new call paths; each letter of its argument is something that happens along the way.
PROGRAM = r"""
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
extern int ta_domain_push(uint32_t) __attribute__((weak));
extern int ta_domain_set_limit(uint32_t, const void *) __attribute__((weak));
extern void *ta_domain_malloc(uint32_t, size_t) __attribute__((weak));
static void *kept[100000];
static volatile sig_atomic_t handled, too_large;
__attribute__((noinline)) static void *path(unsigned which, int depth)
{
    void *volatile block;
    if (depth == 0)
        return malloc(10 + which % 500);
    if (which >> depth & 1) { block = path(which, depth - 1); __asm__ volatile("nop"); }
    else { block = path(which, depth - 1); __asm__ volatile("nop; nop"); }
    return block;
}
static void on_signal(int number) { (void)number; handled++; }
static void on_too_large(int number) { (void)number; too_large++; }
static void work(unsigned from, unsigned count)
{
    for (unsigned i = from; i < from + count; i++) {
        kept[i] = path(i * 2654435761u >> 12, 16);
        if (i % 40 == 0)
            usleep(1000);
    }
}
int main(int argc, char **argv)
{
    const char *folder = argc > 2 ? argv[2] : "";
    char command[4096];
    unsigned done = argc > 1 && argv[1][0] == 'w' ? 100 : 4000; /* who waits first has a short first entry */
    work(0, done);
    for (const char *what = argc > 1 ? argv[1] : ""; *what != '\0'; what++) {
        switch (*what) {
        case 'v': snprintf(command, sizeof command, "%s.gone", folder); if (rename(folder, command)) return 90; break;
        case 'm': if (mkdir(folder, 0777)) return 91; break;
        case '2': close(2); break;
        case 'c': for (int i = 3; i < 1000; i++) close(i); break;
        case 't': { int mine = open("mine", O_RDWR | O_CREAT | O_TRUNC, 0666);
                    for (int i = 3; i < 100; i++) if (i != mine) dup2(mine, i); break; }
        case 'w': puts("waiting"); fflush(stdout); if (read(0, command, 1) != 1) return 97; break;
        case 'k': signal(SIGUSR2, on_signal); break;
        case 's': raise(SIGUSR2); break;
        case 'f': fflush(stdout); if (fork() != 0) { int s; wait(&s); if (WEXITSTATUS(s) != 7) return 92; return 7; } break;
        case 'e': fflush(stdout); execl("/proc/self/exe", argv[0], "", folder, NULL); return 93;
        case 'x': signal(SIGXFSZ, on_too_large);
                  { int mine = open("large", O_WRONLY | O_CREAT | O_TRUNC, 0666);
                    if (lseek(mine, 1 << 20, SEEK_SET) < 0 || write(mine, "x", 1) != -1 || errno != EFBIG || too_large != 1)
                        return 94; close(mine); } break;
        case 'd': { uint64_t limit[4] = {100000, 0, 0, 0};
                    if (!ta_domain_set_limit || ta_domain_set_limit(5, limit) != 0) return 95;
                    for (int i = 0; i < 300; i++) if (!ta_domain_malloc(5, 1000)) return 96; break; }
        }
        work(done, 4000), done += 4000;
    }
    size_t sum = 0;
    for (unsigned i = 0; i < done; i++) { sum += 10 + (i * 2654435761u >> 12) % 500; free(kept[i]); }
    printf("%u %zu %d\n", done, sum, (int)handled);
    return 7;
}
"""


class Survival(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp()
        os.chdir(cls.top)
        with open("program.c", "w") as file:
            file.write(PROGRAM)
        subprocess.run([CC, "-g", "-O1", "-o", "program", "program.c"], check=True)

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        shutil.rmtree(cls.top)

    def setUp(self):
        self.folder = os.path.join(self.top, "out")
        os.mkdir(self.folder)
        self.is_mounted = False

    def tearDown(self):
        if self.is_mounted:
            subprocess.run(["umount", self.folder], check=True)
        for path in glob.glob(self.folder + "*"):
            shutil.rmtree(path)

    def run_program(self, events, options, **more):
        """Runs it without and with tracealloc: the same words, the same status. Answers what it said on 2."""
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, TRACEALLOC="100", TRACEALLOC_OPTIONS=options)
        done = subprocess.run([os.path.join(self.top, "program"), events, self.folder], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=100, **more)
        self.assertEqual(7, done.returncode, done.stderr)
        self.assertRegex(done.stdout.decode(), r"^\d+ \d+ \d+\n$")
        return done.stderr.decode()

    def run_in_steps(self, events, options, *steps, **more):
        """The same; at each w among the events the program waits until the next step has come true."""
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, TRACEALLOC="100", TRACEALLOC_OPTIONS=options)
        with subprocess.Popen([os.path.join(self.top, "program"), events, self.folder], env=environment, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more) as program:
            for is_true in steps:
                self.assertEqual(b"waiting\n", program.stdout.readline())
                while not is_true():
                    time.sleep(0.01)
                program.stdin.write(b".")
                program.stdin.flush()
            said = program.communicate()
        self.assertEqual(7, program.returncode, said)
        return said[1].decode()

    def has_entries(self, count, name="a.ta"):
        def is_true():
            done = subprocess.run([TRACEALLOC, "list", os.path.join(self.folder, name), "--json"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, check=False)
            return done.returncode == 0 and len(json.loads(done.stdout)) >= count
        return is_true

    def entries(self, path):
        listed = subprocess.run([TRACEALLOC, "list", path, "--json"], stdout=subprocess.PIPE, check=True)
        return len(json.loads(listed.stdout))

    def assert_sound(self, path):
        done = subprocess.run([TRACEALLOC, "check", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(0, done.returncode, done.stdout)
        info = subprocess.run([TRACEALLOC, "info", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(0, info.returncode, info.stderr)
        return info.stdout.decode()

    def mounted(self, options):
        """Runs the rest of the test with a file system of its own in the folder."""
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", self.folder],
                                               stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("mounting needs root")
        self.is_mounted = True

    def assert_nothing_else(self, *names):
        self.assertEqual(sorted(names), sorted(os.listdir(self.folder)))

    def test_nothing_happens(self):
        said = self.run_program("", "output=%s/a.ta,series=yes,interval=0.01,loud=yes" % self.folder)
        self.assertEqual("", said)
        self.assert_sound(self.folder + "/a.ta")
        said = self.run_in_steps("w", "output=%s/a.ta,series=yes,interval=0.01,loud=yes" % self.folder, self.has_entries(4))
        self.assertEqual("", said)
        self.assert_sound(self.folder + "/a.ta")
        self.assert_nothing_else("a.ta")

    def test_series_on_a_full_disk_keeps_its_entries(self):
        self.mounted("size=64k")
        with open(self.folder + "/ballast", "wb") as file:
            file.write(bytes(4096))

        def is_full():
            return os.statvfs(self.folder).f_bavail == 0

        def fills_up():
            """What is left of room once there are entries."""
            with open(self.folder + "/ballast", "ab", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(4096))
                except OSError:
                    return is_full()

        said = self.run_in_steps("w....", "output=%s/a.ta,series=yes,interval=0.01,loud=yes" % self.folder,
                                 lambda: self.has_entries(1)() and fills_up())
        os.unlink(self.folder + "/ballast")
        self.assertEqual(["tracealloc: no snapshot: cannot write the snapshot: No space left on device"],
                         said.splitlines())
        self.assertGreater(self.entries(self.folder + "/a.ta"), 0)
        loaded = subprocess.run([TRACEALLOC, "info", self.folder + "/a.ta"], stdout=subprocess.PIPE, check=True)
        self.assertIn(b"interval", loaded.stdout)
        self.assert_nothing_else("a.ta")

    def test_single_snapshot_on_a_full_disk_leaves_nothing(self):
        self.mounted("size=4k")
        said = self.run_program("....", "output=%s/a.ta,loud=yes" % self.folder)
        self.assertEqual(1, len(said.splitlines()), said)
        self.assertIn("No space left on device", said)
        self.assert_nothing_else()

    def test_full_disk_is_silent_unless_asked(self):
        self.mounted("size=4k")
        self.assertEqual("", self.run_program("....", "output=%s/a.ta" % self.folder))

    def test_disk_with_room_again_goes_on(self):
        self.mounted("size=4m")
        with open(self.folder + "/ballast", "wb") as file:
            file.write(bytes((4 << 20) - (20 << 10)))
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, TRACEALLOC="100",
                           TRACEALLOC_OPTIONS="output=%s/a.ta,series=yes,interval=0.01,loud=yes" % self.folder)
        program = subprocess.Popen([os.path.join(self.top, "program"), "....."], env=environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        program.stderr.readline()  # the disk is full
        os.unlink(self.folder + "/ballast")
        program.communicate()
        self.assertEqual(7, program.returncode)
        info = self.assert_sound(self.folder + "/a.ta")
        self.assertIn("exit", info)
        self.assertRegex(info, r"snapshots that could not be written +[1-9]|snapshot errors +[1-9]")

    def test_read_only_file_system_is_one_line(self):
        self.mounted("ro")
        said = self.run_program("", "output=%s/a.%%n.ta,interval=0.01,loud=yes" % self.folder)
        self.assertEqual(1, len(said.splitlines()), said)
        self.assertIn("Read-only file system", said)

    def test_folder_that_vanishes_and_comes_back(self):
        said = self.run_in_steps("wvmw.", "output=%s/a.%%n.ta,interval=0.01,loud=yes" % self.folder,
                                 lambda: glob.glob(self.folder + "/*.ta"), lambda: glob.glob(self.folder + "/*.ta"))
        self.assertLessEqual(len(said.splitlines()), 2)
        before, after = glob.glob(self.folder + ".gone/*.ta"), glob.glob(self.folder + "/*.ta")
        self.assertTrue(before and after)
        for path in before + after:
            self.assert_sound(path)

    def test_every_descriptor_is_closed(self):
        said = self.run_program("c2.", "output=%s/a.ta,series=yes,interval=0.01,loud=yes" % self.folder)
        self.assertEqual("", said)
        self.assert_sound(self.folder + "/a.ta")

    def test_descriptors_taken_over_by_the_program_are_left_alone(self):
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, TRACEALLOC="100",
                           TRACEALLOC_OPTIONS="output=%s/a.ta,series=yes,signal=USR2" % self.folder)
        program = subprocess.Popen([os.path.join(self.top, "program"), "swtw"], env=environment, cwd=self.folder,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        program.stdout.readline()
        while not glob.glob(self.folder + "/a.ta") or self.entries(self.folder + "/a.ta") == 0:
            time.sleep(0.01)  # the entry is whole, so that nobody is writing
        program.stdin.write(b"tt")
        program.communicate()
        self.assertEqual(7, program.returncode)
        self.assertEqual(0, os.path.getsize(self.folder + "/mine"))
        self.assert_sound(self.folder + "/a.ta")
        self.assertEqual(2, self.entries(self.folder + "/a.ta"))

    def test_descriptors_taken_over_while_an_entry_is_written_cost_no_entry_that_was_whole(self):
        self.run_program("tct", "output=%s/a.ta,series=yes,interval=0.01" % self.folder, cwd=self.folder)
        self.assert_sound(self.folder + "/a.ta")
        self.run_program("tct", "output=%s/b.%%n.ta,interval=0.01" % self.folder, cwd=self.folder)
        for path in glob.glob(self.folder + "/b.*.ta"):
            self.assert_sound(path)

    def limited(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, (12 << 10, 12 << 10))

    def test_file_size_limit_of_the_process(self):
        said = self.run_in_steps("wx...", "output=%s/a.ta,series=yes,interval=0.01,loud=yes" % self.folder,
                                 self.has_entries(1), preexec_fn=self.limited, cwd=self.folder)
        self.assertEqual(["tracealloc: no snapshot: cannot write the snapshot: File too large"], said.splitlines())
        self.assertGreater(self.entries(self.folder + "/a.ta"), 0)
        self.assertLessEqual(os.path.getsize(self.folder + "/a.ta"), 12 << 10)

    def test_file_size_limit_without_a_handler(self):
        self.run_in_steps("w....", "output=%s/a.ta,series=yes,interval=0.01" % self.folder, self.has_entries(1),
                          preexec_fn=self.limited)
        self.run_program("....", "output=%s/b.ta" % self.folder, preexec_fn=self.limited)
        self.assert_nothing_else("a.ta")

    def test_signal_and_the_programs_own_handler(self):
        said = self.run_in_steps("swsw", "output=%s/a.ta,series=yes,signal=USR2,exit=no" % self.folder, self.has_entries(1),
                                 self.has_entries(2))
        self.assertEqual("", said)
        self.assertEqual(2, self.entries(self.folder + "/a.ta"))
        self.assertIn("signal", self.assert_sound(self.folder + "/a.ta"))

    def test_limit_of_a_domain(self):
        self.run_in_steps("dw", "output=%s/a.ta,on_limit=snapshot,exit=no" % self.folder,
                          lambda: os.path.exists(self.folder + "/a.ta"))
        self.assertRegex(self.assert_sound(self.folder + "/a.ta"), "reason +limit")
        listed = subprocess.run([TRACEALLOC, "domains", self.folder + "/a.ta", "--json"], stdout=subprocess.PIPE,
                                check=True)
        domain = [row for row in json.loads(listed.stdout) if row["domain"] == 5][0]
        self.assertEqual(100000, domain["limit_bytes"])
        self.assertGreater(domain["peak_bytes"], 100000)

    def test_children_and_other_programs_have_files_of_their_own(self):
        self.run_program("f.", "output=%s/a.%%p.ta" % self.folder)
        self.run_program("e", "output=%s/b.%%p.%%n.ta" % self.folder)
        files = glob.glob(self.folder + "/a.*.ta")
        self.assertEqual(2, len(files), files)
        for path in files:
            info = self.assert_sound(path)
            self.assertRegex(info, r"process +" + re.search(r"a\.(\d+)\.ta", path).group(1))
        self.assertEqual(1, len(glob.glob(self.folder + "/b.*.ta")))


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    unittest.main(verbosity=2)
