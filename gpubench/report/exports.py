"""What the pages show as files for other programs: CSV (RFC 4180) and JSON."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import msgspec

from gpubench.analysis.baseline import Compared
from gpubench.analysis.history import SetupHistory
from gpubench.report.site import DataFile, Site
from gpubench.results import Commit

Row = dict[str, Any]

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Beginnings that make spreadsheets run a text as a formula."""


@dataclass(frozen=True, slots=True)
class Export:
    """One file for other programs."""

    address: str
    title: str
    """What it holds."""


FILES = (
    Export("cases.csv", "Every case at its newest commit, one row each, as CSV"),
    Export("cases.json", "The same as JSON"),
    Export("machines.csv", "Facts and noise of every machine and environment, as CSV"),
    Export("machines.json", "The same as JSON"),
)


def data_files(site: Site) -> Iterator[DataFile]:
    """Each of ``FILES``."""
    for table, made in (("cases", _all_cases), ("machines", _all_machines)):
        rows = cache(partial(made, site))
        for suffix, written in (("csv", to_csv), ("json", _to_json)):
            content = partial(_content, rows, written)
            yield DataFile(f"{table}.{suffix}", content, site.all_sources)


def _content(rows: Callable[[], list[Row]], written: Callable[[list[Row]], str]) -> str:
    return written(rows())


def _all_cases(site: Site) -> list[Row]:
    return [row for history in site.histories for row in case_rows(history, site)]


def _all_machines(site: Site) -> list[Row]:
    return [row for history in site.histories for row in machine_rows(history, site)]


def _to_json(rows: Sequence[Row]) -> str:
    return msgspec.json.format(msgspec.json.encode(rows), indent=1).decode() + "\n"


def case_rows(history: SetupHistory, site: Site) -> Iterator[Row]:
    """Cases as the kernel pages show them; seconds, bytes and counts, ``None`` where unknown."""
    for now in site.current(history).values():
        for compared in now.cases.values():
            yield {
                "machine": history.setup.machine,
                "environment": history.setup.environment,
                **_commit(now.commit),
                **_case(compared),
            }


def machine_rows(history: SetupHistory, site: Site) -> Iterator[Row]:
    """One row for each fact of a setup, as it was last recorded, and for its noise."""
    setup = {"machine": history.setup.machine, "environment": history.setup.environment}
    newest = history.snapshots[-1]
    told = [s for s in history.snapshots if s.facts]
    facts = {**newest.params, **(told[-1].facts if told else {})}
    found = site.noise(history)
    for source, values in (
        ("fact", facts),
        ("noise", {"within": found.within, "between": found.between}),
    ):
        for name, value in sorted(values.items()):
            yield {**setup, "kind": source, "name": name, "value": _finite(value)}


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """RFC 4180 with a header; a text that a spreadsheet would run as a formula gets a quote mark.

    Spreadsheets show the mark ``'`` before such a text as "this is text"; other programs read it.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    names = list(rows[0]) if rows else []
    if rows:
        writer.writerow(names)
    writer.writerows([_safe(row[name]) for name in names] for row in rows)
    return text.getvalue()


def _safe(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA):
        return f"'{value}"
    return value


def _commit(commit: Commit) -> Row:
    return {"commit": commit.hash, "commit_date": int(commit.date), "subject": commit.subject}


def _case(compared: Compared) -> Row:
    outcome = compared.outcome
    timing, ratio, record = outcome.timing, compared.speedup, outcome.record
    name, baseline = outcome.name, compared.baseline
    return {
        "suite": name.suite,
        "kernel": name.kernel,
        "implementation": name.implementation,
        "time": name.time,
        "case": name.case,
        "device": record.device if record else None,
        "status": outcome.status,
        "reason": outcome.reason or compared.missing,
        "seconds": timing.median if timing else None,
        "seconds_low": _finite(timing.low) if timing else None,
        "seconds_high": _finite(timing.high) if timing else None,
        "samples": timing.repeat if timing else None,
        "baseline": baseline.name.implementation if baseline else None,
        "baseline_case": baseline.name.case if baseline else None,
        "speedup": ratio.value if ratio else None,
        "speedup_low": ratio.low if ratio and ratio.has_interval else None,
        "speedup_high": ratio.high if ratio and ratio.has_interval else None,
        "verdict": ratio.verdict if ratio else None,
        "bytes": record.bytes if record else None,
        "flops": record.flops if record else None,
        "max_abs_error": _finite(record.max_abs_error) if record else None,
        "max_rel_error": _finite(record.max_rel_error) if record else None,
        "warnings": "; ".join(record.warnings) if record else None,
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
