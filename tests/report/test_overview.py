"""What the first page says, from the sample and from small results."""

# ruff: noqa: RUF001 (the pages write multiplication signs and en dashes)

from __future__ import annotations

from pathlib import Path

from result_files import CommitFiles, write_machine

from gpubench.report import overview
from gpubench.report.overview import Overview
from gpubench.report.site import Site
from gpubench.results import Results, load_results

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"


def first_page(results: Results, machine: str | None = None) -> Overview:
    site = Site(results)
    chosen = [h for h in site.histories if machine in (None, h.setup.machine)]
    return overview.build(results, chosen[0] if chosen else None, site)


def commit(directory: Path, letter: str, day: int) -> CommitFiles:
    return CommitFiles(directory, letter * 40, day * 86_400)


def cell(page: Overview, kernel: str, implementation: str) -> overview.Cell:
    row = next(row for row in page.rows if row.kernel.label == kernel)
    return row.cells[page.columns.index(implementation)]


def test_one_sentence_gives_the_verdict(sample: Results) -> None:
    page = first_page(sample, "runner")

    assert page.verdict == (
        "Over 6 kernels of 6 suites at 61a56374 on runner, the fastest implementations reach "
        "1.81× (1.74–1.88×) the speed of the baseline."
    )
    assert page.details == (
        "Geometric mean over the kernels, each at its largest size with its fastest "
        "implementation. Of 192 cases, 21 faster, 19 slower, 4 unclear, 4 wrong, 120 skipped "
        "and 24 baseline."
    )


def test_the_baseline_stands_first_with_its_time(sample: Results) -> None:
    page = first_page(sample, "runner")

    assert page.columns == ("numpy", "numba", "numba_cuda", "numba_parallel")
    assert cell(page, "norm", "numpy").is_baseline
    assert page.rows[0].baseline_seconds is not None


def test_a_skipped_implementation_shows_no_speedup(sample: Results) -> None:
    found = cell(first_page(sample, "runner"), "norm", "numba_cuda")

    assert (found.speedup, found.status, found.note) == (None, "skipped", "20 skipped")


def test_a_wrong_implementation_shows_no_speedup(sample: Results) -> None:
    found = cell(first_page(sample, "runner"), "matmul", "numba_parallel")

    assert (found.speedup, found.status, found.note) == (None, "wrong", "4 wrong")


def test_the_regression_is_found_with_factor_and_commit(sample: Results) -> None:
    (change,) = first_page(sample, "runner").regressions

    assert (change.name.kernel, change.name.implementation) == ("vector_add", "numba_parallel")
    assert change.claim == "step: slower by 1.71×"
    assert (change.before.date, change.after.date) == ("2026-01-07", "2026-01-08")
    assert len(change.spark.marks) == 1


def test_an_improvement_is_no_regression(sample: Results) -> None:
    (change,) = first_page(sample, "runner").improvements

    assert (change.name.kernel, change.name.implementation) == ("mandelbrot", "numba")


def test_cases_without_a_time_are_grouped_by_reason_the_urgent_first(sample: Results) -> None:
    wrong, skipped = first_page(sample, "runner").reasons

    assert (wrong.status, wrong.count) == ("wrong", 4)
    assert wrong.command == "asv run --quick --show-stderr --bench matmul__numba_parallel"
    assert (skipped.status, skipped.count) == ("skipped", 120)
    assert skipped.examples[:2] == (
        "increment_by_one numba_cuda n=1024 block=4",
        "increment_by_one numba_cuda n=1024 block=64",
    )


def test_machines_stand_side_by_side(sample: Results) -> None:
    page = first_page(sample, "gpu-box")

    assert [(row.setup.label, row.setup.address) for row in page.setups] == [
        ("gpu-box, virtualenv-py3.12-numba-cuda", "index.html"),
        ("runner, virtualenv-py3.11", "index--runner-virtualenv-py3.11.html"),
    ]
    assert [link.current for link in page.navigation.setups] == [True, False]


def test_the_machine_is_described_by_the_record_and_asv(sample: Results) -> None:
    machine = first_page(sample, "runner").machine

    assert machine is not None
    facts = dict(machine.facts)
    assert facts["Processor"] == "Example EPYC, 2 cores"
    assert facts["Memory"] == "8.00 GiB"
    assert facts["Architecture"] == "x86_64"
    assert facts["GPU"].startswith("no NVIDIA GPU was found")


def test_without_a_record_asv_s_description_stands(tmp_path: Path) -> None:
    files = commit(tmp_path, "a", 1).time(NUMPY, "n=4", 3.0).write()
    write_machine(tmp_path, files.machine, ram="17179869184")

    machine = first_page(load_results(tmp_path)).machine

    assert machine is not None
    assert dict(machine.facts) == {
        "Processor": "Example 9000",
        "Processors": "2",
        "Memory": "16.0 GiB",
    }


def test_a_regression_in_a_history_of_four_commits_is_marked(tmp_path: Path) -> None:
    for day, (letter, seconds) in enumerate(zip("abcd", (1.0, 1.0, 2.0, 2.0), strict=True), 1):
        commit(tmp_path, letter, day).time(NUMPY, "n=4", 3.0).time(NUMBA, "n=4", seconds).write()

    page = first_page(load_results(tmp_path))

    (change,) = page.regressions
    assert change.claim == "slower than the previous commit: intervals do not overlap"
    assert change.after.short == "cccccccc"
    assert page.changes_note == (
        "4 commits measured. Steps are claimed from 10 on; until then each commit is held "
        "against the one before it by their intervals."
    )


def test_nothing_measured_says_which_command_comes_next() -> None:
    page = first_page(Results())

    assert page.verdict == "No results yet."
    assert [state.command for state in page.states] == ["asv run --quick"]


def test_one_commit_says_what_more_would_show(tmp_path: Path) -> None:
    commit(tmp_path, "a", 1).time(NUMPY, "n=4", 3.0).write()

    page = first_page(load_results(tmp_path))

    assert [state.title for state in page.states] == ["One commit so far"]
    assert page.verdict.startswith("No speedup can be stated for 1 kernel of 1 suite at aaaaaaaa")


def test_a_simulated_case_shows_no_speedup(tmp_path: Path) -> None:
    files = commit(tmp_path, "a", 1).time(NUMPY, "n=4", 3.0).time(NUMBA, "n=4", 1.0)
    files.record(NUMBA, "n=4", simulated=True).write()

    found = cell(first_page(load_results(tmp_path)), "add", "numba")

    assert (found.speedup, found.status, found.note) == (None, "simulated", "1 simulated")


def test_a_missing_baseline_is_said_in_the_cell(tmp_path: Path) -> None:
    commit(tmp_path, "a", 1).time(NUMBA, "n=4", 1.0).write()

    found = cell(first_page(load_results(tmp_path)), "add", "numba")

    assert found.speedup is None
    assert found.note.startswith("no baseline: ")


def test_a_speedup_that_allows_1x_is_called_unclear(tmp_path: Path) -> None:
    files = commit(tmp_path, "a", 1).time(NUMPY, "n=4", 1.02, spread=0.1)
    files.time(NUMBA, "n=4", 1.0, spread=0.1).write()

    page = first_page(load_results(tmp_path))

    assert page.counts == {"unclear": 1, "baseline": 1}
    assert page.verdict.endswith("unclear, the interval allows 1.00× or is not known.")


def test_a_kernel_last_measured_earlier_says_at_which_commit(tmp_path: Path) -> None:
    commit(tmp_path, "a", 1).time(NUMPY, "n=4", 3.0).write()
    commit(tmp_path, "b", 2).time("suites.norm__numpy.time_kernel", "n=4", 3.0).write()

    rows = {row.kernel.label: row.commit for row in first_page(load_results(tmp_path)).rows}

    assert rows["norm"] is None
    assert rows["add"] is not None
    assert rows["add"].short == "aaaaaaaa"


def test_values_of_an_older_version_are_announced(tmp_path: Path) -> None:
    old = commit(tmp_path, "a", 1).time(NUMPY, "n=4", 3.0)
    old.versions[NUMPY] = "v0"
    old.write()
    commit(tmp_path, "b", 2).time(NUMPY, "n=4", 3.0).write()

    titles = [state.title for state in first_page(load_results(tmp_path)).states]

    assert titles == ["Older values are left out"]
