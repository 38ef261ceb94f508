#!/bin/bash
# ways_in.sh: every way into the library, with the programs of ways_in/, built here as a user would build them.
#
# Usage: ways_in.sh LIBRARY.so LIBRARY.a   (absolute paths; "-" for the archive leaves the static ways out)
# Each program runs on libc alone first; then preloaded, linked shared, linked static and all static, and must print the
# same. Settings: CC, CXX, TA_WAYS_CHILDREN (1000), TA_WAYS_THREADS (20000), TRACEALLOC (is passed on).
set -u
lib=${1:?library}
archive=${2:?archive or -}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
source=$here/ways_in
cc=${CC:-cc}
cxx=${CXX:-c++}
children=${TA_WAYS_CHILDREN:-1000}
threads=${TA_WAYS_THREADS:-20000}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
flags=(-O1 -g -Wall -Wextra -I "$root/include" -I "$source")
libdir=$(dirname "$lib")
passed=0
failed=0

ok() { echo "ok $1"; passed=$((passed + 1)); }
not_ok() { echo "not ok $1"; failed=$((failed + 1)); [ -s "${2:-/dev/null}" ] && sed 's/^/    /' "$2" | head -20; }

compile() { # compile SOURCE OUTPUT FLAGS…
    local file=$1 out=$2 tool=$cc
    shift 2
    case $file in *.cpp) tool=$cxx ;; esac
    "$tool" "${flags[@]}" "$source/$file" -o "$out" "$@" -pthread
}

# run NAME PROGRAM ARGS…: its output and what it wrote on descriptor 2 go to $work/got, its status is returned.
run() {
    { timeout -k 5 "${limit:-120}" "$@" >"$work/got" 2>&1 </dev/null; } 2>/dev/null
}

expect_same() { # expect_same NAME COMMAND…: ends with 0 and prints what the first run on libc printed
    local name=$1 status
    shift
    run "$@"
    status=$?
    if [ $status -ne 0 ]; then
        echo "exit status $status" >>"$work/got"
        not_ok "$name" "$work/got"
    elif ! cmp -s "$work/got" "$work/expected"; then
        diff "$work/expected" "$work/got" >"$work/difference"
        not_ok "$name" "$work/difference"
    else
        ok "$name"
    fi
}

# all_ways SOURCE VARIANT FLAGS -- ARGS…
all_ways() {
    local file=$1 name=$2 build=()
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do build+=("$1"); shift; done
    [ $# -gt 0 ] && shift
    local program=$work/$name
    if ! compile "$file" "$program.plain" "${build[@]}" 2>"$work/got"; then
        not_ok "$name: builds" "$work/got"
        return
    fi
    if ! run "$program.plain" "$@" || grep -q WRONG "$work/got"; then
        not_ok "$name: on libc alone" "$work/got"
        return
    fi
    mv "$work/got" "$work/expected"

    expect_same "$name: preloaded" env EXPECT_OURS=1 LD_PRELOAD="$lib" "$program.plain" "$@"
    if compile "$file" "$program.shared" "${build[@]}" -L "$libdir" -ltracealloc -Wl,-rpath,"$libdir" 2>"$work/got"; then
        expect_same "$name: linked shared" env EXPECT_OURS=1 "$program.shared" "$@"
    else
        not_ok "$name: linked shared" "$work/got"
    fi
    [ "$archive" = - ] && return
    if compile "$file" "$program.static" "${build[@]}" "$archive" 2>"$work/got"; then
        expect_same "$name: linked static" env EXPECT_OURS=1 "$program.static" "$@"
    else
        not_ok "$name: linked static" "$work/got"
    fi
    case ${no_full_static:-} in yes) return ;; esac
    if compile "$file" "$program.full" "${build[@]}" -static "$archive" 2>"$work/got"; then
        expect_same "$name: all static" env EXPECT_OURS=1 "$program.full" "$@"
    else
        not_ok "$name: all static" "$work/got"
    fi
}

# ---- what escapes ----------------------------------------------------------------------------------------------------

public='^(ta_[a-z0-9][a-z0-9_]*|malloc|calloc|realloc|reallocarray|free|cfree|posix_memalign|aligned_alloc|memalign|valloc'
public+='|pvalloc|malloc_usable_size|free_sized|free_aligned_sized|mallopt|mallinfo|mallinfo2|malloc_trim|malloc_stats'
public+='|__libc_(malloc|free|[cv]alloc|realloc|memalign|pvalloc)'
public+='|malloc_info|_Zn[wa]m.*|_Zd[la]Pv.*|_exit|_Exit|sigaction|signal|__sysv_signal|f?execve|execveat|execvpe?|execv|execl[pe]?|mmap(64)?|munmap|mremap|mlockall|prlimit(64)?|setrlimit(64)?|wait4|waitpid)$'
check_names() { # check_names NAME FILE NM-FLAGS…
    local name=$1 file=$2
    shift 2
    # Type A: the name of a version of symbols.
    nm "$@" --defined-only "$file" 2>"$work/nm.errors" | awk 'NF == 3 && $2 != "A" { print $3 }' | sed 's/@.*//' | sort -u >"$work/names"
    grep -vE "$public" "$work/names" >"$work/got"
    if [ ! -s "$work/names" ]; then
        not_ok "$name: has names" "$work/nm.errors"
    elif [ -s "$work/got" ]; then
        not_ok "$name: only public names escape" "$work/got"
    else
        ok "$name: only public names escape"
    fi
    local missing=
    for symbol in malloc free calloc realloc memalign posix_memalign aligned_alloc valloc pvalloc reallocarray \
        malloc_usable_size free_sized free_aligned_sized cfree mallopt mallinfo mallinfo2 malloc_trim malloc_stats \
        malloc_info __libc_malloc __libc_free __libc_calloc __libc_realloc __libc_memalign __libc_valloc __libc_pvalloc ta_malloc ta_free ta_version ta_get_health _Znwm _ZnwmRKSt9nothrow_t _ZnwmSt11align_val_t \
        _ZnwmSt11align_val_tRKSt9nothrow_t _Znam _ZnamRKSt9nothrow_t _ZnamSt11align_val_t \
        _ZnamSt11align_val_tRKSt9nothrow_t _ZdlPv _ZdlPvm _ZdlPvRKSt9nothrow_t _ZdlPvSt11align_val_t \
        _ZdlPvmSt11align_val_t _ZdlPvSt11align_val_tRKSt9nothrow_t _ZdaPv _ZdaPvm _ZdaPvRKSt9nothrow_t \
        _ZdaPvSt11align_val_t _ZdaPvmSt11align_val_t _ZdaPvSt11align_val_tRKSt9nothrow_t; do
        grep -qx "$symbol" "$work/names" || missing+=" $symbol"
    done
    echo "missing:$missing" >"$work/got"
    if [ -n "$missing" ]; then not_ok "$name: has every name" "$work/got"; else ok "$name: has every name"; fi
}
check_names "shared library" "$lib" -D
[ "$archive" = - ] || check_names "archive" "$archive" -g
if readelf -d "$lib" | grep NEEDED | grep -vqE 'libc\.so|ld-linux|libm\.so|libgcc_s|libpthread|libdl'; then
    readelf -d "$lib" | grep NEEDED >"$work/got"
    not_ok "shared library: needs only libc" "$work/got"
else
    ok "shared library: needs only libc"
fi
# What is written in a file takes memory wherever pages near it are touched, also where it is only zeros.
data=$(readelf -SW "$lib" | sed -n 's/^.* \.data  *PROGBITS  *[0-9a-f]* [0-9a-f]* \([0-9a-f]*\) .*/\1/p')
if [ -n "$data" ] && [ $((16#$data)) -lt 131072 ]; then
    ok "shared library: its tables are not in the file"
else
    not_ok "shared library: its tables are not in the file (.data has 0x$data bytes)"
fi
if readelf -d "$lib" | grep -q NODELETE; then ok "shared library: stays when closed"; else not_ok "shared library: stays when closed"; fi

# ---- the programs ----------------------------------------------------------------------------------------------------

all_ways early_late.c early_late
# While resolvers of indirect functions run, libc has not yet filled the thread-local storage. (With the archive, ours
# has its turn among the program's; in a program without ld.so there is no such storage at all.)
no_full_static=yes all_ways early_late.c early_ifunc -DEARLY_IFUNC
all_ways early_late_cxx.cpp early_late_cxx
limit=300 all_ways fork_threads.c fork_threads -- "$children"
all_ways spawn.c spawn -- 60
limit=300 all_ways churn.c churn -- "$threads"
for how in return exit quick_exit _exit main_first; do
    all_ways running_exit.c "running_exit_$how" -- "$how"
done

# C++ in a plugin: the host may be linked either way; a static host has no plugins.
if compile plugin.cpp "$work/plugin.so" -shared -fPIC 2>"$work/got"; then
    no_full_static=yes all_ways host.c host_of_plugin -ldl -rdynamic -- "$work/plugin.so"
else
    not_ok "plugin: builds" "$work/got"
fi

# Look-ups that begin at libc.
if compile deepbind_plugin.c "$work/deepbind_plugin.so" -shared -fPIC 2>"$work/got"; then
    no_full_static=yes all_ways deepbind.c deepbind -ldl -rdynamic -- "$work/deepbind_plugin.so"
else
    not_ok "deepbind_plugin: builds" "$work/got"
fi

# A function of the program's own for some of malloc's names (the archive has each of them, too).
archive=- all_ways own_free.c own_free
archive=- all_ways own_free.c own_family -DOWN_FAMILY

# The library itself by dlopen, from a program on libc's malloc.
compile load_library.c "$work/load_library" -ldl
if run "$work/load_library" "$lib" && grep -qxE 'loaded|refused' "$work/got"; then
    ok "load_library: $(tail -1 "$work/got")"
else
    not_ok "load_library" "$work/got"
fi

# Little address space from the start.
compile early_late.c "$work/limited" && "$work/limited" >"$work/expected"
for kib in 2000000 300000 150000; do
    # The tables of a traced process want address space of their own.
    [ "$kib" -lt 300000 ] && [ -n "${TRACEALLOC:-}" ] && continue
    expect_same "early_late: preloaded, $kib KiB of address space" \
        env EXPECT_OURS=1 sh -c "ulimit -v $kib; LD_PRELOAD='$lib' exec '$work/limited'"
    expect_same "early_late: preloaded, $kib KiB of writable memory" \
        env EXPECT_OURS=1 sh -c "ulimit -d $kib; LD_PRELOAD='$lib' exec '$work/limited'"
done
[ -n "${TRACEALLOC:-}" ] || expect_same "early_late: preloaded, 20000 KiB of writable memory" \
    env EXPECT_OURS=1 sh -c "ulimit -d 20000; LD_PRELOAD='$lib' exec '$work/limited'"
# Where the system promises no memory twice, mimalloc and our tables take theirs piece by piece. (It is told so: what
# other programs of the machine could have is not touched.)
echo 2 >"$work/never"
never='mount --bind "$0" /proc/sys/vm/overcommit_memory && exec "$@"'
if [ "$(id -u)" -eq 0 ] && unshare -m sh -c "$never" "$work/never" true 2>/dev/null; then
    expect_same "early_late: preloaded, overcommit_memory is 2" \
        unshare -m sh -c "$never" "$work/never" env EXPECT_OURS=1 LD_PRELOAD="$lib" "$work/limited"
else
    echo "skipped early_late: a mount namespace needs root"
fi
# No descriptors at all: nothing is printed, nothing crashes.
if env LD_PRELOAD="$lib" "$work/limited" 0<&- 1<&- 2<&-; [ $? -eq 111 ]; then
    ok "early_late: preloaded, closed descriptors"
else
    not_ok "early_late: preloaded, closed descriptors"
fi

# Four threads of Python, one after another and at once, where libc's malloc has room for them.
python=/usr/bin/python3
cat >"$work/threads.py" <<'PYTHON'
import os, sys, threading, time
at_once = sys.argv[1] == "at_once"
barrier = threading.Barrier(5)
def work():
    kept = [bytearray(100) for _ in range(1000)]
    if at_once:
        barrier.wait()
threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
    if not at_once:
        thread.join()
        while len(os.listdir("/proc/self/task")) > 1: # joined in Python's eyes, while its stack is still there
            time.sleep(0.001)
if at_once:
    barrier.wait()
print("four threads")
PYTHON
for how in 40000:in_turn 60000:in_turn 80000:in_turn 100000:in_turn 60000:at_once 80000:at_once 100000:at_once; do
    [ -x $python ] && [ -z "${TRACEALLOC:-}" ] || continue # the tables of a traced process want address space, too
    limited="ulimit -v ${how%:*}; exec $python $work/threads.py ${how#*:}"
    run sh -c "$limited" || continue
    mv "$work/got" "$work/expected"
    expect_same "python3: preloaded, four threads ${how#*:} in ${how%:*} KiB" env LD_PRELOAD="$lib" sh -c "$limited"
done

# Set-uid: the settings of whoever starts it do not count.
# (A copy of the library, since the other user may not be able to reach the build tree.)
soname=$(readelf -d "$lib" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
cp "$lib" "$work/${soname:-$(basename "$lib")}"
chmod 755 "$work" "$work/${soname:-$(basename "$lib")}"
compile settings.c "$work/settings" -L "$libdir" -ltracealloc -Wl,-rpath,"$work"
if TRACEALLOC_OPTIONS=nonsense "$work/settings" >"$work/got" 2>&1; [ $? -eq 1 ]; then
    ok "settings: ordinary program obeys"
else
    not_ok "settings: ordinary program obeys" "$work/got"
fi
if [ "$(id -u)" -eq 0 ] && chown nobody "$work/settings" && chmod 4755 "$work/settings" &&
    "$work/settings" 2>/dev/null | grep -q secure; then
    if TRACEALLOC_OPTIONS=nonsense TRACEALLOC=1 "$work/settings" >"$work/got" 2>&1 && grep -qx secure "$work/got"; then
        ok "settings: set-uid program is not steered"
    else
        not_ok "settings: set-uid program is not steered" "$work/got"
    fi
else
    echo "skipped settings: set-uid needs root and a file system that honours it"
fi

echo "$passed ok, $failed not ok"
[ "$failed" -eq 0 ]
