#!/bin/sh
# check_stacks.sh: no captured stack differs from a fresh walk, nor from libunwind's.
#
#   tests/integration/check_stacks.sh LIBRARY quick|all
#
# LIBRARY is libtracealloc of the checking build (TRACEALLOC_CHECKING, trace/unwind/walk_check.c). `all` runs larger inputs. What
# ends early and why is printed per program; what is tolerated is said in docs/testing.md.
set -eu
library=$1 extent=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 subjects=0 all_kept=0

# A program's stacks may end early, or be judged by the fresh walk alone, only where a variable says how often:
# no_rule (see docs/testing.md). What is in no module, astray, given up by libunwind or without a leaf never is.
check() { # name command…
    name=$1
    shift
    rm -f "$work/log"
    status=0
    TRACEALLOC=65535 TRACEALLOC_CHECK_LOG=$work/log LD_PRELOAD=$library timeout 1200 "$@" >"$work/out" 2>&1 || status=$?
    subjects=$((subjects + 1))
    touch "$work/log"
    # shellcheck disable=SC2046 # numbers
    set -- $(awk '/ check: stacks / { n += $4; m += $11; r += $14; a += $16; u += $20; l += $24; k += $26 }
        END { print n + 0, m + 0, r + 0, a + 0, u + 0, l + 0, k + 0 }' "$work/log")
    all_kept=$((all_kept + $7))
    printf '%-23s %9s stacks; ended early: %s in no module, %s without a rule, %s astray; libunwind gave up %s; without a leaf %s; and %s kept\n' \
        "$name" "$@"
    if [ "$status" -ne 0 ] || grep -q DIFFERENCE "$work/log" || [ $(($1 + $7)) -lt "${least:-100}" ] || [ "$2" -ne 0 ] ||
        [ "$3" -gt "${no_rule:-0}" ] || [ "$4" -ne 0 ] || [ "$5" -ne 0 ] || [ "$6" -ne 0 ]; then
        failed=$((failed + 1))
        printf 'FAILED: %s: status %s\n' "$name" "$status"
        grep -v ' check: stacks ' "$work/log" | head -40 || :
        head -5 "$work/out"
    fi
}

# The comparisons themselves: each must see the one falsehood that it is told.
must_see() { # comparison command…
    comparison=$1
    shift
    status=0
    TRACEALLOC=65535 TRACEALLOC_CHECK_LOG=$work/log TRACEALLOC_CHECK_DISTURB=$comparison LD_PRELOAD=$library "$@" || status=$?
    subjects=$((subjects + 1))
    if [ "$status" -ne 86 ] || ! grep -q ' differences 1;' "$work/log"; then
        failed=$((failed + 1))
        printf 'FAILED: the comparison "%s" saw nothing: status %s\n' "$comparison" "$status"
    fi
    rm -f "$work/log"
}

cc=${CC:-cc}
$cc -g -O2 -o "$work/stacks" "$here/stacks/stacks.c" -pthread -ldl
$cc -g -O1 -fno-omit-frame-pointer -o "$work/stacks-fp" "$here/stacks/stacks.c" -pthread -ldl
${CXX:-c++} -g -O2 -o "$work/throw" "$here/stacks/throw.cpp"
plugins=
for plugin in 520a 1544a 520b; do
    $cc -O2 -fPIC -shared -DFRAME="${plugin%?}" -DNAME="\"$plugin\"" -o "$work/plugin-$plugin.so" "$here/stacks/plugin.c"
    plugins="$plugins $work/plugin-$plugin.so"
done
export STACKS_PLUGINS="$plugins"

for comparison in fresh libunwind leaf; do
    must_see $comparison "$work/stacks" trees
done
for subject in $("$work/stacks"); do
    # Coroutines begin where libc has no table: that is their outermost frame.
    case $subject in coroutines) no_rule=1000000 ;; *) no_rule=0 ;; esac
    check "$subject" "$work/stacks" "$subject"
done
no_rule=0
check trees-fp "$work/stacks-fp" trees
# ld.so notes a dependency when it binds a name: its stub keeps the frame's place in rbx.
no_rule=2 check throw "$work/throw"

if [ "$extent" = all ]; then n=20000 lines=400; else n=1000 lines=40; fi
if command -v perl >/dev/null; then
    check perl perl -e 'use List::Util; use Data::Dumper; my %h; for (1..$ARGV[0]) { $h{"k$_"} = [1..5]; $h{$_} =~ s/1/x/; my @s = sort { $b <=> $a } map { $_ * 3 } 1..9; eval { die { code => $_ } } if $_ % 7 == 0 } print join(",", map { sort @{$h{"k$_"}} } 1..9), length Dumper(\%h)' $n
fi
if command -v lua5.4 >/dev/null; then
    check lua lua5.4 -e "local t = {} for i = 1, $n do t[i] = {tostring(i), string.rep('x', i % 99)} end
        local function f(n) if n == 0 then error({}) end return {f(n - 1)} end
        for i = 1, $n // 10 do pcall(f, i % 50) end
        local c = coroutine.wrap(function() for i = 1, $n do coroutine.yield({i}) end end)
        for i = 1, $n do c() end
        table.sort(t, function(a, b) return a[1] < b[1] end) print(#table.concat({(('ab'):rep($n)):gsub('a', '%0%0')}))"
fi
python=/usr/bin/python3
if [ -x $python ]; then
    export PYTHONMALLOC=malloc
    check python-imports $python -c "
import json, re, sqlite3, ssl, threading, decimal, xml.dom.minidom, email.message, unittest, asyncio, ctypes, zlib, csv, io
ssl.create_default_context()
db = sqlite3.connect(':memory:')
db.create_function('twice', 1, lambda x: 2 * x)
db.execute('create table t(a, b)')
db.executemany('insert into t values(?, ?)', ((i, str(i)) for i in range($n // 4)))
print(db.execute('select sum(twice(a)), max(b) from t').fetchall())
xml.dom.minidom.parseString('<a>' + '<b c=\"1\">x</b>' * ($n // 20) + '</a>').toxml()
async def g(i): await asyncio.sleep(0); return [i]
async def main(): return await asyncio.gather(*(g(i) for i in range($n // 20)))
asyncio.run(main())
print(sum(decimal.Decimal(i) / 7 for i in range(1, $n // 10)))
libc = ctypes.CDLL(None)
order = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))(lambda a, b: a[0] - b[0])
libc.qsort((ctypes.c_int * 20)(*range(20, 0, -1)), 20, 4, order)"
    check python-json $python -c "import json; json.loads(json.dumps([{str(i): [i]*3, 'x': {'y': str(i)}} for i in range($n)]))"
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
    headers='map string regex iostream thread algorithm'
    printf 'std::map<std::string, std::regex> all; int main() { std::cout << all.size(); }\n' >"$work/tail.cpp"
else
    headers='vector'
    printf 'std::vector<int> all(9); int main() { return all[1]; }\n' >"$work/tail.cpp"
fi
{
    for header in $headers; do echo "#include <$header>"; done
    cat "$work/tail.cpp"
} >"$work/large.cpp"
check g++ "${CXX:-c++}" -O2 -c -o "$work/large.o" "$work/large.cpp"
if [ $all_kept -lt 10000 ]; then
    failed=$((failed + 1))
    echo 'FAILED: hardly any kept stack was looked at'
fi
printf '%s programs, %s failed\n' "$subjects" "$failed"
[ "$failed" -eq 0 ]
