"""What a project is called and where things go in it; its files, written from templates, nothing
overwritten; and what asv's environments install: gpubench as this one was installed, and what CUDA
needs on this machine."""

from __future__ import annotations

import keyword
import os
import re
import shlex
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib.machinery import PathFinder, all_suffixes
from itertools import chain, count
from pathlib import Path
from typing import Any

from gpubench.asv_config import read_configuration
from gpubench.files import write_new
from gpubench.scaffold.existing import (
    add_cuda,
    add_packages,
    add_to_configuration,
    add_to_gitignore,
)
from gpubench.scaffold.project_name import (
    ProjectError,
    ProjectName,
    ask_build_backend,
    check_name,
    read_stated_name,
    refuse_setup_cfg_alone,
)
from gpubench.scaffold.requirements import (
    asv_requirements,
    environments_of,
    install_options,
    quoted,
)
from gpubench.scaffold.writing import SCHEMA, template_environment
from gpubench.suite.schema import schema_text

SUITE = Path("suites/saxpy.yaml")

NOT_THE_PACKAGE = frozenset(
    {"benchmarks", "benchmarks_kernels", "build", "dist", "docs", "examples", "suites", "tests"}
)
"""Directories that hold Python files beside the package that a project installs."""

TAKEN_NAMES = (
    sys.stdlib_module_names | NOT_THE_PACKAGE | {*("asv", "gpubench", "numba", "numpy", "softcuda")}
)
"""A new package of one of these names would hide what the kernels or asv import."""


@dataclass(frozen=True, slots=True)
class Project:
    """What the templates need to know about a project."""

    distribution: str
    """Name that pip knows the project by; asv uninstalls it by this name between commits."""
    named_by: str
    """Where that name was found, for a person."""
    package: str
    """Import name of the project's package; empty where there is none."""
    package_path: Path
    """The package's directory, relative to the project's."""
    is_new: bool
    """True where there is no project yet: it gets a ``pyproject.toml``, and a package with an
    example unless it has modules."""
    repository: str
    """Path from the project to the root of its git repository: ``.``, or upwards."""
    subdirectory: str
    """Path of the project inside that repository; empty when it is the root."""
    modules: tuple[str, ...] = ()
    """Modules of a project without a package: it gets no package beside them."""
    asv_folder: str | None = None
    """Where an asv project that was there has its benchmarks."""


MODULE_SUFFIXES = (*all_suffixes(), ".pyx")
"""Ends of names of what Python imports, and of what becomes such a file when it is built."""


def find_project(
    directory: Path, name: str | None = None, warn: Callable[[str], None] = lambda text: None
) -> Project:
    """Look at a project, or decide on the names of a new one.

    ``name`` is the project's where the user gave it. Else its files are read, and where they do not
    state it, its build backend is asked, which runs code of the project: ``warn`` is called before.
    Raises ``ProjectError`` for a project without a package, for one whose name nobody tells, and
    for a folder above projects, unless it is given a ``name``.
    """
    directory = directory.resolve()
    root = repository_root(directory) or directory
    subdirectory = "" if root == directory else directory.relative_to(root).as_posix()
    repository = Path(os.path.relpath(root, directory)).as_posix()
    given = ProjectName(check_name(name), "--project") if name is not None else None
    asv_folder = _benchmark_dir(directory)
    if not any((directory / file).exists() for file in ("pyproject.toml", "setup.py")):
        refuse_setup_cfg_alone(directory)
        if modules := find_modules(directory):
            called = given or ProjectName(
                package_name(directory.name).replace("_", "-"), "the folder's name"
            )
            return Project(
                called.name,
                called.source,
                "",
                Path(),
                True,
                repository,
                subdirectory,
                modules,
                asv_folder,
            )
        if name is None and (projects := _projects_below(directory)):
            raise ProjectError(f"{projects}; --project NAME starts one of its own here")
        package = free_name(
            package_name(name or directory.name),
            lambda free: hides_module(free, directory) or is_importable(free, directory),
        )
        called = given or ProjectName(package.strip("_").replace("_", "-"), "the folder's name")
        return Project(
            called.name,
            called.source,
            package,
            Path(package),
            True,
            repository,
            subdirectory,
            asv_folder=asv_folder,
        )
    stated = given or read_stated_name(directory)
    place = _installed_package(directory, stated.name if stated else directory.name)
    if stated is None and not (directory / "asv.conf.json").exists():
        warn(
            "no file states the project's name, so that its build backend is asked, which runs "
            "code of the project; gpubench init --project NAME runs nothing of it"
        )
        stated = ask_build_backend(directory)
        place = _installed_package(directory, stated.name)
    stated = stated or ProjectName(place.name, "its package")
    return Project(
        stated.name,
        stated.source,
        place.name,
        place,
        False,
        repository,
        subdirectory,
        () if place.name else find_modules(directory),
        asv_folder,
    )


def _benchmark_dir(directory: Path) -> str | None:
    """Return where an asv project has its benchmarks; ``None`` without a configuration."""
    try:
        folder = read_configuration(directory / "asv.conf.json").get("benchmark_dir", "benchmarks")
    except ValueError:
        return None
    is_inside = isinstance(folder, str) and not Path(folder).is_absolute() and ".." not in folder
    return Path(folder).as_posix() if is_inside else None


def find_modules(directory: Path) -> tuple[str, ...]:
    """Return the modules that stand in a project without a package, sorted."""
    names = (path.stem for path in directory.glob("*.py"))
    apart = NOT_THE_PACKAGE | {"setup", "conftest", "noxfile", "tasks"}
    return tuple(
        sorted(
            name
            for name in names
            if name.isidentifier() and name not in apart and not name.startswith("test_")
        )
    )


def repository_root(directory: Path) -> Path | None:
    """Root of the git repository that a directory is in, by its ``.git``; ``None`` outside one."""
    places = (directory, *directory.parents)
    return next((place for place in places if (place / ".git").exists()), None)


def package_name(directory_name: str) -> str:
    """Import name for a directory's name: ``my-proj 2`` is ``my_proj_2``."""
    plain = unicodedata.normalize("NFKD", directory_name.casefold()).encode("ascii", "ignore")
    name = re.sub(r"[^a-z0-9]+", "_", plain.decode()).strip("_")
    if not name or name in TAKEN_NAMES or keyword.iskeyword(name):
        return f"{name}_kernels".lstrip("_")
    return f"project_{name}" if name[0].isdigit() else name


def free_name(name: str, is_taken: Callable[[str], bool]) -> str:
    """Return the first of ``name``, ``name_kernels``, ``name_kernels_2`` ... that is not taken."""
    further = map(f"{name}_kernels_{{}}".format, count(2))
    return next(each for each in chain((name, f"{name}_kernels"), further) if not is_taken(each))


def hides_module(name: str, directory: Path) -> bool:
    """Return whether a package of this name would hide a module beside it, or cannot be made:
    Python prefers the package."""
    place = directory / name
    beside = directory.glob(f"{name}.*")
    return any(path.name.endswith(MODULE_SUFFIXES) for path in beside) or (
        os.path.lexists(place) and not place.is_dir()
    )


def is_importable(name: str, directory: Path) -> bool:
    """Return whether Python finds a module of this name outside the directory."""
    elsewhere = [place for place in sys.path if Path(place).resolve() != directory]
    found = PathFinder.find_spec(name, elsewhere)
    return found is not None and found.origin is not None  # as a mere folder has none


def free_module_name(package: Path, text: str) -> str:
    """First of ``saxpy``, ``saxpy_kernels``, ``saxpy_kernels_2`` ... that nothing else has taken.

    A module that holds just ``text`` is this one, written before.
    """

    def is_taken(name: str) -> bool:
        module = package / f"{name}.py"
        is_free = not module.exists() and not (package / name).exists()
        return not (is_free or (module.is_file() and module.read_bytes() == text.encode()))

    return free_name("saxpy", is_taken)


def _projects_below(directory: Path) -> str | None:
    """Return where the projects of a repository of several lie, and the command that starts in the
    first; ``None`` where there are none."""
    files = (
        path.relative_to(directory)
        for depth in ("*", "*/*")
        for name in ("pyproject.toml", "setup.py")
        for path in directory.glob(f"{depth}/{name}")
    )
    folders = sorted(
        {
            file.parent.as_posix()
            for file in files
            if not any(part in NOT_THE_PACKAGE or part.startswith(".") for part in file.parts)
        }
    )
    if not folders:
        return None
    listed = ", ".join(folders[:5]) + (f" and {len(folders) - 5} more" if folders[5:] else "")
    return (
        f"no project in {str(directory)!r} itself, but below it: {listed}; start in one of them: "
        f"gpubench init {shlex.quote(folders[0])}"
    )


def find_packages(directory: Path) -> list[Path]:
    """Return the packages that stand in a project or in its ``src``, relative to it."""
    return [
        init.parent.relative_to(directory)
        for folder in (directory, directory / "src")
        for init in sorted(folder.glob("*/__init__.py"))
        if init.parent.name not in NOT_THE_PACKAGE and init.parent.name.isidentifier()
    ]


def _installed_package(directory: Path, name: str) -> Path:
    """Return the package that bears the project's name, else the first, relative to ``directory``;
    ``Path()`` for a project of modules. Raises ``ProjectError`` where there is neither."""
    packages = find_packages(directory)
    if not packages and find_modules(directory):
        return Path()
    if not packages:
        raise ProjectError(
            _projects_below(directory)
            or f"no package and no module found in {str(directory)!r} (a folder with __init__.py, "
            "there or in src/, or a NAME.py); make one, or start in an empty folder"
        )
    expected = re.sub(r"[-.]+", "_", name).lower()
    return next((path for path in packages if path.name.lower() == expected), packages[0])


def write_project(
    directory: Path,
    systems: Sequence[str] = (),
    project: Project | None = None,
    *,
    needs_cuda: bool = False,
    example: bool = False,
) -> dict[Path, bool]:
    """Make a directory ready for ``asv run`` and ``gpubench report``; overwrites nothing.

    Writes asv's configuration. A directory that is no Python project yet also gets a
    ``pyproject.toml`` and a package with an example: a suite and its kernel. A package that is
    there gets it where ``example`` asks for it. ``systems`` are backends whose software asv's
    environments install too; ``project`` is what ``find_project`` returned, where it was called.
    ``needs_cuda``: they install what CUDA needs without a GPU too, for the device in software.
    Returns the files inside ``directory``, each with whether it was written: one that was there
    already is left as it was. Raises ``ProjectError`` where that cannot be.
    """
    environments = environments_of(systems)
    project = project or find_project(directory)
    if example and project.modules:
        raise ProjectError(
            "a project of modules gets no example: it would be one more module that is installed; "
            "`gpubench init --example` in an empty folder writes one"
        )
    has_example = example or (project.is_new and not project.modules)
    files: dict[Path, bool] = {}
    folders: list[Path] = []
    try:
        for inside, text in _files(directory, project, environments, needs_cuda, has_example):
            path = directory / inside
            folders += [each for each in path.parents if not each.exists()]
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                write_new(path, text.encode())
                files[path] = True
            except FileExistsError:
                files[path] = False
    except OSError as error:
        _remove([path for path, is_new in files.items() if is_new], folders)
        raise ProjectError(f"cannot write {error.filename!r}: {error.strerror}") from error
    return files


def _remove(files: Iterable[Path], folders: Iterable[Path]) -> None:
    """Remove what was written before it failed, so that no half of a project is left."""
    with suppress(OSError):
        for path in files:
            path.unlink()
        for folder in sorted({*folders}, key=lambda folder: -len(folder.parts)):
            if folder.is_dir():
                folder.rmdir()


def add_to_project(
    directory: Path, files: Mapping[Path, bool], project: Project, *, needs_cuda: bool = False
) -> list[str]:
    """Add what is missing to files of the project that were there; return what was added, in words.

    ``needs_cuda``: asv's environments install what CUDA needs without a GPU too. Raises
    ``ProjectError`` for a file that cannot be written.
    """
    said = []
    ignoring, configuration = directory / ".gitignore", directory / "asv.conf.json"
    build = directory / "pyproject.toml"
    try:
        if not files[ignoring] and (lines := add_to_gitignore(ignoring)):
            said.append(f".gitignore: {' '.join(lines)}")
        if not files[configuration]:
            with suppress(ValueError):  # ``next_steps`` has what to write by hand
                keys = add_to_configuration(configuration, _install_commands(needs_cuda))
                said += [f"asv.conf.json: {', '.join(keys)}"] if keys else []
                if needs_cuda and add_cuda(configuration, _cuda_command()):
                    said.append("asv.conf.json: softcuda, the device in software")
        if not project.is_new and build.is_file():
            packages = [] if project.modules else [project.package]
            if text := add_packages(build, packages, project.modules):
                said.append(f"pyproject.toml: {' '.join(text.split())}")
    except OSError as error:
        raise ProjectError(f"cannot write {error.filename!r}: {error.strerror}") from error
    return said


def _install_commands(needs_cuda: bool) -> list[str]:
    """Return the commands that install gpubench, and what CUDA needs, into asv's environments."""
    needed = asv_requirements(needs_cuda)
    return [_pip_install(needed.gpubench, *needed.cuda)]


def _cuda_command() -> str:
    """Return the command that installs what CUDA needs, with a GPU or without."""
    return _pip_install(*asv_requirements(True).cuda)


def _pip_install(*requirements: str) -> str:
    """Return a command of asv's configuration that installs these into an environment."""
    return f"in-dir={{env_dir}} python -m pip install {' '.join(map(quoted, requirements))}"


def _files(
    directory: Path,
    project: Project,
    environments: Sequence[Sequence[str]],
    needs_cuda: bool,
    has_example: bool,
) -> Iterator[tuple[Path, str]]:
    """Paths, relative to the directory, and what belongs into them.

    What is stopped between two of them goes on the next time: a suite comes after the kernel that
    it names, and what makes the directory a project comes last.
    """
    if project.is_new and not project.modules:
        yield project.package_path / "__init__.py", _render("package.py.jinja", project)
    door = project.asv_folder or free_name("benchmarks", partial(hides_module, directory=directory))
    configuration = _render(
        "asv.conf.json.jinja",
        project,
        environments=environments,
        benchmark_dir=door,
        **asv_requirements(needs_cuda)._asdict(),
    )
    yield Path("asv.conf.json"), configuration
    yield Path(door, "__init__.py"), ""
    up = ".parent" * (len(Path(door).parts) + 1)
    yield Path(door, "suites.py"), _render("suites.py.jinja", project, up=up)
    yield SCHEMA, schema_text()
    if has_example:
        yield from _example(directory, project)
    yield Path(".gitignore"), _render("gitignore.jinja", project)
    if project.is_new:
        yield Path("pyproject.toml"), _render("pyproject.toml.jinja", project)


def _example(directory: Path, project: Project) -> Iterator[tuple[Path, str]]:
    """Yield a suite and its kernel, in the project's package."""
    is_first = not (directory / SUITE).exists()
    kernel = _render("saxpy.py.jinja", project)
    module = free_module_name(directory / project.package_path, kernel)
    path = project.package_path / f"{module}.py"
    if is_first or (directory / path).exists():  # a suite that was there names its own modules
        yield path, kernel
    yield SUITE, _render("saxpy.yaml.jinja", project, module=f"{project.package}.{module}")


def _render(template: str, project: Project, **values: Any) -> str:
    environment = template_environment()
    environment.filters["quoted"] = quoted
    environment.filters["pip_install"] = lambda words: _pip_install(*words)
    environment.filters["install_options"] = install_options
    values |= asdict(project) | {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    return environment.get_template(template).render(**values)
