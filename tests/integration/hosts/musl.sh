#!/bin/bash
# musl.sh: the runtime built for musl by Debian's musl-gcc: in programs that are static, static-pie or dynamic, and
# preloaded. What they record names their functions and lines. Skipped (77) where there is no musl-gcc.
#
#   tests/integration/hosts/musl.sh PROGRAM CMAKE-ARGUMENT…     PROGRAM: the program tracealloc; - : only whether the
#                                                               shared library builds and links
set -euo pipefail
cd "$(dirname "$0")/../../.."
tracealloc=$1
shift
command -v musl-gcc >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
targets=(tracealloc_static tracealloc_shared) quick=()
[ "$tracealloc" != - ] || { targets=(tracealloc_shared); quick=(-DTRACEALLOC_LTO=OFF); }

# The kernel's headers, and those of the archives that become part of ours; not glibc's beside them.
mkdir "$work/include"
ln -s /usr/include/linux /usr/include/asm-generic /usr/include/libiberty /usr/include/zstd*.h "$work/include/"
ln -s "/usr/include/$(cc -print-multiarch)/asm" "$work/include/"

# The headers as musl has them since 1.2.4: without names such as off64_t, and basename in libgen.h alone.
specs=$(sed -n 's/.*-specs "\([^"]*\)".*/\1/p' "$(command -v musl-gcc)")
headers=$(sed -n 's/.*-nostdinc -isystem \([^ ]*\).*/\1/p' "$specs" | head -1)
compiler=musl-gcc
if [ -f "$headers/unistd.h" ]; then
    cp -r "$headers" "$work/headers"
    find "$work/headers" -type f -exec sed -i -e 's/defined(_LARGEFILE64_SOURCE) || defined(_GNU_SOURCE)/defined(_LARGEFILE64_SOURCE)/' \
        -e '/^char \*basename();/d' {} +
    sed "s|$headers|$work/headers|g" "$specs" >"$work/specs"
    printf '#!/bin/sh\nexec "${REALGCC:-gcc}" "$@" -specs "%s"\n' "$work/specs" >"$work/musl-gcc"
    chmod +x "$work/musl-gcc"
    compiler=$work/musl-gcc
fi
if ! { cmake -S . -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_COMPILER=$compiler" \
    "-DCMAKE_C_FLAGS=-isystem $work/include" "-DTA_zstd_INCLUDE=$work/include" "-DTA_iberty_INCLUDE=$work/include" \
    -DTRACEALLOC_TESTS=OFF "${quick[@]}" "$@" && cmake --build "$work/build" --target "${targets[@]}"; } \
    >"$work/log" 2>&1; then
    grep -E 'rror|undefined reference' "$work/log" | cut -c 1-400 | head -20
    exit 1
fi
[ "$tracealloc" != - ] || { echo 'builds and links'; exit 0; }
archive=$work/build/lib/libtracealloc.a bad=0

expect() { # name command…
    local name=$1
    shift
    rm -f "$work/now.ta"
    if TRACEALLOC=20 TRACEALLOC_OPTIONS=output=$work/now.ta "$@" >"$work/log" 2>&1 && grep -qx done "$work/log" &&
        "$tracealloc" top "$work/now.ta" >"$work/log" 2>&1 && grep -q '10045 B .* 10 .*plain\.c:[0-9]* *grow' "$work/log"; then
        echo "ok $name"
    else
        echo "FAILED $name"
        head -20 "$work/log"
        bad=$((bad + 1))
    fi
}

musl-gcc -g -O1 tests/integration/hosts/plain.c -o "$work/plain"
expect preloaded env LD_PRELOAD="$work/build/lib/libtracealloc.so" "$work/plain"
for way in -static -static-pie -pie; do
    musl-gcc -g -O1 $way tests/integration/hosts/plain.c -o "$work/plain" -Wl,--undefined=malloc,--eh-frame-hdr "$archive"
    expect "in the program, $way" "$work/plain"
done
[ $bad -eq 0 ]
