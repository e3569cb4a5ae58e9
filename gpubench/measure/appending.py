"""What ``asv run --append-samples`` keeps to: the number of calls in the samples it adds to."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from gpubench.files import MAX_BYTES, TooLarge, read_regular
from gpubench.measure.asv_settings import AsvSettings
from gpubench.record import SUFFIX


def calls_in_sample(settings: AsvSettings, benchmark: str, case: str, version: str | None) -> int:
    """Return how many calls asv takes for one sample of a case.

    That is asv's attribute ``number``, but where asv adds samples to stored ones of the same
    version, theirs (``asv.runner.run_benchmarks``). asv does not say so to the process.
    """
    stored = _stored_number(settings, benchmark, case, version) if settings.append_samples else 0
    return stored or settings.attributes.get("number") or 1


def _stored_number(settings: AsvSettings, benchmark: str, case: str, version: str | None) -> int:
    """Return the calls in one of the stored samples; 0 where none are stored."""
    record = settings.record
    if record is None:
        return 0
    path = record.with_name(record.name.removesuffix(SUFFIX) + ".json")
    # Whatever is wrong with the file, asv itself says so.
    with suppress(OSError, TooLarge, ValueError, KeyError, TypeError, RecursionError):
        content: dict[str, Any] = json.loads(read_regular(path, MAX_BYTES))
        stored = dict(zip(content["result_columns"], content["results"][benchmark], strict=False))
        numbers = dict(zip(stored["params"][0], stored["stats_number"], strict=True))
        if stored["version"] in (None, version):
            return int(numbers[repr(case)] or 0)
    return 0
