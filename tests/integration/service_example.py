"""service_example.py: examples/service, built outside of the tree against what is installed, asked over HTTP.

    service_example.py BUILD-FOLDER [--tools]     --tools: also promtool and go tool pprof -http; skipped where they lack
"""
import gzip
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def get(port, path, data=None):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", data, timeout=60) as answer:
        return answer.read(), answer.headers["Content-Type"]


def build(tree, folder):
    """A copy of the example, as a user would have one."""
    source, binary = f"{folder}/service", f"{folder}/service/build"
    shutil.copytree(f"{ROOT}/examples/service", source)
    for command in (["cmake", "-S", source, "-B", binary, f"-DCMAKE_PREFIX_PATH={tree}"],
                    ["cmake", "--build", binary], ["ctest", "--test-dir", binary, "--output-on-failure"]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, done.stdout.decode()
        assert b"warning:" not in done.stdout, done.stdout.decode()
    return f"{binary}/service"


def check_gate(tool, service, folder):
    """The planted leak is found by name; without it the gate holds."""
    for leak, status in (([], 0), (["--leak"], 1)):
        subprocess.run([tool, "run", "-q", f"--output={folder}/run.ta", "--", service, "--exercise", "500", *leak],
                       check=True, stdout=subprocess.DEVNULL)
        done = subprocess.run([tool, "gate", f"{folder}/run.ta", "--no-leaks"], stdout=subprocess.PIPE, check=False)
        assert done.returncode == status, done.stdout.decode()
        assert (b"service::application::keep" in done.stdout) == bool(leak), done.stdout.decode()


METRIC = re.compile(r'^(tracealloc_[a-z_]+)(\{domain="[^"]*",name="(?:[^"\\\n]|\\.)*"\})? (\d+)$')


def check_metrics(text):
    """Every sample belongs to the family announced above it; the figures of the domains are there."""
    values, family = {}, None
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            family, kind = line.split()[2:]
            assert kind in ("gauge", "counter") and (kind == "counter") == family.endswith("_total"), line
        elif not line.startswith("# HELP "):
            name, labels, value = METRIC.match(line).groups()
            assert name == family, line
            values[name + (labels or "")] = int(value)
    assert values["tracealloc_tracing"] == 1 and values["tracealloc_traced_bytes"] > 10000, values
    assert values['tracealloc_domain_hard_limit_bytes{domain="3",name="cache"}'] == 512 * 1024, values
    assert values['tracealloc_domain_live_blocks{domain="2",name="parser"}'] > 0, values
    assert values['tracealloc_domain_peak_bytes{domain="3",name="cache"}'] > 0, values
    assert values['tracealloc_domain_allocated_blocks_total{domain="1",name="http"}'] > 0, values
    return values


def ask(service_port, debug_port):
    for i in range(300):
        body = f"width,height,item{i % 5}\n" + "".join(f"{i},{row},1\n" for row in range(10))
        answer, _ = get(service_port, "/sums", body.encode())
        assert answer.decode().startswith(f'{{"width": {10 * i}.0'), answer
    try:
        get(service_port, "/sums", b"x" * (1 << 21))
        raise AssertionError("a large body was taken")
    except (urllib.error.HTTPError, ConnectionError, urllib.error.URLError) as refused:
        assert getattr(refused, "code", 413) == 413, refused
    metrics, kind = get(debug_port, "/metrics")
    assert kind.startswith("text/plain; version=0.0.4"), kind
    check_metrics(metrics.decode())
    profile, _ = get(debug_port, "/debug/pprof/heap")
    raw = gzip.decompress(profile)
    for wanted in (b"service::cache::put", b"inuse_space", b"domain 3 cache", b"subsystems.cpp"):
        assert wanted in raw, wanted
    picture, kind = get(debug_port, "/debug/heap?format=flame&order=total")
    assert kind == "image/svg+xml" and b"<svg" in picture and b"parser::sums" in picture
    words, _ = get(debug_port, "/debug/heap")
    assert b"3 cache" in words and b"cache::put" in words, words.decode()
    try:
        get(debug_port, "/debug/heap?format=bogus")
        raise AssertionError("an unknown format was taken")
    except urllib.error.HTTPError as refused:
        assert refused.code == 503 and b"bogus" in refused.read()
    get(debug_port, "/debug/heap/stop")
    assert b"tracealloc_tracing 0" in get(debug_port, "/metrics")[0]
    get(debug_port, "/debug/heap/start?frames=20")
    assert b"tracealloc_tracing 1" in get(debug_port, "/metrics")[0]
    for i in range(20):
        get(service_port, "/sums", f"later{i}\n1\n".encode())


def check_tools(debug_port, folder):
    done = subprocess.run(["promtool", "check", "metrics"], input=get(debug_port, "/metrics")[0], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout.decode()
    (port,) = free_ports(1)
    pprof = subprocess.Popen(["go", "tool", "pprof", f"-http=127.0.0.1:{port}", "-no_browser",
                              f"http://127.0.0.1:{debug_port}/debug/pprof/heap"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, env={**os.environ, "HOME": folder})
    try:
        for _ in range(200):
            try:
                page, _ = get(port, "/ui/top?si=alloc_space")
                break
            except OSError:
                time.sleep(0.1)
        assert b"service" in page and (b"cache::put" in page or b"parser" in page), page[:2000]
    finally:
        pprof.terminate()
        pprof.wait()
        pprof.stderr.close()


def main():
    tools = "--tools" in sys.argv
    if subprocess.run(["pkg-config", "--exists", "libmicrohttpd"], check=False).returncode != 0:
        print("no libmicrohttpd here")
        return 77
    if tools and not (shutil.which("promtool") and shutil.which("go")):
        print("no promtool or no go here")
        return 77
    for name in ("TRACEALLOC", "TRACEALLOC_OPTIONS", "LD_PRELOAD"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        tree = f"{folder}/tree"
        subprocess.run(["cmake", "--install", os.path.abspath(sys.argv[1]), "--prefix", tree], check=True,
                       stdout=subprocess.DEVNULL)
        service = build(tree, folder)
        check_gate(f"{tree}/bin/tracealloc", service, folder)
        service_port, debug_port = free_ports(2)
        process = subprocess.Popen([service, str(service_port), str(debug_port)], stdout=subprocess.PIPE,
                                   env={**os.environ, "TRACEALLOC": "100"})
        try:
            assert b"memory on port" in process.stdout.readline()
            ask(service_port, debug_port)
            if tools:
                check_tools(debug_port, folder)
        finally:
            process.send_signal(signal.SIGTERM)
            report, _ = process.communicate(timeout=60)
        assert process.returncode == 0, process.returncode
        assert b"http " in report and b"names of columns" in report, report.decode()
    print("built, gated, asked: metrics, profile, picture and report are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
