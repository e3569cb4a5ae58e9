"""Workflows of continuous integration, for GitHub and for GitLab: written once, nothing replaced.

Their shell commands stand once, in the templates ``ci_*.sh.jinja``, for both.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Any, Literal

from jinja2 import Environment

from gpubench.distribution import DISTRIBUTION, find_installed
from gpubench.files import write_new
from gpubench.git import ask_git, named_repository
from gpubench.report.pull_request import MARKER
from gpubench.scaffold.project import Project
from gpubench.scaffold.project_name import ProjectError
from gpubench.scaffold.requirements import device_requirement, requirement
from gpubench.scaffold.writing import template_environment

Host = Literal["github", "gitlab"]

GITHUB = {
    Path(".github/workflows/gpubench.yml"): "github.yml.jinja",
    Path(".github/workflows/gpubench-comment.yml"): "github-comment.yml.jinja",
}
GITLAB_JOBS = Path(".gitlab/gpubench.yml")
GITLAB_PIPELINE = Path(".gitlab-ci.yml")
"""GitLab's own file, which most projects have already: it then has to include the jobs."""

INCLUDE = f"include:\n  - local: {GITLAB_JOBS.as_posix()}\n"

PRESET = "smoke"
"""The quick preset of suites that ``init`` and ``add`` write."""


def write_workflow(directory: Path, host: Host, project: Project) -> dict[Path, bool]:
    """Write the workflow of a project into the root of its repository; overwrite nothing.

    Returns its files, each with whether it was written. Raises ``ProjectError`` where that cannot
    be.
    """
    root = directory / project.repository
    files: dict[Path, bool] = {}
    for inside, text in _files(directory, host, project):
        path = root / inside
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_new(path, text.encode())
            files[path] = True
        except FileExistsError:
            files[path] = False
        except OSError as error:
            raise ProjectError(f"cannot write {error.filename!r}: {error.strerror}") from error
    return files


def workflow_steps(directory: Path, files: dict[Path, bool]) -> list[str]:
    """Return remarks on what stands in the way of a workflow, and how to go on."""
    steps = []
    for path, is_new in files.items():
        if is_new:
            continue
        if path.name == GITLAB_PIPELINE.name:
            if GITLAB_JOBS.as_posix() not in path.read_text(encoding="utf-8", errors="replace"):
                steps.append(
                    f"{path} was there and is kept: add under its `include:` the line "
                    f"`- local: {GITLAB_JOBS.as_posix()}`"
                )
        else:
            steps.append(
                f"{path} was there and is kept: remove or rename it, and run this again for a new "
                "one"
            )
    configuration = directory / "asv.conf.json"
    if configuration.is_file() and "softcuda" not in _uncommented(configuration):
        steps.append(
            "asv.conf.json installs no softcuda: without it the workflow counts no CUDA kernel. "
            'Add "numba-cuda": [] to its matrix, and to install_command '
            '"in-dir={env_dir} python -m pip install softcuda"'
        )
    return steps


def _files(directory: Path, host: Host, project: Project) -> Iterator[tuple[Path, str]]:
    """Yield paths below the root of the repository, and what belongs into them."""
    templates = GITHUB if host == "github" else {GITLAB_JOBS: "gitlab.yml.jinja"}
    environment = _workflow_templates()
    values: dict[str, Any] = {
        "distributions": released_requirements(),
        "marker": MARKER,
        "branch": default_branch(directory),
        "preset": PRESET if _has_preset(directory) else None,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "subdirectory": project.subdirectory,
        "prefix": f"{project.subdirectory}/" if project.subdirectory else "",
    }

    def script(template: str, width: int) -> str:
        """Return a script as the indented block of a YAML text, without its last end of line."""
        text = environment.get_template(template).render(values)
        return indent(text.rstrip(), " " * width)

    for path, template in templates.items():
        yield path, environment.get_template(template).render(values, script=script)
    if host == "gitlab":
        yield GITLAB_PIPELINE, INCLUDE


def _workflow_templates() -> Environment:
    environment = template_environment().overlay(
        variable_start_string="@{", variable_end_string="}@"
    )
    environment.filters["shell"] = shlex.quote
    return environment


def comment_script() -> str:
    """Return the shell commands that write the comment of a pull request."""
    return _workflow_templates().get_template("ci_comment.sh.jinja").render(marker=MARKER)


def released_requirements() -> list[str]:
    """Return what pip installs on another machine: the revision of a repository, else the version.

    CUDA's extra is in it, as kernels for CUDA are verified and counted in software.
    """
    installed = find_installed()
    name, _, source = requirement(installed).partition(" @ ")
    if not source.startswith("git+"):
        return [f"{DISTRIBUTION}[cuda]=={installed.version}"]
    device = device_requirement()
    return [f"{name}[cuda] @ {source}", *([device] if " @ git+" in device else [])]


def default_branch(directory: Path) -> str:
    """Return the branch that pull requests go to: the remote's, else the one that is checked out,
    else ``main``."""
    repository = named_repository(directory)
    for question in (
        ("symbolic-ref", "--short", "refs/remotes/origin/HEAD"),
        ("symbolic-ref", "--short", "HEAD"),
    ):
        if name := ask_git(repository, *question).decode(errors="replace").strip():
            return name.removeprefix("origin/")
    return "main"


def _has_preset(directory: Path) -> bool:
    """Return whether a suite has the quick preset; without any, naming it would be a fault."""
    suites = (directory / "suites").rglob("*.yaml")
    return any(
        re.search(rf"^\s+{PRESET}:", suite.read_text(encoding="utf-8", errors="replace"), re.M)
        for suite in suites
        if suite.is_file()
    )


def _uncommented(configuration: Path) -> str:
    """Return the lines of asv's configuration that are no comments."""
    lines = configuration.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("//"))
