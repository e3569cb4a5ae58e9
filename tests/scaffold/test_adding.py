"""A suite for a user's function: what the source tells, what has to be said, what is written."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from gpubench.cli import main

MODULE = '''
import numpy as np
from numba import cuda, njit, prange
from numpy.typing import NDArray

def add_numpy(a, b):
    b += a

@njit(parallel=True, cache=True)
def add_parallel(a, b):
    """b += a, over threads: "at once"."""
    for i in prange(b.size):
        b[i] += a[i]

@cuda.jit
def addCuda(a, b, n):
    i = cuda.grid(1)
    if i < n:
        b[i] += a[i]

def product(A, B, C):
    np.matmul(A, B, out=C)

@cuda.jit
def product_cuda(A, B, C):
    i, j = cuda.grid(2)
    total = 0.0
    for k in range(A.shape[1]):
        total += A[i, k] * B[k, j]
    C[i, j] = total

def scaled(x: NDArray[np.float32], alpha: float = 2.5, out: NDArray[np.float32] = None):
    np.multiply(x, alpha, out=out)

@njit
def whole(x, y, out):
    out[:] = x * y

@cuda.jit
def histogram(values, bins):
    i = cuda.grid(1)
    if i < len(values):
        cuda.atomic.add(bins, values[i], 1)

def anything(*arrays):
    pass

@njit
def lengths(points, out):
    for i in range(points.shape[0]):
        for j in range(points.shape[1]):
            out[i] += points[i, j]

@njit
def distances(points, out):
    for i in range(len(points)):
        for j in range(len(points)):
            for k in range(points.shape[1]):
                out[i, j] += (points[i, k] - points[j, k]) ** 2

@njit
def turned(a, out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j, i] = a[i, j]

@njit
def halves(x, out):
    for i in range(len(out)):
        out[i] = x[2 * i]

raise SystemExit("add imports nothing")
'''


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def gpubench(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def add(*arguments: str) -> Result:
    return gpubench("add", *arguments)


def kernel(project: Path, name: str) -> dict:
    suite = yaml.safe_load((project / "suites" / f"{name}.yaml").read_text())
    return suite["kernels"][name]


def test_a_kernel_and_its_baseline_become_a_suite_that_can_be_checked(project: Path) -> None:
    done = add("mine:add_parallel", "--baseline", "mine:add_numpy")
    assert done.exit_code == 0, done.stderr
    assert "b: array [n] of float64, read and written" in done.stdout
    written = kernel(project, "add_parallel")
    assert written["arrays"]["b"] == {"shape": ["n"], "dtype": "float64", "intent": "inout"}
    assert list(written["implementations"]) == ["numpy", "numba"]
    assert gpubench("check").exit_code == 0


def test_a_cuda_kernel_gets_a_launch_and_the_size_of_its_arrays(project: Path) -> None:
    assert add("mine:addCuda").exit_code == 0
    written = kernel(project, "add_cuda")
    assert written["call"] == ["a", "b", "n"]
    assert written["implementations"]["numba_cuda"]["launch"]["grid"] == "cover"
    assert written["devices"] == ["cpu", "cuda:0"]
    assert written["baseline"] == "numba_cuda"


def test_dimensions_of_arrays_and_of_the_grid_come_from_the_indices(project: Path) -> None:
    done = add(
        *("mine:product_cuda", "--baseline", "mine:product", "--name", "product"),
        *("--array", "A=m,k", "--array", "B=k,n", "--size", "k=8,16"),
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    written = kernel(project, "product")
    shapes = {name: array["shape"] for name, array in written["arrays"].items()}
    assert shapes == {"A": ["m", "k"], "B": ["k", "n"], "C": ["m", "n"]}
    assert written["sizes"]["k"] == [8, 16]
    assert written["arrays"]["C"]["intent"] == "out"
    assert written["implementations"]["numba_cuda"]["launch"]["block"] == [[16, 16], [32, 8]]
    assert gpubench("check").exit_code == 0


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("lengths", {"points": ["m", "n"], "out": ["m"]}),
        ("distances", {"points": ["m", "n"], "out": ["m", "m"]}),
        ("turned", {"a": ["m", "n"], "out": ["n", "m"]}),
        ("product_cuda", {"A": ["l", "m"], "B": ["m", "n"], "C": ["l", "n"]}),
        ("halves", {"x": ["n"], "out": ["n"]}),  # an index that is no variable tells nothing
    ],
)
def test_arrays_that_one_variable_indexes_have_an_extent_in_common(
    project: Path, name: str, shapes: dict[str, list[str]]
) -> None:
    done = add(f"mine:{name}")
    assert done.exit_code == 0, done.stderr
    written = kernel(project, name)
    assert {array: of["shape"] for array, of in written["arrays"].items()} == shapes
    assert gpubench("check").exit_code == 0


def test_annotations_and_defaults_tell_dtypes_and_numbers(project: Path) -> None:
    assert add("mine:scaled").exit_code == 0
    written = kernel(project, "scaled")
    assert written["scalars"] == {"alpha": {"value": 2.5}}
    assert written["arrays"]["out"] == {"shape": ["n"], "dtype": "float32", "intent": "out"}


def test_an_atomic_addition_reads_and_writes(project: Path) -> None:
    done = add("mine:histogram", "--array", "values=n:int64", "--array", "bins=64:int32")
    assert done.exit_code == 0, done.stderr
    assert kernel(project, "histogram")["arrays"]["bins"]["intent"] == "inout"


def test_what_the_source_does_not_tell_has_to_be_said(project: Path) -> None:
    done = add("mine:whole")
    assert done.exit_code == 2
    assert "--array x=n:float64:in" in done.stderr and "--scalar x=2.5" in done.stderr
    assert not (project / "suites").exists()
    assert add("mine:whole", "--array", "x=n", "--scalar", "y=3").exit_code == 0
    assert kernel(project, "whole")["scalars"] == {"y": {"value": 3}}


def test_nothing_is_overwritten(project: Path) -> None:
    assert add("mine:addCuda").exit_code == 0
    before = (project / "suites/add_cuda.yaml").read_bytes()
    done = add("mine:addCuda")
    assert done.exit_code == 2
    assert "--name add_cuda_2" in done.stderr
    assert (project / "suites/add_cuda.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["mine"], "write module:function"),
        (["mine:nothing"], "has no 'nothing'"),
        (["nowhere:add"], "there is no module 'nowhere'"),
        (["mine:anything"], "write a function around it"),
        (["mine:addCuda", "--baseline", "mine:add_numpy"], "takes 2 arguments"),
        (["mine:addCuda", "--array", "z=n"], "it has a, b, n"),
        (["mine:addCuda", "--array", "a"], "write --array NAME=VALUE"),
        (["mine:addCuda", "--array", "a=n:floaty"], "'floaty' is neither"),
        (["mine:addCuda", "--scalar", "n=many"], "'many' is no number"),
        (["mine:addCuda", "--size", "k=4"], "the extents are n"),
        (["mine:addCuda", "--array", "a=n+"], "it ends too early"),
        (["mine:addCuda", "--array", "a=n", "--scalar", "a=1"], "leave one out"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_written(
    project: Path, arguments: list[str], said: str
) -> None:
    done = add(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not (project / "suites").exists()


def test_a_second_form_joins_the_kernel_of_its_baseline(project: Path) -> None:
    assert add("mine:add_parallel", "--baseline", "mine:add_numpy").exit_code == 0
    path = project / "suites" / "add_parallel.yaml"
    commented = path.read_text().replace("    devices:", "    # kept\n    devices:")
    path.write_text(commented)
    (project / "mine.py").write_text(
        MODULE.replace("def add_parallel", "def add_serial").replace("parallel=True, ", "")
        + MODULE.replace("def addCuda(a, b, n)", "def add_cuda(a, b)").replace(
            "i < n", "i < b.size"
        )
    )
    done = add("mine:add_serial", "--baseline", "mine:add_numpy")
    assert done.exit_code == 0, done.stderr
    assert "added the implementation add_serial to add_parallel::add_parallel" in done.stdout
    done = add("mine:add_cuda", "--baseline", "mine:add_numpy")
    assert done.exit_code == 0, done.stderr
    assert [one.name for one in path.parent.iterdir()] == ["add_parallel.yaml"]
    written = kernel(project, "add_parallel")
    assert list(written["implementations"]) == ["numpy", "numba", "add_serial", "numba_cuda"]
    assert written["implementations"]["add_serial"]["backend"] == "numba"
    assert written["implementations"]["numba_cuda"]["launch"] == {
        "block": [64, 256],
        "grid": "cover",
    }
    assert written["devices"] == ["cpu", "cuda:0"]
    assert "    # kept\n" in path.read_text()
    assert gpubench("check").exit_code == 0


def test_a_form_that_does_not_fit_its_baselines_kernel_changes_nothing(project: Path) -> None:
    assert add("mine:add_parallel", "--baseline", "mine:add_numpy").exit_code == 0
    path = project / "suites" / "add_parallel.yaml"
    before = path.read_bytes()
    for function, said in [
        ("mine:add_parallel", "is the implementation 'numba'"),
        ("mine:addCuda", "takes 3 arguments"),
    ]:
        done = add(function, "--baseline", "mine:add_numpy")
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
        assert path.read_bytes() == before


def test_a_form_that_joins_keeps_the_line_ends_of_the_suite(project: Path) -> None:
    assert add("mine:add_parallel", "--baseline", "mine:add_numpy").exit_code == 0
    path = project / "suites" / "add_parallel.yaml"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    (project / "mine.py").write_text(MODULE.replace("add_parallel", "add_serial"))
    assert add("mine:add_serial", "--baseline", "mine:add_numpy").exit_code == 0
    written = path.read_bytes()
    assert b"mine:add_serial\r\n" in written
    assert written.count(b"\r\n") == written.count(b"\n")


def test_devices_in_lines_of_their_own_are_left_to_the_user(project: Path) -> None:
    assert add("mine:add_parallel", "--baseline", "mine:add_numpy").exit_code == 0
    path = project / "suites" / "add_parallel.yaml"
    text = path.read_text()
    (line,) = (each for each in text.splitlines() if each.strip().startswith("devices:"))
    path.write_text(text.replace(line, "    devices:\n      - cpu  # [this one]"))
    before = path.read_bytes()
    (project / "mine.py").write_text(MODULE.replace("addCuda(a, b, n)", "addCuda(a, b)"))
    done = add("mine:addCuda", "--baseline", "mine:add_numpy")
    assert done.exit_code == 2
    assert 'add "cuda:0" to `devices` in line' in done.stderr
    assert path.read_bytes() == before


def test_a_form_with_a_name_of_its_own_is_a_suite_of_its_own(project: Path) -> None:
    assert add("mine:add_parallel", "--baseline", "mine:add_numpy").exit_code == 0
    assert add("mine:add_parallel", "--baseline", "mine:add_numpy", "--name", "two").exit_code == 0
    assert {one.stem for one in (project / "suites").iterdir()} == {"add_parallel", "two"}


def test_proposed_sizes_are_odd_somewhere(project: Path) -> None:
    assert add("mine:add_parallel", "--baseline", "mine:add_numpy").exit_code == 0
    assert any(size % 2 for size in kernel(project, "add_parallel")["sizes"]["n"])
