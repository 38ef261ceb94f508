#!/bin/bash
# prove.sh: the Debian packages: without an error of lintian; installed in a Debian that has nothing else of this; the
# tutorial and a user's project work with them; removed without a trace.
#
#   tests/packages/prove.sh [SUITE [FOLDER]]     SUITE: the one that the packages are built in (bookworm); FOLDER: of the
#                                                chroot (build/chroot-packages-SUITE)
#
# The packages are made of the working tree, by ./dev package. Needs root, debootstrap, lintian.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
suite=${1:-bookworm}
root=${2:-$here/build/chroot-packages-$suite}
command -v lintian >/dev/null || { echo "no lintian here"; exit 77; }

# shellcheck source=tests/chroot/chroot.sh
. "$here/tests/chroot/chroot.sh"
make_chroot "$suite" "$root" gcc,g++,libc6-dev,cmake,ninja-build,meson,pkg-config,python3,man-db,procps

echo "== packages"
cd "$here"
DEBFULLNAME=tracealloc DEBEMAIL=packages@tracealloc.org ./dev package >"$root.package.log" 2>&1 ||
    { tail -n 30 "$root.package.log"; exit 1; }
lintian --fail-on error --suppress-tags initial-upload-closes-no-bugs build/package/*.deb 2>&1 | grep -v '^running with root' || :
lintian --fail-on error build/package/*.deb >/dev/null 2>&1 || { echo "FAILED: lintian has errors"; exit 1; }

echo "== installed"
run_inside 'apt-get -q -y purge "libtracealloc*" tracealloc >/dev/null 2>&1; rm -rf /root/packages /root/tests' || :
run_inside 'apt-get -q -y update && apt-get -q -y install --no-install-recommends libdw-dev libelf-dev libjson-c-dev zlib1g-dev sensible-utils' \
    >"$root.apt.log" 2>&1 || { tail -n 20 "$root.apt.log"; exit 1; }
list='find / -xdev \( -path /proc -o -path /root -o -path /tmp -o -path "/var/*" -o -path /run \) -prune -o -print | grep -v "\.pyc$" | sort'
run_inside "$list" >"$root.before"
mkdir -p "$root/root/packages" "$root/root/tests"
cp build/package/*.deb "$root/root/packages"
cp -r tests/packages tests/cli examples docs "$root/root/tests"
run_inside 'apt-get -q -y install --no-install-recommends /root/packages/*.deb' >"$root.apt.log" 2>&1 ||
    { tail -n 20 "$root.apt.log"; exit 1; }
run_inside 'tracealloc --version && ldconfig -p | grep -q libtracealloc.so.0 && man -w tracealloc ta_start ta_reset_peak >/dev/null'
run_inside 'test -s /usr/share/gdb/auto-load$(readlink -f /usr/lib/*/libtracealloc.so.0)-gdb.py' ||
    { echo 'FAILED: gdb has nothing to load with the library'; exit 1; }

echo "== the tutorial"
run_inside 'cd /root/tests && python3 cli/transcript.py /usr/bin docs/tutorial.md --docs server.c=examples/server.c'

echo "== a user's project"
run_inside 'bash /root/tests/packages/check_project.sh /root/tests/packages/project'

echo "== removed"
run_inside 'apt-get -q -y purge tracealloc "libtracealloc*"' >"$root.apt.log" 2>&1 || { tail -n 20 "$root.apt.log"; exit 1; }
run_inside "$list" >"$root.after"
if ! diff "$root.before" "$root.after" >"$root.diff"; then
    echo "FAILED: left behind or taken along:"
    grep '^[<>]' "$root.diff" | head -20
    exit 1
fi
echo "packages of $suite: sound, installed, used, removed without a trace"
