"""``gpubench time``: what it prints, as a table and as JSON, and how it ends."""

import json

import pytest
from click.testing import CliRunner

from gpubench.cli import main
from gpubench.measure.direct import Measured
from gpubench.record import CaseRecord
from gpubench.tables import times

SUITE = """\
version: 1
suite: scale
kernels:
  scale:
    sizes: {n: [8, 16]}
    arrays:
      a: {shape: [n], dtype: float32}
      out: {shape: [n], dtype: float32, intent: out}
    call: [a, out]
    work: {bytes: 1000000, flops: 3000000}
    baseline: plain
    sampling: {number: 1, warmup_time: 0, repeat: 10}
    implementations:
      plain: {function: "slow_and_quick:plain", backend: scripted}
      quick: {function: "slow_and_quick:quick", backend: scripted}
      broken: {function: "slow_and_quick:broken", backend: scripted}
presets:
  right:
    description: without the broken one
    sizes: {n: [8]}
"""

KERNELS = """\
import numpy as np
from gpubench.backends.scripted import script

def scale(a, out):
    np.multiply(a, 2, out=out)

def scale_wrongly(a, out):
    np.multiply(a, 3, out=out)

plain = script(4e-3)(scale)
quick = script(1e-3)(scale)
broken = script(1e-3)(scale_wrongly)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "scale.yaml").write_text(SUITE)
    (tmp_path / "slow_and_quick.py").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("GPUBENCH_PRESET", raising=False)
    monkeypatch.setattr("gpubench.backends.devices.gpu_count", lambda: 0)
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["time", *arguments])
    assert result.exit_code == code, result.output
    return result


PLAIN = {"\N{NARROW NO-BREAK SPACE}": " ", "\N{EN DASH}": "-", "\N{MULTIPLICATION SIGN}": "x"}


def cells(output):
    """Words of each line, in the characters of a keyboard."""
    return [line.split() for line in output.translate(str.maketrans(PLAIN)).splitlines()]


def test_a_table_says_time_speedup_verdict_and_rates(project):
    output = run("scale", "-a", "implementation=quick", "-a", "n=8").stdout
    rows = {row[0]: row for row in cells(output)}
    assert rows["scale"] == ["scale"]
    assert rows["plain"] == [
        *["plain", "n=8", "4.00", "ms", "4.00-4.00", "ms", "baseline"],
        *["0.250", "0.750", "0"],
    ]
    assert rows["quick"] == [
        *["quick", "n=8", "1.00", "ms", "1.00-1.00", "ms"],
        *["4.00x", "4.00-4.00x", "faster", "1.00", "3.00", "0"],
    ]


def test_no_line_of_the_table_is_wrapped(project):
    output = run("scale", "-a", "implementation=quick").stdout
    assert len(output.splitlines()) == 1 + 1 + 4


def test_a_wrong_case_has_its_reason_and_the_exit_code_is_1(project):
    output = run("scale", "-a", "implementation=broken", "-a", "n=8", code=1).stdout
    (line,) = [line for line in output.splitlines() if "wrong" in line]
    assert line.startswith(
        "  wrong: broken (n=8): differs from the baseline 'plain': out: 8 of 8 elements"
    )


def test_a_suite_that_is_not_there_is_told_with_those_that_are(project):
    assert run("scales", code=2).stderr.strip() == (
        "gpubench: there is no scales and no suites/scales.yaml; suites/ has scale"
    )


def test_what_is_skipped_is_told_once_for_all_kernels(project):
    kernel = SUITE[SUITE.index("  scale:") : SUITE.index("presets:")]
    text = SUITE.replace("presets:", kernel.replace("  scale:", "  again:") + "presets:", 1)
    skip = "    skip: [{when: n == 8, reason: too small}]\n    baseline:"
    (project / "suites/scale.yaml").write_text(text.replace("    baseline:", skip))
    output = run("scale", "-a", "implementation=quick", "-a", "n=8").stdout
    assert output == "  skipped: 4 cases, first scale plain n=8: too small\n"
    output = run("scale", "-a", "implementation=quick", "-a", "n=8,16").stdout
    assert [line for line in output.splitlines() if "skipped" in line] == [
        "  skipped: 4 cases, first scale plain n=8: too small"
    ]


def test_a_formula_without_a_value_ends_its_own_case(project):
    launched = '{function: "slow_and_quick:quick", backend: scripted, launch: {block: [n // 16]}}'
    (project / "suites/scale.yaml").write_text(
        SUITE.replace('{function: "slow_and_quick:broken", backend: scripted}', launched)
    )
    result = run("scale", "-a", "implementation=broken", code=1)
    rows = cells(result.stdout)
    assert ["broken", "n=16", "block=1"] in [row[:3] for row in rows]
    assert "failed: broken (n=8): suites/scale.yaml:" in result.stdout
    assert "launch.block `n // 16`: is 0" in result.stdout


def test_ctrl_c_before_anything_is_measured_has_the_same_exit_code(project, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("gpubench.suite.loading.load_suites", interrupt)
    result = run("scale", code=130)
    assert result.stderr.strip() == "interrupted"


def test_json_has_seconds_and_conditions(project):
    content = json.loads(run("scale", "--json", "-a", "implementation=quick", "-a", "n=8").stdout)
    plain, quick = content["cases"]
    assert content["facts"]["python"]
    assert (plain["implementation"], plain["speedup"]) == ("plain", None)
    assert quick["name"] == "suites.scale__quick.time_kernel n=8"
    assert quick["seconds"]["median"] == pytest.approx(1e-3)
    assert (quick["seconds"]["samples"], quick["seconds"]["runs_per_sample"]) == (20, 1)
    assert quick["speedup"]["value"] == pytest.approx(4.0)
    assert (quick["speedup"]["verdict"], quick["speedup"]["pairs"]) == ("faster", 0)
    assert quick["bytes_per_second"] == pytest.approx(1e9)
    assert quick["attainable_share"] is None
    assert quick["method"] == "scripted"


def interval_of(rounds):
    """Interval of a time as JSON has it and as the table shows it."""
    record = CaseRecord("suites.scale__plain.time_kernel", "n=8", "ok", "now")
    samples = tuple(seconds for taken in rounds for seconds in taken)
    (row,) = times.rows_of([Measured(record, samples, tuple(map(len, rounds)))])
    (table, *_) = times.kernel_report([row])
    (cell,) = next(column for column in table.columns if column.header == "interval").cells
    found = times.time_row(row)["seconds"]
    return found["low"], found["high"], cell.translate(str.maketrans(PLAIN))


def test_the_interval_of_a_time_is_that_of_the_medians_of_its_rounds():
    erratic = [(1e-4, 9e-3, 1e-4), (9e-3, 9e-3, 1e-4), (2e-4,), (2e-4,), (2e-4,)]
    assert interval_of(erratic) == (1e-4, 9e-3, "0.100-9.00 ms")


def test_few_rounds_have_no_interval_however_many_samples_they_took():
    assert interval_of([(1e-4, 2e-4) * 50] * 4) == (None, None, "no interval")


@pytest.mark.parametrize("time", ["compile", "transfer", "launch"])
def test_no_rate_is_stated_of_a_time_that_is_not_of_a_run(time):
    record = CaseRecord(
        f"suites.scale__plain.time_{time}", "n=8", "ok", "now", bytes=10**6, flops=1
    )
    (row,) = times.rows_of([Measured(record, (1e-3,) * 5)])
    shown = times.time_row(row)
    assert (shown["bytes_per_second"], shown["flops_per_second"]) == (None, None)
    (table,) = times.kernel_report([row])
    assert not {"GB/s", "GFLOP/s"} & {column.header for column in table.columns}


def test_the_number_of_samples_can_be_given(project):
    content = json.loads(
        run("scale", "--json", "--samples", "5", "-a", "implementation=plain").stdout
    )
    assert [case["seconds"]["samples"] for case in content["cases"]] == [5, 5]


def test_a_suite_is_found_by_path_too_and_a_kernel_by_name(project):
    keep = ("-a", "implementation=quick", "--preset", "right")
    by_name = cells(run("scale::scale", *keep).stdout)
    assert by_name == cells(run("suites/scale.yaml", *keep).stdout)
    result = run("scale::scales", code=2)
    assert result.stderr.strip().endswith("suites/scale.yaml has no kernel 'scales'; it has scale")


def test_a_control_of_scripts_has_no_false_alarm(project):
    keep = ("--control", "--comparisons", "3", "-a", "implementation=quick")
    assert run("scale", *keep).stdout.splitlines()[-1] == (
        "0 false alarms in 3 comparisons: 0.0% (99 % interval 0.0% to 82.9%)"
    )
    content = json.loads(run("scale", *keep, "--json").stdout)
    assert (content["comparisons"], content["alarms"], content["rate"]) == (3, 0, 0.0)
    assert content["high"] == pytest.approx(1 - 0.005 ** (1 / 3))
    assert [case["case"] for case in content["cases"]] == ["n=8", "n=16", "n=8"]
    assert content["cases"][0]["speedup"]["verdict"] == "unclear"


def test_ctrl_c_prints_what_there_is(project, monkeypatch):
    from gpubench.measure import worker

    taken = []

    def take(job):
        taken.append(job)
        if len(taken) == 3:
            raise KeyboardInterrupt
        return real(job)

    real = worker.take_turn
    monkeypatch.setattr(worker, "take_turn", take)
    result = run("scale", "-a", "implementation=quick", "-a", "n=8", code=130)
    assert "interrupted: this is what there is" in result.stderr
    (row,) = (row for row in cells(result.stdout) if row[:1] == ["quick"])
    assert row[6:9] == ["4.00x", "4.00-4.00x", "faster"]
