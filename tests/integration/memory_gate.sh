#!/bin/bash
# memory_gate.sh: a project outside of the tree, with what is installed: its memory tests fail when a leak is planted,
# when the peak is too high and when a baseline is left behind, and pass when they are not. So do its unit tests.
#
#   memory_gate.sh BUILD-FOLDER
set -uo pipefail
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
unset TRACEALLOC TRACEALLOC_OPTIONS TRACEALLOC_LIBRARY LD_PRELOAD

cmake --install "$build" --prefix "$work/tree" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
tool=$work/tree/bin/tracealloc
mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.23)
project(sample C CXX)
enable_testing()
find_package(tracealloc REQUIRED)
add_executable(parser parser.c)
target_compile_options(parser PRIVATE -g -O1 -fno-builtin)
target_compile_definitions(parser PRIVATE $<$<BOOL:${LEAK}>:LEAK> $<$<BOOL:${KEPT}>:KEPT>)
tracealloc_add_memory_test(NAME parser_memory COMMAND parser 1000 MAX_PEAK 64KiB MAX_ALLOCATIONS 4000 NO_LEAKS
    SUPPRESSIONS suppressions.txt)
tracealloc_add_memory_test(NAME parser_baseline COMMAND parser 1000 BASELINE memory.baseline MAX_GROWTH 5%,1KiB)
tracealloc_add_memory_test(NAME parser_peak COMMAND parser 1000 large MAX_PEAK 64KiB)
add_executable(unit unit.c)
target_link_libraries(unit PRIVATE tracealloc::tracealloc)
target_compile_options(unit PRIVATE -fno-builtin -Wall -Wextra -Wshadow -Werror)
add_executable(unit_cpp unit.cpp)
target_link_libraries(unit_cpp PRIVATE tracealloc::tracealloc)
target_compile_options(unit_cpp PRIVATE -Wall -Wextra -Wshadow -Werror)
foreach(test IN ITEMS unit unit_cpp)
    add_test(NAME ${test} COMMAND ${test})
    add_test(NAME ${test}_leaks COMMAND ${test} leak)
endforeach()
CMAKE
cat >"$work/project/parser.c" <<'C'
#include <stdlib.h>
#include <string.h>
static char *volatile forgotten, *volatile table;
__attribute__((noinline)) static char *parse_word(int number)
{
    char *word = malloc(32);
    memset(word, number, 32);
    return word;
}
__attribute__((noinline)) static void build_table(size_t size) { table = calloc(1, size); }
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    build_table(argc > 2 ? 100000 : 2000);
    for (int i = 0; i < rounds; i++) {
        char *word = parse_word(i);
#ifdef LEAK
        if (i % 2 == 0)
            forgotten = word;
        else
#endif
            free(word);
    }
    (void)argv;
    return forgotten != NULL && *forgotten == 1;
}
C
cat >"$work/project/unit.c" <<'C'
#include <assert.h>
#include <stdlib.h>
#include <tracealloc/expect.h>
static void *volatile kept;
int main(int argc, char **argv)
{
    (void)argv;
    struct ta_scope scope = ta_scope_begin();
    void *volatile first = malloc(100), *volatile second = malloc(50);
    free(first);
    struct ta_scope_counts counts = ta_scope_count(&scope);
    assert(counts.allocations == 2 && counts.allocated_bytes == 150 && counts.frees == 1);
    assert(counts.live_blocks == 1 && counts.live_bytes == 50);
    free(second);
    TA_EXPECT_NO_GROWTH({
        kept = malloc(10);
        if (argc == 1)
            free(kept);
    });
    TA_EXPECT_ALLOCATIONS(1, { free(malloc(1)); });
    return 0;
}
C
cat >"$work/project/unit.cpp" <<'C'
#include <cstdio>
#include <string>
#include <vector>
static int failed;
#define TA_EXPECT_FAIL(text) (failed = 1, std::puts(text))
#include <tracealloc/expect.h>
static std::vector<std::string> *kept;
int main(int argc, char **)
{
    TA_EXPECT_NO_GROWTH({ std::vector<std::string> words(10, std::string(100, 'x')); });
    TA_EXPECT_NO_GROWTH({ if (argc > 1) kept = new std::vector<std::string>(3); });
    TA_EXPECT_ALLOCATIONS(1, { std::vector<int> numbers(100); });
    return failed;
}
C
printf '# known\nleak:build_table\n' >"$work/project/suppressions.txt"

# The tests named after the configuration must fail, all others pass.
outcome() { # expected-failures cmake-argument…
    local expected=$1 seen
    shift
    cmake -S "$work/project" -B "$work/build" "-DCMAKE_PREFIX_PATH=$work/tree" -DLEAK=OFF "$@" >"$work/log" 2>&1 &&
        cmake --build "$work/build" >>"$work/log" 2>&1 || { cat "$work/log"; fail "does not build"; return; }
    (cd "$work/build" && ctest --output-on-failure) >"$work/ctest" 2>&1
    seen=$(sed -n 's/^.*- \([a-z_]*\) (.*$/\1/p' "$work/ctest" | sort | tr '\n' ' ')
    [ "$seen" = "$expected " ] || { cat "$work/ctest"; fail "failed were '$seen', expected '$expected' ($*)"; }
}
touch "$work/project/memory.baseline"
cmake -S "$work/project" -B "$work/build" "-DCMAKE_PREFIX_PATH=$work/tree" >/dev/null && cmake --build "$work/build" --target parser >/dev/null
"$tool" run --output="$work/first.ta" -- "$work/build/parser" 1000 2>/dev/null || fail "the parser does not run"
(cd "$work/project" && "$tool" gate "$work/first.ta" -o memory.baseline) || fail "no baseline"
grep -q '^2000 1 [0-9]* 1 parser.c build_table$' "$work/project/memory.baseline" || { cat "$work/project/memory.baseline"; fail "the baseline does not name build_table"; }

outcome "parser_peak unit_cpp_leaks unit_leaks"
outcome "parser_baseline parser_memory parser_peak unit_cpp_leaks unit_leaks" -DLEAK=ON
grep -q 'parser.c parse_word: lives at the end: 15.6 KiB' "$work/ctest" || { cat "$work/ctest"; fail "the leak is not named"; }
grep -q 'parser.c parse_word grew from 0 B to 15.6 KiB' "$work/ctest" || fail "the growth is not named"
outcome "parser_peak unit_cpp_leaks unit_leaks" -DLEAK=OFF

# A growth of four in a hundred, by share and by amount.
for size in 1000000 1040000; do
    printf '{"traceback_limit": 5, "traces": [{"size": %s, "frames": [["a.c", 1]]}]}' $size >"$work/$size.json"
    "$tool" import "$work/$size.json" -o "$work/$size.ta" || fail "import"
done
for allowed in 5%:0 4%:0 3%:1 3%,1KiB:1 3%,40KiB:0 38KiB:1 40KiB:0; do
    "$tool" gate "$work/1040000.ta" --max-growth "${allowed%:*}" "$work/1000000.ta" >"$work/out" 2>&1
    got=$?
    [ $got -eq "${allowed#*:}" ] || fail "--max-growth ${allowed%:*}: status $got: $(cat "$work/out")"
done

# What cannot be told is trouble, not a verdict.
status() { "$@" >"$work/out" 2>"$work/err"; local got=$?; shift; [ $got -eq "$want" ] || fail "status $got, expected $want: $*: $(cat "$work/err")"; }
want=2
status "$tool" gate "$work/first.ta"
status "$tool" gate "$work/nothing.ta" --no-leaks
status "$tool" gate "$work/first.ta" --max-growth 5x "$work/first.ta"
status "$tool" gate "$work/first.ta" --by line "$work/first.ta"
printf '# tracealloc baseline 1\n1 2 three 4 a.c f\n' >"$work/bad"
status "$tool" gate "$work/first.ta" --baseline "$work/bad"
grep -q 'bad:2: expected' "$work/err" || fail "the line of a bad baseline is not named"
want=0
status "$tool" gate "$work/first.ta" "$work/first.ta"
want=1
status "$tool" gate "$work/first.ta" --no-leaks --format junit
python3 -c 'import sys, xml.dom.minidom as m; d = m.parse(sys.argv[1]); sys.exit(d.documentElement.firstChild is None or len(d.getElementsByTagName("failure")) != 1)' "$work/out" || fail "JUnit"
status "$tool" gate "$work/first.ta" --no-leaks --format github
grep -q '^::error file=parser.c,line=[0-9]*,title=tracealloc::' "$work/out" || { cat "$work/out"; fail "no annotation"; }
status "$tool" gate "$work/first.ta" --no-leaks --json
python3 -m json.tool "$work/out" >/dev/null || fail "JSON"
status "$tool" gate "$work/first.ta" --max-live=1 --json
grep -q '"site": "(all)", "file": "", "line": 0,' "$work/out" || { cat "$work/out"; fail "the sum of all sites is in a file"; }

# The end of a run says no, too; what the program said itself comes first.
want=1
printf 'leak:build_table\n' >"$work/known"
status "$tool" run --fail-on-leak --output="$work/a.ta" -- "$work/build/parser" 100
grep -q '^tracealloc: leak: parser.c build_table: lives at the end: 2000 B (allowed: 0 B) at parser.c:[0-9]*$' "$work/err" ||
    { cat "$work/err"; fail "run does not name the leak"; }
want=0
status "$tool" run --fail-on-leak --suppressions "$work/known" --output="$work/a.ta" -- "$work/build/parser" 100
grep -q 'leak' "$work/err" && fail "a leak that is known was told"
status "$tool" run -q --fail-on-leak=2000 --output="$work/a.ta" -- "$work/build/parser" 100
[ -s "$work/err" ] && { cat "$work/err"; fail "-q says something"; }
want=3
status "$tool" run --fail-on-leak --output="$work/a.ta" -- sh -c 'exit 3'
want=125
status "$tool" run --fail-on-leak=many --output="$work/a.ta" -- true
status "$tool" run --fail-on-leak --suppressions "$work/none" --output="$work/a.ta" -- true
status "$tool" run --fail-on-leak --nframe=0 --output="$work/a.ta" -- true

# In the frameworks themselves an expectation that does not hold is a failure of theirs, and the next test runs.
framework() { # name library header text
    local name=$1 library=$2
    [ -e "$3" ] || { echo "no $name here"; return; }
    printf '%s\n' "$4" >"$work/$name.cpp"
    g++ -std=c++17 -O0 -Wall -Wextra -Werror -I"$work/tree/include" "$work/$name.cpp" -o "$work/$name" \
        $library -L"$work/tree/lib" -ltracealloc -Wl,-rpath,"$work/tree/lib" -lpthread 2>"$work/err" ||
        { cat "$work/err"; fail "$name does not build"; return; }
    "$work/$name" >"$work/out" 2>&1 && fail "$name does not see the growth"
    grep -q 'memory grew by 40 bytes in 1 blocks' "$work/out" || { cat "$work/out"; fail "$name does not say what grew"; }
    grep -Eq '1 FAILED TEST|1 failed' "$work/out" || { cat "$work/out"; fail "$name: not one failure"; }
}
framework gtest "-lgtest -lgtest_main" /usr/include/gtest/gtest.h '
#include <gtest/gtest.h>
#include <tracealloc/expect.h>
static void *volatile kept;
TEST(Memory, Sound) { TA_EXPECT_NO_GROWTH({ std::vector<int> numbers(10); }); }
TEST(Memory, Grows) { TA_EXPECT_NO_GROWTH({ kept = malloc(40); }); }
TEST(Memory, Counts) { TA_EXPECT_ALLOCATIONS(1, { std::vector<int> numbers(10); }); }'
framework catch2 "" /usr/include/catch2/catch.hpp '
#define CATCH_CONFIG_MAIN
#define CATCH_CONFIG_FAST_COMPILE
#include <catch2/catch.hpp>
#include <vector>
#include <tracealloc/expect.h>
static void *volatile kept;
TEST_CASE("sound") { TA_EXPECT_NO_GROWTH({ std::vector<int> numbers(10); }); SUCCEED(); }
TEST_CASE("grows") { TA_EXPECT_NO_GROWTH({ kept = malloc(40); }); }
TEST_CASE("counts") { TA_EXPECT_ALLOCATIONS(1, { std::vector<int> numbers(10); }); SUCCEED(); }'
[ $failures -eq 0 ]
