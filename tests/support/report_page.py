"""report_page.py: reads the data of a report back, as docs/report.md describes them: another reader than the page's own."""
import base64
import collections
import gzip
import json
import re
import struct

SIGNED = {"trace.row", "trace.peak", "change.count", "change.calls", "change.size", "change.bytes", "point.time"}


def column(data, at, count, signed):
    values = []
    for _ in range(count):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        values.append(-(value + 1) // 2 if signed and value % 2 else value // 2 if signed else value)
    return values


class Page:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.html = file.read()
        packed = re.search(r'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=]*)</script>', self.html).group(1)
        data = gzip.decompress(base64.b64decode(packed))
        length = struct.unpack("<I", data[:4])[0]
        self.head = json.loads(data[4:4 + length].decode("utf-8", "surrogatepass"))
        at = 4 + length
        self.columns = {}
        for name, count, size in self.head["columns"]:
            self.columns[name] = column(data, at, count, name in SIGNED)
            at += size
        self.texts = []
        for size in self.columns["text.length"]:
            self.texts.append(data[at:at + size].decode("utf-8", "surrogateescape"))
            at += size
        assert at == len(data), "nothing is left over"
        self.files = self.head["files"]
        self.read_points()
        self.read_tree()
        self.read_traces()

    def read_points(self):
        self.times, time, first = [], 0, 0
        for step in self.columns["point.time"]:
            time += step
            self.times.append(time)
        for file in self.files:
            file["first"], first = first, first + file["points"]
        self.entries = self.columns["point.index"]

    def read_tree(self):
        self.frame_of, parents, frames = [None], [0], 0
        for up, frame in zip(self.columns["node.up"], self.columns["node.frame"]):
            above = len(parents) - 1
            for _ in range(up):
                above = parents[above]
            parents.append(above)
            self.frame_of.append(frames if frame == 0 else frame - 1)
            frames += frame == 0
        assert frames == len(self.columns["frame.line"])
        self.parents = parents

    def read_traces(self):
        c, at, plain, node, row = self.columns, 0, 0, 0, 0
        self.traces = []
        for i, count in enumerate(c["trace.changes"]):
            node, row, point, each = node + c["trace.node"][i], row + c["trace.row"][i], 0, c["trace.each"][i]
            changes = []
            for _ in range(count):
                point += c["change.point"][at]
                blocks, calls = c["change.count"][at], c["change.calls"][at]
                size, total = (each * blocks, each * calls) if each else (c["change.size"][plain], c["change.bytes"][plain])
                changes.append((point, size, blocks, total, calls))
                at, plain = at + 1, plain + (each == 0)
            self.traces.append({"node": node, "row": row, "source": c["trace.source"][i], "domain": c["trace.domain"][i],
                                "thread": c["trace.thread"][i], "changes": changes,
                                "peak": c["trace.peak"][i] + sum(change[1] for change in changes)})

    def place(self, table, i):
        c = self.columns
        return {name: self.texts[c[f"{table}.{name}"][i]] for name in ("file", "function", "module")} | {
            "line": c[f"{table}.line"][i]}

    def key(self, trace, by):
        frame = self.place("frame", self.frame_of[trace["node"]])
        if by == "own":
            row = self.place("row", trace["row"])
            return row["file"], row["line"]
        if by == "line":
            return (frame["file"] if frame["line"] else frame["module"] or frame["file"]), frame["line"]
        if by in ("domain", "thread"):
            return trace[by], 0
        return frame[by] or "<unknown>", 0

    def at(self, source, entry):
        """The point of a file that is a certain entry; -1 its last."""
        file = self.files[source]
        points = range(file["first"], file["first"] + file["points"])
        return points[-1] if entry == -1 else next(point for point in points if self.entries[point] == entry)

    def sums(self, by, entry=-1, source=0):
        """{key: (size, count, allocated_size, allocated_count)} as of an entry."""
        end, sums = self.at(source, entry), collections.defaultdict(lambda: [0, 0, 0, 0])
        for trace in self.traces:
            if trace["source"] == source:
                total = sums[self.key(trace, by)]
                for change in trace["changes"]:
                    if change[0] <= end:
                        for i in range(4):
                            total[i] += change[i + 1]
        return {key: tuple(total) for key, total in sums.items() if any(total)}

    def stacks(self):
        """Of every trace the functions, outermost first."""
        for trace in self.traces:
            names, node = [], trace["node"]
            while node:
                names.append(self.place("frame", self.frame_of[node])["function"])
                node = self.parents[node]
            yield trace, names[::-1]
