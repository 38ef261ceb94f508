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

[ "$(id -u)" -eq 0 ] || { echo "prove.sh: must be root to make a chroot" >&2; exit 77; }
command -v debootstrap >/dev/null || { echo "prove.sh: no debootstrap here" >&2; exit 77; }
mirror=$(sh "$here/cmake/debian-package.sh" --mirrors | head -n 1)
[ -n "$mirror" ] || { echo "prove.sh: the system's apt configuration names no Debian mirror" >&2; exit 77; }

mkdir -p "$root"
root=$(cd "$root" && pwd)
if [ ! -e "$root/etc/os-release" ]; then
    echo "== a minimal $suite with git"
    debootstrap --variant=minbase --include=git "$suite" "$root" "$mirror" >"$root.log" 2>&1 ||
        { tail -n 20 "$root.log" >&2; exit 1; }
fi

cleanup() {
    for mounted in "$root/dev/pts" "$root/proc"; do
        umount "$mounted" 2>/dev/null || umount -l "$mounted" 2>/dev/null || :
    done
}
trap cleanup EXIT
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
# Terminals, as any running Debian has them.
mkdir -p "$root/dev/pts"
mountpoint -q "$root/dev/pts" || mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
rm -f "$root/dev/ptmx"
ln -s pts/ptmx "$root/dev/ptmx"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# A proxy or a certificate of the network this machine lives in is part of its apt configuration: it goes along.
for name in /etc/hosts /etc/apt/apt.conf; do
    [ ! -f "$name" ] || cp "$name" "$root$name"
done
{ grep -rlis proxy /etc/apt/apt.conf.d || :; } | while read -r file; do cp "$file" "$root/etc/apt/apt.conf.d/"; done

echo "== a clone of the last commit"
rm -rf "$root/root/tracealloc" "$root/root/tracealloc.git"
git clone -q --bare "$here" "$root/root/tracealloc.git"
run_inside() {
    chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb CI=true \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} bash -c "$1" </dev/null
}
branch=$(git -C "$here" rev-parse HEAD)
run_inside "git clone -q /root/tracealloc.git /root/tracealloc && cd /root/tracealloc && git checkout -q $branch"

echo "== ./dev test"
status=0
run_inside "cd /root/tracealloc && time ./dev test" || status=$?
exit "$status"
