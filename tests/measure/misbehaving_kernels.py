"""Kernels that go wrong in ways that a careless check would miss; `tests/wrong` has more."""

import itertools
import sys

import numpy as np

from gpubench.backends.scripted import script

EXTREMES = np.dtype([("low", np.float64), ("high", np.float64)])

calls = itertools.count()


def scale(a, out):
    np.multiply(a, 2, out=out)


def scale_with_a_race(a, out):
    """Another last digit in every run."""
    np.multiply(a, 2, out=out)
    out[next(calls) % out.size] *= np.float32(1 + 2**-23)


def add_and_return(a, b):
    b += a
    return b


def add_and_return_what_was(a, b):
    before = b.copy()
    b += a
    return before


def return_sum_only(a, b):
    return a + b


def extremes(a):
    return np.array([(a.min(), a.max())], EXTREMES)


def extremes_swapped(a):
    return np.array([(a.max(), a.min())], EXTREMES)


def extremes_in_other_fields(a):
    return np.array([(a.min(), a.max())], [("min", np.float64), ("max", np.float64)])


def particles(values, generator):
    made = np.zeros(values["n"], [("mass", np.float32), ("place", np.float64, 3)])
    made["mass"] = generator.random(values["n"], np.float32)
    return made


def total_mass(particles):
    return particles["mass"].sum(dtype=np.float64)


def total_mass_of_all_but_one(particles):
    return particles["mass"][1:].sum(dtype=np.float64)


def conjugate(a, out):
    np.conjugate(a, out=out)


def forget_to_conjugate(a, out):
    out[:] = a


def leave(a, out):
    sys.exit(3)


@script(seconds=1e-6, asynchronous=True)
def scale_asynchronously(a, out):
    np.multiply(a, 2, out=out)


@script(seconds=1e-6, asynchronous=True, fails="illegal address", fails_at=500)
def crash_while_timed(a, out):
    np.multiply(a, 2, out=out)
