"""``gpubench verify``: what it prints, as a table and as JSON, and how it ends."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpubench.cli import main

SUITE = """\
version: 1
suite: scale
kernels:
  double:
    sizes: {n: [8, 16]}
    arrays:
      a: {shape: [n], dtype: float32}
      out: {shape: [n], dtype: float32, intent: out}
    call: [a, out]
    implementations:
      numpy: {function: "right_and_wrong:double", backend: numpy}
      again: {function: "right_and_wrong:double_again", backend: numpy}
  triple:
    sizes: {n: [8, 16]}
    arrays:
      a: {shape: [n], dtype: float32}
      out: {shape: [n], dtype: float32, intent: out}
    call: [a, out]
    implementations:
      numpy: {function: "right_and_wrong:triple", backend: numpy}
      broken: {function: "right_and_wrong:double", backend: numpy}
      later: {function: "right_and_wrong:triple", backend: numpy, requires: [no_such_module]}
presets:
  smoke:
    description: a quick look
    sizes: {n: [4]}
"""

KERNELS = """\
import numpy as np

def double(a, out):
    np.multiply(a, 2, out=out)

def double_again(a, out):
    np.add(a, a, out=out)

def triple(a, out):
    np.multiply(a, 3, out=out)
"""


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "scale.yaml").write_text(SUITE)
    (tmp_path / "right_and_wrong.py").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("GPUBENCH_PRESET", raising=False)
    monkeypatch.delenv("GPUBENCH_SOFTCUDA", raising=False)
    monkeypatch.setattr("gpubench.backends.devices.gpu_count", lambda: 0)
    monkeypatch.setattr("gpubench.backends.devices.no_gpu_reason", lambda: "no GPU today")


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["verify", *arguments])
    assert result.exit_code == code, result.output
    return result


def lines(*arguments, code=0):
    return [line.strip() for line in run(*arguments, code=code).stdout.splitlines()]


def test_a_table_counts_what_is_right_and_shows_the_largest_error():
    shown = lines("scale::double", "--preset", "smoke")
    assert [line.split() for line in shown[1:3]] == [
        ["scale.double", "numpy", "cpu", "1"],
        ["scale.double", "again", "cpu", "1", "0"],
    ]
    assert shown[-1] == "2 cases: 2 right; preset smoke"


def test_what_is_wrong_says_where_and_the_exit_code_is_one():
    shown = lines("scale::triple", code=1)
    (wrong,) = (line for line in shown if line.startswith("wrong"))
    assert wrong.startswith(
        "wrong: scale.triple broken n=4: differs from the baseline 'numpy': out: 4 of 4 elements "
        "are off by more than"
    )
    assert shown[-1] == "3 cases: 1 right, 1 wrong and 1 skipped; preset smoke"


def test_what_cannot_run_here_is_skipped_with_its_reason_and_is_not_wrong():
    shown = lines("scale::triple", "-a", "implementation=later")
    assert shown[-2].startswith("skipped: scale.triple later n=4: needs the module")


def test_without_a_gpu_the_preset_for_a_quick_look_is_taken():
    assert lines("scale::double")[-1].endswith("preset smoke")
    Path("suites/scale.yaml").write_text(SUITE.partition("presets:")[0])
    assert lines("scale::double")[-1] == "4 cases: 4 right"


def test_cases_are_chosen_as_elsewhere():
    shown = lines("scale::double", "-a", "implementation=again", "--where", "n < 8")
    assert shown[-1] == "1 case: 1 right; preset smoke"


def test_json_tells_of_every_case_and_of_the_place():
    found = json.loads(run("--json", code=1).stdout)
    assert {name: found[name] for name in ("cuda", "no_gpu", "preset", "orders", "sanitize")} == {
        "cuda": "softcuda",
        "no_gpu": "no GPU today",
        "preset": "smoke",
        "orders": ["ascending"],
        "sanitize": False,
    }
    cases = {case["name"]: case for case in found["cases"]}
    assert len(cases) == 5
    broken = cases["suites.scale__triple__broken.time_kernel n=4"]
    assert (broken["status"], broken["faults"]) == ("wrong", [])
    assert broken["max_abs_error"] > 0
    assert cases["suites.scale__double__again.time_kernel n=4"]["status"] == "right"


def test_a_kernel_that_is_not_there_is_named_with_those_that_are():
    said = run("scale::half", code=2).stderr
    assert "suite 'scale' has no kernel 'half'; it has double, triple" in said.replace("\n", "")


def test_a_case_that_ctrl_c_interrupts_is_counted_as_that_and_never_as_right(monkeypatch):
    from gpubench.measure import verify_cases

    def first_only(cases, *_):
        yield 0, verify_cases.Verified("right")
        raise KeyboardInterrupt

    monkeypatch.setattr(verify_cases, "verified", first_only)
    shown = lines("scale::double", code=130)
    assert shown[-1] == "2 cases: 1 right and 1 interrupted; preset smoke"
    content = json.loads(run("scale::double", "--json", code=130).stdout)
    assert [case["status"] for case in content["cases"]] == ["right", "interrupted"]
