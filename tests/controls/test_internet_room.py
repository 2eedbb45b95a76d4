"""The fake internet as a target meets it: the room's trust, the table of names behind dnsmasq, kept keys, the truth."""

import base64
import json
import os
import struct
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import zstandard

import mcpdetect
from controls.catalog import Control, Variant
from controls.recorder.background import wait_until
from controls.recorder.cell import GATEWAY4, Cell
from controls.recorder.errors import RecorderError
from controls.recorder.internet.names import address4
from controls.recorder.internet.process import load_one, start
from controls.recorder.internet.settings import Settings
from controls.recorder.record import record
from controls.recorder.tools import missing

PROBLEM = missing(["node", "curl"])
pytestmark = pytest.mark.skipif(PROBLEM is not None, reason=f"cannot record here: {PROBLEM}")

NAMES: dict[str, Any] = {
    "api.example.com": {"http": [{"path": "/v1", "json": {"answer": 42}}]},
    "www.example.com": {"cname": "cdn.example.net"},
    "note.example.com": {"txt": ["one", "y" * 255, "z" * 255, "w" * 255]},
    "post.example.com": {"mx": "10 mail.example.com"},
    "new.example.com": {"https": "1 . alpn=h2"},
    "gone.example.com": {"answer": "nxdomain"},
    "closed.example.com": {"answer": "refused"},
    "mute.example.com": {"answer": "silent"},
    "slow.example.com": {"delay_ms": 700},
}
# Three runtimes, each with what it trusts by itself; the last client trusts nobody and must fail.
PROGRAM = """
import json, os, ssl, subprocess, urllib.error, urllib.request
with urllib.request.urlopen("https://api.example.com/v1") as answer:
    python = json.load(answer)
script = "fetch('https://api.example.com/v1').then((got) => got.json()).then((got) => console.log(JSON.stringify(got)))"
node = json.loads(subprocess.run(["/usr/bin/node", "-e", script], capture_output=True, check=True).stdout)
curl = subprocess.run(
    ["/usr/bin/curl", "-sS", "-w", " %{http_version}", "https://api.example.com/v1"], capture_output=True, check=True
).stdout.decode()
bare = {name: value for name, value in os.environ.items() if not name.endswith(("_FILE", "_CERTS", "_BUNDLE"))}
again = subprocess.run(
    ["/usr/bin/curl", "-sS", "https://api.example.com/v1"], env=bare, capture_output=True, check=True
).stdout.decode()
try:
    urllib.request.urlopen("https://api.example.com/v1", context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    untrusting = ""
except urllib.error.URLError as error:
    untrusting = error.reason.verify_message
told = json.dumps([python, node, curl, again, untrusting])
urllib.request.urlopen("http://report.example.com/", told.encode()).close()
"""


def made(folder: Path, program: str, **changes: object) -> tuple[Control, Variant]:
    """Return a control of one Python program."""
    folder = folder / "made" / "up"
    folder.mkdir(parents=True)
    (folder / "program.py").write_text(program)
    settings: dict[str, object] = {
        "name": "python",
        "truth": "silent",
        "why": "made up",
        "run": ("/usr/bin/python3", "-s", "-S", "{control}/program.py"),
        "axes": {"runtime": "python"},
        "expect": {},
        **changes,
    }
    return Control("made/up", folder, "nothing"), Variant(**settings)  # type: ignore[arg-type]


def truth(bundle: Path) -> list[dict[str, Any]]:
    manifest = json.loads((bundle / "manifest.json").read_text())
    (entry,) = manifest["truth"]
    data = (bundle / entry["path"]).read_bytes()
    assert (entry["what"], sha256(data).hexdigest(), len(data)) == ("fake-internet", entry["sha256"], entry["bytes"])
    if entry["path"].endswith(".zst"):
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    return [json.loads(line) for line in data.splitlines()]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("room")
    control, variant = made(folder, PROGRAM, names=NAMES, keylog=True, seconds=60.0)
    return record(control, variant, folder / "out")


def test_python_node_and_curl_validate_the_authority_of_the_room(bundle: Path) -> None:
    report = [
        json.loads(base64.b64decode(line["body"]))
        for line in truth(bundle)
        if line["kind"] == "request" and line["host"] == "report.example.com"
    ]
    assert report == [
        [
            {"answer": 42},
            {"answer": 42},
            '{"answer": 42} 2',
            '{"answer": 42}',
            "self-signed certificate in certificate chain",
        ]
    ]


def test_the_truth_is_no_evidence_and_the_keys_are(bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["run"]["exit"] == 0
    assert [(one["channel"], one["format"]) for one in manifest["evidence"] if one["channel"] == "packets"] == [
        ("packets", "pcap"),
        ("packets", "tls-keylog"),
    ]
    assert not [one for one in manifest["evidence"] if one["path"].startswith("truth")]
    result = mcpdetect.check(bundle)
    seen = {one.source: one.counts for one in result.observations if one.format == "tls-keylog"}
    assert len(seen) == 1
    # Python, Node and curl twice; the client that trusted nobody had keys for its handshake as well.
    assert next(iter(seen.values()))["connections"] in (4, 5)
    (bundle / "truth").rename(bundle / "elsewhere")
    try:
        assert mcpdetect.check(bundle).checks == result.checks
    finally:
        (bundle / "elsewhere").rename(bundle / "truth")


def test_every_connection_of_the_run_is_in_the_truth(bundle: Path) -> None:
    lines = truth(bundle)
    tls = [line for line in lines if line["kind"] == "tls"]
    assert [(line["sni"], line["version"]) for line in tls] == [("api.example.com", "TLSv1.3")] * 4
    assert [line["sni"] for line in lines if line["kind"] == "tls-failed"] == ["api.example.com"]
    assert {line["to"][0] for line in lines if line["kind"] == "connection"} >= {address4("api.example.com")}
    assert [line for line in lines if line["kind"] == "fault"] == []


def test_where_no_program_keeps_keys_the_bundle_says_so(tmp_path: Path) -> None:
    control, variant = made(tmp_path, "pass\n", keylog=True)
    manifest = json.loads((record(control, variant, tmp_path / "out") / "manifest.json").read_text())
    assert manifest["run"]["notes"] == ["no program of the run kept the keys of its TLS connections"]
    assert [one["format"] for one in manifest["evidence"]].count("tls-keylog") == 0


def test_a_program_cannot_put_anything_else_in_the_place_of_its_keys(tmp_path: Path) -> None:
    program = """
import os
for act in (
    lambda: os.unlink("/run/keys/tls-keys.log"),
    lambda: os.rename("/run/keys/tls-keys.log", "/run/keys/other"),
    lambda: os.symlink("/etc/passwd", "/run/keys/more"),
):
    try:
        act()
        raise SystemExit("it could")
    except PermissionError:
        pass
open(os.environ["SSLKEYLOGFILE"], "a").write("no key log\\n")
"""
    control, variant = made(tmp_path, program, keylog=True)
    made_bundle = record(control, variant, tmp_path / "out")
    assert json.loads((made_bundle / "manifest.json").read_text())["run"]["exit"] == 0
    assert (made_bundle / "tls-keys.log").read_bytes() == b"no key log\n"


ASKING = """
import json, socket, struct, sys, time
server, asked = json.loads(sys.argv[1])
said = []
for name, kind, over in asked:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    question = struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + b"\\0" + struct.pack(">HH", kind, 1)
    began = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM if over == "udp" else socket.SOCK_STREAM) as sock:
        sock.settimeout(3)
        sock.connect((server, 53))
        try:
            if over == "udp":
                sock.send(question)
                answer = sock.recv(65536)
            else:
                sock.sendall(len(question).to_bytes(2, "big") + question)
                size, answer = int.from_bytes(sock.recv(2), "big"), b""
                while len(answer) < size:
                    answer += sock.recv(65536)
        except TimeoutError:
            answer = b""
    said.append([answer.hex(), time.monotonic() - began])
print(json.dumps(said))
"""


def test_the_cells_name_server_passes_on_what_the_table_says(tmp_path: Path) -> None:
    asked = [
        ("www.example.com", 1, "udp"),
        ("note.example.com", 16, "udp"),
        ("note.example.com", 16, "tcp"),
        ("post.example.com", 15, "udp"),
        ("new.example.com", 65, "udp"),
        ("gone.example.com", 1, "udp"),
        ("closed.example.com", 1, "udp"),
        ("mute.example.com", 1, "udp"),
        ("slow.example.com", 1, "udp"),
    ]
    with Cell(tmp_path, names=NAMES, capture=False) as cell:
        done = subprocess.run(
            [
                *("nsenter", f"--net=/proc/{cell.keeper}/ns/net", "--", sys.executable, "-c", ASKING),
                json.dumps([GATEWAY4, asked]),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    told = json.loads(done.stdout)
    answers = [bytes.fromhex(answer) for answer, _ in told]
    # Response code, whether it was cut, number of answers; silence is no message.
    found = [
        (answer[3] & 15, bool(answer[2] & 2), struct.unpack_from(">H", answer, 6)[0]) if answer else None
        for answer in answers
    ]
    assert found == [
        (0, False, 2),
        (0, True, 0),
        (0, False, 4),
        (0, False, 1),
        (0, False, 1),
        (3, False, 0),
        (5, False, 0),
        None,
        (0, False, 1),
    ]
    assert answers[0].endswith(bytes(int(part) for part in address4("cdn.example.net").split(".")))
    assert b"\xff" + b"w" * 255 in answers[2]
    assert told[8][1] >= 0.7
    log = (tmp_path / "dnsmasq.log").read_text()
    assert "reply www.example.com is <CNAME>" in log
    assert f"reply cdn.example.net is {address4('cdn.example.net')}" in log


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controls.recorder.internet.process._PACKAGES", ("h11", "no_such_package"))
    with pytest.raises(RecorderError, match=r"needs more Python packages \(pip install no_such_package\)"):
        start(Settings("answer", "", ""), os.getpid(), tmp_path / "said")


def test_one_that_was_loaded_beforehand_serves_in_the_cells_namespace(tmp_path: Path) -> None:
    load_one()
    with Cell(tmp_path, names=NAMES, capture=False) as cell:
        done = subprocess.run(
            [
                *("nsenter", f"--net=/proc/{cell.keeper}/ns/net", "--", sys.executable, "-c", ASKING),
                json.dumps([GATEWAY4, [("www.example.com", 1, "udp")]]),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        cell.close_watchers()
    assert json.loads(done.stdout)[0][0] != ""
    lines = [json.loads(line) for line in (tmp_path / "internet.jsonl").read_text().splitlines()]
    assert [(line["kind"], line["over"], line["name"]) for line in lines] == [("query", "dnsmasq", "www.example.com")]


def test_one_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "authority").write_text("no key")
    settings = Settings("answer", str(tmp_path / "nowhere/journal"), str(tmp_path / "authority"))
    with pytest.raises(RecorderError, match=r"(?s)ended before it was ready.*No such file or directory: .*journal"):
        start(settings, os.getpid(), tmp_path / "said")


def test_a_burst_of_datagrams_is_all_in_the_journal(tmp_path: Path) -> None:
    burst = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    for number in range(2000):
        sock.sendto(str(number).encode(), (f"203.0.113.{number % 250}", 1000 + number))
"""
    with Cell(tmp_path, capture=False) as cell:
        subprocess.run(
            ["nsenter", f"--net=/proc/{cell.keeper}/ns/net", "--", sys.executable, "-c", burst], timeout=60, check=True
        )
        wanted = b'"to": ["203.0.113.249", 2999]'
        wait_until(lambda: wanted in (tmp_path / "internet.jsonl").read_bytes(), "the last datagram", 30.0)
        cell.close_watchers()
    lines = [json.loads(line) for line in (tmp_path / "internet.jsonl").read_text().splitlines()]
    assert [(line["kind"], line["to"]) for line in lines] == [
        ("datagram", [f"203.0.113.{number % 250}", 1000 + number]) for number in range(2000)
    ]
    assert [base64.b64decode(line["bytes"]) for line in lines] == [str(number).encode() for number in range(2000)]
