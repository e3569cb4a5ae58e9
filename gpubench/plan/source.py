"""What ``module:name`` is, found in the source without importing it.

Importing a kernel may take seconds and compile; a plan only needs to know what stands in the file.
"""

from __future__ import annotations

import ast
import importlib.util
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from gpubench.errors import KernelError, did_you_mean
from gpubench.suite.model import Implementation

_MOST_FOLLOWED = 8
"""Imports of a name that are followed from module to module: more than any package has."""


@dataclass(frozen=True, eq=False)
class Module:
    """One source file, read and parsed but not run."""

    text: str
    definitions: Mapping[str, ast.stmt]
    """The statement that binds each name of the module; the last one of several."""
    imports: Mapping[str, str]
    """Local name to full name: ``cuda`` to ``numba.cuda``, ``np`` to ``numpy``."""
    is_open: bool
    """Whether it may have names that do not stand in it: ``import *``, ``globals()``, ``exec``, a
    function ``__getattr__``."""


def reference_of(implementation: Implementation) -> str | None:
    """The ``module:name`` that an implementation gives; ``None`` for a source in another
    language."""
    return implementation.function or implementation.factory or implementation.launcher


def require(reference: str) -> None:
    """See that there is a ``module:name``, as far as the source tells.

    Raises ``KernelError`` with the nearest name for a module or a name that is not there, and for a
    module that cannot be read. What has no source (compiled, made at run time) is taken to be
    right.
    """
    name, _, attribute = reference.partition(":")
    attribute = attribute.partition(".")[0]
    for _ in range(_MOST_FOLLOWED):
        module = _find_module(name)
        if module is None or attribute in module.definitions:
            return
        if attribute not in module.imports:
            if module.is_open or _is_module(f"{name}.{attribute}"):
                return
            hint = did_you_mean(attribute, (*module.definitions, *module.imports))
            raise KernelError(f"module {name!r} has no {attribute!r}{hint}")
        name, _, attribute = module.imports[attribute].rpartition(".")
        if not name or _is_module(f"{name}.{attribute}"):
            return  # a module itself


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
    definition = module.definitions.get(name) if module else None
    if module is None or definition is None:
        return reference
    decorators = getattr(definition, "decorator_list", [])
    first = min([definition.lineno, *(decorator.lineno for decorator in decorators)])
    lines = module.text.splitlines()[first - 1 : definition.end_lineno]
    return "\n".join(lines) + "\n"


def _find_module(name: str) -> Module | None:
    """The module's source; ``None`` where there is none to read."""
    spec = _find_spec(name)
    if spec is None or not spec.has_location or not str(spec.origin).endswith(".py"):
        return None
    path = Path(str(spec.origin))
    package = name if spec.submodule_search_locations is not None else name.rpartition(".")[0]
    try:
        return _parsed(package, path, path.stat().st_mtime_ns)
    except (OSError, SyntaxError, ValueError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise KernelError(f"cannot read module {name!r} ({path}): {cause}") from error


@lru_cache(maxsize=256)
def _parsed(package: str, path: Path, modified: int) -> Module:
    """``modified`` makes a changed file a new entry of the cache."""
    text = path.read_text(encoding="utf-8")
    definitions: dict[str, ast.stmt] = {}
    imports: dict[str, str] = {}
    for statement in _statements(ast.parse(text).body):
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                definitions[statement.name] = statement
            case ast.Assign(targets=targets):
                names = (
                    node.id for t in targets for node in ast.walk(t) if isinstance(node, ast.Name)
                )
                definitions |= dict.fromkeys(names, statement)
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
    return Module(text, definitions, imports, is_open)


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


def _find_spec(name: str) -> ModuleSpec | None:
    """Like ``importlib.util.find_spec``, but importing no parent package.

    Raises ``KernelError`` where there is no such module, with the nearest name.
    """
    if name in sys.modules:
        return sys.modules[name].__spec__
    top, *rest = name.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None:
        raise KernelError(
            f"there is no module {name!r}: install the package that has it, or run from the folder "
            "it is in"
        )
    for part in rest:
        locations = list(spec.submodule_search_locations or ())
        parent, spec = spec, PathFinder.find_spec(f"{spec.name}.{part}", locations or None)
        if spec is None or not locations:
            kind = "module" if parent.submodule_search_locations is None else "package"
            hint = did_you_mean(part, (module.name for module in pkgutil.iter_modules(locations)))
            where = f"{kind} {parent.name!r} has no {part!r}{hint}"
            raise KernelError(f"there is no module {name!r}: {where}")
    return spec
