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

deny base '(trace|alloc|snapshot|analysis)/' 'base uses nothing of ours'
deny trace '(alloc|snapshot|analysis)/' 'trace stands on base alone'
deny trace 'mimalloc' 'the tracer has its own memory'
deny alloc '(snapshot|analysis)/' 'alloc calls trace and nothing further along'
deny snapshot 'analysis/' 'nothing calls forward: snapshot does not know its readers'
deny 'snapshot/format snapshot/read' '(alloc|trace)/|mimalloc' 'reading a snapshot needs no runtime'
deny snapshot/format 'snapshot/(read|write|triggers)/' 'the format knows neither side'
deny snapshot/read 'snapshot/(write|triggers)/' 'a reader does not know the writer'
deny snapshot/write 'snapshot/(read|triggers)/' 'the writer knows neither reader nor triggers'
deny analysis '(alloc|trace)/|mimalloc' 'analysis sees only files and models'
deny analysis 'snapshot/write' 'analysis reads through the reader'
# One file unpacks cores; recordings are unpacked by the reader.
if grep -rnE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]zstd' analysis 2>/dev/null |
    grep -v '^analysis/image/unpack\.c:'; then
    echo "    ^ analysis reads through the reader"
    broken=1
fi
# What a reader of memory knows of the library it reads in the process: base/facts.h is the one header of both sides.
deny analysis/image '(alloc|trace)/|mimalloc|snapshot/(write|triggers)/|base/(safepoint|lock|memory)' 'an image is read by what the library publishes'
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

# A name says one place: two files of the products never share one.
twice=$(find base trace alloc snapshot analysis -name '*.[ch]' 2>/dev/null | sed 's#.*/##' | sort | uniq -d)
for name in $twice; do
    find base trace alloc snapshot analysis -name "$name" | sed 's/$/: shares its name/'
    broken=1
done
exit $broken
