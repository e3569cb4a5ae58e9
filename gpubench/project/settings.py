"""``gpubench.yaml``, the file of what a project tells the report: which machines are one.

Runners of continuous integration have a new name each time (``fv-az7``, ``fv-az12``). With
``machines: {github: fv-az*}`` their results are one history.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.errors import Fault, did_you_mean
from gpubench.links import LEADS_OUT, leads_out

if TYPE_CHECKING:
    from gpubench.suite.tree import Node

PROJECT_FILE = "gpubench.yaml"

PROJECT_FILE_VERSION = 1

MACHINES_FORM = "write github: fv-az*, or github: [fv-az*, runner-*]"

MACHINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}")
"""Names for several machines: beside their results there is a folder of that name."""


@dataclass(frozen=True, slots=True)
class Machines:
    """Names that stand for several machines."""

    patterns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By name: what the machines' own names are like, with ``*``, ``?`` and ``[...]``."""

    def name_of(self, machine: str) -> str:
        """Return the name that stands for a machine: the first that fits, else its own."""
        for name, patterns in self.patterns.items():
            if any(fnmatchcase(machine, pattern) for pattern in patterns):
                return name
        return machine


def read_machines(folder: Path) -> tuple[Machines, tuple[Fault, ...]]:
    """Read the file of a project, and everything that is wrong with it; a file with faults stands
    for no machines."""
    path = folder / PROJECT_FILE
    root, faults = read_project_file(path, PROJECT_FILE_VERSION, "machines", _faults)
    machines = root.fields("machines").items() if root is not None else ()
    return Machines({name: _patterns(node) for name, node in machines}), faults


def _faults(root: Node) -> Iterator[Fault]:
    machines = root.find("machines")
    if machines and not machines.entries:
        yield machines.origin.fault(f"machines is a mapping of names; {MACHINES_FORM}")
    for name, node in root.fields("machines").items():
        if not MACHINE.fullmatch(name):
            yield node.key_fault(f"{name!r}: a name has letters, digits, blanks and . _ - alone")
        for one in node.items or (node,):
            if not isinstance(one.content, str) or not one.content:
                yield one.origin.fault(
                    f"a pattern is the text of a machine's name; {MACHINES_FORM}"
                )


def _patterns(node: Node) -> tuple[str, ...]:
    return tuple(str(one.content) for one in node.items or (node,))


def read_project_file(
    path: Path, version: int, field: str, faults_of: Callable[[Node], Iterator[Fault]]
) -> tuple[Node | None, tuple[Fault, ...]]:
    """Read a YAML file of a project, which has a version and one more field; return everything that
    is wrong with the file beside it. ``None`` without a file, and for a file with faults.

    ``faults_of`` yields what is wrong in the field.
    """
    if not path.exists():
        return None, ()
    if leads_out(path, path.parent):
        return None, (Fault(str(path), 0, 0, LEADS_OUT),)
    from gpubench.suite.reader import read_suite_file  # PyYAML, only where there is a file

    root, faults = read_suite_file(path)
    # The reader is that of suites, and says so.
    said = [replace(fault, message=fault.message.replace("a suite", "it")) for fault in faults]
    if root is not None:
        said += [*_head_faults(root, version, field), *faults_of(root)]
    return None if said else root, tuple(sorted(said))


def _head_faults(root: Node, supported: int, field: str) -> Iterator[Fault]:
    """Yield what is wrong with the version of a file and with the names of its fields."""
    version = root.find("version")
    if version is None or version.content != supported:
        place = version or root
        yield place.origin.fault(f"version: {supported} is missing; this release reads no other")
    for name, node in root.entries.items():
        if name not in ("version", field):
            hint = did_you_mean(name, ("version", field))
            yield node.key_fault(f"{name!r} is no field; there are version and {field}{hint}")
