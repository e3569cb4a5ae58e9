"""Functions of NumPy whose work theory gives, and those with work that no ufunc does; a program
that counts them: JSON, by the function's name."""

# mypy: ignore-errors

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial

import numpy as np

from gpubench.counts.numpy_calls import NumpyCounter, UnseenWork, WatchedArray

N = 1000
PLACES = np.arange(10)


def scale_and_add(x, y):
    return 2.0 * x + y


def add_in_place(x, y):
    x += y


def norm(x, y):
    return np.sqrt(np.sum(x * x))


def smooth(x, y):
    y[1:-1] = 0.5 * (x[:-2] + x[2:])


def divide_by_largest(x, y):
    np.divide(x, x.max(), out=y)


def complex_square(x, y):
    return (x + 1j) * y


def product(x, y):
    return np.dot(x, y)


def matrices(x, y):
    return x.reshape(20, 50) @ y.reshape(50, 20)


def copy(x, y):
    np.copyto(y, x)


def choose(x, y):
    return np.where(x > 0, x, y)


def gather(x, y):
    return x[[1, 2]]


def without_the_subclass(x, y):
    z = np.asarray(x)
    z += 1


def sort_in_place(x, y):
    x.sort()


def make_room(x, y):
    z = np.empty(N)
    z[:] = x


def loop(x, y):
    total = 0.0
    for value in x:
        total += value


def index_one_by_one(x, y):
    for i in range(x.size):
        y[i] = x[i]


def transform(x, y):
    np.fft.fft(x)


def global_array(x, y):
    return PLACES * 2


def memory(x, y):
    return memoryview(x)[0]


def masked(x, y):
    np.add(x, y, out=y, where=x > 0)


def imports(x, y):
    from math import sqrt

    return sqrt(2.0)


def compiled(x, y):
    return scale_and_add(x, y)


FUNCTIONS = (
    *(scale_and_add, add_in_place, norm, smooth, divide_by_largest, complex_square, product),
    *(matrices, copy, choose, gather, without_the_subclass, sort_in_place, make_room, loop),
    *(index_one_by_one, transform, global_array, memory, masked, imports, compiled),
)


def main() -> None:
    counter = NumpyCounter()
    found = {}
    for function in FUNCTIONS:

        def within(run, function=function):
            if function is compiled:
                raise UnseenWork("it calls what Numba compiled")
            run()

        as_it_is = partial(function, np.ones(N), np.ones(N))
        watched = partial(function, *(np.ones(N).view(WatchedArray) for _ in range(2)))
        found[function.__name__] = asdict(counter.count(as_it_is, watched, within))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
