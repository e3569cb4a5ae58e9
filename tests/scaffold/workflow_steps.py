"""Shell commands of written workflows, taken out of their YAML and run as a runner runs them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


def read_workflow(path: Path) -> dict[str, Any]:
    """Return a workflow; YAML reads the key ``on`` as true."""
    content: dict[Any, Any] = yaml.safe_load(path.read_text())
    return {"on" if key is True else key: value for key, value in content.items()}


@dataclass(frozen=True)
class Step:
    """A step of a job of GitHub's that runs commands."""

    name: str
    script: str
    condition: str
    variables: Mapping[str, str]

    def run(self, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run it as GitHub does for `shell: bash`."""
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", self.script],
            cwd=folder,
            env={**environment, **self.variables},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=3600,
        )


def steps_of(workflow: Mapping[str, Any], job: str) -> list[Step]:
    """Return the steps of a job that run commands, in their order."""
    described = workflow["jobs"][job]
    common = {**workflow.get("env", {}), **described.get("env", {})}
    return [
        Step(step["name"], step["run"], step.get("if", ""), {**common, **step.get("env", {})})
        for step in described["steps"]
        if "run" in step
    ]
