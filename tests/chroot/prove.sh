#!/bin/bash
# prove.sh: the two-command promise, kept in a Debian that has nothing but git: a debootstrap chroot, a clone, ./dev
# test.
#
#   prove.sh SUITE [FOLDER]      SUITE: bookworm or trixie; FOLDER: where the chroot is made (default:
#   build/chroot-SUITE)
#
# Needs root (chroot, mount) and debootstrap. The mirror comes from the system's own apt configuration. What is cloned
# is the last commit, not the working tree. An existing chroot is used again with the packages it has by then; remove
# FOLDER for a proof from nothing. Exit status and last line are those of ./dev test in there.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
suite=${1:?usage: prove.sh SUITE [FOLDER]}
root=${2:-$here/build/chroot-$suite}

# shellcheck source=tests/chroot/chroot.sh
. "$here/tests/chroot/chroot.sh"
make_chroot "$suite" "$root" git

echo "== a clone of the last commit"
rm -rf "$root/root/tracealloc" "$root/root/tracealloc.git"
git clone -q --bare "$here" "$root/root/tracealloc.git"
branch=$(git -C "$here" rev-parse HEAD)
run_inside "git clone -q /root/tracealloc.git /root/tracealloc && cd /root/tracealloc && git checkout -q $branch"

echo "== ./dev test"
status=0
run_inside "cd /root/tracealloc && time ./dev test" || status=$?
exit "$status"
