"""``score`` in ``check``: what goes with it, and what it takes the place of."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from small_suite import SUITE

Faults = Callable[..., list[str]]


def scored(check: str) -> str:
    """The small suite with a check, in line 17."""
    return f"{SUITE}    check: {check}\n"


@pytest.mark.parametrize(
    ("limit", "at_most", "at_least"),
    [("at_most: 1.05", 1.05, None), ("at_least: 0.98", None, 0.98), ("at_least: 1", None, 1.0)],
)
def test_a_score_has_one_limit(
    limit: str, at_most: float | None, at_least: float | None, load: Callable[..., object]
) -> None:
    check = load(scored(f"{{score: some.module:inertia, {limit}}}")).suite.kernels["add"].check

    assert (check.score, check.at_most, check.at_least) == (
        "some.module:inertia",
        at_most,
        at_least,
    )


NEEDED = (
    "17:12: check: a score has exactly one of at_most (lower is better) and at_least (higher is "
    "better); found "
)


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        ("{score: 'm:f'}", NEEDED + "none"),
        ("{score: 'm:f', at_most: 2, at_least: 0.5}", NEEDED + "at_most and at_least"),
        ("{at_most: 2}", "17:22: at_most: it goes with score: module:name"),
        ("{at_least: 1}", "17:23: at_least: it goes with score: module:name"),
        (
            "{score: 'm:f', at_most: 0.9}",
            "17:36: at_most: found 0.9; allowed: a number from 1, as the baseline itself has to "
            "pass",
        ),
        (
            "{score: 'm:f', at_least: 1.1}",
            "17:37: at_least: found 1.1; allowed: a number above 0 and up to 1, as the baseline "
            "itself has to pass",
        ),
        (
            "{score: 'm:f', at_least: 0}",
            "17:37: at_least: found 0; allowed: a number above 0 and up to 1, as the baseline "
            "itself has to pass",
        ),
        (
            "{score: inertia, at_most: 2}",
            "17:20: score: found 'inertia'; allowed: module:name, "
            "gpubench.kernels.elementwise:vector_add_numpy for example",
        ),
        (
            "{score: 'm:f', at_most: 2, rtol: 1}",
            "17:45: rtol: a score takes its place; remove one of them",
        ),
        (
            "{score: 'm:f', at_most: 2, norm: max}",
            "17:45: norm: a score takes its place; remove one of them",
        ),
        (
            "{score: 'm:f', at_most: 2, function: 'm:g'}",
            "17:49: function: a score takes its place; remove one of them",
        ),
        (
            "{score: 'm:f', at_most: 2, outputs: {b: {rtol: 1}}}",
            "17:52: b: a score looks at all outputs together; allowed here: compare: false",
        ),
    ],
)
def test_what_does_not_go_together_is_a_fault_at_its_place(
    check: str, fault: str, faults: Faults
) -> None:
    assert faults(scored(check)) == [fault]


def test_an_output_may_be_left_out(faults: Faults) -> None:
    left_out = "outputs: {b: {compare: false, reason: drawn}}"
    check = f"{{score: 'm:f', at_most: 2, {left_out}}}"

    assert faults(scored(check)) == [
        "17:48: no output is compared, so that a wrong kernel would get a time; compare one"
    ]
    assert faults(scored(check).replace("[a, b]\n", "[a, b]\n    returns: [c]\n", 1)) == []
