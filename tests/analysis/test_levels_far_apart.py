"""A level a thousand times the noise away counts though it does not last."""

from __future__ import annotations

import numpy as np
import pytest

from gpubench.analysis.changes import Change, changes_in
from gpubench.analysis.steps import FAR

SETTLED = 162 + 0.5 * np.sin(np.arange(51.0) ** 2)
"""Milliseconds, with a scatter of 0.3 %."""


def changes(*first: float, then: np.ndarray = SETTLED) -> tuple[Change, ...]:
    medians = np.concatenate([first, then])
    (found,) = changes_in(np.stack([medians, medians * 0.997, medians * 1.003])[:, None])
    return found


def test_two_branches_that_were_measured_in_turn_leave_their_step() -> None:
    # numba-benchmark, commits f6cf5647 to 310dddef: asv publishes it, by a factor of 690.
    (step,) = changes(160.4, 0.234, 160.7, 0.234, 0.234, 161.0)

    assert (step.kind, step.before, step.after) == ("step", 4, 5)
    assert step.ratio.factor == pytest.approx(162 / 0.234, rel=0.01)
    assert step.slower


@pytest.mark.parametrize("times", [1.5, 1 / 1.5])
def test_two_outliers_that_are_not_far_are_no_level(times: float) -> None:
    assert np.log(1.5) < FAR * 0.003

    assert changes(*SETTLED[:20], 162 * times, 162.1 * times) == ()


def test_one_outlier_is_no_level_however_far() -> None:
    assert changes(*SETTLED[:20], 0.234) == ()


def test_times_that_repeat_exactly_scatter_a_little() -> None:
    assert changes(*[1.0] * 20, 1.2, 1.2, then=np.ones(20)) == ()
    assert len(changes(*[1.0] * 20, 3.0, 3.0, then=np.ones(20))) == 2
