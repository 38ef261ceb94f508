-- Tables, closures and strings in Lua.
local rounds = tonumber(arg[1])
local total = 0
for round = 1, rounds do
    local list = {}
    for i = 1, 12000 do
        list[i] = { number = i, name = "name" .. (i * 7919 % 10007), next = { i, i + 1 }, f = function() return i end }
    end
    table.sort(list, function(a, b) return a.name < b.name end)
    local parts = {}
    for i = 1, #list, 3 do
        parts[#parts + 1] = string.format("%s:%d", list[i].name:upper(), list[i].f())
    end
    local text = table.concat(parts, ",")
    for word in text:gmatch("%w+") do
        total = total + #word
    end
end
print(total)
