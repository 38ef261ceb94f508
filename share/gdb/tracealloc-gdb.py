"""Commands of tracealloc for gdb, on live processes and on cores: ta-block, ta-why, ta-leaks, ta-memory.

gdb loads this file by itself together with libtracealloc.so where both are installed; else: source tracealloc-gdb.py.
What the commands answer is what the program `tracealloc` says of the same process, found in PATH or named by the
environment variable TRACEALLOC_PROGRAM: one piece of code looks into memory, whoever asks.
"""
import os
import re
import shutil
import subprocess
import tempfile

import gdb

REGISTERS = "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi".split()


def program():
    for path in os.environ.get("TRACEALLOC_PROGRAM"), shutil.which("tracealloc"):
        if path and os.access(path, os.X_OK):
            return path
    raise gdb.GdbError("the program tracealloc is neither in PATH nor named by TRACEALLOC_PROGRAM")


def core_file():
    found = re.search(r"core dump file:\n\s*`(.*)', file type", gdb.execute("info files", to_string=True))
    return found[1] if found else None


def hexadecimal(expression):
    return "%x" % (int(gdb.parse_and_eval(expression)) & (1 << 64) - 1)


def registers():
    """Of all threads, as tracealloc's --registers reads them: gdb holds the process, so nobody else can ask the kernel."""
    selected, said = gdb.selected_thread(), []
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        frame = gdb.newest_frame()
        frame.select()
        words = ["$rsp", "$rip", "$fs_base"] + ["$" + name for name in REGISTERS]
        said.append("%d=%s" % (thread.ptid[1] or thread.ptid[0], ",".join(hexadecimal(word) for word in words)))
    if selected is not None:
        selected.switch()
    return ";".join(said)


def ask(command, *words):
    """Prints what tracealloc says; its exit status."""
    core = core_file()
    if core is None and gdb.selected_inferior().pid == 0:
        raise gdb.GdbError("there is no process, and no core")
    if core is not None:
        return run(command, *words, core)
    takes_registers = ["--registers", registers()] if command in ("why", "leaks", "retained") else []
    status = run(command, *words, "--no-pause", *takes_registers, str(gdb.selected_inferior().pid), may_fail=True)
    if status is not None:
        return status
    # A system that lets only parents look into processes: gdb itself may.
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "core")
        gdb.execute("generate-core-file " + path, to_string=True)
        return run(command, *words, path)


def run(*words, may_fail=False):
    done = subprocess.run([program(), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    errors = done.stderr.decode(errors="replace")
    if may_fail and done.returncode == 2 and "may not be looked at" in errors:
        return None
    gdb.write(done.stdout.decode(errors="replace"))
    if done.returncode == 2 or not done.stdout:
        raise gdb.GdbError(errors.strip())
    gdb.write(errors)
    return done.returncode


def address_of(argument):
    if not argument:
        raise gdb.GdbError("an address or an expression is missing")
    return hex(int(gdb.parse_and_eval(argument).cast(gdb.lookup_type("unsigned long"))))


class Block(gdb.Command):
    """ta-block ADDRESS: what an address is: a live block (size, who asked for it), a free one, a stack, data.

ADDRESS is any expression, such as a pointer variable."""

    def __init__(self):
        super().__init__("ta-block", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        ask("why", "--brief", address_of(argument))


class Why(gdb.Command):
    """ta-why ADDRESS: what an address is, who points to its block, and the shortest ways there from outside of malloc."""

    def __init__(self):
        super().__init__("ta-why", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        ask("why", address_of(argument))


class Leaks(gdb.Command):
    """ta-leaks [OPTION …]: blocks that nothing points to any more. Options are those of tracealloc leaks."""

    def __init__(self):
        super().__init__("ta-leaks", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        ask("leaks", *gdb.string_to_argv(argument))


class Memory(gdb.Command):
    """ta-memory [OPTION …]: what the resident memory is. Options are those of tracealloc memory."""

    def __init__(self):
        super().__init__("ta-memory", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        ask("memory", *gdb.string_to_argv(argument))


for command in Block, Why, Leaks, Memory:
    command()
