#!/bin/sh
# analysis_scale.sh: groups the same traces with our library and with Python's tracemalloc, and prints the ratios.
#
#   analysis_scale.sh PROGRAM [TRACES [DEPTH]]     PROGRAM = the built analysis_scale
set -eu
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$program" "${2:-1000000}" "${3:-30}" -o "$folder/scale"
"$program" "$folder/scale.ta" >"$folder/ours"
python3 "$(dirname "$0")/analysis_scale.py" "$folder/scale.pickle" "$folder/ours"
