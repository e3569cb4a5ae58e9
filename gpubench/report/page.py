"""A page of the report: name, title, its builder, and a digest of its sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpubench.report.site import Site
    from gpubench.results import History


@dataclass(frozen=True, slots=True)
class ReportFile:
    """One page, script or Markdown before it is made."""

    address: str
    """In the folder of the report."""
    digest: str
    """Changes with anything that it is made from."""
    make: Callable[[], Any]
    """The view model of a page, the text of another file."""
    template: str = ""
    """Of a page; empty for another file."""


def _always(history: History, site: Site) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Page:
    """A page beside overviews and kernels, one for each setup or one for all setups."""

    name: str
    """Of its file, ``compare.html``, and of its template."""
    title: str
    """In the navigation."""
    build: Callable[..., Any]
    """Makes the view model of a history and the site; of a shared page, of the site."""
    digest: Callable[..., str]
    """Makes a text that changes with whatever the page shows, of what ``build`` is given. The
    navigation is not part of it."""
    is_shared: bool = False
    """Whether the report has one of it, whatever the setup."""
    is_there: Callable[[History, Site], bool] = _always
    """Says whether a setup has this page."""
    files: Callable[[History, Site], Iterator[ReportFile]] | None = None
    """Makes scripts of a setup that the page loads."""
    folder: Path | None = None
    """Where template and assets lie; ``None``: with those of the report."""
    assets: tuple[str, ...] = ()
    """Files that are copied beside the pages."""
