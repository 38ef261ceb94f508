#compdef tracealloc
# zsh completion of tracealloc; made by tests/cli/manual.py
_tracealloc() {
    local -a commands=(
        'run:run a program and record what it allocates'
        'top:list who holds the memory, largest first'
        'diff:compare two snapshots group by group, largest change first'
        'tree:show the calling tree with what each branch holds; with two files what it changed'
        'annotate:show a source with what its lines hold'
        'cost:measure what tracing costs this program - time, memory, instructions'
        'ctl:start and stop tracing in a running process, take snapshots of it'
        'growth:tell leaks from caches and churn - the course of every place over time'
        'gate:say no when memory has grown, or is beyond what is allowed'
        'report:make a page to look at - sizes over time, who holds the memory, flame graph, sources'
        'watch:watch in the terminal what a program holds, while it runs'
        'flame:draw a flame graph (SVG) for a browser; with two files one of the differences'
        'biggest:show the stack that holds most memory, with its source lines'
        'list:list the entries of a recording, or the processes of a run'
        'info:say what is in a recording - program, times, options, counts, losses, modules'
        'domains:list the domains - live, peak, totals, limits'
        'pretty:print the pretty top of tracemallocs documentation'
        'stats:list the groups of live memory as tracemalloc prints them, largest first'
        'filter:write a snapshot that keeps only some of the traces'
        'symbolize:store files, lines and functions in a snapshot, so that it can be read elsewhere'
        'check:read a whole recording and say what is wrong with it, and where'
        'rules:show which functions the rules for domains name, or compile them'
        'import:make a snapshot from traces in JSON'
        'export:write a snapshot in another format'
        'take:take a snapshot of a running process or a core, from outside'
        'memory:say what the resident memory of a process is, to the last page'
        'leaks:find blocks of a process that nothing points to any more'
        'why:say what an address of a process is, and who points to its block'
        'retained:for each place the memory that would go if its blocks went'
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
    run) _arguments '--fail-on-leak' '--follow' '--help' '--interval' '--leaks' '--nframe' '--no-follow' '--output=:file:_files' '--peak' '--quiet' '--rules=:file:_files' '--sample' '--signal=:value:(USR1 USR2 HUP PROF URG)' '--stopped' '--suppressions=:file:_files' '--top' '*::program:_normal' ;;
    top) _arguments '--by=:value:(own line function file module traceback domain process thread)' '--callers' '--color=:value:(auto always never)' '--csv' '--cumulative' '--full-names' '--help' '--json' '--no-skip' '--own' '--skip' '--sort=:value:(live total count calls temporary peak)' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    diff) _arguments '--by=:value:(own line function file module traceback domain process thread)' '--callers' '--color=:value:(auto always never)' '--csv' '--cumulative' '--full-names' '--grown' '--help' '--json' '--key=:value:(lineno filename traceback own function module domain thread)' '--no-skip' '--own' '--released' '--skip' '--sort=:value:(live total count calls temporary peak)' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    tree) _arguments '--bottom-up' '--collapse' '--color=:value:(auto always never)' '--csv' '--depth' '--full-names' '--help' '--json' '--min' '--no-skip' '--own' '--skip' '--sort=:value:(live total count calls temporary peak)' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    annotate) _arguments '--color=:value:(auto always never)' '--help' '--json' '--no-skip' '--own' '--skip' '--source=:file:_files' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    cost) _arguments '--for' '--help' '--ignore-failure' '--input' '--instructions' '--json' '--load' '--markdown' '--modes' '*:recording:_files' ;;
    ctl) _arguments '--force' '--hard' '--help' '--json' '*:recording:_files' ;;
    growth) _arguments '--by=:value:(own line function file module traceback domain process thread)' '--color=:value:(auto always never)' '--csv' '--full-names' '--help' '--histogram' '--json' '--no-skip' '--own' '--skip' '*:recording:_files' ;;
    gate) _arguments '--allocations' '--baseline=:file:_files' '--by=:value:(own line function file module traceback domain process thread)' '--format=:value:(pprof folded speedscope flame text csv jsonl json python)' '--help' '--json' '--max-allocations' '--max-growth' '--max-live' '--max-peak' '--no-leaks' '--peak' '--suppressions=:file:_files' '*:recording:_files' ;;
    report) _arguments '--help' '--no-skip' '--no-source' '--open' '--own' '--skip' '--title' '--together' '*:recording:_files' ;;
    watch) _arguments '--help' '*:recording:_files' ;;
    flame) _arguments '--bottom-up' '--collapse' '--full-names' '--help' '--min' '--no-skip' '--own' '--skip' '--sort=:value:(live total count calls temporary peak)' '--spec=:file:_files' '--title' '--where' '*:recording:_files' ;;
    biggest) _arguments '--blocks' '--csv' '--full-names' '--help' '--json' '--sort=:value:(live total count calls temporary peak)' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    list) _arguments '--color=:value:(auto always never)' '--csv' '--help' '--json' '*:recording:_files' ;;
    info) _arguments '--color=:value:(auto always never)' '--csv' '--help' '--json' '*:recording:_files' ;;
    domains) _arguments '--color=:value:(auto always never)' '--csv' '--help' '--json' '*:recording:_files' ;;
    pretty) _arguments '--csv' '--help' '--json' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    stats) _arguments '--by=:value:(own line function file module traceback domain process thread)' '--csv' '--cumulative' '--help' '--json' '--key=:value:(lineno filename traceback own function module domain thread)' '--limit' '--no-skip' '--own' '--skip' '--sort=:value:(live total count calls temporary peak)' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    filter) _arguments '--help' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    symbolize) _arguments '--help' '*:recording:_files' ;;
    check) _arguments '--csv' '--help' '--json' '*:recording:_files' ;;
    rules) _arguments '--color=:value:(auto always never)' '--csv' '--help' '--json' '*:recording:_files' ;;
    import) _arguments '--help' '*:recording:_files' ;;
    export) _arguments '--csv' '--format=:value:(pprof folded speedscope flame text csv jsonl json python)' '--help' '--json' '--python' '--sort=:value:(live total count calls temporary peak)' '--spec=:file:_files' '--where' '*:recording:_files' ;;
    take) _arguments '--help' '--json' '--no-blocks' '--no-pause' '--quiet' '*:recording:_files' ;;
    memory) _arguments '--by=:value:(own line function file module traceback domain process thread)' '--color=:value:(auto always never)' '--flame' '--help' '--json' '--mappings' '--no-pause' '--sort=:value:(live total count calls temporary peak)' '*:recording:_files' ;;
    leaks) _arguments '--by=:value:(own line function file module traceback domain process thread)' '--color=:value:(auto always never)' '--exact' '--format=:value:(pprof folded speedscope flame text csv jsonl json python)' '--help' '--json' '--no-pause' '--registers' '--suppressions=:file:_files' '--tagged' '--unaligned' '*:recording:_files' ;;
    why) _arguments '--at' '--brief' '--color=:value:(auto always never)' '--help' '--history' '--json' '--no-pause' '--registers' '--tagged' '--unaligned' '*:recording:_files' ;;
    retained) _arguments '--blocks' '--by=:value:(own line function file module traceback domain process thread)' '--color=:value:(auto always never)' '--help' '--json' '--no-pause' '--registers' '--tagged' '--unaligned' '*:recording:_files' ;;
    esac
}
_tracealloc "$@"
