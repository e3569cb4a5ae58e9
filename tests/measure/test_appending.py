"""A run that appends takes as many calls a sample as the stored samples have, as asv makes it."""

import json

import pytest

from gpubench.measure.appending import calls_in_sample
from gpubench.measure.asv_settings import AsvSettings

BENCHMARK = "suites.add__numpy.time_kernel"
COLUMNS = ["result", "params", "version", "stats_number"]


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """A run that appends to three calls a sample for ``n=1``, and to none for ``n=2``."""
    monkeypatch.setenv("ASV_ENV_NAME", "py")
    (tmp_path / "desk").mkdir()
    row = [[1.0, None], [["'n=1'", "'n=2'"]], "v1", [3, None]]
    content = {"result_columns": COLUMNS, "results": {BENCHMARK: row}, "version": 2}
    (tmp_path / "desk/aaaaaaaa-py.json").write_text(json.dumps(content))
    kept = {"results_dir": str(tmp_path), "machine": "desk", "commit": "a" * 40}
    return {"append_samples": True, "attributes": {"number": 2}, **kept}


@pytest.mark.parametrize(
    ("case", "version", "changed", "calls"),
    [
        ("n=1", "v1", {}, 3),
        ("n=1", "v1", {"attributes": {}}, 3),
        ("n=2", "v1", {}, 2),
        ("n=3", "v1", {}, 2),
        ("n=1", "v2", {}, 2),
        ("n=1", "v1", {"append_samples": False}, 2),
        ("n=1", "v1", {"commit": "b" * 40}, 2),
        ("n=1", "v1", {"results_dir": None, "attributes": {}}, 1),
    ],
)
def test_stored_samples_come_before_the_command_line(settings, case, version, changed, calls):
    asked = AsvSettings(**{**settings, **changed})
    assert calls_in_sample(asked, BENCHMARK, case, version) == calls


@pytest.mark.parametrize("damaged", ["", "[]", "{", '{"results": {}}', "[" * 100_000])
def test_a_damaged_result_file_is_left_to_asv(settings, tmp_path, damaged):
    (tmp_path / "desk/aaaaaaaa-py.json").write_text(damaged)
    assert calls_in_sample(AsvSettings(**settings), BENCHMARK, "n=1", "v1") == 2
