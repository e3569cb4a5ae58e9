"""``-a``, ``--where``, ``--preset`` and ``--json``: the same in every command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from full_kernel import write_full_kernel

from gpubench import asv_plugin
from gpubench.cli import main
from gpubench.cli.planning import chosen_cases, planned
from gpubench.names import verify_command
from gpubench.record import RoundsRecord

CHECKOUT = Path(__file__).parents[2]
NOW = "2026-11-26T10:00:00+00:00"

LEFT_OUT = {
    "-a": {
        "init": "writes files",
        "add": "writes a suite",
        "schema": "reads no case",
        "profile": "takes one case by its name",
        "serve": "shows the pages of all results",
        "acknowledge": "takes names of benchmarks, with *",
        "query": "takes SQL",
        "devices": "reads no case",
        "grid": "reads no case",
        "fleet run": "asks asv for whole kernels",
        "fleet worker": "measures what a run asks for",
        "fleet status": "reads no case",
    },
}
LEFT_OUT["--where"] = LEFT_OUT["-a"]
LEFT_OUT["--preset"] = {
    **{name: why for name, why in LEFT_OUT["-a"].items() if name not in ("profile", "fleet run")},
    "report": "results know no preset",
    "choose": "results know no preset",
    "export": "results know no preset",
}
LEFT_OUT["--json"] = {
    "init": "writes files",
    "add": "writes a suite",
    "schema": "prints JSON always",
    "profile": "prints what the profiler does",
    "serve": "serves pages",
    "acknowledge": "writes a file",
    "export": "has --format",
    "fleet run": "measures for hours; results are files",
    "fleet worker": "runs until it is ended",
}
"""Why a command lacks an option that the others have."""


def commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


@pytest.mark.parametrize("option", LEFT_OUT)
def test_every_command_has_the_option_or_a_reason(option: str) -> None:
    has = {
        name: {text for each in command.params for text in each.opts}
        for name, command in commands(main)
    }
    assert {name for name in has if option not in has[name]} == LEFT_OUT[option].keys()


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_full_kernel(tmp_path / ".asv/results")
    return tmp_path


def test_a_choice_is_among_the_cases_that_are_kept(measured: Path) -> None:
    assert run("choose").stdout.startswith("At the largest size numba_cuda is the fastest.")
    only = run("choose", "scale", "-a", "implementation=numba,numpy", "--where", "n <= 2**16")
    assert "numba_cuda" not in only.stdout
    assert "16,777,216" not in only.stdout.replace("\N{NARROW NO-BREAK SPACE}", ",")


@pytest.mark.slow
def test_a_report_has_the_cases_that_are_kept_and_their_baseline_and_says_so(
    measured: Path,
) -> None:
    def report(*options: str) -> tuple[str, list[dict[str, Any]]]:
        page = Path(run("report", "scale", *options).stdout.strip())
        return page.read_text(), json.loads(page.with_name("cases.json").read_text())

    page, cases = report("-a", "implementation=numba", "--where", "n == 4096")
    assert "Only the cases of <code>-a implementation=numba --where &#39;n == 4096&#39;" in page
    assert {case["implementation"] for case in cases} == {"numpy", "numba"}
    assert {case["case"] for case in cases} == {"n=4096"}
    assert [case["speedup"] for case in cases if case["implementation"] == "numba"] != [None]

    page, cases = report()  # which makes the pages again
    assert "Only the cases of" not in page
    assert "numba_cuda" in {case["implementation"] for case in cases}


def test_the_json_of_a_report_has_the_cases_that_are_kept(measured: Path) -> None:
    shown = run("report", "scale", "--json", "-a", "implementation=numba").stdout
    assert "numba_cuda" not in shown
    assert '"numba"' in shown


@pytest.mark.parametrize("format_name", ["csv", "openmetrics"])
def test_an_export_has_the_cases_that_are_kept(measured: Path, format_name: str) -> None:
    exported = run("export", "--format", format_name, "-a", "implementation=numba").stdout
    assert "numba_cuda" not in exported
    assert "numba" in exported


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-a", "n=3"), "gpubench: no case has n=3; values are 4096, "),
        (("-a", "m=3"), "gpubench: no case has 'm'"),
        (("--where", "n =="), "gpubench: --where 'n ==': "),
        (("--where", "n < 0"), "gpubench: --where and -a together keep no case that has results"),
    ],
)
def test_what_keeps_no_case_is_told(measured: Path, options: tuple[str, str], message: str) -> None:
    assert run("choose", *options, code=2).stderr.startswith(message)


@pytest.mark.parametrize("kernel", ["vector_add", "matmul", "streaming::triad"])
def test_the_command_for_a_failed_case_names_that_case(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT)
    suite, _, name = kernel.rpartition("::")
    whole = [*planned([kernel], None, 0).cases()]
    for case in whole[:: max(len(whole) // 5, 1)]:
        words = shlex.split(
            verify_command(suite or name, name, case.implementation_name, case.identity)
        )
        assert words[:3] == ["gpubench", "verify", kernel]
        axes = tuple(words[4::2])
        found = chosen_cases([kernel], "smoke", None, axes, 0)  # as where there is no GPU
        names = [(one.implementation_name, one.identity) for one in found]
        assert (case.implementation_name, case.identity) in names
        assert len(names) <= 2  # another grid of the same block


@pytest.mark.parametrize(
    ("processes", "words"),
    [
        (1, "each case has one process: `gpubench compare` of such runs names suspects"),
        (2, "each case has 2 processes: `gpubench compare` of such runs finds a doubling in a"),
        (4, ""),
    ],
)
def test_asv_run_with_few_processes_ends_with_what_a_comparison_finds(
    processes: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    name = "suites.sums__total__numba.time_kernel"
    lines = [
        (Path("a.jsonl"), RoundsRecord(name, f"n={n}", NOW, (1.0, 1.1, 1.0)))
        for n in (8, 16)
        for _ in range(processes)
    ]
    monkeypatch.setattr(asv_plugin, "_lines_of_run", lambda field: lines)
    monkeypatch.setattr(asv_plugin.log, "info", told.append)
    asv_plugin.say_what_can_be_found()
    assert words in "".join(told)
    assert bool(told) is (processes < 4)
