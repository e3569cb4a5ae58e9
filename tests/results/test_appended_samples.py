"""A time has the rounds, pairs and disturbance of all processes whose samples asv has stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pytest
from result_files import AT, CommitFiles

from gpubench.record import Disturbance, RoundsRecord
from gpubench.results import CaseName, Row, Table, open_table
from gpubench.results.unfinished import UNFINISHED

COMMIT = "a" * 40
ADD = "suites.vector_add__numba.time_kernel"
NUMPY = "suites.vector_add__numpy.time_kernel"
CASE = "n=1024"
NAME = CaseName("vector_add", "vector_add", "numba", "kernel", CASE)

FIRST = [10.0e-6, 10.1e-6, 9.9e-6, 10.2e-6, 9.8e-6, 10.05e-6]
SECOND = [10.5e-6, 10.6e-6, 10.4e-6, 10.7e-6, 10.3e-6, 10.55e-6]
THIRD = [11.0e-6, 11.1e-6, 10.9e-6, 11.2e-6, 10.8e-6, 11.05e-6]


class Runs:
    """Runs of asv's at one commit, the first long ago; ``stored`` is what asv has in the end."""

    def __init__(self, directory: Path) -> None:
        self.files = CommitFiles(directory, COMMIT, 1_000, record_samples=True, started_at=5_000)
        self._count = 0

    def run(self, *, appends: bool = False, **facts: object) -> Runs:
        """Begin a run, a second after the one before."""
        self._count += 1
        facts = {"append_samples": True, **facts} if appends else facts
        self.files.facts(run=f"1-{1_000 + self._count}", **facts)
        return self

    def process(
        self,
        medians: Sequence[float],
        *,
        disturbed: float | None = None,
        benchmark: str = ADD,
        **fields: object,
    ) -> Runs:
        """Put a process with one sample in each round on record."""
        fields = {"version": "v1", **fields}
        self.files.record(benchmark, CASE, "started", **fields)
        self.files.record(benchmark, CASE, "ok", **fields)
        waiting = tuple(0.0 for _ in medians)
        disturbance = None if disturbed is None else Disturbance(disturbed, waiting)
        self.files.rounds(benchmark, CASE, *medians, disturbance=disturbance)
        return self

    def stored(self, samples: Sequence[float], benchmark: str = ADD) -> Runs:
        # asv's timer adds up: each sample has a rounding error.
        self.files.values[benchmark][CASE] = [one * (1 + 1e-12) for one in samples]
        return self

    def row(self, name: CaseName = NAME) -> Row:
        self.files.write()
        return only_row(self.files.directory, name)


def only_row(directory: Path, name: CaseName = NAME) -> Row:
    table: Table = open_table(directory)
    (setup,) = table.setups
    (snapshot,) = table.snapshots(setup)
    return table.rows(snapshot)[name]


def test_an_appended_run_counts_together_with_the_one_before(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run().process(FIRST, disturbed=0.5, warnings=("one", "both"))
    runs.run(appends=True).process(SECOND, disturbed=0.0, warnings=("both", "two"))

    row = runs.stored([*FIRST, *SECOND]).row()

    assert row.rounds == (*FIRST, *SECOND)
    assert (row.samples, row.disturbed) == (12, 0.25)
    assert row.seconds == pytest.approx(median([*FIRST, *SECOND]))
    assert row.low is not None
    assert row.high is not None
    assert row.low < median(FIRST) < median(SECOND) < row.high
    assert row.warnings == ("one", "both", "two")


def test_pairs_of_both_runs_count_together(tmp_path: Path) -> None:
    against = {"baseline_benchmark": NUMPY, "baseline_case": CASE}
    runs = Runs(tmp_path)
    for each, ratio in ((FIRST, 2.0), (SECOND, 1.9)):
        runs.run(appends=ratio < 2).process(each, benchmark=NUMPY)
        pairs = tuple(ratio + 0.001 * i for i in range(6))
        runs.process(each, pair_ratios=pairs, pair_rounds=(1,) * 6, **against)
    both = [*FIRST, *SECOND]

    row = runs.stored(both).stored(both, NUMPY).row()

    assert row.pairs == 12
    assert row.speedup is not None
    assert row.speedup.value == pytest.approx(1.95, abs=0.01)
    assert row.speedup.low < 1.91
    assert row.speedup.high > 2.0


def test_any_number_of_runs_may_be_appended(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run().process(FIRST)
    runs.run(appends=True).process(SECOND).run(appends=True).process(THIRD)

    assert runs.stored([*FIRST, *SECOND, *THIRD]).row().rounds == (*FIRST, *SECOND, *THIRD)


def test_from_five_runs_on_a_run_counts_once(tmp_path: Path) -> None:
    runs, samples = Runs(tmp_path), []
    for factor in (1.0, 1.1, 1.2, 1.3, 1.4):
        each = [one * factor for one in FIRST]
        runs.run(appends=factor > 1).process(each)
        samples += each

    row = runs.stored(samples).row()

    assert row.rounds == pytest.approx([median(FIRST) * f for f in (1.0, 1.1, 1.2, 1.3, 1.4)])


def test_a_run_that_is_not_appended_counts_alone(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run().process(FIRST, warnings=("one",)).run().process(SECOND)

    row = runs.stored(SECOND).row()

    assert row.rounds == tuple(SECOND)
    assert row.warnings == ()


def test_nothing_is_joined_where_the_first_run_kept_no_samples(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run().process(FIRST).run(appends=True).process(SECOND)

    row = runs.stored(SECOND).row()

    assert row.rounds == tuple(SECOND)
    assert row.warnings == ()


def test_a_run_that_asv_never_stored_is_passed_over(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run().process(FIRST)
    runs.run(appends=True).process(SECOND)  # it was killed
    runs.run(appends=True).process(THIRD)

    assert runs.stored([*FIRST, *THIRD]).row().rounds == (*FIRST, *THIRD)


def test_a_process_of_an_interleaved_run_that_asv_never_stored_is_passed_over(
    tmp_path: Path,
) -> None:
    runs = Runs(tmp_path).run().process(FIRST).process(SECOND)

    assert runs.stored(FIRST).row().rounds == tuple(FIRST)


def test_processes_whose_samples_a_killed_one_took_along_are_passed_over(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run().process(FIRST)
    runs.files.record(ADD, CASE, "started")  # asv drops all samples of a case that fails once
    runs.process(SECOND)

    assert runs.stored(SECOND).row().rounds == tuple(SECOND)


def test_a_later_run_that_was_killed_within_the_case_takes_no_rounds_away(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run().process(FIRST, disturbed=0.5, method="host loop")
    runs.run(appends=True).files.record(ADD, CASE, "started")

    row = runs.stored(FIRST).row()

    assert (row.status, row.rounds, row.disturbed) == ("ok", tuple(FIRST), 0.5)
    assert row.method == "host loop"


def test_times_of_a_stopped_run_count_together_with_those_it_appends_to(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run().process(FIRST, disturbed=0.5)
    runs.run(appends=True).process(SECOND, disturbed=0.0)
    runs.files.started_at = 1_000  # before the second run

    row = runs.stored(FIRST).row()

    assert row.rounds == (*FIRST, *SECOND)
    assert (row.samples, row.disturbed, row.warnings) == (12, 0.25, (UNFINISHED,))
    assert row.seconds == pytest.approx(median([*FIRST, *SECOND]))


def test_times_of_a_stopped_run_that_appends_nothing_replace_those_before(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run().process(FIRST).run().process(SECOND)
    runs.files.started_at = 1_000

    row = runs.stored(FIRST).row()

    assert (row.rounds, row.samples, row.warnings) == (tuple(SECOND), 6, (UNFINISHED,))
    assert row.seconds == pytest.approx(median(SECOND))


@pytest.mark.parametrize("place", ["before", "between", "after"])
def test_samples_without_a_record_are_told_and_leave_asvs_interval(
    tmp_path: Path, place: str
) -> None:
    runs = Runs(tmp_path).run().process(FIRST, disturbed=0.0)
    runs.run(appends=True).process(SECOND, disturbed=0.5)
    unknown = [one / 2 for one in THIRD]
    samples = {
        "before": [*unknown, *FIRST, *SECOND],
        "between": [*FIRST, *unknown, *SECOND],
        "after": [*FIRST, *SECOND, *unknown],
    }[place]

    row = runs.stored(samples).row()

    assert row.warnings == (
        "asv's time is of 18 samples, and 12 of them are on record. "
        "The interval is asv's; pairs and disturbance are of those on record",
    )
    assert (row.rounds, row.samples, row.disturbed) == ((), 18, 0.25)
    assert row.low is not None
    assert row.low < min(FIRST)


def test_a_record_of_other_samples_gives_a_time_nothing(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run().process(FIRST, disturbed=0.5, bytes=4096)

    row = runs.stored([*SECOND, *THIRD]).row()

    assert (row.status, row.rounds, row.disturbed, row.bytes) == ("ok", (), None, 4096)
    assert row.warnings[0].startswith("asv's time is of 12 samples, and none of them are on record")


def test_runs_on_different_processors_are_not_joined(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run(cpu="A", host="x").process(FIRST, disturbed=0.5)
    runs.run(appends=True, cpu="B", host="y").process(SECOND, disturbed=0.0)

    row = runs.stored([*FIRST, *SECOND]).row()

    assert row.seconds == pytest.approx(median(SECOND))
    assert (row.rounds, row.samples, row.disturbed) == (tuple(SECOND), 6, 0.0)
    assert row.warnings == (
        "asv's median is over runs under different conditions: cpu A → B. "
        "The time is of the last conditions alone, 6 of 12 samples",
    )


@pytest.mark.parametrize(("backend", "joined"), [("numpy", True), ("numba", False)])
def test_a_fact_that_concerns_another_backend_keeps_no_runs_apart(
    tmp_path: Path, backend: str, joined: bool
) -> None:
    runs = Runs(tmp_path).run(numba="0.61").process(FIRST, backend=backend)
    runs.run(appends=True, numba="0.62").process(SECOND, backend=backend)
    lines = runs.stored([*FIRST, *SECOND]).files.lines
    for line in lines:
        if hasattr(line, "concerns"):
            object.__setattr__(line, "concerns", {"numba": ("numba",)})

    assert len(runs.row().rounds) == (12 if joined else 6)


def test_uncommitted_code_keeps_runs_apart(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run(uncommitted=None).process(FIRST)
    runs.run(appends=True, uncommitted="toolkit/kernels.py").process(SECOND)

    row = runs.stored([*FIRST, *SECOND]).row()

    assert row.rounds == tuple(SECOND)
    assert "uncommitted None → toolkit/kernels.py" in row.warnings[0]


def test_a_benchmark_of_another_version_is_not_joined(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run().process(FIRST, version="v0")
    runs.run(appends=True).process(SECOND, version="v1").run(appends=True)
    runs.process(THIRD, version="v1")

    row = runs.stored([*SECOND, *THIRD]).row()

    assert (row.rounds, row.version) == ((*SECOND, *THIRD), "v1")


def test_a_case_that_fails_in_the_second_run_has_no_time(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run().process(FIRST).run(appends=True)
    runs.files.record(ADD, CASE, "started").record(ADD, CASE, "wrong", reason="differs")

    runs.files.missing(ADD, CASE)

    row = runs.row()

    assert (row.status, row.reason, row.seconds) == ("wrong", "differs", None)


def test_a_run_after_one_that_failed_counts_alone(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run().process(FIRST).run(appends=True)
    runs.files.record(ADD, CASE, "started").record(ADD, CASE, "failed", reason="no memory")
    runs.run(appends=True).process(THIRD)

    row = runs.stored(THIRD).row()

    assert (row.status, row.rounds) == ("ok", tuple(THIRD))


def test_the_number_of_samples_tells_where_asv_has_dropped_them(tmp_path: Path) -> None:
    # asv does when another case of the benchmark is measured again without --record-samples.
    runs = Runs(tmp_path).run().process(FIRST).run(appends=True).process(SECOND)
    runs.files.record_samples = False

    assert runs.stored([*FIRST, *SECOND]).row().rounds == (*FIRST, *SECOND)


def test_samples_that_are_means_of_several_calls_are_found(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run().process(FIRST).run(appends=True).process(SECOND)
    runs.files.number = 3
    means = [sum(each[i : i + 3]) / 3 for each in (FIRST, SECOND) for i in (0, 3)]

    row = runs.stored(means).row()

    assert (row.rounds, row.samples, row.warnings) == ((*FIRST, *SECOND), 4, ())


def test_rounds_of_several_samples_are_found_by_their_samples(tmp_path: Path) -> None:
    runs = Runs(tmp_path).run()
    for each in (FIRST, SECOND):
        runs.process(each)
        medians = tuple(median(each[i : i + 2]) for i in (0, 2, 4))
        runs.files.lines[-1] = RoundsRecord(ADD, CASE, AT, medians, samples=tuple(each))
        runs.run(appends=True)

    row = runs.stored([*FIRST, *SECOND]).row()

    assert (len(row.rounds), row.samples, row.warnings) == (6, 12, ())


@pytest.mark.parametrize(
    "damaged", [[["x"] * 12], [[None] * 12], [5], [[1e400]], [[0] * 12], "x", [[], []]]
)
def test_damaged_samples_take_no_time_away(tmp_path: Path, damaged: object) -> None:
    runs = Runs(tmp_path).run().process(FIRST).run(appends=True).process(SECOND)
    path = runs.stored([*FIRST, *SECOND]).files.write().result_path
    content = json.loads(path.read_text())
    content["results"][ADD][content["result_columns"].index("samples")] = damaged
    path.write_text(json.dumps(content))

    assert only_row(tmp_path).seconds == pytest.approx(median([*FIRST, *SECOND]))


@pytest.mark.parametrize("count", [0, 2, 2**53])
def test_a_count_that_does_not_fit_joins_nothing(tmp_path: Path, count: int) -> None:
    runs = Runs(tmp_path).run().process(FIRST).run(appends=True).process(SECOND)
    runs.files.number = count
    runs.files.lines.append(RoundsRecord(NUMPY, CASE, AT, tuple(THIRD)))  # of no case

    row = runs.stored([*FIRST, *SECOND]).row()

    assert (row.status, row.samples, row.rounds) == ("ok", 12, () if count else tuple(SECOND))
