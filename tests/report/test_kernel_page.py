"""What a kernel's page says, from the sample and from small results."""

# ruff: noqa: RUF001 (the pages write multiplication signs and en dashes)

from __future__ import annotations

from pathlib import Path

from result_files import CommitFiles

from gpubench.report import kernel
from gpubench.report.figures import size_figure
from gpubench.report.history_chart import HistoryChart
from gpubench.report.history_figure import history_figure
from gpubench.report.kernel import KernelPage
from gpubench.report.site import Site
from gpubench.results import Results, load_results


def kernel_page(results: Results, name: str, machine: str | None = None) -> KernelPage:
    site = Site(results)
    history = next(h for h in site.histories if machine in (None, h.setup.machine))
    return kernel.build(history, (name, name), site)


def add(implementation: str, time: str = "kernel") -> str:
    return f"suites.add__{implementation}.time_{time}"


def commit(directory: Path, letter: str = "a", day: int = 1) -> CommitFiles:
    return CommitFiles(directory, letter * 40, day * 86_400)


def test_the_verdict_names_the_fastest_implementation_and_its_launch(sample: Results) -> None:
    page = kernel_page(sample, "matmul", "gpu-box")

    assert page.verdict == (
        "numba_cuda reaches 58.1× (55.8–60.5×) the speed of numpy at n=1048576 block=256."
    )


def test_the_history_marks_the_slower_commit_in_words_and_in_the_chart(sample: Results) -> None:
    history = kernel_page(sample, "vector_add", "runner").history

    assert history is not None
    series = {s.implementation: s for s in history.series}
    assert series["numba_parallel"].marked == (7,)
    assert series["numba_parallel"].sentence == (
        "numba_parallel: 205\N{NARROW NO-BREAK SPACE}µs, 1.03× (0.986–1.07×) at the newest "
        "commit; step: slower by 1.68× at 99ecd36e."
    )
    figure = history_figure(history)
    assert [note["text"] for note in figure["layout"]["annotations"]] == [
        "▼ numba_parallel slower 1.68×"
    ]
    assert 6.5 in [shape["x0"] for shape in figure["layout"]["shapes"]]


def stepping(directory: Path, steps: tuple[int, ...], commits: int) -> HistoryChart:
    """One kernel whose candidate changes by a factor of two at each of the steps."""
    for index in range(commits):
        seconds = 1.0 + sum(index >= step for step in steps) % 2
        files = CommitFiles(directory, f"{index:08x}" + "0" * 32, 86_400 * (index + 1))
        files.time(add("numpy"), "n=4", 4.0).time(add("numba"), "n=4", seconds).write()
    history = kernel_page(load_results(directory), "add").history
    assert history is not None
    return history


def test_words_of_marks_near_each_other_stand_below_each_other(tmp_path: Path) -> None:
    notes = history_figure(stepping(tmp_path, (4, 8, 36), 40))["layout"]["annotations"]

    assert [(note["x"], note["yshift"]) for note in notes] == [(3.5, 0), (7.5, -14), (35.5, 0)]


def test_a_long_history_is_a_line_without_markers(tmp_path: Path) -> None:
    few, many = (
        history_figure(stepping(tmp_path / str(commits), (), commits))["data"]
        for commits in (120, 121)
    )

    assert {trace["mode"] for trace in few if "name" in trace} == {"lines+markers"}
    assert {trace["mode"] for trace in many if "name" in trace} == {"lines"}
    assert {trace["error_y"]["width"] for trace in many if "error_y" in trace} == {0}


def test_a_wrong_case_keeps_its_history_and_has_no_speedup_since(sample: Results) -> None:
    history = kernel_page(sample, "matmul", "runner").history

    assert history is not None
    (series,) = [s for s in history.series if s.implementation == "numba_parallel"]
    assert series.sentence == "numba_parallel: wrong since 6ee34ae8."
    assert [note["text"] for note in history_figure(history)["layout"]["annotations"]] == [
        "✕ numba_parallel wrong"
    ]
    newest_first = series.points
    assert all(point.speedup for point in newest_first[2:])
    assert [(p.speedup, p.timing, p.status) for p in newest_first[:2]] == [
        (None, None, "wrong"),
        (None, None, "wrong"),
    ]


def test_no_wrong_or_skipped_row_shows_a_time_or_speedup(sample: Results) -> None:
    rows = [
        row
        for machine in ("runner", "gpu-box")
        for row in kernel_page(sample, "matmul", machine).cases
        if row.status != "ok"
    ]

    assert rows
    assert all(row.timing is None and row.speedup is None and row.reason for row in rows)


def test_the_crossover_is_said_in_words(sample: Results) -> None:
    (chart,) = kernel_page(sample, "norm", "runner").sizes

    assert chart.axis == "n"
    assert [series.sentence for series in chart.series] == [
        "numba is faster at every size measured, from n = 1,024 on.",
        "numba_parallel is faster from n = 262,144 on; the crossover lies above n = 16,384.",
    ]
    assert size_figure(chart)["layout"]["xaxis"]["ticktext"][0] == "2<sup>10</sup>"


def test_the_heatmap_outlines_the_fastest_launch_of_each_size(sample: Results) -> None:
    (launches,) = kernel_page(sample, "matmul", "gpu-box").launches

    assert launches.columns == ("n=1024", "n=16384", "n=262144", "n=1048576")
    assert [row.label for row in launches.rows] == ["4", "64", "256", "1024", "2048"]
    best = {row.label: [cell.best for cell in row.cells] for row in launches.rows}
    assert best["256"][1:] == [True, True, True]
    assert sum(cell.best for row in launches.rows for cell in row.cells) == 4


def test_impossible_launches_carry_their_reason(sample: Results) -> None:
    (launches,) = kernel_page(sample, "matmul", "gpu-box").launches

    impossible = launches.rows[-1].cells
    assert {(cell.status, cell.footnote, cell.speedup) for cell in impossible} == {
        ("skipped", 1, None)
    }
    assert launches.reasons[0].startswith("block 2048 has 2048 threads, the limit is 1024")


def test_without_a_gpu_the_heatmap_shows_the_reasons(sample: Results) -> None:
    (launches,) = kernel_page(sample, "matmul", "runner").launches

    assert launches.sentence == "No launch of numba_cuda has a time: skipped."
    assert {cell.footnote for row in launches.rows for cell in row.cells} == {1}


def test_labelled_times_stand_side_by_side(sample: Results) -> None:
    times = kernel_page(sample, "norm", "gpu-box").times

    assert times is not None
    assert times.columns == ("kernel", "end to end")
    row = next(row for row in times.rows if row.implementation == "numba_cuda")
    kernel_only, end_to_end = (cell.timing for cell in row.cells)
    assert kernel_only is not None
    assert end_to_end is not None
    assert kernel_only.median < end_to_end.median


def test_one_labelled_time_makes_no_table(sample: Results) -> None:
    assert kernel_page(sample, "norm", "runner").times is None


def test_rates_and_errors_come_from_the_record(sample: Results) -> None:
    rows = kernel_page(sample, "norm", "runner").cases

    row = next(r for r in rows if (r.implementation, r.case) == ("numba", "n=1048576"))
    assert (row.bytes, row.flops, row.max_abs_error) == (4 * 2**20, 2 * 2**20, 1.2e-7)
    assert rows[0].is_baseline


def test_a_swept_grid_becomes_the_columns(tmp_path: Path) -> None:
    files = commit(tmp_path).time(add("numpy"), "n=64", 8.0)
    for block, grid, seconds in ((32, 2, 4.0), (32, 4, 2.0), (64, 2, 1.0)):
        files.time(add("cuda"), f"n=64 block={block} grid={grid}", seconds)
    files.write()

    (launches,) = kernel_page(load_results(tmp_path), "add").launches

    assert (launches.problem, launches.columns) == ("n=64", ("2", "4"))
    assert [row.label for row in launches.rows] == ["32", "64"]
    assert launches.rows[1].cells[1].status is None


def test_rows_of_the_heatmap_name_only_what_varies(tmp_path: Path) -> None:
    files = commit(tmp_path).time(add("numpy"), "n=64", 8.0)
    for tile, block in ((8, "8x8"), (16, "16x16")):
        files.time(add("cuda"), f"n=64 tile={tile} block={block} device=cuda:1", 4.0)
    files.write()

    (launches,) = kernel_page(load_results(tmp_path), "add").launches

    assert [row.label for row in launches.rows] == ["tile=8 block=8x8", "tile=16 block=16x16"]


def test_one_size_draws_no_chart_over_size(tmp_path: Path) -> None:
    files = commit(tmp_path).time(add("numpy"), "n=64", 8.0).time(add("numba"), "n=64", 4.0)
    files.write()

    assert kernel_page(load_results(tmp_path), "add").sizes == ()


def test_each_combination_of_parameters_has_a_chart_over_size(tmp_path: Path) -> None:
    files = commit(tmp_path)
    for dtype in ("float32", "float64"):
        for n in (64, 128):
            files.time(add("numpy"), f"n={n} dtype={dtype}", 8.0)
            files.time(add("numba"), f"n={n} dtype={dtype}", 4.0)
    files.write()

    charts = kernel_page(load_results(tmp_path), "add").sizes

    assert [chart.parameters for chart in charts] == ["dtype=float32", "dtype=float64"]


def test_a_missing_baseline_says_which_command_comes_next(tmp_path: Path) -> None:
    commit(tmp_path).time(add("numba"), "n=64", 4.0).write()

    states = kernel_page(load_results(tmp_path), "add").states

    assert [state.title for state in states] == ["One commit so far", "No baseline"]
    assert states[1].why == (
        "1 case has a time and no speedup. add numba n=64: no baseline: `numpy` has no case for "
        "these sizes; name one with `baseline:`."
    )
    assert states[1].command == "asv run --bench add"


def test_nothing_but_failures_says_so(tmp_path: Path) -> None:
    commit(tmp_path).missing(add("numpy"), "n=64").write()

    page = kernel_page(load_results(tmp_path), "add")

    assert page.verdict == "No speedup can be stated at this commit."
    assert "No times" in [state.title for state in page.states]


def test_a_kernel_left_out_at_the_newest_commit_says_so(tmp_path: Path) -> None:
    commit(tmp_path, "a", 1).time(add("numpy"), "n=64", 4.0).write()
    commit(tmp_path, "b", 2).time("suites.norm__numpy.time_kernel", "n=64", 4.0).write()

    states = kernel_page(load_results(tmp_path), "add").states

    assert states[0].title == "Not measured at the newest commit"
    assert states[0].command == "asv run --bench add bbbbbbbb^!"
