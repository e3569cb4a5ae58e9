"""Declared work in words, where counted work contradicts it."""

from __future__ import annotations

from collections.abc import Mapping

from gpubench.analysis.declared_work import RateDoubt
from gpubench.report import text
from gpubench.report.findings import case_words
from gpubench.work.declared import DeclaredWork


def declared_words(work: DeclaredWork) -> tuple[str, ...]:
    """Say where declared operations and bytes are not those that were counted; empty where they
    are."""
    return tuple(filter(None, (_declared_flops(work), _declared_bytes(work))))


def _declared_flops(work: DeclaredWork) -> str:
    if not work.are_flops_off:
        return ""
    special = f" and {work.special_functions:,} special functions" if work.special_functions else ""
    ratio = f", {text.ratio(work.flops_ratio)} as many" if work.flops_ratio else ""
    return (
        f"`flops` declares {work.flops:,} operations{ratio}: "
        f"{work.counted_flops:,}{special} are counted"
    )


def _declared_bytes(work: DeclaredWork) -> str:
    if not work.are_bytes_off:
        return ""
    return f"`bytes` declares {work.bytes:,} bytes, and its accesses touch {work.accessed_bytes:,}"


def doubt_words(doubt: RateDoubt) -> Mapping[str, str]:
    """Say why rates do not rest on counted work, by `bytes` and `flops`; empty where counts
    agree."""
    rates = {
        "bytes": ("GB/s", doubt.bytes, _declared_bytes),
        "flops": ("GFLOP/s", doubt.flops, _declared_flops),
    }
    return {
        kind: f"{rate} does not rest on counted work: {case_words(found.name)}: {words(found.work)}"
        for kind, (rate, found, words) in rates.items()
        if found
    }
