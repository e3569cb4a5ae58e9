"""``gpubench verify``: what it prints, as a table and as JSON, and how it ends."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpubench.cli import main

KERNEL = """\
    sizes: {n: [8, 16]}
    arrays:
      a: {shape: [n], dtype: float32}
      out: {shape: [n], dtype: float32, intent: out}
    call: [a, out]
    implementations:
"""

SUITE = f"""\
version: 1
suite: scale
kernels:
  double:
{KERNEL}\
      numpy: {{function: "right_and_wrong:double", backend: numpy}}
      again: {{function: "right_and_wrong:double_again", backend: numpy}}
  triple:
{KERNEL}\
      numpy: {{function: "right_and_wrong:triple", backend: numpy}}
      broken: {{function: "right_and_wrong:double", backend: numpy}}
      later: {{function: "right_and_wrong:triple", backend: numpy, requires: [no_such_module]}}
presets:
  smoke:
    description: a quick look
    sizes: {{n: [4]}}
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
    assert "lacks_device" not in broken
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


PAIRS = f"""\
version: 1
suite: pairs
kernels:
  add:
{KERNEL}\
      numpy: {{function: "by_pairs:add", backend: numpy}}
      pairs: {{function: "by_pairs:add_pairs", backend: numpy}}
      even: {{function: "by_pairs:add_even", backend: numpy}}
"""

BY_PAIRS = """\
import numpy as np

def add(a, out):
    np.add(a, a, out=out)

def add_pairs(a, out):  # wrong where n is odd
    even = a.size - a.size % 2
    out[:even] = a[:even] * 2

def add_even(a, out):
    if a.size % 2:
        raise ValueError("n has to be even")
    np.add(a, a, out=out)
"""


@pytest.fixture
def pairs():
    Path("suites/scale.yaml").unlink()
    Path("suites/pairs.yaml").write_text(PAIRS)
    Path("by_pairs.py").write_text(BY_PAIRS)


def test_a_kernel_that_is_wrong_at_odd_sizes_is_found_without_being_asked_for(pairs):
    shown = " ".join(lines("pairs", code=1))
    assert "wrong: pairs.add pairs n=9: differs from the baseline 'numpy': " in shown
    assert "a run leaves 1 of the 9 elements of 'out' unwritten" in shown
    assert "no suite declares this size, as at 2 cases more" in shown
    assert "beside the declared sizes: 6 cases: 3 right and 3 wrong" in shown
    assert "note: pairs.add even raises an error beside its declared sizes: 3 cases" in shown
    assert shown.endswith("6 cases: 6 right")


def test_sizes_that_a_kernel_is_not_meant_for_are_said_by_a_rule(pairs):
    path = Path("suites/pairs.yaml")
    path.write_text(PAIRS + "    exclude: [{when: n % 2 == 1}]\n")
    assert lines("pairs")[-1] == "6 cases: 6 right"


def test_declared_sizes_alone_are_verified_where_that_is_asked_for(pairs):
    assert lines("pairs", "--declared")[-1] == "6 cases: 6 right"
    assert lines("pairs", "-a", "n=8")[-1] == "3 cases: 3 right"


def test_json_has_the_cases_at_other_sizes_apart(pairs):
    found = json.loads(run("pairs", "--json", code=1).stdout)
    assert {case["status"] for case in found["cases"]} == {"right"}
    undeclared = {case["name"]: case["status"] for case in found["undeclared"]}
    assert undeclared["suites.pairs__add__pairs.time_kernel n=9"] == "wrong"
    assert undeclared["suites.pairs__add__numpy.time_kernel n=9"] == "right"


def test_a_shape_of_which_half_is_written_is_told_as_a_shape(pairs):
    Path("by_pairs.py").write_text("def add(a, out):\n    out[: a.size // 2] = a[::2] + a[1::2]\n")
    Path("suites/pairs.yaml").write_text(PAIRS.partition("      pairs:")[0])
    shown = " ".join(lines("pairs", "--declared", code=1))
    assert "a run leaves 4 of the 8 elements of 'out' unwritten" in shown
    assert "what is written has the shape [4], and the suite declares [8]" in shown
    assert "race" not in shown
