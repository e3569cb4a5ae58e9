"""What ``gpubench verify`` shows: rows as data, and as a rich table. Nothing here prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from gpubench.backends.software import NAME
from gpubench.measure.verifying import Status, Verified
from gpubench.plan.case import Case
from gpubench.plan.group import is_cuda
from gpubench.report import text
from gpubench.tables.width import unwrapped

STATUSES: tuple[Status, ...] = ("right", "wrong", "failed", "timed_out", "killed", "skipped")
WRONG = frozenset({"wrong", "failed", "timed_out", "killed"})
_STYLES: Mapping[str, str] = {"right": "green", "skipped": ""}
"""Of counts; what is wrong is red."""
_MOST_WARNINGS = 10


@dataclass(frozen=True, slots=True)
class VerifiedCase:
    """A case and what became of it."""

    case: Case
    outcome: Verified

    @property
    def is_wrong(self) -> bool:
        """Whether something is wrong with it; one that cannot run here is not."""
        return self.outcome.status in WRONG

    @property
    def name(self) -> str:
        kernel, case = _kernel(self.case), self.case
        return f"{kernel} {case.implementation_name} {case.identity}".strip()


@dataclass(frozen=True, slots=True)
class CudaPlace:
    """Where CUDA ran, and how."""

    device: str
    """Names of GPUs, or ``softcuda``."""
    why: str | None
    """Why not on a GPU; absent where it is, or where it was asked for."""
    preset: str | None
    orders: tuple[str, ...]
    sanitize: bool


def report(rows: Sequence[VerifiedCase], place: CudaPlace) -> Iterator[RenderableType]:
    """A line for each implementation, what is wrong and what was skipped, and where CUDA ran."""
    if rows:
        yield _table(rows)
    for row in rows:
        if row.is_wrong:
            line = Text("  ").append(_label(row.outcome.status), style="bold red")
            yield line.append(f": {row.name}: {row.outcome.reason}")
    skipped: dict[str, list[str]] = {}  # by reason, as most are the machine's
    for row in rows:
        if row.outcome.status == "skipped":
            skipped.setdefault(row.outcome.reason or "no reason is known", []).append(row.name)
    for reason, names in skipped.items():
        which = names[0] if len(names) == 1 else f"{len(names)} cases, first {names[0]}"
        yield Text("  ").append("skipped", style="bold").append(f": {which}: {reason}")
    notes = [f"{row.name}: {warning}" for row in rows for warning in row.outcome.warnings]
    yield from (Text(f"  note: {note}") for note in notes[:_MOST_WARNINGS])
    if len(notes) > _MOST_WARNINGS:
        yield Text(f"  and {len(notes) - _MOST_WARNINGS} more notes; --json has all")
    yield Text(summary(rows, place))


def summary(rows: Sequence[VerifiedCase], place: CudaPlace) -> str:
    """``248 cases: 240 right and 8 skipped; CUDA on softcuda, preset smoke``, and why there."""
    counts = Counter(row.outcome.status for row in rows)
    counted = text.join(f"{counts[s]:,} {_label(s)}" for s in STATUSES if counts[s])
    parts = [f"{text.plural(len(rows), 'case')}: {counted or 'none'}"]
    cuda = [row for row in rows if is_cuda(row.case.device)]
    if cuda:
        ran = any(row.outcome.status != "skipped" for row in cuda)
        parts.append(_where(place) if ran else "nothing of CUDA ran")
    parts += [f"preset {place.preset}"] if place.preset else []
    return "; ".join(parts)


def place_row(place: CudaPlace) -> dict[str, Any]:
    """Where CUDA ran, as JSON shows it."""
    return {
        "cuda": place.device,
        "no_gpu": place.why,
        "preset": place.preset,
        "orders": list(place.orders),
        "sanitize": place.sanitize,
    }


def case_row(row: VerifiedCase) -> dict[str, Any]:
    """One case as JSON shows it."""
    case, outcome = row.case, row.outcome
    return {
        "name": f"{case.benchmark('kernel').asv_name} {case.identity}".strip(),
        "suite": case.suite.suite,
        "kernel": case.kernel_name,
        "implementation": case.implementation_name,
        "device": case.device,
        "case": case.identity,
        "status": outcome.status,
        "reason": outcome.reason,
        "max_abs_error": outcome.max_abs_error,
        "max_rel_error": outcome.max_rel_error,
        "warnings": list(outcome.warnings),
        "faults": [asdict(fault) for fault in outcome.faults],
    }


def _table(rows: Sequence[VerifiedCase]) -> Table:
    """Implementations, with how many of their cases are what and the largest error of all."""
    shown = [status for status in STATUSES if any(row.outcome.status == status for row in rows)]
    table = Table("kernel", "implementation", "device", box=None, header_style="bold")
    for status in shown:
        table.add_column(_label(status), justify="right")
    table.add_column("largest error", justify="right")
    groups: dict[tuple[str, str, str], list[Verified]] = {}
    for row in rows:
        key = (_kernel(row.case), row.case.implementation_name, row.case.device)
        groups.setdefault(key, []).append(row.outcome)
    for key, outcomes in groups.items():
        counts = Counter(outcome.status for outcome in outcomes)
        cells = (
            Text(f"{counts[status]:,}" if counts[status] else "", _STYLES.get(status, "bold red"))
            for status in shown
        )
        errors = [one.max_rel_error for one in outcomes if one.max_rel_error is not None]
        table.add_row(*map(escape, key), *cells, text.error(max(errors, default=None)))
    return unwrapped(table)


def _where(place: CudaPlace) -> str:
    if place.device != NAME:
        return f"CUDA on {place.device}"
    ways = [f"{len(place.orders)} orders of threads"] if len(place.orders) > 1 else []
    ways += ["sanitizer on"] if place.sanitize else []
    how = f" ({', '.join(ways)})" if ways else ""
    why = f", as there is no GPU: {place.why}" if place.why else ""
    return f"CUDA on {NAME}, a device in software{how}{why}"


def _label(status: Status) -> str:
    return status.replace("_", " ")


def _kernel(case: Case) -> str:
    suite, kernel = case.suite.suite, case.kernel_name
    return suite if suite == kernel else f"{suite}/{kernel}"
