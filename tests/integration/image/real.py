"""real.py: real programs from outside: their resident memory is explained, and what is known of them is found.

    real.py TRACEALLOC LIBRARY [NAME…]     redis python sqlite nginx cc1plus pdns; all unless given

Each is started with the library, loaded, and looked at while it runs, is stopped half-way, or has crashed. A program that is
not on this machine is named and left out.
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
import sysconfig
import tempfile
import time

program, library = sys.argv[1:3]
wanted = sys.argv[3:]
here = os.path.dirname(os.path.abspath(__file__))
failures = 0
PORT = 20000 + os.getpid() % 20000


def check(what, is_right, *values):
    global failures
    if not is_right:
        failures += 1
        print("WRONG", what, *[str(value)[:1500] for value in values], flush=True)


def tracealloc(*words, statuses=(0,)):
    done = subprocess.run([program, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    check(f"{words}: status {done.returncode}", done.returncode in statuses, done.stderr.decode())
    return done.stdout.decode()


def start(*command, **more):
    environment = dict(os.environ, LD_PRELOAD=library, TRACEALLOC="100", TRACEALLOC_OPTIONS="follow=yes", **more.pop("env", {}))
    return subprocess.Popen(list(command), env=environment, stdout=more.pop("stdout", subprocess.DEVNULL),
                            stderr=subprocess.DEVNULL, **more)


def explained(name, pid):
    """The share of Rss that is explained, mapping by mapping; and what the parts say."""
    said = json.loads(tracealloc("memory", pid, "--json"))[0]
    rss = sum(row["rss"] for row in said["mappings"])
    right = sum(min(row["rss"], row["explained"]) for row in said["mappings"])
    worst = max((abs(row["rss"] - row["explained"]) for row in said["mappings"]), default=0)
    print(f"{name}: Rss {rss >> 10} KiB, {100 * right / rss:.3f} % explained, worst mapping off by {worst} bytes; "
          f"asked {said['parts']['asked'] >> 10}, free in pages {said['parts']['free'] >> 10}, kept {said['parts']['kept'] >> 10} KiB",
          flush=True)
    check(f"{name}: for how long it was held", said["held_ns"] > 0, said["held_ns"])
    check(f"{name}: explained", right >= 0.995 * rss, said["parts"])
    check(f"{name}: each mapping to a page", worst <= 4096, [row for row in said["mappings"] if row["rss"] != row["explained"]])
    return said


def lost(pid):
    return json.loads(tracealloc("leaks", pid, "--json", statuses=(0, 1)))[0]


def redis(folder):
    if not shutil.which("redis-server") or not shutil.which("redis-cli"):
        return False
    child = start("redis-server", "--save", "", "--port", str(PORT), "--enable-debug-command", "yes", cwd=folder)

    def cli(*words):
        return subprocess.run(["redis-cli", "-p", str(PORT), *words], stdout=subprocess.PIPE).stdout.decode()
    for _ in range(100):
        if "PONG" in cli("ping"):
            break
        time.sleep(0.1)
    cli("debug", "populate", "300000", "key", "150")
    before = explained("redis, full", child.pid)
    cli("eval", "for i=0,299999,1 do if i%7~=0 then redis.call('del','key:'..i) end end", "0")
    after = explained("redis, six of seven keys gone", child.pid)
    own = dict(re.findall(r"(\w+):([\d.]+)\r", cli("info", "memory")))
    fragmented = int(own["mem_fragmentation_bytes"])
    print(f"redis says: fragmentation {own['mem_fragmentation_ratio']}, {fragmented >> 10} KiB")
    check("redis: fragments", after["parts"]["free"] > 4 * before["parts"]["free"] and
          0.5 * fragmented < after["parts"]["free"] < fragmented, after["parts"], fragmented)
    strings = max(after["rows"], key=lambda row: row["pinned"])
    check("redis: who pins it", "createStringObject" in strings["where"] or "sds" in strings["where"], strings)
    held = json.loads(tracealloc("retained", child.pid, "--json", "-n", "5"))
    check("redis: something holds the keys", held[0]["retained"] > 5 << 20, held)
    check("redis: nothing is lost", lost(child.pid)["direct_bytes"] < 4096)
    out = os.path.join(folder, "redis.ta")
    tracealloc("take", child.pid, "-o", out)
    check("redis: take and check", "sound" in tracealloc("check", out))
    check("redis: still there", "PONG" in cli("ping"))
    child.terminate()
    child.wait()
    return True


def python(folder):
    include = "/usr/include/python3.11"
    if not os.path.exists("/usr/bin/python3"):
        return False
    flags = subprocess.run(["/usr/bin/python3", "-c", "import sysconfig; print(sysconfig.get_path('include'))"],
                           stdout=subprocess.PIPE).stdout.decode().strip() or include
    module = os.path.join(folder, "cycle_module.so")
    if subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-I", flags, "-o", module, os.path.join(here, "cycle_module.c")],
                      stderr=subprocess.DEVNULL).returncode != 0:
        return False
    code = ("import sys; sys.path.insert(0, '.')\nimport cycle_module, gc, json, time\n"
            "def lose():\n    a, b = cycle_module.Holder(), cycle_module.Holder()\n    a.other = b\n    b.other = a\n"
            "kept = {str(i): [i, str(i) * 3] for i in range(40000)}\n"
            "for i in range(500): lose()\ngc.collect()\nprint('ready', flush=True)\ntime.sleep(1000)\n")
    child = start("/usr/bin/python3", "-c", code, cwd=folder, stdout=subprocess.PIPE, env={"PYTHONMALLOC": "malloc"})
    child.stdout.readline()
    explained("python3", child.pid)
    said = lost(child.pid)
    circles = [row for row in said["leaks"] if row["kind"] == "cycle"]
    check("python3: the circles of the extension", said["cycles"] >= 499 and circles and circles[0]["blocks"] >= 499 and
          len(circles[0]["cycle"]) == 2, said["cycles"], circles[:1])
    rows = {row["where"].split("  via ")[0] for row in circles}
    check("python3: blocks of a circle are told by their own stack",
          circles and {step["where"].split("  via ")[0] for step in circles[0]["cycle"]} <= rows, circles[:1])
    stack = json.dumps(circles[0]["stack"]) if circles else ""
    check("python3: who made them", "PyType_GenericNew" in stack or "PyType_GenericAlloc" in stack, stack)
    child.kill()
    child.wait()
    return True


def sqlite(folder):
    if not shutil.which("sqlite3"):
        return False
    child = start("sqlite3", ":memory:", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdin.write(b"create table t(a integer primary key, b text);\n"
                      b"with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)\n"
                      b"insert into t select i, hex(randomblob(40)) from n;\ndelete from t where a % 3 = 0;\nselect 'ready';\n")
    child.stdin.flush()
    child.stdout.readline()
    said = explained("sqlite3", child.pid)
    check("sqlite3: pages of its cache", said["rows"] and max(row["resident"] for row in said["rows"]) > 8 << 20, said["rows"][:3])
    check("sqlite3: nothing is lost", lost(child.pid)["direct_bytes"] < 4096, lost(child.pid))
    child.kill()
    child.wait()
    return True


def nginx(folder):
    if not os.path.exists("/usr/sbin/nginx"):
        return False
    with open(os.path.join(folder, "nginx.conf"), "w") as file:
        file.write(f"daemon off; worker_processes 2; pid {folder}/pid; error_log {folder}/log;\n"
                   f"events {{}} http {{ access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};\n"
                   f"fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};\n"
                   f"server {{ listen {PORT + 1}; root {folder}; }} }}\n")
    os.chmod(folder, 0o755)
    child = start("/usr/sbin/nginx", "-c", os.path.join(folder, "nginx.conf"))
    for _ in range(100):
        if subprocess.run(["curl", "-s", "-o", "/dev/null", f"http://127.0.0.1:{PORT + 1}/nginx.conf"]).returncode == 0:
            break
        time.sleep(0.1)
    for _ in range(50):
        subprocess.run(["curl", "-s", "-o", "/dev/null", f"http://127.0.0.1:{PORT + 1}/nginx.conf"])
    workers = [int(pid) for pid in subprocess.run(["pgrep", "-P", str(child.pid)], stdout=subprocess.PIPE).stdout.split()]
    check("nginx: workers", len(workers) == 2, workers)
    for pid in (child.pid, *workers):
        explained(f"nginx {'worker' if pid in workers else 'master'}", pid)
    family = json.loads(tracealloc("leaks", child.pid, *workers, "--json", statuses=(0, 1)))
    check("nginx: a family", [one["process"] for one in family] == [child.pid, *workers])
    rows = tracealloc("memory", workers[0] if workers else child.pid)
    check("nginx: its title is not its name", "nginx" in rows and "nginx:" not in rows, rows)
    check("nginx: the sum of three", "all 3 processes" in tracealloc("memory", child.pid, *workers))
    child.terminate()
    child.wait()
    return True


def cc1plus(folder):
    if not shutil.which("g++"):
        return False
    found = subprocess.run(["g++", "-print-prog-name=cc1plus"], stdout=subprocess.PIPE).stdout.decode().strip()
    source = os.path.join(folder, "x.cpp")
    with open(source, "w") as file:
        file.write("#include <regex>\n#include <map>\n#include <string>\n#include <functional>\n#include <algorithm>\n" +
                   "".join(f"int f{i}(std::map<std::string, std::function<int(int)>> &m) {{ std::regex r(\"a{i}\"); "
                           f"return std::regex_match(\"x\", r) + m[\"{i}\"]({i}); }}\n" for i in range(400)))
    plain = os.path.join(folder, "x.ii")
    subprocess.run(["g++", "-E", source, "-o", plain], check=True)
    child = start(found, "-quiet", "-fpreprocessed", "-O2", plain, "-o", os.path.join(folder, "x.s"))
    while child.poll() is None:
        time.sleep(0.1)
        with open(f"/proc/{child.pid}/statm") as file:
            if int(file.read().split()[1]) * 4096 > 150 << 20:
                break
    os.kill(child.pid, signal.SIGSTOP)
    said = explained("cc1plus, stopped half-way", child.pid)
    check("cc1plus: its tables", said["rss"] > 100 << 20)
    tracealloc("leaks", child.pid, "--json", statuses=(0, 1))
    tracealloc("retained", child.pid, "--json", "-n", "3")
    with open(f"/proc/{child.pid}/stat") as file:
        check("cc1plus: is still stopped", file.read().rsplit(") ", 1)[1][0] in "Tt")
    os.kill(child.pid, signal.SIGCONT)
    check("cc1plus: compiles to the end", child.wait(timeout=600) == 0)
    return True


def let_dump():
    """For a child: a core of up to a GiB, where the system lets it have one."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 30 if hard == resource.RLIM_INFINITY else min(hard, 1 << 30), hard))


def pdns(folder):
    """A server in C++ with threads, ended by a fault: what its core says is what the process said before."""
    with open("/proc/sys/kernel/core_pattern") as file:
        pattern = file.read().strip()
    if not shutil.which("pdns_server") or pattern not in ("core", "core.%p"):
        return False
    with open(os.path.join(folder, "named.conf"), "w") as file:
        file.write(f'zone "test" {{ type master; file "{folder}/zone"; }};\n')
    with open(os.path.join(folder, "zone"), "w") as file:
        file.write("$TTL 60\n@ IN SOA ns.test. a.test. 1 60 60 60 60\n IN NS ns.test.\nns IN A 127.0.0.1\n" +
                   "".join(f"h{i} IN A 10.{i >> 16}.{i >> 8 & 255}.{i & 255}\n" for i in range(20000)))
    child = start("pdns_server", "--config-dir=" + folder, "--launch=bind", f"--bind-config={folder}/named.conf", "--daemon=no",
                  "--guardian=no", f"--local-port={PORT + 2}", "--local-address=127.0.0.1", f"--socket-dir={folder}",
                  "--write-pid=no", "--disable-syslog", cwd=folder,
                  preexec_fn=let_dump)
    time.sleep(3)
    check("pdns: runs", child.poll() is None)
    explained("pdns_server", child.pid)
    alive = json.loads(tracealloc("take", child.pid, "-o", os.path.join(folder, "alive.ta"), "--json"))[0]
    os.kill(child.pid, signal.SIGSEGV)
    child.wait()
    cores = glob.glob(os.path.join(folder, "core*"))
    check("pdns: left a core", cores)
    if not cores:
        return True
    dead = json.loads(tracealloc("take", cores[0], "-o", os.path.join(folder, "dead.ta"), "--json"))[0]
    check("pdns: as many blocks dead as alive", abs(dead["blocks"] - alive["blocks"]) < 0.01 * alive["blocks"], alive, dead)
    said = json.loads(tracealloc("memory", cores[0], "--json"))[0]
    check("pdns: memory of the core", said["parts"]["asked"] > 1 << 20, said["parts"])
    found = lost(cores[0])
    print(f"pdns: {found['direct_bytes'] + found['indirect_bytes']} bytes lost of {dead['bytes']}")
    check("pdns: hardly anything is lost", found["direct_bytes"] + found["indirect_bytes"] < 0.05 * dead["bytes"], found["leaks"][:3])
    rows = json.loads(tracealloc("retained", cores[0], "--json", "-n", "3"))
    check("pdns: retained", rows[0]["retained"] > 1 << 20, rows)
    subprocess.run(["zstd", "-q", "--rm", cores[0]])
    again = json.loads(tracealloc("take", cores[0] + ".zst", "-o", os.path.join(folder, "packed.ta"), "--json"))[0]
    check("pdns: the same when it is packed", again["blocks"] == dead["blocks"] and again["bytes"] == dead["bytes"])
    return True


ran = 0
for subject in (redis, python, sqlite, nginx, cc1plus, pdns):
    if wanted and subject.__name__ not in wanted:
        continue
    with tempfile.TemporaryDirectory() as work:
        if subject(work):
            ran += 1
        else:
            print(f"{subject.__name__}: not here")
print(f"{ran} programs")
sys.exit(77 if ran == 0 else failures > 0)
