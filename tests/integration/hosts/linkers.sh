#!/bin/bash
# linkers.sh: one C++ program with libtracealloc.a in it, by every compiler and linker that is here: dynamic, static,
# static-pie, with link-time optimization of its own. Its stacks are whole, its exceptions are caught, and what it wrote
# names its functions and lines.
#
#   tests/integration/hosts/linkers.sh ARCHIVE PROGRAM
set -uo pipefail
cd "$(dirname "$0")/../../.."
archive=$1 tracealloc=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
good=0 bad=0

try() { # compiler flag…
    local program=$work/program
    rm -f "$program" "$work/now.ta"
    if "$@" -std=c++17 -O2 -g -Iinclude tests/integration/hosts/subject.cpp -o "$program" \
        -Wl,--undefined=malloc -Wl,--eh-frame-hdr "$archive" -pthread >"$work/log" 2>&1 &&
        "$program" "$work/now.ta" >"$work/log" 2>&1 &&
        grep -qx 'deep, 100 caught, 0 cut short, named, written' "$work/log" &&
        "$tracealloc" top "$work/now.ta" >"$work/log" 2>&1 && grep -q 'subject\.cpp:[0-9]* *deep' "$work/log"; then
        echo "ok $*"
        good=$((good + 1))
    else
        echo "FAILED $*"
        head -20 "$work/log"
        bad=$((bad + 1))
    fi
}

has() { # compiler flag…
    echo 'int main() { }' | "$@" -x c++ - -o "$work/probe" >/dev/null 2>&1
}

for compiler in g++ clang++ clang++-19; do
    has $compiler || { echo "no $compiler here"; continue; }
    for linker in bfd gold lld; do
        has $compiler -fuse-ld=$linker || { echo "no $linker for $compiler here"; continue; }
        for way in '' -static -static-pie; do
            # shellcheck disable=SC2086 # one flag or none
            has $compiler -fuse-ld=$linker $way || { echo "no $way with $linker"; continue; }
            # shellcheck disable=SC2086 # the same
            try $compiler -fuse-ld=$linker $way
        done
    done
done
if has g++; then try g++ -flto; fi
for compiler in clang++ clang++-19; do
    if has $compiler -fuse-ld=lld -flto=thin; then
        try $compiler -fuse-ld=lld -flto=thin
        try $compiler -fuse-ld=lld -flto=thin -static-pie
    fi
done
echo "$good programs as they should be, $bad not"
[ $bad -eq 0 ] && [ $good -gt 0 ]
