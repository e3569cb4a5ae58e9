"""Functions for the tests of several implementations at once."""

import threading

import numpy as np

from gpubench.backends.scripted import script


def scale(a, out):
    np.multiply(a, 2, out=out)


def _scaled(a, out):
    out[...] = a * 2


quick = script(lambda a, out: 1e-6 * a.size)(_scaled)
slow = script(lambda a, out: 4e-6 * a.size)(_scaled)
launched = script(lambda a, out: 1e-4 + 1e-6 * a.size)(_scaled)
"""As fast as ``quick``, after a launch that takes as long as 100 elements."""
endless = script(lambda a, out: 1.0)(_scaled)
lost = script(1e-3, fails="illegal address", fails_at=5)(_scaled)


def scale_wrongly_at_the_end(a, out):
    np.multiply(a, 2, out=out)
    out[-1] = 0


def fail(a, out):
    raise ZeroDivisionError("nothing to divide by")


def scaled(a):
    return a * 2


def double(a, out):
    out += a


def doubled(a, out):
    return out + a


def add_in_place(weights, table, n, out):
    """``out[i, j] += weights[i] * table[i, j]`` for arrays of shape [3] and [3, n]."""
    assert table.shape == (3, n)
    out += weights[:, None] * table


_both = threading.Barrier(2, timeout=20)


def wait_for_the_other(a, out):
    _both.wait()
    scale(a, out)


strides: set[tuple[int, ...]] = set()
"""Of the first argument of each call of ``note_strides``."""


def note_strides(table, out):
    strides.add(table.strides)
    np.multiply(table, 2, out=out)


def every_second(values, generator):
    return generator.standard_normal((3, 2 * values["n"]))[:, ::2]


def backwards(values, generator):
    return generator.standard_normal((3, values["n"]))[::-1, ::-1]
