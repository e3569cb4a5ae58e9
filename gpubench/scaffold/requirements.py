"""What pip has to be told to install: this gpubench, its extras, and what CUDA needs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gpubench.backends import devices, registry
from gpubench.distribution import (
    DEVICE_DISTRIBUTION,
    DISTRIBUTION,
    LOCAL_REQUIREMENTS,
    find_installed,
    local_url,
)
from gpubench.errors import did_you_mean
from gpubench.scaffold.project_name import ProjectError


class AsvRequirements(NamedTuple):
    """What pip has to be told to install in asv's environments."""

    gpubench: str
    """This gpubench."""
    cuda: tuple[str, ...]
    """What CUDA needs; empty where it is not asked for."""


_OLDER_CUDA = ("numba-cuda[cu12]", "numpy<2.5")
"""For a driver of CUDA 12. softcuda brings CUDA 13. numba-cuda 0.30.4 calls np.row_stack, which
NumPy 2.5 has no more."""


def asv_requirements(needs_cuda: bool = False) -> AsvRequirements:
    """Return what pip has to be told to install in asv's environments.

    For CUDA that is softcuda, which brings numba-cuda and its libraries, or libraries for an older
    driver of this machine; nothing without a GPU, where ``needs_cuda`` does not ask for it. A
    driver runs programs for its own CUDA and older ones (CUDA Compatibility, "CUDA driver").
    """
    cuda: tuple[str, ...] = ()
    if devices.known_gpus() or needs_cuda:
        version = devices.cuda_version() if devices.known_gpus() else None
        is_older = version is not None and version < (13, 0)
        cuda = _OLDER_CUDA if is_older else (device_requirement(),)
    return AsvRequirements(requirement(find_installed()), cuda)


def device_requirement() -> str:
    """Return the requirement for the softcuda that is installed here; without one, what the extra
    ``cuda`` of gpubench asks for."""
    try:
        return requirement(distribution(DEVICE_DISTRIBUTION))
    except PackageNotFoundError:
        stated = map(Requirement, find_installed().requires or ())
        return next(
            f"{one.name}{one.specifier}" for one in stated if one.name == DEVICE_DISTRIBUTION
        )


def environments_of(systems: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Return the distributions of each environment of asv beside the engine's: first the one
    that most systems share, then one for each system that needs its own.

    Raises ``ProjectError`` for what is no system that is installed by an extra of gpubench.
    """
    names = list(dict.fromkeys(systems))
    apart = [name for name in names if name in registry.names() and registry.get(name).pins]
    together = [name for name in names if name not in apart]
    return (software_of(together), *(software_of([name]) for name in apart))


def software_of(systems: Iterable[str]) -> tuple[str, ...]:
    """Distributions of the extras of these names, sorted; raises ``ProjectError``."""
    software = {name: _software_of_extra(name) for name in systems}
    for name, found in software.items():
        if not found or name not in registry.names():
            extras = find_installed().metadata.get_all("Provides-Extra") or []
            known = sorted({extra.replace("-", "_") for extra in extras} & {*registry.names()})
            hint = did_you_mean(name, known)
            allowed = f"{hint} Allowed" if hint else "; allowed"
            raise ProjectError(
                f"no backend {name!r} has an extra of gpubench{allowed}: {', '.join(known)}"
            )
    return tuple(sorted(set().union(*software.values())))


def _software_of_extra(name: str) -> set[str]:
    """Distributions that an extra of gpubench asks for, those of the extras behind it too."""
    # An extra is written with hyphens in metadata, a backend with underscores.
    spelt, without = {"extra": name.replace("_", "-")}, {"extra": ""}
    names: set[str] = set()
    for one in map(Requirement, find_installed().requires or ()):
        if one.marker and one.marker.evaluate(spelt) and not one.marker.evaluate(without):
            if canonicalize_name(one.name) == DISTRIBUTION:
                names = names.union(*map(_software_of_extra, one.extras))
            else:
                names.add(one.name)
    return names


def requirement(installed: Distribution) -> str:
    """Return the requirement for an installed distribution, by its version and ``direct_url.json``.

    Options for pip where it was installed from a folder or a wheel of this machine (see
    ``LOCAL_REQUIREMENTS``), the repository and revision where it came from one, else the version:
    ``gpubench-suite==0.1.0``. See
    https://packaging.python.org/en/latest/specifications/direct-url/.
    """
    name, version = installed.metadata["Name"], installed.version
    origin: dict[str, Any] = json.loads(installed.read_text("direct_url.json") or "{}")
    url = origin.get("url", "")
    if url.startswith("file:"):
        is_there = local_url(installed) is not None
        return OF_THIS_MACHINE[name] if is_there else f"{name}=={version}"
    if vcs := origin.get("vcs_info"):
        folder = f"#subdirectory={inside}" if (inside := origin.get("subdirectory")) else ""
        return f"{name} @ {vcs['vcs']}+{url}@{vcs['commit_id']}{folder}"
    return f"{name} @ {url}" if url else f"{name}=={version}"


OF_THIS_MACHINE = {
    name: f"-r {{conf_dir}}/{path.as_posix()}" for name, path in LOCAL_REQUIREMENTS.items()
}
"""What pip is given, in the words of asv's configuration, by distribution."""


def install_options(requirement: str) -> str:
    """Return the options with which pip installs gpubench at each commit.

    pip leaves what is installed where the version is the same. So it is a release of that version,
    which never changes; but a wheel or a revision of the same version may be another.
    """
    is_release = requirement.startswith(f"{DISTRIBUTION}==")
    return "--no-deps" if is_release else "--no-deps --force-reinstall"


def quoted(text: str) -> str:
    """Text as one word of a command in asv's configuration.

    asv splits a command as a shell does and then formats every word (``asv.util``). Options for pip
    stay as they are.
    """
    if text in OF_THIS_MACHINE.values():
        return text
    return shlex.quote(text.replace("{", "{{").replace("}", "}}"))
