"""What CuPy asks of cuBLAS, cuFFT, cuRAND and Thrust: of those on a GPU, of NumPy on softcuda."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpubench.backends import devices, software

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed"),
]
on_softcuda = pytest.mark.skipif(
    not software.requested() and bool(devices.known_gpus()), reason="a GPU has these libraries"
)
REALS, COMPLEXES = ("float32", "float64"), ("complex64", "complex128")


@pytest.fixture
def cupy() -> Iterator[Any]:
    software.software_device()
    yield importlib.import_module("cupy")


def draw(shape: tuple[int, ...], dtype: str, seed: int = 1) -> np.ndarray[Any, Any]:
    generator = np.random.default_rng(seed)
    array = generator.integers(-4, 5, shape) + 1j * generator.integers(-4, 5, shape)
    return (array if dtype.startswith("complex") else array.real).astype(dtype)


def assert_equal(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """With the dtype; numbers are whole and small, so that products are exact."""
    found = found.get()
    assert found.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


# --- cuBLAS


@pytest.mark.parametrize("dtype", [*REALS, *COMPLEXES, "float16"])
def test_matrices_are_multiplied(cupy: Any, dtype: str) -> None:
    for shape, other in (
        *(((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,))),
        *(((2, 3, 4), (2, 4, 5)), ((7, 1, 3, 4), (2, 4, 5)), ((3, 0), (0, 5)), ((0, 4), (4, 5))),
    ):
        left, right = draw(shape, dtype), draw(other, dtype, 2)
        assert_equal(cupy.asarray(left) @ cupy.asarray(right), left @ right)


def test_matrices_lie_in_any_order(cupy: Any) -> None:
    dtype = "complex128"
    left, right = draw((6, 8), dtype), draw((8, 10), dtype, 2)
    for turn in (np.asfortranarray, lambda array: array[::2, ::2], lambda array: array[::-1]):
        first, second = turn(left), turn(left).T.conj()
        assert_equal(cupy.asarray(first) @ cupy.asarray(second), first @ second)
    on_device = cupy.asarray(left)
    assert_equal(
        on_device[1:5, 2:7] @ cupy.asarray(right)[2:7, 3:], left[1:5, 2:7] @ right[2:7, 3:]
    )
    assert_equal(on_device.T.conj() @ on_device, left.T.conj() @ left)
    assert_equal(cupy.tensordot(on_device, on_device, axes=2), np.tensordot(left, left, axes=2))
    assert_equal(cupy.einsum("ij,kj->ik", on_device, on_device), left @ left.T)
    assert_equal(cupy.vdot(on_device[0], on_device[1]), np.vdot(left[0], left[1]))
    assert_equal(cupy.outer(on_device[0], on_device[1]), np.outer(left[0], left[1]))


@pytest.mark.parametrize("dtype", [*REALS, *COMPLEXES])
def test_functions_of_cublas(cupy: Any, dtype: str) -> None:
    """As CuPy's iterative solvers call them, with results on the device and on the host."""
    blas = importlib.import_module("cupy.cublas")
    matrix, x, y = draw((4, 6), dtype), draw((6,), dtype, 2), draw((4,), dtype, 3)
    a, on_x, on_y = cupy.asarray(matrix, order="F"), cupy.asarray(x), cupy.asarray(y)
    expected = 2 * (matrix @ x) + 3 * y
    blas.gemv("N", 2, a, on_x, 3, on_y)
    assert_equal(on_y, expected)
    one, other = cupy.asarray(x), cupy.asarray(x[::-1])
    if dtype in REALS:
        assert_equal(blas.dot(one, other), np.dot(x, x[::-1]))
        blas.ger(2, on_y, one, a)
        assert_equal(a, matrix + 2 * np.outer(expected, x))
    else:
        assert_equal(blas.dotu(one, other), np.dot(x, x[::-1]))
        assert_equal(blas.dotc(one, other), np.vdot(x, x[::-1]))
        blas.gerc(2, on_y, one, a)
        assert_equal(a, matrix + 2 * np.outer(expected, x.conj()))
    sizes = np.abs(x.real) + np.abs(x.imag)
    assert_equal(blas.nrm2(one), np.linalg.norm(x))
    assert_equal(blas.asum(one), sizes.sum())
    assert int(blas.iamax(one)) == np.argmax(sizes) + 1
    assert int(blas.iamin(one)) == np.argmin(sizes) + 1
    number = np.zeros((), np.dtype(dtype))
    blas.nrm2(one, out=number.real)
    assert number.real == pytest.approx(np.linalg.norm(x))
    blas.axpy(2, one, other)
    assert_equal(other, 2 * x + x[::-1])
    blas.scal(3, one)
    assert_equal(one, 3 * x)


@pytest.mark.parametrize("dtype", [*REALS, *COMPLEXES])
def test_sums_diagonals_and_squares_of_matrices(cupy: Any, dtype: str) -> None:
    blas = importlib.import_module("cupy.cublas")
    first, second, diagonal = draw((4, 5), dtype), draw((5, 4), dtype, 2), draw((5,), dtype, 3)
    a, b = cupy.asarray(first, order="F"), cupy.asarray(second, order="F")
    assert_equal(blas.geam("N", "H", 2, a, 3, b), 2 * first + 3 * second.T.conj())
    assert_equal(blas.dgmm("R", a, cupy.asarray(diagonal)), first * diagonal)
    square = np.tril(blas.syrk("N", a, lower=True).get())
    np.testing.assert_allclose(square, np.tril(first @ first.T))


# --- cuFFT


@pytest.mark.parametrize("dtype", [*REALS, *COMPLEXES])
def test_signals_are_transformed(cupy: Any, dtype: str) -> None:
    to_real = ("irfft", "irfft2", "irfftn", "hfft")
    names = to_real if dtype in COMPLEXES else ("rfft", "rfft2", "rfftn", "ihfft")
    for length in (1, 7, 12):
        array = draw((3, 5, length), dtype)
        for name in ("fft", "ifft", "fft2", "ifft2", "fftn", *names):
            if length == 1 and name in to_real:
                continue  # nothing would be left
            found = getattr(cupy.fft, name)(cupy.asarray(array))
            assert_equal(found, getattr(np.fft, name)(array).astype(found.dtype), 1e-4)


def test_transforms_take_any_axis_length_and_norm(cupy: Any) -> None:
    array = draw((4, 6, 5), "complex128")
    native = cupy.asarray(array)
    for axis, n, norm in ((0, None, "ortho"), (1, 9, "forward"), (-1, 3, None)):
        found = cupy.fft.fft(native, n=n, axis=axis, norm=norm)
        assert_equal(found, np.fft.fft(array, n=n, axis=axis, norm=norm))
    assert_equal(cupy.fft.fftn(native, axes=(0, 2)), np.fft.fftn(array, axes=(0, 2)))
    assert_equal(cupy.fft.fftn(native.T), np.fft.fftn(array.T))
    assert_equal(cupy.fft.irfft(native, n=9, axis=0), np.fft.irfft(array, n=9, axis=0))
    scipy = importlib.import_module("cupyx.scipy.fft")
    assert_equal(scipy.fft(native, overwrite_x=True), np.fft.fft(array))


# --- cuRAND


def test_random_numbers_come_again_with_their_seed(cupy: Any) -> None:
    def numbers(seed: int) -> list[Any]:
        state = cupy.random.RandomState(seed)
        drawn = [state.random_sample(9), state.normal(size=9), state.randint(0, 50, 9)]
        generator = cupy.random.default_rng(seed)
        drawn += [generator.random(9), generator.integers(0, 50, 9), generator.standard_normal(9)]
        return [array.get().tolist() for array in drawn]

    first = numbers(3)
    assert first == numbers(3)
    assert all(one != other for one, other in zip(first, numbers(4), strict=True))


def test_random_numbers_are_distributed_as_said(cupy: Any) -> None:
    """Each mean within 6 of its standard errors, and the dtype that was asked for."""
    cupy.random.seed(7)
    generator, n = cupy.random.default_rng(7), 20_000
    for drawn, mean, deviation, dtype in (
        (cupy.random.rand(n), 0.5, 12**-0.5, "float64"),
        (cupy.random.uniform(2, 4, n, dtype="float32"), 3, 2 * 12**-0.5, "float32"),
        (cupy.random.randn(n, dtype="float32"), 0, 1, "float32"),
        (cupy.random.lognormal(0, 0.5, n), np.exp(0.125), 0.61, "float64"),
        (cupy.random.poisson(4, n), 4, 2, "int64"),
        (cupy.random.randint(0, 11, n), 5, 10**0.5, "int64"),
        (generator.random(n, dtype="float32"), 0.5, 12**-0.5, "float32"),
        (generator.uniform(2, 4, n), 3, 2 * 12**-0.5, "float64"),
        (generator.standard_normal(n), 0, 1, "float64"),
        (generator.standard_normal(dtype="float32", out=cupy.empty(n, "float32")), 0, 1, "float32"),
        (generator.gamma(4, 1, n), 4, 2, "float64"),
        (generator.beta(1, 1, n), 0.5, 12**-0.5, "float64"),
        (generator.binomial(10, cupy.full(n, 0.5), n), 5, 2.5**0.5, "int64"),
        (generator.integers(0, 10, n, endpoint=True), 5, 10**0.5, "int64"),
    ):
        assert (drawn.shape, drawn.dtype) == ((n,), dtype)
        numbers = drawn.get().astype(float)
        assert abs(numbers.mean() - mean) < 6 * deviation / n**0.5
        assert numbers.std() == pytest.approx(deviation, rel=0.1)


def test_drawing_without_replacement(cupy: Any) -> None:
    assert sorted(cupy.random.choice(50, 50, replace=False).get()) == list(range(50))
    assert sorted(cupy.random.permutation(50).get()) == list(range(50))
    array = cupy.arange(50)
    cupy.random.shuffle(array)
    assert sorted(array.get()) == list(range(50)) != array.get().tolist()


# --- Thrust and CUB: how arrays are sorted is in test_cupy.py


def test_programs_may_call_thrust(cupy: Any) -> None:
    """As fbpic does, by the names of arguments; the array itself is sorted too."""
    array, order = cupy.asarray([3.0, 1.0, 2.0]), cupy.zeros(3, np.intp)
    importlib.import_module("cupy.cuda.thrust").argsort(
        dtype=array.dtype,
        idx_start=order.data.ptr,
        data_start=array.data.ptr,
        keys_start=0,
        shape=array.shape,
    )
    assert (order.get().tolist(), array.get().tolist()) == ([1, 2, 0], [1, 2, 3])


def test_programs_may_ask_for_cub(cupy: Any) -> None:
    array = draw((5, 40), "float64")
    native, accelerators = cupy.asarray(array), importlib.import_module("cupy._core")
    before = accelerators.get_routine_accelerators()
    accelerators.set_routine_accelerators(["cub"])
    try:
        assert_equal(native.sum(), array.sum())
    finally:
        accelerators.set_routine_accelerators(before)


# --- in the order of a stream


def test_libraries_work_in_the_order_of_their_stream(cupy: Any) -> None:
    """Each reads what the kernel before wrote, and the kernel after reads what it wrote."""
    with cupy.cuda.Stream(non_blocking=True):
        array = cupy.eye(64)
        for _ in range(10):
            array = cupy.sort((array + 1) @ cupy.eye(64) - 1, axis=0)[::-1]
            array = cupy.fft.ifft(cupy.fft.fft(array)).real + 0
        found = array.get()
    np.testing.assert_allclose(found[0], np.ones(64), atol=1e-9)


@on_softcuda
def test_a_sort_is_captured_and_replayed(cupy: Any) -> None:
    """CuPy refuses to capture cuBLAS and cuFFT itself."""
    stream = cupy.cuda.Stream(non_blocking=True)
    thrust = importlib.import_module("cupy.cuda.thrust")
    with stream:
        array = cupy.array([3.0, 1.0, 2.0])
        stream.begin_capture()
        thrust.sort(array.dtype, array.data.ptr, 0, array.shape)
        graph = stream.end_capture()
        array[...] = cupy.array([6.0, 5.0, 4.0])
        graph.launch(stream)
        stream.synchronize()
    assert array.get().tolist() == [4, 5, 6]


@on_softcuda
def test_the_sanitizer_knows_what_a_library_wrote(cupy: Any) -> None:
    """Else a kernel that reads a product would read memory that nothing was written to."""
    software.take_faults()
    software.set_option("sanitize", "1")
    try:
        copy = cupy.RawKernel(
            'extern "C" __global__ void copy_of_a_product(const double *a, double *b)'
            "{ b[threadIdx.x] = a[threadIdx.x]; }",
            "copy_of_a_product",
        )
        product, result = cupy.ones((4, 4)) @ cupy.eye(4), cupy.zeros(16)
        copy((1,), (16,), (product, result))
        assert result.get().tolist() == [1] * 16
        assert software.take_faults() == ()
        copy((1,), (16,), (cupy.ndarray(16, memptr=fresh(cupy, 128)), result))
        result.get()
        assert [fault.kind for fault in software.take_faults()] == ["uninitialised"]
    finally:
        software.set_option("sanitize", "0")


def fresh(cupy: Any, size: int) -> Any:
    """Memory that nothing was written to, none of the pool's."""
    return cupy.cuda.MemoryPool().malloc(size)


@on_softcuda
def test_what_the_host_does_stands_without_counts_among_launches(cupy: Any) -> None:
    software.count_launches(True)
    try:
        software.take_counts()
        cupy.fft.fft(cupy.ones(4)).get()
        last = software.take_counts()[-1]
    finally:
        software.count_launches(False)
    assert last.kernel == "cufftExecZ2Z"
    assert "ran on the host in place of NVIDIA's library" in (last.missing or "")


# --- what is not there


@on_softcuda
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda cupy: cupy.linalg.svd(cupy.eye(3)), "cusolverDnCreate"),
        (lambda cupy: cupy.linalg.solve(cupy.eye(3), cupy.ones(3)), "cusolverDnCreate"),
    ],
)
def test_functions_that_are_not_there_are_refused_by_name(cupy: Any, call: Any, name: str) -> None:
    with pytest.raises(Exception, match=f"softcuda, the CUDA device in software, has no {name}; "):
        call(cupy)


@on_softcuda
def test_addresses_of_the_host_are_refused(cupy: Any) -> None:
    cublas = importlib.import_module("cupy_backends.cuda.libs.cublas")
    handle, array = cupy.cuda.device.get_cublas_handle(), np.ones(4)
    at, one = array.ctypes.data, np.ones(1)
    with pytest.raises(cublas.CUBLASError, match=r"cublasDaxpy.*are not the device's memory"):
        cublas.daxpy(handle, 4, one.ctypes.data, at, 1, at, 1)
