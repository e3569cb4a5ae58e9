"""`gpubench since --counts` as a person and a script see it, by counts of a script."""

# ruff: noqa: RUF001 (the command writes multiplication signs)

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result
from result_files import launch
from summing_project import enter_project

from gpubench.cli import main
from gpubench.errors import GpubenchError
from gpubench.measure.bisecting import LineCommit
from gpubench.record import CountsRecord

GOOD = "f" * 40
NUMBA = "suites.sums__total__numba.time_kernel"


@dataclass
class ScriptedCounts:
    """A line of commits with the instructions that a case takes at each."""

    instructions: Sequence[int] = (1000,) * 5 + (2000,) * 11
    good: int = 1000
    missing: Mapping[int, str] = field(default_factory=dict)
    """Why a place has no counts; the good end's is -1."""
    broken: frozenset[int] = frozenset()
    """Places that cannot be installed."""
    asked: list[int] = field(default_factory=list)

    @property
    def line(self) -> list[LineCommit]:
        return [
            LineCommit(f"{place:08x}" * 5, 86_400.0 * place, f"change {place}", 1)
            for place in range(len(self.instructions))
        ]

    def count(self, commit: str) -> dict[int, CountsRecord | str]:
        place = -1 if commit == GOOD else int(commit[:8], 16)
        self.asked.append(place)
        if place in self.broken:
            raise GpubenchError("it cannot be installed: the compiler is missing\nsecond line")
        if place in self.missing:
            return {0: self.missing[place]}
        number = self.good if place < 0 else self.instructions[place]
        counted = launch(grid=1, block=1, lines={10 + place: {"ir_instructions": number}},
                         file="summing.py", ir_instructions=number)  # fmt: skip
        return {0: CountsRecord(NUMBA, "n=1000", 1, None, (counted,), "cpu", "numba 0.68")}


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Search a scripted line of commits, and check the exit code."""
    enter_project(tmp_path, monkeypatch)

    def search(counts: ScriptedCounts, *arguments: str, code: int = 0) -> Result:
        @contextmanager
        def installer(*_: object) -> Iterator[SimpleNamespace]:
            yield SimpleNamespace(find_commit=str, repository_path=".")

        monkeypatch.setattr("gpubench.measure.installing.installer_of", installer)
        monkeypatch.setattr("gpubench.measure.bisecting.read_line", lambda *_: counts.line)
        monkeypatch.setattr("gpubench.measure.counted_commits.CommitCounter", lambda *_: counts)
        command = ["since", "sums", "--counts", "--good", GOOD, "--bad", "b" * 40]
        if "-a" not in arguments:
            command += ["-a", "implementation=numba"]
        result = CliRunner().invoke(main, [*command, *arguments], env={"COLUMNS": "120"})
        assert result.exit_code == code, result.output
        return result

    return search


def subjects(result: Result) -> list[str]:
    return [commit["subject"] for commit in json.loads(result.stdout)["commits"]]


def test_the_commit_is_named_with_what_changed_and_where(run: Run) -> None:
    shown = run(ScriptedCounts()).stdout.splitlines()

    commit = "00000005"
    words = f"does 2.00× the LLVM instructions (line 15) since commit {commit}"
    assert shown[0] == f"sums.total numba n=1000 {words}"
    assert shown[1] == f"  {commit}  1970-01-06  change 5"
    assert shown[2] == "LLVM instructions: 1,000 at 00000004, 2,000 behind it"
    assert shown[3].startswith("counted at 5 of 16 commits and at ffffffff, once each")
    assert shown[-1] == f"Next: git show {commit}"


@pytest.mark.parametrize("place", range(16))
def test_every_place_is_found_by_halves(run: Run, place: int) -> None:
    counts = ScriptedCounts((1000,) * place + (2000,) * (16 - place))

    assert subjects(run(counts, "--json")) == [f"change {place}"]
    assert len(counts.asked) <= 2 + 4


def test_less_work_is_found_too(run: Run) -> None:
    found = run(ScriptedCounts((1000,) * 3 + (500,) * 5), "--json")

    assert subjects(found) == ["change 3"]
    assert json.loads(found.stdout)["counted"]["line"] is None


def test_a_small_change_on_the_way_is_no_answer(run: Run) -> None:
    counts = ScriptedCounts((1000, 1030, 1030, 1030, 1030, 1030, 2000, 2000))

    shown = run(counts, "--json")
    assert subjects(shown) == ["change 6"]
    assert any("it changed before, too" in one for one in json.loads(shown.stdout)["next"])


def test_what_cannot_be_counted_is_skipped_and_the_answer_may_be_a_range(run: Run) -> None:
    counts = ScriptedCounts(
        (1000, 1000, 1000, 1000, 2000, 2000, 2000), missing={3: "wrong: y differs"},
        broken=frozenset([2]),
    )  # fmt: skip

    shown = run(counts, code=1).stdout

    assert "since one of 3 commits, 00000002 to 00000004" in shown
    assert "change 2  (not counted)" in shown
    assert "skipped 00000003: wrong: y differs" in shown
    assert "skipped 00000002: it cannot be installed: the compiler is missing\n" in shown
    assert "Next: git log -p 00000001..00000004" in shown


def test_ends_that_do_the_same_work_have_no_answer(run: Run) -> None:
    counts = ScriptedCounts((1000, 2000, 1005))

    shown = run(counts, code=1).stdout
    assert shown.splitlines() == [
        "ffffffff and 00000002 differ in no counted work:",
        "  sums.total numba n=1000: the same counts",
    ]
    assert json.loads(run(counts, "--json", code=1).stdout)["found"] is False


def test_an_end_without_counts_is_an_error(run: Run) -> None:
    result = run(ScriptedCounts(missing={-1: "wrong: y differs"}), code=2)

    assert "no case has counts at both ends, so that none compare" in result.stderr
    assert "ffffffff: wrong: y differs" in result.stderr


def test_what_is_never_counted_is_refused_before_anything_is_installed(run: Run) -> None:
    result = run(ScriptedCounts(), "-a", "implementation=numpy,threaded", code=2)

    assert "these cases run on numba, numpy" in result.stderr


def test_the_time_that_is_over_leaves_a_range(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpubench.cli.count_since.monotonic", count(step=3600).__next__)

    content = json.loads(run(ScriptedCounts(), "--json", code=1).stdout)

    assert len(content["commits"]) == 16
    assert any("more --time" in one for one in content["next"])
