"""`gpubench calibrate`, by runs whose times a script gives."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from asv.results import iter_results
from click.testing import CliRunner, Result
from result_files import CommitFiles

from gpubench.cli import calibrating, main
from gpubench.results import CaseName, Row
from gpubench.results.calibration import calibrate_kinds

SERIAL = Row(
    CaseName("controls", "add", "numba_serial", "kernel", "n=1000"),
    "ok",
    seconds=2e-4,
    bytes=100_000,
    device="cpu",
    pairs=5,
)
PARALLEL = replace(
    SERIAL,
    name=replace(SERIAL.name, implementation="numba_parallel"),
    pairs=0,
    conditions={"threads": 2},
)
ONE, SEVERAL = "one thread, up to 128 KiB", "several threads, up to 128 KiB"


def runs(count: int) -> list[list[Row]]:
    """Runs that scatter by 1 % on one thread and by 20 % on several."""
    random = np.random.default_rng(7)
    return [
        [
            replace(row, seconds=float(2e-4 * math.exp(random.normal(0, scatter))))
            for row, scatter in ((SERIAL, 0.01), (PARALLEL, 0.2))
        ]
        for _ in range(count)
    ]


def test_the_scatter_of_each_kind_is_that_of_its_control_kernels() -> None:
    kinds = calibrate_kinds(runs(400))
    assert [*kinds] == [ONE, SEVERAL]
    assert kinds["one thread, up to 128 KiB"].scatter == pytest.approx(0.01, rel=0.1)
    assert kinds["several threads, up to 128 KiB"].scatter == pytest.approx(0.2, rel=0.1)
    assert kinds["one thread, up to 128 KiB"].runs == 400


def test_what_other_work_disturbed_does_not_count() -> None:
    disturbed = [[replace(row, seconds=1.0, disturbed=0.9) for row in run] for run in runs(3)]
    assert calibrate_kinds(disturbed) == {}
    assert calibrate_kinds([*runs(5), *disturbed]) == calibrate_kinds(runs(5))


def test_one_run_tells_nothing() -> None:
    assert calibrate_kinds(runs(1)) == {}


def calibrate(
    monkeypatch: pytest.MonkeyPatch, measured: Sequence[list[Row]], *arguments: str, stops: bool
) -> Result:
    def scripted(end: float) -> Iterator[list[Row]]:
        yield from measured
        if stops:
            raise KeyboardInterrupt

    monkeypatch.setattr(calibrating, "_runs", scripted)
    return CliRunner().invoke(main, ["calibrate", *arguments])


def test_what_is_found_is_kept_beside_the_results_and_asv_does_not_stumble_over_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gpubench.asv_config.machine_name", lambda: "runner")
    CommitFiles(tmp_path, "a" * 40, 86_400).time("suites.add__numpy.time_kernel", "", 1.0).write()

    done = calibrate(monkeypatch, runs(9), "--results", str(tmp_path), stops=False)

    assert done.exit_code == 0, done.output
    content = json.loads((tmp_path / "runner/calibration.gpubench").read_text())
    assert content["format"] == 1
    assert {kind: one["runs"] for kind, one in content["kinds"].items()} == {ONE: 9, SEVERAL: 9}
    assert {"date", "versions"} < content.keys()
    with caplog.at_level(logging.WARNING):
        assert len(list(iter_results(str(tmp_path)))) == 1
    assert not caplog.records


def test_ctrl_c_keeps_the_runs_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = calibrate(monkeypatch, runs(3), "--results", str(tmp_path), stops=True)
    assert done.exit_code == 130
    (path,) = tmp_path.glob("*/calibration.gpubench")
    assert json.loads(path.read_text())["kinds"][ONE]["runs"] == 3


def test_too_few_runs_keep_nothing_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = calibrate(monkeypatch, runs(1), "--results", str(tmp_path), stops=True)
    assert done.exit_code == 2
    assert "after 1 run of the control kernels nothing is known" in done.output
    assert not list(tmp_path.iterdir())


def test_control_kernels_are_measured_in_a_process_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = next(calibrating._runs(0.0))
    assert {row.status for row in rows} == {"ok"}
    assert {row.name.implementation for row in rows} == {"numpy", "numba_serial", "numba_parallel"}
