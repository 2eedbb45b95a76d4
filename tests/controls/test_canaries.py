"""The planted secrets: where they lie, that their own readers take them, that nothing tells the canary but the seed."""

import configparser
import json
import netrc
import sqlite3
import subprocess
from pathlib import Path

import pytest

from controls.recorder.canaries import HOME, Planted, environment_canaries, plant, planted, tag_of, token_of
from mcpdetect.data.loader import load_yaml

KINDS = {
    ".ssh/id_ed25519": "SSHKEY",
    ".aws/credentials": "AWS",
    ".netrc": "NETRC",
    ".npmrc": "NPMRC",
    ".config/gh/hosts.yml": "GH",
    "project/.env": "DOTENV",
    ".config/gcloud/application_default_credentials.json": "GCP",
    ".azure/msal_token_cache.json": "AZURE",
    ".kube/config": "KUBE",
    ".docker/config.json": "DOCKER",
    ".git-credentials": "GIT",
    ".pypirc": "PYPI",
    ".pgpass": "PGPASS",
    ".vault-token": "VAULT",
    ".bash_history": "HISTORY",
    ".config/google-chrome/Default/Login Data": "CHROME",
    ".mozilla/firefox/x1y2z3a4.default-release/logins.json": "FIREFOX",
    ".bitcoin/wallets/main/wallet.dat": "BITCOIN",
    ".ethereum/keystore/UTC--2024-01-02T03-04-05.678900000Z--example": "ETHEREUM",
    ".claude/.credentials.json": "CLAUDE",
    ".codex/auth.json": "CODEX",
    ".cursor/mcp.json": "CURSOR",
    ".config/Claude/claude_desktop_config.json": "DESKTOP",
}
TAG = "0123456789ab"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    plant(tmp_path, TAG)
    return tmp_path


def test_the_tag_comes_from_seed_and_case() -> None:
    assert tag_of(0, "a/b/c") == "5cb41ca5ec7d"
    assert len({tag_of(seed, case) for seed in (0, 1) for case in ("a/b/c", "a/b/d")}) == 4


def test_what_is_planted_lies_where_it_is_said_to(tmp_path: Path) -> None:
    done = plant(tmp_path, TAG)
    assert {one.path: one.kind for one in done} == {f"{HOME}/{name}": kind for name, kind in KINDS.items()}
    for one in done:
        assert one.path is not None
        assert one.offset is not None
        file = tmp_path / Path(one.path).relative_to(HOME)
        value = one.value.encode()
        assert one.value == f"CANARY-{one.kind}-{TAG}"
        assert (file.read_bytes().count(value), file.stat().st_mode & 0o777) == (1, 0o600)
        assert file.read_bytes()[one.offset :].startswith(value)
    assert len({one.value for one in done}) == len(KINDS)


def test_what_was_planted_can_be_told_from_the_tag_alone(tmp_path: Path) -> None:
    assert planted(TAG) == plant(tmp_path, TAG) + environment_canaries(TAG)


def test_a_variable_of_the_run_takes_a_planted_ones_place() -> None:
    assert environment_canaries(TAG) == [
        Planted("ENVTOKEN", f"CANARY-ENVTOKEN-{TAG}", variable="SERVICE_TOKEN", offset=0),
        Planted("ENVOPENAI", f"CANARY-ENVOPENAI-{TAG}", variable="OPENAI_API_KEY", offset=0),
        Planted("ENVGITHUB", f"CANARY-ENVGITHUB-{TAG}", variable="GITHUB_TOKEN", offset=0),
        Planted("ENVDATABASE", f"CANARY-ENVDATABASE-{TAG}", variable="DATABASE_PASSWORD", offset=0),
    ]
    left = [one.variable for one in planted(TAG, {"GITHUB_TOKEN": "x", "HOME": "/"}) if one.variable]
    assert left == ["SERVICE_TOKEN", "OPENAI_API_KEY", "DATABASE_PASSWORD"]


def test_ssh_takes_the_key(home: Path) -> None:
    done = subprocess.run(
        ["ssh-keygen", "-y", "-f", home / ".ssh/id_ed25519"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI")
    assert done.stdout.endswith(" dev@workstation\n")


def test_every_json_store_is_json(home: Path) -> None:
    seen = {path.relative_to(home).as_posix() for path in home.rglob("*.json") if json.loads(path.read_text())}
    assert seen == {name for name in KINDS if name.endswith(".json")} | {"project/data.json"}
    assert json.loads((home / ".ethereum/keystore").iterdir().__next__().read_text())["version"] == 3


def test_the_browsers_and_the_wallets_databases_open(home: Path) -> None:
    with sqlite3.connect(home / ".config/google-chrome/Default/Login Data") as base:
        assert base.execute("SELECT username_value, password_value FROM logins").fetchall() == [
            ("dev", f"CANARY-CHROME-{TAG}".encode())
        ]
    base.close()
    with sqlite3.connect(home / ".bitcoin/wallets/main/wallet.dat") as base:
        assert base.execute("SELECT value FROM main").fetchall() == [(f"CANARY-BITCOIN-{TAG}".encode(),)]
    base.close()


def test_the_readers_of_text_stores_find_the_canary(home: Path) -> None:
    assert netrc.netrc(home / ".netrc").authenticators("git.example.com") == ("dev", "", f"CANARY-NETRC-{TAG}")
    for name, section, key, kind in (
        (".aws/credentials", "default", "aws_secret_access_key", "AWS"),
        (".pypirc", "pypi", "password", "PYPI"),
    ):
        parser = configparser.ConfigParser()
        assert parser.read(home / name) == [str(home / name)]
        assert parser[section][key] == f"CANARY-{kind}-{TAG}"
    kube = load_yaml(home / ".kube/config", None)
    assert kube["users"][0]["user"]["token"] == f"CANARY-KUBE-{TAG}"
    assert kube["contexts"][0]["context"] == {"cluster": "example", "user": "dev"}


def test_a_setting_with_the_runs_token_is_planted() -> None:
    token = token_of(TAG)
    own = [one for one in planted(TAG, {"X_KEY": f"ghp_{token}", "X_URL": "https://x.example"}) if one.kind == "TOKEN"]
    assert own == [Planted("TOKEN", f"CANARY-TOKEN-{TAG}", variable="X_KEY", offset=4)]
