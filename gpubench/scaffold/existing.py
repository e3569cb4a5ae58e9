"""What ``gpubench init`` adds to files that a project has already: lines of ``.gitignore``, keys of
``asv.conf.json``, the packages of ``pyproject.toml``. Whatever stands in them stays."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.asv_config import read_configuration
from gpubench.files import replace_text

PLUGIN = ".gpubench.asv_plugin"

NOT_TRACKED = (".venv/", "__pycache__/", ".asv/", "reports/html/")
"""The environment, caches, results and pages, as lines of ``.gitignore``."""

BUILD_COMMAND = "python -m pip wheel --no-deps -w {build_cache_dir} {build_dir}"
"""asv's default also collects the wheels of all dependencies, and then stops at two wheels."""

_FLAT_BACKENDS = ("setuptools.build_meta", "setuptools.build_meta:__legacy__")


def add_to_gitignore(path: Path) -> list[str]:
    """Add what is not tracked, and return the lines that were added."""
    text = path.read_text(encoding="utf-8")
    there = {line.strip().strip("/") for line in text.splitlines()}
    missing = [name for name in NOT_TRACKED if name.strip("/") not in there]
    if missing:
        begin = text if text.endswith("\n") or not text else f"{text}\n"
        replace_text(path, "\n".join([f"{begin}# of gpubench", *missing, ""]))
    return missing


def add_to_configuration(path: Path, install: Sequence[str]) -> list[str]:
    """Have asv keep the record and install gpubench: add the plugin, and ``install`` before the
    other commands that install. Where asv's own commands build and install, add those that work for
    a project with dependencies. Return the keys that were changed.

    Raises ``ValueError``, with nothing written, for a file whose old content a change would lose:
    comments inside its lists, for example.
    """
    before = read_configuration(path)
    expected, text = dict(before), path.read_text(encoding="utf-8")
    changed = []
    wanted: dict[str, Sequence[str]] = {"plugins": [PLUGIN], "install_command": install}
    if not {"build_command", "install_command"} & before.keys():
        wanted["build_command"] = [BUILD_COMMAND]
    for key, values in wanted.items():
        there = before.get(key)
        listed = [there] if isinstance(there, str) else [*(there or ())]
        new = [value for value in values if value not in listed]
        if not new or (key == "install_command" and any("gpubench" in str(one) for one in listed)):
            continue
        if there is None and key == "install_command":
            # asv's own leaves a wheel of the same version alone (docs/which-code.md).
            pip = "in-dir={env_dir} python -m pip install"
            listed = [f"{pip} --no-deps --force-reinstall {{wheel_file}}", f"{pip} {{wheel_file}}"]
        expected[key] = [*new, *listed]
        text = _with_list(text, key, expected[key], is_there=there is not None)
        changed.append(key)
    if changed:
        if _parse(text) != expected:
            raise ValueError("it is written in a way that cannot be added to")
        replace_text(path, text)
    return changed


def add_cuda(path: Path, install: str) -> bool:
    """Have asv's environments install what CUDA needs: add ``install`` before the other commands,
    and numba-cuda to the matrix, so that results tell its version. Return whether something was
    changed.

    Raises ``ValueError``, with nothing written, for a file whose old content a change would
    lose.
    """
    before = read_configuration(path)
    commands = before.get("install_command")
    brings = "softcuda" if "softcuda" in install else "numba-cuda"
    if brings in json.dumps(before) or not isinstance(commands, list):
        return False
    text = path.read_text(encoding="utf-8")
    expected = {**before, "install_command": [install, *commands]}
    text = _with_first(text, "install_command", "[", f"\n        {json.dumps(install)},")
    matrix = before.get("matrix")
    required = matrix.get("req") if isinstance(matrix, dict) else None
    if isinstance(required, dict) and "numba-cuda" not in required:
        expected["matrix"] = {**before["matrix"], "req": {**required, "numba-cuda": []}}
        comma = "," if required else ""
        text = _with_first(text, "req", "{", f'\n            "numba-cuda": []{comma}')
    if _parse(text) != expected:
        raise ValueError("it is written in a way that cannot be added to")
    replace_text(path, text)
    return True


def _with_first(text: str, key: str, opening: str, entry: str) -> str:
    """Return the text with an entry before the others of the list or mapping under a key; what is
    a comment is no key."""
    pattern = rf'(?m)^((?:(?!//).)*"{key}"\s*:\s*{re.escape(opening)})'
    return re.sub(pattern, lambda match: f"{match[1]}{entry}", text, count=1)


def _with_list(text: str, key: str, values: Iterable[str], *, is_there: bool) -> str:
    """Return the text with a list under a key at the top."""
    entry = f'"{key}": {json.dumps([*values])}'
    if is_there:
        value = r'(?:\[[^\]]*\]|"(?:[^"\\]|\\.)*")'
        pattern = rf'(?m)^(\s*)"{key}"\s*:\s*{value}'
        return re.sub(pattern, lambda match: f"{match[1]}{entry}", text, count=1)
    opening = re.search(r"\A(?:\s|//[^\n]*\n|/\*.*?\*/)*\{", text, re.DOTALL)
    if opening is None:
        return text
    rest = text[opening.end() :]
    comma = "" if re.fullmatch(r"\s*\}\s*", rest) else ","
    return f"{opening[0]}\n    {entry}{comma}{rest}"


def _parse(text: str) -> Any:
    import json5

    try:
        return json5.loads(text)
    except ValueError:
        return None


def add_packages(path: Path, packages: Sequence[str], modules: Sequence[str]) -> str | None:
    """State which packages or modules a ``pyproject.toml`` installs, where setuptools looks for
    them by itself: it refuses a project in which ``suites/`` stands beside a package. Return what
    was added; ``None`` where nothing has to be.

    See https://setuptools.pypa.io/en/latest/userguide/package_discovery.html.
    """
    text = path.read_text(encoding="utf-8")
    content = tomllib.loads(text)
    backend = content.get("build-system", {}).get("build-backend", _FLAT_BACKENDS[0])
    options: Mapping[str, Any] = content.get("tool", {}).get("setuptools", {})
    states = {"packages", "py-modules", "package-dir"} & options.keys()
    others = (path.with_name(name) for name in ("setup.py", "setup.cfg", "src"))
    if backend not in _FLAT_BACKENDS or states or any(map(Path.exists, others)):
        return None
    if modules:
        added = f"[tool.setuptools]\npy-modules = {json.dumps([*modules])}\n"
        if options:  # the table may be there, and TOML has each once
            return None
    else:
        include = json.dumps([name for each in packages for name in (each, f"{each}.*")])
        added = f"[tool.setuptools.packages.find]\ninclude = {include}\n"
    begin = text if text.endswith("\n") or not text else f"{text}\n"
    replace_text(path, f"{begin}\n{added}")
    return added
