"""The list of pages: navigation, files of the report and tests of pages in a browser read it."""

from __future__ import annotations

from functools import cache

from gpubench.entry_points import PAGES, declared, load_one
from gpubench.errors import GpubenchError
from gpubench.report import changes, choose, compare, machines
from gpubench.report.page import Page


@cache
def all_pages() -> tuple[Page, ...]:
    """Return all pages beside overviews and kernels, in the order of the navigation.

    Pages of the edge and of other packages come by entry points, by their names. Raises
    ``GpubenchError`` for one that cannot be loaded or is no ``Page``.
    """
    others = map(_load, sorted(declared(PAGES).names))
    return (
        changes.CHANGES_PAGE,
        compare.COMPARE_PAGE,
        choose.CHOOSE_PAGE,
        *others,
        machines.MACHINES_PAGE,
    )


def _load(name: str) -> Page:
    page = load_one(PAGES, "page", name)
    if not isinstance(page, Page):
        raise GpubenchError(
            f"page {name!r} is no gpubench.report.page.Page; give its entry point one"
        )
    return page
