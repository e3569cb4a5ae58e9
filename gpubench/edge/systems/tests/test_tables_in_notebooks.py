"""``gpubench.load_results()``: stored results as a table of the library that is asked for."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from report_sample import write_sample

import gpubench
from gpubench import notebook
from gpubench.errors import GpubenchError

NOTEBOOK = Path(__file__).parents[4] / "examples" / "results.ipynb"
COUNT = "select suite, kernel, count(*) as cases from results group by all order by all"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notebook")
    write_sample(folder / ".asv" / "results")
    return folder


@pytest.mark.systems
@pytest.mark.parametrize(
    ("kind", "module", "name"),
    [
        ("pandas", "pandas", "DataFrame"),
        ("polars", "polars", "DataFrame"),
        ("arrow", "pyarrow", "Table"),
    ],
)
def test_a_query_gives_a_table_of_each_kind(
    project: Path, kind: notebook.Kind, module: str, name: str
) -> None:
    library = pytest.importorskip(module)

    table: Any = gpubench.load_results(COUNT, folder=project / ".asv/results", as_=kind)

    assert isinstance(table, getattr(library, name))
    rows = table.to_pylist() if kind == "arrow" else [*map(tuple, table.to_numpy().tolist())]
    assert len(rows) == 6
    assert [*getattr(table, "column_names", table.columns)] == ["suite", "kernel", "cases"]


def test_the_first_library_that_is_installed_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"polars", "pyarrow"}
    monkeypatch.setattr(notebook, "find_spec", lambda name: name in there or None)
    assert notebook._installed(None) == "polars"
    there.remove("polars")
    assert notebook._installed(None) == "arrow"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (None, "tables need pandas, polars or pyarrow, which is not installed: pip install "),
        ("pandas", "tables of 'pandas' need pandas, which is not installed: pip install "),
        ("excel", "there are no tables of 'excel'; give 'pandas', 'polars', 'arrow'"),
    ],
)
def test_what_has_to_be_installed_is_told(
    monkeypatch: pytest.MonkeyPatch, asked: Any, message: str
) -> None:
    monkeypatch.setattr(notebook, "find_spec", lambda name: None)
    with pytest.raises(GpubenchError) as raised:
        gpubench.load_results(as_=asked)
    assert str(raised.value).startswith(message)


@pytest.mark.systems
def test_the_example_runs_from_its_first_cell_to_its_last(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(project)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    namespace: dict[str, Any] = {"display": lambda shown: shown._repr_html_()}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), namespace)
    assert len(namespace["fastest"]) == 6
    assert "iframe" in namespace["chart"]._repr_html_()


def test_the_example_is_a_notebook_without_outputs() -> None:
    content = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    if "nbformat" in sys.modules or _has("nbformat"):
        import nbformat

        nbformat.validate(nbformat.from_dict(content))


def _has(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None
