"""Changes that a project knows of and accepts: no alarm of a comparison, until the next change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from gpubench.analysis.differences import ComparisonVerdict, Difference, SnapshotComparison
from gpubench.analysis.shared import judge_history
from gpubench.results import CaseName, Commit, Table
from gpubench.results.acknowledgement import Acknowledgement, find_acknowledgement


def without_known_alarms(comparison: SnapshotComparison, table: Table) -> SnapshotComparison:
    """Return a comparison whose slower or failing cases are no alarm where the project knows of
    the change.

    ``table`` holds the newer side. Its history has the commit of the entry after the older side,
    and no slower step or failure between the two that nobody knows of.
    """
    alarms = [one.name for one in comparison.differences if _is_alarm(one)]
    entries = [one for one in table.acknowledged if any(map(one.covers, alarms))]
    if not entries:
        return comparison
    setup = comparison.new.setup
    names = [name for name in alarms if any(one.covers(name) for one in entries)]
    rows = (one.new for one in comparison.differences if one.name in names)
    baselines = [row.baseline for row in rows if row and row.baseline]
    history = table.history(setup, [*dict.fromkeys([*names, *baselines])])
    judged = judge_history(lambda: [history], threshold=table.threshold, is_rate=table.is_rate)
    worse: dict[CaseName, list[int]] = defaultdict(list)
    for name, changes in judged.every.items():
        worse[name] += [change.after for change in changes if change.slower]
    for status in judged.statuses:
        if status.is_worse:
            worse[status.name].append(status.after)
    ends = comparison.old.commit.hash, comparison.new.commit.hash
    known = {
        name: entry
        for name in names
        if (entry := _entry_between(entries, name, history.commits, ends, worse[name]))
    }
    differences = tuple(_without_alarm(one, known.get(one.name)) for one in comparison.differences)
    return replace(comparison, differences=differences)


def _entry_between(
    entries: Sequence[Acknowledgement],
    name: CaseName,
    commits: Sequence[Commit],
    ends: tuple[str, str],
    worse: Sequence[int],
) -> Acknowledgement | None:
    """Return the entry that explains a case that is worse; ``None`` where it became worse at
    another commit too. ``worse`` has the places of the history where it did."""
    hashes = [commit.hash for commit in commits]
    between = [one for one in entries if one.covers(name) and one.is_between(commits, *ends)]
    if not between:
        return None
    first, last = (hashes.index(end) for end in ends)
    is_new = any(
        first < place <= last and find_acknowledgement(between, name, commits, place) is None
        for place in worse
    )
    return None if is_new else between[-1]


def _without_alarm(item: Difference, entry: Acknowledgement | None) -> Difference:
    if entry is None or not _is_alarm(item):
        return item
    verdict: ComparisonVerdict = "not compared" if item.verdict == "failed" else item.verdict
    note = "; ".join(filter(None, (item.note, str(entry))))
    return replace(item, verdict=verdict, is_sure=False, note=note)


def _is_alarm(item: Difference) -> bool:
    return item.verdict == "failed" or (item.verdict == "slower" and item.is_sure)
