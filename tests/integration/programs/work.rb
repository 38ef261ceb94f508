# work.rb: hashes, strings, symbols, threads, fibers, collection: a result that must not vary.
table = Hash.new { |h, k| h[k] = [] }
60_000.times { |i| table["word#{i * 7919 % 5003}"] << i.to_s * (i % 9) }
text = table.sort.map { |k, v| "#{k}=#{v.join('.')}" }.join(",")
puts text.length, text.sum(32), text.scan(/word\d*7=/).size
puts (1..8).map { |n| Thread.new { (1..3000).map { |i| (i * n).to_s }.join.length } }.map(&:value).inspect
f = Fiber.new { 1000.times { |i| Fiber.yield "value #{i}" }; nil }
puts 1000.times.map { f.resume }.last
10.times { Array.new(20_000) { |i| { id: i, name: "n#{i}" } }; GC.start }
puts (2**5000).to_s[-20..], `echo child`.strip
Process.wait(fork { exit 5 })
puts $?.exitstatus
