-- work.lua: tables, strings, closures, coroutines, collection: a result that must not vary.
local words = {}
for i = 1, 60000 do words[i] = "word" .. (i * 7919 % 5003) .. string.rep("x", i % 30) end
table.sort(words)
local text = table.concat(words, ",")
print(#text, text:sub(1, 40), select(2, text:gsub("word7%d*", "")))
local function numbers(n) return coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end) end
local sum = 0
for k = 1, 300 do for i in numbers(100) do sum = sum + i * k end end
print(sum)
for round = 1, 20 do
    local tree = {}
    for i = 1, 5000 do tree[i] = {left = tree[i // 2], value = i, name = "node " .. i} end
    collectgarbage()
end
print(pcall(string.rep, "x", 1 << 50))
