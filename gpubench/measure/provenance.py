"""Proves that asv measures the code of the commit under which the times are stored.

asv checks a commit out, builds and installs it by the commands of ``asv.conf.json``, and measures
whatever Python then imports. Where pip left an older package in place, or the working tree comes
first on the search path, that is other code. So the files that can be imported are compared with
the files of the commit in git, by content. Where they differ in an environment that asv made, no
time is taken. An existing Python has nothing installed: there the difference is recorded.
``docs/which-code.md`` tells users.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import Distribution, distributions
from pathlib import Path

from gpubench.errors import KernelError
from gpubench.git import ask_git, list_files, named_repository, outermost_top_level, top_level
from gpubench.measure.asv_settings import asv_settings
from gpubench.measure.caches import origin_of
from gpubench.measure.commit_files import CommitFiles
from gpubench.names import Value
from gpubench.record import UNCOMMITTED
from gpubench.suite.loading import LoadedSuite
from gpubench.suite.model import Kernel

NATIVE = frozenset({".c", ".cc", ".cpp", ".cxx", ".cu", ".pyx", ".pxd", ".f", ".f90", ".rs", ".h"})
"""Suffixes of sources that extension modules are compiled from."""

INSTALL = (
    'let install_command of asv.conf.json install what was built of the commit: "in-dir={env_dir} '
    'python -m pip install --no-deps --force-reinstall {wheel_file}"'
)

UNCOMMITTED_YET = (
    "it is not committed yet; commit it, or measure the working tree with `gpubench time`"
)

MISFITS = (KeyError, ModuleNotFoundError, NameError, TypeError)
"""Causes of errors where a suite and the code that it names do not fit together."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Which code is measured, as far as somebody looked."""

    commit: str = ""
    """Forty digits; empty where no commit is known."""
    uncommitted: tuple[str, ...] | None = None
    """Paths in the repository of code and suites that are not as they were committed; ``None``
    where nobody looked."""
    refusal: str | None = None
    """Why nothing is measured, with what to change."""
    newer_suites: frozenset[str] = frozenset()
    """Names of suites that are not those of the commit."""
    is_newest: bool = False
    """Whether the commit is the one that the working tree of the suites stands on."""

    def facts(self) -> dict[str, Value | None]:
        """Return what goes on record of it."""
        if self.uncommitted is None:
            return {}
        return {UNCOMMITTED: ", ".join(self.uncommitted) or None}

    def explain_misfit(
        self, suite: str, error: Exception, missing: KernelError | None
    ) -> str | None:
        """Return why code does not fit a suite that is not the commit's, in one line; ``None``
        where the suite is, or where the code itself fails.

        ``missing``: what of the code is not there, by its source. Else the ``error`` tells of a
        function that takes other arguments, or looks for an axis which has another name now.
        """
        error = missing or error
        reason = error.__cause__ if isinstance(error, KernelError) else error
        fits = missing is None and not isinstance(reason, MISFITS)
        if suite not in self.newer_suites or fits:
            return None
        name = _missing_name(reason)
        what = f"`{name}` is not known" if name else f"{error}: this does not fit"
        why = UNCOMMITTED_YET if self.is_newest else "the suite is newer"
        if name and not self.is_newest:
            why += f"; if `{name}` had another name then, `was:` joins that one's results"
        return f"{what} at {self.commit[:8]}: {why}"


NOBODY_LOOKED = Provenance()


def find_provenance(suites: Sequence[LoadedSuite]) -> Provenance:
    """Compare the code that these suites measure, and the suites, with the commit that asv keeps
    the times under. Imports nothing of it."""
    settings = asv_settings()
    commit = settings.commit or os.environ.get("ASV_COMMIT")
    environment = os.environ.get("ASV_ENV_DIR")
    if commit is None:
        return NOBODY_LOOKED
    checkout = Path(environment, "project") if environment else None
    origin = Path(settings.repository) if settings.repository else None
    folder = checkout or origin
    found = Provenance(commit, *_compare_suites(suites, commit))
    repository = CommitFiles(named_repository(folder), commit) if folder else None
    if repository is None or not repository.blobs:  # of another system, or not in git any more
        return found
    faults = [*Code(repository, _top_names(suites), checkout, origin).find_faults()]
    if checkout is not None and faults:
        return replace(found, refusal=_refuse(faults, checkout, commit))
    paths = dict.fromkeys((*(fault.path for fault in faults), *(found.uncommitted or ())))
    return replace(found, uncommitted=tuple(paths))


def _compare_suites(
    suites: Sequence[LoadedSuite], commit: str
) -> tuple[tuple[str, ...] | None, None, frozenset[str], bool]:
    """Return, as fields of ``Provenance``, the paths of suites that were never committed as they
    are, the names of those that are not as the commit has them, and whether it is the newest."""
    uncommitted: list[str] = []
    newer: list[str] = []
    is_newest = False
    repositories: dict[Path, tuple[CommitFiles, CommitFiles]] = {}
    for loaded in suites:
        path = Path(os.path.realpath(loaded.path))
        root = outermost_top_level(path.parent)
        if root is None:
            continue
        if root not in repositories:
            repositories[root] = CommitFiles(root, commit), CommitFiles(root, "HEAD")
            is_newest |= ask_git(root, "rev-parse", "HEAD").decode().strip() == commit
        then, now = repositories[root]
        name = path.relative_to(root).as_posix()
        content = path.read_bytes()
        if not then.has(name, content):
            newer.append(loaded.suite.suite)
            if not now.has(name, content):
                uncommitted.append(name)
        if "ASV_ENV_DIR" not in os.environ:  # else programs are those of the commit
            uncommitted += _changed_programs(loaded, root, then)
    looked = tuple(uncommitted) if repositories else None
    return looked, None, frozenset(newer), is_newest


def _changed_programs(loaded: LoadedSuite, root: Path, then: CommitFiles) -> Iterator[str]:
    """Yield the paths of programs that a suite names as ``source``, as far as they are not those of
    the commit."""
    implementations = (
        one for kernel in loaded.suite.kernels.values() for one in kernel.implementations.values()
    )
    for source in dict.fromkeys(one.source for one in implementations if one.source):
        path = Path(os.path.realpath(loaded.path.parent / source))
        if path.is_file() and path.is_relative_to(root):
            name = path.relative_to(root).as_posix()
            if not then.has(name, path.read_bytes()):
                yield name


@dataclass(frozen=True, slots=True)
class CodeFault:
    """A file that Python would import and that is not the commit's."""

    path: str
    """In the repository, else as it is imported."""
    imported: Path
    distribution: Distribution | None
    """What installed it, where it is installed."""


@dataclass(frozen=True)
class Code:
    """The files of a project that can be imported."""

    repository: CommitFiles
    names: frozenset[str]
    """Top-level modules that suites name."""
    checkout: Path | None
    """Where asv checked the commit out; ``None`` where it did not."""
    origin: Path | None
    """Where the user works, or what asv mirrors from elsewhere."""

    def find_faults(self) -> Iterator[CodeFault]:
        """Yield the files that differ from the commit's, and extension modules that were not
        compiled since it was checked out."""
        unplaced: dict[Path, tuple[str, ...]] = {}
        for name, distribution in self._modules().items():
            files = [ImportableFile(top, path, self) for top, path in _importable_files(name)]
            if not any(file.places for file in files) and (
                name not in self.names or (distribution and not origin_of(distribution))
            ):
                continue  # a package of others
            extensions = [file for file in files if file.is_extension]
            for file in files:
                if file.is_extension:
                    continue
                if file.places:
                    if (fault := file.fault) is not None:
                        yield CodeFault(fault, file.path, distribution)
                elif file.path.suffix == ".py" and not self.repository.digests & {*file.digests}:
                    unplaced[file.path] = file.digests
            if extensions and self._are_stale(extensions, distribution):
                newest = max(extensions, key=lambda file: _mtime(file.path)).path
                yield CodeFault(newest.name, newest, distribution)
        known = self.repository.known(one for digests in unplaced.values() for one in digests)
        for path, digests in unplaced.items():  # of another commit, which has moved or removed it
            if known.intersection(digests):
                yield CodeFault(path.name, path, None)

    def _modules(self) -> dict[str, Distribution | None]:
        """Return the top-level modules of the project by their distribution: modules that suites
        name, and modules of distributions that come from a folder of this machine."""
        modules: dict[str, Distribution | None] = dict.fromkeys(sorted(self.names))
        for distribution in distributions():
            names = _tops(distribution)
            if origin_of(distribution) is None:
                names &= self.names
            modules |= dict.fromkeys(names, distribution)
        return modules

    @cached_property
    def trees(self) -> Mapping[Path, frozenset[str]]:
        """Working trees that code may be imported from, each with the paths of files that belong to
        it: all but ignored ones, and in asv's checkout but those that building has made. Submodules
        and other repositories inside are parts of it."""
        trees: dict[Path, frozenset[str]] = {}
        if self.checkout is not None:
            checkout, modules = Path(os.path.realpath(self.checkout)), self.repository.modules
            empty = [path for path, module in modules.items() if not module.blobs]
            unknown = {f"{path}/{name}" for path in empty for name in list_files(checkout / path)}
            trees[checkout] = frozenset({*self.repository.blobs, *unknown})
        if self.origin and (top := top_level(self.origin)):
            trees.setdefault(top, frozenset(list_files(top)))
        return trees

    @cached_property
    def environment(self) -> Path | None:
        """asv's folder with Python and the checkout; ``None`` where it made none."""
        return self.checkout and Path(os.path.realpath(self.checkout.parent))

    def _are_stale(
        self, extensions: Sequence[ImportableFile], distribution: Distribution | None
    ) -> bool:
        """Return whether extension modules were compiled from sources of another commit.

        Git mostly does not have them. Those in a working tree have to be newer than all sources
        there; installed ones have to come from this commit's wheel, or to be newer than the
        checkout.
        """
        if all(file.places for file in extensions):
            return any(file.fault is not None for file in extensions)
        newest = max(_mtime(file.path) for file in extensions)
        for tree in self.trees:
            if all(file.real.is_relative_to(tree) and not file.is_installed for file in extensions):
                sources = (tree / path for path in self.repository.blobs if _is_native(path))
                return any(_mtime(source) > newest for source in sources)
        if self.checkout is None:  # a Python that exists: nothing tells
            return False
        origin = distribution and origin_of(distribution)
        if origin and self.repository.commit in origin[0].parts:
            return False
        return newest < _mtime(self.checkout / ".git" / "HEAD")


@dataclass(frozen=True)
class ImportableFile:
    """A file that can be imported, and its places in the repository."""

    top: Path
    """Folder of the search path."""
    path: Path
    code: Code

    @property
    def is_extension(self) -> bool:
        return self.path.name.endswith(tuple(EXTENSION_SUFFIXES))

    @cached_property
    def real(self) -> Path:
        return Path(os.path.realpath(self.path))

    @property
    def is_installed(self) -> bool:
        """Whether it lies where pip installs."""
        return any(
            parent.name in ("site-packages", "dist-packages") for parent in self.real.parents
        )

    @cached_property
    def content(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError:
            return b""

    @cached_property
    def digests(self) -> tuple[str, ...]:
        return self.code.repository.digests_of(self.content)

    @cached_property
    def places(self) -> tuple[str, ...]:
        """Paths in the repository that it may be of: where it lies in a working tree, else those
        that end like its name on the search path; none for a file that is made elsewhere."""
        for tree, files in self.code.trees.items():
            if self.real.is_relative_to(tree) and not self.is_installed:
                path = self.real.relative_to(tree).as_posix()
                return (path,) if path in files else ()
        return tuple(self.code.repository.ending_with(self.path.relative_to(self.top).as_posix()))

    @property
    def fault(self) -> str | None:
        """Its path in the repository, where its content is not that of the commit there."""
        repository, first = self.code.repository, self.places[0]
        if any(repository.blobs.get(place) in self.digests for place in self.places):
            return None
        environment = self.code.environment
        if environment is None or not self.real.is_relative_to(environment):
            return first
        # Made by the build from the commit's, as far as git does not know it of another commit.
        if self.path.suffix != ".py":
            return first if repository.known(self.digests) else None
        committed = repository.content(first) if first in repository.blobs else b""
        return None if differs_in_version_alone(first, committed, self.content) else first


def _missing_name(cause: BaseException | None) -> str | None:
    """Return what code does not know of its suite, or a suite of its code, as Python says it."""
    match cause:
        case KeyError(args=[str(name)]):
            return name
        case TypeError():
            found = re.search(r"unexpected keyword argument '(\w+)'", str(cause))
            return found and found[1]
        case NameError() | ModuleNotFoundError():
            return cause.name
    return None


def _is_native(path: str) -> bool:
    return Path(path).suffix in NATIVE


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def differs_in_version_alone(path: str, committed: bytes, content: bytes) -> bool:
    """Return whether a build wrote a version into a file: versioneer replaces ``_version.py``,
    others a line of ``__init__.py``."""
    if "version" in path.rpartition("/")[2].lower():
        return True
    before, after = committed.splitlines(), content.splitlines()
    changed = [line[2:] for line in difflib.ndiff(_texts(before), _texts(after)) if line[0] in "-+"]
    return all("version" in line.lower() for line in changed if line.strip())


def _texts(lines: Iterable[bytes]) -> list[str]:
    return [line.decode(errors="replace").rstrip() for line in lines]


def _top_names(suites: Sequence[LoadedSuite]) -> frozenset[str]:
    """Return the top-level modules of all functions that these suites name."""
    references: list[str | None] = []
    for loaded in suites:
        for kernel in loaded.suite.kernels.values():
            references += _references(kernel)
    return frozenset(one.partition(":")[0].partition(".")[0] for one in references if one)


def _references(kernel: Kernel) -> Iterator[str | None]:
    for one in kernel.implementations.values():
        yield from (one.function, one.factory, one.launcher)
    yield from kernel.drawing_functions().values()
    yield from (kernel.check.function, kernel.check.score)


def _tops(distribution: Distribution) -> set[str]:
    """Return the names of a distribution's top-level modules."""
    if text := distribution.read_text("top_level.txt"):
        return set(text.split())
    names = set()
    for line in (distribution.read_text("RECORD") or "").splitlines():
        first, slash, _ = line.partition(",")[0].partition("/")
        if slash and first.isidentifier():
            names.add(first)
        elif not slash and first.endswith((".py", *EXTENSION_SUFFIXES)):
            names.add(first.partition(".")[0])
    return names


def _importable_files(name: str) -> Iterator[tuple[Path, Path]]:
    """Yield the files of a top-level module, each with the folder that it is imported from: of a
    package all, of a single module the modules beside it too, where these are not installed."""
    spec = None
    with suppress(ImportError, ValueError):  # a module whose own finder fails
        spec = importlib.util.find_spec(name)
    if spec is None:
        return
    for location in spec.submodule_search_locations or ():
        for parent, folders, files in os.walk(location):
            folders[:] = [one for one in folders if one != "__pycache__" and one[0] != "."]
            for file in files:
                if not file.endswith((".pyc", ".pyo", ".nbi", ".nbc")):
                    yield Path(location).parent, Path(parent, file)
    if spec.submodule_search_locations is None and spec.origin and spec.has_location:
        module = Path(spec.origin)
        beside = () if any(module.parent.glob("*.dist-info")) else module.parent.glob("*.py")
        for path in {module, *beside}:
            yield module.parent, path


def _refuse(faults: Sequence[CodeFault], checkout: Path, commit: str) -> str:
    """Return why nothing is measured, and what to change in ``asv.conf.json``."""
    first = faults[0]
    more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
    what = f"{first.path!r}{more}, imported from {first.imported.parent}, is not that of the commit"
    environment = Path(os.path.realpath(checkout.parent))
    if not Path(os.path.realpath(first.imported)).is_relative_to(environment):
        why = "it lies outside of asv's environment, in the working tree for instance"
    else:
        origin = first.distribution and origin_of(first.distribution)
        why = "the package that was installed before is still there"
        if origin and origin[0].parent.parent.name == "asv-build-cache":
            why = f"pip kept the package of {origin[0].parent.name[:8]}"
    return f"{what} {commit[:8]}: {why}; {INSTALL}"
