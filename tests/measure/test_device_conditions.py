"""What goes on record about a device beside a time: its cache, its bandwidth, later warnings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import Recording, scale_with

from gpubench.backends.protocol import DeviceMemoryError
from gpubench.measure.observers.bandwidth import bandwidth
from gpubench.measure.observers.cache import fits_in_cache
from gpubench.measure.recorder import Recorder
from gpubench.names import Value
from gpubench.record import CaseRecord, RunRecord

RATES = {"copy_bytes_per_second": 4.0e12, "triad_bytes_per_second": 4.2e12}


class Device:
    """A session of which only the ceilings are asked; fails on the second time."""

    def __init__(self, *answers: dict[str, float] | Exception) -> None:
        self.answers: Iterator[dict[str, float] | Exception] = iter(answers)

    def ceilings(self) -> dict[str, float]:
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


def rates(copy: float, triad: float = 2.0) -> dict[str, float]:
    return {"copy_bytes_per_second": copy, "triad_bytes_per_second": triad}


def measured() -> Device:
    return Device(rates(4.0e12, 4.2e12))


def ceilings(session: object, recorder: Recorder, time: str = "kernel") -> dict[str, Value]:
    asked: Any = session
    return dict(bandwidth(asked, "cuda:0", time, recorder))


def told(device: str = "cuda:0") -> CaseRecord:
    return CaseRecord("suites.a.time_kernel", "n=1", "ok", "now", device=device, conditions=RATES)


def test_bandwidth_is_measured_once_and_then_taken_from_the_record(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "record.jsonl")
    recorder.write(RunRecord("now", {"run": 1}))
    assert ceilings(measured(), recorder) == RATES
    recorder.write(told())
    recorder.write(CaseRecord("suites.b.time_kernel", "n=1", "ok", "now", device="cuda:0"))
    assert ceilings(Device(), recorder) == RATES


@pytest.mark.parametrize("between", [RunRecord("now", {"run": 2}), None])
def test_another_run_or_another_device_measures_again(
    tmp_path: Path, between: RunRecord | None
) -> None:
    recorder = Recorder(tmp_path / "record.jsonl")
    recorder.write(told("cuda:0" if between else "cuda:1"))
    if between:
        recorder.write(between)
    device = Device(rates(1.0))
    assert ceilings(device, recorder)["copy_bytes_per_second"] == 1.0


def test_without_a_record_bandwidth_is_measured_once_in_a_process() -> None:
    class Asked(Device):
        """Of a kind of its own, which no other test has asked."""

    answers = [ceilings(Asked(rates(one)), Recorder(None)) for one in (1.0, 3.0)]
    assert [answer["copy_bytes_per_second"] for answer in answers] == [1.0, 1.0]


@pytest.mark.parametrize("time", ["launch", "transfer", "end_to_end", "compile"])
def test_times_that_no_bandwidth_limits_measure_none(time: str) -> None:
    assert ceilings(Device(), Recorder(None), time) == {}


def test_a_device_without_room_and_a_processor_tell_none() -> None:
    full = Device(DeviceMemoryError("out of memory"))
    assert ceilings(full, Recorder(None)) == {}
    on_the_cpu: Any = Device()
    assert bandwidth(on_the_cpu, "cpu", "kernel", Recorder(None)) == {}


def test_arrays_that_fit_in_l2_are_told() -> None:
    facts: dict[str, Value] = {"l2_bytes": 60_000_000}
    assert fits_in_cache("kernel", 48_000_000, facts) == (
        "fits in L2: measured in cache, 48 MB of 60 MB; `cold` shows the other",
    )
    assert fits_in_cache("kernel", 60_000_001, facts) == ()
    assert fits_in_cache("cold", 48_000_000, facts) == ()
    assert fits_in_cache("kernel", 48_000_000, {}) == ()


class Sampled:
    """A sampler as it is after a sample."""

    def __init__(self, *warnings: str, method: str | None = "host loop") -> None:
        self.warnings, self.method = warnings, method


def note(recording: Recording, sampler: Any) -> None:
    """Let the run put on record what its sampler says after a sample."""
    recording.run._sampler = sampler
    recording.run._note()


def test_a_warning_found_while_sampling_is_put_on_record_once(tmp_path: Path) -> None:
    recording = Recording(tmp_path, scale_with(tmp_path, "scale"))
    recording.run.prepare()
    first = recording.last
    for sampled in (Sampled(), Sampled("throttled: 9 MHz"), Sampled("throttled: 8 MHz")):
        later: Any = sampled
        note(recording, later)
    added = [line for line in recording.lines if line not in (first,)][-1]
    assert isinstance(added, CaseRecord)
    assert added.warnings == (*first.warnings, "throttled: 9 MHz")
    assert recording.last == added
    assert recording.lines.count(added) == 1


def test_another_way_of_sampling_is_put_on_record(tmp_path: Path) -> None:
    recording = Recording(tmp_path, scale_with(tmp_path, "scale"))
    recording.run.prepare()
    later: Any = Sampled(method="plain events")
    note(recording, later)
    assert recording.last.method == "plain events"
