"""Kernels whose time or result depends on what the runs before left."""

import itertools

import numpy as np

from gpubench.backends.scripted import script

calls = itertools.count()


def sort(a):
    a.sort()


def insertion_sort_seconds(a):
    """4 ms for random numbers, next to nothing for sorted ones."""
    return 4e-3 * float(np.mean(a[1:] < a[:-1])) / 0.5 + 1e-6


sort_in_place = script(seconds=insertion_sort_seconds)(sort)


def negate(a):
    np.negative(a, out=a)


# Every second run finds what it began with.
negate_in_place = script(seconds=lambda a: 1e-4 if a.sum() > 0 else 1e-6)(negate)


def increase(a):
    a += 1


increase_in_place = script(seconds=1e-4)(increase)
noisy_in_place = script(seconds=[1.0e-4, 1.3e-4, 0.8e-4, 1.1e-4, 0.9e-4])(increase)


def scale(a, out):
    np.multiply(a, 2, out=out)


def scale_unless_done(a, out):
    if not np.array_equal(out, 2 * a):
        np.multiply(a, 2, out=out)


def seconds_unless_done(a, out):
    return 1e-7 if np.array_equal(out, 2 * a) else 1e-3


skips_what_is_done = script(seconds=seconds_unless_done)(scale_unless_done)
skips_a_long_run = script(seconds=lambda a, out: 20 * seconds_unless_done(a, out))(
    scale_unless_done
)
steady = script(seconds=1e-3)(scale)


def scale_wrongly_later(a, out):
    """Right for 40 calls."""
    np.multiply(a, 2 if next(calls) < 40 else 3, out=out)


wrong_later = script(seconds=1e-3)(scale_wrongly_later)


def scale_wrongly_once(a, out):
    np.multiply(a, 3 if next(calls) == 0 else 2, out=out)


wrong_once = script(seconds=1e-3)(scale_wrongly_once)

kept = {}


def scale_what_is_new(a, out):
    """Computes once for each array, by where it lies."""
    if id(a) not in kept:
        kept[id(a)] = (a, 2 * a)
    np.copyto(out, kept[id(a)][1])


remembers = script(seconds=1e-3)(scale_what_is_new)


def scale_and_return_later(a):
    """Right for 40 calls."""
    return a * (2 if next(calls) < 40 else 3)


def scale_and_return(a):
    return a * 2


returns_wrongly_later = script(seconds=1e-3)(scale_and_return_later)
returns = script(seconds=1e-3)(scale_and_return)
