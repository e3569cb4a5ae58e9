"""The suites that come with gpubench: they load, stay small where they should, and are true."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpubench.kernels import fractals
from gpubench.suite.loading import load_suite

FOLDER = Path(__file__).parents[2] / "suites"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
PRESETS = (None, "smoke", "full", "advice")


def load(name: str, preset: str | None = None):  # type: ignore[no-untyped-def]
    return load_suite(FOLDER / f"{name}.yaml", preset)


def test_the_first_six_are_there() -> None:
    first = ["increment_by_one", "mandelbrot", "matmul", "multiply", "norm", "vector_add"]
    assert [name for name in NAMES if name in first] == first


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", NAMES)
def test_a_suite_loads_without_a_warning_and_says_what_it_teaches(
    name: str, preset: str | None
) -> None:
    loaded = load(name, preset)
    assert not loaded.warnings
    assert loaded.suite.suite == name
    assert len(loaded.suite.description or "") > 200
    for kernel in loaded.suite.kernels.values():
        assert kernel.work.bytes is not None
        assert kernel.work.flops is not None


@pytest.mark.parametrize("name", NAMES)
def test_the_smoke_preset_draws_enough_samples_for_an_interval_in_little_time(name: str) -> None:
    for kernel in load(name, "smoke").suite.kernels.values():
        sampling = kernel.sampling
        assert sampling.rounds == 1
        assert sampling.repeat == 12
        assert sampling.sample_time == 0.01


def test_vector_add_is_measured_the_way_tutorials_launch_it() -> None:
    for preset in PRESETS:
        kernel = load("vector_add", preset).suite.kernels["vector_add"]
        launch = kernel.implementations["numba_cuda"].launch
        assert launch is not None
        assert 4 in launch.block
        assert kernel.arrays["a"].dtype == "float32"


@pytest.mark.ci
@pytest.mark.parametrize("iterations", [100, 300, 1000])
@pytest.mark.parametrize("n", [64, 512])
def test_the_operations_of_mandelbrot_are_those_it_does(n: int, iterations: int) -> None:
    counts = np.empty((n, n))
    fractals.mandelbrot_parallel(counts, iterations)
    flops = load("mandelbrot").suite.kernels["mandelbrot"].work.flops
    said = flops.evaluate({"n": n, "iterations": iterations})
    assert said == pytest.approx(8 * counts.sum(), rel=0.015)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pictures_of_mandelbrot_may_differ_where_they_are_chaotic_alone(dtype: str) -> None:
    counts = np.empty((96, 96), dtype)
    fractals.mandelbrot_numpy(counts, 100)
    chaotic = counts.copy()
    chaotic[48, :46] = 3  # by as much as may be, in half a percent of the pixels

    def said(found: fractals.Picture) -> str | None:
        return fractals.same_picture({"counts": found}, {"counts": counts})

    assert said(counts) is None
    assert said(chaotic) is None
    one_too_many = said(np.minimum(counts + 1, 100))
    assert one_too_many is not None
    assert one_too_many.startswith("75.")
    assert "counts[0, 0]: 2 instead of 1" in one_too_many
