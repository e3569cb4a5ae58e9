"""View models and templates to files on disk. The only module of the report that writes any.

A history of thousands of commits makes hundreds of pages and thousands of scripts, of which a new
commit changes few. So a page and a script say within themselves what they were made from (``mark``,
a digest), and one that says just that is left alone.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import msgspec
from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    PrefixLoader,
    StrictUndefined,
    TemplateError,
    TemplateSyntaxError,
)
from jinja2.loaders import split_template_path
from jinja2.sandbox import ImmutableSandboxedEnvironment

from gpubench import __version__
from gpubench.collecting import without_collecting
from gpubench.errors import GpubenchError
from gpubench.links import leads_out
from gpubench.report import (
    advise,
    changes,
    choose,
    compare,
    comparison_view,
    exports,
    figures,
    kernel,
    lists,
    machines,
    overview,
    text,
)
from gpubench.report.site import Site
from gpubench.results import Table

if sys.platform != "win32":
    import fcntl

ASSETS = ("gpubench.css", "text.js", "lists.js", "charts.js", "compare.js", "advise.js")
"""Files beside the pages, overridable like the templates."""

PLOTLY = "plotly.min.js"

GENERATOR = '<meta name="generator" content="gpubench '
"""Tells pages of an earlier report from other files."""

MARK_WITHIN = 1024
"""Bytes at the beginning of a page or a script in which its mark stands."""

PARTS = ".gpubench-new-"
"""Beginning of the name of the folder in which a report makes its files."""


@dataclass(frozen=True, slots=True)
class ReportPage:
    """One page before it is made."""

    template: str
    """Named like the module of its view model."""
    address: str
    """File name in the folder of the report."""
    view: Callable[[], Any]
    digest: str
    """Changes with anything that the view is made from."""


@without_collecting()
def write_report(table: Table, output_dir: Path, overrides: Path | None = None) -> Path:
    """Write all pages and what they need; returns the path of the first page.

    ``overrides`` is a folder whose templates and styles replace the packaged ones by name; they
    can extend those as ``packaged/overview.html``. Pages of an earlier report that are no longer
    part of it are removed. Raises ``GpubenchError`` for a template that fails, with all pages as
    they were, and for a folder that cannot be written.
    """
    environment, site = _environment(overrides), Site(table)
    folders = filter(None, (packaged_templates(), overrides))
    templates = (path for folder in folders for path in folder.glob("*.*") if path.is_file())
    made_by = f"{code_stamp()}{_stamp(templates)}"

    def mark(sources: str) -> str:
        return hashlib.sha256(f"{made_by}{sources}".encode()).hexdigest()[:32]

    listed = list(pages(site))
    outdated = [page for page in listed if not _holds(output_dir / page.address, mark(page.digest))]
    is_new = not output_dir.exists()
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        # All is made before a page is replaced, since any of them may fail; on disk, since they
        # are many.
        with _folder_of_parts(output_dir) as folder:
            for page in outdated:
                made = _render(environment, page, mark(page.digest))
                (folder / page.address).write_text(made, encoding="utf-8", newline="")
            _make_unmarked(environment, site, folder)
            for path in folder.iterdir():
                _put(path, output_dir / path.name)
            _write_scripts(site, output_dir, folder, mark)
        site.keep_fits()
        kept = {page.address for page in listed}
        for path in output_dir.glob("*.html"):
            if path.name not in kept and _holds(path, GENERATOR):
                path.unlink()
    except OSError as error:
        hint = "give another folder with --output"
        raise GpubenchError(f"the report cannot be written: {error}; {hint}") from error
    finally:
        if is_new:
            with suppress(OSError):  # there is something in it, unless it failed
                output_dir.rmdir()
    return output_dir / "index.html"


def view_models(table: Table) -> dict[str, Any]:
    """What the pages say, as JSON-ready data by address; unknown bounds are ``None``."""
    return {page.address: exports.plain(page.view()) for page in pages(Site(table))}


def pages(site: Site) -> Iterator[ReportPage]:
    """Every page of the report; the overview of the first setup first."""
    for history in site.histories:
        setup = history.setup
        view: Callable[[], Any] = partial(overview.build, history, site)
        yield ReportPage("overview.html", site.address(setup), view, site.digest)
        kernels = site.kernels(history)
        for key in kernels:
            view = partial(kernel.build, history, key, site)
            shown = repr((history.digest, site.linked(history, key), site.sources.get(key)))
            yield ReportPage("kernel.html", site.address(setup, key), view, shown)
        elsewhere = [choose.elsewhere(key, history, site) for key in kernels]
        for name, module, sources in (
            ("changes", changes, history.digest),
            ("choose", choose, f"{history.digest}{elsewhere}"),
            ("compare", compare, site.digest),
            ("advise", advise, f"{history.digest}{advise.stamp(history, site)}"),
        ):
            view = partial(module.build, history, site)
            shown = repr((sources, site.linked(history)))
            yield ReportPage(f"{name}.html", site.page_address(name, setup), view, shown)
    if site.histories:
        view = partial(machines.build, site)
        yield ReportPage("machines.html", "machines.html", view, site.digest)
    else:
        view = partial(overview.build, None, site)
        yield ReportPage("overview.html", site.address(None), view, site.digest)


def scripts(site: Site) -> Iterator[tuple[str, Callable[[], str], str]]:
    """What the compare page reads when a reader chooses: address, content, digest of each file."""
    if site.histories:
        yield compare.INDEX, partial(compare.index_script, site), site.digest
    for history in site.histories:
        key = f"{compare.FOLDER}/{compare.setup_key(history.setup)}"
        yield f"{key}.js", partial(compare.cases_script, history), history.digest
        names = hashlib.sha256(repr(history.names).encode()).hexdigest()
        for place, snapshot in enumerate(history.snapshots):
            address = f"{key}-{snapshot.commit.hash[:8]}.js"
            content = partial(compare.snapshot_script, history, place, site)
            yield address, content, names + snapshot.digest
        for address, asked in advise.scripts(history, site).items():
            content = partial(advise.script, history, asked, site)
            yield address, content, f"{history.digest}{advise.stamp(history, site)}"


def _make_unmarked(environment: Environment, site: Site, folder: Path) -> None:
    """Write what says nowhere what it was made from: styles, data, Markdown."""
    loader = cast(BaseLoader, environment.loader)
    for asset in ASSETS:
        (folder / asset).write_bytes(loader.get_source(environment, asset)[0].encode())
    (folder / PLOTLY).write_bytes(files("plotly").joinpath("package_data", PLOTLY).read_bytes())
    if site.histories:
        exports.write(site, folder)
    for history in site.histories:
        if len(history.snapshots) > 1:
            content = compare.newest_in_markdown(history, site)
            (folder / compare.markdown_address(history, site)).write_bytes(content.encode())


def packaged_templates() -> Path:
    """Folder of the shipped templates: inside the package, or ``reports/`` in a checkout."""
    installed = Path(__file__).parent / "templates"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "reports"


def code_stamp() -> str:
    """Changes with the release of gpubench, and where its code is worked on, with that."""
    return f"{__version__} {_stamp(Path(__file__).parents[1].rglob('*.py'))}"


def _stamp(paths: Iterable[Path]) -> str:
    """Changes with any of these files: their names, sizes and times of change."""
    stats = sorted((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths)
    return hashlib.sha256(repr(stats).encode()).hexdigest()


_PLAIN = (str, int, float, list, tuple, dict, set, frozenset)


class ProjectLoader(FileSystemLoader):
    """Templates of a project, which may be anybody's: a link out of their folder is not read."""

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str, Callable[[], bool]]:
        folder = Path(self.searchpath[0])
        path = folder.joinpath(*split_template_path(template))
        if leads_out(path, folder):
            raise GpubenchError(f"{path} is a symbolic link out of {folder}; copy the file there")
        return super().get_source(environment, template)


class ProjectEnvironment(ImmutableSandboxedEnvironment):
    """Templates of a project, which may be anybody's, compute from what they are given and reach
    nothing else (https://jinja.palletsprojects.com/en/stable/sandbox/)."""

    def is_safe_callable(self, obj: Any) -> bool:
        """Methods of plain values, of views and of Jinja's own things: a view may hold an object
        that can do more, such as write a file."""
        method = getattr(obj, "__wrapped__", obj)  # Jinja wraps str.format
        owner = getattr(method, "__self__", method)
        package = str(getattr(owner, "__module__", "")).partition(".")[0]
        is_known = isinstance(owner, _PLAIN) or package in ("gpubench", "jinja2")
        return (is_known or obj in (range, dict)) and super().is_safe_callable(obj)


def _environment(overrides: Path | None) -> Environment:
    packaged = FileSystemLoader(packaged_templates())
    own = [ProjectLoader(overrides)] if overrides else []
    environment = (ProjectEnvironment if overrides else Environment)(
        loader=ChoiceLoader([*own, packaged, PrefixLoader({"packaged": packaged})]),
        autoescape=True,
        auto_reload=False,  # which asks the disk for each block of a page
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # A chart has thousands of numbers: msgspec writes them in a tenth of the time of json.
    environment.policies["json.dumps_function"] = lambda value: msgspec.json.encode(value).decode()
    environment.policies["json.dumps_kwargs"] = {}
    filters = (
        text.seconds, text.seconds_interval, text.speedup, text.ratio, text.interval, text.factor,
        text.factor_interval, text.level, text.rate, text.digits, text.error, text.score,
        text.plural, text.status_label, text.time_label, text.sizes, text.share, text.launch,
        text.disturbed, text.memory,
        comparison_view.baseline_words, comparison_view.side_words,
        comparison_view.difference_listed, lists.grouped,
        figures.history_figure, figures.size_figure, figures.roofline_figure,
    )  # fmt: skip
    environment.filters |= {function.__name__: function for function in filters}
    environment.globals["signs"] = comparison_view.SIGNS
    return environment


def _render(environment: Environment, page: ReportPage, mark: str) -> str:
    shown = {"page": page.view(), "address": page.address}
    try:
        template = environment.get_template(page.template)
        return template.render(**shown, version=__version__, sources=mark)
    except TemplateSyntaxError as error:
        place = f"{error.filename or error.name}:{error.lineno}"
        raise GpubenchError(f"{place}: {error.message}; mend or remove that template") from error
    except GpubenchError:
        raise
    except Exception as error:  # a template can raise anything
        kind = "" if isinstance(error, TemplateError) else f"{type(error).__name__}: "
        message = f"the template of {page.address} ({page.template}) fails: {kind}{error}"
        raise GpubenchError(
            f"{message}; mend or remove the project's own {page.template}"
        ) from error


def _holds(path: Path, mark: str) -> bool:
    """Whether a file is there and bears the mark."""
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
    """A folder for files that are not whole yet, of a name that nobody can know; those that killed
    reports have left are removed."""
    with ExitStack() as held:
        with locked(output_dir):
            for left in output_dir.glob(f"{PARTS}*"):
                with suppress(OSError), locked(left, wait=False):  # a report is at work in it
                    shutil.rmtree(left)
            name = held.enter_context(TemporaryDirectory(prefix=PARTS, dir=output_dir))
            held.enter_context(locked(Path(name)))
        yield Path(name)


@contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Keeps other reports from a folder until this process ends, however it does.

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


def _write_scripts(site: Site, output_dir: Path, parts: Path, mark: Callable[[str], str]) -> None:
    """Write scripts one after the other; those that are no longer part of the report go."""
    folder = output_dir / compare.FOLDER
    if folder.is_symlink():
        raise GpubenchError(f"{folder} is a symbolic link; remove it, it is a folder of the report")
    folder.mkdir(exist_ok=True)
    stale = set(folder.glob("*.js"))
    for address, content, digest in scripts(site):
        path = output_dir / address
        line = f"// gpubench-sources: {mark(digest)}\n"
        if path not in stale or not _holds(path, line):
            new = parts / path.name
            new.write_bytes(f"{line}{content()}".encode())
            new.replace(path)  # which its line tells from this one
        stale.discard(path)
    for path in stale:
        path.unlink()


def _put(new: Path, path: Path) -> None:
    """Put a file in the place of another unless that holds the same; never through a link, which is
    replaced."""
    is_page = path.is_file() and not path.is_symlink()
    if not (is_page and filecmp.cmp(new, path, shallow=False)):
        new.replace(path)
