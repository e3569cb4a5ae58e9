"""The record where the disk is full, where something else stands in its place, and where an
exception says more than anybody reads."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest

from gpubench.edge.advise.checks import Prediction, keep, verifications
from gpubench.errors import GpubenchError, ResultsError
from gpubench.measure.recorder import Recorder
from gpubench.record import MAX_LINE, MAX_REASON, CaseRecord, parse_line, to_line

WHOLE = CaseRecord("suites.norm__numpy.time_kernel", "n=1", "ok", "2026-03-01T10:00:00+00:00")


class FullDisk(io.FileIO):
    def write(self, line: Any) -> int:
        return super().write(line[:10])


def test_a_line_that_the_disk_has_no_room_for_is_taken_back_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(tmp_path / "record.jsonl")
    recorder.write(WHOLE)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", lambda path, mode, **_: FullDisk(path, mode))
        with pytest.raises(GpubenchError, match=r"not on record: .* No space .*record\.jsonl"):
            recorder.write(WHOLE)
    recorder.write(WHOLE)

    assert recorder.path is not None
    assert [*map(parse_line, recorder.path.read_text().splitlines())] == [WHOLE, WHOLE]


def test_a_verification_that_the_disk_has_no_room_for_is_taken_back_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Prediction(
        *("norm", "norm", "numpy", "cpu", "", {"n": 64.0}, "kernel", "predicted"),
        *(1.0, 0.5, 2.0, 1.0, 1.0, 1.0, WHOLE.at),
    )
    path = tmp_path / "advice.jsonl"
    keep([one], path, tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", lambda path, mode, **_: FullDisk(path, mode))
        with pytest.raises(ResultsError, match=r"cannot be kept: .* No space left"):
            keep([one], path, tmp_path)
    keep([one], path, tmp_path)

    assert verifications(path, tmp_path) == {("norm", "norm"): [one, one]}


def test_after_half_a_line_the_next_one_stands_alone(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "record.jsonl")
    recorder.write(WHOLE)
    with (tmp_path / "record.jsonl").open("ab") as file:
        file.write(to_line(WHOLE).encode()[:50])  # a machine that lost its power
    recorder.write(WHOLE)

    assert recorder.lines() == [WHOLE, WHOLE]


def test_a_pipe_in_place_of_a_record_is_neither_read_nor_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    recorder = Recorder(tmp_path / "pipe")

    assert [*recorder.backwards("kind")] == []
    with pytest.raises(GpubenchError, match="pipe is no regular file; move it away"):
        recorder.write(WHOLE)


def test_lines_before_damage_are_still_found(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "record.jsonl")
    recorder.write(WHOLE)
    with (tmp_path / "record.jsonl").open("ab") as file:
        file.write(b'"kind": "case" \xff\xfe\n')

    assert [*recorder.backwards('"kind"')] == [WHOLE]


def test_of_a_long_reason_beginning_and_end_are_kept() -> None:
    reason = "begins" + "x" * 5_000_000 + "ends"
    long = CaseRecord(WHOLE.benchmark, WHOLE.case, "failed", WHOLE.at, reason=reason)

    kept = parse_line(to_line(long))

    assert isinstance(kept, CaseRecord) and kept.reason is not None
    assert kept.reason.startswith("begins") and kept.reason.endswith("ends")
    assert len(kept.reason) <= MAX_REASON
    assert f"{len(reason) - MAX_REASON + 80:,} characters" in kept.reason


def test_a_line_without_end_is_refused() -> None:
    with pytest.raises(GpubenchError, match=f"a line has {MAX_LINE:,} at most"):
        parse_line(b'{"format": 1, "x": "' + b"x" * MAX_LINE + b'"}')


@pytest.mark.parametrize(
    "line", ['{"format": 1, "kind": "case", "x": ' + "[" * 100_000, "[" * 100_000 + "]" * 100_000]
)
def test_deep_nesting_is_refused(line: str) -> None:
    with pytest.raises(GpubenchError, match="no line of a gpubench record"):
        parse_line(line)


def test_half_a_character_as_the_name_of_a_field_is_refused() -> None:
    with pytest.raises(GpubenchError, match="a field holds what gpubench does not write"):
        parse_line(b'{"format": 1, "kind": "case", "\\ud800": 1}')
