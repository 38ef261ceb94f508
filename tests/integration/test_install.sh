#!/bin/bash
# test_install.sh: what is installed can be used: found by CMake and by pkg-config after being moved elsewhere,
# exporting the public names and no others, needing nothing but libc, hardened.
#
#   test_install.sh BUILD-FOLDER override|plain      plain: a build in which malloc is not replaced
set -uo pipefail
build=$1 kind=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

cmake --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
mv "$work/first" "$work/tree"
lib=$(dirname "$(find "$work/tree" -name libtracealloc.so)")
[ -e "$lib/libtracealloc.so" ] || { echo "no libtracealloc.so was installed"; exit 1; }

# Names: ta_… and, where malloc is replaced, the C and C++ allocation functions, and the ends that run no destructor.
allowed='ta_[a-z0-9][a-z0-9_]*'
if [ "$kind" = override ]; then
    allowed="$allowed|malloc|calloc|realloc|reallocarray|free|cfree|free_sized|free_aligned_sized|posix_memalign"
    allowed="$allowed|aligned_alloc|memalign|valloc|pvalloc|malloc_usable_size|mallopt|mallinfo2?|malloc_trim"
    allowed="$allowed|__libc_(malloc|free|[cv]alloc|realloc|memalign|pvalloc)"
    allowed="$allowed|malloc_stats|malloc_info|malloc_info_free|_Z(nw|na|dl|da).*|_exit|_Exit"
    allowed="$allowed|sigaction|signal|__sysv_signal|execl|execle|execlp|execv|execve|execveat|execvp|execvpe|fexecve|mmap|mmap64|munmap|mremap|mlockall|prlimit|prlimit64|setrlimit|setrlimit64|wait4|waitpid"
fi
exported() { nm -g "$@" --defined-only | awk '$2 ~ /^[TDBRVWiGSu]$/ { sub(/@.*/, "", $3); print $3 }' | sort -u; }
exported -D "$lib/libtracealloc.so" >"$work/shared"
exported "$lib/libtracealloc.a" >"$work/static"
[ -s "$work/shared" ] || fail "libtracealloc.so exports nothing"
for file in shared static; do
    stray=$(grep -vxE "$allowed" "$work/$file" | grep -vE '^ta__' || :)
    inner=$(grep -E '^ta__' "$work/$file" || :)
    [ -z "$stray$inner" ] || fail "names that should have stayed inside ($file): $stray $inner"
done
cmp -s "$work/shared" "$work/static" ||
    fail "the archive and the shared library differ: $(diff "$work/shared" "$work/static")"

# gdb finds its commands by the library's path.
script=$(find "$work/tree/share/gdb/auto-load" -name "$(basename "$(readlink -f "$lib/libtracealloc.so")")-gdb.py" 2>/dev/null)
[ -n "$script" ] || fail "no script for gdb, by the name of the library"

# What `tracealloc cost` compares with, and what the README uses.
if [ -e "$work/tree/bin/tracealloc" ]; then
    if [ "$kind" = override ]; then
        said=$("$work/tree/bin/tracealloc" cost -r 1 --modes own,untraced -- true 2>&1) && ! echo "$said" | grep -q 'is not there' ||
            fail "cost does not find the library without tracing: $said"
    fi
    [ -e "$work/tree/share/doc/tracealloc/examples/server.c" ] || fail "no example was installed"
fi

# What it needs, and how it is loaded.
needed=$(readelf -d "$lib/libtracealloc.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -vxE 'libc\.so\.6|ld-linux-(x86-64|aarch64)\.so\.[12]' || :)
[ -z "$needed" ] || fail "libtracealloc.so needs more than libc: $needed"
readelf -d "$lib/libtracealloc.so" | grep 'FLAGS_1.*NODELETE' >/dev/null || fail "libtracealloc.so could be unloaded"
for file in "$lib"/libtracealloc*.so "$work"/tree/bin/*; do
    [ -e "$file" ] || continue
    readelf -d "$file" | grep -E 'BIND_NOW|FLAGS_1.*NOW' >/dev/null || fail "$file binds late"
    readelf -lW "$file" | grep GNU_RELRO >/dev/null || fail "$file is not RELRO"
    readelf -lW "$file" | grep 'GNU_STACK.*RW ' >/dev/null || fail "$file wants an executable stack"
done

# A user's program, built in every way that is offered.
mkdir "$work/user"
cat >"$work/user/main.c" <<'C'
#include <stdio.h>
#include <string.h>
#include <tracealloc.h>
int main(void)
{
    char *text = strdup(TRACEALLOC_VERSION);
    void *block = ta_malloc(100);
    int good = text != NULL && block != NULL && strcmp(text, ta_version()) == 0;
    ta_free(block);
    puts(good ? "works" : "differs");
    return !good;
}
C
cat >"$work/user/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(tracealloc 0.1 REQUIRED)
add_executable(shared main.c)
target_link_libraries(shared PRIVATE tracealloc::tracealloc)
add_executable(static main.c)
target_link_libraries(static PRIVATE tracealloc::static)
CMAKE
works() { # title program
    said=$(LD_LIBRARY_PATH=$lib "$2" 2>&1)
    [ "$said" = works ] || fail "$1: $said"
    case $kind:$1 in
    override:*static) nm "$2" | grep ' T malloc$' >/dev/null || fail "$1: malloc is not ours" ;;
    esac
}
if cmake -G Ninja -S "$work/user" -B "$work/user/b" -DCMAKE_PREFIX_PATH="$work/tree" >"$work/log" 2>&1 &&
    cmake --build "$work/user/b" >>"$work/log" 2>&1; then
    works 'find_package, shared' "$work/user/b/shared"
    works 'find_package, static' "$work/user/b/static"
else
    cat "$work/log"
    fail "a user's CMake project does not build"
fi
export PKG_CONFIG_PATH=$lib/pkgconfig
for package in tracealloc tracealloc-static; do
    # shellcheck disable=SC2046 # flags are words
    if cc "$work/user/main.c" -o "$work/$package" $(pkg-config --cflags --libs $package) 2>"$work/log"; then
        works "pkg-config $package" "$work/$package"
    else
        cat "$work/log"
        fail "pkg-config $package does not build"
    fi
done

# The analysis library, where it was built: what the headers promise of it is exported and nothing else, and the example
# of docs/api-analysis.md builds in every way and reads a recording that a traced program left.
if [ -e "$lib/libtracealloc-analysis.so" ]; then
    cat "$work"/tree/include/tracealloc/{analysis,export,image,rules,snapshot}.h | tr '\n' ' ' | grep -oE 'TA_API [^;]*' |
        grep -oE '\bta_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$work/declared"
    exported -D "$lib/libtracealloc-analysis.so" >"$work/exported"
    echo ta_error_text >>"$work/declared" # of tracealloc.h
    [ "$(wc -l <"$work/exported")" -gt 50 ] || fail "libtracealloc-analysis.so exports next to nothing"
    lacking=$(sort -u "$work/declared" | comm -23 - "$work/exported" |
        grep -vxE 'ta_take_snapshot|ta_record_(open|append|close|set_limit)' || :)
    stray=$(sort -u "$work/declared" | comm -13 - "$work/exported")
    [ -z "$lacking" ] || fail "declared for analysis, but not exported: $lacking"
    [ -z "$stray" ] || fail "exported by libtracealloc-analysis.so, but not declared: $stray"

    mkdir "$work/reader"
    awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' docs/api-analysis.md >"$work/reader/main.c"
    cat >"$work/reader/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(reader LANGUAGES C CXX)
find_package(tracealloc 0.1 REQUIRED)
foreach(kind IN ITEMS analysis analysis_static)
    add_executable(${kind} main.c)
    target_link_libraries(${kind} PRIVATE tracealloc::${kind})
endforeach()
CMAKE
    cat >"$work/reader/app.c" <<'C'
#include <stdlib.h>
void *volatile kept;
int main(void)
{
    kept = malloc(54321); /* line 5 */
    return 0;
}
C
    cc -g -O0 "$work/reader/app.c" -o "$work/reader/app" &&
        TRACEALLOC_OPTIONS="output=$work/reader/app.ta" TRACEALLOC=10 LD_PRELOAD="$lib/libtracealloc.so" "$work/reader/app"
    reads() { # title program
        said=$(cd "$work/reader" && LD_LIBRARY_PATH=$lib "$2" 2>&1)
        case $kind:$said in
        override:*"/app.c:5: size=53.0 KiB, count=1, average=53.0 KiB"*) ;;
        plain:?*) ;; # there malloc is not traced: it is enough that the reader answers
        *) fail "$1: $said" ;;
        esac
    }
    if cmake -G Ninja -S "$work/reader" -B "$work/reader/b" -DCMAKE_PREFIX_PATH="$work/tree" >"$work/log" 2>&1 &&
        cmake --build "$work/reader/b" >>"$work/log" 2>&1; then
        reads 'find_package, analysis' "$work/reader/b/analysis"
        reads 'find_package, analysis_static' "$work/reader/b/analysis_static"
    else
        cat "$work/log"
        fail "a user's CMake project with analysis does not build"
    fi
    # The example of docs/exports.md: a program that exports what it holds itself.
    awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' docs/exports.md >"$work/reader/exports.c"
    # shellcheck disable=SC2046 # flags are words
    if cc -Wall -Wextra -Werror "$work/reader/exports.c" -o "$work/reader/exports" \
        $(pkg-config --cflags --libs tracealloc tracealloc-analysis) 2>"$work/log"; then
        said=$(cd "$work/reader" && LD_LIBRARY_PATH=$lib ./exports)
        [ "$said" = "what the picture shows in now.svg, and a profile of good size" ] || fail "docs/exports.md: $said"
        [ "$kind" = plain ] || grep strdup "$work/reader/now.svg" >/dev/null || fail "docs/exports.md: no strdup in the picture"
    else
        cat "$work/log"
        fail "the example of docs/exports.md does not build"
    fi
    mkdir "$work/archive" && cp "$lib/libtracealloc-analysis.a" "$work/archive"
    for way in shared static; do
        flags=$(pkg-config --cflags --libs tracealloc-analysis)
        [ $way = shared ] || flags="-L$work/archive $(pkg-config --static --cflags --libs tracealloc-analysis)"
        # shellcheck disable=SC2086 # flags are words
        if cc -Wall -Wextra -Werror "$work/reader/main.c" -o "$work/reader/$way" $flags 2>"$work/log"; then
            reads "pkg-config tracealloc-analysis, $way" "$work/reader/$way"
        else
            cat "$work/log"
            fail "pkg-config tracealloc-analysis does not build: $way"
        fi
        readelf -d "$work/reader/$way" | grep 'NEEDED.*libtracealloc-analysis' >/dev/null
        [ $? -eq $([ $way = shared ] && echo 0 || echo 1) ] || fail "$way took the other library"
    done
fi

[ "$failures" -eq 0 ] && echo "$(wc -l <"$work/shared") public names; every way to link works"
exit $((failures > 0))
