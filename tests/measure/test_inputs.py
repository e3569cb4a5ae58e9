"""What a suite says about arrays is what kernels get."""

import tracemalloc

import numpy as np
import pytest
from builders import SCALE, case_of

from gpubench.errors import KernelError, PlanError
from gpubench.measure.execution import opened
from gpubench.measure.inputs import FILLERS, draw_inputs
from gpubench.suite.types import FILLS


def arrays_of(folder, line):
    kernel = SCALE.replace("  a: {shape: [n], dtype: float32}", f"  a: {line}")
    return draw_inputs(case_of(folder, kernel, "numpy")).arrays


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{shape: [n], dtype: float32, fill: zeros}", np.zeros(64, np.float32)),
        ("{shape: [n], dtype: float64, fill: ones}", np.ones(64)),
        ("{shape: [n], dtype: int16, fill: 7}", np.full(64, 7, np.int16)),
        ("{shape: [2, n // 2], dtype: int64, fill: arange}", np.arange(64).reshape(2, 32)),
        (
            "{shape: [2, n // 2], dtype: float64, fill: {formula: i * j % 7 / n}}",
            np.outer([0, 1], np.arange(32)) % 7 / 64,
        ),
        (
            "{shape: [n], dtype: int32, fill: {formula: n - at, indices: [at]}}",
            np.arange(64, 0, -1, dtype=np.int32),
        ),
        (
            "{shape: [n], dtype: float32, fill: {function: 'measured_kernels:fill_downwards'}}",
            np.arange(64, 0, -1, dtype=np.float32),
        ),
    ],
)
def test_a_fill_makes_the_array_that_it_names(tmp_path, line, expected):
    found = arrays_of(tmp_path, line)["a"]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_normal_is_centred_and_of_the_dtype(tmp_path, dtype):
    a = arrays_of(tmp_path, f"{{shape: [100 * n], dtype: {dtype}, fill: normal}}")["a"]
    assert a.dtype == dtype
    assert abs(a.astype(complex).mean()) < 0.1
    assert 0.9 < np.abs(a.real).std() / np.sqrt(1 - 2 / np.pi) < 1.1


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool"])
def test_integers_are_uniform_unless_the_suite_says_otherwise(tmp_path, dtype):
    a = arrays_of(tmp_path, f"{{shape: [10 * n], dtype: {dtype}}}")["a"]
    assert a.dtype == dtype
    assert (a.min(), a.max()) == ((0, 1) if dtype == "bool" else (0, 100))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_uniform_is_from_0_to_1(tmp_path, dtype):
    a = arrays_of(tmp_path, f"{{shape: [100 * n], dtype: {dtype}, fill: uniform}}")["a"]
    assert a.dtype == dtype
    for part in (a.real, a.imag) if a.dtype.kind == "c" else (a,):
        assert 0 <= part.min() < 0.01
        assert 0.99 < part.max() <= 1


def test_like_copies_another_array(tmp_path):
    arrays = arrays_of(
        tmp_path,
        "{shape: [n], dtype: float32, fill: {like: c}}\n  c: {shape: [n], dtype: float32}",
    )
    np.testing.assert_array_equal(arrays["a"], arrays["c"])
    assert arrays["a"] is not arrays["c"]


def test_a_function_that_fills_the_wrong_shape_is_named(tmp_path):
    line = "{shape: [n], dtype: float32, fill: {function: 'measured_kernels:fill_too_short'}}"
    message = r"array 'a' came as float32 \(63,\); the suite declares float32 \(64,\)"
    with pytest.raises(KernelError, match=message):
        arrays_of(tmp_path, line)


def test_init_makes_several_arrays_at_once(tmp_path):
    kernel = """
    sizes: {n: [5]}
    init: {function: 'measured_kernels:ragged', returns: [starts, a]}
    call: [a]
    returns: [sum]
    implementations:
      numpy: {function: 'measured_kernels:total'}
    """
    arrays = draw_inputs(case_of(tmp_path, kernel, "numpy")).arrays
    np.testing.assert_array_equal(arrays["starts"], np.arange(6))
    assert arrays["a"].shape == (5,)


def test_constants_go_to_functions_that_draw_and_to_the_call(tmp_path, monkeypatch):
    (tmp_path / "decaying.py").write_text(
        "import numpy as np\n"
        "def draw(values, generator):\n"
        "    assert values == {'n': 5, 'rows': 10, 'rate': 0.5, 'mode': 'fast'}\n"
        "    return values['rate'] ** np.arange(values['rows'])\n"
        "def scale(a, rate, rows, mode, out):\n"
        "    assert (rate, rows, mode) == (0.5, 10, 'fast')\n"
        "    out[:] = rate * a\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    kernel = """
    sizes: {n: [5]}
    let: {rows: 2 * n, rate: 0.5, mode: "'fast'"}
    arrays:
      a: {shape: [rows], dtype: float64, fill: {function: 'decaying:draw'}}
      out: {shape: [rows], dtype: float64, intent: out}
    call: [a, rate, rows, mode, out]
    implementations: {numpy: {function: 'decaying:scale'}}
    """
    case = case_of(tmp_path, kernel, "numpy")
    with opened(case, draw_inputs(case)) as execution:
        outputs = execution.outputs()
    np.testing.assert_array_equal(outputs["out"], 0.5 ** np.arange(1, 11))


def test_filling_by_a_formula_needs_little_memory_beside_the_array(tmp_path):
    line = "{shape: [100, 2000 * n], dtype: uint8, fill: {formula: (i + j) % 7 * 2 - 1 + i / i}}"
    case = case_of(tmp_path, SCALE.replace("{shape: [n], dtype: float32}", line, 1), "numpy")
    with pytest.raises(PlanError, match=r"is nan at \[0, 0\]; uint8 takes whole numbers"):
        case.filled(case.array_specs["a"])
    line = line.replace(" + i / i", " + 1")
    case = case_of(tmp_path, SCALE.replace("{shape: [n], dtype: float32}", line, 1), "numpy")
    tracemalloc.start()
    filled = case.filled(case.array_specs["a"])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (filled.shape, filled[3, 5], filled[99, 127999]) == ((100, 128000), 2, 2 * (128098 % 7))
    assert most < filled.nbytes + 16 * 2**20


def test_each_word_of_fill_has_something_that_makes_it():
    assert FILLERS.keys() == set(FILLS)


def test_a_word_that_nothing_makes_is_refused(tmp_path, monkeypatch):
    monkeypatch.delitem(FILLERS, "ones")
    with pytest.raises(KernelError, match="unknown fill 'ones'; allowed: normal, uniform"):
        arrays_of(tmp_path, "{shape: [n], dtype: float32, fill: ones}")


def test_a_new_axis_at_its_default_draws_the_same(tmp_path):
    axis = SCALE.replace(
        "arrays:", "parameters: {dt: {values: [float32, float64], default: float32}}\narrays:", 1
    )
    axis = axis.replace("  a: {shape: [n], dtype: float32}", "  a: {shape: [n], dtype: dt}")
    before, after = (
        draw_inputs(case_of(tmp_path, one, "numpy")).arrays["a"] for one in (SCALE, axis)
    )
    np.testing.assert_array_equal(before, after)
