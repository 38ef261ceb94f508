#!/bin/sh
# run.sh: the story of tracealloc on the bundled example: trace, see who holds the memory, see what grew, get a picture.
#
#   examples/run.sh BUILD [REQUESTS]
set -eu
build=$(cd "$1" && pwd)
requests=${2:-3000}
PATH=$build/bin:$PATH
folder=$build/example
mkdir -p "$folder"
cp "$(dirname "$0")/server.c" "$folder"
cd "$folder"
"${CC:-cc}" -g -O1 -o server server.c
rm -f server.ta server.svg

step() { printf '\n\033[1m$ %s\033[0m\n' "$*" | if [ -t 1 ]; then cat; else sed 's/\x1b\[[0-9]*m//g'; fi; "$@"; }

echo "A server answers $requests requests. It is an ordinary program, built without tracealloc."
step tracealloc run --interval=0.25 --output=server.ta -- ./server "$requests" 500

printf '\nWho holds the memory now?\n'
step tracealloc top server.ta -n 5

printf '\nWhat of it grows, and how?\n'
step tracealloc growth server.ta -n 3

printf '\nA picture:\n'
step tracealloc flame server.ta -o server.svg
printf '\nOpen %s in a browser. The recording is %s\n' "$folder/server.svg" "$folder/server.ta"
