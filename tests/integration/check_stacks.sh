#!/bin/sh
# check_stacks.sh: no captured stack differs from a fresh walk, nor from libunwind's.
#
#   tests/integration/check_stacks.sh LIBRARY quick|all
#
# LIBRARY is libtracealloc of the checking build (TRACEALLOC_CHECKING, trace/check.c). `all` runs larger inputs. What
# ends early and why is printed per program; what is tolerated is said in docs/testing.md.
set -eu
library=$1 extent=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 subjects=0

check() { # name command…
    name=$1
    shift
    rm -f "$work/log"
    status=0
    TRACEALLOC=65535 TRACEALLOC_CHECK_LOG=$work/log LD_PRELOAD=$library timeout 1200 "$@" >"$work/out" 2>&1 || status=$?
    subjects=$((subjects + 1))
    stacks=$(awk '/ check: stacks / { sum += $4 } END { print sum + 0 }' "$work/log" 2>/dev/null || echo 0)
    early=$(awk '/ check: stacks / { m += $11; r += $14; a += $16; u += $20 }
        END { printf "%d in no module, %d without a rule, %d astray; libunwind gave up %d", m, r, a, u }' "$work/log" 2>/dev/null || :)
    printf '%-16s %9s stacks; ended early: %s\n' "$name" "$stacks" "$early"
    if [ "$status" -ne 0 ] || grep -q DIFFERENCE "$work/log" || [ "$stacks" -lt "${least:-100}" ]; then
        failed=$((failed + 1))
        printf 'FAILED: %s: status %s\n' "$name" "$status"
        grep -v ' check: stacks ' "$work/log" | head -40 || :
        head -5 "$work/out"
    fi
}

cc=${CC:-cc}
$cc -g -O2 -o "$work/stacks" "$here/stacks/stacks.c" -pthread -ldl
$cc -g -O1 -fno-omit-frame-pointer -o "$work/stacks-fp" "$here/stacks/stacks.c" -pthread -ldl
${CXX:-c++} -g -O2 -o "$work/throw" "$here/stacks/throw.cpp"
for frame in 520 1544; do
    $cc -O2 -fPIC -shared -DFRAME=$frame -o "$work/plugin-$frame.so" "$here/stacks/plugin.c"
done
export STACKS_PLUGIN_A="$work/plugin-520.so" STACKS_PLUGIN_B="$work/plugin-1544.so"

for subject in $("$work/stacks"); do
    check "$subject" "$work/stacks" "$subject"
done
check trees-fp "$work/stacks-fp" trees
check throw "$work/throw"

if [ "$extent" = all ]; then n=20000 lines=400; else n=400 lines=40; fi
if command -v perl >/dev/null; then
    check perl perl -e 'my %h; for (1..$ARGV[0]) { $h{"k$_"} = [1..5]; $h{$_} =~ s/1/x/ } print join(",", map { sort @{$h{"k$_"}} } 1..9)' $n
fi
python=/usr/bin/python3
if [ -x $python ]; then
    export PYTHONMALLOC=malloc
    check python-json $python -c "import json; json.dumps([{str(i): [i]*3} for i in range($n)]); json.loads('[1,{\"a\":[2,3]}]'*0 + '[1]')"
    check python-re $python -c "import re; [re.findall(r'(a+)(b*)c?', 'aab' * (i % 9)) for i in range($n)]"
    check python-threads $python -c "
import threading
def f(n):
    for i in range(n): ' '.join(str(j) for j in range(9))
t = [threading.Thread(target=f, args=($n // 20,)) for _ in range(4)]
[x.start() for x in t]; [x.join() for x in t]"
    check python-recursion $python -c "
import sys; sys.setrecursionlimit(4000)
def f(n): return [n] + (f(n - 1) if n else [])
f(900); sorted(range($n), key=lambda x: [-x])"
fi
if command -v sqlite3 >/dev/null; then
    check sqlite3 sqlite3 :memory: "create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<$n) insert into t select x, hex(randomblob(9)) from c; create index i on t(b); select count(*), max(b) from t where b like '%A%' order by a;"
fi
i=0
while [ $i -lt $lines ]; do
    i=$((i + 1))
    echo "struct s$i { int a[$i]; double d; }; int f$i(struct s$i *s, int n) { int r = 0; for (int i = 0; i < n; i++) r += s->a[i % $i] * i; return r + (int)s->d; }"
done >"$work/large.c"
check gcc "$cc" -O2 -c -o "$work/large.o" "$work/large.c"
if [ "$extent" = all ]; then
    printf '#include <map>\n#include <string>\n#include <regex>\n#include <iostream>\nint main() { std::map<std::string, std::regex> m; std::cout << m.size(); }\n' >"$work/large.cpp"
    check g++ "${CXX:-c++}" -O2 -c -o "$work/large.o" "$work/large.cpp"
fi
printf '%s programs, %s failed\n' "$subjects" "$failed"
[ "$failed" -eq 0 ]
