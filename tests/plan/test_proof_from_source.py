"""Functions are proved to be there from the source alone: what a suite names is not imported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from gpubench.errors import KernelError
from gpubench.plan.source import require, source_text
from gpubench.suite.model import Implementation

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a module, ``little_kernels`` by default, that could be imported."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def written(text: str, name: str = "little_kernels") -> str:
        path = tmp_path / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return name

    return written


PRESENT = {
    "a function": "def f(a): return a",
    "a decorated function": "import not_there\n@not_there.jit\ndef f(a): return a",
    "a lambda": "f = lambda a: a",
    "an annotated name": "f: object = print",
    "one name of several": "f, g = make()",
    "a class": "class f: ...",
    "a function that is there on some machines": "if False:\n    def f(a): ...",
    "a function in place of a failed import": "try:\n    import x\nexcept ImportError:\n"
    "    def f(a): ...",
    "a name from a module that imports all of another": "from os.path import *",
    "a name that is made when it is asked for": "def __getattr__(name): return print",
    "a name that is put there": "globals()['f'] = print",
    "an imported function": "from textwrap import dedent as f",
    "an imported module": "import textwrap as f",
    "a function of a compiled module": "from math import sqrt as f",
}


@pytest.mark.parametrize("kind", PRESENT)
def test_a_name_that_may_be_there_is_taken_to_be_right(kind: str, write: Write) -> None:
    module = write(PRESENT[kind])

    require(f"{module}:f")

    assert module not in sys.modules


def test_a_function_imported_from_elsewhere_is_looked_up_there(write: Write) -> None:
    write("def deep(a): return a", "little_package.inner")
    write("from .inner import deep as f, depe as g", "little_package.__init__")

    require("little_package:f")
    require("little_package:inner")
    with pytest.raises(KernelError, match=r"'little_package.inner' has no 'depe'; did you mean"):
        require("little_package:g")
    assert "little_package" not in sys.modules


MISSING = {
    "little_kernels:norm_cpu": "module 'little_kernels' has no 'norm_cpu'; "
    "did you mean 'norm_cuda'?",
    "little_kernels:xyz": "module 'little_kernels' has no 'xyz'",
    "little_package.iner:f": "there is no module 'little_package.iner': package 'little_package' "
    "has no 'iner'; did you mean 'inner'?",
    "little_kernels.inner:f": "there is no module 'little_kernels.inner': module 'little_kernels' "
    "has no 'inner'",
    "nowhere_at_all:f": "there is no module 'nowhere_at_all': install the package that has it, "
    "or run from the folder it is in",
}


@pytest.mark.parametrize("reference", MISSING)
def test_what_is_missing_is_named_with_the_nearest(reference: str, write: Write) -> None:
    write("def norm_cuda(a): return a")
    write("def f(a): return a", "little_package.inner")
    write("", "little_package.__init__")

    with pytest.raises(KernelError) as error:
        require(reference)

    assert str(error.value) == MISSING[reference]


def test_a_name_inside_a_function_is_none_of_the_module(write: Write) -> None:
    module = write("def make():\n    def f(a): ...\n    return f")

    with pytest.raises(KernelError, match="has no 'f'"):
        require(f"{module}:f")


def test_a_module_that_is_no_python_says_where(write: Write) -> None:
    module = write("def f(:")

    with pytest.raises(KernelError, match=r"^cannot read module 'little_kernels' \(.*\): Syntax"):
        require(f"{module}:f")


def test_a_changed_file_is_read_again(write: Write) -> None:
    module = write("def f(a): return a")
    require(f"{module}:f")

    write("def g(a): return a  # longer than before")

    with pytest.raises(KernelError, match="has no 'f'"):
        require(f"{module}:f")


def test_the_source_of_a_function_is_read_with_its_decorators(write: Write) -> None:
    module = write("import numba\n\n@numba.njit\ndef f(a):\n    return a\n\nx = 1\n")

    text = source_text(Implementation(function=f"{module}:f"), "suite.yaml")

    assert text == "@numba.njit\ndef f(a):\n    return a\n"
    assert module not in sys.modules


def test_of_two_definitions_the_last_is_shown(write: Write) -> None:
    module = write("def f(a):\n    return 1\n\ndef f(a):\n    return 2\n")

    text = source_text(Implementation(factory=f"{module}:f"), "suite.yaml")

    assert text == "def f(a):\n    return 2\n"


def test_the_text_of_a_source_file_is_read_beside_the_suite(tmp_path: Path) -> None:
    (tmp_path / "add.cl").write_text("kernel void add() {}", encoding="utf-8")
    implementation = Implementation.model_construct(source="add.cl", entry="add")

    assert source_text(implementation, tmp_path / "suite.yaml") == "kernel void add() {}"


def test_what_cannot_be_shown_is_named() -> None:
    assert source_text(Implementation(function="nowhere:f"), "suite.yaml") == "nowhere:f"
    assert source_text(Implementation(function="math:sqrt"), "suite.yaml") == "math:sqrt"
