#!/bin/sh
# test_corpus.sh: a finding that is added is replayed, once; an archive that is damaged or empty is no success.
#
#   test_corpus.sh FUZZ_REPLAY     the program fuzz_reader_replay of a build
set -eu
replay=$1
cd "$(dirname "$0")"
command -v zstd >/dev/null || { echo "no zstd here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "test_corpus: $*" >&2; exit 1; }

cp reader.tar.zst "$work/a.tar.zst"
before=$("$replay" "$work/a.tar.zst" | tail -n 1)
printf '\000a finding of this test' >"$work/crash"
./corpus.sh add "$work/a.tar.zst" "$work/crash" >/dev/null
after=$("$replay" "$work/a.tar.zst" | tail -n 1)
[ "${after% inputs}" -eq $((${before% inputs} + 1)) ] || fail "$before, with a finding $after"

# Added again it changes nothing, and the archive comes out the same, byte for byte.
cp "$work/a.tar.zst" "$work/b.tar.zst"
touch "$work/crash"
./corpus.sh add "$work/b.tar.zst" "$work/crash" >/dev/null
cmp "$work/a.tar.zst" "$work/b.tar.zst" || fail "the archive depends on more than its inputs"

# What was packed is what comes out.
./corpus.sh unpack "$work/a.tar.zst" "$work/out"
cmp "$work/crash" "$work/out/found-$(sha1sum <"$work/crash" | cut -c 1-12)" || fail "the finding came out changed"
"$replay" "$work/crash" >/dev/null || fail "one input is not run by itself"

# Nothing that proves nothing passes.
size=$(wc -c <reader.tar.zst)
head -c $((size / 2)) reader.tar.zst >"$work/cut.tar.zst"
! "$replay" "$work/cut.tar.zst" >/dev/null 2>&1 || fail "an archive that is cut short passes"
mkdir "$work/few"
cp "$work/crash" "$work/few"
tar -cf "$work/few.tar" -C "$work/few" crash
zstd -q "$work/few.tar"
! "$replay" "$work/few.tar.zst" >/dev/null 2>&1 || fail "a corpus of one input passes"
! "$replay" >/dev/null 2>&1 || fail "no corpus at all passes"
