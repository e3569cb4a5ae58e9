"""Hold the counts of the device in software against Nsight Compute's on this machine's GPU.

Runs every CUDA case of the suites' preset `smoke` once under `ncu`, counts the same cases on the
device in software, and prints for each count that has a metric of NVIDIA's how many cases agree,
with those that differ most. What the assembler makes of the code differs by right: docs/counts.md
says where. `--keep FOLDER` measures and counts only what the folder has not yet, so that the halves
may come from two machines. Exit code 2 where there is no `ncu`.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PRESET = "smoke"
LAST = "case_ends"
"""Kernel that is launched after each case: it parts the launches of one from those of the next."""


@dataclass
class Compared:
    """What one metric, or several that add up, say of all cases."""

    counts: tuple[str, ...]
    """Counts of ours whose sum means the same."""
    metric: str
    equal: int = 0
    differing: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Ours and NVIDIA's, by the name of the case."""


def main() -> int:
    given = _arguments()
    if given.child:
        _run_cases(given.device, given.child)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "launches.csv").exists():
            if shutil.which("ncu") is None:
                print("nothing compared: ncu is not on the PATH; Nsight Compute brings it")
                return 2
            _profile(given.device, folder)
        if not (folder / "counts.json").exists():
            _count(given.capability, folder / "counts.json")
        compared = _compare(_counted(folder / "counts.json"), _measured(folder))
    for one in compared:
        _print(one, given.all)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda:0", help="GPU to ask (default: cuda:0)")
    parser.add_argument(
        "--capability", default="90", help="count on a device of this one (default: 90, of H100)"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep here what was measured, and take it again"
    )
    parser.add_argument("--all", action="store_true", help="print every case that differs")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _print(one: Compared, every: bool) -> None:
    cases = one.equal + len(one.differing)
    print(f"{one.equal:5} of {cases:4} alike  {' + '.join(one.counts)}  ({one.metric})")
    shown = sorted(one.differing.items(), key=lambda item: -_factor(*item[1]))
    for name, (ours, theirs) in shown if every else shown[:3]:
        print(f"        {name}: counted {ours:,}, measured {theirs:,}")


def _factor(one: int, other: int) -> float:
    """Return how many times the lesser the greater is."""
    return max(one, other, 1) / max(min(one, other), 1)


def _asked() -> dict[str, list[str]]:
    """Return our counts by the metric of NVIDIA's that means their sum."""
    from softcuda.counts import COUNTS

    asked: dict[str, list[str]] = defaultdict(list)
    for count in COUNTS:
        if count.nvidia is not None:
            asked[count.nvidia].append(count.name)
    return asked


def _terms(metric: str) -> dict[str, int]:
    """Return the metrics whose sum one with ``{a,2*b}`` in its name is, each with its factor."""
    before, brace, rest = metric.partition("{")
    inside, _, after = rest.partition("}")
    if not brace:
        return {metric: 1}
    parts = [part.rpartition("*") for part in inside.split(",")]
    return {f"{before}{name}{after}": int(factor or 1) for factor, _, name in parts}


def _profile(device: str, folder: Path) -> None:
    """Run all cases under ``ncu``, without its changing clocks or emptying caches."""
    metrics = sorted({name for metric in _asked() for name in _terms(metric)})
    command = [
        *("ncu", "--profile-from-start", "off", "--clock-control", "none"),
        *("--cache-control", "none", "--csv", "--page", "raw", "--print-units", "base"),
        *("--log-file", str(folder / "launches.csv"), "--metrics", ",".join(metrics)),
        *(sys.executable, __file__, "--device", device, "--child", str(folder / "cases.json")),
    ]
    subprocess.run(command, check=True, cwd=ROOT)


def _count(capability: str, file: Path) -> None:
    command = [sys.executable, "-m", "gpubench", "count", "--preset", PRESET, "--json", "suites"]
    environment = {**os.environ, "SOFTCUDA_CC": capability}
    with file.open("w") as output:
        subprocess.run(command, cwd=ROOT, env=environment, stdout=output, check=False)


def _run_cases(device: str, names: Path) -> None:
    """Run each case once on fresh inputs inside the profiler; write their names, empty where one
    failed."""
    import gpu_library
    from numba import cuda

    from gpubench.measure.bound_case import opened
    from gpubench.measure.inputs import draw_inputs

    def case_ends() -> None: ...

    last, gpu = cuda.jit(case_ends), cuda.gpus[int(device.partition(":")[2])]
    ran: list[str] = []
    for case in gpu_library.cuda_cases(device, PRESET):
        name = f"{case.benchmark('kernel').asv_name} {case.identity}"
        try:
            with opened(case, draw_inputs(case)) as bound:
                bound.call()  # compiles
                bound.restore()
                bound.session.synchronize()
                with _profiled(bound.session.synchronize):
                    bound.call()
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            name = ""
        with gpu, warnings.catch_warnings(), _profiled(cuda.synchronize):
            warnings.simplefilter("ignore")  # that a grid of one block is small
            last[1, 1]()
        ran.append(name)
        names.write_text(json.dumps(ran))


@contextmanager
def _profiled(synchronize: Callable[[], object]) -> Iterator[None]:
    from numba import cuda

    cuda.profile_start()
    try:
        yield
        synchronize()
    finally:
        cuda.profile_stop()


def _measured(folder: Path) -> dict[str, dict[str, int]]:
    """Return the sums of NVIDIA's metrics over the launches of each case, by the case's name."""
    rows = _rows(folder / "launches.csv")
    sums: list[dict[str, int]] = [defaultdict(int)]
    for row in rows:
        if LAST in row["Kernel Name"]:
            sums.append(defaultdict(int))
            continue
        for name, text in row.items():
            if re.fullmatch(r"[\d,]+(\.0*)?", text or ""):
                sums[-1][name] += int(float(text.replace(",", "")))
    names: list[str] = json.loads((folder / "cases.json").read_text())
    return dict(zip(names, sums[:-1], strict=True))


def _rows(file: Path) -> list[dict[str, str]]:
    """Return the launches of a CSV file of ``ncu``, without what it says before, and the units."""
    lines = file.read_text().splitlines()
    header = next(place for place, line in enumerate(lines) if line.startswith('"ID"'))
    return list(csv.DictReader(line for line in lines[header:] if line.startswith('"')))[1:]


def _counted(file: Path) -> dict[str, Mapping[str, int]]:
    cases: Sequence[Mapping[str, Any]] = json.loads(file.read_text())["cases"]
    counts = {case["name"]: case.get("counts") for case in cases}
    return {
        name: of["totals"] for name, of in counts.items() if of is not None and not of["missing"]
    }


def _compare(
    counted: Mapping[str, Mapping[str, int]], measured: Mapping[str, Mapping[str, int]]
) -> list[Compared]:
    found = []
    for metric, counts in _asked().items():
        one, terms = Compared(tuple(counts), metric), _terms(metric)
        for name in counted.keys() & measured.keys():
            if terms.keys().isdisjoint(measured[name]):
                continue
            ours = sum(counted[name].get(count, 0) for count in counts)
            theirs = sum(factor * measured[name].get(term, 0) for term, factor in terms.items())
            if ours == theirs:
                one.equal += 1
            else:
                one.differing[name] = (ours, theirs)
        found.append(one)
    return found


if __name__ == "__main__":
    sys.exit(main())
