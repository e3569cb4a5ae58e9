"""What ``gpubench verify`` shows: rows as data, and as a rich table. Nothing here prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gpubench.backends.devices import is_cuda
from gpubench.backends.software import NAME
from gpubench.measure.verify_cases import Verified
from gpubench.names import kernel_title
from gpubench.plan.case import Case
from gpubench.report import text
from gpubench.statuses import FAILURES, VERIFIED_STATUSES
from gpubench.tables.plans import case_name
from gpubench.tables.table import several, table
from gpubench.work import derived

_STYLES: Mapping[str, str] = {"right": "green", "skipped": "", "interrupted": ""}
"""Of counts; what is wrong is red."""
_MAX_WARNINGS = 10


@dataclass(frozen=True, slots=True)
class CudaPlace:
    """Where CUDA ran, and how, as JSON shows it too."""

    cuda: str
    """Names of GPUs, or ``softcuda``."""
    no_gpu: str | None
    """Why not on a GPU; absent where it is, or where it was asked for."""
    preset: str | None
    orders: tuple[str, ...]
    sanitize: bool


@dataclass(frozen=True, slots=True)
class Undeclared:
    """Cases at sizes that no suite declares, as far as they say something of an implementation."""

    taken: tuple[tuple[Case, Verified], ...] = ()
    """Sizes that the baseline can compute and the implementation does not refuse."""
    refused: tuple[tuple[Case, Verified], ...] = ()
    """Sizes where the implementation alone raises an error: it does not take them."""

    @classmethod
    def of(
        cls, rows: Sequence[tuple[Case, Verified]], declared: Sequence[tuple[Case, Verified]]
    ) -> Undeclared:
        """Leave out the sizes that the baseline itself does not take, what was skipped, and
        implementations that fail at declared sizes already."""
        failing = {
            case.group.class_name for case, outcome in declared if outcome.status in FAILURES
        }
        right = {
            _data_of(case)
            for case, outcome in rows
            if case.implementation_name == case.kernel.baseline and outcome.status == "right"
        }
        judged = [
            (case, outcome)
            for case, outcome in rows
            if _data_of(case) in right
            and case.group.class_name not in failing
            and outcome.status not in ("skipped", "interrupted")
        ]
        return cls(
            tuple(row for row in judged if row[1].status != "failed"),
            tuple(row for row in judged if row[1].status == "failed"),
        )

    @property
    def wrong(self) -> tuple[tuple[Case, Verified], ...]:
        """Cases with wrong results, and those that killed or outlasted their process."""
        return tuple(row for row in self.taken if row[1].status in FAILURES)


def _data_of(case: Case) -> str:
    """Return what the inputs of a case are made of: its implementations share them."""
    return f"{case.suite.suite} {case.kernel_name} {sorted(case.data_values().items())}"


def report(
    rows: Sequence[tuple[Case, Verified]],
    place: CudaPlace,
    undeclared: Undeclared = Undeclared(),
) -> Iterator[RenderableType]:
    """Yield a line for each implementation, what is wrong and what was skipped, and where CUDA
    ran."""
    if rows:
        yield _table(rows)
    yield from reasons(rows)
    yield from _undeclared_lines(undeclared)
    yield Text(summary(rows, place))


def _undeclared_lines(undeclared: Undeclared) -> Iterator[RenderableType]:
    """Yield what is wrong at sizes that no suite declares, which sizes an implementation refuses,
    and how many are right."""
    wrong: dict[tuple[str, str], list[tuple[Case, Verified]]] = {}
    for case, outcome in undeclared.wrong:
        wrong.setdefault((case.group.title, outcome.status), []).append((case, outcome))
    for (title, _), rows in wrong.items():
        case, outcome = rows[0]
        line = Text("  ").append(text.status_label(outcome.status), style="bold red")
        yield line.append(f": {title} {case.identity}: {outcome.reason}")
        more = f", as at {text.plural(len(rows) - 1, 'case')} more" if len(rows) > 1 else ""
        yield Text(
            f"    no suite declares this size{more}; where the kernel is not meant for it, say "
            "so by `exclude`, as in `exclude: [{when: n % 2 == 1}]`"
        )
    refused: dict[str, list[str]] = {}
    for case, _ in undeclared.refused:
        refused.setdefault(case.group.title, []).append(case.identity)
    for title, identities in refused.items():
        yield Text(
            f"  note: {title} raises an error beside its declared sizes: {several(identities)}"
        )
    if undeclared.taken:
        bad = len(undeclared.wrong)
        counted = [f"{len(undeclared.taken) - bad:,} right"] + [f"{bad:,} wrong"] * bool(bad)
        cases = text.plural(len(undeclared.taken), "case")
        yield Text(f"beside the declared sizes: {cases}: {text.join(counted)}")


def reasons(rows: Sequence[tuple[Case, Verified]]) -> Iterator[RenderableType]:
    """Yield what is wrong, what was skipped and what is to be noted, each with its cases: what many
    have in common, as a module that is not there, is one line."""
    alike: dict[tuple[str, str], list[str]] = {}
    notes: list[str] = []
    for case, outcome in rows:
        name = f"{case.group.title} {case.identity}".strip()
        notes += [f"{name}: {warning}" for warning in outcome.warnings]
        if outcome.status == "skipped" or outcome.status in FAILURES:
            reason = outcome.reason or "no reason is known"
            alike.setdefault((outcome.status, reason), []).append(name)
    for (status, reason), names in sorted(alike.items(), key=lambda item: item[0][0] == "skipped"):
        style = "bold" if status == "skipped" else "bold red"
        label = Text("  ").append(text.status_label(status), style=style)
        yield label.append(f": {several(names)}: {reason}")
    yield from (Text(f"  note: {note}") for note in notes[:_MAX_WARNINGS])
    if len(notes) > _MAX_WARNINGS:
        yield Text(f"  and {len(notes) - _MAX_WARNINGS} more notes; --json has all")


def summary(rows: Sequence[tuple[Case, Verified]], place: CudaPlace) -> str:
    """``248 cases: 240 right and 8 skipped; CUDA on softcuda, preset smoke``, and why there."""
    counts = Counter(outcome.status for _, outcome in rows)
    shown = [status for status in VERIFIED_STATUSES if counts[status]]
    counted = text.join(f"{counts[s]:,} {text.status_label(s)}" for s in shown)
    parts = [f"{text.plural(len(rows), 'case')}: {counted or 'none'}"]
    cuda = [outcome.status for case, outcome in rows if is_cuda(case.device)]
    if cuda and set(cuda) == {"skipped"}:
        parts.append("nothing of CUDA ran")
    elif cuda:
        where = f"CUDA on {place.cuda}"
        if place.cuda == NAME:
            where += ", a device in software"
            ways = [f"{len(place.orders)} orders of threads"] if len(place.orders) > 1 else []
            ways += ["sanitizer on"] if place.sanitize else []
            where += f" ({', '.join(ways)})" if ways else ""
            where += f", as there is no GPU: {place.no_gpu}" if place.no_gpu else ""
        parts.append(where)
    return "; ".join(parts + ([f"preset {place.preset}"] if place.preset else []))


def case_row(case: Case, outcome: Verified) -> dict[str, Any]:
    """Return one case as JSON shows it."""
    fields = asdict(replace(outcome, counts=None, cpu_code=None))
    del fields["cpu_code"]  # shown beside counts, as `gpubench count --cpu` has it
    del fields["lacks_device"]  # which decides where a case runs, and says nothing of it
    return {
        "name": case_name(case),
        "suite": case.suite.suite,
        "kernel": case.kernel_name,
        "implementation": case.implementation_name,
        "device": case.device,
        "case": case.identity,
        **fields,
    }


def _table(rows: Sequence[tuple[Case, Verified]]) -> Table:
    """Return implementations, with how many of their cases are what and the largest error of
    all."""
    outcomes_of: dict[tuple[str, str, str], list[Verified]] = {}
    for case, outcome in rows:
        kernel = kernel_title(case.suite.suite, case.kernel_name)
        key = (kernel, case.implementation_name, case.device)
        outcomes_of.setdefault(key, []).append(outcome)
    statuses = {outcome.status for _, outcome in rows}
    shown = [status for status in VERIFIED_STATUSES if status in statuses]
    is_counted = any(_totals(outcome) for _, outcome in rows)
    lines: list[tuple[str | Text, ...]] = []
    for key, outcomes in outcomes_of.items():
        counts = Counter(outcome.status for outcome in outcomes)
        counted = (
            Text(f"{counts[status]:,}" if counts[status] else "", _STYLES.get(status, "bold red"))
            for status in shown
        )
        errors = [one.max_rel_error for one in outcomes if one.max_rel_error is not None]
        worst = _worst_counts(outcomes) if is_counted else ()
        lines.append((*key, *counted, text.error(max(errors, default=None)), *worst))
    right = (*map(text.status_label, shown), "largest error", *(_COUNTS if is_counted else ()))
    return table(("kernel", "implementation", "device", *right), lines, right)


_COUNTS = ("sectors a load", "lanes on")
"""Of the counts, those that tell most; ``gpubench count`` has the others."""


def _totals(outcome: Verified) -> Mapping[str, int]:
    return outcome.counts.totals if outcome.counts is not None else {}


def _worst_counts(outcomes: Sequence[Verified]) -> tuple[str, ...]:
    """Return ``_COUNTS`` of the worst case of an implementation, each by itself."""
    totals = [counts for outcome in outcomes if (counts := _totals(outcome))]
    per_load = [each for each in map(derived.sectors_per_load, totals) if each is not None]
    inactive = [each for each in map(derived.inactive_lanes, totals) if each is not None]
    return (
        text.sectors(max(per_load, default=None)),
        text.lanes_on(max(inactive, default=None)),
    )
