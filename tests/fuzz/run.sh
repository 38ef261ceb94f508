#!/bin/sh
# run.sh: fuzzes the reader with clang's libFuzzer, address and undefined-behaviour sanitizers.
#
#   tests/fuzz/run.sh SECONDS [WORK]     WORK (default build/fuzz) keeps what was found between runs
#
# Needs clang and libzstd-dev. Ends with 1 when an input crashed; it lies in WORK then, as crash-….
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:?usage: tests/fuzz/run.sh SECONDS [WORK]}
work=${2:-build/fuzz}
mkdir -p "$work/found"
sources="tests/fuzz/fuzz_reader.c base/error.c base/memory.c base/message.c"
for name in buffer build chunks codec decode encode input object read recording sink tables; do
    sources="$sources snapshot/$name.c"
done
# shellcheck disable=SC2086 # a list of files without blanks
clang -std=gnu11 -D_GNU_SOURCE -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I. -Iinclude \
    $sources -l:libzstd.a -o "$work/fuzz_reader"
"$work/fuzz_reader" -max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="$work/" "$work/found" tests/fuzz/corpus
