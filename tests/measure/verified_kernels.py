"""Functions for the CPU that the tests of verifying put into suites."""

import os
import time
from pathlib import Path

import numpy as np


def scale(a, out):
    np.multiply(a, 2, out=out)


def scale_wrongly(a, out):
    np.multiply(a, 2, out=out)
    out[3] = -1


def crash(a, out):
    os.abort()


def hang(a, out):
    time.sleep(600)


def count_calls(a, out):
    """Writes down the process that it ran in."""
    with Path(os.environ["CALLS"]).open("a") as calls:
        calls.write(f"{os.getpid()}\n")
    np.multiply(a, 2, out=out)
