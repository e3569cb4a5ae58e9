"""Functions are proved to be there from the source alone: what a suite names is not imported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from gpubench.errors import KernelError
from gpubench.plan.plan import build_plan
from gpubench.plan.source import Arguments, require, source_text
from gpubench.suite.loading import load_suite
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
    "a function that one of a package may replace": "def f(a): ...\ntry:\n    from x import f\n"
    "except ImportError:\n    pass",
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
    "or run from its folder",
}


@pytest.mark.parametrize("reference", MISSING)
def test_what_is_missing_is_named_with_the_nearest(reference: str, write: Write) -> None:
    write("def norm_cuda(a): return a")
    write("def f(a): return a", "little_package.inner")
    write("", "little_package.__init__")

    with pytest.raises(KernelError) as error:
        require(reference)

    assert str(error.value) == MISSING[reference]


TAKES = {
    "the same": ("def f(values, generator): ...", None),
    "a default beside": ("def f(values, generator, n=3, *, k=4): ...", None),
    "any number": ("def f(*all): ...", None),
    "another name": ("def f(v, rng, /): ...", None),
    "annotations": ("def f(values: dict[str, int], generator) -> None: ...", None),
    "under numba": ("import numba\n@numba.cuda.jit(device=True)\ndef f(a, b): ...", None),
    "a decorator that may change it": ("@wrapped\ndef f(a): ...", None),
    "no function": ("f = make()", None),
    "a class": ("class f:\n    def __init__(self, a): ...", None),
    "one too few": ("def f(values: dict[str, int]): ...", "(values)"),
    "none": ("def f(): ...", "()"),
    "one too many": ("def f(values, generator, n): ...", "(values, generator, n)"),
    "one by name only": ("def f(values, generator, *, n): ...", "(values, generator, *, n)"),
    "too few under numba": ("@njit(cache=True)\ndef f(a=1): ...", "(a=1)"),
}


@pytest.mark.parametrize("kind", TAKES)
def test_a_function_takes_what_it_is_called_with(kind: str, write: Write) -> None:
    text, refused = TAKES[kind]
    module = write(text)
    arguments = Arguments(("values", "generator"))

    if refused is None:
        require(f"{module}:f", arguments)
    else:
        with pytest.raises(KernelError) as error:
            require(f"{module}:f", arguments)
        assert str(error.value) == (
            f"{module}:f takes {refused}, and is called with (values, generator): change the "
            "function, or what the suite gives it"
        )
    assert module not in sys.modules


FACTORIES = {
    "def make(tile, fast): ...": True,
    "def make(*, tile, fast=False, more=1): ...": True,
    "def make(**constants): ...": True,
    "def make(tile): ...": False,
    "def make(tile, fast, more): ...": False,
    "def make(tile, fast, /): ...": False,
}


@pytest.mark.parametrize("text", FACTORIES)
def test_a_factory_takes_its_values_by_name(text: str, write: Write) -> None:
    module, arguments = write(text), Arguments(keywords=("tile", "fast"))

    if FACTORIES[text]:
        require(f"{module}:make", arguments)
    else:
        with pytest.raises(KernelError, match=r"is called with \(tile=..., fast=...\)"):
            require(f"{module}:make", arguments)


SUITE = """\
version: 1
suite: small
kernels:
  small:
    sizes: {n: [8]}
    arrays:
      a: {shape: [n], dtype: float32, fill: {function: "little_kernels:draw"}}
      b: {shape: [n], dtype: float32, intent: out}
    init: {function: "little_kernels:start", returns: [c]}
    call: [a, b, c]
    check: {function: "little_kernels:agree"}
    implementations:
      numpy: {function: "little_kernels:f"}
      other: {launcher: "little_kernels:go", backend: numba_cuda, launch: {block: [8]}}
    devices: [cpu, "cuda:0"]
"""
GOOD = """\
def draw(values, generator): ...
def start(values, generator): ...
def agree(outputs, expected): ...
def f(a, b, c): ...
def go(launch, a, b, c): ...
"""


def test_every_function_that_a_suite_names_is_proved(tmp_path: Path, write: Write) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SUITE, encoding="utf-8")

    def faults() -> list[str]:
        plan = build_plan([load_suite(path)], 0)
        assert "little_kernels" not in sys.modules
        assert all((case.fault is None) == (not plan.faults()) for case in plan.cases())
        return [f"{fault.line}:{fault.column}: {fault.message}" for fault in plan.faults()]

    write(GOOD)
    assert faults() == []
    write("def dram(values, generator): ...\ndef start(values): ...\ndef agree(out, ref, n): ...\n"
          "def f(a, b): ...\ndef go(a, b, c): ...\n")  # fmt: skip
    change = "change the function, or what the suite gives it"
    assert faults() == [
        "7:56: module 'little_kernels' has no 'draw'; did you mean 'dram'?",
        "9:22: little_kernels:start takes (values), and is called with (values, generator): "
        + change,
        "11:23: little_kernels:agree takes (out, ref, n), and is called with (outputs, expected): "
        + change,
        "13:7: little_kernels:f takes (a, b), and is called with (a, b, c): "
        "write call: [a, b], or change the function",
        f"14:7: little_kernels:go takes (a, b, c), and is called with (launch, a, b, c): {change}",
    ]


AT_AN_OLD_COMMIT = {
    "no such function": ("def h(a, b, c): ...", "module 'little_kernels' has no 'f'"),
    "another number of arguments": ("def f(a, b): ...", "little_kernels:f takes (a, b), and is"),
    "a module that does not parse": (
        "def f(a, b, c):",
        "module 'little_kernels' is not Python: {path}:5: expected an indented block",
    ),
}


@pytest.mark.parametrize("code", AT_AN_OLD_COMMIT)
def test_all_cases_of_a_function_that_is_not_there_have_the_same_line(
    code: str, tmp_path: Path, write: Write
) -> None:
    text, expected = AT_AN_OLD_COMMIT[code]
    path = tmp_path / "small.yaml"
    sizes = SUITE.replace("{n: [8]}", "{n: [4, 8, 16]}")
    path.write_text(sizes, encoding="utf-8")
    write(GOOD.replace("def f(a, b, c): ...", text))

    cases = [*build_plan([load_suite(path)], 0).cases()]
    faults = {case.fault for case in cases if case.implementation.function == "little_kernels:f"}

    assert len(cases) >= 3
    (line,) = faults
    assert line is not None
    assert line.startswith(expected.format(path=tmp_path / "little_kernels.py"))
    assert "\n" not in line


def test_the_function_of_a_score_is_proved(tmp_path: Path, write: Write) -> None:
    path = tmp_path / "small.yaml"
    score = 'check: {score: "little_kernels:worth", at_most: 1.05}'
    path.write_text(SUITE.replace('check: {function: "little_kernels:agree"}', score))

    def faults() -> list[str]:
        return [
            f"{fault.column}: {fault.message}"
            for fault in build_plan([load_suite(path)], 0).faults()
        ]

    write(GOOD + "def worth(outputs, inputs): ...\n")
    assert faults() == []
    write(GOOD)
    assert faults() == ["20: module 'little_kernels' has no 'worth'"]
    write(GOOD + "def worth(outputs): ...\n")
    assert faults() == [
        "20: little_kernels:worth takes (outputs), and is called with (outputs, inputs): "
        "change the function, or what the suite gives it"
    ]


def test_a_name_inside_a_function_is_none_of_the_module(write: Write) -> None:
    module = write("def make():\n    def f(a): ...\n    return f")

    with pytest.raises(KernelError, match="has no 'f'"):
        require(f"{module}:f")


def test_a_module_that_is_no_python_says_where(write: Write) -> None:
    module = write("def f(:")

    with pytest.raises(KernelError, match=r"^module 'little_kernels' is not Python: .*py:1: inv"):
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


def test_a_package_in_src_that_is_not_installed_is_told_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src" / "shelved").mkdir(parents=True)
    (tmp_path / "src" / "shelved" / "cpu.py").write_text("def f(a): pass")
    monkeypatch.setattr("gpubench.plan.source.SEARCHED_FIRST", [str(tmp_path)])
    with pytest.raises(KernelError, match=r"no module 'shelved': it is in src/.*pip install -e \."):
        require("shelved.cpu:f")
