#!/bin/bash
# cplusplus.sh: tracealloc.hpp with other compilers, standards and libraries, without exceptions, without RTTI.
#
#   tests/integration/cplusplus.sh LIBRARY-FOLDER [quick]     quick: g++ alone, one build of each standard, not optimised
#
# What is not installed is named and left out; without any C++ compiler the test is skipped (77).
set -uo pipefail
cd "$(dirname "$0")/../.."
libraries=$1 extent=${2:-all} level=-O1
[ "$extent" != quick ] || level=-O0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
built=0 failures=0

try() { # compiler flag…
    local compiler=$1
    shift
    if ! "$compiler" "$@" -g $level -fno-builtin -Wall -Wextra -Wshadow -Wconversion -Werror -Iinclude \
        tests/unit/test_cplusplus.cpp -o "$work/program" -L"$libraries" -ltracealloc -ltracealloc-analysis -pthread \
        >"$work/log" 2>&1; then
        echo "FAILED to build: $compiler $*"
        head -20 "$work/log"
        failures=$((failures + 1))
    elif ! LD_LIBRARY_PATH=$libraries "$work/program" >"$work/log" 2>&1; then
        echo "FAILED: $compiler $*"
        tail -5 "$work/log"
        failures=$((failures + 1))
    else
        built=$((built + 1))
        echo "$compiler $*: $(tail -1 "$work/log")"
    fi
}

has() { # compiler flag…
    echo '#include <memory_resource>
    int main() { }' | "$@" -std=c++17 -x c++ - -o "$work/probe" >/dev/null 2>&1
}

variants() { # compiler flag…
    local newest=23 # clang before 17 calls it 2b
    "$1" -std=c++23 -x c++ -fsyntax-only /dev/null 2>/dev/null || newest=2b
    for standard in 17 20 "$newest"; do
        try "$@" -std=c++$standard
        [ "$extent" != quick ] || continue
        try "$@" -std=c++$standard -fno-exceptions
        try "$@" -std=c++$standard -fno-rtti
        try "$@" -std=c++$standard -fno-exceptions -fno-rtti
    done
}

# libc++ 19, unpacked beside the tests: installed, its package would push out libunwind's, which the checking build needs.
with_libcxx() {
    local tree=$work/libcxx clang
    clang=$(command -v clang++-19) || { echo 'no clang++-19: libc++ is left out'; return; }
    mkdir -p "$tree"
    if ! (cd "$tree" && apt-get download libc++-19-dev libc++1-19 libc++abi1-19 libc++abi-19-dev libunwind-19) \
        >/dev/null 2>&1; then
        echo 'libc++ 19 cannot be fetched: left out'
        return
    fi
    for package in "$tree"/*.deb; do dpkg -x "$package" "$tree"; done
    local folder=$tree/usr/lib/llvm-19
    local flags=(-nostdinc++ -isystem "$folder/include/c++/v1" -nostdlib++ -L"$folder/lib" -Wl,-rpath,"$folder/lib"
        "$folder/lib/libc++.so.1" "$folder/lib/libc++abi.so.1")
    variants "$clang" "${flags[@]}"
}

if has g++; then variants g++; else echo 'no g++ here'; fi
if [ "$extent" != quick ]; then
    tried=' '
    for compiler in clang++ clang++-14 clang++-16 clang++-19; do
        command -v $compiler >/dev/null || continue
        path=$(readlink -f "$(command -v $compiler)")
        case $tried in *" $path "*) continue ;; esac
        tried+="$path "
        if has $compiler; then variants $compiler; fi
    done
    with_libcxx
fi
echo "$built programs built and run, $failures failed"
[ $((built + failures)) -gt 0 ] || exit 77
[ $failures -eq 0 ]
