"""Promotion: a reviewed trace becomes a small permanent case, without personal details."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import struct
from pathlib import Path

import pytest

import mcpdetect
from mcpdetect.cli.main import main
from mcpdetect.errors import ConfigError
from mcpdetect.labels.loader import load_label, load_labels
from mcpdetect.score.promote import reduce
from mcpdetect.score.promote_packets import readdressed
from mcpdetect.score.promote_redact import Redaction, find_details
from mcpdetect.score.runner import run_bundle

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "corpus"
DETECTORS = mcpdetect.installed_detectors()
DETECTED = [
    ("egress/direct-ip/python-tcp4", "egress.direct-ip", 1),
    ("egress/unexplained-host/python-undocumented", "egress.unexplained-host", 1),
    ("secrets/canary-read/node-async", "secrets.canary-read", 2),
    ("secrets/canary-read/c-hardlink", "secrets.canary-read", 2),
    ("network/blocked/python-named-output-drop", "network.blocked", 1),
    ("mcp/exfil-instruction/node-mail-secrets", "mcp.exfil-instruction", 7),
]


@pytest.mark.parametrize(("case", "check", "most"), DETECTED, ids=[one[0] for one in DETECTED])
def test_little_is_left_and_it_shows_the_same_finding(case: str, check: str, most: int) -> None:
    left = reduce(CORPUS / case, DETECTORS, check)
    whole = left.recording.whole[check]
    assert left.result.verdict == whole.verdict == "detected"
    assert [finding.key for finding in left.result.findings] == [finding.key for finding in whole.findings]
    assert left.after == sum(len(content.parts) for content in left.contents.values())
    assert 1 <= left.after <= most < left.before


def test_a_hidden_fact_stays_hidden_for_the_same_reason() -> None:
    left = reduce(CORPUS / "secrets/canary-read/c-io-uring", DETECTORS, "secrets.canary-read")
    assert left.result.verdict == "not_observable"
    assert {limit.what for limit in left.result.limits if limit.hides} == {"io_uring"}
    assert left.after < 5 < left.before


def test_silence_is_kept_whole() -> None:
    left = reduce(CORPUS / "egress/direct-ip/python-named", DETECTORS, "egress.direct-ip")
    assert left.result.verdict == "not_detected"
    assert left.after == left.before > 100


def test_places_that_a_person_names_stay() -> None:
    bundle = CORPUS / "egress/direct-ip/python-tcp4"
    left = reduce(bundle, DETECTORS, "egress.direct-ip", keep=["strace.log.zst:1", "capture.pcap#2"])
    assert {name: len(content.parts) for name, content in left.contents.items()}.keys() >= {
        "strace.log.zst",
        "capture.pcap",
    }
    assert b" execve(" in left.contents["strace.log.zst"].parts[0]


@pytest.mark.parametrize("place", ["strace.log.zst:999999", "other.log:1", "strace.log.zst", "strace.log.zst:0"])
def test_a_place_that_is_none_is_an_error(place: str) -> None:
    with pytest.raises(ConfigError, match="is no place in this evidence"):
        reduce(CORPUS / "egress/direct-ip/c-tcp4", DETECTORS, "egress.direct-ip", keep=[place])


def promote(tmp_path: Path, bundle: Path, check: str, *more: str) -> tuple[int, Path, Path]:
    corpus, labels = tmp_path / "corpus", tmp_path / "labels"
    folders = ["--corpus", str(corpus), "--labels", str(labels)]
    code = main(["label", "promote", str(bundle), "--check", check, "--why", "so", "--by", "tester", *folders, *more])
    return code, corpus, labels


def test_a_promoted_case_is_labelled_and_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = CORPUS / "network/blocked/python-named-output-drop"
    code, corpus, labels = promote(tmp_path, bundle, "network.blocked", "--name", "one", "--seed", "5")
    assert code == 0
    assert capsys.readouterr().out.splitlines() == [
        str(corpus / "network/blocked/one"),
        str(labels / "cases/network/blocked/one.yaml"),
    ]
    (label,) = load_labels(labels, corpus)
    assert (label.case, label.truth, label.why, label.todo) == ("network/blocked/one", "fires", "so", None)
    assert label.checks["network.blocked"].places == ["strace.log:1"]
    assert label.provenance.control == "promoted"
    assert label.axes == {"origin": "promoted"}
    assert (label.reviewed.by, set(label.checks)) == ("tester", set(DETECTORS))
    text = (corpus / "network/blocked/one/strace.log").read_text()
    # sendmmsg(3<UDP:[10.200.0.2:34912->10.200.0.1:53]>, ... = -1 EPERM
    assert re.search(r"10\.\d\d\d\.\d\.\d:\d+->10\.\d\d\d\.\d\.\d:53", text)
    assert "10.200.0." not in text + (corpus / "network/blocked/one/manifest.json").read_text()


def test_the_same_seed_gives_the_same_case_and_no_seed_another(tmp_path: Path) -> None:
    bundle = CORPUS / "secrets/canary-read/c-hardlink"
    found = []
    for name, more in (("a", ["--seed", "1"]), ("b", ["--seed", "1"]), ("c", [])):
        _, corpus, _ = promote(tmp_path / name, bundle, "secrets.canary-read", "--name", "x", *more)
        found.append((corpus / "secrets/canary-read/x/strace.log").read_bytes())
    assert found[0] == found[1] != found[2]
    assert b"/home/dev/" not in b"".join(found)


def test_a_false_accusation_is_kept_whole_unless_somebody_says_what_makes_it_false(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = CORPUS / "egress/direct-ip/c-tcp4"
    code, corpus, labels = promote(tmp_path, bundle, "egress.direct-ip", "--name", "one", "--truth", "silent")
    assert code == 0
    assert "nothing was taken out" in capsys.readouterr().err
    label = load_label(labels / "cases/egress/direct-ip/one.yaml", bundle=corpus / "egress/direct-ip/one")
    assert label.truth == "silent"
    assert label.checks["egress.direct-ip"].verdict == "not_detected"
    assert label.todo == "egress.direct-ip says detected today: so"
    code, corpus, _ = promote(
        tmp_path, bundle, "egress.direct-ip", "--name", "two", "--truth", "silent", "--keep", "capture.pcap#3"
    )
    assert code == 0
    assert len(list((corpus / "egress/direct-ip/two").iterdir())) == 2


def test_nothing_is_overwritten_and_a_failure_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = CORPUS / "egress/direct-ip/c-tcp4"
    assert promote(tmp_path, bundle, "egress.direct-ip", "--name", "one")[0] == 0
    code, corpus, labels = promote(tmp_path, bundle, "egress.direct-ip", "--name", "one")
    assert code == 4
    assert "exists already" in capsys.readouterr().err
    code, corpus, labels = promote(tmp_path, bundle, "egress.unexplained-host", "--name", "two", "--truth", "fires")
    assert code == 4
    assert [path.name for path in sorted(corpus.rglob("manifest.json"))] == ["manifest.json"]
    assert len(list(labels.rglob("*.yaml"))) == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--check", "egress.nothing"], 2), (["--check", "egress.direct-ip", "--name", "../up"], 2)],
)
def test_wrong_usage_is_told(tmp_path: Path, arguments: list[str], code: int) -> None:
    bundle = str(CORPUS / "egress/direct-ip/c-tcp4")
    assert main(["label", "promote", bundle, "--why", "so", "--by", "x", *arguments]) == code


def test_what_is_no_bundle_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert promote(tmp_path, tmp_path, "egress.direct-ip")[0] == 4
    assert "is no bundle" in capsys.readouterr().err


def test_names_are_found_in_homes_and_in_uname() -> None:
    text = b'openat(AT_FDCWD, "/home/alice/x") uname({sysname="Linux", nodename="build-7"}) "/Users/bob" "/home/root/"'
    assert find_details([text]) == [b"alice", b"bob", b"build-7"]


def test_details_are_replaced_everywhere_at_equal_length_and_consistently() -> None:
    change = Redaction([b"alice", b"dev", b"build-7"], seed=3)
    text = b"/home/alice/a /dev/null /home/dev/b alice@build-7 malice 192.168.1.23:80 8.8.8.8 10.0.0.1 192.168.1.23"
    made = change.text(text)
    assert len(made) == len(text)
    assert change.text(text) == made
    assert b"alice@" not in made
    assert b"build-7" not in made
    assert b" /dev/null " in made
    assert b" malice " in made
    assert b" 8.8.8.8 " in made
    assert b"/home/dev/" not in made
    first, last = re.findall(rb"192\.168\.\d\.\d\d", made)
    assert first == last != b"192.168.1.23"
    assert change.addresses.keys() == {b"192.168.1.23", b"10.0.0.1"}


def test_addresses_of_one_network_stay_in_one_network_and_stay_apart() -> None:
    change = Redaction([], seed=9)
    made = [change.address(f"10.200.0.{last}".encode()) for last in range(256)]
    assert len(set(made)) == 256
    assert len({one.rpartition(b".")[0] for one in made}) == 1
    assert [len(one) for one in made] == [len(f"10.200.0.{last}") for last in range(256)]


def test_what_only_looks_like_an_address_stays() -> None:
    change = Redaction([], seed=9)
    text = b"10.200.0.999 10.01.0.1 1.10.0.0.1 version 10.0.0.1.2 110.0.0.1"
    assert change.text(text) == text


def checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data + b"\0" * (len(data) % 2)))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def test_packets_keep_right_checksums_under_their_new_addresses(tmp_path: Path) -> None:
    bundle = CORPUS / "egress/direct-ip/c-tcp4"
    left = reduce(bundle, DETECTORS, "egress.direct-ip", whole=True)
    change = Redaction([], seed=2)
    seen = 0
    for record in left.contents["capture.pcap"].parts:
        frame = change.packet(record, 16, 1)[16:]
        assert len(frame) == len(record) - 16
        if frame[12:14] == b"\x08\x00":
            size = (frame[14] & 15) * 4
            total = int.from_bytes(frame[16:18], "big")
            assert checksum(frame[14 : 14 + size]) == 0xFFFF
            assert frame[26:30] != record[16:][26:30] or frame[30:34] != record[16:][30:34]
            body = frame[14 + size : 14 + total]
            pseudo = frame[26:34] + struct.pack("!BBH", 0, frame[23], len(body))
            assert checksum(pseudo + body + b"\0" * (len(body) % 2)) == 0xFFFF
            seen += 1
    assert seen > 4


def test_a_frame_cut_at_any_byte_is_returned_with_its_length() -> None:
    left = reduce(CORPUS / "egress/direct-ip/c-tcp4", DETECTORS, "egress.direct-ip", whole=True)
    seen = 0
    for record in left.contents["capture.pcap"].parts:
        for size in range(len(record) - 16):
            for link in (1, 113, 276, 101, 0):
                assert len(readdressed(record[16 : 16 + size], link, lambda raw: b"\x0a" + raw[1:])) == size
                seen += 1
    assert seen > 1000


def test_canaries_that_were_derived_from_the_old_name_are_written_down(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(CORPUS / "secrets/canary-read/c-hardlink", bundle)
    manifest = json.loads((bundle / "manifest.json").read_text())
    values = [one.pop("value") for one in manifest["secrets"]]
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    assert promote(tmp_path, bundle, "secrets.canary-read", "--name", "one")[0] == 0
    promoted = json.loads((tmp_path / "corpus/secrets/canary-read/one/manifest.json").read_text())
    assert [one["value"] for one in promoted["secrets"]] == values
    assert all(value.startswith("CANARY-") for value in values)


def test_a_bundle_of_another_form_is_kept_whole_and_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(CORPUS / "secrets/canary-read/c-hardlink", bundle)
    manifest = json.loads((bundle / "manifest.json").read_text())
    entry = next(one for one in manifest["evidence"] if one["channel"] == "syscalls")
    path = bundle / entry["path"]
    # Without times and pids: a form that is read, and not taken apart.
    text = b"".join(line.split(None, 2)[2] for line in path.read_bytes().splitlines(keepends=True))
    path.write_bytes(text)
    entry["bytes"], entry["sha256"] = len(text), hashlib.sha256(text).hexdigest()
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    result = run_bundle(bundle, {"secrets.canary-read": DETECTORS["secrets.canary-read"]}).checks[0]
    assert result.verdict == "detected"
    assert promote(tmp_path, bundle, "secrets.canary-read", "--name", "one")[0] == 0
    assert f"kept whole, look at them for personal details: {entry['path']}" in capsys.readouterr().err
