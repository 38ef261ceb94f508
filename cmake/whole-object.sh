#!/bin/sh
# whole-object.sh: links objects (and what they need of archives) into one relocatable object in which only the names
# that the shared library exports stay global.
#
#   whole-object.sh OUTPUT EXPORTED SHARED COMPILER lto|plain OBJCOPY NM INPUT…
set -eu
output=$1 exported=$2 shared=$3 compiler=$4 kind=$5 objcopy=$6 nm=$7
shift 7

# Release objects hold both machine code and the compiler's intermediate form: the latter is compiled as a whole here,
# so that the archive is as fast as the shared library and users need no LTO.
if [ "$kind" = lto ]; then
    "$compiler" -r -nostdlib -O2 -g -fPIC -flto=auto -flinker-output=nolto-rel \
        -Wl,--force-group-allocation -o "$output.tmp" "$@"
else
    "$compiler" -r -nostdlib -Wl,--force-group-allocation -o "$output.tmp" "$@"
fi
"$nm" -D --defined-only "$shared" >"$exported.raw"
awk '{ sub(/@.*/, "", $NF); print $NF }' "$exported.raw" | sort -u >"$exported"
[ -s "$exported" ] || { echo "whole-object: $shared exports nothing" >&2; }
"$objcopy" --keep-global-symbols="$exported" "$output.tmp" "$output"
rm -f "$output.tmp" "$exported.raw"
