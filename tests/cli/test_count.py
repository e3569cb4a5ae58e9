"""``gpubench count``: what it prints of right, wrong and impossible kernels, and how it ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not any(map(shutil.which, ("cc", "gcc", "clang"))),
    reason="the CUDA device in software needs Linux and a C compiler",
)

SUITE = """\
version: 1
suite: multiple
backend: numba_cuda
kernels:
  triple:
    sizes: {n: [4096]}
    arrays:
      a: {shape: [n], dtype: float32, fill: normal}
      out: {shape: [n], dtype: float32, intent: out}
    call: [a, out]
    work: {flops: 3 * n, bytes: 8 * n}
    implementations:
      numpy: {function: "tripling:triple_numpy"}
      right: {function: "tripling:triple", launch: {block: [128], grid: cover}}
      scattered: {function: "tripling:triple_scattered", launch: {block: [128], grid: cover}}
      wrong: {function: "tripling:triple_half", launch: {block: [128], grid: cover}}
      outside: {function: "tripling:triple_outside", launch: {block: [128], grid: [64]}}
      impossible: {function: "tripling:triple", launch: {block: [2048], grid: cover}}
      first_come: {function: "tripling:triple_first_come", launch: {block: [128], grid: cover}}
      narrow: {function: "tripling:triple_rows", launch: {block: [[4, 32]], grid: [8]}}
    devices: [cpu, "cuda:0"]
presets:
  smoke:
    description: a quick look
    sizes: {n: [1024]}
"""

KERNELS = """\
import numpy as np
from numba import cuda


def triple_numpy(a, out):
    np.multiply(a, np.float32(3), out=out)


@cuda.jit
def triple(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = a[i] * np.float32(3)


@cuda.jit
def triple_scattered(a, out):
    i = cuda.grid(1)
    if i < a.size:
        j = i * 33 % a.size
        out[j] = a[j] * np.float32(3)


@cuda.jit
def triple_half(a, out):
    i = cuda.grid(1)
    if i < a.size // 2:
        out[i] = a[i] * np.float32(3)


@cuda.jit
def triple_first_come(a, out):
    tickets = cuda.shared.array(1, np.int32)
    i = cuda.grid(1)
    if cuda.threadIdx.x == 0:
        tickets[0] = 0
    cuda.syncthreads()
    ticket = cuda.atomic.add(tickets, 0, 1)
    if i < a.size:
        out[i] = a[i] * np.float32(3)
        if ticket < 16 and cuda.threadIdx.x < 32:  # only where the first warp comes first
            out[i] = out[i] + np.float32(0)


@cuda.jit
def triple_rows(a, out):
    row = cuda.threadIdx.y * (a.size // cuda.blockDim.y)
    i = row + cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if cuda.blockIdx.x * cuda.blockDim.x < a.size // cuda.blockDim.y:
        out[i] = a[i] * np.float32(3)


@cuda.jit
def triple_outside(a, out):
    i = cuda.grid(1)
    out[i] = a[i] * np.float32(3)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tripling")
    (folder / "suites").mkdir()
    (folder / "suites/multiple.yaml").write_text(SUITE)
    (folder / "tripling.py").write_text(KERNELS)
    return folder


def run(folder: Path, *arguments: str, code: int = 0, **variables: str) -> str:
    """Standard output of ``gpubench count``."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GPUBENCH_", "SOFTCUDA_"))}
    done = subprocess.run(
        [sys.executable, "-m", "gpubench", "count", *arguments],
        cwd=folder,
        env={**kept, "COLUMNS": "240", **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code < 2 else done.stderr


@pytest.fixture(scope="module")
def counted(project: Path) -> dict[str, dict[str, Any]]:
    """Each implementation as JSON shows it."""
    found = json.loads(run(project, "--json", "--lines", "--hints", "--gpu", "T4", code=1))
    assert found["preset"] == "smoke"
    return {case["implementation"]: case for case in found["cases"]}


def test_only_what_runs_on_cuda_is_counted(counted: dict[str, dict[str, Any]]) -> None:
    assert list(counted) == [
        "right", "scattered", "wrong", "outside", "impossible", "first_come", "narrow",
    ]  # fmt: skip


def test_a_right_kernel_has_its_counts(counted: dict[str, dict[str, Any]]) -> None:
    counts = counted["right"]["counts"]
    assert counts["missing"] is None
    assert counts["totals"]["global_load_requests"] == 1024 // 32
    assert counts["totals"]["global_load_sectors"] == 1024 * 4 // 32
    assert counts["derived"]["sectors_per_load"] == 4.0
    assert counts["derived"]["inactive_lanes"] == 0.0
    (launch,) = counts["launches"]
    assert (launch["kernel"], launch["grid"], launch["block"], launch["times"]) == (
        *("tripling.triple", [8, 1, 1], [128, 1, 1], 1),
    )


def test_another_access_touches_other_sectors(counted: dict[str, dict[str, Any]]) -> None:
    derived = counted["scattered"]["counts"]["derived"]
    assert (derived["sectors_per_load"], derived["sectors_per_store"]) == (32.0, 32.0)


def test_each_line_has_its_own_counts(counted: dict[str, dict[str, Any]]) -> None:
    lines = counted["right"]["counts"]["launches"][0]["lines"]
    number = KERNELS.splitlines().index("        out[i] = a[i] * np.float32(3)") + 1
    (line,) = (line for line in lines if line["counts"].get("global_load_sectors"))
    assert (line["file"], line["line"]) == ("tripling.py", number)
    assert line["counts"]["global_store_sectors"] == 1024 * 4 // 32


@pytest.mark.parametrize(
    ("implementation", "status", "words"),
    [
        ("wrong", "wrong", "differs from the baseline 'numpy'"),
        ("outside", "failed", "tripling.py:"),
        ("impossible", "skipped", "the limit is 1024 threads"),
    ],
)
def test_what_is_not_right_says_so_and_has_no_counts(
    counted: dict[str, dict[str, Any]], implementation: str, status: str, words: str
) -> None:
    case = counted[implementation]
    assert case["status"] == status
    assert words in case["reason"]
    assert case["counts"] is None


def test_work_that_depends_on_the_order_of_threads_has_no_exact_number(
    counted: dict[str, dict[str, Any]],
) -> None:
    case = counted["first_come"]
    assert case["status"] == "right"
    assert case["counts"]["missing"].startswith("its work depends on the order of threads: ")
    assert "totals" not in case["counts"]


def test_machine_code_is_named_and_counted_once(counted: dict[str, dict[str, Any]]) -> None:
    sass = counted["right"]["counts"]["sass"]
    if sass["missing"] is not None:
        assert "pip install" in sass["missing"]
        return
    (code,) = sass["kernels"].values()
    assert sum(line["instructions"] for line in code["lines"]) == code["instructions"] > 0
    assert {line["file"] for line in code["lines"]} >= {"tripling.py"}


def test_occupancy_stands_beside_the_bound(counted: dict[str, dict[str, Any]]) -> None:
    (occupancy,) = counted["right"]["counts"]["occupancy"]
    assert (occupancy["gpu"], occupancy["share"]) == ("T4", 1.0)


def test_a_bound_is_called_one(counted: dict[str, dict[str, Any]]) -> None:
    (bound,) = counted["right"]["counts"]["bounds"]
    assert (bound["bound_gpu"], bound["bound_by"]) == ("T4", "sectors")
    # 256 sectors, 4 a clock in each of 8 multiprocessors, at 1.59 GHz.
    assert bound["bound_seconds"] == pytest.approx(256 / (8 * 4 * 1.59e9))


def test_registers_are_those_of_the_compiler(counted: dict[str, dict[str, Any]]) -> None:
    (launch,) = counted["right"]["counts"]["launches"]
    assert 4 <= launch["resources"]["registers"] <= 64
    assert launch["resources"]["spill_store_bytes"] == 0


def test_declared_work_stands_beside_what_is_counted(
    counted: dict[str, dict[str, Any]],
) -> None:
    declared = counted["right"]["counts"]["declared"]
    assert (declared["flops"], declared["counted_flops"]) == (3 * 1024, 1024)
    assert declared["flops_ratio"] == 3.0


def test_a_hint_names_the_line_that_costs_more_than_it_must(
    counted: dict[str, dict[str, Any]],
) -> None:
    first, *_ = counted["scattered"]["hints"]
    assert (first["rule"], first["file"], first["line"]) == ("coalescing", "tripling.py", 21)
    assert first["evidence"].startswith("1,024 sectors in 32 loads, where 128 would do")
    assert 0.8 < first["share"] < 0.9
    assert all(hint["rule"] != "coalescing" for hint in counted["right"]["hints"])
    assert counted["wrong"].get("hints") is None


def test_what_a_change_of_the_launch_makes_of_counts_and_hints_is_counted_too(
    project: Path,
) -> None:
    kernel = ("multiple::triple", "-a", "implementation=narrow")
    shown = run(project, *kernel, "--hints", "--try", "block=32x4")
    assert (
        "to count that: gpubench count multiple::triple -a implementation=narrow --hints" in shown
    )
    before, _, after = shown.partition("block=4x32 becomes block=32x4")
    assert "a row of the block has 4 threads, and a warp has 32" in before
    sectors = next(line for line in after.splitlines() if "global store sectors" in line)
    assert sectors.split()[3:5] == ["256", "128"]
    assert "hint gone: tripling.py:" in after
    found = json.loads(run(project, *kernel, "--hints", "--try", "block=32x4", "--json"))
    assert [hint["try"] for hint in found["cases"][0]["hints"]] == ["block=32x4"]
    assert [case["case"] for case in found["cases"]] == ["n=1024 block=4x32 grid=8 device=cuda:0"]
    (tried,) = found["tried"]
    stores = next(one for one in tried["counts"] if one["count"] == "global_store_sectors")
    assert (stores["before"], stores["after"]) == (256, 128)
    assert [hint["rule"] for hint in tried["hints_gone"]] == ["coalescing"]
    assert "has another value of 'block'" in run(project, *kernel, "--try", "block=4x32", code=2)


def test_launches_are_ordered_by_their_counts_for_a_gpu(project: Path) -> None:
    kernel = ("multiple::triple", "-a", "implementation=narrow", "-a", "block=4x32,32x4,128")
    shown = run(project, *kernel, "--order", "block", "--gpu", "A100")
    head, _, table = shown.partition("triple narrow: order by counts on A100")
    assert head
    assert [line.split()[1] for line in table.splitlines()[2:5]] == ["128", "32x4", "4x32"]
    assert "the best is likely among the first 1 of 3 launches" in table
    found = json.loads(run(project, *kernel, "--order", "block", "--gpu", "A100", "--json"))
    (ordered,) = found["ordered"]
    assert [one["measure"] for one in ordered["order"]] == [True, False, False]
    assert not {"seconds", "time"} & {*ordered, *ordered["order"][0]}
    assert "give --gpu too" in run(project, *kernel, "--order", "block", code=2)
    alone = (*kernel[:3], "-a", "block=4x32", "--order", "block", "--gpu", "A100")
    assert "no two cases that are counted differ in that alone" in run(project, *alone, code=2)


def test_all_launches_that_a_suite_declares_are_ordered_though_a_quick_preset_has_one(
    project: Path,
) -> None:
    suite = SUITE.replace("block: [128], grid: cover", "block: [64, 128, 256], grid: cover")
    suite = suite.replace("sizes: {n: [1024]}", "sizes: {n: [1024]}\n    launch: {block: [128]}")
    (project / "suites/shaped.yaml").write_text(suite.replace("suite: multiple", "suite: shaped"))
    kernel = ("shaped::triple", "-a", "implementation=right", "--order", "block", "--gpu", "A100")
    try:
        (ordered,) = json.loads(run(project, *kernel, "--json"))["ordered"]
    finally:
        (project / "suites/shaped.yaml").unlink()
    blocks = [re.search(r"n=1024 block=(\d+) ", one["case"]) for one in ordered["order"]]
    assert {block[1] for block in blocks if block} == {"64", "128", "256"}
    assert not ordered["not_ordered"]


def test_the_table_has_a_row_for_each_case_and_the_code_below_it(project: Path) -> None:
    more = ("--lines", "--hints", "--gpu", "T4")
    shown = run(project, "multiple::triple", "-a", "implementation=right,wrong", *more, code=1)
    assert "bound 5.03\N{NARROW NO-BREAK SPACE}ns on T4, by sectors through the L1 caches" in shown
    lines = [line.split() for line in shown.splitlines()]
    right = next(line for line in lines if line[:2] == ["multiple.triple", "right"])
    assert right[2:6] == ["n=1024", "block=128", "device=cuda:0", "right"]
    assert right[6:11] == ["1", "4.0", "4.0", "0", "100"]
    (code,) = (line for line in shown.splitlines() if "out[i] = a[i] *" in line)
    assert code.split()[3:7] == ["100", "%", "4.0", "4.0"]
    assert (
        "SASS, each instruction counted once" in shown or "instructions are those of PTX" in shown
    )
    assert "T4 occupancy 100 %, by " in shown
    # A number with a unit of time is a bound, and says so.
    units = [*re.finditer(r"[0-9][0-9.,]*\s?(?:ns|µs|us|ms|s|seconds?)\b", shown)]
    assert units and all(shown[: found.start()].endswith("bound ") for found in units)
    assert "wrong: multiple.triple wrong n=1024 block=128 device=cuda:0: differs from" in shown
    assert (
        "work: multiple.triple right n=1024 block=128 device=cuda:0: `flops` declares 3,072 "
        "operations, 3.00\N{MULTIPLICATION SIGN} as many: 1,024 are counted"
    ) in shown
    assert re.search(r"multiple.triple right n=1024 block=128 device=cuda:0: (no|\d) hint", shown)
    assert "2 cases: 1 right and 1 wrong; CUDA on softcuda" in shown


def test_without_a_compiler_it_says_so_and_counts_nothing(project: Path) -> None:
    nowhere = {"PATH": str(project), "CC": "", "SOFTCUDA_CACHE": str(project / "cache")}
    shown = run(project, "-a", "implementation=right", **nowhere)
    assert "skipped: multiple.triple right" in shown
    assert "needs a C compiler" in shown
    assert "nothing of CUDA ran" in shown


def test_where_no_case_runs_on_cuda_that_is_said(project: Path) -> None:
    said = run(project, "-a", "implementation=numpy", code=2)
    assert "no case that is named runs on a CUDA device" in said
