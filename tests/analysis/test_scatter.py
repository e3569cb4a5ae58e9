"""How much times differ between runs: what is learned of it, and that verdicts hold between runs.

The noise is simulated, with fixed seeds; the statistic is the one that `gpubench compare` uses.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from result_files import CommitFiles, write_calibration

from gpubench.analysis.scatter import (
    GRID,
    LEVELS,
    SEEN,
    TAILS,
    Floats,
    RunScatter,
    chance_beyond,
    chance_of,
    find_changes,
    learn_scatter,
    limits_of_weights,
    on_grid,
    read_calibration,
    shared_difference,
)
from gpubench.errors import GpubenchError
from gpubench.results import CaseName, Setup, open_table
from gpubench.results.kinds import CASE_KINDS

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"
SETUP = Setup("runner", "virtualenv-py3.11")


def learned(folder: Path) -> RunScatter:
    return learn_scatter([(open_table(folder), SETUP)])


def write_runs(folder: Path, times: dict[str, list[float]]) -> None:
    """A commit for each run; times of a case over the runs."""
    for run in range(max(map(len, times.values()))):
        files = CommitFiles(folder, f"{run + 1:08x}" * 5, 86_400 * (run + 1), "runner")
        for case, seconds in times.items():
            if run < len(seconds):
                files.time(NUMBA, case, seconds[run])
        files.write()


def limit(scatter: RunScatter, case: str, level: int = 1) -> float:
    return scatter.times[CaseName("add", "add", "numba", "kernel", case)][level]


def test_student_s_t_is_that_of_the_tables() -> None:
    """Critical values of 5 %, 1 % and 0.1 % on two sides."""
    for freedom, values in ((4, (2.776, 4.604, 8.610)), (10, (2.228, 3.169, 4.587))):
        chances = chance_beyond(np.array(values), freedom)

        assert chances.tolist() == pytest.approx([0.05, 0.01, 0.001], rel=2e-3)


def test_limits_of_one_scatter_are_those_of_a_normal_distribution() -> None:
    shares = on_grid(((1.0, 0.01),))
    found = limits_of_weights(shares[None], TAILS[-1])[0]
    scatter = GRID[shares.argmax()] * math.sqrt(2)

    assert found[1] == pytest.approx(2.66 * scatter, rel=0.04)  # 2.58 of infinite freedom


def test_chances_lie_between_the_levels() -> None:
    limits = tuple(0.01 * (n + 1) for n in range(len(LEVELS)))

    assert chance_of(-1.0, limits) == chance_of(0.0, limits) == 1
    assert chance_of(0.02, limits) == pytest.approx(LEVELS[1])
    assert LEVELS[2] < chance_of(0.025, limits) < LEVELS[1]
    assert chance_of(9.0, limits) == LEVELS[-1]


def test_a_case_that_leaps_between_two_levels_gets_wide_limits_and_its_neighbour_narrow_ones(
    tmp_path: Path,
) -> None:
    calm = [1.0, 1.002, 0.999, 1.001, 1.0, 0.998, 1.001, 1.0]
    write_runs(tmp_path, {"n=1": calm, "n=2": [1.0, 1.8, 1.8, 1.0, 1.8, 1.0, 1.0, 1.8]})

    found = learned(tmp_path)

    assert limit(found, "n=1") < 0.05
    assert limit(found, "n=2") > 0.5
    assert found.runs == 8


def test_a_change_that_lasts_does_not_hide_the_next_one(tmp_path: Path) -> None:
    write_runs(tmp_path, {"n=1": [1.0, 1.001, 0.999, 1.0, 1.5, 1.501, 1.499, 1.5]})

    assert limit(learned(tmp_path), "n=1") < 0.05


def test_the_comparison_s_own_difference_does_not_hide_itself(tmp_path: Path) -> None:
    write_runs(tmp_path, {"n=1": [1.0, 1.001, 1.5], "n=2": [1.0, 1.001, 1.001]})

    found = learned(tmp_path)

    assert limit(found, "n=1") < 2 * limit(found, "n=2")


def test_one_measurement_that_two_commits_have_tells_nothing(tmp_path: Path) -> None:
    write_runs(tmp_path, {"n=1": [1.0] * 8, "n=2": [1.0, 1.01, 1.02]})

    (kind,) = learned(tmp_path).kinds

    assert (kind.cases, kind.differences) == (1, 2)


def test_what_whole_runs_share_is_no_scatter_of_their_cases(tmp_path: Path) -> None:
    clock = [1.0, 1.1, 1.0, 1.1, 1.0, 1.1]
    own = np.random.default_rng(1).normal(0, 0.001, (12, 6))
    write_runs(
        tmp_path,
        {
            f"n={n}": [c * math.exp(e) for c, e in zip(clock, own[n], strict=True)]
            for n in range(12)
        },
    )

    assert limit(learned(tmp_path), "n=3") < 0.02


def test_a_run_that_two_folders_hold_counts_once(tmp_path: Path) -> None:
    for name, last in (("a", 1.01), ("b", 1.02)):
        write_runs(tmp_path / name, {"n=1": [1.0, last]})
    tables = [open_table(tmp_path / name) for name in "ab"]

    found = learn_scatter((table, SETUP) for table in tables)

    assert found.runs == 2


def test_control_kernels_move_what_other_machines_showed(tmp_path: Path) -> None:
    write_runs(tmp_path, {"n=1": [1.0]})
    before = limit(learned(tmp_path), "n=1")
    write_calibration(tmp_path, "runner", 0.002)

    found = learned(tmp_path)

    assert found.calibrated
    assert limit(found, "n=1") < before / 3


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "calibration.gpubench cannot be read"),
        ("[]", "calibration.gpubench cannot be read"),
        (json.dumps({"format": 9, "kinds": {}}), "format 9, and this release reads 1"),
        (
            json.dumps({"format": 1, "kinds": {CASE_KINDS[0]: {"scatter": -1, "runs": 9}}}),
            "has a scatter of -1 in 9 runs",
        ),
    ],
)
def test_a_damaged_calibration_is_named_and_nothing_is_taken_from_it(
    tmp_path: Path, content: str, words: str
) -> None:
    write_runs(tmp_path, {"n=1": [1.0]})
    (tmp_path / "runner" / "calibration.gpubench").write_text(content, encoding="utf-8")

    with pytest.raises(GpubenchError, match="gpubench calibrate") as error:
        read_calibration(tmp_path, "runner")
    found = learned(tmp_path)

    assert words in str(error.value)
    assert found.notes == (str(error.value),)
    assert not found.calibrated
    assert open_table(tmp_path).problems == ()


def test_every_kind_has_what_machines_showed() -> None:
    assert set(SEEN) == set(CASE_KINDS)
    for atoms in SEEN.values():
        assert math.fsum(share for share, _ in atoms) == pytest.approx(1)


def test_half_of_the_cases_do_not_move_what_the_others_share() -> None:
    few = shared_difference([(0.1, 0.01)] * 9)
    found = shared_difference([*[(0.01, 0.02)] * 12, *[(0.4, 0.02)] * 11])

    assert few.cases == 0
    assert found.log == pytest.approx(0.01, abs=0.005)


def test_of_many_chances_those_are_changes_that_few_of_so_many_would_be() -> None:
    assert find_changes([0.03, 0.001, 0.02], 0.05) == [True, True, True]
    assert find_changes([0.04, 0.001, 0.6], 0.05) == [False, True, False]
    assert find_changes([0.03, 0.001, 0.02], 0.05, most=0.02) == [False, True, True]
    assert find_changes([], 0.05) == []


CASES, RUNS, COMPARISONS = 500, 25, 200


def test_the_next_run_lies_where_it_is_said_in_98_of_100_cases_at_least(tmp_path: Path) -> None:
    """Each case with its own scatter, 0.3 to 10 %, and each run with a clock of its own."""
    random = np.random.default_rng(34)
    scatters = np.exp(random.uniform(math.log(0.003), math.log(0.1), 100))
    logs = scatters[:, None] * random.standard_normal((100, 21))
    times = np.exp(logs + 0.02 * random.standard_normal(21)) * 1e-3
    write_runs(tmp_path, {f"n={n}": [*map(float, case[:20])] for n, case in enumerate(times)})
    table = open_table(tmp_path)
    rows = table.newest_rows(SETUP)

    found = learned(tmp_path)
    intervals = [
        found.next_run(rows[CaseName("add", "add", "numba", "kernel", f"n={n}")])
        for n in range(len(times))
    ]

    inside = [
        i is not None and i[0] <= t <= i[1] for i, t in zip(intervals, times[:, 20], strict=True)
    ]
    assert np.mean(inside) >= 0.98
    widths = [i[1] / i[0] for i in intervals if i]
    assert np.median(widths) < 1.3  # and not by saying nothing


def test_what_runs_share_widens_where_the_next_one_lies(tmp_path: Path) -> None:
    steady = [1e-3] * 8
    common = [1e-3 * factor for factor in (1.0, 1.1, 1.0, 0.9, 1.0, 1.1, 0.9, 1.0)]
    for folder, times in ((tmp_path / "steady", steady), (tmp_path / "common", common)):
        write_runs(folder, {f"n={n}": [t * (1 + n * 1e-4) for t in times] for n in range(12)})

    assert learned(tmp_path / "common").shared > 2 * learned(tmp_path / "steady").shared


def simulate(folder: Path, noise: Floats, seed: int) -> RunScatter:
    """What is learned from runs of cases with this noise each, normal."""
    generator = np.random.default_rng(seed)
    values = np.exp(generator.normal(0, 1, (RUNS, len(noise))) * noise)
    write_runs(folder, {f"n={n}": values[:, n].tolist() for n in range(len(noise))})
    return learned(folder)


def alarms(scatter: RunScatter, differences: Floats) -> list[bool]:
    """Whether the case is a sure alarm, by the logarithms of old over new."""
    limits = [scatter.times[name] for name in scatter.times]
    chances = [
        chance_of(abs(value), each)
        for value, each in zip(differences.tolist(), limits, strict=True)
    ]
    return find_changes(chances, 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("tails", ["normal", "heavy"])
def test_unchanged_code_raises_an_alarm_in_one_of_a_hundred_comparisons_at_most(
    tmp_path: Path, tails: str
) -> None:
    """500 cases whose noise is 0.5 % to 8 %; heavy tails are of Student's t with 4 degrees."""
    generator = np.random.default_rng(7)
    noise = np.exp(generator.uniform(math.log(0.005), math.log(0.08), CASES))

    def draw(runs: int) -> Floats:
        if tails == "normal":
            return generator.normal(0, 1, (runs, CASES)) * noise
        return generator.standard_t(4, (runs, CASES)) * noise / math.sqrt(2)

    values = np.exp(draw(RUNS))
    write_runs(tmp_path, {f"n={n}": values[:, n].tolist() for n in range(CASES)})
    scatter = learned(tmp_path)

    fails = 0
    for _ in range(COMPARISONS):
        old, new = draw(2)
        difference = new - old
        found = alarms(scatter, difference)
        fails += any(
            is_found and value > 0 for is_found, value in zip(found, difference, strict=True)
        )

    assert fails <= COMPARISONS / 100


@pytest.mark.slow
def test_ten_percent_in_one_of_five_hundred_cases_are_found_where_its_noise_is_one_percent(
    tmp_path: Path,
) -> None:
    scatter = simulate(tmp_path, np.full(CASES, 0.01), seed=3)
    generator = np.random.default_rng(4)

    found = 0
    for comparison in range(COMPARISONS):
        old, new = generator.normal(0, 0.01, (2, CASES))
        difference = new - old
        case = comparison % CASES
        difference[case] += math.log(1.1)
        found += alarms(scatter, difference)[case]

    assert found >= 0.95 * COMPARISONS
