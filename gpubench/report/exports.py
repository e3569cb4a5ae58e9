"""What the pages show as files for other programs: CSV (RFC 4180) and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from gpubench.report.site import Site
from gpubench.results import History

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


def write(site: Site, folder: Path) -> None:
    """Write each of ``FILES`` into a folder; seconds, bytes, counts. One setup after the other,
    since all rows are too many."""
    for name, records_of in (("cases", _case_records), ("machines", _machine_records)):
        csv_file = (folder / f"{name}.csv").open("w", encoding="utf-8", newline="")
        json_file = (folder / f"{name}.json").open("w", encoding="utf-8", newline="")
        with csv_file, json_file:
            json_file.write("[")
            is_first = True
            for history in site.histories:
                setup = {"machine": history.setup.machine, "environment": history.setup.environment}
                records = [{**setup, **record} for record in records_of(history, site)]
                if not records:
                    continue
                csv_file.write(to_csv(records, header=is_first))
                for record in records:
                    one = msgspec.json.format(msgspec.json.encode(record), indent=1).decode()
                    json_file.write(("\n " if is_first else ",\n ") + one.replace("\n", "\n "))
                    is_first = False
            json_file.write("]\n" if is_first else "\n]\n")


def _case_records(history: History, site: Site) -> Iterator[dict[str, Any]]:
    """Cases as the kernel pages show them; ``None`` where something is not known."""
    for now in site.current(history).values():
        for row in now.cases.values():
            name, ratio = row.name, row.speedup
            has_ends = ratio is not None and ratio.has_interval
            yield {
                "commit": now.commit.hash,
                "commit_date": int(now.commit.date),
                "subject": now.commit.subject,
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
                "disturbed": row.disturbed,
                "baseline": row.baseline.implementation if row.baseline else None,
                "baseline_case": row.baseline.case if row.baseline else None,
                "speedup": ratio.value if ratio else None,
                "speedup_low": ratio.low if ratio and has_ends else None,
                "speedup_high": ratio.high if ratio and has_ends else None,
                "verdict": ratio.verdict if ratio else None,
                "bytes": row.bytes,
                "flops": row.flops,
                "peak_bytes": row.peak_bytes,
                "max_abs_error": plain(row.max_abs_error),
                "max_rel_error": plain(row.max_rel_error),
                "score": plain(row.score),
                "warnings": "; ".join(row.warnings) if row.recorded else None,
            }


def _machine_records(history: History, site: Site) -> Iterator[dict[str, Any]]:
    """One for each fact of a setup, as it was last recorded, and for its noise."""
    recorded = [snapshot.facts for snapshot in history.snapshots if snapshot.facts]
    facts = {**history.snapshots[-1].params, **(recorded[-1] if recorded else {})}
    noise = site.noise(history)
    scatter = {"within": noise.within, "between": noise.between}
    for kind, values in (("fact", facts), ("noise", scatter)):
        for name, value in sorted(values.items()):
            yield {"kind": kind, "name": name, "value": plain(value)}


def to_csv(records: Sequence[Mapping[str, Any]], *, header: bool = True) -> str:
    """RFC 4180; a text that a spreadsheet would run as a formula gets a quote mark.

    Spreadsheets show the mark ``'`` before such a text as "this is text"; other programs read it.
    """

    def safe(value: Any) -> Any:
        is_formula = isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA)
        return f"'{value}" if is_formula else value

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    if records and header:
        writer.writerow(records[0])
    writer.writerows(map(safe, record.values()) for record in records)
    return text.getvalue()


def plain(value: Any) -> Any:
    """JSON's own kinds of values, with ``None`` for what is not finite."""
    encoded = msgspec.json.encode(value, enc_hook=lambda array: array.tolist())
    return msgspec.json.decode(encoded)
