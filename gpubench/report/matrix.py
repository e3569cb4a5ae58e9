"""The overview's table: kernels by implementations, or by backends where those are too many."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpubench.analysis.baseline import Compared
from gpubench.analysis.headline import Headline, KernelNow, headline, sizes_of
from gpubench.analysis.history import SetupHistory
from gpubench.analysis.speedup import Speedup
from gpubench.analysis.tally import count, worst_status
from gpubench.report import text
from gpubench.report.findings import counts_in_words
from gpubench.report.site import CommitLabel, Link, Site, commit_label, kernel_label
from gpubench.results import Status

MOST_COLUMNS = 6
"""Implementations that have a column each; more of them share one for each backend."""

_BASELINES = ""
"""Key of the column of baselines, where backends are columns."""


@dataclass(frozen=True, slots=True)
class Column:
    """One implementation, or those of one backend."""

    name: str
    """Of the implementation; of several in one column, of the most common."""
    is_baseline: bool
    """Whether it holds baselines."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One implementation of one kernel; in a column of several, the fastest of them."""

    speedup: Speedup | None
    status: Status | None
    """What stands there where there is no speedup; ``None``: not measured."""
    note: str
    """What is not as the column and the row say: name, size, what is missing, how many flaws."""
    is_baseline: bool = False
    """Whether the row's ``baseline_seconds`` stand there."""


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel."""

    kernel: Link
    commit: CommitLabel | None
    """Where it was last measured, if not at the page's commit."""
    size: str
    """The size that most of its cells are of; empty where it has none."""
    baseline_seconds: float | None
    """Time that the speedups are against, else the baseline's own at its largest size."""
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Kernels and what stands for each of their implementations."""

    columns: tuple[Column, ...] = ()
    by_backend: bool = False
    """Whether implementations share columns."""
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class _Implementation:
    """One implementation of one kernel, as it was last measured."""

    cases: tuple[Compared, ...]
    found: Headline

    @property
    def name(self) -> str:
        return self.found.implementation

    @property
    def is_baseline(self) -> bool:
        return any(compared.is_baseline for compared in self.cases)

    @property
    def backend(self) -> str:
        """Key of its column among backends; its own name without a record."""
        record = self.cases[0].outcome.record
        return _BASELINES if self.is_baseline else (record and record.backend) or self.name

    @property
    def rank(self) -> tuple[bool, float]:
        """Orders implementations that share a column: the fastest is the largest."""
        return self.found.speedup is not None, self.found.speedup.value if self.found.speedup else 0


def build(kernels: Iterable[KernelNow], history: SetupHistory, site: Site) -> Matrix:
    """The table of one setup."""
    rows = [(now, _implementations(now)) for now in kernels]
    names = {found.name for _, own in rows for found in own}
    by_backend = len(names) > MOST_COLUMNS
    shared = [(now, _by_column(own, by_backend)) for now, own in rows]
    columns = _columns([own for _, own in shared])
    return Matrix(
        columns=tuple(columns.values()),
        by_backend=by_backend,
        rows=tuple(_row(now, own, columns, history, site) for now, own in shared),
    )


def headlines(now: KernelNow) -> list[Headline]:
    """What stands for each implementation of a kernel, by name."""
    return [found.found for found in _implementations(now)]


def _implementations(now: KernelNow) -> list[_Implementation]:
    cases: dict[str, list[Compared]] = defaultdict(list)
    for compared in now.cases.values():
        cases[compared.outcome.name.implementation].append(compared)
    return [_Implementation(tuple(own), headline(own, name)) for name, own in sorted(cases.items())]


_Columns = dict[str, list[_Implementation]]


def _by_column(own: Iterable[_Implementation], by_backend: bool) -> _Columns:
    columns: _Columns = defaultdict(list)
    for found in own:
        columns[found.backend if by_backend else found.name].append(found)
    return columns


def _columns(rows: Iterable[_Columns]) -> dict[str, Column]:
    """Each column by its key: baselines first, then those with a speedup, each by name."""
    members: _Columns = defaultdict(list)
    for row in rows:
        for key, own in row.items():
            members[key] += own
    columns = {key: _column(own) for key, own in members.items()}

    def place(key: str) -> tuple[bool, bool, str]:
        empty = not any(found.found.speedup for found in members[key])
        return not columns[key].is_baseline, empty, columns[key].name

    return {key: columns[key] for key in sorted(columns, key=place)}


def _column(members: Sequence[_Implementation]) -> Column:
    names = Counter(found.name for found in members)
    return Column(names.most_common(1)[0][0], any(found.is_baseline for found in members))


def _row(
    now: KernelNow, own: _Columns, columns: Mapping[str, Column], history: SetupHistory, site: Site
) -> Row:
    found = [each for several in own.values() for each in several]
    size = _common_size(found)
    return Row(
        kernel=Link(kernel_label(now.key), site.address(history.setup, now.key)),
        commit=commit_label(now.commit) if now.commit != history.latest else None,
        size=size,
        baseline_seconds=_baseline_seconds(found),
        cells=tuple(_cell(own.get(key, ()), column, size) for key, column in columns.items()),
    )


def _baseline_seconds(own: Iterable[_Implementation]) -> float | None:
    cases = [(found, compared) for found in own for compared in found.found.cases]
    against = [compared.baseline for _, compared in cases if compared.baseline]
    against += [compared.outcome for found, compared in cases if found.is_baseline]
    return next((outcome.timing.median for outcome in against if outcome.timing), None)


def _common_size(own: Iterable[_Implementation]) -> str:
    sizes = Counter(_size_words(found.found.cases[0]) for found in own if found.found.cases)
    return sizes.most_common(1)[0][0] if sizes else ""


def _size_words(compared: Compared) -> str:
    sizes = sizes_of(compared)
    return ", ".join(f"{name} = {text.whole(value)}" for name, value in sizes.items())


def _cell(own: Sequence[_Implementation], column: Column, size: str) -> Cell:
    if not own:
        return Cell(None, None, "")
    found = max(own, key=lambda each: each.rank)
    name = found.name if found.name != column.name else ""
    if found.is_baseline and any(each.outcome.timing for each in found.found.cases):
        return Cell(None, "ok", _note(name, _flaws(found)), is_baseline=True)
    if found.found.speedup:
        own_size = _size_words(found.found.cases[0])
        note = _note(name, own_size if own_size != size else "", _flaws(found))
        return Cell(found.found.speedup, "ok", note)
    worst = worst_status(found.cases)
    if worst == "ok":
        missing = next((each.missing for each in found.cases if each.missing), None)
        return Cell(None, None, _note(name, missing or "its kernel time was not measured"))
    return Cell(None, worst, _note(name, _flaws(found, said=worst)))


def _note(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _flaws(found: _Implementation, said: Status | None = None) -> str:
    """Cases without a time; of those whose status is said already, how many where several."""
    flaws = {k: v for k, v in count(found.cases).items() if k in text.STATUS_LABELS}
    if said and set(flaws) == {said}:
        number = flaws[said]
        return text.plural(number, "case") if number > 1 else ""
    return counts_in_words(flaws)
