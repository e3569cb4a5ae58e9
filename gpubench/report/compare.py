"""The page that compares two commits, machines or environments, and the scripts beside it.

A page that was opened from disk may not fetch files, but it may add scripts. So the times of some
snapshots are one script, which the page adds when a reader chooses one of them; the page does not
grow with the history.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

import msgspec
import numpy as np

from gpubench.analysis.comparison import (
    DISTURBED,
    REPLACED,
    SAME,
    UNTIMED,
    compare_rows,
    read_earlier_runs,
)
from gpubench.analysis.costs import COSTS, RESOURCES, total_costs
from gpubench.analysis.count_changes import (
    COUNT_VERDICTS,
    NO_COUNTS_BEFORE,
    NOT_COUNTED,
    OTHER_COMPILER,
    OTHER_MODEL,
    OTHER_TARGET,
    CaseLines,
    CountComparison,
    CountedSnapshot,
    compare_counts,
    is_of_a_compiler,
    target_words,
    with_counted,
)
from gpubench.analysis.differences import COMPARISON_VERDICTS
from gpubench.names import Value
from gpubench.record import ORDER_DEPENDENT
from gpubench.report import count_view, text
from gpubench.report.comparison_columns import OTHER_VERSION, PAGE_COLUMNS
from gpubench.report.comparison_view import (
    COMPARISON_RULE,
    SETUP_LABELS,
    UNCOMMITTED_NOTE,
    ComparisonView,
    comparison_view,
    paths_in_words,
)
from gpubench.report.count_view import CountsView, counts_view
from gpubench.report.data_scripts import SCRIPTS_FOLDER, data_script, pack_floats
from gpubench.report.findings import case_words, disturbed_states
from gpubench.report.lists import FIRST
from gpubench.report.machines import fact_words
from gpubench.report.navigation import Navigation, State, setup_label
from gpubench.report.page import Page
from gpubench.report.pull_request import ComparedSetup, pull_request_comment
from gpubench.report.site import Site
from gpubench.results import ABSENT, CaseCounts, CaseName, History, Setup, Snapshot
from gpubench.results.facts import explains
from gpubench.statuses import DECLARED_STATUSES, FAILURES, Status

MAX_COMPARED_ROWS = 200
"""Rows of one comparison on the page; the file of Markdown and the command say more."""

MAX_SETUPS = 12
"""Machines and environments that a page sets against its own without being asked; of each of these
comparisons it has as many rows as a long list shows at first (``FIRST``)."""

INDEX = f"{SCRIPTS_FOLDER}/index.js"

MAX_SCRIPT_CELLS = 2**16
"""Cases times snapshots in one script, in some ten bytes each, and in twenty times as many while
it is made: a browser reads 2 MB from the disk in some tenths of a second, and a new commit has the
last script made again. Half as many took a report of 10,000 cases 4 % more time."""

LETTERS: Mapping[Status, str] = {status.name: status.letter for status in DECLARED_STATUSES}
"""What stands for a status in the script of a snapshot."""

TOLD = ("failed", "mended", "not comparable")
"""Words of cases without two times that a reader should see one by one."""

LEFT_OUT = "v"
"""The same for a case of another version of its benchmark."""

_STATUS_LETTERS = np.frombuffer("".join([*LETTERS.values(), "-"]).encode(), np.uint8)
"""By index into ``STATUSES``; the last one is for ``ABSENT``, which is -1."""

NO_VERDICT = (
    "These are ratios of stored times, each with the interval that the rounds of both sides allow. "
    "They are no verdict: what a whole process or a whole run shares is not in them. This command "
    "judges them:"
)
"""Of two sides that a reader picks."""

SIDES_DIFFER = (
    "The two sides differ in {what}: their times say nothing of the code, and their speedups do."
)
_UNESCAPED = "!'()*"
"""As JavaScript's ``encodeURIComponent`` does, so that both write the same address."""


@dataclass(frozen=True, slots=True)
class ShownComparison:
    """One comparison with its Markdown."""

    heading: str
    comparison: ComparisonView
    counted: CountsView | None
    """``None`` where nothing was counted on both sides."""
    address: str
    """Of this choice, after ``#``."""
    markdown: str
    """Empty against other machines and environments."""


@dataclass(frozen=True, slots=True)
class ComparePage:
    """The newest commit of one setup against the one before, and against other setups."""

    title: str
    navigation: Navigation
    verdict: str
    rule: str
    newest: ShownComparison | None
    """``None`` with one commit only."""
    others: tuple[ShownComparison, ...]
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


def build(history: History, site: Site) -> ComparePage:
    """Return the comparisons of one setup."""
    snapshots, setup = history.snapshots, history.setup
    newest = _newest(history, site) if len(snapshots) > 1 else None
    others = tuple(_other(snapshots[-1], other, site) for other in _others(history, site))
    first = newest or (others[0] if others else None)
    state = State(
        "One commit so far",
        "A comparison needs a second one; other machines and environments can be compared "
        "as soon as they are measured.",
        "asv run HEAD~1..HEAD --skip-existing",
    )
    return ComparePage(
        title="Compare",
        navigation=site.navigation(setup, page="compare"),
        verdict=_verdict(newest),
        rule=COMPARISON_RULE,
        newest=newest,
        others=others,
        choosable=sum(len(one.snapshots) for one in site.measured.values()) > 1,
        initial=first.address if first else pair_address(snapshots[-1], snapshots[-1]),
        index=INDEX,
        export=markdown_address(history, site) if newest else None,
        states=(
            *disturbed_states(site.rows_now(history), history.latest),
            *(() if newest else (state,)),
        ),
    )


def stamp(history: History, site: Site) -> str:
    """Return a text that changes with the snapshots that the page compares, and with what is known
    of their setups."""
    others = _others(history, site)
    runs = [*site.table.snapshots(history.setup.place.everywhere), *others]
    for other in others:
        runs += site.table.snapshots(other.setup.everywhere)
    return repr([snapshot.digest for snapshot in (*history.snapshots[-2:], *runs)])


def _others(history: History, site: Site) -> list[Snapshot]:
    """Return the newest of other setups, which the page sets against its own."""
    others = [other.snapshots[-1] for other in site.histories if other.setup != history.setup]
    return others[:MAX_SETUPS]


def _compared(
    old: Snapshot, new: Snapshot, site: Site, counted: CountComparison, most: int
) -> ComparisonView:
    def lines_of(name: CaseName) -> CaseLines:
        return site.table.count_lines(old, name), site.table.count_lines(new, name)

    rows = site.rows(old), site.rows(new)
    earlier = read_earlier_runs(site.table, (old, new))
    compared = compare_rows(old, new, *rows, earlier=earlier)
    compared = replace(compared, asv_names=site.table.asv_names)
    return comparison_view(with_counted(compared, counted, lines_of), most=most)


def _other(mine: Snapshot, other: Snapshot, site: Site) -> ShownComparison:
    counted = _counted(mine, other, site)
    return ShownComparison(
        setup_label(other.setup),
        _compared(mine, other, site, counted, FIRST),
        counts_view(counted, FIRST),
        pair_address(mine, other),
        markdown="",
    )


def _verdict(newest: ShownComparison | None) -> str:
    if newest is None:
        return "There is one commit so far, and nothing before it to compare with."
    words = [
        text.plural(count, f"case {one}", f"cases {many}")
        for verdict, one, many in (
            ("slower", "became slower", "became slower"),
            ("failed", "has no time any more", "have no time any more"),
            ("faster", "became faster", "became faster"),
            ("mended", "has a time again", "have a time again"),
        )
        if (count := newest.comparison.counts.get(verdict, 0))
    ]
    changed = text.join(words) or "no case is known to have changed"
    old, new = newest.comparison.old.commit.short, newest.comparison.new.commit.short
    return f"At {new}, compared with {old} before it, {changed}."


def markdown_address(history: History, site: Site) -> str:
    """Return the file of Markdown beside the page of that setup."""
    return site.page_address("compare", history.setup).removesuffix(".html") + ".md"


def newest_in_markdown(history: History, site: Site) -> str:
    """Return the newest commit of a setup against the one before; there are two."""
    return _newest(history, site).markdown


def _newest(history: History, site: Site) -> ShownComparison:
    old, new = history.snapshots[-2:]
    counted = _counted(old, new, site)
    view = _compared(old, new, site, counted, MAX_COMPARED_ROWS)
    return ShownComparison(
        "",
        view,
        counts_view(counted, MAX_COMPARED_ROWS),
        pair_address(old, new),
        pull_request_comment([ComparedSetup(view, counted)]),
    )


def _counted(old: Snapshot, new: Snapshot, site: Site) -> CountComparison:
    """Compare the counted work of two snapshots."""
    before, after = (
        CountedSnapshot(one, counts, site.rows(one) if counts else {})
        for one, counts in ((one, site.counts(one)) for one in (old, new))
    )
    return compare_counts(before, after, {})


def pair_address(old: Snapshot, new: Snapshot) -> str:
    """Two sides as the part of an address after ``#``."""
    sides = []
    for side in (old, new):
        parts = (side.commit.hash[:8], side.setup.machine, side.setup.environment)
        sides.append(",".join(quote(part, safe=_UNESCAPED) for part in parts))
    return f"a={sides[0]}&b={sides[1]}"


def setup_key(setup: Setup) -> str:
    """Short name of a setup in file names; it stays while others come and go."""
    named = "\0".join((setup.machine, setup.environment, *filter(None, [setup.branch])))
    return hashlib.sha256(named.encode()).hexdigest()[:10]


def index_stamp(site: Site) -> str:
    """Return a text that changes with what there is to choose from."""
    return repr([(setup, history.commits) for setup, history in site.measured.items()])


def index_script(site: Site) -> str:
    """Return what there is to choose from, and all rules and words of a comparison as data."""
    beyond = 100 * (SAME - 1)
    rules = {
        "same": SAME,
        "beyond": f"differ by {beyond:.0f} % or more",
        "within": f"within {beyond:.0f} %",
        "nothing": f"No time differs by {beyond:.0f} % or more.",
        "no_verdict": NO_VERDICT,
        "verdicts": COMPARISON_VERDICTS,
        "told": TOLD,
        "columns": [(column.name, column.page, column.is_number) for column in PAGE_COLUMNS],
        "untimed": {LETTERS[old] + LETTERS[new]: said for (old, new), said in UNTIMED.items()},
        "setup_labels": SETUP_LABELS,
        "setups_differ": SIDES_DIFFER,
        "uncommitted": UNCOMMITTED_NOTE,
        "statuses": {letter: text.status_label(status) for status, letter in LETTERS.items()},
        "replaced": REPLACED,
        "other_version": OTHER_VERSION,
        "counted": {
            "title": count_view.TITLE,
            "verdicts": COUNT_VERDICTS,
            "looks": count_view.COUNT_LOOKS,
            "totals": [
                (cost.name, cost.words, cost.tolerance, cost.slack)
                for cost in COSTS
                if cost not in RESOURCES
            ],
            "resources": [(cost.name, cost.words) for cost in RESOURCES],
            "most": MAX_COMPARED_ROWS,
            "verified": LETTERS["verified"],
            "lost": NOT_COUNTED,
            "order_dependent": ORDER_DEPENDENT,
            "no_counts_before": NO_COUNTS_BEFORE,
            "other_model": OTHER_MODEL,
            "other_target": OTHER_TARGET,
            "other_compiler": OTHER_COMPILER,
        },
        "setups": [
            {
                "key": setup_key(setup),
                "machine": setup.machine,
                "environment": setup.environment,
                "label": setup_label(setup),
                "in_script": _in_script(history),
                "commits": [(c.short, c.date, c.subject) for c in site.labels(history)],
            }
            for setup, history in site.measured.items()
        ],
    }
    return _script("index", [rules])


def cases_script(history: History, site: Site) -> str:
    """Return the labels of all cases of a setup, in the order of its snapshots' scripts."""
    return _script(
        "cases", [setup_key(history.setup.place), {"labels": [*map(case_words, history.names)]}]
    )


def cases_stamp(history: History, site: Site) -> str:
    """Return a text that changes with what ``cases_script`` is made from."""
    return history.digest_now


def snapshots_together(history: History) -> list[tuple[Snapshot, ...]]:
    """Return the snapshots of each script of a setup."""
    size = _in_script(history)
    return [
        history.snapshots[start : start + size] for start in range(0, len(history.snapshots), size)
    ]


def _in_script(history: History) -> int:
    return max(MAX_SCRIPT_CELLS // max(len(history.names), 1), 1)


def snapshots_script(
    address: str, history: History, snapshots: Sequence[Snapshot], site: Site
) -> str:
    """Return the times and speedups of all cases of a setup at some snapshots, and what these ran
    on.

    Four numbers for each case, one kind of all cases after the other: median, both ends of its
    interval, and the speedup, NaN where there is none (``pack_floats``). Statuses are one letter
    each; reasons are those of failures, and of disturbed times. What cases did on the device in
    software is by numbers that the script explains, as most cases did the same at all of its
    commits.
    """
    cases = site.table.history(history.setup, snapshots=snapshots)
    reasons = site.table.reasons(snapshots, FAILURES)
    counted = site.table.counted(snapshots)
    profiles = site.table.profiles(number for of in counted.values() for number in of.values())
    numbers = np.concatenate([cases.times, cases.speedups[:1]]).astype("<f4")
    is_time = np.array([name.is_time for name in cases.names], np.bool_)
    statuses = np.where(is_time[:, np.newaxis], cases.statuses, ABSENT)
    contents = {}
    for column, snapshot in enumerate(snapshots):
        letters = _STATUS_LETTERS[statuses[:, column]]
        if snapshot.superseded:
            for row in np.flatnonzero(cases.statuses[:, column] == ABSENT).tolist():
                if history.names[row].benchmark.asv_name in snapshot.superseded:
                    letters[row] = ord(LEFT_OUT)
        contents[snapshot.commit.hash[:8]] = {
            "status": letters.tobytes().decode("ascii"),
            "numbers": pack_floats(numbers[:, :, column]),
            "reasons": dict(
                sorted(
                    (history.rows_of[name], DISTURBED if reason is None else reason)
                    for name, reason in reasons.get(snapshot.id, {}).items()
                )
            ),
            "counts": {
                history.rows_of[name]: of_case[column]
                for name, of_case in counted.items()
                if column in of_case
            },
            "compilers": [name for name in snapshot.facts if is_of_a_compiler(name)],
            "uncommitted": paths_in_words(snapshot),
            "facts": _facts(snapshot.facts),
            "params": _facts(snapshot.params),
        }
    work = {number: _profile(counts) for number, counts in sorted(profiles.items())}
    return data_script(address, {"commits": contents, "work": work})


def _profile(counts: CaseCounts) -> dict[str, object]:
    """Return what decides whether counts compare, and all costs."""
    names = [cost.name for cost in RESOURCES]
    kernels = [
        kernel and {name: kernel.get(name, 0) for name in names} for kernel in counts.kernels
    ]
    return {
        "model": counts.model,
        "target": target_words(counts),
        "missing": counts.missing,
        "totals": {name: count for name, count in total_costs(counts).items() if count},
        # Without a linker on one side nothing is known.
        "kernels": None if None in kernels else kernels,
    }


def _facts(facts: Mapping[str, Value | None]) -> dict[str, tuple[str, str]]:
    """Label and value of the facts that can explain a change of times."""
    return {name: fact_words(name, facts[name]) for name in sorted(facts) if explains(name)}


def _script(function: str, arguments: list[object]) -> str:
    return f"gpubench.{function}(...{msgspec.json.encode(arguments).decode()});\n"


def digest(history: History, site: Site) -> str:
    """Return a text that changes with what the page shows."""
    return f"{stamp(history, site)}{history.digest_now}"


COMPARE_PAGE = Page("compare", "Compare", build, digest)
