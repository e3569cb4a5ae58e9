"""What the report needs of ``asv.conf.json``: whose branches make a history, and where they are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpubench.errors import Fault
from gpubench.files import TooLarge, read_regular
from gpubench.git import BareRepository, Repository, named_repository
from gpubench.links import LEADS_OUT, leads_out

NAMES = ("asv.conf.json", "asv.conf.jsonc")

MAX_BYTES = 2**17
"""Of a configuration: with asv's own comments it has some 8 KB."""


@dataclass(frozen=True, slots=True)
class AsvConfig:
    """asv's configuration, as far as it decides what a history is."""

    folder: Path
    """In which it stands: the working folder where there is none."""
    repository: Repository
    """Where git is asked."""
    branches: tuple[str, ...] = ()
    """Names for git; empty where none is named."""
    path: Path | None = None
    """``None`` where there is none."""
    faults: tuple[Fault, ...] = ()


def find_config(results_dir: Path) -> AsvConfig:
    """Read the configuration that a results directory belongs to: the nearest in a folder above it.

    Where there is none above, one in the working folder counts, or the one in a folder of it whose
    ``results_dir`` is that directory. Nothing is raised: what is wrong is among ``faults``.
    """
    path = next(_candidates(results_dir), None)
    if path is None:
        return AsvConfig(Path(), Path())
    folder = path.parent
    try:
        content = read_configuration(path)
        branches = content.get("branches", ())
        if not isinstance(branches, list | tuple) or not all(
            isinstance(name, str | None) for name in branches
        ):
            raise ValueError('`branches` is a list of names, such as ["main"]')
    except ValueError as error:
        words = f"it is not read, so that the history is that of HEAD: {error}"
        return AsvConfig(folder, folder, path=path, faults=(Fault(str(path), 0, 0, words),))
    return AsvConfig(folder, _repository(folder, content), tuple(filter(None, branches)), path)


def _candidates(results_dir: Path) -> Iterator[Path]:
    here = Path.cwd()
    place = Path(os.path.normpath(here / results_dir))
    for folder in (*place.parents, here):
        # As the user would name it: relative to where he stands.
        shown = Path(os.path.relpath(folder)) if folder.is_relative_to(here) else folder
        yield from filter(Path.is_file, (shown / name for name in NAMES))
    for path in sorted(Path().glob(f"*/{NAMES[0]}*")):
        try:
            results = read_configuration(path).get("results_dir", "results")
            if path.name in NAMES and place == Path(os.path.normpath(here / path.parent / results)):
                yield path
        except (TypeError, ValueError):
            continue


def read_configuration(path: Path) -> Mapping[str, Any]:
    """Return what a configuration of asv holds, comments left out; raises ``ValueError`` for what
    is none."""
    if leads_out(path, path.parent):
        raise ValueError(LEADS_OUT)
    try:
        text = read_regular(path, MAX_BYTES).decode()
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    except TooLarge as error:
        raise ValueError(str(error)) from error
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        # asv's own reader, of JSON with comments; it takes a hundred times as long.
        import json5

        try:
            content = json5.loads(text)
        except RecursionError as error:
            raise ValueError("it is nested too deep") from error
    if not isinstance(content, dict):
        raise ValueError("it holds no mapping")
    return content


def _repository(folder: Path, content: Mapping[str, Any]) -> Repository:
    """Return the folder that ``repo`` names, or the one to which asv has cloned it from elsewhere;
    else that of the configuration."""
    repo, project = content.get("repo"), content.get("project", "project")
    if isinstance(repo, str) and "\0" not in repo and (folder / repo).is_dir():
        return named_repository(folder / repo)
    # asv clones into a folder of the project's name, beside its configuration.
    if isinstance(project, str) and "\0" not in project:
        clone = named_repository(folder / project)
        return clone if isinstance(clone, BareRepository) else folder
    return folder
