#!/bin/sh
# run.sh: fuzzes with clang's libFuzzer, address and undefined-behaviour sanitizers.
#
#   tests/fuzz/run.sh SECONDS [WORK [reader|analysis]]     WORK (default build/fuzz) keeps what was found between runs
#
# reader: recordings; analysis: documents, lists of filters, conditions. Needs clang and what a build
# needs. Ends with 1 when an input crashed; it lies in WORK then, as crash-….
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:?usage: tests/fuzz/run.sh SECONDS [WORK]}
work=${2:-build/fuzz}
subject=${3:-reader}
found=$work/found corpus=tests/fuzz/corpus libraries=
if [ "$subject" != reader ]; then
    found=$work/found_$subject corpus=tests/fuzz/corpus_$subject libraries="-ldw -lelf -ljson-c -liberty -lm -lpthread"
fi
mkdir -p "$found"
sources="tests/fuzz/fuzz_$subject.c base/error.c base/memory.c base/message.c"
for name in buffer build chunks codec decode encode input object read recording sink tables; do
    sources="$sources snapshot/$name.c"
done
[ "$subject" = reader ] || sources="$sources $(ls analysis/*.c)"
# shellcheck disable=SC2086 # a list of files without blanks
clang -std=gnu11 -D_GNU_SOURCE -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I. -Iinclude \
    $sources -l:libzstd.a $libraries -o "$work/fuzz_$subject"
"$work/fuzz_$subject" -max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="$work/" "$found" "$corpus"
