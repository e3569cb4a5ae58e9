"""Names that left and like ones that came: which `was:` line would keep their history.

Two suites, kernels or implementations are alike by what they measure, by their cases and by their
names. The version of a benchmark tells what it measures: the function and its arrays, without a
name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import product
from typing import TypeVar

from gpubench.names import parse_identity
from gpubench.results import CaseName, Row

MIN_SHARE_OF_CASES = 0.5
"""Share of the cases of both that have the same values: fewer are another kernel."""

MIN_LIKENESS = 0.6
"""Of two names, from which ``difflib`` calls them close; less is enough for the only pair."""

K = TypeVar("K", bound=Hashable)

Values = tuple[str, ...]
"""Values of a case's axes, sorted: whatever the axes are called."""


@dataclass(frozen=True, slots=True)
class Rename:
    """A name that left, and the like one that came."""

    old: str
    place: str
    """Under which key of the suite `was:` belongs; empty for the suite itself."""
    suite: str
    """As it is called now."""
    cases: int
    """Cases that left under the old name."""

    @property
    def words(self) -> str:
        """Return the proposal in a sentence without its point."""
        where = f"under `{self.place}:` of the suite {self.suite}"
        if not self.place:
            where = f"at the top of the suite {self.suite}"
        cases = "its case" if self.cases == 1 else f"its {self.cases:,} cases"
        return f"{self.old} left and a like name came: `was: {self.old}` {where} joins {cases}"


@dataclass(frozen=True, slots=True)
class _Group:
    """What left or came under one name."""

    names: frozenset[CaseName]
    values: frozenset[Values]
    versions: frozenset[str]


def find_renames(old: Mapping[CaseName, Row], new: Mapping[CaseName, Row]) -> list[Rename]:
    """Find names of ``old`` that are not in ``new``, each with the like one that came."""
    gone, came = (
        {name: row for name, row in rows.items() if name not in others and _is_of_a_suite(row)}
        for rows, others in ((old, new), (new, old))
    )
    if not (gone and came):
        return []
    return [*dict.fromkeys(_renames(gone, came, old.keys(), new.keys()))]


def _is_of_a_suite(row: Row) -> bool:
    return row.name.is_time and not row.is_alone


def _renames(
    gone: Mapping[CaseName, Row],
    came: Mapping[CaseName, Row],
    old: Collection[CaseName],
    new: Collection[CaseName],
) -> Iterator[Rename]:
    """Yield renamed suites and kernels, and the implementations and axes of those that stayed."""
    old_kernels, new_kernels = ({_kernel(name) for name in side} for side in (old, new))
    old_suites, new_suites = ({name.suite for name in side} for side in (old, new))
    left = {key: one for key, one in _groups(gone, _kernel).items() if key not in new_kernels}
    come = {key: one for key, one in _groups(came, _kernel).items() if key not in old_kernels}
    kernels = {key: key for key in old_kernels & new_kernels}
    for before, after in _matched(left, come, lambda key: key[1]).items():
        (suite, kernel), (suite_now, kernel_now) = before, after
        cases = len(left[before].names)
        if suite != suite_now:
            if suite in new_suites or suite_now in old_suites:
                continue  # a kernel that moved to another suite is no `was:`
            yield Rename(suite, "", suite_now, cases)
        if kernel != kernel_now:
            yield Rename(kernel, f"kernels: {kernel_now}", suite_now, cases)
        kernels[before] = after
    for before, after in kernels.items():
        yield from _inside(before, after, gone, came, old, new)


def _inside(
    before: tuple[str, str],
    after: tuple[str, str],
    gone: Mapping[CaseName, Row],
    came: Mapping[CaseName, Row],
    old: Collection[CaseName],
    new: Collection[CaseName],
) -> Iterator[Rename]:
    """Yield renamed implementations of a kernel, and its renamed axes."""
    was, now = (
        {name.implementation for name in side if _kernel(name) == key}
        for side, key in ((old, before), (new, after))
    )
    left, come = (
        _groups({n: row for n, row in side.items() if _kernel(n) == key}, _implementation)
        for side, key in ((gone, before), (came, after))
    )
    suite, kernel = after
    only_left = {key: one for key, one in left.items() if key not in now}
    only_come = {key: one for key, one in come.items() if key not in was}
    for name, name_now in _matched(only_left, only_come, str).items():
        place = f"kernels: {kernel}: implementations: {name_now}"
        yield Rename(name, place, suite, len(left[name].names))
    of_all = [[*side.values()] for side in (left, come)]
    axes, axes_now = ({axis for one in side for axis in _axes(one)} for side in of_all)
    if len(axes - axes_now) == len(axes_now - axes) == 1:
        values, values_now = (frozenset[Values]().union(*(g.values for g in s)) for s in of_all)
        if _shared(values, values_now) >= MIN_SHARE_OF_CASES:
            (axis,), (axis_now,) = axes - axes_now, axes_now - axes
            cases = sum(len(one.names) for one in of_all[0])
            yield Rename(axis, f"kernels: {kernel}: ...: {axis_now}", suite, cases)


def _matched(
    left: Mapping[K, _Group], come: Mapping[K, _Group], name_of: Callable[[K], str]
) -> dict[K, K]:
    """Pair what left with what came, the likest first."""
    is_only_pair = len(left) == len(come) == 1
    scored = []
    for before, after in product(left, come):
        shared = _shared(left[before].values, come[after].values)
        is_same = bool(left[before].versions & come[after].versions)
        likeness = SequenceMatcher(None, name_of(before), name_of(after)).ratio()
        if shared >= MIN_SHARE_OF_CASES and (is_same or is_only_pair or likeness >= MIN_LIKENESS):
            scored.append((is_same, likeness + shared, before, after))
    scored.sort(key=lambda each: each[:2], reverse=True)
    pairs: dict[K, K] = {}
    for _, _, before, after in scored:
        if before not in pairs and after not in pairs.values():
            pairs[before] = after
    return pairs


def _groups(rows: Mapping[CaseName, Row], key: Callable[[CaseName], K]) -> dict[K, _Group]:
    names: dict[K, list[CaseName]] = {}
    for name in rows:
        names.setdefault(key(name), []).append(name)
    return {
        each: _Group(
            frozenset(of_key),
            frozenset(map(_values, of_key)),
            frozenset(version for name in of_key if (version := rows[name].version)),
        )
        for each, of_key in names.items()
    }


def _kernel(name: CaseName) -> tuple[str, str]:
    return name.suite, name.kernel


def _implementation(name: CaseName) -> str:
    return name.implementation


def _values(name: CaseName) -> Values:
    return tuple(sorted(map(str, parse_identity(name.case).values())))


def _axes(group: _Group) -> Iterable[str]:
    return {axis for name in group.names for axis in parse_identity(name.case)}


def _shared(one: frozenset[Values], other: frozenset[Values]) -> float:
    return len(one & other) / len(one | other)
