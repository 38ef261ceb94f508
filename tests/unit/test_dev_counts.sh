#!/bin/bash
# test_dev_counts.sh: the last line of ./dev check-long counts the tests that ctest ran, whatever they print: a test that
# runs another suite has a summary like ctest's own in its output.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$source/dev" .
mkdir cmake
: >cmake/packages.txt # nothing is to be installed
cat >CMakePresets.json <<'JSON'
{"version": 6,
 "configurePresets": [{"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build/release"}],
 "buildPresets": [{"name": "release", "configurePreset": "release"}],
 "testPresets": [{"name": "long", "configurePreset": "release", "output": {"outputOnFailure": true}}]}
JSON
cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(counts LANGUAGES NONE)
enable_testing()
add_test(NAME passes COMMAND true)
add_test(NAME passes_too COMMAND true)
add_test(NAME suite_inside COMMAND sh -c
    "echo '7/88 Test  #7: of_the_suite_inside ...***Skipped   0.01 sec';
     echo '98% tests passed, 1 tests failed out of 89'; echo '<skipped'; exit 1")
add_test(NAME cannot_run COMMAND sh -c "exit 77")
set_tests_properties(cannot_run PROPERTIES SKIP_RETURN_CODE 77)
CMAKE

expect() { # what expected found
    [ "$2" = "$3" ] || { echo "$1: expected '$2', found '$3'"; cat log; exit 1; }
}
TRACEALLOC_CMAKE_ARGS='' ./dev check-long >log 2>&1 && { echo "a failing test passed"; exit 1; }
expect "last line" "2 passed, 1 failed" "$(tail -n 1 log)"
expect "skipped" "skipped here: long:cannot_run" "$(grep '^skipped' log)"
sed -i '/suite_inside/,/exit 1/d' CMakeLists.txt
TRACEALLOC_CMAKE_ARGS='' ./dev check-long >log 2>&1 || { echo "a sound suite failed"; cat log; exit 1; }
expect "last line" "2 passed, 0 failed" "$(tail -n 1 log)"
