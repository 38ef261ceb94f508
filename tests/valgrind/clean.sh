#!/bin/bash
# clean.sh: our allocator under valgrind, without one suppression: no invalid access, no use of undefined values.
#
# Usage: clean.sh LIBRARY.so PROGRAM…   (programs linked with the library; none: one small program is built here)
# Valgrind replaces malloc where it finds it; --soname-synonyms tells it to leave ours alone, so that what runs is ours,
# and its checks apply to the code of the library and to the memory it maps. Ends with 77 when valgrind is missing.
set -u
lib=${1:?library}
shift
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
ways=$root/tests/integration/ways_in
command -v valgrind >/dev/null || exit 77
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failed=0

check() { # check NAME COMMAND…
    local name=$1 status
    shift
    timeout -k 5 300 valgrind --soname-synonyms=somalloc=nouserintercepts --error-exitcode=9 --fair-sched=yes -q \
        --run-libc-freeres=no "$@" >"$work/got" 2>&1 </dev/null
    status=$?
    if [ $status -eq 0 ]; then
        echo "ok $name"
    else
        echo "not ok $name: exit status $status"
        head -60 "$work/got" | sed 's/^/    /'
        failed=1
    fi
}

build() { # build SOURCE
    "${CC:-cc}" -O1 -g -I "$root/include" -I "$ways" "$ways/$1.c" -o "$work/$1" -pthread \
        -L "$(dirname "$lib")" -ltracealloc -Wl,-rpath,"$(dirname "$lib")"
}

export EXPECT_OURS=1
build early_late && check "places early and late" "$work/early_late"
build churn && check "short threads" "$work/churn" 64
build fork_threads && check "forks among threads" "$work/fork_threads" 4
for program in "$@"; do
    TA_TEST_OPERATIONS=20000 TA_TEST_SEED=1 check "$(basename "$program")" "$program"
done
exit $failed
