"""The fake internet's certificate authority: leaves that strict clients take, and the stores programs look into."""

import ssl
import subprocess
from pathlib import Path

import pytest

from controls.recorder.internet.authority import SUBJECT_HASH, TRUST, Authority, authority_file, trust_store


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def store(cache: Path) -> Path:
    folder = cache / "ssl"
    folder.mkdir()
    trust_store(authority_file(cache), folder)
    return folder


def openssl(*argv: str) -> str:
    return subprocess.run(["openssl", *argv], capture_output=True, text=True, check=True).stdout


def test_the_authority_is_made_once_and_readable_by_its_owner_alone(cache: Path) -> None:
    first = authority_file(cache)
    data = first.read_bytes()
    assert authority_file(cache).read_bytes() == data
    assert first.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in cache.iterdir() if one.is_file()] == ["authority-1.pem"]


def test_the_store_holds_the_certificate_and_no_key(store: Path) -> None:
    assert sorted(str(one.relative_to(store)) for one in store.rglob("*") if one.name != "openssl.cnf") == sorted(
        ["certs", f"certs/{SUBJECT_HASH}.0", "certs/ca-certificates.crt", "certs/java", "certs/java/cacerts"]
    )
    assert all(b"PRIVATE KEY" not in one.read_bytes() for one in store.rglob("*") if one.is_file())
    assert (store / f"certs/{SUBJECT_HASH}.0").readlink() == Path("ca-certificates.crt")
    assert set(TRUST.values()) == {"/etc/ssl/certs/ca-certificates.crt"}


def test_openssl_finds_the_authority_under_its_hash(store: Path) -> None:
    said = openssl("x509", "-in", str(store / "certs/ca-certificates.crt"), "-noout", "-subject_hash", "-subject")
    assert said == f"{SUBJECT_HASH}\nsubject=O = mcpdetect recorder, CN = mcpdetect fake internet\n"


@pytest.mark.parametrize("name", ["api.example.com", "203.0.113.7", "2001:db8::7", "*.example.com", "x" * 63 + ".test"])
def test_a_leaf_stands_before_the_strictest_check(name: str, cache: Path, store: Path, tmp_path: Path) -> None:
    leaf = tmp_path / "leaf.pem"
    leaf.write_bytes(Authority(authority_file(cache)).leaf(name))
    said = openssl("verify", "-x509_strict", "-purpose", "sslserver", "-CApath", str(store / "certs"), str(leaf))
    assert said == f"{leaf}: OK\n"
    names = openssl("x509", "-in", str(leaf), "-noout", "-ext", "subjectAltName").splitlines()[1].strip()
    shown = {"203.0.113.7": "IP Address:203.0.113.7", "2001:db8::7": "IP Address:2001:DB8:0:0:0:0:0:7"}
    assert names == shown.get(name, f"DNS:{name}")


def test_no_certificate_is_made_for_what_is_no_name(cache: Path) -> None:
    with pytest.raises(ValueError, match="A-label"):
        Authority(authority_file(cache)).leaf("b\u00fccher.example")


def test_a_context_trusts_the_authority_alone(store: Path) -> None:
    context = ssl.create_default_context(cafile=str(store / "certs/ca-certificates.crt"))
    assert [dict(part[0] for part in one["subject"]) for one in context.get_ca_certs()] == [  # type: ignore[misc]
        {"organizationName": "mcpdetect recorder", "commonName": "mcpdetect fake internet"}
    ]


def test_java_takes_the_store(store: Path) -> None:
    # The magic number, version 2, one entry, a trusted certificate (tag 2), its alias.
    data = (store / "certs/java/cacerts").read_bytes()
    assert data[:16] == b"\xfe\xed\xfe\xed\0\0\0\2\0\0\0\1\0\0\0\2"
    assert data[16:27] == b"\0\x09mcpdetect"
    der = ssl.PEM_cert_to_DER_cert((store / "certs/ca-certificates.crt").read_text())
    assert data[-20 - len(der) : -20] == der
