"""Data in scripts: what a page reads is what was written, and takes little room."""

from __future__ import annotations

import numpy as np
from unpacked import floats, intervals, unpacked

from gpubench.report.data_scripts import data_script, pack_floats, pack_intervals


def test_a_script_gives_its_value_back_and_holds_no_markup_of_others() -> None:
    content = {"subject": "</script><script>alert(1)</script>\u2028", "numbers": [1, 2.5, None]}

    script = data_script("compare-data/a.js", content)

    assert unpacked(script) == content
    assert script.startswith('gpubenchLists.put("compare-data/a.js", "')
    assert "<" not in script


def test_numbers_keep_five_digits_and_what_is_none_stays_none() -> None:
    values = np.array([[1.2345e-9, 98765.0, 0.0], [np.nan, np.inf, -2.5]])

    read = floats(pack_floats(values)).reshape(2, 3)

    np.testing.assert_allclose(read, values, rtol=4e-6)
    assert floats(pack_floats([])).size == 0


def test_intervals_keep_four_digits_and_ends_that_are_not_known() -> None:
    values = np.array([[2.0, 5e-3], [1.5, -np.inf], [2.25, np.inf], [3.0, np.nan], [-1, 1], [9, 2]])

    read = intervals(pack_intervals(values))

    np.testing.assert_allclose(read[:3], values[:3], rtol=1e-4)
    np.testing.assert_allclose(read[3:, 0], values[3:, 0], rtol=5e-3)
    assert np.isnan(read[3:, 1]).all()
    assert intervals(pack_intervals(np.empty((6, 0)))).size == 0


def test_an_interval_takes_less_room_than_three_numbers() -> None:
    chance = np.random.default_rng(1)
    value = chance.normal(1.0, 0.02, 1000)
    low, high = value * chance.normal([[0.99], [1.01]], 0.002, (2, 1000))
    numbers = np.stack([value, low, high, *np.full((3, 1000), np.nan)])

    assert len(pack_intervals(numbers)) < 0.9 * len(pack_floats(numbers))


def test_numbers_of_one_kind_take_less_room_than_each_alone() -> None:
    values = np.full(2000, np.nan)
    values[::10] = np.random.default_rng(1).normal(1.0, 0.01, 200)

    assert len(pack_floats(values)) < 2000
