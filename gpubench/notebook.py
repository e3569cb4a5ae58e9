"""Results and charts in a notebook: ``gpubench.load_results()`` and ``gpubench.chart(kernel)``."""

from __future__ import annotations

import html
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from gpubench.distribution import require_extra
from gpubench.errors import GpubenchError

if TYPE_CHECKING:  # importing gpubench has to stay cheap
    import duckdb

    from gpubench.results import Table

Kind = Literal["pandas", "polars", "arrow"]
"""Libraries whose tables ``load_results`` gives, those that it takes first before the others."""

Over = Literal["commits", "sizes", "roofline"]
"""Charts of a kernel's page."""

_NEEDS: dict[str, tuple[str, ...]] = {
    "pandas": ("pandas",),
    "polars": ("polars", "pyarrow"),
    "arrow": ("pyarrow",),
}
"""Modules that tables of a kind need."""
_EXTRAS = {"pandas": "pandas", "polars": "polars", "arrow": "tables"}
"""Extras of the distribution that bring them."""

ALL = "select * from results"
HEIGHT_PIXELS = 560


def load_results(
    sql: str = ALL, *, folder: str | Path = ".asv/results", as_: Kind | None = None
) -> Any:
    """Return stored results as a table of pandas, Polars or Arrow.

    ``sql`` is what ``gpubench query`` takes: the view ``results`` has a row for each case of each
    commit. ``folder`` is asv's, of a project whose suites stand in ``suites/`` of the working
    folder. ``as_`` is ``"pandas"``, ``"polars"`` or ``"arrow"``; without it, the first of these
    that is installed. Raises ``GpubenchError`` where none is, and for a query with a fault.
    """
    kind = _installed(as_)
    with _open(folder) as table:
        return table.answer(sql, lambda database, asked: _taken(database.sql(asked), kind))


def _taken(found: duckdb.DuckDBPyRelation, kind: str) -> Any:
    """Return an answer of DuckDB as a table of a kind."""
    if kind == "pandas":
        return found.df()
    if kind == "polars":
        return import_module("polars").from_arrow(found.to_arrow_table())
    return found.to_arrow_table()


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of a kernel's page, which a notebook shows."""

    title: str
    sentences: tuple[str, ...]
    """What the chart says, a sentence for each implementation or device."""
    page: str
    """The whole chart as a page of HTML that needs no other file."""

    def _repr_html_(self) -> str:
        """Return an element of HTML that shows the page in a frame of its own."""
        attributes = {
            "title": self.title,
            "style": f"width: 100%; height: {HEIGHT_PIXELS}px; border: 0",
            "sandbox": "allow-scripts allow-downloads",
            "srcdoc": self.page,
        }
        written = (f'{name}="{html.escape(value)}"' for name, value in attributes.items())
        return f"<iframe {' '.join(written)}></iframe>"

    def __str__(self) -> str:
        return "\n".join([self.title, *self.sentences])


def chart(
    kernel: str,
    over: Over | None = None,
    *,
    folder: str | Path = ".asv/results",
    machine: str | None = None,
    environment: str | None = None,
) -> Chart:
    """Return a chart of a kernel as it was last measured.

    ``kernel`` is its name, or ``suite.kernel``. ``over`` is ``"commits"``, ``"sizes"`` or
    ``"roofline"``; without it, commits where there are several, else sizes, else the roofline.
    ``machine`` and ``environment`` choose where several have results. Raises ``GpubenchError``
    with what there is, where nothing fits.
    """
    if over not in (None, *get_args(Over)):
        raise GpubenchError(f"there is no chart over {over!r}; give {_listed(get_args(Over))}")
    from gpubench.report.one_chart import render_chart

    with _open(folder) as table:
        title, sentences, page = render_chart(table, kernel, over, machine, environment)
    return Chart(title, sentences, page)


def _installed(asked: str | None) -> str:
    """Return the kind that is asked for, else the first whose modules are installed."""
    if asked is not None and asked not in _NEEDS:
        raise GpubenchError(f"there are no tables of {asked!r}; give {_listed(_NEEDS)}")
    for kind in (asked,) if asked else _NEEDS:
        if all(map(find_spec, _NEEDS[kind])):
            return kind
    needed = f"tables of {asked!r} need" if asked else "tables need pandas, polars or"
    missing = ", ".join(name for name in _NEEDS[asked or "arrow"] if not find_spec(name))
    extra = require_extra(_EXTRAS[asked or "arrow"])
    raise GpubenchError(f"{needed} {missing}, which is not installed: pip install '{extra}'")


def _listed(words: Any) -> str:
    return ", ".join(repr(word) for word in words)


@contextmanager
def _open(folder: str | Path) -> Iterator[Table]:
    """Open the results of a project inside the block; warn of what had to be left out."""
    from gpubench.links import stay_inside
    from gpubench.project.opening import project_table
    from gpubench.suite.folder import asked_folder

    if not Path(folder).is_dir():
        raise GpubenchError(
            f"there is no folder {str(folder)!r} in {Path.cwd()}: start in the project's folder, "
            "or give folder='PROJECT/.asv/results'; `asv run` makes it"
        )
    suites = asked_folder(Path("suites"))
    stay_inside(Path(folder))
    stay_inside(suites)
    table, faults = project_table(Path(folder), Path.cwd(), suites)
    with closing(table):
        left_out = (f"{problem.path}: {problem.message}" for problem in table.problems)
        for words in (*map(str, faults), *left_out):
            warnings.warn(words, stacklevel=4)
        yield table
