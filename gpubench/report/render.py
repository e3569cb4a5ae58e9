"""View models and templates to files on disk. The only module of the report that writes any.

A history of thousands of commits makes hundreds of pages and thousands of scripts, of which a new
commit changes few. So a page and a script say within themselves what they were made from (``mark``,
a digest), and one that says just that is left alone.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import pickle
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import msgspec
from jinja2 import BaseLoader, Environment

from gpubench.analysis.headline import KernelKey
from gpubench.collecting import without_collecting
from gpubench.errors import GpubenchError
from gpubench.parallel import in_processes, processors
from gpubench.report import compare, data_scripts, exports, kernel, overview, series
from gpubench.report.freshness import code_stamp, packaged_templates, stamp_of, template_files
from gpubench.report.page import Page, ReportFile
from gpubench.report.pages import all_pages
from gpubench.report.site import Site
from gpubench.report.templates import fill_template, page_environment
from gpubench.results import History, Table
from gpubench.suite.naming import find_kernels
from gpubench.waiting import looked_at, progress_words

if sys.platform != "win32":
    import fcntl

ASSETS = (
    "gpubench.css",
    "text.js",
    "lists.js",
    "charts.js",
    "explore.js",
    "compare.js",
)
"""Files beside the pages, overridable like the templates."""

PLOTLY = "plotly.min.js"
"""The smallest bundle of plotly.js that draws our charts, which npm calls plotly.js-basic-dist-min.
The Python package brings the largest, four times as long, and 40 MB that nothing here imports."""

SOURCES = "gpubench-sources"
"""Stands before the mark, and tells files of an earlier report from others."""

MARK_WITHIN = 1024
"""Bytes at the beginning of a page or a script in which its mark stands."""

NEW_FOLDER_PREFIX = ".gpubench-new-"
"""Beginning of the name of the folder in which a report makes its files."""


PARALLEL_RENDER_TIMES = 2**18
"""Times, cases by commits, of setups with something to make from which several processes do that.
Pages of so many take a second or two, and a process is there after half a second."""

MAX_PAGE_PROCESSES = 2
"""That make pages, at most: each holds some 200 MB, and a report should take 600 MB in all."""


@without_collecting()
def write_report(table: Table, output_dir: Path, overrides: Path | None = None) -> Path:
    """Write all pages and what they need; returns the path of the first page.

    ``overrides`` is a folder whose templates and styles replace the packaged ones by name; they
    can extend those as ``packaged/overview.html``. Pages of an earlier report that are no longer
    part of it are removed. Raises ``GpubenchError`` for a template that fails, with all pages as
    they were, and for a folder that cannot be written.
    """
    if overrides and not any(map(Path.is_file, overrides.glob("*"))):
        overrides = None  # the folder of the pages is there alone, and a sandbox takes longer
    environment, site = page_environment(overrides), Site(table, all_pages())
    templates = template_files(overrides, output_dir)
    settings = table.selection, table.thresholds, sorted(table.rates)
    made_by = f"{code_stamp()}{stamp_of(templates)}{settings}"
    scripts = output_dir / data_scripts.SCRIPTS_FOLDER
    if scripts.is_symlink():
        raise GpubenchError(f"{scripts} is a symbolic link; remove it, it is of the report")
    addresses: set[str] = set()
    parts: list[Assignment] = []
    times = 0
    for place, history in enumerate(groups(site)):
        files = {file.address: _mark(made_by, file) for file in files_of(history, site)}
        addresses |= files.keys()
        outdated = {name for name, mark in files.items() if not _holds(output_dir / name, mark)}
        if outdated:
            parts.append((place, outdated))
            times += len(history.names) * len(history.snapshots) if history else 0
    processes = (
        min(processors(), MAX_PAGE_PROCESSES)
        if times >= PARALLEL_RENDER_TIMES and table.is_kept
        else 1
    )
    is_new = not output_dir.exists()
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        # All is made before a page is replaced, since any of them may fail; on disk, since they
        # are many.
        with _folder_of_parts(output_dir) as folder:
            (folder / data_scripts.SCRIPTS_FOLDER).mkdir()
            _at_work[folder] = environment, site
            # Packed once: with every part the table would be packed, sent and opened anew.
            packed = pickle.dumps(table) if processes > 1 and len(parts) > 1 else b""
            make = partial(
                _make, packed=packed, overrides=overrides, made_by=made_by, folder=folder
            )
            total = sum(len(outdated) for _, outdated in parts)
            with looked_at(lambda: progress_words("writing pages", _count_files(folder), total)):
                for _ in in_processes(make, parts, processes):
                    pass
            _make_unmarked(environment, site, folder)
            scripts.mkdir(exist_ok=True)
            for path in chain(folder.glob("*.*"), (folder / data_scripts.SCRIPTS_FOLDER).iterdir()):
                _put(path, output_dir / path.relative_to(folder))
        beside = *output_dir.glob("*.html"), *output_dir.glob("*.md")
        earlier = *scripts.glob("*.js"), *(path for path in beside if _holds(path, SOURCES))
        for path in earlier:
            if path.relative_to(output_dir).as_posix() not in addresses:
                path.unlink()
    except OSError as error:
        hint = "give another folder with --output"
        raise GpubenchError(f"the report cannot be written: {error}; {hint}") from error
    finally:
        _at_work.clear()
        if is_new:
            with suppress(OSError):  # there is something in it, unless it failed
                output_dir.rmdir()
    return output_dir / "index.html"


def _count_files(folder: Path) -> int:
    """Return how many files of the report are made."""
    return sum(len(names) for _, _, names in os.walk(folder))


def view_models(table: Table) -> dict[str, Any]:
    """Return what the pages say, as JSON-ready data by address; unknown bounds are ``None``."""
    return {address: msgspec.json.decode(page) for address, page in encoded_pages(table)}


def encoded_pages(
    table: Table, addresses: Collection[str] | None = None
) -> Iterator[tuple[str, bytes]]:
    """Yield what each page says, as JSON on one line, by its address; ``None``: of all pages."""
    site = Site(table, all_pages())
    for history in groups(site):
        for file in files_of(history, site):
            if file.template and (addresses is None or file.address in addresses):
                yield file.address, exports.encoded(file.make())


def kernel_pages(table: Table, names: Sequence[str]) -> list[str]:
    """Return the addresses of the pages of the kernels that are named, on each setup that has
    them; raises ``GpubenchError`` for a name without results."""
    site = Site(table, all_pages())
    there = dict.fromkeys(key for history in site.histories for key in site.kernels(history))
    named = find_kernels(names, there)
    return [
        site.address(history.setup, key)
        for key in there
        if key in named
        for history in site.histories
        if key in site.kernels(history)
    ]


def groups(site: Site) -> list[History | None]:
    """Return whose files are made together: each setup's, and at last those of all."""
    return [*site.histories, None]


def files_of(history: History | None, site: Site) -> Iterator[ReportFile]:
    """Pages and scripts of one setup, its overview first; ``None``: those of all setups."""
    if history is None:
        if site.histories:
            for page in site.pages:
                if page.is_shared:
                    address, view = f"{page.name}.html", partial(page.build, site)
                    yield ReportFile(address, page.digest(site), view, f"{page.name}.html")
            stamp = compare.index_stamp(site)
            yield ReportFile(compare.INDEX, stamp, partial(compare.index_script, site))
            there = {history.setup.place for history in site.histories}
            for place in site.measured.keys() - there:
                yield from _compared_files(site.measured[place], site)
        else:
            view = partial(overview.build, None, site)
            yield ReportFile(site.address(None), site.digest, view, "overview.html")
        return
    setup, links = history.setup, site.linked(history)
    view = partial(overview.build, history, site)
    shown = f"{history.digest}{overview.stamp(history, site)}{links}"
    yield ReportFile(site.address(setup), shown, view, "overview.html")
    for key in site.kernels(history):
        view = partial(kernel.build, history, key, site)
        sources, doubts = site.sources.get(key), site.doubts(key)
        shown = repr((history.digest, site.linked(history, key), sources, doubts))
        yield ReportFile(site.address(setup, key), shown, view, "kernel.html")
        address = series.series_address(history, key, site)
        script = partial(_series_script, history, key, site)
        yield ReportFile(address, history.digest, script)
    address = series.commits_address(history, site)
    stamp = series.commits_stamp(history, site)
    yield ReportFile(address, stamp, partial(series.commits_script, history, site))
    for page in site.pages:
        if not page.is_shared and page.name in site.pages_there(history):
            yield from _files_of_page(page, history, site)
    if len(history.snapshots) > 1:
        view = partial(compare.newest_in_markdown, history, site)
        address, stamp = compare.markdown_address(history, site), compare.stamp(history, site)
        yield ReportFile(address, stamp, view)
    if history is next(one for one in site.histories if one.setup.place == setup.place):
        yield from _compared_files(site.measured[setup.place], site)


def _files_of_page(page: Page, history: History, site: Site) -> Iterator[ReportFile]:
    """Yield a page of a setup, and the scripts that it loads."""
    address = site.page_address(page.name, history.setup)
    shown = f"{page.digest(history, site)}{site.linked(history)}"
    yield ReportFile(address, shown, partial(page.build, history, site), f"{page.name}.html")
    if page.files:
        yield from page.files(history, site)


def _series_script(history: History, key: KernelKey, site: Site) -> str:
    charted = kernel.charted_cases(history, key, site)
    return series.series_script(history, key, charted, site)


def _compared_files(history: History, site: Site) -> Iterator[ReportFile]:
    """Scripts of all commits of a machine and environment, from which a reader chooses two."""
    start = f"{data_scripts.SCRIPTS_FOLDER}/{compare.setup_key(history.setup.place)}"
    yield ReportFile(
        f"{start}.js",
        compare.cases_stamp(history, site),
        partial(compare.cases_script, history, site),
    )
    names = hashlib.sha256(repr(history.names).encode()).hexdigest()
    for number, snapshots in enumerate(compare.snapshots_together(history)):
        address = f"{start}-{number}.js"
        view = partial(compare.snapshots_script, address, history, snapshots, site)
        shown = "".join([names, *(snapshot.digest for snapshot in snapshots)])
        yield ReportFile(address, shown, view)


Assignment = tuple[int, Collection[str]]
"""Index into ``groups``, and addresses of its files that are to be made."""

_at_work: dict[Path, tuple[Environment, Site]] = {}
"""Environment and site with which this process makes files, by folder. Both are kept from part to
part, since a process gets parts one by one."""


@without_collecting()
def _make(
    part: Assignment, packed: bytes, overrides: Path | None, made_by: str, folder: Path
) -> None:
    """Make files of one group, in a folder; ``packed`` is the table, for another process."""
    place, wanted = part
    if folder not in _at_work:
        _at_work[folder] = page_environment(overrides), Site(pickle.loads(packed), all_pages())
    environment, site = _at_work[folder]
    for file in files_of(groups(site)[place], site):
        if file.address in wanted:
            mark = _mark(made_by, file)
            if file.template:
                content = fill_template(environment, file, mark, site.table.selection)
            elif file.address.endswith(".md"):  # whose first line others look for
                content = file.make().replace("\n", f"\n<!-- {SOURCES}: {mark} -->\n", 1)
            else:
                content = f"// {SOURCES}: {mark}\n{file.make()}"
            (folder / file.address).write_text(content, encoding="utf-8", newline="")


def _mark(made_by: str, file: ReportFile) -> str:
    """Return what a file says of what it was made from."""
    return hashlib.sha256(f"{made_by}{file.digest}".encode()).hexdigest()[:32]


def _make_unmarked(environment: Environment, site: Site, folder: Path) -> None:
    """Write what says nowhere what it was made from: styles and data."""
    loader = cast(BaseLoader, environment.loader)
    for asset in (*ASSETS, *(asset for page in site.pages for asset in page.assets)):
        (folder / asset).write_bytes(loader.get_source(environment, asset)[0].encode())
    shutil.copyfile(packaged_templates() / PLOTLY, folder / PLOTLY)
    if site.histories:
        exports.write(site, folder)


def _holds(path: Path, mark: str) -> bool:
    """Return whether a file is there and bears the mark."""
    # Pages are no links: what one leads to is another's. To open a pipe may take for ever.
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return mark.encode() in file.read(MARK_WITHIN)
    except OSError:
        return False


@contextmanager
def _folder_of_parts(output_dir: Path) -> Iterator[Path]:
    """Make a folder for files that are not whole yet, of a name that nobody can know; those that
    killed reports have left are removed."""
    with ExitStack() as held:
        with locked(output_dir):
            for left in output_dir.glob(f"{NEW_FOLDER_PREFIX}*"):
                with suppress(OSError), locked(left, wait=False):  # a report is at work in it
                    shutil.rmtree(left)
            name = held.enter_context(TemporaryDirectory(prefix=NEW_FOLDER_PREFIX, dir=output_dir))
            held.enter_context(locked(Path(name)))
        yield Path(name)


@contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Keep other reports from a folder until this process ends, however it does.

    Where a file system has no such locks (NFS has none for folders, nor has Windows) nobody is
    kept. Without ``wait`` that raises ``OSError``, and so does a folder that another has locked.
    """
    if sys.platform == "win32":
        if not wait:
            raise OSError("folders have no locks")
        yield
        return
    descriptor = os.open(folder, os.O_DIRECTORY | (0 if wait else os.O_NOFOLLOW))
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            if not wait:
                raise
        yield
    finally:
        os.close(descriptor)


def _put(new: Path, path: Path) -> None:
    """Put a file in the place of another unless that holds the same; never through a link, which is
    replaced."""
    is_page = path.is_file() and not path.is_symlink()
    if not (is_page and filecmp.cmp(new, path, shallow=False)):
        new.replace(path)
