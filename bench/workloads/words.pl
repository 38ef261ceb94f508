# Words, hashes, objects and sorting in Perl.
use strict;
use warnings;

package Node;
sub new { my ($class, %with) = @_; return bless {%with}, $class }
sub text { my $self = shift; return join ',', map { "$_=$self->{$_}" } sort keys %$self }

package main;
my $rounds = shift;
my $total  = 0;
for my $round (1 .. $rounds) {
    my (%count, @nodes);
    for my $i (1 .. 4000) {
        my $line = join ' ', map { 'w' . ($i * $_ % 997) } 1 .. 8;
        $count{$_}++ for split / /, $line;
        push @nodes, Node->new(number => $i, line => $line, round => $round);
    }
    my @sorted = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
    $total += length(join ' ', @sorted[0 .. 9]);
    $total += length($_->text) for @nodes;
    (my $copy = join "\n", map { $_->{line} } @nodes) =~ s/w(\d)/<$1>/g;
    $total += length $copy;
}
print "$total\n";
