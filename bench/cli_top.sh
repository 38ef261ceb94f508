#!/bin/sh
# cli_top.sh: how long `tracealloc top` takes on a recording of the C++ compiler, beside heaptrack_print on its own file of
# the same run. cli_top.sh BUILD
#
# Prints seconds (the best of three) and their ratios. The budgets: 1.5 s with symbols to look up, 0.3 s with stored ones.
set -eu
build=$(cd "$1" && pwd)
tracealloc=$build/bin/tracealloc
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >unit.cpp <<'CPP'
#include <algorithm>
#include <future>
#include <iostream>
#include <map>
#include <regex>
#include <unordered_map>
int main()
{
    std::map<std::string, std::vector<int>> rows;
    std::unordered_map<int, std::string> names{{1, "abc"}};
    std::smatch match;
    rows[names[1]].push_back(std::regex_match(names[1], match, std::regex("a(b|c)*")));
    auto count = std::async([&] { return rows.size(); });
    std::cout << count.get();
    std::sort(rows["abc"].begin(), rows["abc"].end());
}
CPP
g++ -E -o unit.ii unit.cpp
compiler=$(g++ -print-prog-name=cc1plus)

best() { # command… → seconds
    python3 - "$@" <<'PY'
import subprocess, sys, time
best = None
for _ in range(3):
    start = time.perf_counter()
    subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    took = time.perf_counter() - start
    best = took if best is None or took < best else best
print(f"{best:.3f}")
PY
}

"$tracealloc" run -q -o unit.ta -- "$compiler" -quiet -O2 -g unit.ii -o /dev/null
"$tracealloc" symbolize unit.ta -o stored.ta 2>/dev/null
"$tracealloc" info unit.ta --csv | grep -E '^(contexts|traces|gone traces),'
cold=$(best "$tracealloc" top unit.ta)
stored=$(best "$tracealloc" top stored.ta)
echo "top, symbols looked up  $cold s"
echo "top, symbols stored     $stored s"
if command -v heaptrack >/dev/null && command -v heaptrack_print >/dev/null; then
    heaptrack -o unit.heaptrack "$compiler" -quiet -O2 -g unit.ii -o /dev/null >/dev/null 2>&1 || :
    file=$(ls unit.heaptrack*)
    other=$(best heaptrack_print "$file")
    echo "heaptrack_print         $other s"
    python3 -c "print(f'ratios: {$cold / $other:.3f} looked up, {$stored / $other:.3f} stored')"
else
    echo "no heaptrack here to compare with"
fi
