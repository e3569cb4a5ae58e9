"""What a person sees on the terminal, and the exit codes that scripts rely on."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from rich.console import Console

from gpubench.cli import console, main
from gpubench.tables.table import lines_that_fit, table

SUITE = """\
version: 1
suite: scale
kernels:
  scale:
    sizes: {n: [64, 4096]}
    arrays:
      a: {shape: [n], dtype: float32}
      out: {shape: [n], dtype: float32, intent: out}
    call: [a, out]
    implementations:
      numpy: {function: "scale_kernels:scale"}
      cuda:
        function: "scale_kernels:scale_cuda"
        backend: numba_cuda
        launch: {block: [32, 64]}
    devices: [cpu, "cuda:*"]
    work: {bytes: 2 * n * itemsize(a), flops: n}
presets:
  smoke: {sizes: {n: [8]}}
"""

KERNELS = """\
import numpy as np
from numba import cuda

def scale(a, out):
    np.multiply(a, 2, out=out)

@cuda.jit
def scale_cuda(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 2 * a[i]
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "scale.yaml").write_text(SUITE)
    (tmp_path / "scale_kernels.py").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("GPUBENCH_PRESET", raising=False)
    monkeypatch.setattr("gpubench.backends.devices.gpu_count", lambda: 0)
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def test_help_begins_with_the_first_day_and_cuts_no_description():
    shown = run("--help", "--help").stdout
    first, more = shown.partition("The first day:\n")[2].split("More:\n")
    assert [line.split()[0] for line in first.splitlines() if line] == [
        "init", "add", "check", "verify", "count", "time", "report", "compare"
    ]  # fmt: skip
    lines = [*first.splitlines(), *more.splitlines()]
    listed = {line.split()[0] for line in lines if line.startswith("  ")}
    assert listed == {*main.commands}
    assert not [line for line in lines if line.endswith("...") or len(line) > 80]


def test_check_prints_one_line_of_counts(project):
    assert run("check").stdout == "1 suite, 1 kernel, 2 implementations, 6 cases\n"


def test_check_prints_every_fault_on_standard_error_and_exits_with_2(project):
    path = project / "suites" / "scale.yaml"
    text = SUITE.replace("block: [32", "blocks: [32").replace("sizes: {n: [64", "sizes: {n: [1e6")
    path.write_text(text)
    result = run("check", code=2)
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[-1] == "2 faults"
    assert lines[0].startswith("suites/scale.yaml:5:17: ")
    assert lines[1].startswith("suites/scale.yaml:15:18: unknown field 'blocks'")
    assert "did you mean 'block'?" in lines[1]


def test_check_finds_a_function_that_is_not_there(project):
    path = project / "suites" / "scale.yaml"
    path.write_text(SUITE.replace(":scale_cuda", ":scale_cudda"))
    result = run("check", code=2)
    assert "did you mean 'scale_cuda'?" in result.stderr


def test_a_folder_without_suites_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("check", code=2)
    assert "gpubench init" in result.stderr


def test_plan_counts_cases_by_implementation(project):
    assert "total" in run("plan").stdout
    last = run("plan").stdout.rstrip().splitlines()[-1].split()
    assert last == ["total", "6"]


def test_plan_as_json_names_everything_about_a_case(project):
    cases = json.loads(run("plan", "--json").stdout)
    assert len(cases) == 6
    by_name = {case["name"]: case for case in cases}
    cuda = by_name["suites.scale__cuda.time_kernel n=4096 block=64 device=cuda:0"]
    where = ("suite", "kernel", "implementation", "backend", "device")
    assert [cuda[key] for key in where] == ["scale", "scale", "cuda", "numba_cuda", "cuda:0"]
    assert cuda["launch"] == {
        "block": "64",
        "grid": "64",
        "shared_bytes": 0,
        "cooperative": False,
    }
    assert cuda["work"] == {"bytes": 32768, "flops": 4096}
    assert cuda["baseline"] == {"implementation": "numpy", "case": "n=4096"}


def test_plan_keeps_what_is_asked_for(project):
    def kept(*arguments):
        return [case["case"] for case in json.loads(run("plan", "--json", *arguments).stdout)]

    assert kept("--where", "n > 64 and backend == 'numpy'") == ["n=4096"]
    assert kept("-a", "n=64", "-a", "implementation=numpy") == ["n=64"]
    assert kept("--preset", "smoke", "-a", "implementation=numpy") == ["n=8"]


def test_plan_lists_a_case_a_line_as_explain_takes_it(project, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    lines = run("plan", "--list", "-a", "n=64").stdout.splitlines()
    assert lines == [
        "suites.scale__numpy.time_kernel n=64",
        "suites.scale__cuda.time_kernel n=64 block=32 device=cuda:0",
        "suites.scale__cuda.time_kernel n=64 block=64 device=cuda:0",
    ]
    for line in lines:
        run("plan", "--explain", line)


def test_plan_explains_where_a_value_comes_from(project):
    text = run("plan", "--explain", "suites.scale__numpy.time_kernel n=4096").stdout
    assert "suites/scale.yaml:5" in text


def test_plan_refuses_a_case_that_is_not_there(project):
    result = run("plan", "--explain", "suites.scale__numpy.time_kernel n=4097", code=2)
    assert "n=4096" in result.stderr


def test_devices_always_shows_the_cpu():
    found = json.loads(run("devices", "--json").stdout)
    assert found[0]["device"] == "cpu"
    assert "cpu" in run("devices").stdout


def test_schema_is_json_schema():
    assert json.loads(run("schema").stdout)["title"]


def test_report_without_results_says_what_to_run(project):
    result = run("report", code=2)
    assert "run `asv run`" in result.stderr
    assert not (project / "reports/html").exists()


def test_init_overwrites_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "asv.conf.json").write_text("{}")
    lines = run("init").stdout.splitlines()
    assert "kept  asv.conf.json" in lines
    assert "added to asv.conf.json: plugins, install_command, build_command" in lines
    assert "wrote benchmarks/suites.py" in lines
    assert (tmp_path / "benchmarks" / "suites.py").exists()
    assert "  gpubench report" in lines


@pytest.mark.parametrize("command", main.commands)
def test_every_command_has_help(command):
    assert "Usage: main " + command in run(command, "--help").stdout


def test_an_unknown_preset_names_those_that_exist(project):
    result = run("check", "--preset", "smoek", code=2)
    assert "smoke" in result.stderr


def test_help_imports_nothing_that_a_command_needs(project):
    heavy = "rich", "numpy", "pydantic", "yaml", "msgspec", "duckdb", "numba"
    # `check` beside them, so that one process is started: what it reports needs no rich.
    script = f"""if True:
        import sys
        from gpubench.cli import main
        for name, command in main.commands.items():
            main([name, "--help"], standalone_mode=False)
            for inner in getattr(command, "commands", ()):
                main([name, inner, "--help"], standalone_mode=False)
        print("imported:", *(name for name in {heavy!r} if name in sys.modules))
        main(["check"], standalone_mode=False)
        print("imported:", *(name for name in ("rich", "duckdb", "numba") if name in sys.modules))
        """

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    lines = done.stdout.splitlines()
    assert sum(line.startswith("Usage: ") for line in lines) > len(main.commands)
    assert lines[-3:] == ["imported:", "1 suite, 1 kernel, 2 implementations, 6 cases", "imported:"]


def test_a_table_for_another_program_is_not_folded(project, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    lines = run("plan").stdout.splitlines()
    assert lines[1].split() == ["scale", "scale", "numpy", "numpy", "cpu", "2"]


def test_a_plan_shows_values_that_no_suite_declares(project):
    shown = run("plan", "-a", "n=12345", "-a", "implementation=numpy", "--list")
    assert "n=12345" in shown.stdout
    refused = CliRunner().invoke(main, ["plan", "-a", "n=12", "-a", "n=13"])
    assert refused.exit_code == 2
    assert "gpubench: -a n is given twice; write its values at once: -a n=12,13" in refused.stderr


@pytest.mark.parametrize("width", [60, 200])
def test_a_table_looks_the_same_where_no_cell_has_to_be_folded(width):
    columns, right = ("kernel", "device", "cases"), ("cases",)
    rows = [("scale", "cpu", "4"), ("größe", "cuda:0", "1,024"), ("大きさ", "", "")]
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(table(columns, rows, right, folded=True))

    assert lines_that_fit(columns, rows, right, width) == captured.get().splitlines()


def test_cells_that_have_to_be_folded_are_left_to_rich():
    assert lines_that_fit(("name",), [("a" * 20,)], (), 21) is None
    assert lines_that_fit(("name",), [("two\nlines",)], (), 80) is None


def test_a_large_object_is_printed_field_by_field_in_ascii(capsys):
    hostile = "\x7f\x9b \N{RIGHT-TO-LEFT OVERRIDE} \N{MICRO SIGN} \N{GRINNING FACE} \\"
    fields = {"a\n": {"x": hostile}, "b": [1, None]}

    for kept in (True, False):
        texts = (json.dumps(one, ensure_ascii=kept).encode() for one in fields.values())
        console.print_json_fields(zip(fields, texts, strict=True))
        printed = capsys.readouterr().out
        assert json.loads(printed) == fields
        assert printed.isascii()
    assert "\x7f" not in printed
    console.print_json_fields(())
    assert capsys.readouterr().out == "{}\n"
