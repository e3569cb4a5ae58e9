"""A suite with a formula that has no value ends its own cases, not asv's discovery of all."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from gpubench.record import CaseRecord, parse_line

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
    "suites/broken.yaml:14:84: broken/broken/launched at n=8: "
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
    (tmp_path / "asv.conf.json").write_text('{"results_dir": "results"}')
    return tmp_path


def asv(project, command, *arguments):
    """Run a command of asv's own script for processes that it starts."""
    script = Path(find_spec("asv").origin).parent / "benchmark.py"
    told = {"ASV_CONF_DIR": str(project), "ASV_COMMIT": COMMIT, "ASV_ENV_NAME": "env"}
    return subprocess.run(
        [sys.executable, script, command, project / "benchmarks", *arguments],
        cwd=project, env={"ASV_PYTHONPATH": str(project), **told},
        capture_output=True, text=True,
    )  # fmt: skip


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


def test_the_case_fails_with_file_and_line_and_the_others_run(project):
    statuses = {}
    for index in (1, 3):
        asv(project, "run", f"{BROKEN}-{index}", "{}", "None", project / "result.json")
        (file,) = (project / "results").glob("*/*.jsonl")
        last = parse_line(file.read_text().splitlines()[-1])
        assert isinstance(last, CaseRecord)
        statuses[last.case] = (last.status, last.reason)
    failed, ran = statuses.values()
    assert failed == ("failed", f"{project}/{REASON}")
    assert ran == ("ok", None)
    assert list(statuses) == ["n=8 device=scripted:0", "n=16 block=1 device=scripted:0"]
