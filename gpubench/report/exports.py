"""What the pages show as files for other programs: CSV (RFC 4180) and JSON."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from gpubench.report.site import Site
from gpubench.results import Commit, History, Row

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Beginnings that make spreadsheets run a text as a formula (OWASP, "CSV Injection")."""


@dataclass(frozen=True, slots=True)
class ExportFile:
    """One file for other programs."""

    address: str
    title: str
    """What it holds."""


FILES = (
    ExportFile("cases.csv", "Every case at its newest commit, one row each, as CSV"),
    ExportFile("cases.json", "The same as JSON"),
    ExportFile("machines.csv", "Facts and noise of every machine and environment, as CSV"),
    ExportFile("machines.json", "The same as JSON"),
)


def contents(site: Site) -> dict[str, str]:
    """Content of each of ``FILES`` by its address; seconds, bytes, counts."""
    made = {}
    for name, records_of in (("cases", case_records), ("machines", machine_records)):
        records = [record for history in site.histories for record in records_of(history, site)]
        made[f"{name}.csv"] = to_csv(records)
        encoded = msgspec.json.format(msgspec.json.encode(records), indent=1)
        made[f"{name}.json"] = f"{encoded.decode()}\n"
    return made


def case_records(history: History, site: Site) -> Iterator[dict[str, Any]]:
    """Cases as the kernel pages show them; ``None`` where something is not known."""
    setup = {"machine": history.setup.machine, "environment": history.setup.environment}
    for now in site.current(history).values():
        for row in now.cases.values():
            yield setup | _record(row, now.commit)


def _record(row: Row, commit: Commit) -> dict[str, Any]:
    name, ratio = row.name, row.speedup
    has_ends = ratio is not None and ratio.has_interval
    return {
        "commit": commit.hash,
        "commit_date": int(commit.date),
        "subject": commit.subject,
        "suite": name.suite,
        "kernel": name.kernel,
        "implementation": name.implementation,
        "time": name.time,
        "case": name.case,
        "device": row.device if row.recorded else None,
        "status": row.status,
        "reason": row.reason or row.missing,
        "seconds": row.seconds,
        "seconds_low": row.low,
        "seconds_high": row.high,
        "samples": row.samples,
        "baseline": row.baseline.implementation if row.baseline else None,
        "baseline_case": row.baseline.case if row.baseline else None,
        "speedup": ratio.value if ratio else None,
        "speedup_low": ratio.low if ratio and has_ends else None,
        "speedup_high": ratio.high if ratio and has_ends else None,
        "verdict": ratio.verdict if ratio else None,
        "bytes": row.bytes,
        "flops": row.flops,
        "max_abs_error": plain(row.max_abs_error),
        "max_rel_error": plain(row.max_rel_error),
        "warnings": "; ".join(row.warnings) if row.recorded else None,
    }


def machine_records(history: History, site: Site) -> Iterator[dict[str, Any]]:
    """One for each fact of a setup, as it was last recorded, and for its noise."""
    setup = {"machine": history.setup.machine, "environment": history.setup.environment}
    recorded = [snapshot.facts for snapshot in history.snapshots if snapshot.facts]
    facts = {**history.snapshots[-1].params, **(recorded[-1] if recorded else {})}
    noise = site.noise(history)
    scatter = {"within": noise.within, "between": noise.between}
    for kind, values in (("fact", facts), ("noise", scatter)):
        for name, value in sorted(values.items()):
            yield {**setup, "kind": kind, "name": name, "value": plain(value)}


def to_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """RFC 4180 with a header; a text that a spreadsheet would run as a formula gets a quote mark.

    Spreadsheets show the mark ``'`` before such a text as "this is text"; other programs read it.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    if records:
        writer.writerow(records[0])
    writer.writerows(map(_safe, record.values()) for record in records)
    return text.getvalue()


def _safe(value: Any) -> Any:
    is_formula = isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA)
    return f"'{value}" if is_formula else value


def plain(value: Any) -> Any:
    """JSON's own kinds of values, with ``None`` for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
