# work.pl: hashes, sorting, regular expressions, closures, sprintf, fork: a result that must not vary.
use strict; use warnings;
my %count;
for my $i (1 .. 60000) { $count{ "word" . ($i * 7919 % 5003) } .= chr(97 + $i % 26); }
my $text = join ",", map { "$_=$count{$_}" } sort keys %count;
print length($text), "\n", unpack("%32C*", $text), "\n";
my @found = $text =~ /(word\d*7)=([a-m]{1,})/g;
print scalar(@found), " $found[0]\n";
(my $changed = $text) =~ s/(\d+)/sprintf("%x", $1)/ge;
print substr($changed, -60), "\n";
my @tree = map { my $n = $_; { name => "n$n", children => [ map { { id => $_ * $n } } 1 .. 20 ], call => sub { $n * shift } } } 1 .. 2000;
my $sum = 0; for my $node (@tree) { $sum += $node->{call}->($_->{id}) for @{ $node->{children} }; }
print "$sum\n";
for (1 .. 5) { my $pid = fork; if (!$pid) { my @x = map { "x" x $_ } 1 .. 500; exit 3; } waitpid $pid, 0; print $? >> 8, "\n"; }
print join("|", map { sprintf "%05.2f", $_ / 3 } 1 .. 10), "\n";
