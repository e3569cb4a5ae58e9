"""Suites in folders of ``suites/``: which are read, and by whom."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpubench.asv_benchmarks import benchmark_classes
from gpubench.cli import main
from gpubench.errors import GpubenchError, SuiteError
from gpubench.project.opening import declared_pairs
from gpubench.suite.folder import asked_folder
from gpubench.suite.loading import LoadedSuite, load_suites

SUITE = """\
version: 1
suite: {name}
kernels:
  {name}:
    sizes: {{n: [4]}}
    arrays:
      a: {{shape: [n], dtype: float32}}
      b: {{shape: [n], dtype: float32, intent: out}}
    call: [a, b]
    implementations:
      numpy: {{function: "numpy:negative"}}
"""
PAIRS = """\
version: 1
suite: {name}
pairs: [{{name: sum, baseline: bench.time_numpy, candidate: bench.{name}}}]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("plain", "systems/arrays", "systems/far/deep", "systems/.hidden/copy"):
        write(tmp_path / f"suites/{name}.yaml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUBENCH_SUITES", raising=False)
    return tmp_path


def write(path: Path, text: str = SUITE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.format(name=path.stem), encoding="utf-8")
    return path


def names(suites: Iterable[LoadedSuite]) -> list[str]:
    return [loaded.suite.suite for loaded in suites]


def gpubench(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result.output


def test_a_folder_is_read_alone_or_with_the_folders_in_it(project: Path) -> None:
    assert names(load_suites([project / "suites"])) == ["plain"]
    assert names(load_suites([project / "suites"], nested=True)) == ["plain", "arrays", "deep"]


def test_check_and_plan_read_all_suites_of_a_project(project: Path) -> None:
    assert gpubench("check") == "3 suites, 3 kernels, 3 implementations, 3 cases\n"
    assert gpubench("check", "suites/systems").startswith("2 suites, ")
    assert gpubench("check", "suites/plain.yaml").startswith("1 suite, ")
    listed = gpubench("plan", "--list").splitlines()
    assert [line.partition("__")[0] for line in listed] == [
        "suites.plain",
        "suites.arrays",
        "suites.deep",
    ]


@pytest.mark.parametrize("name", ["other.yml", "other.YAML"])
def test_a_suite_of_another_ending_is_named_and_not_left_out(project: Path, name: str) -> None:
    (project / "suites" / name).write_text(SUITE.format(name="other"))

    with pytest.raises(SuiteError) as raised:
        load_suites([project / "suites"])

    (fault,) = raised.value.faults
    assert fault.message == "suite files end in .yaml: rename it to other.yaml"
    assert fault.path.endswith(name)


def test_two_suites_of_one_name_in_different_folders_are_refused(project: Path) -> None:
    write(project / "suites/systems/plain.yaml")

    (fault,) = faults_of("suites")

    assert fault == (
        "suites/systems/plain.yaml:2:8: suite 'plain' is there twice; the other is "
        "suites/plain.yaml:2:8"
    )
    assert "is there twice" in gpubench("check", code=2)


def faults_of(folder: str) -> list[str]:
    with pytest.raises(SuiteError) as refusal:
        load_suites([folder], nested=True)
    return [str(fault) for fault in refusal.value.faults]


def test_a_file_in_a_folder_that_a_suite_extends_is_no_suite_of_its_own(project: Path) -> None:
    base = write(project / "suites/common/base.yaml", SUITE.replace("version: 1\n", ""))
    assert faults_of("suites")[0].startswith("suites/common/base.yaml:")
    write(project / "suites/plain.yaml", "version: 1\nsuite: plain\nextends: common/base.yaml\n")
    # A suite beside those that extend it is one itself.
    write(project / "suites/other.yaml", "version: 1\nsuite: other\nextends: plain.yaml\n")

    loaded = load_suites(["suites"], nested=True)

    assert names(loaded) == ["other", "plain", "arrays", "deep"]
    with pytest.raises(SuiteError):
        load_suites(["suites", base], nested=True)


def test_asv_gets_the_suites_of_one_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suites = project / "suites"
    assert list(benchmark_classes(suites)) == ["plain__numpy"]

    monkeypatch.setenv("GPUBENCH_SUITES", "suites/systems")

    assert list(benchmark_classes(suites)) == ["arrays__numpy"]


def test_asv_finds_one_benchmark_in_the_folder_that_is_asked_for(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = "suites.arrays__numpy.time_kernel-0"
    monkeypatch.setattr("sys.argv", ["benchmark.py", "run", "folder", asked, "{}"])
    monkeypatch.setenv("GPUBENCH_SUITES", "suites/systems")

    assert list(benchmark_classes(project / "suites")) == ["arrays__numpy"]


def test_a_suite_is_found_by_name_in_the_folder_that_is_asked_for(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = gpubench("verify", "arrays", code=2)
    assert "'arrays'; suites/ has plain; a path is suites/systems/arrays.yaml" in missing
    assert "1 case" in gpubench("verify")

    monkeypatch.setenv("GPUBENCH_SUITES", "suites/systems")

    assert "arrays" in gpubench("verify", "arrays")
    assert "arrays" in gpubench("verify")
    assert "suites/systems/ has arrays" in gpubench("verify", "plain", code=2)


@pytest.mark.parametrize("folder", ["suites/none", "..", ".", "suites/plain.yaml", "/"])
def test_a_folder_that_is_not_in_the_project_is_refused(
    folder: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUBENCH_SUITES", folder)

    with pytest.raises(GpubenchError) as refusal:
        asked_folder(Path("suites"))

    assert str(refusal.value) == (
        f"GPUBENCH_SUITES of {folder!r}: no such folder in {project}; allowed: a folder of suites "
        "inside the project, suites/systems for example, or nothing"
    )
    assert "no such folder" in gpubench("verify", code=2)


def test_pairs_are_those_of_one_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("before", "systems/beside"):
        write(project / f"suites/{name}.yaml", PAIRS)

    def candidates() -> list[str]:
        return [pair.candidate for pair in declared_pairs(asked_folder(Path("suites")))]

    assert candidates() == ["bench.before"]
    monkeypatch.setenv("GPUBENCH_SUITES", "suites/systems")
    assert candidates() == ["bench.beside"]
