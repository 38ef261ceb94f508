"""The configurations: what a subject runs under — nothing, ours in each mode, and every rival at its usual settings."""
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

LIBDIR = "/usr/lib/x86_64-linux-gnu"


@dataclass
class Configuration:
    name: str
    title: str
    env: dict = field(default_factory=dict)    # values may hold {out}: a folder of the run's own
    wrap: list = field(default_factory=list)   # put before the command
    preload: str = ""
    helper: str = ""                           # shell command beside the program, reading {out}/fifo
    answer: str = ""                           # shell command from output to a top-10 list, in {out}, with {program}
    size: str = ""                             # "small": only small inputs are bearable
    only_python: bool = False
    servers: bool = True
    kind: str = "ours"                         # "base", "ours", "rival"
    packages: str = ""
    version: str = ""
    missing: str = ""                          # why it cannot be used here


def _installed(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False)
    return f"{package} {done.stdout}" if done.returncode == 0 and done.stdout else ""


def _probe(configuration, scratch):
    """Runs true under a preload: why that does not work, or ''."""
    if not configuration.preload:
        return ""
    if not Path(configuration.preload).exists():
        return f"{configuration.preload} is not there"
    env = dict(os.environ, LD_PRELOAD=configuration.preload)
    env.update({key: value.format(out=scratch) for key, value in configuration.env.items()})
    done = subprocess.run(["/bin/true"], env=env, capture_output=True, text=True, check=False, cwd=scratch)
    complaint = next((line for line in done.stderr.splitlines() if line.strip()), "")
    if done.returncode != 0 or "nvalid conf" in done.stderr:
        return complaint or f"status {done.returncode}"
    return ""


def _tracing(frames, options=""):
    env = {"TRACEALLOC": str(frames)}
    if options:
        env["TRACEALLOC_OPTIONS"] = options
    return env


def all_of_them(root, build, untraced, scratch):
    ours = str(Path(build) / "lib/libtracealloc.so")
    plain = str(Path(untraced) / "lib/libtracealloc.so")
    cli = Path(build) / "bin/tracealloc"
    heaptrack = "/usr/lib/heaptrack"
    jemalloc = f"{LIBDIR}/libjemalloc.so.2"
    tcmalloc = f"{LIBDIR}/libtcmalloc.so.4"
    found = [
        Configuration("glibc", "glibc malloc", kind="base", preload=f"/lib/x86_64-linux-gnu/libc.so.6", packages="libc6"),
        Configuration("untraced", "untraced build", kind="base", preload=plain),
        Configuration("untraced-again", "untraced build, measured again", kind="base", preload=plain),
        Configuration("stopped", "ours, stopped", preload=ours),
        Configuration("sampled", "ours, sampled (512 KiB)", preload=ours, env=_tracing(65535, "sample=512KiB")),
        Configuration("one", "ours, one frame", preload=ours, env=_tracing(1)),
        Configuration("whole", "ours, whole stacks", preload=ours, env=_tracing(65535)),
        Configuration("snapshots", "ours, whole stacks, a snapshot each second", preload=ours,
                      env=_tracing(65535, "interval=1,series=yes,output={out}/recording.ta"),
                      answer=f"{cli} top {{out}}/recording.ta | head -12" if cli.exists() else ""),
        Configuration("jemalloc-prof", "jemalloc, prof (sampled, its default)", kind="rival", preload=jemalloc,
                      env={"MALLOC_CONF": "prof:true,prof_final:true,prof_prefix:{out}/jeprof"},
                      answer="jeprof --text {program} {out}/jeprof.*.heap | head -12", packages="libjemalloc2"),
        Configuration("jemalloc-all", "jemalloc, prof, every allocation", kind="rival", preload=jemalloc,
                      env={"MALLOC_CONF": "prof:true,lg_prof_sample:0,prof_final:true,prof_prefix:{out}/jeprof"},
                      answer="jeprof --text {program} {out}/jeprof.*.heap | head -12", packages="libjemalloc2"),
        Configuration("gperftools", "gperftools heap profiler", kind="rival", preload=tcmalloc,
                      env={"HEAPPROFILE": "{out}/heap"},
                      answer="google-pprof --text {program} $(ls {out}/heap.*.heap | tail -1) | head -12",
                      packages="libgoogle-perftools4"),
        Configuration("heaptrack", "heaptrack", kind="rival", preload=f"{heaptrack}/libheaptrack_preload.so",
                      env={"DUMP_HEAPTRACK_OUTPUT": "{out}/fifo"},
                      helper=f"{heaptrack}/libexec/heaptrack_interpret < {{out}}/fifo | zstd -q -c > {{out}}/heaptrack.zst",
                      answer="heaptrack_print -n 10 -s 1 -f {out}/heaptrack.zst", packages="heaptrack"),
        Configuration("massif", "valgrind massif (small inputs)", kind="rival", size="small", servers=False,
                      wrap=["valgrind", "-q", "--tool=massif", "--massif-out-file={out}/massif"],
                      answer="ms_print {out}/massif | head -40", packages="valgrind"),
        Configuration("dhat", "valgrind DHAT (small inputs)", kind="rival", size="small", servers=False,
                      wrap=["valgrind", "-q", "--tool=dhat", "--dhat-out-file={out}/dhat"], packages="valgrind"),
        Configuration("tracemalloc-1", "Python's tracemalloc, one frame", kind="rival", only_python=True,
                      wrap=["{python}", str(Path(root) / "bench/workloads/tracemalloc_on.py"), "1"]),
        Configuration("tracemalloc-all", "Python's tracemalloc, whole stacks", kind="rival", only_python=True,
                      wrap=["{python}", str(Path(root) / "bench/workloads/tracemalloc_on.py"), "65535"]),
    ]
    for configuration in found:
        if configuration.packages:
            configuration.version = ", ".join(filter(None, map(_installed, configuration.packages.split())))
            if not configuration.version:
                configuration.missing = f"not installed: {configuration.packages}"
        if not configuration.missing and configuration.wrap and configuration.wrap[0] == "valgrind":
            configuration.missing = "" if shutil.which("valgrind") else "no valgrind here"
        if not configuration.missing and not configuration.helper:
            configuration.missing = _probe(configuration, scratch)
    return found


# Which configurations a run takes when it is not told.
QUICK = ["glibc", "untraced", "untraced-again", "stopped", "sampled", "one", "whole", "heaptrack"]


def answer_is_usable(configuration):
    words = re.findall(r"^[\w./-]+", configuration.answer)
    return bool(words) and shutil.which(words[0]) is not None
