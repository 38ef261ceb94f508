#!/bin/sh
# test_symbols_debuginfod.sh: a real debuginfod server is asked when, and only when, DEBUGINFOD_URLS names it.
#
#   test_symbols_debuginfod.sh SYMBOLIZE CC     exit 77 when debuginfod or curl is not on this machine
set -u
symbolize=$1 cc=$2
command -v debuginfod >/dev/null && command -v curl >/dev/null || { echo "no debuginfod or no curl here"; exit 77; }
unset DEBUGINFOD_URLS
work=$(mktemp -d) || exit 1
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; wait 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
export DEBUGINFOD_CACHE_PATH="$work/cache" HOME="$work" DEBUGINFOD_TIMEOUT=20
fail() { echo "FAIL: $*"; cat server.log 2>/dev/null | tail -20; exit 1; }

cat >prog.c <<'C'
/* one line per function: any of its addresses will do */
__attribute__((noinline)) int outer(int x) { return *(volatile int *)&x * 3; }
int main(int argc, char **argv) { return outer(argc) + !argv; }
C
"$cc" -g -O2 prog.c -o prog || exit 1
address=$(nm prog | awk '$3 == "outer" { print $1 }')
id=$(readelf -n prog | awk '/Build ID/ { print $3 }')
mkdir served && objcopy --only-keep-debug prog served/prog.debug && strip prog && cp prog served/prog.bin

# A free port: the server says when it cannot have one.
port=$((20000 + $$ % 20000))
for _ in 1 2 3 4 5; do
    debuginfod -vv -F -p $port -d "$work/index.sqlite" "$work/served" >server.log 2>&1 &
    server=$!
    for _ in $(seq 100); do
        kill -0 $server 2>/dev/null || break
        curl -s "http://127.0.0.1:$port/metrics" | grep -q 'thread_work_total{role="scan"}' &&
            curl -sf -o /dev/null "http://127.0.0.1:$port/buildid/$id/debuginfo" && break 2
        sleep 0.1
    done
    kill $server 2>/dev/null
    wait $server 2>/dev/null
    server=
    port=$((port + 1))
done
[ -n "$server" ] || { cat server.log; fail "the server does not start"; }
requests() { grep -c "GET /buildid" server.log; }
ask() { echo "$address" | "$symbolize" -b "$id" "$work/$1" 2>/dev/null | tail -n +2 | tr '\n' ' '; }
lines="outer $work/prog.c:2 "
is_without_lines() { case $1 in prog+0x*" $work/prog:0 ") true ;; *) false ;; esac; }

before=$(requests)
got=$(ask prog)
is_without_lines "$got" || fail "without the variable: '$got'"
got=$(DEBUGINFOD_URLS='' ask prog)
is_without_lines "$got" || fail "with an empty variable: '$got'"
[ "$(requests)" -eq "$before" ] || fail "the server was asked without leave"

export DEBUGINFOD_URLS="http://127.0.0.1:$port"
got=$(ask prog)
[ "$got" = "$lines" ] || fail "with the variable: '$got'"
[ "$(requests)" -gt "$before" ] || fail "lines without asking the server"

rm -rf cache prog
got=$(ask prog)
[ "$got" = "$lines" ] || fail "with the program gone: '$got'"

kill "$server" && wait "$server" 2>/dev/null
server=
rm -rf cache
got=$(ask prog)
is_without_lines "$got" || fail "with the server gone: '$got'"
echo ok
