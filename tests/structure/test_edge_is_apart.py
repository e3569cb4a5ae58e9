"""What stands at the edge can be deleted, and the core does not notice.

Its folder is deleted in a copy of the checkout. What the copy runs is the copy's own code, though
the entry points of the distribution still name what was there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = ("gpubench", "softcuda", "suites", "reports", "docs", "tests", "scripts", "benchmarks")
NEEDED = (
    "conftest.py",
    "pyproject.toml",
    "asv.conf.json",
    "README.md",
    "CONTRIBUTING.md",
)
QUICK = ("tests/structure", "tests/suite", "tests/plan", "tests/work", "tests/analysis")
EDGES = sorted(path.name for path in (ROOT / "gpubench/edge").iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a copy of the checkout without its edge."""
    copy = tmp_path_factory.mktemp("core")
    ignored = shutil.ignore_patterns("__pycache__", "html", "build", "*.so")
    for name in COPIED:
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    for name in NEEDED:
        shutil.copyfile(ROOT / name, copy / name)
    shutil.rmtree(copy / "gpubench/edge")
    return copy


def run(core: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command: Sequence[str] = (sys.executable, "-m", *arguments)
    return subprocess.run(command, cwd=core, capture_output=True, text=True, check=False)


def test_there_is_an_edge() -> None:
    assert {"advise", "fleet", "systems"} <= {*EDGES}


def test_the_core_lists_its_own_commands_and_no_other(core: Path) -> None:
    done = run(core, "gpubench", "--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert "  compare " in done.stdout
    assert "  fleet " not in done.stdout
    assert "  advise " not in done.stdout


def test_the_core_checks_its_suites_and_names_backends_that_it_has(core: Path) -> None:
    done = run(core, "gpubench", "check")
    unknown = run(core, "gpubench", "fleet", "status")

    assert (done.returncode, done.stderr) == (0, "")
    assert "there is no command 'fleet'" in unknown.stderr


def test_the_report_has_every_page_but_that_of_the_edge(core: Path) -> None:
    code = "from gpubench.report.pages import all_pages; print(*(one.name for one in all_pages()))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=core, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["changes", "compare", "choose", "machines"]


@pytest.mark.thorough  # the three above import the core without its edge
def test_the_quick_tests_of_the_core_pass_without_the_edge(core: Path) -> None:
    leave_out = "not gpu and not slow and not systems and not thorough"
    whole = ("test_edge_is_apart.py", "test_how_it_works.py")  # what speaks of the edge too
    apart = (f"--ignore=tests/structure/{name}" for name in whole)
    done = run(core, "pytest", "-q", "-p", "no:cacheprovider", "-m", leave_out, *apart, *QUICK)

    assert done.returncode == 0, done.stdout[-4000:]
