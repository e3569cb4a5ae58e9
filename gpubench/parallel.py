"""The same function over many things, in several processes where that saves time."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

CHUNKS = 4
"""For each process: enough that none waits long for the last one."""


def spread(
    function: Callable[[Sequence[T]], list[R]], items: Sequence[T], processes: int | None = None
) -> Iterator[R]:
    """What ``function`` gives for parts of ``items``, joined in their order.

    Both have to be picklable. New processes import what they need, which takes about as long as a
    second of work: the caller decides whether there is more. ``processes`` is by default one for
    each processor that this process may use; with one, and where processes cannot be started, the
    work is done here.
    """
    count = processes or _processors()
    if count == 1 or len(items) < 2:
        yield from function(items)
        return
    size = -(-len(items) // (count * CHUNKS))
    parts = [items[start : start + size] for start in range(0, len(items), size)]
    done: list[list[R]] = []
    context = multiprocessing.get_context("spawn")
    with suppress(OSError, BrokenExecutor), ProcessPoolExecutor(count, context) as pool:
        done.extend(pool.map(function, parts))
    for found in done:
        yield from found
    for part in parts[len(done) :]:
        yield from function(part)


def _processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
