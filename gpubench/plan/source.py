"""What ``module:name`` is, found in the source without importing it.

Importing a kernel may take seconds and compile; a plan only needs to know what stands in the file.
"""

from __future__ import annotations

import ast
import importlib.util
import pkgutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import NamedTuple

from gpubench.backends import registry
from gpubench.errors import KernelError, did_you_mean
from gpubench.files import TooLarge, read_regular
from gpubench.links import leads_out
from gpubench.suite.model import Implementation
from gpubench.suite.tree import shortened

_KEEP_ARGUMENTS = {"jit", "njit", "cache", "lru_cache"}
"""Decorators that leave a function the arguments that it is written with: Numba's and Python's."""
MAX_SHOWN = 200
"""Characters of a function's parameters in a message."""
SEARCHED_FIRST: list[str] = []
"""Folders whose modules are read before those of ``sys.path``, and which nothing is imported from:
the working folder of a command that only reads."""
MAX_MODULE = 2**19
"""Bytes of a module that is looked through. Python takes some 200 times as much memory to parse it:
the largest of its own library has 230 KB."""
_MAX_FOLLOWED = 8
"""Imports of a name that are followed from module to module: more than any package has."""


@dataclass(frozen=True, eq=False)
class SourceFile:
    """One source file, read and parsed but not run."""

    text: str
    names: Mapping[str, ast.stmt | str]
    """The statement that binds each name of the module, the last one of several; for what it only
    imports the full name: ``numba.cuda`` for ``cuda``."""
    is_open: bool
    """Whether it may have names that do not stand in it: ``import *``, ``globals()``, ``exec``, a
    function ``__getattr__``."""


def reference_of(implementation: Implementation) -> str | None:
    """Return the ``module:name`` that an implementation gives; ``None`` for a source in another
    language."""
    return implementation.function or implementation.factory or implementation.launcher


class Arguments(NamedTuple):
    """What a function is called with, by the names that people know it by."""

    positional: Sequence[str] = ()
    keywords: Iterable[str] = ()
    before_call: int = 0
    """Arguments before those that the suite's `call` names."""
    callable_with: Collection[str] = ()
    """Names that `call` may hold; empty where other than `call` decides."""

    def __str__(self) -> str:
        return f"({', '.join([*self.positional, *(f'{name}=...' for name in self.keywords)])})"


def require(reference: str, arguments: Arguments | None = None) -> None:
    """See that there is a ``module:name`` and that it takes the arguments, as far as the source
    tells.

    Raises ``KernelError`` with the nearest name for a module or a name that is not there, for a
    module that cannot be read, and for a function that takes other arguments. What has no source
    (compiled, made at run time) is taken to be right, and arguments behind a decorator that may
    change them.
    """
    definition = find_definition(reference)
    if arguments is None or not isinstance(definition, ast.FunctionDef):
        return
    for decorator in definition.decorator_list:  # `jit` of `@cuda.jit(device=True)`
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name not in _KEEP_ARGUMENTS:
            return
    if not _takes(definition.args, arguments):
        parameters = (*definition.args.args, *definition.args.kwonlyargs)
        known = {each.arg for each in parameters}
        unknown = next((name for name in arguments.keywords if name not in known), None)
        names = [each.arg for each in definition.args.args]
        taken, of_call = names[arguments.before_call :], set(arguments.callable_with)
        write = "change the function, or what the suite gives it"
        if taken and of_call.issuperset(taken) and of_call.isdisjoint(names[: -len(taken)]):
            write = f"write call: [{', '.join(taken)}], or change the function"
        raise KernelError(
            f"{reference} takes ({_shown(definition.args)}), and is called with {arguments}: "
            f"{write}"
        ) from (NameError(name=unknown) if unknown else None)


def _shown(parameters: ast.arguments) -> str:
    """Parameters as they are written, without annotations."""
    try:
        takes = deepcopy(parameters)
        for parameter in ast.walk(takes):
            if isinstance(parameter, ast.arg):
                parameter.annotation = None
        return shortened(ast.unparse(takes), MAX_SHOWN)
    except RecursionError:  # a default of thousands of terms
        return "other arguments"


def _takes(parameters: ast.arguments, arguments: Arguments) -> bool:
    count, keywords = len(arguments.positional), set(arguments.keywords)
    positional = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    required = positional[: len(positional) - len(parameters.defaults)][count:]
    named = {each.arg for each in parameters.args[max(count - len(parameters.posonlyargs), 0) :]}
    for each, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
        named.add(each.arg)
        required += [] if default else [each.arg]
    return (
        (count <= len(positional) or parameters.vararg is not None)
        and keywords.issuperset(required)
        and (keywords <= named or parameters.kwarg is not None)
    )


def find_definition(reference: str) -> ast.stmt | None:
    """Return the statement that defines a ``module:name``, followed through imports; ``None`` where
    the source does not tell."""
    name, _, dotted = reference.partition(":")
    attribute, _, inner = dotted.partition(".")
    for _ in range(_MAX_FOLLOWED):
        module = _find_module(name)
        bound = module.names.get(attribute) if module is not None else None
        if module is None:
            return None
        if isinstance(bound, ast.stmt):
            return None if inner else bound
        if bound is None:
            if module.is_open or _is_module(f"{name}.{attribute}"):
                return None
            hint = did_you_mean(attribute, module.names)
            missing = NameError(name=attribute)
            raise KernelError(f"module {name!r} has no {attribute!r}{hint}") from missing
        name, _, attribute = bound.rpartition(".")
        if not name or _is_module(f"{name}.{attribute}"):
            return None  # a module itself
    return None


def decorator_names(definition: ast.FunctionDef) -> list[tuple[str, ...]]:
    """Return the names of each decorator, with the name before a dot and without: ``cuda.jit`` and
    ``jit``."""
    names: list[tuple[str, ...]] = []
    for decorator in definition.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        words = ast.unparse(called).split(".")
        names.append((".".join(words[-2:]), words[-1]))
    return names


def find_backend(reference: str) -> tuple[str, str] | None:
    """Return the backend that a function's source shows, and by what; ``None`` where it does not
    tell. Raises ``KernelError``."""
    definition = find_definition(reference)
    if not isinstance(definition, ast.FunctionDef):
        return None
    backends = registry.by_decorator() if definition.decorator_list else {}
    for names in decorator_names(definition):
        for name in names:
            if name in backends:
                return backends[name], f"@{name}"
    return ("numpy", "no decorator") if not definition.decorator_list else None


def find_decorator(reference: str, names: Iterable[str]) -> str | None:
    """Return which of these decorators a function has, by its source; ``None`` where it has none or
    the source does not tell. Raises ``KernelError``."""
    definition, wanted = find_definition(reference), {*names}
    if not isinstance(definition, ast.FunctionDef):
        return None
    each = (name for names in decorator_names(definition) for name in names)
    return next((name for name in each if name in wanted), None)


def arrays_by_thread(reference: str) -> list[int]:
    """Return which arguments of a CUDA kernel its source indexes by the thread's place in the grid,
    by their positions; none where the source does not tell. Raises ``KernelError``."""
    definition = find_definition(reference)
    if not isinstance(definition, ast.FunctionDef):
        return []
    threads, nodes = set[str](), [*ast.walk(definition)]
    for node in nodes:
        if isinstance(node, ast.Assign) and _is_place_in_grid(node.value):
            targets = (each for target in node.targets for each in ast.walk(target))
            threads |= {each.id for each in targets if isinstance(each, ast.Name)}
    indexed = {
        node.value.id
        for node in nodes
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
        if any(isinstance(each, ast.Name) and each.id in threads for each in ast.walk(node.slice))
    }
    parameters = (*definition.args.posonlyargs, *definition.args.args)
    return [place for place, each in enumerate(parameters) if each.arg in indexed]


def _is_place_in_grid(value: ast.expr) -> bool:
    words = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(value)
        if isinstance(node, ast.Attribute | ast.Name)
    }
    return {"cuda", "grid"} <= words or {"threadIdx", "blockIdx"} <= words


def source_text(implementation: Implementation, suite_path: Path | str) -> str:
    """Text of the function, factory, launcher or source file; its name where that is all there is.

    For showing beside a result, so it never raises.
    """
    reference = reference_of(implementation)
    if reference is None:
        path = Path(suite_path).parent / str(implementation.source)
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else str(path)
    module_name, _, name = reference.partition(":")
    try:
        module = _find_module(module_name)
    except KernelError:
        return reference
    definition = module.names.get(name) if module else None
    if module is None or not isinstance(definition, ast.stmt):
        return reference
    decorators = getattr(definition, "decorator_list", [])
    first = min([definition.lineno, *(decorator.lineno for decorator in decorators)])
    lines = module.text.splitlines()[first - 1 : definition.end_lineno]
    return "\n".join(lines) + "\n"


def look_again() -> None:
    """Look for modules on the disk again: what a plan found before is forgotten."""
    _locate.cache_clear()


def _find_module(name: str) -> SourceFile | None:
    """Return the module's source; ``None`` where there is none to read."""
    located = _locate(name, (*SEARCHED_FIRST, str(Path.cwd()), *sys.path))
    if located is None:
        return None
    package, path = located
    try:
        return _parsed(package, path, path.stat().st_mtime_ns)
    except TooLarge as error:
        raise KernelError(
            f"module {name!r} ({path}): {error} of a module; put what the suite names into a "
            "module of its own"
        ) from error
    except (MemoryError, RecursionError) as error:  # what Python's parser says of deep nesting
        raise KernelError(
            f"module {name!r} ({path}) is nested too deeply to be looked through; put what the "
            "suite names into a module of its own"
        ) from error
    except SyntaxError as error:
        place = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise KernelError(f"module {name!r} is not Python: {place}: {error.msg}") from error
    except (OSError, ValueError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise KernelError(f"cannot read module {name!r} ({path}): {cause}") from error


@lru_cache(maxsize=256)
def _locate(name: str, searched: tuple[str, ...]) -> tuple[str, Path] | None:
    """Return the package of a module and its file; ``None`` where there is none to read.
    ``searched``, the folders that are searched, makes others a new entry of the cache."""
    spec = _find_spec(name)
    if spec is None or not spec.has_location or not str(spec.origin).endswith(".py"):
        return None
    path = Path(str(spec.origin))
    for folder in SEARCHED_FIRST:
        if path.is_relative_to(folder) and leads_out(path, Path(folder)):
            raise KernelError(
                f"cannot read module {name!r}: {path} is a link that leads out of {folder}; copy "
                "the file there"
            )
    package = name if spec.submodule_search_locations is not None else name.rpartition(".")[0]
    return package, path


@lru_cache(maxsize=256)
def _parsed(package: str, path: Path, modified: int) -> SourceFile:
    """Parse a file; ``modified`` makes a changed file a new entry of the cache."""
    # With a byte-order mark or without, as Python itself reads a module.
    text = read_regular(path, MAX_MODULE).decode("utf-8-sig")
    definitions: dict[str, ast.stmt] = {}
    imports: dict[str, str] = {}
    for statement in _statements(ast.parse(text).body):
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                definitions[statement.name] = statement
            case ast.Assign(targets=targets):
                nodes = (node for target in targets for node in ast.walk(target))
                definitions |= {n.id: statement for n in nodes if isinstance(n, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                definitions[name] = statement
            case ast.Import(names=aliases):
                for alias in aliases:
                    local = alias.asname or alias.name.partition(".")[0]
                    imports[local] = alias.name if alias.asname else local
            case ast.ImportFrom(module=module, names=aliases, level=level):
                parts = package.split(".")[: -(level - 1) or None] if level else []
                source = ".".join([*parts, *filter(None, [module])])
                imports |= {a.asname or a.name: f"{source}.{a.name}" for a in aliases}
    is_open = "*" in imports or "__getattr__" in definitions
    is_open |= any(call in text for call in ("globals()", "exec(", "setattr("))
    # What is defined counts, also where an import that may fail would replace it.
    return SourceFile(text, {**imports, **definitions}, is_open)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, those inside ``if``, ``try``, ``with`` and loops too."""
    for statement in body:
        yield statement
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for field in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(statement, field, ()))
            for handler in getattr(statement, "handlers", ()):
                yield from _statements(handler.body)


def _is_module(name: str) -> bool:
    try:
        return _find_spec(name) is not None
    except KernelError:
        return False


def _why_not_found(top: str) -> str:
    """Return what to do where Python has no module or package of this name: the same words for all
    functions in it, which are one thing to mend."""
    in_src = next((at for at in map(Path, SEARCHED_FIRST) if _has_module(at / "src", top)), None)
    if in_src is not None:
        return (
            f"there is no module {top!r}: it is in src/, from where Python imports nothing before "
            "the project is installed; run `pip install -e .`"
        )
    return f"there is no module {top!r}: install the package that has it, or run from its folder"


def _has_module(folder: Path, name: str) -> bool:
    return (folder / name).is_dir() or (folder / f"{name}.py").is_file()


def _find_spec(name: str) -> ModuleSpec | None:
    """Like ``importlib.util.find_spec``, but importing no parent package.

    Raises ``KernelError`` where there is no such module, with the nearest name.
    """
    if name in sys.modules:
        return sys.modules[name].__spec__
    top, *rest = name.split(".")
    spec = PathFinder.find_spec(top, SEARCHED_FIRST) if SEARCHED_FIRST else None
    # What the program that reads suites is called by Python is no module of theirs.
    spec = spec or (importlib.util.find_spec(top) if top != "__main__" else None)
    if spec is None:
        raise KernelError(_why_not_found(top)) from ModuleNotFoundError(name=name)
    package = top
    for part in rest:
        if part == "py":
            raise KernelError(
                f"there is no module {name!r}; write {name.removesuffix('.py')!r}, without .py"
            ) from ModuleNotFoundError(name=name)
        locations = list(spec.submodule_search_locations or ())
        # By the last name alone: of a whole name, a folder without __init__.py asks for its parent,
        # which is not imported.
        parent, spec = spec, PathFinder.find_spec(part, locations or None)
        if spec is None or not locations:
            kind = "module" if parent.submodule_search_locations is None else "package"
            hint = did_you_mean(part, (module.name for module in pkgutil.iter_modules(locations)))
            where = f"{kind} {package!r} has no {part!r}{hint}"
            missing = ModuleNotFoundError(name=name)
            raise KernelError(f"there is no module {name!r}: {where}") from missing
        package = f"{package}.{part}"
    return spec
