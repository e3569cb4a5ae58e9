"""One way to name suites and kernels, for all commands (``gpubench.suite.naming``)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpubench.cli import main, options
from gpubench.edge.fleet.command import refuse_other_folders
from gpubench.errors import GpubenchError
from gpubench.suite.naming import SuiteFiles, complete, find_kernels

KERNEL = """\
  {name}:
    sizes: {{n: [8]}}
    arrays: {{a: {{shape: [n], dtype: float32, intent: inout}}}}
    call: [a]
    implementations: {{numpy: {{function: "mine:change"}}}}
"""


def write_suite(path: Path, *kernels: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(KERNEL.format(name=name) for name in kernels)
    presets = "presets: {smoke: {sizes: {n: [2]}}}\n"
    path.write_text(f"version: 1\nsuite: {path.stem}\nkernels:\n{text}{presets}")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_suite(tmp_path / "suites/scale.yaml", "double", "half", "scale")
    write_suite(tmp_path / "suites/sums.yaml", "total", "half")
    write_suite(tmp_path / "suites/deep/inner.yaml", "far")
    (tmp_path / "scale").mkdir()  # as a package of that name would be
    (tmp_path / "mine.py").write_text("def change(a):\n    a[:] = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUBENCH_PRESET", raising=False)
    return tmp_path


def planned(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["plan", "--json", *arguments])
    assert result.exit_code == code, result.output
    if code:
        return result.stderr.strip()
    cases = json.loads(result.stdout)
    return " ".join(f"{case['suite']}.{case['kernel']}" for case in cases)


@pytest.mark.parametrize(
    ("names", "kernels"),
    [
        ("scale", "scale.double scale.half scale.scale"),
        ("scale::half", "scale.half"),
        ("scale.half", "scale.half"),
        ("double", "scale.double"),
        ("suites/sums.yaml", "sums.total sums.half"),
        ("./suites/sums.yaml::total", "sums.total"),
        ("total double", "scale.double sums.total"),
        ("scale.half scale::half double", "scale.double scale.half"),
        ("suites/deep", "inner.far"),
        ("far", "inner.far"),
        ("", "inner.far scale.double scale.half scale.scale sums.total sums.half"),
    ],
)
def test_every_way_to_name_a_kernel(project: Path, names: str, kernels: str) -> None:
    assert sorted(planned(*names.split()).split()) == sorted(kernels.split())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("half", "2 suites have a kernel 'half'; write scale::half, sums::half"),
        ("scale.hal", "suite 'scale' has no kernel 'hal'; did you mean 'half'?"),
        ("sums::zero", "suite 'sums' has no kernel 'zero'; it has total, half"),
        ("doubel", "there is no suite, kernel or path 'doubel'; did you mean 'double'?"),
        ("xyz", "there is no suite, kernel or path 'xyz'; suites/ has scale, sums, inner"),
        ("suites/sums.yaml::zero", "suites/sums.yaml has no kernel 'zero'; it has total, half"),
    ],
)
def test_what_no_name_stands_for_is_told_with_what_to_write(
    project: Path, name: str, message: str
) -> None:
    assert planned(name, code=2) == f"gpubench: {message}"


def test_a_kernel_alone_is_checked_where_it_alone_is_named(project: Path) -> None:
    text = (project / "suites/sums.yaml").read_text()
    (project / "suites/sums.yaml").write_text(text.replace("mine:change", "mine:chnage", 1))
    run = CliRunner().invoke
    assert (
        run(main, ["check", "sums.half"]).stdout == "1 suite, 1 kernel, 1 implementation, 1 case\n"
    )
    assert "did you mean 'change'?" in run(main, ["check", "sums.total"]).stderr
    answer = run(main, ["check", "--json"])
    assert answer.exit_code == 2
    assert [fault["line"] for fault in json.loads(answer.stdout)["faults"]] == [8]
    assert "0 cases" in run(main, ["check", "sums.half", "--where", "n > 8"]).stdout


def test_time_of_everything_asks_first(project: Path) -> None:
    refused = CliRunner().invoke(main, ["time"])
    assert refused.exit_code == 2
    assert refused.stderr == (
        "gpubench: no name is given, and all 5 cases may take hours; name suites or kernels, or "
        "choose a preset: gpubench time --preset smoke\n"
    )


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_what_cannot_be_a_path_is_no_name(name: str, project: Path) -> None:
    with pytest.raises(GpubenchError, match="there is no suite, kernel or path"):
        SuiteFiles(Path("suites")).find(name)


KEYS = [("scale", "half"), ("sums", "half"), ("sums", "sums"), ("bench.py", "Suite.time_x")]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("scale", [("scale", "half")]),
        ("suites/scale.yaml", [("scale", "half")]),
        ("suites/sums.yaml::half", [("sums", "half")]),
        ("sums.half", [("sums", "half")]),
        ("sums", [("sums", "half"), ("sums", "sums")]),
        ("bench.py.Suite.time_x", [("bench.py", "Suite.time_x")]),
        ("bench.py::Suite.time_x", [("bench.py", "Suite.time_x")]),
    ],
)
def test_results_are_named_alike(name: str, found: list[tuple[str, str]]) -> None:
    assert sorted(find_kernels([name], KEYS)) == found


def test_results_that_are_not_there_are_told_with_those_that_are() -> None:
    assert find_kernels([], KEYS) == {*KEYS}
    with pytest.raises(GpubenchError) as refused:
        find_kernels(["xyz"], KEYS)
    assert str(refused.value) == (
        "there are no results of 'xyz'; measured are scale, sums, bench.py; `asv run` measures more"
    )


def test_a_shell_completes_suites_then_kernels_and_presets(project: Path) -> None:
    files = SuiteFiles(Path("suites"))
    assert complete("s", files) == ["scale", "sums"]
    assert complete("scale::h", files) == ["scale::half"]
    assert complete("sums.", files) == ["sums.total", "sums.half"]
    assert complete("dou", files) == ["double"]
    verify = main.commands["verify"]
    preset = next(option for option in verify.params if option.name == "preset")
    context = verify.make_context("verify", [])
    assert [item.value for item in preset.shell_complete(context, "s")] == ["smoke"]
    assert options.PresetName().shell_complete(context, preset, "x") == []


def test_a_fleet_measures_suites_of_one_folder(project: Path) -> None:
    refuse_other_folders(["scale", "sums.half", "total", "./suites/sums.yaml", "suites"])
    message = "'suites/deep/inner.yaml': .* is not of suites/, whose suites machines measure"
    with pytest.raises(GpubenchError, match=message):
        refuse_other_folders(["suites/deep/inner.yaml"])
