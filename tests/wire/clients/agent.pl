#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Perl's clients as agents (README.md): Cache::Memcached and Cache::Memcached::Fast.
use strict;
use warnings;

my ($name, $setting, @servers) = @ARGV;
my %options = (servers => \@servers);
my $client;
if ($name eq 'Cache::Memcached') {
    require Cache::Memcached;
    $client = Cache::Memcached->new({%options, select_timeout => 20});
} else {
    require Cache::Memcached::Fast;
    $options{ketama_points} = $setting eq 'ketama' ? 150 : 0;
    $client = Cache::Memcached::Fast->new({%options, connect_timeout => 20, io_timeout => 20});
}
my %version;
$| = 1;

sub found {
    return defined $_[0] ? "is $_[0]" : 'miss';
}

while (my $line = <STDIN>) {
    chomp $line;
    $line =~ s/<CRLF>/\r\n/g;
    my ($verb, $key, $text) = split /\t/, $line, -1;
    if (!$client->can($verb)) {
        print "no such call\n";
        next;
    }
    my $answer = eval {
        if ($verb eq 'get') { return found($client->get($key)); }
        if ($verb eq 'gets') {
            my $pair = $client->gets($key) or return 'miss';
            $version{$key} = $pair->[0];
            return found($pair->[1]);
        }
        my $done = $verb eq 'cas' ? $client->cas($key, $version{$key}, $text)
            : $verb eq 'delete' ? $client->delete($key) : $client->$verb($key, $text);
        return !defined $done ? 'error undef' : $done ? 'yes' : 'no';
    };
    $answer = "error $@" unless defined $answer;
    $answer =~ s/\n/ /g;
    print "$answer\n";
}
