"""A plan that another process left is the plan that this one would make."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gpubench import asv_planning
from gpubench.asv_planning import plan_blueprints
from gpubench.backends import devices, registry
from gpubench.errors import PlanError
from gpubench.plan.case import Case
from gpubench.plan.rules import skip_reason
from gpubench.plan.stored import Blueprint, Fields, stored

LIBRARY = Path(__file__).resolve().parents[2] / "suites"

KERNELS = "def numpy_form(a, out):\n    out[:] = a\n"

SUITE = """
version: 1
suite: sample
title: a bit of everything
kernels:
  everything:
    sizes:
      n: {pow2: [3, 5]}
      shape: {zip: {rows: [2, 3], columns: [4, 5]}}
    parameters:
      dtype: [float32, float64]
      tile: {values: [4, 8], default: 4}
    arrays:
      a: {shape: [n, rows], dtype: dtype, fill: {function: "stored_kernels:fill"}}
      b: {shape: [n, rows], dtype: dtype, fill: {like: a}}
      out: {shape: [rows, columns], dtype: float64, intent: out}
    scalars:
      alpha: {value: 2 * n, dtype: float32}
    call: [a, b, out, alpha]
    baseline: numpy
    implementations:
      numpy: {function: "stored_kernels:numpy_form", threads: [1]}
      made:
        factory: stored_kernels:make
        with: {width: tile * 2}
        backend: numba_cuda
        launch: {block: [[4, 4], [tile, 8]], grid: [cover, [n]], shared_bytes: 8 * tile}
    devices: [cpu, "cuda:*"]
    work: {bytes: n * rows * itemsize(a), flops: n}
    measure: [kernel, end_to_end]
    sampling: {rounds: 3, repeat: [1, 5, 2.0], timeout: 7}
    check: {rtol: {float32: 1.0e-3}, norm: l2}
    exclude: [{when: n == 16 and tile == 8}]
    skip: [{when: n > 16 and threads_per_block > 16, reason: too large}]
    include: [{implementation: made, values: {n: 7, rows: 1, columns: 1, dtype: float32}}]
presets:
  smoke: {sizes: {n: [8]}}
"""


@pytest.fixture
def suites(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_preferred", {})
    (tmp_path / "stored_kernels.py").write_text(KERNELS)
    folder = tmp_path / "suites"
    folder.mkdir()
    (folder / "sample.yaml").write_text(SUITE)
    return folder


def left(suites: Path, class_name: str, preset: str | None = None) -> Blueprint | None:
    return stored(suites / f"{class_name.partition('__')[0]}.yaml", preset, class_name)


def told(case: Case) -> dict[str, object]:
    """Everything that measuring asks of a case."""
    baseline = case.baseline()
    return {
        "identity": case.identity,
        "values": case.values,
        "sizes": case.sizes,
        "data": case.data_values(),
        "backend": case.backend,
        "device": case.device,
        "threads": case.threads,
        "fault": case.fault,
        "launch": case.launch,
        "work": case.work(),
        "with": case.with_values(),
        "scalars": {name: (value, type(value)) for name, value in case.scalars().items()},
        "arrays": {
            name: (spec.shape, spec.dtype, spec.intent, _plain(spec.fill))
            for name, spec in case.array_specs().items()
        },
        "call": case.kernel.call,
        "returns": case.kernel.returns,
        "check": _plain(case.kernel.check),
        "sampling": _plain(case.kernel.sampling),
        "implementation": (case.implementation.function, case.implementation.factory),
        "skip": skip_reason(case, {}),
        "names": [case.benchmark(time).asv_name for time in ("kernel", "cold")],
        "path": Path(case.subject.loaded.path),
        "baseline": None if baseline is None else told(baseline),
    }


def _plain(part: object) -> object:
    fields = part.__dict__ if hasattr(part, "__dict__") else part
    return {**fields} if isinstance(fields, dict) else fields


@pytest.mark.parametrize("preset", [None, "smoke"])
def test_a_stored_plan_has_the_same_cases(suites, preset):
    planned = plan_blueprints(suites, preset)
    assert [one.group.class_name for one in planned] == [
        "sample__everything__numpy",
        "sample__everything__made",
    ]
    for one in planned:
        again = left(suites, one.group.class_name, preset)
        assert again is not None
        assert isinstance(again.group.kernel, Fields)
        assert again.identities == one.identities == tuple(c.identity for c in again.group.cases())
        assert (again.attributes, again.versions) == (one.attributes, one.versions)
        assert (again.title, again.source) == (one.title, one.source)
        cases = zip(again.group.cases(), one.group.cases(), strict=True)
        assert all(told(stored_case) == told(case) for stored_case, case in cases)


def test_the_library_can_be_stored(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_preferred", {})
    suites = tmp_path / "suites"
    shutil.copytree(LIBRARY, suites, ignore=shutil.ignore_patterns("__pycache__"))
    for one in plan_blueprints(suites, "smoke"):
        again = left(suites, one.group.class_name, "smoke")
        assert again is not None
        first, first_again = next(one.group.cases()), next(again.group.cases())
        assert told(first) == told(first_again)


@pytest.mark.parametrize("name", ["suites/sample.yaml", "stored_kernels.py"])
def test_a_file_that_changed_ends_what_was_made_from_it(suites, name):
    plan_blueprints(suites, None)
    path = suites.parent / name
    path.write_text(path.read_text() + "\n# changed\n")
    assert left(suites, "sample__everything__numpy") is None


def test_a_file_that_was_touched_does_too(suites):
    plan_blueprints(suites, None)
    os.utime(suites / "sample.yaml", ns=(1, 1))
    assert left(suites, "sample__everything__numpy") is None


def test_each_preset_has_its_own(suites):
    plan_blueprints(suites, "smoke")
    assert left(suites, "sample__everything__numpy") is None
    smoke = left(suites, "sample__everything__numpy", "smoke")
    assert smoke is not None
    assert all("n=8" in identity.split() for identity in smoke.identities)


def test_another_number_of_gpus_is_another_plan_for_what_runs_on_them(suites, monkeypatch):
    plan_blueprints(suites, None)
    monkeypatch.setattr(devices, "gpu_count", lambda: 5)
    assert left(suites, "sample__everything__numpy") is not None
    assert left(suites, "sample__everything__made") is None
    monkeypatch.setattr(asv_planning, "gpu_count", lambda: 5)
    plan_blueprints(suites, None)
    again = left(suites, "sample__everything__made")
    assert again is not None
    assert {case.device for case in again.group.cases()} == {f"cuda:{i}" for i in range(5)}


def test_a_formula_without_a_value_still_has_its_place(suites):
    path = suites / "sample.yaml"
    path.write_text(SUITE.replace("bytes: n * rows", "bytes: (n - 9) * rows"))
    (planned, _) = plan_blueprints(suites, None)
    again = left(suites, planned.group.class_name)
    assert again is not None
    messages = []
    for group in (planned.group, again.group):
        with pytest.raises(PlanError) as error:
            next(group.cases()).work()
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert messages[0].startswith(f"{path}:29:19: sample/everything/numpy at n=8 ")


@pytest.mark.parametrize("content", [b"", b"not a pickle"])
def test_a_file_that_is_broken_is_as_good_as_none(suites, content):
    plan_blueprints(suites, None)
    (file,) = (suites / "__pycache__").iterdir()
    file.write_bytes(content)
    assert left(suites, "sample__everything__numpy") is None
    assert left(suites, "sample__everything__no_such_class") is None


def test_a_folder_that_cannot_be_written_is_no_fault(suites):
    (suites / "__pycache__").write_text("a file where the folder should be")
    assert len(plan_blueprints(suites, None)) == 2
    assert left(suites, "sample__everything__numpy") is None
