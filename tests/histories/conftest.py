"""Histories share one environment of asv."""

from __future__ import annotations

from pathlib import Path

import pytest
from asv_project import isolated_environment
from history_project import History, start


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what is made once."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture
def history(tmp_path: Path, shared: Path) -> History:
    """An empty repository, on a machine that asv knows."""
    home = shared / "home"
    home.mkdir(exist_ok=True)
    made = start(tmp_path / "mini", isolated_environment(home), shared / "environments")
    if not (home / ".asv-machine.json").exists():
        made.asv("machine", "--yes")
    return made
