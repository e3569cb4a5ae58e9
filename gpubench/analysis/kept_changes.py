"""Changes of a setup's times, kept on disk for the next report: they take most of its time."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from gpubench.analysis.changes import Change
from gpubench.analysis.levels import Stops
from gpubench.kept import code_stamp, read_kept, write_kept


class KeptChanges(msgspec.Struct, array_like=True):
    """What was found in the times of one setup."""

    digest: bytes = b""
    """Of all that it was found in."""
    changes: list[tuple[Change, ...]] = []
    """Of each case, in the order of the cases."""
    fits: dict[bytes, Stops] = {}
    """Of settled values, which hold when commits are added."""
    code: str = ""
    """Stamp of the code that found them."""


def changes_path(beside: Path, machine: str, environment: str) -> Path:
    """Where the changes of one setup are kept."""
    name = hashlib.sha256(f"{machine}\0{environment}".encode()).hexdigest()[:16]
    return beside.with_name(f"{beside.stem}-{name}.changes")


def read_changes(path: Path | None) -> KeptChanges:
    """What this code kept there; nothing where there is none."""
    kept = read_kept(path, KeptChanges) if path else None
    return kept if kept and kept.code == code_stamp() else KeptChanges()


def write_changes(
    path: Path | None, digest: bytes, changes: list[tuple[Change, ...]], fits: dict[bytes, Stops]
) -> None:
    """Keep these, and no others."""
    if path:
        write_kept(path, KeptChanges(digest, changes, fits, code_stamp()))
