"""``asv publish`` writes the report into asv's site."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from stored_asv_project import PAIR, write_benchmarks, write_format_2

pytestmark = pytest.mark.end_to_end

CONFIGURATION = {
    "version": 1,
    "project": "sums",
    "repo": ".",
    "branches": ["main"],
    "environment_type": "virtualenv",
    "results_dir": ".asv/results",
    "html_dir": ".asv/html",
    "plugins": [".gpubench.asv_plugin"],
}
SUITE = f"""\
version: 1
suite: sums
pairs:
  - {{name: norm, baseline: {PAIR.baseline}, candidate: {PAIR.candidate}}}
"""


def run(folder: Path, *command: str) -> str:
    who = {"NAME": "A Tester", "EMAIL": "tester@example.org"}
    person = {f"GIT_{r}_{key}": v for r in ("AUTHOR", "COMMITTER") for key, v in who.items()}
    isolated = {"GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(folder), **person}
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **isolated}, text=True, timeout=120,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "asv.conf.json").write_text(json.dumps(CONFIGURATION))
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "sums.yaml").write_text(SUITE)
    run(tmp_path, "git", "init", "--quiet", "--initial-branch=main", ".")
    run(tmp_path, "git", "add", "asv.conf.json", "suites")
    run(tmp_path, "git", "commit", "--quiet", "-m", "Start")
    results = tmp_path / ".asv" / "results"
    write_benchmarks(results)
    values: list[float | None] = [8.0, 8.0, 8.0, 8.0]
    write_format_2(results, 1, {PAIR.baseline: values, PAIR.candidate: [2.0] * 8})
    stored = next(results.glob("box/*-virtualenv-py3.11.json"))
    commit = run(tmp_path, "git", "rev-parse", "HEAD").strip()
    content = json.loads(stored.read_text())
    stored.unlink()
    (stored.parent / f"{commit[:8]}-virtualenv-py3.11.json").write_text(
        json.dumps({**content, "commit_hash": commit})
    )
    return tmp_path


def test_the_report_stands_in_asv_s_site_and_asv_says_where(project: Path) -> None:
    said = run(project, sys.executable, "-m", "asv", "publish", "--no-pull")

    index = project / ".asv" / "html" / "gpubench" / "index.html"
    assert f"gpubench: the report is {index.resolve()}" in said
    assert "kernel-sums.norm.html" in index.read_text(encoding="utf-8")
    assert (project / ".asv" / "html" / "index.html").exists()


@pytest.mark.ci  # tests/report/test_written_again.py names a template that fails
def test_a_report_that_fails_leaves_asv_s_site(project: Path) -> None:
    (project / "reports").mkdir()
    (project / "reports" / "overview.html").write_text("{% if %}")

    said = run(project, sys.executable, "-m", "asv", "publish", "--no-pull")

    assert "gpubench: " in said
    assert "mend or remove that template" in said
    assert (project / ".asv" / "html" / "info.json").exists()
