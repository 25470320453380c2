# SPDX-License-Identifier: BSD-3-Clause
# Calls scripts/clients/perl as the lines of its input say; README.md has their words.
use strict;
use warnings;
use lib '.';
use Mclistd;

my %IS_TRUE = map { $_ => 1 } qw(ladd laddt ldel lset lcreate lput ltouch ldrop lcompact lmigrate ltx);
my %IS_NUMBER = map { $_ => 1 } qw(laddx ldelx lcopy lpurge lconvert llease llen lttl linterlen
    lunionlen ldifflen linterstore lunionstore ldiffstore lmove);

sub argument {
    my ($kind, $rest) = $_[0] =~ /\A(.)(.*)/;
    return [map { pack 'H*', $_ } split /,/, $rest] if $kind eq 'l';
    return pack 'H*', $rest if $kind eq 's';
    return $kind eq 'i' ? $rest : $kind eq 't' ? 1 : undef;
}

sub error {
    my ($error) = @_;
    return 'bad' if !ref $error;
    return 'refused:' . unpack('H*', $error->text) if $error->isa('Mclistd::Refused');
    return $error->isa('Mclistd::Lost') ? 'lost' : 'moved';
}

sub shown {
    my ($value, $name) = @_;
    return 'null' if !defined $value;
    return error($value) if ref $value && ref $value ne 'ARRAY' && ref $value ne 'HASH';
    return $value ? 'true' : 'false' if $IS_TRUE{$name};
    return "i$value" if $IS_NUMBER{$name};
    return shown($value->[0], '') . "\@i$value->[1]" if $name eq 'lgets';
    return '[' . join(' ', map { shown($_, '') } @$value) . ']' if ref $value eq 'ARRAY';
    return 's' . unpack('H*', $value) if !ref $value;
    return '{' . join(' ', map { shown($_, '') . '=' . shown($value->{$_}, '') } sort keys %$value) . '}';
}

$| = 1;
my ($lists, $pipe, @names);
while (my $line = <STDIN>) {
    my ($name, @args) = split ' ', $line;
    @args = map { argument($_) } @args;
    my $value;
    my $done = eval {
        if ($name eq 'open') {
            $lists = Mclistd->new("127.0.0.1:$args[0]", timeout => $args[1] / 1000, delimiter => $args[2],
                login => $args[3]);
        } elsif ($name eq 'pipeline') {
            ($pipe, @names) = $lists->pipeline;
        } elsif ($name eq 'run') {
            $value = $pipe->run;
            $pipe = undef;
        } elsif ($name eq 'pages') {
            my $next = $lists->pages(@args);
            while (my $page = $next->()) { push @$value, $page }
            $value //= [];
        } else {
            my $face = $pipe // $lists;
            $value = $face->$name(@args);
            push @names, $name if $pipe;
        }
        1;
    };
    if (!$done) {
        print error($@), "\n";
    } elsif ($name eq 'run') {
        print '[' . join(' ', map { shown($value->[$_], $names[$_]) } 0 .. $#$value) . "]\n";
    } else {
        print shown($value, $name), "\n";
    }
}
