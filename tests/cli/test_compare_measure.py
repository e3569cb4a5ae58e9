"""`gpubench compare --measure` as a person and a script see it, by processes of a script."""

# ruff: noqa: RUF001 (the command writes multiplication signs and en dashes)

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from result_files import CommitFiles, launch
from scripted_bench import KERNEL, OTHER, PLAIN, ScriptedBench, enter_project, scripted_side

from gpubench.cli import main
from gpubench.measure.installing import CommitSide
from gpubench.record import RunRecord


@dataclass
class ScriptedCommits(ScriptedBench):
    """Two commits, the new one slower or faster by a factor."""

    factors: Mapping[str, float] = field(default_factory=lambda: {KERNEL: 2.0})
    """Of the new side's times."""
    outcomes: Mapping[tuple[int, str], str] = field(default_factory=dict)
    """Status of what has no time, by side and benchmark."""
    versions: tuple[Mapping[str, str | None], Mapping[str, str | None]] = ({}, {})
    """Of benchmarks at each side; ``None`` for one that a side does not have."""
    facts: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {})
    sides: list[CommitSide] = field(default_factory=list)

    def make_sides(self) -> None:
        for number, digit in enumerate("ab"):
            each = {name: self.versions[number].get(name, "v1") for name in (PLAIN, KERNEL, OTHER)}
            has = ((name, version) for name, version in each.items() if version is not None)
            side = scripted_side(f"side-{digit}", digit * 40, has)
            side.run = RunRecord("2026-03-01T10:00:00+00:00", self.facts[number])
            self.sides.append(side)

    def why_without_time(self, side: int, benchmark: str) -> tuple[str, str] | None:
        status = self.outcomes.get((side, benchmark))
        return (status, f"it is {status}") if status else None

    def log_of(self, side: int, benchmark: str) -> float:
        factor = self.factors.get(benchmark, 1.0) if side else 1.0
        return math.log(factor) + self.random.normal(0, 0.005)


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Compare two scripted commits, and check the exit code."""
    enter_project(tmp_path, monkeypatch)

    def compare(commits: ScriptedCommits, *arguments: str, code: int = 0) -> Result:
        commits.make_sides()

        @contextmanager
        def scripted(*_: object) -> Iterator[ScriptedCommits]:
            yield commits

        monkeypatch.setattr("gpubench.measure.two_commits.two_commits", scripted)
        result = CliRunner().invoke(
            main, ["compare", "--measure", "aaaa", "bbbb", *arguments], env={"COLUMNS": "120"}
        )
        assert result.exit_code == code, result.output
        return result

    return compare


def cases(result: Result) -> dict[str, dict[str, Any]]:
    (content,) = json.loads(result.stdout)
    return {case["benchmark"]: case for case in content["cases"]}


def test_what_is_slower_is_found_and_says_what_it_rests_on(run: Run) -> None:
    lines = [line.rstrip() for line in run(ScriptedCommits()).stdout.splitlines()]
    assert lines[0] == "bbbbbbbb against aaaaaaaa on runner, virtualenv-py3.11"
    words = lines[2].split()
    assert words[0] == "▼"
    assert {"s.k", "kernel", "n=8", "5"} < {*words}
    assert {"1.99×", "2.00×", "2.01×"} & {*words}
    assert "In turn: 3 cases, 11 pairs of processes of both commits in" in "\n".join(lines)
    assert lines[-1] == "1 slower and 2 same"


def test_what_pairs_leave_unclear_stored_counts_decide(run: Run, tmp_path: Path) -> None:
    for commit, instructions in (("a", 10_000), ("b", 20_000)):
        files = CommitFiles(tmp_path / ".asv/results", commit * 40, 86_400)
        counted = launch(grid=1, block=1, lines={14: {"ir_instructions": instructions}},
                         ir_instructions=instructions)  # fmt: skip
        files.time(KERNEL, "n=8", 1.0).record(KERNEL, "n=8")
        files.counts(KERNEL, "n=8", counted, target="cpu", made_by="numba").write()

    # Ctrl-C ends it before times can decide.
    shown = run(ScriptedCommits(factors={}, stops_after=2), code=130).stdout

    words = "times unclear; counted: 2.00× the LLVM instructions (line 14)"
    assert f"s.k kernel n=8: {words}" in shown


def test_json_has_pairs_and_basis_of_every_case(run: Run) -> None:
    found = cases(run(ScriptedCommits(), "--json"))
    assert {name: case["verdict"] for name, case in found.items()} == {
        PLAIN: "same", KERNEL: "slower", OTHER: "same",
    }  # fmt: skip
    assert {case["compared"] for case in found.values()} == {"in turn"}
    assert [found[name]["pairs"] for name in (PLAIN, KERNEL, OTHER)] == [3, 5, 3]
    assert found[KERNEL]["old"]["median"] == pytest.approx(1e-3, rel=0.01)
    assert found[KERNEL]["new"]["median"] == pytest.approx(2e-3, rel=0.01)


def test_markdown_states_the_method_and_no_rule_of_stored_runs(run: Run) -> None:
    written = run(ScriptedCommits(), "--markdown").stdout
    assert "In turn: 3 cases" in written
    assert "unchanged cases scatter" not in written


@pytest.mark.parametrize(
    ("factor", "fail_on", "code"), [(2.0, "slower", 1), (1.0, "slower", 0), (2.0, "failed", 0)]
)
def test_the_exit_code_is_1_where_asked(run: Run, factor: float, fail_on: str, code: int) -> None:
    run(ScriptedCommits({KERNEL: factor}), "--fail-on", fail_on, code=code)


def test_a_side_that_is_wrong_or_fails_says_so(run: Run) -> None:
    commits = ScriptedCommits(outcomes={(1, KERNEL): "wrong", (0, OTHER): "timed_out"})
    found = cases(run(commits, "--json", "--fail-on", "failed", code=1))
    assert (found[KERNEL]["verdict"], found[KERNEL]["note"]) == ("failed", "it is wrong")
    assert found[OTHER]["verdict"] == "mended"
    assert "timed out before: it is timed_out" in found[OTHER]["note"]
    assert found[PLAIN]["verdict"] == "same"


def test_ctrl_c_shows_what_is_known_so_far(run: Run) -> None:
    result = run(ScriptedCommits(stops_after=3), "--all", code=130)
    assert "interrupted" in result.stderr
    assert "3 unclear" in result.stdout
    assert "2 cases had no turn before the time was over" in result.stdout


def test_when_the_time_is_over_what_is_unsure_is_unclear(run: Run) -> None:
    result = run(ScriptedCommits(), "--time", "0.000001s", "--json")
    assert {case["verdict"] for case in cases(result).values()} == {"unclear"}
    assert all("give more with --time" in case["note"] for case in cases(result).values())


def test_cases_of_one_side_or_of_two_versions_are_not_measured(run: Run) -> None:
    commits = ScriptedCommits(versions=({OTHER: "v0"}, {KERNEL: None}))
    (content,) = json.loads(run(commits, "--json").stdout)
    found = {case["benchmark"]: case["verdict"] for case in content["cases"]}
    assert found == {OTHER: "not comparable", PLAIN: "same"}
    assert (content["only_old"], content["only_new"]) == (1, 0)


def test_software_that_differs_between_the_environments_is_said(run: Run) -> None:
    commits = ScriptedCommits(facts=({"numpy": "2.4.5"}, {"numpy": "2.4.6"}))
    assert "2.4.5 → 2.4.6" in run(commits).stdout


def test_cases_are_chosen_as_for_gpubench_time(run: Run) -> None:
    chosen = run(ScriptedCommits(), "s::k", "-a", "implementation=kernel", "--json")
    assert [*cases(chosen)] == [KERNEL]


def test_a_value_that_no_suite_declares_is_refused_before_anything_is_installed(run: Run) -> None:
    commits = ScriptedCommits()
    said = run(commits, "-a", "n=8,16", code=2).stderr
    assert "no suite declares n=16, and asv measures what suites declare: add the value" in said
    assert "installing" not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--measure", "a", "b", "--machine", "x"), "leave --machine out"),
        (("--measure", "a", "b", "--time", "soon"), "give 90s, 3m or 1h"),
        (("--measure", "a", "b", "--time", "0"), "give 90s, 3m or 1h"),
        (("--measure", "a"), "Missing argument 'B'"),
        (("--measure", "a", "b"), "there is no asv.conf.json in"),
        (("--measure", "a", "b", "nothing"), "there is no suite, kernel or path 'nothing'"),
    ],
)
def test_what_cannot_be_done_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    enter_project(tmp_path, monkeypatch)
    result = CliRunner().invoke(main, ["compare", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert words in result.output


def test_the_command_that_decides_measures_the_same_cases(run: Run) -> None:
    chosen = "--where", "n > 1", "-a", "implementation=kernel"
    written = run(ScriptedCommits(stops_after=3), *chosen, "--markdown", code=130).stdout
    command = written.split("To decide what is unclear: `")[1].split("`")[0]
    assert command.startswith("gpubench compare --measure ")
    assert " s::k --where 'n > 1' -a implementation=kernel --time " in command
