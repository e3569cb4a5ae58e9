"""One chart of a kernel's page as a page of its own, with all that it needs inside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpubench.distribution import VERSION
from gpubench.errors import ResultsError
from gpubench.report import figures, kernel, text
from gpubench.report.navigation import kernel_label, setup_label
from gpubench.report.site import Site
from gpubench.report.templates import packaged_environment, read_packaged
from gpubench.results import Table

TEMPLATE = "chart.html"
SCRIPTS = ("plotly.min.js", "text.js", "charts.js")
CHART_KINDS = ("sizes", "roofline", "commits")
"""Charts in the order in which they are shown where there is one commit."""


def render_chart(
    table: Table, name: str, over: str | None, machine: str | None, environment: str | None
) -> tuple[str, tuple[str, ...], str]:
    """Return the title of a kernel's chart, its sentences, and a page of HTML that shows it.

    Raises ``ResultsError`` with what there is, where there is no such kernel or no such chart.
    """
    page = _kernel_page(Site(table), name, machine, environment)
    drawn = {kind: (figure, sentences) for kind, figure, sentences in _figures_of(page)}
    if over is None:
        several = page.history is not None and len(page.history.commits) > 1
        order = ("commits", *CHART_KINDS) if several else CHART_KINDS
        over = next((kind for kind in order if kind in drawn), None)
    if over not in drawn:
        if not drawn:
            raise ResultsError(f"{page.title} has no chart: it has no times; run `asv run`")
        there = text.join(map(repr, drawn), "or")
        raise ResultsError(f"{page.title} has no chart {over!r}; give {there}")
    figure, sentences = drawn[over]
    title = f"{page.title} over {over}" if over != "roofline" else f"{page.title}: roofline"
    templates = packaged_environment()
    shown = templates.get_template(TEMPLATE).render(
        title=title,
        figure=figure,
        sentences=sentences,
        scripts=[read_packaged(each) for each in SCRIPTS],
        styles=read_packaged("gpubench.css"),
        version=VERSION,
    )
    return title, sentences, shown


def _kernel_page(
    site: Site, name: str, machine: str | None, environment: str | None
) -> kernel.KernelPage:
    """Return the view of a kernel on the first setup that has it."""
    there = site.histories_of_first_branch
    histories = [one for one in there if one.setup.fits(machine, environment)]
    if not histories:
        setups = text.join(setup_label(history.setup) for history in there)
        words = f"there are {setups}" if setups else "there are none; run `asv run`"
        raise ResultsError(f"no results of that machine and environment: {words}")
    for history in histories:
        names = {key: (key[1], ".".join(key), "::".join(key)) for key in site.kernels(history)}
        keys = [key for key, its in names.items() if name in its]
        if len(keys) > 1:
            labels = text.join(map(".".join, keys))
            raise ResultsError(f"{len(keys)} suites have a kernel {name!r}: write one of {labels}")
        if keys:
            return kernel.build(history, keys[0], site)
    labels = text.join(sorted({kernel_label(key) for h in histories for key in site.kernels(h)}))
    raise ResultsError(f"no results of the kernel {name!r}: there are {labels}")


def _figures_of(page: kernel.KernelPage) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """Yield what the charts of a kernel are over, the figure that draws each, and its sentences."""
    if page.history:
        sentences = tuple(series.sentence for series in page.history.series)
        yield "commits", figures.history_figure(page.history), sentences
    for sizes in page.sizes[:1]:  # the others differ by parameters
        sentences = tuple(series.sentence for series in sizes.series)
        yield "sizes", figures.size_figure(sizes), sentences
    for roof in (each for each in page.rooflines.devices if each.drawn):
        yield "roofline", figures.roofline_figure(roof), roof.sentences
        return
