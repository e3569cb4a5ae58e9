"""What a function of the user raises is told with its kind, its words, and its file and line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpubench.errors import KernelError, describe_error
from gpubench.measure.targets import called, load_object, place_in_module

MODULE = """\
import json

def fails():
    helps({})

def helps(values):
    return values["date"]

def reads():
    json.loads("{")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    package = tmp_path / "placed_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "inner.py").write_text(MODULE, encoding="utf-8")
    (package / "broken.py").write_text("import no_such_module_at_all\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith("placed_package")]:
        monkeypatch.delitem(sys.modules, name)
    return "placed_package.inner"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fails", "KeyError: there is no 'date' in helps (placed_package/inner.py:7)"),
        ("reads", "in reads (placed_package/inner.py:10)"),
    ],
)
def test_the_last_line_of_the_users_module_is_named(module: str, name: str, said: str) -> None:
    reference = f"{module}:{name}"
    with pytest.raises(Exception) as caught:
        load_object(reference)()
    assert f"{describe_error(caught.value)}{place_in_module(caught.value, reference)}".endswith(
        said
    )
    with (
        pytest.raises(KernelError, match="the check failed: ") as told,
        called("the check", reference),
    ):
        load_object(reference)()
    assert str(told.value).endswith(said)


def test_a_module_that_cannot_be_imported_is_told_with_its_line(module: str) -> None:
    with pytest.raises(KernelError) as told:
        load_object("placed_package.broken:f")
    assert str(told.value) == (
        "cannot import 'placed_package.broken' for 'placed_package.broken:f': ModuleNotFoundError: "
        "No module named 'no_such_module_at_all' in <module> (placed_package/broken.py:1)"
    )


def test_an_error_from_elsewhere_has_no_place() -> None:
    try:
        int("x")
    except ValueError as error:
        assert place_in_module(error, "elsewhere:f") == ""
        assert place_in_module(error, None) == ""
