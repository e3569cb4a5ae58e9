"""``out = 2 a``, with memory held meanwhile: 64 MiB, wherever they are."""

import mmap
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryFile

import numpy as np
from numba import njit

HELD = 64 * 2**20
LASTING = 0.3
"""Seconds for which another process holds memory: hundreds of looks, on a busy machine some."""


def scale(a, out):
    np.multiply(a, 2, out=out)


def scale_by_a_pool(pool, a, out):
    scale(a, out)


def with_a_temporary(a, out):
    """For as short a time as there is: no look from outside is sure to see it."""
    np.ones(HELD, np.uint8)
    scale(a, out)


@njit
def _held(nbytes):
    return np.ones(nbytes, np.uint8)[-1]


def with_the_lock(a, out):
    """Compiled code does not let another thread of the interpreter run."""
    _held(HELD)
    scale(a, out)


_threads = ThreadPoolExecutor(1)


def in_a_thread(a, out):
    """Its allocator keeps what was freed, and gives it to the next run."""
    _threads.submit(np.ones, HELD // 4, np.uint8).result()
    scale(a, out)


def in_a_child(a, out):
    program = f"import time; held = b'x' * {HELD}; time.sleep({LASTING})"
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)
    scale(a, out)


def shared_with_a_child(a, out):
    held = np.ones(HELD, np.uint8)
    child = os.fork()
    if not child:
        time.sleep(LASTING)
        os._exit(int(held[0]) - 1)
    os.waitpid(child, 0)
    scale(a, out)


def over_a_file(a, out):
    with TemporaryFile() as file:
        file.truncate(HELD)
        with mmap.mmap(file.fileno(), HELD, access=mmap.ACCESS_READ) as pages:
            end = time.monotonic() + LASTING
            while time.monotonic() < end:
                np.frombuffer(pages, np.uint8).sum()
    scale(a, out)


def too_large(a, out):
    np.zeros(2**30, np.uint8)
    scale(a, out)


def large_when_asked_again(a, out):
    """The first runs, which are checked, take nothing."""
    large_when_asked_again.runs += 1
    if large_when_asked_again.runs > 3:
        np.zeros(2**30, np.uint8)
    scale(a, out)


large_when_asked_again.runs = 0


def crash(a, out):
    """As a library does that gets no memory and knows no exceptions."""
    try:
        np.zeros(2**30, np.uint8)
    except MemoryError:
        os.abort()
    scale(a, out)
