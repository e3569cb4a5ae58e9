"""What backends with workers share: waiting until every worker has answered, and what they ask of
devices and options."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from gpubench.backends.host import cpu
from gpubench.backends.protocol import Backend, DeviceFacts, MemoryPlace
from gpubench.errors import BackendError
from gpubench.names import Value

WORKERS_PATTERN = r"[1-9]\d{0,3}"
"""A number of workers in a device's name. No machine has as many processors as five digits say."""

MAX_WORKERS_START_SECONDS = 60.0
"""Seconds in which all workers have to answer: they import their system, which takes ten seconds on
a busy machine."""

MAX_ANSWER_SECONDS = 5.0
"""Seconds in which a scheduler at an address has to answer: fifty times what a connection across a
continent takes (0.1 s)."""

PRESENT = 0.01
"""Seconds that a worker holds on when it is asked who it is, so that the next question finds
another one."""

POLL_SECONDS = 0.001
"""Seconds between two questions to workers that start: next to nothing beside the tenths of a
second that a process takes."""


def who_am_i(_: object = None) -> int:
    """Run by a worker: the number of its thread, which no other one of the machine has."""
    time.sleep(PRESENT)
    return threading.get_native_id()


def wait_for_all(ask: Callable[[int], Iterable[Any]], workers: int) -> None:
    """Return when so many workers have answered; ``ask`` has workers say who they are so often, and
    gives the answers. Pools start their workers when there is work, one after another.

    Raises ``BackendError`` after ``MAX_WORKERS_START_SECONDS``.
    """
    deadline, answered = time.monotonic() + MAX_WORKERS_START_SECONDS, set(ask(workers))
    while len(answered) < workers:
        time.sleep(POLL_SECONDS)
        answered.update(ask(workers))
        if time.monotonic() > deadline:
            raise BackendError(
                f"{len(answered)} of {workers} workers answered within "
                f"{MAX_WORKERS_START_SECONDS:g} s; use fewer, or a machine that does less"
            )


def blas_threads_asker() -> Callable[[], dict[str, Value]]:
    """Return a function that a worker runs: ``worker_blas_threads``, where it can tell. Made here,
    so that it goes to workers that have no gpubench, which a function of a module would not."""

    def ask() -> dict[str, Value]:
        try:
            import numpy  # noqa: F401  (brings BLAS)
            from threadpoolctl import threadpool_info
        except ImportError:
            return {}
        blas = [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]
        return {"worker_blas_threads": max(blas)} if blas else {}

    return ask


def memory_option(value: object, device: str = "", means_nothing: str = "") -> int | None:
    """Return the option ``memory`` in bytes; raises ``BackendError`` for what is no number of
    bytes, and for any on a device where it ``means_nothing``, for that reason."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BackendError(f"the option memory is {value!r}; allowed: a number of bytes from 1")
    if means_nothing:
        raise BackendError(
            f"the option memory of {value} means nothing on {device}: {means_nothing}; leave it out"
        )
    return value


def no_threads_beside_workers(instead: str) -> str:
    """``Backend.no_threads`` of one whose device says how many workers there are."""
    return (
        "workers are part of the device's name here; leave out 'threads' and list "
        f"{instead} under 'devices'"
    )


class ClusterBackend(Backend):
    """A backend whose devices are workers, of a system that is started here or runs elsewhere: its
    devices have numbers in their names, or an address."""

    def memory_place(self, device: str) -> MemoryPlace:
        place = super().memory_place(device)
        return "host" if place == "elsewhere" and counts_of(device) else place

    def device_facts(self, device: str) -> DeviceFacts:
        address = device.removeprefix(f"{self.name}:")
        name = cpu().name if counts_of(device) else f"{self.title} at {address}"
        return DeviceFacts(name, scope={"device": device})


def counts_of(device: str) -> tuple[int, ...]:
    """Return the numbers at the end of a device's name: ``(4, 1)`` of ``dask:4:1``; none of an
    address."""
    found = re.fullmatch(r"[a-z]+((?::\d+)+)", device)
    return tuple(map(int, found[1][1:].split(":"))) if found else ()
