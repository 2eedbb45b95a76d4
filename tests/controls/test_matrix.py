"""Matrices of a control: exact names, entries and order, and every mistake with its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from controls.catalog import Control, load_control
from controls.matrix import MAX_VARIANTS
from mcpdetect.errors import ConfigError

TWO_BY_TWO = """\
plants: something
variants:
  c-plain:
    truth: fires
    why: as it is
    run: ["{control}/plain"]
    axes: {runtime: c}
    expect: {some.check: detected}
matrices:
  reach:
    name: "{runtime}-{way}"
    over:
      runtime:
        perl: {words: {program: [/usr/bin/perl, "{control}/a.pl"], does: dials}}
        go: {build: [a.go], words: {program: ["{control}/a"], does: asks}}
      way:
        tcp4: {axes: {family: ipv4, transport: tcp}, words: {to: "192.0.2.1 443"}}
        denied: {denial: no-route, axes: {family: ipv6, transport: tcp}, cell: {capture: false}, words: {to: "::1"}}
    except:
      - {runtime: perl, way: denied}
    truth: silent
    why: "{runtime.does} {way.to}, {{braces}} stay"
    run: ["{runtime.program}", "{way}", "to={way.to}", "{home}/x"]
    axes: {timing: late}
    cell: {ipv6: false}
    expect: {some.check: not_detected}
"""


def load(folder: Path, text: str) -> Control:
    home = folder / "egress" / "made"
    home.mkdir(parents=True)
    (home / "control.yaml").write_text(text)
    return load_control(home)


def test_a_matrix_expands_in_the_order_of_the_file_behind_the_listed_variants(tmp_path: Path) -> None:
    control = load(tmp_path, TWO_BY_TWO)
    assert control.id == "egress/made"
    assert list(control.variants) == ["c-plain", "perl-tcp4", "go-tcp4", "go-denied"]


def test_a_combination_holds_what_its_values_say(tmp_path: Path) -> None:
    one = load(tmp_path, TWO_BY_TWO).variants["go-denied"]
    assert one.name == "go-denied"
    assert one.truth == "silent"
    assert one.why == "asks ::1, {{braces}} stay"
    assert one.run == ("{control}/a", "denied", "to=::1", "{home}/x")
    assert one.build == ("a.go",)
    assert one.denial == "no-route"
    assert (one.capture, one.ipv6) == (False, False)
    assert one.axes == {"runtime": "go", "family": "ipv6", "transport": "tcp", "timing": "late"}
    assert one.expect == {"some.check": "not_detected"}


def test_a_list_of_words_takes_the_place_of_its_name(tmp_path: Path) -> None:
    one = load(tmp_path, TWO_BY_TWO).variants["perl-tcp4"]
    assert one.run == ("/usr/bin/perl", "{control}/a.pl", "tcp4", "to=192.0.2.1 443", "{home}/x")
    assert (one.build, one.denial, one.capture) == ((), None, True)


def test_an_exclusion_of_several_values_leaves_each_out(tmp_path: Path) -> None:
    text = TWO_BY_TWO.replace("{runtime: perl, way: denied}", "{way: [denied], runtime: [perl, go]}")
    assert list(load(tmp_path, text).variants) == ["c-plain", "perl-tcp4", "go-tcp4"]


@pytest.mark.parametrize(
    ("old", "new", "line", "problem", "value"),
    [
        ("way: denied}", "way: dneied}", 20, "no such value of the axis 'way'", "dneied"),
        ("{runtime: perl, way: denied}", "{rntime: perl}", 20, "no such axis", "rntime"),
        ("- {runtime: perl, way: denied}", "- {}", 20, "an exclusion names at least one axis", None),
        (
            "- {runtime: perl, way: denied}",
            "- {way: denied}\n      - {way: denied, runtime: go}\n      - {way: tcp4}",
            19,
            "every combination is left out",
            None,
        ),
        ('"{runtime}-{way}"', '"{runtime}"', 11, "two combinations have the same name", "go"),
        ('"{runtime}-{way}"', '"{runtime}-{road}"', 11, "no such axis", "{road}"),
        ('"{runtime}-{way}"', '"{runtime}_{way}"', 11, None, "perl_tcp4"),
        ('"{runtime}-{way}"', '"c-plain"', 11, "two variants have the same name", "c-plain"),
        (
            '"{runtime.program}", "{way}"',
            '"{runtime.porgram}", "{way}"',
            23,
            "the value 'perl' of the axis 'runtime' has no such word",
            "{runtime.porgram}",
        ),
        (
            '"{way}", "to',
            '"x{runtime.program}", "to',
            23,
            "a list of words stands alone in a list",
            "{runtime.program}",
        ),
        ("truth: silent", "truth: quiet", 21, "truth is fires, silent or blind", "'quiet'"),
        ("{home}/x", "{hmoe}/x", 23, "no such axis", "{hmoe}"),
        ("{home}/x", "{Home}/x", 23, "only control, home, project are put in", "{Home}/x"),
        ("axes: {timing: late}", "axes: {family: late}", 24, "a value gives this axis too", "family"),
        ("go: {build: [a.go],", "go: {build: [a.go], axes: {family: x},", 17, None, "family"),
        ("cell: {ipv6: false}", "cell: {capture: true}", 18, "is given twice for one combination", "capture"),
        ("go: {build: [a.go],", "go: {build: [a.go], denial: no-route,", 18, None, "denial"),
        ("go: {build: [a.go],", "go: {biuld: [a.go],", 15, "unknown key", "biuld"),
        ("      way:\n", "      4:\n", 12, "a key must be text", "4"),
        ("go: {build: [a.go],", "perl: {build: [a.go],", 15, "the key 'perl' is given twice", None),
        ("tcp4: {axes", "way: {link: hard, axes", 10, "link is static or dynamic", "hard"),
        ("tcp4: {axes", "way: {shell: cloud, axes", 10, "shell is netns or microvm", "cloud"),
        ("matrices:\n  reach:", "matrices:\n  reach:\n    nmae: x", 11, "unknown key", "nmae"),
    ],
)
def test_a_mistake_is_told_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, problem: str | None, value: str | None
) -> None:
    assert TWO_BY_TWO.count(old) == 1
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, TWO_BY_TWO.replace(old, new))
    error = caught.value
    assert error.file == str(tmp_path / "egress/made/control.yaml")
    assert (error.place, error.value) == (f"line {line}", value)
    assert problem is None or error.problem == problem


@pytest.mark.parametrize(
    ("over", "problem", "value"),
    [
        ("{}", "a matrix needs axes", None),
        ("{runtime: {}}", "an axis needs values", "runtime"),
        ("{control: {x: {}}}", "the name is taken by what a recording puts in", "control"),
    ],
)
def test_axes_that_are_none_are_errors(tmp_path: Path, over: str, problem: str, value: str | None) -> None:
    text = f"plants: x\nmatrices:\n  m:\n    over: {over}\n"
    text += "    name: a\n    truth: fires\n    why: y\n    run: [a]\n    expect: {}\n"
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert (caught.value.problem, caught.value.place, caught.value.value) == (problem, "line 4", value)


def test_a_matrix_out_of_bounds_is_an_error_at_once(tmp_path: Path) -> None:
    axis = "{" + ", ".join(f"v{number}: {{}}" for number in range(101)) + "}"
    text = f"plants: x\nmatrices:\n  m:\n    over: {{a: {axis}, b: {axis}, c: {axis}, d: {axis}}}\n"
    text += "    name: a\n    truth: fires\n    why: y\n    run: [a]\n    expect: {}\n"
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert caught.value.problem == f"more than {MAX_VARIANTS} combinations"
    assert (caught.value.place, caught.value.value) == ("line 4", str(101**4))


def test_a_variant_of_a_matrix_cannot_take_a_listed_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, TWO_BY_TWO.replace("c-plain:", "go-tcp4:"))
    error = caught.value
    assert (error.problem, error.place, error.value) == ("two variants have the same name", "line 11", "go-tcp4")


def test_an_exclusion_that_leaves_nothing_out_is_an_error(tmp_path: Path) -> None:
    rules = "- {runtime: perl, way: denied}"
    text = TWO_BY_TWO.replace(rules, rules + "\n      - {runtime: perl, way: []}")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert (caught.value.problem, caught.value.place) == ("leaves nothing out", "line 21")


def test_a_control_without_variants_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, "plants: x\nvariants: {}\n")
    assert (caught.value.problem, caught.value.place) == ("a control needs variants", "line 1")


def test_the_example_of_the_guide_makes_what_the_guide_says(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "controls/README.md").read_text()
    example = next(block for block in guide.split("```yaml\n")[1:] if block.startswith("matrices:")).partition("```")[0]
    control = load(tmp_path, "plants: something\n" + example)
    assert list(control.variants) == ["perl-tcp4", "go-tcp4", "go-denied"]
    assert "This makes `perl-tcp4`, `go-tcp4` and `go-denied`" in guide
    assert control.variants["go-denied"].axes == {
        "runtime": "go",
        "family": "ipv4",
        "transport": "tcp",
        "denial": "no-route",
    }
    assert control.variants["perl-tcp4"].run == ("/usr/bin/perl", "{control}/reach.pl", "tcp4")
