"""Plain Python is never timed as Numba's, whatever turned the compiler off."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
from numba.core import config

from gpubench.backends.numba_settings import find_plain, runs_as_python, why_off
from gpubench.backends.protocol import Target
from gpubench.backends.registry import get
from gpubench.errors import KernelError


def test_a_setting_in_the_file_of_the_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert why_off("DISABLE_JIT") is None
    Path(".numba_config.yaml").write_text("disable_jit: 1\n")
    monkeypatch.setattr(config, "DISABLE_JIT", 1)  # as Numba reads it when it is imported
    assert why_off("DISABLE_JIT") == (
        f"disable_jit is set in {tmp_path}/.numba_config.yaml, so that nothing would be compiled: "
        "take it out there"
    )
    assert get("numba").unavailable("cpu") == why_off("DISABLE_JIT")


def test_a_file_that_sets_something_else_turns_nothing_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".numba_config.yaml").write_text("disable_jit: 0\nopt: 2\n")
    assert why_off("DISABLE_JIT") is None


def test_what_a_module_sets_as_it_is_imported_is_seen_when_the_call_is_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with get("numba").open("cpu") as session:
        monkeypatch.setattr(config, "DISABLE_JIT", 1)
        with pytest.raises(KernelError, match=r"numba\.config\.DISABLE_JIT was set by imported"):
            session.bind(Target(function=print), None, ())


def test_the_simulator_is_named_with_what_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    assert get("numba_cuda").unavailable("cuda:0") == (
        "NUMBA_ENABLE_CUDASIM is set, so that Numba's simulator runs kernels as Python: unset it"
    )


MODULE = """
import functools
import numba
from numba import njit, vectorize

switch_off
@njit
def plain(a):
    return a

@numba.njit(cache=False)
def plain_too(a):
    return a
switch_on

@njit
def compiled(a):
    return a

@vectorize(["float64(float64)"])
def elements(a):
    return a

def calls_plain(a):
    return plain(a)

def calls_compiled(a):
    return compiled(a)

@functools.wraps(compiled)
def wrapper(a):
    return compiled(a)
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A module that turns the compiler off for two of its functions, and on again."""
    path = tmp_path_factory.mktemp("module") / "switching.py"
    off, on = (f"numba.config.DISABLE_JIT = {value}" for value in (1, 0))
    path.write_text(MODULE.replace("switch_off", off).replace("switch_on", on))
    spec = importlib.util.spec_from_file_location("switching", path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules["switching"] = loaded
    spec.loader.exec_module(loaded)
    return loaded


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("plain", "plain"),
        ("plain_too", "plain_too"),
        ("calls_plain", "plain"),
        ("compiled", None),
        ("elements", None),
        ("calls_compiled", None),
        ("wrapper", None),
    ],
)
def test_a_function_that_was_decorated_and_not_compiled_is_found(
    module: Any, name: str, plain: str | None
) -> None:
    function = getattr(module, name)
    assert find_plain(function) == plain
    with get("numba").open("cpu") as session:
        if plain is None:
            session.bind(Target(function=function), None, (1.0,))
        else:
            with pytest.raises(KernelError, match=f"^{plain} is decorated and was not compiled"):
                session.bind(Target(function=function), None, (1.0,))


def test_a_division_by_zero_says_what_numpy_does_differently() -> None:
    hint = get("numba").hint(ZeroDivisionError("division by zero"))
    assert hint is not None and "error_model='numpy'" in hint
    assert get("numba").hint(ValueError()) is None
    assert get("numpy").hint(ZeroDivisionError()) is None


PLAIN = """
import functools
import numba
from numba import njit, prange

def loop(a):
    for i in prange(3):
        pass
    return a

compiled = njit(loop)
not_compiled = njit(loop).py_func

@functools.wraps(compiled)
def pretends(a):
    return loop(a)

def anonymous(a):
    return (lambda x: loop(x))(a)

class Solver:
    def __call__(self, a):
        return loop(a)

    def solve(self, a):
        return loop(a)

class Compiling:
    def __init__(self):
        self.kernels = {"a": [compiled]}

    def __call__(self, a):
        return self.kernels["a"][0](a)

def made(kernel):
    def inner(a):
        return kernel(a)
    return inner

def imports(a):
    from plain_module import compiled
    return compiled(a)

def imports_late(a):
    from kernels_of_plain import go
    return go(a)

def by_module(a):
    import plain_module as module
    return getattr(module, "compiled")(a)

def through_another(a):
    return by_module(a)

def compiles_itself(a):
    return njit(loop)(a)

solver, solve, partial = Solver(), Solver().solve, functools.partial(loop)
compiling, closed_over = Compiling(), made(compiled)
partial_of_compiled, plain_closed_over = functools.partial(compiled), made(loop)
"""
RUN_BY_PYTHON = (
    *("loop", "not_compiled", "pretends", "anonymous", "solver", "solve", "partial"),
    "plain_closed_over",
)
RUN_BY_NUMBA = (
    *("compiled", "compiling", "closed_over", "partial_of_compiled", "imports", "by_module"),
    *("through_another", "compiles_itself", "imports_late"),
)


@pytest.fixture
def plain_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "plain_module.py").write_text(PLAIN)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("plain_module")
    del sys.modules["plain_module"]


def test_a_function_that_names_nothing_of_numba_s_is_run_by_python(plain_module: Any) -> None:
    found = {n: runs_as_python(getattr(plain_module, n)) for n in RUN_BY_PYTHON + RUN_BY_NUMBA}
    assert found == dict.fromkeys(RUN_BY_PYTHON, True) | dict.fromkeys(RUN_BY_NUMBA, False)
    with get("numba").open("cpu") as session:
        with pytest.raises(KernelError, match=r"^loop is plain Python and calls nothing"):
            session.bind(Target(function=plain_module.not_compiled), None, (1.0,))
        for name in RUN_BY_NUMBA:
            session.bind(Target(function=getattr(plain_module, name)), None, (1.0,))
