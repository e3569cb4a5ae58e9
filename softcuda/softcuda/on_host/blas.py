"""cuBLAS on the host: products of matrices and vectors, by NumPy.

Matrices lie by columns, as in the manual of cuBLAS, from which names and orders of arguments are.
Numbers of 16 bits are multiplied and added up as 32. Systems of equations, triangular and packed
matrices are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, TypeAlias

import numpy as np

from softcuda.on_host.libraries import Library, RefusedError
from softcuda.on_host.work import Array, host_number, queue, synchronize, view

VERSION = 130000
"""What ``cublasGetVersion`` answers: 13.0."""

NOT_INITIALIZED = 1
NOT_SUPPORTED, EXECUTION_FAILED = 15, 13
LEFT, UPPER, CONJUGATED = 0, 1, 2
"""Of ``cublasSideMode_t``, ``cublasFillMode_t`` and ``cublasOperation_t``."""

REALS: dict[str, Any] = {"S": np.float32, "D": np.float64}
COMPLEXES: dict[str, Any] = {"C": np.complex64, "Z": np.complex128}
NUMBERS = REALS | COMPLEXES
"""The dtypes by the letters in the names of functions."""

DATA_TYPES: dict[int, Any] = {
    0: np.float32,
    1: np.float64,
    2: np.float16,
    3: np.int8,
    4: np.complex64,
    5: np.complex128,
    10: np.int32,
}
"""Of ``cudaDataType``."""
COMPUTE_TYPES: dict[int, Any] = {
    **dict.fromkeys((64, 65), np.float16),
    **dict.fromkeys((68, 69, 74, 75, 77), np.float32),
    **dict.fromkeys((70, 71), np.float64),
    **dict.fromkeys((72, 73), np.int32),
}
"""What scalars are in, by ``cublasComputeType_t``; complex where the result is."""
_WIDER: dict[Any, Any] = {np.dtype(np.float16): np.float32, np.dtype(np.int8): np.int32}

Scalar: TypeAlias = Callable[[], Any]
"""Reads a factor: one of the host was read at the call, one of the device is read by the stream."""


@dataclass
class _Handle:
    stream: int = 0
    on_device: bool = False
    """Whether factors and results are in memory of the device."""
    math_mode: int = 0


_handles: dict[int, _Handle] = {}
_numbers = count(1)


def _create(address: int) -> None:
    number = next(_numbers)
    _handles[number] = _Handle()
    host_number(address, np.uintp)[...] = number


def _destroy(handle: int) -> int | None:
    return None if _handles.pop(handle, None) else NOT_INITIALIZED


def _get_version(handle: int, address: int) -> None:
    host_number(address, np.intc)[...] = VERSION


def _getter(field: str, dtype: Any) -> Callable[[int, int], None]:
    def get(handle: int, address: int) -> None:
        host_number(address, dtype)[...] = getattr(_handles[handle], field)

    return get


def _setter(field: str, kind: Any) -> Callable[[int, int], None]:
    def set_(handle: int, value: int) -> None:
        setattr(_handles[handle], field, kind(value))

    return set_


# ---- what functions have in common --------------------------------------------------------------


def _vector(address: int, dtype: Any, length: int, step: int) -> Array:
    """Return a vector whose elements are ``step`` apart; a negative one goes from the end."""
    itemsize = np.dtype(dtype).itemsize
    return view(address, dtype, (length,), (abs(step) * itemsize,))[:: -1 if step < 0 else 1]


def _matrix(
    address: int, dtype: Any, rows: int, columns: int, leading: int, batch: int = 1, stride: int = 0
) -> Array:
    """Return matrices ``[batch, rows, columns]`` whose columns are ``leading`` elements apart and
    which are ``stride`` elements apart."""
    itemsize = np.dtype(dtype).itemsize
    strides = (stride * itemsize, itemsize, leading * itemsize)
    return view(address, dtype, (batch, rows, columns), strides)


def _turned(matrix: Array, operation: int) -> Array:
    """Return ``op(A)``: as it is, transposed, or transposed and conjugated
    (``cublasOperation_t``)."""
    turned = np.swapaxes(matrix, -1, -2) if operation else matrix
    return np.conj(turned) if operation == CONJUGATED else turned


def _stored(operation: int, rows: int, columns: int) -> tuple[int, int]:
    """Return the shape in memory of a matrix that has this shape after the operation."""
    return (columns, rows) if operation else (rows, columns)


def _scalar(handle: int, address: int, dtype: Any) -> Scalar:
    if _handles[handle].on_device:
        number = view(address, dtype, ())
        return lambda: number[()]
    value = host_number(address, dtype)[()]
    return lambda: value


def _add(result: Array, product: Array, beta: Any) -> None:
    """Write ``product + beta * result``. Where ``beta`` is 0, the result need not be a number
    before."""
    if beta != 0:
        product = product + beta * result.astype(product.dtype, copy=False)
    result[...] = product.astype(result.dtype, copy=False)


def _give(name: str, handle: int, address: int, dtype: Any, value: Callable[[], Any]) -> None:
    """Write one number to the device, or to the host, which waits for it."""
    state = _handles[handle]
    result = (view if state.on_device else _host)(address, dtype, ())

    def write() -> None:
        result[...] = value()

    queue(name, state.stream, write, *([result] if state.on_device else []))
    if not state.on_device:
        synchronize(state.stream)


def _host(address: int, dtype: Any, shape: Sequence[int]) -> Array:
    return host_number(address, dtype)


# ---- products of matrices -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Product:
    """``result = alpha * op(left) @ op(right) + beta * result``, for batches of matrices."""

    handle: int
    operations: tuple[int, int]
    shape: tuple[int, int, int]
    """Rows and columns of the result, and what is summed over."""
    alpha: Scalar
    beta: Scalar

    def matrices(
        self, a: _Operand, b: _Operand, c: _Operand, batch: int = 1
    ) -> tuple[Array, Array, Array]:
        """Return the three in memory, ``[batch, ., .]``."""
        rows, columns, inner = self.shape
        shapes = (
            _stored(self.operations[0], rows, inner),
            _stored(self.operations[1], inner, columns),
            (rows, columns),
        )
        first, second, third = (
            _matrix(one.address, one.dtype, *shape, one.leading, batch, one.stride)
            for one, shape in zip((a, b, c), shapes, strict=True)
        )
        return first, second, third

    def compute(self, left: Array, right: Array, result: Array) -> None:
        """Multiply now."""
        wide = _WIDER.get(left.dtype, left.dtype)
        first = _turned(left.astype(wide, copy=False), self.operations[0])
        second = _turned(right.astype(wide, copy=False), self.operations[1])
        _add(result, self.alpha() * np.matmul(first, second), self.beta())

    def queue(self, name: str, *matrices: Array) -> None:
        """Have the stream multiply."""
        if matrices[-1].size:
            stream = _handles[self.handle].stream
            queue(name, stream, partial(self.compute, *matrices), matrices[-1])


@dataclass(frozen=True)
class _Operand:
    """Matrices as functions of the library are given them."""

    address: int
    dtype: Any
    leading: int
    stride: int = 0


def _product(handle: int, numbers: Sequence[int], alpha: int, beta: int, scale: Any) -> _Product:
    first, second, *shape = numbers
    rows, columns, inner = shape
    factors = _scalar(handle, alpha, scale), _scalar(handle, beta, scale)
    return _Product(handle, (first, second), (rows, columns, inner), *factors)


def _gemm(letter: str, handle: int, *given: int) -> None:
    dtype, (*numbers, alpha, a, lda, b, ldb, beta, c, ldc) = NUMBERS[letter], given
    product = _product(handle, numbers, alpha, beta, dtype)
    operands = _Operand(a, dtype, lda), _Operand(b, dtype, ldb), _Operand(c, dtype, ldc)
    product.queue(f"cublas{letter}gemm", *product.matrices(*operands))


def _gemm_strided_batched(letter: str, handle: int, *given: int) -> None:
    dtype = NUMBERS[letter]
    *numbers, alpha, a, lda, of_a, b, ldb, of_b, beta, c, ldc, of_c, batch = given
    product = _product(handle, numbers, alpha, beta, dtype)
    operands = (
        _Operand(a, dtype, lda, of_a),
        _Operand(b, dtype, ldb, of_b),
        _Operand(c, dtype, ldc, of_c),
    )
    product.queue(f"cublas{letter}gemmStridedBatched", *product.matrices(*operands, batch=batch))


def _gemm_batched(letter: str, handle: int, *given: int) -> None:
    """Multiply matrices whose addresses are in arrays on the device, which the stream reads."""
    dtype = NUMBERS[letter]
    *numbers, alpha, a, lda, b, ldb, beta, c, ldc, batch = given
    product = _product(handle, numbers, alpha, beta, dtype)
    arrays = [view(address, np.uintp, (batch,)) for address in (a, b, c)]
    synchronize(_handles[handle].stream)  # the addresses may be on their way
    for addresses in zip(*arrays, strict=True):
        first, second, third = map(_Operand, map(int, addresses), [dtype] * 3, (lda, ldb, ldc))
        product.queue(f"cublas{letter}gemmBatched", *product.matrices(first, second, third))


def _sgemm_ex(handle: int, *given: int) -> None:
    *numbers, alpha, a, of_a, lda, b, of_b, ldb, beta, c, of_c, ldc = given
    product = _product(handle, numbers, alpha, beta, np.float32)
    operands = (
        _Operand(a, _dtype(of_a), lda),
        _Operand(b, _dtype(of_b), ldb),
        _Operand(c, _dtype(of_c), ldc),
    )
    product.queue("cublasSgemmEx", *product.matrices(*operands))


def _gemm_ex(handle: int, *given: int) -> None:
    *numbers, alpha, a, of_a, lda, b, of_b, ldb, beta, c, of_c, ldc, compute, _ = given
    product = _product(handle, numbers, alpha, beta, _scale(compute, of_c))
    operands = (
        _Operand(a, _dtype(of_a), lda),
        _Operand(b, _dtype(of_b), ldb),
        _Operand(c, _dtype(of_c), ldc),
    )
    product.queue("cublasGemmEx", *product.matrices(*operands))


def _gemm_strided_batched_ex(handle: int, *given: int) -> None:
    *numbers, alpha, a, of_a, lda, next_a, b, of_b, ldb, next_b = given[:14]
    beta, c, of_c, ldc, next_c, batch, compute, _ = given[14:]
    product = _product(handle, numbers, alpha, beta, _scale(compute, of_c))
    operands = (
        _Operand(a, _dtype(of_a), lda, next_a),
        _Operand(b, _dtype(of_b), ldb, next_b),
        _Operand(c, _dtype(of_c), ldc, next_c),
    )
    product.queue("cublasGemmStridedBatchedEx", *product.matrices(*operands, batch=batch))


def _dtype(number: int) -> Any:
    if number not in DATA_TYPES:
        raise RefusedError(f"for the cudaDataType {number}")
    return DATA_TYPES[number]


def _scale(compute: int, result: int) -> Any:
    """Return the dtype of the factors."""
    if compute not in COMPUTE_TYPES:
        raise RefusedError(f"for the cublasComputeType_t {compute}")
    dtype, is_complex = COMPUTE_TYPES[compute], np.issubdtype(_dtype(result), np.complexfloating)
    return np.result_type(dtype, np.complex64) if is_complex else dtype


# ---- matrices with vectors, and alone -----------------------------------------------------------


def _gemv(letter: str, handle: int, *given: int) -> None:
    dtype = NUMBERS[letter]
    operation, rows, columns, alpha, a, lda, x, step, beta, y, step_y = given
    matrix = _matrix(a, dtype, rows, columns, lda)[0]
    inner, length = (rows, columns) if operation else (columns, rows)
    vector, result = _vector(x, dtype, inner, step), _vector(y, dtype, length, step_y)
    first, second = _scalar(handle, alpha, dtype), _scalar(handle, beta, dtype)

    def write() -> None:
        _add(result, first() * (_turned(matrix, operation) @ vector), second())

    queue(f"cublas{letter}gemv", _handles[handle].stream, write, _forward(result))


def _ger(letter: str, conjugate: bool, handle: int, *given: int) -> None:
    dtype = NUMBERS[letter]
    rows, columns, alpha, x, step, y, step_y, a, lda = given
    matrix, first = _matrix(a, dtype, rows, columns, lda)[0], _scalar(handle, alpha, dtype)
    left, right = _vector(x, dtype, rows, step), _vector(y, dtype, columns, step_y)

    def write() -> None:
        matrix[...] += first() * np.outer(left, np.conj(right) if conjugate else right)

    queue(f"cublas{letter}ger", _handles[handle].stream, write, matrix)


def _geam(letter: str, handle: int, *given: int) -> None:
    dtype = NUMBERS[letter]
    of_a, of_b, rows, columns, alpha, a, lda, beta, b, ldb, c, ldc = given
    left = _matrix(a, dtype, *_stored(of_a, rows, columns), lda)[0]
    right = _matrix(b, dtype, *_stored(of_b, rows, columns), ldb)[0]
    result = _matrix(c, dtype, rows, columns, ldc)[0]
    first, second = _scalar(handle, alpha, dtype), _scalar(handle, beta, dtype)

    def write() -> None:
        result[...] = first() * _turned(left, of_a) + second() * _turned(right, of_b)

    queue(f"cublas{letter}geam", _handles[handle].stream, write, result)


def _dgmm(letter: str, handle: int, *given: int) -> None:
    dtype = NUMBERS[letter]
    side, rows, columns, a, lda, x, step, c, ldc = given
    matrix, result = (_matrix(at, dtype, rows, columns, ld)[0] for at, ld in ((a, lda), (c, ldc)))
    diagonal = _vector(x, dtype, rows if side == LEFT else columns, step)

    def write() -> None:
        result[...] = matrix * (diagonal[:, np.newaxis] if side == LEFT else diagonal)

    queue(f"cublas{letter}dgmm", _handles[handle].stream, write, result)


def _syrk(letter: str, handle: int, *given: int) -> None:
    dtype = NUMBERS[letter]
    part, operation, rows, inner, alpha, a, lda, beta, c, ldc = given
    matrix = _matrix(a, dtype, *_stored(operation, rows, inner), lda)[0]
    result = _matrix(c, dtype, rows, rows, ldc)[0]
    first, second = _scalar(handle, alpha, dtype), _scalar(handle, beta, dtype)

    def write() -> None:
        turned = _turned(matrix, operation)
        whole = result.copy()
        _add(whole, first() * (turned @ turned.T), second())
        kept = (np.triu if part == UPPER else np.tril)(np.ones(whole.shape, bool))
        np.copyto(result, whole, where=kept)

    queue(f"cublas{letter}syrk", _handles[handle].stream, write, result)


# ---- vectors ------------------------------------------------------------------------------------


def _axpy(letter: str, handle: int, length: int, alpha: int, *given: int) -> None:
    dtype, (x, step, y, step_y) = NUMBERS[letter], given
    vector, result = _vector(x, dtype, length, step), _vector(y, dtype, length, step_y)
    factor = _scalar(handle, alpha, dtype)

    def write() -> None:
        result[...] += factor() * vector

    queue(f"cublas{letter}axpy", _handles[handle].stream, write, _forward(result))


def _scal(name: str, dtype: Any, of_factor: Any, handle: int, *given: int) -> None:
    length, alpha, x, step = given
    vector, factor = _vector(x, dtype, length, step), _scalar(handle, alpha, of_factor)

    def write() -> None:
        vector[...] *= factor()

    queue(name, _handles[handle].stream, write, _forward(vector))


def _dot(name: str, dtype: Any, conjugate: bool, handle: int, *given: int) -> None:
    length, x, step, y, step_y, result = given
    left, right = _vector(x, dtype, length, step), _vector(y, dtype, length, step_y)
    product = np.vdot if conjugate else np.dot
    _give(name, handle, result, dtype, lambda: product(left, right))


def _reduce(
    name: str, dtype: Any, reduction: Callable[[Array], Any], of_result: Any, *given: int
) -> None:
    """Reduce the elements of a vector to one number."""
    handle, length, x, step, result = given
    vector = _vector(x, dtype, length, step)
    _give(name, handle, result, of_result, lambda: reduction(vector))


def _sum_of_sizes(vector: Array) -> Any:
    """Return the sum of ``|x|``; of complex numbers, of ``|re| + |im|``."""
    return np.sum(_sizes(vector))


def _sizes(vector: Array) -> Array:
    sizes: Array = np.abs(vector.real) + np.abs(vector.imag)
    return sizes


def _place_of(which: Callable[[Array], Any], vector: Array) -> int:
    """Return the place of the largest or smallest number, from 1 on; 0 of none."""
    return int(which(_sizes(vector))) + 1 if vector.size else 0


def _forward(vector: Array) -> Array:
    """Return the same elements from the lowest address on."""
    return vector[::-1] if vector.strides[0] < 0 else vector


# ---- the names ----------------------------------------------------------------------------------

_Functions: TypeAlias = dict[str, tuple[str, Callable[..., int | None]]]

_OF_HANDLES: _Functions = {
    "cublasCreate_v2": ("p", _create),
    "cublasDestroy_v2": ("p", _destroy),
    "cublasGetVersion_v2": ("pp", _get_version),
    "cublasGetStream_v2": ("pp", _getter("stream", np.uintp)),
    "cublasSetStream_v2": ("pp", _setter("stream", int)),
    "cublasGetPointerMode_v2": ("pp", _getter("on_device", np.intc)),
    "cublasSetPointerMode_v2": ("pi", _setter("on_device", bool)),
    "cublasGetMathMode": ("pp", _getter("math_mode", np.intc)),
    "cublasSetMathMode": ("pi", _setter("math_mode", int)),
}
_OF_MANY_TYPES: _Functions = {
    "cublasSgemmEx": ("piiiiippiipiippii", _sgemm_ex),
    "cublasGemmEx": ("piiiiippiipiippiiii", _gemm_ex),
    "cublasGemmStridedBatchedEx": ("piiiiippiilpiilppiiliii", _gemm_strided_batched_ex),
}


def _of_one_type(letter: str) -> _Functions:
    """Return the functions for the numbers of a letter."""
    dtype = NUMBERS[letter]
    real = np.dtype(dtype).type(0).real.dtype
    to_real = {"C": "Sc", "Z": "Dz"}.get(letter, letter)
    by_real = {"C": "Cs", "Z": "Zd"}.get(letter, letter)
    functions: _Functions = {
        f"cublas{letter}gemm_v2": ("piiiiippipippi", partial(_gemm, letter)),
        f"cublas{letter}gemmBatched": ("piiiiippipippii", partial(_gemm_batched, letter)),
        f"cublas{letter}gemmStridedBatched": (
            "piiiiippilpilppili",
            partial(_gemm_strided_batched, letter),
        ),
        f"cublas{letter}gemv_v2": ("piiippipippi", partial(_gemv, letter)),
        f"cublas{letter}geam": ("piiiippippipi", partial(_geam, letter)),
        f"cublas{letter}dgmm": ("piiipipipi", partial(_dgmm, letter)),
        f"cublas{letter}syrk_v2": ("piiiippippi", partial(_syrk, letter)),
        f"cublas{letter}axpy_v2": ("pippipi", partial(_axpy, letter)),
    }
    # Of complex numbers there are products without conjugation and with.
    for suffix in ("u", "c") if letter in COMPLEXES else ("",):
        name = f"cublas{letter}dot{suffix}"
        functions[f"{name}_v2"] = ("pipipip", partial(_dot, name, dtype, suffix == "c"))
        ger = partial(_ger, letter, suffix == "c")
        functions[f"cublas{letter}ger{suffix}_v2"] = ("piippipipi", ger)
    for start, factor in ((letter, dtype), (by_real, real)):
        name = f"cublas{start}scal"
        functions[f"{name}_v2"] = ("pippi", partial(_scal, name, dtype, factor))
    reductions: dict[str, tuple[Callable[[Array], Any], Any]] = {
        f"cublas{to_real}nrm2": (np.linalg.norm, real),
        f"cublas{to_real}asum": (_sum_of_sizes, real),
        f"cublasI{letter.lower()}amax": (partial(_place_of, np.argmax), np.intc),
        f"cublasI{letter.lower()}amin": (partial(_place_of, np.argmin), np.intc),
    }
    for name, (reduction, of_result) in reductions.items():
        reduce = partial(_reduce, name, dtype, reduction, of_result)
        functions[f"{name}_v2"] = ("pipip", reduce)
    return functions


CUBLAS = Library(
    name="cublas",
    module="cupy_backends.cuda.libs.cublas",
    error="CUBLASError",
    not_supported=NOT_SUPPORTED,
    failed=EXECUTION_FAILED,
    functions={
        **_OF_HANDLES,
        **_OF_MANY_TYPES,
        **{name: each for letter in NUMBERS for name, each in _of_one_type(letter).items()},
    },
    beside=("cublasLt",),
)
