#!/usr/bin/env python3
"""Writes tests/golden/broken/: damaged recordings, each with the error that it must give.

A second implementation of docs/format.md, in small: it builds recordings out of plain sections with right checksums, so
that the damage sits behind them, where only the decoder can see it. Other files are cut and flipped copies of a golden
file. EXPECTED has one line per file: name, tab, what loading says behind the name ("warning: …" when it loads).

    tests/golden/make_broken.py      run where this file is; the results are committed
"""
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
MAGIC = b"\x89TAR\r\n\x1a\n"
ENTRY, STRINGS, MODULES, FRAMES, CONTEXTS, DOMAINS, THREADS, LEAVES, COUNTERS, PEAK, TRACES, OPTIONS, METADATA = range(1, 14)
SYMBOLS, RANGES, BLOCKS, END, INDEX, TRAILER = 14, 15, 16, 0x100, 0x101, 0x102
REQUIRED, RESET, PLAIN = 1, 2, 4
FIRST = 69  # where the section behind ENTRY begins


def mix(x):
    for _ in range(2):
        x ^= x >> 32
        x = x * 0xD6E8FEB86659FD93 & MASK
    return x ^ x >> 32


def hash_bytes(data):
    value = GOLDEN ^ len(data)
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & MASK
    return mix(value)


def roll(value, word):
    value = (value ^ word) * GOLDEN & MASK
    return value ^ value >> 32


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def numbers(*values):
    return b"".join(varint(value) for value in values)


def zigzag(value):
    return value << 1 if value >= 0 else (-value << 1) - 1


def columns(*cols):
    """Each column: its length, then its values."""
    return b"".join(varint(len(numbers(*col))) + numbers(*col) for col in cols)


def file_header(version=1, length=32, required=0, optional=0, check=None):
    head = MAGIC + struct.pack("<HHIIQ", version, length, required, optional, 0)
    return head + struct.pack("<I", hash_bytes(head) & 0xFFFFFFFF if check is None else check)


class Recording:
    """Sections one after another; keeps the digest that END must state."""

    def __init__(self, **header):
        self.data = bytearray(file_header(**header))
        self.entry = 0
        self.begin()

    def begin(self):
        self.count, self.digest = 0, 0

    def chunk(self, kind, payload, flags=REQUIRED | PLAIN, entry=None, stored=None, raw=None, check=None, magic=b"TAch",
              header_check=None):
        if check is None:
            check = hash_bytes(payload) & 0xFFFFFFFF
        head = magic + struct.pack("<HHIIIII", kind, flags, self.entry if entry is None else entry,
                                   len(payload) if stored is None else stored, len(payload) if raw is None else raw, 0, check)
        value = hash_bytes(head)
        self.count += 1
        self.digest = roll(self.digest, value)
        self.data += head + struct.pack("<I", value & 0xFFFFFFFF if header_check is None else header_check) + payload
        return self

    def start(self, reset=True, fields=None):
        fields = numbers(1, 1000, 5, 64) if fields is None else fields
        return self.chunk(ENTRY, fields, REQUIRED | PLAIN | (RESET if reset else 0))

    def end(self, digest=None, count=None):
        payload = struct.pack("<Q", self.digest if digest is None else digest)
        self.chunk(END, payload + numbers(self.count if count is None else count, 0))
        self.entry += 1
        self.begin()
        return self

    def seal(self, offset=None):
        at = len(self.data)
        self.chunk(INDEX, numbers(0) + columns([], [], [], [], [], []), PLAIN)
        length = len(self.data) + 48
        self.chunk(TRAILER, struct.pack("<QQ", at if offset is None else offset, length), PLAIN)
        return self

    def tables(self, strings=None, modules=None, frames=None, contexts=None, domains=None, leaves=None, counters=None):
        """A small sound snapshot: two frames, two contexts, one domain, two leaves. Any table can be replaced."""
        texts = [b"", b"/bin/program", b"x.c"]
        self.chunk(STRINGS, numbers(0, 3) + columns([len(t) for t in texts]) + b"".join(texts) if strings is None else strings)
        self.chunk(MODULES, numbers(0, 1) + numbers(0, 1, 0, 4096, 4096, 8192, 0) if modules is None else modules)
        self.chunk(FRAMES, numbers(0, 2) + columns([3, 3], [zigzag(4100), zigzag(16)], []) if frames is None else frames)
        self.chunk(CONTEXTS, numbers(1, 2) + columns([0, 0], [17, 17], []) if contexts is None else contexts)
        self.chunk(DOMAINS, numbers(0, 1) + columns(*([0] for _ in range(10))) if domains is None else domains)
        self.chunk(LEAVES, numbers(0, 2) + columns([0, zigzag(2)], [0, 0], [0, 0], [0, 0], [4, 0]) if leaves is None else leaves)
        self.chunk(COUNTERS, numbers(0, 1) + columns([1], [zigzag(2)], [zigzag(10)], [0], [zigzag(1)], [0])
                   if counters is None else counters)
        return self


FILES = {}


def broken(name, data, expected):
    assert name not in FILES, name
    FILES[name] = (bytes(data.data if isinstance(data, Recording) else data), expected)


def entry_with(name, expected, fields=None, **tables):
    broken(name, Recording().start(fields=fields).tables(**tables).end().seal(), expected)


def section(kind, offset, text):
    return f"section {kind} at offset {offset}: {text}"


def offset_of(recording, kind):
    """Where the first section of a kind begins."""
    data, at = recording.data, 32
    while True:
        _, found, _, _, stored = struct.unpack_from("<IHHII", data, at)
        if found == kind:
            return at
        at += 32 + stored


def main():
    sound = Recording().start().tables().end().seal()
    broken("sound", sound, "")
    at = {kind: offset_of(sound, kind) for kind in (STRINGS, MODULES, FRAMES, CONTEXTS, DOMAINS, LEAVES, COUNTERS, END, INDEX)}

    # The file as a whole.
    broken("empty", b"", "the file is empty")
    broken("short-magic", MAGIC[:5], "the file ends within its header")
    broken("short-header", file_header()[:20], "the file ends within its header")
    broken("foreign", b"\x7fELF" + bytes(60), "this is not a tracealloc recording")
    broken("foreign-short", b"hello", "this is not a tracealloc recording")
    broken("text-mode", b"\x89TAR\n\x1a\n" + bytes(60), "the recording was damaged by a transfer in text mode")
    broken("version-2", file_header(version=2), "format version 2 is not supported; this library reads version 1")
    broken("header-check", file_header(check=1), "the file header is damaged: wrong check")
    broken("header-length", file_header(length=64) + bytes(32), "the file header has a wrong length")
    broken("required-feature", Recording(required=1 << 5).start().tables().end().seal(),
           "the recording requires feature bit 5, which this library does not know")
    broken("optional-feature", Recording(optional=1 << 31).start().tables().end().seal(), "")
    broken("header-only", file_header(), "the recording holds no whole entry")
    broken("trailing-bytes", bytes(sound.data) + b"x" * 7, section("trailer", len(sound.data) - 48,
                                                                  "7 bytes follow the end of the recording"))

    # Cut off and torn: loads what is whole.
    torn = Recording().start().tables().end()
    first = len(torn.data)
    torn.start(reset=False)
    broken("torn-entry", torn, "warning: " + section("entry", first, "the entry has no end") + "; 1 whole entry before it")
    torn = bytes(torn.data)
    broken("torn-header", torn[: first + 9], "warning: " + section(
        "unknown section", first, "the file ends within a section header") + "; 1 whole entry before it")
    broken("torn-payload", torn[:-1], "warning: " + section(
        "entry", first, "the file ends within the section: 5 bytes expected, 4 there") + "; 1 whole entry before it")
    broken("torn-zeros", torn[:first] + bytes(100), "warning: " + section(
        "unknown section", first, "no section begins here") + "; 1 whole entry before it")
    broken("cut-in-the-only-entry", bytes(sound.data)[: at[LEAVES] + 3], "the recording holds no whole entry: " + section(
        "unknown section", at[LEAVES], "the file ends within a section header"))

    # The last entry is damaged: where the file was closed that is no accident, and nothing before it is offered.
    half = Recording().start().tables().end().start(reset=False)
    where = len(half.data)
    half.chunk(COUNTERS, numbers(0, 1) + columns([2], [0], [], [0], [0], [0])).end()
    complaint = section("counters", where, "row 0 names a leaf that is not there")
    broken("last-entry-closed", half.seal(), complaint)

    # Section headers.
    def flipped(offset, bit=1):
        data = bytearray(sound.data)
        data[offset] ^= bit
        return data

    damaged = "the section header is damaged: wrong check"
    broken("chunk-magic", flipped(at[FRAMES]), section("unknown section", at[FRAMES], "no section begins here"))
    broken("chunk-kind", flipped(at[FRAMES] + 4), section("unknown section", at[FRAMES], damaged))
    broken("chunk-length", flipped(at[FRAMES] + 12), section("unknown section", at[FRAMES], damaged))
    broken("chunk-header-check", flipped(at[FRAMES] + 28), section("unknown section", at[FRAMES], damaged))
    broken("payload-flip", flipped(at[FRAMES] + 34), section("frames", at[FRAMES], "the section has a wrong checksum"))
    broken("unknown-flags", Recording().start().chunk(STRINGS, b"", flags=PLAIN | 64).end().seal(),
           section("strings", FIRST, "the section has flags that this library does not know"))
    broken("unknown-required", Recording().start().chunk(77, b"?").tables().end().seal(),
           section("unknown section", FIRST, "the recording requires section kind 77, which this library does not know"))
    broken("unknown-skipped", Recording().start().chunk(77, b"?", flags=PLAIN).tables().end().seal(), "")
    broken("two-lengths", Recording().start().chunk(STRINGS, b"abc", raw=4).end().seal(),
           section("strings", FIRST, "a plain section states two different lengths"))
    broken("too-long", Recording().start().chunk(STRINGS, b"abc", flags=REQUIRED, raw=1 << 30).end().seal(),
           section("strings", FIRST, "the section states 1073741824 bytes, more than the 16 MiB a section may have"))
    broken("no-zstd", Recording().start().chunk(STRINGS, b"abcdefghijklmnop", flags=REQUIRED).end().seal(),
           section("strings", FIRST, "the section is not a zstd frame"))
    # A zstd frame by hand: one raw block "abc", content size 3, no checksum.
    frame = b"\x28\xb5\x2f\xfd\x20\x03\x19\x00\x00abc"
    broken("zstd-no-checksum", Recording().start().chunk(STRINGS, frame, flags=REQUIRED, raw=3).end().seal(),
           section("strings", FIRST, "the section carries no checksum"))
    frame = b"\x28\xb5\x2f\xfd\x24\x03\x19\x00\x00abc\x00\x00\x00\x00"
    broken("zstd-wrong-checksum", Recording().start().chunk(STRINGS, frame, flags=REQUIRED, raw=3).end().seal(),
           section("strings", FIRST, "the section has a wrong checksum"))
    broken("zstd-other-length", Recording().start().chunk(STRINGS, frame, flags=REQUIRED, raw=4).end().seal(),
           section("strings", FIRST, "the section states another length than its chunk"))
    broken("zstd-trailing", Recording().start().chunk(STRINGS, frame + b"!", flags=REQUIRED, raw=3).end().seal(),
           section("strings", FIRST, "the section does not fill its chunk"))

    # The order of sections.
    broken("wrong-entry", Recording().start().chunk(STRINGS, b"", entry=3).end().seal(),
           section("strings", FIRST, "the section belongs to another entry"))
    broken("outside", Recording().chunk(STRINGS, numbers(0, 0, 0)).start().tables().end().seal(),
           section("strings", 32, "the section stands outside any entry"))
    broken("entry-in-entry", Recording().start().start().tables().end().seal(),
           section("entry", FIRST, "an entry begins within an entry"))
    broken("no-reset", Recording().start(reset=False).tables().end().seal(),
           section("entry", 32, "the first entry relies on one before it"))
    broken("section-after-index", Recording().start().tables().end().chunk(INDEX, b"", PLAIN).chunk(
        STRINGS, b"").seal(), section("strings", at[INDEX] + 32, "the section follows the index"))
    broken("section-removed", Recording().start().tables().end(count=7).seal(),
           section("end", at[END], "the sections of the entry are not those that were written"))
    broken("section-exchanged", Recording().start().tables().end(digest=1).seal(),
           section("end", at[END], "the sections of the entry are not those that were written"))
    twice = Recording().start().chunk(OPTIONS, numbers(0, 0) + columns([], [])).chunk(OPTIONS, numbers(0, 0) + columns([], []))
    broken("options-twice", twice.end().seal(), section("options", FIRST + 36, "the section comes twice in one entry"))
    repeated = Recording().start().tables()
    again = len(repeated.data)
    repeated.chunk(CONTEXTS, numbers(1, 2) + columns([0, 0], [17, 17], []))
    broken("contexts-twice", repeated.end().seal(), section("contexts", again, "begins with row 1 where row 3 is due"))

    # What stands in the tables.
    def table(kind, name, text):
        return section(name, at[kind], text)

    broken("field-twice", Recording().start(fields=numbers(1, 5, 1, 6)).end().seal(),
           section("entry", 32, "field 1 comes twice"))
    broken("field-cut", Recording().start(fields=b"\x01\x80").end().seal(),
           section("entry", 32, "the section ends within a field"))
    broken("field-range", Recording().start(fields=numbers(6, 1 << 40)).end().seal(),
           section("entry", 32, "a field is out of range"))
    entry_with("program-string", section("end", at[END], "field 7 names string 9, but there are 3"), fields=numbers(1, 1000, 7, 9))
    entry_with("string-0", table(STRINGS, "strings", "string 0 is not empty"), strings=numbers(0, 1) + columns([1]) + b"a")
    entry_with("string-long", table(STRINGS, "strings", "string 1 ends outside the section"),
               strings=numbers(0, 2) + columns([0, 99]) + b"a")
    entry_with("string-left", table(STRINGS, "strings", "bytes are left after the last row"),
               strings=numbers(0, 1) + columns([0]) + b"a")
    entry_with("row-count", table(STRINGS, "strings", "states more rows than it has bytes"), strings=numbers(0, 1 << 40, 0))
    entry_with("column-long", table(FRAMES, "frames", "a column is longer than the section"), frames=numbers(0, 2, 100))
    entry_with("column-short", table(FRAMES, "frames", "a column ends within its rows"),
               frames=numbers(0, 2) + columns([3], [zigzag(1), zigzag(1)], []))
    entry_with("column-left", table(FRAMES, "frames", "a column has more values than rows"),
               frames=numbers(0, 2) + columns([3, 3, 3], [zigzag(1), zigzag(1)], []))
    entry_with("module-string", table(MODULES, "modules", "module 0 names string 5, but there are 3"),
               modules=numbers(0, 1) + numbers(0, 5, 0, 0, 0, 0, 0))
    entry_with("module-order", table(MODULES, "modules", "module 2 is out of order"),
               modules=numbers(0, 1) + numbers(2, 1, 0, 0, 0, 0, 0))
    entry_with("module-build-id", table(MODULES, "modules", "module 0 has a build id of more than 64 bytes"),
               modules=numbers(0, 1) + numbers(0, 1, 0, 0, 0, 0, 65) + bytes(65))
    entry_with("module-cut", table(MODULES, "modules", "the section ends within a row"), modules=numbers(0, 1, 0, 1))
    entry_with("frame-module", table(FRAMES, "frames", "frame 1 names module 1, but there are 1"),
               frames=numbers(0, 2) + columns([3, 4], [0, 0], []))
    entry_with("frame-file", table(FRAMES, "frames", "frame 0 names string 3, but there are 3"),
               frames=numbers(0, 1) + columns([1], [zigzag(3)], [0]))
    entry_with("frame-file-negative", table(FRAMES, "frames", f"frame 0 names string {MASK}, but there are 3"),
               frames=numbers(0, 1) + columns([1], [zigzag(-1)], [0]))
    entry_with("frame-line", table(FRAMES, "frames", "frame 0 has a line beyond 32 bits"),
               frames=numbers(0, 1) + columns([1], [0], [zigzag(1 << 32)]))
    entry_with("frames-gap", table(FRAMES, "frames", "begins with row 5 where row 0 is due"),
               frames=numbers(5, 1) + columns([0], [0], []))
    entry_with("context-own-parent", table(CONTEXTS, "contexts", "context 1 does not come after its parent"),
               contexts=numbers(1, 1) + columns([1], [17], []))
    entry_with("context-rank", table(CONTEXTS, "contexts", "context 1 names a rank that no frame has"),
               contexts=numbers(1, 1) + columns([0], [0], []))
    entry_with("context-code", table(CONTEXTS, "contexts", "context 1 has an unknown code"),
               contexts=numbers(1, 1) + columns([0], [18], []))
    entry_with("context-frame", table(CONTEXTS, "contexts", "context 1 names frame 2, but there are 2"),
               contexts=numbers(1, 1) + columns([0], [16], [2]))
    entry_with("context-next-frame", table(CONTEXTS, "contexts", "context 3 names frame 2, but there are 2"),
               contexts=numbers(1, 3) + columns([0, 0, 0], [17, 17, 17], []))
    entry_with("domain-number", table(DOMAINS, "domains", "domain 0 has a number beyond 32 bits"),
               domains=numbers(0, 1) + columns([0], [1 << 32], *([0] for _ in range(8))))
    entry_with("leaf-context", table(LEAVES, "leaves", "leaf 0 names context 3, but there are 3"),
               leaves=numbers(0, 1) + columns([zigzag(3)], [0], [0], [0], [0]))
    entry_with("leaf-domain", table(LEAVES, "leaves", "leaf 0 names domain 1, but there are 1"),
               leaves=numbers(0, 1) + columns([0], [1], [0], [0], [0]))
    entry_with("leaf-thread", table(LEAVES, "leaves", "leaf 0 names thread 0, but there are 0"),
               leaves=numbers(0, 1) + columns([0], [0], [1], [0], [0]))
    entry_with("leaf-depth", table(LEAVES, "leaves", "leaf 0 has an impossible depth"),
               leaves=numbers(0, 1) + columns([0], [0], [0], [zigzag(-1)], [0]))
    entry_with("leaf-flags", table(LEAVES, "leaves", "leaf 0 has unknown flags"),
               leaves=numbers(0, 1) + columns([0], [0], [0], [0], [8]))
    entry_with("counter-leaf", table(COUNTERS, "counters", "row 0 names a leaf that is not there"),
               counters=numbers(0, 1) + columns([2], [0], [], [0], [0], [0]))
    entry_with("counter-start", table(COUNTERS, "counters", "does not continue the section before it"),
               counters=numbers(1, 0) + columns([], [], [], [], [], []))
    entry_with("varint-overlong", table(COUNTERS, "counters", "the section ends within a row"), counters=b"\x80" * 9 + b"\x02\x00")

    def extra(name, kind, kind_name, payload, text, flags=REQUIRED | PLAIN):
        recording = Recording().start().tables()
        where = len(recording.data)
        broken(name, recording.chunk(kind, payload, flags).end().seal(), section(kind_name, where, text))

    ten = [[0]] * 10
    extra("trace-context", TRACES, "traces", numbers(0, 1) + columns([zigzag(3)], *ten[1:]), "trace 0 names context 3, but there are 3")
    extra("trace-flags", TRACES, "traces", numbers(0, 1) + columns([0], [0], [0], [8], *ten[4:]), "trace 0 has unknown flags")
    extra("trace-domain", TRACES, "traces", numbers(0, 1) + columns([0], [zigzag(-1)], *ten[2:]),
          "trace 0 has a domain beyond 32 bits")
    extra("peak-leaf", PEAK, "peak", numbers(0, 1) + columns([5], [5]), "row 0 names a leaf that is not there", PLAIN)
    extra("peak-leaf-behind-last", PEAK, "peak", numbers(0, 1) + columns([2], [5]), "row 0 names a leaf that is not there",
          PLAIN)
    extra("symbol-string", SYMBOLS, "symbols", numbers(0, 1) + columns([zigzag(3)], [0], [0], [0], [0], [0]),
          "symbol 0 names string 3, but there are 3", PLAIN)
    extra("range-symbols", RANGES, "symbol ranges", numbers(0, 1) + columns([0], [1]),
          "frame 0 names symbols that are not there", PLAIN)
    extra("range-frames", RANGES, "symbol ranges", numbers(0, 3) + columns([0, 0, 0], [0, 0, 0]),
          "describes more frames than there are", PLAIN)
    # The two leaves have the owners 1 and 2; the second block is of no leaf.
    blocks = Recording().start().tables()
    blocks.chunk(BLOCKS, numbers(0, 3) + columns([4096, 64, 0], [zigzag(2), zigzag(-2), zigzag(2)],
                                                 [zigzag(10), zigzag(1 << 33), zigzag(0)]), PLAIN)
    broken("blocks", blocks.end().seal(), "")
    none = Recording().start().tables().chunk(BLOCKS, numbers(0, 0) + columns([], [], []), PLAIN)
    broken("blocks-none", none.end().seal(), "")
    extra("block-owner", BLOCKS, "blocks", numbers(0, 1) + columns([16], [zigzag(3)], [0]),
          "block 0 names owner 3, but there are 3", PLAIN)
    extra("block-owner-negative", BLOCKS, "blocks", numbers(0, 1) + columns([16], [zigzag(-1)], [0]),
          f"block 0 names owner {MASK}, but there are 3", PLAIN)
    extra("block-address", BLOCKS, "blocks", numbers(0, 2) + columns([1 << 47, 1 << 47], [0, 0], [0, 0]),
          "block 1 has an address or a size beyond 48 bits", PLAIN)
    extra("block-size", BLOCKS, "blocks", numbers(0, 1) + columns([1], [0], [zigzag(-1)]),
          "block 0 has an address or a size beyond 48 bits", PLAIN)
    extra("blocks-begin", BLOCKS, "blocks", numbers(1, 1) + columns([1], [0], [0]), "begins with row 1 where row 0 is due",
          PLAIN)
    extra("metadata-string", METADATA, "metadata", numbers(0, 1) + columns([1], [3]), "row 0 names string 3, but there are 3")

    folder = os.path.join(HERE, "broken")
    for old in os.listdir(folder):
        os.unlink(os.path.join(folder, old))
    with open(os.path.join(folder, "EXPECTED"), "w", encoding="ascii") as listing:
        for name, (data, expected) in sorted(FILES.items()):
            with open(os.path.join(folder, name + ".ta"), "wb") as out:
                out.write(data)
            listing.write(f"{name}\t{expected}\n")
    print(len(FILES), "files")


main()
