"""A realistic results directory: six kernels, four implementations, twelve commits, two setups.

A machine without a GPU skips the CUDA cases; one with a GPU measured the last two commits. One
kernel became slower at the eighth commit, one implementation is wrong since the eleventh.

``python report_sample.py DIRECTORY`` writes it, for looking at the pages.
"""

from __future__ import annotations

import hashlib
import random
import sys
from pathlib import Path
from typing import Any

from result_files import CommitFiles, write_machine

NO_GPU = "no NVIDIA GPU was found: NVML is not installed; run this on a machine with a GPU"
TOO_WIDE = "block 2048 has 2048 threads, the limit is 1024 (NVIDIA H200); choose a smaller block"
WRONG = (
    "numba_parallel: C differs from the baseline in 512 of 1,048,576 elements, largest absolute "
    "error 0.25 where 1e-06 is allowed; first at (0, 17)"
)
START = 1_767_225_600  # 1 January 2026
SUBJECTS = (
    "Start the kernel library",
    "Add float64 to the norm",
    "Tile the matrix product in shared memory",
    "Use one pass for the norm",
    "Update Numba",
    "Document launches",
    "Split elementwise kernels",
    "Bounds-check vector_add",
    "Rename the arguments",
    "Vectorise mandelbrot's escape test",
    "Drop the copy in matmul",
    "Prepare the release",
)
KERNELS: dict[str, tuple[float, float, int, int]] = {
    # seconds for each element with NumPy, speedup of numba_parallel at large sizes, bytes, flops
    "vector_add": (0.20e-9, 1.85, 12, 1),
    "increment_by_one": (0.15e-9, 1.6, 8, 1),
    "multiply": (0.21e-9, 1.0, 12, 1),
    "norm": (0.35e-9, 6.5, 4, 2),
    "matmul": (3.1e-9, 0.21, 12, 1024),
    "mandelbrot": (410e-9, 34.0, 4, 1400),
}
SIZES = (2**10, 2**14, 2**18, 2**20)
BLOCKS = (4, 64, 256, 1024, 2048)


def commit_hash(index: int) -> str:
    return hashlib.sha1(f"commit {index}".encode()).hexdigest()


def write_sample(directory: Path) -> None:
    """Write the whole sample; the same numbers every time."""
    chance = random.Random(7)
    for index in range(len(SUBJECTS)):
        files = CommitFiles(directory, commit_hash(index), START + index * 90_000)
        files.facts(cpu="Example EPYC, 2 cores", cpu_threads=2, memory_bytes=8 * 2**30,
                    python="3.11.9", numpy="2.4.6", numba="0.68.1", numpy_blas="openblas",
                    no_gpu=NO_GPU)  # fmt: skip
        _write_commit(files, index, chance, gpu=False)
        files.write()
    for index in (10, 11):
        files = CommitFiles(
            directory, commit_hash(index), START + index * 90_000, "gpu-box",
            "virtualenv-py3.12-numba-cuda",
        )  # fmt: skip
        files.facts(cpu="Example Xeon, 32 cores", cpu_threads=32, memory_bytes=256 * 2**30,
                    gpu="NVIDIA H200", driver="580.65", numba="0.68.1",
                    numba_cuda="0.30.4")  # fmt: skip
        _write_commit(files, index, chance, gpu=True)
        files.write()
    write_machine(directory, "runner", os="Linux 6.1", ram="8589934592", arch="x86_64")


def _write_commit(files: CommitFiles, index: int, chance: random.Random, gpu: bool) -> None:
    for kernel in KERNELS:
        for size in SIZES:
            numpy = KERNELS[kernel][0] * size + 1.5e-6
            _time(files, kernel, "numpy", size, numpy, chance)
            _numba(files, kernel, size, numpy, chance, index)
            for block in BLOCKS:
                _cuda(files, kernel, size, block, numpy, chance, gpu)


def _numba(
    files: CommitFiles, kernel: str, size: int, numpy: float, chance: random.Random, index: int
) -> None:
    gain = KERNELS[kernel][1]
    serial = 0.4e-6 + (numpy - 1.5e-6) / max(gain / 1.9, 0.12)
    if kernel == "mandelbrot" and index >= 9:
        serial /= 1.6
    _time(files, kernel, "numba", size, serial, chance)
    parallel = 9e-6 + (numpy - 1.5e-6) / gain
    if kernel == "vector_add" and index >= 7:
        parallel *= 1.7
    if kernel == "matmul" and index >= 10:
        _case(files, kernel, "numba_parallel", f"n={size}", size, "wrong", reason=WRONG,
              max_abs_error=0.25, max_rel_error=0.9)  # fmt: skip
        files.not_applicable(_name(kernel, "numba_parallel"), f"n={size}")
        return
    _time(files, kernel, "numba_parallel", size, parallel, chance)


def _cuda(
    files: CommitFiles, kernel: str, size: int, block: int, numpy: float, chance: random.Random,
    gpu: bool,
) -> None:  # fmt: skip
    case = f"n={size} block={block}"
    launch = {"block": (block, 1, 1), "grid": (-(-size // block), 1, 1), "device": "cuda:0"}
    if not gpu or block > 1024:
        reason = TOO_WIDE if gpu else NO_GPU
        _case(files, kernel, "numba_cuda", case, size, "skipped", reason=reason, **launch)
        files.not_applicable(_name(kernel, "numba_cuda"), case)
        return
    efficiency = {4: 0.09, 64: 0.8, 256: 1.0, 1024: 0.93}[block]
    seconds = 2.2e-6 + (numpy - 1.5e-6) / (60 * efficiency)
    _time(files, kernel, "numba_cuda", size, seconds, chance, case, **launch)
    transfer = 11e-6 + size * 8 / 24e9
    _time(
        files, kernel, "numba_cuda", size, seconds + transfer, chance, case, "end_to_end", **launch
    )


def _name(kernel: str, implementation: str, time: str = "kernel") -> str:
    return f"suites.{kernel}__{implementation}.time_{time}"


def _time(
    files: CommitFiles, kernel: str, implementation: str, size: int, seconds: float,
    chance: random.Random, case: str | None = None, time: str = "kernel", **fields: Any,
) -> None:  # fmt: skip
    case = case or f"n={size}"
    median = seconds * chance.gauss(1, 0.008)
    files.time(_name(kernel, implementation, time), case, median, spread=0.02)
    errors = {"max_abs_error": 1.2e-7, "max_rel_error": 3.1e-6}
    if implementation == "numpy":
        errors = {}
    _case(files, kernel, implementation, case, size, "ok", time, **errors, **fields)


def _case(
    files: CommitFiles, kernel: str, implementation: str, case: str, size: int, status: str,
    time: str = "kernel", **fields: Any,
) -> None:  # fmt: skip
    _, _, bytes_each, flops_each = KERNELS[kernel]
    baseline: dict[str, str] = {}
    if implementation != "numpy":
        baseline = {"baseline_benchmark": _name(kernel, "numpy"), "baseline_case": f"n={size}"}
    files.record(
        _name(kernel, implementation, time), case, status, values={"n": size}, sizes=("n",),
        bytes=bytes_each * size, flops=flops_each * size,
        **{"device": "cpu", **baseline, **fields},
    )  # fmt: skip


if __name__ == "__main__":
    write_sample(Path(sys.argv[1]))
