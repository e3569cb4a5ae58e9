"""Pairs of benchmarks that an asv project already runs: its stored values as ours are.

A pair becomes a kernel with two implementations, ``baseline`` and ``candidate``. Their cases are
matched by the names and values of their parameters; a candidate may have parameters that its
baseline lacks, as a block shape.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from gpubench.errors import did_you_mean
from gpubench.names import BenchmarkName, Value, format_identity, format_value, parse_identity
from gpubench.record import CaseRecord
from gpubench.results.asv_files import Described, is_text
from gpubench.results.model import CaseName, Pair, Problem

BASELINE, CANDIDATE = "baseline", "candidate"
"""Names of the two implementations."""

_NO_TIME = ("track", "mem", "peakmem")
"""Beginnings of benchmarks that measure something else."""


@dataclass(frozen=True, slots=True)
class Roles:
    """What stored benchmarks are in pairs."""

    places: Mapping[str, tuple[BenchmarkName, ...]] = field(default_factory=dict)
    """Names in pairs by asv's name; one benchmark may be in several pairs."""
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the parameters, where asv's ``benchmarks.json`` tells them."""

    def identities(self, asv_name: str, parameters: Any) -> tuple[str, ...]:
        """Identity of each case from the values that a result file stores as their repr."""
        stored = tuple(map(tuple, parameters or ()))
        names = self.parameters.get(asv_name, ())
        if len(names) != len(stored):
            names = tuple(f"param{i}" for i in range(1, len(stored) + 1))
        return _identities(names, stored)


@lru_cache(maxsize=2**12)
def _identities(names: tuple[str, ...], stored: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    values = [[_value(text) for text in texts] for texts in stored]
    return tuple(
        format_identity(dict(zip(names, case, strict=True))) for case in itertools.product(*values)
    )


def roles_of(pairs: Iterable[Pair], described: Mapping[str, Described]) -> Roles:
    """Roles of the benchmarks that pairs name."""
    places: dict[str, list[BenchmarkName]] = defaultdict(list)
    for pair in pairs:
        places[pair.baseline].append(_place(pair, BASELINE))
        places[pair.candidate].append(_place(pair, CANDIDATE))
    parameters = {
        name: tuple(map(_word, described[name].param_names)) for name in places if name in described
    }
    return Roles({name: tuple(names) for name, names in places.items()}, parameters)


@dataclass(frozen=True, slots=True)
class Partner:
    """A case's place in a pair."""

    pair: Pair
    case: str | None
    """Identity of its baseline's case; ``None`` for the baseline itself."""

    @property
    def bench(self) -> str:
        """What ``asv run --bench`` takes for both sides: a regular expression."""
        return f"'^({'|'.join(map(re.escape, (self.pair.baseline, self.pair.candidate)))})'"

    def record(self, case: str) -> CaseRecord:
        """Stands for the record that a pair has none of: names the baseline of a candidate."""
        if self.case is None:
            return CaseRecord(self.pair.baseline, case, "ok", "", title=self.pair.baseline)
        return CaseRecord(
            self.pair.candidate,
            case,
            "ok",
            "",
            title=self.pair.candidate,
            baseline_benchmark=_place(self.pair, BASELINE).asv_name,
            baseline_case=self.case,
        )


def partners(names: Iterable[CaseName], pairs: Sequence[Pair]) -> dict[CaseName, Partner]:
    """Places of those cases that are of pairs."""
    places: dict[CaseName, Partner] = {}
    by_kernel: dict[tuple[str, str], list[CaseName]] = defaultdict(list)
    for name in names if pairs else ():
        by_kernel[name.suite, name.kernel].append(name)
    for pair in pairs:
        cases = by_kernel.get((pair.suite, pair.name), [])
        baselines = Baselines(name.case for name in cases if name.implementation == BASELINE)
        for name in cases:
            is_candidate = name.implementation == CANDIDATE
            baseline = baselines.fitting(name.case) if is_candidate else None
            if is_candidate and baseline is None:
                baseline = name.case  # which is said to be missing
            places[name] = Partner(pair, baseline)
    return places


def unfit(
    pairs: Iterable[Pair], seen: Collection[BenchmarkName], described: Mapping[str, Described]
) -> Iterator[Problem]:
    """Pairs whose benchmarks have no stored time, with what may have been meant."""
    for pair in pairs:
        for role, name in ((BASELINE, pair.baseline), (CANDIDATE, pair.candidate)):
            if not _is_time(name, described):
                message = f"its {role} {name!r} measures no time; a pair is of two time benchmarks"
            elif _place(pair, role) not in seen:
                hint = did_you_mean(name, described) or "; run `asv run`"
                message = f"no result file has its {role} {name!r}{hint}"
            else:
                continue
            yield Problem(f"pair {pair.suite}.{pair.name}", message)


def _place(pair: Pair, implementation: str) -> BenchmarkName:
    return BenchmarkName(pair.suite, pair.name, implementation, "kernel")


def _value(text: str) -> str:
    """A parameter's value inside an identity: text that reads as a number keeps its quotes."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return _word(text)
    if isinstance(value, str) and is_text(value):
        plain = _word(value)
        return plain if isinstance(parse_identity(f"x={plain}")["x"], str) else _word(text)
    return format_value(value) if isinstance(value, bool | int | float) else _word(text)


def _word(text: str) -> str:
    """Text without blanks, which separate the parts of an identity."""
    return re.sub(r"\s+", "\N{OPEN BOX}", text)


class Baselines:
    """Cases of a baseline, looked up by the values that a candidate shares with them."""

    def __init__(self, cases: Iterable[str]) -> None:
        self._cases = {_values(case): case for case in cases}
        names = {frozenset(name for name, _ in values) for values in self._cases}
        self._names = sorted(names, key=lambda names: (-len(names), sorted(names)))

    def fitting(self, case: str) -> str | None:
        """The case with the most values, all of which the other case has too."""
        values = _values(case)
        if values in self._cases:
            return self._cases[values]
        shared = (frozenset(v for v in values if v[0] in names) for names in self._names)
        return next((self._cases[part] for part in shared if part in self._cases), None)


@lru_cache(maxsize=2**16)
def _values(case: str) -> frozenset[tuple[str, Value]]:
    return frozenset(parse_identity(case).items())


def _is_time(name: str, described: Mapping[str, Described]) -> bool:
    if name in described and described[name].kind:
        return described[name].kind == "time"
    return not name.rpartition(".")[2].lower().startswith(_NO_TIME)
