"""Labels: read strictly, mirrored by bundles, every mistake named by file and line."""

import contextlib
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpdetect.errors import LabelError
from mcpdetect.labels.loader import load_label, load_labels
from mcpdetect.labels.model import ExpectedCheck, Label, Provenance, Review

MANIFEST = b"{}\n"
PIN = hashlib.sha256(MANIFEST).hexdigest()
TEXT = f"""\
schema: mcpdetect.label/0
case: egress/direct-ip/c-tcp4
truth: fires
why: connects to 1.1.1.1 without any lookup
checks:
  egress.direct-ip:
    verdict: detected
    findings: 1
    level: suspicious
    places: ["strace.log:15", "strace.log:41+57", "capture.pcap#3"]
  network.blocked: {{verdict: not_detected}}
axes:
  runtime: c
  family: ipv4
evidence:
  manifest.json: {PIN}
provenance:
  control: egress/direct-ip
  tools: [strace 6.1, tcpdump 4.99.3]
  kernel: "6.18"
  recorded: 2026-11-30
reviewed:
  by: author of the control
  date: 2026-11-30
"""
LABEL = Label(
    schema="mcpdetect.label/0",
    case="egress/direct-ip/c-tcp4",
    truth="fires",
    why="connects to 1.1.1.1 without any lookup",
    checks={
        "egress.direct-ip": ExpectedCheck(
            "detected", 1, ["strace.log:15", "strace.log:41+57", "capture.pcap#3"], "suspicious"
        ),
        "network.blocked": ExpectedCheck("not_detected"),
    },
    axes={"runtime": "c", "family": "ipv4"},
    evidence={"manifest.json": PIN},
    provenance=Provenance("egress/direct-ip", ["strace 6.1", "tcpdump 4.99.3"], "6.18", "2026-11-30"),
    reviewed=Review("author of the control", "2026-11-30"),
)


def tree(root: Path, text: str = TEXT, case: str = "egress/direct-ip/c-tcp4") -> Path:
    path = root / "labels" / "cases" / f"{case}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    bundle = root / "corpus" / case
    bundle.mkdir(parents=True, exist_ok=True)
    (bundle / "manifest.json").write_bytes(MANIFEST)
    return path


def load(root: Path) -> list[Label]:
    return load_labels(root / "labels", root / "corpus")


def test_a_label_is_read_whole(tmp_path: Path) -> None:
    path = tree(tmp_path)
    assert load_label(path) == LABEL
    assert load_label(path, bundle=tmp_path / "corpus/egress/direct-ip/c-tcp4") == LABEL
    assert load(tmp_path) == [LABEL]


def test_the_subject_is_the_check_of_the_control() -> None:
    assert LABEL.subject == "egress.direct-ip"


def test_a_todo_is_kept(tmp_path: Path) -> None:
    assert load_label(tree(tmp_path, TEXT + "todo: fast open is not read yet\n")).todo == "fast open is not read yet"
    assert load_label(tree(tmp_path, TEXT + "todo: null\n")).todo is None


def test_limits_and_explanations_are_read_and_pin_nothing_where_they_are_missing(tmp_path: Path) -> None:
    text = TEXT.replace("{verdict: not_detected}", "{verdict: not_observable, limits: [io_uring, not-watched]}")
    label = load_label(tree(tmp_path, text.replace("    findings: 1", "    findings: 1\n    explained: []")))
    assert label.checks["network.blocked"] == ExpectedCheck("not_observable", limits=["io_uring", "not-watched"])
    assert (label.checks["egress.direct-ip"].limits, label.checks["egress.direct-ip"].explained) == (None, [])


# What is replaced, by what, the line of the error, and its beginning.
WRONG = {
    "unknown key": ("truth: fires", "truht: fires", 3, "unknown key"),
    "unknown inner key": ("    findings: 1", "    found: 1", 8, "unknown key"),
    "missing key": ("truth: fires\n", "", 1, "the key 'truth' is missing"),
    "missing inner key": ("    verdict: detected\n", "", 6, "the key 'verdict' is missing"),
    "key given twice": ("truth: fires", "truth: fires\ntruth: silent", 4, "the key 'truth' is given twice"),
    "inner key given twice": ("  runtime: c", "  runtime: c\n  runtime: c", 14, "the key 'runtime' is given twice"),
    "other schema": ("label/0", "label/7", 1, "is not a label this version reads"),
    "other case": ("c-tcp4", "c-tcp5", 2, "does not say where the file lies"),
    "other truth": ("truth: fires", "truth: maybe", 3, "must be one of fires, silent, blind"),
    "other verdict": ("verdict: detected", "verdict: clean", 7, "must be one of detected, not_detected"),
    "findings are text": ("findings: 1", "findings: one", 8, "must be a whole number, 0 or more"),
    "findings are negative": ("findings: 1", "findings: -1", 8, "must be a whole number, 0 or more"),
    "findings are quoted": ("findings: 1", 'findings: "1"', 8, "must be a whole number, 0 or more"),
    "detected without findings": ("findings: 1", "findings: 0", 6, "a detected check has findings, places and a level"),
    "findings without detection": (
        "{verdict: not_detected}",
        "{verdict: not_detected, findings: 1}",
        11,
        "a detected check has findings, places and a level",
    ),
    "detected without places": (
        '["strace.log:15", "strace.log:41+57", "capture.pcap#3"]',
        "[]",
        6,
        "a detected check has findings, places and a level",
    ),
    "level is missing": ("    level: suspicious\n", "", 6, "a detected check has findings, places and a level"),
    "other level": ("level: suspicious", "level: bad", 9, "must be one of info, suspicious, accusing"),
    "limits without order": (
        "{verdict: not_detected}",
        "{verdict: not_observable, limits: [b, a]}",
        11,
        "must be sorted, none twice",
    ),
    "limits given twice": (
        "{verdict: not_detected}",
        "{verdict: not_observable, limits: [a, a]}",
        11,
        "must be sorted, none twice",
    ),
    "limits of a denial": (
        "{verdict: not_detected}",
        "{verdict: not_detected, limits: [a]}",
        11,
        "what hides something allows no such verdict",
    ),
    "explained without findings": (
        "{verdict: not_detected}",
        "{verdict: not_detected, explained: []}",
        11,
        "a check without findings has nothing to explain",
    ),
    "place without a line": ('"strace.log:15"', "strace.log", 10, "is no place in a file"),
    "place given twice": ('"strace.log:41+57"', '"strace.log:15"', 10, "is given twice"),
    "subject is missing": ("  egress.direct-ip:", "  egress.other:", 5, "says nothing about egress.direct-ip"),
    "check is no id": ("  network.blocked:", "  networkblocked:", 11, "is no check id"),
    "truth against verdict": ("truth: fires", "truth: silent", 7, "a case that is silent must be not_detected"),
    "list for mapping": ("axes:\n  runtime: c\n  family: ipv4", "axes: [c]", 12, "must be a mapping"),
    "mapping for text": ("why: connects", "why: {a: b}\nx: connects", 4, "must be one value"),
    "text for list": ("[strace 6.1, tcpdump 4.99.3]", "strace", 19, "must be a list"),
    "nothing said": ("why: connects to 1.1.1.1 without any lookup", "why:", 4, "must say something"),
    "hash is short": (PIN, "abc", 16, "is no sha256 in hexadecimal"),
    "hash of another file": ("manifest.json:", "strace.log:", 15, "must pin manifest.json"),
    "date of recording": ("recorded: 2026-11-30", "recorded: yesterday", 21, "is no ISO date"),
    "date of review": ("  date: 2026-11-30", "  date: 2026-13-01", 24, "is no ISO date"),
    "alias": ("  family: ipv4", "  family: &a ipv4\n  other: *a", 15, "an alias"),
    "broken syntax": ("why: connects", 'why: "connects"', 4, "expected <block end>"),
    "key is a list": ("  runtime: c", "  ? [a]\n  : c", 13, "a key must be text"),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_each_mistake_is_named_with_its_line(tmp_path: Path, name: str) -> None:
    old, new, line, problem = WRONG[name]
    assert old in TEXT
    path = tree(tmp_path, TEXT.replace(old, new, 1))
    with pytest.raises(LabelError) as caught:
        load_label(path)
    assert caught.value.problem.startswith(problem), caught.value
    assert (caught.value.file, caught.value.place) == (str(path), f"line {line}")


def test_evidence_that_changed_is_an_error(tmp_path: Path) -> None:
    tree(tmp_path)
    (tmp_path / "corpus/egress/direct-ip/c-tcp4/manifest.json").write_bytes(b"{ }\n")
    with pytest.raises(LabelError) as caught:
        load(tmp_path)
    assert caught.value.problem.startswith("the bundle's file has sha256 ")
    assert (caught.value.place, caught.value.value) == ("line 16", PIN)


def test_pinned_evidence_that_is_gone_is_an_error(tmp_path: Path) -> None:
    tree(tmp_path, TEXT.replace("provenance:", f"  strace.log: {PIN}\nprovenance:"))
    with pytest.raises(LabelError) as caught:
        load(tmp_path)
    assert (caught.value.problem, caught.value.place) == ("is not in the bundle", "line 17")


def test_a_label_without_a_bundle_is_an_orphan(tmp_path: Path) -> None:
    path = tree(tmp_path)
    (tmp_path / "corpus/egress/direct-ip/c-tcp4/manifest.json").unlink()
    with pytest.raises(LabelError) as caught:
        load(tmp_path)
    assert (caught.value.problem, caught.value.file) == ("labels a bundle that does not exist", str(path))


def test_a_bundle_without_a_label_is_an_orphan(tmp_path: Path) -> None:
    tree(tmp_path)
    other = tmp_path / "corpus/egress/direct-ip/node-tcp4"
    other.mkdir()
    (other / "manifest.json").write_bytes(MANIFEST)
    with pytest.raises(LabelError) as caught:
        load(tmp_path)
    assert (caught.value.problem, caught.value.value) == (
        "no label says what this bundle shows",
        "egress/direct-ip/node-tcp4",
    )


@pytest.mark.parametrize("name", ["notes.txt", "egress/direct-ip/c-tcp4.yml", "egress/c-tcp4.yaml"])
def test_a_file_that_is_no_label_is_an_error(tmp_path: Path, name: str) -> None:
    tree(tmp_path)
    extra = tmp_path / "labels/cases" / name
    extra.write_text(TEXT)
    with pytest.raises(LabelError) as caught:
        load(tmp_path)
    assert (caught.value.problem, caught.value.file) == ("is no label", str(extra))


def test_an_empty_label_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LabelError) as caught:
        load_label(tree(tmp_path, ""))
    assert caught.value.problem == "is empty"


def test_a_label_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LabelError) as caught:
        load_label(tmp_path / "gone.yaml")
    assert caught.value.problem == "cannot be read: No such file or directory"


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    path = tree(tmp_path)
    path.write_bytes(TEXT.encode().replace(b"connects", b"\xff"))
    with pytest.raises(LabelError) as caught:
        load_label(path)
    assert (caught.value.problem, caught.value.place) == ("is not UTF-8", "line 4")


def test_a_huge_label_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpdetect.labels.reader.MAX_LABEL", 10)
    with pytest.raises(LabelError) as caught:
        load_label(tree(tmp_path))
    assert caught.value.problem == "is larger than 10 bytes"


def test_deep_nesting_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LabelError):
        load_label(tree(tmp_path, "why: " + "[" * 5000))


def test_every_cut_of_a_label_is_an_error_or_the_label(tmp_path: Path) -> None:
    path = tree(tmp_path)
    wrong = right = 0
    for size in range(0, len(TEXT), 7):
        path.write_text(TEXT[:size])
        try:
            load_label(path)
        except LabelError:
            wrong += 1
        else:
            right += 1
    assert (wrong, right) == (-(-len(TEXT) // 7), 0)


@given(data=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)), at=st.integers(0, len(TEXT)))
def test_any_bytes_are_a_label_or_a_label_error(tmp_path_factory: pytest.TempPathFactory, data: bytes, at: int) -> None:
    path = tree(tmp_path_factory.mktemp("any"))
    for content in (data, TEXT.encode()[:at] + data + TEXT.encode()[at:]):
        path.write_bytes(content)
        with contextlib.suppress(LabelError):
            load_label(path)
