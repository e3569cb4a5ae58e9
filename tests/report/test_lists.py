"""In which groups the rows of a long list stand, and which are open at first."""

from __future__ import annotations

from dataclasses import dataclass

from gpubench.report.lists import FIRST, grouped, listed, open_at_first
from gpubench.results import Ratio


@dataclass(frozen=True)
class Kernel:
    suite: str
    label: str


def kernels(count: int, of_a_suite: int) -> list[Kernel]:
    return [Kernel(f"suite_{i // of_a_suite}", f"kernel_{i}") for i in range(count)]


def shown(rows: list[Kernel]) -> list[tuple[str, int, bool]]:
    groups = grouped(rows, "suite", "label")
    assert [row for group in groups for row in group.rows] == rows
    return [(group.title, len(group.rows), group.is_open) for group in groups]


def test_a_short_list_is_one_group_without_a_title() -> None:
    assert shown(kernels(FIRST, 4)) == [("", FIRST, True)]


def test_suites_fold_beyond_the_first_rows() -> None:
    assert shown(kernels(60, 20)) == [
        ("suite_0", 20, True), ("suite_1", 20, True), ("suite_2", 20, False),
    ]  # fmt: skip


def test_suites_of_a_kernel_each_and_one_suite_fold_by_their_names() -> None:
    by_name = [("kernel_0 to kernel_39", 40, True), ("kernel_40 to kernel_59", 20, False)]

    assert shown(kernels(60, 1)) == by_name
    assert shown(kernels(60, 60)) == by_name


def test_a_first_group_of_many_rows_is_open_and_the_only_one() -> None:
    assert list(open_at_first([300, 1, 300])) == [True, False, False]


def test_what_is_not_known_is_neither_filtered_nor_sorted_by() -> None:
    found = listed(
        only=["slower", "", "faster", "slower"], speedup=Ratio(2.0, 1.0, 3.0), cases=3, change=None
    )

    assert found == {"only": ["faster", "slower"], "speedup": 2.0, "cases": 3}
