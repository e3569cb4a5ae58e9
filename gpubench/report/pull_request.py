"""The comment of a pull request: a comparison as Markdown whose first line is the verdict.

A reviewer reads 30 lines at most: what changed, one row for each cause; what was not compared; how
the machine was; and the command that decides. Every case and every rule is folded below.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gpubench.analysis.count_changes import CaseLines, CountComparison, CountVerdict
from gpubench.analysis.counted_change import line_of_growth
from gpubench.analysis.differences import ComparisonVerdict, Difference
from gpubench.names import kernel_title
from gpubench.report import text
from gpubench.report.comparison_columns import (
    MARKDOWN_COLUMNS,
    MARKDOWN_HEAD,
    VERDICT_LOOKS,
    factor_words,
)
from gpubench.report.comparison_view import COMPARISON_RULE, ComparisonView, factor_in_words
from gpubench.report.count_view import (
    TITLE,
    CountRow,
    count_rows,
    counts_line,
    has_counts,
    hints_of_lines,
)
from gpubench.results import CaseName

MARKER = "<!-- gpubench compare -->"
"""First line of the Markdown: invisible, and lets a script find its own comment."""

MAX_LINES = 30
"""Lines of a comment that are not folded: what a reviewer reads."""

MAX_CAUSES = 6
"""Rows of the table of times; with ``MAX_GROWN`` and ``MAX_HINTS`` a comment has ``MAX_LINES``."""

MAX_GROWN = 3
"""Rows of the table of counts."""

MAX_HINTS = 1
"""Hints that stand below the counts; the others are folded."""

MAX_FOLDED = 50
"""Rows of a folded table; longer comments are refused by some hosts and read by nobody."""

_MAX_NAMED = 2
"""Implementations that the first line names of each verdict."""

_MARKUP = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|~#@!"} | {"\n": " ", "\r": " "})

_NUMBER_IN_TEXT = re.compile(r"[-+]?(?:\d[\d.,]*(?:e[-+]?\d+)?|nan|inf)\b", re.IGNORECASE)
"""What differs in the reasons of failures that have one cause: places and values."""

_BLANK_LINES = re.compile(r"\n{3,}")

_FIRST_WORDS: tuple[tuple[ComparisonVerdict | CountVerdict, bool | None, str], ...] = (
    ("failed", None, "Wrong or failed"),
    ("slower", True, "Slower"),
    ("grew", None, "More counted work"),
    ("lost", None, "Counts lost"),
    ("slower", False, "Slower, not sure"),
    ("suspect", None, "Undecided suspects"),
    ("faster", True, "Faster"),
    ("faster", False, "Faster, not sure"),
    ("improved", None, "Less counted work"),
    ("mended", None, "Fixed"),
)
"""What the first line says, the worst first; the flag is ``is_sure``, ``None`` for any."""

_COUNTS_SHOWN: tuple[CountVerdict, ...] = ("grew", "lost", "improved")
"""Verdicts of the open table of counts."""


@dataclass(frozen=True, slots=True)
class ComparedSetup:
    """What a comment says of one machine and environment."""

    view: ComparisonView
    counted: CountComparison | None = None
    """``None`` where counts were not looked for."""
    lines: Mapping[CaseName, CaseLines] = field(default_factory=dict)
    """Of cases of which a count grew."""

    @property
    def hints(self) -> list[str]:
        """What costs more than it must in these cases."""
        return hints_of_lines(line for _, after in self.lines.values() for line in after)


def pull_request_comment(setups: Sequence[ComparedSetup]) -> str:
    """Write the comment: the first setup open, the others folded; what results say is escaped."""
    lines = [MARKER, _verdict(setups), ""]
    lines += [*_open_lines(setups[0]), "", *_folded("Every case, and the rules", setups[0])]
    for other in setups[1:]:
        lines += _folded(f"{escaped(other.view.title)}: {_verdict([other])}", other, whole=True)
    return _BLANK_LINES.sub("\n\n", "\n".join([*lines, ""]))


def _verdict(setups: Sequence[ComparedSetup]) -> str:
    """Return the first line: the worst in bold, then what else was found."""
    first, *others = [*_findings(setups)] or [_nothing_found(setups)]
    return " ".join([f"**{first}.**", *(f"{words}." for words in others)])


def _findings(setups: Sequence[ComparedSetup]) -> Iterator[str]:
    rows = [row for setup in setups for row in setup.view.rows]
    counts = [row for setup in setups if setup.counted for row in count_rows(setup.counted)]
    for verdict, is_sure, words in _FIRST_WORDS:
        if cases := [r for r in rows if r.verdict == verdict and is_sure in (None, r.is_sure)]:
            yield f"{words}: {_cases_in_words(cases)}"
        if changed := [row for row in counts if row.difference.verdict == verdict]:
            yield f"{words}: {_counts_in_words(changed)}"


def _cases_in_words(rows: Sequence[Difference]) -> str:
    """Return ``12 cases of add numba, at most 1.50x slower``."""
    titles = dict.fromkeys(_title(row.name) for row in rows)
    named = [*titles][:_MAX_NAMED]
    named += [f"{len(titles) - len(named)} more"] if len(titles) > len(named) else []
    words = f"{text.plural(len(rows), 'case')} of {escaped(text.join(named))}"
    worst = max((row for row in rows if row.ratio), key=_size, default=None)
    if worst is None:
        return words
    at_most = "at most " if len(rows) > 1 else ""
    return f"{words}, {at_most}{factor_words(worst)}"


def _counts_in_words(rows: Sequence[CountRow]) -> str:
    """Return ``global load sectors of add numba_cuda 128 → 1,024 (8.00x), and 2 counts more``."""
    first = max(rows, key=_factor)
    words = escaped(_title(first.difference.name))
    if first.count:
        words = f"{first.count} of {words}, {first.before} → {first.after}"
    more = f", and {text.plural(len(rows) - 1, 'count')} more" if len(rows) > 1 else ""
    return f"{words}{more}"


def _nothing_found(setups: Sequence[ComparedSetup]) -> str:
    """Say that nothing changed as far as it was seen, or that nothing was seen."""
    views = [setup.view for setup in setups]
    counted = sum(setup.counted.compared for setup in setups if setup.counted)
    unclear, same = (sum(v.counts.get(word, 0) for v in views) for word in ("unclear", "same"))
    if not any(view.is_compared for view in views) and not counted:
        lone = sum(view.only_old.count + view.only_new.count for view in views)
        why = f"; {text.plural(lone, 'case')} on one side only" if lone else ""
        return f"Nothing was compared: no case has a result on both sides{why}"
    equal = f"{text.plural(counted, 'case')} with equal counts" if counted else ""
    times = [
        f"{count:,} {words}" for count, words in ((same, "the same"), (unclear, "unclear")) if count
    ]
    is_busy = unclear and any(view.machine_state for view in views)
    busy = ", and the machine was busy" if is_busy else ""
    return f"No change was found{busy}: {text.join(filter(None, (*times, equal)))}"


def _open_lines(setup: ComparedSetup) -> Iterator[str]:
    """Yield what stands open: title, tables, and a list of what a reader has to know."""
    view = setup.view
    yield f"{escaped(view.title)}. {view.counts_line.capitalize()}."
    causes = group_by_cause([row for row in view.rows if row.verdict in VERDICT_LOOKS])
    if causes:
        yield from ("", *MARKDOWN_HEAD)
        yield from map(_cause_row, causes[:MAX_CAUSES])
    grown = _changed_counts(setup)
    if grown:
        yield from ("", *_COUNT_HEAD, *(_count_row(rows, setup) for rows in grown[:MAX_GROWN]))
    yield ""
    yield from (f"- {words}" for words in _notes(setup, len(causes), len(grown)))


def _notes(setup: ComparedSetup, causes: int, grown: int) -> Iterator[str]:
    """Yield what was left out, not compared or disturbed, and how to decide: a line each."""
    view = setup.view
    left_out = [
        text.plural(number - most, f"row of {what}", f"rows of {what}")
        for number, most, what in ((causes, MAX_CAUSES, "times"), (grown, MAX_GROWN, "counts"))
        if number > most
    ]
    if left_out:
        yield f"More rows are folded below: {text.join(left_out)}."
    not_compared = [
        *(escaped(words) for words in view.not_compared),
        *(
            f"{text.plural(cases.count, 'case')} only {where}, such as {escaped(cases.examples[0])}"
            for where, cases in (("before", view.only_old), ("after", view.only_new))
            if cases.count
        ),
    ]
    unjudged = Counter(
        row.note
        for row in (count_rows(setup.counted) if setup.counted else ())
        if row.difference.verdict == "not judged"
    )
    not_compared += [
        f"{text.plural(count, 'count')} ({escaped(note)})" for note, count in unjudged.items()
    ]
    if not_compared:
        yield f"Not compared: {'; '.join(not_compared)}."
    yield from (f"Hint: {escaped(hint)}" for hint in setup.hints[:MAX_HINTS])
    if view.remarks:
        yield escaped(" ".join(view.remarks))
    if view.machine_state:
        yield f"The machine: {escaped('; '.join(view.machine_state))}."
    if view.next_steps:
        yield " ".join(view.next_steps)
    if view.to_decide:
        yield f"To decide what is unclear: `{view.to_decide}`."


def _folded(summary: str, setup: ComparedSetup, *, whole: bool = False) -> Iterator[str]:
    """Yield every row and every rule below a line that unfolds them; with ``whole`` also what the
    first setup shows open."""
    view = setup.view
    yield f"<details><summary>{summary}</summary>"
    yield ""
    if whole:
        yield from (*_open_lines(setup), "")
    if view.rows:
        yield from (*MARKDOWN_HEAD, *map(_difference_row, view.rows[:MAX_FOLDED]), "")
    left_out = view.more + len(view.rows[MAX_FOLDED:])
    if left_out:
        yield from (f"and {left_out:,} more", "")
    if setup.counted and has_counts(setup.counted):
        rows = count_rows(setup.counted)
        yield from (f"#### {TITLE}", "", f"**{counts_line(setup.counted)}**", "")
        if rows:
            shown = (_count_row([row], setup) for row in rows[:MAX_FOLDED])
            yield from (*_COUNT_HEAD, *shown, "")
        if len(rows) > MAX_FOLDED:
            yield from (f"and {len(rows) - MAX_FOLDED:,} more", "")
    yield from (f"- {escaped(hint)}" for hint in setup.hints[MAX_HINTS:])
    yield from (f"- {escaped(f.label)}: {escaped(f.old)} → {escaped(f.new)}" for f in view.facts)
    yield ""
    is_all_in_turn = bool(view.method) and all(row.basis in (None, "in turn") for row in view.rows)
    rule = "" if is_all_in_turn else COMPARISON_RULE
    yield " ".join(filter(None, (rule, view.method, factor_in_words(view.factor))))
    yield from ("", "</details>", "")


def group_by_cause(rows: Sequence[Difference]) -> list[list[Difference]]:
    """Group cases that probably have one cause, in the order of their first ones: cases of one
    implementation that changed the same way, or failed for one reason but for numbers in it."""
    groups: dict[tuple[object, ...], list[Difference]] = {}
    for row in rows:
        reason = _NUMBER_IN_TEXT.sub("#", row.note) if row.ratio is None else ""
        groups.setdefault((_title(row.name), row.verdict, row.is_sure, reason), []).append(row)
    return [sorted(group, key=_size, reverse=True) for group in groups.values()]


def _size(row: Difference) -> float:
    return row.ratio.factor if row.ratio else 1.0


def _title(name: CaseName) -> str:
    return f"{kernel_title(name.suite, name.kernel)} {name.implementation}"


def _cause_row(rows: Sequence[Difference]) -> str:
    """Return the row of the largest change of a cause, with how many cases it has, and the least
    change."""
    first, least = rows[0], rows[-1]
    more = {"case": f" and {text.plural(len(rows) - 1, 'case')} more"} if len(rows) > 1 else {}
    if text.factor(first.ratio) != text.factor(least.ratio):
        more["factor"] = f"; least: {text.factor(least.ratio)}"
    return _difference_row(first, more)


def _difference_row(row: Difference, more: Mapping[str, str] | None = None) -> str:
    cells = (
        (escaped(column.words(row)) if column.has_foreign_words else column.words(row))
        + (more or {}).get(column.name, "")
        for column in MARKDOWN_COLUMNS
    )
    return f"| {' | '.join(cells)} |"


_COUNT_HEAD = (
    "| | case | count | before | after | change | most of it at | note |",
    "|---|---|---|--:|--:|--:|---|---|",
)


def _changed_counts(setup: ComparedSetup) -> list[list[CountRow]]:
    """Group counts that changed by implementation and count, the largest change of each first."""
    groups: dict[tuple[object, ...], list[CountRow]] = {}
    for row in count_rows(setup.counted) if setup.counted else ():
        item = row.difference
        if item.verdict in _COUNTS_SHOWN:
            reason = _NUMBER_IN_TEXT.sub("#", item.note)
            key = (_title(item.name), item.verdict, row.count, reason)
            groups.setdefault(key, []).append(row)
    return [sorted(rows, key=_factor, reverse=True) for rows in groups.values()]


def _factor(row: CountRow) -> float:
    """Return by how much a count changed, at least 1; a count of 0 counts as 1."""
    pair = row.difference.pair
    low, high = sorted((pair.old, pair.new)) if pair else (0, 0)
    return max(high, 1) / max(low, 1)


def _count_row(rows: Sequence[CountRow], setup: ComparedSetup) -> str:
    """Return the row of the largest change of some, with how many cases there are, and the line."""
    row = rows[0]
    more = f" and {text.plural(len(rows) - 1, 'case')} more" if len(rows) > 1 else ""
    place = escaped(_place_of(row, setup.lines.get(row.difference.name)))
    cells = (
        row.verdict, escaped(row.case) + more, row.count, row.before, row.after, row.change,
        place, escaped(row.note),
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _place_of(row: CountRow, lines: CaseLines | None) -> str:
    """Return the line that has most of what grew; empty where that is not known."""
    pair = row.difference.pair
    if pair is None or lines is None or row.difference.verdict != "grew":
        return ""
    line = line_of_growth(pair, *lines)
    return f"{line.file}:{line.line}" if line else ""


def escaped(value: str) -> str:
    """Return text that Markdown takes as it is, mentions and table cells included."""
    return value.translate(_MARKUP)
