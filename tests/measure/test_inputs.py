"""What a suite says about arrays is what kernels get."""

import sys
import tracemalloc

import numpy as np
import pytest
from builders import SCALE, case_of, plan_of

from gpubench.errors import KernelError, PlanError
from gpubench.measure.bound_case import opened
from gpubench.measure.inputs import draw_inputs


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


LAYOUTS = """
import numpy as np
def draw(values, generator):
    return generator.standard_normal((values["n"], 2 * values["n"]))
def fortran(values, generator):
    return np.asfortranarray(draw(values, generator))[:, :values["n"]]
def columns(values, generator):
    return draw(values, generator)[:, ::2]
def backwards(values, generator):
    return draw(values, generator)[::-1, :values["n"] - 1:-1]
def repeated(values, generator):
    return np.broadcast_to(draw(values, generator)[0, ::2], (values["n"],) * 2)
def several(values, generator):
    return fortran(values, generator), columns(values, generator)
def read_only(values, generator):
    array = fortran(values, generator)
    array.flags.writeable = False
    return array
def add(a, b):
    b += a
"""
ADDED = """
sizes: {n: [8]}
arrays:
  a: {shape: [n, n], dtype: float64, %s}
  b: {shape: [n, n], dtype: float64, intent: inout, %s}
call: [a, b]
implementations: {numpy: {function: 'laid_out:add'}}
"""
FILL = "fill: {function: 'laid_out:%s'}"


@pytest.fixture
def laid_out(tmp_path, monkeypatch):
    """A case of a kernel whose arrays are declared in these words."""
    (tmp_path / "laid_out.py").write_text(LAYOUTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "laid_out", raising=False)
    return lambda a, b="fill: ones": case_of(tmp_path, ADDED % (a, b), "numpy")


@pytest.mark.parametrize(
    ("function", "strides"),
    [
        ("fortran", (8, 64)),
        ("columns", (128, 16)),
        ("backwards", (-128, -8)),
        ("repeated", (0, 16)),
    ],
)
def test_what_a_function_gives_keeps_its_layout_up_to_the_call(laid_out, function, strides):
    inputs = draw_inputs(laid_out(FILL % function))
    assert inputs.arrays["a"].strides == strides
    with opened(laid_out(FILL % function), inputs) as execution:
        for _ in range(2):
            assert execution.call.args[0].strides == strides
            assert execution.outputs()["b"].any()
            execution.move()
        assert not np.shares_memory(execution.call.args[0], inputs.arrays["a"])


def test_what_is_written_keeps_its_layout_when_it_is_restored(laid_out):
    case = laid_out("fill: ones", FILL % "columns")
    inputs = draw_inputs(case)
    with opened(case, inputs) as execution:
        for restore in (execution.restore, execution.refresh, execution.move):
            execution.call()
            restore()
            assert execution.call.args[1].strides == (128, 16)
        execution.restore()
        np.testing.assert_array_equal(execution.call.args[1], inputs.arrays["b"])


def test_arrays_of_init_keep_their_layouts_which_are_told(tmp_path, laid_out):
    laid_out("fill: ones")
    kernel = ADDED.replace("%s", "order: C", 1).replace("%s", "fill: ones") + (
        "init: {function: 'laid_out:several', returns: [x, y]}\n"
    )
    inputs = draw_inputs(case_of(tmp_path, kernel, "numpy"))
    assert inputs.layouts == {"x": "F", "y": "strides (128, 16)"}
    assert inputs.nbytes == 2 * 512 + 512 + (7 * 128 + 7 * 16 + 8)


@pytest.mark.parametrize(
    ("a", "b", "layouts"),
    [
        ("order: F", "fill: ones, order: F", {"a": "F", "b": "F"}),
        ("order: F, fill: {formula: i + 10 * j}", "fill: {like: a}", {"a": "F", "b": "F"}),
        ("order: F", "fill: {like: a}, order: C", {"a": "F"}),
        (FILL % "columns", "fill: {like: a}", dict.fromkeys("ab", "strides (128, 16)")),
        (FILL % "fortran" + ", order: F", "fill: {like: a}, order: F", {"a": "F", "b": "F"}),
        ("fill: arange, order: C", "fill: 3", {}),
    ],
)
def test_arrays_lie_in_the_order_that_the_suite_declares(laid_out, a, b, layouts):
    assert draw_inputs(laid_out(a, b)).layouts == layouts


def test_an_order_changes_no_value(laid_out):
    fortran, plain = (draw_inputs(laid_out(f"order: {order}")).arrays["a"] for order in "FC")
    np.testing.assert_array_equal(fortran, plain)


def test_what_is_written_only_is_allocated_in_its_order(tmp_path):
    kernel = SCALE.replace("[n], dtype: float32, intent: out", "[2, n], dtype: float32, order: F")
    kernel = kernel.replace("order: F", "order: F, intent: out")
    arrays = draw_inputs(case_of(tmp_path, kernel, "numpy")).arrays
    assert arrays["out"].flags.f_contiguous
    assert np.isnan(arrays["out"]).all()


def test_an_order_may_be_a_parameter(tmp_path):
    kernel = ADDED % ("order: order_of_a", "fill: ones")
    kernel += "parameters: {order_of_a: [C, F]}\n"
    cases = plan_of(tmp_path, kernel).cases()
    layouts = {case.identity: draw_inputs(case).layouts for case in cases}
    assert layouts == {"n=8 order_of_a=C": {}, "n=8 order_of_a=F": {"a": "F"}}


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (FILL % "fortran" + ", order: C", "fill: ones", "array 'a' came with the layout F; the su"),
        (FILL % "columns" + ", order: F", "fill: ones", r"array 'a' came .* strides \(128, 16\);"),
        ("fill: ones", FILL % "repeated", r"array 'b' is written, .* place \(strides \(0, 16\)\)"),
    ],
)
def test_a_layout_that_cannot_be_meant_is_named(laid_out, a, b, message):
    with pytest.raises(KernelError, match=message):
        draw_inputs(laid_out(a, b))


def test_an_array_stays_read_only_unless_the_kernel_writes_it(laid_out):
    case = laid_out(FILL % "read_only", FILL % "read_only")
    inputs = draw_inputs(case)
    with opened(case, inputs) as execution:
        a, b = execution.call.args
        assert (a.flags.writeable, b.flags.writeable) == (False, True)
        assert a.flags.f_contiguous
        assert b.flags.f_contiguous
        execution.give(draw_inputs(case))  # puts values into what no kernel may write
        assert not a.flags.writeable


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


def test_a_new_axis_at_its_default_draws_the_same(tmp_path):
    axis = SCALE.replace(
        "arrays:", "parameters: {dt: {values: [float32, float64], default: float32}}\narrays:", 1
    )
    axis = axis.replace("  a: {shape: [n], dtype: float32}", "  a: {shape: [n], dtype: dt}")
    before, after = (
        draw_inputs(case_of(tmp_path, one, "numpy")).arrays["a"] for one in (SCALE, axis)
    )
    np.testing.assert_array_equal(before, after)
