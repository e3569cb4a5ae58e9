"""Templates in ``reports/`` of a project, which may be anybody's, compute and reach nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from report_sample import write_sample

from gpubench.cli import main
from gpubench.errors import GpubenchError
from gpubench.report import render
from gpubench.report.render import packaged_templates, write_report
from gpubench.results import Table, open_table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    directory = tmp_path_factory.mktemp("sample") / "results"
    write_sample(directory)
    return open_table(directory)


@pytest.fixture
def empty(tmp_path: Path) -> Table:
    return open_table(tmp_path / "nothing")


def overview(empty: Table, folder: Path, template: str) -> str:
    """The first page by this template."""
    templates = folder / "templates"
    templates.mkdir()
    (templates / "overview.html").write_text(template)
    return write_report(empty, folder / "html", templates).read_text()


@pytest.mark.parametrize(
    "expression",
    [
        "''.__class__.__mro__[1].__subclasses__()",
        "self.__init__.__globals__",
        "cycler.__init__.__globals__.os.system('echo')",
        "page.__class__.__init__.__globals__",
        "lipsum.__globals__['os'].popen('id').read()",
        "('{0.__class__.__mro__}').format(page)",
        "page | attr('__class__') | attr('__mro__')",
        "request.write_text('x')",
        "opened('/etc/passwd')",
        "writes('x')",
        "numbers.append(1)",
        "1 // 0",
        "range(10**9) | list",
    ],
)
def test_code_in_a_template_does_not_run(
    empty: Table, tmp_path: Path, expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    environment = render.page_environment

    def with_objects(overrides: Path | None) -> object:
        made = environment(overrides)
        made.globals |= {
            "request": victim,
            "opened": open,
            "writes": victim.write_text,
            "numbers": [],
        }
        return made

    monkeypatch.setattr(render, "page_environment", with_objects)

    with pytest.raises(GpubenchError, match=r"the template of index\.html .* fails: "):
        overview(empty, tmp_path, "{{ " + expression + " }}")

    assert not victim.exists()


@pytest.mark.parametrize(
    "tag", ["{% include '../secret' %}", "{% extends '/secret' %}", "{% import '../secret' as a %}"]
)
def test_a_template_reads_no_file_outside_of_its_folder(
    empty: Table, tmp_path: Path, tag: str
) -> None:
    (tmp_path / "secret").write_text("secret")

    with pytest.raises(GpubenchError, match="fails"):
        overview(empty, tmp_path, tag)


@pytest.mark.parametrize("name", ["overview.html", "gpubench.css", "kernel.html"])
def test_a_link_among_templates_is_not_followed_out_of_the_folder(
    table: Table, tmp_path: Path, name: str
) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / name).symlink_to(tmp_path / "secret")

    with pytest.raises(GpubenchError, match=rf"{name} is a symbolic link out of .*; copy the file"):
        write_report(table, tmp_path / "html", tmp_path / "templates")

    assert not (tmp_path / "html").exists()


def test_nor_is_a_folder_among_them(empty: Table, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "one").write_text("secret")
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "linked").symlink_to(tmp_path / "secrets")
    (tmp_path / "templates" / "overview.html").write_text("{% include 'linked/one' %}")

    with pytest.raises(GpubenchError, match=r"one is a symbolic link out of .*; copy the file"):
        write_report(empty, tmp_path / "html", tmp_path / "templates")


def test_packaged_templates_work_as_those_of_a_project_too(table: Table, tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    for path in packaged_templates().glob("*.html"):
        (tmp_path / "templates" / path.name).write_bytes(path.read_bytes())

    theirs = write_report(table, tmp_path / "theirs", tmp_path / "templates").parent
    packaged = write_report(table, tmp_path / "packaged").parent

    for page in packaged.glob("*.html"):
        shown, expected = (
            [
                line
                for line in (folder / page.name).read_text().splitlines()
                if "sources" not in line
            ]
            for folder in (theirs, packaged)
        )
        assert shown == expected


def test_ordinary_calls_of_a_template_work(empty: Table, tmp_path: Path) -> None:
    template = "{{ '{:.2f}'.format(1) }} {{ 'a b'.split() | join('-') }} {{ range(3) | list }}"

    assert overview(empty, tmp_path, template).startswith("1.00 a-b [0, 1, 2]")


@pytest.mark.parametrize("packaged", [False, True])
def test_scripts_of_a_project_are_left_out_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packaged: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "charts.js").write_text("theirs()")
    write_sample(tmp_path / ".asv" / "results")

    result = CliRunner().invoke(main, ["report", *["--packaged"] * packaged])

    assert result.exit_code == 0, result.output
    script = (tmp_path / "reports" / "html" / "charts.js").read_text()
    assert (script == "theirs()") is not packaged
