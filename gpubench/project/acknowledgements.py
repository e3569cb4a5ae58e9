"""``gpubench-acknowledged.yaml``, the changes that a project knows of and accepts.

It stands beside ``asv.conf.json``. Pages fold these changes, and ``compare`` raises no alarm for
them, until the level changes again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.errors import Fault, GpubenchError, did_you_mean
from gpubench.files import replace_text
from gpubench.project.settings import read_project_file
from gpubench.results.acknowledgement import Acknowledgement

if TYPE_CHECKING:
    from gpubench.suite.tree import Node

ACKNOWLEDGED_FILE = "gpubench-acknowledged.yaml"

ACKNOWLEDGED_VERSION = 1

FIELDS = ("commit", "benchmarks", "reason", "by")

ENTRY_FORM = (
    'write - {commit: "0123abcd", benchmarks: ["vector_add*"], reason: checks its input, by: Ada}'
)

COMMIT = re.compile(r"[0-9a-f]{7,40}")

FIRST_LINES = f"""\
# Changes of times that are known and accepted: `gpubench acknowledge` adds one.
version: {ACKNOWLEDGED_VERSION}
changes:
"""


def read_acknowledgements(folder: Path) -> tuple[tuple[Acknowledgement, ...], tuple[Fault, ...]]:
    """Read the file of a project, and everything that is wrong with it; one with faults stands for
    no change."""
    path = folder / ACKNOWLEDGED_FILE
    root, faults = read_project_file(path, ACKNOWLEDGED_VERSION, "changes", _faults)
    changes = root.find("changes") if root is not None else None
    return tuple(map(_acknowledgement, changes.items if changes else ())), faults


def add_acknowledgement(folder: Path, entry: Acknowledgement) -> Path:
    """Add an entry at the end of the file, which is made where there is none; return its path.

    Raises ``GpubenchError`` where the file has faults, or ends in something else than the list.
    """
    path = folder / ACKNOWLEDGED_FILE
    known, faults = read_acknowledgements(folder)
    if faults:
        raise GpubenchError(f"{faults[0]}; fix that first")
    old = path.read_text(encoding="utf-8") if path.exists() else FIRST_LINES
    line = {
        "commit": entry.commit,
        "benchmarks": entry.benchmarks,
        "reason": entry.reason,
        "by": entry.by,
    }
    # JSON is YAML, and quotes what a reader of YAML would take for something else.
    fields = (f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in line.items())
    new = "".join([old, "" if old.endswith("\n") else "\n", "  - ", "\n    ".join(fields), "\n"])
    replace_text(path, new)
    if read_acknowledgements(folder) != ((*known, entry), ()):
        replace_text(path, old)
        raise GpubenchError(f"{path}: `changes` is not its last field, a list; {ENTRY_FORM} in it")
    return path


def _acknowledgement(node: Node) -> Acknowledgement:
    fields = {name: node.find(name) for name in FIELDS}
    texts = {name: str(field.content) if field else "" for name, field in fields.items()}
    benchmarks = fields["benchmarks"]
    patterns = (benchmarks.items or (benchmarks,)) if benchmarks else ()
    named = tuple(str(one.content) for one in patterns)
    return Acknowledgement(texts["commit"], named, texts["reason"], texts["by"])


def _faults(root: Node) -> Iterator[Fault]:
    changes = root.find("changes")
    if changes and not isinstance(changes.content, tuple):
        yield changes.origin.fault(f"changes is a list; {ENTRY_FORM}")
    for entry in changes.items if changes else ():
        yield from _faults_of_entry(entry)


def _faults_of_entry(entry: Node) -> Iterator[Fault]:
    for name, node in entry.entries.items():
        if name not in FIELDS:
            hint = did_you_mean(name, FIELDS)
            yield node.key_fault(f"{name!r} is no field of a change; {ENTRY_FORM}{hint}")
    for name in ("commit", "benchmarks", "reason"):
        if entry.find(name) is None:
            yield entry.origin.fault(f"{name} is missing; {ENTRY_FORM}")
    commit = entry.find("commit")
    if commit and not (isinstance(commit.content, str) and COMMIT.fullmatch(commit.content)):
        yield commit.origin.fault(
            f"{commit.content!r} is no commit: write 7 to 40 characters of its hash, in quotes"
        )
    benchmarks = entry.find("benchmarks")
    for one in (benchmarks.items or (benchmarks,)) if benchmarks else ():
        if not isinstance(one.content, str) or not one.content:
            yield one.origin.fault(f"a pattern is the text of a benchmark's name; {ENTRY_FORM}")
    for name in ("reason", "by"):
        field = entry.find(name)
        if field and not isinstance(field.content, str):
            yield field.origin.fault(f"{name} is a text; {ENTRY_FORM}")
