"""secrets.canary-read: by any name, by any road; a look is no read; what could hide a read is said."""

from __future__ import annotations

import pytest
from hand_sources import where
from made_events import FILES, S, calls, changed, check, execed, opened, read, secrets, turned_over

from mcpdetect.detectors import secrets_canary_read as module
from mcpdetect.model.event import Event, FileProbe
from mcpdetect.model.inputs import Canary, Secrets
from mcpdetect.model.mcp import McpMessage
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where
from mcpdetect.model.result import CheckResult, Finding, Limit
from mcpdetect.model.trace import Run

ID = "secrets.canary-read"
CLAIM = "no planted secret was opened for reading, or read"
KEY = "/home/u/.ssh/id_ed25519"
AWS = "/home/u/.aws/credentials"
ENV = "/home/u/.env"
PLANTED = secrets(KEY, AWS, ENV)
VALUE = Secrets(
    "secrets.yaml", [Canary("SSHKEY", "CANARY-SSHKEY-7c2e", KEY), Canary("API", "CANARY-API-7c2e", variable="API_KEY")]
)


def run(
    events: list[Event], *observations: Observation, planted: Secrets = PLANTED, entry: str | None = None
) -> CheckResult:
    return check(ID, events, list(observations) or [calls()], planted=planted, run=Run(entry=entry))


def only(result: CheckResult) -> Finding:
    assert result.verdict == "detected"
    assert len(result.findings) == 1
    return result.findings[0]


def rules(finding: Finding) -> list[str]:
    return [item.rule for item in finding.explanations]


def test_a_planted_file_that_was_read_is_detected_with_open_and_read() -> None:
    finding = only(run([execed(1, "/usr/bin/node"), opened(2, KEY), read(3, KEY, b"x" * 97)]))
    assert finding.title == f"{KEY} (ID_ED25519) was read: 97 bytes"
    assert (finding.level, finding.process, finding.program) == ("suspicious", "7", "/usr/bin/node")
    assert (finding.where, finding.identity) == ([where(2), where(3)], f"ID_ED25519 {KEY}")
    assert finding.facts == {
        "path": KEY,
        "canary": "ID_ED25519",
        "seen_as": KEY,
        "size": 97,
        "value_seen": False,
        "call": "read",
        "count": 1,
    }


def test_looking_without_opening_is_no_read() -> None:
    events: list[Event] = [
        FileProbe(where(1), S, "access", 0, operation="access", path=KEY, process="7"),
        FileProbe(where(2), S, "newfstatat", 0, operation="stat", path=AWS, process="7"),
        FileProbe(where(3), S, "readlink", None, "EINVAL", operation="readlink", path=KEY, process="7"),
        opened(4, "/home/u/.kube/config", error="ENOENT"),
        opened(5, KEY, access="path"),
        opened(6, AWS, access="write"),
    ]
    result = run(events, planted=secrets(KEY, AWS, "/home/u/.kube/config"))
    assert (result.verdict, result.reason, result.limits) == ("not_detected", CLAIM, [])


def test_an_open_for_reading_counts_even_where_no_read_is_seen() -> None:
    for observation in (calls(), calls(without=["file.read"])):
        finding = only(run([opened(2, KEY)], observation))
        assert finding.title == f"{KEY} (ID_ED25519) was opened for reading; no read of it is in the evidence"
        assert (finding.level, finding.where, finding.facts["size"]) == ("suspicious", [where(2)], None)


def test_several_processes_that_read_one_file_are_one_finding_with_a_count() -> None:
    events: list[Event] = [read(1, KEY), read(2, KEY, process="8"), read(3, AWS)]
    found = [(item.facts["path"], item.facts["count"], item.where) for item in run(events).findings]
    assert found == [(KEY, 2, [where(1), where(2)]), (AWS, 1, [where(3)])]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (read(3, KEY, mapped=True, call="mmap", size=15), "was read: its content was mapped"),
        (read(3, KEY, call="preadv"), "was read through preadv: 7 bytes"),
        (read(3, KEY, call="sendfile", to_socket="s4"), "was read and handed to a socket (sendfile): 7 bytes"),
        (read(3, KEY, call="copy_file_range"), "was read through copy_file_range: 7 bytes"),
        (read(3, KEY, inherited=True), "was read: 7 bytes"),
        (read(3, "/tmp/w/cache.dat", aliases=[KEY]), "was read under the name /tmp/w/cache.dat: 7 bytes"),
    ],
)
def test_every_road_to_the_content_is_a_read(event: Event, said: str) -> None:
    assert only(run([event])).title == f"{KEY} (ID_ED25519) {said}"


@pytest.mark.parametrize(
    ("event", "verdict"),
    [
        (read(3, KEY, b"", size=0), "not_detected"),
        (read(3, KEY, error="EISDIR"), "not_detected"),
        (read(3, "/home/u/.ssh/id_ed25519.pub"), "not_detected"),
        (read(3, "/tmp/home/u/.ssh/id_ed25519"), "not_detected"),
        (read(3, "/srv/notes.txt", KEY.encode()), "not_detected"),
    ],
)
def test_namesakes_mentions_and_empty_reads_are_none(event: Event, verdict: str) -> None:
    assert run([event]).verdict == verdict


@pytest.mark.parametrize(
    "change",
    [
        changed(1, "link", "/tmp/w/cache.dat", KEY),
        changed(1, "rename", KEY, "/tmp/w/cache.dat"),
        changed(1, "symlink", "/tmp/w/cache.dat", KEY),
    ],
)
def test_another_name_made_in_the_run_leads_to_the_same_file(change: Event) -> None:
    finding = only(run([change, opened(2, "/tmp/w/cache.dat"), read(3, "/tmp/w/cache.dat")]))
    assert (finding.facts["path"], finding.facts["seen_as"]) == (KEY, "/tmp/w/cache.dat")


def test_a_directory_above_that_moved_takes_the_planted_file_along() -> None:
    moved = changed(1, "rename", "/home/u/.ssh", "/tmp/x")
    assert only(run([moved, read(3, "/tmp/x/id_ed25519")])).facts["path"] == KEY
    again = changed(2, "rename", "/tmp/x", "/tmp/y")
    assert only(run([moved, again, read(3, "/tmp/y/id_ed25519")])).facts["path"] == KEY
    assert run([changed(1, "rename", "/home/u/.s", "/tmp/x"), read(3, "/tmp/xsh/id_ed25519")]).verdict == "not_detected"


def test_a_path_of_unknown_directory_may_be_a_planted_file() -> None:
    result = run([opened(3, ".ssh/id_ed25519", certain=False)])
    assert result.verdict == "not_observable"
    assert result.limits == [
        Limit(
            "path-unresolved",
            "'.ssh/id_ed25519' was opened relative to a directory that the evidence does not show; it may be a "
            "planted file",
            True,
            where(3),
        )
    ]
    assert run([opened(3, "data.json", certain=False)]).verdict == "not_detected"


def test_a_descriptor_of_unknown_origin_may_be_a_planted_file() -> None:
    result = run([read(4, None, inherited=True, fd=7)])
    assert (result.verdict, result.limits) == (
        "not_observable",
        [
            Limit(
                "descriptor-unknown",
                "a descriptor of unknown origin was read; it may have been a planted file",
                True,
                where(4),
            )
        ],
    )
    assert run([read(4, "/etc/hostname", inherited=True, fd=7)]).verdict == "not_detected"
    assert run([read(4, None, inherited=True, fd=0)]).verdict == "not_detected"


def test_a_planted_value_betrays_a_file_of_unknown_name() -> None:
    unknown = read(4, None, b"key=CANARY-SSHKEY-7c2e\n", inherited=True, fd=7)
    finding = only(run([unknown], planted=VALUE))
    assert finding.title == f"{KEY} (SSHKEY) was read through a descriptor of unknown origin: 23 bytes"
    assert finding.facts["value_seen"] is True
    copied = read(4, "/tmp/copy", b"CANARY-SSHKEY-7c2e")
    assert only(run([copied], planted=VALUE)).title == f"{KEY} (SSHKEY) was read under the name /tmp/copy: 18 bytes"


def test_an_environment_value_is_only_seen_where_it_comes_out_of_a_file() -> None:
    result = run([], planted=VALUE)
    assert result.verdict == "not_detected"
    assert result.blind_to[0] == "planted environment variables: reading one is no system call"
    listing = [execed(1, "/usr/bin/ps"), read(4, "/proc/36/environ", b"A=1\0API_KEY=CANARY-API-7c2e\0")]
    finding = only(run(list(listing), planted=VALUE))
    assert (finding.level, rules(finding)) == ("info", ["process-listing"])
    assert finding.reason == "The planted value of API_KEY came out of /proc/36/environ."


def test_a_value_that_begins_with_another_is_found_as_itself() -> None:
    planted = Secrets("s", [Canary("A", "CANARY-A", "/a"), Canary("AB", "CANARY-AB", "/ab")])
    assert only(run([read(1, "/x", b"CANARY-AB")], planted=planted)).facts["canary"] == "AB"


def test_an_upward_search_for_dotenv_is_a_fact_and_ordinary() -> None:
    def looked(line: int, path: str) -> FileProbe:
        return FileProbe(where(line), S, "newfstatat", None, "ENOENT", operation="stat", path=path, process="60")

    events: list[Event] = [
        looked(1, "/home/u/work/srv/.env"),
        looked(2, "/home/u/work/.env"),
        looked(3, ENV),
        opened(4, ENV, process="60"),
        read(5, ENV, b"HONEY_ENV_TOKEN=canary-7c2e\n", process="60"),
    ]
    finding = only(run(events))
    assert (finding.level, rules(finding), finding.facts["size"]) == ("info", ["dotenv-upward-search"], 28)
    assert only(run(events[3:])).level == "suspicious"


def test_an_sdks_chain_is_ordinary_for_the_sdk_and_unexplained_for_others() -> None:
    sdk = opened(1, "/srv/node_modules/@aws-sdk/client-s3/index.js", fd=17)
    chain: list[Event] = [opened(2, AWS, fd=18), read(3, AWS), opened(4, "/home/u/.aws/config", error="ENOENT")]
    with_sdk, without = only(run([sdk, *chain])), only(run(chain))
    assert (with_sdk.level, rules(with_sdk)) == ("info", ["aws-credential-chain"])
    assert (without.level, rules(without)) == ("suspicious", [])


def test_what_the_caller_named_is_ordinary() -> None:
    place = Where("mcp.jsonl", 3, unit="message")
    call = McpMessage(
        place, S // 2, direction="c2s", form="request", method="tools/call", tool="read_file",
        arguments='{"path":"/home/u/.env"}',
    )  # fmt: skip
    assert rules(only(run([call, read(4, ENV), read(9, ENV, t=2 * S)]))) == ["caller-argument"]


def test_what_the_launcher_read_is_stated_as_the_launchers() -> None:
    npmrc = secrets("/home/u/.npmrc")
    events: list[Event] = [
        execed(1, "/usr/bin/npx", t=0),
        read(2, "/home/u/.npmrc", t=S),
        execed(3, "/srv/server", t=2 * S),
    ]
    finding = only(run(events, planted=npmrc, entry="/srv/server"))
    assert (finding.level, rules(finding)) == ("info", ["npm-configuration", "launcher"])
    later = only(run([*events[::2], read(4, "/home/u/.npmrc", t=3 * S)], planted=npmrc, entry="/srv/server"))
    assert (later.level, rules(later)) == ("suspicious", [])


def test_the_gravest_level_of_a_file_stays() -> None:
    events: list[Event] = [
        opened(1, ENV, written=".env"),
        read(2, ENV),
        opened(3, ENV, process="8"),
        read(4, ENV, process="8"),
    ]
    finding = only(run(events))
    assert (finding.level, rules(finding), finding.facts["count"]) == ("suspicious", [], 2)


@pytest.mark.parametrize(
    "loss",
    [
        Loss("io_uring", "rings in use", touches=["file.open", "file.read"]),
        Loss("untraced-process", "a child without a line"),
        Loss("namespace", "after move_mount paths may name other files", touches=["file.open"]),
    ],
)
def test_what_could_hide_a_read_forbids_the_claim_and_never_the_finding(loss: Loss) -> None:
    assert run([], calls(loss)).limits == [Limit(loss.what, f"strace.log: {loss.detail}", True)]
    assert run([], calls(loss)).verdict == "not_observable"
    assert run([read(1, KEY)], calls(loss)).verdict == "detected"


@pytest.mark.parametrize("planted", [None, Secrets("s"), Secrets("s", [])])
def test_without_planted_secrets_the_check_is_not_configured(planted: Secrets | None) -> None:
    result = check(ID, [read(1, KEY)], [calls()], planted=planted)
    assert (result.verdict, result.reason) == ("not_observable", "not configured: secrets")


def test_secrets_that_name_nothing_to_look_for_forbid_the_claim() -> None:
    result = run([], planted=Secrets("s", [Canary("API", None, variable="API_KEY")]))
    assert (result.verdict, [limit.what for limit in result.limits]) == ("not_observable", ["not-configured"])


def test_more_names_than_room_forbid_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ALIASES", 1)
    events: list[Event] = [changed(n, "link", f"/tmp/{n}", KEY) for n in range(1, 4)]
    assert [(limit.what, limit.count) for limit in run(events).limits] == [("overflow", 2)]


def test_hostile_paths_are_compared_exactly() -> None:
    name = "/home/u/a) = 3\n[pid 1] connect(3, \u202e\\xff"
    assert only(run([read(1, name)], planted=secrets(name))).facts["path"] == name


SCENES: dict[str, list[Event]] = {
    "read": [opened(1, KEY), read(2, KEY)],
    "opened": [opened(1, KEY)],
    "inherited": [read(2, KEY, inherited=True)],
    "renamed": [changed(1, "rename", KEY, "/tmp/x"), opened(2, "/tmp/x"), read(3, "/tmp/x")],
    "quiet": [opened(1, "/etc/hostname"), read(2, "/etc/hostname")],
}


@pytest.mark.parametrize("scene", SCENES)
def test_less_evidence_never_turns_the_verdict_over(scene: str) -> None:
    assert turned_over(ID, SCENES[scene], [calls()], planted=PLANTED) == []
    assert set(FILES) <= set(calls().watches)
