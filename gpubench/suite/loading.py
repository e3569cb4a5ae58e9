"""Suite files to suites: reading, ``extends``, presets, and every fault in one go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from gpubench.errors import Fault, SuiteError
from gpubench.names import NAME
from gpubench.suite.assembly import assemble
from gpubench.suite.checks import check_presets, check_suite
from gpubench.suite.loaded import LoadedSuite
from gpubench.suite.merging import apply_preset
from gpubench.suite.model import Suite
from gpubench.suite.reader import MAX_FAULTS
from gpubench.suite.tree import Node, Origin
from gpubench.suite.types import suggestion
from gpubench.suite.validation import fault, validate

__all__ = ["LoadedSuite", "load_suite", "load_suites"]

MAX_PRESET_VALUES = 100_000
"""Most values of a file times its presets: every preset is checked as a suite of its own."""


def load_suite(path: Path | str, preset: str | None = None) -> LoadedSuite:
    """Load one suite file; raises ``SuiteError`` with every fault, an unknown preset among them."""
    return load_suites([path], preset)[0]


def load_suites(paths: Iterable[Path | str], preset: str | None = None) -> tuple[LoadedSuite, ...]:
    """Load suite files and the ``*.yaml`` of folders, in the order given.

    A preset is applied where it exists; a suite without it carries a warning. Raises ``SuiteError``
    with all faults of all files, of two suites with one name, and of a preset that no file has.
    """
    files, faults = _files(paths)
    drafts = [_draft(file, preset) for file in files]
    faults += [fault for draft in drafts for fault in draft.faults]
    faults += _same_names(drafts)
    faults += _unknown_preset(drafts, preset)
    if faults:
        raise SuiteError(faults)
    return tuple(_loaded(draft, preset) for draft in drafts)


@dataclass(frozen=True, slots=True)
class _Draft:
    path: Path
    root: Node | None
    """The tree with the preset applied."""
    suite: Suite | None
    presets: tuple[str, ...]
    faults: tuple[Fault, ...]


def _files(paths: Iterable[Path | str]) -> tuple[list[Path], list[Fault]]:
    files: dict[Path, None] = {}
    faults = []
    for path in map(Path, paths):
        inside = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
        if not inside:
            faults.append(Fault(str(path), 0, 0, "no suite here; suite files end in .yaml"))
        files.update(dict.fromkeys(inside))
    return list(files), faults


def _draft(path: Path, preset: str | None) -> _Draft:
    root, read = assemble(path)
    if root is None:
        return _Draft(path, None, None, (), read)
    presets = root.child("presets")
    names = tuple(presets.entries) if presets else ()
    validated = validate(root)
    found = [*_stem(path, root), *validated.faults]
    found += _first(check_suite(validated, root))
    suite, chosen = validated.suite, root
    if presets and len(names) * root.count() > MAX_PRESET_VALUES:
        found.append(fault(presets.origin, _too_many_presets(len(names), root.count())))
        names = ()
    else:
        found += _first(check_presets(root))
    for name in names:
        changed = apply_preset(root, name)
        changed_to = validate(changed)
        found += [*changed_to.faults, *_first(check_suite(changed_to, changed))]
        if name == preset:
            suite, chosen = changed_to.suite, changed
    return _Draft(path, chosen, suite, names, _without_repeats(read, found))


def _first(faults: Iterable[Fault]) -> Iterable[Fault]:
    return islice(faults, MAX_FAULTS + 1)


def _too_many_presets(presets: int, values: int) -> str:
    return (
        f"{presets} presets of a suite of {values} values, each checked as a whole;"
        f" allowed: {MAX_PRESET_VALUES // values}, or split the suite"
    )


def _without_repeats(read: Iterable[Fault], found: Iterable[Fault]) -> tuple[Fault, ...]:
    """All faults, without those at a place where reading already found one."""
    told = {(fault.path, fault.line, fault.column) for fault in read}
    new = (fault for fault in found if (fault.path, fault.line, fault.column) not in told)
    faults = sorted({*read, *new})
    if len(faults) <= MAX_FAULTS:
        return tuple(faults)
    more = f"more than {MAX_FAULTS} faults; these are the first"
    return (*faults[:MAX_FAULTS], replace(faults[0], line=0, column=0, message=more))


def _stem(path: Path, root: Node) -> list[Fault]:
    node = root.child("suite")
    if node is None or node.content == path.stem or not NAME.fullmatch(str(node.content)):
        return []
    message = f"suite {node.content!r} in {path.name}; write suite: {path.stem}, or rename the file"
    return [fault(node.origin, message)]


def _same_names(drafts: Sequence[_Draft]) -> list[Fault]:
    first: dict[object, Origin] = {}
    faults = []
    for draft in drafts:
        node = draft.root.child("suite") if draft.root else None
        if node is None:
            continue
        if node.content in first:
            message = f"suite {node.content!r} is there twice; the other is {first[node.content]}"
            faults.append(fault(node.origin, message))
        first.setdefault(node.content, node.origin)
    return faults


def _unknown_preset(drafts: Sequence[_Draft], preset: str | None) -> list[Fault]:
    known = tuple(sorted({name for draft in drafts for name in draft.presets}))
    readable = [draft for draft in drafts if draft.root]
    if preset is None or preset in known or not readable:
        return []
    near = suggestion(preset, known) or "; there are no presets"
    paths = ", ".join(str(draft.path) for draft in readable[:3])
    more = " ..." if len(readable) > 3 else ""
    return [Fault(paths + more, 0, 0, f"unknown preset {preset!r}{near}")]


def _loaded(draft: _Draft, preset: str | None) -> LoadedSuite:
    if draft.suite is None or draft.root is None:
        raise AssertionError("a suite without faults has a model")
    applied = preset if preset in draft.presets else None
    warnings = [] if applied == preset else [_not_applied(draft, preset)]
    return LoadedSuite(draft.suite, draft.path, applied, tuple(warnings), draft.root)


def _not_applied(draft: _Draft, preset: str | None) -> Fault:
    known = ", ".join(draft.presets) or "none"
    message = f"preset {preset!r} is not in this suite, which stands as it is; it has: {known}"
    return Fault(str(draft.path), 0, 0, message)
