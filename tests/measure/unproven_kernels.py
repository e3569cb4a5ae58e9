"""Kernels whose results a careless check takes for those of a kernel that does nothing."""

import numpy as np


def softmax(a, out):
    np.exp(a - a.max(), out=out)
    out /= out.sum()


def softmax_of_zeros(a, out):
    out[:] = 0


def plane(values, generator):
    """A plane: Gauss and Seidel's averages leave it as it is, but for rounding."""
    i, j = np.indices((values["n"], values["n"]))
    return (i + 2 * j + 2) / values["n"]


def rough(values, generator):
    return generator.random((values["n"], values["n"]))


def seidel_2d(a):
    for i in range(1, len(a) - 1):
        for j in range(1, len(a) - 1):
            a[i, j] = a[i - 1 : i + 2, j - 1 : j + 2].sum() / 9


def seidel_2d_idle(a):
    pass


def count_faults(a, faults):
    faults[0] += np.count_nonzero(np.isnan(a))


def double_and_count_faults(a, out, faults):
    np.multiply(a, 2, out=out)
    faults[0] += np.count_nonzero(np.isnan(a))


def double_and_count_one(a, out, faults):
    np.multiply(a, 2, out=out)
    faults[0] += 1


def double_and_draw(a, out, faults):
    np.multiply(a, 2, out=out)
    faults[0] = np.random.default_rng().integers(1000)


def are_negative(a):
    return a < -100


def nan_everywhere(a, out):
    out[:] = np.nan


def infinite_everywhere(a, out):
    out[:] = -np.inf


def logarithm(a, out):
    with np.errstate(invalid="ignore"):
        np.log(a, out=out)


def accept(outputs, expected):
    return None


def accept_first_half(outputs, expected):
    half = expected["out"].size // 2
    close = np.allclose(outputs["out"][:half], expected["out"][:half])
    return None if close else "the first half differs"


def divide(outputs, expected):
    """Raises for zeros."""
    ratio = float(expected["out"][0]) / float(outputs["out"][0])
    return None if abs(ratio - 1) < 1e-3 else f"{ratio} times too small"


def as_array(a):
    return 2 * a


def as_list(a):
    return list(2 * a)


def as_tuple(a):
    return tuple(2 * a)


def as_none_and_array(a):
    return None, 2 * a


def as_two(a):
    return a.sum(), 2 * a
