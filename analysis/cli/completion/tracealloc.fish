# fish completion of tracealloc; made by tests/cli/manual.py
complete -c tracealloc -n __fish_use_subcommand -f -a run -d 'run a program and record what it allocates'
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l fail-on-leak
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l follow
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l interval
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l leaks
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l nframe
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l no-follow
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l output -r
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l peak
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l quiet
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l rules -r
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l sample
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l signal -x -a 'USR1 USR2 HUP PROF URG'
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l stopped
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l suppressions -r
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l top
complete -c tracealloc -n __fish_use_subcommand -f -a top -d 'list who holds the memory, largest first'
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l by -x -a 'own line function file module traceback domain process thread'
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l callers
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l color -x -a 'auto always never'
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l cumulative
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l full-names
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l no-skip
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l own
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l skip
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l sort -x -a 'live total count calls temporary peak'
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l spec -r
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l where
complete -c tracealloc -n __fish_use_subcommand -f -a diff -d 'compare two snapshots group by group, largest change first'
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l by -x -a 'own line function file module traceback domain process thread'
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l callers
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l color -x -a 'auto always never'
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l cumulative
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l full-names
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l grown
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l key -x -a 'lineno filename traceback own function module domain thread'
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l no-skip
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l own
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l released
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l skip
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l sort -x -a 'live total count calls temporary peak'
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l spec -r
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l where
complete -c tracealloc -n __fish_use_subcommand -f -a tree -d 'show the calling tree with what each branch holds; with two files what it changed'
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l bottom-up
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l collapse
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l color -x -a 'auto always never'
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l depth
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l full-names
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l min
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l no-skip
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l own
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l skip
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l sort -x -a 'live total count calls temporary peak'
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l spec -r
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l where
complete -c tracealloc -n __fish_use_subcommand -f -a annotate -d 'show a source with what its lines hold'
complete -c tracealloc -n '__fish_seen_subcommand_from annotate' -l color -x -a 'auto always never'
complete -c tracealloc -n '__fish_seen_subcommand_from annotate' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from annotate' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from annotate' -l no-skip
complete -c tracealloc -n '__fish_seen_subcommand_from annotate' -l own
complete -c tracealloc -n '__fish_seen_subcommand_from annotate' -l skip
complete -c tracealloc -n '__fish_seen_subcommand_from annotate' -l source -r
complete -c tracealloc -n '__fish_seen_subcommand_from annotate' -l spec -r
complete -c tracealloc -n '__fish_seen_subcommand_from annotate' -l where
complete -c tracealloc -n __fish_use_subcommand -f -a cost -d 'measure what tracing costs this program: time, memory, instructions'
complete -c tracealloc -n '__fish_seen_subcommand_from cost' -l for
complete -c tracealloc -n '__fish_seen_subcommand_from cost' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from cost' -l ignore-failure
complete -c tracealloc -n '__fish_seen_subcommand_from cost' -l input
complete -c tracealloc -n '__fish_seen_subcommand_from cost' -l instructions
complete -c tracealloc -n '__fish_seen_subcommand_from cost' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from cost' -l load
complete -c tracealloc -n '__fish_seen_subcommand_from cost' -l markdown
complete -c tracealloc -n '__fish_seen_subcommand_from cost' -l modes
complete -c tracealloc -n __fish_use_subcommand -f -a ctl -d 'start and stop tracing in a running process, take snapshots of it'
complete -c tracealloc -n '__fish_seen_subcommand_from ctl' -l force
complete -c tracealloc -n '__fish_seen_subcommand_from ctl' -l hard
complete -c tracealloc -n '__fish_seen_subcommand_from ctl' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from ctl' -l json
complete -c tracealloc -n __fish_use_subcommand -f -a growth -d 'tell leaks from caches and churn: the course of every place over time'
complete -c tracealloc -n '__fish_seen_subcommand_from growth' -l by -x -a 'own line function file module traceback domain process thread'
complete -c tracealloc -n '__fish_seen_subcommand_from growth' -l color -x -a 'auto always never'
complete -c tracealloc -n '__fish_seen_subcommand_from growth' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from growth' -l full-names
complete -c tracealloc -n '__fish_seen_subcommand_from growth' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from growth' -l histogram
complete -c tracealloc -n '__fish_seen_subcommand_from growth' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from growth' -l no-skip
complete -c tracealloc -n '__fish_seen_subcommand_from growth' -l own
complete -c tracealloc -n '__fish_seen_subcommand_from growth' -l skip
complete -c tracealloc -n __fish_use_subcommand -f -a gate -d 'say no when memory has grown, or is beyond what is allowed'
complete -c tracealloc -n '__fish_seen_subcommand_from gate' -l allocations
complete -c tracealloc -n '__fish_seen_subcommand_from gate' -l baseline -r
complete -c tracealloc -n '__fish_seen_subcommand_from gate' -l by -x -a 'own line function file module traceback domain process thread'
complete -c tracealloc -n '__fish_seen_subcommand_from gate' -l format -x -a 'pprof folded speedscope flame text csv jsonl json python'
complete -c tracealloc -n '__fish_seen_subcommand_from gate' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from gate' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from gate' -l max-allocations
complete -c tracealloc -n '__fish_seen_subcommand_from gate' -l max-growth
complete -c tracealloc -n '__fish_seen_subcommand_from gate' -l max-live
complete -c tracealloc -n '__fish_seen_subcommand_from gate' -l max-peak
complete -c tracealloc -n '__fish_seen_subcommand_from gate' -l no-leaks
complete -c tracealloc -n '__fish_seen_subcommand_from gate' -l peak
complete -c tracealloc -n '__fish_seen_subcommand_from gate' -l suppressions -r
complete -c tracealloc -n __fish_use_subcommand -f -a report -d 'make a page to look at: sizes over time, who holds the memory, flame graph, sources'
complete -c tracealloc -n '__fish_seen_subcommand_from report' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from report' -l no-skip
complete -c tracealloc -n '__fish_seen_subcommand_from report' -l no-source
complete -c tracealloc -n '__fish_seen_subcommand_from report' -l open
complete -c tracealloc -n '__fish_seen_subcommand_from report' -l own
complete -c tracealloc -n '__fish_seen_subcommand_from report' -l skip
complete -c tracealloc -n '__fish_seen_subcommand_from report' -l title
complete -c tracealloc -n '__fish_seen_subcommand_from report' -l together
complete -c tracealloc -n __fish_use_subcommand -f -a watch -d 'watch in the terminal what a program holds, while it runs'
complete -c tracealloc -n '__fish_seen_subcommand_from watch' -l help
complete -c tracealloc -n __fish_use_subcommand -f -a flame -d 'draw a flame graph (SVG) for a browser; with two files one of the differences'
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l bottom-up
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l collapse
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l full-names
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l min
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l no-skip
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l own
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l skip
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l sort -x -a 'live total count calls temporary peak'
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l spec -r
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l title
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l where
complete -c tracealloc -n __fish_use_subcommand -f -a biggest -d 'show the stack that holds most memory, with its source lines'
complete -c tracealloc -n '__fish_seen_subcommand_from biggest' -l blocks
complete -c tracealloc -n '__fish_seen_subcommand_from biggest' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from biggest' -l full-names
complete -c tracealloc -n '__fish_seen_subcommand_from biggest' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from biggest' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from biggest' -l sort -x -a 'live total count calls temporary peak'
complete -c tracealloc -n '__fish_seen_subcommand_from biggest' -l spec -r
complete -c tracealloc -n '__fish_seen_subcommand_from biggest' -l where
complete -c tracealloc -n __fish_use_subcommand -f -a list -d 'list the entries of a recording, or the processes of a run'
complete -c tracealloc -n '__fish_seen_subcommand_from list' -l color -x -a 'auto always never'
complete -c tracealloc -n '__fish_seen_subcommand_from list' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from list' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from list' -l json
complete -c tracealloc -n __fish_use_subcommand -f -a info -d 'say what is in a recording: program, times, options, counts, losses, modules'
complete -c tracealloc -n '__fish_seen_subcommand_from info' -l color -x -a 'auto always never'
complete -c tracealloc -n '__fish_seen_subcommand_from info' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from info' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from info' -l json
complete -c tracealloc -n __fish_use_subcommand -f -a domains -d 'list the domains: live, peak, totals, limits'
complete -c tracealloc -n '__fish_seen_subcommand_from domains' -l color -x -a 'auto always never'
complete -c tracealloc -n '__fish_seen_subcommand_from domains' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from domains' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from domains' -l json
complete -c tracealloc -n __fish_use_subcommand -f -a pretty -d 'print the pretty top of tracemallocs documentation'
complete -c tracealloc -n '__fish_seen_subcommand_from pretty' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from pretty' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from pretty' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from pretty' -l spec -r
complete -c tracealloc -n '__fish_seen_subcommand_from pretty' -l where
complete -c tracealloc -n __fish_use_subcommand -f -a stats -d 'list the groups of live memory as tracemalloc prints them, largest first'
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l by -x -a 'own line function file module traceback domain process thread'
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l cumulative
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l key -x -a 'lineno filename traceback own function module domain thread'
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l limit
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l no-skip
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l own
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l skip
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l sort -x -a 'live total count calls temporary peak'
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l spec -r
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l where
complete -c tracealloc -n __fish_use_subcommand -f -a filter -d 'write a snapshot that keeps only some of the traces'
complete -c tracealloc -n '__fish_seen_subcommand_from filter' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from filter' -l spec -r
complete -c tracealloc -n '__fish_seen_subcommand_from filter' -l where
complete -c tracealloc -n __fish_use_subcommand -f -a symbolize -d 'store files, lines and functions in a snapshot, so that it can be read elsewhere'
complete -c tracealloc -n '__fish_seen_subcommand_from symbolize' -l help
complete -c tracealloc -n __fish_use_subcommand -f -a check -d 'read a whole recording and say what is wrong with it, and where'
complete -c tracealloc -n '__fish_seen_subcommand_from check' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from check' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from check' -l json
complete -c tracealloc -n __fish_use_subcommand -f -a rules -d 'show which functions the rules for domains name, or compile them'
complete -c tracealloc -n '__fish_seen_subcommand_from rules' -l color -x -a 'auto always never'
complete -c tracealloc -n '__fish_seen_subcommand_from rules' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from rules' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from rules' -l json
complete -c tracealloc -n __fish_use_subcommand -f -a import -d 'make a snapshot from traces in JSON'
complete -c tracealloc -n '__fish_seen_subcommand_from import' -l help
complete -c tracealloc -n __fish_use_subcommand -f -a export -d 'write a snapshot in another format'
complete -c tracealloc -n '__fish_seen_subcommand_from export' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from export' -l format -x -a 'pprof folded speedscope flame text csv jsonl json python'
complete -c tracealloc -n '__fish_seen_subcommand_from export' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from export' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from export' -l python
complete -c tracealloc -n '__fish_seen_subcommand_from export' -l sort -x -a 'live total count calls temporary peak'
complete -c tracealloc -n '__fish_seen_subcommand_from export' -l spec -r
complete -c tracealloc -n '__fish_seen_subcommand_from export' -l where
complete -c tracealloc -n __fish_use_subcommand -f -a take -d 'take a snapshot of a running process or a core, from outside'
complete -c tracealloc -n '__fish_seen_subcommand_from take' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from take' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from take' -l no-blocks
complete -c tracealloc -n '__fish_seen_subcommand_from take' -l no-pause
complete -c tracealloc -n '__fish_seen_subcommand_from take' -l quiet
complete -c tracealloc -n __fish_use_subcommand -f -a memory -d 'say what the resident memory of a process is, to the last page'
complete -c tracealloc -n '__fish_seen_subcommand_from memory' -l by -x -a 'own line function file module traceback domain process thread'
complete -c tracealloc -n '__fish_seen_subcommand_from memory' -l color -x -a 'auto always never'
complete -c tracealloc -n '__fish_seen_subcommand_from memory' -l flame
complete -c tracealloc -n '__fish_seen_subcommand_from memory' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from memory' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from memory' -l mappings
complete -c tracealloc -n '__fish_seen_subcommand_from memory' -l no-pause
complete -c tracealloc -n '__fish_seen_subcommand_from memory' -l sort -x -a 'live total count calls temporary peak'
complete -c tracealloc -n __fish_use_subcommand -f -a leaks -d 'find blocks of a process that nothing points to any more'
complete -c tracealloc -n '__fish_seen_subcommand_from leaks' -l by -x -a 'own line function file module traceback domain process thread'
complete -c tracealloc -n '__fish_seen_subcommand_from leaks' -l color -x -a 'auto always never'
complete -c tracealloc -n '__fish_seen_subcommand_from leaks' -l exact
complete -c tracealloc -n '__fish_seen_subcommand_from leaks' -l format -x -a 'pprof folded speedscope flame text csv jsonl json python'
complete -c tracealloc -n '__fish_seen_subcommand_from leaks' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from leaks' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from leaks' -l no-pause
complete -c tracealloc -n '__fish_seen_subcommand_from leaks' -l registers
complete -c tracealloc -n '__fish_seen_subcommand_from leaks' -l suppressions -r
complete -c tracealloc -n '__fish_seen_subcommand_from leaks' -l tagged
complete -c tracealloc -n '__fish_seen_subcommand_from leaks' -l unaligned
complete -c tracealloc -n __fish_use_subcommand -f -a why -d 'say what an address of a process is, and who points to its block'
complete -c tracealloc -n '__fish_seen_subcommand_from why' -l at
complete -c tracealloc -n '__fish_seen_subcommand_from why' -l brief
complete -c tracealloc -n '__fish_seen_subcommand_from why' -l color -x -a 'auto always never'
complete -c tracealloc -n '__fish_seen_subcommand_from why' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from why' -l history
complete -c tracealloc -n '__fish_seen_subcommand_from why' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from why' -l no-pause
complete -c tracealloc -n '__fish_seen_subcommand_from why' -l registers
complete -c tracealloc -n '__fish_seen_subcommand_from why' -l tagged
complete -c tracealloc -n '__fish_seen_subcommand_from why' -l unaligned
complete -c tracealloc -n __fish_use_subcommand -f -a retained -d 'for each place the memory that would go if its blocks went'
complete -c tracealloc -n '__fish_seen_subcommand_from retained' -l blocks
complete -c tracealloc -n '__fish_seen_subcommand_from retained' -l by -x -a 'own line function file module traceback domain process thread'
complete -c tracealloc -n '__fish_seen_subcommand_from retained' -l color -x -a 'auto always never'
complete -c tracealloc -n '__fish_seen_subcommand_from retained' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from retained' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from retained' -l no-pause
complete -c tracealloc -n '__fish_seen_subcommand_from retained' -l registers
complete -c tracealloc -n '__fish_seen_subcommand_from retained' -l tagged
complete -c tracealloc -n '__fish_seen_subcommand_from retained' -l unaligned
