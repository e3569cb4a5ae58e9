"""A kernel's roofline, the split of its time, and what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from full_kernel import CODE, YAML, write_full_kernel
from result_files import CommitFiles
from stored_asv_project import PAIR, write_benchmarks, write_format_2

from gpubench.report import kernel
from gpubench.report.figures import roofline_figure
from gpubench.report.kernel import KernelPage
from gpubench.report.navigation import State
from gpubench.report.render import write_report
from gpubench.report.site import Site
from gpubench.report.text import share
from gpubench.results import Table, open_table

NARROW = "\N{NARROW NO-BREAK SPACE}"


def page_of(table: Table, name: str = "scale") -> KernelPage:
    site = Site(table)
    key = next(key for key in site.current(site.histories[0]) if key[1] == name)
    return kernel.build(site.histories[0], key, site)


@pytest.fixture
def full(tmp_path: Path) -> KernelPage:
    write_full_kernel(tmp_path)
    return page_of(open_table(tmp_path))


def test_the_roofline_says_how_near_each_implementation_comes(full: KernelPage) -> None:
    (roof,) = full.rooflines.devices

    assert roof.device == "cuda:0"
    assert roof.sentences == (
        "Bandwidth 3,900 GB/s: triad measured on the device, 81 % of the datasheet's 4,800 GB/s.",
        "The arithmetic ceiling was not measured: a kernel far below the bandwidth may be bound by "
        "its operations.",
        "numba_cuda: 80 % of what is attainable at n = 16,777,216.",
    )
    assert [share(point.share) for point in roof.points] == ["0.33 %", "5.1 %", "43 %", "80 %"]


def test_the_cpu_without_a_measured_ceiling_says_which_command_gives_it(full: KernelPage) -> None:
    assert full.rooflines.missing == (
        State(
            "No roofline",
            "the bandwidth of the CPU was not measured; a kernel named triad or copy gives it.",
            "asv run --bench __triad__",
        ),
    )


def test_the_figure_has_the_roof_and_a_marker_for_each_size(full: KernelPage) -> None:
    roof, cuda = roofline_figure(full.rooflines.devices[0])["data"]

    assert roof["y"][0] == pytest.approx(roof["x"][0] * 3.9e12)
    assert cuda["x"] == [1 / 8] * 4
    assert cuda["mode"] == "markers"


def test_more_than_is_attainable_is_no_triumph() -> None:
    assert share(1.0) == "100 %"
    assert share(1.2) == "cache-resident or undercounted"


def test_the_cases_carry_their_share(full: KernelPage) -> None:
    cases = [(case.row.name, case.share) for case in full.cases if case.row.size == 2**24]
    shares = {(name.implementation, name.time): share for name, share in cases}

    assert shares["numba_cuda", "kernel"] == pytest.approx(0.8, abs=0.005)
    assert shares["numba_cuda", "transfer"] is None
    assert shares["numpy", "kernel"] is None


def test_without_work_the_page_says_what_to_add(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 86_400)
    files.time("suites.add__numpy.time_kernel", "n=8", 1.0).write()

    page = page_of(open_table(tmp_path), "add")

    assert page.rooflines.missing == (
        State("No roofline", "the suite does not say how many bytes are moved: add work."),
    )


def test_the_first_call_and_later_ones_are_taken_apart(full: KernelPage) -> None:
    rows = {row.kernel.name.implementation: row for row in full.split}

    assert list(rows) == ["numba", "numba_cuda"]
    first, later = rows["numba_cuda"].bars
    assert first.sentence == (
        f"first call: compile 250{NARROW}ms (98 %), transfer 5.60{NARROW}ms (2 %), launch "
        f"6.00{NARROW}µs (under 1 %) and kernel 43.2{NARROW}µs (under 1 %)."
    )
    assert [part.time for part in later.parts] == ["transfer", "launch", "kernel"]
    assert sum(part.width for part in later.parts) == pytest.approx(1000, abs=0.3)


def test_kernel_only_stands_beside_end_to_end(full: KernelPage) -> None:
    row = next(row for row in full.split if row.kernel.name.implementation == "numba_cuda")

    assert row.kernel.speedup is not None
    assert row.end_to_end is not None
    assert row.end_to_end.speedup is not None
    assert round(row.kernel.speedup.value) == 311
    assert round(row.end_to_end.speedup.value, 2) == 2.37


def test_one_labelled_time_is_not_split(sample: Table) -> None:
    assert page_of(sample, "norm").split == ()


def test_the_yaml_and_the_code_are_shown_apart(full: KernelPage) -> None:
    measured = full.measured

    assert measured is not None
    assert (measured.place, measured.declaration) == ("suites/scale.yaml:4", YAML)
    assert measured.codes["numba_cuda"] == CODE
    assert list(measured.codes) == ["numpy", "numba", "numba_cuda"]


def test_source_is_text_and_not_markup(tmp_path: Path) -> None:
    write_full_kernel(tmp_path / "results")
    site = write_report(open_table(tmp_path / "results"), tmp_path / "site").parent

    html = (site / "kernel-scale.html").read_text(encoding="utf-8")
    assert "note: &lt;b&gt;text, not markup&lt;/b&gt;" in html
    assert "<b>text" not in html


def test_a_pair_says_what_it_does_not_know_and_how_to_run_it(tmp_path: Path) -> None:
    write_benchmarks(tmp_path)
    values: list[float | None] = [8.0, 8.0, 8.0, 8.0]
    write_format_2(tmp_path, 1, {PAIR.baseline: values, PAIR.candidate: values * 2})

    page = page_of(open_table(tmp_path, pairs=[PAIR]), "norm")

    assert page.title == "sums.norm"
    assert page.rooflines.missing[0].why == (
        "a pair does not say how many bytes its benchmarks move."
    )
    assert {case.row.title for case in page.cases} == {PAIR.baseline, PAIR.candidate}
    assert page.measured is not None
    assert page.measured.codes["baseline"] == "def time_numpy(self): ..."
    assert page.measured.declaration == ""


def test_what_moves_no_arrays_has_no_rate(full: KernelPage) -> None:
    rows = [case.row for case in full.cases]

    with_rate = {row.name.time for row in rows if row.bytes_per_second is not None}
    assert with_rate == {"kernel", "end_to_end"}
