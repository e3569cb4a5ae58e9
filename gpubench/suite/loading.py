"""Suite files to suites: reading, ``extends``, presets, and every fault in one go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from gpubench.errors import Fault, SuiteError
from gpubench.names import NAME
from gpubench.suite import tree
from gpubench.suite.checks import check_presets, check_suite
from gpubench.suite.merging import apply_preset, extend
from gpubench.suite.model import Suite
from gpubench.suite.reader import MAX_FAULTS, read_suite_file
from gpubench.suite.tree import Node, Origin
from gpubench.suite.types import suggestion
from gpubench.suite.validation import validate

MAX_FILES = 16
"""Most files that extend one another: more than anybody can follow, and no endless chain."""
MAX_PRESET_VALUES = 100_000
"""Most values of a file times its presets: every preset is checked as a suite of its own, which
takes some seconds for so many."""


@dataclass(frozen=True)
class LoadedSuite:
    """A suite with ``extends`` and its preset applied, and where its values come from."""

    suite: Suite
    path: Path
    """The file, as the user named it."""
    preset: str | None
    """The preset that was applied."""
    warnings: tuple[Fault, ...]
    root: Node
    """Every value of the suite with its place."""

    def origin(self, path: tree.Path) -> Origin:
        """Place of the value at a path, ``('kernels', 'matmul', 'sizes', 'n')`` for example.

        What no file sets (a default) has the place of the nearest value around it.
        """
        node = self.root
        for step in path:
            child = node.find(step)
            if child is None:
                break
            node = child
        return node.origin

    def fault_at(self, path: tree.Path, message: str) -> Fault:
        """A fault at a value, or at the name of one that has fields of its own."""
        node = self.root.find(*path)
        if node is not None and node.entries and node.key is not None:
            return node.key.fault(message)
        return self.origin(path).fault(message)


class Excerpt(NamedTuple):
    """Some lines of a suite file."""

    place: str
    """Folder, file, first line and the preset that was applied: ``suites/norm.yaml:15``."""
    text: str
    """The lines as they are written, unindented; empty where the file cannot be read any more."""


def load_suite(path: Path | str, preset: str | None = None) -> LoadedSuite:
    """Load one suite file; raises ``SuiteError`` with every fault, an unknown preset among them."""
    return load_suites([path], preset)[0]


def load_suites(paths: Iterable[Path | str], preset: str | None = None) -> tuple[LoadedSuite, ...]:
    """Load suite files and the ``*.yaml`` of folders, in the order given.

    A preset is applied where it exists; a suite without it carries a warning. Raises ``SuiteError``
    with all faults of all files, of two suites with one name, and of a preset that no file has.
    """
    files: dict[Path, None] = {}
    faults: list[Fault] = []
    for path in map(Path, paths):
        inside = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
        if not inside:
            faults.append(Fault(str(path), 0, 0, "no suite here; suite files end in .yaml"))
        files |= dict.fromkeys(inside)
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


def _draft(path: Path, preset: str | None) -> _Draft:
    root, read_faults = _assembled(path, (path,))
    if root is None:
        return _Draft(path, None, None, (), read_faults)
    faults: list[Fault] = []
    name = root.find("suite")
    if name and name.content != path.stem and NAME.fullmatch(str(name.content)):
        message = (
            f"suite {name.content!r} in {path.name}; write suite: {path.stem}, or rename the file"
        )
        faults.append(name.origin.fault(message))
    validated = validate(root)
    faults += [*validated.faults, *_first(check_suite(validated, root))]
    suite, chosen = validated.suite, root
    presets = root.find("presets")
    names, size = tuple(root.fields("presets")), root.count()
    if presets and len(names) * size > MAX_PRESET_VALUES:
        message = (
            f"{len(names)} presets of a suite of {size} values, each checked as a whole;"
            f" allowed: {MAX_PRESET_VALUES // size}, or split the suite"
        )
        faults.append(presets.origin.fault(message))
        names = ()
    else:
        faults += _first(check_presets(root))
    for preset_name in names:
        changed = apply_preset(root, preset_name)
        validated = validate(changed)
        faults += [*validated.faults, *_first(check_suite(validated, changed))]
        if preset_name == preset:
            suite, chosen = validated.suite, changed
    return _Draft(path, chosen, suite, names, _without_repeats(read_faults, faults))


def _assembled(path: Path, chain: tuple[Path, ...]) -> tuple[Node | None, tuple[Fault, ...]]:
    """Tree of a file laid over the files that it extends, and the faults of all of them."""
    root, faults = read_suite_file(path)
    extends = root.find("extends") if root else None
    if root is None or extends is None or not isinstance(extends.content, str):
        return root, faults
    written = extends.content
    problem = None
    if not written.strip() or "\0" in written or Path(written).is_absolute():
        problem = f"extends {written!r}; allowed: a path relative to this file"
    elif (base_path := path.parent / written).resolve() in {file.resolve() for file in chain}:
        problem = f"extends {written!r}, which extends this file in turn; break the circle"
    elif len(chain) == MAX_FILES:
        problem = f"more than {MAX_FILES} files extend one another"
    elif not base_path.is_file():
        problem = f"extends {written!r}, but there is no file {base_path}"
    if problem:
        return root, (*faults, extends.origin.fault(problem))
    base, base_faults = _assembled(base_path, (*chain, base_path))
    return (extend(base, root) if base else root), (*faults, *base_faults)


def _first(faults: Iterable[Fault]) -> Iterable[Fault]:
    return islice(faults, MAX_FAULTS + 1)


def _without_repeats(read: Sequence[Fault], later: Sequence[Fault]) -> tuple[Fault, ...]:
    """All faults, without those at a place where reading already met one."""
    places = {(fault.path, fault.line, fault.column) for fault in read}
    new = (fault for fault in later if (fault.path, fault.line, fault.column) not in places)
    faults = sorted({*read, *new})
    if len(faults) <= MAX_FAULTS:
        return tuple(faults)
    more = f"more than {MAX_FAULTS} faults; these are the first"
    return (*faults[:MAX_FAULTS], replace(faults[0], line=0, column=0, message=more))


def _same_names(drafts: Sequence[_Draft]) -> list[Fault]:
    first: dict[str, Origin] = {}
    faults = []
    for draft in drafts:
        node = draft.root.find("suite") if draft.root else None
        if node is None or not isinstance(node.content, str):
            continue
        if node.content in first:
            message = f"suite {node.content!r} is there twice; the other is {first[node.content]}"
            faults.append(node.origin.fault(message))
        first.setdefault(node.content, node.origin)
    return faults


def _unknown_preset(drafts: Sequence[_Draft], preset: str | None) -> list[Fault]:
    names = sorted({name for draft in drafts for name in draft.presets})
    readable = [str(draft.path) for draft in drafts if draft.root]
    if preset is None or preset in names or not readable:
        return []
    hint = suggestion(preset, names) or "; there are no presets"
    paths = ", ".join(readable[:3]) + (" ..." if len(readable) > 3 else "")
    return [Fault(paths, 0, 0, f"unknown preset {preset!r}{hint}")]


def _loaded(draft: _Draft, preset: str | None) -> LoadedSuite:
    assert draft.suite is not None and draft.root is not None  # a suite without faults has both
    if preset is None or preset in draft.presets:
        return LoadedSuite(draft.suite, draft.path, preset, (), draft.root)
    names = ", ".join(draft.presets) or "none"
    message = f"preset {preset!r} is not in this suite, which stands as it is; it has: {names}"
    warning = Fault(str(draft.path), 0, 0, message)
    return LoadedSuite(draft.suite, draft.path, None, (warning,), draft.root)


def kernel_excerpt(loaded: LoadedSuite, kernel: str) -> Excerpt:
    """The key of a kernel and everything indented below it, comments included.

    Of a kernel that several files make up (``extends``) these are the lines of the file that
    names it last; a preset's changes are told by its name only.
    """
    node = loaded.root.find("kernels", kernel)
    origin = (node and node.key) or loaded.root.origin
    path = Path(origin.path)
    place = f"{'/'.join(path.parts[-2:])}:{origin.line}"
    if loaded.preset:
        place += f", preset {loaded.preset}"
    head, *rest = _lines(path)[origin.line - 1 :] or ("",)
    margin = _indent(head)
    # It ends at the first line that is indented no more. Comments there, which may as well stand
    # in the middle, and blank lines belong to what follows if nothing of the kernel comes after.
    outside = {i for i, line in enumerate(rest) if line.strip() and _indent(line) <= margin}
    ends = (i for i in sorted(outside) if not rest[i].lstrip().startswith("#"))
    end = next(ends, len(rest))
    while end and (end - 1 in outside or not rest[end - 1].strip()):
        end -= 1
    block = "\n".join(line[min(margin, _indent(line)) :] for line in (head, *rest[:end]))
    return Excerpt(place, block)


@lru_cache(maxsize=4)
def _lines(path: Path) -> tuple[str, ...]:
    """Lines of a file, read once for all of its kernels."""
    try:
        return tuple(path.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeError):
        return ()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
