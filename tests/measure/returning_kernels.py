"""Functions that return what others write, and functions that start or hang, for the tests of
results by name and of fresh processes."""

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from gpubench.backends.scripted import script


def add_and_sum(a, b, out):
    """``out = 2 a`` and ``b += a``; returns the sum of ``a``."""
    np.multiply(a, 2, out=out)
    b += a
    return a.sum()


def returns_all(a, b):
    return 2 * a, a + b, a.sum()


def returns_in_another_order(a, b):
    return a + b, 2 * a, a.sum()


def returns_wrongly(a, b):
    return 2 * a, a + b + 1, a.sum()


def returns_another_dtype(a, b):
    return 2 * a, (a + b).astype(np.float64), a.sum()


def returns_too_few(a, b):
    return 2 * a, a + b


def returns_text(a, b):
    return 2 * a, "b", a.sum()


_calls = itertools.count(2)


def returns_one_more_each_time(a):
    return np.ones(next(_calls))


def returns_what_it_wrote(a, b):
    b += a
    return 2 * a, b, a.sum()


def write_twice(a, out):
    np.multiply(a, 2, out=out)


def say_where(a, out):
    """Appends the process's id to a file."""
    with Path(os.environ["RETURNING_KERNELS"]).open("a") as file:
        file.write(f"{os.getpid()}\n")
    np.multiply(a, 2, out=out)


def fails_elsewhere(a, out):
    """Right in one process alone."""
    if os.environ["RETURNING_KERNELS"] != str(os.getpid()):
        raise ValueError("there is no cluster")
    np.multiply(a, 2, out=out)


def exits_elsewhere(a, out):
    """Right in one process alone, and silent in others."""
    if os.environ["RETURNING_KERNELS"] != str(os.getpid()):
        sys.exit(0)
    np.multiply(a, 2, out=out)


def start_and_hang(a, out):
    """Leaves a process, and its id in a file, and does not come back."""
    child = subprocess.Popen(["sleep", "60"])
    Path(os.environ["RETURNING_KERNELS"]).write_text(str(child.pid))
    time.sleep(60)


def start_and_return(a, out):
    """Leaves one process, on the first call."""
    file = Path(os.environ["RETURNING_KERNELS"])
    if not file.exists():
        child = subprocess.Popen(["sleep", "60"])
        file.write_text(str(child.pid))
    np.multiply(a, 2, out=out)


def hang_in_a_fresh_process(a, out):
    """Right in the process that measures; its fresh process never answers."""
    file = Path(os.environ["RETURNING_KERNELS"])
    if file.exists() and file.read_text() != str(os.getpid()):
        file.write_text(str(os.getpid()))
        time.sleep(60)
    file.write_text(str(os.getpid()))
    np.multiply(a, 2, out=out)


twice = script(1e-3)(write_twice)
says_where = script(1e-3)(say_where)
fails = script(1e-3)(fails_elsewhere)
exits = script(1e-3)(exits_elsewhere)
starts_and_hangs = script(1e-3)(start_and_hang)
starts_and_returns = script(1e-3)(start_and_return)
hangs_when_fresh = script(1e-3)(hang_in_a_fresh_process)
