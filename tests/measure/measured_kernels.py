"""Functions that the tests of measuring put into suites: right ones and every kind of wrong one."""

import numpy as np
from numba import njit

from gpubench.backends.scripted import script


def scale(a, out):
    np.multiply(a, 2, out=out)


def scale_in_two_steps(a, out):
    np.add(a, a, out=out)


def write_nothing(a, out):
    pass


def write_half(a, out):
    half = a.size // 2
    out[:half] = 2 * a[:half]


def write_slightly_off(a, out):
    np.multiply(a, 2.001, out=out)


def write_nan(a, out):
    np.multiply(a, 2, out=out)
    out[0] = np.nan


def fail(a, out):
    raise MemoryError("no room for another array")


def add_in_place(a, b):
    b += a


def count_up(out):
    out += 1


def add_and_scale(a, b, out, s):
    b += a
    np.multiply(a, s, out=out)


def add_and_scale_in_float32(a, b, out, s):
    assert {a.dtype, b.dtype, out.dtype, s.dtype} == {np.dtype(np.float32)}
    add_and_scale(a, b, out, s)


def add_and_scale_wrongly(a, b, out, s):
    add_and_scale(a, b, out, s * np.float32(1.001))


def doubled(a):
    return 2 * a


def doubled_in_float32(a):
    return 2 * a.astype(np.float32)


def tripled_in_float32(a):
    return 3 * a.astype(np.float32)


def nudge(a):
    a *= 1 + 1e-8


def nudged_in_float32(a):
    return (a * (1 + 1e-8)).astype(np.float32)


def total(a):
    return a.sum()


def total_transposed(a):
    return np.array([a.sum()])


def total_as_integer(a):
    return np.int64(a.sum())


@njit(cache=True)
def total_compiled(a):
    total = 0.0
    for x in a:
        total += x
    return total


def smallest_and_largest(a):
    return a.min(), a.max()


def one_result_too_few(a):
    return a.min()


@script(seconds=lambda a, out: 1e-9 * a.size)
def scale_scripted(a, out):
    np.multiply(a, 2, out=out)


@script(seconds=1e-3, fails="illegal address", fails_at=1)
def fail_when_timed(a, out):
    np.multiply(a, 2, out=out)


@script(seconds=1e-3, fails="illegal address", fails_at=0, asynchronous=True)
def crash_at_once(a, out):
    np.multiply(a, 2, out=out)


@script(seconds=1e-3, fails="illegal address", fails_at=2, asynchronous=True)
def crash_when_timed(a, out):
    np.multiply(a, 2, out=out)


def fill_downwards(values, generator):
    return np.arange(values["n"], 0, -1, dtype=np.float32)


def fill_too_short(values, generator):
    return np.zeros(values["n"] - 1, np.float32)


def ragged(values, generator):
    starts = np.arange(0, values["n"] + 1, dtype=np.int64)
    return starts, generator.random(values["n"])


def of_any_length(values, generator):
    return generator.random(generator.integers(100, 10_000))


def same_sign(outputs, expected):
    wrong = np.count_nonzero(np.sign(outputs["out"]) != np.sign(expected["out"]))
    return f"{wrong} signs differ" if wrong else None
