#!/bin/sh
# odd_stacks.sh: programs whose stacks cannot be followed (no unwind tables, damaged ones) or whose threads nobody made
# properly (clone, vfork), or that have little stack, run on, traced as far as anything is known. See stacks/odd.c.
#
#   tests/integration/odd_stacks.sh LIBRARY TRACEALLOC      (- for the program: what the recording says is not looked at)
set -eu
library=$1 tracealloc=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
cc=${CC:-cc}
untabled='-fno-asynchronous-unwind-tables -fno-unwind-tables'

check() { # name status command…
    name=$1 expected=$2
    shift 2
    status=0
    TRACEALLOC=${frames:-100} LD_LIBRARY_PATH=$(dirname "$library") "$@" >"$work/out" 2>&1 || status=$?
    if [ "$status" -eq "$expected" ] && [ ! -s "$work/out" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s: status %s\n' "$name" "$status"
        head -20 "$work/out"
    fi
}

build() { # output flags…
    output=$1
    shift
    $cc -O2 -g "$@" -I"$here/../../include" -o "$work/$output" "$here/stacks/odd.c" "$library" -ldl -pthread -Wl,-z,now
}
build odd
# shellcheck disable=SC2086 # flags are words
build odd-untabled $untabled
$cc -O2 -fPIC -shared -o "$work/plugin.so" "$here/stacks/odd_plugin.c"
# shellcheck disable=SC2086
$cc -O2 -fPIC -shared $untabled -o "$work/untabled.so" "$here/stacks/odd_plugin.c"
check 'a library without tables' 0 "$work/odd" without "$work/untabled.so"
check 'a program' 0 "$work/odd" work
check 'a program without tables' 3 "$work/odd-untabled" work
if [ "$tracealloc" != - ]; then
    check 'and its recording' 3 "$tracealloc" run -q -o "$work/odd.ta" "$work/odd-untabled" work
    check 'which says how many' 0 sh -c '"$1" info "$2" --csv | grep -q "^cut short,[1-9]"' sh "$tracealloc" "$work/odd.ta"
fi
check 'a library with damaged tables' 0 "$work/odd" damaged "$work/plugin.so"
check 'a program with damaged tables' 0 "$work/odd" itself
for frames in 1 3 100 65535; do
    check "clone and vfork, $frames frames" 0 "$work/odd" clone
    check "small stacks, $frames frames" 0 "$work/odd" small "$work/plugin.so"
done
printf '%s passed, %s failed\n' $passed $failed
[ $failed -eq 0 ]
