"""The subjects: real programs with generated inputs, and our own small loads. Sizes: small, quick, full."""
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from . import inputs

HERE = Path(__file__).resolve().parent.parent
WORKLOADS = HERE / "workloads"
SIZES = ("small", "quick", "full")


@dataclass
class Subject:
    name: str
    argv: callable          # (size, folder) -> the command
    packages: str           # what ./dev installs for it
    group: str = "program"  # or "micro", "server"
    env: dict = field(default_factory=dict)
    is_python: bool = False
    deterministic: bool = True  # prints the same under every allocator
    version: tuple = ()

    def is_here(self):
        return self.group == "micro" or shutil.which(self.version[0]) is not None

    def version_line(self):
        if not self.version:
            return ""
        done = subprocess.run(self.version, capture_output=True, text=True, check=False)
        lines = (done.stdout + done.stderr).strip().splitlines()
        return lines[0] if lines else "?"


def _gcc_program(compiler, name):
    return subprocess.run([compiler, f"-print-prog-name={name}"], capture_output=True, text=True, check=True).stdout.strip()


def _cc1(size, folder):
    source = inputs.made(folder, "source.c", {"small": 6, "quick": 70, "full": 200}[size])
    return [_gcc_program("gcc", "cc1"), "-quiet", "-O1", source, "-o", "/dev/null"]


def _cc1plus(size, folder):
    source = inputs.made(folder, "source.cpp", {"small": 0, "quick": 3, "full": 20}[size])
    expanded = Path(source).with_suffix(".ii")
    if not expanded.exists():
        subprocess.run(["g++", "-E", "-std=c++17", source, "-o", f"{expanded}.part"], check=True)
        Path(f"{expanded}.part").rename(expanded)
    return [_gcc_program("g++", "cc1plus"), "-quiet", "-std=c++17", "-O1", "-fpreprocessed", str(expanded), "-o", "/dev/null"]


def _script(command, name, counts):
    return lambda size, folder: command + [str(WORKLOADS / name), str(counts[SIZES.index(size)])]


def _on_file(command, name, counts, after=()):
    return lambda size, folder: command + [inputs.made(folder, name, counts[SIZES.index(size)])] + list(after)


def _sqlite(size, folder):
    rows = inputs.made(folder, "rows.sql", {"small": 500, "quick": 30000, "full": 120000}[size])
    return ["sqlite3", "-batch", ":memory:", f".read {rows}"]


PYTHON = "/usr/bin/python3"  # the system's, never a shim that starts another

PROGRAMS = [
    Subject("python3", _script([PYTHON], "objects.py", (1, 8, 40)), "python3",
            env={"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}, is_python=True, version=(PYTHON, "--version")),
    Subject("cc1", _cc1, "gcc", version=("gcc", "--version")),
    Subject("cc1plus", _cc1plus, "g++", version=("g++", "--version")),
    Subject("perl", _script(["perl"], "words.pl", (1, 10, 40)), "perl", env={"PERL_HASH_SEED": "0"},
            version=("perl", "-e", "print qq(perl $^V\\n)")),
    Subject("lua", _script(["lua5.4"], "tables.lua", (1, 8, 40)), "lua5.4", version=("lua5.4", "-v")),
    Subject("sqlite3", _sqlite, "sqlite3", version=("sqlite3", "--version")),
    Subject("xmllint", _on_file(["xmllint", "--xpath", "count(//item[@kind='k3'])"], "items.xml", (500, 80000, 300000)),
            "libxml2-utils", version=("xmllint", "--version")),
    Subject("jq", _on_file(["jq", "group_by(.kind)|map({k:.[0].kind,n:length,s:(map(.price)|add)})"], "items.json",
                           (200, 30000, 120000)), "jq", version=("jq", "--version")),
    Subject("z3", _on_file(["z3"], "problem.smt2", (4, 30, 80)), "z3", version=("z3", "--version")),
    Subject("ghostscript", _on_file(["gs", "-q", "-dNOPAUSE", "-dBATCH", "-sDEVICE=ppmraw", "-r72", "-o", "/dev/null"],
                                    "pages.ps", (1, 40, 150)), "ghostscript", version=("gs", "--version")),
    Subject("gawk", _on_file(["gawk", "-f", str(WORKLOADS / "count.awk")], "words.txt", (200, 8000, 30000)), "gawk",
            version=("gawk", "--version")),
    Subject("ruby", _script(["ruby"], "records.rb", (1, 8, 35)), "ruby", deterministic=True, version=("ruby", "--version")),
]

SERVERS = [
    Subject("redis", None, "redis-server redis-tools", group="server", version=("redis-server", "--version")),
    Subject("nginx", None, "nginx-light apache2-utils", group="server", version=("nginx", "-v")),
]


def _micro(load, quick, full):
    return lambda size, folder: [str(Path(folder).parent / "micro"), load,
                                 str({"small": max(1, quick // 100), "quick": quick, "full": full}[size])]


MICROS = [Subject(f"micro-{load}", _micro(load, quick, full), "", group="micro") for load, quick, full in (
    ("small", 10000000, 60000000), ("depth", 10000000, 60000000), ("places", 6000000, 30000000),
    ("batch", 600, 3000), ("large", 2000000, 8000000), ("realloc", 20000, 80000), ("calloc", 5000000, 20000000),
    ("handover", 2000000, 8000000), ("larson", 6000000, 30000000), ("threads", 16, 64), ("processes", 100, 500))]

ALL = PROGRAMS + SERVERS + MICROS
