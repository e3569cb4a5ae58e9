"""Nothing outside of the project and the output folder is read or written, links or not."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result
from result_files import CommitFiles

from gpubench.cli import main
from gpubench.edge.advise.checks import Prediction, keep, verification_path, verifications
from gpubench.errors import ResultsError
from gpubench.results import Setup, table_path

NUMPY = "suites.add__numpy.time_kernel"
SECRET = "the secret of somebody"

SUITE = """\
version: 1
suite: add
kernels:
  add:
    sizes: {n: [4, 8]}
    arrays:
      a: {shape: [n], dtype: float32, intent: inout}
    call: [a]
    implementations:
      numpy: {function: "add_kernels:add"}
    devices: [cpu]
"""

OPENCL = """\
      opencl: {source: SOURCE, entry: add, backend: pyopencl, launch: {block: [4]}}
"""


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "victim").write_text(SECRET)
    return folder


@pytest.fixture
def project(tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / "suites").mkdir(parents=True)
    (folder / "suites" / "add.yaml").write_text(SUITE)
    (folder / "add_kernels.py").write_text("def add(a): ...\n")
    files = CommitFiles(folder / ".asv" / "results", "a" * 40, 86_400)
    files.time(NUMPY, "n=4", 4.0).record(NUMPY, "n=4", backend="numpy", device="cpu").write()
    monkeypatch.chdir(folder)
    return folder


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert SECRET not in result.output
    return result


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


# --- writing


def test_a_page_replaces_a_link_and_does_not_write_through_it(project: Path, outside: Path) -> None:
    before = everything(outside)
    html = project / "reports" / "html"
    html.mkdir(parents=True)
    for name in ("index.html", "gpubench.css", "gpubench.css.new", "old.html"):
        (html / name).symlink_to(outside / "victim")
    (html / "text.js").symlink_to(outside / "made")

    assert run("report").exit_code == 0

    assert everything(outside) == before
    assert not (html / "index.html").is_symlink()
    assert not (html / "text.js").is_symlink()
    assert [path.name for path in html.glob("*.new")] == ["gpubench.css.new"]


@pytest.mark.parametrize(
    "link", ["reports", "reports/html", "reports/html/compare-data"], ids=lambda link: str(link)
)
def test_a_folder_of_the_report_that_is_a_link_is_refused(
    project: Path, outside: Path, link: str
) -> None:
    (outside / "old.js").write_text("theirs")
    before = everything(outside)
    (project / link).parent.mkdir(parents=True, exist_ok=True)
    (project / link).symlink_to(outside)

    result = run("report")

    assert result.exit_code == 2
    assert re.search(r"gpubench: \S+ is (or has )?a symbolic link", result.stderr)
    assert everything(outside) == before


def test_a_folder_that_the_caller_names_may_be_anywhere(project: Path, outside: Path) -> None:
    assert run("report", "--output", str(outside / "html")).exit_code == 0
    assert (outside / "html" / "index.html").is_file()


@pytest.mark.parametrize("suffix", ["", ".wal", ".tmp"])
def test_the_table_is_not_written_through_a_link(project: Path, outside: Path, suffix: str) -> None:
    table = table_path(project / ".asv" / "results")
    table.parent.mkdir()
    link = table.with_name(f"{table.name}{suffix}")
    link.symlink_to(outside / "made")

    result = run("query", "select count(*) from results")

    assert result.exit_code == 0, result.output
    assert [*everything(outside)] == ["victim"]
    assert not link.is_symlink()


def test_a_cache_folder_that_is_a_link_is_not_used_and_told(project: Path, outside: Path) -> None:
    table_path(project / ".asv" / "results").parent.symlink_to(outside)

    result = run("query", "--json", "select count(*) as n from results")

    assert result.stdout == '[{"n": 1}]\n'
    assert ".gpubench-cache is a symbolic link; remove it" in result.stderr
    assert [*everything(outside)] == ["victim"]


def test_the_cache_s_gitignore_is_not_written_through_a_link(project: Path, outside: Path) -> None:
    folder = table_path(project / ".asv" / "results").parent
    folder.mkdir()
    (folder / ".gitignore").symlink_to(outside / "victim")

    run("query", "select 1")

    assert (outside / "victim").read_text() == SECRET


# --- reading


@pytest.mark.parametrize("link", [".asv", ".asv/results", "suites"])
def test_a_folder_that_leads_out_of_the_project_is_refused(
    project: Path, outside: Path, link: str
) -> None:
    (outside / "inner").mkdir()
    (project / link).rename(outside / "inner" / "moved")
    (project / link).symlink_to(outside / "inner" / "moved")
    before = everything(outside)

    result = run("plan") if link == "suites" else run("query", "select 1")

    assert result.exit_code == 2
    assert "a symbolic link that leads out of this folder, to " in result.stderr
    assert everything(outside) == before


@pytest.mark.parametrize("name", ["runner/bbbbbbbb-env.json", "runner/bbbbbbbb-env.gpubench.jsonl"])
def test_results_that_are_links_out_are_named_and_not_read(
    project: Path, outside: Path, name: str
) -> None:
    (project / ".asv" / "results" / name).symlink_to(outside / "victim")

    result = run("query", "--json", "select count(*) as n from results")

    assert result.stdout == '[{"n": 1}]\n'
    message = "a symbolic link that leads out of the results, which is not followed; copy the file"
    assert f"{name}: {message}" in result.stderr


@pytest.mark.parametrize("name", ["benchmarks.json", "runner/machine.json", "elsewhere"])
def test_other_files_of_asv_are_not_read_through_links_out(
    project: Path, outside: Path, name: str
) -> None:
    path = project / ".asv" / "results" / name
    path.unlink(missing_ok=True)
    CommitFiles(outside / "r", "b" * 40, 1, machine="m").time(NUMPY, "n=4", 1.0).write()
    path.symlink_to(outside / ("r/m" if name == "elsewhere" else "victim"))

    result = run("query", "--json", "select count(*) as n from results")

    assert result.stdout == '[{"n": 1}]\n'
    assert f"{name}: a symbolic link that leads out" in result.stderr


def test_verifications_are_neither_read_nor_kept_through_links_out(
    project: Path, outside: Path
) -> None:
    results = project / ".asv" / "results"
    path = verification_path(results, Setup("runner", "env"))
    one = Prediction(
        *("add", "add", "numpy", "cpu", "", {"n": 4.0}, "kernel", "predicted"),
        *(1.0, 0.5, 2.0, 1.0, 1.0, 1.0, "2026-03-01T10:00:00"),
    )
    keep([one], outside / "kept", outside)
    before = everything(outside)
    path.symlink_to(outside / "kept")

    assert verifications(path, results) == {}
    with pytest.raises(ResultsError, match="is a symbolic link out of"):
        keep([one], path, results)
    assert everything(outside) == before


def test_a_link_inside_of_the_results_is_followed(project: Path) -> None:
    results = project / ".asv" / "results"
    (results / "again").symlink_to(results / "runner")

    result = run("query", "--json", "select count(*) as n from results")

    assert "leads out" not in result.stderr
    assert result.stdout == '[{"n": 2}]\n'


@pytest.mark.parametrize(
    "source", ["/etc/passwd", "../../outside/victim", "../link.cl", "../linked/victim"]
)
def test_a_source_outside_of_the_project_is_a_fault_at_its_place(
    project: Path, outside: Path, source: str
) -> None:
    (project / "link.cl").symlink_to(outside / "victim")
    (project / "linked").symlink_to(outside)
    suite = SUITE.replace("    devices", OPENCL.replace("SOURCE", source) + "    devices")
    (project / "suites" / "add.yaml").write_text(suite)

    result = run("check")

    place = r"suites/add\.yaml:11:24: "
    assert result.exit_code == 2
    assert re.match(
        rf"{place}source '{source}' lies outside of \S+; copy the file there, or ", result.stderr
    )


def test_a_source_beside_the_suites_is_fine(project: Path) -> None:
    (project / "kernels").mkdir()
    (project / "kernels" / "add.cl").write_text("__kernel void add(__global float *a) {}\n")
    suite = SUITE.replace(
        "    devices", OPENCL.replace("SOURCE", "../kernels/add.cl") + "    devices"
    )
    (project / "suites" / "add.yaml").write_text(suite)

    assert "outside" not in run("check").stderr


def test_what_a_suite_extends_lies_in_the_project(project: Path, outside: Path) -> None:
    (outside / "base.yaml").write_text(SUITE)
    (project / "suites" / "add.yaml").write_text(f"{SUITE}extends: ../../outside/base.yaml\n")

    result = run("check")

    assert result.exit_code == 2
    assert re.match(
        r"suites/add\.yaml:12:10: extends '\.\./\.\./outside/base\.yaml', which lies outside of "
        r"\S+; copy the file there, or work in the folder that holds both\n",
        result.stderr,
    )


def test_a_suite_that_is_a_link_out_is_a_fault(project: Path, outside: Path) -> None:
    (project / "suites" / "other.yaml").symlink_to(outside / "victim")

    result = run("check")

    assert result.exit_code == 2
    assert re.match(
        r"suites/other\.yaml: it is a link that leads out of \S+; copy the file there\n",
        result.stderr,
    )


def test_a_module_that_is_a_link_out_is_a_fault(project: Path, outside: Path) -> None:
    (outside / "theirs.py").write_text(f"def addition(): ...\n# {SECRET}\n")
    (project / "add_kernels.py").unlink()
    (project / "add_kernels.py").symlink_to(outside / "theirs.py")

    result = run("check")

    assert result.exit_code == 2
    assert "cannot read module 'add_kernels'" in result.stderr
    assert "addition" not in result.stderr


def test_a_circle_of_links_is_a_message(project: Path) -> None:
    (project / "a").symlink_to("b")
    (project / "b").symlink_to("a")

    for arguments in (("report", "--output", "a"), ("report", "--suites", "a"), ("check", "a")):
        run(*arguments)


# --- SQL and a table of somebody else


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_text('{victim}')",
        "select * from read_csv('{victim}')",
        "select * from '{victim}'",
        "select * from glob('/*')",
        "copy (select 1) to '{made}'",
        "attach '{made}'",
        "export database '{made}'",
        "import database '{made}'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set lock_configuration = false",
        "set profiling_output = '{made}'",
        "pragma enable_profiling = 'json'",
        "call enable_logging(storage = 'file', storage_config = {{'path': '{made}'}})",
        "set temp_directory = '{made}'",
        "set secret_directory = '{made}'",
        "create persistent secret s (type s3, key_id 'a', secret 'b')",
        "select * from sql",
    ],
)
def test_sql_reaches_no_file_no_network_and_no_variable(
    project: Path, outside: Path, sql: str
) -> None:
    before = everything(outside)

    result = run("query", sql.format(victim=outside / "victim", made=outside / "made"))

    assert result.exit_code == 2
    assert result.stdout == ""
    assert everything(outside) == before


@pytest.mark.parametrize("view", ["snapshots", "results", "present", "meta"])
def test_views_of_a_planted_table_read_no_file(project: Path, outside: Path, view: str) -> None:
    run("query", "select 1")
    table = table_path(project / ".asv" / "results")
    with duckdb.connect(table) as connection:
        kind = "view" if view in ("results", "present") else "table"
        if view == "present":
            connection.execute("drop view results")
        columns = connection.execute(f"select * from {view}").description or ()
        connection.execute(f"drop {kind} {view}")
        read = f"(select content from read_text('{outside / 'victim'}'))"
        selected = ", ".join(f'{read} as "{column[0]}"' for column in columns)
        connection.execute(f"create view {view} as select {selected}")

    for arguments in (("query", "select * from results"), ("report", "--json"), ("choose",)):
        run(*arguments)

    assert [*everything(outside)] == ["victim"]
