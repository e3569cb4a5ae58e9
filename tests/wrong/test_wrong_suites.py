"""Suites that would measure nothing, or something else than they say: ``gpubench check`` refuses
them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from expectations import FOLDER, REFUSED

from gpubench.cli import main


def test_every_suite_of_the_folder_is_tried() -> None:
    assert {path.stem for path in (FOLDER / "refused").glob("*.yaml")} == REFUSED.keys()


@pytest.mark.parametrize("suite", REFUSED)
def test_a_wrong_suite_is_refused_where_it_is_wrong(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copy(FOLDER / f"refused/{suite}.yaml", tmp_path))
    shutil.copy(FOLDER / "wrong_kernels.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUBENCH_PRESET", raising=False)
    done = CliRunner().invoke(main, ["check", path.name])
    assert done.exit_code == 2, done.output
    assert f"{path.name}:" in done.stderr
    assert REFUSED[suite] in done.stderr
