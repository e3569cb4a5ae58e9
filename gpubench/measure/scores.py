"""How good a result is, where two right ones may differ in every number.

Two runs of k-means number their clusters otherwise, two forests draw other trees: their outputs
cannot be compared, but what they are worth can. A suite names a function that gives outputs one
number, and says how far the number may be from that of the baseline's outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpubench.arrow import AnyArray
from gpubench.errors import KernelError
from gpubench.measure.targets import called
from gpubench.suite.sampling import Check

Outputs = Mapping[str, AnyArray]
"""Arrays by name."""

OwnRule = Callable[[Outputs, Outputs], tuple[str | None, float | None]]
"""A rule of a suite's own in place of a tolerance: of outputs and what is expected, why they are
wrong (else ``None``), and what they are worth (``None`` where the rule is no score, or where that
is no finite number)."""


def accepts(rule: OwnRule, outputs: Outputs, expected: Outputs) -> bool:
    """Return whether the outputs of an impostor pass for what is expected."""
    try:
        fault, _ = rule(outputs, expected)
    except Exception:  # it was not made for this, and it did not pass
        return False
    return fault is None


@dataclass(frozen=True, slots=True)
class Scorer:
    """The score of a suite, over the inputs of one case: an ``OwnRule``."""

    check: Check
    """One with ``score``, and with ``at_most`` or ``at_least``."""
    function: Callable[[Outputs, Mapping[str, Any]], Any]
    """What ``check.score`` names."""
    inputs: Mapping[str, Any]
    """What a run starts from, by name: arrays, scalars, axes and ``let``."""

    def value(self, outputs: Outputs) -> float:
        """Return the score of these outputs, which may be NaN or infinite.

        Raises ``KernelError`` where the function fails, or gives something else than a number.
        """
        with called(f"{self.check.score}(outputs, inputs)", self.check.score):
            value = self.function(_read_only(outputs), _read_only(self.inputs))
        number = np.asarray(value)
        if number.ndim or number.dtype.kind not in "iuf":
            raise KernelError(
                f"{self.check.score}(outputs, inputs) gave a {type(value).__name__}; a score is "
                "one number"
            )
        return float(number)

    def __call__(self, outputs: Outputs, expected: Outputs) -> tuple[str | None, float | None]:
        """Return why outputs are not good enough beside those of the baseline, and their score.

        Raises ``KernelError`` where the baseline's outputs have none: then the function is at
        fault. Where only the others have none, they are.
        """
        baseline = self.value(expected)
        try:
            value = self.value(outputs)
        except KernelError as error:
            return f"no score: {error}; that of the baseline is {baseline:.6g}", None
        if not math.isfinite(value):
            return f"the score is {value}, that of the baseline {baseline:.6g}", None
        if self.check.at_most is not None:
            factor, beyond, better = self.check.at_most, "above", "lower"
            is_beyond = value > factor * baseline
        else:
            factor, beyond, better = self.check.at_least or 1.0, "below", "higher"
            is_beyond = value < factor * baseline
        if not is_beyond:
            return None, value
        fault = (
            f"the score {value:.6g} is {beyond} {factor * baseline:.6g}, which is {factor:g} times "
            f"that of the baseline ({baseline:.6g}; {better} is better)"
        )
        return fault, value

    def why_vacuous(self, expected: Outputs, impostors: Mapping[str, Outputs]) -> str | None:
        """Return why the score of the baseline's outputs would prove nothing of others: it is no
        number that a factor means something for, or impostors, by what they are, are as good."""
        value = self.value(expected)
        if not (math.isfinite(value) and value > 0):
            return (
                f"{self.check.score} gives the baseline's outputs {value:g}, and a factor of that "
                "allows nothing or anything; have it give a finite number above 0"
            )
        for what, outputs in impostors.items():
            if accepts(self, outputs, expected):
                return self.cannot_tell("all outputs", what, outputs, expected)
        return None

    def cannot_tell(self, name: str, what: str, impostors: Outputs, expected: Outputs) -> str:
        """Say that the score takes impostors for the right result, with both scores."""
        right, other = self.value(expected), self.value(impostors)
        limit = "at_most" if self.check.at_most is not None else "at_least"
        return (
            f"{name}: the score {self.check.score} takes {what} for the right result: "
            f"{other:.6g} beside the baseline's {right:.6g}; set {limit} nearer to 1, choose "
            "inputs whose result differs more, or have the score look at that"
        )


def _read_only(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same, with arrays that cannot be written: a score must not change what is
    checked."""
    views = dict(values)
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            views[name] = value.view()
            views[name].flags.writeable = False
    return views
