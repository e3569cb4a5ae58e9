"""`gpubench since` as a person and a script see it, by processes of a script."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from scripted_bench import KERNEL, PLAIN, ScriptedBench, enter_project, scripted_side

from gpubench.cli import main
from gpubench.errors import GpubenchError
from gpubench.measure.bisecting import LineCommit
from gpubench.measure.direct import Job

GOOD = "f" * 40


@dataclass
class ScriptedHistory(ScriptedBench):
    """A line of commits behind a good one, at some of which the kernel becomes slower."""

    factors: Mapping[int, float] = field(default_factory=lambda: {5: 2.0})
    """By which the kernel becomes slower at a place of the line."""
    commits: int = 16
    scatter: float = 0.02
    broken: frozenset[int] = frozenset()
    """Places that cannot be installed."""
    wrong: frozenset[int] = frozenset()
    """Places at which the case is wrong."""
    missing: frozenset[int] = frozenset()
    """Places that do not have the case."""
    merges: frozenset[int] = frozenset()
    at: int = -1
    installed: list[int] = field(default_factory=list)
    closed: bool = False

    def __post_init__(self) -> None:
        self.at = self.commits - 1
        ends = (("good", GOOD), ("bad", self.line[-1].hash))
        has = [(PLAIN, "v"), (KERNEL, "v")]
        self.sides = [scripted_side(label, commit, has) for label, commit in ends]

    @property
    def line(self) -> list[LineCommit]:
        return [
            LineCommit(
                f"{place:08x}" * 5, 86_400.0 * place, f"change {place}", 1 + (place in self.merges)
            )
            for place in range(self.commits)
        ]

    def put_in_place(self, side: int, label: str) -> None:
        self.at = int(label[:8], 16)
        self.installed.append(self.at)
        if self.at in self.broken:
            raise GpubenchError("it cannot be installed: the compiler is missing\nsecond line")

    def has_job(self, side: int, job: Job) -> bool:
        return self.at not in self.missing

    def why_without_time(self, side: int, benchmark: str) -> tuple[str, str] | None:
        return ("wrong", "y[0] differs") if side and self.at in self.wrong else None

    def log_of(self, side: int, benchmark: str) -> float:
        passed = [factor for place, factor in self.factors.items() if side and place <= self.at]
        factor = math.prod(passed) if benchmark == KERNEL else 1.0
        return math.log(factor) + self.scatter * self.random.standard_t(4)


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Search a scripted line of commits, and check the exit code."""
    enter_project(tmp_path, monkeypatch)

    def search(history: ScriptedHistory, *arguments: str, code: int = 0) -> Result:
        @contextmanager
        def installer(*_: object) -> Iterator[SimpleNamespace]:
            yield SimpleNamespace(find_commit=str, repository_path=".")

        @contextmanager
        def sides(*_: object) -> Iterator[ScriptedHistory]:
            try:
                yield history
            finally:
                history.closed = True

        monkeypatch.setattr("gpubench.measure.installing.installer_of", installer)
        monkeypatch.setattr("gpubench.measure.two_commits.sides_of", sides)
        monkeypatch.setattr("gpubench.measure.bisecting.read_line", lambda *_: history.line)
        command = ["since", "s::k", "--good", GOOD, "--bad", "b" * 40, *arguments]
        if "-a" not in arguments:
            command += ["-a", "implementation=kernel"]
        result = CliRunner().invoke(main, command, env={"COLUMNS": "120"})
        assert result.exit_code == code, result.output
        assert history.closed
        return result

    return search


def content(result: Result) -> dict[str, Any]:
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def subjects(found: dict[str, Any]) -> list[str]:
    return [commit["subject"] for commit in found["commits"]]


def test_the_commit_is_named_with_what_to_do_next(run: Run) -> None:
    lines = run(ScriptedHistory()).stdout.splitlines()
    assert lines[0].startswith("s.k kernel n=8 is ")
    assert "slower" in lines[0]
    assert " since commit 00000005, at " in lines[0]
    assert lines[1] == "  00000005  1970-01-06  change 5"
    assert "of 16 commits measured against ffffffff" in lines[2]
    assert lines[3:] == ["Next: git show 00000005"]  # no other case changed


def test_json_has_the_commit_its_probability_and_the_ratio(run: Run) -> None:
    found = content(run(ScriptedHistory(), "--json"))
    (commit,) = found["commits"]
    assert commit["subject"] == "change 5"
    assert commit["author_date"] == "1970-01-06"
    assert found["found"] is True
    assert found["probability"] >= 0.95
    assert found["ratio"]["low"] < found["ratio"]["value"] < found["ratio"]["high"] < 1
    assert found["ratio"]["value"] == pytest.approx(0.5, rel=0.05)
    assert found["pairs"] <= 15
    assert found["next"] == ["git show 00000005"]


@pytest.mark.parametrize("place", [0, 1, 14, 15])
def test_each_place_of_the_line_can_be_the_answer(run: Run, place: int) -> None:
    found = content(run(ScriptedHistory({place: 2.0}), "--json"))
    assert subjects(found) == [f"change {place}"]


def test_what_became_faster_is_found_too(run: Run) -> None:
    lines = run(ScriptedHistory({9: 0.5})).stdout.splitlines()
    assert "faster" in lines[0]
    assert "change 9" in lines[1]


def test_one_commit_between_the_ends_needs_no_search(run: Run) -> None:
    history = ScriptedHistory({0: 2.0}, commits=1)
    assert "since commit 00000000, at 100.0%" in run(history).stdout
    assert history.installed == []


def test_ends_that_do_not_differ_end_it_and_say_what_would_have_shown(run: Run) -> None:
    history = ScriptedHistory({})
    result = run(history, code=1)
    assert "ffffffff and 0000000f are not known to differ:" in result.stdout
    assert "s.k kernel n=8: same, " in result.stdout
    assert "would have shown" in result.stdout
    assert history.installed == []
    assert content(run(ScriptedHistory({}), "--json", code=1))["found"] is False


def test_commits_that_cannot_be_built_make_a_range(run: Run) -> None:
    history = ScriptedHistory({5: 2.0}, broken=frozenset({4, 5}))
    result = run(history, "--json")
    found = content(result)
    assert [commit["subject"] for commit in found["commits"]] == [
        "change 4",
        "change 5",
        "change 6",
    ]
    assert [commit["skipped"] is None for commit in found["commits"]] == [False, False, True]
    assert found["next"] == ["git log -p 00000003..00000006"]
    lines = run(ScriptedHistory({5: 2.0}, broken=frozenset({4, 5}))).stdout.splitlines()
    assert "since one of 3 commits, 00000004 to 00000006" in lines[0]
    assert lines[1].endswith("(not measured)")
    assert "skipped 00000005: it cannot be installed: the compiler is missing" in lines


@pytest.mark.parametrize("how", ["wrong", "missing"])
def test_a_commit_without_the_case_is_skipped(run: Run, how: str) -> None:
    history = ScriptedHistory({6: 2.0}, **{how: frozenset({6, 7})})  # type: ignore[arg-type]
    found = content(run(history, "--json"))
    assert [commit["subject"] for commit in found["commits"]] == [
        "change 6",
        "change 7",
        "change 8",
    ]
    words = {"wrong": "the case is wrong: y[0] differs", "missing": "it does not have the case"}
    assert words[how] in found["skipped"].values()


def test_ctrl_c_says_what_is_known_so_far(run: Run) -> None:
    result = run(ScriptedHistory(stops_after=13), code=130)
    assert "since one of " in result.stdout
    assert "# more --time" in result.stdout
    assert "not known to differ" in run(ScriptedHistory(stops_after=3), code=130).stdout


def test_when_the_time_is_over_the_answer_is_a_range(run: Run) -> None:
    result = run(ScriptedHistory(), "--time", "0.000001s", code=1)
    assert "not known to differ" in result.stdout
    assert "Give more --time" in result.stdout


def test_a_merge_is_looked_into_next(run: Run) -> None:
    lines = run(ScriptedHistory(merges=frozenset({5}))).stdout.splitlines()
    assert lines[-1].endswith("--bad 00000005^2  # the branch that it merged")


def test_a_second_change_is_said_with_its_command(run: Run) -> None:
    result = run(ScriptedHistory({5: 3.0, 12: 1.5}, scatter=0.005))
    assert "change 5" in result.stdout
    assert "--good 00000005 --bad 0000000f  # it changed again" in result.stdout


def test_the_surest_of_several_cases_is_searched(run: Run) -> None:
    result = run(ScriptedHistory(), "-a", "n=8")
    assert result.stdout.startswith("s.k kernel n=8 is ")


def test_no_kernel_is_refused() -> None:
    result = CliRunner().invoke(main, ["since", "--good", "a", "--bad", "b"])
    assert result.exit_code == 2
    assert "a suite or a kernel" in result.output
