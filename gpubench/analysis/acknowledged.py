"""Changes that a project knows of and accepts: no alarm of a comparison, until the next change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpubench.analysis.changes import Change
from gpubench.analysis.comparison import Difference, SnapshotComparison
from gpubench.analysis.shared import judge_history
from gpubench.results import CaseName, Commit, Table
from gpubench.results.acknowledgement import Acknowledgement, find_acknowledgement


def without_known_alarms(comparison: SnapshotComparison, table: Table) -> SnapshotComparison:
    """Return a comparison whose slower cases are no alarm where the project knows of the change.

    ``table`` holds the newer side. Its history has the commit of the entry after the older side,
    and no slower step between the two that nobody knows of.
    """
    alarms = [one.name for one in comparison.differences if one.verdict == "slower" and one.is_sure]
    entries = [one for one in table.acknowledged if any(map(one.covers, alarms))]
    if not entries:
        return comparison
    setup = comparison.new.setup
    names = [name for name in alarms if any(one.covers(name) for one in entries)]
    rows = (one.new for one in comparison.differences if one.name in names)
    baselines = [row.baseline for row in rows if row and row.baseline]
    history = table.history(setup, [*dict.fromkeys([*names, *baselines])])
    changes = judge_history(lambda: [history], threshold=table.threshold).every
    ends = comparison.old.commit.hash, comparison.new.commit.hash
    known = {
        name: entry
        for name in names
        if (entry := _entry_between(entries, name, history.commits, ends, changes.get(name, ())))
    }
    differences = tuple(_without_alarm(one, known.get(one.name)) for one in comparison.differences)
    return replace(comparison, differences=differences)


def _entry_between(
    entries: Sequence[Acknowledgement],
    name: CaseName,
    commits: Sequence[Commit],
    ends: tuple[str, str],
    changes: Sequence[Change],
) -> Acknowledgement | None:
    """Return the entry that explains a slower case; ``None`` where another step does too."""
    hashes = [commit.hash for commit in commits]
    between = [one for one in entries if one.covers(name) and one.is_between(commits, *ends)]
    if not between:
        return None
    first, last = (hashes.index(end) for end in ends)
    is_new = any(
        change.slower
        and first < change.after <= last
        and find_acknowledgement(between, name, commits, change.after) is None
        for change in changes
    )
    return None if is_new else between[-1]


def _without_alarm(item: Difference, entry: Acknowledgement | None) -> Difference:
    if entry is None or item.verdict != "slower":
        return item
    return replace(item, is_sure=False, note="; ".join(filter(None, (item.note, str(entry)))))
