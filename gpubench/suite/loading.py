"""Suite files to suites: reading, ``extends``, presets, and every fault in one go."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path

from gpubench.errors import Fault, SuiteError
from gpubench.links import leads_out, project_of
from gpubench.names import NAME_PATTERN
from gpubench.suite import tree
from gpubench.suite.checks import check_presets, check_suite
from gpubench.suite.folder import suite_paths
from gpubench.suite.model import Suite
from gpubench.suite.reader import MAX_FAULTS, read_suite_file
from gpubench.suite.tree import Node, Origin
from gpubench.suite.types import TARGET_FIELDS, suggestion
from gpubench.suite.validation import was_faults

MAX_EXTENDED_FILES = 16
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
        """Return a fault at a value, or at the name of one that has fields of its own."""
        node = self.root.find(*path)
        if node is not None and node.entries and node.key is not None:
            return node.key.fault(message)
        return self.origin(path).fault(message)


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
        inside = suite_paths(path, nested) if is_folder else [path]
        for file in inside:
            if is_folder and file.suffix != ".yaml":
                message = f"suite files end in .yaml: rename it to {file.with_suffix('.yaml').name}"
                faults.append(Fault(str(file), 0, 0, message))
            else:
                files[file] = None
        if not inside:
            faults.append(Fault(str(path), 0, 0, "no suite here; suite files end in .yaml"))
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
    whole = (root for root in roots.values() if "suite" in root.entries)
    faults += was_faults("suite", ((str(r.entries["suite"].content), r) for r in whole), origins)
    presets = sorted({key for root in roots.values() for key in root.fields("presets")})
    if preset is not None and preset not in presets and roots:
        hint = suggestion(preset, presets) or "; there are no presets"
        where = ", ".join([*roots][:3]) + (" ..." if len(roots) > 3 else "")
        faults.append(Fault(where, 0, 0, f"unknown preset {preset!r}{hint}"))
    if faults:
        raise SuiteError(faults)
    return tuple(loaded for loaded, _, _ in read if loaded)


def read_fields(path: Path, field: str) -> dict[str, Node]:
    """Return what a suite file has in a field by name, with what it extends: ``kernels``,
    ``presets``. Checks nothing; returns nothing for a file that cannot be read."""
    root, _ = _assembled(path, (path,))
    return root.fields(field) if root else {}


def _load_file(
    path: Path, preset: str | None
) -> tuple[LoadedSuite | None, Node | None, tuple[Fault, ...]]:
    """Return the suite with its preset, the tree of the file, and the faults of all of its presets.

    The suite is ``None`` where nothing of it is left, the tree where the file cannot be read.
    """
    root, read_faults = _assembled(path, (path,))
    if root is None:
        return None, None, read_faults
    faults: list[Fault] = []
    name = root.find("suite")
    if name and name.content != path.stem and NAME_PATTERN.fullmatch(str(name.content)):
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
    loaded, right = None, None
    for preset_name in (None, *names):
        changed = root if preset_name is None else apply_preset(root, preset_name)
        if preset_name not in (None, preset) and right:
            rest = {key: node for key, node in changed.entries.items() if key != "presets"}
            changed = replace(changed, content=rest)
        suite, of_suite = check_suite(changed, preset_name, right)
        faults += [*_sources_outside(path, changed), *of_suite]
        if preset_name is None and suite and not of_suite:
            right = root, suite  # what is right in it is right in each preset
        if suite and preset_name == preset:
            loaded = LoadedSuite(suite, path, preset, warnings, changed)
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
    elif len(chain) == MAX_EXTENDED_FILES:
        problem = f"more than {MAX_EXTENDED_FILES} files extend one another; put some into one"
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
    """Return a path with its links followed; ``resolve`` refuses one that leads in a circle."""
    return os.path.realpath(path)


def _base(root: Node) -> str | None:
    """Return the file that a suite extends; ``None`` where it extends none."""
    extends = root.find("extends")
    if extends is None or not isinstance(extends.content, str):
        return None
    return _real(Path(extends.origin.path).parent / extends.content)


def _without_repeats(read: Sequence[Fault], later: Sequence[Fault]) -> tuple[Fault, ...]:
    """Return all faults, without those at a place where reading already met one."""
    places = {(fault.path, fault.line, fault.column) for fault in read}
    new = (fault for fault in later if (fault.path, fault.line, fault.column) not in places)
    faults = sorted({*read, *new})
    if len(faults) <= MAX_FAULTS:
        return tuple(faults)
    more = f"more than {MAX_FAULTS} faults; these are the first"
    return (*faults[:MAX_FAULTS], replace(faults[0], line=0, column=0, message=more))


# --- one suite laid over another, on trees, so that places are kept


def extend(base: Node, over: Node, path: tree.Path = ()) -> Node:
    """``over`` on top of ``base``: maps merge, lists and single values replace.

    An axis replaces the values and keeps the base's ``default`` and ``was``; how an implementation
    is named (function, factory, launcher, source, parts) and how an array is filled is replaced as
    a whole.
    """
    if len(path) >= 2 and path[-2] in ("sizes", "parameters") and path[0] != path[-2]:
        return _replace_axis(base, over)
    if not (isinstance(base.content, dict) and isinstance(over.content, dict)):
        return over
    if path[-1:] == ("fill",):
        return over
    entries = dict(base.content)
    if not path:
        entries.pop("was", None)  # of the other suite
    if not over.content.keys().isdisjoint(TARGET_FIELDS):
        for field in (*TARGET_FIELDS, "with", "entry", "split"):
            entries.pop(field, None)
    for key, value in over.content.items():
        entries[key] = extend(entries[key], value, (*path, key)) if key in entries else value
    return replace(over, content=entries)


def _replace_axis(base: Node, over: Node) -> Node:
    """Return the axis ``over``, with the default and the old names of ``base`` unless it gives its
    own."""
    if members := over.entries.get("zip"):
        replaced = {
            name: _replace_axis(member, value) if (member := base.find("zip", name)) else value
            for name, value in members.entries.items()
        }
        return replace(over, content={**over.entries, "zip": replace(members, content=replaced)})
    kept: dict[str, Node] = {
        field: base.entries[field]
        for field in ("default", "was")
        if field in base.entries and field not in over.entries
    }
    if not kept:
        return over
    fields = over.entries or {"values": replace(over, key=over.origin)}
    return replace(over, content={**fields, **kept})


def apply_preset(suite: Node, name: str) -> Node:
    """Return the suite with a preset laid over every kernel that declares the changed fields."""
    preset = suite.find("presets", name)
    if preset is None or "kernels" not in suite.entries:
        return suite
    preset = _labelled(preset, name)
    kernels = {}
    for kernel_name, kernel in suite.fields("kernels").items():
        kernel = _apply(kernel, preset)
        overlay = preset.find("kernels", kernel_name)
        kernels[kernel_name] = _apply(kernel, overlay) if overlay else kernel
    return _with(suite, {"kernels": replace(suite.entries["kernels"], content=kernels)})


def _apply(kernel: Node, overlay: Node) -> Node:
    """Return a kernel with what a preset, or its part for this kernel, changes in it."""
    replaced = ("devices", "measure", "sampling")
    fields = {field: overlay.entries[field] for field in replaced if field in overlay.entries}
    if "sampling" in fields and (base := kernel.entries.get("sampling")):
        fields["sampling"] = _changed(base, fields["sampling"])
    for field in ("sizes", "parameters", "let", "arrays", "scalars"):
        if declared := kernel.entries.get(field):
            laid_over = _replace_axis if field in ("sizes", "parameters") else _changed
            old, new = declared.entries, overlay.fields(field)
            named = {name: laid_over(old[name], new[name]) for name in new if name in old}
            fields[field] = _with(declared, named)
    if implementations := kernel.entries.get("implementations"):
        changed, launch = {}, overlay.entries.get("launch")
        for name, implementation in implementations.entries.items():
            if launch and (base := implementation.entries.get("launch")):
                implementation = _with(implementation, {"launch": _changed(base, launch)})
            change = overlay.find("implementations", name)
            if change and change.entries:
                implementation = _changed(implementation, change)
            changed[name] = implementation
        fields["implementations"] = replace(implementations, content=changed)
    return _with(kernel, fields)


def _changed(base: Node, over: Node) -> Node:
    """Return ``base`` as a preset changes it; what the suite declares keeps the place of its
    name."""
    return replace(extend(base, over), key=base.key)


def _with(node: Node, fields: dict[str, Node]) -> Node:
    return replace(node, content=node.entries | fields)


def _labelled(node: Node, preset: str) -> Node:
    """Return the same values, their places marked as set by the preset."""
    content = node.content
    if isinstance(content, dict):
        content = {key: _labelled(value, preset) for key, value in content.items()}
    elif isinstance(content, tuple):
        content = tuple(_labelled(item, preset) for item in content)
    key = node.key and _set_by(node.key, preset)
    return Node(content, _set_by(node.origin, preset), key, node.text_column)


def _set_by(origin: Origin, preset: str) -> Origin:
    return Origin(origin.path, origin.line, origin.column, preset)


# --- what a report shows of it


def kernel_excerpt(loaded: LoadedSuite, kernel: str) -> tuple[str, str]:
    """Return the key of a kernel and everything indented below it, comments included: their place,
    as ``suites/norm.yaml:15``, and the lines, unindented; none where the file cannot be read any
    more.

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
    block = [head]
    for line in rest:
        text = line.lstrip()
        if text and _indent(line) <= margin and not text.startswith("#"):
            break
        block.append(line)
    # Comments that are indented no more, which may as well stand in the middle, and blank lines
    # belong to what follows if nothing of the kernel comes after.
    while len(block) > 1 and (not block[-1].strip() or _indent(block[-1]) <= margin):
        block.pop()
    return place, "\n".join(line[min(margin, _indent(line)) :] for line in block)


@lru_cache(maxsize=4)
def _lines(path: Path) -> tuple[str, ...]:
    """Lines of a file, read once for all of its kernels."""
    try:
        return tuple(path.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeError):
        return ()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
