"""The workflow's own commands, in order, on a shallow and detached pull request of a fork."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from asv_project import Project, build_distributions, isolated_environment
from workflow_steps import read_workflow, steps_of

from gpubench.report.pull_request import MARKER

pytestmark = [pytest.mark.thorough, pytest.mark.end_to_end]

SLOWER = (
    "        y[i] += alpha * x[i]\n\n\n@cuda.jit",
    "        for repetition in range(60):\n"
    "            y[i] += alpha * x[i]\n"
    "            if repetition < 59:\n"
    "                y[i] -= alpha * x[i]\n\n\n@cuda.jit",
)
MORE_WORK = (
    "    if i < y.size:\n        y[i] += alpha * x[i]\n",
    "    for j in range(i, y.size, cuda.gridsize(1)):\n        y[j] += alpha * x[j]\n",
)


def test_a_pull_request_of_a_fork_that_is_slower_and_does_more_work(tmp_path: Path) -> None:
    wheel = build_distributions(tmp_path / "dist")["wheel"]
    home = tmp_path / "home"
    home.mkdir()
    environment = isolated_environment(home)
    del environment["CUDA_VISIBLE_DEVICES"]  # which hides the device in software too
    links = " ".join([str(wheel.parent), *environment.get("PIP_FIND_LINKS", "").split()])
    python = tmp_path / "python"
    path = os.pathsep.join([str(python / "bin"), environment["PATH"].partition(os.pathsep)[2]])
    environment |= {"PIP_FIND_LINKS": links, "PATH": path}
    at_home = Project(home, environment)
    at_home.run(sys.executable, "-m", "venv", python)
    at_home.run("python", "-m", "pip", "install", "--quiet", "gpubench-suite[cuda]")

    work = Project(tmp_path / "work", environment)
    at_home.git("init", "--quiet", "--bare", "--initial-branch=main", str(tmp_path / "origin"))
    at_home.git("clone", "--quiet", str(tmp_path / "origin"), str(work.path))
    work.run("gpubench", "init", "--ci", "github", "--project", "work")
    (module,) = (work.path / "work").glob("saxpy*.py")
    work.git("add", ".")
    work.git("commit", "--quiet", "--message", "Benchmarks")
    work.git("push", "--quiet", "origin", "HEAD:main")

    fork = Project(tmp_path / "fork", environment)
    at_home.git("clone", "--quiet", str(tmp_path / "origin"), str(fork.path))
    for before, after in (SLOWER, MORE_WORK):
        fork.edit(str(module.relative_to(work.path)), before, after)
    fork.git("switch", "--quiet", "--create", "change")
    fork.git("commit", "--quiet", "--all", "--message", "Change both kernels")
    # What GitHub does as the pull request is opened.
    work.git("fetch", "--quiet", str(fork.path), "change")
    work.git("merge", "--quiet", "--no-ff", "--message", "Merge change into main", "FETCH_HEAD")
    work.git("push", "--quiet", "origin", "HEAD:refs/pull/1/merge")

    checkout = Project(tmp_path / "checkout", environment)
    checkout.path.mkdir()
    checkout.git("init", "--quiet")
    checkout.git("remote", "add", "origin", f"file://{tmp_path / 'origin'}")
    merge = "refs/remotes/pull/1/merge"
    checkout.git(
        "fetch", "--quiet", "--depth=2", "--no-tags", "origin", f"+refs/pull/1/merge:{merge}"
    )
    checkout.git("checkout", "--quiet", "--force", merge)

    workflow = read_workflow(checkout.path / ".github/workflows/gpubench.yml")
    summary = tmp_path / "summary.md"
    outputs: dict[str, str] = {}
    codes: dict[str, int] = {}
    for written in steps_of(workflow, "pull-request"):
        # Beside other work a pair of processes takes a minute, and ten minutes decide nothing.
        step = replace(written, variables={**written.variables, "TIME": "30m"})
        done = step.run(checkout.path, {**environment, "GITHUB_STEP_SUMMARY": str(summary)})
        codes[step.name], outputs[step.name] = done.returncode, done.stdout

    assert codes == {
        "Install": 0,
        "Verify every kernel, CUDA in software": 0,
        "Count what CUDA kernels do, before and after": 1,
        "Measure both commits in turn": 1,
        "Write the comment": 0,
    }, outputs
    comment = summary.read_text()
    assert comment.startswith(MARKER)
    assert "▼ slower" in comment
    assert "▼ grew" in comment
    assert "PTX instructions" in comment
    assert "<summary>gpubench verify</summary>" in comment
