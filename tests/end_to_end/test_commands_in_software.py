"""Commands on one and on two devices in software: all work, and none shows a time of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asv_project import HERE, Project

pytestmark = pytest.mark.ci

SUITE = "suites/pair.yaml"


@pytest.fixture(params=[pytest.param(1, marks=pytest.mark.thorough), 2])
def devices(request: pytest.FixtureRequest, cuda_project: Project) -> list[str]:
    """Names of the devices; the project sees them."""
    count: int = request.param
    cuda_project.environment.update(GPUBENCH_SOFTCUDA="1", SOFTCUDA_DEVICES=str(count))
    return [f"cuda:{ordinal}" for ordinal in range(count)]


def test_commands_see_each_device_and_show_no_time(
    cuda_project: Project, devices: list[str]
) -> None:
    def said(*command: str) -> str:
        return cuda_project.run("gpubench", *command).stdout

    def listed(command: str) -> Any:
        """JSON on standard output; on standard error it may say that the machine is busy."""
        quiet = f"gpubench {command} {SUITE} --json 2>/dev/null"
        return json.loads(cuda_project.run("sh", "-c", quiet).stdout)

    shown = said("devices")
    assert [name for name in ("cuda:0", "cuda:1", "cuda:2") if name in shown] == devices
    cases = listed("plan")
    assert [case["device"] for case in cases] == ["cpu", *devices]
    verified = listed("verify")["cases"]
    assert [case["status"] for case in verified] == ["right"] * (1 + len(devices))
    timed = listed("time")["cases"]
    assert [case["status"] for case in timed] == ["ok", *["verified"] * len(devices)]
    assert [case["seconds"] for case in timed[1:]] == [None] * len(devices)


def test_a_device_that_is_not_there_is_named(cuda_project: Project, devices: list[str]) -> None:
    beyond = f"cuda:{len(devices)}"
    command = ("gpubench", "verify", SUITE, "-a", f"device={beyond}")
    said = cuda_project.run(*command, code=None).stdout
    assert beyond in said
    assert "this machine has" in said


def test_choose_never_recommends_what_has_no_time(
    cuda_project: Project, devices: list[str]
) -> None:
    cuda_project.asv("run", *HERE, "--bench", "pair")
    chosen = cuda_project.run("gpubench", "choose").stdout
    assert "numpy" in chosen
    assert all(device not in chosen.partition("no time")[0] for device in devices)
