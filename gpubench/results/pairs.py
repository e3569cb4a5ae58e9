"""Pairs of benchmarks that an asv project already runs: its stored values as ours are.

A pair becomes a kernel with two implementations, ``baseline`` and ``candidate``. Their cases are
matched by the names and values of their parameters; a candidate may have parameters that its
baseline lacks, as a block shape. A benchmark that is reported alone becomes one with a single
implementation, ``time``.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import duckdb

from gpubench.errors import did_you_mean
from gpubench.names import (
    SECONDS,
    BenchmarkName,
    Value,
    format_identity,
    format_value,
    parse_benchmark_name,
    parse_identity,
    pattern_fault,
    timed_beside,
)
from gpubench.record import CaseRecord
from gpubench.results.model import (
    ALONE,
    NO_RENAMES,
    CaseName,
    Described,
    Pair,
    PairPattern,
    Problem,
    Renames,
)

BASELINE, CANDIDATE = "baseline", "candidate"
"""Names of the two implementations."""

_CLASS = re.compile(r"<class '([\w.]+)'>")
"""A class, as asv stores it."""

_KIND_LABELS = {
    "time": "kernel",
    "memory": "memory",
    "peakmemory": "peak_memory",
    "track": "tracked",
}
"""What asv's kinds of benchmarks measure."""

_ASV_KINDS = (("track", "track"), ("mem", "memory"), ("peakmem", "peakmemory"))
"""Beginnings of benchmarks that measure no time, with their kinds."""

_LABEL_UNITS = {"kernel": SECONDS, "memory": "bytes", "peak_memory": "bytes", "tracked": ""}

MAX_UNIT_CHARACTERS = 20
"""Of a unit beside a number; a longer one is cut."""


@dataclass(frozen=True)
class BenchmarkPairs:
    """The pairs and new names of a project: what the names and cases of asv's are in a report."""

    every: tuple[Pair, ...] = ()
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the parameters by asv's name, where ``benchmarks.json`` tells them."""
    renames: Renames = NO_RENAMES
    """What gpubench's own benchmarks and their cases are called now."""

    @classmethod
    def of(
        cls, pairs: Sequence[Pair], described: Mapping[str, Described], renames: Renames
    ) -> BenchmarkPairs:
        """With what is said of their benchmarks."""
        names = dict.fromkeys(name for pair in pairs for name, _ in places_in(pair))
        return cls(
            tuple(pairs),
            {
                name: tuple(map(_word, described[name].param_names))
                for name in names
                if name in described
            },
            renames,
        )

    @cached_property
    def places(self) -> Mapping[str, tuple[BenchmarkName, ...]]:
        """Return the names in pairs by asv's name; one benchmark may be in several pairs."""
        of_name: dict[str, tuple[BenchmarkName, ...]] = defaultdict(tuple)
        for pair in self.every:
            for asv_name, place in places_in(pair):
                of_name[asv_name] += (place,)
        return dict(of_name)

    @cached_property
    def _pair_of(self) -> Mapping[BenchmarkName, Pair]:
        return {place: pair for pair in self.every for _, place in places_in(pair)}

    def identities(self, asv_name: str, parameters: Any) -> tuple[str, ...]:
        """Identity of each case from the values that a result file stores as their repr."""
        stored = tuple(map(tuple, parameters or ()))
        names = self.parameters.get(asv_name, ())
        if len(names) != len(stored):
            names = tuple(f"param{i}" for i in range(1, len(stored) + 1))
        return _identities(names, stored)

    def baseline_of(self, name: BenchmarkName) -> BenchmarkName | None:
        """Return the place of what a candidate is compared with."""
        pair = self._pair_of.get(name) if name.implementation == CANDIDATE else None
        return _place(pair, BASELINE) if pair else None

    def partners(
        self, name: BenchmarkName, cases: Collection[str], baselines: Iterable[str]
    ) -> Iterator[Partner | None]:
        """Place of each case, ``None`` for one that is of no pair; ``baselines`` are the cases of
        ``baseline_of`` in the same file."""
        pair, fitting = self._pair_of.get(name), Baselines(baselines).fitting
        for case in cases:
            if pair is None:
                yield None
            elif name.implementation != CANDIDATE:
                yield Partner(pair, None)
            else:
                baseline = fitting(case)
                yield Partner(pair, case if baseline is None else baseline)  # said to be missing


@lru_cache(maxsize=2**12)
def _identities(names: tuple[str, ...], stored: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    values = [_of_parameter(texts) for texts in stored]
    return tuple(
        format_identity(dict(zip(names, case, strict=True))) for case in itertools.product(*values)
    )


@dataclass(frozen=True, slots=True)
class Partner:
    """A case's place in a pair."""

    pair: Pair
    case: str | None
    """Identity of its baseline's case; ``None`` for the baseline itself."""

    @property
    def baseline(self) -> CaseName | None:
        """What the case is compared with."""
        pair, case = self.pair, self.case
        return None if case is None else CaseName(pair.suite, pair.name, BASELINE, "kernel", case)

    @property
    def bench(self) -> str:
        """What ``asv run --bench`` takes for both sides: a regular expression."""
        sides = filter(None, (self.pair.baseline, self.pair.candidate))
        return f"'^({'|'.join(map(re.escape, sides))})'"

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


def places_in(pair: Pair) -> Iterator[tuple[str, BenchmarkName]]:
    """asv's names of a pair's benchmarks, each with its place."""
    if not pair.candidate:
        yield pair.baseline, _place(pair, ALONE)
        return
    yield pair.baseline, _place(pair, BASELINE)
    yield pair.candidate, _place(pair, CANDIDATE)


def alone(described: Mapping[str, Described], pairs: Iterable[Pair] = ()) -> tuple[Pair, ...]:
    """Return the benchmarks that are neither gpubench's nor in a pair, each reported alone."""
    in_pairs = {name for pair in pairs for name in (pair.baseline, pair.candidate)}
    found = []
    for name in sorted(described.keys() - in_pairs):
        kind = _kind(name, described)
        if is_of_gpubench(name) or kind not in _KIND_LABELS:
            continue
        label = _KIND_LABELS[kind]
        unit = described[name].unit if label == "tracked" else _LABEL_UNITS[label]
        # asv's own default says nothing.
        unit = "" if unit == "unit" else " ".join(unit.split())[:MAX_UNIT_CHARACTERS]
        found.append(Pair(*_split(name), name, "", label, unit))
    return tuple(found)


def unreadable_kinds(described: Mapping[str, Described]) -> Iterator[Problem]:
    """Name the benchmarks of a kind that asv does not have by itself."""
    for name in sorted(described):
        kind = _kind(name, described)
        if kind not in _KIND_LABELS and not is_of_gpubench(name):
            message = f"{name} is left out: its type {kind!r} is none of {', '.join(_KIND_LABELS)}"
            yield Problem("benchmarks.json", message)


def is_of_gpubench(name: str) -> bool:
    """Return whether a benchmark is one of gpubench's own, a time or a count beside one."""
    return parse_benchmark_name(name) is not None or timed_beside(name) is not None


def _split(name: str) -> tuple[str, str]:
    """Suite and kernel of a benchmark's name: its first part, and the rest."""
    first, _, rest = name.partition(".")
    return first, rest or first


def resolved(
    given: Collection[Pair | PairPattern], described: Mapping[str, Described]
) -> tuple[tuple[Pair, ...], list[Problem], frozenset[str]]:
    """Return pairs with those that patterns stand for, what is to be said of the patterns, and the
    patterns that stand for none."""
    pairs = {(pair.suite, pair.name): pair for pair in given if isinstance(pair, Pair)}
    names = frozenset(name for name in described if _is_time(name, described))
    problems: list[Problem] = []
    empty: set[str] = set()
    for pattern in given:
        if isinstance(pattern, PairPattern):
            problems += [
                Problem(f"pair {pattern}", words)
                for words in _add_matching(pattern, names, pairs, empty)
            ]
    return tuple(pairs.values()), problems, frozenset(empty)


def _add_matching(
    pattern: PairPattern,
    names: Collection[str],
    pairs: dict[tuple[str, str], Pair],
    empty: set[str],
) -> Iterator[str]:
    """Add a pattern's pairs to those by suite and kernel, or the pattern to the ``empty`` ones;
    yield what is to be said."""
    try:
        matches = _matches(pattern, names)
    except ValueError as error:
        empty.add(str(pattern))
        yield str(error)
        return
    if not matches:
        hint = did_you_mean(pattern.baseline.replace("\\", ""), names)
        yield f"no time benchmark of {len(names):,} matches {pattern.baseline!r}{hint}"
    twice, lacking = [], []
    for baseline, text in matches:
        parents = baseline.split(".")[:-1]
        ends = (".".join([*parents[:n], text]) for n in (0, *range(len(parents), 0, -1)))
        candidate = next((end for end in ends if end in names and end != baseline), None)
        if candidate is None:
            lacking.append((baseline, text))
            continue
        suite, name = (pattern.suite, baseline) if pattern.suite else _split(baseline)
        last = candidate.rpartition(".")[2]
        for kernel in (name, f"{name}.{last}", f"{name}.{candidate}"):
            pair = Pair(suite, kernel, baseline, candidate)
            there = pairs.setdefault((suite, kernel), pair)
            if (there.baseline, there.candidate) == (baseline, candidate):
                break
        if there is not pair:
            twice.append(baseline)
    if len(lacking) == len(matches):
        empty.add(str(pattern))
    if lacking:
        baseline, text = lacking[0]
        hint = did_you_mean(text, names) or "; no time benchmark has that name"
        yield (
            f"{len(lacking):,} of {len(matches):,} that match have nothing to be compared with: "
            f"{baseline} asks for {text!r}{hint}"
        )
    if twice:
        yield f"{len(twice):,} of its pairs are there already, {twice[0]} for one; kept once"


def _matches(pattern: PairPattern, names: Collection[str]) -> list[tuple[str, str]]:
    """Return the names that a pattern matches, in order, with what replaces them; raises
    ``ValueError``.

    By DuckDB's RE2, which takes time in proportion to a name's length whatever the expression,
    where Python's ``re`` may take for ever.
    """
    if fault := pattern_fault(pattern.baseline, pattern.candidate):
        raise ValueError(fault)
    with closing(duckdb.connect()) as connection:
        try:
            return connection.execute(
                """
                with parts as (
                    select name, if(regexp_full_match(name, $1), name, split(name, '.')[-1]) as part
                    from (select unnest($3::varchar[]) as name)
                )
                select name, regexp_replace(part, '^(?:' || $1 || ')$', $2) from parts
                where regexp_full_match(part, $1) order by name
                """,
                [pattern.baseline, pattern.candidate, list(names)],
            ).fetchall()
        except duckdb.Error as error:
            what = str(error).partition("\n")[0]
            raise ValueError(
                f"{pattern.baseline!r} cannot be matched, as an expression that looks ahead or "
                f"behind or refers to its own groups cannot: {what}"
            ) from error


def unfit(
    pairs: Iterable[Pair], seen: Collection[BenchmarkName], described: Mapping[str, Described]
) -> Iterator[Problem]:
    """Pairs whose benchmarks have no stored time, with what may have been meant."""
    for pair in pairs:
        for name, place in places_in(pair) if pair.candidate else ():
            role = place.implementation
            if not _is_time(name, described):
                message = f"its {role} {name!r} measures no time; a pair is of two time benchmarks"
            elif place not in seen:
                hint = did_you_mean(name, described) or "; run `asv run`"
                message = f"no result file has its {role} {name!r}{hint}"
            else:
                continue
            yield Problem(f"pair {pair.suite}.{pair.name}", message)


def _place(pair: Pair, implementation: str) -> BenchmarkName:
    return BenchmarkName(pair.suite, pair.name, implementation, pair.label)


def _of_parameter(texts: Collection[str]) -> list[str]:
    """Values of one parameter; a class reads as its name, where no other value does."""
    named = [_value(_CLASS.sub(r"\1", text)) for text in texts]
    return named if len(set(named)) == len(named) else [_value(text) for text in texts]


def is_text(value: str) -> bool:
    """Return whether an encoding has all of its characters: of no half of one."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _value(text: str) -> str:
    """Return a parameter's value inside an identity: text that reads as a number keeps its
    quotes."""
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
        """Return the case with the most values, all of which the other case has too."""
        values = _values(case)
        if values in self._cases:
            return self._cases[values]
        shared = (frozenset(v for v in values if v[0] in names) for names in self._names)
        return next((self._cases[part] for part in shared if part in self._cases), None)


@lru_cache(maxsize=2**14)
def _values(case: str) -> frozenset[tuple[str, Value]]:
    return frozenset(parse_identity(case).items())


def _is_time(name: str, described: Mapping[str, Described]) -> bool:
    return _kind(name, described) == "time"


def _kind(name: str, described: Mapping[str, Described]) -> str:
    """Return asv's type of a benchmark; where nothing tells it, by its name."""
    if name in described and described[name].kind:
        return described[name].kind
    last = name.rpartition(".")[2].lower()
    return next((kind for start, kind in _ASV_KINDS if last.startswith(start)), "time")
