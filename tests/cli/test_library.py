"""``--library``: the suites that gpubench brings, in a folder that has none."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpubench.cli import main
from gpubench.suite.folder import asked_folder
from gpubench.suite.schema import schema_text


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUBENCH_PRESET", raising=False)
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output + result.stderr
    return result


def test_a_suite_of_the_library_is_verified_by_name():
    only = ("--where", "implementation == 'numpy'", "--preset", "smoke")

    shown = run("verify", "--library", "vector_add", *only, "--json")

    cases = json.loads(shown.stdout)["cases"]
    assert {(case["suite"], case["status"]) for case in cases} == {("vector_add", "right")}


@pytest.mark.ci
def test_the_whole_library_is_right_beside_its_declared_sizes_too():
    shown = run("verify", "--library", "--preset", "smoke")  # ends with 0 where all are right

    assert "wrong" not in shown.stdout
    assert "beside the declared sizes: " in shown.stdout


def test_an_unknown_suite_is_told_with_those_that_are_there():
    shown = run("verify", "--library", "no_such_suite", code=2)

    assert "no_such_suite" in shown.stderr and "has finance, images" in shown.stderr


def test_the_next_command_reads_the_project_s_suites_again():
    run("verify", "--library", "no_such_suite", code=2)

    assert "vector_addition" in run("verify", "vector_addition", code=2).stderr
    assert asked_folder(Path("suites")) == Path("suites")


def test_the_installed_schema_is_the_one_that_is_printed():
    path = Path(run("schema", "--path").stdout.strip())

    assert path.read_text(encoding="utf-8") == schema_text()
