#!/bin/sh
# aarch64.sh: the runtime compiles for aarch64, all files of it and without a warning; and where qemu-user can run it,
# the stacks of random call trees are right there too. Skipped (77) where there is no cross compiler (Debian:
# gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user).
#
#   tests/integration/aarch64.sh MIMALLOC-SOURCE UNITY-SOURCE
set -eu
mimalloc=$1 unity=$2
cc=aarch64-linux-gnu-gcc
command -v $cc >/dev/null || exit 77
echo '#include <stdlib.h>' | $cc -E - >/dev/null 2>&1 || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 files=0
for file in $(find base trace alloc -name "*.c" | sort); do
    case $file in alloc/untraced/* | trace/unwind/walk_check.c) continue ;; esac
    warnings='-Wall -Wextra -Wshadow -Wconversion -Wmissing-prototypes -Wstrict-prototypes'
    case $file in alloc/mimalloc_unit.c) warnings= ;; esac
    files=$((files + 1))
    # shellcheck disable=SC2086 # warnings are words
    $cc -std=gnu11 -O2 -fPIC -fvisibility=hidden -ftls-model=initial-exec -D_GNU_SOURCE -DTRACEALLOC_TRACING=1 \
        -DTRACEALLOC_OVERRIDE=1 -DMI_DEBUG=0 -DMI_NO_THP -DMI_SKIP_COLLECT_ON_EXIT=1 -DMI_VISIT_ABANDONED=1 $warnings \
        -Werror -I. -Iinclude -isystem "$mimalloc/include" -isystem "$mimalloc/src" -c "$file" \
        -o "$work/$(echo "$file" | tr / -).o" || failed=$((failed + 1))
done
printf '%s files, %s failed\n' $files $failed
[ $failed -eq 0 ]
# libiberty's demangler is not there for this machine: no name is readable.
echo 'int cplus_demangle_v3_callback(void); int cplus_demangle_v3_callback(void) { return 0; }' |
    $cc -fPIC -c -x c - -o "$work/demangle.o"
$cc -shared -o "$work/libtracealloc.so" "$work"/*.o -pthread -Wl,-z,defs

if ! command -v qemu-aarch64 >/dev/null; then
    echo 'compiled, not run: there is no qemu-aarch64'
    exit 0
fi
for test in test_capture_property test_rule; do
    $cc -std=gnu11 -O2 -D_GNU_SOURCE -fno-builtin -I. -Iinclude -isystem "$unity" "tests/unit/$test.c" "$unity/unity.c" \
        "$work"/*.o -o "$work/$test" -pthread
    qemu-aarch64 -L /usr/aarch64-linux-gnu "$work/$test" emulated
done
