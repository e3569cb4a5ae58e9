"""Every CUDA kernel of every suite, compiled to PTX and assembled without a GPU."""

from __future__ import annotations

import re

import cuda_compiler
import library_compiler
import pytest
from cuda_compiler import ARCHITECTURES, Resources
from library_cases import FOLDER, checked_cases, small_plan

from gpubench.backends.limits import ARCHITECTURE_LIMITS
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites

SHARED_BYTES_BY_DEFAULT = 48 * 1024  # on every architecture (CUDA C++ Programming Guide)
REGISTERS = 65_536  # of a block, on every architecture
GROUPS = sorted(
    {
        f"{case.suite.suite}.{case.kernel_name}.{case.implementation_name}"
        for case in checked_cases(small_plan(), ("numba_cuda",))
    }
)

of_each_implementation = pytest.mark.parametrize("implementation", GROUPS)


@pytest.fixture(scope="module")
def toolkit() -> cuda_compiler.Toolkit:
    found = cuda_compiler.find_toolkit()
    if found is None:
        pytest.skip("no NVVM and ptxas: pip install nvidia-nvvm nvidia-cuda-nvcc, or set CUDA_HOME")
    return found


@pytest.fixture(scope="module")
def ptx(toolkit: cuda_compiler.Toolkit, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return library_compiler.compile_library(toolkit, tmp_path_factory.mktemp("cuda"))


@pytest.fixture(scope="module")
def resources(ptx: dict[str, str], toolkit: cuda_compiler.Toolkit) -> dict[str, Resources]:
    """What each kernel needs, by the name of its PTX."""
    return library_compiler.resources_of(ptx, toolkit)


def of(implementation: str, titles: dict[str, object]) -> list[str]:
    return [title for title in titles if title.startswith(f"{implementation} ")]


@of_each_implementation
def test_an_implementation_compiles_for_every_architecture(
    implementation: str, ptx: dict[str, str]
) -> None:
    titles = of(implementation, dict(ptx))
    for architecture in map(cuda_compiler.name, ARCHITECTURES):
        texts = [ptx[title] for title in titles if title.endswith(architecture)]
        assert texts
        assert all(f".target {architecture}\n" in text for text in texts)


@of_each_implementation
def test_an_implementation_spills_nothing_and_fits_the_largest_block_it_is_launched_with(
    implementation: str, resources: dict[str, Resources]
) -> None:
    for title in of(implementation, dict(resources)):
        needs = resources[title]
        assert needs.spill_bytes == 0, title
        assert 0 < needs.registers <= REGISTERS // largest_block(implementation), title
        assert needs.shared_bytes <= SHARED_BYTES_BY_DEFAULT, title


@of_each_implementation
def test_an_implementation_in_single_precision_computes_nothing_in_double(
    implementation: str, ptx: dict[str, str]
) -> None:
    titles = of(implementation, dict(ptx))
    single = [title for title in titles if "float64" not in title and "complex128" not in title]
    assert {title: found for title in single if (found := doubles(ptx[title]))} == {}


def largest_block(implementation: str) -> int:
    """Threads of the largest block among the cases of the suite as it stands."""
    suite, kernel, name = implementation.split(".")
    plan = build_plan(load_suites([FOLDER / f"{suite}.yaml"]), gpu_count=1)
    launches = (
        case.launch
        for case in plan.cases()
        if (case.kernel_name, case.implementation_name) == (kernel, name)
    )
    threads = (launch.threads_per_block for launch in launches if launch is not None)
    return max(count for count in threads if count <= ARCHITECTURE_LIMITS.threads_per_block)


def doubles(text: str) -> list[str]:
    """Arithmetic in double precision, but for that of CUDA's own sine and cosine: they take angles
    beyond 105,615 apart by a product with pi / 2**65."""
    computed = re.findall(r"^\s*(?!mov|cvt|ld|st|\.reg)[\w.]+\.f64\s.*$", text, re.MULTILINE)
    return [line.strip() for line in computed if "0d3BF921FB54442D19" not in line]


def single(kernel: str, titles: dict[str, object]) -> str:
    """Title of the PTX of a kernel that is compiled once, in single precision, for Hopper."""
    names = [title for title in titles if f" {kernel}(" in title and title.endswith("sm_90")]
    (found,) = (title for title in names if "float64" not in title)
    return found


@pytest.mark.parametrize("kernel", ["vector_add_cuda", "increment_by_one_cuda", "multiply_cuda"])
def test_an_elementwise_kernel_divides_nothing(kernel: str, ptx: dict[str, str]) -> None:
    assert "div." not in ptx[single(kernel, dict(ptx))]


@pytest.mark.parametrize(("tile", "kib"), [(8, 0.5), (16, 2), (32, 8)])
def test_tiles_of_a_product_take_two_squares_of_shared_memory(
    tile: int, kib: float, resources: dict[str, Resources]
) -> None:
    tiles = [title for title in resources if f" tile={tile} " in title and "float32" in title]
    taken = {resources[title].shared_bytes for title in tiles if "matmul.cuda_tiled" in title}
    assert taken == {kib * 1024}
