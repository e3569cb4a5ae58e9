"""What suites name, loaded: a function, a factory's product, a launcher, a program."""

from __future__ import annotations

import importlib
import os
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from gpubench.backends import registry
from gpubench.backends.devices import no_gpu_reason
from gpubench.backends.protocol import Call, Division, Native, Part, Session, Target
from gpubench.backends.software import SWITCH, requested
from gpubench.errors import KernelError, NoDeviceError, describe_error, did_you_mean
from gpubench.git import ask_git, outermost_top_level
from gpubench.plan.case import Case


def load_target(case: Case) -> Target:
    """Import what the case's implementation names; a factory is called with its ``with`` values.
    Raises ``KernelError`` where something is not there or a factory fails."""
    implementation = case.implementation
    if implementation.parts:
        return Target(function=_division(case, str(implementation.split)))
    if implementation.function is not None:
        return Target(function=load_object(implementation.function))
    if implementation.launcher is not None:
        return Target(launcher=load_object(implementation.launcher))
    if implementation.factory is not None:
        values = case.with_values()
        given = ", ".join(f"{name}={value!r}" for name, value in values.items())
        with called(f"factory {implementation.factory}({given})", implementation.factory):
            return Target(function=load_object(implementation.factory)(**values))
    path, constants = path_at_commit(case.source_path()), case.with_values()
    try:
        source = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        missing = NameError(name=path.name)
        raise KernelError(f"cannot read source {str(path)!r}: {error.strerror}") from missing
    except OSError as error:
        raise KernelError(f"cannot read source {str(path)!r}: {error.strerror}") from error
    return Target(source=source, entry=implementation.entry, constants=constants)


def _division(case: Case, split: str) -> Division:
    """Return how the work of a case is divided along a size."""
    arrays = case.kernel.arrays.items()
    extents = {name: [str(extent).strip() for extent in array.shape] for name, array in arrays}
    return Division(
        int(case.values[split]),
        tuple(_part(part, split) for part in case.parts()),
        case.kernel.arguments(case.implementation_name),
        {name: shape.index(split) for name, shape in extents.items() if split in shape},
    )


def _part(case: Case, split: str) -> Part:
    """Return what takes any portion of the work; ``case`` is all of it."""
    arguments = case.kernel.arguments(case.implementation_name)
    target = load_target(case)

    def bind(session: Session, length: int, native: Mapping[str, Native]) -> Call:
        portion = case.with_size(split, length)
        scope = {**portion.values, **portion.constants(), **portion.scalars(), **native}
        return session.bind(target, portion.launch, [scope[name] for name in arguments])

    return Part(
        case.implementation_name,
        case.device,
        partial(registry.get(case.backend).open, case.device, case.threads, case.options()),
        bind,
        arguments,
        case.implementation.returns,
    )


def load_object(reference: str) -> Any:
    """Object behind ``module:name``, or what its method ``__gpubench_target__`` returns: with that
    a library puts off compiling until it is measured. Raises ``KernelError`` naming what is there
    instead."""
    module_name, _, name = reference.partition(":")
    try:
        loaded: Any = importlib.import_module(module_name)
    except Exception as error:
        place = place_in_module(error, reference)
        if _asks_for_a_device(error):
            raise NoDeviceError(
                f"module {module_name!r} needs a GPU to be imported{place}, and there is none: a "
                "kernel with a signature, as of @cuda.jit('void(...)'), is compiled at once; leave "
                f"signatures out, or set {SWITCH}=1 to have softcuda in place of a GPU"
            ) from error
        cause = f"{describe_error(error)}{place}"
        raise KernelError(f"cannot import {module_name!r} for {reference!r}: {cause}") from error
    for part in name.split("."):
        if not hasattr(loaded, part):
            hint = did_you_mean(part, dir(loaded))
            missing = NameError(name=part)
            raise KernelError(f"module {module_name!r} has no {name!r}{hint}") from missing
        loaded = getattr(loaded, part)
    stands_for = getattr(loaded, "__gpubench_target__", None)
    return loaded if stands_for is None else stands_for()


def path_at_commit(path: Path) -> Path:
    """Return where the commit that asv measures has a file that a suite names: in asv's checkout.

    A suite is read from the working tree, the program that it names is code. Returns the path
    itself where asv checked nothing out, or something else than the repository of the suite.
    """
    environment, commit = os.environ.get("ASV_ENV_DIR"), os.environ.get("ASV_COMMIT", "")
    place = Path(os.path.realpath(path))
    if environment is None or (top := outermost_top_level(place.parent)) is None:
        return path
    if not _has_commit(top, commit):
        return path
    return Path(environment, "project", place.relative_to(top))


@cache
def _has_commit(repository: Path, commit: str) -> bool:
    return ask_git(repository, "cat-file", "-t", commit).strip() == b"commit"


def _asks_for_a_device(error: BaseException) -> bool:
    """Return whether a CUDA library gave up for want of a device: no error of a missing package,
    and not on the device in software, which is one."""
    if type(error) in (ImportError, ModuleNotFoundError) or requested():
        return False
    kinds = (f"{kind.__module__}.{kind.__name__}" for kind in type(error).__mro__)
    words = " ".join((*kinds, str(error))).lower()
    return any(map(words.__contains__, _OF_CUDA)) and no_gpu_reason() is not None


_OF_CUDA = ("cuda", "cuinit", "cudriver", "nvml", "nvidia")
"""Words of which Numba's, CuPy's, PyCUDA's and PyTorch's errors have one where there is no GPU."""


@contextmanager
def called(what: str, reference: str | None = None) -> Iterator[None]:
    """Raise what a function of a suite raises inside as a ``KernelError`` that names the call, and
    the line of ``reference``, the function's ``module:name``."""
    try:
        yield
    except KernelError:
        raise
    except Exception as error:
        place = place_in_module(error, reference)
        raise KernelError(f"{what} failed: {describe_error(error)}{place}") from error


def place_in_module(error: BaseException, reference: str | None) -> str:
    """Return `` in FUNCTION (mine.py:29)``, the last line of a module's package that was at work as
    an error came; empty where none of its lines was, as in code that is compiled.

    The file is that of the module's name, which is the same in each environment that it is
    installed in.
    """
    top = (reference or "").partition(":")[0].partition(".")[0]
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        is_engine = module.startswith("gpubench") and not module.startswith("gpubench.kernels")
        if module.partition(".")[0] == top and not is_engine:
            file = Path(frame.f_code.co_filename).name
            folders = module.split(".")[: None if file == "__init__.py" else -1]
            place = f" in {frame.f_code.co_name} ({'/'.join([*folders, file])}:{line})"
    return place
