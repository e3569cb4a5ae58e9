"""What every page says of a small, fixed set of results, so that a review sees when it changes.

Where a change is meant, ``UPDATE_GOLDEN=1 pytest tests/report/test_golden_view_models.py`` writes
the files below ``golden/`` anew; read their difference before it is committed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from full_kernel import write_full_kernel
from result_files import CommitFiles, launch, write_machine

from gpubench.report.render import view_models
from gpubench.results import open_table

GOLDEN = Path(__file__).parent / "golden"
COMMITS = 12
DAY = 86_400
NUMPY, NUMBA, WRONG, COUNTED = (
    f"suites.add__{name}.time_kernel" for name in ("numpy", "numba", "wrong", "numba_cuda")
)


def write_results(directory: Path) -> None:
    """A kernel with every time on a GPU, and twelve commits with a step, a failure, an update
    and counted work."""
    write_full_kernel(directory)
    for index in range(COMMITS):
        files = CommitFiles(directory, f"{index:x}" * 40, (1000 + index) * DAY)
        files.facts(cpu="Example EPYC", numpy="2.4.6", numba=f"0.{65 + index // 9}")
        for size in (1024, 4096):
            slower = 1.5 if index >= 6 else 1.0
            _time(files, NUMPY, size, 4e-9 * size)
            _time(files, NUMBA, size, 1e-9 * size * slower * (1 + 0.001 * (index % 3)))
        files.missing(WRONG, "n=1024")
        files.record(WRONG, "n=1024", "wrong", reason="out differs in 3 of 1,024 elements")
        files.not_applicable(COUNTED, "n=1024")
        files.record(
            COUNTED,
            "n=1024",
            "verified",
            reason="right on softcuda, which has no times",
            values={"n": 1024},
            sizes=("n",),
            backend="numba_cuda",
            device="cuda:0",
            baseline_benchmark=NUMPY,
            baseline_case="n=1024",
        )
        sectors = 1024 if index >= 4 else 128
        files.counts(COUNTED, "n=1024", launch(
            resources={"registers": 18}, lines={7: {"ptx_instructions": 320}}, warps=32,
            ptx_instructions=320, ptx_thread_instructions=10_240, global_load_requests=32,
            global_load_sectors=sectors, global_load_ideal_sectors=128,
        ))  # fmt: skip
        files.write()
    (directory / "runner" / "damaged.json").write_text("{")
    write_machine(directory, "runner", os="Linux 6.1", arch="x86_64")


def _time(files: CommitFiles, benchmark: str, size: int, seconds: float) -> None:
    baseline = {"baseline_benchmark": NUMPY, "baseline_case": f"n={size}"}
    files.time(benchmark, f"n={size}", seconds, spread=0.02)
    files.record(
        benchmark, f"n={size}", values={"n": size}, sizes=("n",), bytes=12 * size, device="cpu",
        **(baseline if benchmark != NUMPY else {}),
    )  # fmt: skip


def rounded(value: Any) -> Any:
    """Floats with six digits: the last ones differ between processors."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def without_navigation(page: dict[str, Any]) -> dict[str, Any]:
    """Return what a page says itself: overviews have the navigation, which all have alike."""
    return {name: value for name, value in page.items() if name != "navigation"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Each page's view model as text, by the name of its golden file."""
    directory = tmp_path_factory.mktemp("golden")
    write_results(directory)
    found = {
        address: model if address.startswith("index") else without_navigation(model)
        for address, model in view_models(open_table(directory)).items()
    }
    text = json.dumps(rounded(found), ensure_ascii=False).replace(str(directory), "RESULTS")
    return {
        f"{address}.json": json.dumps(model, indent=1, ensure_ascii=False) + "\n"
        for address, model in json.loads(text).items()
    }


def golden() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in GOLDEN.glob("*.json")}


def write_golden(models: dict[str, str]) -> None:
    GOLDEN.mkdir(exist_ok=True)
    for name in golden():
        (GOLDEN / name).unlink()
    for name, content in models.items():
        (GOLDEN / name).write_text(content, encoding="utf-8")


def test_the_pages_say_what_they_said(models: dict[str, str]) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        write_golden(models)
    expected = golden()

    assert models.keys() == expected.keys()
    for name, content in models.items():
        assert content == expected[name], (
            f"{name} changed; if that is meant: UPDATE_GOLDEN=1 pytest {Path(__file__).name}"
        )
