#!/bin/sh
# example.sh: the examples do what they say: example.sh domains|tracked_pool PROGRAM
set -eu
unset TRACEALLOC TRACEALLOC_OPTIONS
said=$("$2")

expect() {
    echo "$said" | grep -Eq "$1" || {
        echo "expected a line like: $1" >&2
        echo "$said" >&2
        exit 1
    }
}

case $1 in
domains)
    expect '^the cache is half full: 10[0-9]{4} bytes$'
    expect '^cache .* at most +(19|20)[0-9]{4}$' # the limit: 204800
    expect '^parser +[0-9]+ bytes in +501 blocks'
    expect '5000000 bytes went with their requests$'
    ;;
tracked_pool)
    expect '^pool +12288 bytes in 3 pieces, at most 40960 bytes$'
    expect '^device +8388608 bytes in 1 pieces, at most 9437184 bytes$'
    expect 'stack of [1-9][0-9]* frames$'
    ;;
esac
