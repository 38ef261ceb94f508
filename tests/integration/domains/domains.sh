#!/bin/sh
# domains.sh: rules on programs that know nothing of them, and the price of domains in instructions.
#
#   domains.sh python|redis|counts LIBRARY [COUNTS]
#
# 77 when the program, or valgrind, is not on this machine.
set -eu
what=$1
library=$2
counts=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || :; rm -rf "$work"' EXIT

fail() {
    echo "$*" >&2
    [ ! -f "$work/said" ] || cat "$work/said" >&2
    exit 1
}

# The table of domains that a program said at its end: `column NAME N` is the N-th column of that domain's row.
column() { awk -v name="$1" -v column="$2" '$NF == name { print $column }' "$work/said"; }

# The sums over domains are the totals.
check_sums() {
    awk '/domains at exit/ { on = 1; next } on && $1 ~ /^[0-9]+$/ { sum += $2 } on && $1 == "all" { total = $2 }
         END { exit total == "" || sum != total }' "$work/said" || fail "the sums over domains are not the totals"
}

check_python() {
    [ -x /usr/bin/python3 ] || exit 77
    /usr/bin/python3 -c 'import sqlite3, ssl' 2>/dev/null || exit 77
    LD_PRELOAD=$library TRACEALLOC=200 \
        TRACEALLOC_OPTIONS="rules=$here/python.rules,domains_at_exit=1" \
        /usr/bin/python3 "$here/work.py" >"$work/out" 2>"$work/said" || fail "python3 failed"
    [ "$(cat "$work/out")" = "5000 50000" ] || fail "python3 computed something else"
    check_sums
    [ "$(column sqlite 4)" -gt 400000 ] || fail "sqlite3 held less than its table"
    [ "$(column crypto 6)" -gt 1000 ] || fail "libcrypto allocated next to nothing"
    [ "$(column interpreter 4)" -gt 1000000 ] || fail "the interpreter held less than its numbers"
}

check_redis() {
    command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null || exit 77
    port=$((20000 + $$ % 20000))
    LD_PRELOAD=$library TRACEALLOC=200 \
        TRACEALLOC_OPTIONS="rules=$here/redis.rules,domains_at_exit=1" \
        redis-server --port $port --save '' --dir "$work" >"$work/log" 2>"$work/said" &
    server=$!
    tries=0
    until redis-cli -p $port ping 2>/dev/null | grep -q PONG; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || fail "redis-server does not answer"
        sleep 0.2
    done
    redis-benchmark -p $port -n 5000 -q -t set,lpush >/dev/null || fail "redis-benchmark failed"
    redis-benchmark -p $port -n 300 -q eval \
        "local t = {} for i = 1, 200 do t[i] = tostring(i) .. KEYS[1] end return #t" 1 k >/dev/null ||
        fail "redis-benchmark failed with scripts"
    redis-cli -p $port eval 'keep = nil; return string.rep("x", 10)' 0 >/dev/null
    redis-cli -p $port shutdown nosave >/dev/null 2>&1 || :
    wait "$server" || fail "redis-server failed"
    server=
    [ "$(column lua 6)" -gt 2000 ] || fail "Lua allocated less than its strings"
    [ "$(column server 2)" -gt 100000 ] || fail "the server held less than its lists"
    check_sums
}

# Instructions per turn, in tenths, inside some functions and what they call.
turns() { # what function…
    turn=$1
    shift
    for times in 10000 30000; do
        # shellcheck disable=SC2046 # an option each
        valgrind --tool=callgrind --callgrind-out-file=/dev/null $(printf ' --toggle-collect=%s' "$@") "$counts" "$turn" \
            $times 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
    done | awk 'NR == 1 { few = $1 } NR == 2 { printf "%d\n", ($1 - few) / 2000 + 0.5 }'
}

check_counts() {
    command -v valgrind >/dev/null || exit 77
    unset TRACEALLOC TRACEALLOC_OPTIONS
    pushpop=$(turns pushpop ta_domain_push ta_domain_pop)
    echo "push and pop together: $((pushpop / 10)) instructions, at most 20"
    [ "$pushpop" -gt 0 ] && [ "$pushpop" -le 200 ] || fail "a scope costs more than 20 instructions"
    for mode in '' 1 20; do
        export TRACEALLOC=$mode
        for what in zero beside scope; do
            eval "$what=\$(turns $what malloc free)"
        done
        echo "${mode:-0} frames: malloc + free $((zero / 10)) where no domain is used, $((beside / 10)) in domain 0 beside" \
            "others, $((scope / 10)) in another"
        [ "$zero" -gt 0 ] && [ $((beside - zero)) -le 100 ] ||
            fail "malloc and free cost more than 10 instructions more where another domain is used"
        [ "$scope" -gt 0 ] && [ $((scope - zero)) -le 420 ] ||
            fail "malloc and free in a domain cost more than 42 instructions more than where there are none"
    done
    # By a rule: the same instructions as by a scope, however many rules there are.
    scope=$(turns scope malloc)
    for more in 0 20; do
        {
            echo '3 ruled function=allocate_in_rule'
            for i in $(seq $more); do echo "1$i other$i module=nothing$i.so* function=nothing*"; done
        } >"$work/rules"
        export TRACEALLOC_OPTIONS="rules=$work/rules"
        ruled=$(turns rule malloc)
        echo "20 frames: malloc $((ruled / 10)) by one of $((more + 1)) rules, $((scope / 10)) by a scope"
        [ "$ruled" -gt 0 ] && [ $((ruled - scope)) -le 10 ] || fail "a rule costs something in every allocation"
    done
}

check_"$what"
