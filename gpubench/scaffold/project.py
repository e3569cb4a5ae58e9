"""Writing a project: templates rendered for its layout, nothing overwritten."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from gpubench.scaffold.layout import (
    Layout,
    ProjectError,
    find_layout,
    free_module_name,
    repository_root,
)
from gpubench.scaffold.requirement import cuda_requirement, own_requirement, quoted

SUITE = Path("suites/saxpy.yaml")
NOT_TRACKED = (".asv/", "reports/html/")
"""What asv and ``gpubench report`` write, as lines of ``.gitignore``."""


@dataclass(frozen=True, slots=True)
class Written:
    """One file of the project."""

    path: Path
    """Inside the directory that was given to ``write_project``."""
    written: bool
    """False when a file was there already; it is left as it was."""


def write_project(directory: Path) -> list[Written]:
    """Make a directory ready for ``asv run`` and ``gpubench report``; overwrites nothing.

    Writes asv's configuration, a first suite and its kernel. A directory that is no Python project
    yet also gets a ``pyproject.toml`` and a package. Raises ``ProjectError`` where that cannot be.
    """
    layout = find_layout(directory)
    try:
        return [_write(directory / path, text) for path, text in _files(directory, layout)]
    except OSError as error:
        raise ProjectError(f"cannot write {error.filename!r}: {error.strerror}") from error


def next_steps(directory: Path, files: list[Written]) -> list[str]:
    """Commands and remarks, in order, that lead from the written files to a first report."""
    return [
        *_about_what_was_kept(directory, files),
        *_about_place(directory),
        *_about_git(directory),
        "asv machine --yes",
        "GPUBENCH_PRESET=smoke asv run HEAD^!",
        "gpubench report",
    ]


def _files(directory: Path, layout: Layout) -> Iterator[tuple[Path, str]]:
    """Paths, relative to the directory, and what belongs into them."""
    if layout.is_new:
        yield Path("pyproject.toml"), _render("pyproject.toml.jinja", layout)
        yield layout.package_path / "__init__.py", _render("package.py.jinja", layout)
    yield Path("asv.conf.json"), _render("asv.conf.json.jinja", layout)
    yield Path("benchmarks/__init__.py"), ""
    yield Path("benchmarks/suites.py"), _render("suites.py.jinja", layout)
    yield from _first_suite(directory, layout)
    yield Path(".gitignore"), _render("gitignore.jinja", layout)


def _first_suite(directory: Path, layout: Layout) -> Iterator[tuple[Path, str]]:
    """The suite and its module. A suite that is there already names the modules that it needs."""
    is_first = not (directory / SUITE).exists()
    kernel = _render("saxpy.py.jinja", layout)
    module = free_module_name(directory / layout.package_path, "saxpy", kernel)
    path = layout.package_path / f"{module}.py"
    yield SUITE, _render("saxpy.yaml.jinja", layout, module=f"{layout.package}.{module}")
    if is_first or (directory / path).exists():
        yield path, kernel


def _render(template: str, layout: Layout, **values: str) -> str:
    environment = Environment(
        loader=PackageLoader("gpubench.scaffold"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    environment.filters["quoted"] = quoted
    found = environment.get_template(template)
    requirements = {"gpubench": own_requirement(), "cuda": cuda_requirement()}
    return found.render(**asdict(layout), **values, **requirements)


def _write(path: Path, text: str) -> Written:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        return Written(path, written=False)
    return Written(path, written=True)


def _about_what_was_kept(directory: Path, files: list[Written]) -> Iterator[str]:
    kept = {file.path for file in files if not file.written}
    if directory / "asv.conf.json" in kept:
        needed = " and ".join(filter(None, (own_requirement(), cuda_requirement())))
        yield (
            "asv.conf.json was there and is kept: its environments have to install "
            f"{needed}, and its benchmark_dir has to be the folder of suites.py"
        )
    if directory / ".gitignore" in kept:
        lines = (directory / ".gitignore").read_text(encoding="utf-8").splitlines()
        ignored = {line.strip().strip("/") for line in lines}
        missing = [name for name in NOT_TRACKED if name.strip("/") not in ignored]
        if missing:
            yield f"add to .gitignore: {' '.join(missing)}"


def _about_place(directory: Path) -> Iterator[str]:
    if directory.resolve() != Path.cwd():
        yield f"cd {shlex.quote(str(directory))}"


def _about_git(directory: Path) -> Iterator[str]:
    if repository_root(directory.resolve()) is None:
        yield "git init"
    yield "git add . && git commit -m 'Benchmarks'"
