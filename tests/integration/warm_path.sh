#!/bin/sh
# warm_path.sh: what malloc and free execute when nothing is new has no locked instruction, no system call and no call
# out of the library.
#
#   tests/integration/warm_path.sh LIBRARY
#
# The warm path is the functions below, without the parts that the compiler moved away as cold; link-time optimisation
# may have put others into them and adds suffixes to their names.
set -eu
library=$1
command -v objdump >/dev/null || exit 77
case $(uname -m) in x86_64) ;; *) exit 77 ;; esac

warm='ta_malloc malloc_plain ta__malloc_stack_of malloc_stack_missed ta__malloc_one_frame other_site malloc_sampled ta_free
    ta__free_plain ta__free_traced malloc_stack_other ta__kept_search ta__capture_by_walk
    walk_and_remember'
objdump -d --no-show-raw-insn "$library" | awk -v names="$warm" '
    BEGIN { count = split(names, list, " "); for (i = 1; i <= count; i++) wanted[list[i]] = 1 }
    /^[0-9a-f]+ <.*>:$/ {
        name = $2; gsub(/[<>:]/, "", name)
        base = name; sub(/\..*/, "", base)
        sub(/^__libc_/, "", base)
        alias = (base == "malloc") ? "ta_malloc" : (base ~ /^(free|cfree|free_sized|free_aligned_sized|_Zd.*)$/) ? "ta_free" : base
        in_it = (alias in wanted) && name !~ /\.cold/
        if (in_it) { seen[alias] = 1; at = name }
        next
    }
    in_it && NF > 1 {
        instructions++
        text = $0; sub(/^ *[0-9a-f]+:\t/, "", text)
        if (text ~ /(^|[ \t])lock([ \t]|$)/ || text ~ /^xchg .*\(/) complain("a locked instruction")
        if (text ~ /^(syscall|sysenter|int )/) complain("a system call")
        if (text ~ /@plt/ || text ~ /^call +\*/) complain("a call out of the library")
        if (text ~ /^(rep |mfence|lfence|sfence|cpuid|rdtsc)/) complain("a slow instruction")
    }
    function complain(what) { print at ": " what ": " text; bad++ }
    END {
        for (name in wanted) if (!(name in seen)) { print "there is no function " name; bad++ }
        print instructions " instructions, " bad + 0 " complaints"
        exit bad != 0
    }'
