"""driver.py: talks to the conformance driver, and builds the snapshots that both sides answer questions about.

A case is a list of traces in the form that Python's tracemalloc keeps them: (domain, size, frames, total_nframe), frames
most recent first.
"""
import json
import subprocess
import tracemalloc


class Refused(Exception):
    """The library answered with an error; the text is its text."""


class Driver:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, command, *payloads):
        message = command.encode() + b"\n" + b"".join(payloads)
        self.process.stdin.write(message)
        self.process.stdin.flush()
        length = self.process.stdout.readline()
        if not length:
            raise SystemExit(f"the driver ended at: {command}")
        answer = self.process.stdout.read(int(length))
        if answer.startswith(b"error "):
            raise Refused(answer[6:].decode("utf-8", "surrogateescape"))
        return answer

    def load(self, slot, traces, limit, oldest_first=False, ascii_only=True):
        """Imports the traces; with counts for neighbours that are equal, as files from programs have them."""
        document = {"traceback_limit": limit, "traces": []}
        if oldest_first:
            document["frame_order"] = "oldest_first"
        for first, count in entries_of(traces):
            domain, size, frames, total = traces[first]
            frames = [list(frame) for frame in (reversed(frames) if oldest_first else frames)]
            entry = {"domain": domain, "size": size, "total_nframe": total, "frames": frames}
            if count > 1:
                entry["count"] = count
            document["traces"].append(entry)
        if ascii_only:
            text = json.dumps(document).encode()
        else:
            text = json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogateescape")
        self.ask(f"import {slot} {len(text)}", text)

    def filter(self, slot, source, spec):
        text = json.dumps(spec).encode()
        self.ask(f"filter {slot} {source} {len(text)}", text)

    def words(self, slot, source, expression):
        text = expression.encode("utf-8", "surrogateescape")
        self.ask(f"words {slot} {source} {len(text)}", text)

    def rows(self, command):
        return json.loads(self.ask(command))

    def texts(self, command):
        answer = self.ask(command).decode("utf-8", "surrogateescape")
        return answer.split("\0")[:-1]

    def traces(self, slot):
        """What the slot holds, in Python's form."""
        traces = []
        for entry in self.rows(f"json {slot}")["traces"]:
            frames = tuple((name, line) for name, line in entry["frames"])
            traces += [(entry["domain"], entry["size"], frames, entry["total_nframe"])] * entry["count"]
        return traces

    def close(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise SystemExit(f"the driver ended with status {self.process.returncode}")


def entries_of(traces):
    """(index of the first, count) of the entries that stand for `traces`: equal neighbours are one, up to 2^64 bytes."""
    entries = []
    for index, trace in enumerate(traces):
        if entries and trace == traces[entries[-1][0]] and trace[1] * (entries[-1][1] + 1) < 2 ** 64:
            entries[-1] = (entries[-1][0], entries[-1][1] + 1)
        else:
            entries.append((index, 1))
    return entries


def frames_of(traceback):
    """Most recent first, as our JSON has them."""
    return [[frame.filename, frame.lineno] for frame in reversed(traceback)]


def statistics(snapshot, key, cumulative):
    return [{"frames": frames_of(s.traceback), "size": s.size, "count": s.count, "str": str(s)}
            for s in snapshot.statistics(key, cumulative)]


def differences(new, old, key, cumulative):
    return [{"frames": frames_of(s.traceback), "size": s.size, "size_diff": s.size_diff, "count": s.count,
             "count_diff": s.count_diff, "str": str(s)}
            for s in new.compare_to(old, key, cumulative)]


def python_filter(spec):
    if spec["type"] == "domain":
        return tracemalloc.DomainFilter(spec["inclusive"], spec["domain"])
    return tracemalloc.Filter(spec["inclusive"], spec["filename_pattern"], lineno=spec.get("lineno"),
                              all_frames=spec.get("all_frames", False), domain=spec.get("domain"))
