"""What a case's row says of its baseline, its speedup, its rounds and its record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from result_files import CommitFiles

from gpubench.record import CaseRecord, Disturbance
from gpubench.results import CaseName, Row, measured_rows, open_table
from gpubench.results.ratio import rounds_of
from gpubench.statuses import RecordedStatus

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"
AGAINST_NUMPY = {"baseline_benchmark": NUMPY, "baseline_case": "n=4"}


def stored(tmp_path: Path, *cases: tuple[str, str, float | None, str | None]) -> dict[str, Row]:
    """Rows of benchmark, case, time and the implementation that a record names as baseline."""
    files = CommitFiles(tmp_path, "a" * 40, 1_000)
    for benchmark, case, seconds, baseline in cases:
        asv_name = f"suites.add__{benchmark}"
        if seconds is None:
            files.missing(asv_name, case)
        else:
            files.time(asv_name, case, seconds)
        if baseline:
            named = f"suites.add__{baseline}.time_kernel"
            files.record(
                asv_name,
                case,
                "ok" if seconds else "failed",
                baseline_benchmark=named,
                baseline_case=case.partition(" block")[0],
            )
    files.write()
    return read(tmp_path)


def read(directory: Path) -> dict[str, Row]:
    table = open_table(directory)
    (snapshot,) = table.snapshots(table.setups[0])
    return {
        f"{name.implementation} {name.time} {name.case}": row
        for name, row in table.rows(snapshot).items()
    }


def ratio(row: Row) -> float:
    assert row.speedup is not None
    return row.speedup.value


def test_the_record_names_the_baseline(tmp_path: Path) -> None:
    rows = stored(
        tmp_path,
        ("reference.time_kernel", "n=4", 6.0, None),
        ("numpy.time_kernel", "n=4", 9.0, "reference"),
        ("cuda.time_kernel", "n=4 block=64", 2.0, "reference"),
    )

    candidate = rows["cuda kernel n=4 block=64"]
    assert rows["reference kernel n=4"].is_baseline
    assert not rows["numpy kernel n=4"].is_baseline
    assert ratio(candidate) == pytest.approx(3.0)
    assert candidate.problem == "n=4"
    assert candidate.baseline == CaseName("add", "add", "reference", "kernel", "n=4")
    assert (candidate.baseline_status, candidate.baseline_seconds) == ("ok", pytest.approx(6.0))


def test_without_a_record_numpy_at_the_projected_identity_is_the_baseline(tmp_path: Path) -> None:
    rows = stored(
        tmp_path,
        ("numpy.time_kernel", "n=4", 6.0, None),
        ("numpy.time_kernel", "n=8", 60.0, None),
        ("cuda.time_kernel", "n=8 block=64", 2.0, None),
    )

    row = rows["cuda kernel n=8 block=64"]
    assert (row.problem, ratio(row)) == ("n=8", pytest.approx(30.0))


def test_a_baseline_without_parameters_fits_every_case(tmp_path: Path) -> None:
    rows = stored(
        tmp_path, ("numpy.time_kernel", "", 6.0, None), ("cuda.time_kernel", "n=8", 2.0, None)
    )

    row = rows["cuda kernel n=8"]
    assert (row.problem, ratio(row)) == ("", pytest.approx(3.0))


def test_the_baseline_with_the_most_values_of_a_case_is_the_one(tmp_path: Path) -> None:
    rows = stored(
        tmp_path,
        ("numpy.time_kernel", "n=8", 6.0, None),
        ("numpy.time_kernel", "n=8 dtype=float32", 8.0, None),
        ("cuda.time_kernel", "n=8 dtype=float32 block=64", 2.0, None),
    )

    assert rows["cuda kernel n=8 dtype=float32 block=64"].problem == "n=8 dtype=float32"


def test_a_baseline_that_was_not_measured_is_said_with_the_command(tmp_path: Path) -> None:
    row = stored(tmp_path, ("cuda.time_kernel", "n=4", 2.0, "numpy"))["cuda kernel n=4"]

    assert (row.speedup, row.baseline) == (None, None)
    assert row.missing == (
        "the baseline numpy n=4 was not measured at this commit; run `asv run --bench add__numpy`"
    )


def test_a_baseline_without_a_time_is_said(tmp_path: Path) -> None:
    rows = stored(
        tmp_path,
        ("numpy.time_kernel", "n=4", None, None),
        ("cuda.time_kernel", "n=4", 2.0, None),
    )

    row = rows["cuda kernel n=4"]
    assert (row.speedup, row.missing) == (None, "the baseline numpy n=4 has no time: failed")
    assert (row.baseline_status, row.baseline_seconds) == ("failed", None)


def test_no_baseline_at_all_is_said(tmp_path: Path) -> None:
    rows = stored(
        tmp_path, ("numpy.time_kernel", "n=8", 1.0, None), ("cuda.time_kernel", "n=4", 1.0, None)
    )

    assert rows["cuda kernel n=4"].missing == (
        "no baseline: `numpy` has no case for these sizes; name one with `baseline:`"
    )


def test_end_to_end_is_held_against_the_baseline_s_kernel_time(tmp_path: Path) -> None:
    rows = stored(
        tmp_path,
        ("numpy.time_kernel", "n=4", 6.0, None),
        ("cuda.time_end_to_end", "n=4", 2.0, None),
    )

    assert ratio(rows["cuda end_to_end n=4"]) == pytest.approx(3.0)


def test_a_transfer_has_no_speedup_and_no_rate(tmp_path: Path) -> None:
    transfer = "suites.add__cuda.time_transfer"
    files = CommitFiles(tmp_path, "a" * 40, 1_000).time(NUMPY, "n=4", 6.0)
    files.time(transfer, "n=4", 2.0).record(transfer, "n=4", bytes=4096, flops=7).write()

    row = read(tmp_path)["cuda transfer n=4"]

    assert (row.speedup, row.missing, row.bytes) == (None, None, 4096)
    assert (row.bytes_per_second, row.flops_per_second) == (None, None)


def test_a_superseded_baseline_counts_as_not_measured(tmp_path: Path) -> None:
    for day, version in ((1, "old"), (2, "new")):
        files = CommitFiles(tmp_path, f"{day}" * 40, 86_400 * day)
        files.versions[NUMPY] = version
        files.time(NUMPY, "n=4", 6.0).time(NUMBA, "n=4", 2.0)
        files.record(NUMBA, "n=4", **AGAINST_NUMPY).write()

    table = open_table(tmp_path)
    history = table.history(table.setups[0])
    old, new = (table.rows(snapshot) for snapshot in history.snapshots)
    row = old[CaseName("add", "add", "numba", "kernel", "n=4")]

    assert (len(old), len(new)) == (1, 2)
    assert (row.baseline, row.speedup) == (None, None)
    assert row.missing == (
        "the baseline numpy n=4 was not measured at this commit; run `asv run --bench add__numpy`"
    )
    assert history.baselines.tolist() == [[-1, 1], [-1, -1]]
    assert history.speedups[0, 0].tolist() == [pytest.approx(float("nan"), nan_ok=True), 3.0]


def test_sizes_and_parameters_come_from_the_record_or_else_the_identity(tmp_path: Path) -> None:
    case = "n=4 dtype=float32 block=64"
    files = CommitFiles(tmp_path, "a" * 40, 1_000).time(NUMPY, "n=4 dtype=float32", 6.0)
    files.time(NUMBA, case, 2.0).time("suites.add__cuda.time_kernel", case, 2.0)
    values = {"n": 4, "m": 3, "dtype": "float32"}
    against = {"baseline_benchmark": NUMPY, "baseline_case": "n=4 dtype=float32"}
    files.record(
        "suites.add__cuda.time_kernel", case, values=values, sizes=("n", "m"), **against
    ).write()

    rows = read(tmp_path)
    plain, recorded = rows[f"numba kernel {case}"], rows[f"cuda kernel {case}"]

    assert (plain.sizes, plain.size, plain.parameters) == ({"n": 4.0}, 4.0, "dtype=float32")
    assert (recorded.sizes, recorded.size) == ({"n": 4.0, "m": 3.0}, 12.0)
    assert (plain.values["block"], recorded.values) == (64, values)


def test_the_interval_is_that_of_the_rounds_of_all_processes_of_a_run(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 1_000).time(NUMBA, "n=4", 1.0)
    files.facts(run=1).record(NUMBA, "n=4", "started").record(NUMBA, "n=4")
    files.rounds(NUMBA, "n=4", 5.0, 6.0)
    files.facts(run=2).record(NUMBA, "n=4", "started").record(NUMBA, "n=4")
    files.rounds(NUMBA, "n=4", 1.1, 0.9, 1.0)
    files.facts(run=2).record(NUMBA, "n=4", "started").record(NUMBA, "n=4")
    files.rounds(NUMBA, "n=4", 1.2, 0.8).write()

    row = read(tmp_path)["numba kernel n=4"]

    assert row.rounds == (1.1, 0.9, 1.0, 1.2, 0.8)
    assert (row.low, row.seconds, row.high) == (0.8, pytest.approx(1.0), 1.2)


def test_of_five_processes_and_more_each_counts_once_by_its_median(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 1_000).facts(run=1).time(NUMBA, "n=4", 1.0)
    files.record(NUMBA, "n=4")
    for process in range(5):
        files.rounds(NUMBA, "n=4", 0.5, 1.0 + process / 10, 9.0)
    files.write()

    row = read(tmp_path)["numba kernel n=4"]

    assert row.rounds == (1.0, 1.1, 1.2, 1.3, 1.4)
    assert (row.low, row.high) == (1.0, 1.4)


def disturbed_files(directory: Path, *, numpy: float | None, numba: float | None) -> CommitFiles:
    """Clearly apart, with these shares of disturbed samples; ``None``: not known."""
    files = CommitFiles(directory, "a" * 40, 1_000)
    for benchmark, seconds, share in ((NUMPY, 6.0, numpy), (NUMBA, 2.0, numba)):
        fields = AGAINST_NUMPY if benchmark == NUMBA else {}
        files.time(benchmark, "n=4", seconds).record(benchmark, "n=4", **fields)
        medians = [seconds * (1 + place / 100) for place in range(6)]
        seen = None if share is None else Disturbance(share, waiting=(0.01,) * 6)
        files.rounds(benchmark, "n=4", *medians, disturbance=seen)
    return files.write()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("numpy", "numba", "verdict"),
    [(None, 0.5, "faster"), (0.0, 0.0, "faster"), (0.6, None, "unclear"), (0.0, 1.0, "unclear")],
)
def test_no_verdict_comes_from_the_work_of_others(
    tmp_path: Path, numpy: float | None, numba: float | None, verdict: str
) -> None:
    disturbed_files(tmp_path, numpy=numpy, numba=numba)

    row = read(tmp_path)["numba kernel n=4"]

    assert row.speedup is not None
    assert (row.speedup.value, row.speedup.verdict) == (3.0, verdict)
    assert row.disturbed == numba
    assert row.is_disturbed == (numba == 1.0)
    assert (row.low is None) == row.is_disturbed
    query = "select disturbed, verdict from results where implementation = 'numba'"
    assert open_table(tmp_path).query(query)[1] == [(numba, verdict)]


@pytest.mark.slow
@pytest.mark.parametrize(("numpy", "numba"), [(0.0, 1.0), (1.0, 0.0)])
@pytest.mark.parametrize(
    ("ratio", "verdict"), [(2.0, "faster"), (1.11, "faster"), (1.09, "unclear"), (0.5, "slower")]
)
def test_of_disturbed_pairs_a_tenth_is_a_verdict(
    tmp_path: Path, numpy: float, numba: float, ratio: float, verdict: str
) -> None:
    """Other work was in both halves of each."""
    files = disturbed_files(tmp_path, numpy=numpy, numba=numba)
    files.record(NUMBA, "n=4", **AGAINST_NUMPY, pair_ratios=(ratio,) * 10).write()

    speedup = read(tmp_path)["numba kernel n=4"].speedup

    assert speedup is not None
    assert (speedup.value, speedup.verdict) == (pytest.approx(ratio), verdict)
    query = "select verdict from results where implementation = 'numba'"
    assert open_table(tmp_path).query(query)[1] == [(verdict,)]


def test_the_samples_of_all_processes_are_counted_together(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 1_000).facts(run=1).time(NUMBA, "n=4", 1.0)
    files.record(NUMBA, "n=4")
    files.rounds(NUMBA, "n=4", 1.0, disturbance=Disturbance(1.0, waiting=(0.01,) * 6))
    files.rounds(NUMBA, "n=4", 1.0, disturbance=Disturbance(0.0, waiting=(0.0,) * 18)).write()

    assert read(tmp_path)["numba kernel n=4"].disturbed == 0.25


def test_where_runs_are_not_told_apart_the_last_rounds_count(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 1_000).time(NUMBA, "n=4", 1.0)
    files.record(NUMBA, "n=4").rounds(NUMBA, "n=4", 5.0, 6.0)
    files.record(NUMBA, "n=4").rounds(NUMBA, "n=4", 1.1, 0.9).write()

    row = read(tmp_path)["numba kernel n=4"]

    assert row.rounds == (1.1, 0.9)
    assert (row.low, row.high) == (None, None), "two rounds are too few for an interval"


def test_rounds_of_an_earlier_run_do_not_count_for_a_later_one(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 1_000).time(NUMBA, "n=4", 1.0)
    files.facts(run=1).record(NUMBA, "n=4").rounds(NUMBA, "n=4", 5.0, 6.0, 7.0, 8.0, 9.0)
    files.facts(run=2).record(NUMBA, "n=4").write()

    row = read(tmp_path)["numba kernel n=4"]

    assert row.rounds == ()
    assert row.low == pytest.approx(0.99), "as asv stored it"


def test_the_interval_of_rounds_holds_the_median_of_all_samples(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 1_000).time(NUMBA, "n=4", 1.0).record(NUMBA, "n=4")
    files.rounds(NUMBA, "n=4", 1.1, 1.2, 1.3, 1.4, 1.5).write()

    row = read(tmp_path)["numba kernel n=4"]

    assert (row.low, row.high) == (pytest.approx(1.0), 1.5)


def test_a_case_that_is_wrong_has_no_rounds_that_count(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 1_000).time(NUMBA, "n=4", 1.0)
    files.record(NUMBA, "n=4", "wrong", reason="differs")
    files.rounds(NUMBA, "n=4", 1.1, 1.2, 1.3, 1.4, 1.5).write()

    row = read(tmp_path)["numba kernel n=4"]

    assert (row.status, row.seconds, row.low, row.high) == ("wrong", None, None, None)


def pairs(tmp_path: Path, files: CommitFiles) -> tuple[int, float]:
    files.time(NUMPY, "n=4", 4.0).time(NUMBA, "n=4", 1.0).write()
    row = read(tmp_path)["numba kernel n=4"]
    return row.pairs, round(ratio(row), 12)


def paired(files: CommitFiles, status: str, *ratios: float) -> None:
    files.record(NUMBA, "n=4", status, pair_ratios=ratios, **AGAINST_NUMPY)


def test_pairs_come_before_the_ratio_of_the_medians(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 1_000)
    paired(files, "ok", *[2.0] * 10)

    assert pairs(tmp_path, files) == (10, 2.0)
    assert read(tmp_path)["numba kernel n=4"].speedup.verdict == "faster"  # type: ignore[union-attr]


def test_the_pairs_of_all_processes_of_one_run_come_together(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 1_000).facts(run=1)
    for ratios in ((2.0, 2.1), (2.2,)):
        paired(files, "started")
        paired(files, "ok", *ratios)

    assert pairs(tmp_path, files) == (3, pytest.approx(2.1, rel=1e-3))


def test_a_line_that_is_written_again_counts_once(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 1_000).facts(run=1)
    for _ in range(2):
        paired(files, "started")
        paired(files, "ok", 2.0, 2.1)
        paired(files, "ok", 2.0, 2.1)

    assert pairs(tmp_path, files) == (4, pytest.approx(2.05, rel=1e-3))


def test_the_pairs_of_another_run_begin_anew(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 1_000)
    for run, ratio in ((1, 1.0), (2, 3.0)):
        files.facts(run=run)
        paired(files, "started")
        paired(files, "ok", ratio)

    assert pairs(tmp_path, files) == (1, 3.0)


def measured(status: RecordedStatus, samples: Sequence[float], rounds: Sequence[float] = ()) -> Row:
    record = CaseRecord(NUMBA, "n=4", status, "", runs_per_sample=7)
    (row,) = measured_rows([(record, samples, rounds_of([rounds]), None)])
    return row


def test_samples_become_the_row_that_asv_would_have_stored() -> None:
    row = measured("ok", [5.0, *map(float, range(1, 10))])

    assert (row.seconds, row.low, row.high) == (5.0, 1.0, 9.0)
    assert (row.q25, row.q75, row.runs_per_sample, row.samples) == (3.25, 6.75, 7, 10)
    assert (row.recorded, row.version) == (True, None)


@pytest.mark.parametrize(
    ("status", "samples", "expected", "reason"),
    [
        ("ok", [1.0], "ok", None),
        ("ok", [], "killed", "it gave no samples"),
        ("started", [1.0], "killed", "it gave no samples"),
        ("wrong", [], "wrong", "it gave no samples"),
    ],
)
def test_a_case_measured_without_asv_has_a_row(
    status: RecordedStatus, samples: list[float], expected: str, reason: str | None
) -> None:
    row = measured(status, samples)

    assert (row.status, row.reason) == (expected, reason)
    assert (row.seconds is None) == (expected != "ok")


def test_measured_rows_have_the_speedup_that_a_report_would_show(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 1_000)
    cases = []
    for benchmark, seconds, fields in ((NUMPY, 6.0, {}), (NUMBA, 2.0, AGAINST_NUMPY)):
        medians = [seconds * (1 + place / 100) for place in range(6)]
        files.time(benchmark, "n=4", seconds).record(benchmark, "n=4", **fields)
        files.rounds(benchmark, "n=4", *medians)
        cases.append((files.lines[-2], files.values[benchmark]["n=4"], rounds_of([medians]), None))
    files.write()

    _, from_files = read(tmp_path)["numpy kernel n=4"], read(tmp_path)["numba kernel n=4"]
    _, from_samples = measured_rows(cases)  # type: ignore[arg-type]

    assert from_samples.speedup == from_files.speedup
    assert (from_samples.low, from_samples.high) == (from_files.low, from_files.high)
    assert from_samples.rounds == from_files.rounds


def test_each_process_counts_by_its_median_in_times_and_in_speedups(tmp_path: Path) -> None:
    numpy, numba = (f"suites.add__{name}.time_kernel" for name in ("numpy", "numba"))
    for commit, factor in (("a", 1.0), ("b", 2.0)):
        files = CommitFiles(tmp_path, commit * 40, 86_400 * (1 + (commit == "b")))
        files.facts(run=f"7-{commit}")
        for process in (1.0, 1.1):
            seconds = process * factor
            files.record(numba, "n=4", "started")
            files.record(
                numba, "n=4", baseline_benchmark=numpy, baseline_case="n=4",
                pair_ratios=(3.0, 4.0 * process, 9.0), pair_rounds=(1, 1, 1),
            )  # fmt: skip
            files.rounds(numba, "n=4", 0.9 * seconds, seconds, 5 * seconds)
        files.time(numpy, "n=4", 4.0).time(numba, "n=4", factor, count=6).write()
    table = open_table(tmp_path)
    snapshots = table.snapshots(table.setups[0])
    name = CaseName("add", "add", "numba", "kernel", "n=4")

    row = table.rows(snapshots[0])[name]

    assert row.processes == (1.0, 1.1)
    assert row.process_speedups == (4.0, pytest.approx(4.4))
    for column in ("processes", "process_speedups"):
        squares, freedom = table.process_variances(snapshots, column)[name]
        assert freedom == 2
        assert squares == pytest.approx(2 * math.log(1.1) ** 2 / 2)
    assert name not in table.process_variances([], "processes")
