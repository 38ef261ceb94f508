#!/bin/sh
# test_symbols_against_addr2line.sh: the same places as other readers of debug information give.
#
#   test_symbols_against_addr2line.sh [--all] SYMBOLIZE CXX FILE…
#
# Compares inlined calls, files and lines at every call in each FILE, and in a C++ program full of templates that is
# compiled here, with binutils' addr2line; and at some of them with eu-addr2line, which takes far longer. The C++ program
# is built in ways that these two do not follow, too (split, by clang; with --all link-time optimised and in older formats),
# for llvm-addr2line. Known differences: binutils takes the name of a unit for a file that was included into it; neither
# knows anything of padding; eu-addr2line skips some levels of inlining. They stay below the half percent that is allowed.
set -u
all=no
[ "$1" != --all ] || { all=yes; shift; }
symbolize=$1 cxx=$2
shift 2
for tool in addr2line objdump python3; do
    command -v $tool >/dev/null || { echo "no $tool here"; exit 77; }
done
unset DEBUGINFOD_URLS
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

cat >"$work/templates.cpp" <<'CPP'
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
namespace {
struct Item { std::string name; std::vector<int> numbers; std::shared_ptr<Item> next; };
int total(const Item &item)
{
    int sum = 0;
    std::for_each(item.numbers.begin(), item.numbers.end(), [&](int n) { sum += n; });
    return sum + (item.next ? total(*item.next) : 0);
}
}
int main(int argc, char **argv)
{
    std::map<std::string, Item> items;
    std::unordered_map<int, std::function<int(int)>> functions;
    std::istringstream words("the quick brown fox");
    for (std::string word; words >> word;) {
        auto item = std::make_shared<Item>(Item{word, {argc, argc + 1}, nullptr});
        items.emplace(word, Item{word + "!", {1, 2, 3}, item});
        functions[(int)word.size()] = [word](int x) { return x + (int)word.size(); };
    }
    std::vector<std::string> names;
    for (auto &[name, item] : items)
        names.push_back(name + std::to_string(total(item)));
    std::sort(names.begin(), names.end(), [](const auto &a, const auto &b) { return a.size() > b.size(); });
    std::regex pattern("[a-z]+[0-9]*");
    for (auto &name : names)
        std::cout << std::regex_match(name, pattern) << functions[3](argc) << argv[0] << '\n';
}
CPP
"$cxx" -std=c++17 -g -O2 "$work/templates.cpp" -o "$work/templates" || exit 1

failed=0
check() { # tool percent every file
    awk -v every="$3" 'NR % every == 0' "$work/calls" >"$work/some"
    [ -s "$work/some" ] || { echo "no calls in $4"; failed=1; return; }
    "$symbolize" -r "$4" <"$work/some" >"$work/ours" 2>/dev/null || { echo "symbolize fails on $4"; failed=1; return; }
    $1 -a -i -f -e "$4" <"$work/some" >"$work/theirs" 2>/dev/null
    echo "== $1, $(basename "$4")"
    python3 "$here/../support/compare_symbols.py" --at-least "$2" "$work/ours" "$work/theirs" || failed=1
}
# Return address - 1 of every call: inside the call instruction, as for a frame on a stack.
calls_of() {
    objdump -d --no-show-raw-insn "$1" | awk '/\tcall/ { if ((getline) > 0 && $1 ~ /^[0-9a-f]+:$/) print $1 }' |
        python3 -c 'import sys; [print(hex(int(line.strip(" :\n"), 16) - 1)) for line in sys.stdin]'
}
for file in "$work/templates" "$@"; do
    calls_of "$file" >"$work/calls"
    check addr2line 99.5 1 "$file"
    if command -v eu-addr2line >/dev/null; then
        check eu-addr2line 95 $(($(wc -l <"$work/calls") / 150 + 1)) "$file"
    fi
done

if command -v llvm-addr2line >/dev/null; then
    # As the others write addresses.
    llvm() {
        llvm-addr2line "$@" | awk '/^0x[0-9a-f]+$/ { printf "0x%16s\n", substr($0, 3); next } NF' |
            sed '/^0x  *[0-9a-f]*$/s/ /0/g'
    }
    cd "$work" || exit 1
    set -- "$cxx -gsplit-dwarf" "clang++ -gdwarf-5"
    [ "$all" = no ] || set -- "$@" "$cxx -flto" "$cxx -gdwarf-4 -gz -fdebug-types-section"
    for way in "$@"; do
        command -v "${way%% *}" >/dev/null || continue
        # shellcheck disable=SC2086 # words
        $way -std=c++17 -g -O2 templates.cpp -o other >log 2>&1 || { cat log; failed=1; continue; }
        echo "== $way"
        calls_of other >calls
        check llvm 99.9 1 other
    done
else
    echo "no llvm-addr2line here: the other ways of building were not compared"
fi
exit $failed
