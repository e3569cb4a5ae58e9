"""Kernels that go wrong in ways that a careless check would miss."""

import itertools
import threading

import numpy as np

from gpubench.backends.scripted import script

BLOCK = 32
EXTREMES = np.dtype([("low", np.float64), ("high", np.float64)])

calls = itertools.count()
never = threading.Event()


def scale(a, out):
    np.multiply(a, 2, out=out)


def scale_whole_blocks(a, out):
    """Leaves out what is left over when the size is no multiple of the block."""
    covered = a.size // BLOCK * BLOCK
    np.multiply(a[:covered], 2, out=out[:covered])


def scale_later(a, out):
    """Returns before the work is done, as a launch on a stream of its own does."""

    def work():
        never.wait()
        np.multiply(a, 2, out=out)

    threading.Thread(target=work, daemon=True).start()


def scale_once(a, out):
    """Right the first time and idle after that, as a kernel with a flag left set is."""
    if next(calls) == 0:
        np.multiply(a, 2, out=out)


def scale_with_a_race(a, out):
    """Another last digit in every run."""
    np.multiply(a, 2, out=out)
    out[next(calls) % out.size] *= np.float32(1 + 2**-23)


def scale_using_input_as_scratch(a, out):
    np.multiply(a, 2, out=a)
    out[:] = a


def double_copy(a):
    return 2 * a


def return_input(a):
    return a


def return_view_of_input(a):
    return a.reshape(1, -1)


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


def failing_check(outputs, expected):
    return outputs["no such output"]


@script(seconds=1e-6, asynchronous=True)
def scale_asynchronously(a, out):
    np.multiply(a, 2, out=out)


@script(seconds=1e-6, asynchronous=True, fails="illegal address", fails_at=500)
def crash_while_timed(a, out):
    np.multiply(a, 2, out=out)
