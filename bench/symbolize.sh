#!/bin/sh
# symbolize.sh: how long 100 000 addresses take, beside eu-addr2line with the same list.
#
#   symbolize.sh SYMBOLIZE FILE… [-- COUNT]
#
# SYMBOLIZE is build/release/tests/symbolize. Each FILE needs debug information (inside or found by its build id). The
# addresses are spread over all instructions, in random but fixed order. Both run five times in turn; the
# medians are compared. eu-addr2line is timed twice: places alone on the whole list, and with functions and inlined
# calls (-f -i: what we always do) on a sample of 1000, once, projected without its start: it would take minutes.
set -u
symbolize=$1
shift
files= count=100000
while [ $# -gt 0 ]; do
    if [ "$1" = -- ]; then count=$2; break; fi
    files="$files $1"
    shift
done
unset DEBUGINFOD_URLS
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

now() { date +%s%N; }
timed() { # list command… : milliseconds
    list=$1
    shift
    began=$(now)
    "$@" <"$list" >/dev/null 2>&1
    echo $((($(now) - began) / 1000000))
}
median() { sort -n | sed -n 3p; }

for file in $files; do
    objdump -d --no-show-raw-insn "$file" | awk '/^ +[0-9a-f]+:\t/ { print $1 }' | tr -d : >"$work/all"
    shuf -n "$count" --random-source=/dev/zero "$work/all" >"$work/list"
    shuf -n 1000 --random-source=/dev/zero "$work/list" >"$work/sample"
    head -n 1 "$work/sample" >"$work/one"
    : >"$work/ours" && : >"$work/places"
    for _ in 1 2 3 4 5; do
        timed "$work/list" "$symbolize" -q "$file" >>"$work/ours"
        timed "$work/list" eu-addr2line -e "$file" >>"$work/places"
    done
    names=$(timed "$work/sample" eu-addr2line -f -i -e "$file")
    start=$(timed "$work/one" eu-addr2line -f -i -e "$file")
    total=$(wc -l <"$work/list")
    ours=$(median <"$work/ours") places=$(median <"$work/places")
    awk -v file="$file" -v n="$total" -v ours="$ours" -v places="$places" -v names="$names" -v start="$start" 'BEGIN {
        projected = start + (names - start) * n / 1000
        printf "%s: %d addresses\n", file, n
        printf "  ours, with functions and inlined calls  %8.3f s\n", ours / 1000
        printf "  eu-addr2line, places alone              %8.3f s   %.2f times ours\n", places / 1000, places / ours
        printf "  eu-addr2line -f -i, projected from 1000 %8.3f s   %.0f times ours\n", projected / 1000, projected / ours
    }'
done
