"""The recorded costs of test files, by which `make quick` is chosen."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[2]
sys.path.insert(0, str(CHECKOUT))
from scripts import costs_of_tests as costs  # noqa: E402


def test_files_on_record_are_there() -> None:
    recorded = costs.read_costs()

    assert len(recorded) > 100
    assert [file for file in recorded if not (CHECKOUT / file).is_file()] == []


def test_a_session_replaces_the_lines_of_its_files_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(costs, "COSTS", tmp_path / "costs.txt")
    costs.write_costs({"tests/b.py": 3.0, "tests/a.py": 0.25})
    recorder = costs.Recorder()
    recorder.seconds["tests/b.py"] = 1.0

    recorder.pytest_sessionfinish()

    assert (tmp_path / "costs.txt").read_text() == "0.2 tests/a.py\n1.0 tests/b.py\n"


@pytest.mark.parametrize(("mark", "seconds"), [(None, 2.0), ("slow", 0.0)])
def test_a_test_that_is_marked_slow_adds_nothing_to_its_file(
    mark: str | None, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([1.0, 3.0])
    monkeypatch.setattr(costs, "processor_seconds", lambda: next(clock))
    item: Any = SimpleNamespace(
        nodeid="tests/a.py::test", get_closest_marker=lambda name: name if name == mark else None
    )
    recorder = costs.Recorder()

    run = recorder.pytest_runtest_protocol(item)
    next(run)
    with pytest.raises(StopIteration):
        run.send(None)

    assert recorder.seconds == {"tests/a.py": seconds}
