"""Samples to a timing, by asv's own statistics, so that both ways to measure state the same."""

from __future__ import annotations

from collections.abc import Sequence

from asv_runner.statistics import compute_stats

from gpubench.names import parse_benchmark_name
from gpubench.record import CaseRecord
from gpubench.results.model import CaseName, Outcome, Status, Timing


def timing(samples: Sequence[float], number: int | None = None) -> Timing:
    """Median, 99 % interval and quartiles as asv stores them; seconds.

    The interval of the median is distribution-free (order statistics); with fewer than eight
    samples asv takes a posterior with Laplace noise, and one sample has no interval.
    """
    median, stats = compute_stats(list(samples), number)
    return Timing(
        median=median,
        low=stats["ci_99_a"],
        high=stats["ci_99_b"],
        q25=stats["q_25"],
        q75=stats["q_75"],
        number=number,
        repeat=len(samples),
    )


def outcome(record: CaseRecord, samples: Sequence[float]) -> Outcome:
    """What became of one case that was measured without asv."""
    benchmark = parse_benchmark_name(record.benchmark)
    if benchmark is None:
        raise ValueError(f"{record.benchmark!r} names no benchmark of gpubench")
    name = CaseName.of(benchmark, record.case)
    if record.status == "ok" and samples:
        return Outcome(name, "ok", None, timing(samples, record.runs_per_sample), record)
    return Outcome(name, _status(record), record.reason or "it gave no samples", record=record)


def _status(record: CaseRecord) -> Status:
    if record.status == "ok" or record.status == "started":
        return "killed"
    return record.status
