#!/bin/sh
# packed_lines.sh: programs whose debug information is compressed, as compilers and binutils do it, describe their blocks
# with lines all the same.
#
#   tests/integration/packed_lines.sh LIBRARY-FOLDER
set -eu
libraries=$1
include=$(cd "$(dirname "$0")/../../include" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >subject.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <tracealloc.h>

__attribute__((noinline)) static void *allocates(void)
{
    void *block = malloc(100); /* line 7 */
    __asm__ volatile("" : "+r"(block));
    return block;
}

int main(void)
{
    char text[4096];
    ta_start(10);
    ta_describe(allocates(), text, sizeof text);
    puts(text);
    return 0;
}
C
# Small tables stay as they are: they would not become smaller.
for i in $(seq 100); do printf 'int more%s(volatile int *n);\nint more%s(volatile int *n)\n{\n    *n += %s;\n    return *n;\n}\n' $i $i $i; done >>subject.c
tried=0
check() { # what
    for name in TRACEALLOC TRACEALLOC_OPTIONS LD_PRELOAD; do unset $name; done
    LD_LIBRARY_PATH=$libraries ./subject >said
    grep -q '  allocates .*subject\.c:7 (' said || { echo "$1: no line in:"; cat said; exit 1; }
    tried=$((tried + 1))
}
is_packed() { readelf -SW subject 2>/dev/null | grep -Eq '\.zdebug_line |\.debug_line .* C '; }
build() { "$@" -O1 -fno-builtin -fno-omit-frame-pointer subject.c "-I$include" -o subject "-L$libraries" -ltracealloc 2>log; }

for compiler in cc gcc clang; do
    for form in zlib zlib-gnu zstd; do
        if build $compiler -g "-gz=$form" && is_packed; then check "$compiler -gz=$form"; fi
    done
done
for form in zlib zlib-gnu zstd; do
    build cc -g || { cat log; exit 1; }
    if objcopy "--compress-debug-sections=$form" subject 2>/dev/null && is_packed; then check "objcopy $form"; fi
done
echo "$tried compressed programs have lines"
[ $tried -ge 4 ]
