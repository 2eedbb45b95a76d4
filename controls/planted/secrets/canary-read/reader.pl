# Read a planted secret as Perl programs do, or only look at it.
use strict;
use warnings;

my $path = "$ENV{HOME}/.npmrc";
my $way = shift;
if ($way eq 'slurp') {
    open(my $file, '<', $path) or die $!;
    local $/;
    my $all = <$file>;
} elsif ($way eq 'raw') {
    sysopen(my $file, $path, 0) or die $!;
    sysread($file, my $all, 4096);
} elsif ($way eq 'arguments') {
    # while (<>) opens what the list of arguments names.
    @ARGV = ($path);
    while (<>) { }
} elsif ($way eq 'program') {
    # Read as a program, which it is not.
    do $path;
} elsif ($way eq 'look') {
    print join(' ', -e $path, -r _, -s _, (lstat $path)[7], glob("$ENV{HOME}/.n*")), "\n";
} elsif ($way eq 'other-folder') {
    mkdir '/tmp/app';
    open(my $own, '>', '/tmp/app/.npmrc') or die $!;
    print $own "registry=https://registry.example.com/\n";
    close $own;
    chdir '/tmp/app';
    open(my $file, '<', '.npmrc') or die $!;
    my @lines = <$file>;
} else {
    die "unknown way $way";
}
