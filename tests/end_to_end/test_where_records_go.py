"""The record lies beside the result file however asv is called, and nowhere where there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from asv_project import Project

pytestmark = pytest.mark.ci
# tests/measure/test_asv_settings.py has each rule in asv's process, and test_asv_commands.py reads
# the record of a history.

INCREMENT = "suites.increment__numpy.time_kernel"
ONLY = ("--quick", "--bench", "increment__numpy")
NEWEST = "main^!"


def test_a_dry_run_leaves_no_record(project: Project, tmp_path: Path) -> None:
    copy = project.copy(tmp_path / "toolkit")
    copy.asv("run", "--dry-run", *ONLY, NEWEST)
    assert not copy.has_result("mended")
    assert not copy.has_record("mended")


def test_another_configuration_has_its_record_in_its_own_results(
    project: Project, tmp_path: Path
) -> None:
    copy = project.copy(tmp_path / "toolkit")
    text = (copy.path / "asv.conf.json").read_text()
    (copy.path / "other.json").write_text(text.replace(".asv/results", ".asv/others"))
    copy.asv("--config", "other.json", "run", *ONLY, NEWEST)
    kept = [path.name for path in sorted((copy.path / ".asv/others").glob("*/????????-*"))]
    assert [name.partition(".")[2].split(".", 1)[1] for name in kept] == ["gpubench.jsonl", "json"]
    assert not copy.has_record("mended")


def test_an_existing_python_keeps_its_record_under_the_commit_that_is_set(
    project: Project, tmp_path: Path
) -> None:
    copy = project.copy(tmp_path / "toolkit")
    existing = ("--environment", f"existing:{sys.executable}", "--launch-method", "spawn")
    here = str(copy.path)
    copy.asv("run", *existing, *ONLY, ASV_PYTHONPATH=here)
    assert not copy.has_record("mended")
    copy.asv("run", *existing, *ONLY, "--set-commit-hash", "mended", ASV_PYTHONPATH=here)
    assert copy.has_result("mended")
    assert {record.status for record in copy.records("mended")} == {"started", "ok"}


def test_both_launch_methods_keep_the_same_record_with_the_median_of_each_round(
    project: Project, tmp_path: Path
) -> None:
    kept = {}
    repeated = ("-a", "repeat=5", "-a", "rounds=2")
    for method in ("spawn", "forkserver"):
        copy = project.copy(tmp_path / method)
        copy.asv("run", *repeated, *ONLY[1:], "--launch-method", method, NEWEST)
        records = copy.records("mended")
        kept[method] = [(r.benchmark, r.case, r.status, r.compiled) for r in records]
        rounds = copy.rounds("mended")
        assert {benchmark for benchmark, _ in rounds} == {INCREMENT}
        for case, lines in rounds.items():
            assert [len(medians) for medians in lines] == [5, 5]
            seconds = copy.times("mended")[case]
            assert seconds is not None
            assert min(map(min, lines)) <= seconds <= max(map(max, lines))
    assert kept["spawn"] == kept["forkserver"]


def test_without_the_plugin_nothing_is_kept_and_asv_s_user_is_told(
    project: Project, tmp_path: Path
) -> None:
    copy = project.copy(tmp_path / "toolkit")
    copy.edit("asv.conf.json", '"plugins": [".gpubench.asv_plugin"],', "")
    said = copy.asv("run", "--show-stderr", *ONLY, NEWEST)
    assert copy.has_result("mended")
    assert not copy.has_record("mended")
    assert said.count('add this line to asv.conf.json: "plugins": [".gpubench.asv_plugin"]') == 1


def test_continuous_keeps_a_record_of_both_commits(project: Project, tmp_path: Path) -> None:
    copy = project.copy(tmp_path / "toolkit")
    copy.asv("continuous", *ONLY, "good", "mended", code=None)
    assert copy.has_record("good") and copy.has_record("mended")


def test_attributes_on_the_command_line_reach_our_batches(project: Project, tmp_path: Path) -> None:
    copy = project.copy(tmp_path / "toolkit")
    runs = {}
    for seconds in ("0.0001", "0.01"):
        copy.asv("run", "-a", f"sample_time={seconds}", *ONLY, NEWEST)
        runs[seconds] = copy.records("mended")[-1].runs_per_sample or 0
    assert runs["0.01"] > 5 * runs["0.0001"] > 0
