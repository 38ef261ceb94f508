"""Runs one subject under one configuration, once, and says what it cost."""
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from . import configurations
from .subjects import PYTHON

CLEAN = ("LD_PRELOAD", "TRACEALLOC", "TRACEALLOC_OPTIONS", "MALLOC_CONF", "HEAPPROFILE", "PYTHONMALLOC", "GLIBC_TUNABLES")


class Trouble(Exception):
    """A run that has no figures: what happened, in a few words."""


class Measure:
    def __init__(self, bench_folder, limit_seconds):
        self.folder = Path(bench_folder)
        self.limit = limit_seconds
        self.scratch = self.folder / f"scratch-{os.getpid()}"
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.environment = {key: value for key, value in os.environ.items() if key not in CLEAN}
        self.environment["LC_ALL"] = "C.UTF-8"

    def close(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    # ---- one process ----

    def _start(self, command, assignments, name, stdout):
        result = self.scratch / f"{name}.result"
        result.unlink(missing_ok=True)
        arguments = [str(self.folder / "measure"), str(result), *assignments, "--", *command]
        errors = open(self.scratch / f"{name}.stderr", "wb")
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=stdout, stderr=errors,
                                   env=self.environment, cwd=self.scratch / "out", start_new_session=True)
        errors.close()
        return process, result

    def _finish(self, process, result, what):
        try:
            process.wait(timeout=self.limit)
        except subprocess.TimeoutExpired:
            self._kill(process)
            raise Trouble(f"{what}: longer than {self.limit} s") from None
        fields = result.read_text().split() if result.exists() else []
        if len(fields) != 8:
            raise Trouble(f"{what}: could not be measured")
        status, wall, user, system, rss, minor, major, end = (float(field) for field in fields)
        return {"status": int(status), "wall": wall, "user": user, "system": system, "cpu": user + system,
                "rss_kib": int(rss), "minor_faults": int(minor), "major_faults": int(major), "end": end}

    @staticmethod
    def _kill(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)  # the session that _start made
        except ProcessLookupError:
            pass
        process.wait()

    def _assignments(self, subject, configuration):
        out = self.scratch / "out"
        values = {**subject.env, **{k: v.format(out=out) for k, v in configuration.env.items()}}
        if configuration.preload:
            values["LD_PRELOAD"] = configuration.preload
        return [f"{key}={value}" for key, value in values.items()]

    # ---- one run ----

    def run(self, subject, configuration, size):
        out = self.scratch / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        helper = helper_result = None
        if configuration.helper:
            os.mkfifo(out / "fifo")
            helper, helper_result = self._start(["sh", "-c", configuration.helper.format(out=out)], [], "helper",
                                                subprocess.DEVNULL)
        try:
            if subject.group == "server":
                row = SERVERS[subject.name](self, subject, configuration, size)
            else:
                row = self._program(subject, configuration, size)
        except Trouble:
            if helper is not None:
                self._kill(helper)
            raise
        row["helper_cpu"] = 0.0
        row["helper_rss_kib"] = 0
        ready = row["end"]
        if helper is not None:
            beside = self._finish(helper, helper_result, "helper")
            row["helper_cpu"] = beside["cpu"]
            row["helper_rss_kib"] = beside["rss_kib"]
            ready = max(ready, beside["end"])
        row["cpu_total"] = row["cpu"] + row["helper_cpu"]
        row["output_bytes"] = sum(path.stat().st_size for path in out.iterdir() if path.is_file())
        row["answer"] = self._answer(configuration, row, ready, out)
        del row["end"]
        return row

    def _program(self, subject, configuration, size):
        command = subject.argv(size, self.folder / "inputs")
        wrap = [part.format(out=self.scratch / "out", python=PYTHON) for part in configuration.wrap]
        if configuration.only_python:
            command = command[1:]
        self.program = shutil.which(command[0]) or command[0]
        printed = self.scratch / "stdout"
        with open(printed, "wb") as stdout:
            process, result = self._start(wrap + command, self._assignments(subject, configuration), "program", stdout)
        row = self._finish(process, result, subject.name)
        if row["status"] != 0:
            raise Trouble(self._what_happened(row["status"]))
        row["digest"] = hashlib.sha256(printed.read_bytes()).hexdigest()[:16] if subject.deterministic else ""
        return row

    def _what_happened(self, status):
        lines = (self.scratch / "program.stderr").read_text(errors="replace").strip().splitlines()
        said = f": {lines[-1][:120]}" if lines else ""
        if status > 128:
            return f"crashed, {signal.Signals(status - 128).name}{said}"
        return f"exit status {status}{said}"

    def _answer(self, configuration, row, ready, out):
        """Seconds from the program's end to a top-10 list; None when the configuration has no such thing."""
        if configuration.only_python:
            found = re.search(r"answer ([\d.]+)", (self.scratch / "program.stderr").read_text(errors="replace"))
            return float(found.group(1)) if found else None
        if not configuration.answer or not configurations.answer_is_usable(configuration):
            return None
        command = configuration.answer.format(out=out, program=getattr(self, "program", ""))
        begin = time.monotonic()
        try:
            done = subprocess.run(["sh", "-c", command], capture_output=True, env=self.environment, check=False,
                                  timeout=self.limit)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode != 0 or not done.stdout:
            return None
        return (ready - row["end"]) + time.monotonic() - begin


# ---- servers ----

def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for_port(port, process):
    for _ in range(400):
        if process.poll() is not None:
            return False
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.05)
    return False


def _served(measure, subject, configuration, command, port, client, read):
    """Starts the server, lets the client at it, stops it; cost of the server, and what the client read off."""
    measure.program = shutil.which(command[0])
    process, result = measure._start(command, measure._assignments(subject, configuration), "program", subprocess.DEVNULL)
    try:
        if not _wait_for_port(port, process):
            raise Trouble("the server did not start")
        done = subprocess.run(client, capture_output=True, text=True, timeout=measure.limit, check=False,
                              env=measure.environment)
        extra = read(done.stdout)
    except (subprocess.TimeoutExpired, ValueError, IndexError) as error:
        measure._kill(process)
        raise Trouble(f"the client got no figures ({type(error).__name__})") from None
    except Trouble:
        measure._kill(process)
        raise
    process.terminate()
    row = measure._finish(process, result, subject.name)
    if row["status"] not in (0, 128 + signal.SIGTERM):
        raise Trouble(measure._what_happened(row["status"]))
    row.update(digest="", **extra)
    return row


def _redis(measure, subject, configuration, size):
    port = _free_port()
    requests = {"small": 2000, "quick": 15000, "full": 300000}[size]

    def read(text):
        rows = [line.replace('"', "").split(",") for line in text.splitlines()]
        head, rows = rows[0], rows[1:]
        rps, p99 = head.index("rps"), head.index("p99_latency_ms")
        return {"throughput": sum(float(r[rps]) for r in rows) / len(rows), "p99_ms": max(float(r[p99]) for r in rows)}

    server = ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]
    client = ["redis-benchmark", "-p", str(port), "-n", str(requests), "-c", "20", "-P", "4", "-r", "20000", "--csv",
              "-d", "100", "-t", "set,get,lpush,lpop,hset,zadd"]
    return _served(measure, subject, configuration, server, port, client, read)


def _nginx(measure, subject, configuration, size):
    port = _free_port()
    requests = {"small": 500, "quick": 3000, "full": 60000}[size]
    site = measure.folder / "site"
    if not site.exists():
        site.mkdir(parents=True)
        for n in range(100):
            (site / f"file-{n:03}.txt").write_text(f"line {n}\n" * 200)
    settings = measure.scratch / "nginx.conf"
    settings.write_text(f"""daemon off; worker_processes 2; pid {measure.scratch}/nginx.pid; error_log /dev/null crit;
{"user root;" if os.geteuid() == 0 else ""}
events {{ worker_connections 256; }}
http {{
  access_log off; client_body_temp_path {measure.scratch}; proxy_temp_path {measure.scratch};
  fastcgi_temp_path {measure.scratch}; uwsgi_temp_path {measure.scratch}; scgi_temp_path {measure.scratch};
  gzip on; gzip_types text/plain; gzip_min_length 20;
  server {{ listen 127.0.0.1:{port}; root {site}; autoindex on; keepalive_requests 1000; }}
}}
""")

    def read(text):
        rate = re.search(r"Requests per second:\s+([\d.]+)", text)
        late = re.search(r"99%\s+(\d+)", text)
        failed = re.search(r"Failed requests:\s+(\d+)", text)
        if not rate or not late or int(failed.group(1)) != 0:
            raise ValueError("no figures")
        return {"throughput": float(rate.group(1)), "p99_ms": float(late.group(1))}

    # The listing of a folder, compressed: memory of many sizes for each request.
    client = ["ab", "-q", "-k", "-n", str(requests), "-c", "16", "-H", "Accept-Encoding: gzip", f"http://127.0.0.1:{port}/"]
    return _served(measure, subject, configuration, ["nginx", "-c", str(settings), "-e", "/dev/null"], port, client, read)


SERVERS = {"redis": _redis, "nginx": _nginx}
