"""Kernels whose results differ in every number and are as good, or are not; and scores of them.

``values`` (shape ``[n]``) belong to two groups; a result is a group for each value, and the groups'
centres.
"""

import os
from pathlib import Path

import numpy as np


def two_heaps(values, generator):
    """Half of ``n`` numbers around 10, half around 20."""
    n = values["n"]
    return np.repeat([10.0, 20.0], [n // 2, n - n // 2]) + generator.normal(size=n)


def grouped(values):
    """Labels 0 and 1 and their centres, the lower first."""
    labels = (values > 15).astype(np.int64)
    return labels, np.array([values[labels == 0].mean(), values[labels == 1].mean()])


def grouped_the_other_way(values):
    """As good: the higher first."""
    labels, centres = grouped(values)
    return 1 - labels, centres[::-1].copy()


def grouped_badly(values):
    """Every third in the wrong group."""
    labels, centres = grouped(values)
    labels[::3] ^= 1
    return labels, centres


def labels_of_nothing(values):
    """Labels that have no centre."""
    labels, centres = grouped(values)
    return labels + 5, centres


def centres_of_nothing(values):
    labels, centres = grouped(values)
    return labels, np.full_like(centres, np.inf)


def in_another_dtype(values):
    labels, centres = grouped(values)
    return labels.astype(np.int32), centres


def right_at_first(values):
    """From the third call on every third is in the wrong group."""
    calls = Path(os.environ["CALLS"])
    calls.write_text("." + (calls.read_text() if calls.exists() else ""))
    return (grouped if calls.stat().st_size < 3 else grouped_badly)(values)


def grouped_into(values, labels, centres):
    labels[:], centres[:] = grouped(values)


def writes_nothing(values, labels, centres):
    pass


def zeros(values):
    return np.zeros(values.size, np.int64), np.zeros(2)


def inertia(outputs, inputs):
    """Squares of the distances from each value to its group's centre."""
    return np.square(inputs["values"] - outputs["centres"][outputs["labels"]]).sum()


def apartness(outputs, inputs):
    """Of the first half of all values and the second: 1 where each has a group for itself."""
    first, second = np.split(outputs["labels"], 2)
    return abs(first.mean() - second.mean())


def number_of_labels(outputs, inputs):
    """Which any result reaches."""
    return float(outputs["labels"].size)


def of_labels_alone(outputs, inputs):
    labels, values = outputs["labels"], inputs["values"]
    groups = (values[labels == k] for k in np.unique(labels))
    return sum(np.square(group - group.mean()).sum() for group in groups)


def disagreement(outputs, inputs):
    """Distance of the centres from what the labels say: nothing at all agrees with itself."""
    labels, values = outputs["labels"], inputs["values"]
    means = [values[labels == k].mean() if (labels == k).any() else 0 for k in (0, 1)]
    return 1 + np.abs(outputs["centres"] - np.multiply(means, labels.max())).max()


def names_of_inputs(outputs, inputs):
    raise ValueError(", ".join(f"{name}={np.ndim(value)}" for name, value in inputs.items()))


def not_a_number(outputs, inputs):
    return np.nan


def zero(outputs, inputs):
    return 0


def negative(outputs, inputs):
    return -inertia(outputs, inputs)


def a_list(outputs, inputs):
    return [1.0]


def overwriting(outputs, inputs):
    inputs["values"][:] = 0
    return 1.0


def distance_from_zero(outputs, inputs):
    return np.abs(outputs["labels"]).sum() + np.abs(outputs["centres"]).sum()


def inertia_of_ascending_centres(outputs, inputs):
    """Which no other has."""
    ascending = outputs["centres"][0] <= outputs["centres"][1]
    return inertia(outputs, inputs) if ascending else np.nan


def grouped_either_way(values):
    """As good each time, and never the same twice."""
    calls = Path(os.environ["CALLS"])
    calls.write_text("." + (calls.read_text() if calls.exists() else ""))
    return (grouped if calls.stat().st_size % 2 else grouped_the_other_way)(values)
