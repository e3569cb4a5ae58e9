"""What asv's environments install: gpubench, the way in which this one was installed, and what CUDA
needs on this machine."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from gpubench.backends import devices


def own_requirement() -> str:
    """What pip has to be told to install this gpubench again.

    A local path where it was installed from a folder or a wheel, the repository and revision where
    it came from one, else the version: ``gpubench==0.1.0``.
    """
    return requirement(distribution("gpubench"))


def requirement(installed: Distribution) -> str:
    """Requirement for an installed distribution, by its version and ``direct_url.json``.

    See https://packaging.python.org/en/latest/specifications/direct-url/.
    """
    name, version = installed.metadata["Name"], installed.version
    origin: dict[str, Any] = json.loads(installed.read_text("direct_url.json") or "{}")
    url = origin.get("url", "")
    if url.startswith("file:"):
        path = Path(url2pathname(urlsplit(url).path))
        return str(path) if path.exists() else f"{name}=={version}"
    if vcs := origin.get("vcs_info"):
        return f"{name} @ {vcs['vcs']}+{url}@{vcs['commit_id']}"
    return f"{name} @ {url}" if url else f"{name}=={version}"


def cuda_requirement() -> str | None:
    """numba-cuda with the libraries for this machine's driver; ``None`` where there is no GPU.

    A driver runs programs for its own CUDA and older ones (CUDA Compatibility, "CUDA driver").
    """
    if not devices.known_gpus():
        return None
    version = devices.cuda_version()
    return "numba-cuda[cu12]" if version is not None and version < (13, 0) else "numba-cuda[cu13]"


def quoted(text: str) -> str:
    """Text as one word of a command in asv's configuration.

    asv splits a command as a shell does and then formats every word (``asv.util``).
    """
    return shlex.quote(text.replace("{", "{{").replace("}", "}}"))
