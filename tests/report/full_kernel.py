"""One kernel with everything that can be measured: all labelled times, ceilings, its source.

``python full_kernel.py DIRECTORY`` writes it, for looking at the pages.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from result_files import CommitFiles

from gpubench.names import join_source

SIZES = (2**12, 2**16, 2**20, 2**24)
NUMPY = "suites.scale__numpy.time_kernel"
YAML = "scale:\n  sizes: {n: {pow2: [12, 24, 4]}}\n  note: <b>text, not markup</b>"
CODE = """\
@cuda.jit
def scale_cuda(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 2 * a[i]"""
CONDITIONS = {
    "copy_bytes_per_second": 3.6e12,
    "triad_bytes_per_second": 3.9e12,
    "peak_bytes_per_second": 4.8e12,
    "floor_seconds": 2.1e-6,
    "gpu_clock_mhz": 1980,
    "l2_bytes": 50 * 2**20,
}


def write_full_kernel(directory: Path, *, ceilings: bool = True, compiled: bool = True) -> None:
    """Two implementations beside NumPy, one of them on a GPU."""
    files = CommitFiles(directory, "c" * 40, 86_400 * 20_000, "gpu-box")
    files.facts(cpu="Example Xeon", gpu="NVIDIA H200", driver="580.65", numba="0.68.1")
    for size in SIZES:
        _time(files, "numpy", "kernel", size, 2e-6 + size * 0.8e-9)
        _time(files, "numba", "kernel", size, 9e-6 + size * 0.2e-9)
        kernel, transfer = 2.5e-6 + size * 8 / 3.3e12, 12e-6 + size * 8 / 24e9
        conditions = {**CONDITIONS, "gpu_clock_mhz": 1980 - size // 2**21} if ceilings else {}
        _time(files, "numba_cuda", "kernel", size, kernel, conditions)
        _time(files, "numba_cuda", "transfer", size, transfer, conditions)
        _time(files, "numba_cuda", "launch", size, 6e-6, conditions)
        _time(files, "numba_cuda", "end_to_end", size, kernel + transfer + 5e-6, conditions)
        if compiled and size == SIZES[0]:
            _time(files, "numba", "compile", size, 0.4)
            _time(files, "numba_cuda", "compile", size, 0.25, conditions)
    files.write()
    _write_benchmarks(directory)


def _time(
    files: CommitFiles,
    implementation: str,
    time: str,
    size: int,
    seconds: float,
    conditions: dict[str, float] | None = None,
) -> None:
    benchmark = f"suites.scale__{implementation}.time_{time}"
    on_gpu = implementation == "numba_cuda"
    case = f"n={size} block=256" if on_gpu else f"n={size}"
    shape = {"block": (256, 1, 1), "grid": (-(-size // 256), 1, 1)} if on_gpu else {}
    files.time(benchmark, case, seconds, spread=0.02)
    baseline: dict[str, str] = {}
    if implementation != "numpy":
        baseline = {"baseline_benchmark": NUMPY, "baseline_case": f"n={size}"}
    files.record(
        benchmark, case, values={"n": size}, sizes=("n",), bytes=8 * size, flops=size,
        device="cuda:0" if on_gpu else "cpu", backend=implementation, conditions=conditions or {},
        **baseline, **shape,
    )  # fmt: skip


def _write_benchmarks(directory: Path) -> None:
    content: dict[str, object] = {"version": 2}
    for implementation in ("numpy", "numba", "numba_cuda"):
        name = f"suites.scale__{implementation}.time_kernel"
        code = (
            CODE if implementation == "numba_cuda" else f"def scale_{implementation}(a, out): ..."
        )
        source = join_source(code, "suites/scale.yaml:4", YAML)
        content[name] = {"name": name, "type": "time", "pretty_source": source, "code": "class X"}
    (directory / "benchmarks.json").write_text(json.dumps(content))


if __name__ == "__main__":
    write_full_kernel(Path(sys.argv[1]))
