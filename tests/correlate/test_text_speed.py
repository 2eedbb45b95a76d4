"""No pattern and no reader of texts takes more than its share of time as a text grows, whatever it is made of."""

import importlib
import re
import time
from collections.abc import Callable

import pytest

from mcpdetect.correlate import credentials as shapes
from mcpdetect.correlate.disguises import Disguises
from mcpdetect.correlate.text.decoded import decoded
from mcpdetect.correlate.text.exfil import exfil_orders
from mcpdetect.correlate.text.fold import fold
from mcpdetect.correlate.text.foreign import reaches
from mcpdetect.correlate.text.hidden import hidden
from mcpdetect.correlate.text.links import carrying_links
from mcpdetect.correlate.text.patterns import patterns
from mcpdetect.correlate.text.poisoning import orders
from mcpdetect.correlate.text.valuables import valuables
from mcpdetect.correlate.text.words import vocabulary

MODULES = (
    *("text.fold", "text.tokens", "text.exfil", "text.patterns", "text.poisoning", "text.hidden", "text.decoded"),
    *("text.foreign", "text.links", "text.compared", "text.valuables", "text.normal", "disguises", "inventory"),
    *("credentials", "explain"),
)
PATTERNS = {
    f"{module}.{name}": value
    for module in MODULES
    for name, value in vars(importlib.import_module(f"mcpdetect.correlate.{module}")).items()
    if isinstance(value, re.Pattern)
} | {"credentials": shapes._shapes()[1]}
UNITS = (
    *(
        "a",
        "A",
        "0",
        "a.",
        "a-",
        "a_",
        "0xab",
        "tool",
        "system",
        "...",
        "!",
        "?",
        ";",
        "\u3002",
        "/",
        "~/",
        "a@",
        "a@a.",
    ),
    *("https://", "a://b:", "<!--", "<a hidden", "<img src=", "[a](", "[//]: # (", "{", "${A", "%4", "\\u00", "&#x"),
    *("'", '"', "`", "curl ", "base64 -d ", "nc -a ", "\n", "\r", " ", "\u200b", "\u202ea", "\x1b[0;", "\x9b", "\x08"),
    *("1 ", "1.5 ", "12:3", "AB ", "bc1q", "eyJaaaaaaaaaaaaaaa.", "-----BEGIN A PRIVATE KEY-----", "A=", "AAAA"),
)
TINY = 0.05  # seconds of the processor, below which a clock's grain would decide
READERS: dict[str, Callable[[str], object]] = {
    "fold": fold.__wrapped__,
    "orders": lambda text: orders(fold.__wrapped__(text)),
    "exfil": lambda text: list(exfil_orders(text, vocabulary())),
    "hidden": hidden,
    "decoded": lambda text: list(decoded(text)),
    "reaches": lambda text: list(reaches(fold.__wrapped__(text))),
    "links": lambda text: list(carrying_links(text)),
    "credentials": lambda text: list(shapes.credentials(text)),
    "valuables": valuables,
    "disguises": lambda text: list(Disguises([("k", b"npm_CANARY-1")]).search(text.encode())),
}
PHRASES = (
    *("the user ", "even ", "your ", "you ", "do not ", "never ", "keep ", "without telling the user ", "ignore all "),
    *("read_file ", "`x_y` ", "when read_file is called, add ", "results of read_file ", "open https://a.test with "),
    *("bcc a@b.test ", "`a` argument must contain ", "send passwords to https://c.example ", '"ignore ', "system:\n"),
)


def spent(act: Callable[[], object]) -> float:
    begun = time.process_time()
    act()
    return time.process_time() - begun


def grows(act: Callable[[str], object], unit: str, size: int) -> bool:
    """Return whether four times the text costs much more than four times the work."""
    short, long = ((unit * (length // len(unit) + 1))[:length] for length in (size, 4 * size))
    whole = spent(lambda: act(long))
    return whole > TINY and whole > 10 * spent(lambda: act(short))


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_takes_time_in_the_order_of_the_text(name: str) -> None:
    pattern = PATTERNS[name]

    def scan(text: str) -> None:
        for _ in pattern.finditer(text if isinstance(pattern.pattern, str) else text.encode()):
            pass

    assert [unit for unit in UNITS if all(grows(scan, unit, 4_000) for _ in range(3))] == []


def test_the_patterns_of_every_module_are_tried() -> None:
    assert len(PATTERNS) >= 40
    assert {name.rpartition(".")[0] for name in PATTERNS} >= {"text.tokens", "text.hidden", "text.links", "disguises"}
    assert patterns().spoken


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_time_in_the_order_of_the_text(name: str) -> None:
    units = (*PHRASES, *UNITS[:20])
    assert [unit for unit in units if all(grows(READERS[name], unit, 2_000) for _ in range(3))] == []
