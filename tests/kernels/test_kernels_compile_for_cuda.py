"""Every CUDA kernel, compiled to PTX and assembled for each architecture without a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import cuda_compiler
import pytest
from cuda_compiler import ARCHITECTURES, Resources, Toolkit
from kernel_inventory import cuda_kernels

Architecture = tuple[int, int]
KERNELS = [f"{kernel} {dtype}" for kernel, dtype, _, _ in cuda_kernels()]
SHARED_BYTES_BY_DEFAULT = 48 * 1024  # on every architecture (CUDA C++ Programming Guide)

on_each_architecture = pytest.mark.parametrize(
    "architecture", ARCHITECTURES, ids=cuda_compiler.name
)
of_each_kernel = pytest.mark.parametrize("kernel", KERNELS)


@pytest.fixture(scope="module")
def toolkit() -> Toolkit:
    found = cuda_compiler.find_toolkit()
    if found is None:
        pytest.skip("no NVVM and ptxas: pip install nvidia-nvvm nvidia-cuda-nvcc, or set CUDA_HOME")
    return found


@pytest.fixture(scope="module")
def ptx(toolkit: Toolkit, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = cuda_compiler.make_cuda_home(toolkit, tmp_path_factory.mktemp("cuda"))
    done = subprocess.run(
        [sys.executable, cuda_compiler.__file__],
        env=os.environ | {"CUDA_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def resources(
    ptx: dict[str, str], kernel: str, architecture: Architecture, toolkit: Toolkit
) -> Resources:
    text = ptx[f"{kernel} {cuda_compiler.name(architecture)}"]
    return cuda_compiler.read_resources(text, architecture, toolkit.ptxas)


@of_each_kernel
@on_each_architecture
def test_a_kernel_compiles_for_the_architecture_asked_for(
    kernel: str, architecture: Architecture, ptx: dict[str, str]
) -> None:
    name = cuda_compiler.name(architecture)
    text = ptx[f"{kernel} {name}"]
    assert f".target {name}\n" in text
    assert ".visible .entry" in text


@of_each_kernel
@on_each_architecture
def test_a_kernel_fits_the_largest_block_and_spills_nothing(
    kernel: str, architecture: Architecture, ptx: dict[str, str], toolkit: Toolkit
) -> None:
    needs = resources(ptx, kernel, architecture, toolkit)
    assert 0 < needs.registers <= 64  # 65,536 registers for 1,024 threads
    assert needs.shared_bytes <= SHARED_BYTES_BY_DEFAULT
    assert needs.spill_bytes == needs.stack_bytes == 0


@pytest.mark.parametrize("kernel", [name for name in KERNELS if "float32" in name])
def test_a_kernel_in_single_precision_computes_nothing_in_double(
    kernel: str, ptx: dict[str, str]
) -> None:
    assert ".f64" not in ptx[f"{kernel} sm_90"]


@pytest.mark.parametrize("kernel", ["vector_add_cuda", "increment_by_one_cuda", "multiply_cuda"])
def test_an_elementwise_kernel_divides_nothing(kernel: str, ptx: dict[str, str]) -> None:
    assert "div." not in ptx[f"{kernel} float32 sm_90"]


@pytest.mark.parametrize(("tile", "kib"), [(8, 0.5), (16, 2), (32, 8)])
def test_tiles_take_two_squares_of_shared_memory(
    tile: int, kib: float, ptx: dict[str, str], toolkit: Toolkit
) -> None:
    needs = resources(ptx, f"matmul_tiled {tile} float32", (9, 0), toolkit)
    assert needs.shared_bytes == kib * 1024
