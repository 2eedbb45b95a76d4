"""The certificate authority of the fake internet: its own, a leaf for every name, and how programs come to trust it.

The authority's key is nobody's secret that matters: only rooms trust it, and a room reaches nothing but the fake
internet. It is made once a machine and kept in the recorder's cache, so that most recordings need no cryptography at
all. Only here is the ``cryptography`` package used, and only once it is needed.
"""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import os
import ssl
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from controls.recorder.errors import RecorderError

if TYPE_CHECKING:
    from cryptography import x509


__all__ = ["SUBJECT_HASH", "TRUST", "Authority", "authority_file", "certificate_of", "load", "trust_store"]

SUBJECT_HASH = "47cfb5b8"
"""OpenSSL's hash of the authority's name (``openssl x509 -subject_hash``): its file's name in a certificate folder."""

TRUST = {
    "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
    "NODE_EXTRA_CA_CERTS": "/etc/ssl/certs/ca-certificates.crt",
    "REQUESTS_CA_BUNDLE": "/etc/ssl/certs/ca-certificates.crt",
    "CURL_CA_BUNDLE": "/etc/ssl/certs/ca-certificates.crt",
}
"""Variables for programs that bring certificates of their own and would not look into the system's folder."""

_ORGANISATION = "mcpdetect recorder"
_COMMON_NAME = "mcpdetect fake internet"
# Far from any day a run's clock may be set to.
_FROM = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_UNTIL = datetime.datetime(2049, 12, 31, tzinfo=datetime.UTC)
_JKS_WHITENER = b"Mighty Aphrodite"
_JKS_PASSWORD = "changeit"


def load() -> None:
    """Import the ``cryptography`` package, which is otherwise done by the first connection that needs it."""
    _name()
    _usage(authority=False)
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    ec.generate_private_key(ec.SECP256R1()).sign(b"", ec.ECDSA(hashes.SHA256()))
    serialization.NoEncryption()


def authority_file(cache: Path) -> Path:
    """Return the file with the authority's key and certificate (PEM), made if there is none.

    Args:
        cache: folder of the recorder.

    Raises:
        RecorderError: the ``cryptography`` package is missing.
    """
    path = cache / "authority-1.pem"
    if not path.exists():
        handle, temporary = tempfile.mkstemp(prefix=path.name, dir=cache)  # mode 0600
        with os.fdopen(handle, "wb") as file:
            file.write(_new_authority())
        Path(temporary).replace(path)
    return path


def certificate_of(authority: Path) -> str:
    """Return the certificate alone out of the authority's file."""
    text = authority.read_text()
    return text[text.index("-----BEGIN CERTIFICATE-----") :]


def trust_store(authority: Path, folder: Path) -> None:
    """Write what programs look into: ``/etc/ssl`` as a Debian system has it, with this authority alone.

    Args:
        authority: the authority's file.
        folder: an existing folder that becomes ``/etc/ssl``.
    """
    certificate = certificate_of(authority)
    (folder / "certs/java").mkdir(parents=True)
    (folder / "certs/ca-certificates.crt").write_text(certificate)
    (folder / f"certs/{SUBJECT_HASH}.0").symlink_to("ca-certificates.crt")
    (folder / "certs/java/cacerts").write_bytes(_java_store(ssl.PEM_cert_to_DER_cert(certificate)))
    settings = Path("/etc/ssl/openssl.cnf")
    if settings.is_file():
        (folder / "openssl.cnf").write_bytes(settings.read_bytes())


def _java_store(certificate: bytes) -> bytes:
    """Return a Java key store (JKS version 2) of one trusted certificate."""

    def text(value: str) -> bytes:
        return struct.pack(">H", len(value)) + value.encode()

    entry = struct.pack(">I", 2) + text("mcpdetect") + struct.pack(">Q", int(_FROM.timestamp() * 1000))
    entry += text("X.509") + struct.pack(">I", len(certificate)) + certificate
    body = struct.pack(">III", 0xFEEDFEED, 2, 1) + entry
    return body + hashlib.sha1(_JKS_PASSWORD.encode("utf-16-be") + _JKS_WHITENER + body).digest()


def _name() -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, _ORGANISATION),
            x509.NameAttribute(NameOID.COMMON_NAME, _COMMON_NAME),
        ]
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _new_authority() -> bytes:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    except ModuleNotFoundError as error:
        raise RecorderError(
            "the fake internet speaks TLS with the cryptography package (pip install cryptography)"
        ) from error

    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(_name())
        .issuer_name(_name())
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FROM)
        .not_valid_after(_UNTIL)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return secret + certificate.public_bytes(Encoding.PEM)


class Authority:
    """Signs a certificate for every name and address that is asked for.

    Args:
        file: the authority's file.
    """

    def __init__(self, file: Path) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        data = file.read_bytes()
        key = load_pem_private_key(data, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise RecorderError(f"{file}: holds no key of an authority")
        self._key = key
        self._certificate = x509.load_pem_x509_certificate(certificate_of(file).encode())
        # One key serves every leaf: what differs is the name.
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())

    def leaf(self, *names: str) -> bytes:
        """Return key and certificate chain (PEM) of a server.

        Args:
            names: host names, and IP addresses as text.

        Raises:
            ValueError: no certificate can hold such a name.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
        from cryptography.x509.oid import ExtendedKeyUsageOID

        subject = _leaf_name()
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._certificate.subject)
            .public_key(self._leaf_key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_FROM)
            .not_valid_after(_UNTIL)
            .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._leaf_key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        secret = self._leaf_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return secret + certificate.public_bytes(Encoding.PEM) + self._certificate.public_bytes(Encoding.PEM)


def _leaf_name() -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a server of the fake internet")])


def _general(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
