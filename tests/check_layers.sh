#!/bin/sh
# check_layers.sh: the module law. Data flows alloc → trace → snapshot → analysis; includes may only follow it.
#
#   check_layers.sh [ROOT]     prints every include that breaks the law; exit 1 when there is one
#
# Written from the root, an include names its module, so the law can be read from the text. A folder that does not
# exist is no breach. Macros as include names are refused: they would hide what is included.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1
broken=0

# deny FILES PATTERN WHY: no file may include a path that matches.
deny() {
    files=$(find $1 -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp' 2>/dev/null)
    [ -n "$files" ] || return 0
    # shellcheck disable=SC2086 # a list of paths without blanks
    if grep -nHE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[\"<]($2)" $files; then
        echo "    ^ $3"
        broken=1
    fi
}

# The files of one folder only, without its sub-folders.
own() { echo "$1 -maxdepth 1"; }

deny base '(trace|alloc|snapshot|analysis)/' 'base uses nothing of ours'
deny trace '(alloc|snapshot|analysis)/' 'trace stands on base alone'
deny trace 'mimalloc' 'the tracer has its own memory'
deny alloc '(snapshot|analysis)/' 'alloc calls trace and nothing further along'
deny snapshot 'analysis/' 'nothing calls forward: snapshot does not know its readers'
deny "$(own 'snapshot/read*')" '(alloc|trace)/|mimalloc' 'a reader needs no runtime'
deny "$(own 'snapshot/format*')" '(alloc|trace)/|mimalloc' 'the format needs no runtime'
deny "$(own 'snapshot/codec*')" '(alloc|trace)/|mimalloc' 'the codec needs no runtime'
for file in buffer build chunks decode encode input object predict recording sink tables view; do
    deny "$(own "snapshot/$file.*")" '(alloc|trace)/|mimalloc' 'reading a snapshot needs no runtime'
done
deny analysis '(alloc|trace)/|mimalloc' 'analysis sees only files and models'
deny analysis '(snapshot/write|zstd)' 'analysis reads through the reader'
deny analysis/cli '(base|trace|alloc|snapshot)/|analysis/[^c]|elfutils/|zstd' 'the program uses the public headers only'
deny include '(base|trace|alloc|snapshot|analysis)/' 'a public header stands alone'
deny 'base trace alloc snapshot analysis' '\.\.?/' 'includes are written from the root'
deny 'base trace alloc snapshot analysis include' '(tests|bench|examples)/' 'products do not use test code'

# Shared helpers are no way around the law: every quoted include names a folder, and no source file is included but
# mimalloc's own.
for folder in base trace alloc snapshot analysis; do
    [ -d $folder ] || continue
    if grep -rnHE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include[[:space:]]*("[^"/]*"|[A-Z_])' $folder |
        grep -vE '"(tracealloc|mimalloc|mimalloc-stats)\.h"|"static\.c"'; then
        echo "    ^ an include must name its folder"
        broken=1
    fi
done
exit $broken
