"""Pairs of benchmarks that an asv project already runs: its stored values as ours are.

A pair becomes a kernel with two implementations, ``baseline`` and ``candidate``. Their cases are
matched by the names and values of their parameters; a candidate may have parameters that its
baseline lacks, as a block shape.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from gpubench.names import BenchmarkName, Value, format_identity, format_value, parse_identity
from gpubench.record import CaseRecord
from gpubench.results.asv_files import Described
from gpubench.results.model import CaseName, Outcome, Pair, Problem

BASELINE, CANDIDATE = "baseline", "candidate"
"""Names of the two implementations."""

_NO_TIME = ("track", "mem", "peakmem")
"""Beginnings of benchmarks that measure something else."""


@dataclass(frozen=True, slots=True)
class Roles:
    """What stored benchmarks are in pairs."""

    names: Mapping[str, tuple[BenchmarkName, ...]] = field(default_factory=dict)
    """By asv's name; one benchmark may be in several pairs."""
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
    names: dict[str, list[BenchmarkName]] = defaultdict(list)
    for pair in pairs:
        names[pair.baseline].append(_role(pair, BASELINE))
        names[pair.candidate].append(_role(pair, CANDIDATE))
    parameters = {
        name: tuple(map(_word, described[name].param_names)) for name in names if name in described
    }
    return Roles({name: tuple(found) for name, found in names.items()}, parameters)


@dataclass(frozen=True, slots=True)
class Partner:
    """A case's place in a pair."""

    pair: Pair
    case: str | None
    """Identity of its baseline's case; ``None`` for the baseline itself."""


def partners(names: Iterable[CaseName], pairs: Sequence[Pair]) -> dict[CaseName, Partner]:
    """Places of those cases that are of pairs."""
    found: dict[CaseName, Partner] = {}
    by_kernel: dict[tuple[str, str], list[CaseName]] = defaultdict(list)
    for name in names if pairs else ():
        by_kernel[name.suite, name.kernel].append(name)
    for pair in pairs:
        cases = by_kernel.get((pair.suite, pair.name), [])
        baselines = _Baselines(name.case for name in cases if name.implementation == BASELINE)
        for name in cases:
            is_candidate = name.implementation == CANDIDATE
            found[name] = Partner(pair, baselines.fitting(name.case) if is_candidate else None)
    return found


def with_partners(
    outcomes: Mapping[CaseName, Outcome], pairs: Sequence[Pair]
) -> dict[CaseName, Outcome]:
    """Outcomes, those of pairs knowing their benchmark and, the candidates, their baseline."""
    joined = dict(outcomes)
    for name, partner in partners(outcomes, pairs).items():
        found, record = outcomes[name], partner_record(name.case, partner)
        bench = _bench(partner.pair)
        joined[name] = Outcome(name, found.status, found.reason, found.timing, record, bench)
    return joined


def unfit(
    pairs: Iterable[Pair], seen: Collection[BenchmarkName], described: Mapping[str, Described]
) -> Iterator[Problem]:
    """Pairs whose benchmarks have no stored time, with what may have been meant."""
    for pair in pairs:
        for role, name in ((BASELINE, pair.baseline), (CANDIDATE, pair.candidate)):
            if not _is_time(name, described):
                message = f"its {role} {name!r} measures no time; a pair is of two time benchmarks"
            elif _role(pair, role) not in seen:
                message = f"no result file has its {role} {name!r}{_near(name, described)}"
            else:
                continue
            yield Problem(f"pair {pair.suite}.{pair.name}", message)


def _role(pair: Pair, implementation: str) -> BenchmarkName:
    return BenchmarkName(pair.suite, pair.name, implementation, "kernel")


def _value(text: str) -> str:
    """A parameter's value inside an identity: text that reads as a number keeps its quotes."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return _word(text)
    if isinstance(value, str):
        plain = _word(value)
        return plain if isinstance(parse_identity(f"x={plain}")["x"], str) else _word(text)
    return format_value(value) if isinstance(value, bool | int | float) else _word(text)


def _word(text: str) -> str:
    """Text without blanks, which separate the parts of an identity."""
    return re.sub(r"\s+", "\N{OPEN BOX}", text)


@lru_cache(maxsize=2**16)
def partner_record(case: str, partner: Partner) -> CaseRecord:
    """What is known of a case; the same object for all commits, of which there may be thousands."""
    pair = partner.pair
    title = pair.baseline if partner.case is None else pair.candidate
    baseline = None if partner.case is None else _role(pair, BASELINE).asv_name
    return CaseRecord(
        title, case, "ok", "", title=title, baseline_benchmark=baseline, baseline_case=partner.case
    )


@lru_cache(maxsize=2**10)
def _bench(pair: Pair) -> str:
    """A regular expression for both sides."""
    return f"'^({'|'.join(map(re.escape, (pair.baseline, pair.candidate)))})'"


class _Baselines:
    """Cases of a baseline, found by the values that a candidate shares with them."""

    def __init__(self, cases: Iterable[str]) -> None:
        self._cases = {_values(case): case for case in cases}
        names = {frozenset(name for name, _ in values) for values in self._cases}
        self._names = sorted(names, key=len, reverse=True)

    def fitting(self, case: str) -> str:
        """The case with the most parameters that all agree; the same where none fits."""
        values = _values(case)
        if values in self._cases:
            return self._cases[values]
        shared = (frozenset(v for v in values if v[0] in names) for names in self._names)
        return next((self._cases[own] for own in shared if own in self._cases), case)


@lru_cache(maxsize=2**16)
def _values(case: str) -> frozenset[tuple[str, Value]]:
    return frozenset(parse_identity(case).items())


def _is_time(name: str, described: Mapping[str, Described]) -> bool:
    if name in described and described[name].kind:
        return described[name].kind == "time"
    return not name.rpartition(".")[2].lower().startswith(_NO_TIME)


def _near(name: str, described: Mapping[str, Described]) -> str:
    near = difflib.get_close_matches(name, described, n=1)
    return f"; did you mean {near[0]!r}?" if near and near[0] != name else "; run `asv run`"
