"""What the first page says, from the sample and from small results."""

# ruff: noqa: RUF001 (the pages write multiplication signs and en dashes)

from __future__ import annotations

from pathlib import Path

from result_files import CommitFiles, write_machine

from gpubench.report import overview
from gpubench.report.matrix import MatrixCell
from gpubench.report.overview import Overview
from gpubench.report.site import Site
from gpubench.results import Table, open_table

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"


def first_page(table: Table, machine: str | None = None) -> Overview:
    site = Site(table)
    chosen = [h for h in site.histories if machine in (None, h.setup.machine)]
    return overview.build(chosen[0] if chosen else None, site)


def commit(directory: Path, letter: str, day: int) -> CommitFiles:
    return CommitFiles(directory, letter * 40, day * 86_400)


def columns(page: Overview) -> list[str]:
    return [column.name for column in page.matrix.columns]


def cell(page: Overview, kernel: str, implementation: str) -> MatrixCell:
    row = next(row for row in page.matrix.rows if row.kernel.label == kernel)
    return row.cells[columns(page).index(implementation)]


def test_one_sentence_gives_the_verdict(sample: Table) -> None:
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


def test_the_baseline_stands_first_with_its_time(sample: Table) -> None:
    page = first_page(sample, "runner")

    assert columns(page) == ["numpy", "numba", "numba_parallel", "numba_cuda"]
    assert [column.is_baseline for column in page.matrix.columns] == [True, False, False, False]
    assert cell(page, "norm", "numpy").is_baseline
    assert page.matrix.rows[0].baseline_seconds is not None


def test_a_skipped_implementation_shows_no_speedup(sample: Table) -> None:
    found = cell(first_page(sample, "runner"), "norm", "numba_cuda")

    assert (found.speedup, found.status, found.note) == (None, "skipped", "20 cases")


def test_a_wrong_implementation_shows_no_speedup(sample: Table) -> None:
    found = cell(first_page(sample, "runner"), "matmul", "numba_parallel")

    assert (found.speedup, found.status, found.note) == (None, "wrong", "4 cases")


def test_the_regression_is_found_with_factor_and_commit(sample: Table) -> None:
    (change,) = first_page(sample, "runner").regressions

    assert (change.name.kernel, change.name.implementation) == ("vector_add", "numba_parallel")
    assert change.claim == "step: slower by 1.71×; by times alone"
    assert (change.before.date, change.after.date) == ("2026-01-07", "2026-01-08")
    assert len(change.spark.marks) == 1


def test_an_improvement_is_no_regression(sample: Table) -> None:
    (change,) = first_page(sample, "runner").improvements

    assert (change.name.kernel, change.name.implementation) == ("mandelbrot", "numba")


def test_cases_without_a_time_are_grouped_by_reason_the_urgent_first(sample: Table) -> None:
    wrong, skipped = first_page(sample, "runner").reasons

    assert (wrong.status, wrong.count) == ("wrong", 4)
    assert wrong.command == "gpubench verify matmul -a implementation=numba_parallel -a n=1024"
    assert (skipped.status, skipped.count) == ("skipped", 120)
    assert skipped.examples[:2] == (
        "increment_by_one numba_cuda n=1024 block=4",
        "increment_by_one numba_cuda n=1024 block=64",
    )


def test_machines_stand_side_by_side_on_the_first_page(sample: Table) -> None:
    page = first_page(sample)

    assert [(row.setup.label, row.setup.address) for row in page.setups] == [
        ("runner, virtualenv-py3.11", "index.html"),
        (
            "gpu-box, virtualenv-py3.12-numba-cuda",
            "index--gpu-box-virtualenv-py3.12-numba-cuda.html",
        ),
    ]
    assert [link.current for link in page.navigation.setups] == [True, False]
    assert first_page(sample, "gpu-box").setups == ()


def measured(directory: Path, days: dict[str, range]) -> list[tuple[str, str]]:
    """Machines and addresses of their overviews, where each measured on some days."""
    for machine, own in days.items():
        for day in own:
            hash_ = f"{day:08x}{0:032x}"
            files = CommitFiles(directory, hash_, day * 86_400, machine=machine)
            files.time(NUMPY, "n=4", 1.0).write()
    setups = first_page(open_table(directory)).setups
    return [(row.setup.label.partition(",")[0], row.setup.address) for row in setups]


def test_the_machine_with_the_newest_commit_comes_first(tmp_path: Path) -> None:
    listed = measured(tmp_path, {"a-long-one": range(1, 9), "renamed": range(8, 10)})

    assert listed == [
        ("renamed", "index.html"),
        ("a-long-one", "index--a-long-one-virtualenv-py3.11.html"),
    ]


def test_of_machines_at_the_same_commit_the_one_with_most_results_comes_first(
    tmp_path: Path,
) -> None:
    listed = measured(tmp_path, {"a-short-one": range(8, 9), "old": range(1, 9)})

    assert [machine for machine, _ in listed] == ["old", "a-short-one"]


def test_the_machine_is_described_by_the_record_and_asv(sample: Table) -> None:
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

    machine = first_page(open_table(tmp_path)).machine

    assert machine is not None
    assert dict(machine.facts) == {
        "Processor": "Example 9000",
        "Processors": "2",
        "Memory": "16.0 GiB",
    }


def test_a_regression_in_a_history_of_six_commits_is_marked(tmp_path: Path) -> None:
    values = (1.0, 1.0, 1.0, 1.0, 2.0, 2.0)
    for day, (letter, seconds) in enumerate(zip("abcdef", values, strict=True), 1):
        commit(tmp_path, letter, day).time(NUMPY, "n=4", 3.0).time(NUMBA, "n=4", seconds).write()

    page = first_page(open_table(tmp_path))

    (change,) = page.regressions
    assert change.claim == "step: slower by 2.00×; by times alone; rests on 2 commits"
    assert change.after.short == "eeeeeeee"
    assert change.command.startswith("gpubench since --good dddddddd --bad eeeeeeee add -a ")
    assert page.changes_note is None


def test_what_the_newest_commit_alone_shows_is_to_be_checked(tmp_path: Path) -> None:
    for day, (letter, seconds) in enumerate(zip("abcd", (1.0, 1.0, 1.0, 2.0), strict=True), 1):
        commit(tmp_path, letter, day).time(NUMPY, "n=4", 3.0).time(NUMBA, "n=4", seconds).write()

    page = first_page(open_table(tmp_path))

    (check,) = page.checks
    assert page.regressions == ()
    assert check.command.startswith("gpubench compare --measure cccccccc dddddddd add -a ")


def test_what_has_too_few_commits_is_not_judged(tmp_path: Path) -> None:
    for day, letter in enumerate("ab", 1):
        commit(tmp_path, letter, day).time(NUMPY, "n=4", 3.0).time(NUMBA, "n=4", day).write()

    page = first_page(open_table(tmp_path))

    assert page.judged == 0
    assert (page.changes_note or "").startswith("No case is judged yet")


def test_cases_without_a_time_are_not_among_those_that_wait_for_a_verdict(tmp_path: Path) -> None:
    files = commit(tmp_path, "a", 1).time(NUMPY, "n=4", 3.0).time(NUMBA, "n=4", 1.0)
    files.missing(NUMBA, "n=8").write()

    page = first_page(open_table(tmp_path))

    assert page.judged == 0
    assert (page.changes_note or "").startswith("No case is judged yet")
    assert [row.is_judged for row in page.matrix.rows] == [False]


def test_nothing_measured_says_which_command_comes_next(tmp_path: Path) -> None:
    page = first_page(open_table(tmp_path))

    assert page.verdict == "No results yet."
    assert [state.command for state in page.states] == ["asv run --quick"]


def test_one_commit_says_what_more_would_show(tmp_path: Path) -> None:
    commit(tmp_path, "a", 1).time(NUMPY, "n=4", 3.0).write()

    page = first_page(open_table(tmp_path))

    assert [state.title for state in page.states] == ["One commit so far"]
    assert page.verdict.startswith("No speedup can be stated for 1 kernel of 1 suite at aaaaaaaa")


def test_a_case_that_was_verified_in_software_shows_no_speedup(tmp_path: Path) -> None:
    files = commit(tmp_path, "a", 1).time(NUMPY, "n=4", 3.0).time(NUMBA, "n=4", 1.0)
    files.record(NUMBA, "n=4", "verified").write()

    found = cell(first_page(open_table(tmp_path)), "add", "numba")

    assert (found.speedup, found.status, found.note) == (None, "verified", "")


def test_a_missing_baseline_is_said_in_the_cell(tmp_path: Path) -> None:
    commit(tmp_path, "a", 1).time(NUMBA, "n=4", 1.0).write()

    found = cell(first_page(open_table(tmp_path)), "add", "numba")

    assert found.speedup is None
    assert found.note.startswith("no baseline: ")


def test_a_speedup_that_allows_1x_is_called_unclear(tmp_path: Path) -> None:
    files = commit(tmp_path, "a", 1).time(NUMPY, "n=4", 1.02, spread=0.1)
    files.time(NUMBA, "n=4", 1.0, spread=0.1).write()

    page = first_page(open_table(tmp_path))

    assert page.counts == {"unclear": 1, "baseline": 1}
    assert page.verdict.endswith("unclear, the interval allows 1.00× or is not known.")


def test_a_kernel_last_measured_earlier_says_at_which_commit(tmp_path: Path) -> None:
    commit(tmp_path, "a", 1).time(NUMPY, "n=4", 3.0).write()
    commit(tmp_path, "b", 2).time("suites.norm__numpy.time_kernel", "n=4", 3.0).write()

    rows = {row.kernel.label: row.commit for row in first_page(open_table(tmp_path)).matrix.rows}

    assert rows["norm"] is None
    assert rows["add"] is not None
    assert rows["add"].short == "aaaaaaaa"


def test_what_was_only_skipped_stands_behind_what_has_a_speedup(tmp_path: Path) -> None:
    files = commit(tmp_path, "a", 1).time(NUMPY, "n=4", 3.0).time(NUMBA, "n=4", 1.0)
    skipped = "suites.add__cuda.time_kernel"
    files.record(skipped, "n=4", "skipped", reason="no GPU").missing(skipped, "n=4").write()

    page = first_page(open_table(tmp_path))

    assert columns(page) == ["numpy", "numba", "cuda"]
    found = cell(page, "add", "cuda")
    assert (found.status, found.note) == ("skipped", "")


def test_values_of_an_older_version_are_announced(tmp_path: Path) -> None:
    old = commit(tmp_path, "a", 1).time(NUMPY, "n=4", 3.0)
    old.versions[NUMPY] = "v0"
    old.write()
    commit(tmp_path, "b", 2).time(NUMPY, "n=4", 3.0).write()

    titles = [state.title for state in first_page(open_table(tmp_path)).states]

    assert titles == ["Older values are left out"]


def many_implementations(directory: Path) -> Overview:
    """Eight implementations of two kernels, on three backends; both kernels have ``numba``."""
    files = commit(directory, "a", 1)
    for name, backend, seconds in (
        ("add__numpy", "numpy", 8.0), ("add__numba", "numba", 4.0), ("add__serial", "numba", 6.0),
        ("add__cuda_naive", "numba_cuda", 2.0), ("add__cuda_tiled", "numba_cuda", 1.0),
        ("norm__numpy", "numpy", 9.0), ("norm__numba", "numba", 3.0),
        ("norm__cuda_tree", "numba_cuda", 1.0), ("norm__cuda_tiled", "numba_cuda", 1.5),
        ("norm__cuda_atomic", "numba_cuda", None),
    ):  # fmt: skip
        benchmark = f"suites.{name}.time_kernel"
        status = "ok" if seconds else "failed"
        files.record(benchmark, "n=4", status, backend=backend, values={"n": 4}, sizes=("n",))
        files.time(benchmark, "n=4", seconds) if seconds else files.missing(benchmark, "n=4")
    files.write()
    return first_page(open_table(directory))


def test_more_than_six_implementations_share_a_column_for_each_backend(tmp_path: Path) -> None:
    page = many_implementations(tmp_path)

    assert page.matrix.by_backend
    assert columns(page) == ["numpy", "cuda_tiled", "numba"]


def test_a_shared_column_shows_the_fastest_and_names_it_where_its_head_does_not(
    tmp_path: Path,
) -> None:
    page = many_implementations(tmp_path)
    cells = [cell(page, kernel, "cuda_tiled") for kernel in ("add", "norm")]

    assert [round(found.speedup.value) for found in cells if found.speedup] == [8, 9]
    assert [found.note for found in cells] == ["", "cuda_tree"]
    assert [row.size for row in page.matrix.rows] == ["n = 4", "n = 4"]


def test_a_size_that_is_not_the_row_s_is_said_in_the_cell(tmp_path: Path) -> None:
    files = commit(tmp_path, "a", 1).time(NUMPY, "n=4", 3.0).time(NUMPY, "n=8", 6.0)
    files.time(NUMBA, "n=8", 1.0).time("suites.add__other.time_kernel", "n=4", 1.0).write()

    page = first_page(open_table(tmp_path))

    assert page.matrix.rows[0].size == "n = 8"
    assert (cell(page, "add", "numba").note, cell(page, "add", "other").note) == ("", "n = 4")


def test_a_baseline_with_flaws_keeps_its_time_and_says_them(tmp_path: Path) -> None:
    files = commit(tmp_path, "a", 1).time(NUMPY, "n=4", 3.0).missing(NUMPY, "n=8")
    files.record(NUMPY, "n=8", "timed_out").write()

    page = first_page(open_table(tmp_path))

    assert page.matrix.rows[0].baseline_seconds == 3.0
    assert (cell(page, "add", "numpy").is_baseline, cell(page, "add", "numpy").note) == (
        True,
        "1 timed out",
    )


def test_each_kernel_counts_once_in_the_mean_with_its_fastest(tmp_path: Path) -> None:
    files = commit(tmp_path, "a", 1)
    for kernel, fast in (("add", 1.0), ("norm", 4.0)):
        for name, seconds in (("numpy", 4.0), ("slow", 8.0), ("fast", fast)):
            files.time(f"suites.{kernel}__{name}.time_kernel", "n=4", seconds)
    files.write()

    speedup = first_page(open_table(tmp_path)).speedup

    assert speedup is not None
    assert round(speedup.value, 6) == 2.0  # the geometric mean of 4 and 1


def test_the_largest_changes_are_listed_and_no_more_than_eight(tmp_path: Path) -> None:
    for day, letter in enumerate("abcdef", 1):
        files = commit(tmp_path, letter, day)
        for index in range(40):  # more than most: those would be what the machine does
            seconds = 1.0 + index if letter in "ef" and index < 10 else 1.0
            files.time(f"suites.k{index}__numba.time_kernel", "n=4", seconds)
        files.write()

    page = first_page(open_table(tmp_path))

    assert [change.name.kernel for change in page.regressions] == [f"k{i}" for i in range(9, 1, -1)]
    assert page.improvements == ()


def test_of_an_implementation_that_changed_at_every_size_the_largest_change_is_listed(
    tmp_path: Path,
) -> None:
    for day, letter in enumerate("abcdef", 1):
        files = commit(tmp_path, letter, day)
        for n, factor in ((4, 2.0), (8, 3.0), (16, 1.5)):
            files.time(NUMBA, f"n={n}", factor if letter in "ef" else 1.0)
        files.write()

    (change,) = first_page(open_table(tmp_path)).regressions

    assert (change.name.case, round(change.factor, 6)) == ("n=8", 3.0)


def test_a_kernel_that_does_nothing_is_not_in_the_mean(tmp_path: Path) -> None:
    """`work: {bytes: 0, flops: 0}`: how fast an empty launch is says nothing of computing."""
    files = commit(tmp_path, "a", 1)
    for kernel, seconds, nbytes in (("add", 0.5, 64), ("scale", 0.125, None), ("empty", 9.0, 0)):
        for implementation, value in (("numpy", 1.0), ("numba", seconds)):
            name = f"suites.{kernel}__{implementation}.time_kernel"
            files.time(name, "n=4", value).record(name, "n=4", bytes=nbytes, flops=0)
    files.write()

    page = first_page(open_table(tmp_path))

    assert page.speedup is not None
    assert round(page.speedup.value, 6) == 4.0
    assert page.verdict.startswith("Over 2 kernels of 2 suites ")
    assert "; without empty, which does nothing (work: 0)." in page.details
    assert [row.kernel.label for row in page.matrix.rows] == ["add", "empty", "scale"]
