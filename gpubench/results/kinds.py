"""Kinds of cases by how much their times differ from one run to the next.

What a run of a kernel meets beside its own work depends on whether threads have to be woken, on
where its arrays lie, and on how short it is. A kind is made of what every record has of these.
"""

from __future__ import annotations

from typing import Literal, get_args

from gpubench.names import IN_PROCESS_DEVICES, ONCE_TIMES, device_kind, is_gpu
from gpubench.results.model import Row

Kind = Literal[
    "one thread, below 10 µs",
    "one thread, up to 128 KiB",
    "one thread, up to 2 MiB",
    "one thread, up to 32 MiB",
    "one thread, over memory",
    "one thread, bytes not known",
    "several threads, below 10 µs",
    "several threads, up to 128 KiB",
    "several threads, up to 2 MiB",
    "several threads, up to 32 MiB",
    "several threads, over memory",
    "several threads, bytes not known",
    "GPU, below 10 µs",
    "GPU, from 10 µs on",
    "other processes",
    "once in a process",
]

CASE_KINDS: tuple[Kind, ...] = get_args(Kind)

BRIEF_SECONDS = 1e-5
"""Waking threads, or launching, takes 1 to 5 µs: below, it is a good part of a time."""

STEPS_BYTES = ((2**17, "up to 128 KiB"), (2**21, "up to 2 MiB"), (2**25, "up to 32 MiB"))
"""glibc gives larger arrays than 128 KiB pages of their own, which the system clears at the first
touch (``M_MMAP_THRESHOLD``); from 2 MiB on these can be huge pages; 32 MiB is a large last cache.
"""

_BLAS = "_blas_threads"
"""How conditions end that tell of a library which most cases never call."""


def kind_of(row: Row) -> Kind:
    """Return the kind of a case by its row: threads, bytes and seconds, as far as they are known.

    Samples are taken in turn with the baseline's only where one thread does the work. Otherwise
    several are assumed where the implementation was given them, or its backend has them at hand.
    """
    if row.name.time in ONCE_TIMES:
        return "once in a process"
    device = device_kind(row.device)
    is_brief = row.seconds is not None and row.seconds < BRIEF_SECONDS
    if is_gpu(row.device):
        return "GPU, below 10 µs" if is_brief else "GPU, from 10 µs on"
    if device not in ("", *IN_PROCESS_DEVICES):
        return "other processes"
    threads = "several threads" if uses_threads(row) else "one thread"
    amount = "bytes not known"
    if is_brief:
        amount = "below 10 µs"
    elif row.bytes is not None:
        amount = next((words for most, words in STEPS_BYTES if row.bytes <= most), "over memory")
    return next(kind for kind in CASE_KINDS if kind == f"{threads}, {amount}")


def uses_threads(row: Row) -> bool:
    """Return whether a case on the processor may use several threads."""
    if row.pairs:
        return False
    if row.threads is not None:
        return row.threads > 1
    counts = [
        value
        for name, value in row.conditions.items()
        if name.endswith("threads") and not name.endswith(_BLAS)
    ]
    return any(isinstance(value, int) and value > 1 for value in counts)
