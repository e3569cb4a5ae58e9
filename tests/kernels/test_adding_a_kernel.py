"""The guide docs/adding-a-kernel.md, followed in a copy of the checkout."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
OF_DOCS = (Path(__file__).name, "test_kernels_page.py")
GUIDE = (CHECKOUT / "docs/adding-a-kernel.md").read_text()
BLOCK = re.compile(r"(?:^`([\w/.]+)`:\n\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def files() -> dict[str, str]:
    """Return what the guide has one write, by path."""
    return {path: text for path, _, text in BLOCK.findall(GUIDE) if path}


def commands() -> list[str]:
    """Return what it has one type, after the environment is in the shell."""
    lines = "".join(text for _, language, text in BLOCK.findall(GUIDE) if not language)
    return [line for line in lines.splitlines() if not line.startswith(". ")]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the checkout with the guide's files, and without the other suites, which take their
    time."""
    folder = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__", "html", *OF_DOCS)
    for name in ("gpubench", "reports", "tests/kernels"):
        shutil.copytree(CHECKOUT / name, folder / name, ignore=ignored)
    for name in ("scripts", "suites"):
        (folder / name).mkdir()
    for name in ("pyproject.toml", "conftest.py", "scripts/costs_of_tests.py", "tests/costs.txt"):
        shutil.copy(CHECKOUT / name, folder / name)
    for path, text in files().items():
        (folder / path).write_text(text)
    return folder


def run(command: str, folder: Path) -> str:
    program, *arguments = shlex.split(command)
    environment = os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-m", program, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_guide_writes_the_functions_and_the_suite() -> None:
    assert list(files()) == ["gpubench/kernels/sphere.py", "suites/sphere.yaml"]
    assert [shlex.split(line)[:2] for line in commands()] == [
        ["gpubench", "check"],
        ["gpubench", "plan"],
        ["gpubench", "time"],
        ["pytest", "tests/kernels"],
        ["GPUBENCH_PRESET=smoke", "asv"],
        ["gpubench", "report"],
    ]


def test_the_suite_is_free_of_faults_and_plans_three_implementations(copy: Path) -> None:
    check, plan = commands()[:2]
    assert "1 suite, 1 kernel" in run(check, copy)
    assert "numba_cuda" in run(plan, copy)


def test_the_kernel_is_measured_at_once(copy: Path) -> None:
    measured = run(commands()[2], copy)
    assert "numba_parallel" in measured
    assert "65536" in measured


@pytest.mark.ci
def test_the_tests_of_the_library_find_the_kernel(copy: Path) -> None:
    passed = run(f"{commands()[3]} -v -p no:cacheprovider", copy)
    assert re.search(r"\d\d+ passed", passed)
    for tested in ("on_the_cpu", "on_cuda", "compiles_for_cuda", "suites"):
        assert f"test_library_{tested}.py" in passed
