"""Pages on disk: complete, self-contained, safe from what results say, open to overrides."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment
from result_files import CommitFiles

from gpubench.errors import GpubenchError
from gpubench.report import render, templates
from gpubench.report.pages import all_pages
from gpubench.report.render import packaged_templates, view_models, write_report
from gpubench.results import Table, open_table

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> {{ 7 * 7 }} </script>"
NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"


SCRIPTS = {
    "application/json", "text.js", "lists.js", "charts.js", "explore.js", "compare.js", "advise.js",
    "compare-data/index.js",
}  # fmt: skip


class Elements(HTMLParser):
    """Collects start tags with their attributes."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture
def nothing(tmp_path: Path) -> Table:
    """Of a results directory that is empty."""
    (tmp_path / "nothing").mkdir()
    return open_table(tmp_path / "nothing")


@pytest.fixture(scope="module")
def site(sample: Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(sample, tmp_path_factory.mktemp("site")).parent


def pages(site: Path) -> list[Path]:
    return sorted(site.glob("*.html"))


def test_there_is_an_overview_and_a_page_for_each_kernel_and_setup(site: Path) -> None:
    shared = sum(page.is_shared for page in all_pages())
    assert len(pages(site)) == 2 * (1 + len(all_pages()) - shared + 6) + shared
    assert (site / "kernel-norm.html").exists()
    assert (site / "kernel-matmul--gpu-box-virtualenv-py3.12-numba-cuda.html").exists()


def test_every_link_leads_to_a_file_of_the_report(site: Path) -> None:
    for page in pages(site):
        elements = Elements(page)
        links = [a["href"] for a in elements.of("a") + elements.of("link")]
        links += [script["src"] for script in elements.of("script") if "src" in script]
        files = {link.partition("#")[0] for link in links if link and not link.startswith("#")}
        assert files
        assert all((site / file).is_file() for file in files)


def test_nothing_comes_from_a_network(site: Path) -> None:
    for path in [*pages(site), site / "gpubench.css", site / "charts.js"]:
        assert not re.search(r"https?:|//[a-z]|@import|url\(", path.read_text().replace("// ", ""))


def test_every_page_carries_a_policy_that_allows_no_inline_script(site: Path) -> None:
    for page in pages(site):
        metas = Elements(page).of("meta")
        (policy,) = [m["content"] for m in metas if m.get("http-equiv")]
        assert policy is not None
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["default-src"] == "'none'"
        assert rules["script-src"] == "'self' file:"


def test_every_chart_has_a_caption_a_sentence_and_its_figure(site: Path) -> None:
    page = site / "kernel-norm.html"
    elements = Elements(page)
    charts = elements.of("div")
    charts = [chart for chart in charts if chart.get("class") == "chart"]
    embedded = dict(
        re.findall(
            r'<script type="application/json" id="([^"]+)">(.*?)</script>',
            page.read_text(encoding="utf-8"),
            re.DOTALL,
        )
    )

    assert len(charts) == len(elements.of("figcaption")) == 2
    for chart in charts:
        figure = json.loads(embedded[chart["data-figure"] or ""])
        assert figure["data"]
        assert chart["aria-label"]


def test_every_table_has_a_caption_and_every_image_a_name(site: Path) -> None:
    for page in pages(site):
        elements = Elements(page)
        assert len(elements.of("table")) == len(elements.of("caption"))
        assert all(svg["aria-label"] for svg in elements.of("svg"))


def hostile_results(directory: Path) -> Table:
    repository, results = directory / "repository", directory / "results"
    files = CommitFiles(results, hostile_commit(repository), 86_400, environment="env<b>&")
    case = f"n=4 dtype={HOSTILE}"
    files.facts(cpu=HOSTILE)
    for n, benchmark in ((case, NUMPY), (case, NUMBA)):
        files.time(benchmark, n, 1.0)
    files.time(NUMBA, "n=8", 1.0)
    files.record(NUMBA, "n=8", "failed", reason=HOSTILE, title=HOSTILE)
    files.record(NUMBA, case, warnings=(HOSTILE,), device=HOSTILE)
    files.write()
    (results / "runner" / "<i>.json").write_text("{")
    return open_table(results, repository)


def hostile_commit(repository: Path) -> str:
    """Hash of a commit whose subject tries to be markup."""
    git = ["git", "-C", str(repository), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    repository.mkdir(parents=True)
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", HOSTILE]):
        subprocess.run([*git, *command], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return head.stdout.strip()


def test_names_reasons_and_subjects_are_text_and_never_markup(tmp_path: Path) -> None:
    site = write_report(hostile_results(tmp_path), tmp_path / "site").parent
    shows_it: defaultdict[str, bool] = defaultdict(bool)

    for page in pages(site):
        content = page.read_text(encoding="utf-8")
        elements = Elements(page)
        shows_it[page.name.partition("-")[0]] |= "alert(1)" in content
        assert elements.of("img") == []
        kinds = {script.get("type") or script.get("src") for script in elements.of("script")}
        assert kinds <= SCRIPTS
        without_hashes = re.sub(r"[0-9a-f]{8,}", "", content)
        assert "49" not in re.findall(r"\{\{|49", without_hashes)[:1]
        assert "<i>" not in content
    assert shows_it["index.html"] and shows_it["kernel"] and shows_it["choose.html"]


def test_a_figure_holds_no_markup_of_others(tmp_path: Path) -> None:
    site = write_report(hostile_results(tmp_path), tmp_path / "site").parent

    content = (site / "kernel-add.html").read_text(encoding="utf-8")
    (figure,) = re.findall(r'id="figure-history">(.*?)</script>', content, re.DOTALL)
    history = json.loads(figure)
    texts = history["names"]

    assert len(texts) == 2
    assert all("<script" not in text and "&lt;script" in text for text in texts)


def test_no_results_still_make_a_page(nothing: Table, tmp_path: Path) -> None:
    index = write_report(nothing, tmp_path)

    assert "Nothing measured yet" in index.read_text(encoding="utf-8")


def test_plotly_is_written_once(sample: Table, tmp_path: Path) -> None:
    write_report(sample, tmp_path)
    before = (tmp_path / "plotly.min.js").stat().st_mtime_ns
    write_report(sample, tmp_path)

    assert (tmp_path / "plotly.min.js").stat().st_mtime_ns == before


def test_pages_that_are_no_longer_part_of_the_report_go(
    sample: Table, nothing: Table, tmp_path: Path
) -> None:
    write_report(sample, tmp_path)
    (tmp_path / "notes.html").write_text("mine")

    write_report(nothing, tmp_path)

    assert [page.name for page in pages(tmp_path)] == ["index.html", "notes.html"]


def test_a_project_overrides_a_single_page(sample: Table, tmp_path: Path) -> None:
    own = tmp_path / "reports"
    own.mkdir()
    (own / "overview.html").write_text(
        '{% extends "packaged/overview.html" %}{% block head %}<!-- ours -->{% endblock %}'
    )

    site = write_report(sample, tmp_path / "site", own).parent

    overview = (site / "index.html").read_text(encoding="utf-8")
    assert "<!-- ours -->" in overview
    assert "Over 6 kernels" in overview
    assert "<!-- ours -->" not in (site / "kernel-norm.html").read_text(encoding="utf-8")


def test_a_folder_that_holds_pages_alone_has_no_templates(
    sample: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path | None] = []
    environment = templates.page_environment

    def noted(overrides: Path | None) -> Environment:
        asked.append(overrides)
        return environment(overrides)

    monkeypatch.setattr(render, "page_environment", noted)
    reports = tmp_path / "reports"
    write_report(sample, reports / "html")
    write_report(sample, reports / "html", reports)
    (reports / "kernel.html").write_text("mine")
    write_report(sample, reports / "html", reports)

    assert asked == [None, None, reports], "a sandbox takes longer, and is for templates"
    assert {page.read_text() for page in (reports / "html").glob("kernel-*")} == {"mine"}


def test_a_template_is_compiled_once_for_all_reports_of_a_process(
    nothing: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    compile_template = Environment.compile

    def noted(environment: Environment, source: str, name: str, filename: str) -> object:
        kind = "sandboxed" if environment.sandboxed else "plain"
        compiled.append(f"{kind} {Path(filename).parent.name}/{name}")
        return compile_template(environment, source, name, filename)

    def newly_compiled(folder: Path | None = None) -> list[str]:
        compiled.clear()
        write_report(nothing, tmp_path / "html", folder)
        return [each for each in compiled if "overview.html" in each]

    monkeypatch.setattr(Environment, "compile", noted)
    monkeypatch.setattr(templates, "_COMPILED", templates.CompiledTemplates())
    own = tmp_path / "own"
    own.mkdir()
    shipped = packaged_templates().name

    assert newly_compiled() == [f"plain {shipped}/overview.html"]
    shutil.rmtree(tmp_path / "html")
    assert newly_compiled() == []
    # A sandbox has code of its own, and so has a text that was edited.
    for text in ('{% extends "packaged/overview.html" %}', "mine"):
        (own / "overview.html").write_text(text)
        assert "sandboxed own/overview.html" in newly_compiled(own)
    assert (tmp_path / "html/index.html").read_text() == "mine"


def test_compiled_templates_of_the_package_are_kept_where_python_keeps_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    compile_text = Environment.compile

    def noted(environment: Environment, source: Any, *names: Any, **more: Any) -> Any:
        compiled.append(source)
        return compile_text(environment, source, *names, **more)

    def rendered() -> tuple[str, int]:
        """A page, and how many templates it had to compile."""
        compiled.clear()
        environment = templates.page_environment(None)
        environment.bytecode_cache = templates.CompiledTemplates(tmp_path / "module.py")
        macros: Any = environment.get_template("parts.html").module
        return macros.commit.name, len(compiled)

    monkeypatch.setattr(Environment, "compile", noted)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "__pycache__").mkdir()

    assert [rendered(), rendered()] == [("commit", 1), ("commit", 0)]
    (kept,) = (tmp_path / "__pycache__").iterdir()
    kept.write_bytes(kept.read_bytes()[:100])
    assert [rendered(), rendered()] == [("commit", 1), ("commit", 0)]
    monkeypatch.setattr(templates, "jinja2_version", "99")
    assert rendered() == ("commit", 1)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "elsewhere"))
    assert rendered() == ("commit", 1)


def test_a_project_overrides_the_styles(sample: Table, tmp_path: Path) -> None:
    (tmp_path / "gpubench.css").write_text("body { color: teal }")

    site = write_report(sample, tmp_path / "site", tmp_path).parent

    assert (site / "gpubench.css").read_text() == "body { color: teal }"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{% if %}", r"overview\.html:1: Expected an expression"),
        ("{{ page.nothing }}", r"the template of index\.html \(overview\.html\) fails: .*nothing"),
    ],
)
def test_a_broken_template_is_named(
    sample: Table, tmp_path: Path, template: str, message: str
) -> None:
    (tmp_path / "overview.html").write_text(template)

    with pytest.raises(GpubenchError, match=message):
        write_report(sample, tmp_path / "site", tmp_path)


def test_a_folder_that_cannot_be_written_is_named(nothing: Table, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(GpubenchError, match=r"the report cannot be written: .*--output"):
        write_report(nothing, tmp_path / "file")


def test_the_view_models_are_plain_json(sample: Table) -> None:
    models = view_models(sample)

    text = json.dumps(models, allow_nan=False)
    assert set(models) >= {"index.html", "kernel-norm.html"}
    assert json.loads(text)["index.html"]["title"] == "Overview"


def test_unknown_bounds_are_null(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 86_400)
    files.time(NUMPY, "n=4", 1.0, count=1).time(NUMBA, "n=4", 1.0, count=1).write()

    row = view_models(open_table(tmp_path))["kernel-add.html"]["cases"][1]["row"]

    assert (row["low"], row["speedup"]["high"]) == (None, None)


def test_the_templates_are_found() -> None:
    names = {path.name for path in packaged_templates().iterdir()}

    assert {"base.html", "overview.html", "kernel.html", "gpubench.css", "charts.js"} <= names
