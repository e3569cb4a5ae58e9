"""Kernels become subjects: each implementation with its backend and its baseline."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from gpubench.backends import registry
from gpubench.backends.recognition import recognise
from gpubench.errors import BackendError, KernelError
from gpubench.plan.machine import Machine
from gpubench.plan.subject import HOME, Subject
from gpubench.suite.loaded import LoadedSuite
from gpubench.suite.model import Implementation


class _Found(NamedTuple):
    """Backend of an implementation, or why there is none."""

    backend: str
    serves: Callable[[str], bool]
    times: tuple[str, ...] | None
    fault: str | None = None


def kernel_subjects(loaded: LoadedSuite, kernel_name: str, machine: Machine) -> tuple[Subject, ...]:
    """Every implementation of a kernel, in the order of the file."""
    kernel = loaded.suite.kernels[kernel_name]
    baseline = None
    if kernel.baseline in kernel.implementations:
        baseline = _subject(loaded, kernel_name, kernel.baseline, machine, None)
    return tuple(
        baseline
        if baseline is not None and name == kernel.baseline
        else _subject(loaded, kernel_name, name, machine, baseline)
        for name in kernel.implementations
    )


def _subject(
    loaded: LoadedSuite, kernel_name: str, name: str, machine: Machine, baseline: Subject | None
) -> Subject:
    kernel = loaded.suite.kernels[kernel_name]
    found = _find(kernel.implementations[name])
    measured = kernel.measure
    return Subject(
        loaded=loaded,
        kernel_name=kernel_name,
        implementation_name=name,
        backend=found.backend,
        machine=machine,
        serves=found.serves,
        times=tuple(time for time in measured if found.times is None or time in found.times),
        baseline=baseline,
        fault=found.fault,
    )


def _find(implementation: Implementation) -> _Found:
    try:
        name = implementation.backend or recognise(implementation)
        backend = registry.get(name)
    except (BackendError, KernelError) as error:
        return _Found("", _usual_devices(implementation), None, str(error))
    return _Found(name, partial(registry.serves, name), backend.times)


def _usual_devices(implementation: Implementation) -> Callable[[str], bool]:
    """Where an implementation would run if its backend were known: a launch means a device.

    Its cases keep the names that they had, so that a history shows the failure.
    """
    return partial(_is_usual, implementation.launch is not None)


def _is_usual(launched: bool, device: str) -> bool:
    return (device != HOME) == launched
