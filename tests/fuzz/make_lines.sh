#!/bin/sh
# make_lines.sh: seeds for fuzz_lines.c, from line tables of real compilers: gcc and clang, DWARF 2 to 5, split, with
# link-time optimisation, with folders, inlined code and code that is left out; as they are and compressed.
#
#   make_lines.sh FOLDER     then: corpus.sh add tests/fuzz/lines.tar.zst FOLDER/*
#
# Needs gcc, clang, binutils, python3.
set -eu
out=$1
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p src/deep
cat >src/inner.h <<'C'
static inline int inner(int n)
{
    return n > 3 ? n * 7 : n + 1;
}
C
cat >src/deep/one.c <<'C'
#include "../inner.h"
int two(int n);
int unused(int n) { return inner(n) + two(n); }
int one(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += two(inner(i));
    return sum;
}
C
cat >main.c <<'C'
#include "src/inner.h"
int one(int n);
int two(int n) { return inner(n) + n; }
int main(int count, char **arguments)
{
    (void)arguments;
    return one(count) + two(count);
}
C

# One program as a whole, and its sections alone.
seeds() { # name
    objcopy --remove-section=.comment --strip-unneeded --keep-section='.debug*' program small 2>/dev/null || cp program small
    python3 - "$1" "$out" <<'PYTHON'
import os, struct, subprocess, sys, zlib
name, out = sys.argv[1:]
address = int(next(line.split()[0] for line in subprocess.run(["nm", "program"], stdout=subprocess.PIPE, text=True).stdout.splitlines()
                   if line.endswith(" main")), 16)
def section(which):
    subprocess.run(["objcopy", "-O", "binary", f"--only-section={which}", "--set-section-flags", f"{which}=alloc", "program", "piece"],
                   stderr=subprocess.DEVNULL)
    return open("piece", "rb").read() if os.path.exists("piece") else b""
def keep(mode, content):
    with open(f"{out}/{name}-{mode}", "wb") as file:
        file.write(content)
head = struct.pack("<Q", address)
lines, line_texts, texts = (section(f".debug_{which}") for which in ("line", "line_str", "str"))
keep("l", b"l" + head + struct.pack("<HH", len(lines), len(line_texts)) + lines + line_texts + texts[:2000])
packed = [struct.pack("<IIQQ", 1, 0, len(part), 1) + zlib.compress(part, 9) for part in (lines, line_texts, texts[:2000])]
keep("z", b"z" + head + struct.pack("<HH", len(packed[0]), len(packed[1])) + b"".join(packed))
for level in (0, 1, 9):
    keep(f"i{level}", b"i" + struct.pack("<I", len(lines))[:3] + zlib.compress(lines, level))
whole = open("small", "rb").read()
if len(whole) < 30000:
    keep("e", b"e" + head + whole)
PYTHON
}

for compiler in gcc clang; do
    for flags in -gdwarf-2 -gdwarf-3 -gdwarf-4 -gdwarf-5 '-gdwarf-5 -gdwarf64' '-gdwarf-4 -gsplit-dwarf' \
        '-gdwarf-5 -gsplit-dwarf' '-gdwarf-5 -flto' '-gdwarf-4 -flto' '-g -ffunction-sections -Wl,--gc-sections'; do
        # shellcheck disable=SC2086 # flags are words
        $compiler -O1 -g $flags -fuse-ld=bfd main.c src/deep/one.c -o program 2>/dev/null ||
            $compiler -O1 -g $flags -fuse-ld=lld main.c src/deep/one.c -o program 2>/dev/null ||
            { echo "$compiler $flags: not here"; continue; }
        seeds "$compiler$(printf %s "$flags" | tr -c 'a-z0-9\n' _)"
    done
done
gcc -O1 -g main.c src/deep/one.c -o plain
for packing in zlib zlib-gnu zstd; do
    cp plain program
    objcopy --compress-debug-sections=$packing program 2>/dev/null && seeds "packed_$packing"
done
gcc -O1 -g -static main.c src/deep/one.c -o program && seeds static
clang -O1 -gdwarf-5 -g -fuse-ld=lld -ffunction-sections -Wl,--gc-sections main.c src/deep/one.c -o program && seeds lld
rm -f "$out"/packed_*-[lzi]*
printf '%s seeds\n' "$(find "$out" -type f | wc -l)"
