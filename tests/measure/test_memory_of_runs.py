"""How much memory a run holds, and what becomes of a case that may not hold so much."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import memory_kernels
import pytest
from builders import SCALE, Recording, case_of

from gpubench.asv_benchmarks import TimedBenchmark, benchmark_class
from gpubench.backends import registry
from gpubench.measure import memory, watcher
from gpubench.measure.asv_settings import AsvSettings
from gpubench.measure.direct import Job, bench, take_turn
from gpubench.measure.observers import memory as observer
from gpubench.measure.outcomes import Skipped
from gpubench.measure.verify_cases import Manner, Verifier
from gpubench.plan.case import Case
from gpubench.plan.expansion import expand
from gpubench.record import CaseRecord

resource = pytest.importorskip("resource", reason="Windows has no limits of this kind")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.slow,
]

MIB = 2**20
LIMIT = "memory_limit: 64 * 2**20\n"
EXCEEDED = "candidate exceeded its memory limit of 64 MiB: Unable to allocate 1.00 GiB"
LITTLE = 6 * MIB
"""What a run may hold beside: the interpreter's own, and whole pages of 2 MiB."""
INTERPRETER = 40 * MIB
"""What a process of Python holds of its own."""


def case(folder: Path, function: str, extra: str = "", backend: str = "numpy") -> Case:
    line = f"  candidate: {{function: memory_kernels:{function}, backend: {backend}}}\n"
    sampling = "sampling: {repeat: 1, number: 1, warmup_time: 0, paired: false, memory: true}\n"
    if "sampling" in extra:
        sampling = ""
    return case_of(folder, SCALE + line + sampling + extra, "candidate")


def record_of(one: Case) -> CaseRecord:
    return take_turn(Job(one)).record


@pytest.mark.parametrize(
    ("function", "least", "most"),
    [
        ("scale", 0, LITTLE),
        ("with_a_temporary", memory_kernels.HELD - MIB, memory_kernels.HELD + LITTLE),
        ("with_the_lock", memory_kernels.HELD - MIB, memory_kernels.HELD + LITTLE),
        ("in_a_thread", memory_kernels.HELD // 4 - MIB, memory_kernels.HELD // 4 + LITTLE),
        ("in_a_child", memory_kernels.HELD - MIB, memory_kernels.HELD + INTERPRETER),
        ("shared_with_a_child", memory_kernels.HELD - MIB, memory_kernels.HELD + LITTLE),
        ("over_a_file", 0, LITTLE),
    ],
)
def test_the_peak_is_what_a_run_holds_beyond_what_stands_before(
    tmp_path: Path, function: str, least: int, most: int
) -> None:
    with bench() as take:  # a process of its own: this one may have children of other tests
        record = take(Job(case(tmp_path, function))).record

    assert record.status == "ok", record.reason
    assert record.peak_bytes is not None
    assert least <= record.peak_bytes <= most


def test_memory_is_measured_only_where_the_suite_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer, "peak_bytes", lambda *_: pytest.fail("nobody asked"))

    record = record_of(case(tmp_path, "scale", "sampling: {repeat: 1, number: 1}\n"))

    assert (record.status, record.peak_bytes) == ("ok", None)


def test_where_the_system_does_not_tell_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends_at_once = tmp_path / "ends_at_once.py"
    ends_at_once.write_text("raise SystemExit(1)")
    monkeypatch.setattr(watcher, "__file__", str(ends_at_once))
    assert record_of(case(tmp_path, "scale")).peak_bytes is None


@pytest.mark.parametrize(
    ("backend", "device", "place"),
    [
        ("numpy", "cpu", "process"),
        ("threads", "threads:2", "process"),
        ("multiprocessing", "processes:2", "host"),
        ("dask", "threads:2", "process"),
        ("dask", "dask:2:1", "host"),
        ("dask", "dask:tcp://10.0.0.1:8786", "elsewhere"),
        ("ray", "ray:2", "host"),
        ("ray", "ray:auto", "elsewhere"),
        ("torch", "cuda:0", "elsewhere"),
    ],
)
def test_a_backend_says_where_the_memory_of_its_runs_lies(
    backend: str, device: str, place: str
) -> None:
    """What is elsewhere is not watched, and what is not in this process has no limit of its own."""
    assert registry.get(backend).memory_place(device) == place


STARTS_ANOTHER = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]])"
COUNTS_ITS_PARENT = f"""
import os
from gpubench.measure import watcher
before = watcher.held_at_rest(os.getppid())
held = b"x" * {memory_kernels.HELD}
print(watcher.held_at_rest(os.getppid()) - before)
"""


def test_the_watcher_counts_what_processes_hold_without_itself() -> None:
    command = [sys.executable, "-c", STARTS_ANOTHER, "-c", COUNTS_ITS_PARENT]
    more = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert int(more) < LITTLE < memory_kernels.HELD


FORKS_WHEN_ASKED = f"""
import os
held = b"x" * {memory_kernels.HELD}
print("holds", flush=True)
input()
if os.fork():
    print("forked", flush=True)
    os.wait()
else:
    input()
"""


def test_what_is_shared_with_a_process_that_begins_during_a_look_counts_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = [sys.executable, "-I", "-S", "-c", FORKS_WHEN_ASKED]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "holds\n"
        fields = watcher.fields

        def fields_then_fork(file: str) -> dict[str, int]:
            found = fields(file)
            monkeypatch.setattr(watcher, "fields", fields)
            print(file=process.stdin)
            assert process.stdout is not None and process.stdout.readline() == "forked\n"
            return found

        monkeypatch.setattr(watcher, "fields", fields_then_fork)
        during, after = watcher.held(process.pid), watcher.held(process.pid)
        print(file=process.stdin)
    assert during is None
    assert after is not None and abs(after - memory_kernels.HELD) < LITTLE + INTERPRETER


def test_asv_has_the_peak_on_record_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = case(tmp_path, "with_a_temporary")
    recording = Recording(tmp_path, one)
    monkeypatch.setattr(AsvSettings, "record", recording.path)
    monkeypatch.setattr("gpubench.asv_benchmarks.asv_settings", lambda: AsvSettings(run="one"))
    assert not hasattr(benchmark_class(expand(one.group), 0), "memory")

    timed = TimedBenchmark(expand(one.group), "kernel")
    timed.setup(one.identity)
    timed.run(one.identity)
    timed.teardown(one.identity)

    cases = [line for line in recording.lines if isinstance(line, CaseRecord)]
    assert (cases[-1].peak_bytes or 0) >= memory_kernels.HELD - MIB


def test_a_case_within_its_limit_is_measured_and_the_limit_is_on_record(tmp_path: Path) -> None:
    record = record_of(case(tmp_path, "scale", LIMIT))

    assert (record.status, record.conditions["memory_limit_bytes"]) == ("ok", 64 * MIB)


@pytest.mark.parametrize("function", ["too_large", "large_when_asked_again"])
def test_a_case_beyond_its_limit_has_no_time_and_says_why(tmp_path: Path, function: str) -> None:
    memory_kernels.large_when_asked_again.runs = 0
    before = resource.getrlimit(resource.RLIMIT_DATA)

    measured = take_turn(Job(case(tmp_path, function, LIMIT)))

    assert measured.record.status == "skipped"
    assert (measured.record.reason or "").startswith(EXCEEDED)
    assert measured.samples == ()
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_without_a_limit_the_same_is_measured(tmp_path: Path) -> None:
    assert record_of(case(tmp_path, "too_large")).status == "ok"


def test_asv_is_told_that_such_a_case_has_no_time(tmp_path: Path) -> None:
    record = Recording(tmp_path, case(tmp_path, "too_large", LIMIT)).refusal(Skipped)
    assert (record.status, (record.reason or "")[: len(EXCEEDED)]) == ("skipped", EXCEEDED)


def test_verifying_keeps_the_limit(tmp_path: Path) -> None:
    outcome = Verifier(Manner())((0, case(tmp_path, "too_large", LIMIT)))
    assert outcome.status == "skipped"
    assert (outcome.reason or "").startswith(EXCEEDED)


def test_a_crash_under_a_limit_names_the_limit(tmp_path: Path) -> None:
    with bench() as take:
        record = take(Job(case(tmp_path, "crash", LIMIT))).record
    assert record.status == "killed"
    assert record.reason == (
        "its process ended without an outcome (signal SIGABRT); its memory limit is 64 MiB, and "
        "some libraries crash where they get no more"
    )


def test_a_limit_that_cannot_be_kept_skips_the_case(tmp_path: Path) -> None:
    extra = f"{LIMIT}devices: [cpu, 'processes:1']\n"
    one = case(tmp_path, "scale_by_a_pool", extra, backend="multiprocessing")
    record = Recording(tmp_path, one).refusal(Skipped)
    assert record.reason == (
        "its memory limit cannot be kept on processes:1: it is one of this process; use cpu, "
        "threads:N, or workers with a limit of their own, dask:WORKERS:THREADS with "
        "`options: {memory: ...}`"
    )


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    one = case(tmp_path, "scale")
    assert memory.exceeded(one, MemoryError("of something else")) is None
    assert memory.exceeded(case(tmp_path, "scale", LIMIT), ValueError("no number")) is None
