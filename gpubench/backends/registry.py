"""Finds backends by name among the entry points ``gpubench.backends`` of installed packages."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from gpubench.backends.protocol import Backend
from gpubench.errors import BackendError

GROUP = "gpubench.backends"

_MEMBERS = (
    "title",
    "requires",
    "times",
    "serves",
    "recognises",
    "unavailable",
    "device_facts",
    "open",
)


_preferred: dict[str, EntryPoint] = {}


@cache
def _declared() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def names() -> tuple[str, ...]:
    """Names of all declared backends, sorted; imports none of them."""
    return tuple(sorted({entry.name for entry in _declared()}))


@cache
def get(name: str) -> Backend:
    """The backend of that name; the same instance each time.

    Raises ``BackendError`` for a name that no package declares or that two declare, and for a
    backend that cannot be imported or made, with the cause and what to install.
    """
    if name in _preferred:
        return _checked(_made(_loaded(_preferred[name]), _preferred[name]), _preferred[name])
    entries = [entry for entry in _declared() if entry.name == name]
    if not entries:
        raise BackendError(_unknown(name))
    if len(entries) > 1:
        raise BackendError(_duplicate(name, entries))
    return _checked(_made(_loaded(entries[0]), entries[0]), entries[0])


def place(name: str) -> str:
    """Where a declared backend is: ``gpubench.backends.numpy:NumpyBackend``."""
    return next(entry.value for entry in _declared() if entry.name == name)


def prefer(name: str, value: str) -> None:
    """Load a backend from a place that was looked up before, without asking what is installed."""
    _preferred[name] = EntryPoint(name, value, GROUP)


def serves(name: str, device: str) -> bool:
    """Whether the backend of that name runs on a device."""
    return get(name).serves(device)


def _unknown(name: str) -> str:
    import difflib  # only to say what is wrong

    close = difflib.get_close_matches(name, names(), n=1)
    suggestion = f"did you mean {close[0]!r}? " if close else ""
    return (
        f"unknown backend {name!r}; {suggestion}Installed: {', '.join(names()) or 'none'}. "
        f"Another package can add one through the entry point group {GROUP!r}"
    )


def _duplicate(name: str, entries: list[EntryPoint]) -> str:
    declared = ", ".join(f"{_distribution(entry)} ({entry.value})" for entry in entries)
    return f"backend {name!r} is declared {len(entries)} times: {declared}; uninstall all but one"


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an unnamed distribution"


def _loaded(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except Exception as error:
        raise BackendError(_failure(entry, error, _missing(entry, error))) from error


def _made(factory: Any, entry: EntryPoint) -> Any:
    try:
        return factory()
    except Exception as error:
        import shlex

        needs = " ".join(map(shlex.quote, getattr(factory, "requires", ())))
        raise BackendError(_failure(entry, error, needs or _missing(entry, error))) from error


def _failure(entry: EntryPoint, error: Exception, install: str | None) -> str:
    advice = f"pip install {install}" if install else f"mend or uninstall {_distribution(entry)}"
    return (
        f"backend {entry.name!r} of {_distribution(entry)} cannot be loaded from {entry.value}: "
        f"{type(error).__name__}: {error}; {advice}"
    )


def _missing(entry: EntryPoint, error: Exception) -> str | None:
    """What to install for a module that is missing; ``None`` when installing mends nothing."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    if f"{entry.module}.".startswith(f"{error.name}."):
        return f"--force-reinstall {_distribution(entry)}"
    if entry.extras:
        return f"'{_distribution(entry)}[{','.join(entry.extras)}]'"
    return error.name.partition(".")[0]


def _checked(backend: Any, entry: EntryPoint) -> Backend:
    missing = [member for member in _MEMBERS if not hasattr(backend, member)]
    if missing:
        raise BackendError(
            f"backend {entry.name!r} of {_distribution(entry)} lacks {', '.join(missing)}; "
            "gpubench.backends.protocol.Backend says what each has to be"
        )
    if getattr(backend, "name", None) != entry.name:
        raise BackendError(
            f"backend {entry.name!r} of {_distribution(entry)} calls itself "
            f"{getattr(backend, 'name', None)!r}; entry point and 'name' have to agree"
        )
    found: Backend = backend
    return found
