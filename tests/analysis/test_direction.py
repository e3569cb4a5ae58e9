"""Which way is worse: times and bytes that grow, and rates that fall."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpubench.analysis.changes import Change
from gpubench.analysis.direction import direction_word
from gpubench.asv_config import read_config
from gpubench.names import is_rate
from gpubench.results import Ratio

GREW = Change("step", 0, 1, 1.0, 2.0, Ratio(0.5, 0.4, 0.6))


@pytest.mark.parametrize("unit", ["GFLOPS", "MB/s", "items/sec", "points", "flops", "frames / s"])
def test_of_what_is_done_in_a_second_and_of_points_more_is_better(unit: str) -> None:
    assert is_rate(unit)


@pytest.mark.parametrize("unit", ["seconds", "bytes", "objects", "", "shots", "registers"])
def test_of_other_units_less_is(unit: str) -> None:
    assert not is_rate(unit)


def test_a_rate_that_falls_is_worse() -> None:
    fell = replace(GREW, old=2.0, new=1.0, ratio=Ratio(2.0, 1.8, 2.2)).of_rate

    assert fell.slower
    assert fell.ratio == Ratio(0.5, 1 / 2.2, 1 / 1.8)
    assert direction_word(fell, "GFLOPS") == "lower"
    assert not GREW.of_rate.slower


def test_times_are_slower_bytes_larger_and_others_higher() -> None:
    words = [direction_word(GREW, unit) for unit in ("seconds", "bytes", "MiB", "objects", "")]

    assert words == ["slower", "larger", "larger", "higher", "higher"]


def test_a_project_says_of_which_benchmarks_more_is_better(tmp_path: Path) -> None:
    path = tmp_path / "asv.conf.json"
    path.write_text('{"version": 1, "higher_is_better": ["track_score", "("]}')

    config = read_config(path)

    assert config.higher_is_better == ("track_score",)
    assert ["`higher_is_better` of '('" in fault.message for fault in config.faults] == [True]
