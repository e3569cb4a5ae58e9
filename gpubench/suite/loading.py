"""Suite files to suites: reading, ``extends``, presets, and every fault in one go."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from gpubench.errors import Fault, SuiteError
from gpubench.links import leads_out, project_of
from gpubench.names import NAME
from gpubench.suite import tree
from gpubench.suite.checks import check_presets, check_suite
from gpubench.suite.folder import misnamed_files, suite_files
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
            if (child := node.find(step)) is None:
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


def load_suites(
    paths: Iterable[Path | str], preset: str | None = None, *, nested: bool = False
) -> tuple[LoadedSuite, ...]:
    """Load suite files and the ``*.yaml`` of folders, in the order given; ``nested``: those of the
    folders in these too, but for files there that another suite extends.

    A preset is applied where it exists; a suite without it carries a warning. Raises ``SuiteError``
    with all faults of all files, of two suites with one name, and of a preset that no file has.
    """
    files: dict[Path, None] = {}
    faults: list[Fault] = []
    named = tuple(map(Path, paths))
    for path in named:
        is_folder = os.path.isdir(path)  # noqa: PTH112 (raises of a name that is too long)
        inside = suite_files(path, nested=nested) if is_folder else [path]
        misnamed = misnamed_files(path, nested=nested) if is_folder else []
        for file in misnamed:
            message = f"suite files end in .yaml: rename it to {file.with_suffix('.yaml').name}"
            faults.append(Fault(str(file), 0, 0, message))
        if not inside and not misnamed:
            faults.append(Fault(str(path), 0, 0, "no suite here; suite files end in .yaml"))
        files |= dict.fromkeys(inside)
    loads = {file: _load_file(file, preset) for file in files}
    if nested:
        # What others extend need not be a whole suite, and lies in a folder of its own.
        bases = {_base(root) for _, root, _ in loads.values() if root}
        for file in {*files}.difference(named):
            if file.parent not in named and _real(file) in bases:
                del loads[file]
    read = tuple(loads.values())
    faults += [fault for _, _, of_file in read for fault in of_file]
    roots = {str(file): root for file, (_, root, _) in loads.items() if root}
    origins: dict[str, Origin] = {}
    for root in roots.values():
        name = root.find("suite")
        if name and isinstance(name.content, str):
            first = origins.setdefault(name.content, name.origin)
            if first is not name.origin:
                message = f"suite {name.content!r} is there twice; the other is {first}"
                faults.append(name.origin.fault(message))
    presets = sorted({key for root in roots.values() for key in root.fields("presets")})
    if preset is not None and preset not in presets and roots:
        hint = suggestion(preset, presets) or "; there are no presets"
        where = ", ".join([*roots][:3]) + (" ..." if len(roots) > 3 else "")
        faults.append(Fault(where, 0, 0, f"unknown preset {preset!r}{hint}"))
    if faults:
        raise SuiteError(faults)
    return tuple(loaded for loaded, _, _ in read if loaded)


def _load_file(
    path: Path, preset: str | None
) -> tuple[LoadedSuite | None, Node | None, tuple[Fault, ...]]:
    """The suite with its preset, the tree of the file, and the faults of all of its presets.

    The suite is ``None`` where nothing of it is left, the tree where the file cannot be read.
    """
    root, read_faults = _assembled(path, (path,))
    if root is None:
        return None, None, read_faults
    faults: list[Fault] = []
    name = root.find("suite")
    if name and name.content != path.stem and NAME.fullmatch(str(name.content)):
        message = (
            f"suite {name.content!r} in {path.name}; write suite: {path.stem}, or rename the file"
        )
        faults.append(name.origin.fault(message))
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
        faults += islice(check_presets(root), MAX_FAULTS + 1)
    warnings: tuple[Fault, ...] = ()
    if preset is not None and preset not in names:
        listed = ", ".join(names) or "none"
        message = f"preset {preset!r} is not in this suite, which stands as it is; it has: {listed}"
        warnings, preset = (Fault(str(path), 0, 0, message),), None
    loaded = None
    for preset_name in (None, *names):
        changed = root if preset_name is None else apply_preset(root, preset_name)
        validated = validate(changed)
        faults += [
            *_sources_outside(path, changed),
            *validated.faults,
            *islice(check_suite(validated, changed, preset_name), MAX_FAULTS + 1),
        ]
        if validated.suite and preset_name == preset:
            loaded = LoadedSuite(validated.suite, path, preset, warnings, changed)
    return loaded, root, _without_repeats(read_faults, faults)


def _assembled(path: Path, chain: tuple[Path, ...]) -> tuple[Node | None, tuple[Fault, ...]]:
    """Tree of a file laid over the files that it extends, and the faults of all of them."""
    project = project_of(chain[0])
    if leads_out(path, project):
        message = f"it is a link that leads out of {project}; copy the file there"
        return None, (Fault(str(path), 0, 0, message),)
    root, faults = read_suite_file(path)
    extends = root.find("extends") if root else None
    if root is None or extends is None or not isinstance(extends.content, str):
        return root, faults
    written = extends.content
    problem = None
    if not written.strip() or "\0" in written or Path(written).is_absolute():
        problem = f"extends {written!r}; allowed: a path relative to this file"
    elif _real(base_path := path.parent / written) in map(_real, chain):
        problem = f"extends {written!r}, which extends this file in turn; break the circle"
    elif leads_out(base_path, project):
        problem = f"extends {written!r}, which lies outside of {project}; {_INSIDE}"
    elif len(chain) == MAX_FILES:
        problem = f"more than {MAX_FILES} files extend one another; put some into one"
    elif not os.path.isfile(base_path):  # noqa: PTH113 (as above)
        problem = f"extends {written!r}, but there is no file {base_path}"
    if problem:
        return root, (*faults, extends.origin.fault(problem))
    base, base_faults = _assembled(base_path, (*chain, base_path))
    return (extend(base, root) if base else root), (*faults, *base_faults)


_INSIDE = "copy the file there, or work in the folder that holds both"


def _sources_outside(path: Path, root: Node) -> Iterator[Fault]:
    """Files of code that lie outside of the project: their text is shown beside results."""
    for kernel in root.fields("kernels").values():
        for implementation in kernel.fields("implementations").values():
            source = implementation.find("source")
            if source is None or not isinstance(source.content, str):
                continue
            project = project_of(path)
            if leads_out(path.parent / source.content, project):
                yield source.origin.fault(
                    f"source {source.content!r} lies outside of {project}; {_INSIDE}"
                )


def _real(path: Path) -> str:
    """A path with its links followed; ``resolve`` refuses one that leads in a circle."""
    return os.path.realpath(path)


def _base(root: Node) -> str | None:
    """The file that a suite extends; ``None`` where it extends none."""
    extends = root.find("extends")
    if extends is None or not isinstance(extends.content, str):
        return None
    return _real(Path(extends.origin.path).parent / extends.content)


def _without_repeats(read: Sequence[Fault], later: Sequence[Fault]) -> tuple[Fault, ...]:
    """All faults, without those at a place where reading already met one."""
    places = {(fault.path, fault.line, fault.column) for fault in read}
    new = (fault for fault in later if (fault.path, fault.line, fault.column) not in places)
    faults = sorted({*read, *new})
    if len(faults) <= MAX_FAULTS:
        return tuple(faults)
    more = f"more than {MAX_FAULTS} faults; these are the first"
    return (*faults[:MAX_FAULTS], replace(faults[0], line=0, column=0, message=more))


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
