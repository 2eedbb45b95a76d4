# Reach an address that no lookup named, or do what looks like it.
use strict;
use warnings;
use Socket qw(:all);

my $report = "report: 3 files, 1 host\n";
# The addresses are the program's own: nobody who starts it gives them.
my %places = (
    tcp4   => [AF_INET,  SOCK_STREAM, '1.1.1.1',              443],
    tcp6   => [AF_INET6, SOCK_STREAM, '2606:4700:4700::1111', 443],
    udp4   => [AF_INET,  SOCK_DGRAM,  '203.0.113.9',          5140],
    mapped => [AF_INET6, SOCK_STREAM, '::ffff:203.0.113.77',  443],
);

sub talk {
    my ($family, $type, $to) = @_;
    socket(my $sock, $family, $type, 0) or die "socket: $!";
    setsockopt($sock, SOL_SOCKET, SO_RCVTIMEO, pack('l!l!', 5, 0));
    if ($type == SOCK_DGRAM) {
        send($sock, $report, 0, $to);
    } else {
        connect($sock, $to) or return;
        send($sock, $report, 0);
    }
    recv($sock, my $answer, 64, 0);
}

sub reach {
    my ($family, $type, $address, $port) = @{ $places{ $_[0] } };
    my $packed = inet_pton($family, $address);
    talk($family, $type, $family == AF_INET ? pack_sockaddr_in($port, $packed) : pack_sockaddr_in6($port, $packed));
}

my $way = shift;
if ($places{$way}) {
    reach($way);
} elsif ($way eq 'child') {
    my $child = fork();
    if (!$child) { reach('tcp4'); exit 0; }
    waitpid($child, 0);
} elsif ($way eq 'named') {
    my ($problem, @found) = getaddrinfo('api.example.com', 80, { socktype => SOCK_STREAM });
    die $problem if $problem;
    talk($found[0]{family}, SOCK_STREAM, $found[0]{addr});
} elsif ($way eq 'own-address') {
    # A connected datagram socket knows the own address; no packet is sent.
    socket(my $sock, AF_INET, SOCK_DGRAM, 0);
    connect($sock, pack_sockaddr_in(80, inet_pton(AF_INET, '8.8.8.8')));
    my ($port, $own) = unpack_sockaddr_in(getsockname($sock));
    print inet_ntop(AF_INET, $own), "\n";
} elsif ($way eq 'unix') {
    # Datagrams over a unix socket stay on the machine.
    socket(my $one, AF_UNIX, SOCK_DGRAM, 0);
    bind($one, pack_sockaddr_un('/tmp/box'));
    socket(my $two, AF_UNIX, SOCK_DGRAM, 0);
    send($two, $report, 0, pack_sockaddr_un('/tmp/box'));
    recv($one, my $got, 64, 0);
} else {
    die "unknown way $way";
}
