"""View models and templates to pages on disk. The only module of the report that writes files."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
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

from gpubench import __version__
from gpubench.analysis.history import SetupHistory
from gpubench.collecting import without_collecting
from gpubench.errors import GpubenchError
from gpubench.parallel import share
from gpubench.report import (
    changes,
    choose,
    compare,
    compare_data,
    exports,
    figures,
    kernel,
    machines,
    overview,
    roofline_figure,
    text,
)
from gpubench.report.history_figure import history_figure
from gpubench.report.site import DataFile, Site
from gpubench.report.written import Written
from gpubench.results import Results

ASSETS = ("gpubench.css", "text.js", "charts.js", "compare.js")
"""Files beside the pages, overridable like the templates."""

PLOTLY = "plotly.min.js"

MANY = 10
"""Pages from which more than one process makes them."""

WITHOUT_CHANGES = ("compare.html", "choose.html", "machines.html")
"""Pages that tell of no changes, made while another process looks for these."""

GENERATOR = b'<meta name="generator" content="gpubench '
"""Tells pages of an earlier report from other files."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page before it is made."""

    template: str
    """Named like the module of its view model."""
    address: str
    """File name in the folder of the report."""
    view: Callable[[], Any]
    sources: bytes
    """Changes with anything that the view is made from."""


@without_collecting()
def write_report(results: Results, output_dir: Path, overrides: Path | None = None) -> Path:
    """Write all pages and what they need; returns the path of the first page.

    ``overrides`` is a folder whose templates and styles replace the packaged ones by name; they
    can extend those as ``packaged/overview.html``. Pages of an earlier report that are no longer
    part of it are removed. Raises ``GpubenchError`` for a template that fails and a folder that
    cannot be written.
    """
    environment, site = _environment(overrides), Site(results)
    written = Written(output_dir, results.kept, _templates(overrides))
    with site.changes_looked_for():
        listed = list(pages(site))
        made = [page for page in listed if not written.holds(page.address, page.sources)]
        contents = _contents(environment, made, site)
    contents |= {asset: _source(environment, asset) for asset in ASSETS}
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        for address, content in contents.items():
            _write(output_dir / address, content)
        for page in listed:
            if page.address in contents:
                written.note(page.address, page.sources)
        _remove_others(output_dir, keep={page.address for page in listed})
        _write_data(site, output_dir, written)
        _write_plotly(output_dir / PLOTLY)
    except OSError as error:
        hint = "give another folder with --output"
        raise GpubenchError(f"the report cannot be written: {error}; {hint}") from error
    written.save()
    return output_dir / "index.html"


def view_models(results: Results) -> dict[str, Any]:
    """What the pages say, as JSON-ready data by address; unknown bounds are ``None``."""
    return {page.address: plain(asdict(page.view())) for page in pages(Site(results))}


def pages(site: Site) -> Iterator[Page]:
    """Every page of the report; the overview of the first setup first."""
    for history in site.histories or (None,):
        setup = history.setup if history else None
        view = partial(overview.build, site.results, history, site)
        yield Page("overview.html", site.address(setup), view, site.all_sources)
        if history:
            for key in site.current(history):
                build = partial(kernel.build, history, key, site)
                address, sources = site.address(setup, key), kernel.sources(history, key, site)
                yield Page("kernel.html", address, build, sources)
            yield from _setup_pages(site, history)
    if site.histories:
        address = site.page_address("machines", site.histories[0].setup)
        yield Page("machines.html", address, partial(machines.build, site), site.all_sources)


def _setup_pages(site: Site, history: SetupHistory) -> Iterator[Page]:
    """The pages of ``site.PAGES`` on one setup."""
    views: dict[str, tuple[Callable[[], Any], bytes]] = {
        "changes": (partial(changes.build, history, site), changes.sources(history, site)),
        "compare": (partial(compare.build, history, site), site.all_sources),
        "choose": (partial(choose.build, history, site), choose.sources(history, site)),
    }
    for name, (view, sources) in views.items():
        yield Page(f"{name}.html", site.page_address(name, history.setup), view, sources)


def data_files(site: Site) -> Iterator[DataFile]:
    """What stands beside the pages."""
    if site.histories:
        yield from compare_data.data_files(site)
        yield from exports.data_files(site)
    for history in site.histories:
        yield from compare.exports(history, site)


def packaged_templates() -> Path:
    """Folder of the shipped templates: inside the package, or ``reports/`` in a checkout."""
    installed = Path(__file__).parent / "templates"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "reports"


def _environment(overrides: Path | None) -> Environment:
    packaged = FileSystemLoader(packaged_templates())
    own = [FileSystemLoader(overrides)] if overrides else []
    environment = Environment(
        loader=ChoiceLoader([*own, packaged, PrefixLoader({"packaged": packaged})]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies |= {"json.dumps_function": _to_json, "json.dumps_kwargs": {}}
    environment.filters |= {
        "seconds": text.seconds,
        "seconds_interval": text.seconds_interval,
        "speedup": text.speedup,
        "ratio": text.ratio,
        "interval": text.interval,
        "factor": text.factor,
        "factor_interval": text.factor_interval,
        "level": text.level,
        "rate": text.rate,
        "digits": text.digits,
        "error": text.error,
        "plural": text.plural,
        "status_label": text.status_label,
        "history_figure": history_figure,
        "size_figure": figures.size_figure,
        "roofline_figure": roofline_figure.roofline_figure,
    }
    return environment


def _to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _contents(environment: Environment, made: Sequence[Page], site: Site) -> dict[str, str]:
    """Of the pages, by address; many are made in several processes."""

    def render(part: Sequence[Page]) -> list[str]:
        return [_render(environment, page) for page in part]

    contents: dict[str, str] = {}
    for page in made:
        if page.template in WITHOUT_CHANGES and site.waits_for_changes:
            contents[page.address] = _render(environment, page)
    others = [page for page in made if page.address not in contents]
    if any(page.template not in WITHOUT_CHANGES for page in others):
        site.settle()
    made_together = share(render, others, 1 if len(others) < MANY else None)
    return contents | dict(zip((page.address for page in others), made_together, strict=True))


def _render(environment: Environment, page: Page) -> str:
    try:
        template = environment.get_template(page.template)
        return template.render(page=page.view(), address=page.address, version=__version__)
    except TemplateSyntaxError as error:
        place = f"{error.filename or error.name}:{error.lineno}"
        raise GpubenchError(f"{place}: {error.message}; mend or remove that template") from error
    except TemplateError as error:
        message = f"the template of {page.address} ({page.template}) fails: {error}"
        raise GpubenchError(
            f"{message}; mend or remove the project's own {page.template}"
        ) from error


def _source(environment: Environment, name: str) -> str:
    loader = cast(BaseLoader, environment.loader)
    return loader.get_source(environment, name)[0]


def _templates(overrides: Path | None) -> str:
    """All that pages are made from beside their views."""
    folders = [packaged_templates(), *([overrides] if overrides else [])]
    files = [path for folder in folders for path in sorted(folder.glob("*.*")) if path.is_file()]
    told = [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]
    return repr(told)


def _write_data(site: Site, output_dir: Path, written: Written) -> None:
    """Write the data files, one after the other; what is no longer part of it goes."""
    folder = output_dir / compare_data.FOLDER
    folder.mkdir(exist_ok=True)
    stale = {path.name for path in folder.glob("*.js")}
    for file in data_files(site):
        stale.discard(file.name)
        if not written.holds(file.address, file.sources):
            _write(output_dir / file.address, file.content())
            written.note(file.address, file.sources)
    for name in stale:
        (folder / name).unlink()


def _write(path: Path, content: str) -> None:
    """Write a file unless it holds just that: whole, so that nobody reads a part of it."""
    encoded = content.encode()
    with suppress(FileNotFoundError):
        if path.stat().st_size == len(encoded) and path.read_bytes() == encoded:
            return
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(encoded)
    new.replace(path)


def _remove_others(output_dir: Path, keep: Container[str]) -> None:
    """Remove pages of gpubench that this report does not have."""
    for path in output_dir.glob("*.html"):
        if path.name not in keep and GENERATOR in path.read_bytes():
            path.unlink()


def _write_plotly(path: Path) -> None:
    """Plotly's JavaScript from the installed package; 5 MB, so only when it differs."""
    script = files("plotly").joinpath("package_data", PLOTLY).read_bytes()
    if not path.exists() or path.stat().st_size != len(script):
        path.write_bytes(script)


def plain(value: Any) -> Any:
    """JSON's own kinds of values, with ``None`` for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
