# SPDX-License-Identifier: BSD-3-Clause
# Adds the items that it is told, as hex, with the helper of docs/clients/perl.md.
use strict;
use warnings;
use lib '.';
use Lists;

chomp(my $port = <STDIN>);
my $lists = Lists->new("127.0.0.1:$port");
while (my $line = <STDIN>) {
    chomp $line;
    my ($key, $item) = map { pack 'H*', $_ } split / /, $line, -1;
    my $done = eval { $lists->add($key, $item) ? 'stored' : 'not' };
    print $done // 'refused', "\n";
}
print unpack('H*', $_), "\n" for $lists->items('hostile');
