#!/bin/sh
# endurance.sh: what is done very often takes no more memory than at first. endurance.sh PROGRAM PLUGIN [WHAT TIMES]…
#
# PROGRAM is endurance/endurance.c, which says what there is; whole stacks are traced, but where it starts and stops.
set -eu
program=$1
plugin=$2
shift 2
said=$(mktemp)
trap 'rm -f "$said"' EXIT
while [ $# -ge 2 ]; do
    what=$1 times=$2
    shift 2
    if [ "$what" = starts ]; then
        unset TRACEALLOC
    else
        export TRACEALLOC=65535
    fi
    if ! "$program" "$what" "$times" "$plugin" >"$said"; then
        cat "$said" >&2
        echo "$what, $times times: the memory is not flat" >&2
        exit 1
    fi
    echo "$what, $times times: $(tail -n 1 "$said")"
done
