"""What suites expand to: both examples of the format, then axis by axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from gpubench.errors import PlanError
from gpubench.plan.plan import Plan, build_plan
from gpubench.plan.rules import selected
from gpubench.suite.loading import load_suite

PlanOf = Callable[..., Plan]

VECTOR_ADD = """\
version: 1
suite: vector_add
backend: numba
title: b[i] += a[i]

kernels:
  vector_add:
    sizes: {n: {pow2: [10, 24, 2]}}            # 2**10, 2**12 ... 2**24, both ends included
    arrays:
      a: {shape: [n], dtype: float32, fill: normal}
      b: {shape: [n], dtype: float32, fill: normal, intent: inout}
    call: [a, b, n]
    implementations:
      numpy:          {function: gpubench.kernels.elementwise:vector_add_numpy}
      numba_parallel: {function: gpubench.kernels.elementwise:vector_add_parallel}
      numba_cuda:
        function: gpubench.kernels.elementwise:vector_add_cuda
        launch: {block: [4, 64, 256, 1024], grid: cover}   # cover: just enough blocks for n threads
    devices: [cpu, "cuda:0"]
    work: {bytes: 3 * n * itemsize(b), flops: n}
"""

MATMUL = """\
version: 1
suite: matmul
backend: numba_cuda
kernels:
  matmul:
    sizes:
      shape: {zip: {m: [256, 1024, 2048], k: [256, 1024, 512], n: [256, 1024, 2048]}}
    parameters:
      dtype: [float32, float64]
      tile: [8, 16, 32]
    arrays:
      A: {shape: [m, k], dtype: dtype, fill: normal}
      B: {shape: [k, n], dtype: dtype, fill: normal}
      C: {shape: [m, n], dtype: dtype, intent: out}
    call: [A, B, C]
    baseline: numpy
    implementations:
      numpy: {function: gpubench.kernels.linear_algebra:matmul_numpy}
      cuda_naive:
        function: gpubench.kernels.linear_algebra:matmul_cuda
        launch: {block: [[8, 8], [16, 16], [32, 8]], grid: cover, over: [n, m]}
      cuda_tiled:
        factory: gpubench.kernels.linear_algebra:make_matmul_tiled
        with: {tile: tile}
        launch: {block: [[tile, tile]], grid: ["cdiv(n, tile)", "cdiv(m, tile)"]}
    devices: [cpu, "cuda:*"]
    work: {flops: 2 * m * n * k, bytes: (m*k + k*n + m*n) * itemsize(A)}
    check: {rtol: {float32: 1.0e-3, float64: 1.0e-10}, atol: 1.0e-6}
    measure: [kernel, end_to_end, compile]
    exclude: [{when: dtype == 'float64' and tile == 32}]
    skip:
      - when: 2 * tile**2 * itemsize(A) > shared_memory_per_block
        reason: the tiles do not fit in shared memory
presets:
  smoke: {sizes: {shape: {zip: {m: [64], k: [64], n: [64]}}}, parameters: {tile: [8]}}
"""


def identities(plan: Plan, implementation: str) -> list[str]:
    return [c.identity for c in plan.cases() if c.implementation_name == implementation]


def counts(plan: Plan) -> dict[str, int]:
    return dict(Counter(case.implementation_name for case in plan.cases()))


@pytest.fixture
def example(tmp_path: Path) -> Callable[..., Plan]:
    def made(text: str, preset: str | None = None, gpu_count: int = 1) -> Plan:
        name = "matmul" if "matmul" in text else "vector_add"
        path = tmp_path / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        return build_plan([load_suite(path, preset)], gpu_count)

    return made


def test_the_smallest_example_expands_as_described(example: Callable[..., Plan]) -> None:
    plan = example(VECTOR_ADD)

    assert counts(plan) == {"numpy": 8, "numba_parallel": 8, "numba_cuda": 32}
    assert identities(plan, "numpy") == [f"n={2**e}" for e in range(10, 25, 2)]
    assert identities(plan, "numba_cuda")[:5] == [
        "n=1024 block=4 device=cuda:0",
        "n=1024 block=64 device=cuda:0",
        "n=1024 block=256 device=cuda:0",
        "n=1024 block=1024 device=cuda:0",
        "n=4096 block=4 device=cuda:0",
    ]
    assert plan.faults() == ()
    assert plan.warnings() == ()


def test_the_second_example_expands_as_described(example: Callable[..., Plan]) -> None:
    plan = example(MATMUL)

    assert counts(plan) == {
        "numpy": 3 * 2,
        "cuda_naive": 3 * 2 * 3,
        "cuda_tiled": 3 * (2 * 3 - 1),
    }
    assert identities(plan, "numpy") == [
        "k=256 m=256 n=256 dtype=float32",
        "k=256 m=256 n=256 dtype=float64",
        "k=1024 m=1024 n=1024 dtype=float32",
        "k=1024 m=1024 n=1024 dtype=float64",
        "k=512 m=2048 n=2048 dtype=float32",
        "k=512 m=2048 n=2048 dtype=float64",
    ]
    assert identities(plan, "cuda_naive")[:3] == [
        "k=256 m=256 n=256 dtype=float32 block=8x8 device=cuda:0",
        "k=256 m=256 n=256 dtype=float32 block=16x16 device=cuda:0",
        "k=256 m=256 n=256 dtype=float32 block=32x8 device=cuda:0",
    ]
    assert identities(plan, "cuda_tiled")[:5] == [
        "k=256 m=256 n=256 dtype=float32 tile=8 block=8x8 grid=32x32 device=cuda:0",
        "k=256 m=256 n=256 dtype=float32 tile=16 block=16x16 grid=16x16 device=cuda:0",
        "k=256 m=256 n=256 dtype=float32 tile=32 block=32x32 grid=8x8 device=cuda:0",
        "k=256 m=256 n=256 dtype=float64 tile=8 block=8x8 grid=32x32 device=cuda:0",
        "k=256 m=256 n=256 dtype=float64 tile=16 block=16x16 grid=16x16 device=cuda:0",
    ]
    assert plan.faults() == ()


def test_a_preset_makes_the_second_example_small(example: Callable[..., Plan]) -> None:
    plan = example(MATMUL, "smoke", gpu_count=0)

    assert identities(plan, "cuda_tiled") == [
        "k=64 m=64 n=64 dtype=float32 tile=8 block=8x8 grid=8x8 device=cuda:0",
        "k=64 m=64 n=64 dtype=float64 tile=8 block=8x8 grid=8x8 device=cuda:0",
    ]


SMALL = """
sizes: {n: [8, 16]}
parameters: {dtype: [float32, float64]}
arrays: {a: {shape: [n], dtype: dtype, intent: inout}}
call: [a]
implementations:
  numpy: {function: pkg:f, backend: numpy}
  cuda: {function: pkg:g, backend: numba_cuda, launch: {block: [32, 64]}}
devices: [cpu, "cuda:0"]
"""


def test_identities_do_not_depend_on_the_order_of_the_file(plan_of: PlanOf) -> None:
    zipped = SMALL.replace("{n: [8, 16]}", "{z: {zip: {n: [8, 16], m: [1, 2]}}, b: [3]}")
    zipped = zipped.replace("call: [a]", "call: [a, m, b, dtype, alpha]")
    zipped = zipped.replace("{dtype: [float32, float64]}", "{dtype: [float32], alpha: [0.5]}")
    reordered = zipped.replace(
        "{z: {zip: {n: [8, 16], m: [1, 2]}}, b: [3]}", "{b: [3], z: {zip: {m: [1, 2], n: [8, 16]}}}"
    ).replace("{dtype: [float32], alpha: [0.5]}", "{alpha: [0.5], dtype: [float32]}")
    assert reordered != zipped

    written, moved = list(plan_of(zipped).cases()), list(plan_of(reordered).cases())

    assert [case.identity for case in written] == [case.identity for case in moved]
    assert written[0].identity == "b=3 m=1 n=8 alpha=0.5 dtype=float32"
    assert written[0].group.axes.size_names == ("b", "m", "n")


def test_an_axis_at_its_default_is_left_out(plan_of: PlanOf) -> None:
    before = identities(plan_of(SMALL), "numpy")
    more = SMALL.replace(
        "dtype: [float32, float64]}",
        "dtype: [float32, float64], order: {values: [C, F], default: C}}",
    ).replace("call: [a]", "call: [a, order]")

    after = identities(plan_of(more), "numpy")

    assert before == [
        "n=8 dtype=float32",
        "n=8 dtype=float64",
        "n=16 dtype=float32",
        "n=16 dtype=float64",
    ]
    assert set(before) < set(after)
    assert set(after) - set(before) == {f"{identity} order=F" for identity in before}


def test_a_default_is_the_same_value_only_if_it_is_of_the_same_kind(plan_of: PlanOf) -> None:
    text = SMALL.replace("dtype: [float32, float64]", "p: {values: [1, true, 1.0], default: 1}")
    text = text.replace("dtype: dtype", "dtype: int32").replace("call: [a]", "call: [a, p]")
    text = text.replace("[8, 16]", "[8]")

    assert identities(plan_of(text), "numpy") == ["n=8", "n=8 p=true", "n=8 p=1.0"]


def test_an_implementation_multiplies_over_what_it_uses_itself(plan_of: PlanOf) -> None:
    plan = plan_of(
        """
        sizes: {n: [8, 16]}
        parameters: {tile: [2, 4], width: [1, 2, 3], count: [1, 2]}
        arrays: {a: {shape: [n], dtype: float32, intent: inout}}
        call: [a]
        implementations:
          numpy: {function: pkg:f, backend: numpy}
          made: {factory: pkg:make, with: {tile: tile}, backend: numba}
          shaped: {function: pkg:g, backend: numba_cuda, launch: {block: [[width, 2]]}}
          spread: {function: pkg:h, backend: numba, threads: [1, 2 * count]}
        devices: [cpu, "cuda:0"]
        """
    )

    assert counts(plan) == {"numpy": 2, "made": 4, "shaped": 6, "spread": 8}
    assert identities(plan, "shaped")[:2] == [
        "n=8 width=1 block=1x2 device=cuda:0",
        "n=8 width=2 block=2x2 device=cuda:0",
    ]
    assert identities(plan, "spread")[:2] == ["n=8 count=1 threads=1", "n=8 count=1 threads=2"]


def test_a_function_that_draws_data_is_given_what_nothing_else_uses(plan_of: PlanOf) -> None:
    plan = plan_of(
        """
        sizes: {n: [8]}
        parameters: {density: [0.1, 0.5], tile: [2, 4]}
        arrays:
          a: {shape: [n], dtype: float32, fill: {function: pkg:draw}}
          b: {shape: [n], dtype: float32, intent: out}
        call: [a, b]
        implementations:
          numpy: {function: pkg:f, backend: numpy}
          made: {factory: pkg:make, with: {tile: tile}, backend: numba}
        """
    )

    assert identities(plan, "numpy") == ["n=8 density=0.1", "n=8 density=0.5"]
    assert counts(plan) == {"numpy": 2, "made": 4}


GRIDS = {
    "cover": ["n=100 block=32 device=cuda:0"],
    "[cover, 4, [2, 2]]": [
        "n=100 block=32 device=cuda:0",
        "n=100 block=32 grid=4 device=cuda:0",
        "n=100 block=32 grid=2x2 device=cuda:0",
    ],
    "[1, 2]": ["n=100 block=32 grid=1 device=cuda:0", "n=100 block=32 grid=2 device=cuda:0"],
    '["cdiv(n, 64)", 3]': ["n=100 block=32 grid=2x3 device=cuda:0"],
    "n": ["n=100 block=32 grid=100 device=cuda:0"],
    "[1125899906842624]": ["n=100 block=32 grid=1125899906842624 device=cuda:0"],
}


@pytest.mark.parametrize("grid", GRIDS)
def test_a_grid_is_named_unless_it_covers(grid: str, plan_of: PlanOf) -> None:
    plan = plan_of(
        f"""
        sizes: {{n: [100]}}
        arrays: {{a: {{shape: [n], dtype: float32, intent: inout}}}}
        call: [a]
        baseline: cuda
        implementations:
          cuda:
            function: pkg:g
            backend: numba_cuda
            launch: {{block: [32], grid: {grid}}}
        devices: ["cuda:0"]
        """
    )

    assert identities(plan, "cuda") == GRIDS[grid]


DEVICES = {
    ("cuda:*", 0): ["cuda:0"],
    ("cuda:*", 1): ["cuda:0"],
    ("cuda:*", 3): ["cuda:0", "cuda:1", "cuda:2"],
    ("cuda:1", 0): ["cuda:1"],
}


@pytest.mark.parametrize(("device", "gpu_count"), DEVICES)
def test_devices_are_those_of_the_machine(device: str, gpu_count: int, plan_of: PlanOf) -> None:
    text = SMALL.replace("cuda:0", device)
    plan = plan_of(text, gpu_count)

    devices = {case.device: None for case in plan.cases() if case.backend == "numba_cuda"}

    assert list(devices) == DEVICES[device, gpu_count]
    assert len(identities(plan, "numpy")) == 4


def test_a_device_that_is_named_twice_is_measured_once(plan_of: PlanOf) -> None:
    plan = plan_of(SMALL.replace('"cuda:0"', '"cuda:0", "cuda:*"'), gpu_count=2)

    assert counts(plan) == {"numpy": 4, "cuda": 2 * 2 * 2 * 2}
    assert plan.warnings() == ()


def test_a_shape_without_a_value_names_the_case_and_the_formula(plan_of: PlanOf) -> None:
    plan = plan_of(SMALL.replace("block: [32, 64]", "block: [n // 16]"))

    cases = {case.identity: case for case in plan.cases() if case.implementation_name == "cuda"}
    broken = cases["n=8 dtype=float32 device=cuda:0"]
    with pytest.raises(PlanError) as error:
        _ = broken.launch

    assert str(error.value) == broken.fault
    place, _, message = str(error.value).partition(": ")
    assert Path(place.split(":")[0]).name == "small.yaml"
    assert message == (
        "small cuda at n=8 dtype=float32: implementations.cuda.launch.block `n // 16`: is 0; "
        "a whole number of at least 1 is needed: change the formula, or `exclude` such cases"
    )


def test_a_shape_without_a_value_ends_no_other_case(plan_of: PlanOf) -> None:
    plan = plan_of(SMALL.replace("block: [32, 64]", "block: [n // 16]"))

    assert counts(plan) == {"numpy": 4, "cuda": 4}
    assert {case.identity for case in plan.cases() if case.fault is None} == {
        *identities(plan, "numpy"),
        "n=16 dtype=float32 block=1 device=cuda:0",
        "n=16 dtype=float64 block=1 device=cuda:0",
    }


def test_a_case_without_a_shape_has_no_number_of_blocks(plan_of: PlanOf) -> None:
    plan = plan_of(SMALL.replace("block: [32, 64]", "block: [n // 16]"))

    kept = [case.identity for case in selected(plan.cases(), "blocks > 0")]
    assert kept == [
        "n=16 dtype=float32 block=1 device=cuda:0",
        "n=16 dtype=float64 block=1 device=cuda:0",
    ]


def test_an_include_without_a_value_is_a_case_that_says_so(plan_of: PlanOf) -> None:
    plan = plan_of(SMALL + "include: [{implementation: numpy, values: {n: 32}}]\n")

    (broken,) = (case for case in plan.cases() if case.fault is not None)
    assert broken.identity == "n=32 dtype=?"
    assert "this entry gives no value for dtype; the axes of 'numpy' are n, dtype" in broken.fault


def test_an_excluded_point_needs_no_shape(plan_of: PlanOf) -> None:
    text = SMALL.replace("block: [32, 64]", "block: [n // 16]") + "exclude: [{when: n < 16}]\n"

    assert identities(plan_of(text), "cuda") == [
        "n=16 dtype=float32 block=1 device=cuda:0",
        "n=16 dtype=float64 block=1 device=cuda:0",
    ]


def test_a_plan_is_not_made_at_once(plan_of: PlanOf) -> None:
    huge = "{n: {linear: [1, 50]}, m: {linear: [1, 50]}}"
    plan = plan_of(SMALL.replace("{n: [8, 16]}", huge).replace("call: [a]", "call: [a, m]"))

    first = next(plan.cases())

    assert first.identity == "m=1 n=1 dtype=float32"
    assert next(plan.cases()) == first
    assert len({first, next(plan.cases())}) == 1


def test_cases_are_made_once_as_long_as_they_are_few(
    plan_of: PlanOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = """
    sizes: {n: [8, 16]}
    arrays: {a: {shape: [n], dtype: float32, intent: inout}}
    call: [a]
    implementations: {numpy: {function: "pkg:f"}}
    """
    few = plan_of(kernel)
    assert all(one is other for one, other in zip(few.cases(), few.cases(), strict=True))

    monkeypatch.setattr("gpubench.plan.plan.MAX_KEPT", 1)
    many = plan_of(kernel)
    assert [case.identity for case in many.cases()] == ["n=8", "n=16"]
    assert [*many.cases()] == [*many.cases()]
    assert many.faults() == ()
