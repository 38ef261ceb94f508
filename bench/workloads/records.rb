# Structs, strings, hashes and blocks in Ruby.
Entry = Struct.new(:number, :name, :tags)
total = 0
Integer(ARGV[0]).times do |round|
  entries = Array.new(6000) { |i| Entry.new(i, "name number #{i * 7919 % 6007} of round #{round}", ["t#{i % 3}", "t#{i % 11}"]) }
  groups = entries.group_by { |e| e.tags.last }
  text = groups.map { |tag, list| "#{tag}: #{list.map { |e| e.name.sub('number', '#').upcase }.sort.join(', ')}" }.join("\n")
  total += text.scan(/\d+/).map(&:to_i).sum
  total += entries.sort_by { |e| [e.name, e.number] }.first(10).sum(&:number)
  total += text.split(' ').tally.size
end
puts total
