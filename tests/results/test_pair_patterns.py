"""Pairs of many benchmarks by a pattern, and what is said of patterns that do not fit."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from gpubench.names import MAX_PATTERN_CHARACTERS, pattern_fault
from gpubench.results import Pair, PairPattern
from gpubench.results.model import Described
from gpubench.results.pairs import resolved

NAMES = (
    "bench_cuda.Sum.time_cpu_axis",
    "bench_cuda.Sum.time_cuda_axis",
    "bench_cuda.Sum.time_cpu_all",
    "bench_cuda.Sum.time_cuda_all",
    "bench_cuda.Sum.time_cpu_alone",
    "bench_cuda.Sum.track_cpu_error",
    "other.time_numpy",
    "other.time_numba",
    "other.time_cupy",
)


def matched(
    *patterns: tuple[str, str], names: Iterable[str] = NAMES, suite: str = ""
) -> tuple[list[Pair], list[str]]:
    given = [PairPattern(suite, *pattern) for pattern in patterns]
    pairs, problems, _ = resolved(given, dict.fromkeys(names, Described()))
    assert all(problem.path.startswith("pair ") for problem in problems)
    return [*pairs], [problem.message for problem in problems]


def test_a_pattern_pairs_every_benchmark_that_it_matches_and_says_what_has_no_partner() -> None:
    pairs, said = matched((r"bench_cuda.*time_cpu_(.*)", r"time_cuda_\1"))

    assert pairs == [
        Pair("bench_cuda", f"Sum.time_cpu_{end}", *(f"bench_cuda.Sum.time_{side}_{end}" for side in
                                                      ("cpu", "cuda")))
        for end in ("all", "axis")
    ]  # fmt: skip
    assert said == [
        "1 of 3 that match have nothing to be compared with: bench_cuda.Sum.time_cpu_alone asks "
        "for 'time_cuda_alone'; no time benchmark has that name"
    ]


@pytest.mark.parametrize(
    "pattern",
    [
        (r"time_cpu_(a.*s|all)", r"time_cuda_\1"),
        (r"(.*)\.time_cpu_(a.*s|all)", r"\1.time_cuda_\2"),
        (r".*\.Sum\.time_cpu_(a.*s|all)", r"Sum.time_cuda_\1"),
        (r".*time_cpu_(?P<what>a.*s|all)", r"bench_cuda.Sum.time_cuda_\1"),
    ],
)
def test_names_may_be_whole_or_their_last_parts(pattern: tuple[str, str]) -> None:
    pairs, said = matched(pattern)

    assert [pair.candidate for pair in pairs] == [
        "bench_cuda.Sum.time_cuda_all",
        "bench_cuda.Sum.time_cuda_axis",
    ]
    assert said == []


def test_the_pairs_of_a_suite_are_shown_in_it() -> None:
    (pair,), _ = matched(("time_numpy", "time_numba"), suite="sums")

    assert (pair.suite, pair.name) == ("sums", "other.time_numpy")


def test_one_baseline_may_have_several_partners() -> None:
    pairs, said = matched(("time_numpy", "time_numba"), ("time_numpy", "time_cupy"))

    assert [pair.name for pair in pairs] == ["time_numpy", "time_numpy.time_cupy"]
    assert said == []


def test_a_pair_that_two_patterns_give_is_kept_once() -> None:
    pairs, said = matched(("time_numpy", "time_numba"), (r"(.*)numpy", r"\1numba"))

    assert len(pairs) == 1
    assert said == ["1 of its pairs are there already, other.time_numpy for one; kept once"]


def test_a_pattern_that_matches_nothing_says_what_may_have_been_meant() -> None:
    assert matched((r"other.time_nunpy", "time_numba")) == (
        [],
        ["no time benchmark of 8 matches 'other.time_nunpy'; did you mean 'other.time_numpy'?"],
    )


def test_a_benchmark_is_no_partner_of_itself() -> None:
    pairs, said = matched((r"other\.(time_numpy)", r"\1"))

    assert pairs == []
    assert said[0].startswith("1 of 1 that match have nothing to be compared with")


@pytest.mark.parametrize("pattern", [r"(a+)+b", r"(a|a)*b", r"(.*)(.*)(.*)(.*)(.*)b"])
def test_a_pattern_that_would_take_for_ever_takes_no_time(pattern: str) -> None:
    name = "m.time_" + "a" * 5_000
    _, said = matched((f"time_{pattern}", "x"), names=[name])

    assert said == [f"no time benchmark of 1 matches {f'time_{pattern}'!r}"]


def test_what_looks_around_is_refused() -> None:
    (said,) = matched((r"time_(?=numpy)(.*)", r"x_\1"))[1]

    assert said.startswith(
        r"'time_(?=numpy)(.*)' cannot be matched, as an expression that looks ahead or behind"
    )


@pytest.mark.parametrize(
    ("baseline", "candidate", "fault"),
    [
        ("time_(", "x", "'time_(' is no regular expression: missing ), unterminated subpattern"),
        (r"time_(.*)", r"x_\2", r"'x_\\2' has \2, and 'time_(.*)' has 1 groups"),
        (r"time_(.*)", "x_\\", r"'x_\\' has \, and 'time_(.*)' has 1 groups"),
        ("a" * 501, "x", f"a pattern of 501 characters; at most {MAX_PATTERN_CHARACTERS}: write "),
        ("(" * 300 + ")" * 300, "x", "a pattern of 600 characters"),
    ],
)
def test_patterns_with_a_fault_are_refused(baseline: str, candidate: str, fault: str) -> None:
    assert (pattern_fault(baseline, candidate) or "").startswith(fault)
    assert matched((baseline, candidate))[1][0].startswith(fault)
