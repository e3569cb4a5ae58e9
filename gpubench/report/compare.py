"""View model of the page that compares two commits, machines or environments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from gpubench.analysis.comparison import compare_snapshots
from gpubench.analysis.history import SetupHistory
from gpubench.analysis.sides import setup_of
from gpubench.report import text
from gpubench.report.compare_data import INDEX, pair_address
from gpubench.report.comparison_view import RULE, ComparisonView, comparison_view
from gpubench.report.markdown import markdown
from gpubench.report.site import DataFile, Navigation, Site, State, setup_label
from gpubench.results import Snapshot

MOST_ROWS = 200
"""Rows of one comparison on the page; the file of Markdown and the command say more."""

MOST_SETUPS = 12
"""Machines and environments that a page sets against its own without being asked."""


@dataclass(frozen=True, slots=True)
class Exported:
    """One comparison with its Markdown."""

    heading: str
    comparison: ComparisonView
    address: str
    """Of this choice, after ``#``."""
    markdown: str


@dataclass(frozen=True, slots=True)
class ComparePage:
    """The newest commit of one setup against the one before, and against other setups."""

    title: str
    navigation: Navigation
    verdict: str
    rule: str
    newest: Exported | None
    """``None`` with one commit only."""
    others: tuple[Exported, ...]
    """Newest commits of other machines and environments against this one's."""
    choosable: bool
    """Whether there are two snapshots at all, on whichever machines."""
    initial: str
    """What the choice shows first, as the part of an address after ``#``."""
    index: str
    """Script that holds the choices."""
    export: str | None
    """File of Markdown beside the page."""
    states: tuple[State, ...]


def build(history: SetupHistory, site: Site) -> ComparePage:
    """The comparisons of one setup."""
    own, setup = history.snapshots, history.setup
    newest = _exported("", own[-2], own[-1], site) if len(own) > 1 else None
    others = tuple(_others(history, site))
    first = newest or (others[0] if others else None)
    alone = (setup, own[-1].commit)
    return ComparePage(
        title="Compare",
        navigation=site.navigation(setup, page="compare"),
        verdict=_verdict(newest),
        rule=RULE,
        newest=newest,
        others=others,
        choosable=len(site.results.snapshots) > 1,
        initial=first.address if first else pair_address(alone, alone),
        index=INDEX,
        export=export_address(history, site) if newest else None,
        states=tuple(_states(history)),
    )


def exports(history: SetupHistory, site: Site) -> Iterator[DataFile]:
    """The newest commit against the one before as a file of Markdown."""
    if len(history.snapshots) > 1:
        content = partial(_newest_in_markdown, history, site)
        yield DataFile(export_address(history, site), content, history.digest)


def _newest_in_markdown(history: SetupHistory, site: Site) -> str:
    old, new = history.snapshots[-2:]
    return markdown(_view(old, new, site))


def export_address(history: SetupHistory, site: Site) -> str:
    """File of Markdown beside the page of that setup."""
    return site.page_address("compare", history.setup).removesuffix(".html") + ".md"


def _view(old: Snapshot, new: Snapshot, site: Site, most: int | None = None) -> ComparisonView:
    found = compare_snapshots(old, new, site.compared)
    return comparison_view(found, site.commits, most=most)


def _exported(heading: str, old: Snapshot, new: Snapshot, site: Site) -> Exported:
    view = _view(old, new, site, most=MOST_ROWS)
    return Exported(heading, view, _address(old, new), markdown(view))


def _address(old: Snapshot, new: Snapshot) -> str:
    return pair_address((setup_of(old), old.commit), (setup_of(new), new.commit))


def _others(history: SetupHistory, site: Site) -> Iterator[Exported]:
    others = [other for other in site.histories if other.setup != history.setup]
    for other in others[:MOST_SETUPS]:
        heading = setup_label(other.setup)
        yield _exported(heading, history.snapshots[-1], other.snapshots[-1], site)


def _verdict(newest: Exported | None) -> str:
    if newest is None:
        return "There is one commit so far, and nothing before it to compare with."
    counts = newest.comparison.counts
    words = [
        _part(counts.get("slower", 0), "became slower"),
        _part(counts.get("failed", 0), "has no time any more", "have no time any more"),
        _part(counts.get("faster", 0), "became faster"),
        _part(counts.get("mended", 0), "has a time again", "have a time again"),
    ]
    told = text.join(filter(None, words)) or "no case is known to have changed"
    old, new = newest.comparison.old.commit.short, newest.comparison.new.commit.short
    return f"At {new}, compared with {old} before it, {told}."


def _part(count: int, one: str, many: str | None = None) -> str:
    return f"{text.plural(count, 'case')} {one if count == 1 else many or one}" if count else ""


def _states(history: SetupHistory) -> Iterable[State]:
    if len(history.commits) == 1:
        yield State(
            "One commit so far",
            "A comparison needs a second one; other machines and environments can be compared "
            "as soon as they are measured.",
            "asv run HEAD~1..HEAD --skip-existing",
        )
