#!/usr/bin/env bash
# test_environment: every cell of docs/options.md for the variable TRACEALLOC, from outside a program.
#
# Also that what is set for mimalloc has no effect.
#
#   test_environment.sh LIBRARY PROGRAM    PROGRAM prints "tracing LIMIT" or "stopped"
set -u
library=$1 program=$2 failed=0
expect() { # value, expected output, expected status
    local got status
    got=$(TRACEALLOC=$1 LD_PRELOAD=$library "$program" 2>&1)
    status=$?
    if [ "$got" = "$2" ] && [ $status -eq "$3" ]; then
        printf 'ok TRACEALLOC=%q\n' "$1"
    else
        printf 'not ok TRACEALLOC=%q: status %s, said: %s\n' "$1" $status "$got"
        failed=1
    fi
}
bad='tracealloc: TRACEALLOC: invalid number of frames'
range='tracealloc: the number of frames must be in range [1; 65535]'
expect '' stopped 0
expect 0 stopped 0
expect 1 'tracing 1' 0
expect 65535 'tracing 65535' 0
for value in ' 5' '+5' '05' '  +005'; do expect "$value" 'tracing 5' 0; done
for value in '5 ' $'5\n' 0x5 5.0 1e2 abc -1 + ' ' 2147483648 99999999999999999999; do expect "$value" "$bad" 1; done
for value in 65536 2147483647; do expect "$value" "$range" 1; done
options() { # options, expected line
    local got status
    got=$(TRACEALLOC=1 TRACEALLOC_OPTIONS=$1 LD_PRELOAD=$library "$program" 2>&1)
    status=$?
    if [ "$got" = "$2" ] && [ $status -eq "$3" ]; then
        printf 'ok TRACEALLOC_OPTIONS=%q\n' "$1"
    else
        printf 'not ok TRACEALLOC_OPTIONS=%q: status %s, said: %s\n' "$1" $status "$got"
        failed=1
    fi
}
options '' 'tracing 1' 0
options 'on_corruption=leak,,max_contexts=4096' 'tracing 1' 0
options 'no_such=1' 'tracealloc: TRACEALLOC_OPTIONS: unknown option no_such' 1
options 'on_corruption=maybe' 'tracealloc: TRACEALLOC_OPTIONS: on_corruption=maybe: expected abort or leak' 1
options 'sample=lots' 'tracealloc: TRACEALLOC_OPTIONS: sample=lots: expected a size such as 512KiB' 1
mimalloc() { # a variable that is for a mimalloc of the program's own
    local got status
    got=$(TRACEALLOC=1 env "$1" LD_PRELOAD="$library" "$program" 2>&1)
    status=$?
    if [ "$got" = 'tracing 1' ] && [ $status -eq 0 ]; then
        printf 'ok %s\n' "$1"
    else
        printf 'not ok %s: status %s, said: %s\n' "$1" $status "$got"
        failed=1
    fi
}
for variable in MIMALLOC_DISALLOW_OS_ALLOC=1 MIMALLOC_VERBOSE=1 mimalloc_verbose=1; do mimalloc $variable; done
exit $failed
