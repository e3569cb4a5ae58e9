"""Keeps compiled code in folders that belong to the sources it was compiled from.

Caches of compilers mostly look at the file of a kernel alone: Numba's ``cache=True`` does not see
that a function of another module, which was compiled into the kernel, has changed. So whatever
compiles for a measurement looks into a folder whose name is a digest of all that takes part: the
files of the project, the versions of the installed distributions, Python, and Numba's settings.
Another commit, or an edit, has another folder.

Under asv these folders lie in the environment, else in the user's cache. ``docs/which-code.md``
tells users.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import astuple, dataclass
from importlib.metadata import Distribution, distributions
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

from gpubench.backends import registry
from gpubench.backends.protocol import Backend
from gpubench.environment import environment
from gpubench.files import TOUCHED_SECONDS, replace_file
from gpubench.git import ask_git, is_environment, list_files
from gpubench.measure.asv_settings import asv_settings
from gpubench.temporary import temporary_folder

PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "asv.conf.json", ".git")
"""Files that tell a project's folder."""

OUTSIDE_CODE = {
    *(".css", ".html", ".ipynb", ".js", ".md", ".rst"),
    *(".jpg", ".pdf", ".png", ".svg"),
    *(".nbc", ".nbi", ".pyc", ".pyo"),
}
"""Suffixes of files that no compiled code comes from."""

WITHOUT_SOURCES = {
    *(".git", "__pycache__", "node_modules", ".hypothesis"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox"),
}
"""Names of folders that other programs fill, and that no code is imported from."""

MAX_PROJECT_FILES = 50_000
"""Of a project. What has more, a home folder for instance, is not looked through: it gets a new
folder each time."""

MAX_READ_BYTES = 2**23
"""Of a file that is read whole; a larger one, data mostly, is known by its size and moment."""

MAX_FOLDERS = 8
"""Folders that stay: commits that asv interleaves, edits that somebody goes back and forth
between."""

UNUSED_SECONDS = 3600.0
"""A folder that was used since is not removed: another process may compile into it."""


@dataclass(frozen=True, slots=True)
class CacheFacts:
    """What the folders of compiled code follow from."""

    digest: str | None
    """Of everything that code is compiled from; ``None`` where a project has more files than are
    looked through."""
    variables: tuple[str, ...]
    """Environment variables of all backends that name caches."""
    movers: tuple[str, ...]
    """Backends whose functions may exist already (``Backend.move_caches``)."""
    code_settings: tuple[str, ...]
    """Patterns of environment variables that change code, of all backends."""


@contextmanager
def caches_of_sources() -> Iterator[None]:
    """Have the processes that are started inside the block compile into folders of the sources."""
    with ExitStack() as stack:
        stack.enter_context(environment(cache_variables(stack)))
        yield


def keep_caches_apart() -> None:
    """Have this process, and those that it starts, compile into folders of the sources.

    Functions that were made before move there too: asv imports the modules of ``benchmarks/`` one
    after another, and others than ours may have imported kernels.
    """
    stack, base = ExitStack(), _base()
    facts = remembered_facts(base)
    os.environ.update(_make_folders(facts, base, stack))
    atexit.register(stack.close)
    for name in facts.movers:
        registry.get(name).move_caches()


def cache_variables(stack: ExitStack) -> dict[str, str]:
    """Return the environment variables of all backends that name caches of compiled code, each with
    its folder. A folder that the user names keeps ours inside it.

    Where there is no digest, or nothing can be written, the folders are new ones, which ``stack``
    removes. A compiler that cannot write where it is told to would look elsewhere.
    """
    base = _base()
    return _make_folders(remembered_facts(base), base, stack)


def _make_folders(facts: CacheFacts, base: Path, stack: ExitStack) -> dict[str, str]:
    """Return the folder of each variable, as ``cache_variables`` says."""
    folders: dict[str, str] = {}
    for name in facts.variables:
        given = os.environ.get(name)
        inside = Path(given, "gpubench") if given else base
        folder = facts.digest and _make_folder(inside, facts.digest, name)
        folders[name] = str(folder or stack.enter_context(temporary_folder("compiled")))
    return folders


def _base() -> Path:
    """Return where folders lie: in asv's environment where it made one, else in the user's
    cache."""
    if of_asv := os.environ.get("ASV_ENV_DIR"):
        return Path(of_asv, "gpubench-compiled")
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches, "gpubench", "compiled")


def _make_folder(inside: Path, digest: str, name: str) -> Path | None:
    """Return the folder of a digest for one variable; ``None`` where nothing can be written."""
    folder = inside / digest / name.lower().removesuffix("_dir")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder.parent)
    except OSError:
        return None
    _remove_unused(inside)
    return folder if os.access(folder, os.W_OK) else None


def _remove_unused(inside: Path) -> None:
    """Remove the folders that were used longest ago, but for the newest ones."""
    moments: dict[Path, float] = {}
    for folder in inside.iterdir():
        with suppress(OSError):  # another process removes it
            moments[folder] = folder.stat().st_mtime
    for folder in sorted(moments, key=moments.__getitem__)[:-MAX_FOLDERS]:
        if moments[folder] < time.time() - UNUSED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def remembered_facts(base: Path) -> CacheFacts:
    """Return the facts of now, from a file beside the folder ``base`` of compiled code where
    no source was touched since another process wrote it: then only sizes and moments are read.

    Under asv's ``spawn`` each case has a process, which would read all sources and import all
    backends.
    """
    folders, installed = _sources()
    memory = base.with_name(f"{base.name}-digests")
    stamp = _stamp(folders, installed, {str(base), str(memory)})
    place = hashlib.blake2b(repr((sys.prefix, folders)).encode(), digest_size=12).hexdigest()
    path = memory / place
    if stamp is not None:
        with suppress(OSError, ValueError, TypeError, re.error):  # damaged
            known, digest, *names = json.loads(path.read_text("ascii"))
            facts = CacheFacts(digest, *map(tuple, names))
            if known == _with_settings(stamp, facts.code_settings):
                return facts
    facts = _find_facts(folders, installed)
    if stamp is not None and facts.digest is not None:
        with suppress(OSError):
            memory.mkdir(parents=True, exist_ok=True)
            kept = _with_settings(stamp, facts.code_settings), *astuple(facts)
            replace_file(path, json.dumps(kept).encode())
    return facts


def _find_facts(folders: Iterable[Path], installed: str) -> CacheFacts:
    """Return the facts by asking all backends."""
    backends = list(registry.usable())
    settings = tuple(filter(None, (one.code_settings for one in backends)))
    return CacheFacts(
        _digest(folders, _with_settings(installed, settings)),
        tuple(dict.fromkeys(name for one in backends for name in one.caches)),
        tuple(one.name for one in backends if type(one).move_caches is not Backend.move_caches),
        settings,
    )


def _with_settings(text: str, patterns: Iterable[str]) -> str:
    """Return the text with the environment variables of these names and what they are set to."""
    names = re.compile("|".join(patterns) or r"(?!)")
    set_to = sorted(item for item in os.environ.items() if names.fullmatch(item[0]))
    return f"{text} {json.dumps(set_to)}"


def digest_of_sources() -> str | None:
    """Return a digest of everything that compiled code is made from; ``None`` where a project has
    more files than are looked through."""
    return _find_facts(*_sources()).digest


def _sources() -> tuple[list[Path], str]:
    """Return the folders whose files compiled code is made from, and what else it is made from but
    for settings: Python, installed distributions."""
    folders, installed = set[Path](), list[str]()
    for distribution in distributions():
        name, folder, content = _identify(distribution)
        installed.append(f"{name} {content}")
        folders |= {folder} if folder else set()
    folders |= {project_folder(entry) for entry in own_entries()}
    return sorted(folders), json.dumps([sys.version, sorted(installed)])


def _stamp(folders: Iterable[Path], installed: str, left_out: set[str]) -> str | None:
    """Return a digest of the sizes and moments of all files in these folders; ``None`` where there
    are too many, or where one was touched just now and might be again in the same moment."""
    value = hashlib.blake2b(installed.encode(), digest_size=12)
    most_recent, count = 0.0, 0
    for folder in folders:
        for path, status in _files_with_status(folder, left_out):
            # The moment of a file's last change is for anybody to set, that of its entry is not.
            fields = status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
            value.update(f"{path}\0{fields}\0".encode(errors="surrogateescape"))
            most_recent, count = max(most_recent, status.st_mtime), count + 1
            if count > MAX_PROJECT_FILES:
                return None
    return value.hexdigest() if most_recent < time.time() - TOUCHED_SECONDS else None


def _files_with_status(folder: Path, left_out: set[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files that ``files_of_project`` may yield, and git's list of tracked ones, with
    their sizes and moments, in the order of their names; none in folders that are left out."""
    left_out = {*left_out, asv_settings().results_dir or os.devnull}
    with suppress(OSError):
        yield str(folder), (folder / ".git" / "index").stat()
    folders = [str(folder)]
    while folders:
        try:
            entries = sorted(os.scandir(folders.pop()), key=lambda entry: entry.name)
        except OSError:
            continue
        if any(entry.name in ("pyvenv.cfg", "conda-meta") for entry in entries):
            continue
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                with suppress(OSError):  # a link that leads nowhere
                    yield entry.path, entry.stat()
            elif entry.name not in WITHOUT_SOURCES and entry.path not in left_out:
                folders.append(entry.path)


def _digest(folders: Iterable[Path], installed: str) -> str | None:
    value = hashlib.blake2b(installed.encode(), digest_size=12)
    for folder in folders:
        value.update(f"{folder}\0".encode(errors="surrogateescape"))
        files = list(islice(files_of_project(folder), MAX_PROJECT_FILES + 1))
        if len(files) > MAX_PROJECT_FILES:
            return None
        for path in sorted(files):
            value.update(f"{path.relative_to(folder)}\0".encode(errors="surrogateescape"))
            value.update(_content(path))
    return value.hexdigest()


def _identify(distribution: Distribution) -> tuple[str, Path | None, str]:
    """Return name and version of a distribution, and for one from a local folder that folder where
    it is editable, else the digests of its files: its version may stay as it is."""
    path = getattr(distribution, "_path", None)  # its name has both; reading them takes far longer
    name = Path(path).name if path else f"{distribution.name}-{distribution.version}"
    origin = origin_of(distribution)
    if origin is None:
        return name, None, ""
    if origin[1]:
        return name, origin[0], ""
    record = distribution.read_text("RECORD") or ""
    return name, None, hashlib.sha256(record.encode()).hexdigest()


def origin_of(distribution: Distribution) -> tuple[Path, bool] | None:
    """Return the folder or file of this machine that a distribution was installed from, and whether
    it is editable; ``None`` for one from elsewhere.

    https://packaging.python.org/en/latest/specifications/direct-url/
    """
    try:
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        url = urlsplit(origin.get("url", ""))
    except (ValueError, AttributeError):
        return None
    if url.scheme != "file":
        return None
    from urllib.request import url2pathname  # which brings http: only where it is needed

    path = Path(url2pathname(url.path))
    return path, bool(origin.get("dir_info", {}).get("editable"))


def own_entries() -> list[Path]:
    """Return the folders of ``sys.path`` that hold modules which are not installed."""
    standard = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    entries = []
    for entry in dict.fromkeys(Path(text or ".").resolve() for text in sys.path):
        is_standard = entry in standard or entry.parent in standard
        is_environment = (entry / "pyvenv.cfg").exists()  # asv's: where it starts processes
        if entry.is_dir() and not (is_standard or is_environment or any(entry.glob("*.dist-info"))):
            entries.append(entry)
    return entries


def project_folder(folder: Path) -> Path:
    """Return the nearest folder above, or the folder itself, that is a project's; without any, the
    folder."""
    for candidate in (folder, *folder.parents):
        if any((candidate / name).exists() for name in PROJECT_FILES):
            return candidate
    return folder


def files_of_project(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that compiled code may come from: files that git tracks or
    would track, and single ignored files; without git, all but hidden files. Suites are left out:
    a suite names code and holds none."""
    results = Path(asv_settings().results_dir or os.devnull)  # which each case adds to
    options = "ls-files", "-z", "--exclude-standard"
    tracked = [*list_files(folder)]
    ignored = ask_git(folder, *options, "--others", "--ignored", "--directory")
    if tracked:
        for name in {*tracked, *os.fsdecode(ignored).split("\0")} - {""}:
            path = folder / name
            if name.endswith("/") or _is_outside_code(path.relative_to(folder)):
                continue
            if results not in path.parents and not path.is_dir():  # as links to folders are
                yield path
        return
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not _is_left_out(Path(parent, name))]
        for file in files:
            path = Path(parent, file)
            if not _is_outside_code(path.relative_to(folder)):
                yield path


def _is_left_out(folder: Path) -> bool:
    hidden = folder.name.startswith(".") or folder.name in ("__pycache__", "node_modules")
    return hidden or is_environment(folder)


def _is_outside_code(path: Path) -> bool:
    is_suite = path.suffix in (".yaml", ".yml") and "suites" in path.parts
    return path.suffix in OUTSIDE_CODE or is_suite


def _content(path: Path) -> bytes:
    """Return a digest of a file; an unreadable file has a digest of its own."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_READ_BYTES:
            text = f"{status.st_size} {status.st_mtime_ns}"
            return hashlib.sha256(text.encode()).digest()
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return b"unreadable"
