"""Changes of each setup as a plain list, for ``gpubench changes``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gpubench.analysis.changes import Change, Regression, undone_by
from gpubench.analysis.direction import direction_word
from gpubench.report import text
from gpubench.report.findings import (
    case_words,
    deciding_command,
    level_beside_newest,
    newest_value,
)
from gpubench.report.overview import lasting_regressions
from gpubench.report.site import Site
from gpubench.results import CaseHistories, CaseName, History

ListedState = Literal["lasting", "recovered", "to be checked"]


@dataclass(frozen=True, slots=True)
class ListedStep:
    """One step of a chain."""

    commit: str
    """Hash of the first commit with the new level."""
    factor: float
    """How many times worse or better; at least 1."""


@dataclass(frozen=True, slots=True)
class ListedChange:
    """One change of one case."""

    machine: str
    environment: str
    benchmark: str
    """asv's name."""
    case: str
    """Its parameters."""
    words: str
    """The case as pages call it."""
    state: ListedState
    direction: str
    is_worse: bool
    factor: float
    before: float
    """Median of the old level, in the unit; over the baseline where processors differ."""
    now: float
    """The newest value that was measured, alike."""
    level: float | None
    """Median of the newest level of a lasting regression, alike, where ``now`` is another: what one
    run gave beside it is no end of a regression."""
    unit: str
    good: str
    """Hash of the last commit with the old level."""
    commit: str
    """Hash of the first with the new one; of a regression in several steps, at the largest."""
    chain: tuple[ListedStep, ...]
    """The steps that it is made of, oldest first."""
    command: str
    """What finds the commit, or decides of one that is to be checked."""


def listed_changes(history: History, site: Site, *, lasting: bool) -> Iterator[ListedChange]:
    """Yield the changes of a setup, of all the newest first; or what is worse now than at its best
    level, the worst first."""
    items: list[tuple[CaseName, Change | Regression]]
    if lasting:
        items = [*lasting_regressions(history, site).items()]
    else:
        every = site.changes(history).items()
        found = [(name, change) for name, changes in every for change in changes]
        items = [*sorted(found, key=lambda item: (-item[1].after, -item[1].ratio.factor))]
    cases = site.of_cases(history, [name for name, _ in items])
    for name, change in items:
        yield _listed(cases, name, change, site, site.changes(history)[name])


def _listed(
    cases: CaseHistories,
    name: CaseName,
    item: Change | Regression,
    site: Site,
    changes: Sequence[Change],
) -> ListedChange:
    chain = item.chain if isinstance(item, Regression) else (item,)
    change = item.largest if isinstance(item, Regression) else item
    unit = site.unit(cases, name)
    hashes = [snapshot.commit.hash for snapshot in cases.snapshots]
    return ListedChange(
        machine=cases.setup.machine,
        environment=cases.setup.environment,
        benchmark=site.table.asv_name(name),
        case=name.case,
        words=case_words(name),
        state=_state(item, changes),
        direction=direction_word(change, unit),
        is_worse=change.slower,
        factor=item.ratio.factor,
        before=chain[0].old,
        now=newest_value(cases, name),
        level=level_beside_newest(cases, name, item) if isinstance(item, Regression) else None,
        unit=unit,
        good=hashes[change.before],
        commit=hashes[change.after],
        chain=tuple(ListedStep(hashes[one.after], one.ratio.factor) for one in chain),
        command=deciding_command(site.table, cases, name, change),
    )


def _state(item: Change | Regression, changes: Sequence[Change]) -> ListedState:
    """Return whether a change of these lasts; a regression does."""
    if isinstance(item, Regression):
        return "lasting"
    if item.kind == "check":
        return "to be checked"
    return "lasting" if undone_by(changes, changes.index(item)) is None else "recovered"


def row_of(change: ListedChange) -> Mapping[str, str]:
    """Return the cells of a change by the titles of their columns."""
    steps = ", ".join(f"{text.ratio(one.factor)} at {one.commit[:8]}" for one in change.chain)
    is_suite = change.benchmark.startswith("suites.")
    level = f" (level {text.quantity(change.level, change.unit)})" if change.level else ""
    return {
        "factor": f"{text.ratio(change.factor)} {change.direction}",
        "case": change.words if is_suite else f"{change.benchmark} {change.case}".rstrip(),
        "before": text.quantity(change.before, change.unit),
        "now": text.quantity(change.now, change.unit) + level,
        "since": change.commit[:8],
        "state": change.state,
        "steps": steps if len(change.chain) > 1 else "",
    }
