"""Hold gpubench's CUDA times against others on this machine's NVIDIA GPU.

One command: the tests marked ``gpu``, the three ways of timing against each other, ``kernel`` and
``cold`` against NVIDIA's cuda-bench on the same kernels, attained bandwidth against the device's
own copy, every CUDA kernel of the suites against NumPy, the streaming ones against that copy, and
three beside CuPy's. Prints a table, writes all figures as JSON, and exits with 0 when all agree, 1
when something does not, 2 where there is no GPU to check.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SIZES = tuple(2**power for power in (12, 16, 19, 22, 24, 26, 28))
"""Elements of each of the three arrays of a triad: microseconds to milliseconds."""
BLOCK = 256
SAMPLES = 15
LONG = 200e-6
"""Seconds from which launching shows in no way of timing. On an H100 a launch by Python takes
30 µs, and one that waits for the kernel before it still 4 µs that a graph does not have."""
WAYS_AGREE = 0.03
AGREE = {"kernel": 0.03, "cold": 0.05}
"""Against cuda-bench, so much of the time. Before a cold run cuda-bench writes as much as the cache
holds, and we copy: more or less of the cache has to be written back during the run."""
AGREE_SECONDS = 1e-6
"""This much may always differ."""
STREAMS_REACH = 0.9
"""Of the bandwidth of the device's own copy."""
BENCH_TAGS = {"kernel": "nv/batch/time/gpu/mean", "cold": "nv/cold/time/gpu/mean"}


@dataclass
class Line:
    """One line of the table."""

    check: str
    found: str
    ok: bool | None
    """``None``: not checked here, ``found`` says why."""
    figures: dict[str, Any] = field(default_factory=dict)


def main() -> int:
    arguments = _arguments()
    if arguments.bench_child:
        _cuda_bench_child(arguments.bench_child)
        return 0
    from gpubench.backends.numba_cuda import NumbaCudaBackend
    from gpubench.backends.software import SWITCH, requested

    if requested():
        print(f"gpu-check: nothing checked: a device in software has no times; unset {SWITCH}")
        return 2
    if reason := NumbaCudaBackend().unavailable(arguments.device):
        print(f"gpu-check: nothing checked: {reason}")
        return 2
    lines = list(_checked(arguments.device, arguments.skip))
    figures = {"conditions": _conditions(arguments.device), "lines": [asdict(x) for x in lines]}
    arguments.output.write_text(json.dumps(figures, indent=2, default=str) + "\n")
    print(f"figures: {arguments.output}")
    return 1 if any(line.ok is False for line in lines) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--device", default="cuda:0", help="device to check (default: cuda:0)")
    parser.add_argument(
        "--output", type=Path, default=Path("gpu-check.json"), help="file for the figures"
    )
    parser.add_argument(
        "--skip",
        action="append",
        default=[],
        choices=tuple(CHECKS),
        help="leave a part out; may be given several times",
    )
    parser.add_argument("--bench-child", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _checked(device: str, skipped: list[str]) -> Iterator[Line]:
    """Every line, printed as soon as it is known; a part that fails is a line, not the end."""
    for name, check in CHECKS.items():
        if name in skipped:
            continue
        try:
            for line in check(device):
                _print(line)
                yield line
        except Exception as error:
            line = Line(name, f"{type(error).__name__}: {error}", False)
            _print(line)
            yield line


def _print(line: Line) -> None:
    mark = {True: "ok", False: "DIFFERS", None: "-"}[line.ok]
    print(f"{mark:8}{line.check:38}{line.found}", flush=True)


def _conditions(device: str) -> dict[str, Any]:
    from gpubench.measure.recorder import run_facts

    packages = ("numba-cuda", "cuda-bindings", "cuda-core", "cuda-bench")
    with _session(device) as session:
        facts = dict(session.facts())
    versions = {name: _version(name) for name in packages}
    command = " ".join(sys.argv)
    return {**run_facts(), **facts, **versions, "machine": platform.node(), "command": command}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@contextmanager
def _session(device: str) -> Iterator[Any]:
    from gpubench.backends.limits import ARCHITECTURE_LIMITS
    from gpubench.backends.numba_cuda import NumbaCudaSession

    with NumbaCudaSession(device, ARCHITECTURE_LIMITS) as session:
        yield session


def _tests(device: str) -> Iterator[Line]:
    """Run the tests marked ``gpu``, from the files that have any."""
    files = [
        str(path)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if "mark.gpu" in path.read_text(encoding="utf-8")
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "--no-header", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    summary = (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1]
    if done.returncode:
        print(done.stdout, done.stderr)
    yield Line("tests marked gpu", summary, done.returncode == 0)


def _triad(session: Any, elements: int) -> Callable[[], Any]:
    """Return a bound triad over arrays of so many float64, run once so that it is compiled."""
    from gpubench.backends.protocol import Launch

    arrays = [session.allocate(8 * elements) for _ in range(3)]
    grid = (-(-elements // BLOCK), 1, 1)
    call = session.kernel("triad", Launch(block=(BLOCK, 1, 1), grid=grid), arrays)
    call()
    session.synchronize()
    return call


def _sizes(session: Any) -> list[int]:
    """Return the sizes that fit twice into the memory that is free."""
    return [size for size in SIZES if 2 * 3 * 8 * size < session.free_bytes()]


def _ways(device: str) -> Iterator[Line]:
    """Graph replay, held-back stream and plain events on the same kernels."""
    from gpubench.backends.cuda_sampling import BestWay

    with _session(device) as session:
        for size in _sizes(session):
            call = _triad(session, size)
            best = BestWay(session, call)
            held_back = {"held back": best.held_back} if session.can_hold else {}
            ways = {"graph": best.graph_replay, **held_back, "plain": best.plain_events}
            yield _agreement(size, {name: _run_seconds(way) for name, way in ways.items()})


def _run_seconds(way: Callable[[int], float]) -> float:
    """Seconds of one run: the median of samples of about a millisecond or more."""
    one = min(way(10) for _ in range(3)) / 10
    runs = max(10, min(1000, int(2e-3 / one)))
    return median(way(runs) / runs for _ in range(SAMPLES))


def _agreement(size: int, seconds: Mapping[str, float]) -> Line:
    spread = max(seconds.values()) / min(seconds.values()) - 1
    long = min(seconds.values()) >= LONG
    found = ", ".join(f"{name} {value * 1e6:.2f} µs" for name, value in seconds.items())
    ok = spread <= WAYS_AGREE if long else None
    note = "" if long else " (short: launching may show)"
    figures = {"elements": size, "seconds": dict(seconds), "spread": spread}
    return Line(f"three ways, triad of {size}", f"{found}: {spread:.1%}{note}", ok, figures)


def _bandwidth(device: str) -> Iterator[Line]:
    """Copy and triad by kernels, beside the device's own copy over arrays of the same size."""
    with _session(device) as session:
        ceilings = session.ceilings()
        peak = session.facts().get("peak_bytes_per_second")
        own = _own_copy(session, session.ceiling_bytes())
    rates = {
        "copy": ceilings["copy_bytes_per_second"],
        "triad": ceilings["triad_bytes_per_second"],
        "the device's own copy": own,
    }
    of_peak = {n: f" ({r / peak:.0%} of datasheet)" if peak else "" for n, r in rates.items()}
    found = ", ".join(f"{n} {r / 1e9:.0f} GB/s{of_peak[n]}" for n, r in rates.items())
    ok = rates["copy"] >= 0.9 * own and (not peak or max(rates.values()) <= peak)
    yield Line("attained bandwidth", found, ok, {"rates": rates, "peak": peak})


def _own_copy(session: Any, nbytes: int) -> float:
    """Bytes per second that the device's own copy of so many bytes reads and writes."""
    from gpubench.backends.cuda_sampling import BestWay

    target, source = (session.allocate(nbytes) for _ in range(2))
    way = BestWay(session, partial(session.restore, target, source))
    return 2 * nbytes / min(way.seconds(4) / 4 for _ in range(SAMPLES))


def _cuda_bench(device: str) -> Iterator[Line]:
    """``kernel`` and ``cold`` beside NVIDIA's harness, each in a process of its own."""
    if find_spec("cuda") is None or find_spec("cuda.bench") is None:
        note = "cuda-bench is not installed: pip install cuda-bench"
        yield Line("against cuda-bench", note, None)
        return
    if device != "cuda:0":
        yield Line("against cuda-bench", "only compared on cuda:0", None)
        return
    theirs = _their_seconds()
    with _session(device) as session:
        sizes = [size for size in _sizes(session) if size in theirs]
    for size in sizes:
        for label, seconds in _our_seconds(device, size).items():
            yield _comparison(label, size, seconds, theirs[size].get(label))


def _our_seconds(device: str, size: int) -> dict[str, float]:
    """``kernel`` and ``cold`` as ``gpubench.measure.times`` takes them."""
    with _session(device) as session:
        call = _triad(session, size)
        sampler = session.sampler(call)
        runs = max(1, min(1000, int(2e-3 / (sampler.seconds(10) / 10))))
        kernel = median(sampler.seconds(runs) / runs for _ in range(SAMPLES))
        cold = []
        for _ in range(3 * SAMPLES):
            session.flush()
            session.synchronize()
            cold.append(sampler.seconds(1))
    return {"kernel": kernel, "cold": median(cold)}


def _comparison(label: str, size: int, ours: float, theirs: float | None) -> Line:
    name = f"{label}, triad of {size}"
    figures = {"elements": size, "seconds": ours, "cuda_bench_seconds": theirs}
    if theirs is None:
        return Line(name, "cuda-bench tells no such time", None, figures)
    found = f"{ours * 1e6:.2f} µs, cuda-bench {theirs * 1e6:.2f} µs: {ours / theirs - 1:+.1%}"
    if label == "kernel" and theirs < LONG:  # cuda-bench launches each run by Python
        return Line(name, f"{found} (short: launching may show)", None, figures)
    ok = abs(ours - theirs) <= max(AGREE[label] * theirs, AGREE_SECONDS)
    return Line(name, found, ok, figures)


def _their_seconds() -> dict[int, dict[str, float]]:
    """Seconds of one run by size and label, from cuda-bench's own JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bench.json")
        command = [sys.executable, __file__, "--bench-child", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not path.exists():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise RuntimeError(f"cuda-bench failed: {last}")
        states = json.loads(path.read_text())["benchmarks"][0]["states"]
    return {_elements(state): _summaries(state) for state in states if not state["is_skipped"]}


def _elements(state: Mapping[str, Any]) -> int:
    axis = next(value for value in state["axis_values"] if value["name"] == "elements")
    return int(axis["value"])


def _summaries(state: Mapping[str, Any]) -> dict[str, float]:
    values = {
        summary["tag"]: next(d["value"] for d in summary["data"] if d["name"] == "value")
        for summary in state["summaries"]
        if summary["tag"] in BENCH_TAGS.values()
    }
    return {label: float(values[tag]) for label, tag in BENCH_TAGS.items() if tag in values}


def _cuda_bench_child(output: Path) -> None:
    """Run the triads under cuda-bench; it ends the process by itself where it fails."""
    import cuda.bench as bench
    from numba import cuda

    from gpubench.backends.numba_cuda import moving_kernels

    triad_kernel = moving_kernels()["triad"]
    free = cuda.current_context().get_memory_info()[0]

    def triad(state: Any) -> None:
        elements = state.get_int64("elements")
        if 2 * 3 * 8 * elements >= free:
            state.skip("too little memory")
            return
        arrays = [cuda.device_array(elements) for _ in range(3)]
        grid = -(-elements // BLOCK)
        triad_kernel[grid, BLOCK](*arrays)  # compiles
        cuda.synchronize()

        def launch(launched: Any) -> None:
            stream = cuda.external_stream(launched.get_stream().addressof())
            triad_kernel[grid, BLOCK, stream](*arrays)

        state.exec(launch, batched=True)

    bench.register(triad).add_int64_axis("elements", SIZES)
    bench.run_all_benchmarks([sys.argv[0], "--devices", "0", "--json", str(output)])


def _library(device: str) -> Iterator[Line]:
    """Every CUDA case of the suites' smoke presets, verified against its baseline."""
    import gpu_library

    cases = gpu_library.cuda_cases(device, "smoke")
    wrong = gpu_library.faults(cases)
    for name, fault in wrong.items():
        print(f"        {name}: {fault}")
    found = f"{len(cases) - len(wrong)} of {len(cases)} cases right"
    yield Line("library against NumPy", found, bool(cases) and not wrong, {"wrong": wrong})


def _streaming(device: str) -> Iterator[Line]:
    """Bandwidth of the kernels that only move memory, beside the device's own copy that moves as
    much: part of that may come from the cache."""
    import gpu_library

    for kernel, moved, seconds in gpu_library.streams(gpu_library.cuda_cases(device)):
        rate = moved / seconds
        with _session(device) as session:
            own = _own_copy(session, moved // 2)
        found = f"{rate / 1e9:.0f} GB/s, {rate / own:.0%} of the device's own copy"
        yield Line(kernel, found, rate >= STREAMS_REACH * own, {"rate": rate, "own": own})


def _cupy(device: str) -> Iterator[Line]:
    """Tiled matmul, sum and transpose beside CuPy's."""
    import gpu_library

    if not gpu_library.has_cupy():
        yield Line("beside CuPy", "CuPy is not installed: pip install cupy-cuda13x", None)
        return
    if device != "cuda:0":
        yield Line("beside CuPy", "only compared on cuda:0", None)
        return
    for peer, times in gpu_library.beside_cupy(gpu_library.cuda_cases(device)):
        found = f"{times:.2f} times CuPy's time, target <= {peer.factor:g}"
        yield Line(f"{peer.kernel} beside CuPy", found, times <= peer.factor, {"times": times})


CHECKS: dict[str, Callable[[str], Iterator[Line]]] = {
    "tests": _tests,
    "library": _library,
    "streaming": _streaming,
    "cupy": _cupy,
    "ways": _ways,
    "bandwidth": _bandwidth,
    "cuda-bench": _cuda_bench,
}

if __name__ == "__main__":
    sys.exit(main())
