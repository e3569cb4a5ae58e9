"""What several modules use of asv's code: configuration, repository, environments, processes.

asv documents commands and files, and lets plugins see all of its code, which it may change. What
one module alone uses stands in that module; ``scripts/private_parts.py`` lists both. Importing this
imports most of asv.
"""

from __future__ import annotations

from typing import Any

from asv import runner, util
from asv.config import Config
from asv.console import log
from asv.environment import get_environments
from asv.machine import Machine
from asv.plugin_manager import plugin_manager
from asv.repo import get_repo

__all__ = [
    "Config",
    "Machine",
    "get_environments",
    "get_repo",
    "log",
    "plugin_manager",
    "repository_path",
    "runner",
    "util",
]


def repository_path(repository: Any) -> str | None:
    """Return the clone that asv works on; ``None`` where it is not of git."""
    return str(repository._path) if repository.dvcs == "git" else None
