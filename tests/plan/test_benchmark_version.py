"""A benchmark's version changes with what is measured, and with nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_args, get_origin

import pytest

from gpubench.plan import version as hashed
from gpubench.plan.plan import Plan
from gpubench.plan.version import benchmark_version
from gpubench.suite.expressions import Expression
from gpubench.suite.model import DeclaredLaunch, Implementation, Kernel, Model

PlanOf = Callable[..., Plan]

KERNEL = """
title: A kernel
sizes: {n: [100], m: [7]}
parameters: {dtype: [float64], tile: [4]}
arrays:
  a: {shape: [n * m], dtype: dtype, fill: ones}
  b: {shape: [n], dtype: int32, intent: out}
init: {function: pkg:init, returns: [c, d]}
scalars: {alpha: {value: 2.5, dtype: dtype}, beta: {value: 1}}
call: [a, b, alpha, beta, c, d]
implementations:
  numpy: {function: pkg:f, backend: numpy}
  tiled:
    factory: pkg:make
    with: {tile: tile, fast: true}
    backend: numba_cuda
    launch: {block: [32, 64], grid: cover, over: [n], shared_bytes: 8 * tile}
devices: [cpu, "cuda:0"]
work: {bytes: n, flops: n}
measure: [kernel, end_to_end]
"""


def version(plan: Plan, time: str = "kernel", name: str = "tiled") -> str:
    return benchmark_version(plan.loaded[0].suite.kernels["small"], name, time)


SAME = {
    "a size": "n: [100]|n: {pow2: [4, 9]}",
    "a value of a parameter": "tile: [4]|tile: [8, 16]",
    "a title": "title: A kernel|title: The kernel",
    "the order of arrays": "alpha: {value: 2.5, dtype: dtype}, beta: {value: 1}|"
    "beta: {value: 1}, alpha: {value: 2.5, dtype: dtype}",
    "the order of constants": "tile: tile, fast: true|fast: true, tile: tile",
    "another implementation": "pkg:f,|pkg:another,",
    "blocks": "block: [32, 64]|block: [[tile, 2]]",
    "grids": "grid: cover|grid: [1, 2]",
    "devices": '[cpu, "cuda:0"]|[cpu, "cuda:*"]',
    "work": "flops: n|flops: 2 * n",
    "spaces in a formula": "n * m|n*m",
    "a default that is written": "dtype: dtype, fill: ones|dtype: dtype, intent: in, fill: ones",
    "other times": "measure: [kernel, end_to_end]|measure: [kernel]",
    "what is compared": "measure:|check: {rtol: 1, outputs: {b: {atol: 2}}}\nmeasure:",
    "a rule": "measure:|exclude: [{when: n > 100}]\nmeasure:",
}

OTHER = {
    "a default, which cases without a name then have": "n: [100]|n: {values: [100], default: 100}",
    "a shape": "shape: [n * m]|shape: [m * n]",
    "a dtype": "dtype: int32|dtype: int64",
    "an order in memory": "dtype: int32|dtype: int32, order: F",
    "a cast": "factory: pkg:make|factory: pkg:make\n    cast: float32",
    "a fill": "fill: ones|fill: normal",
    "an intent": "intent: out|intent: inout",
    "the function that draws data": "pkg:init|pkg:start",
    "what it returns": "returns: [c, d]|returns: [d, c]",
    "a scalar": "value: 2.5|value: 2.25",
    "a scalar's kind": "value: 1}|value: 1.0}",
    "the order of arguments": "[a, b, alpha, beta, c, d]|[a, b, beta, alpha, c, d]",
    "the factory": "pkg:make|pkg:build",
    "a constant": "fast: true|fast: false",
    "what is covered": "over: [n]|over: [m]",
    "shared memory": "8 * tile|16 * tile",
    "cooperation": "grid: cover|grid: cover, cooperative: true",
}


@pytest.mark.parametrize("change", SAME)
def test_history_is_kept_when_only_this_changes(change: str, plan_of: PlanOf) -> None:
    changed = KERNEL.replace(*SAME[change].split("|"))
    assert changed != KERNEL

    assert version(plan_of(changed)) == version(plan_of(KERNEL))


@pytest.mark.parametrize("change", OTHER)
def test_history_starts_anew_when_this_changes(change: str, plan_of: PlanOf) -> None:
    changed = KERNEL.replace(*OTHER[change].split("|"))
    assert changed != KERNEL

    assert version(plan_of(changed)) != version(plan_of(KERNEL))


def test_each_time_and_each_implementation_has_its_own(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL)

    versions = {version(plan, t, n) for t in ("kernel", "cold") for n in ("numpy", "tiled")}

    assert len(versions) == 4


def test_a_version_is_the_same_in_every_release(plan_of: PlanOf) -> None:
    assert version(plan_of(KERNEL)) == "b7753a921fd8c833"


# --- a new axis whose default is what everything had before

WITHOUT_AXES = """
sizes: {n: [100]}
let: {steps: 20}
arrays:
  a: {shape: [n], dtype: float64, fill: {formula: i % 7}}
  b: {shape: [n], dtype: float64, fill: 2.5}
  out: {shape: [n], dtype: float64, intent: out}
tables:
  t: {rows: n, columns: {c: {dtype: int64}, d: {dtype: int64, nulls: 0.5, fill: {formula: i * 2}}}}
init: {function: pkg:init, returns: [made]}
scalars: {alpha: {value: 4, dtype: float32}}
call: [t, a, b, made, alpha, steps, out]
memory_limit: 4096 * n
implementations:
  numpy: {function: pkg:f, backend: numpy}
  tiled:
    factory: pkg:make
    with: {tile: 16, mode: "'fast'", exact: true}
    options: {chunks: 2 * n}
    backend: numba_cuda
    launch: {block: [32], over: [n], shared_bytes: 128}
devices: [cpu, "cuda:0"]
"""

NEW_AXES = {
    "let.*": ("steps: 20|steps: 2 * k", "k: {values: [5, 10], default: 10}"),
    "arrays.*.shape[]": ("a: {shape: [n]|a: {shape: [n * k]", "k: {values: [1, 2], default: 1}"),
    "arrays.*.dtype": (
        "b: {shape: [n], dtype: float64|b: {shape: [n], dtype: k",
        "k: {values: [float32, float64], default: float64}",
    ),
    "arrays.*.fill.formula": ("formula: i % 7|formula: i % k", "k: {values: [7, 9], default: 7}"),
    "tables.*.rows": ("rows: n|rows: n + 2 * k", "k: {values: [0, 1], default: 0}"),
    "tables.*.columns.*.dtype": (
        "c: {dtype: int64|c: {dtype: k",
        "k: {values: [int32, int64], default: int64}",
    ),
    "tables.*.columns.*.fill.formula": (
        "formula: i * 2|formula: i * k",
        "k: {values: [2, 3], default: 2}",
    ),
    "tables.*.columns.*.nulls": ("nulls: 0.5|nulls: k", "k: {values: [0.5, 0], default: 0.5}"),
    "scalars.*.value": ("value: 4|value: k", "k: {values: [4, 8], default: 4}"),
    "scalars.*.dtype": (
        "dtype: float32}|dtype: k}",
        "k: {values: [float32, float64], default: float32}",
    ),
    "call[]": ("made, alpha|made, k, alpha", "k: {values: [1, 2], default: 1}"),
    "memory_limit": ("4096 * n|k * n", "k: {values: [4096, 8192], default: 4096}"),
    "implementations.*.with.*": ("tile: 16|tile: k", "k: {values: [8, 16], default: 16}"),
    "implementations.*.options.*": ("chunks: 2 * n|chunks: k * n", "k: {values: [2], default: 2}"),
    "implementations.*.launch.over[]": ("over: [n]|over: [n - k]", "k: {values: [0], default: 0}"),
    "implementations.*.launch.shared_bytes": (
        "shared_bytes: 128|shared_bytes: 8 * k",
        "k: {values: [16, 32], default: 16}",
    ),
}
"""For each place: what is written there before and after, and the new axis."""

MORE_AXES = {
    "a text": ("mode: \"'fast'\"|mode: k", "k: {values: [fast, slow], default: fast}"),
    "a boolean": ("exact: true|exact: k", "k: {values: [true, false], default: true}"),
    "a fraction": ("nulls: 0.5|nulls: 1 / k", "k: {values: [2, 4], default: 2}"),
    "what was the field's default": (
        "c: {dtype: int64|c: {dtype: int64, nulls: k",
        "k: {values: [0, 0.5], default: 0}",
    ),
    "a number that fills": ("fill: 2.5|fill: {formula: k}", "k: {values: [2.5, 3], default: 2.5}"),
    "a choice": (
        "a: {shape: [n]|a: {shape: [n if k == 'row' else 2 * n]",
        "k: {values: [row, column], default: row}",
    ),
    "a boolean that decides": (
        "a: {shape: [n]|a: {shape: [2 * n if k else n]",
        "k: {values: [true, false], default: false}",
    ),
    "whole quotients": ('rows: n|rows: "cdiv(n, k) // k"', "k: {values: [1, 2], default: 1}"),
    "a power": ("over: [n]|over: [n ** k / k - (k - 1)]", "k: {values: [1, 2], default: 1}"),
    "what falls away": ("rows: n|rows: n + n * k", "k: {values: [0, 1], default: 0}"),
    "a negative number": ("4096 * n|4096 * n * (-k)", "k: {values: [-1, -2], default: -1}"),
}


def with_axis(change: str, axis: str) -> str:
    before, after = change.split("|")
    assert before in WITHOUT_AXES
    kernel = WITHOUT_AXES.replace(before, after, 1)
    return kernel.replace("let:", f"parameters: {{{axis}}}\nlet:", 1)


@pytest.mark.parametrize("place", [*NEW_AXES, *MORE_AXES])
def test_history_is_kept_with_a_new_axis_at_its_default(place: str, plan_of: PlanOf) -> None:
    change, axis = {**NEW_AXES, **MORE_AXES}[place]
    before, after = plan_of(WITHOUT_AXES), plan_of(with_axis(change, axis))

    for name in ("numpy", "tiled"):
        assert version(after, name=name) == version(before, name=name)


@pytest.mark.parametrize("place", [place for place in NEW_AXES if place != "call[]"])
def test_history_starts_anew_with_another_default(place: str, plan_of: PlanOf) -> None:
    change, axis = NEW_AXES[place]
    number = {"float64": "float32", "float32": "float64", "int64": "int32"}
    default = axis.rpartition(" ")[2].rstrip("}")
    other = number.get(default, "77" if place != "tables.*.columns.*.nulls" else "0.25")
    changed = with_axis(change, axis.replace(f"default: {default}", f"default: {other}"))

    assert version(plan_of(changed)) != version(plan_of(WITHOUT_AXES))


def test_zipped_axes_keep_history_too(plan_of: PlanOf) -> None:
    zipped = WITHOUT_AXES.replace(
        "{n: [100]}", "{n: {zip: {n: [100, 200], k: {values: [1, 2], default: 1}}}}"
    ).replace("a: {shape: [n]", "a: {shape: [k * n]")

    assert version(plan_of(zipped)) == version(plan_of(WITHOUT_AXES))


def test_what_stands_in_no_axis_is_hashed_as_written(plan_of: PlanOf) -> None:
    written = WITHOUT_AXES.replace("rows: n", "rows: n * 1 + 2 * 8")
    with_new = written.replace("n * 1 + 2 * 8", "n * 1 + 2 * 8 + k")
    with_new = with_new.replace("let:", "parameters: {k: {values: [0, 1], default: 0}}\nlet:", 1)

    assert version(plan_of(with_new)) == version(plan_of(written))
    assert version(plan_of(written)) != version(plan_of(WITHOUT_AXES))


# --- what was called otherwise

RENAMED = {
    "a size": [
        ("n: [100]", "count: {values: [100], was: n}"),
        ("[n * m]", "[count * m]"),
        ("[n]", "[count]"),
        ("work: {bytes: n, flops: n}", "work: {bytes: count}"),
    ],
    "a parameter that is a dtype": [
        ("dtype: [float64]", "kind: {values: [float64], was: [type, dtype]}"),
        ("dtype: dtype, fill", "dtype: kind, fill"),
        ("2.5, dtype: dtype", "2.5, dtype: kind"),
    ],
    "a parameter of a factory": [
        ("tile: [4]", "width: {values: [4], was: tile}"),
        ("tile: tile", "tile: width"),
        ("8 * tile", "8 * width"),
    ],
    "one of axes that move together": [
        (
            "{n: [100], m: [7]}",
            "{s: {zip: {n: [100], k: {values: [7], was: m}}}}",
        ),
        ("n * m", "n * k"),
    ],
    "an implementation": [("tiled:", "blocked:"), ("factory:", "was: tiled\n    factory:")],
    "a kernel": [("title: A kernel", "was: [tiny, smallest]")],
    "a function": [
        ("pkg:make", "pkg:build"),
        ("with:", "was: [pkg.old:build, 'pkg:make']\n    with:"),
    ],
    "the function that draws data": [
        ("{function: pkg:init,", "{function: pkg:start, was: 'pkg:init',")
    ],
}


@pytest.mark.parametrize("what", RENAMED)
def test_history_is_kept_under_another_name(what: str, plan_of: PlanOf) -> None:
    changed = KERNEL
    for before, after in RENAMED[what]:
        assert before in changed
        changed = changed.replace(before, after)
    name = "blocked" if "blocked:" in changed else "tiled"

    assert version(plan_of(changed), name=name) == version(plan_of(KERNEL))


def places(annotation: Any, path: str = "", fields: set[str] | None = None) -> Iterator[str]:
    """Places below a part of the format where a formula or the name of an axis may stand."""
    if annotation is Expression:
        yield path
    elif isinstance(annotation, type) and issubclass(annotation, Model):
        for name, field in annotation.model_fields.items():
            if fields is None or name in fields:
                inner = f"{path}.{field.alias or name}".lstrip(".")
                if name in ("dtype", "call"):
                    yield inner if name == "dtype" else f"{inner}[]"
                yield from places(field.annotation, inner)
    for part in get_args(annotation):
        step = {dict: ".*", tuple: "[]"}.get(get_origin(annotation), "")
        yield from places(part, f"{path}{step}")


def test_every_place_of_a_formula_that_is_hashed_is_tried() -> None:
    launch = places(DeclaredLaunch, "implementations.*.launch", hashed._OF_LAUNCH)
    implementation = places(Implementation, "implementations.*", hashed._OF_IMPLEMENTATION)
    found = {*places(Kernel, "", hashed._OF_KERNEL), *implementation, *launch}

    assert found == NEW_AXES.keys()
