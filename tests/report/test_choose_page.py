"""What the page that says what to use says."""

# ruff: noqa: RUF001 (the pages write multiplication signs and en dashes)

from __future__ import annotations

from pathlib import Path

import pytest
from full_kernel import write_full_kernel
from result_files import CommitFiles

from gpubench.errors import GpubenchError, ResultsError
from gpubench.report import choose
from gpubench.report.choose import ChoosePage, Recommendation, chosen_pages
from gpubench.report.exports import plain
from gpubench.report.render import kernel_pages
from gpubench.report.site import Site
from gpubench.results import Ratio, Table, open_table

NARROW = "\N{NARROW NO-BREAK SPACE}"


def page_of(results: Table, machine: str | None = None) -> ChoosePage:
    site = Site(results)
    history = next(h for h in site.histories if machine in (None, h.setup.machine))
    return choose.build(history, site)


@pytest.fixture
def full(tmp_path: Path) -> ChoosePage:
    write_full_kernel(tmp_path)
    return page_of(open_table(tmp_path))


def test_the_whole_of_a_kernel_with_every_time(full: ChoosePage) -> None:
    (kernel,) = full.kernels
    (choice,) = kernel.choices

    assert full.verdict == "At the largest size numba_cuda is the fastest."
    assert choice.resident == (Recommendation("numba_cuda", True, "at every size measured", ""),)
    assert choice.host == (
        Recommendation("numpy", True, "up to n = 4,096", ""),
        Recommendation("numba", True, "from n = 65,536 on", "n = 4,096"),
    )
    rows = {row.label: plain_row(row) for row in choice.rows}
    assert rows == {
        "numba": {
            "device": "cpu",
            "wins": "from n = 65,536 on; the crossover lies above n = 4,096",
            "transfers": "nothing is copied",
            "compilation": f"400{NARROW}ms, repaid after 40 calls (38–42)",
            "calls": 40,
        },
        "numba_cuda": {
            "device": "cuda:0",
            "wins": "at every size measured, from n = 4,096 on",
            "transfers": "the gain outlasts the copies",
            "compilation": f"250{NARROW}ms, repaid after 19 calls (18–20)",
            "calls": 19,
        },
    }
    assert (choice.notes, kernel.reasons, kernel.elsewhere) == ((), (), ())


def plain_row(row: choose.ChoiceRow) -> dict[str, object]:
    names = ("device", "wins", "transfers", "compilation", "calls")
    return {name: getattr(row, name) for name in names}


def test_without_compile_times_the_page_says_what_to_add(tmp_path: Path) -> None:
    write_full_kernel(tmp_path, compiled=False)

    (choice,) = page_of(open_table(tmp_path)).kernels[0].choices

    assert {row.compilation for row in choice.rows} == {"not measured"}
    assert choice.notes == (
        "The compile time of numba and numba_cuda was not measured: add compile to the suite's "
        "measure.",
    )


def test_the_verdict_counts_the_kernels_of_each_winner(sample: Table) -> None:
    assert page_of(sample, "gpu-box").verdict == (
        "At the largest size numba_cuda is the fastest in all 6 kernels."
    )
    assert page_of(sample, "runner").verdict == (
        "At the largest size, of 6 kernels, the fastest is numba_parallel in 3, numpy in 1 and "
        "none clearly in 2."
    )


def test_the_verdict_names_three_winners_and_counts_the_others(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 86_400)
    for winner, kernels in (("numba", 3), ("cuda_a", 2), ("cuda_b", 1), ("cuda_c", 1), ("c", 1)):
        for number in range(kernels):
            for implementation, seconds in (("numpy", 2.0), (winner, 1.0)):
                name = f"suites.{winner}_{number}__{implementation}.time_kernel"
                files.time(name, "n=4", seconds)
    files.write()

    assert page_of(open_table(tmp_path)).verdict == (
        "At the largest size, of 8 kernels, the fastest is numba in 3, cuda_a in 2, c in 1 and "
        "another in 2."
    )


@pytest.mark.parametrize(
    ("kernels", "verdict"),
    [
        (("b",), "At the largest size none is clearly the fastest: numpy or b."),
        (("b", "c"), "At the largest size none is clearly the fastest in both kernels."),
        (("b", "c", "d"), "At the largest size none is clearly the fastest in all 3 kernels."),
    ],
)
def test_a_verdict_without_any_winner(
    tmp_path: Path, kernels: tuple[str, ...], verdict: str
) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 86_400)
    for kernel in kernels:
        for implementation, seconds in (("numpy", 1.0), (kernel, 1.001)):
            files.time(f"suites.{kernel}__{implementation}.time_kernel", "n=4", seconds)
    files.write()

    assert page_of(open_table(tmp_path)).verdict == verdict


def test_where_nothing_copies_there_is_nothing_to_say_of_copies(sample: Table) -> None:
    choices = [c for kernel in page_of(sample, "runner").kernels for c in kernel.choices]

    assert not any(choice.copies for choice in choices)


def test_equals_are_named_as_such(sample: Table) -> None:
    (kernel,) = [k for k in page_of(sample, "runner").kernels if k.kernel.label == "vector_add"]

    newest = kernel.choices[0].resident[-1]
    assert newest.words == (
        "numba_parallel, numpy or numba (no clear difference) from n = 1,048,576 on; "
        "the border lies above n = 262,144"
    )


def test_copies_that_eat_the_gain_are_said_to(sample: Table) -> None:
    kernels = {kernel.kernel.label: kernel for kernel in page_of(sample, "gpu-box").kernels}

    def transfers(label: str) -> str:
        (choice,) = kernels[label].choices
        return next(row.transfers for row in choice.rows if row.label == "numba_cuda")

    assert transfers("matmul") == "the gain outlasts the copies"
    assert transfers("multiply") == "the copies eat the gain: slower than the baseline"
    assert transfers("norm") == "the copies eat the gain: no clear difference is left"


def test_what_was_measured_elsewhere_only_is_named(sample: Table) -> None:
    kernels = {kernel.kernel.label: kernel for kernel in page_of(sample, "runner").kernels}

    assert kernels["norm"].elsewhere == (
        "numba_cuda: measured on gpu-box, virtualenv-py3.12-numba-cuda",
    )
    assert [(r.status, r.count) for r in kernels["norm"].reasons] == [("skipped", 20)]


def test_a_wrong_implementation_is_not_recommended(sample: Table) -> None:
    (matmul,) = [k for k in page_of(sample, "runner").kernels if k.kernel.label == "matmul"]

    text = str(plain_uses(matmul))
    assert "numba_parallel" not in text
    assert [reason.status for reason in matmul.reasons] == ["wrong", "skipped"]


def plain_uses(kernel: choose.KernelChoice) -> list[str]:
    return [u.words for c in kernel.choices for u in (*c.resident, *c.host)]


def test_one_size_says_that_it_is_the_only_one(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 86_400)
    files.time("suites.add__numpy.time_kernel", "n=8", 1.0)
    files.time("suites.add__fast.time_kernel", "n=8", 0.5).write()

    (choice,) = page_of(open_table(tmp_path)).kernels[0].choices

    assert choice.resident == (Recommendation("fast", True, "at n = 8, the only size", ""),)


def test_without_any_speedup_the_page_says_what_comes_next(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 86_400)
    files.missing("suites.add__fast.time_kernel", "n=8").write()

    page = page_of(open_table(tmp_path))

    assert page.verdict == "Nothing to choose from: no case has a time here."
    assert [state.title for state in page.states] == ["Nothing to compare"]


def test_one_kernel_may_be_asked_for_by_either_name(sample: Table) -> None:
    for name in ("norm", "norm.norm"):
        pages = chosen_pages(sample, [name], "runner", None)
        assert [k.kernel.label for page in pages for k in page.kernels] == ["norm"]
    assert pages[0].verdict == "At the largest size numba_parallel is the fastest."


def test_an_unknown_kernel_names_those_that_there_are(sample: Table) -> None:
    with pytest.raises(GpubenchError) as refused:
        chosen_pages(sample, ["nrom"], None, None)
    assert str(refused.value) == "there are no results of 'nrom'; did you mean 'norm'?"
    with pytest.raises(GpubenchError, match="measured are increment_by_one, mandelbrot"):
        chosen_pages(sample, ["conway"], None, None)


def test_the_pages_of_a_kernel_are_found_by_its_names(sample: Table) -> None:
    pages = kernel_pages(sample, ["norm"])
    assert pages == kernel_pages(sample, ["norm::norm"]) == kernel_pages(sample, ["norm.norm"])
    assert pages and all(page.startswith("kernel-norm") for page in pages)
    with pytest.raises(GpubenchError, match="did you mean 'norm'"):
        kernel_pages(sample, ["nrom"])


def test_an_unknown_machine_names_those_that_there_are(sample: Table) -> None:
    with pytest.raises(ResultsError, match=r"there are runner, virtualenv-py3\.11 and gpu-box"):
        chosen_pages(sample, [], "laptop", None)


def test_the_view_model_is_plain_data(full: ChoosePage) -> None:
    from dataclasses import asdict

    (row, _) = plain(asdict(full))["kernels"][0]["choices"][0]["rows"]
    assert Ratio(**row["speedup"]).verdict == "faster"
