# fish completion of tracealloc; made by tests/cli/manual.py
complete -c tracealloc -n __fish_use_subcommand -f -a run -d 'run a program and record what it allocates'
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l follow
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l interval
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l nframe
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l no-follow
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l output -r
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l peak
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l quiet
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l rules -r
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l sample
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l signal -x -a 'USR1 USR2 HUP PROF URG'
complete -c tracealloc -n '__fish_seen_subcommand_from run' -l top
complete -c tracealloc -n __fish_use_subcommand -f -a top -d 'list who holds the memory, largest first'
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l by -x -a 'line function file module traceback domain thread'
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l color -x -a 'auto always never'
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l cumulative
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l sort -x -a 'live total count calls temporary peak'
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l spec -r
complete -c tracealloc -n '__fish_seen_subcommand_from top' -l where
complete -c tracealloc -n __fish_use_subcommand -f -a diff -d 'compare two snapshots group by group, largest change first'
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l by -x -a 'line function file module traceback domain thread'
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l color -x -a 'auto always never'
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l cumulative
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l grown
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l released
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l sort -x -a 'live total count calls temporary peak'
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l spec -r
complete -c tracealloc -n '__fish_seen_subcommand_from diff' -l where
complete -c tracealloc -n __fish_use_subcommand -f -a tree -d 'show the calling tree with what each branch holds'
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l bottom-up
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l color -x -a 'auto always never'
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l depth
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l min
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l sort -x -a 'live total count calls temporary peak'
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l spec -r
complete -c tracealloc -n '__fish_seen_subcommand_from tree' -l where
complete -c tracealloc -n __fish_use_subcommand -f -a flame -d 'draw a flame graph (SVG) for a browser; with two files one of the differences'
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l bottom-up
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l min
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l sort -x -a 'live total count calls temporary peak'
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l spec -r
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l title
complete -c tracealloc -n '__fish_seen_subcommand_from flame' -l where
complete -c tracealloc -n __fish_use_subcommand -f -a biggest -d 'show the stack that holds most memory, with its source lines'
complete -c tracealloc -n '__fish_seen_subcommand_from biggest' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from biggest' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from biggest' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from biggest' -l sort -x -a 'live total count calls temporary peak'
complete -c tracealloc -n '__fish_seen_subcommand_from biggest' -l spec -r
complete -c tracealloc -n '__fish_seen_subcommand_from biggest' -l where
complete -c tracealloc -n __fish_use_subcommand -f -a list -d 'list the entries of a recording: when, how much was live, the peak'
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
complete -c tracealloc -n __fish_use_subcommand -f -a stats -d 'group the live memory of a snapshot and list the groups, largest first'
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l cumulative
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l key -x -a 'lineno filename traceback function module domain thread'
complete -c tracealloc -n '__fish_seen_subcommand_from stats' -l limit
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
complete -c tracealloc -n __fish_use_subcommand -f -a import -d 'make a snapshot from traces in JSON'
complete -c tracealloc -n '__fish_seen_subcommand_from import' -l help
complete -c tracealloc -n __fish_use_subcommand -f -a export -d 'write a snapshot in another format'
complete -c tracealloc -n '__fish_seen_subcommand_from export' -l csv
complete -c tracealloc -n '__fish_seen_subcommand_from export' -l format -x -a 'pprof folded speedscope csv jsonl json python'
complete -c tracealloc -n '__fish_seen_subcommand_from export' -l help
complete -c tracealloc -n '__fish_seen_subcommand_from export' -l json
complete -c tracealloc -n '__fish_seen_subcommand_from export' -l python
complete -c tracealloc -n '__fish_seen_subcommand_from export' -l sort -x -a 'live total count calls temporary peak'
complete -c tracealloc -n '__fish_seen_subcommand_from export' -l spec -r
complete -c tracealloc -n '__fish_seen_subcommand_from export' -l where
