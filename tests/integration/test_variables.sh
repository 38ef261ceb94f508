#!/bin/sh
# test_variables.sh: TRACEALLOC and TRACEALLOC_OPTIONS in whole programs, value by value, also where they must be ignored
# (set-uid programs) or passed on (exec), and as seen by constructors;
# what is wrong ends the process with status 1 and one line before any code of the program runs.
#
#   tests/integration/test_variables.sh LIBRARY ARCHIVE
set -eu
library=$1 archive=$2
work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

cat >"$work/says.c" <<'CODE'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern int ta_is_tracing(void) __attribute__((weak));
extern int ta_get_traceback_limit(void) __attribute__((weak));
extern size_t ta_get_object_traceback(const void *, void **, size_t, size_t *) __attribute__((weak));
static char *early;
__attribute__((constructor)) static void before_main(void)
{
    early = malloc(10);
    if (early == NULL || write(2, "", 0) != 0)
        abort();
    if (getenv("SAY_EARLY"))
        puts("a constructor ran");
}
int main(int count, char **words)
{
    if (count > 1) { /* once more in a program of its own */
        execv(words[1], (char *[]){words[1], NULL});
        return 3;
    }
    printf("%s limit %d constructor %s\n", ta_is_tracing() ? "tracing" : "stopped", ta_get_traceback_limit(),
           ta_get_object_traceback(early, NULL, 0, NULL) != 0 ? "traced" : "untraced");
    return 0;
}
CODE
${CC:-cc} -O1 -o "$work/says" "$work/says.c"
${CC:-cc} -O1 -o "$work/linked" "$work/says.c" -Wl,--undefined=malloc,--undefined=ta_is_tracing "$archive" -pthread

verdict() { # name condition-status
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s: status %s, out "%s", err "%s"\n' "$1" "$status" "$(cat "$work/out")" "$(cat "$work/err")"
    fi
}

run() { # assignments… command
    status=0
    env -u TRACEALLOC -u TRACEALLOC_OPTIONS "$@" >"$work/out" 2>"$work/err" || status=$?
}

good() { # name expected assignments…
    name=$1 expected=$2
    shift 2
    run LD_PRELOAD="$library" "$@" "$work/says"
    result=0
    [ "$status" -eq 0 ] && [ "$(cat "$work/out")" = "$expected" ] && [ ! -s "$work/err" ] || result=1
    verdict "$name" $result
}

bad() { # name expected-line assignments…
    name=$1 expected=$2
    shift 2
    run SAY_EARLY=1 LD_PRELOAD="$library" "$@" "$work/says"
    result=0
    [ "$status" -eq 1 ] && [ ! -s "$work/out" ] && [ "$(cat "$work/err")" = "tracealloc: $expected" ] || result=1
    verdict "$name" $result
}

stopped='stopped limit 1 constructor untraced'
invalid='TRACEALLOC: invalid number of frames'
range='the number of frames must be in range [1; 65535]'
newline='
'
good 'not set' "$stopped"
good 'empty' "$stopped" TRACEALLOC=
good '0' "$stopped" TRACEALLOC=0
good '00' "$stopped" TRACEALLOC=00
good '-0' "$stopped" TRACEALLOC=-0
good '1' 'tracing limit 1 constructor traced' TRACEALLOC=1
good '65535' 'tracing limit 65535 constructor traced' TRACEALLOC=65535
for five in ' 5' '+5' '05' "$(printf '\t5')" '  +0005'; do
    good "'$five'" 'tracing limit 5 constructor traced' TRACEALLOC="$five"
done
for wrong in '5 ' "5$newline" 0x5 5.0 1e2 abc -1 - + ' ' '+-5' '5,' 2147483648 99999999999999999999 4294967297; do
    bad "'$wrong'" "$invalid" TRACEALLOC="$wrong"
done
for large in 65536 2147483647; do
    bad "$large" "$range" TRACEALLOC=$large
done
good "the interpreter's variable is not ours" "$stopped" PYTHONTRACEMALLOC=5
good 'a longer name is not ours' "$stopped" TRACEALLOCX=abc TRACEALLO=abc

good 'options' 'tracing limit 3 constructor untraced' TRACEALLOC=3 TRACEALLOC_OPTIONS=sample=1GiB
good 'options, empty ones between' 'tracing limit 3 constructor traced' TRACEALLOC=3 TRACEALLOC_OPTIONS=,max_contexts=2048,,
bad 'unknown option' 'TRACEALLOC_OPTIONS: unknown option colour' TRACEALLOC_OPTIONS=colour=red
bad 'option without a value' 'TRACEALLOC_OPTIONS: sample=: expected a size such as 512KiB' TRACEALLOC_OPTIONS=sample
for wrong in 0 -1 x 5x 5KiBB 99999999999999999999; do
    bad "sample=$wrong" "TRACEALLOC_OPTIONS: sample=$wrong: expected a size such as 512KiB" TRACEALLOC_OPTIONS=sample=$wrong
done
bad 'max_contexts' 'TRACEALLOC_OPTIONS: max_contexts=5: expected a number from 1024 to 268435456' TRACEALLOC_OPTIONS=max_contexts=5
bad 'on_corruption' 'TRACEALLOC_OPTIONS: on_corruption=pray: expected abort or leak' TRACEALLOC_OPTIONS=on_corruption=pray
bad 'a bad value stops although all others are good' "$invalid" TRACEALLOC=abc TRACEALLOC_OPTIONS=max_contexts=2048

# exec: the variable starts the next program, nothing else does.
run LD_PRELOAD="$library" TRACEALLOC=7 "$work/says" "$work/says"
result=0
[ "$(cat "$work/out")" = 'tracing limit 7 constructor traced' ] || result=1
verdict 'exec with the variable' $result

# Set-uid programs take no orders from the environment, good or bad.
run TRACEALLOC=9 "$work/linked"
result=0
[ "$(cat "$work/out")" = 'tracing limit 9 constructor traced' ] || result=1
verdict 'linked with the archive' $result
run TRACEALLOC=abc "$work/linked"
result=0
[ "$status" -eq 1 ] && [ "$(cat "$work/err")" = "tracealloc: $invalid" ] || result=1
verdict 'linked with the archive, bad value' $result
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null && chmod 4755 "$work/linked" &&
    setpriv --reuid=65534 --clear-groups "$work/linked" >/dev/null 2>&1 &&
    ! findmnt -no OPTIONS -T "$work" 2>/dev/null | grep -q nosuid; then
    for value in 9 abc; do
        run TRACEALLOC=$value TRACEALLOC_OPTIONS=colour=red setpriv --reuid=65534 --clear-groups "$work/linked"
        result=0
        [ "$status" -eq 0 ] && [ "$(cat "$work/out")" = "$stopped" ] || result=1
        verdict "set-uid, TRACEALLOC=$value" $result
    done
else
    echo 'set-uid programs cannot be tried here (needs root, setpriv and a file system that allows them)'
fi

printf '%s passed, %s failed\n' $passed $failed
[ $failed -eq 0 ]
