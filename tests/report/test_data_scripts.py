"""Data in scripts: what a page reads is what was written, and takes little room."""

from __future__ import annotations

import numpy as np
from unpacked import floats, unpacked

from gpubench.report.data_scripts import data_script, pack_floats


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


def test_numbers_of_one_kind_take_less_room_than_each_alone() -> None:
    values = np.full(2000, np.nan)
    values[::10] = np.random.default_rng(1).normal(1.0, 0.01, 200)

    assert len(pack_floats(values)) < 2000
