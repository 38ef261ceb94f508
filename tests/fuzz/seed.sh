#!/bin/sh
# seed.sh: makes the corpus anew from the golden and the broken recordings.
#
#   tests/fuzz/seed.sh FUZZ_REPLAY      the program of that name in a build folder
set -eu
cd "$(dirname "$0")"
replay=${1:?usage: tests/fuzz/seed.sh FUZZ_REPLAY}
mkdir -p corpus
for file in ../golden/*.ta ../golden/broken/*.ta; do
    name=$(basename "$file" .ta)
    "$replay" --raw "$file" "corpus/raw-$name"
    "$replay" --sections "$file" "corpus/sections-$name"
done
