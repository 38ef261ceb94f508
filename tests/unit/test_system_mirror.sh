#!/bin/sh
# test_system_mirror.sh: the private package download finds the mirror in either form of apt's configuration, refuses
# what it cannot verify, and leaves the system's apt alone. No network is needed: the mirror is a folder.
set -u
script=$(cd "$(dirname "$0")/../.." && pwd)/cmake/debian-package.sh
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || exit 77
ls /usr/share/keyrings/debian-archive-keyring.* >/dev/null 2>&1 || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-none}")

# An apt configuration that reads only our sources; it stands in for the system's.
mkdir -p "$work/sources" "$work/mirror/dists/forky"
cat >"$work/apt.conf" <<CONF
Dir::Etc::sourcelist "$work/none";
Dir::Etc::sourceparts "$work/sources";
CONF

# names SOURCES-FILE TEXT MIRROR: with this configuration the script asks that mirror for the suite.
names() {
    rm -f "$work/sources"/*
    printf '%b\n' "$2" >"$work/sources/$1"
    said=$(APT_CONFIG=$work/apt.conf sh "$script" --mirrors 2>&1)
    if [ "$said" != "$3" ]; then
        printf 'from %s:\n%b\nexpected: %s\nfound:    %s\n' "$1" "$2" "$3" "$said"
        failures=$((failures + 1))
    fi
}

names one.list "deb http://one.invalid/debian $codename main" 'http://one.invalid/debian'
names options.list "deb [arch=amd64 trusted=yes] http://two.invalid/debian/ $codename main contrib" \
    'http://two.invalid/debian'
deb822="Types: deb\nComponents: main\nURIs: http:"
names three.sources "$deb822//three.invalid/debian\nSuites: $codename $codename-updates" \
    'http://three.invalid/debian'
security="$deb822//four.invalid/debian-security\nSuites: $codename-security"
names security.sources "$security\n\n$deb822//four.invalid/debian\nSuites: $codename" \
    'http://four.invalid/debian'
names order.list "deb http://other.invalid/tools stable main\ndeb http://five.invalid/debian $codename main" \
    'http://five.invalid/debian
http://other.invalid/tools'
names off.list "# deb http://off.invalid/debian $codename main" ''

# An unsigned archive is refused.
printf 'deb file:%s/mirror %s main\n' "$work" "$codename" >"$work/sources/off.list"
printf 'Origin: Debian\nSuite: forky\nCodename: forky\nComponents: main\nArchitectures: amd64\n' \
    >"$work/mirror/dists/forky/Release"
if said=$(APT_CONFIG=$work/apt.conf sh "$script" emscripten "$work/out" forky 2>&1); then
    echo "an unsigned archive was taken"
    failures=$((failures + 1))
elif ! echo "$said" | grep -q 'not signed'; then
    echo "refused, but not for the signature: $said"
    failures=$((failures + 1))
fi
[ ! -e "$work/out" ] && [ ! -e "$work/out.apt" ] || { echo "something was left behind"; failures=$((failures + 1)); }

exit "$failures"
