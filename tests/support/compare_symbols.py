#!/usr/bin/env python3
"""Compares two answers in the format of `addr2line -a -i -f`, address by address.

usage: compare_symbols.py [--names] [--show N] [--at-least PERCENT] OURS THEIRS

Files are compared after textual normalisation of "." and "..", without columns and discriminators; a location that
THEIRS does not know ("??") counts as unknown, as does our fallback (line 0). Prints how many addresses agree and the
kinds of difference, with the first N of each; exit 1 when less than PERCENT agree."""
import collections
import posixpath
import re
import sys


def location(text):
    text = re.sub(r" \(discriminator \d+\)$", "", text)
    match = re.match(r"(.*?):(\d+|\?)(?::\d+)?$", text)
    if not match or match.group(1) == "??" or match.group(2) in ("0", "?"):
        return None
    return posixpath.normpath(match.group(1)), int(match.group(2))


def read(path):
    answers, address = {}, None
    with open(path, encoding="utf-8", errors="surrogateescape") as lines:
        lines = iter(lines)
        for line in lines:
            line = line.rstrip("\n")
            if re.match(r"0x[0-9a-f]{16}$", line):
                address = int(line, 16)
                answers[address] = []
                continue
            function = re.sub(r" inlined at .*$", "", line)
            answers[address].append((function, location(next(lines).rstrip("\n"))))
    return answers


def main():
    arguments = sys.argv[1:]
    names = "--names" in arguments
    show = int(arguments[arguments.index("--show") + 1]) if "--show" in arguments else 3
    least = float(arguments[arguments.index("--at-least") + 1]) if "--at-least" in arguments else 0
    ours, theirs = (read(path) for path in arguments[-2:])
    kinds = collections.defaultdict(list)
    for address, mine in ours.items():
        other = theirs.get(address)
        if other is None:
            kinds["not answered"].append((address, mine, other))
        elif mine[0][1] != other[0][1]:
            both = mine[0][1] and other[0][1]
            knower = "ours" if mine[0][1] else "theirs"
            kind = "innermost place" if both else f"only {knower} knows a place"
            kinds[kind].append((address, mine, other))
        elif len(mine) != len(other):
            kinds["number of frames"].append((address, mine, other))
        elif [place for _, place in mine] != [place for _, place in other]:
            kinds["outer places"].append((address, mine, other))
        elif names and [name for name, _ in mine] != [name for name, _ in other]:
            kinds["names"].append((address, mine, other))
        else:
            kinds["same"].append((address, mine, other))
    same = len(kinds.pop("same", []))
    print(f"{len(ours)} addresses, {same} the same")
    for kind, cases in sorted(kinds.items()):
        print(f"{len(cases)} {kind}")
        for address, mine, other in cases[:show]:
            print(f"  {address:#x}\n    ours   {mine}\n    theirs {other}")
    return int(not ours or 100 * same < least * len(ours))


sys.exit(main())
