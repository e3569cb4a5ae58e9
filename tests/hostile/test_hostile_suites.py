"""Suites and modules that would cost time, memory or a traceback: each is refused in one line."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from time import process_time

import pytest
from click.testing import CliRunner, Result

from gpubench.cli import main
from gpubench.plan.plan import MAX_CASES, MAX_RULED
from gpubench.plan.source import MAX_MODULE

SUITE = """\
version: 1
suite: small
backend: numpy
kernels:
  add:
    sizes: {n: [4]}
    arrays:
      a: {shape: [n], dtype: float64}
      b: {shape: [n], dtype: float64, intent: out}
    call: [a, b]
    implementations:
      numpy: {function: "hostile_module:add"}
"""
MODULE = "def add(a, b):\n    b[:] = a\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "suites").mkdir()
    (tmp_path / "hostile_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUBENCH_PRESET", raising=False)
    return tmp_path


def checked(text: str = SUITE, *arguments: str) -> Result:
    Path("suites/small.yaml").write_text(text)
    return CliRunner().invoke(main, arguments or ["check"])


def refusal(result: Result) -> str:
    """What a refused command prints: one line for each fault, and their number."""
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.stderr
    return result.stderr


def test_the_suite_itself_is_right() -> None:
    assert checked().output == "1 suite, 1 kernel, 1 implementation, 1 case\n"


@pytest.mark.parametrize("command", ["check", "plan"])
def test_a_product_of_axes_is_counted_before_it_is_made(command: str) -> None:
    sizes = "{n: {linear: [1, 10000]}, m: {linear: [1, 10000]}}"
    text = SUITE.replace("{n: [4]}", sizes).replace("shape: [n]", "shape: [n, m]")

    said = refusal(checked(text, command))

    assert said.splitlines()[0] == (
        "suites/small.yaml:5:3: the suite has 100,000,000 cases before `exclude`, 100,000,000 of "
        f"them of kernel 'add'; at most {MAX_CASES:,} are planned: give axes, blocks and grids "
        "fewer values, or split the suite into several files"
    )


def test_blocks_times_grids_are_counted_too() -> None:
    shapes = [*range(1, 301)]
    launch = f"backend: numba_cuda, launch: {{block: {shapes}, grid: {shapes}}}"
    text = SUITE.replace('add"}', f'add", {launch}}}').replace(
        "    call", '    devices: ["cuda:0", cpu]\n    call'
    )

    assert "the suite has 90,000 cases" in refusal(checked(text))


def test_kernels_of_a_suite_count_together() -> None:
    head, kernel = SUITE.split("  add:\n")
    kernel = kernel.replace("[4]", f"{{linear: [1, {MAX_CASES // 10}]}}")
    ten = "".join(f"  add{number}:\n{kernel}" for number in range(11))

    said = refusal(checked(f"{head}{ten}"))

    assert f"{MAX_CASES // 10 * 11:,} cases before `exclude`, {MAX_CASES // 10:,} of them" in said


@pytest.mark.parametrize("count", [500, pytest.param(5000, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("command", ["check", "plan"])
def test_suites_by_the_hundred_are_read(command: str, count: int) -> None:
    for number in range(count):
        text = SUITE.replace("suite: small", f"suite: small_{number}")
        Path(f"suites/small_{number}.yaml").write_text(text)
    begun = process_time()

    result = CliRunner().invoke(main, [command])

    print(f"{command} of {count:,} suites: {process_time() - begun:.1f} s of processor time")
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"{count:,} " in result.stdout.splitlines()[-1]
    assert command == "check" or result.stdout.count("small_") == count


def test_rules_are_counted_with_the_cases_that_they_are_tried_on() -> None:
    rules = ", ".join(f"{{when: n == {n}}}" for n in range(200))
    sizes, few = "{n: {linear: [1, 6000]}}", "{n: {linear: [1, 5000]}}"
    text = SUITE.replace("    call", f"    exclude: [{rules}]\n    call")

    said = refusal(checked(text.replace("{n: [4]}", sizes)))

    assert said.splitlines()[0].endswith(
        f": 6,000 cases before `exclude` times 200 rules; at most {MAX_RULED:,} are tried in a "
        "suite: put rules together with `or`, or split the suite into several files"
    )
    assert checked(text.replace("{n: [4]}", few)).exit_code == 0


@pytest.mark.parametrize(
    "beginning",
    [
        f"x = {'-' * 200_000}1\n",
        f"x = {'+'.join('1' * 20_000)}\n",
        "if 0:\n  pass\n" + "".join(f"elif {i}:\n  pass\n" for i in range(3000)),
    ],
    ids=["signs", "sum", "elif"],
)
def test_a_module_that_python_cannot_parse_is_named(beginning: str) -> None:
    Path("hostile_module.py").write_text(beginning + MODULE)

    said = refusal(checked())

    assert "module 'hostile_module'" in said
    assert "nested too deeply" in said


def test_a_module_without_end_is_not_parsed() -> None:
    Path("hostile_module.py").write_text(MODULE + "x = 1\n" * (MAX_MODULE // 6))

    said = refusal(checked())

    assert f"at most {MAX_MODULE:,} are read of a module; put what the suite names" in said


def test_a_default_of_thousands_of_terms_ends_nothing() -> None:
    Path("hostile_module.py").write_text(f"def add(a={'+'.join('1' * 900)}):\n    pass\n")

    assert "hostile_module:add takes (" in refusal(checked())


def test_a_module_may_begin_with_a_byte_order_mark() -> None:
    Path("hostile_module.py").write_bytes(b"\xef\xbb\xbf" + MODULE.encode())

    assert checked().exit_code == 0


@pytest.mark.parametrize("extends", ["x" * 300, "loop.yaml", "pipe.yaml", ".", "/dev/zero"])
def test_what_a_suite_extends_is_a_regular_file(extends: str) -> None:
    Path("suites/loop.yaml").symlink_to("loop.yaml")
    os.mkfifo("suites/pipe.yaml")

    said = refusal(checked(f"extends: {extends}\n{SUITE}", "check", "suites/small.yaml"))

    assert said.startswith("suites/small.yaml:1:10: extends ")


@pytest.mark.parametrize("kind", ["pipe", "loop", "device", "sparse"])
def test_a_suite_is_a_regular_file(kind: str) -> None:
    path = Path("suites/odd.yaml")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "sparse":
        path.touch()
        os.truncate(path, 2**32)
    else:
        path.symlink_to("odd.yaml" if kind == "loop" else "/dev/zero")

    assert "suites/odd.yaml: " in refusal(checked())


@pytest.mark.parametrize("name", ["x" * 300, "loop", "loop/inside", "nothing"])
@pytest.mark.parametrize(
    "command", [["check"], ["time"], ["report", "--output"], ["compare", "a", "b", "--results"]]
)
def test_paths_that_lead_nowhere_are_refused_in_a_line(command: list[str], name: str) -> None:
    Path("loop").symlink_to("loop")
    if "--output" in command and name == "nothing":
        return  # which is made

    said = refusal(CliRunner().invoke(main, [*command, name]))

    assert len(said.splitlines()) <= 2


def test_wrong_names_by_the_hundred_are_compared_with_few(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def counted(name: str, candidates: Iterable[str]) -> str:
        compared.append(len([*candidates]))
        return ""

    monkeypatch.setattr("gpubench.suite.types.did_you_mean", counted)
    arrays = "".join(f"      a{i}xyz: {{shape: [n], dtype: float64}}\n" for i in range(600))
    call = ", ".join(f"b{i}xyw" for i in range(500))

    said = refusal(checked(SUITE.replace("    call: [a, b]", f"{arrays}    call: [{call}]")))

    assert said.splitlines()[-1] == "101 faults"
    assert max(compared) == 500
    assert len(compared) <= 101


def test_a_title_of_digits_is_read_once() -> None:
    title = "9" * 900_000 + "x"  # in a time that grows with its square this would take two hours
    assert checked(SUITE.replace("suite: small", f"suite: small\ntitle: {title}")).exit_code == 0


def test_a_name_that_is_a_mapping_is_a_fault() -> None:
    said = refusal(checked(SUITE.replace("suite: small", "suite: {a: 1}")))
    assert "suites/small.yaml:2:8: suite: found a mapping; allowed: text" in said


def test_a_check_of_an_array_that_is_at_fault_is_no_second_fault() -> None:
    check = "    check: {outputs: {b: {rtol: 0.1}}}\n    call:"
    text = SUITE.replace("dtype: float64, intent: out", "dtype: {}, intent: out")
    said = refusal(checked(text.replace("    call:", check)))
    assert said.splitlines()[1:] == ["1 fault"]


def test_a_scalar_that_its_dtype_does_not_hold_is_a_fault() -> None:
    text = SUITE.replace("    call:", "    scalars: {s: {value: 300, dtype: int8}}\n    call:")
    Path("hostile_module.py").write_text("def add(a, s, b):\n    b[:] = a\n")

    assert "scalars.s.value `300`" in refusal(checked(text.replace("[a, b]", "[a, s, b]")))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("__main__.x:f", "there is no module '__main__'"),
        ("hostile_module.x:f", "module 'hostile_module' has no 'x'"),
        ("hostile_module:f", "module 'hostile_module' has no 'f'"),
    ],
)
def test_a_function_that_is_not_there_is_a_fault(function: str, words: str) -> None:
    assert words in refusal(checked(SUITE.replace("hostile_module:add", function)))
