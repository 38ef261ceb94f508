#!/bin/bash
# headers.sh: every public header stands alone in C11 and C++17, strictly; TRACEALLOC_WEAK makes calls that may be
# missing; the version is one number.
#
#   tests/integration/api/headers.sh LIBRARY-FOLDER
set -uo pipefail
cd "$(dirname "$0")/../../.."
libraries=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
strict='-Wall -Wextra -Wshadow -Wconversion -Wundef -Werror -pedantic-errors -fsyntax-only -Iinclude'

count=0
for header in include/tracealloc.h include/tracealloc/*.h include/tracealloc/*.hpp; do
    name=${header#include/} before=''
    [ "$name" != tracealloc/tag.h ] || before='#define TRACEALLOC_DOMAIN 3'
    for weak in '' '#define TRACEALLOC_WEAK'; do
        printf '%s\n' "$weak" "$before" "#include <$name>" "#include <$name>" 'typedef int nothing;' >"$work/alone.c"
        cp "$work/alone.c" "$work/alone.cpp"
        # shellcheck disable=SC2086 # flags are words
        case $name in
        *.hpp) ;;
        *) cc -std=c11 $strict -Wstrict-prototypes "$work/alone.c" || fail "$name in C" ;;
        esac
        # shellcheck disable=SC2086
        case $name in
        */tag.h) ;;
        *) c++ -std=c++17 $strict "$work/alone.cpp" || fail "$name in C++" ;;
        esac
        count=$((count + 1))
    done
done

says() { # expected command…
    local expected=$1 said
    shift
    said=$("$@" 2>&1)
    [ "$said" = "$expected" ] || fail "$*: '$said' instead of '$expected'"
}
version=$(sed -n 's/^#define TRACEALLOC_VERSION  *"\(.*\)"/\1/p' include/tracealloc/api.h)
for compiler in cc 'c++ -x c++'; do
    # shellcheck disable=SC2086
    $compiler -Wall -Wextra -Werror -fno-builtin -Iinclude tests/integration/api/weak.c -o "$work/weak" || fail "weak.c: $compiler"
    says 'no library, not tracing, no analysis' "$work/weak"
    says "$version, not tracing, no analysis" env LD_PRELOAD="$libraries/libtracealloc.so" "$work/weak"
    says "$version, tracing, analysis" env TRACEALLOC=10 \
        LD_PRELOAD="$libraries/libtracealloc.so $libraries/libtracealloc-analysis.so" "$work/weak"
done

printf '%s\n' '#include <tracealloc.h>' "#if TA_VERSION != $(echo "$version" | awk -F. '{print $1 * 10000 + $2 * 100 + $3}')" \
    '#error "TA_VERSION is another"' '#endif' >"$work/version.c"
cc -fsyntax-only -Iinclude "$work/version.c" || fail "TA_VERSION"

echo "$count headers alone, $failures failed"
[ $failures -eq 0 ]
