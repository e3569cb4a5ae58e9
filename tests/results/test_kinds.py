"""Of which kind a case is by how much its times differ between runs."""

from __future__ import annotations

from typing import Any

import pytest

from gpubench.results import CaseName, Row
from gpubench.results.kinds import CASE_KINDS, kind_of


def row(time: str = "kernel", **fields: Any) -> Row:
    name = CaseName("add", "add", "numba", time, "n=4")
    return Row(name, "ok", **{"seconds": 1e-3, "device": "cpu", "bytes": 2**10, **fields})


THREADS = {"numba_threads": 2, "numpy_blas_threads": 8}


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (row(seconds=9e-6), "one thread, below 10 µs"),
        (row(bytes=2**17), "one thread, up to 128 KiB"),
        (row(bytes=2**17 + 1), "one thread, up to 2 MiB"),
        (row(bytes=2**25), "one thread, up to 32 MiB"),
        (row(bytes=2**25 + 1), "one thread, over memory"),
        (row(bytes=0), "one thread, up to 128 KiB"),
        (row(bytes=None), "one thread, bytes not known"),
        (row(device="", seconds=None, bytes=None), "one thread, bytes not known"),
        (row(conditions={"numpy_blas_threads": 8}), "one thread, up to 128 KiB"),
        (row(conditions=THREADS), "several threads, up to 128 KiB"),
        (row(conditions=THREADS, pairs=60), "one thread, up to 128 KiB"),
        (row(conditions=THREADS, threads=1), "one thread, up to 128 KiB"),
        (row(threads=4, seconds=1e-6), "several threads, below 10 µs"),
        (row(threads=4, bytes=None), "several threads, bytes not known"),
        (row(device="cuda:0", seconds=1e-6), "GPU, below 10 µs"),
        (row(device="cl:0"), "GPU, from 10 µs on"),
        (row(device="processes:2"), "other processes"),
        (row(time="compile", device="cuda:0"), "once in a process"),
    ],
)
def test_threads_bytes_and_seconds_tell_the_kind(case: Row, kind: str) -> None:
    assert kind_of(case) == kind
    assert kind in CASE_KINDS
