#!/bin/bash
# installed.sh: a user's project with what cmake --install lays down, after it was moved elsewhere.
#
#   tests/packages/installed.sh BUILD-FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/first" >"$work/log" || { cat "$work/log"; exit 1; }
mv "$work/first" "$work/second"
bash "$here/tests/packages/check_project.sh" "$here/tests/packages/project" "$work/second"
