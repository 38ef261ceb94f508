#!/bin/bash
# check_project.sh: a project of a user, built by CMake, pkg-config and Meson with what is installed, or with what lies
# below PREFIX.
#
#   check_project.sh PROJECT-FOLDER [PREFIX]
set -euo pipefail
project=$(cd "$1" && pwd)
prefix=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CMAKE_PREFIX_PATH=$prefix
if [ -n "$prefix" ]; then
    lib=$(dirname "$(find "$prefix" -name 'libtracealloc.so')")
    export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib PATH=$prefix/bin:$PATH
fi
says() { # expected command…
    local expected=$1 said
    shift
    said=$("$@" 2>&1) || :
    [ "$said" = "$expected" ] || { echo "FAILED: $*: '$said' instead of '$expected'"; exit 1; }
}
expected='ours, 4000 bytes, words'

cmake -G Ninja -S "$project" -B "$work/cmake" >"$work/log" 2>&1 && cmake --build "$work/cmake" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
says "$expected" "$work/cmake/app_shared"
says "$expected" "$work/cmake/app_static"
says plain "$work/cmake/plain_shared"
readelf -d "$work/cmake/plain_shared" | grep 'NEEDED.*libtracealloc' >/dev/null || { echo "FAILED: the linker dropped the library"; exit 1; }
nm "$work/cmake/plain_static" | grep ' T malloc$' >/dev/null || { echo "FAILED: the archive's malloc was not taken"; exit 1; }
ctest --test-dir "$work/cmake" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
for reader in reader reader_static; do
    "$work/cmake/$reader" "$work/cmake/app_memory.ta" | grep 'live in' >/dev/null || { echo "FAILED: $reader"; exit 1; }
done

# shellcheck disable=SC2046 # flags are words
c++ -std=c++17 "$project/app.cpp" -o "$work/app" $(pkg-config --cflags --libs tracealloc)
says "$expected" "$work/app"
# shellcheck disable=SC2046
c++ -std=c++17 "$project/app.cpp" -o "$work/app" $(pkg-config --cflags --libs tracealloc-static)
says "$expected" "$work/app"

if command -v meson >/dev/null; then
    meson setup "$work/meson" "$project" >"$work/log" 2>&1 && meson compile -C "$work/meson" >>"$work/log" 2>&1 ||
        { cat "$work/log"; exit 1; }
    says "$expected" "$work/meson/app"
    "$work/meson/reader" "$work/cmake/app_memory.ta" | grep 'live in' >/dev/null || { echo "FAILED: meson's reader"; exit 1; }
fi
echo "CMake, pkg-config$(command -v meson >/dev/null && echo ', Meson'): every program is as it should be"
