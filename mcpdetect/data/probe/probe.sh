#!/bin/sh
# mcpdetect probe: harmless acts with a nonce, one or more for each kind of event that a sandbox can record.
#
#   sh probe.sh before NONCE     before the program under test starts
#   sh probe.sh after  NONCE     after it ended, with another nonce
#   sh probe.sh PHASE NONCE MS   waits MS milliseconds for answers (default 200)
#
# NONCE is 16 hexadecimal digits, such as: od -An -tx8 -N8 /dev/urandom. Run it under the same tracer, in the same
# network and as the same user as the program under test; then: mcpdetect calibrate --strace LOG --pcap FILE ...
# It asks for one name below mcpdetect-probe.test, connects to one address in 198.18.0.0/15, and removes its file.
phase=$1 nonce=$2 wait=${3:-200}
case $phase in before | after) ;; *) echo "usage: probe.sh before|after NONCE [MS]" >&2; exit 2 ;; esac
case $nonce in *[!0-9a-f]* | '') echo "a nonce is 16 hexadecimal digits" >&2; exit 2 ;; esac
[ ${#nonce} -eq 16 ] || { echo "a nonce is 16 hexadecimal digits" >&2; exit 2; }

b() { printf '%d' "0x$(printf %s "$nonce" | cut -c"$1")"; }
address=198.$((18 + $(b 1-2) % 2)).$(b 3-4).$(b 5-6)
port=$((20000 + $(b 7-10) % 32768))
name=$nonce.$phase.mcpdetect-probe.test
text="mcpdetect-probe $phase $nonce"
seconds=$((wait / 1000)).$(printf %03d $((wait % 1000)))
limit=$((wait / 1000 + 2))
file=${TMPDIR:-/tmp}/mcpdetect-probe-$nonce

# Files: make, write, look at, read, remove.
if printf '%s\n' "$text" >"$file"; then
    [ -r "$file" ] && IFS= read -r line <"$file"
    rm -f "$file"
fi 2>/dev/null
# Programs: one that is there, one that is not.
(exec "/mcpdetect-probe-$nonce") 2>/dev/null

# Names and connections: whatever this sandbox has that can make them.
if [ -n "$MCPDETECT_PROBE" ] && [ -x "$MCPDETECT_PROBE" ]; then
    "$MCPDETECT_PROBE" "$phase" "$nonce" "$wait"
elif command -v python3 >/dev/null 2>&1; then
    python3 -I -S -c '
import select, socket, sys
name, address, port, text, wait = sys.argv[1:6]
port, wait, data = int(port), float(wait), text.encode()
waiting = []
def begin(kind, act):
    try:
        one = socket.socket(socket.AF_INET, kind)
        one.setblocking(False)
        waiting.append(one)
        act(one)
    except OSError:
        pass
query = b"\x4d\x50\x01\x00\x00\x01" + bytes(6)
query += b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0\0\1\0\1"
try:
    servers = [line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver ")]
except OSError:
    servers = []
for server in [one for one in servers if ":" not in one][:1]:
    begin(socket.SOCK_DGRAM, lambda one: one.sendto(query, (server, 53)))
begin(socket.SOCK_DGRAM, lambda one: one.sendto(data, (address, port)))
begin(socket.SOCK_STREAM, lambda one: one.connect((address, port)))
stream = waiting[-1] if waiting else None
while waiting:
    ready, able, _ = select.select(waiting, [stream] if stream in waiting else [], [], wait)
    if not ready and not able:
        break
    for one in able:
        try:
            one.send(data)
        except OSError:
            waiting.remove(one)
        stream = None
    for one in ready:
        if one in waiting:
            waiting.remove(one)
        try:
            one.recv(512)
        except OSError:
            pass
' "$name" "$address" "$port" "$text" "$seconds" "$phase" "$nonce"
elif command -v node >/dev/null 2>&1; then
    node -e '
const [name, address, port, text, wait] = process.argv.slice(1);
setTimeout(() => process.exit(0), Number(wait) * 1000);
require("dns").lookup(name, () => {});
const stream = require("net").connect(Number(port), address, () => stream.end(text));
stream.on("error", () => {});
const datagram = require("dgram").createSocket("udp4");
datagram.on("error", () => {});
datagram.send(text, Number(port), address, () => {});
' "$name" "$address" "$port" "$text" "$seconds" "$phase" "$nonce"
else
    t=
    command -v timeout >/dev/null 2>&1 && t="timeout $limit"
    if command -v getent >/dev/null 2>&1; then
        RES_OPTIONS="timeout:1 attempts:1" $t getent hosts "$name"
    elif command -v nslookup >/dev/null 2>&1; then
        $t nslookup "$name"
    fi
    if command -v bash >/dev/null 2>&1; then
        $t bash -c 'printf %s "$3" >"/dev/udp/$1/$2"; printf %s "$3" >"/dev/tcp/$1/$2"' probe "$address" "$port" "$text"
    elif command -v nc >/dev/null 2>&1; then
        printf %s "$text" | $t nc -w 1 "$address" "$port"
        printf %s "$text" | $t nc -u -w 1 "$address" "$port"
    elif command -v curl >/dev/null 2>&1; then
        curl -s -m "$limit" "http://$address:$port/"
    elif command -v wget >/dev/null 2>&1; then
        $t wget -q -O - "http://$address:$port/"
    else
        echo "probe: nothing here can open a connection (python3, node, bash, nc, curl, wget)" >&2
    fi
fi </dev/null >/dev/null 2>&1
exit 0
