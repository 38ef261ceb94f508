#!/bin/bash
# aarch64_suite.sh: the unit tests of base, trace, alloc and snapshot, built for aarch64 and run under qemu-user: with
# nothing traced, one frame, a few and whole stacks. Skipped (77) where there is no cross compiler, no emulator, or
# Debian's arm64 packages cannot be fetched.
#
#   tests/integration/hosts/aarch64_suite.sh CMAKE-ARGUMENT…
#
# Left out: what only x86-64 has (test_cfi's registers, the assembly of test_modules, test_kept_stacks and test_reclaim);
# what the emulator does not do (programs that run themselves: test_misuse, test_snapshot_triggers, one of
# test_domain_rules; limits and flags of mappings: test_base_memory, one of test_entry_points; the frames of its
# signals: one of test_capture_property).
set -euo pipefail
cd "$(dirname "$0")/../../.."
command -v aarch64-linux-gnu-g++ >/dev/null && command -v qemu-aarch64 >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The libraries of the other architecture, beside the system and without telling it.
fetch() {
    mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial" "$work/packages"
    : >"$work/apt/status"
    local apt=(apt-get -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o "Dir::State=$work/apt"
        -o "Dir::Cache=$work/apt" -o "Dir::State::status=$work/apt/status" -o APT::Sandbox::User=root)
    "${apt[@]}" update && (cd "$work/packages" &&
        "${apt[@]}" download libzstd-dev libiberty-dev libelf-dev libdw-dev libjson-c-dev libncurses-dev zlib1g-dev) || return 1
    for package in "$work"/packages/*.deb; do dpkg -x "$package" "$work/root"; done
}
fetch >"$work/log" 2>&1 || { echo 'packages of arm64 cannot be fetched'; tail -2 "$work/log"; exit 77; }
include=$work/include archives=$work/root/usr/lib/aarch64-linux-gnu
mkdir "$include"
cp -r "$work"/root/usr/include/{libiberty,json-c,elfutils,*elf*.h,*curses*.h,dwarf.h,z*.h} "$include/"
cp -r "$work"/root/usr/include/aarch64-linux-gnu/* "$include/" 2>/dev/null || :
cat >"$work/toolchain.cmake" <<'TEXT'
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
TEXT
libraries=()
for pair in zstd:zstd iberty:iberty elf:elf dw:dw jsonc:json-c ncurses:ncursesw zlib:z; do
    libraries+=("-DTA_${pair%:*}_INCLUDE=$include" "-DTA_${pair%:*}_LIBRARY=$archives/lib${pair#*:}.a")
done
anywhere='base_bytes base_hash base_index base_message rule_names rule line_numbers new_delete random_shadow
    entry_points_ta random_shadow_ta domain_tag domains domains_destroy torture wild_frees handlers peak trace_faults
    snapshot_data snapshot_take snapshot_write pace describe capture_property'
# shellcheck disable=SC2086 # names are words
if ! { cmake -S . -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_TOOLCHAIN_FILE=$work/toolchain.cmake" \
    -DTRACEALLOC_LTO=OFF "${libraries[@]}" "$@" &&
    cmake --build "$work/build" -j "$(nproc)" --target $(printf 'test_%s ' $anywhere); } >"$work/log" 2>&1; then
    grep -E 'error|FAILED' "$work/log" | head -20
    exit 1
fi

export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu TA_TEST_OPERATIONS=200000
good=0 bad=0
try() { # frames test [argument…]
    local frames=$1 test=$2
    shift 2
    if TRACEALLOC=$frames timeout 900 qemu-aarch64 "$work/build/tests/test_$test" "$@" >"$work/log" 2>&1; then
        good=$((good + 1))
    else
        echo "FAILED test_$test $* with TRACEALLOC=$frames"
        { grep -E ':FAIL|rror' "$work/log" || tail -n 3 "$work/log"; } | head -5
        bad=$((bad + 1))
    fi
}

for test in $anywhere; do
    case $test in
    describe) TRACEALLOC_OPTIONS=remember_frees=1000 try 20 describe ;;
    capture_property) try '' capture_property emulated ;;
    domains | domains_destroy | new_delete | random_shadow)
        for frames in '' 1 8 65535; do try "$frames" "$test"; done ;;
    *) try '' "$test" ;;
    esac
done
echo "$good runs passed, $bad failed"
[ $bad -eq 0 ]
