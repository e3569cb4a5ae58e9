"""Whether a report on disk is of everything as it is now, known without reading results.

A report leaves a receipt beside the table: a digest of all that its pages are made from, and of the
pages. Files count by the sizes and moments of their entries, short settings by what they hold, git
by its references. Nothing is imported here that reads results: that alone takes a second.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from gpubench.asv_config import AsvConfig, find_config
from gpubench.distribution import VERSION
from gpubench.files import TOUCHED_SECONDS, TooLarge, read_regular, replace_file
from gpubench.git import BareRepository, Repository, ask_git
from gpubench.suite.folder import MAX_SUITE_BYTES, suite_paths
from gpubench.table_file import table_path

SETTINGS = "gpubench*.yaml"
"""Files of a project beside ``asv.conf.json``: machines that are one, acknowledged changes."""

GIT_FILES = ("HEAD", "FETCH_HEAD", "shallow", "objects/pack")
"""Of a repository: they change with what is checked out, with commits that are fetched without a
reference, and with those that a shallow clone gets."""


@dataclass(frozen=True, slots=True)
class ReportSources:
    """What decides a report's pages."""

    results: Path
    suites: Path
    output: Path
    overrides: Path | None
    """Folder of the project's own templates; ``None`` where these are left out."""
    options: tuple[object, ...]
    """All other options that decide what pages show, each with a ``repr``."""


class SourcesDigest:
    """Digest of entries of files and of texts, with the newest moment of a change among them."""

    def __init__(self) -> None:
        self._value = hashlib.blake2b(digest_size=16)
        self.newest = 0.0
        """Seconds since 1970."""

    def add_text(self, *texts: object) -> None:
        """Add values that have a ``repr``."""
        self._value.update(f"{texts!r}\n".encode())

    def add_entry(self, path: str | Path, status: os.stat_result | None) -> None:
        """Add what the system says of a file."""
        if status is None:
            self.add_text(str(path), None)
            return
        moments = status.st_mtime_ns, status.st_ctime_ns
        self.add_text(str(path), status.st_size, moments, status.st_ino, status.st_mode)
        self.newest = max(self.newest, status.st_mtime, status.st_ctime)

    def add_file(self, path: str | Path) -> None:
        """Add what the system says of a file and, where it is a link, of what that leads to."""
        status = _status(path, follow=False)
        self.add_entry(path, status)
        if status is not None and stat.S_ISLNK(status.st_mode):
            self.add_text(os.path.realpath(path))
            self.add_entry(path, _status(path, follow=True))

    def __str__(self) -> str:
        return self._value.hexdigest()


class Receipt:
    """What the last report into a folder was made from."""

    def __init__(self, sources: ReportSources) -> None:
        """Look at everything: a change while the report is made makes the receipt invalid."""
        place = hashlib.blake2b(os.fsencode(os.path.realpath(sources.output)), digest_size=8)
        kept = table_path(sources.results)
        self._output = sources.output
        self._path = kept.with_name(f"{kept.stem}-{place.hexdigest()}.report")
        self.result_bytes = 0
        """Bytes of all files with results."""
        self._before = self._digest(sources)

    def _digest(self, sources: ReportSources) -> str | None:
        """Return a digest of what the report is made from; ``None`` where it cannot be told."""
        digest = SourcesDigest()
        config = find_config(sources.results)
        settings = _contents(chain(config.folder.glob(SETTINGS), _suites(sources.suites)))
        if settings is None or not sources.results.is_dir():
            return None
        digest.add_text(Path.cwd(), sources, config, *settings)
        digest.add_text(*_surroundings())
        for entry in _results(sources.results):
            digest.add_file(entry.path)
            with suppress(OSError):
                self.result_bytes += entry.stat().st_size
        for path in template_files(sources.overrides, sources.output):
            digest.add_file(path)
        for repository in _repositories(config):
            _add_git(digest, repository)
        # A change from now on has a later moment than the newest one, unless that is just now.
        return str(digest) if digest.newest < time.time() - TOUCHED_SECONDS else None

    def is_valid(self) -> bool:
        """Return whether a report of all this is there, untouched since it was written."""
        if self._before is None or self._path.is_symlink():
            return False
        try:
            return read_regular(self._path, 2**10).decode() == self._text()
        except (OSError, TooLarge, ValueError):
            return False

    def keep(self) -> None:
        """Write down that the report is of all this; where that is impossible, the next report is
        made like the first."""
        if self._before is not None and not self._path.parent.is_symlink():
            with suppress(OSError):
                replace_file(self._path, self._text().encode())

    def _text(self) -> str:
        digest = SourcesDigest()
        folders: list[str | Path] = [self._output, *_folders(self._output)]
        for folder in folders:
            for entry in _entries(folder):
                if not entry.is_dir(follow_symlinks=False):
                    digest.add_file(entry.path)
        return f"{self._before} {digest}"


def _surroundings() -> Iterator[object]:
    """Yield what a report depends on beside files of the project."""
    yield code_stamp()
    yield sys.version
    purelib = _status(sysconfig.get_path("purelib"), follow=True)
    yield purelib and (sys.prefix, purelib.st_mtime_ns)  # what is installed beside gpubench
    for name, value in sorted(os.environ.items()):
        if name.startswith(("GIT_", "GPUBENCH_")):
            yield name, value


def _contents(paths: Iterable[Path]) -> list[tuple[str, bytes]] | None:
    """Return short files; ``None`` where one cannot be read, or names another one."""
    try:
        contents = [(str(path), read_regular(path, MAX_SUITE_BYTES)) for path in sorted(paths)]
    except (OSError, TooLarge):
        return None
    if any(re.search(rb"\bextends\b", content) for _, content in contents):
        return None
    return contents


def _suites(suites: Path) -> list[Path]:
    if suites.is_dir():
        return suite_paths(suites, nested=True)
    return [suites] if suites.exists() else []


def _results(results: Path) -> Iterator[os.DirEntry[str]]:
    """Yield everything in a results directory and in its folders."""
    for entry in _entries(results):
        yield entry
        if entry.is_dir():
            yield from _entries(entry.path)


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return []


def _folders(folder: Path) -> list[str]:
    return [entry.path for entry in _entries(folder) if entry.is_dir(follow_symlinks=False)]


def _repositories(config: AsvConfig) -> list[Repository]:
    here = os.path.realpath(os.curdir)
    if isinstance(config.repository, Path) and os.path.realpath(config.repository) == here:
        return [config.repository]
    return [config.repository, Path()]


def _add_git(digest: SourcesDigest, repository: Repository) -> None:
    """Add the references of a repository, and which commits it has beside those."""
    base = Path() if isinstance(repository, BareRepository) else repository
    digest.add_text(repository, ask_git(repository, "show-ref", "--head"))
    asked = chain.from_iterable(("--git-path", name) for name in GIT_FILES)
    printed = os.fsdecode(ask_git(repository, "rev-parse", *asked))
    for path in printed.splitlines():
        # Only that it changed counts: a commit does not make a report wait for its next one.
        status = _status(base / path, follow=True)
        digest.add_text(path, status and (status.st_mtime_ns, status.st_ctime_ns, status.st_size))


def _status(path: str | Path, *, follow: bool) -> os.stat_result | None:
    try:
        return Path(path).stat(follow_symlinks=follow)
    except (OSError, ValueError):
        return None


def packaged_templates() -> Path:
    """Folder of the shipped templates: inside the package, or ``reports/`` in a checkout."""
    installed = Path(__file__).parent / "templates"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "reports"


def template_files(overrides: Path | None, output: Path) -> list[Path]:
    """Return the shipped templates, and all files in a folder of a project, but for what a report
    wrote there."""
    files = [path for path in sorted(packaged_templates().glob("*.*")) if path.is_file()]
    pages = os.path.realpath(output)
    for folder, inside, names in os.walk(overrides or os.devnull):
        inside[:] = sorted(name for name in inside if os.path.realpath(Path(folder, name)) != pages)
        files += (Path(folder, name) for name in sorted(names))
    return files


def code_stamp() -> str:
    """Return a text that changes with the release of gpubench, and where its code is worked on,
    with that."""
    return f"{VERSION} {_stamp_of_modules()}"


@cache
def _stamp_of_modules() -> str:
    """Return the stamp of gpubench's modules: once in a process, which goes on with those that it
    has."""
    folders = os.walk(Path(__file__).parents[1])
    return stamp_of(
        Path(folder, name)
        for folder, _, names in folders
        for name in names
        if name.endswith((".py", ".html", ".js"))
    )


def stamp_of(paths: Iterable[Path]) -> str:
    """Return a text that changes with any of these files: their names, sizes and moments of
    change."""
    digest = SourcesDigest()
    for path in sorted(paths):
        digest.add_file(path)
    return str(digest)
