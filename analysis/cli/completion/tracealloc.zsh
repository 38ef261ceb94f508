#compdef tracealloc
# zsh completion of tracealloc; made by tests/cli/manual.py
_tracealloc() {
    local -a commands=(
        'run:run a program and record what it allocates'
        'top:list who holds the memory, largest first'
        'diff:compare two snapshots group by group, largest change first'
        'tree:show the calling tree with what each branch holds'
        'flame:draw a flame graph (SVG) for a browser; with two files one of the differences'
        'biggest:show the stack that holds most memory, with its source lines'
        'list:list the entries of a recording - when, how much was live, the peak'
        'info:say what is in a recording - program, times, options, counts, losses, modules'
        'domains:list the domains - live, peak, totals, limits'
        'pretty:print the pretty top of tracemallocs documentation'
        'stats:group the live memory of a snapshot and list the groups, largest first'
        'filter:write a snapshot that keeps only some of the traces'
        'symbolize:store files, lines and functions in a snapshot, so that it can be read elsewhere'
        'check:read a whole recording and say what is wrong with it, and where'
        'import:make a snapshot from traces in JSON'
        'export:write a snapshot in another format'
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
    run) _arguments '--follow' '--help' '--interval' '--nframe' '--no-follow' '--output=:file:_files' '--peak' '--quiet' '--rules=:file:_files' '--sample' '--signal=:value:(USR1 USR2 HUP PROF URG)' '--top' '*::program:_normal' ;;
    top) _arguments '--by=:value:(line function file module traceback domain thread)' '--color=:value:(auto always never)' '--csv' '--cumulative' '--help' '--json' '--sort=:value:(live total count calls temporary peak)' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    diff) _arguments '--by=:value:(line function file module traceback domain thread)' '--color=:value:(auto always never)' '--csv' '--cumulative' '--grown' '--help' '--json' '--released' '--sort=:value:(live total count calls temporary peak)' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    tree) _arguments '--bottom-up' '--color=:value:(auto always never)' '--csv' '--depth' '--help' '--json' '--min' '--sort=:value:(live total count calls temporary peak)' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    flame) _arguments '--bottom-up' '--help' '--min' '--sort=:value:(live total count calls temporary peak)' '--spec=:file:_files' '--title' '--where' '*:recording:_files' ;;
    biggest) _arguments '--csv' '--help' '--json' '--sort=:value:(live total count calls temporary peak)' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    list) _arguments '--color=:value:(auto always never)' '--csv' '--help' '--json' '*:recording:_files' ;;
    info) _arguments '--color=:value:(auto always never)' '--csv' '--help' '--json' '*:recording:_files' ;;
    domains) _arguments '--color=:value:(auto always never)' '--csv' '--help' '--json' '*:recording:_files' ;;
    pretty) _arguments '--csv' '--help' '--json' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    stats) _arguments '--csv' '--cumulative' '--help' '--json' '--key=:value:(lineno filename traceback function module domain thread)' '--limit' '--sort=:value:(live total count calls temporary peak)' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    filter) _arguments '--help' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    symbolize) _arguments '--help' '*:recording:_files' ;;
    check) _arguments '--csv' '--help' '--json' '*:recording:_files' ;;
    import) _arguments '--help' '*:recording:_files' ;;
    export) _arguments '--csv' '--format=:value:(pprof folded speedscope csv jsonl json python)' '--help' '--json' '--python' '--sort=:value:(live total count calls temporary peak)' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    esac
}
_tracealloc "$@"
