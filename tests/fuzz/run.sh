#!/bin/sh
# run.sh: fuzzes with clang's libFuzzer, address and undefined-behaviour sanitizers.
#
#   tests/fuzz/run.sh SECONDS [WORK [reader|analysis|image|packed|startup|lines]]
#
# WORK (default build/fuzz) keeps what was found.
#
# reader: recordings; analysis: documents, lists of filters, conditions; image: damaged cores; packed: their packing,
# headers and notes alone; startup: variables and rules (after a build, for mimalloc's headers); lines: line tables.
# Needs clang, zstd and what a build needs. It ends with 1 when an input crashed, which then lies in WORK as crash-…;
# tests/fuzz/corpus.sh adds it to the corpus.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:?usage: tests/fuzz/run.sh SECONDS [WORK [reader|analysis|image|packed|startup|lines]]}
work=${2:-build/fuzz}
subject=${3:-reader}
found=$work/found_$subject
mkdir -p "$found"
tests/fuzz/corpus.sh unpack "tests/fuzz/$subject.tar.zst" "$work/corpus_$subject"
folders="base snapshot/format snapshot/read" libraries=-liberty flags=
# shellcheck disable=SC2086 # lists without blanks
sources=$(find $folders -maxdepth 1 -name '*.c')
case $subject in
analysis | image) # all of analysis but the program, and the page that a build puts together
    sources="$sources $(find analysis -name '*.c' -not -path 'analysis/cli/*' -not -path 'analysis/report/*')"
    libraries="-ldw -lelf -ljson-c -liberty -lz -lm -lpthread"
    flags="-DTA_BASE_CORE=\"$PWD/tests/fuzz/image.core.zst\"" ;;
packed)
    sources="$(find base -maxdepth 1 -name '*.c') $(find analysis/image -name 'target*.c') analysis/image/unpack.c
        analysis/image/lz4_frames.c analysis/image/hold.c analysis/image/given_registers.c analysis/arrays.c
        analysis/analysis_domain.c analysis/failure.c"
    libraries="-lz -liberty" ;;
startup)
    headers=$(find build -maxdepth 3 -path '*mimalloc-*/include' | head -n 1)
    flags="-DTRACEALLOC_TRACING=1 -DTRACEALLOC_OVERRIDE=0 -I$headers -I${headers%include}src" ;;
lines)
    sources="$(find base -maxdepth 1 -name '*.c') trace/unwind/debug_section.c trace/unwind/elf_file.c
        trace/unwind/inflate.c trace/unwind/line_numbers.c"
    libraries="-liberty -lz" ;;
esac
# shellcheck disable=SC2086
clang -std=gnu11 -D_GNU_SOURCE -O2 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I. -Iinclude $flags \
    "tests/fuzz/fuzz_$subject.c" $sources -l:libzstd.a $libraries -o "$work/fuzz_$subject"
# What was freed is kept from being used again for 4 MiB: with the usual 256 each large array is new memory.
ASAN_OPTIONS=quarantine_size_mb=4:malloc_context_size=8 "$work/fuzz_$subject" -max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="$work/" "$found" "$work/corpus_$subject"
