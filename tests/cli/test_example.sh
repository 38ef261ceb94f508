#!/bin/sh
# test_example.sh: the story that ./dev run tells comes to the right end. test_example.sh BUILD
set -eu
told=$(sh examples/run.sh "$1" 2000 2>&1)
for text in 'server.c:26  format_log_line' 'recording in server.ta' 'server.svg'; do
    case $told in
    *"$text"*) ;;
    *)
        printf 'the story does not tell "%s":\n%s\n' "$text" "$told"
        exit 1
        ;;
    esac
done
[ "$(printf '%s\n' "$told" | grep -c '^steady .*  195 KiB .*server.c:26  format_log_line$')" = 1 ]
