"""Whether a case must be recorded again: not when its bundle is whole and came of the very same inputs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

from controls.catalog import Control, Variant
from controls.recorder.probes import SOURCE
from controls.speeches import SPEAKER

__all__ = ["inputs_of", "kept"]

_HERE = Path(__file__).resolve().parent
_CODE = (".py", ".c", ".sh", ".txt")


def inputs_of(control: Control, variant: Variant, *, seed: int, probe: bool, where: str) -> str:
    """Return the hash of all that decides what a recording shows, beside the machine and its packages.

    Those are the control's programs, the variant, the seed, the shell, whether there are probes, and the recorder's own
    code.

    Args:
        control: the control.
        variant: one of its variants.
        seed: what canaries are derived from.
        probe: whether probes run around the target.
        where: the name of the shell.
    """
    settings = {"control": control.id, "seed": seed, "probe": probe, "shell": where}
    digest = hashlib.sha256(json.dumps([settings, dataclasses.asdict(variant)], sort_keys=True).encode())
    roots = [(control.folder, None), (_HERE, _CODE), (SOURCE.parent, _CODE)]
    if variant.speech is not None:
        roots.append((SPEAKER, None))
    for root, suffixes in roots:
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            if "__pycache__" in name or name == "control.yaml" or (suffixes and path.suffix not in suffixes):
                continue
            if path.is_symlink():
                content = str(path.readlink()).encode()
            elif path.is_file():
                content = path.read_bytes()
            else:
                continue
            digest.update(f"\0{name}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
            digest.update(content)
    return digest.hexdigest()


def kept(bundle: Path, inputs: str) -> bool:
    """Return whether a bundle is whole and came of these inputs: then nothing has to be recorded.

    Args:
        bundle: its folder, which need not exist.
        inputs: from ``inputs_of``.
    """
    try:
        manifest = json.loads((bundle / "manifest.json").read_bytes())
        if manifest.get("inputs") != inputs:
            return False
        return all(
            hashlib.sha256((bundle / entry["path"]).read_bytes()).hexdigest() == entry["sha256"]
            for entry in manifest["evidence"]
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # It is not there, or half written, or another program's.
        return False
