"""Numba's cases on the CPU, counted side by side in one ``asv run`` before asv measures the first.

Counted code is slower, and other code than what is measured: so processes of their own count, and
end before asv takes a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from gpubench.backends.software import cpu_counts_wanted
from gpubench.counts.cases import is_counted_on_cpu
from gpubench.errors import GpubenchError
from gpubench.measure.asv_settings import asv_settings
from gpubench.measure.provenance import Provenance
from gpubench.measure.recorder import Recorder
from gpubench.measure.verify_ahead import is_asked
from gpubench.measure.verify_cases import Manner, verified
from gpubench.plan.case import Case


def count_ahead(cases: Iterable[Case], provenance: Provenance) -> None:
    """Put on record what Numba's cases do that this ``asv run`` asks for.

    Does nothing where nobody asked for counts on the CPU, where asv keeps no results, and where the
    code is not the commit's. A case that is wrong here has no counts; asv's process says why.
    """
    settings = asv_settings()
    if not cpu_counts_wanted() or settings.record is None or provenance.refusal:
        return
    asked = [case for case in cases if is_counted_on_cpu(case) and is_asked(case, settings)]
    if not asked:
        return
    recorder = Recorder(settings.record)
    manner = Manner(count_on_cpu=True, code=True, default_limit=settings.timeout)
    with suppress(GpubenchError, OSError):
        for _, outcome in verified(asked, manner):
            if outcome.counts is not None:
                recorder.write_facts(settings.run, provenance.facts())
                recorder.write(outcome.counts)
