"""Where ``module:name`` is defined, found in the source without importing it.

Importing a kernel imports Numba and may compile; a plan only needs to know what stands in the file.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from gpubench.errors import KernelError
from gpubench.suite.model import Implementation

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr
"""What a name is bound to: a ``def``, a ``class``, or the value of an assignment."""


@dataclass(frozen=True, eq=False)
class Module:
    """One source file, read and parsed but not run."""

    name: str
    text: str
    definitions: Mapping[str, tuple[Definition, ...]]
    """What each name of the module is bound to, in the order of the file."""
    imports: Mapping[str, str]
    """Local name to full name: ``cuda`` to ``numba.cuda``, ``np`` to ``numpy``."""


def find_module(name: str) -> Module | None:
    """The module's source; ``None`` where there is none to read (built in, compiled, made at run
    time). Raises ``KernelError`` where there is no such module.
    """
    spec = _find_spec(name)
    if spec is None or not spec.has_location or not str(spec.origin).endswith(".py"):
        return None
    path = Path(str(spec.origin))
    package = name if spec.submodule_search_locations is not None else name.rpartition(".")[0]
    try:
        return _parsed(name, package, path, path.stat().st_mtime_ns)
    except (OSError, SyntaxError, ValueError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise KernelError(f"cannot read module {name!r} ({path}): {cause}") from error


_files_read: set[Path] = set()


def files_read() -> frozenset[Path]:
    """Every source file that was looked into by this process."""
    return frozenset(_files_read)


def reference_of(implementation: Implementation) -> str | None:
    """The ``module:name`` that an implementation gives; ``None`` for a source in another
    language."""
    return implementation.function or implementation.factory or implementation.launcher


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
        module = find_module(module_name)
    except KernelError:
        return reference
    found = module.definitions.get(name, ()) if module is not None else ()
    if module is None or not found:
        return reference
    return _segment(module, found[-1])


def bindings(body: Iterable[ast.stmt]) -> Iterator[tuple[str, Definition]]:
    """Names that statements bind to something, those inside ``if``, ``try`` and ``with`` too."""
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield statement.name, statement
            case ast.Assign(targets=targets, value=value):
                yield from ((t.id, value) for t in targets if isinstance(t, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case _:
                yield from bindings(_nested(statement))


def imported_names(body: Iterable[ast.stmt], package: str) -> Iterator[tuple[str, str]]:
    """Local name and full name of everything that statements import."""
    for statement in body:
        match statement:
            case ast.Import(names=aliases):
                for alias in aliases:
                    local = alias.asname or alias.name.partition(".")[0]
                    yield local, alias.name if alias.asname else local
            case ast.ImportFrom(module=module, names=aliases, level=level):
                source = _absolute(module or "", level, package)
                yield from ((a.asname or a.name, f"{source}.{a.name}") for a in aliases)
            case _:
                yield from imported_names(_nested(statement), package)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'norm_cuda'?``, or nothing."""
    near = difflib.get_close_matches(name, sorted(set(known)), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _nested(statement: ast.stmt) -> Iterator[ast.stmt]:
    if not isinstance(statement, ast.If | ast.Try | ast.TryStar | ast.With):
        return
    yield from statement.body
    if not isinstance(statement, ast.With):
        yield from statement.orelse
    if isinstance(statement, ast.Try | ast.TryStar):
        yield from (inner for handler in statement.handlers for inner in handler.body)
        yield from statement.finalbody


@lru_cache(maxsize=256)
def _parsed(name: str, package: str, path: Path, modified: int) -> Module:
    """``modified`` makes a changed file a new entry of the cache."""
    _files_read.add(path)
    text = path.read_text(encoding="utf-8")
    body = ast.parse(text).body
    definitions: dict[str, tuple[Definition, ...]] = {}
    for bound, definition in bindings(body):
        definitions[bound] = (*definitions.get(bound, ()), definition)
    return Module(name, text, definitions, dict(imported_names(body, package)))


def _find_spec(name: str) -> ModuleSpec | None:
    """Like ``importlib.util.find_spec``, but importing no parent package."""
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
        spec = _submodule_spec(name, spec, part)
    return spec


def _submodule_spec(name: str, parent: ModuleSpec, part: str) -> ModuleSpec:
    locations = list(parent.submodule_search_locations or ())
    spec = PathFinder.find_spec(f"{parent.name}.{part}", locations) if locations else None
    if spec is not None:
        return spec
    kind = "package" if parent.submodule_search_locations is not None else "module"
    hint = did_you_mean(part, (module.name for module in pkgutil.iter_modules(locations)))
    raise KernelError(f"there is no module {name!r}: {kind} {parent.name!r} has no {part!r}{hint}")


def _absolute(module: str, level: int, package: str) -> str:
    if level == 0:
        return module
    parts = package.split(".")
    base = ".".join(parts[: len(parts) - level + 1])
    return f"{base}.{module}" if module else base


def _segment(module: Module, definition: Definition) -> str:
    decorators = getattr(definition, "decorator_list", [])
    first = min([definition.lineno, *(decorator.lineno for decorator in decorators)])
    lines = module.text.splitlines()[first - 1 : definition.end_lineno]
    return "\n".join(lines) + "\n"
