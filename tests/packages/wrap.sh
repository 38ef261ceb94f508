#!/bin/bash
# wrap.sh: tracealloc as a subproject of a project that Meson builds (packaging/meson), from an archive of the sources.
#
#   tests/packages/wrap.sh BUILD-FOLDER      where mimalloc was unpacked (build/deps)
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
command -v meson >/dev/null || { echo "no meson here"; exit 77; }
deps=$(cd "$1/.." && pwd)/deps
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$here"
{ git ls-files -co --exclude-standard 2>/dev/null || find . -path ./build -prune -o -type f -print; } |
    while read -r file; do [ ! -f "$file" ] || echo "$file"; done |
    tar -czf "$work/tracealloc-0.1.0.tar.gz" --transform 's,^,tracealloc-0.1.0/,' -T -
mkdir -p "$work/project/subprojects"
cp tests/packages/project/*.c* "$work/project"
cp -r packaging/meson/packagefiles "$work/project/subprojects"
sed "s,^source_url.*,source_url = file://$work/tracealloc-0.1.0.tar.gz,
    s,^source_hash.*,source_hash = $(sha256sum "$work/tracealloc-0.1.0.tar.gz" | cut -d' ' -f1)," \
    packaging/meson/tracealloc.wrap >"$work/project/subprojects/tracealloc.wrap"
cat >"$work/project/meson.build" <<'M'
project('user', 'c', 'cpp', default_options: ['cpp_std=c++17'])
executable('app', 'app.cpp', dependencies: [dependency('tracealloc-static'), dependency('tracealloc-analysis')])
executable('reader', 'reader.c', dependencies: dependency('tracealloc-analysis'))
M
unset PKG_CONFIG_PATH
meson setup "$work/build" "$work/project" "-Dtracealloc:cmake_arguments=-DTRACEALLOC_DEPS_DIR=$deps" >"$work/log" 2>&1 &&
    meson compile -C "$work/build" >>"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
said=$("$work/build/app")
[ "$said" = 'ours, 4000 bytes, words' ] || { echo "FAILED: '$said'"; exit 1; }
said=$("$work/build/reader" none || :)
[ "$said" = 'cannot read none: No such file or directory' ] || { echo "FAILED: '$said'"; exit 1; }
echo "a project of Meson with tracealloc inside: built and run"
