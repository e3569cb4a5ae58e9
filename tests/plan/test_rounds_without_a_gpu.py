"""How many rounds asv is asked for: one suffices to say that a device is missing, or to verify."""

import pytest

from gpubench import asv_benchmarks

SUITE = """
version: 1
suite: sample
kernels:
  scale:
    sizes: {n: [8]}
    arrays:
      a: {shape: [n], dtype: float32}
      out: {shape: [n], dtype: float32, intent: out}
    call: [a, out]
    implementations:
      numpy: {function: "numpy:negative", backend: numpy}
      cuda: {function: "none:kernel", backend: numba_cuda, launch: {block: [8], grid: cover}}
    devices: DEVICES
    sampling: {rounds: 3, repeat: 5}
"""


def rounds(tmp_path, monkeypatch, gpus, devices='[cpu, "cuda:*"]'):
    (tmp_path / "sample.yaml").write_text(SUITE.replace("DEVICES", devices))
    monkeypatch.setattr(asv_benchmarks, "gpu_count", lambda: gpus)
    classes = asv_benchmarks.benchmark_classes(tmp_path)
    return {name.rpartition("__")[2]: one.rounds for name, one in classes.items()}


@pytest.mark.parametrize("devices", ['[cpu, "cuda:*"]', '[cpu, "cuda:1"]'])
def test_cases_that_need_a_gpu_are_skipped_in_one_round(tmp_path, monkeypatch, devices):
    assert rounds(tmp_path, monkeypatch, 0, devices) == {"numpy": 3, "cuda": 1}


def test_with_a_gpu_there_are_as_many_rounds_as_the_suite_says(tmp_path, monkeypatch):
    assert rounds(tmp_path, monkeypatch, 1) == {"numpy": 3, "cuda": 3}


def test_cases_of_a_device_in_software_are_verified_once(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUBENCH_SOFTCUDA", "1")
    assert rounds(tmp_path, monkeypatch, 1) == {"numpy": 3, "cuda": 1}
