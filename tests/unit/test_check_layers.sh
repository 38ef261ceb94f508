#!/bin/sh
# test_check_layers.sh: the guard of the module law lets a lawful tree pass and catches each breach planted in it.
set -u
guard=$(cd "$(dirname "$0")/.." && pwd)/check_layers.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0 planted=0

put() { mkdir -p "$(dirname "$work/$1")" && printf '%s\n' "$2" >"$work/$1"; }

lawful_tree() {
    rm -rf "${work:?}"/*
    put base/hash.h '#include <stdint.h>'
    put trace/capture.c '#include "base/hash.h"'
    put alloc/hot.c '#include "trace/capture.h"'
    put alloc/mimalloc.c '#include "static.c"'
    put alloc/public.c '#include "tracealloc.h"'
    put snapshot/write/write.c '#include "alloc/inspect.h"'
    put snapshot/read/read.c '#include "base/bytes.h"'
    put snapshot/format/codec.c '#include <zstd.h>'
    put analysis/model.c '#include "snapshot/read/read.h"'
    put analysis/symbols/symbols.c '#include <elfutils/libdwfl.h>'
    put analysis/cli/main.c '#include "tracealloc/analysis.h"'
    put analysis/cli/cmd_top.c '#include "analysis/cli/command.h"'
    put include/tracealloc/domain.h '#include "tracealloc.h"'
}

# catches FILE INCLUDE-LINE: with this line planted the guard fails and names the file.
catches() {
    planted=$((planted + 1))
    lawful_tree
    put "$1" "$2"
    if said=$("$guard" "$work"); then
        echo "not caught: $1: $2"
        failures=$((failures + 1))
    elif ! echo "$said" | grep -q "^$1:"; then
        echo "caught, but $1 is not named: $said"
        failures=$((failures + 1))
    fi
}

lawful_tree
"$guard" "$work" || { echo "a lawful tree was refused"; failures=1; }
rm -rf "$work/analysis" "$work/snapshot"
"$guard" "$work" || { echo "missing folders were held against the tree"; failures=1; }

catches base/table.c '#include "trace/contexts.h"'
catches base/deep/table.c '  #  include "alloc/header.h"'
catches trace/contexts.c '#include "alloc/header.h"'
catches trace/contexts.c '#include <mimalloc.h>'
catches trace/contexts.h '#include <snapshot/format/format.h>'
catches alloc/hot2.c '#include "snapshot/write/write.h"'
catches alloc/hot2.c '#include "analysis/model.h"'
catches snapshot/write2.c '#include "analysis/model.h"'
catches snapshot/read/check.c '#include "alloc/header.h"'
catches snapshot/read/check.c '#include "trace/unwind/modules.h"'
catches snapshot/format/format.h '#include "trace/unwind/modules.h"'
catches analysis/diff.c '#include "alloc/header.h"'
catches analysis/diff.c '#include "trace/contexts.h"'
catches analysis/diff.c '#include "snapshot/write/write.h"'
catches analysis/cli/cmd_diff.c '#include "base/message.h"'
catches analysis/cli/cmd_diff.c '#include "analysis/model.h"'
catches analysis/cli/cmd_diff.c '#include "snapshot/read/read.h"'
catches analysis/image/pages.c '#include "base/safepoint.h"'
catches analysis/image/pages.c '#include "snapshot/write/live.h"'
catches analysis/symbols/symbols.c '#include <zstd.h>'
catches include/tracealloc/snapshot.h '#include "base/attributes.h"'
catches trace/contexts.c '#include "../alloc/header.h"'
catches trace/contexts.c '#include "header.h"'
catches trace/contexts.c '#include HIDDEN_NAME'
catches alloc/hot2.c '#include "tests/support/fake.h"'
catches snapshot/write/check.c '#include "snapshot/read/read.h"'
catches snapshot/read/check.c '#include "snapshot/write/write.h"'
catches trace/write.c '#include <stdint.h>' # a name that snapshot/write has

[ "$failures" -eq 0 ] && echo "$planted planted breaches caught"
exit "$failures"
