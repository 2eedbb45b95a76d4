"""``nft list ruleset`` (or table, or chain) as text; one statement a line, blocks in braces (nft(8))."""

from __future__ import annotations

import re

from mcpdetect.ingest.firewall.nft import Chain, Listing, Problem, Rule, Statement
from mcpdetect.model.place import Where
from mcpdetect.model.text import text_of

__all__ = ["read_text"]

# ip daddr @bad log prefix "X \x22 " counter packets 5 bytes 238 drop # handle 4
_TOKEN = re.compile(rb'"[^"]*+"|[{};,]|#.*+|[^\s{};,"#]++|"')
_HANDLE = re.compile(rb"# handle (\d{1,18})$")
_ADDRESS_FAMILIES = frozenset({"inet", "ip", "ip6", "arp", "bridge", "netdev"})
_VERDICTS = frozenset({"drop", "accept", "reject", "jump", "goto", "return", "queue", "continue"})
_BLOCKING = frozenset({"drop", "reject"})
_LOG_OPTIONS = frozenset({"prefix", "level", "flags", "group", "snaplen", "queue-threshold"})


def read_text(content: bytes, name: str) -> Listing:
    """Return the listing of a text; whatever is not understood is in its ``problems``.

    Args:
        content: the text.
        name: its name in every place.
    """
    reader = _Reader(name)
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines, 1):
        reader.read(Where(name, number), line.removesuffix(b"\r"), ended=number < len(lines))
    return reader.end()


class _Reader:
    def __init__(self, name: str) -> None:
        self._listing = Listing("nft")
        self._blocks: list[tuple[str, str]] = []  # what is open: ("table", "inet mcpd"), ("chain", "out")
        self._inner = 0  # braces open within a statement: ip daddr { 203.0.113.1, 203.0.113.2 }
        self._words: list[str] = []
        self._handle: int | None = None
        self._at = Where(name, 1)

    def read(self, where: Where, line: bytes, *, ended: bool) -> None:
        for match in _TOKEN.finditer(line):
            word = match[0]
            if word[:1] == b"#":
                if handle := _HANDLE.match(word):
                    self._handle = int(handle[1])
                continue
            if not self._words:
                self._at = where
            self._word(text_of(word))
        if ended and not self._inner:
            self._statement()

    def end(self) -> Listing:
        if self._words:  # packets 8 may be the beginning of packets 84
            words, self._words = self._words, []
            self._problem(self._at, " ".join(words).encode("utf-8", "replace"), "a statement without end")
        self._listing.cut = bool(self._blocks) or self._inner > 0
        return self._listing

    def _word(self, word: str) -> None:
        block = self._blocks[-1][0] if self._blocks else ""
        if word == "{":
            if block in ("chain", "other", "map", "counter"):
                self._inner += 1
                self._words.append(word)
            else:
                self._open(block)
        elif word == "}":
            self._close()
        elif word == ";" and not self._inner:
            self._statement()
        else:
            self._words.append(word)

    def _open(self, block: str) -> None:
        words, self._words = self._words, []
        if not block and words[:1] == ["table"] and len(words) in (2, 3):
            family = words[1] if len(words) == 3 else "ip"
            if family in _ADDRESS_FAMILIES:
                self._blocks.append(("table", f"{family} {words[-1]}"))
                return
        if block == "table" and len(words) == 2:
            sort = words[0] if words[0] in ("chain", "counter", "map") else "other"
            self._blocks.append((sort, words[1]))
            if sort == "chain":
                self._listing.chains[self._key(words[1])] = Chain(self._at)
            return
        if block != "table":  # inside a table: "ct helper x {", "flowtable f {", "synproxy s {"
            self._problem(self._at, " ".join(words).encode("utf-8", "replace"), "a block that is no table")
        self._blocks.append(("other", " ".join(words)))

    def _close(self) -> None:
        if self._inner:
            self._inner -= 1
            self._words.append("}")
            return
        self._statement()
        if self._blocks:
            self._blocks.pop()
        else:
            self._problem(self._at, b"}", "a brace closes nothing")

    def _key(self, name: str) -> tuple[str, str, str]:
        family, _, table = self._blocks[0][1].partition(" ")
        return family, table, name

    def _statement(self) -> None:
        words, self._words = self._words, []
        handle, self._handle = self._handle, None
        if not words:
            return
        sort, name = self._blocks[-1] if self._blocks else ("", "")
        if sort == "chain":
            self._in_chain(words, name, handle)
        elif sort == "counter":
            # packets 1 bytes 60
            if words[0] == "packets" and len(words) >= 2 and _is_number(words[1]):
                self._listing.counters[self._key(name)] = int(words[1])
        elif sort == "map" and _BLOCKING.intersection(words):
            # elements = { 25 : drop, 26 : accept }
            self._listing.dropping.add(self._key(f"@{name}"))
        elif not sort:
            self._problem(self._at, " ".join(words).encode("utf-8", "replace"), "text outside of every table")

    def _in_chain(self, words: list[str], name: str, handle: int | None) -> None:
        chain = self._listing.chains[self._key(name)]
        if words[0] == "type" and "hook" in words[:-1]:
            chain.hook = words[words.index("hook") + 1]
        elif words[0] == "policy" and len(words) == 2:
            chain.policy = words[1]
        elif words[0] not in ("comment", "flags", "devices"):
            statements, text = _rule(words)
            self._listing.rules.append(Rule(self._at, self._key(name), statements, text, handle))

    def _problem(self, where: Where, raw: bytes, reason: str) -> None:
        self._listing.problems.append(Problem(where, raw, reason))


def _rule(words: list[str]) -> tuple[list[Statement], str]:
    """Return a rule's statements, and its text without the numbers of its counters."""
    statements: list[Statement] = []
    text: list[str] = []
    at, depth = 0, 0
    while at < len(words):
        word, start = words[at], at
        at += 1
        if word in "{}":
            depth += 1 if word == "{" else -1
        elif depth:
            if word in _BLOCKING and words[start - 1] == ":":
                statements.append(Statement("vmap"))
        elif word == "counter":
            statement, at = _counter(words, at)
            statements.append(statement)
            text.append("counter" if statement.name is None else f"counter name {statement.name}")
            continue
        elif word == "log":
            statement, at = _log(words, at)
            statements.append(statement)
        elif word in _VERDICTS:
            statements.append(Statement("verdict", word=word))
            at = len(words)  # "reject with tcp reset", "jump other"; nothing else may follow a verdict
        elif word == "comment":
            at = min(at + 1, len(words))
        elif word == "xt" and words[at : at + 1] == ["target"]:
            # iptables-nft: xt target "REJECT"
            target = words[at + 1].strip('"').lower() if at + 1 < len(words) else ""
            at = min(at + 2, len(words))
            statements.append(Statement("log") if target == "log" else Statement("verdict", word=target))
        elif word == "vmap" and words[at : at + 1] != ["{"]:
            statements.append(Statement("vmap", name=words[at] if at < len(words) else None))
        else:
            statements.append(Statement("other"))
        text.extend(words[start:at])
    return statements, " ".join(text)


def _counter(words: list[str], at: int) -> tuple[Statement, int]:
    # counter packets 5 bytes 238
    if words[at : at + 1] == ["packets"] and at + 1 < len(words) and _is_number(words[at + 1]):
        return Statement("counter", packets=int(words[at + 1])), min(at + 4, len(words))
    # counter name "mail"
    if words[at : at + 1] == ["name"] and at + 1 < len(words):
        return Statement("counter", name=words[at + 1].strip('"')), at + 2
    return Statement("counter"), at


def _log(words: list[str], at: int) -> tuple[Statement, int]:
    # log prefix "[h8] " level info flags all
    prefix = ""
    while at + 1 < len(words) and words[at] in _LOG_OPTIONS:
        option, at = words[at], at + 1
        if option == "prefix":
            prefix = words[at].strip('"')
        at += 1
        if option == "flags" and words[at - 1] in ("tcp", "ip"):  # flags tcp sequence,options   flags ip options
            while at < len(words) and words[at] in (",", "sequence", "options", "tcp", "ip", "skuid", "ether"):
                at += 1
    return Statement("log", word=prefix), at


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= 20
