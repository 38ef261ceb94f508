# bash completion of tracealloc; made by tests/cli/manual.py
_tracealloc() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} options=
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W 'run top diff tree annotate cost ctl growth gate report watch flame biggest list info domains pretty stats filter symbolize check rules import export take memory leaks why retained --help --version' -- "$current"))
        return
    fi
    if [ "$previous" = = ]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi
    if [ "$current" = = ]; then current=; fi
    case $previous in
    --by) COMPREPLY=($(compgen -W 'own line function file module traceback domain process thread' -- "$current")); return ;;
    --key) COMPREPLY=($(compgen -W 'lineno filename traceback own function module domain thread' -- "$current")); return ;;
    --sort) COMPREPLY=($(compgen -W 'live total count calls temporary peak' -- "$current")); return ;;
    --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
    --format) COMPREPLY=($(compgen -W 'pprof folded speedscope flame text csv jsonl json python' -- "$current")); return ;;
    --signal) COMPREPLY=($(compgen -W 'USR1 USR2 HUP PROF URG' -- "$current")); return ;;
    esac
    case ${COMP_WORDS[1]} in
    run) options='--fail-on-leak --follow --help --interval --leaks --nframe --no-follow --output --peak --quiet --rules --sample --signal --stopped --suppressions --top' ;;
    top) options='--by --callers --color --csv --cumulative --full-names --help --json --no-skip --own --skip --sort --spec --where' ;;
    diff) options='--by --callers --color --csv --cumulative --full-names --grown --help --json --key --no-skip --own --released --skip --sort --spec --where' ;;
    tree) options='--bottom-up --collapse --color --csv --depth --full-names --help --json --min --no-skip --own --skip --sort --spec --where' ;;
    annotate) options='--color --help --json --no-skip --own --skip --source --spec --where' ;;
    cost) options='--for --help --ignore-failure --input --instructions --json --load --markdown --modes' ;;
    ctl) options='--force --hard --help --json' ;;
    growth) options='--by --color --csv --full-names --help --histogram --json --no-skip --own --skip' ;;
    gate) options='--allocations --baseline --by --format --help --json --max-allocations --max-growth --max-live --max-peak --no-leaks --peak --suppressions' ;;
    report) options='--help --no-skip --no-source --open --own --skip --title --together' ;;
    watch) options='--help' ;;
    flame) options='--bottom-up --collapse --full-names --help --min --no-skip --own --skip --sort --spec --title --where' ;;
    biggest) options='--blocks --csv --full-names --help --json --sort --spec --where' ;;
    list) options='--color --csv --help --json' ;;
    info) options='--color --csv --help --json' ;;
    domains) options='--color --csv --help --json' ;;
    pretty) options='--csv --help --json --spec --where' ;;
    stats) options='--by --csv --cumulative --help --json --key --limit --no-skip --own --skip --sort --spec --where' ;;
    filter) options='--help --spec --where' ;;
    symbolize) options='--help' ;;
    check) options='--csv --help --json' ;;
    rules) options='--color --csv --help --json' ;;
    import) options='--help' ;;
    export) options='--csv --format --help --json --python --sort --spec --where' ;;
    take) options='--help --json --no-blocks --no-pause --quiet' ;;
    memory) options='--by --color --flame --help --json --mappings --no-pause --sort' ;;
    leaks) options='--by --color --exact --format --help --json --no-pause --registers --suppressions --tagged --unaligned' ;;
    why) options='--at --brief --color --help --history --json --no-pause --registers --tagged --unaligned' ;;
    retained) options='--blocks --by --color --help --json --no-pause --registers --tagged --unaligned' ;;
    esac
    case $current in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) if [ "${COMP_WORDS[1]}" = run ]; then COMPREPLY=($(compgen -c -- "$current")); fi
       COMPREPLY+=($(compgen -f -- "$current")) ;;
    esac
}
complete -o filenames -F _tracealloc tracealloc
