"""On the CPU: thread counts that are what a case says, and compilation in fresh processes."""

import subprocess
from pathlib import Path

import pytest
import threaded_kernels
from builders import Recording, case_of, plan_of

from gpubench.errors import KernelError
from gpubench.measure import cold_start
from gpubench.measure.cold_start import ColdStartSampler
from gpubench.measure.outcomes import Skipped

KERNEL = """
sizes: {n: [1000]}
arrays:
  a: {shape: [n], dtype: float32}
  out: {shape: [n], dtype: float32, intent: out}
call: [a, out]
measure: [kernel, compile]
implementations:
  numpy: {function: threaded_kernels:double}
  candidate: {function: threaded_kernels:FUNCTION, backend: numba}
"""


def kernel(function, **settings):
    """The kernel with a line of settings for its implementations."""
    text = KERNEL.replace("FUNCTION", function)
    for name, value in settings.items():
        lines = text.splitlines()
        (at,) = (i for i, line in enumerate(lines) if line.startswith(f"  {name}:"))
        lines[at] = lines[at].replace("}", f", threads: {value}}}")
        text = "\n".join(lines) + "\n"
    return text


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch):
    monkeypatch.setattr(threaded_kernels, "seen", [])


def test_thread_counts_are_an_axis(tmp_path):
    cases = plan_of(tmp_path, kernel("double_by_numba", candidate="[1, 2]")).cases()
    named = [(case.implementation_name, case.identity, case.threads) for case in cases]
    assert named == [
        ("numpy", "n=1000", None),
        ("candidate", "n=1000 threads=1", 1),
        ("candidate", "n=1000 threads=2", 2),
    ]


def test_a_case_and_its_baseline_each_run_on_their_own_threads(tmp_path):
    before = threaded_kernels.blas_threads()
    text = kernel("double_by_numba", numpy="[1]", candidate="[1]")
    recording = Recording(tmp_path, case_of(tmp_path, text, "candidate"))
    sampling = recording.run.prepare()
    sampling.sample()
    assert set(threaded_kernels.seen) == {("blas", 1), ("numba", 1)}
    assert threaded_kernels.seen[0] == ("blas", 1)
    assert threaded_kernels.blas_threads() == before
    assert recording.last.threads == 1
    assert recording.last.conditions["numba_threads"] == 1
    assert recording.last.conditions["numpy_blas_threads"] == before


def test_the_baseline_does_not_get_the_threads_of_a_case(tmp_path):
    before = threaded_kernels.blas_threads()
    text = kernel("double", candidate="[1]").replace("backend: numba", "backend: numpy")
    recording = Recording(tmp_path, case_of(tmp_path, text, "candidate"))
    recording.run.prepare()
    baseline, *candidate = threaded_kernels.seen
    assert baseline == ("blas", before)
    assert set(candidate) == {("blas", 1)}
    assert recording.last.conditions["numpy_blas_threads"] == 1


@pytest.mark.parametrize(
    ("side", "reason"),
    [
        ("candidate", "threads of 100000: this process may use "),
        ("numpy", "the baseline cannot run: threads of 100000: this process may use "),
    ],
)
def test_more_threads_than_the_machine_has_are_skipped(tmp_path, side, reason):
    text = kernel("double_by_numba", **{side: "[100000]"})
    record = Recording(tmp_path, case_of(tmp_path, text, "candidate")).refusal(Skipped)
    assert record.status == "skipped"
    assert record.reason.startswith(reason)


@pytest.mark.slow
def test_every_sample_of_compilation_begins_with_an_empty_cache(tmp_path, monkeypatch):
    caches = []

    def run(command, env, **options):
        cache = Path(env["NUMBA_CACHE_DIR"])
        before = len(list(cache.rglob("*.nbi")))
        done = really_run(command, env=env, **options)
        caches.append((before, len(list(cache.rglob("*.nbi")))))
        return done

    really_run = cold_start.subprocess.run
    monkeypatch.setattr(cold_start.subprocess, "run", run)
    case = case_of(tmp_path, kernel("double_compiled"), "candidate")
    assert ColdStartSampler(case, "compile").seconds(2) > 0
    assert caches == [(0, 1), (0, 1)]


@pytest.mark.slow
def test_a_kernel_that_does_not_compile_says_why(tmp_path):
    case = case_of(tmp_path, kernel("not_to_be_compiled"), "candidate")
    with pytest.raises(KernelError) as failure:
        ColdStartSampler(case, "compile").seconds(1)
    assert str(failure.value).startswith("the fresh process for compile failed: ")
    assert "no_such_method" in str(failure.value)


def test_fresh_processes_take_the_sum_of_what_each_says(tmp_path, monkeypatch):
    said = iter([b"a kernel printed\n", b""])

    def run(*arguments, **options):
        answer = next(said) + b'{"seconds": 0.25}\n'
        return subprocess.CompletedProcess(arguments, 0, stdout=answer, stderr=b"")

    monkeypatch.setattr(cold_start.subprocess, "run", run)
    case = case_of(tmp_path, kernel("double_compiled"), "candidate")
    assert ColdStartSampler(case, "compile").seconds(2) == 0.5


def test_a_process_that_does_not_start_says_so(tmp_path, monkeypatch):
    case = case_of(tmp_path, kernel("double_compiled"), "candidate")
    (tmp_path / "gpubench.py").write_text("raise SystemExit('this is another')")
    monkeypatch.syspath_prepend(tmp_path)
    words = "^the fresh process for compile failed: exit code 1: this is another$"
    with pytest.raises(KernelError, match=words):
        ColdStartSampler(case, "compile").seconds(1)
