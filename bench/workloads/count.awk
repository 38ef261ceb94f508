# Fields, associative arrays and strings in awk.
{
    for (i = 1; i <= NF; i++) {
        count[$i]++
        pairs[$i, $(i % NF + 1)] = pairs[$i, $(i % NF + 1)] + i
    }
    line = $0
    gsub(/[aeiou]/, "<&>", line)
    kept[NR % 5000] = toupper(line) " " NR
}
END {
    n = split("", empty)
    for (word in count) total += count[word] * length(word)
    for (pair in pairs) { split(pair, two, SUBSEP); seen[two[1]] = seen[two[1]] " " two[2]; sum += pairs[pair] }
    for (word in seen) total += length(seen[word])
    for (k in kept) total += length(kept[k])
    print total, sum
}
