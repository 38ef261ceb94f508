# chroot.sh: for scripts that work in a Debian of their own; sourced, with `here` as the root of the tree.
#
#   make_chroot SUITE FOLDER PACKAGE[,PACKAGE…]      a minimal Debian, made once; sets `root`; 77 where it cannot be
#   run_inside COMMANDS                              in there, with an environment of nothing
#
# Needs root and debootstrap; the mirror comes from the system's own apt configuration.

cleanup_chroot() {
    for mounted in "$root/dev/pts" "$root/proc" "$root"; do
        umount "$mounted" 2>/dev/null || umount -l "$mounted" 2>/dev/null || :
    done
}

make_chroot() {
    local suite=$1 packages=$3 mirror name file
    root=$2
    [ "$(id -u)" -eq 0 ] || { echo "chroot: must be root to make a chroot" >&2; exit 77; }
    command -v debootstrap >/dev/null || { echo "chroot: no debootstrap here" >&2; exit 77; }
    mirror=$(sh "$here/cmake/debian-package.sh" --mirrors | head -n 1)
    [ -n "$mirror" ] || { echo "chroot: the system's apt configuration names no Debian mirror" >&2; exit 77; }

    mkdir -p "$root"
    root=$(cd "$root" && pwd)
    if [ ! -e "$root/etc/os-release" ]; then
        echo "== a minimal $suite with $packages"
        debootstrap --variant=minbase --include="$packages" "$suite" "$root" "$mirror" >"$root.log" 2>&1 ||
            { tail -n 20 "$root.log" >&2; exit 1; }
    fi

    trap cleanup_chroot EXIT
    mountpoint -q "$root" || mount --bind "$root" "$root" # namespaces are made where the root is a mount
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
}

run_inside() {
    chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb CI=true \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} bash -c "$1" </dev/null
}
