"""``gpubench time``: what it prints, as a table and as JSON, and how it ends."""

import json
import os
import signal
import subprocess
import sys
from functools import reduce
from time import sleep

import pytest
from click.testing import CliRunner

from gpubench.cli import main
from gpubench.measure.direct import Measured
from gpubench.record import CaseRecord, Disturbance
from gpubench.tables import times


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch):
    """Whatever else runs beside the tests."""
    monkeypatch.setattr("gpubench.measure.disturbance.busy_since", lambda before: None)


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


def test_a_kernel_of_which_every_case_failed_has_its_heading_too(project):
    broken = SUITE.replace('"slow_and_quick:plain"', '"slow_and_quick:not_there"')
    (project / "suites/scale.yaml").write_text(broken)
    output = run("scale", "-a", "n=8", code=1).stdout
    heading, *reasons = output.splitlines()
    assert heading == "scale"
    failed, commands = reasons[::2], reasons[1::2]
    assert failed and all(line.startswith("  failed: ") for line in failed)
    begin = "    next: gpubench verify scale -a implementation="
    assert all(line.startswith(begin) and line.endswith(" -a n=8") for line in commands)


def test_pythons_warnings_are_told_once_with_their_number(project):
    warning = "warnings.warn('slow', RuntimeWarning)"
    functions = KERNELS.replace("    np.multiply(a, 2", f"    {warning}\n    np.multiply(a, 2")
    (project / "slow_and_quick.py").write_text(f"import warnings\n{functions}")
    result = run("scale", "-a", "implementation=quick")
    assert "RuntimeWarning: slow (4 cases)" in result.stderr.splitlines()


INTERRUPTED = """\
version: 1
suite: hangs
kernels:
  hangs:
    sizes: {n: [8]}
    arrays:
      a: {shape: [n], dtype: float32}
      out: {shape: [n], dtype: float32, intent: out}
    call: [a, out]
    baseline: plain
    sampling: {number: 1, warmup_time: 0, repeat: 5}
    implementations:
      plain: {function: "slow_and_quick:plain", backend: scripted}
      hangs: {function: "hangs:hangs", backend: scripted}
"""

HANGS = """\
import multiprocessing, os, re
from pathlib import Path
from gpubench.backends.scripted import script

@script(1e-3)
def hangs(a, out):
    lock = multiprocessing.Lock()  # as Numba has one
    Path("process").write_text(str(os.getpid()))
    re.match("(a*)*b", "a" * 64)  # in compiled code, for years, and holds the interpreter
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_compiled_code_at_once_and_leaves_no_process(project, ending):
    (project / "suites/hangs.yaml").write_text(INTERRUPTED)
    (project / "hangs.py").write_text(HANGS)
    command = [sys.executable, "-c", "from gpubench.cli import main; main()", "time", "hangs"]
    environment = {**os.environ, "PYTHONPATH": str(project)}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,  # as a terminal does, whose Ctrl-C reaches all of them
    ) as process:
        while not (project / "process").exists() or not (project / "process").read_text():
            assert process.poll() is None, process.communicate()
            sleep(0.05)
        end = os.killpg if ending == signal.SIGINT else os.kill
        end(process.pid, ending)
        output, errors = process.communicate()
    assert process.returncode == 130
    assert [row[0] for row in cells(output)][:3] == ["hangs", "implementation", "plain"]
    assert errors.splitlines()[-1] == "interrupted: this is what there is"
    assert "Traceback" not in errors and "leaked" not in errors
    with pytest.raises(ProcessLookupError):
        os.kill(int((project / "process").read_text()), 0)


def test_a_suite_that_is_not_there_is_told_with_those_that_are(project):
    assert run("scales", code=2).stderr.strip() == (
        "gpubench: there is no suite, kernel or path 'scales'; did you mean 'scale'?"
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
    def interrupt(*_, **__):
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
    assert (quick["seconds"]["samples"], quick["seconds"]["runs_per_sample"]) == (10, 1)
    assert quick["speedup"]["value"] == pytest.approx(4.0)
    assert quick["speedup"]["verdict"] == "faster"
    assert quick["speedup"]["pairs"] >= 9  # three or one in a round, as the moves of arrays take
    assert quick["bytes_per_second"] == pytest.approx(1e9)
    assert quick["attainable_share"] is None
    assert quick["method"] == "scripted"


def interval_of(rounds):
    """Interval of a time as JSON has it and as the table shows it."""
    record = CaseRecord("suites.scale__plain.time_kernel", "n=8", "ok", "now")
    (row,) = times.rows_of([Measured(record, (tuple(rounds),))])
    (table, *_) = times.report([row])
    (cell,) = next(column for column in table.columns if str(column.header) == "interval").cells
    found = times.time_row(row)["seconds"]
    return found["low"], found["high"], str(cell).translate(str.maketrans(PLAIN))


def test_the_interval_of_a_time_is_that_of_the_medians_of_its_rounds():
    erratic = [(1e-4, 9e-3, 1e-4), (9e-3, 9e-3, 1e-4), (2e-4,), (2e-4,), (2e-4,)]
    assert interval_of(erratic) == (1e-4, 9e-3, "0.100-9.00 ms")


def test_of_five_processes_each_counts_once():
    turns = [
        Measured(
            CaseRecord("suites.scale__plain.time_kernel", "n=8", "ok", "now"),
            (((1e-4,), (2e-4 + turn * 1e-6,), (9e-3,)),),
            (None,),
        )
        for turn in range(5)
    ]
    (row,) = times.rows_of([reduce(Measured.joined, turns)])
    assert row.rounds == pytest.approx((2.00e-4, 2.01e-4, 2.02e-4, 2.03e-4, 2.04e-4))


def test_a_disturbed_case_is_marked_and_has_no_verdict():
    baseline = CaseRecord("suites.scale__plain.time_kernel", "n=8", "ok", "now")
    record = CaseRecord(
        *("suites.scale__quick.time_kernel", "n=8", "ok", "now"),
        baseline_benchmark=baseline.benchmark,
        baseline_case="n=8",
    )
    waited = Disturbance(0.6, waiting=(0.01,) * 5)
    measured = [
        Measured(baseline, (((4e-3,),) * 5,)),
        Measured(record, (((1e-3,),) * 5,), (waited,)),
    ]
    _, row = rows = times.rows_of(measured)
    made, note, *_ = times.report(rows)
    (verdicts,) = (column for column in made.columns if str(column.header) == "verdict")
    assert [str(cell) for cell in verdicts.cells] == ["baseline", "unclear"]
    assert str(note).startswith("  [1] disturbed: most of its samples waited for or ran")
    found = times.time_row(row)
    assert (found["disturbed"], found["speedup"]["verdict"]) == (0.6, "unclear")


def test_a_busy_machine_is_named_before_anything_is_measured(project, monkeypatch):
    monkeypatch.setattr(
        "gpubench.measure.disturbance.busy_since", lambda before: "2.0 of 2 cores are busy"
    )
    result = run("scale", "-a", "n=8", "-a", "implementation=quick")
    assert result.stderr.startswith("gpubench: 2.0 of 2 cores are busy\n")


def test_few_rounds_have_no_interval_however_many_samples_they_took():
    assert interval_of([(1e-4, 2e-4) * 50] * 4) == (None, None, "no interval")


@pytest.mark.parametrize(
    ("width", "left_out"),
    [(None, ""), (200, ""), (64, "GFLOP/s, GB/s"), (10, "GFLOP/s, GB/s, error")],
)
def test_a_narrow_terminal_has_no_room_for_rates_and_is_told(width, left_out):
    record = CaseRecord(
        *("suites.scale__plain.time_kernel", "n=8", "ok", "now"),
        bytes=10**6,
        flops=10**6,
        max_abs_error=0.0,
        max_rel_error=0.0,
    )
    made, *said = times.report(times.rows_of([Measured(record, (((1e-3,),) * 5,))]), width)
    names = [str(column.header) for column in made.columns]
    assert names[:4] == ["implementation", "case", "time", "interval"]
    assert {"GB/s", "GFLOP/s", "error"} - {*names} == {*left_out.split(", ")} - {""}
    lines = [f"  no room for {left_out}: widen the terminal, or use --json"] if left_out else []
    assert [str(line) for line in said if "no room" in str(line)] == lines


def test_what_is_compiled_in_every_process_is_said_once_with_what_it_cost():
    def measured(implementation, **conditions):
        name = f"suites.scale__{implementation}.time_kernel"
        record = CaseRecord(name, "n=8", "ok", "now", conditions=conditions)
        return Measured(record, (((1e-3,) * 5,),))

    both = [measured("quick", compile_seconds=1.5), measured("slow", compile_seconds=2.0)]
    *_, line = times.report(times.rows_of([*both, measured("plain")]))
    assert str(line).translate(str.maketrans(PLAIN)) == (
        "3.50 s went into compiling scale slow and scale quick, which is done again in every "
        "process; with `cache=True` Numba keeps the code"
    )


@pytest.mark.parametrize("time", ["compile", "transfer", "launch"])
def test_no_rate_is_stated_of_a_time_that_is_not_of_a_run(time):
    record = CaseRecord(
        f"suites.scale__plain.time_{time}", "n=8", "ok", "now", bytes=10**6, flops=1
    )
    (row,) = times.rows_of([Measured(record, (((1e-3,) * 5,),))])
    shown = times.time_row(row)
    assert (shown["bytes_per_second"], shown["flops_per_second"]) == (None, None)
    (table,) = times.report([row])
    assert not {"GB/s", "GFLOP/s"} & {str(column.header) for column in table.columns}


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
    assert result.stderr.strip().endswith(
        "suite 'scale' has no kernel 'scales'; did you mean 'scale'?"
    )


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
    from gpubench.measure.worker import Worker

    given = []

    def give(worker, job, limit):
        given.append(job)
        if len(given) == 3:
            raise KeyboardInterrupt
        real(worker, job, limit)

    real = Worker.give
    monkeypatch.setattr(Worker, "give", give)
    result = run("scale", "-a", "implementation=quick", code=130)
    assert "interrupted: this is what there is" in result.stderr
    (row,) = (row for row in cells(result.stdout) if row[:1] == ["quick"])
    assert row[6:9] == ["4.00x", "4.00-4.00x", "faster"]
