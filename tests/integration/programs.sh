#!/bin/bash
# programs.sh: real programs do with the library preloaded exactly what they do without.
#
# Usage: programs.sh [quick|all|NAME…]      (quick when nothing is said; `programs.sh list` names them)
# Settings: TA_LIB, the absolute path of libtracealloc.so; TRACEALLOC and TRACEALLOC_OPTIONS reach the programs, so that
# the same list runs with tracing on; TA_MIMALLOC_SOURCE, a tree with one more large C file for gcc.
# Each program runs twice in fresh folders, without and with the library, and must end alike and print the same to the
# byte. Prints `ok NAME`, `not ok NAME` or `skip NAME`; ends with 1 when something is not ok, 77 when nothing could run.
set -u
here=$(cd "$(dirname "$0")" && pwd)
data=$here/programs

# ---- the programs: case_NAME runs in an empty folder of its own and prints what must not differ -----------------------
# needs_NAME: commands without which it is skipped. limit_NAME: seconds.

quick=(shell own_malloc static_binary python_script python_quick gcc gxx git sqlite perl lua jq xmllint ruby ghostscript
    node java redis nginx compressors php)
long=(python_modules python_multiprocessing gcc_large git_large redis_large cmake)

case_shell() {
    bash -c 'for i in {1..3000}; do echo "line $((i * 7919 % 3001)) of many"; done' >lines
    sort -n -k2 lines | uniq | awk '{ sum += $2; text = text $2 } END { print sum, length(text) }'
    sed 's/line \([0-9]*\)/\1 enil/' lines | grep -c '7 enil'
    find / -xdev -maxdepth 2 -name 'b*' 2>/dev/null | sort | xargs -n 3 echo | md5sum
    tr a-z A-Z <lines | cut -d' ' -f2 | sort -R | sort -n | tail -1
}

# A program that brings an allocator of its own: it must run untraced and unharmed.
needs_own_malloc=cc
case_own_malloc() {
    cc -O1 -o own "$data/own_malloc.c" && ./own
}

needs_static_binary=busybox
case_static_binary() {
    busybox sh -c 'i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); echo $i; done' | busybox sort -r | busybox md5sum
}

# Its extensions are opened with RTLD_DEEPBIND: their malloc would be libc's.
needs_php=php
case_php() {
    php "$data/work.php"
}

needs_python_script=/usr/bin/python3
case_python_script() {
    /usr/bin/python3 "$data/work.py"
}

python_tests() {
    /usr/bin/python3 -m test -w "$@" >log 2>&1
    echo "status $?"
    grep -E '^(All [0-9]+ tests OK|Tests result|[0-9]+ tests? (OK|failed|skipped))' log | sort
    grep -E '^(FAIL|ERROR):' log | sort
}
needs_python_quick='/usr/bin/python3 /usr/lib/python3*/test/test_json'
case_python_quick() {
    python_tests test_json test_re test_dict test_list
}
needs_python_modules=$needs_python_quick
limit_python_modules=900
case_python_modules() {
    python_tests test_json test_re test_threading test_subprocess test_ctypes test_gc test_io test_thread test_capi
}
needs_python_multiprocessing=$needs_python_quick
limit_python_multiprocessing=900
case_python_multiprocessing() {
    python_tests test_multiprocessing_fork -m '*TestQueue*' -m '*TestLock*' -m '*TestValue*' -m '*TestSharedMemory*' -m '*TestArray*'
}

needs_gcc='gcc awk'
limit_gcc=200
case_gcc() {
    awk -v functions=700 -f "$data/large_c.awk" >large.c
    gcc -O2 -g -frandom-seed=1 -c large.c -o large.o && sha256sum large.o
    echo 'int main(void) { return undeclared; }' >wrong.c
    gcc -c wrong.c 2>&1 | head -3
}
limit_gcc_large=900
needs_gcc_large='gcc awk'
case_gcc_large() {
    awk -v functions=9000 -f "$data/large_c.awk" >large.c
    gcc -O2 -g -frandom-seed=1 -c large.c -o large.o && sha256sum large.o
    if [ -n "${TA_MIMALLOC_SOURCE:-}" ]; then
        # It contains the time of its compilation, which this variable fixes.
        SOURCE_DATE_EPOCH=1 gcc -O3 -g -frandom-seed=1 -I "$TA_MIMALLOC_SOURCE/include" -c "$TA_MIMALLOC_SOURCE/src/static.c" \
            -o static.o 2>static.log && sha256sum static.o
    fi
}
needs_gxx=g++
limit_gxx=300
case_gxx() {
    g++ -O0 -g -std=c++17 -frandom-seed=1 "$data/large.cpp" -o program && sha256sum program && ./program
}

make_repository() { # make_repository COMMITS
    export HOME=$PWD GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=C GIT_CONFIG_NOSYSTEM=1
    export GIT_COMMITTER_EMAIL=c@example.org GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
    git init -q -b main origin
    cd origin || return
    for ((i = 1; i <= $1; i++)); do
        seq "$i" $((i + 400)) >"file$((i % 9)).txt"
        git add -A && git commit -q -m "change number $i"
    done
    cd ..
}
needs_git=git
case_git() {
    make_repository 60
    git clone -q --no-local origin copy && cd copy || return
    git gc -q --prune=now && git fsck --full --strict 2>&1 | grep -v '^Checking'
    git log --format='%H %s' | sha256sum
    git diff HEAD~20 HEAD --stat | tail -1
    git blame file3.txt | sha256sum
}
needs_git_large=git
limit_git_large=600
case_git_large() {
    make_repository 800
    git clone -q --no-local origin copy && cd copy || return
    git gc -q --aggressive --prune=now && git fsck --full --strict 2>&1 | grep -v '^Checking'
    git log -p --format='%H %s' | sha256sum
    git rev-list --objects --all | sort | sha256sum
}

needs_sqlite=sqlite3
case_sqlite() {
    sqlite3 test.db <"$data/work.sql"
}
needs_perl=perl
case_perl() {
    perl "$data/work.pl"
}
needs_lua=lua5.4
case_lua() {
    lua5.4 "$data/work.lua"
}
needs_ruby=ruby
case_ruby() {
    ruby "$data/work.rb"
}
needs_node=node
case_node() {
    node -e 'console.log("a line from node, " + [..."abc"].map(c => c.repeat(3)).join("-") + ", "
        + JSON.stringify(JSON.parse("{\"a\":[1,2,{\"b\":null}]}")) + ", " + Buffer.alloc(1 << 20, "x").length)'
}
needs_java=java
case_java() {
    java -version 2>&1 && java --list-modules | head -3
}

make_xml_and_json() {
    awk 'BEGIN { print "<list>"; for (i = 0; i < 20000; i++)
        printf "<item id=\"%d\"><name>name %d</name><price>%d.%02d</price></item>\n", i, i * 7 % 1000, i % 91, i % 100
        print "</list>" }' >list.xml
    awk 'BEGIN { printf "["; for (i = 0; i < 20000; i++)
        printf "%s{\"id\":%d,\"name\":\"name %d\",\"tags\":[%d,\"x%d\"]}", i ? "," : "", i, i * 7 % 1000, i % 5, i % 17
        print "]" }' >list.json
}
needs_xmllint=xmllint
case_xmllint() {
    make_xml_and_json
    xmllint --format list.xml | sha256sum
    xmllint --xpath 'count(//item[price > 50])' list.xml
    xmllint --noout broken.xml 2>&1 | head -1
    xmllint --c14n list.xml | tail -c 100
}
needs_jq=jq
case_jq() {
    make_xml_and_json
    jq -c 'group_by(.name) | map({name: .[0].name, count: length, ids: (map(.id) | add)}) | .[0:3]' list.json
    jq -S 'map(.tags) | flatten | unique | length' list.json
    jq '[.[] | select(.id % 1000 == 7) | .name | ascii_upcase | test("NAME 4")] | length' list.json
}
needs_ghostscript=gs
case_ghostscript() {
    gs -q -dSAFER -dNOPAUSE -dBATCH -sDEVICE=ppmraw -r100 -sOutputFile=page%d.ppm "$data/page.ps" && sha256sum page*.ppm
}
needs_compressors='tar gzip xz'
case_compressors() {
    for ((i = 0; i < 40; i++)); do seq "$i" 20000 >"file$i"; done
    tar --sort=name --mtime=2020-01-01 --owner=0 --group=0 -cf all.tar file*
    gzip -n -9 <all.tar | sha256sum
    xz -T2 -1 --block-size=1MiB <all.tar | xz -d -T2 | sha256sum
}

# Both servers listen on a socket in the folder: no port is taken, nothing is reachable from outside.
wait_for_socket() {
    for ((i = 0; i < 200; i++)); do
        [ -S "$1" ] && return 0
        sleep 0.05
    done
    echo "the server did not start"
    return 1
}
serve_redis() { # serve_redis REQUESTS
    redis-server --port 0 --unixsocket "$PWD/socket" --save '' --daemonize no --dir "$PWD" --io-threads 2 >server.log 2>&1 &
    local server=$!
    wait_for_socket socket || { cat server.log; return; }
    redis-benchmark -s socket -n "$1" -c 20 -P 8 -q -r 10000 -t set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset \
        >benchmark.log 2>&1
    echo "benchmark status $?"
    redis-cli -s socket flushall
    for ((i = 0; i < 2000; i++)); do
        echo "set key$i $(printf '%0*d' $((i % 300 + 1)) $i)"
        echo "rpush list$((i % 7)) element$i"
        echo "hset hash$((i % 5)) field$i value$i"
        echo "zadd sorted $i member$((i * 7 % 500))"
    done | redis-cli -s socket >/dev/null
    redis-cli -s socket dbsize
    redis-cli -s socket strlen key299
    redis-cli -s socket lrange list3 -2 -1
    redis-cli -s socket hlen hash4
    redis-cli -s socket zrevrange sorted 0 4 withscores
    redis-cli -s socket eval 'local t = {} for i = 1, 1000 do t[i] = redis.call("get", "key" .. i) end
        return #table.concat(t)' 0
    redis-cli -s socket save
    redis-cli -s socket debug reload
    redis-cli -s socket dbsize
    redis-cli -s socket shutdown nosave
    wait "$server"
    echo "server status $?"
}
needs_redis='redis-server redis-benchmark redis-cli'
case_redis() {
    serve_redis 5000
}
needs_redis_large=$needs_redis
limit_redis_large=300
case_redis_large() {
    serve_redis 200000
}
needs_nginx='nginx curl'
case_nginx() {
    mkdir -p logs site tmp
    seq 1 100000 >site/large.txt
    echo 'hello from nginx' >site/index.html
    sed "s|@DIR@|$PWD|g" "$data/nginx.conf" >nginx.conf
    [ "$(id -u)" -eq 0 ] && sed -i '1i user root;' nginx.conf
    nginx -p "$PWD" -e "$PWD/logs/error.log" -c "$PWD/nginx.conf" &
    local server=$!
    wait_for_socket socket || { cat logs/error.log; return; }
    for ((i = 0; i < 15; i++)); do
        curl -s --unix-socket socket http://localhost/index.html
        curl -s --compressed --unix-socket socket http://localhost/large.txt | sha256sum
        [ "$i" -eq 7 ] && kill -HUP "$server" && sleep 0.3
    done
    curl -s -o /dev/null -w '%{http_code}\n' --unix-socket socket http://localhost/none
    kill -QUIT "$server"
    wait "$server"
    echo "server status $?"
}
needs_cmake='cmake cc ninja'
limit_cmake=300
case_cmake() {
    mkdir source && cp "$data/own_malloc.c" source/ && cp "$data/large.cpp" source/
    printf '%s\n' 'cmake_minimum_required(VERSION 3.20)' 'project(test C CXX)' 'add_executable(a own_malloc.c)' \
        'add_executable(b large.cpp)' 'set_property(TARGET b PROPERTY CXX_STANDARD 17)' >source/CMakeLists.txt
    cmake -G Ninja -S source -B build >log 2>&1 && cmake --build build -j2 >>log 2>&1
    echo "status $?"
    build/a && build/b
}

# ---- running them -----------------------------------------------------------------------------------------------------

if [ "${1:-}" = --case ]; then # in the child: --case NAME
    export LC_ALL=C TZ=UTC0 PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
    "case_$2"
    exit 0
fi

lib=${TA_LIB:-}
[ "${1:-}" = list ] && { printf '%s\n' "${quick[@]}" "${long[@]}"; exit 0; }
if [ ! -r "$lib" ] || [ "${lib#/}" = "$lib" ]; then
    echo "programs.sh: TA_LIB must be the absolute path of the library, not '$lib'" >&2
    exit 2
fi
case ${1:-quick} in
quick) names=("${quick[@]}") ;;
all) names=("${quick[@]}" "${long[@]}") ;;
*) names=("$@") ;;
esac

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failed=0
ran=0

is_missing() { # prints what the case needs and this machine lacks
    local variable=needs_$1 need
    for need in ${!variable:-}; do
        case $need in
        /*) [ -e "$need" ] && continue ;;
        *) command -v "$need" >/dev/null && continue ;;
        esac
        echo "$need"
    done
}

run_case() { # run_case NAME FOLDER [LIBRARY]
    local variable=limit_$1
    # The two runs have the same path, since programs write paths into what they make.
    rm -rf "$work/here" && mkdir "$work/here"
    (
        cd "$work/here" || exit
        [ -n "${3:-}" ] && export LD_PRELOAD=$3
        exec timeout -k 5 "${!variable:-100}" bash "$here/programs.sh" --case "$1" >"$2.out" 2>"$2.err" </dev/null
    )
    echo "exit status $?" >>"$2.out"
    rm -rf "$work/here"
}

for name in "${names[@]}"; do
    if ! declare -F "case_$name" >/dev/null; then
        echo "programs.sh: no program '$name'" >&2
        exit 2
    fi
    missing=$(is_missing "$name")
    if [ -n "$missing" ]; then
        echo "skip $name:" $missing
        continue
    fi
    ran=$((ran + 1))
    run_case "$name" "$work/without"
    SECONDS=0
    run_case "$name" "$work/with" "$lib"
    if grep -q 'exit status [^0]' "$work/without.out"; then
        echo "not ok $name: does not work even without"
        tail -5 "$work/without.out" "$work/without.err" | sed 's/^/    /'
        failed=$((failed + 1))
    elif ! cmp -s "$work/without.out" "$work/with.out"; then
        echo "not ok $name"
        diff "$work/without.out" "$work/with.out" | head -20 | sed 's/^/    /'
        tail -5 "$work/with.err" | sed 's/^/    /'
        failed=$((failed + 1))
    elif grep -E '^tracealloc: |ld\.so' "$work/with.err" >"$work/unasked"; then
        echo "not ok $name: words on descriptor 2"
        head -5 "$work/unasked" | sed 's/^/    /'
        failed=$((failed + 1))
    else
        echo "ok $name (${SECONDS} s)"
    fi
    [ -n "${TA_KEEP:-}" ] && mkdir -p "$TA_KEEP" && for side in without with; do
        cp "$work/$side.out" "$TA_KEEP/$name.$side.out"
        cp "$work/$side.err" "$TA_KEEP/$name.$side.err"
    done
done

[ "$ran" -gt 0 ] || exit 77
echo "$((ran - failed)) ok, $failed not ok"
[ "$failed" -eq 0 ]
