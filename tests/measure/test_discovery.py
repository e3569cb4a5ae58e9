"""A suite with a formula that has no value ends its own cases, not asv's discovery of all."""

import json
import subprocess
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import pytest

from gpubench.measure.asv_settings import VARIABLE, AsvSettings
from gpubench.record import CaseRecord, RoundsRecord, parse_line

DOOR = """\
from pathlib import Path
from gpubench.asv_benchmarks import benchmark_classes
globals().update(benchmark_classes(Path(__file__).resolve().parent.parent / "suites"))
"""

SUITE = """\
version: 1
suite: {name}
kernels:
  {name}:
    sizes: {{n: [8, 16]}}
    arrays:
      a: {{shape: [n], dtype: float32}}
      out: {{shape: [n], dtype: float32, intent: out}}
    call: [a, out]
    devices: [cpu, "scripted:0"]
    baseline: plain
    implementations:
      plain: {{function: "launched:scale", backend: numpy}}
      launched: {{function: "launched:scripted", backend: scripted, launch: {{block: [{block}]}}}}
"""

KERNELS = """\
import numpy as np
from gpubench.backends.scripted import script

def scale(a, out):
    np.multiply(a, 2, out=out)

scripted = script(1e-3)(scale)
"""

COMMIT = "0123456789abcdef"
BROKEN = "suites.broken__launched.time_kernel"
REASON = (
    "suites/broken.yaml:14:84: broken launched at n=8: "
    "implementations.launched.launch.block `n // 16`: is 0; a whole number of at least 1 is "
    "needed: change the formula, or `exclude` such cases"
)


@pytest.fixture
def project(tmp_path):
    for name in ("suites", "benchmarks"):
        (tmp_path / name).mkdir()
    (tmp_path / "benchmarks/__init__.py").touch()
    (tmp_path / "benchmarks/suites.py").write_text(DOOR)
    (tmp_path / "launched.py").write_text(KERNELS)
    for name, block in (("broken", "n // 16"), ("fine", "n // 4")):
        (tmp_path / f"suites/{name}.yaml").write_text(SUITE.format(name=name, block=block))
    return tmp_path


def asv(project, command, *arguments, **attributes):
    """Run a command of asv's own script for processes that it starts, as under our plugin."""
    script = Path(find_spec("asv").origin).parent / "benchmark.py"
    settings = AsvSettings(
        run="1-2", results_dir=str(project / "results"), machine="desk", attributes=attributes
    )
    told = {
        "ASV_COMMIT": COMMIT,
        "ASV_ENV_NAME": "env",
        VARIABLE: json.dumps(asdict(settings)),
    }
    return subprocess.run(
        [sys.executable, script, command, project / "benchmarks", *arguments],
        cwd=project, env={"ASV_PYTHONPATH": str(project), **told},
        capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_asv_discovers_every_suite_beside_one_with_a_faulty_launch(project):
    done = asv(project, "discover", project / "found.json")
    assert done.returncode == 0, done.stderr
    found = {one["name"]: one["params"] for one in json.loads((project / "found.json").read_text())}
    assert found["suites.fine__launched.time_kernel"] == [
        ["'n=8 block=2'", "'n=8 block=2 device=scripted:0'",
         "'n=16 block=4'", "'n=16 block=4 device=scripted:0'"]
    ]  # fmt: skip
    assert found[BROKEN] == [
        ["'n=8'", "'n=8 device=scripted:0'", "'n=16 block=1'", "'n=16 block=1 device=scripted:0'"]
    ]
    assert "suites.broken__plain.time_kernel" in found


@pytest.mark.slow
def test_the_case_fails_with_file_and_line_and_the_others_run(project):
    statuses = {}
    for index in (1, 3):
        asv(project, "run", f"{BROKEN}-{index}", "{}", "None", project / "result.json")
        (file,) = (project / "results").glob("*/*.jsonl")
        lines = map(parse_line, file.read_text().splitlines())
        last = [line for line in lines if isinstance(line, CaseRecord)][-1]
        statuses[last.case] = (last.status, last.reason)
    failed, ran = statuses.values()
    assert failed == ("failed", f"{project}/{REASON}")
    assert ran == ("ok", None)
    assert list(statuses) == ["n=8 device=scripted:0", "n=16 block=1 device=scripted:0"]


def run(project, name, **attributes):
    """asv's result of one case of the suite that is fine, and what is on record of it."""
    for file in (project / "results").glob("*/*.jsonl"):
        file.unlink()
    result = project / "result.json"
    done = asv(project, "run", f"{name}-0", json.dumps(attributes), "None", result, **attributes)
    assert done.returncode == 0, done.stderr
    (file,) = (project / "results").glob("*/*.jsonl")
    lines = map(parse_line, file.read_text().splitlines())
    rounds = [line for line in lines if isinstance(line, RoundsRecord)]
    return json.loads(result.read_text()), rounds


FINE = "suites.fine__launched.time_kernel"


@pytest.mark.slow
def test_asv_takes_the_samples_that_are_planned_and_the_rounds_are_on_record(project):
    sampling = "sampling: {rounds: 1, repeat: 22, warmup_time: 0.01, number: 3}"
    path = project / "suites/fine.yaml"
    path.write_text(path.read_text() + f"    {sampling}\n")
    result, (record,) = run(project, FINE)
    assert result["samples"] == pytest.approx([1e-3] * 22)
    assert (record.benchmark, record.case) == (FINE, "n=8 block=2")
    assert record.rounds == pytest.approx((1e-3,) * 20)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attributes", "samples", "rounds"),
    [
        ({"repeat": 4}, 4, 4),
        ({"repeat": [2, 7, 60.0]}, 7, 7),
        ({"number": 1, "repeat": 1, "warmup_time": 0, "rounds": 1}, 1, 1),
        ({"repeat": 6, "number": 3}, 6, 6),
        ({"repeat": 3, "warmup_time": 0.05}, 3, 3),
        ({}, 5, 5),
    ],
)
def test_what_asv_s_command_line_asks_for_is_taken(project, attributes, samples, rounds):
    result, (record,) = run(project, FINE, **attributes)
    assert len(result["samples"]) == samples
    assert len(record.rounds) == rounds


@pytest.mark.slow
def test_a_process_for_one_case_reads_one_suite_alone(project):
    (project / "suites/broken.yaml").write_text("no: suite")
    result, _ = run(project, FINE, repeat=1)
    assert result["samples"] == pytest.approx([1e-3])


@pytest.mark.slow
def test_without_the_plugin_nothing_is_recorded_and_a_line_says_what_to_add(project):
    script = Path(find_spec("asv").origin).parent / "benchmark.py"
    done = subprocess.run(
        [sys.executable, script, "run", project / "benchmarks", f"{FINE}-0", "{}", "None",
         project / "result.json"],
        cwd=project, env={"ASV_PYTHONPATH": str(project), "ASV_COMMIT": COMMIT},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0
    assert '"plugins": [".gpubench.asv_plugin"]' in done.stderr
    assert not list(project.rglob("*.jsonl"))
