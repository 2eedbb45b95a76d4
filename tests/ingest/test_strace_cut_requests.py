"""A name that strace cut is never taken for a shorter name."""

from __future__ import annotations

from pathlib import Path

import pytest
from strace_tools import script

HEAD = '5 connect(3, {sa_family=AF_INET, sin_port=htons(3128), sin_addr=inet_addr("10.77.0.1")}, 16) = 0\n'


def requests(folder: Path, text: str) -> list[str]:
    line = f'5 sendto(3, "{text}"..., 600, 0, NULL, 0) = 600\n'
    told = script(folder, HEAD + line, frozenset(["http.request"]))
    return [one for one in told.splitlines() if one.startswith("http.request") or "name-hidden" in one]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (r"GET /a HTTP/1.1\r\nHost: eu.m", ["method='GET' target='/a' address"]),
        (r"GET /a HTTP/1.1\r\nHost: eu.example\r", ["method='GET' target='/a' host='eu.example' address"]),
        (r"GET /a HTTP/1.1\r\nHost: eu.example\r\nAccept", ["method='GET' target='/a' host='eu.example' address"]),
        (r"CONNECT exfil.te", ["name-hidden"]),
        (r"GET http://exfil.te", ["name-hidden"]),
        (r"CONNECT exfil.test:443 HTTP/1.1", ["method='CONNECT' target='exfil.test:443' address"]),
        (r"GET /long/pa", ["method='GET' target='/long/pa' address"]),
    ],
)
def test_what_is_left_of_a_host_is_no_host(tmp_path: Path, text: str, told: list[str]) -> None:
    found = requests(tmp_path, text)
    assert len(found) == len(told) == 1
    assert told[0] in found[0]
    assert ("host=" in found[0]) == ("host=" in told[0])
