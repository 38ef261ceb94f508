# bash completion of tracealloc; made by tests/cli/manual.py
_tracealloc() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} options=
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W 'run top diff tree flame biggest list info domains pretty stats filter symbolize check import export --help --version' -- "$current"))
        return
    fi
    if [ "$previous" = = ]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi
    if [ "$current" = = ]; then current=; fi
    case $previous in
    --by) COMPREPLY=($(compgen -W 'line function file module traceback domain thread' -- "$current")); return ;;
    --key) COMPREPLY=($(compgen -W 'lineno filename traceback function module domain thread' -- "$current")); return ;;
    --sort) COMPREPLY=($(compgen -W 'live total count calls temporary peak' -- "$current")); return ;;
    --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
    --format) COMPREPLY=($(compgen -W 'pprof folded speedscope csv jsonl json python' -- "$current")); return ;;
    --signal) COMPREPLY=($(compgen -W 'USR1 USR2 HUP PROF URG' -- "$current")); return ;;
    esac
    case ${COMP_WORDS[1]} in
    run) options='--follow --help --interval --nframe --no-follow --output --peak --quiet --rules --sample --signal --top' ;;
    top) options='--by --color --csv --cumulative --help --json --sort --spec --where' ;;
    diff) options='--by --color --csv --cumulative --grown --help --json --released --sort --spec --where' ;;
    tree) options='--bottom-up --color --csv --depth --help --json --min --sort --spec --where' ;;
    flame) options='--bottom-up --help --min --sort --spec --title --where' ;;
    biggest) options='--csv --help --json --sort --spec --where' ;;
    list) options='--color --csv --help --json' ;;
    info) options='--color --csv --help --json' ;;
    domains) options='--color --csv --help --json' ;;
    pretty) options='--csv --help --json --spec --where' ;;
    stats) options='--csv --cumulative --help --json --key --limit --sort --spec --where' ;;
    filter) options='--help --spec --where' ;;
    symbolize) options='--help' ;;
    check) options='--csv --help --json' ;;
    import) options='--help' ;;
    export) options='--csv --format --help --json --python --sort --spec --where' ;;
    esac
    case $current in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) if [ "${COMP_WORDS[1]}" = run ]; then COMPREPLY=($(compgen -c -- "$current")); fi
       COMPREPLY+=($(compgen -f -- "$current")) ;;
    esac
}
complete -o filenames -F _tracealloc tracealloc
