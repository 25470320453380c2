# SPDX-License-Identifier: BSD-3-Clause
package Mclistd;

=head1 NAME

Mclistd - the list verbs of mclistd: each is a method that has its name and takes its words

=head1 SYNOPSIS

    my $lists = Mclistd->new('127.0.0.1:11220');
    $lists->ladd('followers:ann', 'bob', 'carol smith');
    $lists->lrevrange('followers:ann', 0, 9);    # ['carol smith', 'bob']

A verb that answers with a word gives 1, or 0 for NOT_STORED, NOT_FOUND and EXISTS; others a number
or a reference to an array of items, undef for NOT_FOUND or NOT_STORED in their place. What fails
dies with a Mclistd::Refused, a Mclistd::Lost or, before anything is sent, with a line of text.

=cut

use strict;
use warnings;
use IO::Select;
use IO::Socket::IP;
use IO::Socket::UNIX;

our $VERSION = '0.2.0';

{
    package Mclistd::Error;
    use overload '""' => sub { "$_[0]{text}\n" }, fallback => 1;
    sub new { my ($class, $text) = @_; return bless {text => $text}, $class }
    sub text { return $_[0]{text} }

    # The proxy's line of error. The connection goes on.
    package Mclistd::Refused;
    our @ISA = ('Mclistd::Error');

    # No answer, or none that can be read: the request may have been done. The connection is closed,
    # and the next request makes a new one.
    package Mclistd::Lost;
    our @ISA = ('Mclistd::Error');
}

my $BATCH_BYTES = 16_384; # of a pipeline, sent before its answers are read: sockets take so many
my $LINE_BYTES_MAX = 65_536;
my $WORD = qr/\A[^\x00-\x20\x7f]+\z/;
my %SAYS = (STORED => 1, DELETED => 1, OK => 1, TOUCHED => 1,
    NOT_STORED => 0, NOT_FOUND => 0, EXISTS => 0);
my %IS_LINE = map { $_ => 1 } qw(ladd ldel lset lrequire lrefuse); # of a transaction

# $address: HOST:PORT or the path of a unix socket. Options: timeout, seconds for each wait;
# delimiter; login, 'USER PASSWORD'; tls, a reference to a hash of options of IO::Socket::SSL.
sub new {
    my ($class, $address, %options) = @_;
    return bless {address => $address // '127.0.0.1:11220', timeout => 3, delimiter => ',',
        buffer => '', %options}, $class;
}

# --- changes ---

sub ladd { my ($self, $key, @items) = @_; return $self->_do('done', _change('ladd', $key, '', @items)) }
sub ldel { my ($self, $key, @items) = @_; return $self->_do('done', _change('ldel', $key, '', @items)) }

sub laddt {
    my ($self, $key, $seconds, @items) = @_;
    return $self->_do('done', _change('laddt', $key, ' ' . _int($seconds), @items));
}

sub lset { my ($self, $key, @items) = @_; return $self->_ask('done', 'lset', $key, @items) }
sub lcreate { my ($self, $key, @items) = @_; return $self->_ask('done', 'lcreate', $key, @items) }
sub laddx { my ($self, $key, @items) = @_; return $self->_ask('number', 'laddx', $key, _some(@items)) }
sub ldelx { my ($self, $key, @items) = @_; return $self->_ask('number', 'ldelx', $key, _some(@items)) }

# Items of any bytes, by reference. A token goes with an exptime.
sub lput {
    my ($self, $key, $items, $exptime, $token, $new) = @_;
    my $block = join '', map { 'ITEM x ' . _data($_) } @$items;
    my $tail = _options($new, $exptime, $token);
    return $self->_do('done', _line('lputb', $key) . ' ' . length($block) . "$tail\r\n$block\r\n");
}

sub lcopy {
    my ($self, $src, $dst, $exptime, $new) = @_;
    return $self->_do('number', _line('lcopy', $src, $dst) . _options($new, $exptime) . "\r\n");
}

sub ltouch { my ($self, $key, $exptime) = @_; return $self->_ask('done', 'ltouch', $key, _int($exptime)) }
sub ldrop { my ($self, $key) = @_; return $self->_ask('done', 'ldrop', $key) }
sub lpurge { my ($self, $key) = @_; return $self->_ask('number', 'lpurge', $key) }
sub lcompact { my ($self, $key) = @_; return $self->_ask('done', 'lcompact', $key) }
sub lconvert { my ($self, $key) = @_; return $self->_ask('number', 'lconvert', $key) }
sub lmigrate { my ($self, $key) = @_; return $self->_ask('done', 'lmigrate', $key) }

# The token; 0: another client has the lease; undef: the list is there.
sub llease { my ($self, $key, $seconds) = @_; return $self->_ask('token', 'llease', $key, _int($seconds)) }

# --- reads ---

sub lget { my ($self, $key) = @_; return $self->_ask('items', 'lgetb', $key) }

# [items, version]; undef: there are none.
sub lgets { my ($self, $key) = @_; return $self->_ask('versioned', 'lgets', $key) }

# {key => items}, of one instant; a list that is missing is left out.
sub lgetx { my ($self, @keys) = @_; return $self->_ask('each', 'lgetx', _some(@keys)) }

# Those of the items that are in the list.
sub lhas {
    my ($self, $key, @items) = @_;
    return $self->_ask('items', 'lhas', $key, _some(@items)) if @items != 1;
    return $self->_do('whole', _line('lhasb', $key) . ' ' . _data(@items));
}

sub llen { my ($self, $key) = @_; return $self->_ask('number', 'llen', $key) }

# Seconds, -1 for never.
sub lttl {
    my ($self, $key, $item) = @_;
    return $self->_ask('number', 'lttl', $key) if !defined $item;
    return $self->_do('number', _line('lttlb', $key) . ' ' . _data($item));
}

sub lrange { my ($self, $key, @ends) = @_; return $self->_ask('items', 'lrange', $key, map { _int($_) } @ends[0, 1]) }
sub lrevrange { my ($self, $key, @ends) = @_; return $self->_ask('items', 'lrevrange', $key, map { _int($_) } @ends[0, 1]) }
sub lafter { my ($self, $key, $item, $count) = @_; return $self->_ask('items', 'lafter', $key, $item, _int($count)) }
sub lbefore { my ($self, $key, $item, $count) = @_; return $self->_ask('items', 'lbefore', $key, $item, _int($count)) }
sub lrandom { my ($self, $key, $count) = @_; return $self->_ask('items', 'lrandomb', $key, _int($count)) }
sub lstat { my ($self, $key) = @_; return $self->_ask('stats', 'lstat', $key) }

# A function that gives page after page of the list, from its oldest item or its newest, then undef.
# Each goes on behind the last item of the one before, or the one before that, if it has left the
# list meanwhile.
sub pages {
    my ($self, $key, $count, $newest) = @_;
    $count //= 1000;
    my $page;
    return sub {
        if (!$page) {
            $page = $newest ? $self->lrevrange($key, 0, $count - 1) : $self->lrange($key, 0, $count - 1);
        } elsif (@$page) {
            $page = $self->_next($newest ? 'lbefore' : 'lafter', $key, $page, $count);
        }
        return @$page ? $page : undef;
    };
}

sub _next {
    my ($self, $verb, $key, $page, $count) = @_;
    my %behind;
    for my $item (reverse @$page) {
        my $found = $item =~ $WORD ? $self->$verb($key, $item, $count + keys %behind) : undef;
        if ($found) {
            my @new = grep { !$behind{$_} } @$found;
            return [@new > $count ? @new[0 .. $count - 1] : @new];
        }
        $behind{$item} = 1;
    }
    die Mclistd::Error->new('no item of the last page can say where the next one begins');
}

# --- several lists ---

sub linter { my ($self, @keys) = @_; return $self->_ask('items', 'linter', _some(@keys)) }
sub lunion { my ($self, @keys) = @_; return $self->_ask('items', 'lunion', _some(@keys)) }
sub ldiff { my ($self, @keys) = @_; return $self->_ask('items', 'ldiff', _some(@keys)) }
sub linterlen { my ($self, @keys) = @_; return $self->_ask('number', 'linterlen', _some(@keys)) }
sub lunionlen { my ($self, @keys) = @_; return $self->_ask('number', 'lunionlen', _some(@keys)) }
sub ldifflen { my ($self, @keys) = @_; return $self->_ask('number', 'ldifflen', _some(@keys)) }
sub linterstore { my ($self, $dst, @keys) = @_; return $self->_ask('number', 'linterstore', $dst, _some(@keys)) }
sub lunionstore { my ($self, $dst, @keys) = @_; return $self->_ask('number', 'lunionstore', $dst, _some(@keys)) }
sub ldiffstore { my ($self, $dst, @keys) = @_; return $self->_ask('number', 'ldiffstore', $dst, _some(@keys)) }
sub lpop { my ($self, $key, $count) = @_; return $self->_ask('items', 'lpopb', $key, _int($count)) }
sub lpopto { my ($self, $src, $dst, $count) = @_; return $self->_ask('items', 'lpoptob', $src, $dst, _int($count)) }
sub lmove { my ($self, $src, $dst, @items) = @_; return $self->_ask('number', 'lmove', $src, $dst, _some(@items)) }

# Each a line: [verb, key, item, ...], the verb ladd, ldel, lset, lrequire or lrefuse.
sub ltx {
    my ($self, @changes) = @_;
    my $block = '';
    for my $change (@changes) {
        my ($verb, $key, @items) = @$change;
        die "'$verb' is no line of a transaction\n" if !$IS_LINE{$verb};
        $block .= $verb eq 'lset' ? _line($verb, $key, @items) . "\r\n" : _change($verb, $key, '', @items);
    }
    return $self->_do('done', 'ltx ' . length($block) . "\r\n$block\r\n");
}

# --- requests ---

# The same verbs, sent together by its run. They give undef there; run gives a reference to an array
# with the result of each, or the error in its place. Up to 16 KB of requests are under way at a
# time, so that neither side waits for the other.
sub pipeline { my ($self) = @_; return bless {lists => $self, calls => []}, 'Mclistd::Pipeline' }

sub _checked {
    my (@words) = @_;
    for my $word (@words) {
        utf8::downgrade($word, 1) or die "keys and items are bytes: encode text first\n";
        next if $word =~ $WORD;
        die "no key, nor an item that can stand beside others: '" . substr($word, 0, 80) . "'\n";
    }
    return @words;
}

sub _line { my ($verb, @words) = @_; return join ' ', $verb, _checked(@words) }

sub _data {
    my ($item) = @_;
    utf8::downgrade($item, 1) or die "keys and items are bytes: encode text first\n";
    return length($item) . "\r\n$item\r\n";
}

sub _int {
    my ($number) = @_;
    return $number if defined $number && $number =~ /\A-?\d+\z/;
    die "no whole number: " . ($number // 'undef') . "\n";
}

sub _some { return @_ ? @_ : die "nothing is named\n" }
sub _options { my ($new, @numbers) = @_; return join('', map { ' ' . _int($_) } grep { defined } @numbers) . ($new ? ' new' : '') }

# One item may have any bytes.
sub _change {
    my ($verb, $key, $seconds, @items) = @_;
    return _line("${verb}b", $key) . "$seconds " . _data(@items) if @items == 1;
    return _line($verb, $key) . join(' ', $seconds, _checked(_some(@items))) . "\r\n";
}

sub _ask { my ($self, $shape, @words) = @_; return $self->_do($shape, _line(@words) . "\r\n") }

sub _do {
    my ($self, @call) = @_;
    my ($result) = @{$self->_run_all([@call])};
    die $result if ref $result && eval { $result->isa('Mclistd::Error') };
    return $result;
}

# The result of each call, or its error. Behind the first that is lost, all are.
sub _run_all {
    my ($self, @calls) = @_;
    my @results;
    my $known = 'nothing was sent';
    my $in_step = eval {
        $self->_connect;
        $known = 'no answer, the outcome is unknown';
        while (@results < @calls) {
            my ($end, $batch) = (@results + 1, $calls[@results][1]);
            $batch .= $calls[$end++][1] while $end < @calls && length($batch) + length($calls[$end][1]) <= $BATCH_BYTES;
            $self->_send($batch);
            push @results, $self->_result($calls[@results][0]) while @results < $end;
        }
        1;
    };
    return \@results if $in_step;
    chomp(my $error = $@);
    $self->close; # a late answer must not be taken for the next one
    die $@ if ref $@; # of the login
    push @results, Mclistd::Lost->new("$known: $error") while @results < @calls;
    return \@results;
}

# --- the connection ---

sub close {
    my ($self) = @_;
    close $self->{socket} if $self->{socket};
    @$self{'socket', 'buffer'} = (undef, '');
    return;
}

sub _connect {
    my ($self) = @_;
    $self->close if $self->{socket} && IO::Select->new($self->{socket})->can_read(0); # the proxy has closed it
    return if $self->{socket};
    $self->{socket} = $self->_open or die "$self->{address}: $@\n";
    return if !defined $self->{login};
    $self->_send('set login 0 0 ' . _data($self->{login}));
    die "the login was refused\n" if $self->_answer ne 'STORED';
    return;
}

sub _open {
    my ($self) = @_;
    return IO::Socket::UNIX->new(Peer => $self->{address}) if $self->{address} =~ m{\A/};
    my ($host, $port) = $self->{address} =~ /\A\[?(.*?)\]?:(\d+)\z/ or die "no address\n";
    my %peer = (PeerHost => $host, PeerPort => $port, Timeout => $self->{timeout});
    return IO::Socket::IP->new(%peer) if !$self->{tls};
    require IO::Socket::SSL;
    return IO::Socket::SSL->new(%peer, %{$self->{tls}});
}

sub _send {
    my ($self, $bytes) = @_;
    local $SIG{PIPE} = 'IGNORE';
    for (my $at = 0; $at < length $bytes;) {
        my $sent = syswrite($self->{socket}, $bytes, length($bytes) - $at, $at) // die "$!\n";
        $at += $sent;
    }
    return;
}

sub _more {
    my ($self) = @_;
    my $waiting = $self->{socket}->can('pending') ? $self->{socket}->pending : 0; # of TLS
    $waiting || IO::Select->new($self->{socket})->can_read($self->{timeout}) or die "no answer in time\n";
    my $size = sysread($self->{socket}, $self->{buffer}, 65_536, length $self->{buffer}) // die "$!\n";
    die "the proxy has closed the connection\n" if !$size;
    return;
}

# So many bytes, and the line end behind them, which is not returned.
sub _take {
    my ($self, $size) = @_;
    $self->_more while length($self->{buffer}) < $size + 2;
    die "the answer is out of step\n" if substr($self->{buffer}, $size, 2) ne "\r\n";
    my $data = substr($self->{buffer}, 0, $size + 2, '');
    return substr $data, 0, $size;
}

sub _read_line {
    my ($self) = @_;
    my $end;
    while (($end = index $self->{buffer}, "\r\n") < 0) {
        die "a line of the answer is too long\n" if length($self->{buffer}) > $LINE_BYTES_MAX;
        $self->_more;
    }
    return $self->_take($end);
}

# A line; or a reference to the blocks before END, each the words of its line and its data.
sub _answer {
    my ($self) = @_;
    my @blocks;
    while (1) {
        my $line = $self->_read_line;
        my @words = split / /, $line;
        my $word = shift @words // '';
        die Mclistd::Refused->new($line) if $word =~ /\A(?:CLIENT_|SERVER_)?ERROR\z/;
        return \@blocks if $word eq 'END';
        if ($word eq 'VALUE' || $word eq 'ITEM') {
            my $size = $words[$word eq 'VALUE' ? 2 : 1] // '';
            die "no length of data\n" if $size !~ /\A\d{1,10}\z/;
            push @blocks, [$word, \@words, $self->_take($size)];
        } elsif ($word eq 'STAT') {
            push @blocks, [$word, \@words];
        } else {
            return $line if !@blocks;
            die "a line that is no part of this answer\n";
        }
    }
}

sub _result {
    my ($self, $shape) = @_;
    my $answer = eval { $self->_answer };
    return $@ if ref $@;
    die $@ if $@;
    my $read = Mclistd->can("_read_$shape");
    return $self->$read($answer) if !ref($answer) == ($shape =~ /\A(?:done|number|token)\z/);
    return undef if $shape eq 'items' && $answer eq 'NOT_FOUND';
    die "$answer is no answer to this\n";
}

# --- shapes of answers ---

sub _read_done { my ($self, $text) = @_; return $SAYS{$text} // die "$text is no answer to this\n" }

sub _read_number {
    my ($self, $text) = @_;
    return undef if $text eq 'NOT_FOUND' || $text eq 'NOT_STORED';
    return $text + 0 if $text =~ /\A-?\d+\z/;
    die "$text is no answer to this\n";
}

sub _read_token {
    my ($self, $text) = @_;
    return $text eq 'NOT_STORED' ? 0 : $text eq 'EXISTS' ? undef : $self->_read_number($text);
}

sub _split { my ($self, $data) = @_; return [split /\Q$self->{delimiter}\E/, $data, -1] }
sub _read_whole { my ($self, $blocks) = @_; return [map { $_->[2] } @$blocks] }
sub _read_items { my ($self, $blocks) = @_; return [map { $_->[0] eq 'ITEM' ? $_->[2] : @{$self->_split($_->[2])} } @$blocks] }
sub _read_versioned { my ($self, $blocks) = @_; return @$blocks ? [$self->_split($blocks->[0][2]), $blocks->[0][1][3]] : undef }
sub _read_each { my ($self, $blocks) = @_; return {map { $_->[1][0] => $self->_split($_->[2]) } @$blocks} }
sub _read_stats { my ($self, $blocks) = @_; return {map { my ($name, @rest) = @{$_->[1]}; $name => "@rest" } @$blocks} }

{
    package Mclistd::Pipeline;
    our @ISA = ('Mclistd');
    sub _do { my ($self, @call) = @_; push @{$self->{calls}}, [@call]; return undef }
    sub run { my ($self) = @_; return $self->{lists}->_run_all(splice @{$self->{calls}}) }
}

1;
