"""What suites name, loaded: a function, a factory's product, a launcher, a program."""

from __future__ import annotations

import importlib
from typing import Any

from gpubench.backends.protocol import Target
from gpubench.errors import KernelError, did_you_mean
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
        values = case.with_values()
        try:
            return Target(function=load_object(implementation.factory)(**values))
        except KernelError:
            raise
        except Exception as error:
            given = ", ".join(f"{name}={value!r}" for name, value in values.items())
            cause = f"{type(error).__name__}: {error}"
            message = f"factory {implementation.factory}({given}) failed: {cause}"
            raise KernelError(message) from error
    path, constants = case.source_path(), case.with_values()
    try:
        source = path.read_text(encoding="utf-8")
    except OSError as error:
        raise KernelError(f"cannot read source {str(path)!r}: {error.strerror}") from error
    return Target(source=source, entry=implementation.entry, constants=constants)


def load_object(reference: str) -> Any:
    """Object behind ``module:name``.

    One with a method ``__gpubench_target__`` stands for what that returns, so that a library can
    put off compiling a function until it is measured. Raises ``KernelError`` naming what is there
    instead.
    """
    module_name, _, name = reference.partition(":")
    try:
        loaded: Any = importlib.import_module(module_name)
    except Exception as error:
        raise KernelError(
            f"cannot import {module_name!r} for {reference!r}: {type(error).__name__}: {error}"
        ) from error
    for part in name.split("."):
        if not hasattr(loaded, part):
            hint = did_you_mean(part, dir(loaded))
            raise KernelError(f"module {module_name!r} has no {name!r}{hint}")
        loaded = getattr(loaded, part)
    stands_for = getattr(loaded, "__gpubench_target__", None)
    return loaded if stands_for is None else stands_for()
