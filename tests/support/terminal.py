"""terminal.py: programs on a terminal of a certain width, for the tests of what people see."""
import errno
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios


def opened(columns):
    """Both ends of one: what we read, and what the program writes to."""
    parent, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    return parent, terminal


def rest(descriptor):
    """What there is to read, until nobody has the other end any more. A program that writes and leaves between two looks of
    the kernel makes it say "gone" with text left, so that only the second time in a row counts."""
    text, gone = b"", 0
    while gone < 2:
        try:
            piece = os.read(descriptor, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            piece = b""
        text += piece
        gone = 0 if piece else gone + 1
    os.close(descriptor)
    return text


def read_all(descriptor):
    return rest(descriptor).decode()


def run(command, columns=100, stream="stdout", **options):
    """What the terminal gets from one of the streams, the other thrown away unless `options` say otherwise, and the status.
    We hold the other end, too, while the program runs: nobody is gone before it is."""
    parent, terminal = opened(columns)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options, stream: terminal}
    with subprocess.Popen(command, **streams) as running:
        text = b""
        while running.poll() is None:
            if select.select([parent], [], [], 0.005)[0]:
                text += os.read(parent, 65536)
        os.close(terminal)
        return (text + rest(parent)).decode(), running.returncode
