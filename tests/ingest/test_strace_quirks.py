"""What real logs of strace 6.1 were seen to do, each on a minimal excerpt."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

from strace_tools import script


def test_quirk_01_a_stale_decoration_does_not_name_the_peer(tmp_path: Path) -> None:
    text = r"""
6 socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = 6<UDP:[900]>
6 connect(6<UDP:[900]>, {sa_family=AF_INET, sin_port=htons(9), sin_addr=inet_addr("127.0.0.1")}, 16) = 0
6 connect(6<UDP:[127.0.0.1:46071->127.0.0.1:9]>, {sa_family=AF_INET, sin_port=htons(9), sin_addr=inet_addr("203.0.113.3")}, 16) = 0
6 sendto(6<UDP:[127.0.0.1:46071->127.0.0.1:9]>, "z", 1, 0, NULL, 0) = 1
6 sendto(6<UDP:[127.0.0.1:46071->127.0.0.1:9]>, "q", 1, 0, {sa_family=AF_INET, sin_port=htons(7), sin_addr=inet_addr("203.0.113.4")}, 16) = 1
6 connect(6<UDP:[127.0.0.1:46071->127.0.0.1:9]>, {sa_family=AF_UNSPEC, sa_data="\0\0\0\0\0\0\0\0\0\0\0\0\0\0"}, 16) = 0
6 sendto(6<UDP:[127.0.0.1:46071->127.0.0.1:9]>, "n", 1, 0, NULL, 0) = -1 EDESTADDRREQ (Destination address required)
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='6' call='' how='seen'
socket.open@1 process='6' call='socket' result=6 socket='s1' fd=6 family='inet' type='dgram' protocol='IPPROTO_IP'
socket.connect@2 process='6' call='connect' result=0 socket='s1' fd=6 transport='udp' family='inet' address='127.0.0.1' port=9
socket.connect@3 process='6' call='connect' result=0 socket='s1' fd=6 transport='udp' family='inet' address='203.0.113.3' port=9
socket.send@4 process='6' call='sendto' result=1 socket='s1' fd=6 transport='udp' address='203.0.113.3' port=9 remote_source='connect' size=1 tried=1 data=b'z'
socket.send@5 process='6' call='sendto' result=1 socket='s1' fd=6 transport='udp' address='203.0.113.4' port=7 remote_source='argument' size=1 tried=1 data=b'q'
socket.connect@6 process='6' call='connect' result=0 socket='s1' fd=6 transport='udp' family='unspec'
socket.send@7 process='6' call='sendto' error='EDESTADDRREQ' socket='s1' fd=6 transport='udp' tried=1 data=b'n'
loss no-exit x1
note no-clock x1
7 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_quirk_02_a_socket_is_the_same_when_its_decoration_changes(tmp_path: Path) -> None:
    text = """
17 socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) = 17<TCP:[571196]>
17 connect(17<TCP:[571196]>, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("198.18.0.1")}, 16) = -1 EINPROGRESS (Operation now in progress)
17 close(17<TCP:[10.200.0.2:60594->198.18.0.1:443]>) = 0
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='17' call='' how='seen'
socket.open@1 process='17' call='socket' result=17 socket='s1' fd=17 family='inet' type='stream' protocol='IPPROTO_TCP'
socket.connect@2 process='17' call='connect' error='EINPROGRESS' socket='s1' fd=17 transport='tcp' family='inet' address='198.18.0.1' port=443 outcome='in_progress'
socket.state@3 process='17' call='close' result=0 socket='s1' fd=17 source='close'
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_quirk_03_brackets_of_ipv6_nest(tmp_path: Path) -> None:
    text = """
5 sendto(3<TCPv6:[[::ffff:10.200.0.2]:58390->[::ffff:169.254.169.254]:80]>, "x", 1, 0, NULL, 0) = 1
5 listen(9<TCPv6:[[::]:9009]>, 128) = 0
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='5' call='' how='seen'
socket.send@1 process='5' call='sendto' result=1 socket='s1' fd=3 transport='tcp' address='169.254.169.254' port=80 remote_source='decoration' size=1 tried=1 data=b'x'
socket.listen@2 process='5' call='listen' result=0 operation='listen' socket='s2' fd=9 transport='tcp' address='::' port=9009
loss no-exit x1
note no-clock x1
2 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_quirk_04_every_kind_of_decoration(tmp_path: Path) -> None:
    text = """
5 write(4<UNIX-STREAM:[87846->87847]>, "a", 1) = 1
5 write(10<UNIX-STREAM:[450723,"/tmp/dotnet-diagnostic-43-178705-socket"]>, "b", 1) = 1
5 write(12<UNIX:[515222->515223]>, "c", 1) = 1
5 write(17<NETLINK:[ROUTE:36]>, "d", 1) = 1
5 read(0</dev/null<char 1:3>>, "", 1) = 0
5 read(6</memfd:shared-memory-region>(deleted), "e", 1) = 1
5 read(3<anon_inode:inotify>, "f", 1) = 1
5 read(8<anon_inode:[eventpoll]>, "f", 1) = 1
5 read(9<pipe:[543143]>, "g", 1) = 1
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='5' call='' how='seen'
socket.send@1 process='5' call='write' result=1 socket='s1' fd=4 transport='unix' size=1 tried=1 data=b'a'
socket.send@2 process='5' call='write' result=1 socket='s2' fd=10 transport='unix' size=1 tried=1 data=b'b'
socket.send@3 process='5' call='write' result=1 socket='s3' fd=12 transport='unix' size=1 tried=1 data=b'c'
socket.send@4 process='5' call='write' result=1 socket='s4' fd=17 transport='netlink' size=1 tried=1 data=b'd'
file.read@5 process='5' call='read' result=0 path='/dev/null' fd=0 size=0 inherited=True
file.read@6 process='5' call='read' result=1 path='/memfd:shared-memory-region' fd=6 size=1 data=b'e' inherited=True
file.read@9 process='5' call='read' result=1 path='pipe:[543143]' fd=9 size=1 data=b'g' inherited=True
loss no-exit x1
note no-clock x1
9 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_quirk_05_arguments_and_descriptor_of_the_resumed_half(tmp_path: Path) -> None:
    text = r"""
5 socket(AF_INET, SOCK_DGRAM, IPPROTO_IP <unfinished ...>
6 gettid( <unfinished ...>
5 <... socket resumed>) = 17<UDP:[468181]> <0.000068>
5 connect(17<UDP:[468181]>, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("10.200.0.1")}, 16) = 0
5 sendmmsg(17<UDP:[10.200.0.2:1->10.200.0.1:53]>,  <unfinished ...>
6 <... gettid resumed>) = 6
5 <... sendmmsg resumed>[{msg_hdr={msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="\311+\1\0\0\1\0\0\0\0\0\0\5probe\7example\3com\0\0\1\0\1", iov_len=35}], msg_iovlen=1, msg_controllen=0, msg_flags=0}, msg_len=35}, {msg_hdr={msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="\206)\1\0\0\1\0\0\0\0\0\0\5probe\7example\3com\0\0\34\0\1", iov_len=35}], msg_iovlen=1, msg_controllen=0, msg_flags=0}, msg_len=35}], 2, MSG_NOSIGNAL) = 2
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
process.start@1 process='5' call='' how='seen'
process.start@2 process='6' call='' how='seen'
socket.open@1+3 process='5' call='socket' result=17 socket='s1' fd=17 family='inet' type='dgram' protocol='IPPROTO_IP'
socket.connect@4 process='5' call='connect' result=0 socket='s1' fd=17 transport='udp' family='inet' address='10.200.0.1' port=53
socket.send@5+7 process='5' call='sendmmsg' result=2 socket='s1' fd=17 transport='udp' address='10.200.0.1' port=53 remote_source='connect' size=35 tried=35 data=b'\xc9+\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x05probe\x07example\x03com\x00\x00\x01\x00\x01'
dns.query@5+7 process='5' seen_in='syscalls' name='probe.example.com' server='10.200.0.1' server_port=53 transport='udp' id=51499
socket.send@5+7 process='5' call='sendmmsg' result=2 socket='s1' fd=17 transport='udp' address='10.200.0.1' port=53 remote_source='connect' size=35 tried=35 data=b'\x86)\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x05probe\x07example\x03com\x00\x00\x1c\x00\x01'
dns.query@5+7 process='5' seen_in='syscalls' name='probe.example.com' type='AAAA' server='10.200.0.1' server_port=53 transport='udp' id=34345
loss no-exit x1
note no-clock x1
7 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_quirk_06_the_double_form_is_one_end(tmp_path: Path) -> None:
    text = """
47 1796038875.186399 epoll_pwait(13<anon_inode:[eventpoll]>,  <unfinished ...>
47 1796038875.186500 <... epoll_pwait resumed> <unfinished ...>) = ?
47 1796038875.186600 +++ killed by SIGKILL +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 t_ns=1796038875186399000 process='47' call='' how='seen'
process.exit@3 t_ns=1796038875186600000 process='47' signal='SIGKILL'
3 lines 0 unparsed 0 orphans 1 exits complete clock=epoch
"""
    )


def test_quirk_07_calls_without_a_result_hide_nothing(tmp_path: Path) -> None:
    text = """
5 read(0<pipe:[1]>,  <unfinished ...>
6 futex(0x7f, FUTEX_WAIT, 0, NULL <unfinished ...>
7 exit_group(0)   = ?
6 <... futex resumed>) = ?
5 <... read resumed> <unfinished ...>) = ?
7 +++ exited with 0 +++
6 +++ exited with 0 +++
5 +++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='5' call='' how='seen'
process.start@2 process='6' call='' how='seen'
process.start@3 process='7' call='' how='seen'
file.read@1+5 process='5' call='read' path='pipe:[1]' fd=0 inherited=True
process.exit@6 process='7' code=0
process.exit@7 process='6' code=0
process.exit@8 process='5' code=0
note no-clock x1
8 lines 0 unparsed 0 orphans 3 exits complete clock=none
"""
    )


def test_quirk_08_an_unknown_call_at_death_hides_nothing(tmp_path: Path) -> None:
    text = """
208 1796039081.956640 ???( <unfinished ...>
208 1796039081.956700 +++ killed by SIGKILL +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@2 t_ns=1796039081956700000 process='208' call='' how='seen'
process.exit@2 t_ns=1796039081956700000 process='208' signal='SIGKILL'
2 lines 0 unparsed 0 orphans 1 exits complete clock=epoch
"""
    )


def test_quirk_09_restarts_are_errors_of_their_own(tmp_path: Path) -> None:
    text = """
5 connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.7")}, 16) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.000054>
5 accept(4, NULL, NULL) = ? ERESTARTNOHAND (To be restarted if no handler) <0.1>
5 read(9</etc/hostname>, 0x7ff, 4) = ? ERESTART_RESTARTBLOCK (Interrupted by signal)
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='5' call='' how='seen'
socket.connect@1 process='5' call='connect' error='ERESTARTSYS' socket='s1' fd=3 family='inet' address='203.0.113.7' port=443 outcome='in_progress' duration_ns=54000
socket.listen@2 process='5' call='accept' error='ERESTARTNOHAND' operation='accept'
file.read@3 process='5' call='read' error='ERESTART_RESTARTBLOCK' path='/etc/hostname' fd=9 inherited=True
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_quirk_10_signals_are_no_events(tmp_path: Path) -> None:
    text = """
43 12:00:00.000001 --- SIGURG {si_signo=SIGURG, si_code=SI_TKILL, si_pid=43, si_uid=1000} ---
43 12:00:00.000002 --- SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=0, si_uid=0} ---
43 12:00:00.000003 +++ killed by SIGTERM +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@3 t_ns=43200000003000 process='43' call='' how='seen'
process.exit@3 t_ns=43200000003000 process='43' signal='SIGTERM'
3 lines 0 unparsed 0 orphans 1 exits complete clock=time-of-day
"""
    )


def test_quirk_11_a_process_ends_with_its_last_thread(tmp_path: Path) -> None:
    text = """
38 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM, exit_signal=0, stack=0x7f, stack_size=0x7fff80} => {parent_tid=[40]}, 88) = 40
40 openat(AT_FDCWD, "/etc/hostname", O_RDONLY) = 3
38 read(3, "h", 1) = 1
38 +++ exited with 127 +++
40 +++ killed by SIGTERM (core dumped) +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='38' call='' how='seen'
file.open@2 process='38' tid=40 call='openat' result=3 path='/etc/hostname' access='read' flags='O_RDONLY' fd=3 written='/etc/hostname'
file.read@3 process='38' call='read' result=1 path='/etc/hostname' fd=3 size=1 data=b'h'
process.exit@5 process='38' code=127
note no-clock x1
5 lines 0 unparsed 0 orphans 2 exits complete clock=none
"""
    )


def test_quirk_12_a_childs_lines_come_before_the_line_that_names_it(tmp_path: Path) -> None:
    text = """
37 chdir("/srv") = 0
37 vfork( <unfinished ...>
39 openat(AT_FDCWD, "app.js", O_RDONLY) = 5
39 execve("/bin/sh", ["sh"], 0x7ff /* 1 var */ <unfinished ...>
37 <... vfork resumed>) = 39
37 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM, exit_signal=0, stack=0x7f, stack_size=0x7fff80} <unfinished ...>
41 openat(AT_FDCWD, "lib.js", O_RDONLY) = 6
37 <... clone3 resumed> => {parent_tid=[41]}, 88) = 41
39 <... execve resumed>) = 0
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='37' call='' how='seen'
file.open@3 process='39' call='openat' result=5 path='/srv/app.js' access='read' flags='O_RDONLY' fd=5 written='app.js'
process.start@2+5 process='39' call='vfork' result=39 how='clone' parent='37' flags=['CLONE_VFORK', 'CLONE_VM']
file.open@7 process='37' tid=41 call='openat' result=6 path='/srv/lib.js' access='read' flags='O_RDONLY' fd=6 written='lib.js'
process.start@4+9 process='39' call='execve' result=0 parent='37' executable='/bin/sh' argv=['sh'] env_count=1
loss no-exit x1
note no-clock x1
9 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )
