"""What ``gpubench verify`` shows: rows as data, and as a rich table. Nothing here prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from gpubench.backends.software import NAME
from gpubench.measure.verifying import Status, Verified
from gpubench.plan.case import Case
from gpubench.plan.machine import is_cuda
from gpubench.report import text
from gpubench.tables.width import unwrapped

STATUSES: tuple[Status, ...] = ("right", "wrong", "failed", "timed_out", "killed", "skipped")
WRONG = frozenset({"wrong", "failed", "timed_out", "killed"})
_LABELS: Mapping[Status, str] = {"timed_out": "timed out"}
_COLOURS: Mapping[str, str] = {"right": "green", "skipped": "", "wrong": "bold red"}
_MOST_WARNINGS = 10


@dataclass(frozen=True, slots=True)
class Row:
    """A case and what became of it."""

    case: Case
    found: Verified

    @property
    def is_wrong(self) -> bool:
        """Whether something is wrong with it; one that cannot run here is not."""
        return self.found.status in WRONG


@dataclass(frozen=True, slots=True)
class Place:
    """Where CUDA ran, and how."""

    device: str
    """Names of GPUs, or ``softcuda``."""
    why: str | None
    """Why not on a GPU; absent where it is, or where it was asked for."""
    preset: str | None
    orders: tuple[str, ...]
    sanitize: bool


def report(rows: Sequence[Row], place: Place) -> Iterator[RenderableType]:
    """A line for each implementation, what is wrong and what was skipped, and where CUDA ran."""
    if rows:
        yield _table(rows)
    for row in rows:
        if row.is_wrong:
            yield from _wrong_lines(row)
    yield from _reason_lines(row for row in rows if row.found.status == "skipped")
    yield from _warning_lines(rows)
    yield Text(summary(rows, place))


def summary(rows: Sequence[Row], place: Place) -> str:
    """``248 cases: 240 right and 8 skipped; CUDA on softcuda, preset smoke``, and why there."""
    counts = Counter(row.found.status for row in rows)
    said = text.join(f"{counts[each]:,} {_label(each)}" for each in STATUSES if counts[each])
    parts = [f"{text.plural(len(rows), 'case')}: {said or 'none'}"]
    cuda = [row for row in rows if is_cuda(row.case.device)]
    if cuda:
        ran = any(row.found.status != "skipped" for row in cuda)
        parts.append(_where(place) if ran else "nothing of CUDA ran")
    parts += [f"preset {place.preset}"] if place.preset else []
    return "; ".join(parts)


def place_row(place: Place) -> dict[str, Any]:
    """Where CUDA ran, as JSON shows it."""
    return {
        "cuda": place.device,
        "no_gpu": place.why,
        "preset": place.preset,
        "orders": list(place.orders),
        "sanitize": place.sanitize,
    }


def case_row(row: Row) -> dict[str, Any]:
    """One case as JSON shows it."""
    case, found = row.case, row.found
    return {
        "name": f"{case.benchmark('kernel').asv_name} {case.identity}".strip(),
        "suite": case.suite.suite,
        "kernel": case.kernel_name,
        "implementation": case.implementation_name,
        "device": case.device,
        "case": case.identity,
        "status": found.status,
        "reason": found.reason,
        "max_abs_error": found.max_abs_error,
        "max_rel_error": found.max_rel_error,
        "warnings": list(found.warnings),
        "faults": [asdict(fault) for fault in found.faults],
    }


def _table(rows: Sequence[Row]) -> Table:
    """Implementations, with how many of their cases are what and the largest error of all."""
    shown = [each for each in STATUSES if any(row.found.status == each for row in rows)]
    table = Table("kernel", "implementation", "device", box=None, header_style="bold")
    for each in shown:
        table.add_column(_label(each), justify="right")
    table.add_column("largest error", justify="right")
    groups: dict[tuple[str, str, str], list[Verified]] = {}
    for row in rows:
        key = (_kernel(row.case), row.case.implementation_name, row.case.device)
        groups.setdefault(key, []).append(row.found)
    for (kernel, *rest), found in groups.items():
        counts = Counter(one.status for one in found)
        cells = (_count(each, counts[each]) for each in shown)
        errors = [one.max_rel_error for one in found if one.max_rel_error is not None]
        worst = text.error(max(errors, default=None))
        table.add_row(escape(kernel), *map(escape, rest), *cells, worst)
    return unwrapped(table)


def _count(status: Status, count: int) -> str:
    if not count:
        return ""
    colour = _COLOURS.get(status, "bold red")
    return f"[{colour}]{count:,}[/]" if colour else f"{count:,}"


def _wrong_lines(row: Row) -> Iterator[Text]:
    line = Text("  ")
    line.append(_label(row.found.status), style="bold red")
    yield line.append(f": {_name(row.case)}: {row.found.reason}")


def _reason_lines(rows: Iterable[Row]) -> Iterator[Text]:
    """A line for each reason, as most are the machine's."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        groups.setdefault(row.found.reason or "no reason is known", []).append(_name(row.case))
    for reason, names in groups.items():
        which = names[0] if len(names) == 1 else f"{len(names)} cases, first {names[0]}"
        line = Text("  ")
        line.append("skipped", style="bold")
        yield line.append(f": {which}: {reason}")


def _warning_lines(rows: Sequence[Row]) -> Iterator[Text]:
    said = [f"{_name(row.case)}: {warning}" for row in rows for warning in row.found.warnings]
    for one in said[:_MOST_WARNINGS]:
        yield Text(f"  note: {one}")
    if len(said) > _MOST_WARNINGS:
        yield Text(f"  and {len(said) - _MOST_WARNINGS} more notes; --json has all")


def _where(place: Place) -> str:
    if place.device != NAME:
        return f"CUDA on {place.device}"
    ways = [f"{len(place.orders)} orders of threads"] if len(place.orders) > 1 else []
    ways += ["sanitizer on"] if place.sanitize else []
    how = f" ({', '.join(ways)})" if ways else ""
    why = f", as there is no GPU: {place.why}" if place.why else ""
    return f"CUDA on {NAME}, a device in software{how}{why}"


def _label(status: Status) -> str:
    return _LABELS.get(status, status)


def _kernel(case: Case) -> str:
    suite, kernel = case.suite.suite, case.kernel_name
    return suite if suite == kernel else f"{suite}/{kernel}"


def _name(case: Case) -> str:
    return f"{_kernel(case)} {case.implementation_name} {case.identity}".strip()
