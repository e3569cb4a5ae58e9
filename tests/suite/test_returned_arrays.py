"""``returns`` of an implementation: names of arrays that the others write."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from small_suite import SUITE

Faults = Callable[..., list[str]]

RETURNING = SUITE.replace("some.module:add}", "some.module:add, returns: [b]}")


def test_an_array_that_the_others_write_may_be_returned(load: Callable[..., object]) -> None:
    kernel = load(RETURNING).suite.kernels["add"]

    assert kernel.implementations["numpy"].returns == ("b",)
    assert kernel.implementations["cuda"].returns == ()


@pytest.mark.parametrize(
    ("returns", "fault"),
    [
        ("[a]", "12:52: unknown written array 'a'; allowed: b"),
        ("[b, c]", "12:55: unknown written array 'c'; allowed: b"),
        ("[b, b]", "12:55: returns[1]: b is there twice"),
        ("b", "12:51: returns: found 'b'; write [b]"),
    ],
)
def test_what_nobody_writes_is_a_fault_at_its_place(
    returns: str, fault: str, faults: Faults
) -> None:
    assert faults(RETURNING.replace("returns: [b]", f"returns: {returns}")) == [fault]


def test_a_kernel_that_writes_nothing_has_nothing_to_return_by_name(faults: Faults) -> None:
    text = RETURNING.replace(", intent: inout", "").replace("[a, b]", "[a, b]\n    returns: [sum]")

    assert faults(text.replace("block: [64]", "block: [64], over: [n]")) == [
        "13:52: unknown written array 'b'"
    ]
