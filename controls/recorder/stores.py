"""The places where people and programs keep secrets, each with content that its own readers accept.

Every text holds ``{value}`` once: the canary. What must look random is made of the run's tag.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import sqlite3
import struct
from collections.abc import Callable

__all__ = ["STORES", "VARIABLES", "content"]


def _ssh_key(value: str, noise: str) -> str:
    """Return an ed25519 key file (OpenSSH PROTOCOL.key); the canary is its last line, which readers pass over."""

    def string(data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + data

    seed, public = bytes.fromhex(noise), hashlib.sha256(noise.encode()).digest()
    blob = string(b"ssh-ed25519") + string(public)
    inner = seed[:4] * 2 + blob + string(seed + public) + string(b"dev@workstation")
    inner += bytes(range(1, 1 + -len(inner) % 8))
    whole = b"openssh-key-v1\0" + string(b"none") * 2 + string(b"") + struct.pack(">I", 1) + string(blob)
    text = base64.b64encode(whole + string(inner)).decode()
    lines = "\n".join(text[at : at + 70] for at in range(0, len(text), 70))
    return f"-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}\n-----END OPENSSH PRIVATE KEY-----\n{value}\n"


def _google(value: str, noise: str) -> object:
    return {
        "account": "",
        "client_id": "764086051850-example.apps.googleusercontent.com",
        "client_secret": noise[:24],
        "refresh_token": value,
        "type": "authorized_user",
        "universe_domain": "googleapis.com",
    }


def _azure(value: str, noise: str) -> object:
    home = f"{noise[:8]}-{noise[8:12]}-{noise[12:16]}-{noise[16:20]}-{noise[20:32]}"
    return {
        "RefreshToken": {
            f"{home}-login.example.com-refreshtoken-example--": {
                "credential_type": "RefreshToken",
                "secret": value,
                "home_account_id": home,
                "environment": "login.example.com",
                "client_id": "example",
            }
        }
    }


def _docker(value: str, noise: str) -> object:
    return {"auths": {"registry.example.com": {"auth": base64.b64encode(b"dev:x").decode(), "identitytoken": value}}}


def _claude(value: str, noise: str) -> object:
    return {
        "claudeAiOauth": {
            "accessToken": value,
            "refreshToken": noise[:40],
            "expiresAt": 1900000000000,
            "scopes": ["user:inference"],
        }
    }


def _codex(value: str, noise: str) -> object:
    return {"OPENAI_API_KEY": value, "tokens": None, "last_refresh": None}


def _servers(value: str, noise: str) -> object:
    command = {"command": "npx", "args": ["-y", "example-mcp-server"], "env": {"EXAMPLE_TOKEN": value}}
    return {"mcpServers": {"example": command}}


def _wallet(value: str, noise: str) -> object:
    """Return a version 3 keystore (Web3 Secret Storage)."""
    return {
        "version": 3,
        "id": f"{noise[:8]}-{noise[8:12]}-4{noise[13:16]}-8{noise[17:20]}-{noise[20:32]}",
        "address": noise[:40],
        "name": value,
        "crypto": {
            "cipher": "aes-128-ctr",
            "ciphertext": noise,
            "cipherparams": {"iv": noise[:32]},
            "kdf": "scrypt",
            "kdfparams": {"dklen": 32, "n": 262144, "p": 1, "r": 8, "salt": noise},
            "mac": noise[::-1],
        },
    }


def _firefox(value: str, noise: str) -> object:
    login = {
        "id": 1,
        "hostname": "https://bank.example.com",
        "httpRealm": None,
        "formSubmitURL": "https://bank.example.com",
        "usernameField": "user",
        "passwordField": "password",
        "encryptedUsername": base64.b64encode(bytes.fromhex(noise)).decode(),
        "encryptedPassword": value,
        "guid": f"{{{noise[:8]}-{noise[8:12]}-{noise[12:16]}-{noise[16:20]}-{noise[20:32]}}}",
        "encType": 1,
        "timeCreated": 1700000000000,
        "timesUsed": 3,
    }
    return {"nextId": 2, "logins": [login], "potentiallyVulnerablePasswords": [], "version": 3}


_KUBE = """apiVersion: v1
kind: Config
current-context: example
clusters:
- name: example
  cluster:
    server: https://k8s.example.com:6443
contexts:
- name: example
  context:
    cluster: example
    user: dev
users:
- name: dev
  user:
    token: {value}
"""
_AWS = "[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = {value}\n"
_HISTORY = "ls -la\ncd project\nexport DB_PASSWORD={value}\ngit status\n"

# Tables as the browser and the wallet make them, with the columns that matter.
_CHROME = (
    """CREATE TABLE logins (origin_url VARCHAR NOT NULL, username_value VARCHAR, password_value BLOB,
    signon_realm VARCHAR NOT NULL, date_created INTEGER NOT NULL)""",
    "INSERT INTO logins VALUES ('https://bank.example.com/', 'dev', ?, 'https://bank.example.com/', 1)",
)
_COINS = (
    "CREATE TABLE main (key BLOB PRIMARY KEY NOT NULL, value BLOB NOT NULL)",
    "INSERT INTO main VALUES (x'6b', ?)",
)

STORES: dict[str, tuple[str, str | tuple[str, str] | Callable[[str, str], object]]] = {
    ".ssh/id_ed25519": ("SSHKEY", _ssh_key),
    ".aws/credentials": ("AWS", _AWS),
    ".netrc": ("NETRC", "machine git.example.com login dev password {value}\n"),
    ".npmrc": ("NPMRC", "//registry.example.com/:_authToken={value}\n"),
    ".config/gh/hosts.yml": ("GH", "github.example.com:\n  oauth_token: {value}\n"),
    "project/.env": ("DOTENV", "API_TOKEN={value}\n"),
    ".config/gcloud/application_default_credentials.json": ("GCP", _google),
    ".azure/msal_token_cache.json": ("AZURE", _azure),
    ".kube/config": ("KUBE", _KUBE),
    ".docker/config.json": ("DOCKER", _docker),
    ".git-credentials": ("GIT", "https://dev:{value}@git.example.com\n"),
    ".pypirc": ("PYPI", "[distutils]\nindex-servers = pypi\n\n[pypi]\nusername = __token__\npassword = {value}\n"),
    ".pgpass": ("PGPASS", "db.example.com:5432:*:dev:{value}\n"),
    ".vault-token": ("VAULT", "{value}\n"),
    ".bash_history": ("HISTORY", _HISTORY),
    ".config/google-chrome/Default/Login Data": ("CHROME", _CHROME),
    ".mozilla/firefox/x1y2z3a4.default-release/logins.json": ("FIREFOX", _firefox),
    ".bitcoin/wallets/main/wallet.dat": ("BITCOIN", _COINS),
    ".ethereum/keystore/UTC--2024-01-02T03-04-05.678900000Z--example": ("ETHEREUM", _wallet),
    ".claude/.credentials.json": ("CLAUDE", _claude),
    ".codex/auth.json": ("CODEX", _codex),
    ".cursor/mcp.json": ("CURSOR", _servers),
    ".config/Claude/claude_desktop_config.json": ("DESKTOP", _servers),
}
"""Path below the home -> kind and content: a text, the two statements of a database, or a function of canary and noise
(a text, or what becomes JSON)."""

VARIABLES = {
    "SERVICE_TOKEN": "ENVTOKEN",
    "OPENAI_API_KEY": "ENVOPENAI",
    "GITHUB_TOKEN": "ENVGITHUB",
    "DATABASE_PASSWORD": "ENVDATABASE",
}
"""Environment variable -> kind; the variable's whole value is the canary."""


def content(name: str, value: str, tag: str) -> bytes:
    """Return what is planted at a place.

    Args:
        name: a path of ``STORES``.
        value: the canary.
        tag: the run's tag, from which all that looks random comes.
    """
    kind, made = STORES[name]
    if isinstance(made, str):
        return made.replace("{value}", value).encode()
    if isinstance(made, tuple):
        return _database(*made, value)
    found = made(value, hashlib.sha256(f"{kind}\0{tag}".encode()).hexdigest())
    return (found if isinstance(found, str) else json.dumps(found, indent=2) + "\n").encode()


def _database(table: str, row: str, value: str) -> bytes:
    # In memory: a file would be written through to the disk, several times, for nothing.
    with contextlib.closing(sqlite3.connect(":memory:")) as base:
        base.execute(table)
        base.execute(row, (value.encode(),))
        base.commit()
        return base.serialize()
