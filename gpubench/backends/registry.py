"""Finds backends by name among the entry points ``gpubench.backends`` of installed packages."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint

from gpubench.backends.protocol import Backend, Description
from gpubench.entry_points import declared
from gpubench.errors import BackendError, did_you_mean
from gpubench.names import CPU

BACKENDS_GROUP = "gpubench.backends"


def names() -> tuple[str, ...]:
    """Return the names of all declared backends, sorted; imports none of them."""
    return tuple(sorted(declared(BACKENDS_GROUP).names))


@cache
def get(name: str) -> Backend:
    """Return the backend of that name; the same instance each time.

    Raises ``BackendError`` for a name that no package declares or that two declare, and for a
    backend that cannot be imported or made, with the cause and what to install.
    """
    # A distribution that was renamed may be installed under both names: that is one backend.
    found = declared(BACKENDS_GROUP).select(name=name)
    entries = tuple({entry.value: entry for entry in found}.values())
    if not entries:
        if hint := did_you_mean(name, names()):
            raise BackendError(f"unknown backend {name!r}{hint}")
        raise BackendError(
            f"unknown backend {name!r}; installed: {', '.join(names()) or 'none'}. "
            f"Another package can add one through the entry point group {BACKENDS_GROUP!r}"
        )
    if len(entries) > 1:
        places = ", ".join(f"{_distribution(entry)} ({entry.value})" for entry in entries)
        raise BackendError(
            f"backend {name!r} is declared {len(entries)} times: {places}; uninstall all but one"
        )
    (entry,) = entries
    factory = None
    try:
        factory = entry.load()
        backend = factory()
    except Exception as error:
        needs = " ".join(map(shlex.quote, getattr(factory, "requires", ())))
        install = needs or _missing(entry, error)
        distribution = _distribution(entry)
        advice = f"pip install {install}" if install else f"mend or uninstall {distribution}"
        raise BackendError(
            f"backend {name!r} of {distribution} cannot be loaded from {entry.value}: "
            f"{type(error).__name__}: {error}; {advice}"
        ) from error
    if not isinstance(backend, Backend):
        raise BackendError(
            f"backend {name!r} of {_distribution(entry)} is no gpubench.backends.protocol.Backend; "
            "derive it from that class, which says what it has to have"
        )
    missing = [member for member in ("name", "title", "times") if not hasattr(backend, member)]
    if missing:
        raise BackendError(
            f"backend {name!r} of {_distribution(entry)} lacks {', '.join(missing)}; "
            "gpubench.backends.protocol.Backend says what each has to be"
        )
    if backend.name != name:
        raise BackendError(
            f"backend {name!r} of {_distribution(entry)} calls itself {backend.name!r}; "
            "entry point and 'name' have to agree"
        )
    return backend


def usable() -> Iterator[Backend]:
    """Yield every declared backend, in the order of their names. One that cannot be loaded is left
    out: it is reported where a suite names it."""
    for name in names():
        with suppress(BackendError):
            yield get(name)


@cache
def by_decorator() -> Mapping[str, str]:
    """Return the names of backends by the decorators of their functions; of several with the same
    one the first counts."""
    named: dict[str, str] = {}
    for backend in usable():
        for decorator in backend.decorators:
            named.setdefault(decorator, backend.name)
    return named


def describe_devices() -> list[Description]:
    """Return the devices of this machine, each once, as the backends describe them; starts none of
    them. The host's processor comes first."""
    lines: dict[str, Description] = {}
    for backend in usable():
        for line in backend.devices():
            lines.setdefault(line.device, line)
    return sorted(lines.values(), key=lambda line: line.device != CPU)


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an unnamed distribution"


def _missing(entry: EntryPoint, error: Exception) -> str | None:
    """Return what to install for a module that is missing; ``None`` when installing mends
    nothing."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    if f"{entry.module}.".startswith(f"{error.name}."):
        return f"--force-reinstall {_distribution(entry)}"
    if entry.extras:
        return f"'{_distribution(entry)}[{','.join(entry.extras)}]'"
    return error.name.partition(".")[0]
