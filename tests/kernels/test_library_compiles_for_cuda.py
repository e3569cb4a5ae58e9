"""Every CUDA kernel of every suite, compiled and linked as for a GPU, without one.

Those of the first suites run in ``make test``, all of them in ``.ci/run``.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import cuda_compiler
import library_compiler
import pytest
from cuda_compiler import ARCHITECTURES, SHOWN, Compiled
from library_cases import FOLDER, kernels_with

from gpubench.backends import software
from gpubench.backends.limits import ARCHITECTURE_LIMITS
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites

SHARED_BYTES_BY_DEFAULT = 48 * 1024  # on every architecture (CUDA C++ Programming Guide)
REGISTERS = 65_536  # of a block, on every architecture
of_each_kernel = pytest.mark.parametrize("kernel", kernels_with("numba_cuda"))

FIRST = [
    *(f"{name}.{name}.numba_cuda" for name in ("vector_add", "increment_by_one", "multiply")),
    "matmul.matmul.cuda_tiled",
]


@pytest.fixture(scope="module")
def compiled(request: pytest.FixtureRequest) -> dict[str, Compiled]:
    """Each kernel by its title; kept in pytest's cache until something of them changes."""
    if (reason := cuda_compiler.missing()) is not None:
        pytest.skip(reason)
    cache = getattr(request.config, "cache", None)  # None with -p no:cacheprovider
    return library_compiler.compile_library(cache and cache.mkdir("compiled-library"))


@pytest.fixture(scope="module")
def first() -> dict[str, Compiled]:
    """Return the kernels of ``FIRST`` by their titles."""
    if (reason := cuda_compiler.missing()) is not None:
        pytest.skip(reason)
    return library_compiler.compile_some(*FIRST)


def of(name: str, compiled: dict[str, Compiled]) -> dict[str, Compiled]:
    """Return those of a kernel or of one of its implementations."""
    return {
        title: one for title, one in compiled.items() if title.startswith((f"{name}.", f"{name} "))
    }


@pytest.mark.ci
@of_each_kernel
def test_a_kernel_compiles_for_every_architecture(
    kernel: str, compiled: dict[str, Compiled]
) -> None:
    forms = of(kernel, compiled)
    assert {title.split()[0] for title in forms} == set(largest_blocks(kernel))
    for form in forms.values():
        assert list(form.needs) == list(ARCHITECTURES.values())
        assert all(needs.architecture == name for name, needs in form.needs.items())
        assert f".target {ARCHITECTURES[SHOWN]}\n" in form.ptx


@pytest.mark.ci
@of_each_kernel
def test_a_kernel_spills_nothing_and_fits_the_largest_block_it_is_launched_with(
    kernel: str, compiled: dict[str, Compiled]
) -> None:
    for implementation, threads in largest_blocks(kernel).items():
        for title, form in of(implementation, compiled).items():
            for needs in form.needs.values():
                assert needs.spill_bytes == 0, title
                assert 0 < needs.registers <= REGISTERS // threads, title
                assert needs.shared_bytes <= SHARED_BYTES_BY_DEFAULT, title


def test_the_first_kernels_compile_for_every_architecture_and_compute_nothing_in_double(
    first: dict[str, Compiled],
) -> None:
    assert {title.split()[0] for title in first} == set(FIRST)
    for title, form in first.items():
        assert list(form.needs) == list(ARCHITECTURES.values())
        assert all(needs.registers > 0 and not needs.spill_bytes for needs in form.needs.values())
        assert "float64" in title or doubles(form.ptx) == []


@pytest.mark.ci
@of_each_kernel
def test_a_kernel_in_single_precision_computes_nothing_in_double(
    kernel: str, compiled: dict[str, Compiled]
) -> None:
    forms = of(kernel, compiled)
    single = [title for title in forms if "float64" not in title and "complex128" not in title]
    assert {title: found for title in single if (found := doubles(forms[title].ptx))} == {}


@cache
def largest_blocks(kernel: str) -> dict[str, int]:
    """Return the threads of the largest block of each CUDA form among the cases of its suite as it
    stands, by ``suite.kernel.implementation``."""
    suite, _, name = kernel.partition(".")
    plan = build_plan(load_suites([FOLDER / f"{suite}.yaml"]), gpu_count=1)
    largest: dict[str, int] = {}
    for case in plan.cases():
        if case.backend == "numba_cuda" and case.kernel_name == name and case.launch is not None:
            form, threads = f"{kernel}.{case.implementation_name}", case.launch.threads_per_block
            if threads <= ARCHITECTURE_LIMITS.threads_per_block:
                largest[form] = max(threads, largest.get(form, 0))
    return largest


def doubles(text: str) -> list[str]:
    """Arithmetic in double precision, but for that of CUDA's own sine and cosine: they take angles
    beyond 105,615 apart by a product with pi / 2**65."""
    computed = re.findall(r"^\s*(?!mov|cvt|ld|st|\.reg)[\w.]+\.f64\s.*$", text, re.MULTILINE)
    return [line.strip() for line in computed if "0d3BF921FB54442D19" not in line]


def single(kernel: str, compiled: dict[str, Compiled]) -> Compiled:
    """A kernel that is compiled once, in single precision."""
    titles = [title for title in compiled if f" {kernel}(" in title and "float64" not in title]
    (title,) = titles
    return compiled[title]


@pytest.mark.parametrize("kernel", ["vector_add_cuda", "increment_by_one_cuda", "multiply_cuda"])
def test_an_elementwise_kernel_divides_nothing(kernel: str, first: dict[str, Compiled]) -> None:
    assert "div." not in single(kernel, first).ptx


@pytest.mark.parametrize(("tile", "kib"), [(8, 0.5), (16, 2), (32, 8)])
def test_tiles_of_a_product_take_two_squares_of_shared_memory(
    tile: int, kib: float, first: dict[str, Compiled]
) -> None:
    tiles = [title for title in of("matmul.matmul.cuda_tiled", first) if "float32" in title]
    needs = [
        need for title in tiles if f" tile={tile} " in title for need in first[title].needs.values()
    ]
    assert {need.shared_bytes for need in needs} == {kib * 1024}


def test_kernels_are_linked_for_real_where_the_device_in_software_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if (reason := cuda_compiler.missing()) is not None:
        pytest.skip(reason)
    monkeypatch.setenv(software.SWITCH, "1")
    only = {"increment_by_one.increment_by_one.numba_cuda": []}
    monkeypatch.setattr(library_compiler, "_implementations", lambda: only)

    compiled = library_compiler.compile_library(tmp_path)

    assert all(list(kernel.needs) == list(ARCHITECTURES.values()) for kernel in compiled.values())
    assert compiled
    monkeypatch.setattr(library_compiler, "ProcessPoolExecutor", None)
    assert library_compiler.compile_library(tmp_path) == compiled, "they are kept"


@pytest.mark.parametrize("changed", ["text", "setting", "architectures"])
def test_kernels_are_kept_until_something_of_them_changes(
    changed: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "kernels.py").write_text("one")
    monkeypatch.setattr(library_compiler, "ROOT", tmp_path)
    monkeypatch.setattr(library_compiler, "made_from", lambda: [tmp_path / "kernels.py"])
    before = library_compiler.digest()
    assert library_compiler.digest() == before

    if changed == "text":
        (tmp_path / "kernels.py").write_text("two")
    elif changed == "setting":
        monkeypatch.setenv("NUMBA_OPT", "1")
    else:
        monkeypatch.setattr(library_compiler, "ARCHITECTURES", {})

    assert library_compiler.digest() != before


def test_what_kernels_are_made_from_is_all_but_what_reads_results() -> None:
    names = {path.relative_to(FOLDER.parent).as_posix() for path in library_compiler.made_from()}
    assert {
        *("gpubench/kernels/sorting.py", "gpubench/backends/numba_cuda.py", "gpubench/names.py"),
        *("suites/sorting.yaml", "tests/kernels/cuda_compiler.py"),
    } <= names
    assert not [name for name in names if name.startswith("gpubench/report/")]
