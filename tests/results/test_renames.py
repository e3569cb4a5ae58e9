"""Results under names that things had before appear under the names that they have now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from result_files import CommitFiles

from gpubench.project.opening import declared_renames, project_table
from gpubench.record import record_name
from gpubench.results import CaseName, Row, Table, open_table

OLD_NUMPY, OLD_GPU = "suites.sums__add__numpy.time_kernel", "suites.sums__add__gpu.time_kernel"
NUMPY = "suites.totals__total__numpy.time_kernel"
GPU = "suites.totals__total__numba_cuda.time_kernel"

SUITE = """\
version: 1
suite: totals
was: [sums_of_all, sums]
kernels:
  total:
    was: add
    sizes: {count: {values: [4, 8], was: n}, batch: [2]}
    parameters: {width: {values: [1, 2], was: [tile_width, tile]}}
    arrays:
      a: {shape: [batch, count], dtype: float64}
      b: {shape: [count], dtype: float64, intent: out}
    call: [a, b]
    implementations:
      numpy: {function: "kernels:add"}
      numba_cuda:
        was: [gpu, "kernels:old"]
        factory: kernels:make
        with: {width: width}
        launch: {block: [32]}
    devices: [cpu, "cuda:0"]
"""


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    folder = tmp_path / "suites"
    folder.mkdir()
    (folder / "totals.yaml").write_text(SUITE, encoding="utf-8")
    return folder


def read(suites: Path, path: Path | None = None) -> Table:
    return open_table(suites.parent, path=path, renames=declared_renames(suites))


def old_commit(folder: Path, number: int, digit: str = "a") -> CommitFiles:
    files = CommitFiles(folder, digit * 40, number * 86_400, started_at=number * 86_400.0)
    values, sizes = {"batch": 2, "n": 4}, ("batch", "n")
    files.time(OLD_NUMPY, "batch=2 n=4", 4.0)
    files.record(OLD_NUMPY, "batch=2 n=4", backend="numpy", values=values, sizes=sizes)
    case = "batch=2 n=4 tile=2 block=32 device=cuda:0"
    files.time(OLD_GPU, case, 2.0).record(
        OLD_GPU,
        case,
        backend="numba_cuda",
        values={**values, "tile": 2},
        sizes=sizes,
        baseline_benchmark=OLD_NUMPY,
        baseline_case="batch=2 n=4",
    )
    files.rounds(OLD_GPU, case, 1.9, 1.95, 2.0, 2.05, 2.1)
    return files


def new_commit(folder: Path, number: int, digit: str = "b") -> CommitFiles:
    files = CommitFiles(folder, digit * 40, number * 86_400, started_at=number * 86_400.0)
    values, sizes = {"batch": 2, "count": 4}, ("batch", "count")
    files.time(NUMPY, "batch=2 count=4", 8.0)
    files.record(NUMPY, "batch=2 count=4", backend="numpy", values=values, sizes=sizes)
    case = "batch=2 count=4 width=2 block=32 device=cuda:0"
    files.time(GPU, case, 1.0).record(
        GPU,
        case,
        backend="numba_cuda",
        values={**values, "width": 2},
        sizes=sizes,
        baseline_benchmark=NUMPY,
        baseline_case="batch=2 count=4",
    )
    return files


BASELINE = CaseName("totals", "total", "numpy", "kernel", "batch=2 count=4")
CANDIDATE = CaseName(
    "totals", "total", "numba_cuda", "kernel", "batch=2 count=4 width=2 block=32 device=cuda:0"
)


def rows_of(table: Table, index: int = 0) -> dict[CaseName, Row]:
    (setup,) = table.setups
    return table.rows(table.snapshots(setup)[index])


def test_old_results_have_the_names_of_now(suites: Path) -> None:
    old_commit(suites.parent, 1).write()

    table = read(suites)
    rows = rows_of(table)

    assert [*rows] == [CANDIDATE, BASELINE]
    row = rows[CANDIDATE]
    assert (row.seconds, row.baseline, row.problem) == (2.0, BASELINE, "batch=2 count=4")
    assert row.speedup is not None
    assert (row.speedup.value, row.low, row.high) == (2.0, 1.9, 2.1)
    assert row.values == {"batch": 2, "count": 4, "width": 2}
    assert row.sizes == {"batch": 2, "count": 4}
    assert row.recorded
    assert table.problems == ()


def test_a_history_goes_on_under_the_new_name(suites: Path) -> None:
    for number, commit in ((1, old_commit), (2, new_commit)):
        files = commit(suites.parent, number, "abcdef"[number])
        files.versions = dict.fromkeys((OLD_NUMPY, OLD_GPU, NUMPY, GPU), "same")
        files.write()

    table = read(suites)
    (setup,) = table.setups
    history = table.history(setup)

    assert history.names == (CANDIDATE, BASELINE)
    assert history.times[0].tolist() == [[2.0, 1.0], [4.0, 8.0]]
    assert history.speedups[0].tolist()[0] == [2.0, 8.0]
    assert [snapshot.superseded for snapshot in table.snapshots(setup)] == [(), ()]


def both_in_one(folder: Path, *, old_is_newer: bool = False, version: str = "same") -> None:
    """One commit measured under both names, the new ones last unless told otherwise."""
    files, new = old_commit(folder, 3), new_commit(folder, 3, "a")
    files.time(OLD_NUMPY, "batch=2 n=8", 16.0).record(OLD_NUMPY, "batch=2 n=8", backend="numpy")
    new.not_applicable(NUMPY, "batch=2 count=8")
    files.values |= new.values
    files.lines += new.lines
    files.versions = dict.fromkeys((OLD_NUMPY, OLD_GPU), "same")
    files.versions |= dict.fromkeys((NUMPY, GPU), version)
    files.write()
    name = record_name(files.commit, files.environment).replace(".gpubench.jsonl", ".json")
    path = folder / files.machine / name
    content = json.loads(path.read_text())
    column = content["result_columns"].index("started_at")
    for benchmark, row in content["results"].items():
        is_old = benchmark in (OLD_NUMPY, OLD_GPU)
        row[column] = 2_000_000 if is_old is old_is_newer else 1_000_000
    path.write_text(json.dumps(content))


def test_of_two_names_at_one_commit_the_newer_time_counts_once(suites: Path) -> None:
    both_in_one(suites.parent)

    rows = rows_of(read(suites))

    other = CaseName("totals", "total", "numpy", "kernel", "batch=2 count=8")
    assert {name: row.seconds for name, row in rows.items()} == {
        CANDIDATE: 1.0,
        BASELINE: 8.0,
        other: 16.0,  # asv was not asked for it under the new name
    }
    assert rows[CANDIDATE].rounds == (), "which are those of the old time"


def test_of_two_names_the_old_one_counts_where_it_was_measured_last(suites: Path) -> None:
    both_in_one(suites.parent, old_is_newer=True)

    rows = rows_of(read(suites))

    assert (rows[CANDIDATE].seconds, rows[BASELINE].seconds) == (2.0, 4.0)
    assert len(rows[CANDIDATE].rounds) == 5


def test_another_version_under_the_old_name_is_another_history(suites: Path) -> None:
    both_in_one(suites.parent, version="other")

    rows = rows_of(read(suites))

    assert {name: row.seconds for name, row in rows.items() if row.seconds is not None} == {
        CANDIDATE: 1.0,
        BASELINE: 8.0,
    }


def test_kernels_that_are_gone_move_with_their_suite(suites: Path) -> None:
    CommitFiles(suites.parent, "a" * 40, 1).time(
        "suites.sums__removed__numpy.time_kernel", "n=4", 1.0
    ).write()

    assert [*rows_of(read(suites))] == [CaseName("totals", "removed", "numpy", "kernel", "n=4")]


def test_the_kept_table_follows_the_names(suites: Path) -> None:
    old_commit(suites.parent / "results", 1).write()
    plain = suites.parent / "results"

    table, faults = project_table(plain, None, suites)
    assert [*rows_of(table)] == [CANDIDATE, BASELINE]
    assert faults == ()
    table.close()
    (suites / "totals.yaml").write_text(SUITE.replace("    was: add\n", ""), encoding="utf-8")
    table, _ = project_table(plain, None, suites)
    assert {name.kernel for name in rows_of(table)} == {"add"}
    table.close()


def test_what_was_never_renamed_is_read_as_before(suites: Path) -> None:
    files = CommitFiles(suites.parent, "a" * 40, 1)
    files.time("suites.other__numpy.time_kernel", "n=4 tile=2", 1.0).write()

    (name,) = rows_of(read(suites))

    assert name == CaseName("other", "other", "numpy", "kernel", "n=4 tile=2")
    (suites / "totals.yaml").write_text("version: 1\nsuite: totals\n# it was so\n")
    assert declared_renames(suites).kernels == {}
