"""What an implementation names, loaded: a function, a factory's product, a launcher, a program."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from gpubench.backends.protocol import Target
from gpubench.errors import KernelError
from gpubench.kernels.lazy_numba import resolve
from gpubench.plan.case import Case


def load_target(case: Case) -> Target:
    """Import what the case's implementation names; a factory is called with its ``with`` values.

    Raises ``KernelError`` with the cause and the next step when something is not there or a factory
    fails.
    """
    implementation = case.implementation
    if implementation.function is not None:
        return Target(function=load_object(implementation.function))
    if implementation.launcher is not None:
        return Target(launcher=load_object(implementation.launcher))
    if implementation.factory is not None:
        return Target(function=_made(implementation.factory, case))
    source, constants = _source(case), case.with_values()
    return Target(source=source, entry=implementation.entry, constants=constants)


def load_object(reference: str) -> Any:
    """Object behind ``module:name``, Numba's own where it waits to be compiled.

    Raises ``KernelError`` naming what is there instead.
    """
    module_name, _, name = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise KernelError(
            f"cannot import {module_name!r} for {reference!r}: {type(error).__name__}: {error}"
        ) from error
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            import difflib  # only to say what is wrong

            near = difflib.get_close_matches(part, dir(found), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise KernelError(f"module {module_name!r} has no {name!r}{hint}")
        found = getattr(found, part)
    return resolve(found)


def _made(reference: str, case: Case) -> Any:
    values = case.with_values()
    try:
        return load_object(reference)(**values)
    except KernelError:
        raise
    except Exception as error:
        given = ", ".join(f"{name}={value!r}" for name, value in values.items())
        raise KernelError(
            f"factory {reference}({given}) failed: {type(error).__name__}: {error}"
        ) from error


def _source(case: Case) -> str:
    path = Path(case.source_path())
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise KernelError(f"cannot read source {str(path)!r}: {error.strerror}") from error
