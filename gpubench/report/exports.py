"""What the pages show as files for other programs: CSV (RFC 4180) and JSON."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

import msgspec

from gpubench.analysis.costs import CostPair, cost_pairs
from gpubench.analysis.count_changes import CountChange
from gpubench.report import text
from gpubench.report.declared_view import doubt_words
from gpubench.report.site import Site
from gpubench.results import CaseName, History

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Beginnings that make spreadsheets run a text as a formula (OWASP, "CSV Injection")."""


@dataclass(frozen=True, slots=True)
class ExportFile:
    address: str
    title: str


FILES = (
    ExportFile("cases.csv", "Every case at its newest commit, one row each, as CSV"),
    ExportFile("cases.json", "The same as JSON"),
    ExportFile("counts.csv", "Every cost of every counted case, with its newest change, as CSV"),
    ExportFile("counts.json", "The same as JSON"),
    ExportFile("machines.csv", "Facts and noise of every machine and environment, as CSV"),
    ExportFile("machines.json", "The same as JSON"),
)


def write(site: Site, folder: Path) -> None:
    """Write each of ``FILES`` into a folder; seconds, bytes, counts. One record after the other,
    since all are too many."""
    kinds = (
        ("cases", _case_records),
        ("counts", _count_records),
        ("machines", _machine_records),
    )
    for name, records_of in kinds:
        records = (
            {
                "machine": h.setup.machine,
                "environment": h.setup.environment,
                "branch": site.branch_of(h.setup) or None,
                **record,
            }
            for h in site.histories
            for record in records_of(h, site)
        )
        csv_file = (folder / f"{name}.csv").open("w", encoding="utf-8", newline="")
        json_file = (folder / f"{name}.json").open("w", encoding="utf-8", newline="")
        with csv_file, json_file:
            write_records(records, csv_file, json_file)


def write_records(
    records: Iterable[Mapping[str, Any]], csv_file: TextIO, json_file: TextIO
) -> None:
    """Write records as CSV (RFC 4180) with the names first, and as a list of JSON.

    In CSV a text that a spreadsheet would run as a formula gets a quote mark. Spreadsheets show the
    mark ``'`` before such a text as "this is text"; other programs read it.
    """
    writer, before = csv.writer(csv_file), "["
    for record in records:
        if before == "[":
            writer.writerow(record)
        writer.writerow(map(_safe, record.values()))
        one = msgspec.json.format(msgspec.json.encode(record), indent=1).decode()
        json_file.write(f"{before}\n " + one.replace("\n", "\n "))
        before = ","
    json_file.write("[]\n" if before == "[" else "\n]\n")


def _case_records(history: History, site: Site) -> Iterator[dict[str, Any]]:
    """Cases as the kernel pages show them; ``None`` where something is not known."""
    uncommitted = {s.commit.hash: ", ".join(s.uncommitted) or None for s in history.snapshots}
    for key, now in site.current(history).items():
        for row in now.cases.values():
            ratio = row.speedup
            doubts = doubt_words(site.doubts(key).of(row.name.implementation))
            has_ends = ratio is not None and ratio.has_interval
            yield {
                "commit": now.commit.hash,
                "commit_date": int(now.commit.date),
                "subject": now.commit.subject,
                "uncommitted": uncommitted[now.commit.hash],
                **asdict(row.name),
                "device": row.device if row.recorded else None,
                "status": row.status,
                "reason": row.reason or row.missing,
                "seconds": row.seconds,
                "seconds_low": row.low,
                "seconds_high": row.high,
                "value": row.value,
                "unit": row.unit,
                "samples": row.samples,
                "disturbed": row.disturbed,
                "baseline": row.baseline.implementation if row.baseline else None,
                "baseline_case": row.baseline.case if row.baseline else None,
                "speedup": ratio.value if ratio else None,
                "speedup_low": ratio.low if ratio and has_ends else None,
                "speedup_high": ratio.high if ratio and has_ends else None,
                "verdict": ratio.verdict if ratio else None,
                "layouts": text.layouts(row) or None,
                "bytes": row.bytes,
                "flops": row.flops,
                "bytes_doubt": doubts.get("bytes"),
                "flops_doubt": doubts.get("flops"),
                "peak_bytes": row.peak_bytes,
                "max_abs_error": plain(row.max_abs_error),
                "max_rel_error": plain(row.max_rel_error),
                "score": plain(row.score),
                "warnings": "; ".join(row.warnings) if row.recorded else None,
            }


def _count_records(history: History, site: Site) -> Iterator[dict[str, Any]]:
    """Costs of each case that was counted at its newest commit, each with its newest change; a case
    without counts is one record with the reason."""
    newest: dict[CaseName, dict[str, tuple[CountChange, CostPair]]] = defaultdict(dict)
    for change in site.count_changes(history):  # the newest first
        for pair in change.pairs:
            newest[change.name].setdefault(pair.words, (change, pair))
    hashes = [commit.hash for commit in history.commits]
    for now in site.current(history).values():
        counted = site.counts(history.snapshots[history.places[now.commit]])
        for name in filter(counted.get, now.cases):
            counts, changes = counted[name], newest[name]
            values: dict[str | None, int | None] = {
                **dict.fromkeys(changes, 0),  # of those that are 0 now nothing is kept
                **{pair.words: pair.new for pair in cost_pairs(counts, counts)},
            }
            for cost, value in (values if counts.missing is None else {None: None}).items():
                changed = changes.get(cost or "")
                yield {
                    "commit": now.commit.hash,
                    **asdict(name),
                    "model": counts.model,
                    "missing": counts.missing,
                    "count": cost,
                    "value": value,
                    "value_before": changed[1].old if changed else None,
                    "changed_at": hashes[changed[0].after] if changed else None,
                    "changed_against": hashes[changed[0].before] if changed else None,
                }


def _machine_records(history: History, site: Site) -> Iterator[dict[str, Any]]:
    """Yield one record for each fact of a setup, as it was last recorded, and for its noise."""
    recorded = next((s.facts for s in reversed(history.snapshots) if s.facts), {})
    for name, value in sorted({**history.snapshots[-1].params, **recorded}.items()):
        yield {"kind": "fact", "name": name, "value": plain(value)}
    noise = site.noise(history)
    for name, value in (("between", noise.between), ("within", noise.within)):
        yield {"kind": "noise", "name": name, "value": plain(value)}


def _safe(value: Any) -> Any:
    is_formula = isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA_STARTS)
    return f"'{value}" if is_formula else value


def plain(value: Any) -> Any:
    """JSON's own kinds of values, with ``None`` for what is not finite."""
    return msgspec.json.decode(encoded(value))


def encoded(value: Any) -> bytes:
    """Return it as JSON on one line, with ``null`` for what is not finite."""
    return msgspec.json.encode(value, enc_hook=lambda array: array.tolist())
