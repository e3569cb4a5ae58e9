"""What a kernel's page says, from the sample and from small results."""

# ruff: noqa: RUF001 (the pages write multiplication signs and en dashes)

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

from result_files import CommitFiles

from gpubench.report import exports, kernel
from gpubench.report.charts import HistoryChart
from gpubench.report.figures import history_figure, size_figure
from gpubench.report.kernel import KernelPage
from gpubench.report.render import write_report
from gpubench.report.site import Site
from gpubench.report.text import launch
from gpubench.results import Table, open_table


def kernel_page(table: Table, name: str, machine: str | None = None) -> KernelPage:
    site = Site(table)
    history = next(h for h in site.histories if machine in (None, h.setup.machine))
    return kernel.build(history, (name, name), site)


def html_of(directory: Path) -> str:
    """The page of the kernel ``add``, without the space between lines."""
    site = write_report(open_table(directory), directory / "html").parent
    html = (site / "kernel-add.html").read_text(encoding="utf-8")
    return " ".join(unescape(html).split())


def add(implementation: str, time: str = "kernel") -> str:
    return f"suites.add__{implementation}.time_{time}"


def commit(directory: Path, letter: str = "a", day: int = 1) -> CommitFiles:
    return CommitFiles(directory, letter * 40, day * 86_400)


def test_the_verdict_names_the_fastest_implementation_and_its_launch(sample: Table) -> None:
    page = kernel_page(sample, "matmul", "gpu-box")

    assert page.verdict == (
        "numba_cuda reaches 58.1× (55.8–60.5×) the speed of numpy at n=1048576 block=256."
    )


def test_the_history_marks_the_slower_commit_in_words_and_in_the_chart(sample: Table) -> None:
    history = kernel_page(sample, "vector_add", "runner").history

    assert history is not None
    series = {s.implementation: s for s in history.series}
    assert series["numba_parallel"].marked == (7,)
    assert series["numba_parallel"].sentence == (
        "numba_parallel: 205\N{NARROW NO-BREAK SPACE}µs, 1.03× (0.986–1.07×) at the newest "
        "commit; step: slower by 1.68× at 99ecd36e (by times alone)."
    )
    figure = history_figure(history)
    assert [note["text"] for note in figure["layout"]["annotations"]] == [
        "▼ numba_parallel slower 1.68×"
    ]
    assert 6.5 in [shape["x0"] for shape in figure["layout"]["shapes"]]


def test_the_chart_says_of_times_alone_that_they_are_not_judged_yet(tmp_path: Path) -> None:
    files = commit(tmp_path).time(add("numpy"), "n=4", 4.0).time(add("numba"), "n=4", 1.0)
    files.missing(add("numba"), "n=8").write()

    history = kernel_page(open_table(tmp_path), "add").history

    assert history is not None
    assert (history.note or "").startswith("No case is judged yet")


def stepping(directory: Path, steps: tuple[int, ...], commits: int) -> HistoryChart:
    """One kernel whose candidate changes by a factor of two at each of the steps."""
    for index in range(commits):
        seconds = 1.0 + sum(index >= step for step in steps) % 2
        files = CommitFiles(directory, f"{index:08x}" + "0" * 32, 86_400 * (index + 1))
        files.time(add("numpy"), "n=4", 4.0).time(add("numba"), "n=4", seconds).write()
    history = kernel_page(open_table(directory), "add").history
    assert history is not None
    return history


def test_words_of_marks_stand_below_each_other(tmp_path: Path) -> None:
    notes = history_figure(stepping(tmp_path, (4, 8, 36), 40))["layout"]["annotations"]

    assert [(note["x"], note["yshift"]) for note in notes] == [(3.5, 0), (7.5, -16), (35.5, -32)]


def test_a_long_history_is_a_line_without_markers(tmp_path: Path) -> None:
    few, many = (
        history_figure(stepping(tmp_path / str(commits), (), commits))["data"]
        for commits in (60, 61)
    )

    assert {trace["mode"] for trace in few if "name" in trace} == {"lines+markers"}
    assert {trace["mode"] for trace in many if "name" in trace} == {"lines"}


def test_a_wrong_case_keeps_its_history_and_has_no_speedup_since(sample: Table) -> None:
    history = kernel_page(sample, "matmul", "runner").history

    assert history is not None
    (series,) = [s for s in history.series if s.implementation == "numba_parallel"]
    assert series.sentence == (
        "numba_parallel: wrong since 6ee34ae8; "
        "the last value was 15.5\u202fms at 64d7d56c, 2026-01-10."
    )
    assert [note["text"] for note in history_figure(history)["layout"]["annotations"]] == [
        "✕ numba_parallel wrong"
    ]
    newest_first = series.points
    assert all(point.speedup for point in newest_first[2:])
    assert [(p.speedup, p.seconds, p.status) for p in newest_first[:2]] == [
        (None, None, "wrong"),
        (None, None, "wrong"),
    ]


def test_no_wrong_or_skipped_row_shows_a_time_or_speedup(sample: Table) -> None:
    rows = [
        case.row
        for machine in ("runner", "gpu-box")
        for case in kernel_page(sample, "matmul", machine).cases
        if case.row.status != "ok"
    ]

    assert rows
    assert all(row.seconds is None and row.speedup is None and row.reason for row in rows)


def test_the_crossover_is_said_in_words(sample: Table) -> None:
    (chart,) = kernel_page(sample, "norm", "runner").sizes

    assert chart.axis == "n"
    assert [series.sentence for series in chart.series] == [
        "numba is faster at every size measured, from n = 1,024 on.",
        "numba_parallel is faster from n = 262,144 on; the crossover lies above n = 16,384.",
    ]
    assert size_figure(chart)["layout"]["xaxis"]["ticktext"][0] == "2<sup>10</sup>"


def test_the_heatmap_outlines_the_fastest_launch_of_each_size(sample: Table) -> None:
    (launches,) = kernel_page(sample, "matmul", "gpu-box").launches

    assert launches.columns == ("n=1024", "n=16384", "n=262144", "n=1048576")
    assert list(launches.rows) == ["4", "64", "256", "1024", "2048"]
    assert [name.case for name in launches.best[1:]] == [
        f"n={n} block=256" for n in (2**14, 2**18, 2**20)
    ]
    assert len(launches.best) == 4


def test_impossible_launches_carry_their_reason(sample: Table) -> None:
    (launches,) = kernel_page(sample, "matmul", "gpu-box").launches

    impossible = launches.rows["2048"]
    assert {(cell.status, cell.reason, cell.speedup) for cell in impossible if cell} == {
        ("skipped", launches.reasons[0], None)
    }
    assert launches.reasons[0].startswith("block 2048 has 2048 threads, the limit is 1024")


def test_without_a_gpu_the_heatmap_shows_the_reasons(sample: Table) -> None:
    (launches,) = kernel_page(sample, "matmul", "runner").launches

    assert launches.sentence == "No launch of numba_cuda has a time: skipped."
    reasons = {cell.reason for cells in launches.rows.values() for cell in cells if cell}
    assert reasons == set(launches.reasons)


def test_labelled_times_stand_side_by_side(sample: Table) -> None:
    page = kernel_page(sample, "norm", "gpu-box")

    assert page.time_columns == ("kernel", "end_to_end")
    kernel_only, end_to_end = (page.times["numba_cuda"][time].seconds for time in page.time_columns)
    assert kernel_only is not None
    assert end_to_end is not None
    assert kernel_only < end_to_end


def test_one_labelled_time_makes_no_table(sample: Table) -> None:
    assert kernel_page(sample, "norm", "runner").time_columns == ("kernel",)


def test_labelled_times_that_were_not_taken_say_so(tmp_path: Path) -> None:
    files = commit(tmp_path).time(add("numpy"), "n=64", 4.0).time(add("cuda"), "n=64", 1.0)
    files.missing(add("cuda", "end_to_end"), "n=64").write()

    html = html_of(tmp_path)

    table = html[html.index('id="times"') : html.index('id="reasons"')]
    assert '<th scope="row">numpy<small>n=64</small></th>' in table
    assert table.count("not measured") == 1
    assert table.count('class="status failed danger"') == 1


def test_rates_and_errors_come_from_the_record(sample: Table) -> None:
    rows = [case.row for case in kernel_page(sample, "norm", "runner").cases]

    row = next(r for r in rows if (r.name.implementation, r.name.case) == ("numba", "n=1048576"))
    assert (row.bytes, row.flops, row.max_abs_error) == (4 * 2**20, 2 * 2**20, 1.2e-7)
    assert rows[0].is_baseline


def test_scores_stand_in_place_of_errors(tmp_path: Path) -> None:
    files = commit(tmp_path).time(add("numpy"), "n=64", 8.0).time(add("sklearn"), "n=64", 4.0)
    baseline = {"baseline_benchmark": add("numpy"), "baseline_case": "n=64"}
    files.record(add("numpy"), "n=64", score=0.98765)
    files.record(add("sklearn"), "n=64", score=0.9871, **baseline)
    files.write()
    table = open_table(tmp_path)
    exports.write(Site(table), tmp_path)
    exported = json.loads((tmp_path / "cases.json").read_text())

    assert kernel_page(table, "add").scored
    assert [row["score"] for row in exported] == [0.98765, 0.9871]
    html = html_of(tmp_path)
    cases = html[html.index('id="cases"') :]
    assert "Score by the suite's function, in place of a comparison." in cases
    assert "Error, abs." not in cases
    assert '<td class="number">0.9877</td>' in cases and '<td class="number">0.9871</td>' in cases


def test_without_scores_errors_are_shown_where_there_are_some(
    sample: Table, tmp_path: Path
) -> None:
    page = kernel_page(sample, "norm", "runner")
    assert not page.scored and page.columns.error
    commit(tmp_path).time(add("numpy"), "n=64", 8.0).write()
    html = html_of(tmp_path)
    assert "Error, abs." not in html and "GB/s" not in html


def test_a_swept_grid_becomes_the_columns(tmp_path: Path) -> None:
    files = commit(tmp_path).time(add("numpy"), "n=64", 8.0)
    for block, grid, seconds in ((32, 2, 4.0), (32, 4, 2.0), (64, 2, 1.0)):
        files.time(add("cuda"), f"n=64 block={block} grid={grid}", seconds)
    files.write()

    (launches,) = kernel_page(open_table(tmp_path), "add").launches

    assert (launches.problem, launches.columns) == ("n=64", ("2", "4"))
    assert list(launches.rows) == ["32", "64"]
    assert launches.rows["64"][1] is None
    assert '<td class="plain muted">not in the plan</td>' in html_of(tmp_path)


def test_rows_of_the_heatmap_name_only_what_varies(tmp_path: Path) -> None:
    files = commit(tmp_path).time(add("numpy"), "n=64", 8.0)
    for tile, block in ((8, "8x8"), (16, "16x16")):
        files.time(add("cuda"), f"n=64 tile={tile} block={block} device=cuda:1", 4.0)
    files.write()

    (launches,) = kernel_page(open_table(tmp_path), "add").launches

    assert list(launches.rows) == ["tile=8 block=8x8", "tile=16 block=16x16"]


def test_one_size_draws_no_chart_over_size(tmp_path: Path) -> None:
    files = commit(tmp_path).time(add("numpy"), "n=64", 8.0).time(add("numba"), "n=64", 4.0)
    files.write()

    assert kernel_page(open_table(tmp_path), "add").sizes == ()


def test_each_combination_of_parameters_has_a_chart_over_size(tmp_path: Path) -> None:
    files = commit(tmp_path)
    for dtype in ("float32", "float64"):
        for n in (64, 128):
            files.time(add("numpy"), f"n={n} dtype={dtype}", 8.0)
            files.time(add("numba"), f"n={n} dtype={dtype}", 4.0)
    files.write()

    charts = kernel_page(open_table(tmp_path), "add").sizes

    assert [chart.parameters for chart in charts] == ["dtype=float32", "dtype=float64"]


def test_a_missing_baseline_says_which_command_comes_next(tmp_path: Path) -> None:
    commit(tmp_path).time(add("numba"), "n=64", 4.0).write()

    states = kernel_page(open_table(tmp_path), "add").states

    assert [state.title for state in states] == ["One commit so far", "No baseline"]
    assert states[1].why == (
        "1 case has a time and no speedup. add numba n=64: no baseline: `numpy` has no case for "
        "these sizes; name one with `baseline:`."
    )
    assert states[1].command == "asv run --bench add"


def test_nothing_but_failures_says_so(tmp_path: Path) -> None:
    commit(tmp_path).missing(add("numpy"), "n=64").write()

    page = kernel_page(open_table(tmp_path), "add")

    assert page.verdict == "No speedup can be stated at this commit."
    assert "No times" in [state.title for state in page.states]


def test_a_kernel_left_out_at_the_newest_commit_says_so(tmp_path: Path) -> None:
    commit(tmp_path, "a", 1).time(add("numpy"), "n=64", 4.0).write()
    commit(tmp_path, "b", 2).time("suites.norm__numpy.time_kernel", "n=64", 4.0).write()

    states = kernel_page(open_table(tmp_path), "add").states

    assert states[0].title == "Not measured at the newest commit"
    assert states[0].command == "asv run --bench add bbbbbbbb^!"


def test_the_verdict_of_several_cases_says_of_how_many_and_that_it_is_unclear(
    tmp_path: Path,
) -> None:
    files = commit(tmp_path)
    for dtype in ("float32", "float64"):
        files.time(add("numpy"), f"n=64 dtype={dtype}", 4.02, spread=0.1)
        files.time(add("numba"), f"n=64 dtype={dtype}", 4.0, spread=0.1)
    files.write()

    page = kernel_page(open_table(tmp_path), "add")

    assert page.verdict.startswith("numba reaches 1.00× (")
    assert page.verdict.endswith(
        ") the speed of numpy at n=64 dtype=float32 and 1 more case: unclear."
    )


def test_all_cases_stand_by_implementation_then_labelled_time_then_size(tmp_path: Path) -> None:
    files = commit(tmp_path)
    for n in (128, 64):
        for benchmark in (add("numba", "compile"), add("numba"), add("numpy"), add("array")):
            files.time(benchmark, f"n={n}", 4.0)
    files.write()

    names = [case.row.name for case in kernel_page(open_table(tmp_path), "add").cases]

    assert [(name.implementation, name.time, name.case) for name in names] == [
        (implementation, time, f"n={n}")
        for implementation, time in (
            ("numpy", "kernel"), ("array", "kernel"), ("numba", "kernel"), ("numba", "compile"),
        )
        for n in (64, 128)
    ]  # fmt: skip


def test_a_launch_is_said_by_its_blocks_or_by_its_threads(tmp_path: Path) -> None:
    files = commit(tmp_path)
    given: dict[str, dict[str, object]] = {
        "plain": {"grid": (4, 1, 1), "block": (16, 16, 1)},
        "shared": {"grid": (4, 1, 1), "block": (256, 1, 1), "shared_bytes": 1024},
        "threads": {"threads": 2},
        "one": {"threads": 1},
        "none": {},
    }
    for name, fields in given.items():
        files.time(add(name), "n=64", 4.0).record(add(name), "n=64", **fields)
    files.write()

    rows = [case.row for case in kernel_page(open_table(tmp_path), "add").cases]

    assert {row.name.implementation: launch(row) for row in rows} == {
        "plain": "4 blocks of 16x16",
        "shared": "4 blocks of 256, 1024 B shared",
        "threads": "2 threads",
        "one": "1 thread",
        "none": "",
    }


def test_warnings_of_the_record_stand_with_the_case(tmp_path: Path) -> None:
    files = commit(tmp_path).time(add("numpy"), "n=64", 4.0)
    files.record(add("numpy"), "n=64", warnings=("the clock fell", "batch of 1")).write()

    assert "measured</span><small>the clock fell; batch of 1</small>" in html_of(tmp_path)


def test_why_there_is_no_time_or_no_speedup_stands_with_the_case(tmp_path: Path) -> None:
    files = commit(tmp_path).time(add("numba"), "n=64", 4.0).missing(add("numba"), "n=8")
    files.record(add("numba"), "n=8", "wrong", reason="<out> differs").write()

    html = html_of(tmp_path)

    cases = html[html.index('id="cases"') :]
    assert "<small><out> differs</small>" in cases
    assert "measured</span><small>no baseline: `numpy` has no case for these sizes" in cases


def test_the_baseline_comes_first_and_colours_follow_the_names(tmp_path: Path) -> None:
    files = commit(tmp_path).time(add("numba"), "n=64", 1.0).time(add("numpy"), "n=64", 4.0)
    files.time(add("array"), "n=64", 4.0)
    files.record(add("numba"), "n=64", title="Numba, one thread").write()

    page = kernel_page(open_table(tmp_path), "add")

    assert page.history is not None
    assert [(s.implementation, s.rank, s.is_baseline) for s in page.history.series] == [
        ("numpy", 0, True),
        ("array", 1, False),
        ("numba", 2, False),
    ]
    assert [case.row.title for case in page.cases] == [None, None, "Numba, one thread"]


def test_a_baseline_alone_has_its_history(tmp_path: Path) -> None:
    for letter, day in (("a", 1), ("b", 2)):
        commit(tmp_path, letter, day).time(add("numpy"), "n=64", 4.0).write()

    history = kernel_page(open_table(tmp_path), "add").history

    assert history is not None
    assert [(series.implementation, series.is_baseline) for series in history.series] == [
        ("numpy", True)
    ]


def test_what_never_had_a_time_has_no_history(tmp_path: Path) -> None:
    commit(tmp_path).missing(add("numba"), "n=64").write()

    assert kernel_page(open_table(tmp_path), "add").history is None


def test_a_call_that_compiles_nothing_is_one_bar(tmp_path: Path) -> None:
    files = commit(tmp_path).time(add("cuda", "transfer"), "n=64", 3.0)
    files.time(add("cuda"), "n=64", 1.0).write()

    (row,) = kernel_page(open_table(tmp_path), "add").split

    (bar,) = row.bars
    assert (bar.label, bar.seconds) == ("a call", 4.0)
    assert [(part.time, part.left, part.width) for part in bar.parts] == [
        ("transfer", 0.0, 750.0),
        ("kernel", 750.0, 250.0),
    ]


def test_a_device_that_only_the_identity_names_is_not_said_twice(tmp_path: Path) -> None:
    files = commit(tmp_path).time(add("cuda"), "n=64 device=cuda:1", 1.0)
    files.time(add("numba"), "n=64", 1.0).record(add("numba"), "n=64", device="cpu").write()

    html = html_of(tmp_path)

    assert "cuda<small>n=64 device=cuda:1</small>" in html
    assert "numba<small>n=64 · cpu</small>" in html
