"""Functions of suites and tasks that the tests of pools hand to workers, which import this file."""

from __future__ import annotations

import os
import signal
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np


def double(part: Any) -> Any:
    return 2 * part


def double_in_place(part: Any) -> None:
    part *= 2


def raise_of(part: Any) -> Any:
    raise ValueError(f"no task has {len(part)} numbers")


def be_killed(part: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def leave(part: Any) -> Any:
    raise SystemExit(3)


def hang(part: Any) -> Any:
    time.sleep(600)


def main_module() -> str:
    """Name of the main module: ``__mp_main__`` is the one of the program that started it."""
    return sys.modules["__main__"].__name__


def shared_memory_of_this_process(_: Any) -> int:
    """Blocks of memory that it has mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sum("memfd:gpubench" in line for line in lines)


# --- implementations: out = 2 a


def serial(a: Any) -> Any:
    return 2 * a


def on_pool(pool: Any, a: Any) -> Any:
    return np.concatenate(pool.map(double, np.split(a, 4), chunksize=1))


def raising(pool: Any, a: Any) -> Any:
    return _each(pool, raise_of, a)


def killing(pool: Any, a: Any) -> Any:
    return _each(pool, be_killed, a)


def leaving(pool: Any, a: Any) -> Any:
    return _each(pool, leave, a)


def hanging(pool: Any, a: Any) -> Any:
    return _each(pool, hang, a)


def writing(pool: Any, a: Any) -> Any:
    """Into a copy, which the tasks are meant to change."""
    copy = a.copy()
    _each(pool, double_in_place, copy)
    return copy


def _each(pool: Any, task: Any, a: Any) -> Any:
    """The two halves, on a pool of the standard library or of joblib."""
    halves = np.split(a, 2)
    if hasattr(pool, "map"):
        return pool.map(task, halves, chunksize=1)
    delayed = import_module("joblib").delayed
    return pool(delayed(task)(half) for half in halves)


def writing_back(parallel: Any, a: Any) -> Any:
    """With joblib: the results are returned."""
    return np.concatenate(_each(parallel, double, a))
