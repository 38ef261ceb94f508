#!/bin/sh
# corpus.sh: the fuzzers' corpora, each one archive: tests/fuzz/reader.tar.zst, analysis.tar.zst, startup.tar.zst.
#
#   corpus.sh add ARCHIVE FILE…         puts inputs in, for instance a crash-… that run.sh left, under found-CHECKSUM
#   corpus.sh unpack ARCHIVE FOLDER     lays the inputs down as files
#   corpus.sh seed ARCHIVE FUZZ_REPLAY  makes the inputs anew that come from the golden and the broken recordings;
#                                       FUZZ_REPLAY is the program fuzz_reader_replay of a build
#
# An archive depends on its inputs alone: names in order, no times, no owners. Needs tar and zstd.
set -eu
usage() { sed -n '3,6s/^# *//p' "$0" >&2; exit 2; }
[ $# -ge 3 ] || usage
command=$1 archive=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
inputs=$work/inputs
mkdir "$inputs"

unpack() { zstd -dqc "$archive" | tar -xf - -C "$1"; }

# The archive is replaced at once or not at all. zstd is given a file, so that the frame says how long its content is.
pack() {
    (cd "$inputs" && LC_ALL=C ls) >"$work/names"
    tar -cf "$work/corpus.tar" --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 \
        -C "$inputs" --no-recursion -T "$work/names"
    zstd -19 -qf "$work/corpus.tar" -o "$archive.new"
    mv "$archive.new" "$archive"
    echo "$archive: $(wc -l <"$work/names") inputs"
}

case $command in
add)
    unpack "$inputs"
    for file; do
        sum=$(sha1sum <"$file" | cut -c 1-12)
        cp "$file" "$inputs/found-$sum"
    done
    pack
    ;;
unpack)
    mkdir -p "$1"
    unpack "$1"
    ;;
seed)
    unpack "$inputs"
    rm -f "$inputs"/raw-* "$inputs"/sections-*
    for file in "$here"/../golden/*.ta "$here"/../golden/broken/*.ta; do
        name=$(basename "$file" .ta)
        "$1" --raw "$file" "$inputs/raw-$name"
        "$1" --sections "$file" "$inputs/sections-$name"
    done
    pack
    ;;
*) usage ;;
esac
