#!/usr/bin/env bash
# test_options_table: docs/options.md names exactly the keys that alloc/options.c knows.
set -eu
cd "$(dirname "$0")/../.."
known=$(sed -n '/} options\[\] = {/,/^};/s/^ *{"\([a-z_]*\)", set_.*/\1/p' alloc/options.c | sort)
told=$(sed -n '/^## TRACEALLOC_OPTIONS/,$s/^| `\([a-z_]*\)` .*/\1/p' docs/options.md | sort)
[ -n "$known" ] || { echo "no keys found in alloc/options.c"; exit 1; }
if [ "$known" != "$told" ]; then
    echo "alloc/options.c and docs/options.md differ (left: only known, right: only told):"
    comm -3 <(printf '%s\n' "$known") <(printf '%s\n' "$told")
    exit 1
fi
echo "$(printf '%s\n' "$known" | wc -l) keys, all told"
