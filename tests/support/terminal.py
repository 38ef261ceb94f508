"""terminal.py: programs on a terminal of a certain width, for the tests of what people see."""
import fcntl
import os
import pty
import struct
import subprocess
import termios


def opened(columns):
    """Both ends of one: what we read, and what the program writes to."""
    parent, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    return parent, terminal


def read_all(descriptor):
    """Until nobody has the other end any more."""
    text = b""
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.close(descriptor)
    return text.decode()


def run(command, columns=100, stream="stdout", **options):
    """What the terminal gets from one of the streams, the other thrown away unless `options` say otherwise, and the status."""
    parent, terminal = opened(columns)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options, stream: terminal}
    with subprocess.Popen(command, **streams) as running:
        os.close(terminal)
        return read_all(parent), running.wait()
