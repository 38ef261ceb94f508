#!/bin/sh
# debian-package.sh: unpacks one file of Debian's archive into a folder, without touching the system's apt.
#
#   debian-package.sh PACKAGE DESTINATION SUITE…
#   debian-package.sh --mirrors                    prints the mirrors that it would use
#
# The mirror is the one that the system's own apt configuration names; everything else (sources, lists, cache, state)
# is private and lives in DESTINATION.apt for the time of the call. apt checks the archive's signature with Debian's
# own keyring, then the index by the signed hash, then the package by the index. The suites are tried in order. Needs
# no root.
set -eu

say() { echo "debian-package: $*" >&2; }

mirrors_only=false
if [ "${1:-}" = --mirrors ]; then
    mirrors_only=true
    set -- - "$(mktemp -u)"
fi
[ $# -ge 2 ] || { say "usage: debian-package.sh PACKAGE DESTINATION SUITE…"; exit 2; }
package=$1 destination=$2
shift 2

for tool in apt-get dpkg-deb; do
    command -v "$tool" >/dev/null || { say "no $tool here: not a Debian system"; exit 1; }
done

keyring=
for candidate in /usr/share/keyrings/debian-archive-keyring.gpg /usr/share/keyrings/debian-archive-keyring.pgp; do
    [ -z "$keyring" ] && [ -r "$candidate" ] && keyring=$candidate
done
[ -n "$keyring" ] || { say "no Debian keyring (package debian-archive-keyring)"; exit 1; }

work=$destination.apt
rm -rf "$work"
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/log"
work=$(cd "$work" && pwd)
trap 'rm -rf "$work"' EXIT
: >"$work/status"

# Prints the mirrors of the configuration, one per line, the system's own release first. `apt-get update --print-uris`
# reads every form of source list there is, and answers without having downloaded anything.
system_mirrors() {
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    apt-get update --print-uris -o Dir::State="$work/state" -o Dir::Cache="$work/cache" 2>/dev/null |
        sed -n "s|^'\(.*\)/dists/\([^/]*\)/InRelease'.*|\2 \1|p" | grep -v -e '-security ' >"$work/mirrors" || :
    { grep "^$codename " "$work/mirrors" || :; grep -v "^$codename " "$work/mirrors" || :; } |
        cut -d' ' -f2- | awk '!seen[$0]++'
}

# A mirror that stands still (an archive of a date) is good enough: the caller holds every file to a recorded hash, so
# an index that is past its date cannot slip in anything old. The signature is checked all the same.
private_apt() {
    set -- -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts="$work/none" \
        -o Dir::Etc::preferences="$work/none" -o Dir::Etc::preferencesparts="$work/none" \
        -o Dir::State="$work/state" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" \
        -o Dir::Log="$work/log" -o Acquire::Languages=none -o Acquire::Check-Valid-Until=false \
        -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 \
        -o APT::Update::Error-Mode=any -o APT::Update::Post-Invoke= -o APT::Update::Post-Invoke-Success= \
        -o APT::Sandbox::User="$(id -un)" -o Dpkg::Use-Pty=0 -q "$@"
    apt-get "$@"
}

# One suite of one mirror: the index, the package, its files.
take() {
    mirror=$1 suite=$2
    rm -rf "$work/state/lists" "$work"/*.deb
    mkdir -p "$work/state/lists/partial"
    echo "deb [signed-by=$keyring] $mirror $suite main" >"$work/sources.list"
    say "taking $package from $suite at the system's mirror"
    (cd "$work" && private_apt update && private_apt download "$package") >"$work/out" 2>&1 || return 1
    rm -rf "$destination"
    mkdir -p "$destination"
    dpkg-deb -x "$work/$package"_*.deb "$destination"
}

mirrors=$(system_mirrors)
if $mirrors_only; then
    [ -z "$mirrors" ] || echo "$mirrors"
    exit 0
fi
[ -n "$mirrors" ] || { say "the system's apt configuration names no Debian mirror"; exit 1; }
for suite in "$@"; do
    for mirror in $mirrors; do
        take "$mirror" "$suite" && exit 0
        sed 's/^/    /' "$work/out" >&2
    done
done
say "no suite of $* gave $package"
exit 1
